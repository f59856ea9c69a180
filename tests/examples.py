"""Every example compiles for every device; --verify proves it at its own sizes, at an odd one, and at a prime one with warps of 64.
No GPU.

    python3 tests/examples.py build/rollerc
"""
import argparse
import os
import sys
import tempfile

import common

OWN_SECONDS = 20   # of processor time for the proof at an example's own sizes: 10 s on two cores


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollerc")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--only", nargs="*", help="these examples")
    parser.add_argument("--verify-device", default="a100")
    parser.add_argument("--verify-sizes", nargs="*", default=["odd"])
    parser.add_argument("--own-devices", nargs="*", default=["h200"], help="verified at the example's own sizes")
    parser.add_argument("--wide-device", default="mi50", help="with warps of 64; verified at prime sizes")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    sizes = common.example_sizes("ci")
    for example in sizes.values():
        example["own"] = []
    names = args.only or sorted(sizes)
    cases = [(name, device) for name in names for device in common.DEVICES]
    cases += [(name, args.verify_device, size) for name in names for size in args.verify_sizes]
    cases += [(name, args.wide_device, "prime") for name in names]
    cases += [(name, device, "own") for name in names for device in args.own_devices]

    with tempfile.TemporaryDirectory() as folder:
        def check(case):
            name, device, *size = case
            output = os.path.join(folder, ".".join(case) + ".cu")
            command = [args.rollerc, common.example_path(name), "--device", device, "-o", output]
            for key in size:
                command += ["--verify", *sizes[name][key]]
            return common.run_within(OWN_SECONDS, command) or (None if os.path.getsize(output) else "empty output")

        return common.check_all(cases, check, args.jobs, args.verbose)


if __name__ == "__main__":
    sys.exit(main())
