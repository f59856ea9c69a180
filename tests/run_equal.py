#!/usr/bin/env python3
"""Equal layers are launches of one kernel, layers that differ in anything have their own, and kernels that differ in their parameters
share a body; what is merged wrongly is found by the proof.

    python3 tests/run_equal.py --rollerc build/rollerc [--only REGEX]

A wrong merge is planted in a copy of the source, which is compiled as the build compiles it and linked before the right one.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common
from run_planted_faults import plant

EQUAL, BODY = "src/codegen/equal.c", "src/codegen/cuda/trim_body.c"
N = 64
LARGE = dict(rows=16384, size=128)   # of the larger products only some blocks are run; short sums, so that these take little


PLAIN = "relu(sum[k]({x}[i, k] * {w}[k, j]) + {r}[i, j])"


def program(*bodies, rows=N, size=N, weights=None):
    """`weights`: of each layer, how wide its rows are."""
    lines = [f"input x[{rows}, {size}] : f32"]
    for l, body in enumerate(bodies):
        lines.append(f"input w{l}[{size}, {weights[l] if weights else size}] : f32  input r{l}[{rows}, {size}] : f32")
        lines.append(f"h{l + 1}[i, j:{size}] : f32 = " + body.format(x=f"h{l}" if l else "x", w=f"w{l}", r=f"r{l}"))
    return "\n".join([*lines, f"output h{len(bodies)}"]) + "\n"


def turned(text, rows=N, size=N):
    """Of the second layer the residual stands before the weights: by its place it is the first input."""
    weights, residual = f"input w1[{size}, {size}] : f32", f"input r1[{rows}, {size}] : f32"
    assert f"{weights}  {residual}" in text
    return text.replace(f"{weights}  {residual}", f"{residual}  {weights}")


BRANCHES = f"""input x[{N}, {N}] : f32
input w[{N}, {N}] : f32
input v[{N}, {N}] : f32
a[i, j] = sum[k](x[i, k] * w[k, j])
b[i, j] = sum[k](x[i, k] * v[k, j])
c[i, j] = sum[k](b[i, k] * w[k, j])
d[i, j] = sum[k](c[i, k] * v[k, j])
output a
output b
output c
output d
"""

# name: (device, program, kernels, launches)
CASES = {
    "two layers": ("a100", program(PLAIN, PLAIN), 1, 2),
    "twelve layers": ("a100", program(*[PLAIN] * 12), 1, 12),
    "inputs in another order": ("a100", turned(program(PLAIN, PLAIN)), 1, 2),
    "inputs in another order, large": ("a100", turned(program(PLAIN, PLAIN, **LARGE), **LARGE), 1, 2),
    "large and different": ("a100", program(PLAIN, PLAIN + " * 2", PLAIN, **LARGE), 2, 3),
    "a constant": ("a100", program(PLAIN, PLAIN + " * 2"), 2, 2),
    "two constants": ("a100", program(PLAIN + " * 3", PLAIN + " * 2"), 2, 2),
    "a function": ("a100", program(PLAIN, PLAIN.replace("relu", "tanh")), 2, 2),
    "a stride": ("a100", program(PLAIN, PLAIN, weights=(N, N + 8)), 2, 2),
    "a type": ("a100", program(PLAIN, PLAIN).replace("input r1[64, 64] : f32", "input r1[64, 64] : f16"), 2, 2),
    # The second one has nothing to do with the first: it waits for it at its end only, while the third waits as the first does.
    # The last one has no launch behind it to let begin.
    "a wait": ("h100", BRANCHES, 3, 4),
    "no waits": ("a100", BRANCHES, 1, 4),
}


def products(rows, *extents, residuals=()):
    """Layers of f16, of which some add a residual."""
    lines = [f"input x[{rows}, {extents[0]}] : f16"]
    for l, (inner, outer) in enumerate(zip(extents, extents[1:])):
        adds = l in residuals
        lines.append(f"input w{l}[{inner}, {outer}] : f16" + (f"  input r{l}[{rows}, {outer}] : f16" if adds else ""))
        lines.append(f"h{l}[i, j] : f16 = relu(sum[k]({f'h{l - 1}' if l else 'x'}[i, k] * w{l}[k, j]){f' + r{l}[i, j]' if adds else ''})")
    return "\n".join([*lines, f"output h{len(extents) - 2}"]) + "\n"


SUMS = """input x[64, 4096] : f32
input z[32, 8192] : f32
a[i] = sum[j](x[i, j])
b[i] = sum[j](z[i, j])
output a
output b
"""

# name: (device, program, kernels that share a body, bodies that are shared)
BODIES = {
    "products": ("a100", products(256, 256, 256, 384), 2, 1),
    "products by bulk copies": ("h200", products(512, 512, 768, 1024, 768), 3, 1),
    "products of two bodies": ("h200", products(512, 1024, 512, 768, 1024, 768, 1024, residuals=(2, 3)), 4, 2),
    "products on lanes": ("h200", products(4096, 512, 512, 1024, 512).replace("f16", "f32"), 3, 1),
    "sums": ("a100", SUMS, 2, 1),
    "one kernel": ("a100", products(256, 256, 256), 0, 0),
}

# Where, what stands there, what stands there now, and the case whose proof finds it.
FAULTS = {
    "numbers are not compared": (
        EQUAL,
        'if (!slice_starts(rest, "//"))', "if (!slice_starts(rest, \"//\") && (*rest.start < '0' || *rest.start > '9'))", "two constants"),
    "inputs stay in their own order": (EQUAL, "        args[leader[i]] = launch->args[own[i]];", "        args[i] = launch->args[i], (void)leader;",
                                       "inputs in another order"),
    "inputs stay in their own order, on some blocks": (EQUAL, "        args[leader[i]] = launch->args[own[i]];",
                                                       "        args[i] = launch->args[i], (void)leader;", "inputs in another order, large"),
    "a body is taken for another": (BODY, "strcmp(a->body, b->body) == 0", "strlen(b->body) > 0", "products of two bodies"),
}


def make(rollerc, folder, name, device, text, *options):
    path = folder / (re.sub(r"\W", "_", name) + ".te")
    path.write_text(text)
    done = subprocess.run([rollerc, path, "--device", device, "-o", path.with_suffix(".cu"), *options], capture_output=True, text=True)
    return done.returncode, done.stderr.strip(), path.with_suffix(".cu")


def check_case(rollerc, folder, name):
    device, text, kernels, launches = CASES[name]
    code, said, path = make(rollerc, folder, name, device, text, "--verify")
    if code:
        return f"exit {code}: {said[:400]}"
    if "large" in name and kernels > 1 and f"proven {kernels} of {kernels} kernels" not in said:
        return f"nothing says how many kernels are proven: {said[:400]}"
    made = [launch["kernel"] for launch in common.read_metadata(path)["launches"]]
    if (len(set(made)), len(made)) != (kernels, launches):
        return f"{len(set(made))} kernels for {len(made)} launches, not {kernels} for {launches}"
    entries = re.findall(r'extern "C" __global__ .*?(\w+)\(const', path.read_text())
    return None if sorted(entries) == sorted(set(made)) else f"the file has the kernels {entries}, its first line {made}"


def check_bodies(rollerc, folder, name):
    device, text, kernels, bodies = BODIES[name]
    code, said, path = make(rollerc, folder, name, device, text, "--verify")
    if code:
        return f"exit {code}: {said[:400]}"
    emitted = path.read_text()
    if listed := re.search(r"using (typename )?P::\w+,.*", emitted):
        return f"C++14 has no list of names: {listed[0]}"
    sharing, shared = emitted.count("SharedBody<Parameters>;"), emitted.count("struct SharedBody :")
    return None if (sharing, shared) == (kernels, bodies) else f"{sharing} kernels share {shared} bodies, not {kernels} {bodies}"


def check_fault(rollerc, folder, name):
    source, old, new, case = FAULTS[name]
    folder = folder / re.sub(r"\W", "_", name)
    folder.mkdir()
    faulty = str(plant(pathlib.Path(rollerc).parent, folder, source, old, new, "rollerc"))
    device, text, _, _ = {**CASES, **BODIES}[case]
    code, said, _ = make(faulty, folder, case, device, text, "--verify")
    return None if code == 5 else f"exit {code}, not 5: {said[:400]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--only", default="", help="cases and faults whose name matches")
    args = parser.parse_args()
    rollerc = os.path.abspath(args.rollerc)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        checks = {**dict.fromkeys(CASES, check_case), **dict.fromkeys(BODIES, check_bodies), **dict.fromkeys(FAULTS, check_fault)}
        names = [(name,) for name in checks if re.search(args.only, name)]
        return common.check_all(names, lambda case: checks[case[0]](rollerc, folder, case[0]), 1)


if __name__ == "__main__":
    sys.exit(main())
