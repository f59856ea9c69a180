#!/usr/bin/env python3
"""gpu_profile.py --rollerc BINARY --device NAME [--repeat 20] [--json FILE] [EXAMPLE…]: does --profile keep its promises?

Every example (or those named) is profiled with all its candidates right; matmul and ReLU are timed alike by two
processes, and compared with cuBLAS and with a copy of the same bytes; candidates that hang, fault, are wrong or write
beside their buffers, `--repeat` of each kind, are found out, and the others survive; an interrupt ends at once and
leaves no process. Prints a line for each check; exit code 1 if one failed. The peers need nvcc and PyTorch.
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
DELAYS = (0.2, 0.7, 1.2, 1.8, 2.4)   # seconds before an interrupt
INTERRUPTED_TOP_K = 64               # candidates that take longer than the last of these, with 16 compilers side by side

LEAST_OF_PEER = {"relu": 0.9, "matmul": 0.6}

# kind: (statement at the start of templates/elementwise.cu, status that it must lead to)
PLANTED = {
    "hanging": ("for (;;) __nanosleep(100);", "timeout"),
    "faulting": ("*reinterpret_cast<volatile int *>(0) = 1;", "fault"),
    "wrong": ("if (blockIdx.x == gridDim.x - 1) return;", "wrong"),
    "out of bounds": ("if (blockIdx.x == 0 && threadIdx.x == 0) { Outputs o = {}; store_point(t, POINTS + 5, 0, o); }", "fault"),
    "trapping": ("__trap();", "fault"),
}
MOST_EACH = 4         # planted at once of each kind
PLANTED_POINTS = 1000000
PLANTED_TOP_K = 30


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


def peer_us(name):
    """What takes as long as it takes on this GPU: a copy of ReLU's bytes, cuBLAS for matmul. bench/ has the method."""
    sys.path.insert(0, str(ROOT / "bench"))
    import timing
    import torch
    if name == "relu":
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "copy.so")
            subprocess.run(["nvcc", "-O3", "-arch=native", "-shared", "-Xcompiler", "-fPIC", ROOT / "bench/copy.cu", "-o", library],
                           check=True)
            return timing.Copier(library).us(8 * 100000000)["copy kernel"]
    torch.backends.cuda.matmul.allow_tf32 = False
    sets = [tuple(torch.randn(4096, 4096, device="cuda") for _ in range(2)) for _ in range(3)]
    return timing.device_us([lambda a=a, b=b: a @ b for a, b in sets])


def check_peer(profiler, name):
    """Ours is timed before and after the peer."""
    def ours():
        return profiler.rank(name, "--profile", "--top-k", 10, *REPEATED[name])[0]["measured"]["time_us"]["median"]

    before, peer, after = ours(), peer_us(name), ours()
    share = peer / min(before, after)
    return share >= LEAST_OF_PEER[name], f"{before:.1f} and {after:.1f} us, the peer {peer:.1f} us: {share:.3f} of its speed"


def shape_of(candidate):
    """What tells a candidate's kernel from the others': blocks, threads and the width of an access."""
    launch = candidate["launches"][0]
    vector = launch["config"]["variant"].removeprefix("x")   # or "scalar"
    return launch["grid"][0], launch["block"][0], int(vector) if vector.isdigit() else 1


def plant(templates, planted):
    """Templates with a bug in each candidate of `planted`, {shape: kind}."""
    shutil.rmtree(templates, ignore_errors=True)
    shutil.copytree(ROOT / "templates", templates)
    path = templates / "elementwise.cu"
    mark = "    const Tensors t = TENSORS;\n"
    text = path.read_text()
    assert mark in text, f"{path} has changed"
    bugs = "".join(f"    if (gridDim.x == {grid}u && blockDim.x == {block}u && VECTOR == {vector}) {{ {PLANTED[kind][0]} }}\n"
                   for (grid, block, vector), kind in planted.items())
    path.write_text(text.replace(mark, mark + bugs, 1))
    return templates


def check_planted(profiler, repeat):
    """Bugs among the best of ReLU's candidates, and as many sound ones as are left."""
    arguments = ["--top-k", PLANTED_TOP_K, "-D", f"N={PLANTED_POINTS}"]
    ranked = [c for c in profiler.rank("relu", *arguments) if c["launches"][0]["family"] == "elementwise"]
    shapes = [shape_of(candidate) for candidate in ranked]
    assert len(set(shapes)) == len(shapes) and len(shapes) > MOST_EACH * len(PLANTED), shapes
    survived, rest, sound, start = dict.fromkeys(PLANTED, 0), 0, 0, time.monotonic()
    for first in range(0, repeat, MOST_EACH):
        kinds = list(PLANTED) * min(MOST_EACH, repeat - first)
        planted = dict(zip(shapes[first % 3:], kinds))   # the first candidate is a sound one now and then
        candidates = profiler.rank("relu", "--profile", "--hang-after", 1, *arguments,
                                   "--templates", plant(profiler.folder / "templates", planted))
        for candidate in candidates:
            if candidate["launches"][0]["family"] != "elementwise":
                continue
            kind = planted.get(shape_of(candidate))
            if kind:
                survived[kind] += candidate["status"] == PLANTED[kind][1]
                if candidate["status"] != PLANTED[kind][1]:
                    print(f"     {kind}: {candidate['status']}, {candidate.get('reason', '')}")
            else:
                rest += 1
                sound += candidate["status"] == "ok"
        print(f"     planted {survived}, sound {sound} of {rest}, {time.monotonic() - start:.0f} s", flush=True)
    figures = ", ".join(f"{kind} {count} of {repeat}" for kind, count in survived.items())
    return (sound == rest and all(count == repeat for count in survived.values()),
            f"survived {figures}; of the others {sound} of {rest} were timed; {time.monotonic() - start:.0f} s")


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [word for word in listed.split() if os.path.exists(f"/proc/{word}")]


def check_interrupt(profiler, delay):
    target = profiler.folder / "interrupted.cu"
    command = [*profiler.command, "--profile", "--top-k", str(INTERRUPTED_TOP_K), "-o", target, ROOT / "examples/matmul.te"]
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
    parser.add_argument("--repeat", type=int, default=1, help="planted bugs of each kind")
    parser.add_argument("--only", nargs="*", help="checks whose names begin so")
    parser.add_argument("--json", type=pathlib.Path, help="the results")
    parser.add_argument("examples", nargs="*")
    options = parser.parse_args()
    names = options.examples or sorted(path.stem for path in (ROOT / "examples").glob("*.te"))
    checks = [("planted", check_planted, options.repeat)]
    checks += [(f"repeated {name}", check_repeatability, name) for name in REPEATED]
    checks += [(f"peer of {name}", check_peer, name) for name in LEAST_OF_PEER]
    checks += [(f"interrupted after {delay} s", check_interrupt, delay) for delay in DELAYS]
    checks += [(name, check_example, name) for name in names]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        profiler = Profiler(os.path.abspath(options.rollerc), options.device, pathlib.Path(folder))
        for name, check, *arguments in checks:
            if options.only and not name.startswith(tuple(options.only)):
                continue
            try:
                right, figures = check(profiler, *arguments)
            except Failure as failure:
                right, figures = False, str(failure)
            results[name] = {"right": right, "figures": figures}
            print(f"{'ok  ' if right else 'FAIL'} {name}: {figures}", flush=True)
    failed = sum(not result["right"] for result in results.values())
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"gpu_profile: {len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
