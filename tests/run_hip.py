#!/usr/bin/env python3
"""What is emitted for mi50 compiles to a gfx906 code object that holds its kernels, with Debian's clang 15.

Packages: clang-15 lld-15 rocm-device-libs libamdhip64-dev (about 250 MB installed). Without them: exit code 77.
The examples are those of all families; --all takes every one.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

import common

# One for each family and kind of template code: vectors, shuffles, bits, half types, shared tiles, workspace.
SOME = ["relu", "bn_add_relu_mask", "bn_backward_mask", "bn_add_relu_mask_nhwc", "group_norm", "mask_compare",
        "permute_210", "softmax", "reduce_columns", "reduce_all", "max_pool", "depthwise_3x3", "matmul",
        "matmul_bias_gelu", "matmul_i8", "conv2d_3x3", "argmax", "quantise_i8"]


def tools():
    """The compiler's command and the tool that lists symbols; None if something is missing."""
    clang = shutil.which("clang-15")
    libraries = glob.glob("/usr/lib/*/amdgcn/bitcode") + glob.glob("/opt/rocm*/amdgcn/bitcode")
    headers = os.path.exists("/usr/include/hip/hip_runtime.h")
    readelf = shutil.which("readelf")
    for missing, what in ((not clang, "clang-15"), (not shutil.which("ld.lld-15"), "lld-15"), (not readelf, "readelf"),
                          (not libraries, "rocm-device-libs"), (not headers, "libamdhip64-dev")):
        if missing:
            print(f"SKIPPED: there is no {what} here, so nothing was compiled for an AMD GPU")
            return None
    return [clang, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx906",
            "--rocm-path=/usr", f"--rocm-device-lib-path={libraries[0]}", "-O3", "-Wall", "-Wno-unused"], readelf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true", help="every example")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    found = tools()
    if not found:
        return 77
    compiler, readelf = found
    sizes = common.example_sizes("ci")
    started = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        def check(case):
            source, binary = (os.path.join(folder, case[0] + end) for end in (".cu", ".hsaco"))
            reason = (common.run([args.rollerc, common.example_path(case[0]), "--device", "mi50", *sizes[case[0]]["odd"],
                                  "-o", source]) or common.run([*compiler, source, "-o", binary]))
            if reason:
                return reason
            listing = subprocess.run([readelf, "-hsW", binary], capture_output=True, text=True).stdout
            if "gfx906" not in listing and "0x52f" not in listing:
                return "no gfx906 code object"
            lost = [launch["kernel"] for launch in common.read_metadata(source)["launches"]
                    if f" {launch['kernel']}.kd\n" not in listing]
            return f"kernels are missing: {lost}" if lost else None

        cases = [(name,) for name in (sorted(sizes) if args.all else SOME)]
        code = common.check_all(cases, check, args.jobs, args.verbose)
    print(f"compiled in {time.monotonic() - started:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
