"""On a GPU machine: compiles the kernels of bench/generate.py, checks them against PyTorch in float64 and times them.

    python3 bench/run.py bench-cases results.jsonl --only softmax            # ours, torch and the copies
    python3 bench/run.py bench-cases results.jsonl --peers '' --seconds 60   # ours and the copies; at most a minute

Results are appended, and what is there already is not run again, so a run that was cut off goes on. A kernel that
does not compile, is wrong, faults or hangs is a line with its reason; the others go on in a fresh process.
Needs nvcc and PyTorch.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import re
import subprocess
import sys
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
HANG_SECONDS = 150
BITS_MAY_DIFFER = 1e-5                       # of a mask: sums that are 0 up to rounding


def key_of(row):
    return f"{row['case']} {row['rank']}"


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def begin_file(args):
    """Holds the case that the worker is at."""
    return args.results + ".begin"


def append(path, row):
    with open(path, "a") as file:
        file.write(json.dumps(row) + "\n")


# ---- compiling, beside the measurements

def nvcc(source, library):
    """None, or the reason."""
    if os.path.exists(library) and os.path.getmtime(library) >= os.path.getmtime(source):
        return None
    done = subprocess.run(["nvcc", "-O3", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", source, "-o", library + ".new"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "nvcc: " + " | ".join((done.stdout + done.stderr).strip().split("\n")[:3])[:300]
    os.rename(library + ".new", library)
    return None


def library_of(folder, row):
    return os.path.join(folder, "lib", row["file"][:-3] + ".so")


# ---- the worker: everything that touches the GPU

class Wrong(Exception):
    """The kernel is not right."""


class Problem:
    """One case: its arguments, and PyTorch's view of them."""

    def __init__(self, folder, row):
        import timing
        with open(os.path.join(folder, row["file"])) as file:
            self.meta = json.loads(file.readline()[len("//rollerc: "):])
        self.entry = row["entry"]
        self.params = {name: int(value) for name, value in (define.split("=") for define in row["params"])}
        self.inputs = [arg for arg in self.meta["args"] if arg["role"] == "input"]
        self.outputs = [arg for arg in self.meta["args"] if arg["role"] == "output"]
        self.bytes = sum(timing.bytes_of(arg) for arg in self.meta["args"])
        how = self.entry.get("inputs", {})
        self.tensors = {arg["name"]: timing.make_input(arg, how.get(arg["name"])) for arg in self.inputs}

    def caller(self, expression, tensors):
        """A function of nothing that evaluates the expression over these tensors."""
        import torch_ops
        names = {**self.params, **vars(torch_ops), **tensors}
        for name, setup in self.entry.get("setup", {}).items():
            names[name] = eval(setup, names)
        code = compile(expression, expression, "eval")
        return lambda: eval(code, names)

    def expected(self):
        """What float64 says; bits and integers, and what is only moved, as they are."""
        entry = self.entry
        expression = entry.get("reference", entry.get("compile", entry["torch"]))
        widen = lambda x: x.double() if x.is_floating_point() and not entry.get("exact") else x
        values = self.caller(expression, {name: widen(x) for name, x in self.tensors.items()})()
        return values if isinstance(values, tuple) else (values,)

    def terms(self):
        return eval(self.entry.get("terms", "1"), dict(self.params))


def worst_error(out, ref, terms):
    """max |out - ref| / (u |ref| + 16 v sqrt(min(K, 4096)) (|ref| + rms(ref))): 1 is the most that is right.

    u: half an ulp of the output's type, v: that of the type sums are kept in; as in tests/gpu_examples.py.
    """
    import torch
    info = torch.finfo(out.dtype)
    walk = torch.finfo(torch.float64 if out.dtype == torch.float64 else torch.float32).eps / 2 * 16 * math.sqrt(min(terms, 4096))
    out, ref = out.flatten(), ref.flatten()
    rms = math.sqrt(sum(float(part.double().square().sum()) for part in ref.split(2**26)) / ref.numel())
    worst = 0.0
    for a, b in zip(out.split(2**26), ref.split(2**26)):
        size = b.double().abs()
        ratio = (a.double() - b.double()).abs() / (info.eps / 2 * size + walk * (size + rms) + info.tiny * info.eps)
        worst = max(worst, float(torch.where(ratio.isnan(), torch.inf, ratio).max()))
    return worst


