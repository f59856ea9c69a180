#!/usr/bin/env python3
"""run_bench.py --rollerc BINARY [--all]: does bench/ hold together, without a GPU?

Every case of bench/cases.json compiles for the H200 at its own size; one program of each entry, of those at its
small sizes and types, is proven on the CPU (--all: all of them); README's table, the full table and the plots are
what bench/report.py makes of the committed results.
"""
import argparse
import os
import re
import subprocess
import sys

import common

BENCH = os.path.join(os.path.dirname(common.TESTS), "bench")
sys.path.insert(0, BENCH)
import cases                                 # noqa: E402
import model                                 # noqa: E402
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    args = parser.parse_args()
    small = cases.load(small=True)
    small = [case for case in (small if args.all else one_of_each(small)) if re.search(args.only, case.name)]

    tally, jobs = common.Tally(), os.cpu_count() or 1
    full = cases.load(args.only)
    for case, reason in zip(full, common.in_parallel(jobs, lambda case: compile_case(args.rollerc, case), full)):
        tally.add(case.name, reason)
    proofs = common.in_parallel(jobs, lambda case: compile_case(args.rollerc, case, "--verify"), small)
    for case, reason in zip(small, proofs):
        tally.add(f"{case.name} on the CPU", reason)
    tally.add("names of results", check_names())
    tally.add("README's table and the plots", check_report())
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
