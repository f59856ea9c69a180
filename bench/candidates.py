"""On a GPU machine: compiles the candidates of programs with NVRTC, compares their outputs with each other and times them.

    python3 bench/draw.py --seed 2 --n 80 > drawn.jsonl
    python3 bench/candidates.py drawn.jsonl times.jsonl --rollerc new=build/rollerc --device h100
    python3 bench/candidates.py drawn.jsonl times.jsonl --rollerc old=… new=… --device h100    # of both, in one run

A line of times.jsonl is a candidate: its id, its rank and its time by each rollerc, and what the clock says, `us`: calls over buffers of
three times the L2, captured in a graph; the candidates of a program take turns. What differs from the first one is `failed`. The fastest
of many is partly the luckiest, so it and each rollerc's first choice are timed `again`, more often and on a warm GPU.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "python")]
TURNS, FAR_BEHIND = 7, 2.5                   # of those that are so many times as slow one turn is enough
SAMPLE_US, WARM_US = 300, 6000
AGAIN_TURNS = 10
SMALL, LARGE = 2e-4, 2e-2                    # what rounding may change, of f32 and of 16 bits, by the rms
REGISTERS, LOCAL_BYTES = 4, 3                # CUfunction_attribute


# ---- compiling

def command(rollerc, row, args, *more):
    return [rollerc, "-", "--name", "k", "--device", args.device, "-q", "--top-k", str(args.candidates), *row.get("options", []), *more]


def rank(rollerc, row, args, count):
    """So many candidates, in the order of the model."""
    done = subprocess.run(command(rollerc, row, args, "-o", os.devnull, "--emit", "json=/dev/stdout"), input=row["text"],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["candidates"][:count] if done.returncode == 0 else []


def tiles(candidate):
    return [f"{launch['family']} {launch['config'].get('variant', '')} {launch['block'][0]} {launch['config']['tile'].get('register', {})}"
            for launch in candidate["launches"]]


def listed(number, row, args):
    """Rows of the program's candidates, each once."""
    found = {}
    for name, (rollerc, count) in args.binaries.items():
        for candidate in rank(rollerc, row, args, count):
            at = found.setdefault(candidate["id"], {
                "set": row["set"], "name": row["name"], "kind": row["kind"], "id": candidate["id"], "predicted": {},
                "tiles": tiles(candidate), "file": f"{number:03}_{candidate['id']}", "made": (rollerc, candidate["model_rank"])})
            at["predicted"][name] = [candidate["model_rank"], round(candidate["predicted"]["time_us"], 3)]
    return list(found.values())


def build(program, row, args):
    stem = os.path.join(args.folder, row["file"])
    if os.path.exists(stem + ".cubin"):
        return ""
    rollerc, at = row["made"]
    done = subprocess.run(command(rollerc, program, args, "--candidate", str(at), "--emit", f"cu={stem}.cu,cubin={stem}.cubin"),
                          input=program["text"], capture_output=True, text=True)
    return done.stderr.strip()[:200] or "no kernel" if done.returncode else ""


# ---- buffers

class Buffers:
    """Inputs and outputs of a program, as often as they are needed to be new to L2."""

    def __init__(self, arguments):
        import timing
        size = sum(timing.bytes_of(entry) for entry in arguments)
        self.sets = [[self.make(entry) for entry in arguments] for _ in range(timing.sets_for(size))]
        self.outputs = [i for i, entry in enumerate(arguments) if entry["role"] == "output"]
        for buffers in self.sets[1:]:
            for i, buffer in enumerate(buffers):
                if i not in self.outputs:
                    buffer.copy_(self.sets[0][i])

    @staticmethod
    def make(entry):
        import timing
        import torch
        dtype, count = timing.DTYPES[entry["dtype"]], timing.count_of(entry)
        if dtype.is_floating_point:
            return torch.randn(count, device="cuda", dtype=dtype)
        return torch.randint(0, 8, (count,), device="cuda", dtype=torch.int8).to(dtype)

    def results(self):
        return [self.sets[0][i] for i in self.outputs]


def differs(saw, wanted):
    import torch
    for a, b in zip(saw, wanted):
        limit = SMALL if a.dtype == torch.float32 else LARGE
        for part, other in zip(a.split(1 << 26), b.split(1 << 26)):
            x, y = part.double(), other.double()
            rms = y.nan_to_num().square().mean().sqrt()
            if not bool((((x - y).abs() <= limit * (y.abs() + rms)) | (x == y) | (x.isnan() & y.isnan())).all()):
                return True
    return False


# ---- timing

def kernel_of(row, args):
    import rollerc
    stem = os.path.join(args.folder, row["file"])
    with open(stem + ".cu") as file:
        metadata = json.loads(file.readline()[len(rollerc.PREFIX):])
    return rollerc._Module(stem + ".cubin", metadata), metadata


