#!/usr/bin/env python3
"""Random programs through the whole compiler and the CPU interpreter, against the reference (tests/differential/).

    python3 tests/run_random.py --rollerc build/rollerc --count 100000 --seed 7 --jobs 16
    python3 tests/run_random.py --rollerc build/rollerc --count 100000 --seed 7 --first 40000     # goes on there

A failure is printed with the command that repeats it. At the end stands how often each family's kinds of kernel were proven;
of GATE programs or more, each must have been at least LEAST times. For a program of which less than half can be judged another stands in.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import time

import common

BATCH = 25      # programs of one translation unit, as random_programs has it
PROCESS = 500   # programs of one process, which chooses what it proves by what it has proven
GATE = 2000     # fewer programs need not reach everything
LEAST = 5
# Random programs are small, and seldom what these want: run_differential.py proves them, and fails if it proved none of one.
ELSEWHERE = ("wgmma/three stages", "wgmma/four stages", "bulk/four stages", "bulk/six stages", "bulk/eight stages",
             "bulk/neighbours", "bulk/cluster", "window/lines", "window/pairs", "matmul/three stages", "matmul/several products", "gemm/several products", "strip/channels", "depthwise/channels",
             "depthwise/channels beside", "filter_strip/channels")
REPLACED = 0.02   # programs that prove little, for which others stand in


def table(proven):
    """One line a family: its kinds of kernel, and how many were proven."""
    families = collections.defaultdict(list)
    for variant, count in proven.items():
        family, name = variant.split("/", 1)
        families[family].append(f"{name} {count}")
    return "\n".join(f"  {family:12} {', '.join(names)}" for family, names in families.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="random_programs lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "random_programs")
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    end, share = args.first + args.count, min(-(-args.count // (args.jobs * BATCH)) * BATCH, PROCESS)
    parts = [(first, min(share, end - first)) for first in range(args.first, end, share)]

    def prove(part):
        command = [binary, "--seed", str(args.seed), "--first", str(part[0]), "--count", str(part[1])]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    failed = False
    replaced = 0
    proven = collections.Counter()
    for part, done in zip(parts, common.in_parallel(args.jobs, prove, parts)):
        counts = re.findall(r"^proven (.*): (\d+)\n", done.stdout, re.M)
        proven.update({variant: int(count) for variant, count in counts})
        replaced += sum(int(count) for count in re.findall(r"^\d+ refused, (\d+) replaced", done.stdout, re.M))
        others = re.sub(r"^proven .*\n", "", done.stdout, flags=re.M)
        print(f"{part[0]} to {part[0] + part[1] - 1}: {others}", end="", flush=True)
        if done.returncode not in (0, 1) or not counts:
            print(f"random_programs ends with {done.returncode}")
        failed |= done.returncode != 0 or not counts
    print(f"{args.count} programs in {time.monotonic() - started:.0f} s; launches proven:\n{table(proven)}")
    rare = [f"{variant} {count}" for variant, count in proven.items() if count < LEAST and variant not in ELSEWHERE]
    if args.count < GATE:
        print(f"fewer than {GATE} programs: not every kind of kernel needs a proof")
    elif rare:
        print(f"FAIL  proven fewer than {LEAST} times: " + ", ".join(rare))
        failed = True
    if args.count >= GATE and replaced > REPLACED * args.count:
        print(f"FAIL  {replaced} programs were passed over: less than half of an output can be judged, or a device holds none")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
