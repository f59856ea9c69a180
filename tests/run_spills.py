#!/usr/bin/env python3
"""The model's first choices of products spill no register: NVRTC is needed, a GPU is not.

    python3 tests/run_spills.py --rollerc build/rollerc --all     # every case, some minutes

The cases are the products of bench/cases.json and the attention of examples/, for the devices that users compile for beside the one
they are measured on.
What is compiled is what `-o k.cubin` writes: PTX, and machine code by the options of rollerc's own.
All kept candidates, and how many registers were expected of them: run_registers.py.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--devices", nargs="*", default=DEVICES)
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    parser.add_argument("--all", action="store_true", help=f"not only one of {A_FEW}")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
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
