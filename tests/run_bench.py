#!/usr/bin/env python3
"""run_bench.py --rollerc BINARY [--all]: does bench/ hold together, without a GPU?

Every case of bench/cases.json and bench/attention.py compiles for the H200 at its own size; one program of each entry, of those at its
small sizes and types, is proven on the CPU (--all: all of them); README's table, the full table and the plots are
what bench/report.py makes of the committed results. Programs of bench/draw.py and bench/operators.py compile for the H100.
"""
import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import types

import common

BENCH = os.path.join(os.path.dirname(common.TESTS), "bench")
sys.path.insert(0, BENCH)
import attention                             # noqa: E402
import cases                                 # noqa: E402
import draw                                  # noqa: E402
import model                                 # noqa: E402
import model_layers                          # noqa: E402
import operators                             # noqa: E402
import rejudge                               # noqa: E402
import report                                # noqa: E402


def compile_case(rollerc, case, *options):
    """None, or the reason."""
    defines = [word for define in case.defines for word in ("-D", define)]
    command = [rollerc, "-", "--device", "h200", "--name", "k", "-q", "-o", "-", *case.options, *options, *defines]
    done = subprocess.run(command, input=case.text, capture_output=True, text=True)
    return None if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[:300]}"


def one_of_each(small):
    """One small case of each entry: another size and type for each, so that together they cover both."""
    entries = {}
    for case in small:
        entries.setdefault(id(case.entry), []).append(case)
    return [members[index % len(members)] for index, members in enumerate(entries.values())]


def check_names():
    """No result is about a case that the list no longer has."""
    known = {case.name for case in cases.load()}
    results = report.read_json()["cases"]
    strange = [row["case"] for row in results if row["case"] not in known]
    return f"results of unknown cases: {strange[:5]}" if strange else None


def check_report():
    stale = report.stale() + model.stale()
    return f"not what `bench/report.py write` and `bench/model.py write` make: {' '.join(stale)}" if stale else None


def compile_text(rollerc, row):
    done = subprocess.run([rollerc, "-", "--device", "h100", "--name", "k", "-q", "-o", "-"], input=row["text"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{row['set']} {row['name']}: exit {done.returncode}: {done.stderr.strip()[:200]}"


def check_drawn(rollerc):
    """Programs of every kind are drawn, the same ones again, and rollerc takes them; so it does Roller's operators."""
    drawn = draw.draw(seed=2, count=2 * sum(draw.KINDS.values()))
    if drawn != draw.draw(seed=2, count=len(drawn)) or drawn == draw.draw(seed=4, count=len(drawn)):
        return "a seed does not draw programs of its own"
    if {row["kind"] for row in drawn} != {kind.__name__ for kind in draw.KINDS}:
        return "not every kind is drawn"
    listed = operators.load()
    if len(listed) != 119:
        return f"{len(listed)} operators"
    return next(filter(None, (compile_text(rollerc, row) for row in drawn + listed)), None)


TIMED = [["a", 9.0, 8.0, "gemm x 32 {} + reduce row 64 {}"], ["b", 5.0, 4.0, "gemm y 32 {}"], ["c", 7.0, 4.0, "gemm z 32 {}"]]
TODAY = [("d", 3.0, ["gemm x 32 {}", "reduce column 128 {}"], [2.0, 1.0]), ("b", 6.0, ["gemm y 32 {}"], [6.0]), ("e", 2.0, ["gemm v 32 {}"], [2.0])]


def check_rejudged(rollerc):
    """A timed candidate is today's by its id, or by its longest launch; what is made no more does not count. Rankings leave no file."""
    seen = rejudge.judged({"timed": TIMED}, TODAY)
    if seen != {"candidates": [[3.0, 9.0], [6.0, 5.0]], "first_timed": False}:
        return f"rejudged: {seen}"
    rollerc = os.path.abspath(rollerc)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rejudge.ranked(rollerc, THREE_LAYERS, "h100")
        if os.listdir():
            return f"rejudged: a ranking leaves {os.listdir()}"
    known = rejudge.texts()
    strange = [entry["name"] for device in model.unseen_devices() for entry in model.read_unseen_json(device)["programs"]
               if (entry["set"], entry["name"]) not in known]
    return f"timed programs that are not drawn: {strange[:3]}" if strange else None


THREE_LAYERS = """input x[512, 512] : f16  input w[512, 512] : f16
a[i, j] : f16 = sum[k](x[i, k] * w[k, j])
b[i, j] : f16 = sum[k](a[i, k] * w[k, j])
y[i, j] = max[r](b[i, r]) - b[i, j]
output y
"""


def check_layers(rollerc):
    """Launches that are alike are one kind, and each kernel stands alone in its text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layers.te")
        with open(path, "w") as file:
            file.write(THREE_LAYERS)
        options = types.SimpleNamespace(rollerc=rollerc, device="h100", option=[])
        text, metadata, told = model_layers.read_program(model_layers.emit(path, options, folder))
    kernels = {launch["kernel"] for launch in metadata["launches"]}
    kinds = model_layers.kinds_of(metadata, told)
    if sorted(place for kind in kinds for place in kind.places) != list(range(len(metadata["launches"]))):
        return f"not each launch is of one kind: {kinds}"
    if [0, 1] not in [kind.places for kind in kinds]:
        return f"the two products are of different kinds: {[kind.places for kind in kinds]}"
    alone = [model_layers.alone(text, kind.kernel, kernels).count("__global__") for kind in kinds]
    return None if set(alone) == {1} else f"kernels in the texts of one each: {alone}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    args = parser.parse_args()
    small = cases.load(small=True)
    small = [case for case in (small if args.all else one_of_each(small)) if re.search(args.only, case.name)]

    tally = common.Tally()
    full = cases.load(args.only) + [case for case in attention.listed() if re.search(args.only, case.name)]
    for case, reason in zip(full, common.in_parallel(common.JOBS, lambda case: compile_case(args.rollerc, case), full)):
        tally.add(case.name, reason)
    proofs = common.in_parallel(common.JOBS, lambda case: compile_case(args.rollerc, case, "--verify"), small)
    for case, reason in zip(small, proofs):
        tally.add(f"{case.name} on the CPU", reason)
    tally.add("names of results", check_names())
    tally.add("README's table and the plots", check_report())
    tally.add("launches of a model", check_layers(args.rollerc))
    tally.add("programs that are drawn", check_drawn(args.rollerc))
    tally.add("candidates that were timed before", check_rejudged(args.rollerc))
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
