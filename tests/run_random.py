#!/usr/bin/env python3
"""Random programs through the whole compiler and the CPU interpreter, against the reference (tests/differential/).

    python3 tests/run_random.py --rollerc build/rollerc --count 100000 --seed 7

The seed is printed; a failure is printed with the command that repeats it.
"""
import argparse
import os
import subprocess
import sys
import time

import common

BATCH = 50      # programs of one translation unit, as random_programs has it
PROCESS = 500   # programs of one process: each batch, and each program of a batch that fails, takes one of its 32 folders


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="random_programs lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "random_programs")
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    share = min(-(-args.count // (args.jobs * BATCH)) * BATCH, PROCESS)
    parts = [(first, min(share, args.count - first)) for first in range(0, args.count, share)]

    def prove(part):
        command = [binary, "--seed", str(args.seed), "--first", str(part[0]), "--count", str(part[1])]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    failed = False
    for done in common.in_parallel(args.jobs, prove, parts):
        print(done.stdout, end="")
        if done.returncode not in (0, 1):
            print(f"random_programs ends with {done.returncode}")
        failed |= done.returncode != 0
    print(f"{args.count} programs in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
