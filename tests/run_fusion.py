#!/usr/bin/env python3
"""Random programs and all that fusion makes of them, evaluated against the reference (tests/differential/).

    python3 tests/run_fusion.py --rollerc build/rollerc --count 100000 --seed 7

The seed is printed; a failure is printed with the command that repeats it. Of every form of a kernel some must have come.
"""
import argparse
import os
import subprocess
import sys
import time

import common

PROCESS = 500    # programs of one process
FEWEST = 5       # kernels of every form,
ENOUGH = 2000    # in so many programs
FORMS = ("inline", "materialize", "rows", "beside", "tiles", "split", "partial", "combine", "elements", "chunks",
         "columns", "tile_partial", "tile_combine", "candidate")


def read_summary(text):
    """{name: count} of the last line, which is `programs=500 large=3 …`."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    return {name: int(count) for name, count in (word.split("=") for word in last.split())}


def find_gaps(total):
    """What too little was seen of to say anything."""
    gaps = [f"only {total[form]} kernels of the form '{form}'" for form in FORMS
            if total["programs"] >= ENOUGH and total[form] < FEWEST]
    if 100 * total["large"] > total["programs"]:
        gaps.append(f"for {total['large']} programs that are too large no other could stand in")
    if 2 * total["unjudged"] > total["compared"]:
        gaps.append(f"{total['unjudged']} of {total['elements']} elements were too close to call")
    return gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="fusion_programs lies in tests/ beside it")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1,
                        help="the default is the same in every run: a new failure comes from a change")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    args = parser.parse_args()

    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "fusion_programs")
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()

    def prove(first):
        count = min(PROCESS, args.count - first)
        command = [binary, "--seed", str(args.seed), "--first", str(first), "--count", str(count)]
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
        for name, count in read_summary(done.stdout).items():
            total[name] = total.get(name, 0) + count
    gaps = find_gaps(total) if total else ["no program was evaluated"]
    for gap in gaps:
        print(f"FAIL  {gap}")
    kernels = sum(total.get(form, 0) for form in FORMS)
    print(f"{total.get('programs', 0)} programs, {total.get('plans', 0)} plans, {kernels} fusions, "
          f"{total.get('compared', 0)} elements in {time.monotonic() - started:.0f} s")
    print(" ".join(f"{name}={count}" for name, count in total.items()))
    return 1 if failed or gaps else 0


if __name__ == "__main__":
    sys.exit(main())
