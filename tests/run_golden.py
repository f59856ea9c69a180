#!/usr/bin/env python3
"""What a stage prints for a program is what it printed before.

tests/golden/<stage>/[<folder>/]<case>.te beside <case>.out, against the frozen device tests/golden/device.yaml.
A .te whose first line is `# rollerc: OPTIONS` is compiled with these. --update rewrites the .out files.
"""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden"
PARAMETERS = re.compile(r"^// <rollerc: parameters>.*?(?=\n}   // namespace)|(?<=_prelude;\n).*?(?=\n// ---- the template ----$)",
                        re.MULTILINE | re.DOTALL)


def run_stage(binary, stage, case):
    first = case.read_text().split("\n", 1)[0]
    extra = shlex.split(first.removeprefix("# rollerc:")) if first.startswith("# rollerc:") else []
    command = [binary, case.relative_to(ROOT), "--device", "tests/golden/device.yaml", "-d", stage, *extra]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        return f"exit code {result.returncode}\n{result.stderr}"
    if stage == "kernel":   # the rest is the template, which has tests of its own
        return "\n".join(PARAMETERS.findall(result.stdout)) + "\n"
    return result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("filter", nargs="?", default="", help="only cases whose path holds this")
    options = parser.parse_args()
    binary = os.path.abspath(options.rollerc)
    passed = failed = 0
    for case in sorted(GOLDEN.glob("*/**/*.te")):
        stage, expected = case.relative_to(GOLDEN).parts[0], case.with_suffix(".out")
        if options.filter not in str(case):
            continue
        seen = run_stage(binary, stage, case)
        if options.update:
            expected.write_text(seen)
        wanted = expected.read_text() if expected.exists() else ""
        passed, failed = passed + (seen == wanted), failed + (seen != wanted)
        sys.stdout.writelines(difflib.unified_diff(wanted.splitlines(True), seen.splitlines(True), str(expected), "now"))
    print(f"golden: {passed} passed, {failed} failed")
    return 1 if failed else 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
