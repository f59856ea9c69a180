#!/usr/bin/env python3
"""./setup: what each of its commands builds, and what it says meanwhile. The tools that it calls are stand-ins which note how."""
import argparse
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent

CMAKE = """#!/bin/bash
echo "$*" >> {folder}/called
[[ $1 = --build ]] || {{ touch build/CMakeCache.txt; echo "-- Configuring done"; exit; }}
echo "${{NINJA_STATUS//%f/0}}" | sed 's/%t/2/' | sed 's/$/Re-checking globbed directories.../'
for step in 1 2 3; do
    echo "[$step/3] Building C object $step.o"
done
[[ ! ${{BROKEN-}} ]] || {{ echo "FAILED: 3.o"; echo "main.c:1: error: broken"; exit 1; }}
"""
ROLLERC = """#!/bin/bash
echo '{"summary": {"generated": 0}, "candidates": []}' > rank.json
"""
CTEST = """#!/bin/bash
mkdir -p build/Testing/Temporary
echo "seed 1" > build/Testing/Temporary/LastTest.log
echo '<testsuite name="x" tests="3" failures="1" disabled="0" skipped="1" ><testcase /><!-- -->
<testcase />
<testcase />
</testsuite>' > build/junit.xml
exit 8
"""


class Place:
    """A checkout in which everything that ./setup calls is a stand-in."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copy(ROOT / "setup", folder)
        (folder / "bin").mkdir()
        for name, text in {"cmake": CMAKE.format(folder=folder), "ctest": CTEST, "dpkg-query": "#!/bin/bash\necho install ok installed\n"}.items():
            self.write(folder / "bin" / name, text)
        (folder / "build").mkdir()
        self.write(folder / "build/rollerc", ROLLERC)

    def write(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", **more}

    def run(self, *words, code=0, **more):
        done = subprocess.run([self.folder / "setup", *words], env=self.environment(**more), capture_output=True, text=True, timeout=120)
        assert done.returncode == code, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def calls(self):
        called = self.folder / "called"
        lines = called.read_text().splitlines()
        called.unlink()
        return lines


def test_the_demo_builds_rollerc_alone(folder):
    place = Place(folder)
    said = place.run("demo")
    assert place.calls() == ["--preset default -DBUILD_TESTING=OFF", "--build --preset default --target rollerc"]
    assert said.startswith("building rollerc in build/\nbuilt 3 of 3 steps in ") and said.endswith("wrote kernel.cu and rank.json\n"), said


def test_the_demo_leaves_a_build_with_tests_as_it_is(folder):
    place = Place(folder)
    place.run()
    assert place.calls() == ["--preset default -DBUILD_TESTING=ON", "--build --preset default --target all"]
    place.run("demo")
    assert place.calls() == ["--preset default", "--build --preset default --target rollerc"]


def test_the_tests_end_with_their_number(folder):
    said = Place(folder).run("test", code=8)
    assert "built 3 of 3 steps in " in said and "\nSKIPPED: 1 of 3 tests\n" in said, said
    assert said.splitlines()[-1] == "1 passed, 1 failed", said


def test_a_build_that_fails_is_shown(folder):
    said = Place(folder).run("demo", code=1, BROKEN="1")
    assert "main.c:1: error: broken" in said and "wrote" not in said, said


def test_a_log_sees_how_far_a_long_build_is(folder):
    place = Place(folder)
    text = (folder / "setup").read_text()
    assert text.count("SECONDS") == 5 and text.count("read -r line; do") == 1
    # A clock that no core waits for: each line that Ninja writes takes two of its seconds.
    text = text.replace("SECONDS", "CLOCK").replace("read -r line; do", "read -r line; do ((CLOCK += 2))")
    place.write(folder / "setup", text.replace("\nset -euo pipefail\n", "\nset -euo pipefail\nCLOCK=0\n"))
    said = place.run().splitlines()   # two lines are no steps; the third step is over after ten seconds
    assert said == ["building all in build/", "built 3 of 3 steps in 10 s", "built 3 of 3 steps in 10 s"], said


def test_a_terminal_sees_one_line(folder):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([folder / "setup"], env=Place(folder).environment(), stdout=theirs)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 4096)
        except OSError:   # the other end is closed
            break
    os.close(ours)
    assert process.wait(60) == 0
    lines = said.decode().replace("\r\n", "\n").splitlines()
    assert lines[0] == "building all in build/" and [line.split(" in ")[0] for line in said.decode().split("\r")[2:5]] == [
        f"built {step} of 3 steps" for step in (1, 2, 3)], said


def test_a_slip_is_told_before_anything_is_built(folder):
    place = Place(folder)
    assert "./setup demo" in place.run("dmeo", code=2) and not (folder / "called").exists()


def test_nothing_of_the_tests_is_needed_for_rollerc(folder):
    if not shutil.which("cmake") or not shutil.which("ninja"):
        raise common.Skip("no cmake or no ninja")
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DBUILD_TESTING=OFF"], check=True, stdout=subprocess.DEVNULL)
    inputs = subprocess.run(["ninja", "-C", folder, "-t", "inputs", "rollerc"], check=True, capture_output=True, text=True).stdout.split()
    objects, sources = [name for name in inputs if name.endswith(".o")], list((ROOT / "src").rglob("*.c"))
    assert len(objects) == len(sources) + 3, f"{len(objects)} objects of {len(sources)} sources"   # the interpreter, what is embedded, the format of ONNX
    assert not [name for name in inputs if "/tests/" in name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", help="not looked at")
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    return common.run_tests(globals(), "setup", options.filter)


if __name__ == "__main__":
    sys.exit(main())