def attributes(module):
    """Registers and bytes of local memory of each launch."""
    found, value = [], ctypes.c_int()
    for function, _, _ in module.launches("launches"):
        pair = []
        for attribute in (REGISTERS, LOCAL_BYTES):
            module.check("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
            pair.append(value.value)
        found.append(pair)
    return found


def captured(module, metadata, buffers):
    import timing
    import torch
    workspace = torch.zeros(max(metadata["workspace"], 256), dtype=torch.uint8, device="cuda")

    def call(buffers):
        module([buffer.data_ptr() for buffer in buffers], workspace.data_ptr(), torch.cuda.current_stream().cuda_stream)
    return timing.Captured([lambda b=b: call(b) for b in buffers.sets])


def times(graphs):
    import timing
    fastest = min(graph.us / graph.count for graph in graphs)
    near = [graph.us / graph.count < FAR_BEHIND * fastest for graph in graphs]
    samples = [[] for _ in graphs]
    for turn in range(TURNS + 1):
        for graph, is_near, of_graph in zip(graphs, near, samples):
            if is_near or turn == 1:
                us = WARM_US / TURNS if turn == 0 else SAMPLE_US
                of_graph.append(timing.replay_us(graph.graph, max(1, min(100, math.ceil(us / graph.us)))) / graph.count)
    return [statistics.median(of_graph[1:] or of_graph) for of_graph in samples]


def times_again(graphs):
    """Of two and more, in turns."""
    for graph in graphs:
        graph.warm()
    samples = [[graph.sample() for graph in graphs] for _ in range(AGAIN_TURNS)]
    return [statistics.median(of_graph) for of_graph in zip(*samples)]


def compared(timed):
    """The fastest candidate, and the first choices: where they are in the list."""
    fastest = min(timed, key=lambda row: row["us"])
    return [i for i, row in enumerate(timed) if row is fastest or any(rank == 1 for rank, _ in row["predicted"].values())]


def measure(rows, args):
    """Fills `us`, of some `again`, or `failed` of the candidates of one program."""
    import torch
    buffers, expected, graphs, timed = None, None, [], []
    for row in rows:
        if "failed" in row:
            continue
        module, metadata = kernel_of(row, args)
        buffers = buffers or Buffers(metadata["args"])
        for result in buffers.results():
            result.zero_()
        graph = captured(module, metadata, buffers)
        row["registers"] = attributes(module)
        torch.cuda.synchronize()
        if expected and differs(buffers.results(), expected):
            row["failed"] = "differs from the first"
            continue
        expected = expected or [result.clone() for result in buffers.results()]
        graphs.append(graph)
        timed.append(row)
    for row, us in zip(timed, times(graphs) if graphs else []):
        row["us"] = round(us, 3)
    again = compared(timed) if timed else []
    for i, us in zip(again, times_again([graphs[i] for i in again])):
        timed[i]["again"] = round(us, 3)


def about(args):
    """Where, when and with what."""
    import torch
    asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return {"device": torch.cuda.get_device_name(), "driver": asked.stdout.split("\n")[0], "rollerc": list(args.binaries),
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def measure_all(programs, args):
    import torch
    with open(args.times, "a+") as file:
        file.seek(0)
        known = {(row["set"], row["name"]) for row in map(json.loads, file) if "set" in row}
        file.write(json.dumps({"about": about(args)}) + "\n")
    left = [(number, row) for number, row in enumerate(programs) if (row["set"], row["name"]) not in known]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        ranked = list(pool.map(lambda item: listed(*item, args), left))
        built = [[pool.submit(build, program, row, args) for row in rows] for (_, program), rows in zip(left, ranked)]
        for (number, program), rows, ready in zip(left, ranked, built):
            if time.time() > args.stop:
                break
            for row, future in zip(rows, ready):
                if future.result():
                    row["failed"] = future.result()
            try:
                measure(rows, args)
            except Exception as error:
                for row in rows:
                    row.setdefault("failed", f"{type(error).__name__}: {str(error)[:160]}")
            with open(args.times, "a") as file:
                for row in rows:
                    file.write(json.dumps({key: row[key] for key in row if key not in ("file", "made")}) + "\n")
            if number % 20 == 0:
                print(f"{time.time() - args.begun:.0f} s: {number} {program['name']}", flush=True)
            try:
                torch.cuda.synchronize()
            except RuntimeError:             # the context is lost: on with the rest in a new process
                os.execv(sys.executable, [sys.executable, *sys.argv, "--begun", str(args.begun)])
        for future in sum(built, []):
            future.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", help="what bench/draw.py or bench/operators.py printed; the last one: results, appended to")
    parser.add_argument("--rollerc", nargs="+", required=True, help="NAME=BINARY, or NAME=BINARY@K for its first K candidates alone")
    parser.add_argument("--device", required=True)
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600, help="no program is begun after that many")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    parser.add_argument("--folder", default="candidates", help="for kernels")
    parser.add_argument("--begun", type=float, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    *paths, args.times = args.programs
    args.binaries = {name: (path.split("@")[0], int((path.split("@")[1:] or [args.candidates])[0]))
                     for name, path in (entry.split("=", 1) for entry in args.rollerc)}
    args.begun = args.begun or time.time()
    args.stop = args.begun + args.seconds
    os.makedirs(args.folder, exist_ok=True)
    programs = [json.loads(line) for path in paths for line in open(path)]
    measure_all(programs, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
