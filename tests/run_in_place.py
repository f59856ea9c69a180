#!/usr/bin/env python3
"""A residual is added in place: which sums take the bytes of what they are made of, and which have their own.

    python3 tests/run_in_place.py --rollerc build/rollerc [--only NAME]

All programs are proven. A template whose threads read ahead what others store is right where sums have a place of their own, and
found where they are made in place.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common
from run_planted_faults import plant

ROOT = pathlib.Path(__file__).resolve().parent.parent


# x1 = x a, then residuals. Of these sizes products are kernels of their own, without parts.
def program(rows, columns, body, io="f16"):
    weights = "".join(f"input {name}[{columns}, {columns}] : f16\n" for name in "abc")
    return f"input x[{rows}, {columns}] : f16\n{weights}x1[i, j] : {io} = sum[k](x[i, k] * a[k, j])\n{body}"


LAYER = "h{0}[i, j] : f16 = relu(sum[k](x{0}[i, k] * b[k, j]))\nx{1}[i, j] : f16 = x{0}[i, j] + sum[k](h{0}[i, k] * c[k, j])\n"
LAST = "y[i, j] : f16 = sum[k](x{0}[i, k] * a[k, j])\noutput y\n"
TWO = LAYER.format(1, 2) + LAYER.format(2, 3) + LAST.format(3)
SQUARE = "y[i, j] : f16 = sum[k](x2[i, k] * a[k, j])\noutput y\n"

# name -> (program, sums in place)
CASES = {
    "two layers": (program(1160, 256, TWO), 2),
    "two layers of f32 on lanes": (program(4096, 512, TWO).replace("f16", "f32"), 2),
    "rows are no whole vectors": (program(1160, 97, LAYER.format(1, 2) + LAST.format(2)), 1),
    "rows end within a vector": ("input x[1040, 64] : f16\ninput a[573, 64] : f16\ninput b[573, 64] : f16\n"
                                 "x1[i, j] : f16 = sum[k](x[i, k] * a[j, k])\ns[i, j] : f16 = sum[k](x[i, k] * b[j, k])\n"
                                 "x2[i, j] : f16 = x1[i, j] + s[i, j]\nm[i] = max[l](x2[i, l])\ny[i, j] : f16 = x2[i, j] - m[i]\noutput y\n", 1),
    "it is read later": (program(1160, 256, LAYER.format(1, 2) + "y[i, j] : f16 = sum[k](x2[i, k] * a[k, j]) + x1[i, j]\noutput y\n"), 0),
    "a branch reads it": (program(1160, 256, LAYER.format(1, 2) + LAST.format(2) + "z[i, j] : f16 = relu(sum[k](x1[i, k] * c[k, j]))\noutput z\n"), 0),
    "it is a factor": (program(512, 512, "x2[i, j] : f16 = x1[i, j] + sum[k](x1[i, k] * b[k, j])\n" + SQUARE), 0),
    "it is read across": (program(512, 512, "x2[i, j] : f16 = x1[j, i] + sum[k](x[i, k] * b[k, j])\n" + SQUARE), 0),
    "as much is alive elsewhere": ("input x[1160, 256] : f16  input a[256, 256] : f16  input b[256, 1024] : f16  input c[1024, 256] : f16\n"
                                   "x1[i, j] : f16 = sum[k](x[i, k] * a[k, j])\nn[i, j] : f16 = sum[k](x1[i, k] * a[k, j])\n" +
                                   LAYER.format(1, 2).replace("x1[i, k]", "n[i, k]") + LAST.format(2), 0),
    "it has another type": (program(1160, 256, LAYER.format(1, 2) + LAST.format(2), "f32"), 0),
    "it is an input": ("input x1[1160, 256] : f16\n" + "".join(f"input {n}[256, 256] : f16\n" for n in "abc") + LAYER.format(1, 2) + LAST.format(2), 0),
    "the sum is an output": (program(1160, 256, LAYER.format(1, 2) + LAST.format(2) + "output x2\n"), 0),
}

# In bulk.cu, of what the epilogue asks for: the row behind it, too.
READ = "                read_beside(t, corner.batch, m, n, rows[slab % OF_ROWS][i]);"
LIE = READ.replace(", m,", ", m + 1 < M ? m + 1 : m,")
# name -> (case, found)
LIES = {
    "a liar that has a place of its own": ("the sum is an output", False),
    "a liar in place": ("two layers", True),
}
# In a copy of the source, which is linked before the right one: name -> (case, source, what stands there, what stands there now). Who
# lays memory out wrongly is found when launches are checked; what a thread reads that another one writes, by the interpreter.
FAULTS = {
    "places are not compared": ("it is read across", "src/codegen/in_place.c", "!affine_equal(&offset, search->place)", "!affine_equal(&offset, &offset)"),
    "later readers are not asked": ("it is read later", "src/codegen/workspace.c", "dies = tenants->readers[tensor][i] == launch ||", "dies = i >= 0 ||"),
    "branches are not asked": ("a branch reads it", "src/codegen/workspace.c", "dies = tenants->readers[tensor][i] == launch ||", "dies = i >= 0 ||"),
}


def make(rollerc, folder, text, *options):
    source, made = folder / "case.te", folder / "case.cu"
    source.write_text(text)
    done = subprocess.run([rollerc, source, "--device", "h200", "--verify", "-q", *options, "-o", made], capture_output=True, text=True)
    return done.returncode, done.stderr, made


def check_case(rollerc, folder, name):
    text, wanted = CASES[name]
    code, said, made = make(rollerc, folder, text)
    if code:
        return f"exit {code}: {said[:400]}"
    launches = common.read_metadata(made)["launches"]
    sums = [launch["kernel"] for launch in launches if len({str(argument) for argument in launch["args"]}) < len(launch["args"])]
    if len(sums) != wanted:
        return f"{len(sums)} sums in place, not {wanted}"
    if name == "two layers" and len(set(sums)) != 1:
        return f"equal layers are launches of several kernels: {sums}"
    for kernel in {launch["kernel"] for launch in launches}:
        (signature,) = re.findall(rf"{kernel}\((const [^)]*)\)", made.read_text())
        bare = len(re.findall(r"\*(?!__restrict__)\w", signature))
        if bare != (2 if kernel in sums else 0):
            return f"{kernel} has {bare} pointers without __restrict__: {signature}"
    return None


def check_lie(rollerc, folder, name):
    case, found = LIES[name]
    templates = folder / "templates"
    shutil.copytree(ROOT / "templates", templates, dirs_exist_ok=True)
    text = (ROOT / "templates/bulk.cu").read_text()
    if text.count(READ) != 1:
        return "bulk.cu reads elsewhere what is beside sums: say here where"
    (templates / "bulk.cu").write_text(text.replace(READ, f"            {{\n{LIE}\n{READ}\n            }}"))
    code, said, _ = make(rollerc, folder, CASES[case][0], "--templates", templates)
    if not found:
        return f"exit {code}: {said[:400]}" if code else None
    return None if code == 5 and "another" in said else f"exit {code}, not 5: {said[:400]}"


def check_fault(rollerc, folder, name):
    case, source, old, new = FAULTS[name]
    faulty = plant(pathlib.Path(rollerc).parent, folder, source, old, new, "rollerc")
    code, said, _ = make(faulty, folder, CASES[case][0])
    return None if code != 0 else f"it is not found: {said[:400]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--only", default="", help="cases whose name matches")
    args = parser.parse_args()
    rollerc = os.path.abspath(args.rollerc)
    checks = {**dict.fromkeys(CASES, check_case), **dict.fromkeys(LIES, check_lie), **dict.fromkeys(FAULTS, check_fault)}

    def check(name):
        with tempfile.TemporaryDirectory() as folder:
            return checks[name](rollerc, pathlib.Path(folder), name)

    return common.check_all([(name,) for name in checks if re.search(args.only, name)], lambda case: check(case[0]), 1)


if __name__ == "__main__":
    sys.exit(main())
