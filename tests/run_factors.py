#!/usr/bin/env python3
"""Random sums with factors, quotients and powers over the whole range of their types (tests/differential/factor_programs.c).

    python3 tests/run_factors.py --rollerc build/rollerc --count 100000 --seed 7

What fusion makes of each must be what the reference allows, and in range where the text's own order is. A failure is printed
with the command that repeats it.
"""
import argparse
import os
import subprocess
import sys
import time

import common

PROCESS = 500    # programs of one process
ENOUGH = 2000    # programs, of which
SHARES = {"waiting": ("programs", 0.2), "legal": ("elements", 0.8), "in_range": ("elements", 0.2)}   # … are at least that many


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="factor_programs lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "factor_programs")
    started = time.monotonic()

    def prove(first):
        command = [binary, "--seed", str(args.seed), "--first", str(first),
                   "--count", str(min(PROCESS, args.count - first))]
        return command, subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       errors="replace")

    failed, total = False, {}
    for command, done in common.in_parallel(args.jobs, prove, range(0, args.count, PROCESS)):
        if done.returncode != 0:
            failed = True
            print(done.stdout, end="")
        if done.returncode not in (0, 1):
            print(f"FAIL  ends with {done.returncode}: {' '.join(command)}")
            continue
        for word in done.stdout.rstrip().rsplit("\n", 1)[-1].split():
            name, _, number = word.partition("=")
            if number.isdigit():
                total[name] = total.get(name, 0) + int(number)
    gaps = [f"only {total.get(part, 0)} of {total.get(whole, 0)} {whole} are {part}"
            for part, (whole, share) in SHARES.items()
            if args.count >= ENOUGH and total.get(part, 0) < share * max(total.get(whole, 0), 1)]
    for gap in gaps:
        print(f"FAIL  {gap}")
    print(" ".join(f"{name}={number}" for name, number in total.items()), f"in {time.monotonic() - started:.0f} s")
    return 1 if failed or gaps else 0


if __name__ == "__main__":
    sys.exit(main())
