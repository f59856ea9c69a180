#!/usr/bin/env python3
"""What a compile costs above starting a process: median of 15 runs of each example, paired with /bin/true.

    python3 tests/startup.py build/rollerc [DEVICE]
    python3 tests/startup.py build/rollerc h200 product    # of the cases of bench/cases.json whose group holds the word
"""
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import cases  # noqa: E402

LIMIT_MS = {"matmul": 10}   # every other example: 15
RUNS = 15


def run_ms(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def examples():
    """(name, arguments) of each."""
    for path in sorted(glob.glob(os.path.join(ROOT, "examples/*.te"))):
        yield os.path.splitext(os.path.basename(path))[0], [path]


def measured(group, folder):
    """The same of what is measured."""
    for case in cases.load():
        if group in case.group:
            path = os.path.join(folder, "case.te")
            with open(path, "w") as file:
                file.write(case.text)
            yield case.name, [path, *(word for define in case.defines for word in ("-D", define)), *case.options]


def main():
    binary, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "a100"
    count = slow = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in measured(sys.argv[3], folder) if len(sys.argv) > 3 else examples():
            command = [binary, *arguments, "--device", device, "--name", "k", "-o", os.path.join(folder, "k.cu")]
            pairs = [(run_ms(command), run_ms(["/bin/true"])) for _ in range(RUNS)]
            above = statistics.median(ours for ours, _ in pairs) - statistics.median(true for _, true in pairs)
            limit = LIMIT_MS.get(name, 15)
            count += 1
            slow += above > limit
            print(f"{name:24} {above:6.1f} ms above /bin/true{'   TOO SLOW' if above > limit else ''}")
    print(f"{count - slow} passed, {slow} failed")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
