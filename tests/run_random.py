#!/usr/bin/env python3
"""Random programs through the whole compiler and the CPU interpreter, against the reference (tests/differential/).

    python3 tests/run_random.py --rollerc build/rollerc --count 100000 --seed 7 --jobs 16
    python3 tests/run_random.py --rollerc build/rollerc --count 100000 --seed 7 --first 40000     # goes on there
    python3 tests/run_random.py --rollerc build/rollerc --structures 0 --compile 10 --nvrtc 1   # all ten compiled, none proven

The first candidate of every program is compiled by the host's compiler; those of every seventh by NVRTC, where it is.
One that does not compile is a failure: users get the first one without a proof.
A failure is printed with the command that repeats it. At the end stands how often each family's kinds of kernel were
proven; of GATE programs or more each must have been, of MANY at least LEAST times (--count 2000 --structures 2). For a
program of which less than half can be judged another stands in.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import time

import common
from run_jit import has_nvrtc

BATCH = 25      # programs of one translation unit, as random_programs has it
PROCESS = 500   # programs of one process, which chooses what it proves by what it has proven
GATE = 1000     # fewer programs need not reach everything
MANY = 2000     # of so many each kind is proven
LEAST = 5       # times
# Random programs are small, and seldom what these want: run_differential.py proves them, and fails if it proved none.
ELSEWHERE = ("channelwise/elements", "bulk/four stages",
             "bulk/six stages", "bulk/eight stages",
             "bulk/multicast", "bulk/cluster", "bulk/multicast, ping-pong", "narrow/rows",
             "narrow/groups", "narrow/rows x2", "narrow/groups x2", "filter_groups/taps", "filter_wide/taps", "matmul/three stages", "matmul/several products",
             "gemm/several products", "strip/channels", "depthwise/channels",
             "depthwise/channels beside", "filter_strip/channels",
             "attention/16 rows, 32 columns", "attention/16 rows, 64 columns",
             "attention/32 rows, 32 columns", "attention/32 rows, 64 columns", "attention/4 warps",
             "attention/clusters of 4 warps",
             "attention_bulk/2 groups, 64 columns", "attention_bulk/2 groups, 128 columns",
             "attention_bulk/2 groups, 192 columns",
             "attention_bulk/3 groups, 64 columns", "attention_bulk/3 groups, 128 columns",
             "attention_bulk/2 splits, 64 columns", "attention_bulk/3 splits, 64 columns",
             "attention_bulk/4 splits, 64 columns")
BY_NVRTC = 80    # of GATE programs, at least: NVRTC does not know every device's architecture
REPLACED = 0.02   # programs that prove little, for which others stand in


def table(proven):
    """One line a family: its kinds of kernel, and how many were proven."""
    families = collections.defaultdict(list)
    for variant, count in proven.items():
        family, name = variant.split("/", 1)
        families[family].append(f"{name} {count}")
    return "\n".join(f"  {family:12} {', '.join(names)}" for family, names in families.items())


def total(pattern, text):
    return sum(int(count) for count in re.findall(pattern, text, re.M))


def lacking(args, proven, counts):
    """What so many programs should have done and did not."""
    least = LEAST if args.count >= MANY and args.structures > 1 else 1
    rare = [f"{variant} {count}" for variant, count in proven.items() if count < least and variant not in ELSEWHERE]
    if rare and args.structures and not args.moves and not args.chains and not args.joined:
        yield f"proven fewer than {least} times: " + ", ".join(rare)
    if counts["replaced"] > REPLACED * args.count:
        yield (f"{counts['replaced']} programs were passed over: less than half of an output can be judged, or a device "
               "holds none")
    if args.compile and counts["compiled"] < (1 - REPLACED) * args.count:
        yield f"only {counts['compiled']} candidates were compiled"
    if args.compile and args.nvrtc and counts["by NVRTC"] < BY_NVRTC and has_nvrtc():
        yield f"only {counts['by NVRTC']} candidates were compiled by NVRTC, not {BY_NVRTC}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="random_programs lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=GATE)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--structures", type=int, default=1,
                        help="candidates of a program that are proven, at most; 0: none")
    parser.add_argument("--compile", type=int, default=1, help="first candidates of a program that are compiled")
    parser.add_argument("--nvrtc", type=int, default=7,
                        help="of every so many programs these by NVRTC, too; 0: of none")
    parser.add_argument("--moves", action="store_true",
                        help="only programs of moves: views, elements as indices, quotients and remainders")
    parser.add_argument("--chains", action="store_true", help="only two products with a softmax between them")
    parser.add_argument("--joined", action="store_true", help="only concatenations of what kernels make")
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "random_programs")
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    end, share = args.first + args.count, min(-(-args.count // (args.jobs * BATCH)) * BATCH, PROCESS)
    parts = [(first, min(share, end - first)) for first in range(args.first, end, share)]

    def prove(part):
        command = [binary, "--seed", str(args.seed), "--first", str(part[0]), "--count", str(part[1]),
                   *(f"--{name}={getattr(args, name)}" for name in ("structures", "compile", "nvrtc")),
                   *["--moves"] * args.moves, *["--chains"] * args.chains, *["--joined"] * args.joined]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    failed = False
    proven, totals = collections.Counter(), collections.Counter()
    for part, done in zip(parts, common.in_parallel(args.jobs, prove, parts)):
        counts = re.findall(r"^proven (.*): (\d+)\n", done.stdout, re.M)
        proven.update({variant: int(count) for variant, count in counts})
        totals.update({"replaced": total(r"^\d+ refused, (\d+) replaced", done.stdout),
                       "compiled": total(r"^(\d+) first candidates compiled", done.stdout),
                       "by NVRTC": total(r"compiled, (\d+) by NVRTC$", done.stdout)})
        others = re.sub(r"^proven .*\n", "", done.stdout, flags=re.M)
        print(f"{part[0]} to {part[0] + part[1] - 1}: {others}", end="", flush=True)
        if done.returncode not in (0, 1) or not counts:
            print(f"random_programs ends with {done.returncode}")
        failed |= done.returncode != 0 or not counts
    print(f"{args.count} programs in {time.monotonic() - started:.0f} s; launches proven:\n{table(proven)}")
    if args.compile and args.nvrtc and not has_nvrtc():
        print("NOT TESTED: there is no NVRTC here, so it compiled no random program")
    if args.count < GATE:
        print(f"fewer than {GATE} programs: not every kind of kernel needs a proof")
    for what in lacking(args, proven, totals) if args.count >= GATE else ():
        print(f"FAIL  {what}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
