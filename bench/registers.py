"""Registers and resident blocks as the model expects them, beside those that ptxas takes: NVRTC is needed, a GPU is not.

    python3 bench/registers.py build/rollerc --seed 2 --n 40 --devices h100 a100      # a table; with --examples of these, too
    python3 bench/registers.py build/rollerc --seed 2 --n 40 --cache DIR --rows F      # each kernel, too, as a line of JSON

All kept candidates of programs of bench/draw.py are compiled, each different kernel once. Even seeds may be looked at; odd ones are held out,
so that there is no --rows of them. With --cache what was compiled once is read there: another estimate is judged in a minute.

A family's row: kernels; on how many the blocks of an SM are those expected, and of the others on how many there are more, and fewer; on how many
they are those expected where the grid has no more blocks; registers less those expected (a tenth, half, nine tenths are below); how many
spill.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

import draw

BENCH = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(BENCH), "examples")
NO_NVRTC, SKIPPED = 4, 77            # rollerc's exit code, and ours
WARP, GRANULE, SCHEDULERS = 32, 8, 4   # of every GPU that NVRTC compiles for


# ---- compiling

def programs(args):
    """[(name, text)]"""
    found = [(f"{row['set']} {row['name']}", row["text"]) for row in draw.draw(args.seed, args.n)] if args.n else []
    for path in sorted(glob.glob(os.path.join(EXAMPLES, "*.te"))) if args.examples else []:
        with open(path) as file:
            found.append((os.path.basename(path), file.read()))
    return found


def compiled(args, name, text, device):
    """The ranking with what ptxas reports of each candidate; None: NVRTC is not here, or has no such architecture."""
    with tempfile.TemporaryDirectory() as folder:
        command = [args.rollerc, "-", "--device", device, "-q", "--name", "k", "--emit", f"cubin={folder}/k.cubin,json={folder}/k.json"]
        done = subprocess.run(command + (["--cache", args.cache] if args.cache else []), input=text, capture_output=True, text=True)
        if done.returncode == NO_NVRTC:
            return None
        if done.returncode:
            raise SystemExit(f"{name} on {device}: exit {done.returncode}: {done.stderr.strip()}")
        with open(f"{folder}/k.json") as file:
            return json.load(file)


# ---- comparing

def blocks_with(ranking, launch, registers):
    """Blocks on an SM, each scheduler's part of whose registers holds whole warps."""
    warps = -(-launch["config"]["threads"] // WARP)
    part = ranking["device"]["registers_per_sm"] // SCHEDULERS
    room = {**launch["predicted"]["occupancy"]["room_for"],
            "registers": part // (-(-registers // GRANULE) * GRANULE * WARP) * SCHEDULERS // warps}
    return min(room.values())


def row_of(name, device, ranking, launch):
    config, took, expected = launch["config"], launch["compiled"], launch["estimated_registers"]
    busiest = -(-launch["grid"][0] // ranking["device"]["sm_count"])
    blocks = [blocks_with(ranking, launch, registers) for registers in (expected, took["registers"])]
    return {"program": name, "device": device, "family": launch["family"], "variant": config["variant"], "threads": config["threads"],
            "tile": config["tile"], "vectors": config.get("vectors"), "stages": config.get("stages"), "grid": launch["grid"][0],
            "expected": expected, "took": took["registers"], "spills": took["spill_store_bytes"] + took["spill_load_bytes"],
            "blocks_expected": blocks[0], "blocks": blocks[1], "right_in_grid": min(blocks[0], busiest) == min(blocks[1], busiest)}


def rows_of(args, item):
    name, text, device = item
    ranking = compiled(args, name, text, device)
    rows = {}
    for candidate in ranking["candidates"] if ranking else []:
        for launch in candidate.get("prepare", []) + candidate["launches"]:
            if "compiled" in launch:
                row = row_of(name, device, ranking, launch)
                rows[json.dumps(row)] = row
    return list(rows.values())


def percent(values):
    values = list(values)
    return f"{100 * sum(values) / len(values):.0f} %"


def summary(family, rows):
    off = sorted(row["took"] - row["expected"] for row in rows)
    low, middle, high = (off[round(share * (len(off) - 1))] for share in (0.1, 0.5, 0.9))
    return [family, len(rows), percent(row["blocks"] == row["blocks_expected"] for row in rows),
            percent(row["blocks"] > row["blocks_expected"] for row in rows), percent(row["blocks"] < row["blocks_expected"] for row in rows),
            percent(row["right_in_grid"] for row in rows), f"{low:+}, {middle:+}, {high:+}", sum(row["spills"] > 0 for row in rows)]


HEADS = ["", "kernels", "blocks right", "more", "fewer", "right in the grid", "registers off", "spill"]


def print_table(rows):
    families = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for cells in [HEADS, ["---"] * len(HEADS), *(summary(*item) for item in [*sorted(families.items()), ("all", rows)])]:
        print(f"| {' | '.join(map(str, cells))} |")


def arguments(parser):
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--n", type=int, default=0, help="programs that are drawn")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--devices", nargs="+", default=["h100", "a100"])
    parser.add_argument("--cache", help="a folder for machine code")
    parser.add_argument("--jobs", type=int, default=1)


def compiled_rows(args):
    work = [(name, text, device) for name, text in programs(args) for device in args.devices]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return [row for found in pool.map(lambda item: rows_of(args, item), work) for row in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rollerc")
    arguments(parser)
    parser.add_argument("--rows", help="a file for a line each kernel")
    args = parser.parse_args()
    if args.rows and args.n and args.seed % 2:
        raise SystemExit("odd seeds are held out: their kernels are not looked at")
    rows = compiled_rows(args)
    if not rows:
        print("SKIPPED: NVRTC is not here, nothing was compiled")
        return SKIPPED
    print_table(rows)
    if args.rows:
        with open(args.rows, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
