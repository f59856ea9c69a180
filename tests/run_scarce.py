#!/usr/bin/env python3
"""Devices that lack something: few registers, little shared memory without asking, launches of few threads or blocks, memory,
threads of a warp.

Every program compiles on every device whose file is accepted, and what is made for it is right: the proof knows the same limits.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Broken once: what the only kernel for them was said to hold in registers, one-bit outputs beside others, no device
# with 64 of them had, and the second no device at all.
PROGRAMS = {
    "bits_beside_a_product": """
        input x[33, 40] : f32
        input w[40, 50] : f32
        p[i, j] = prod[k:3](relu(x[i, k])) * sum[k](x[i, k] * w[k, j])
        m[i, j] = p[i, j] > 0
        output p  output m""",
    "bits_beside_eight_outputs": """
        input x[33, 40] : f32
        p[i] = sum[k](x[i, k]) * prod[k:3](relu(x[i, k]))
        m[i] = p[i] > 0
        """ + "".join(f"q{q}[i] = p[i] + {q}\n" for q in range(1, 8)) + "output p  output m" +
        "".join(f"  output q{q}" for q in range(1, 8)),
}

# 32 threads side by side have columns of few positions, which are more than a warp of 16.
COLUMNS = "input x[5, 1000] : f32\nm[c] = max[p](x[p, c])\ny[p, c] = x[p, c] - m[c]\noutput y"

# More than a launch has threads for, on an MI50 from 2^32 on. Only some blocks of them are run.
LARGE = {
    "windows": "input x[4400000000] : u8\ny[i:4399999998] = max[k:3](x[i + k])\noutput y",
    "bits": "input x[600000000] : u8\ny[i:600000000] = max[k:3](pad(x[i + k - 1], 0))\nb[i] = y[i] > 3\noutput y\noutput b",
    "points": "input x[1048576, 1048573] : u8\ny[i, j] = relu(x[i, j])\noutput y : u8",
    # Broken once: the points behind 65534 blocks of 4096 took four blocks more.
    "points_behind_whole_blocks": "input x[268430340] : f32\ny[i] = relu(x[i])\noutput y",
    "bits_of_2_to_the_40": "input x[1099511627776] : u8\ny[i:1099511627776] = max[k:3](pad(x[i + k], 0))\nb[i] = y[i] > 3\n"
                           "output y : u8\noutput b",
    "permutation": "input x[1048576, 1048576] : u8\ny[i, j] = x[j, i] / 3\noutput y : u8",
    "columns": "input x[7, 900000000] : f16\ny[j] = sum[i](x[i, j])\noutput y",
}

# A filter's gradient, whose threads have the sums of all taps in registers. Broken once: where none had so many, threads were
# divided by a block of none.
GRADIENT = """
    input x[2, 20, 20, 32] : f32
    input d[2, 20, 20, 32] : f32
    w[c, k:3, l:3] = sum[n, i, j](d[n, i, j, c] * pad(x[n, i + k - 1, j + l - 1, c], 0))
    output w"""

# A product whose factors are worth copies that the tensor cores can take in pieces.
PACKED = "input a[8192, 4097] : f16\ninput b[4097, 8191] : f16\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c : f16"


def device(folder, base, name, changes):
    """The file of a device like `base`, with other numbers: {"registers.per_thread": 64}; a key that it lacks begins its group."""
    text = (ROOT / "devices" / f"{base}.yaml").read_text().replace(f"name: {base}", f"name: {name}", 1)
    for path, value in changes.items():
        group, key = path.split(".")
        before, heading, after = re.split(rf"^({group}:.*\n)", text, maxsplit=1, flags=re.MULTILINE)
        after, found = re.subn(rf"\A((?:  .*\n)*?  {key}: *)[\d.]+", rf"\g<1>{value}", after)
        text = before + heading + ("" if found else f"  {key}: {value}\n") + after
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


class Cases:
    def __init__(self, rollerc, folder):
        self.rollerc, self.folder = os.path.abspath(rollerc), folder
        for name, text in {**PROGRAMS, **LARGE, "packed": PACKED, "few_positions": COLUMNS, "gradient": GRADIENT}.items():
            (folder / f"{name}.te").write_text(text)

    def compile(self, program, file, *more):
        """None, or why not."""
        return common.run([self.rollerc, "-q", program, "--device", file, "-o", "/dev/null", "--name", "k", *more])

    def program(self, name):
        return str(self.folder / f"{name}.te")

    def few_registers(self):
        for base, warp in ("h200", 32), ("mi50", 64):
            file = device(self.folder, base, f"{base}_of_one_scheduler", {
                "registers.per_thread": 64, "registers.per_sm": 64 * warp, "compute.schedulers_per_sm": 1})
            yield ("gradient", pathlib.Path(file).stem), lambda file=file: self.compile(self.program("gradient"), file, "--verify")
        files = [device(self.folder, base, f"{base}_{count}", {"registers.per_thread": count})
                 for base in ("a100", "h200", "mi50") for count in (16, 40, 64, 95)]
        for path, file in itertools.product(sorted((ROOT / "examples").glob("*.te")), files):
            yield (path.stem, pathlib.Path(file).stem), lambda path=path, file=file: self.compile(path, file)
        for name, file in itertools.product(PROGRAMS, [*files, "a100", "k80"]):
            yield (name, pathlib.Path(file).stem), lambda name=name, file=file: self.compile(self.program(name), file, "--verify")

    def little_shared(self):
        for base, kib in (("a100", 16), ("v100", 4), ("h200", 8)):
            file = device(self.folder, base, f"{base}_{kib}_kib", {"shared.bytes_per_block": kib << 10})
            for path in ("permute_021", "depthwise_3x3", "matmul", "reduce_columns"):
                yield (path, pathlib.Path(file).stem), lambda path=path, file=file: self.compile(common.example_path(path), file, "--verify")

    def narrow_warps(self):
        for threads in (8, 16, 64):
            file = device(self.folder, "a100", f"warps_of_{threads}", {"threads.warp_size": threads})
            for name in ("few_positions", *PROGRAMS):
                yield (name, pathlib.Path(file).stem), lambda name=name, file=file: self.compile(self.program(name), file, "--verify")

    def check_large(self, name, file, threads, blocks):
        """No candidate is launched with more, and those that would be are counted; the first one is proven."""
        ranking = self.folder / f"{name}_{pathlib.Path(file).stem}.json"
        failure = self.compile(self.program(name), file, "--verify", "--json", ranking)
        if failure:
            return failure
        found = json.loads(ranking.read_text())
        for candidate in found["candidates"]:
            for launch in candidate["launches"]:
                grid, block = launch["grid"], launch["block"]
                if grid[0] > blocks or grid[0] * block[0] > threads or grid[1:] != [1, 1]:
                    return f"candidate {candidate['model_rank']} is launched with {grid} x {block}"
        wanted = (threads < 2**26 and not name.startswith("bits")) or (name, file) == ("windows", "mi50")
        return f"none is pruned for its grid: {found['summary']}" if wanted and not found["summary"]["pruned"]["grid"] else None

    def check_memory(self, file, workspace, warns, *options):
        """The workspace of the first candidate, and whether a warning names the device's memory."""
        done = subprocess.run([self.rollerc, self.program("packed"), "--device", file, *options, "-o", "-"], capture_output=True, text=True)
        made = json.loads(done.stdout.split("\n", 1)[0].removeprefix("//rollerc: "))["workspace"] if done.returncode == 0 else None
        warned = re.search(r"warning: the tensors take 0.3 GB and the workspace 0.1 GB, and '.*' has \d.\d GB of memory", done.stderr)
        problem = (made > 0) != workspace or bool(warned) != warns or (not warns and done.stderr)
        return f"workspace {made}; {done.stderr}" if problem else None

    def little_memory(self):
        """Copies of the factors make it twice as fast; without room for them it is made without."""
        tensors = 2 * (8192 * 4097 + 4097 * 8191 + 8192 * 8191)
        for name, room, workspace, warns in (("roomy", 150 << 20, True, False), ("tight", 1 << 20, False, False),
                                             ("less", -1 << 20, True, True)):
            file = device(self.folder, "a100", name, {"dram.bytes": tensors + room})
            for options in ((), ("--top-k=1",)):
                yield ("packed", name, *options), lambda file=file, wanted=(workspace, warns, *options): self.check_memory(file, *wanted)

    def without_tf32(self):
        """What is asked for and not there is told; what is there, not."""
        for name in ("v100", "mi50", "k80", "a100", "h200"):
            yield ("tf32", name), lambda name=name: self.check_tf32(name)

    def check_tf32(self, name):
        done = subprocess.run([self.rollerc, common.example_path("matmul"), "--device", name, "--math=tf32", "-o", "-"],
                              capture_output=True, text=True)
        warned = f"--math=tf32 changes nothing: '{name}' has no tensor cores for TF32" in done.stderr
        return None if done.returncode == 0 and warned == (name not in ("a100", "h200")) else done.stderr or "no warning"

    def large_launches(self):
        limits = [("mi50", 2**32 - 1, 2**31 - 1), ("h200", 2**62, 2**31 - 1),
                  (device(self.folder, "a100", "few_threads", {"threads.max_per_launch": 2**24}), 2**24, 2**31 - 1),
                  (device(self.folder, "a100", "few_blocks", {"threads.max_blocks_per_launch": 65535}), 2**62, 65535)]
        for name, limit in itertools.product(LARGE, limits):
            yield (name, pathlib.Path(limit[0]).stem), lambda name=name, limit=limit: self.check_large(name, *limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--only", default="", help="cases whose title holds this")
    args = parser.parse_args()
    tally = common.Tally()
    with tempfile.TemporaryDirectory() as folder:
        all = Cases(args.rollerc, pathlib.Path(folder))
        chosen = [case for case in itertools.chain(all.few_registers(), all.little_shared(), all.large_launches(),
                                                      all.little_memory(), all.without_tf32(), all.narrow_warps())
                  if args.only in " ".join(case[0])]
        for case, reason in zip(chosen, common.in_parallel(args.jobs, lambda case: case[1](), chosen)):
            tally.add(" on ".join(case[0]), reason)
        return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
