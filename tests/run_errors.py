#!/usr/bin/env python3
"""Every wrong input is refused where it is wrong.

tests/errors/*.te, *.yaml   the expectation stands on each line that must be reported:
                                C[m, n] = A[m, q]   # error: unknown index 'q'
tests/errors/manifests/     the same for `rollerc batch`
tests/errors/usage.txt      arguments => exit code => what the message must hold
tests/limits/*.te           just inside a limit: accepted
"""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "# error:"


def run(binary, arguments, folder):
    return subprocess.run([binary, *arguments], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def expectations(file):
    """(line number, text) of each marked line; a mark alone on its last line stands for the end of the file."""
    for number, line in enumerate(file.read_bytes().decode("latin-1").split("\n"), 1):
        if MARK in line:
            yield number, line.split(MARK, 1)[1].strip()


def problems_of_refusal(result, code, folder, wanted):
    stderr = result.stderr.decode("latin-1")
    if result.returncode != code:
        yield f"exit code {result.returncode}, expected {code}"
    for text in wanted:
        if text not in stderr:
            yield f"no '{text}' in: {stderr.strip()}"
    if result.stdout:
        yield "something was printed to stdout"
    if list(folder.iterdir()):
        yield f"left behind: {[path.name for path in folder.iterdir()]}"


def check_file(binary, file, folder):
    expected = list(expectations(file))
    if not expected:
        return ["the file says nowhere what is wrong with it (# error: ...)"]
    if file.parent.name == "manifests":
        arguments = ["batch", file]
    elif file.suffix == ".yaml":
        arguments = [ROOT / "examples/matmul.te", "--device", file]
    else:
        arguments = [file, "--device", "a100"]
    result = run(binary, arguments, folder)
    # The excerpt below a message shows the line with what is expected of it: only the message itself counts.
    said = [line for line in result.stderr.decode("latin-1").split("\n") if line.startswith(f"{file}:")]
    problems = list(problems_of_refusal(result, 1, folder, ["error:"]))
    for line, text in expected:
        if not any(message.startswith(f"{file}:{line}:") and text in message for message in said):
            problems.append(f"no '{text}' in line {line} of: {result.stderr.decode('latin-1').strip()}")
    if len(said) != len(expected):
        problems.append(f"{len(said)} errors, {len(expected)} expected: {result.stderr.decode('latin-1')}")
    return problems


def check_usage(binary, line, folder):
    arguments, code, text = (part.strip() for part in line.split("=>"))
    arguments = shlex.split(arguments.replace("$ROOT", str(ROOT)))
    return list(problems_of_refusal(run(binary, arguments, folder), int(code), folder, [text]))


def check_limit(binary, file, folder):
    result = run(binary, [file, "--device", "a100", "-d", "op"], folder)
    return [] if result.returncode == 0 else [f"exit code {result.returncode}: {result.stderr.decode('latin-1').strip()}"]


def cases():
    folder = ROOT / "tests/errors"
    for file in [*sorted(folder.glob("*.te")), *sorted(folder.glob("*.yaml")), *sorted(folder.glob("manifests/*.yaml"))]:
        yield file.name, check_file, file
    for line in (ROOT / "tests/errors/usage.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line, check_usage, line
    for file in sorted((ROOT / "tests/limits").glob("*.te")):
        yield file.name, check_limit, file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    parser.add_argument("filter", nargs="?", default="", help="only cases whose name holds this")
    options = parser.parse_args()
    passed = failed = 0
    for name, check, what in cases():
        if options.filter not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            problems = check(options.rollerc, what, pathlib.Path(folder))
        passed, failed = passed + (not problems), failed + bool(problems)
        for problem in problems:
            print(f"FAIL {name}: {problem}")
    print(f"errors: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