def compare(problem, raw_outputs):
    """The worst error; raises Wrong."""
    import torch
    import timing
    expected = problem.expected()
    if len(expected) != len(problem.outputs):
        raise Wrong(f"the reference has {len(expected)} outputs, the program {len(problem.outputs)}")
    worst = 0.0
    for arg, raw, ref in zip(problem.outputs, raw_outputs, expected):
        out = timing.from_bytes(raw, arg)
        if tuple(out.shape) != tuple(ref.shape):
            raise Wrong(f"{arg['name']}: shape {tuple(out.shape)}, reference {tuple(ref.shape)}")
        if problem.entry.get("exact") or not out.dtype.is_floating_point:
            share = float((out != ref).float().mean())
            if share > (BITS_MAY_DIFFER if arg["dtype"] == "b1" else 0):
                raise Wrong(f"{arg['name']}: {100 * share:.4f} % of the elements differ")
            continue
        error = worst_error(out, ref, problem.terms())
        if error > 1:
            raise Wrong(f"{arg['name']}: error {error:.3g} of what rounding explains")
        worst = max(worst, error)
    return worst


class Launcher:
    """NAME_launch of a compiled file."""

    def __init__(self, library, meta):
        import torch
        loaded = ctypes.CDLL(library)
        self.function = getattr(loaded, meta["name"] + "_launch")
        self.function.argtypes = [ctypes.c_void_p] * (len(meta["args"]) + 2)
        self.workspace = torch.full((max(meta["workspace"], 16),), 0xFF, dtype=torch.uint8, device="cuda")

    def call(self, buffers):
        import torch
        code = self.function(*(b.data_ptr() for b in buffers), self.workspace.data_ptr(),
                             torch.cuda.current_stream().cuda_stream)
        if code != 0:
            raise Wrong(f"the launcher returned {code}")


def measure_ours(folder, row, problem):
    """Checks, then times; gives what a result line says about it."""
    import torch
    import timing
    launcher = Launcher(library_of(folder, row), problem.meta)
    inputs = [timing.to_bytes(problem.tensors[arg["name"]]) for arg in problem.inputs]
    outputs = [torch.full((timing.bytes_of(arg),), 0xFF, dtype=torch.uint8, device="cuda") for arg in problem.outputs]
    launcher.call(inputs + outputs)
    torch.cuda.synchronize()
    error = compare(problem, outputs)
    sets = [inputs + outputs]
    while len(sets) < timing.sets_for(problem.bytes):
        sets.append([buffer.clone() for buffer in sets[0]])
    return {"error": round(error, 3), "us": timing.device_us([lambda s=s: launcher.call(s) for s in sets])}


def measure(folder, row, copier, peers):
    import torch
    import peer_times
    import timing
    torch.manual_seed(int(time.time_ns() % 2**31))
    problem = Problem(folder, row)
    result = measure_ours(folder, row, problem)
    copies = copier.us(problem.bytes)
    copy_us = min(copies.values())
    result.update(bytes=problem.bytes, gbps=problem.bytes / result["us"] / 1e3, copy_us=copy_us,
                  of_copy=copy_us / result["us"], copies=copies)
    if row["rank"] == 1:
        result["peers"] = peer_times.measure(problem, peers)
    return result


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def worker(args, rows):
    """Measures the rows that are left; exits with 3 where the GPU's context is lost."""
    import torch
    import timing
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    os.makedirs(os.path.join(args.folder, "lib"), exist_ok=True)
    copy_library = os.path.join(args.folder, "lib", "copy.so")
    reason = nvcc(os.path.join(BENCH, "copy.cu"), copy_library)
    if reason:
        sys.exit(reason)
    copier = timing.Copier(copy_library)
    peers = [peer for peer in args.peers.split(",") if peer]
    stop = time.time() + args.seconds
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    built = [pool.submit(nvcc, os.path.join(args.folder, row["file"]), library_of(args.folder, row)) for row in rows]
    for row, ready in zip(rows, built):
        if time.time() > stop:
            break
        head = {key: row[key] for key in ("case", "group", "dtype", "rank", "predicted_us", "tiles")}
        reason = ready.result()
        with open(begin_file(args), "w") as file:
            file.write(key_of(row))
        try:
            result = {"failed": reason} if reason else rounded(measure(args.folder, row, copier, peers))
        except Wrong as wrong:
            result = {"failed": f"wrong: {wrong}"}
        except Exception as error:           # whatever it is: one case must not end the run
            result = {"failed": f"{type(error).__name__}: {str(error)[:160]}".replace("\n", " ")}
        append(args.results, {**head, **result})
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            os._exit(3)
    for task in built:
        task.cancel()
    sys.stdout.flush()
    os._exit(0)                              # without waiting for compilations that nobody needs


