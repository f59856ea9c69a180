#!/usr/bin/env python3
"""gpu_profile.py --rollerc BINARY --device NAME [EXAMPLE…]: does --profile keep its promises on this GPU?

Every example (or those named) is profiled with all its candidates right; matmul and ReLU are timed alike by
two processes; candidates that hang, fault, are wrong or write beside their buffers are found out, and the
others survive; an interrupt ends at once and leaves no process. Prints a line for each check; exit code 1 if
one failed.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPEATED = {"matmul": ["-D", "M=4096", "-D", "N=4096", "-D", "K=4096"], "relu": ["-D", "N=100000000"]}
SPREAD = 0.03                       # of two processes that time the same kernel
DELAYS = (0.2, 0.7, 1.2, 1.8, 2.4)   # seconds before an interrupt; the run takes over three

# Statements at the start of templates/elementwise.cu, each for the candidate with that grid and block.
PLANTED = {
    "timeout": "for (;;) __nanosleep(100);",
    "fault": "*reinterpret_cast<volatile int *>(0) = 1;",
    "wrong": "if (blockIdx.x == gridDim.x - 1) return;",
    "fault ": "if (first == 0) { Outputs o = {}; store_point(t, POINTS + 5, 0, o); }",
    "fault  ": "__trap();",
}


class Failure(Exception):
    pass


class Profiler:
    def __init__(self, rollerc, device, folder):
        self.command, self.folder = [rollerc, "--device", device, "-q"], folder

    def rank(self, example, *arguments):
        path = self.folder / "rank.json"
        path.unlink(missing_ok=True)
        command = [*self.command, "-o", self.folder / "k.cu", "--json", path, *map(str, arguments)]
        command += [ROOT / f"examples/{example}.te"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise Failure(result.stderr.strip())
        return json.loads(path.read_text())["candidates"]


def check_example(profiler, example):
    start = time.monotonic()
    candidates = profiler.rank(example, "--profile")
    failed = [candidate["reason"] for candidate in candidates if candidate["status"] != "ok"]
    best = candidates[0]
    measured, predicted = best["measured"]["time_us"]["median"], best["predicted"]["time_us"]
    seconds = time.monotonic() - start
    return not failed, (f"{measured:.1f} us, predicted {predicted:.1f}; "
                        f"{len(candidates)} candidates in {seconds:.1f} s {failed or ''}")


def check_repeatability(profiler, example):
    medians = []
    for _ in range(2):
        best = profiler.rank(example, "--profile", "--top-k", 3, *REPEATED[example])[0]
        medians.append(best["measured"]["time_us"]["median"])
    spread = max(medians) / min(medians) - 1
    return spread <= SPREAD, f"{medians[0]:.1f} and {medians[1]:.1f} us: {100 * spread:.2f} % apart"


def shape_of(candidate):
    """What tells a candidate's kernel from the others': blocks and threads."""
    return candidate["launches"][0]["grid"][0], candidate["launches"][0]["block"][0]


def plant(profiler, shapes):
    """The candidates' own templates, with a bug in each whose shape is in `shapes`."""
    templates = profiler.folder / "templates"
    shutil.copytree(ROOT / "templates", templates)
    path = templates / "elementwise.cu"
    mark = "    Inputs in[VECTORS];\n"
    bugs = "".join(f"    if (gridDim.x == {grid}u && blockDim.x == {block}u) {{ {bug} }}\n"
                   for (grid, block), bug in zip(shapes, PLANTED.values()))
    path.write_text(path.read_text().replace(mark, mark + bugs, 1))
    return templates


def check_planted(profiler):
    ranked = profiler.rank("relu", "--top-k", 20)
    shapes = [shape_of(candidate) for candidate in ranked]
    unique = [shape_of(candidate) for candidate in ranked if shapes.count(shape_of(candidate)) == 1
              and candidate["launches"][0]["family"] == "elementwise"][:len(PLANTED)]
    expected = dict(zip(unique, (status.strip() for status in PLANTED)))
    candidates = profiler.rank("relu", "--profile", "--top-k", 20, "--templates", plant(profiler, unique))
    seen = {shape_of(candidate): candidate["status"] for candidate in candidates}
    right = len(unique) == len(PLANTED) and all(seen[shape] == expected.get(shape, "ok") for shape in shapes)
    return right, str([(candidate["status"], candidate.get("reason", "")) for candidate in candidates])


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [word for word in listed.split() if os.path.exists(f"/proc/{word}")]


def check_interrupt(profiler, delay):
    target = profiler.folder / "interrupted.cu"
    command = [*profiler.command, "--profile", "-o", target, ROOT / "examples/matmul.te"]
    process = subprocess.Popen(command)
    time.sleep(delay)
    children, start = children_of(process.pid), time.monotonic()
    process.send_signal(signal.SIGINT)
    code, seconds = process.wait(), time.monotonic() - start
    left = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
    temps = [path.name for path in profiler.folder.glob(".rollerc*")]
    return (code == 130 and seconds < 1 and not left and not temps and not target.exists(),
            f"exit {code} after {seconds:.2f} s, {len(children)} workers, {len(left)} left")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("examples", nargs="*")
    options = parser.parse_args()
    names = options.examples or sorted(path.stem for path in (ROOT / "examples").glob("*.te"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        profiler = Profiler(os.path.abspath(options.rollerc), options.device, pathlib.Path(folder))
        checks = [(f"repeated {name}", check_repeatability, name) for name in REPEATED]
        checks += [(f"interrupted after {delay} s", check_interrupt, delay) for delay in DELAYS]
        checks += [("planted bugs", check_planted)] + [(name, check_example, name) for name in names]
        for name, check, *arguments in checks:
            try:
                right, figures = check(profiler, *arguments)
            except Failure as failure:
                right, figures = False, str(failure)
            failed += not right
            print(f"{'ok  ' if right else 'FAIL'} {name}: {figures}", flush=True)
    print(f"gpu_profile: {len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
