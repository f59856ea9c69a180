#!/usr/bin/env python3
"""Mutants of programs and device files through the whole compiler, built with sanitizers (tests/mutation/).

    python3 tests/run_input_mutants.py --rollerc build/rollerc --count 100000 --seed 7

Only exit codes 0 and 1 may come: every legal program has a kernel on every device whose file is accepted. A failure is printed with the command that repeats it; --print shows the mutants only.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

import common

ROOT = os.path.dirname(common.TESTS)
SEEDS = ["examples/*.te", "tests/regressions/*.te", "tests/limits/*.te", "tests/golden/**/*.te", "devices/*.yaml"]
PROCESS = 2500         # mutants of one process
COMPILED = 1 / 3       # of all mutants at least, or the emitters were hardly tried
SUMMARY = re.compile(r"^(\d+) compiled, (\d+) rejected,", re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="input_mutants lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--print", action="store_true")
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "input_mutants")
    seeds = [path for pattern in SEEDS for path in sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))]
    if not args.print:
        print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    end = args.first + args.count
    parts = [(first, min(PROCESS, end - first)) for first in range(args.first, end, PROCESS)]

    def compile_part(part):
        command = [binary, "--seed", str(args.seed), "--first", str(part[0]), "--count", str(part[1]),
                   *(["--print"] if args.print else []), *seeds]
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")

    failed, totals = False, [0, 0]
    for done in common.in_parallel(args.jobs, compile_part, parts):
        summary = SUMMARY.search(done.stdout)
        if done.returncode != 0 or not summary:
            print(done.stdout, end="", flush=True)
        failed |= done.returncode != 0
        totals = [total + int(n) for total, n in zip(totals, summary.groups() if summary else totals)]
    if args.print:
        return 1 if failed else 0
    print(f"{args.count} mutants in {time.monotonic() - started:.0f} s: {totals[0]} compiled, {totals[1]} rejected")
    if args.count >= 1000 and totals[0] < COMPILED * args.count:
        print(f"FAIL  fewer than {COMPILED:.0%} were compiled")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
