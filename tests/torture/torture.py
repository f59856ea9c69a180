#!/usr/bin/env python3
"""Every allocation and every file operation fails once; rollerc still ends in order.

Whatever fails: a documented exit code, never a crash; every output is the old file or the new one, whole; no other file
is left. Scenarios with more than 500 allocations are sampled at 25 places, --all takes every one.
"""
import argparse
import errno
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CALLS = ("open", "write", "fsync", "rename", "close")
DOCUMENTED = {0, 1, 2, 3, 4, 5}
SAMPLED_ABOVE, SAMPLES = 500, 25

EXAMPLE = str(ROOT / "examples") + "/"
DEVICE = ["--device", "a100"]
MATMUL = [EXAMPLE + "matmul.te", *DEVICE]
SCENARIOS = [
    # Compilations.
    MATMUL,
    [*MATMUL, "-o", "out.cu"],
    [*MATMUL, "-o", "-"],
    [*MATMUL, "-o", "out.cu", "--json", "rank.json"],
    [*MATMUL, "-o", "out.cu", "--emit", "header,json", "-MD"],
    [*MATMUL, "-o", "rank.json", "--top-k", "3"],
    [*MATMUL, "--name", "fast", "--math=fast", "-q"],
    [*MATMUL, "-o", "/dev/null"],
    [EXAMPLE + "softmax.te", *DEVICE, "-o", "out.cu"],
    [EXAMPLE + "conv2d_3x3.te", *DEVICE, "-o", "out.cu"],
    [EXAMPLE + "reduce_all.te", *DEVICE, "-o", "out.cu"],
    [EXAMPLE + "bn_add_relu_mask.te", *DEVICE, "-o", "out.cu"],
    [EXAMPLE + "matmul.te", "--device", str(ROOT / "devices/a100.yaml"), "-o", "out.cu"],
    [*MATMUL, "--templates", str(ROOT / "templates"), "-o", "out.cu"],
    # Dumps.
    [*MATMUL, "-d", "tokens,ast,op"],
    [*MATMUL, "-d", "rprogram", "-v"],
    # Talk.
    ["--version"],
    ["--list-devices"],
    ["--print-device", "a100"],
    ["--print-schema"],
    # Errors of the user.
    [str(ROOT / "tests/errors/unknown_index.te"), *DEVICE],
    [str(ROOT / "tests/errors/zero_extent.te"), *DEVICE],
    ["missing.te", *DEVICE],
    [EXAMPLE + "matmul.te", "--device", "unobtainium"],
    [*MATMUL, "--top-k", "0"],
    [*MATMUL, "-D", "UNKNOWN=3"],
    [*MATMUL, "-o", "/dev/full"],
]
# `--help` is not here: glibc's argp asserts that its own allocations succeed.

OLD = b"old\n"
TARGETS = ("out.cu", "rank.json", "matmul.cu", "out.h", "out.json", "out.d")


class Run:
    """One run in a fresh folder, in which every target exists already."""

    def __init__(self, options, scenario, **torture):
        with tempfile.TemporaryDirectory() as name:
            folder, report = pathlib.Path(name), options.report
            for target in TARGETS:
                (folder / target).write_bytes(OLD)
            report.write_bytes(bytes(8 * 7))
            env = {**os.environ, "TMPDIR": name, "LD_PRELOAD": options.interpose, "TORTURE_REPORT": str(report), **torture}
            result = subprocess.run([options.rollerc, *scenario], cwd=folder, env=env, capture_output=True, timeout=120,
                                    stdin=subprocess.DEVNULL)
            self.code, self.stdout, self.stderr = result.returncode, result.stdout, result.stderr.decode("latin-1")
            self.files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
            self.allocations, self.injected, *io = struct.unpack("7q", report.read_bytes())
            self.io = dict(zip(CALLS, io))


def problems(normal, run, killed=False):
    if killed:
        if run.code != 99:
            yield f"exit code {run.code}, expected to be killed"
    elif run.code not in DOCUMENTED:
        yield f"exit code {run.code}: {run.stderr.strip()}"
    elif run.code != normal.code and run.code != 4:
        yield f"exit code {run.code}, neither {normal.code} nor 4: {run.stderr.strip()}"
    elif run.code == 4 and not run.stderr:
        yield "failed without a word"
    elif run.code == 0 and (run.files != normal.files or run.stdout != normal.stdout):
        yield "exit code 0, but not all of the output is there"
    for name, content in run.files.items():
        if name.startswith(".rollerc-") and killed:
            continue   # nobody was left to remove it
        if name not in normal.files:
            yield f"left behind: {name}"
        elif content not in (OLD, normal.files[name]):
            yield f"half written: {name}"


def tortures(normal, everything, chance):
    """(label, environment, killed) for every failure to try."""
    numbers = list(range(1, normal.allocations + 1))
    if len(numbers) > SAMPLED_ABOVE and not everything:
        numbers = sorted(chance.sample(numbers, SAMPLES))
    for number in numbers:
        yield f"allocation {number}", {"TORTURE_ALLOC": str(number)}, False
        yield f"allocations from {number}", {"TORTURE_ALLOC": str(number), "TORTURE_ALLOC_FROM": "1"}, False
    for call in CALLS:
        errors = {"open": [errno.EACCES, errno.ENOSPC], "write": [errno.ENOSPC, errno.EIO, errno.EINTR, "short"],
                  "fsync": [errno.EIO, errno.EINTR], "rename": [errno.EACCES], "close": [errno.EIO, errno.EINTR]}[call]
        for number in range(1, normal.io[call] + 1):
            for error in errors:
                word = error if isinstance(error, str) else errno.errorcode[error]
                yield f"{call} {number} {word}", {"TORTURE_IO": f"{call}:{number}:{error}"}, False
            yield f"killed at {call} {number}", {"TORTURE_IO": f"{call}:{number}:exit"}, True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    parser.add_argument("--interpose", required=True, type=os.path.abspath)
    parser.add_argument("--all", action="store_true", help="every allocation of every scenario")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.rollerc, options.interpose = os.path.abspath(options.rollerc), os.path.abspath(options.interpose)
    chance = random.Random(options.seed)
    runs = injected = failed = 0
    with tempfile.TemporaryDirectory() as name:
        options.report = pathlib.Path(name) / "report"
        for scenario in SCENARIOS:
            label = " ".join(scenario).replace(str(ROOT) + "/", "")
            normal = Run(options, scenario)
            found = [] if normal.code in DOCUMENTED and normal.allocations else [("no failure", f"exit code {normal.code}")]
            for torture, env, killed in tortures(normal, options.all, chance):
                run = Run(options, scenario, **env)
                runs, injected = runs + 1, injected + (run.injected > 0)
                found += [(torture, problem) for problem in problems(normal, run, killed)]
            failed += len(found)
            for torture, problem in found[:5]:
                print(f"FAIL {label}: {torture}: {problem}")
    print(f"torture: {len(SCENARIOS)} scenarios, {runs} runs, {injected} with a failure, {failed} problems")
    return 1 if failed or injected < runs * 0.9 or not injected else 0


if __name__ == "__main__":
    sys.exit(main())
