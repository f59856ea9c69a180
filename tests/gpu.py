#!/usr/bin/env python3
"""gpu.py --rollerc BINARY --device NAME: every check that needs a GPU, one after the other.

    conformance   each intrinsic of the prelude against tests/conformance
    functions     how far each function of the language is from the right value
    examples      each example at its own, an odd and a prime size, and small ones of several candidates, against
                  PyTorch in float64
    proof         all candidates of each program in tests/regressions, whole, with every kind of inputs, and 50 calls in graphs
                  that must give the same bits
    sanitizer     compute-sanitizer's four tools on the small ones
    masked        v that is NaN or infinite where columns are masked
    profile       --profile: all candidates right, repeatable times, planted bugs found, interrupts
    python        python/rollerc.py with PyTorch and CuPy
    models        small models, prepared, on a stream and as a graph: of the folder that gpu_models.py --make wrote

Needs nvcc, NVRTC, PyTorch and compute-sanitizer. A line for each step last; exit code 1 if one failed.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.abspath(__file__))


def script(name, *arguments):
    return [sys.executable, os.path.join(TESTS, f"{name}.py"), *arguments]


def steps(options, folder):
    """{step: commands}"""
    large, small, conformance = (os.path.join(folder, name) for name in ("large", "small", "conformance"))
    arch = ["--arch", options.arch]

    def generate(to, *more):
        return script("gpu_generate", options.rollerc, to, "--device", options.device, "--jobs", str(os.cpu_count()), *more)

    sources = [os.path.join(TESTS, name) for name in ("gpu_conformance.cu", "conformance/kernel.cu", "conformance/teams.cu")]
    generate_small = generate(small, "--sizes", "ci", "--candidates", "1", "2", "10")
    return {
        "conformance": [["nvcc", f"-arch={options.arch}", *sources, "-o", conformance], [conformance]],
        "functions": [script("gpu_functions", *arch)],
        "examples": [generate(large), generate_small,
                     script("gpu_examples", large, *arch), script("gpu_examples", small, *arch)],
        "proof": [[os.path.join(os.path.dirname(options.rollerc), "tests/gpu_programs"), options.device, "10", "50",
                   *sorted(glob.glob(os.path.join(TESTS, "regressions/*.te")))]],
        "sanitizer": [generate_small, script("gpu_sanitizer", small, *arch)],
        "masked": [script("gpu_masked", "--rollerc", options.rollerc, "--device", options.device)],
        "profile": [script("gpu_profile", "--rollerc", options.rollerc, "--device", options.device)],
        "python": [script("gpu_python", "--rollerc", options.rollerc, "--device", options.device)],
        "models": [script("gpu_models", options.models, "--rollerc", options.rollerc, "--device", options.device, *arch)]
                  if options.models else [],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--arch", default="native", help="of nvcc")
    parser.add_argument("--models", help="the folder of models; without it they are left out")
    parser.add_argument("--only", nargs="*", help="these steps")
    options = parser.parse_args()
    options.rollerc = os.path.abspath(options.rollerc)
    summary = []
    with tempfile.TemporaryDirectory() as folder:
        for name, commands in steps(options, folder).items():
            if not commands or options.only and name not in options.only:
                continue
            start = time.monotonic()
            print(f"---- {name}", flush=True)
            right = all(subprocess.run(command).returncode == 0 for command in commands)
            summary.append((name, right, time.monotonic() - start))
    for name, right, seconds in summary:
        print(f"{'ok  ' if right else 'FAIL'} {name}: {seconds:.0f} s")
    return 0 if summary and all(right for _, right, _ in summary) else 1


if __name__ == "__main__":
    sys.exit(main())
