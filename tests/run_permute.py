#!/usr/bin/env python3
"""Permutations are right for every order of the axes, odd and short sides, all element types and tiles.

Each case is compiled at a size the interpreter runs whole, and its first candidates are verified, those of `permute` if
there are any.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# shape, permutation, input type, output type, body over x (the permuted element), b and z
CASES = [
    ((96, 70), (1, 0), "f32", "f32", "x"),
    ((65, 33), (1, 0), "f16", "f16", "x"),
    ((1000, 3), (1, 0), "f32", "f32", "x"),
    ((3, 1000), (1, 0), "i8", "i8", "x"),
    ((3, 2000), (1, 0), "i8", "i8", "x"),
    ((50, 3, 64), (0, 2, 1), "u8", "u8", "x"),
    ((2, 3, 640), (0, 2, 1), "f16", "f16", "x"),
    ((64, 3, 40), (0, 2, 1), "f16", "f16", "x"),
    ((5, 40, 64), (0, 2, 1), "f16", "f16", "x"),
    ((4, 67, 31), (0, 2, 1), "u8", "u8", "x"),
    ((3, 101, 123), (0, 2, 1), "i8", "i8", "x"),
    ((3, 102, 123), (0, 2, 1), "f16", "f16", "x"),
    ((7, 9, 251, 31), (3, 1, 0, 2), "i8", "i8", "x"),
    ((2, 160, 144), (0, 2, 1), "i8", "i8", "x"),
    ((40, 7, 48), (2, 1, 0), "bf16", "bf16", "x"),
    ((3, 50, 5), (2, 1, 0), "i32", "i32", "x"),
    ((5, 6, 7, 33), (0, 3, 2, 1), "f32", "f32", "x"),
    ((4, 32, 9, 20), (0, 2, 3, 1), "f64", "f64", "x"),
    ((4, 9, 20, 32), (0, 3, 1, 2), "f32", "f32", "x"),
    ((7, 9, 11, 31), (3, 1, 0, 2), "f32", "f32", "x"),
    ((4, 6, 8, 10, 12), (4, 2, 0, 3, 1), "f16", "f16", "x"),
    ((3, 2, 3, 2, 3, 2, 3, 2), (7, 5, 3, 1, 6, 4, 2, 0), "f32", "f32", "x"),
    ((5, 40, 72), (0, 2, 1), "f16", "f32", "x * 0.125"),
    ((5, 40, 72), (0, 2, 1), "f32", "f16", "x + b * z"),
    ((5, 33, 70), (2, 0, 1), "f32", "bf16", "relu(x) + b - z"),
    ((40, 64), (1, 0), "i8", "f32", "x * 0.5 + z"),
    ((3, 70, 5, 40), (3, 1, 0, 2), "f32", "f16", "relu(x) - z"),
    ((64, 6), (1, 0), "f16", "f16", "x"),
    ((6, 640), (1, 0), "i8", "i8", "x"),
    ((40, 50, 48), (1, 0, 2), "i8", "i8", "x"),
    ((9, 40, 35, 8), (0, 2, 1, 3), "f16", "f16", "x"),
    ((9, 40, 35, 6), (0, 2, 1, 3), "u8", "u8", "x"),
    ((40, 33, 10), (1, 0, 2), "bf16", "bf16", "x"),
    ((2, 601, 261), (0, 2, 1), "i8", "i8", "x"),
    ((2, 301, 150), (0, 2, 1), "f16", "f16", "x"),
    ((2, 133, 131), (0, 2, 1), "f32", "f32", "x"),
    ((2, 301, 160), (0, 2, 1), "f16", "f16", "x"),
    ((301, 128), (1, 0), "u8", "u8", "x"),
    ((128, 133), (1, 0), "bf16", "bf16", "x"),
    ((4096, 3), (1, 0), "i8", "i8", "x"),
    ((3, 1001), (1, 0), "f16", "f16", "x"),
    ((40, 9, 7), (0, 2, 1), "u8", "u8", "x"),
    ((7, 9, 11, 31), (3, 1, 0, 2), "f16", "f16", "x"),
    ((5, 33, 71), (0, 2, 1), "f16", "f32", "x * 0.125 + z"),
    ((5, 40, 71), (0, 2, 1), "i8", "f16", "relu(x) + b"),
    ((3, 37, 40), (0, 2, 1), "f16", "f16", "pad(x, 0)"),
    ((5, 3, 101), (0, 2, 1), "bf16", "bf16", "pad(x, 0)"),
    ((2, 37, 7, 7), (0, 2, 3, 1), "i8", "i8", "pad(x, 0)"),
]
PIECE = 8   # with `pad` rows of y are whole pieces
MOST_TILES = 3   # kinds of tiles that are proven for each case


def text_of(shape, order, read, written, body):
    """The .te file: y's axes are x's in the given order; b goes with y's last axis, z with all."""
    names = [f"i{axis}" for axis in range(len(shape))]
    target = [names[axis] for axis in order]
    extents = [str(shape[axis]) for axis in order]
    lines = [f"input x[{', '.join(map(str, shape))}] : {read}"]
    if "b" in body:
        lines.append(f"input b[{extents[-1]}] : {read}")
    if "z" in body:
        lines.append(f"input z[{', '.join(extents)}] : {read}")
    places = {"x": names, "b": target[-1:], "z": target}
    for word, place in places.items():
        body = re.sub(rf"\b{word}\b", f"{word}[{', '.join(place)}]", body)
    if "pad" in body:
        target[-1] += f":{(shape[order[-1]] + PIECE - 1) // PIECE * PIECE}"
    lines += [f"y[{', '.join(target)}] = {body}",
              f"output y : {written}"]
    return "\n".join(lines) + "\n"


def check(rollerc, folder, case):
    """None or what is wrong."""
    source, ranking = folder / "case.te", folder / "ranking.json"
    source.write_text(text_of(*case))
    base = [rollerc, source, "--device", "h200", "-o", folder / "case.cu"]
    result = subprocess.run([*base, "--json", ranking], capture_output=True, text=True)
    if result.returncode:
        return result.stderr
    kept = json.loads(ranking.read_text())["candidates"]
    families = {entry["launches"][0]["family"] for entry in kept}
    family = "permute" if "permute" in families else "elementwise"
    if family == "elementwise" and case[1][-1] != len(case[0]) - 1:
        return "no permute candidate"
    ranks = [entry["rank"] for entry in kept if entry["launches"][0]["family"] == family][:MOST_TILES]
    for rank in ranks:
        result = subprocess.run([*base, "--verify", "--candidate", str(rank)], capture_output=True, text=True)
        if result.returncode:
            return f"candidate {rank}: {result.stderr}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rollerc", required=True)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            reason = check(options.rollerc, pathlib.Path(folder), case)
            if reason:
                failed += 1
                print(f"FAILED {case}: {reason}")
    print(f"permute: {len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
