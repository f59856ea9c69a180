#!/usr/bin/env python3
"""Rows of src/model/calibration.c that are counts of instructions, beside the machine code. NVRTC is needed, a GPU is not.

    python3 tests/run_instructions.py --rollerc build/rollerc

What is marked `counted` there is counted here, and nothing else: the kernels below are compiled for sm_90a and the instructions of
their loops divided by the elements, outputs or rows of a trip. A row and the mean of its kernels differ by 15 % at most.
"""
import argparse
import collections
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile

import common

DEVICE, NO_NVRTC, SKIPPED, MOST_OFF = "h200", 4, 77, 0.15
SOURCE = os.path.join(os.path.dirname(common.TESTS), "src/model/calibration.c")
INSTRUCTION = 16                     # bytes, of Volta and later GPUs
OPCODES = {0x023: "FFMA", 0x020: "FMUL", 0x021: "FADD", 0x181: "LDG", 0x186: "STG", 0x184: "LDS", 0x188: "STS", 0x1ae: "LDGSTS", 0x147: "BRA",
           0x118: "NOP"}             # the lower nine of twelve bits: the others say where operands lie
STALL = 41                           # of the upper word: four bits, cycles to the warp's next instruction
Kernel = collections.namedtuple("Kernel", "tile code loops stalls")


# ---- machine code

def sections(cubin):
    """{name: bytes} of an ELF file of 64 bits."""
    table, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3a)
    heads = [struct.unpack_from("<IIQQQQ", cubin, table + size * i) for i in range(count)]
    text = heads[names][4]
    return {cubin[text + head[0]:cubin.index(b"\0", text + head[0])].decode(): cubin[head[4]:head[4] + head[5]] for head in heads}


def branch(text, at):
    """How many instructions behind the next one a BRA goes; bits 32 and 33 say for whom."""
    low, high = struct.unpack_from("<Ii", text, at)
    return ((high & ~3) * 256 + (low >> 16 & 0xff) * 4) // INSTRUCTION


def decoded(text):
    """Its instructions' names; the loops: first and last instruction of each, from branches that go back; and stalls."""
    code, loops, stalls = [], [], []
    for at in range(0, len(text), INSTRUCTION):
        word, upper = struct.unpack_from("<QQ", text, at)
        stalls.append(upper >> STALL & 15)
        code.append(OPCODES.get(word & 0x1ff, "other"))
        distance = branch(text, at)
        if code[-1] == "BRA" and distance < -2:   # the last one of a kernel goes to itself
            loops.append((at // INSTRUCTION + 1 + distance, at // INSTRUCTION))
    while code and code[-1] in ("NOP", "BRA"):
        code.pop()
    return code, loops, stalls


def ranking(rollerc, text):
    command = [rollerc, "-", "--device", DEVICE, "-q", "--name", "k", "--top-k", "100"]
    done = subprocess.run([*command, "-o", os.devnull, "--emit", "json=/dev/stdout"], input=text, capture_output=True, text=True, check=True)
    return command, json.loads(done.stdout)["candidates"]


def kernels(rollerc, text, family, variant, most=1):
    """The first ones that are a single launch of this kind, each of another register tile."""
    command, candidates = ranking(rollerc, text)
    found = {}
    for candidate in candidates:
        launch = candidate["launches"][0]
        tile = launch["config"]["tile"]["register"]
        if (launch["family"], launch["config"].get("variant")) != (family, variant) or len(candidate["launches"]) > 1:
            continue
        if str(tile) in found or len(found) == most:
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*command, "--candidate", str(candidate["model_rank"]), "--emit", f"cubin={folder}/k.cubin"], input=text,
                                  capture_output=True, text=True)
            if done.returncode == NO_NVRTC:
                print("SKIPPED: NVRTC is not here, nothing was compiled", flush=True)
                sys.exit(SKIPPED)
            with open(f"{folder}/k.cubin", "rb") as file:
                parts = sections(file.read())
        found[str(tile)] = Kernel(tile, *decoded(next(parts[name] for name in parts if name.startswith(".text."))))
    assert len(found) == most, f"{family} {variant}: {len(found)} of {most} such kernels are kept for\n{text}"
    return list(found.values())


