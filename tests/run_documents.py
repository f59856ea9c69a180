#!/usr/bin/env python3
"""The programs in the documents: each block ```te of doc/*.md and README.md compiles and is proven, or is refused where it says so.

A block with the mark `# error: text` on a line must be refused on that line with that text, like tests/errors/*.te.
"""
import argparse
import os
import pathlib
import re
import sys
import tempfile

import common
import run_errors

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```te\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JOBS = 2


def blocks():
    """(where it stands, its text) of every program."""
    for document in [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]:
        text = document.read_text()
        for block in BLOCK.finditer(text):
            yield f"{document.name}:{text.count(chr(10), 0, block.start()) + 2}", block[1]


def check(binary, text):
    """None, or what is wrong with what the compiler says of the program."""
    with tempfile.TemporaryDirectory() as name:
        file, output = pathlib.Path(name, "program.te"), pathlib.Path(name, "output")
        file.write_text(text)
        output.mkdir()
        if run_errors.MARK in text:
            return "; ".join(run_errors.check_file(binary, file, output)) or None
        return common.run([binary, file, "--device", "a100", "--verify", "-o", output / "program.cu"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    args = parser.parse_args()
    programs = dict(blocks())
    return common.check_all([(place,) for place in programs], lambda case: check(args.rollerc, programs[case[0]]), JOBS)


if __name__ == "__main__":
    sys.exit(main())
