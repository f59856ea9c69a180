"""Writes the .cu of every example at its own, an odd and a prime size, for tests/gpu_examples.py. Needs no GPU.

    python3 tests/gpu_generate.py build/rollerc gpu-cases            # then carry the folder to the GPU
"""
import argparse
import os
import sys

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollerc")
    parser.add_argument("folder")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="these examples")
    parser.add_argument("--sizes", choices=["gpu", "ci"], default="gpu", help="large ones, or those of CI")
    parser.add_argument("--candidates", nargs="*", default=["1"], help="ranks")
    args = parser.parse_args()

    os.makedirs(args.folder, exist_ok=True)
    sizes = common.example_sizes(args.sizes)
    cases = [(name, size, rank) for name in args.only or sorted(sizes) for size in sizes[name] for rank in args.candidates]

    def generate(case):
        name, size, rank = case
        output = os.path.join(args.folder, f"{name}.{size}.{rank}.cu")
        reason = common.run([args.rollerc, common.example_path(name), "--device", args.device,
                             "--name", name, "--candidate", rank, "-o", output, *sizes[name][size]])
        return None if reason and rank != "1" and "there is no candidate" in reason else reason   # fewer were kept

    return common.check_all(cases, generate, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
