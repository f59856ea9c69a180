"""On a GPU machine: compiles the kernels of bench/generate.py, checks them against PyTorch in float64 and times them.

    python3 bench/run.py bench-cases results.jsonl --only softmax            # ours, torch and the copies
    python3 bench/run.py bench-cases results.jsonl --peers torch,layout,compile,cudnn --seconds 500   # no case after that

Results are appended, and what is there already is not run again, so a run that was cut off goes on. A kernel that
does not compile, is wrong, faults or hangs is a line with its reason; the others go on in a fresh process.
Needs nvcc and PyTorch.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import peer_times

BENCH = os.path.dirname(os.path.abspath(__file__))
HANG_SECONDS = 150
FREE_BYTES = 70e9                    # more than any case takes
CLEARING_SECONDS = 0.5               # of all memory: an H200 cleared 430 GB/s, while copies took 1.1 times as long
HEAD = ["case", "group", "dtype", "params", "rank", "predicted_us", "tiles"]     # of a result line, from the index


def key_of(row):
    return f"{row['case']} {row['rank']}"


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return [row for row in rows if "case" in row]


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
    command = ["nvcc", "-O3", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", source, "-o", library + ".new"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return "nvcc: " + " | ".join((done.stdout + done.stderr).strip().split("\n")[:3])[:300]
    os.rename(library + ".new", library)
    return None


def library_of(folder, row):
    return os.path.join(folder, "lib", row["file"][:-3] + ".so")


# ---- the worker: everything that touches the GPU

def measure(args, row, copier):
    """What a result line says about one kernel."""
    import torch
    import peer_times
    import problem
    import timing
    torch.manual_seed(time.time_ns() % 2**31)
    case = problem.Problem(args.folder, row)
    error, calls = problem.check(case, library_of(args.folder, row))
    copies = copier.us(case.bytes)
    peers = peer_times.capture(case, args.peers) if row["rank"] == 1 else {}
    rivals = [name for name, calls_of_peer in peers.items() if isinstance(calls_of_peer, timing.Captured)]
    us, *times = timing.times_us([timing.Captured(calls), *(peers[name] for name in rivals)])
    result = {"error": error, "us": us, "bytes": case.bytes, "gbps": case.bytes / us / 1e3,
              "of_copy": min(copies.values()) / us, "copies": copies}
    if row["rank"] == 1:
        result["peers"] = {**peers, **dict(zip(rivals, times))}
    return result


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def about(folder):
    """Where, when and with what."""
    import torch
    with open(os.path.join(folder, "index.json")) as file:
        index = json.load(file)
    versions = {"torch": torch.__version__, "cuDNN": torch.backends.cudnn.version(),
                "CUDA of torch": torch.version.cuda,
                "nvcc": (re.findall(r"release ([\d.]+)", output_of("nvcc", "--version")) or ["?"])[0]}
    try:
        import triton
        versions["triton"] = triton.__version__
    except ImportError:
        pass
    driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0]   # of several GPUs
    return {"device": torch.cuda.get_device_name(), "driver": driver, **versions, "commit": index["commit"],
            "compiled for": index["device"], "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def prepare(args):
    """PyTorch, and the copies."""
    import torch
    import timing
    torch.backends.cudnn.benchmark = True
    append(args.results, {"about": about(args.folder)})
    library = os.path.join(args.folder, "lib", "copy.so")
    reason = nvcc(os.path.join(BENCH, "copy.cu"), library)
    if reason:
        sys.exit(reason)
    return timing.Copier(library)


def give_back_memory():
    """Where little is left; what was freed is cleared by the GPU behind our back, so that nothing may be timed then."""
    import torch
    if torch.cuda.mem_get_info()[0] < FREE_BYTES:
        torch.cuda.empty_cache()
        time.sleep(CLEARING_SECONDS)


def worker(args, rows):
    """Measures the rows that are left; exits with 3 where the GPU's context is lost."""
    import torch
    copier = prepare(args)
    stop = time.time() + args.seconds
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    built = [pool.submit(nvcc, os.path.join(args.folder, row["file"]), library_of(args.folder, row)) for row in rows]
    for row, ready in zip(rows, built):
        if time.time() > stop:
            break
        head = {key: row[key] for key in HEAD}
        reason = ready.result()
        with open(begin_file(args), "w") as file:
            file.write(key_of(row))
        try:
            result = {"failed": reason} if reason else rounded(measure(args, row, copier))
        except Exception as error:           # whatever it is: one case must not end the run
            result = {"failed": f"{type(error).__name__}: {str(error)[:160]}".replace("\n", " ")}
        append(args.results, {**head, **result})
        try:
            torch.cuda.synchronize()
            give_back_memory()
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
        "--peers", ",".join(args.peers), "--jobs", str(args.jobs), "--seconds", str(stop - time.time())])
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
    parser.add_argument("--peers", default="torch", help="of torch,layout,compile,cudnn")
    parser.add_argument("--warm-seconds", type=float, default=200, help="at most, for torch.compile's cache")
    parser.add_argument("--seconds", type=float, default=1e6, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="compilations at once")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.peers = [peer for peer in args.peers.split(",") if peer]
    os.makedirs(os.path.join(args.folder, "lib"), exist_ok=True)
    if "compile" in args.peers:
        peer_times.prepare_cache(args.folder)
    if args.worker:
        worker(args, [row for row in left_to_do(args) if "failed" not in row])

    stop = time.time() + args.seconds
    for row in left_to_do(args):
        if "failed" in row:
            append(args.results, {key: row[key] for key in HEAD + ["failed"] if key in row})
    if "compile" in args.peers:
        rows = [row for row in left_to_do(args) if row["rank"] == 1 and peer_times.compiles(row["entry"])]
        peer_times.warm(args.folder, rows, args.jobs, args.warm_seconds)
    while (before := left_to_do(args)) and time.time() < stop:
        died = run_worker(args, stop)
        left = left_to_do(args)
        for row in left:
            if key_of(row) == died:
                append(args.results, {key: row[key] for key in HEAD} | {"failed": "the process died or hung"})
        if len(left) == len(before) and not died and time.time() < stop:
            return "the worker ended without a result"
    rows = [row for row in read_rows(args.results) if re.search(args.only, row["case"])]
    print_table(rows)
    failed = sum("failed" in row for row in rows)
    print(f"{len(rows) - failed} right, {failed} failed, {len(left_to_do(args))} left")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
