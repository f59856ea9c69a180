#!/usr/bin/env python3
"""What two builds of rollerc choose, side by side: for changes to the model and for those that must change nothing.

    python3 tests/compare_builds.py OLD NEW                                  # first choices on an H200
    python3 tests/compare_builds.py OLD NEW --devices all --only softmax     # on every device, of some programs
    python3 tests/compare_builds.py OLD NEW --texts 10 --only matmul         # the emitted text of 10 candidates, too
    python3 tests/compare_builds.py OLD NEW --texts 10 --ptx                 # or the same machine: what NVRTC makes of it

The programs are the examples and tests/regressions at their own sizes and every case of bench/cases.json. Listed is each one
whose first choice changed: family, variant, block, shared and register tile, predicted us. With --texts K also each whose K
candidates, found by their id, are not the same text but for the provenance: comments, which hold what the model predicts.
With --ptx a text may be another one where NVRTC makes the same PTX of it, but for the numbers of registers and labels, or
the same machine code. Exit code 1 if anything is listed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cases   # noqa: E402
import common   # noqa: E402
import nvcc_examples   # noqa: E402

COMMENTS = re.compile(r"^//.*\n", re.MULTILINE)
UNUSED = re.compile(r"//.*|\.reg [^;]*;|^\.(global|const) .* _Z\w+( = -?\w+)?;\n", re.MULTILINE)   # and constants of the text
SHARED = re.compile(r"\b(?:_ZN\d+\w+_prelude14)?rollerc_shared(?:E\b)?")   # in whichever namespace it lies
TRIES = 6
NUMBERED = re.compile(r"%[a-z]+\d+|\$L__BB\d+_\d+|\$str\d*")   # registers, labels


def programs(only):
    """(name, text, defines, options) of all."""
    for path in sorted([*ROOT.glob("examples/*.te"), *ROOT.glob("tests/regressions/*.te")]):
        yield str(path.relative_to(ROOT)), path.read_text(), [], []
    for case in cases.load():
        yield f"bench: {case.name}", case.text, case.defines, case.options


def run(binary, program, device, options):
    name, text, defines, own = program
    command = [binary, "-", "--device", device, "--name", "k", "-q", *own, *options]
    for define in defines:
        command += ["-D", define]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()}"


def ranking(binary, program, device, keep):
    """Of each kept candidate id, what it is in a line and its predicted us; of a failure the message alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ranking.json"
        said = run(binary, program, device, ["--top-k", str(keep), "--json", str(path), "-o", os.devnull])
        if not path.exists():
            return [("", said, 0)]
        candidates = json.loads(path.read_text())["candidates"]
    return [(candidate["id"], describe(candidate), candidate["predicted"]["time_us"]) for candidate in candidates]


def describe(candidate):
    launches = []
    for launch in candidate["launches"]:
        tile = launch["config"]["tile"]
        sizes = [",".join(str(size) for size in tile.get(level, {}).values()) for level in ("shared", "register")]
        launches.append(f"{launch['family']} {launch['config'].get('variant', '')} {launch['block'][0]}thr "
                        f"[{'] ['.join(sizes)}]")
    return " + ".join(launches)


def texts(binary, program, device, keep):
    """The candidates' files without comments, by id."""
    found = {}
    for rank, (identity, _, _) in enumerate(ranking(binary, program, device, keep), 1):
        text = run(binary, program, device, ["--top-k", str(keep), "--candidate", str(rank), "-o", "-"])
        found[identity] = COMMENTS.sub("", text)
    return found


def normal_ptx(ptx):
    names = {}
    text = SHARED.sub("rollerc_shared", UNUSED.sub("", ptx.decode().rstrip("\0")))
    return NUMBERED.sub(lambda found: names.setdefault(found.group(), f"{found.group()[:2]}{len(names)}"), text)


def code_sections(cubin):
    """What an ELF file of 64 bits has in its .text sections."""
    table, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    found = {}
    for name, _, _, _, start, length in sections:
        at = sections[names][4] + name
        title = cubin[at:cubin.index(b"\0", at)]
        if title.startswith(b".text"):
            found[title] = cubin[start:start + length]
    return found


def same_ptx(nvrtc, arch, old, new):
    """Of one text NVRTC makes now this, now that: loads of shared memory that are joined, or not. What it makes of both within
    some tries is the same."""
    made = set(), set()
    for _ in range(TRIES):
        for seen, text in zip(made, (old, new)):
            ptx, _, reason = nvrtc.compile_text(text, arch)
            seen.add(reason and f"{text} {reason}" or normal_ptx(ptx))
        if made[0] & made[1]:
            return True
    return False


def same_machine(nvrtc, device, old, new):
    """Whether NVRTC makes the same of both texts: PTX but for the numbers of registers and labels, or machine code."""
    arch = common.DEVICES[device]
    if not arch:
        return False
    if same_ptx(nvrtc, arch.replace("sm", "compute"), old, new):   # PTX alone, in a tenth of the time
        return True
    cubins = [nvrtc.compile_text(text, arch)[1] for text in (old, new)]
    return None not in cubins and code_sections(cubins[0]) == code_sections(cubins[1])


def compare(options, program, device):
    """What differs, in lines."""
    old = ranking(options.old, program, device, options.keep)
    new = ranking(options.new, program, device, options.keep)
    lines = []
    if old[0][1] != new[0][1]:
        lines.append(f"{device}: {program[0]}\n    old {old[0][1]}   {old[0][2]:.2f} us"
                     f"\n    new {new[0][1]}   {new[0][2]:.2f} us")
    if options.texts:
        before = texts(options.old, program, device, options.texts)
        after = texts(options.new, program, device, options.texts)
        other = sum(before[identity] != after[identity] and
                    not (options.nvrtc and same_machine(options.nvrtc, device, before[identity], after[identity]))
                    for identity in before.keys() & after.keys())
        if before.keys() != after.keys() or other:
            lines.append(f"{device}: {program[0]}: of {len(before)} candidates {len(before.keys() & after.keys())} "
                         f"are still kept, {other} of them as another text")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=os.path.abspath)
    parser.add_argument("new", type=os.path.abspath)
    parser.add_argument("--devices", nargs="*", default=["h200"], help="names, or `all`")
    parser.add_argument("--only", default="", help="a regular expression that a program's name holds")
    parser.add_argument("--texts", type=int, default=0, metavar="K", help="compare the text of K candidates, too")
    parser.add_argument("--ptx", action="store_true", help="texts of the same PTX or machine code are the same; needs NVRTC")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.nvrtc = nvcc_examples.find_nvrtc(shutil.which("nvcc")) if options.ptx else None
    if options.ptx and not options.nvrtc:
        parser.error("--ptx: there is no NVRTC here")
    options.keep = max(10, options.texts)
    known = sorted(path.stem for path in ROOT.glob("devices/*.yaml"))
    devices = known if options.devices == ["all"] else options.devices
    if set(devices) - set(known):
        parser.error(f"--devices takes names of {', '.join(known)}, apart from each other")   # two builds fail alike
    work = [(program, device) for device in devices for program in programs(options.only)
            if re.search(options.only, program[0])]
    changed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for lines in pool.map(lambda item: compare(options, *item), work):
            changed += bool(lines)
            for line in lines:
                print(line, flush=True)
    print(f"compare_builds: {len(work)} programs, {changed} changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