# ---- the parent: restarts the worker until nothing is left

def run_worker(args, stop):
    """One worker's life. Gives the case that it died of, or None."""
    marker = begin_file(args)
    with open(marker, "w"):
        pass
    process = subprocess.Popen([
        sys.executable, os.path.abspath(__file__), args.folder, args.results, "--worker", "--only", args.only,
        "--peers", args.peers, "--jobs", str(args.jobs), "--seconds", str(stop - time.time())])
    while process.poll() is None:
        if time.time() - os.path.getmtime(marker) > HANG_SECONDS:
            process.kill()
        time.sleep(0.1)
    with open(marker) as file:
        case = file.read()
    os.remove(marker)
    return case if process.returncode != 0 else None


def left_to_do(args):
    with open(os.path.join(args.folder, "index.json")) as file:
        rows = json.load(file)["kernels"]
    done = {key_of(row) for row in read_rows(args.results)}
    return [row for row in rows if re.search(args.only, row["case"]) and key_of(row) not in done]


def fastest_peer(row):
    peers = {name: us for name, us in row.get("peers", {}).items() if isinstance(us, float)}
    return min(peers.items(), key=lambda item: item[1], default=(None, None))


def print_table(rows):
    group = None
    for row in sorted(rows, key=lambda row: (row["group"], row["case"], row["rank"])):
        if row["group"] != group:
            group = row["group"]
            print(f"-- {group:44}   predicted        us   of copy   fastest peer")
        name = f"{row['case'][len(group) + 1:]} #{row['rank']}"
        if "failed" in row:
            print(f"{name:47} FAILED {row['failed']}")
            continue
        peer, us = fastest_peer(row)
        beside = f"{us / row['us']:6.2f}x {peer}" if peer else ""
        tile = "; ".join(row["tiles"])[:70] if max(r["rank"] for r in rows) > 1 else ""
        print(f"{name:47} {row['predicted_us']:9.1f} {row['us']:9.1f} {row['of_copy']:9.3f}  {beside} {tile}")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("folder", help="what generate.py wrote")
    parser.add_argument("results", help="a .jsonl that is appended to")
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    parser.add_argument("--peers", default="torch", help="of torch,compile,cudnn")
    parser.add_argument("--seconds", type=float, default=1e6, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="compilations at once")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args, [row for row in left_to_do(args) if "failed" not in row])

    stop = time.time() + args.seconds
    for row in left_to_do(args):
        if "failed" in row:
            append(args.results, {**row, "entry": None})
    while left_to_do(args) and time.time() < stop:
        died = run_worker(args, stop)
        if died:
            row = next((row for row in left_to_do(args) if key_of(row) == died), None)
            if row:
                append(args.results, {key: row[key] for key in ("case", "group", "dtype", "rank", "predicted_us")} |
                       {"failed": "the process died or hung"})
        elif time.time() < stop and left_to_do(args):
            return "the worker ended without a result"
    rows = [row for row in read_rows(args.results) if re.search(args.only, row["case"])]
    print_table(rows)
    failed = sum("failed" in row for row in rows)
    print(f"{len(rows) - failed} right, {failed} failed, {len(left_to_do(args))} left")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
