#!/usr/bin/env python3
"""Chains of launches: the time of a proof grows with their number, and a bug in the second or the last is found as in the first."""
import argparse
import os
import pathlib
import resource
import shutil
import sys
import tempfile

import common

TEMPLATES = pathlib.Path(__file__).resolve().parent.parent / "templates"
LAYERS = 8
SLACK = 3   # times the time of one layer, for each
WIDE = 512
ODD = {2: 264, LAYERS: 272}   # the widths of the layers in which a bug is, in turn


def products(widths):
    rows = 1024
    yield f"input x[{rows}, {widths[0]}] : f16"
    for l, (K, N) in enumerate(zip(widths, widths[1:])):
        yield f"input w{l}[{K}, {N}] : f16  h{l + 1}[i, j] : f16 = sum[k]({f'h{l}' if l else 'x'}[i, k] * w{l}[k, j])"


def residuals(widths):
    """… with a bias, an activation and what came two layers before, where it is as wide."""
    lines = list(products(widths))
    yield lines[0]
    for l, line in enumerate(lines[1:]):
        beside = f" + h{l - 1}[i, j]" if l > 1 and widths[l - 1] == widths[l + 1] else ""
        yield line.replace(f"h{l + 1}[i, j] : f16 =", f"s{l}[i, j] =") + f"  input c{l}[{widths[l + 1]}] : f32"
        yield f"h{l + 1}[i, j] : f16 = relu(s{l}[i, j] + c{l}[j]){beside}"


def softmaxes(widths):
    """… with a softmax of each row behind each."""
    lines = list(products(widths))
    yield lines[0]
    for l, line in enumerate(lines[1:]):
        yield line.replace(f"h{l + 1}[", f"t{l}[")
        yield f"m{l}[i] = max[j](t{l}[i, j])  e{l}[i, j] = exp(t{l}[i, j] - m{l}[i])  s{l}[i] = sum[j](e{l}[i, j])"
        yield f"h{l + 1}[i, j] : f16 = e{l}[i, j] / s{l}[i]"


def norms(widths):
    """… with a layer norm."""
    lines = list(products(widths))
    yield lines[0]
    for l, line in enumerate(lines[1:]):
        yield line.replace(f"h{l + 1}[", f"t{l}[")
        yield f"m{l}[i] = sum[j](t{l}[i, j]) / {widths[l + 1]}  d{l}[i, j] = t{l}[i, j] - m{l}[i]"
        yield f"v{l}[i] = sum[j](sq(d{l}[i, j])) / {widths[l + 1]}  h{l + 1}[i, j] : f16 = d{l}[i, j] * rsqrt(v{l}[i] + 1e-5)"


def convolutions(widths):
    """3x3, channels last, with a batch norm and a ReLU behind each."""
    N, H = 4, 14
    widths = [width // 4 for width in widths]
    yield f"input x[{N}, {H}, {H}, {widths[0]}] : f16"
    for l, (C, F) in enumerate(zip(widths, widths[1:])):
        x = f"h{l}" if l else "x"
        yield f"input w{l}[3, 3, {C}, {F}] : f16  input g{l}[{F}] : f32"
        yield f"t{l}[n, h:{H}, v:{H}, f] : f16 = sum[r, s, c](pad({x}[n, h + r - 1, v + s - 1, c], 0) * w{l}[r, s, c, f])"
        yield f"m{l}[f] = sum[n, h, v](t{l}[n, h, v, f]) / {N * H * H}  d{l}[n, h, v, f] = t{l}[n, h, v, f] - m{l}[f]"
        yield f"v{l}[f] = sum[n, h, v](sq(d{l}[n, h, v, f])) / {N * H * H}"
        yield f"h{l + 1}[n, h, v, f] : f16 = relu(d{l}[n, h, v, f] * rsqrt(v{l}[f] + 1e-5) * g{l}[f])"


def concatenations(widths):
    """Two products a layer, of all that the layers before have made, whose results lie side by side."""
    rows, growth = 1024, 64
    yield f"input x[{rows}, {WIDE}] : f16  input w[{WIDE}, {growth}] : f16  h0[i, j] : f16 = sum[k](x[i, k] * w[k, j])"
    for l, width in enumerate(widths[1:]):
        given = growth * (l + 1)
        yield f"input w{l}[{given}, {width}] : f16  input u{l}[{width}, {growth}] : f16"
        yield f"s{l}[i, j] : f16 = relu(sum[k](h{l}[i, k] * w{l}[k, j]))  t{l}[i, j] : f16 = sum[k](s{l}[i, k] * u{l}[k, j])"
        yield f"h{l + 1}[i, j:{given + growth}] : f16 = select(j < {given}, pad(h{l}[i, j], 0), pad(t{l}[i, j - {given}], 0))"


KINDS = (products, residuals, softmaxes, norms, convolutions, concatenations)
# What stands in the template, and in its place: one step of a product is left out, of rows all that is behind the first vectors.
BUG = ("gemm.cu", "constexpr Index STEPS = (K + BK - 1) / BK;", "constexpr Index STEPS = (K + BK - 1) / BK - (N == {width} ? 1 : 0);")


def write(folder, kind, name, widths):
    path = folder / f"{kind.__name__}_{name}.te"
    path.write_text("\n".join(kind(widths)) + f"\noutput h{len(widths) - 1}\n")
    return str(path)


def command(rollerc, path, *options):
    return [rollerc, "-q", path, "--device", "a100", "--verify", "-o", path[:-3] + ".cu", *options]


def time_grows_evenly(rollerc, folder, kind):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wrong = common.run(command(rollerc, write(folder, kind, "one", [WIDE] * 2)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    each = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wrong or common.run_within(SLACK * LAYERS * each, command(rollerc, write(folder, kind, "all", [WIDE] * (LAYERS + 1))))


def bug_is_found(rollerc, folder, kind, layer):
    name, old, new = BUG
    widths = [ODD.get(l, 256) for l in range(LAYERS + 1)]
    path = write(folder, kind, f"bug{layer}", widths)
    width = ODD[layer] // (4 if kind is convolutions else 1)
    templates = folder / f"templates_{kind.__name__}_{layer}"
    shutil.copytree(TEMPLATES, templates)
    text = (templates / name).read_text()
    assert text.count(old) == 1, f"{name} no longer holds '{old}'"
    (templates / name).write_text(text.replace(old, new.format(width=width)))
    wrong = common.run(command(rollerc, path)) if layer == min(ODD) else None   # it is right, with both widths
    wrong = wrong or common.run(command(rollerc, path, "--templates", str(templates)))
    if wrong and wrong.startswith("exit 5"):
        return None
    return f"a bug in layer {layer}: " + (wrong or "the kernel is written")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--only", help="a kind of chain")
    args = parser.parse_args()
    rollerc = os.path.abspath(args.rollerc)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        kinds = [kind for kind in KINDS if args.only in (None, kind.__name__)]
        cases = [(kind.__name__, layer) for kind in kinds for layer in (0, *ODD)]   # 0: the time

        def check(case):
            kind, layer = globals()[case[0]], case[1]
            return bug_is_found(rollerc, folder, kind, layer) if layer else time_grows_evenly(rollerc, folder, kind)
        return common.check_all(cases, check, 1)


if __name__ == "__main__":
    sys.exit(main())
