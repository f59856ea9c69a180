#!/usr/bin/env python3
"""Runs emitted kernels under compute-sanitizer with its four tools. Needs a GPU, nvcc and compute-sanitizer.

    python3 tests/gpu_generate.py build/rollerc gpu-small --sizes ci      # here: small, odd and prime sizes
    python3 tests/gpu_sanitizer.py gpu-small --arch sm_90                 # on the machine with the GPU
"""
import argparse
import concurrent.futures
import glob
import math
import os
import subprocess
import sys
import tempfile

import common

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i8": 8, "u8": 8, "b1": 1}


def tensor_bytes(arg):
    elements = math.prod(arg["shape"])
    return -(-elements // 32) * 4 if arg["dtype"] == "b1" else elements * BITS[arg["dtype"]] // 8


def build(source, arch, folder):
    """A line of gpu_launch's list."""
    library = os.path.join(folder, os.path.basename(source)[:-3] + ".so")
    subprocess.run(["nvcc", f"-arch={arch}", "-lineinfo", "-shared", "-Xcompiler", "-fPIC", "-o", library, source], check=True)
    metadata = common.read_metadata(source)
    inputs = sum(arg["role"] == "input" for arg in metadata["args"])
    sizes = [tensor_bytes(arg) for arg in metadata["args"]]
    return " ".join(map(str, [library, metadata["name"], metadata["workspace"], inputs, *sizes]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--arch", default="native")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        harness = os.path.join(folder, "gpu_launch")
        source = os.path.join(common.TESTS, "gpu_launch.cu")
        subprocess.run(["nvcc", f"-arch={args.arch}", "-o", harness, source, "-ldl"], check=True)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            lines = list(pool.map(lambda file: build(file, args.arch, folder), sorted(glob.glob(f"{args.folder}/*.cu"))))
        listing = os.path.join(folder, "list")
        with open(listing, "w") as file:
            file.write("\n".join(lines) + "\n")
        for tool in TOOLS:
            run = subprocess.run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", harness, listing],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            clean = run.returncode == 0 and "all launched" in run.stdout
            failed += not clean
            print(f"{tool}: {len(lines)} kernels, {'clean' if clean else 'NOT CLEAN'}", flush=True)
            if not clean:
                print("\n".join(run.stdout.splitlines()[:40]))
    print(f"{len(TOOLS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
