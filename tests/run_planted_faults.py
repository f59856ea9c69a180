#!/usr/bin/env python3
"""Planted faults are found by random programs: in the front end the bounds of a view, the clamp of an element as an index, the range
of a remainder; in the code generator places that overlap, missing edges and a missing wait.

    python3 tests/run_planted_faults.py --rollerc build/rollerc
    python3 tests/run_planted_faults.py --rollerc build/rollerc --only clamp --verbose

Each is a change of one source file, which is compiled as the build compiles it and linked before the library that has the right one.
Programs are those of run_random.py's usual seed: the one that found the fault last, and where that says nothing all of them in their
order, until one fails: within COUNT of them. --all passes over the first, and tells which number stands here then.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEED, COUNT, SLICE = 1, 1000, 25
SKIPPED = 77

# (name, source, what stands there, what stands there now, the program that finds it)
FAULTS = [
    ("view: the first index behind a dimension of a view is taken to be inside", "src/front/lower_access.c",
     "return *low >= 0 && *high < element->seen->shape[d];",
     "return *low >= 0 && *high < element->seen->shape[d] + (accessed(element->lower, element->access)->viewed != NULL);", 54),
    ("clamp: an element as an index may be the first one behind its dimension", "src/front/lower_access.c",
     "Expr *place = clamped(element, value, low, high);", "Expr *place = clamped(element, value, low, high + 1);", 16),
    ("remainder: the largest one is not in its range", "src/front/lower_affine.c",
     "same ? high % by : by - 1;", "same ? high % by : by - 2;", 78),
    ("places: a tensor's place is used again while its last reader may run", "src/codegen/lives.c",
     "for (int i = 0; i < life->reader_count && ended; i++)", "for (int i = 0; i < life->reader_count - 1 && ended; i++)", 2),
    ("edges: a launch that needs several comes after the latest of them alone", "src/hal/launch_order.c",
     "if (bit_get(order, number, before))", "if (bit_get(order, number, before) || kept)", 22),
    ("parts: who makes a part of a concatenation is taken to have made all of it", "src/hal/launch_order.c",
     "arg->row_end - arg->row_first == arg->row ||", "arg->row_end - arg->row_first <= arg->row ||", 59),
    ("waits: a launch that needs what is before it waits at its end", "src/codegen/chain.c",
     "k && launch->early && !touches_earlier(launches, k);", "k && launch->early && (k > 1 || !touches_earlier(launches, k));", 2),
    ("early: what earlier launches write is asked for before the launch waits", "src/codegen/chain.c",
     "launches[k].early && !is_written[launches[k].args[i].buffer];", "launches[k].early;", 2),
]


def commands(build, program):
    """How the build compiles each source of the program, and how it links it."""
    done = subprocess.run(["ninja", "-C", build, "-t", "commands", program], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("ninja:")]
    return lines[:-1], lines[-1]


def compiler_of(lines, source):
    for line in lines:
        if line.rstrip().endswith(str(ROOT / source)) or f" {ROOT / source} " in line or re.search(rf" -c \S*{re.escape(source)}(\s|$)", line):
            return line
    raise SystemExit(f"the build does not compile {source}")


def words_of(line):
    """`: && cc … && :` and a compiler cache before the compiler are no part of it."""
    words = [word for word in shlex.split(line)]
    while words and (words[0] in (":", "&&") or os.path.basename(words[0]) == "ccache"):
        words = words[1:]
    return words[:words.index("&&")] if "&&" in words else words


def with_output(words, output):
    at = words.index("-o")
    return [*words[:at], "-o", str(output), *words[at + 2:]]


def plant(build, folder, source, old, new, target="tests/random_programs"):
    """The program of the build with the fault."""
    text = (ROOT / source).read_text()
    if text.count(old) != 1:
        raise SystemExit(f"{source} holds `{old}` {text.count(old)} times: say here where it went")
    faulty, made, program = folder / os.path.basename(source), folder / "faulty.o", folder / os.path.basename(target)
    faulty.write_text(text.replace(old, new))
    lines, link = commands(build, target)
    compile_words = with_output(words_of(compiler_of(lines, source)), made)
    compile_words[compile_words.index("-c") + 1] = str(faulty)
    compile_words = [word for word in compile_words if word not in ("-MD",)]
    for option in ("-MT", "-MF"):
        if option in compile_words:
            at = compile_words.index(option)
            del compile_words[at:at + 2]
    subprocess.run([*compile_words, f"-I{ROOT / 'src'}"], cwd=build, check=True)
    words = with_output(words_of(link), program)
    at = words.index("-o")
    subprocess.run([*words[:at], str(made), *words[at:]], cwd=build, check=True)
    return program


def first_failure(program, parts, verbose):
    """What is said of the first program that fails, of those from each `first` on so many; or None."""
    for first, count in parts:
        done = subprocess.run([program, "--seed", str(SEED), "--first", str(first), "--count", str(count), "--compile", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        found = re.search(r"^FAIL  .*", done.stdout, re.M)
        if verbose:
            print(f"  {first} to {first + count - 1}: {found[0] if found else 'nothing'}", flush=True)
        if done.returncode:
            return found[0] if found else f"status {done.returncode}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="random_programs lies in tests/ beside it")
    parser.add_argument("--only", help="faults whose name begins with this")
    parser.add_argument("--all", action="store_true", help="all programs in their order")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    build = pathlib.Path(os.path.abspath(options.rollerc)).parent
    if not (build / "build.ninja").exists():
        print("NOT TESTED: the build is not Ninja's, whose commands compile the faults")
        return SKIPPED
    tally = common.Tally()
    every = [(first, SLICE) for first in range(0, COUNT, SLICE)]
    for name, source, old, new, finder in FAULTS:
        if not name.startswith(options.only or ""):
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = plant(build, pathlib.Path(folder), source, old, new)
            found = first_failure(program, every if options.all else [(finder, 1), *every], options.verbose)
        tally.add(name, None if found else f"not found by {COUNT} programs")
        if found:
            print(f"{name}: {found}", flush=True)
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
