#!/usr/bin/env python3
"""Registers as the model expects them, beside those that ptxas takes: NVRTC is needed, a GPU is not.

    python3 tests/run_registers.py --rollerc build/rollerc                            # some programs, a minute
    python3 tests/run_registers.py --rollerc build/rollerc --examples --n 40          # half an hour

An SM holds as many blocks of a candidate as expected on at least 60 % of them (tuning-log 133: 72 %), and at most one in fifty spills.
`bench/registers.py` prints the same table and says what its columns are.
"""
import argparse
import os
import sys

import common

sys.path.insert(0, os.path.join(os.path.dirname(common.TESTS), "bench"))
import registers  # noqa: E402

LEAST_RIGHT, MOST_SPILLING, SKIPPED = 0.6, 0.02, 77


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    registers.arguments(parser)
    parser.set_defaults(n=20, devices=["h100"], jobs=2)
    rows = registers.compiled_rows(parser.parse_args())
    if not rows:
        print("SKIPPED: NVRTC is not here, nothing was compiled", flush=True)
        return SKIPPED
    registers.print_table(rows)
    right = sum(row["blocks"] == row["blocks_expected"] for row in rows) / len(rows)
    spill = sum(row["spills"] > 0 for row in rows) / len(rows)
    if right < LEAST_RIGHT or spill > MOST_SPILLING:
        print(f"FAILED: {100 * right:.0f} % with the blocks expected (at least {100 * LEAST_RIGHT:.0f}), {100 * spill:.1f} % spill "
              f"(at most {100 * MOST_SPILLING:.0f})")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
