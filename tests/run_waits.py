#!/usr/bin/env python3
"""Machine code of early launches: no load may stand before the wait for earlier launches. NVRTC is needed, a GPU is not.

    python3 tests/run_waits.py --rollerc build/rollerc                          # PROGRAMS
    python3 tests/run_waits.py --rollerc build/rollerc --all tests/regressions/*.te

ptxas moves read-only loads (ld.global.nc, LDG.CONSTANT) above griddepcontrol.wait (ACQBULK), but not above the exit that
hold_loads() puts behind it. What a thread may reach before it waits has no loads, but for copies of what no launch of the program writes, which stand
there on purpose: either all asynchronous, or by registers. Of candidates whose launches are of the same kinds one is looked at, or --all.
"""
import argparse
import collections
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

import common
from run_instructions import INSTRUCTION, NO_NVRTC, SKIPPED, branch, sections

OPCODES = {0x02e: "wait", 0x181: "LDG", 0x1ae: "LDGSTS", 0x1b4: "UTMALDG", 0x145: "BSSY", 0x141: "BSYNC", 0x147: "BRA", 0x14d: "EXIT"}
COPIES = {"LDGSTS", "UTMALDG"}
LOADS = COPIES | {"LDG", "LDG.CONSTANT"}
DEVICE, LAST = "h200", "const WaitsAtItsEnd"
PROGRAMS = ("factors_behind_the_wait.te", "products_behind_the_wait.te", "scalars_behind_the_wait.te")
WAITS = rf"wait_for_earlier\(\);|{LAST}"


def decoded(text):
    """[(name, is it predicated, place it may go to)]"""
    code, joins = [], {}
    for at in range(0, len(text), INSTRUCTION):
        low, high = struct.unpack_from("<QQ", text, at)
        name = OPCODES.get(low & 0x1ff, "")
        if name == "LDG" and high >> 15 & 1:
            name = "LDG.CONSTANT"
        target, here = None, at // INSTRUCTION
        if name == "BRA":
            target = here + 1 + branch(text, at)
        elif name == "BSSY":
            joins[low >> 16 & 0xff] = here + 1 + struct.unpack_from("<i", text, at + 4)[0] // INSTRUCTION
        elif name == "BSYNC":
            target = joins[low >> 16 & 0xff]
        code.append((name, low >> 12 & 0xf != 7, target))
    return code


def before_wait(code):
    """Counts of loads that a thread may reach before it waits."""
    seen, todo = set(), [0]
    while todo:
        at = todo.pop()
        if at in seen or at >= len(code) or code[at][0] == "wait":
            continue
        seen.add(at)
        name, predicated, target = code[at]
        if target is not None:
            todo.append(target)
        if predicated or name not in ("BRA", "BSYNC", "EXIT"):
            todo.append(at + 1)
    return collections.Counter(code[at][0] for at in seen if code[at][0] in LOADS)


# ---- what they may be

def buffer_of(arg):
    return ("arg", arg["arg"]) if "arg" in arg else next(iter(arg))


def is_input(parameter):
    return parameter.startswith("const ")


def faults(source, cubin, counts):
    """What is wrong with the launches of a file; counts what was looked at."""
    launches = json.loads(source.split("\n", 1)[0].split(" ", 1)[1])["launches"]
    heads = [re.search(rf"\b{launch['kernel']}\(([^)]*)\)\n\{{", source) for launch in launches]
    parameters = [[text.strip() for text in head[1].split(",") if "*" in text] for head in heads]   # of the arguments, in their order
    written = {buffer_of(arg) for launch, texts in zip(launches, parameters) for text, arg in zip(texts, launch["args"]) if not is_input(text)}
    parts = sections(cubin)
    for number, (launch, head) in enumerate(zip(launches, heads)):
        waits_at = re.compile(WAITS).search(source, head.end())
        if not launch["early"] or waits_at and waits_at[0] == LAST:   # which has nothing to do with those before it
            continue
        code = decoded(parts[f".text.{launch['kernel']}"])
        copies = number > 0 and any(is_input(text) and buffer_of(arg) not in written for text, arg in zip(parameters[number], launch["args"]))
        loads = before_wait(code)
        allowed = set() if not copies else COPIES if COPIES & set(loads) else {"LDG.CONSTANT"}
        counts["launches"] += 1
        counts["copy"] += bool(loads)
        if "wait" not in (name for name, _, _ in code):
            yield f"{launch['kernel']} does not wait"
        if set(loads) - allowed:
            yield f"{launch['kernel']} has {dict(loads)} before it waits"


def kinds(candidate):
    return tuple((launch["family"], launch["config"].get("variant")) for launch in candidate["launches"])


def check(rollerc, path, seen, counts):
    """Faults of the candidates of a program; of kinds that were seen none is looked at, unless `seen` is None."""
    command = [rollerc, path, "--device", DEVICE, "-q", "--name", "k"]
    with tempfile.TemporaryDirectory() as folder:
        def read(name):
            with open(f"{folder}/{name}", "rb") as file:
                return file.read()

        subprocess.run([*command, "-o", os.devnull, "--emit", f"json={folder}/k.json"], check=True)
        for candidate in json.loads(read("k.json"))["candidates"]:
            rank, chain = str(candidate["model_rank"]), kinds(candidate)
            if seen is not None and chain in seen:
                continue
            done = subprocess.run([*command, "--candidate", rank, "--emit", f"cu={folder}/k.cu,cubin={folder}/k.cubin"],
                                  capture_output=True, text=True)
            if done.returncode == NO_NVRTC:
                print("SKIPPED: NVRTC is not here, nothing was compiled", flush=True)
                sys.exit(SKIPPED)
            assert done.returncode == 0, done.stderr
            for what in faults(read("k.cu").decode(), read("k.cubin"), counts):
                yield f"{path}, candidate {rank}: {what}"
            if seen is not None:
                seen.add(chain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("programs", nargs="*")
    args, counts, bad = parser.parse_args(), collections.Counter(), 0
    seen = None if args.all else set()
    for path in args.programs or [os.path.join(common.TESTS, "regressions", name) for name in PROGRAMS]:
        for fault in check(args.rollerc, path, seen, counts):
            print(f"FAIL  {fault}", flush=True)
            bad += 1
    print(f"{counts['launches']} launches, of which {counts['copy']} copy before they wait; {bad} faults")
    return 1 if bad or not args.programs and not counts["copy"] else 0


if __name__ == "__main__":
    sys.exit(main())