def loop_of(kernel, name, at_least=1):
    """The counts of the loop that has most of this instruction, and all."""
    counted = [collections.Counter(kernel.code[first:last + 1]) for first, last in kernel.loops]
    best = max(counted, key=lambda counts: counts[name])
    assert best[name] >= at_least, f"no loop has {at_least} {name}"
    return best, sum(best.values())


# ---- programs

def depthwise(pixels, taps, dtype="f32"):
    pad = taps // 2
    return (f"input x[64, 384, {pixels}, {pixels}] : {dtype}\ninput w[384, {taps}, {taps}] : {dtype}\n"
            f"y[n, c, i:{pixels}, j:{pixels}] = sum[r, s](pad(x[n, c, i + r - {pad}, j + s - {pad}], 0) * w[c, r, s])\noutput y : {dtype}\n")


def softmax(columns, dtype="f16"):
    return (f"input x[4096, {columns}] : {dtype}\nm[r] = max[c](x[r, c])\ne[r, c] = exp(x[r, c] - m[r])\ns[r] = sum[c](e[r, c])\n"
            f"y[r, c:{columns}] = e[r, c] / s[r]\noutput y : {dtype}\n")


def masked_softmax(columns):
    """Of scores and a mask that many rows share."""
    return (f"input x[8, 512, {columns}] : f16\ninput w[8, {columns}] : f16\nt[b, r, c] = x[b, r, c] + w[b, c]\n"
            "m[b, r] = max[c](t[b, r, c])\ne[b, r, c] = exp(t[b, r, c] - m[b, r])\ns[b, r] = sum[c](e[b, r, c])\n"
            "y[b, r, c] = e[b, r, c] / s[b, r]\noutput y : f16\n")


def product(size):
    return (f"input a[{size}, {size}] : f16\ninput b[{size}, {size}] : f16\ny[i, j] = sum[k](a[i, k] * b[k, j])\noutput y : f16\n")


# ---- the rows

def cycles_of_finding(rollerc):
    """Of a lone warp, from one instruction to the next, in steps whose elements lie anywhere."""
    for size in (1001, 1501, 2047):
        kernel, = kernels(rollerc, product(size), "gemm", "two stages")
        first, last = max(kernel.loops, key=lambda loop: kernel.code[loop[0]:loop[1]].count("LDG"))
        yield statistics.mean(kernel.stalls[first:last + 1])


def copies_of_depthwise(rollerc):
    """To find a vector of an image and its place, beside the copy itself."""
    for taps in (9, 13, 31):
        counts, every = loop_of(kernels(rollerc, depthwise(32, taps), "depthwise", "lines")[0], "LDGSTS")
        yield every / counts["LDGSTS"] - 1


def outputs_of_depthwise(rollerc):
    for taps in (9, 13, 31):
        counts, every = loop_of(kernels(rollerc, depthwise(32, taps), "depthwise", "lines")[0], "STG")
        yield every / counts["STG"]


def steps_of_strips(rollerc):
    """For a row of the input, beside products and loads."""
    for taps in (3, 5, 7):
        kernel, = kernels(rollerc, depthwise(32, taps), "strip", "lines")
        counts, every = loop_of(kernel, "FFMA", 100)
        rows = counts["FFMA"] / (kernel.tile["along"] * taps * taps)
        yield (every - counts["FFMA"] - counts["LDG"]) / rows


def staged_windows(rollerc):
    """Of two kernels, one of which has more rows of outputs: that kernel, what a row takes beside products, and elements it reads."""
    for taps in (3, 5):
        more, less = sorted(kernels(rollerc, depthwise(32, taps), "window", "staged", 2), key=lambda kernel: -kernel.tile["down"])
        rows = more.tile["down"] - less.tile["down"]
        yield taps, more, (more.code.index("STG") - less.code.index("STG")) / rows - taps * taps, taps


def outputs_of_windows(rollerc):
    """What a row more takes beside products and loads, and its copy from shared memory in vectors of four: the branches that store
    single elements are left out, which end with a store."""
    for taps, kernel, row, reads in staged_windows(rollerc):
        code = kernel.code[kernel.code.index("STG"):]
        ends = [-1] + [i for i, name in enumerate(code) if name == "BRA"]
        singly = [code[begin + 1:end + 1] for begin, end in zip(ends, ends[1:]) if code[end - 1] == "STG"]
        vectors = code.count("STG") - sum(branch.count("STG") for branch in singly)
        yield row - reads + (len(code) - sum(map(len, singly))) / vectors / 4


