#!/usr/bin/env python3
"""A family of kernels is added by a patch of at most eight files, of which two are lists: tests/family.patch applies to a copy of
the tree, is compiled there against this build's libraries, and what it adds is offered, emitted as expected, proven right and does
what its schedule says.

    python3 tests/run_family.py --rollerc build/rollerc [--update]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCH = ROOT / "tests/family.patch"
FAMILY, KIND, PROGRAM = "apart", "apart/points", "every_third"
LISTS = {"src/codegen/family/families.c", "src/codegen/family/family.h"}
MOST_FILES = 8


def touched():
    """{file: it is new}"""
    heads = re.findall(r"^--- (\S+)\n\+\+\+ b/(\S+)", PATCH.read_text(), re.MULTILINE)
    return {name: before == "/dev/null" for before, name in heads}


def check_files():
    files = touched()
    assert len(files) <= MOST_FILES, f"{len(files)} files: {' '.join(sorted(files))}"
    changed = {name for name, is_new in files.items() if name.startswith("src/") and not is_new}
    assert changed == LISTS, changed
    return sorted(files)


def copy_tree(folder):
    """What is compiled, and what the tests read."""
    for name in ("cmake", "devices", "doc", "examples", "schema", "src", "templates", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


class Build:
    """The commands of the build in which rollerc lies, for a copy of its tree."""

    def __init__(self, folder, copy):
        self.folder, self.copy, self.objects = folder, copy, []

    def commands(self, target):
        done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def run(self, command):
        """Of the tree it reads the copy; what the build has made it takes from there."""
        command = re.sub(re.escape(f"{ROOT}/") + r"(src|cmake)\b", rf"{self.copy}/\1", command)
        subprocess.run(command, shell=True, cwd=self.folder, check=True)

    def compile(self, like, source):
        """As another file of the floor is, which it may be itself."""
        wanted = re.compile(rf"\S*/{re.escape(like)}\.o -c (\S+)")
        line = next(line for line in self.commands("rollerc") if wanted.search(line))
        to = self.copy / f"{pathlib.Path(source).name}.o"
        line = re.sub(r" -MD -MT \S+ -MF \S+", "", line)
        self.run(re.sub(r" -o \S+ -c \S+", f" -o {to} -c {self.copy / source}", line))
        self.objects.append(str(to))

    def embed(self, new):
        """The templates and devices that travel inside the binary."""
        files = next(re.search(r'"-DFILES=([^"]*)"', line)[1] for line in self.commands("rollerc") if "Embed.cmake" in line)
        out = self.copy / "embedded.c"
        subprocess.run(["cmake", f"-DFILES={files};{';'.join(new)}", f"-DROOT={self.copy}", f"-DOUT={out}", "-P",
                        self.copy / "cmake/Embed.cmake"], check=True)
        self.compile("embedded.c", "embedded.c")

    def link(self, target):
        """What is compiled here comes before the libraries, and so in place of theirs."""
        line = self.commands(target)[-1]
        to = self.copy / target
        self.run(re.sub(rf" -o {re.escape(target)} ", f" -o {to} {' '.join(self.objects)} ", line, count=1))
        return to


def build(folder, copy):
    made = Build(folder, copy)
    sources = [name for name in touched() if name.endswith(".c")]
    for source in sources:
        made.compile(source if (ROOT / source).exists() else "src/codegen/family/loopnest.c", source)
    made.embed([name for name in touched() if name.startswith("templates/")])
    made.link("tests/given_programs")   # run_differential.py finds it beside rollerc
    return made.link("rollerc"), made.link("tests/schedule_counts")


def said(command, copy):
    done = subprocess.run([str(part) for part in command], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def prove(rollerc, counts, copy):
    assert KIND in said([counts], copy).splitlines()
    print(said([sys.executable, "tests/run_golden.py", "--rollerc", rollerc, f"kernel/{FAMILY}"], copy), end="")
    proven = said([sys.executable, "tests/run_differential.py", "--rollerc", rollerc, "--only", f"{FAMILY} {PROGRAM}"], copy)
    assert re.search(rf"\d+ {FAMILY}\b", proven), proven
    print(proven, end="")
    program = next((copy / f"tests/golden/kernel/{FAMILY}").glob("*.te"))
    counted = said([counts, "h200", program, KIND], copy)
    assert re.search(r"^kinds=1 failures=0 mutants=[1-9]\d* unseen=0$", counted, re.MULTILINE), counted
    said([sys.executable, "-c", "import sys; sys.path.insert(0, 'tests'); import run_documents; sys.exit(run_documents.check_families())"], copy)


def update(rollerc, copy, before):
    """The golden of what the kernel is now becomes the patch's."""
    subprocess.run([sys.executable, "tests/run_golden.py", "--rollerc", rollerc, "--update", f"kernel/{FAMILY}"], cwd=copy, check=True)
    lines = []
    for name in sorted(touched()):
        old = f"a/{name}" if (before / name).exists() else "/dev/null"
        diff = subprocess.run(["diff", "-U1", "--label", old, "--label", f"b/{name}", "-N", before / name, copy / name], capture_output=True, text=True)
        lines.append(diff.stdout)
    PATCH.write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="its folder is one that ninja builds")
    parser.add_argument("--update", action="store_true", help="the patch's golden becomes what the kernel is now")
    options = parser.parse_args()
    folder = pathlib.Path(os.path.abspath(options.rollerc)).parent
    if not (folder / "build.ninja").exists() or not shutil.which("patch") or not shutil.which("ninja"):
        print("family: SKIPPED, it wants a build by ninja, and patch")
        return 77
    files = check_files()
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name)
        copy_tree(copy)
        said(["patch", "-p1", "--no-backup-if-mismatch", "-i", PATCH], copy)
        rollerc, counts = build(folder, copy)
        if options.update:
            update(rollerc, copy, ROOT)
        prove(rollerc, counts, copy)
    print(f"family: {FAMILY} was added by {len(files)} files: {' '.join(files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
