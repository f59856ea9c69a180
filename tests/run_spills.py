#!/usr/bin/env python3
"""The model's first choices of products spill no register: NVRTC is needed, a GPU is not.

    python3 tests/run_spills.py --rollerc build/rollerc --all     # every case, some minutes
    python3 tests/run_spills.py --rollerc build/rollerc --kept --devices h200 a100    # all candidates of the examples: a table

The cases are the products of bench/cases.json and the attention of examples/, for the devices that users compile for beside the one
they are measured on.
What is compiled is what `-o k.cubin` writes: PTX, and machine code by the options of rollerc's own.

--kept compares what the rules of families expect of registers with what ptxas reports, for every kept candidate: on how many
kernels the blocks that an SM holds are as expected, the ratio of registers to those expected (a tenth, half and nine tenths of them
are below), how many spill. It fails where more than one in a hundred do.
"""
import argparse
import json
import os
import re
import sys
import tempfile

import common

sys.path.insert(0, os.path.join(os.path.dirname(common.TESTS), "bench"))
import cases  # noqa: E402

GROUPS = ("exact product", "small exact product", "product", "skinny")
DEVICES = ("a100", "h100")
A_FEW = 8
ATTENTION = (("attention", "D=64"), ("attention", "D=128"), ("attention", "T=1000,D=128"), ("attention", "D=256"),
             ("attention_causal", "D=64"), ("attention_causal", "D=128"), ("attention_decoding", "D=128"))
SKIPPED = 77
NO_NVRTC = 4   # rollerc's exit code
MOST_SPILLING = 0.01   # of kept candidates: 25 of 2,546 on 2026-11-28 (tuning-log 121)


def attention():
    for example, sizes in ATTENTION:
        with open(os.path.join(common.EXAMPLES, example + ".te")) as file:
            yield cases.Case(f"{example} {sizes}", "attention", "f16", file.read(), sizes.split(","), [], {})


def spilled(path):
    """None, or which launches spill. Only the chosen candidate is compiled; one that spills is not the first any more."""
    with open(path) as file:
        candidates = json.load(file)["candidates"]
    said = []
    for launch in (launch for candidate in candidates for launch in candidate["launches"] if "compiled" in launch):
        compiled, config = launch["compiled"], launch["config"]
        if compiled["spill_store_bytes"] + compiled["spill_load_bytes"] > 0:
            said.append(f"{launch['family']} {config.get('variant', '')} {config['tile']}, {launch['block'][0]} threads: "
                        f"{compiled['spill_store_bytes']} bytes beside {compiled['registers']} registers; about "
                        f"{launch['estimated_registers']} were expected")
    return "; ".join(said) or None


def launches_of(rollerc, name, device, folder):
    """Every launch of every kept candidate of an example, compiled; None: NVRTC has no such architecture."""
    path = os.path.join(folder, f"{name}.{device}")
    reason = common.run([rollerc, common.example_path(name), "--device", device, "-q", "--name", "k", "-o", path + ".cubin",
                         "--json", path + ".json"])
    if reason and reason.startswith(f"exit {NO_NVRTC}:"):
        return None
    assert reason is None, reason
    with open(path + ".json") as file:
        ranking = json.load(file)
    per_sm = ranking["device"]["registers_per_sm"]
    return [(per_sm, launch) for candidate in ranking["candidates"] for launch in candidate.get("prepare", []) + candidate["launches"]
            if "compiled" in launch]


def blocks_with(per_sm, launch, registers):
    """Blocks on an SM: registers come in eights to whole warps."""
    warps = -(-launch["config"]["threads"] // 32)
    room = {**launch["predicted"]["occupancy"]["room_for"], "registers": per_sm // (32 * warps * (-(-registers // 8) * 8))}
    return min(room.values())


def compare_kept(args):
    """The table of --kept."""
    families, spilling = {}, []
    names = [name for name in sorted(common.example_sizes("ci")) if re.search(args.only, name)]
    work = [(name, device) for name in names for device in args.devices]
    with tempfile.TemporaryDirectory() as folder:
        for (name, device), found in zip(work, common.in_parallel(args.jobs, lambda item: launches_of(args.rollerc, *item, folder), work)):
            for per_sm, launch in found or []:
                compiled, expected = launch["compiled"], launch["estimated_registers"]
                right = blocks_with(per_sm, launch, compiled["registers"]) == blocks_with(per_sm, launch, expected)
                spills = compiled["spill_store_bytes"] + compiled["spill_load_bytes"] > 0
                families.setdefault(launch["family"], []).append((right, compiled["registers"] / expected, spills))
                if spills:
                    spilling.append(f"{name} {device}: {launch['family']} {launch['config']['variant']}, {launch['block'][0]} threads: "
                                    f"{compiled['registers']} registers, {expected} expected, {compiled['spill_store_bytes']} bytes")
    everything = [row for rows in families.values() for row in rows]
    if not everything:
        print("SKIPPED: NVRTC is not here, nothing was compiled", flush=True)
        return SKIPPED
    for family, rows in [*sorted(families.items()), ("all", everything)]:
        ratios = sorted(ratio for _, ratio, _ in rows)
        low, middle, high = (ratios[int(share * (len(ratios) - 1))] for share in (0.1, 0.5, 0.9))
        print(f"{family:16} {len(rows):5} kernels, {100 * sum(right for right, _, _ in rows) / len(rows):5.1f} % with the blocks expected, "
              f"registers x {low:.2f} {middle:.2f} {high:.2f}, {sum(spills for _, _, spills in rows)} spill")
    print("\n".join(spilling))
    return 1 if len(spilling) > MOST_SPILLING * len(everything) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--devices", nargs="*", default=DEVICES)
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    parser.add_argument("--all", action="store_true", help=f"not only one of {A_FEW}")
    parser.add_argument("--kept", action="store_true", help="registers of all kept candidates of the examples, beside those expected")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if args.kept:
        return compare_kept(args)
    listed = [case for case in cases.load(args.only) if case.group in GROUPS]
    work = [(case.name, device, case) for case in listed for device in args.devices]
    work = work if args.all or args.only else work[::A_FEW + 1]   # an odd number: both devices
    work += [(case.name, device, case) for case in attention() if re.search(args.only, case.name) for device in args.devices]

    with tempfile.TemporaryDirectory() as folder:
        def check(item):
            name, device, case = item
            stem = os.path.join(folder, f"{name} {device}".replace(" ", "_").replace("^", ""))
            with open(stem + ".te", "w") as file:
                file.write(case.text)
            defines = [word for define in case.defines for word in ("-D", define)]
            reason = common.run([args.rollerc, stem + ".te", "--device", device, "-q", "--name", "k", "--candidate", "1",
                                 "-o", stem + ".cubin", "--json", stem + ".json", *defines, *case.options])
            if reason and reason.startswith(f"exit {NO_NVRTC}:") and "NVRTC" in reason:
                return SKIPPED
            return reason or spilled(stem + ".json")

        if check(work[0]) == SKIPPED:
            print("SKIPPED: NVRTC is not here, nothing was compiled", flush=True)
            return SKIPPED
        tally = common.Tally(args.verbose)
        for item, reason in zip(work, common.in_parallel(args.jobs, check, work)):
            tally.add(" ".join(item[:2]), reason)
        return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
