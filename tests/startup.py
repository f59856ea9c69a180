#!/usr/bin/env python3
"""What a compile costs above starting a process: median of 15 runs of each example, paired with /bin/true.

    python3 tests/startup.py build/rollerc [DEVICE]
"""
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_MS = {"matmul": 10}   # every other example: 15
RUNS = 15


def run_ms(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def main():
    binary, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "a100"
    slow = 0
    examples = sorted(glob.glob(os.path.join(ROOT, "examples/*.te")))
    with tempfile.NamedTemporaryFile(suffix=".cu") as output:
        for example in examples:
            name = os.path.splitext(os.path.basename(example))[0]
            pairs = [(run_ms([binary, example, "--device", device, "-o", output.name]), run_ms(["/bin/true"]))
                     for _ in range(RUNS)]
            above = statistics.median(ours for ours, _ in pairs) - statistics.median(true for _, true in pairs)
            limit = LIMIT_MS.get(name, 15)
            slow += above > limit
            print(f"{name:24} {above:6.1f} ms above /bin/true{'   TOO SLOW' if above > limit else ''}")
    print(f"{len(examples) - slow} passed, {slow} failed")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
