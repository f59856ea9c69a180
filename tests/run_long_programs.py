#!/usr/bin/env python3
"""Networks written out, of 1,500, of 6,000 and of 16,384 statements: chains of elementwise definitions, of reductions, normalised convolutions
with residuals and gates, concatenations that grow, branches, hundreds of weights and of outputs, unrolled recurrences, views.

Each is compiled to the kernel and its ranking, without a GPU and without a compiler. Its processor time and memory may grow with
the statements, not with their square; and the launcher of 1,400 arguments compiles as C, C++ and, where it is, with nvcc.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import common

SHORT, MIDDLE, LONG = 1500, 6000, 16384
SECONDS = {SHORT: 10, MIDDLE: 30, LONG: 60}       # of processor time, on a slow machine: 0.3 and 3 ms a statement are usual
GIGABYTES = {SHORT: 1.25, MIDDLE: 4, LONG: 7}
GROWTH = 2                           # a statement of the longer one may take so many times as long: the square would be four or eleven
LEAST = 0.25                         # seconds: what is faster says nothing of growth
ARGUMENTS = 1400


def chain(n):
    body = [f"y{i}[i, j] = {f'y{i - 1}' if i else 'x'}[i, j] * 0.5 + x[i, j]" for i in range(n - 2)]
    return ["input x[64, 100] : f32", *body, f"output y{n - 3}"]


def reductions(n):
    """Along rows and along columns in turn, so that few go into one kernel."""
    body, last = [], "x"
    for i in range((n - 2) // 3):
        kept, gone = ("i", "j") if i % 2 else ("j", "i")
        body += [f"a{i}[i, j] = {last}[i, j] * 0.5 + 1", f"m{i}[{kept}] = max[{gone}](a{i}[i, j])", f"c{i}[i, j] = a{i}[i, j] - m{i}[{kept}]"]
        last = f"c{i}"
    return ["input x[64, 100] : f32", *body, f"output {last}"]


def network(n, kinds=40):
    """Convolution, batch norm, a projection beside it, ReLU, squeeze and excitation; every third block is concatenated with its
    input. Blocks have `kinds` different widths."""
    weights, body, last, width = [], [], "x", 24
    for i in range((n - 2) // 12):
        f = 8 + 4 * (i % kinds)
        weights += [f"weight w{i}[{f}, {width}, 3] : f16", f"weight bias{i}[{f}] : f32", f"weight p{i}[{f}, {width}] : f16"]
        body += [f"c{i}[n, f, h:20] : f16 = sum[c, r](pad({last}[n, c, h + r - 1], 0) * w{i}[f, c, r])",
                 f"m{i}[f] = sum[n, h](c{i}[n, f, h]) / 80",
                 f"v{i}[f] = sum[n, h](sq(c{i}[n, f, h] - m{i}[f])) / 80",
                 f"t{i}[n, f, h] : f16 = (c{i}[n, f, h] - m{i}[f]) * rsqrt(v{i}[f] + 1e-5) + bias{i}[f]",
                 f"d{i}[n, f, h] : f16 = sum[c](p{i}[f, c] * {last}[n, c, h])",
                 f"r{i}[n, f, h] : f16 = relu(t{i}[n, f, h] + d{i}[n, f, h])",
                 f"q{i}[n, f] = sigmoid(max[h](r{i}[n, f, h]))",
                 f"s{i}[n, f, h] : f16 = r{i}[n, f, h] * q{i}[n, f]"]
        last, width = f"s{i}", f
        if i % 3 == 2:
            body.append(f"k{i}[n, c:{2 * f}, h] : f16 = select(c < {f}, pad(s{i}[n, c, h], 0), pad(r{i}[n, c - {f}, h], 0))")
            last, width = f"k{i}", 2 * f
    return ["input x[4, 24, 20] : f16", *weights, *body, f"output {last}"]


def concatenations(n):
    """Each layer reads what all before it have made, as in a DenseNet; past 400 channels there are eight again."""
    body, last, width = [], "x", 8
    while len(body) < n - 6:
        i = len(body)
        body += [f"weight w{i}[4, {width}] : f16", f"c{i}[n, f, h] : f16 = sum[c](relu({last}[n, c, h]) * w{i}[f, c])",
                 f"k{i}[n, c:{width + 4}, h] : f16 = select(c < {width}, pad({last}[n, c, h], 0), pad(c{i}[n, c - {width}, h], 0))"]
        last, width = f"k{i}", width + 4
        if width > 400:
            body += [f"weight z{i}[8, {width}] : f16", f"d{i}[n, f, h] : f16 = sum[c]({last}[n, c, h] * z{i}[f, c])"]
            last, width = f"d{i}", 8
    return ["input x[2, 8, 20] : f16", *body, f"output {last}"]


def branches(n):
    """All read the input, and are added."""
    body = []
    for i in range((n - 2) // 3):
        body += [f"weight w{i}[100] : f32", f"a{i}[i] = sum[j](x[i, j] * w{i}[j])", f"s{i}[i] = a{i}[i] + {f's{i - 1}[i]' if i else '0.5'}"]
    return ["input x[64, 100] : f32", *body, f"output s{(n - 2) // 3 - 1}"]


def folded(n):
    """Definitions over weights alone."""
    body, last = [], "x"
    for i in range((n - 2) // 4):
        body += [f"weight w{i}[64, 64] : f32", f"weight g{i}[64] : f32", f"m{i}[i, j] : f16 = w{i}[i, j] * g{i}[i]",
                 f"y{i}[i] = sum[j](m{i}[i, j] * {last}[j])"]
        last = f"y{i}"
    return ["input x[64] : f32", *body, f"output {last}"]


def outputs(n):
    body = [text for i in range((n - 1) // 4) for text in (f"a{i}[i, j] = x[i, j] * {i} + 1", f"output a{i}",
                                                           f"s{i}[i] = sum[j](x[i, j] * {i})", f"output s{i}")]
    return ["input x[64, 100] : f32", *body]


def recurrence(n):
    """An LSTM, unrolled."""
    body = []
    for t in range((n - 6) // 7):
        body += [f"g{t}[b, f] = sum[k](x[{t % 100}, b, k] * w[f, k]) + sum[k](h{t}[b, k] * u[f, k])", f"i{t}_[b, f:64] = sigmoid(g{t}[b, f])",
                 f"o{t}[b, f:64] = sigmoid(g{t}[b, f + 64])", f"z{t}[b, f:64] = tanh(g{t}[b, f + 128])", f"e{t}[b, f:64] = sigmoid(g{t}[b, f + 192])",
                 f"c{t + 1}[b, f] = e{t}[b, f] * c{t}[b, f] + i{t}_[b, f] * z{t}[b, f]", f"h{t + 1}[b, f] : f16 = o{t}[b, f] * tanh(c{t + 1}[b, f])"]
    return ["input x[100, 4, 64] : f16", "weight w[256, 64] : f16", "weight u[256, 64] : f16", "input h0[4, 64] : f16",
            "input c0[4, 64] : f32", *body, f"output h{(n - 6) // 7}"]


def views(n):
    body, last = [], "x"
    for i in range((n - 2) // 4):
        body += [f"view v{i}[4, 16, 100] = {last}", f"t{i}[h, n, d] : f16 = v{i}[n, h, d]", f"view r{i}[64, 100] = t{i}",
                 f"y{i}[i, j] : f16 = r{i}[i, j] / sum[k](r{i}[i, k])"]
        last = f"y{i}"
    return ["input x[64, 100] : f16", *body, f"output {last}"]


KINDS = {make.__name__: make for make in (chain, reductions, network, concatenations, branches, folded, outputs, recurrence, views)}
LONGER = {"chain": LONG, "network": MIDDLE, "recurrence": MIDDLE}   # the others take the same ways


def limit_to(size):
    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS[size], SECONDS[size] + 1))
        resource.setrlimit(resource.RLIMIT_AS, (int(GIGABYTES[size] * 2 ** 30),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limits


def compile_one(rollerc, folder, lines, size):
    """What is wrong, or None, and the seconds of processor time."""
    (folder / "net.te").write_text("\n".join(lines) + "\n")
    assert len(lines) <= size, f"{len(lines)} statements"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([rollerc, "net.te", "--device", "h200", "-q", "-o", "net.cu", "--json", "net.json"], cwd=folder,
                          capture_output=True, text=True, preexec_fn=limit_to(size))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return f"exit {done.returncode} after {took:.1f} s: {done.stderr[:300]}" if done.returncode else None, took


def check_kind(tally, rollerc, folder, kind, longest):
    problem, short = compile_one(rollerc, folder, KINDS[kind](SHORT), SHORT)
    tally.add(f"{kind} of {SHORT} statements, {short:.2f} s", problem)
    if kind not in LONGER or problem:
        return
    size = LONG if longest else LONGER[kind]
    problem, long = compile_one(rollerc, folder, KINDS[kind](size), size)
    most = GROWTH * max(short, LEAST) * size / SHORT
    tally.add(f"{kind} of {size} statements, {long:.2f} s", problem or (f"{long:.1f} s, {short:.2f} s of {SHORT}" if long > most else None))


def many_weights():
    """Four kernels of 350 weights each."""
    lines = ["input x[100] : f32", *(f"weight w{i}[100] : f32" for i in range(ARGUMENTS))]
    for first in range(0, ARGUMENTS, 350):
        lines += [f"y{first}[i] = x[i] + " + " + ".join(f"w{i}[i]" for i in range(first, first + 350)), f"output y{first}"]
    return lines


def check_arguments(tally, rollerc, folder):
    problem, _ = compile_one(rollerc, folder, many_weights(), SHORT)
    tally.add(f"{ARGUMENTS} weights", problem)
    header = subprocess.run([rollerc, "net.te", "--device", "h200", "-q", "-o", "net.cu", "--emit", "header=net.h"], cwd=folder)
    (folder / "use.c").write_text('#include "net.h"\nint main(void) { return (int)net_workspace(); }\n')
    for compiler, flags in (("cc", ["-std=c11", "-pedantic"]), ("c++", ["-x", "c++", "-std=c++11"])):
        done = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", "-c", "use.c", "-o", "use.o"], cwd=folder, capture_output=True, text=True)
        tally.add(f"their header, {compiler}", done.stderr[:300] if header.returncode or done.returncode else None)
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("NOT TESTED: there is no nvcc here, so it compiled no launcher of many arguments")
        return
    done = subprocess.run([nvcc, "-arch=sm_90", "-c", "net.cu", "-o", "net.o"], cwd=folder, capture_output=True, text=True)
    tally.add("their launcher, nvcc", done.stderr[:300] if done.returncode else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    parser.add_argument("--only", choices=[*KINDS, "arguments"])
    parser.add_argument("--longest", action="store_true", help=f"{LONG} statements of all that are compiled longer, not of a chain alone")
    options = parser.parse_args()
    tally = common.Tally(verbose=True)
    with tempfile.TemporaryDirectory() as name:
        for kind in KINDS:
            if options.only in (None, kind):
                check_kind(tally, options.rollerc, pathlib.Path(name), kind, options.longest)
        if options.only in (None, "arguments"):
            check_arguments(tally, options.rollerc, pathlib.Path(name))
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