def elements_of_windows(rollerc):
    """Loads of single elements where the model counts accesses of 16 bytes, and what copies of 16 bytes take beside themselves."""
    for taps, kernel, row, reads in staged_windows(rollerc):
        copies = [i for i, name in enumerate(kernel.code) if name == "LDGSTS"]
        copied = kernel.tile["down"] / ((kernel.tile["down"] + taps - 1) * taps)   # of the elements that a thread reads
        yield 0.75 + ((copies[-1] - copies[0]) / (len(copies) - 1) - 1) / 4 * copied


def windows_by_height(rollerc):
    """Of windows of each size: taps along a row, and (rows of outputs, all instructions beside products and loads of taps)."""
    for taps in (3, 5, 9):
        pair = kernels(rollerc, depthwise(32, taps), "window", "staged", 2)
        yield taps, [(kernel.tile["down"], len(kernel.code) - (kernel.tile["down"] + 1) * taps * taps) for kernel in pair]


def elements_of_filters(rollerc):
    """What a row more takes for each element more that it reads, beside that of an output and where the model counts accesses of 16
    bytes: a load, a zero for what lies beside the image, its test."""
    output = statistics.mean(outputs_of_windows(rollerc))
    for taps, ((rows, all_of), (more, all_more)) in windows_by_height(rollerc):
        yield ((all_more - all_of) / (more - rows) - output) / taps - 0.25


def setups_of_filters(rollerc):
    """And what is left, by the means of these."""
    each, output = (statistics.mean(count(rollerc)) for count in (elements_of_filters, outputs_of_windows))
    for taps, pair in windows_by_height(rollerc):
        for rows, all_of in pair:
            yield all_of - (rows + taps - 1) * taps * (each + 0.25) - rows * output


def copies_of_rows(rollerc):
    """What a row that is copied ahead has more than one that is loaded."""
    for text in (softmax(8192), softmax(16384), masked_softmax(8192), masked_softmax(16384)):
        ahead, block = (kernels(rollerc, text, "rowwise", variant)[0] for variant in ("ahead", "block"))
        assert ahead.tile == block.tile
        yield (len(ahead.code) - len(block.code)) / ahead.tile["column"]


ROWS = {"finding_cycles": cycles_of_finding, "depthwise_copy_instructions": copies_of_depthwise, "depthwise.output_instructions": outputs_of_depthwise,
        "strip_step_instructions": steps_of_strips, "window.output_instructions": outputs_of_windows,
        "window.element_instructions": elements_of_windows, "filters.element_instructions": elements_of_filters,
        "filters.output_instructions": outputs_of_windows, "filters.setup_instructions": setups_of_filters,
        "row_copy_instructions": copies_of_rows}


def marked():
    """{row: value} of what is marked as counted."""
    found = {}
    with open(SOURCE) as file:
        for line in file:
            code, _, comment = line.partition("//")
            if "counted" in comment:
                outer = re.match(r"\s*\.(\w+) = \{", code)
                for name, value in re.findall(r"\.(\w+) = ([\d.]+)", code):
                    found[f"{outer[1]}.{name}" if outer else name] = float(value)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    rollerc, said, bad = parser.parse_args().rollerc, marked(), []
    if set(said) != set(ROWS):
        bad.append(f"counted there and not here, or here and not there: {sorted(set(said) ^ set(ROWS))}")
    for row in sorted(set(said) & set(ROWS)):
        counts = list(ROWS[row](rollerc))
        mean = statistics.mean(counts)
        print(f"{row:32} {said[row]:6g}, counted {mean:5.1f}: {', '.join(f'{count:.1f}' for count in counts)}", flush=True)
        if abs(said[row] / mean - 1) > MOST_OFF:
            bad.append(f"{row} says {said[row]:g}, the machine code {mean:.1f}")
    print("\n".join(bad) or f"{len(said)} rows are what the machine code has")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
