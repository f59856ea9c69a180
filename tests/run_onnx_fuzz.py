#!/usr/bin/env python3
"""The ONNX importer under libFuzzer, ASan and UBSan (tests/fuzz/fuzz_onnx.c), from the small ones of ONNX's backend tests.

    python3 tests/run_onnx_fuzz.py --rollerc build/rollerc --runs 1000000 --seed 7 --jobs 2

What it found lies in build/fuzz/found; `build/fuzz/tests/fuzz_onnx FILE` shows it again.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import common

ROOT = pathlib.Path(common.TESTS).parent
DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
COMPILERS = ("clang-15", "clang++-15")
LARGEST = 4096                # bytes of a model
SECONDS, MEGABYTES = 5, 1024   # that one may take, with sanitizers
RUNS = 20000


def lacks():
    if not all(map(shutil.which, COMPILERS)):
        return f"{COMPILERS[0]} is not here"
    return None if DATA.is_dir() else f"{DATA} is not here (libonnx-testdata)"


def build(folder, jobs):
    options = {"CMAKE_C_COMPILER": COMPILERS[0], "CMAKE_CXX_COMPILER": COMPILERS[1], "ROLLERC_FUZZ": "ON",
               "ROLLERC_SANITIZE": "address,undefined,fuzzer-no-link",
               "CMAKE_BUILD_TYPE": "Fuzz", "CMAKE_C_FLAGS_FUZZ": "-O0 -g1"}   # with -O1 the build takes twice as long, and most of the time
    for command in (["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *(f"-D{name}={value}" for name, value in options.items())],
                    ["cmake", "--build", folder, "--target", "fuzz_onnx", "-j", str(jobs)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        assert done.returncode == 0, done.stdout[-3000:]


def write_dictionary(path):
    """The names of operators and attributes, as the importer's sources have them."""
    sources = "".join(file.read_text() for file in (ROOT / "src/front/onnx").iterdir())
    words = sorted(set(re.findall(r'"([A-Za-z_]{3,30})"', sources)))
    path.write_text("".join(f'"{word}"\n' for word in words))


def seeds(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for model in sorted(DATA.glob("*/*/model.onnx")):
        if model.stat().st_size <= LARGEST:
            shutil.copyfile(model, folder / f"{model.parent.name}.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="fuzz/ beside it is built in")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=1, help="the default is the same in every run")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    args = parser.parse_args()
    reason = lacks()
    if reason:
        print(f"NOT TESTED: the importer under libFuzzer, since {reason}")
        return 77
    folder = pathlib.Path(args.rollerc).resolve().parent / "fuzz"
    found, corpus = folder / "found", folder / "seeds"
    build(folder, args.jobs)
    found.mkdir(exist_ok=True)
    seeds(corpus)
    write_dictionary(folder / "words.dict")
    print(f"seed {args.seed}", flush=True)

    def run(job):
        grown = folder / f"corpus-{job}"   # what it learns; each begins from the same
        shutil.rmtree(grown, ignore_errors=True)
        grown.mkdir()
        command = [folder / "tests/fuzz_onnx", f"-runs={args.runs // args.jobs}", f"-seed={args.seed + job}", f"-max_len={LARGEST}",
                   f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-dict={folder / 'words.dict'}", f"-artifact_prefix={found}/",
                   "-print_final_stats=1", grown, corpus]
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment)

    failed, executed = False, 0
    for done in common.in_parallel(args.jobs, run, range(args.jobs)):
        executed += sum(map(int, re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout)))
        if done.returncode != 0:
            print(done.stdout[-4000:])
            failed = True
    print(f"{executed} models: " + ("FAIL, what is left lies in build/fuzz/found" if failed else "nothing was found"))
    return 1 if failed or executed < args.runs // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
