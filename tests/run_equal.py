#!/usr/bin/env python3
"""Equal layers are launches of one kernel, and layers that differ in anything have their own; what is merged wrongly is found by the proof.

    python3 tests/run_equal.py --rollerc build/rollerc [--only REGEX]

A wrong merge is planted in a copy of src/codegen/equal.c, which is compiled as the build compiles it and linked before the right one.
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

SOURCE = "src/codegen/equal.c"
N, LARGE = 64, 1024   # of the larger products only some blocks are run


PLAIN = "relu(sum[k]({x}[i, k] * {w}[k, j]) + {r}[i, j])"


def program(*bodies, size=N, weights=None):
    """`weights`: of each layer, how wide its rows are."""
    lines = [f"input x[{size}, {size}] : f32"]
    for l, body in enumerate(bodies):
        lines.append(f"input w{l}[{size}, {weights[l] if weights else size}] : f32  input r{l}[{size}, {size}] : f32")
        lines.append(f"h{l + 1}[i, j:{size}] : f32 = " + body.format(x=f"h{l}" if l else "x", w=f"w{l}", r=f"r{l}"))
    return "\n".join([*lines, f"output h{len(bodies)}"]) + "\n"


def turned(text, size):
    """Of the second layer the residual stands before the weights: by its place it is the first input."""
    weights, residual = f"input w1[{size}, {size}] : f32", f"input r1[{size}, {size}] : f32"
    assert f"{weights}  {residual}" in text
    return text.replace(f"{weights}  {residual}", f"{residual}  {weights}")


BRANCHES = f"""input x[{N}, {N}] : f32
input w[{N}, {N}] : f32
input v[{N}, {N}] : f32
a[i, j] = sum[k](x[i, k] * w[k, j])
b[i, j] = sum[k](x[i, k] * v[k, j])
c[i, j] = sum[k](b[i, k] * w[k, j])
output a
output b
output c
"""

# name: (device, program, kernels, launches)
CASES = {
    "two layers": ("a100", program(PLAIN, PLAIN), 1, 2),
    "twelve layers": ("a100", program(*[PLAIN] * 12), 1, 12),
    "inputs in another order": ("a100", turned(program(PLAIN, PLAIN), N), 1, 2),
    "inputs in another order, large": ("a100", turned(program(PLAIN, PLAIN, size=LARGE), LARGE), 1, 2),
    "large and different": ("a100", program(PLAIN, PLAIN + " * 2", PLAIN, size=LARGE), 2, 3),
    "a constant": ("a100", program(PLAIN, PLAIN + " * 2"), 2, 2),
    "two constants": ("a100", program(PLAIN + " * 3", PLAIN + " * 2"), 2, 2),
    "a function": ("a100", program(PLAIN, PLAIN.replace("relu", "tanh")), 2, 2),
    "a stride": ("a100", program(PLAIN, PLAIN, weights=(N, N + 8)), 2, 2),
    "a type": ("a100", program(PLAIN, PLAIN).replace("input r1[64, 64] : f32", "input r1[64, 64] : f16"), 2, 2),
    # The second one has nothing to do with the first: it waits for it at its end only.
    "a wait": ("h100", BRANCHES, 3, 3),
    "no waits": ("a100", BRANCHES, 1, 3),
}

# What stands in equal.c, what stands there now, and the case whose proof finds it.
FAULTS = {
    "numbers are not compared": (
        'if (!slice_starts(rest, "//"))', "if (!slice_starts(rest, \"//\") && (*rest.start < '0' || *rest.start > '9'))", "two constants"),
    "inputs stay in their own order": ("        args[leader[i]] = launch->args[own[i]];", "        args[i] = launch->args[i], (void)leader;",
                                       "inputs in another order"),
    "inputs stay in their own order, on some blocks": ("        args[leader[i]] = launch->args[own[i]];",
                                                       "        args[i] = launch->args[i], (void)leader;", "inputs in another order, large"),
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


def check_fault(rollerc, folder, name):
    old, new, case = FAULTS[name]
    folder = folder / re.sub(r"\W", "_", name)
    folder.mkdir()
    faulty = str(plant(pathlib.Path(rollerc).parent, folder, SOURCE, old, new, "rollerc"))
    device, text, _, _ = CASES[case]
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
        names = [(name,) for name in [*CASES, *FAULTS] if re.search(args.only, name)]
        return common.check_all(names, lambda case: (check_case if case[0] in CASES else check_fault)(rollerc, folder, case[0]), 1)


if __name__ == "__main__":
    sys.exit(main())
