"""Writes the kernels of the case list and an index of them, for bench/run.py on a GPU machine. Needs no GPU.

    python3 bench/generate.py build/rollerc bench-cases                       # the model's first choice of each
    python3 bench/generate.py build/rollerc bench-cases --only 'softmax .* f16' --candidates 10
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

import cases


def compile_case(args, number, case, rank):
    """One file; a line of the index."""
    stem = os.path.join(args.folder, f"c{number:03}_{rank:02}")
    with open(stem + ".te", "w") as file:
        file.write(case.text)
    command = [args.rollerc, stem + ".te", "--device", args.device, "--name", "k", "-q", "--top-k", str(max(10, rank)),
               "--candidate", str(rank), "-o", stem + ".cu", "--json", stem + ".json"]
    for define in case.defines:
        command += ["-D", define]
    done = subprocess.run(command + case.options + args.options, capture_output=True, text=True)
    row = {"case": case.name, "group": case.group, "dtype": case.dtype, "rank": rank,
           "file": os.path.basename(stem) + ".cu", "params": case.defines,
           "entry": {key: value for key, value in case.entry.items() if key not in ("sizes", "small", "source")}}
    if done.returncode != 0:
        return {**row, "failed": f"rollerc: exit {done.returncode}: {done.stderr.strip()[:200]}"}
    with open(stem + ".json") as file:
        ranking = json.load(file)
    candidate = ranking["candidates"][rank - 1]
    tiles = [f"{launch['family']} {launch['config'].get('variant', '')} {launch['block'][0]}thr "
             f"{launch['config']['tile'].get('register', {})}" for launch in candidate["launches"]]
    os.remove(stem + ".json")
    os.remove(stem + ".te")
    return {**row, "bytes": ranking["workload"]["min_dram_bytes"], "tiles": tiles,
            "predicted_us": round(candidate["predicted"]["time_us"], 2)}


def commit():
    done = subprocess.run(["git", "-C", cases.ROOT, "describe", "--always", "--dirty", "--abbrev=12"],
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def write_kernels(args, listed):
    """The kernels of these cases and their index; 1 if one failed."""
    os.makedirs(args.folder, exist_ok=True)
    work = [(number, case, rank) for number, case in enumerate(listed) for rank in range(1, args.candidates + 1)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda item: compile_case(args, *item), work))
    # A program may have fewer candidates than asked for.
    rows = [row for row in rows if row["rank"] == 1 or "kept" not in row.get("failed", "")]
    with open(os.path.join(args.folder, "index.json"), "w") as file:
        json.dump({"commit": commit(), "device": args.device, "kernels": rows}, file, indent=1)
    failed = [row for row in rows if "failed" in row]
    for row in failed:
        print(f"FAIL {row['case']} candidate {row['rank']}: {row['failed']}")
    print(f"{len(rows)} kernels of {len({row['case'] for row in rows})} cases in {args.folder}, {len(failed)} failed")
    return 1 if failed else 0


def add_arguments(parser):
    parser.add_argument("rollerc")
    parser.add_argument("folder")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--candidates", type=int, default=1, help="the first K of the model's order")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--options", nargs="*", default=[], help="further options for rollerc")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    add_arguments(parser)
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    args = parser.parse_args()
    return write_kernels(args, cases.load(args.only))


if __name__ == "__main__":
    sys.exit(main())
