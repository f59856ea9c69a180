"""How many numbers are fitted? Each literal of src/ and devices/ that the model or the choice between kernels rests on, and that traces to
no micro-benchmark and no line of a datasheet.

    python3 bench/fitted.py            # a line for each place, and the sum
    python3 bench/fitted.py --list     # every one of them

Counted are
  devices/*.yaml            values whose comment begins with `estimate` or `fitted`, or says that whole kernels were measured
  src/hal/device_fields.c   what absent keys come to (FITTED)
  src/model/calibration.c   every number but those that are counts of instructions: `counted` there, by tests/run_instructions.py
  src/model, src/rprogram, src/rtile, src/codegen, src/rank
                            named constants whose comment cites the tuning log or a time; of src/model, and of src/codegen/plan and
                            src/rprogram, which choose, all that name no source; registers that families add to their tiles
Not counted are what micro-kernels measured, limits that hardware or the language sets, sizes of arrays, what a comment derives, and registers that are counted in
what ptxas takes, which tests/run_registers.py compares. Numbers whose comment calls them a limit of the search, of which more takes
planning time and loses nothing, are counted apart.
"""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = r"-?\d+(?:\.\d+)?(?: */ *\d+)?"
ROOMS = ("model", "rprogram", "rtile", "codegen", "rank")
TRACED = re.compile(r"PTX|SASS|CUDA|datasheet|manual|micro-kernel|flop", re.IGNORECASE)

SIZE = re.compile(r"hash table|of memory|counted in what ptxas takes")
LIMIT = "limit of the search"

FITTED = re.compile(r"tuning-log|\d us\b|%|estimate|longer than|as long|faster|slower")


def of_devices():
    for path in sorted((ROOT / "devices").glob("*.yaml")):
        for line in path.read_text().splitlines():
            found = re.match(r"\s+(\w+): ([\d.]+)\s+# (.*)", line)
            if found and (found[3].startswith(("estimate", "fitted")) or
                          (found[3].startswith("measured") and not re.search("micro-kernel|kernels of a graph|rollerc calibrate|[+]-", found[3]))):
                yield path, f"{found[1]}: {found[2]}", found[3]


def of_standards():
    path = ROOT / "src/hal/device_fields.c"
    for key, value, of in re.findall(r'FITTED\("([\w.]+)", [\w.]+, ([\d.]+), (\w+),', path.read_text()):
        yield path, f"{key}: {value}", of


def of_calibration():
    path = ROOT / "src/model/calibration.c"
    for line in path.read_text().splitlines():
        code, _, comment = line.partition("//")
        for name, value in re.findall(rf"(\.\w+ = |#define \w+ )({NUMBER}|1 << \d+)", code):
            if "counted" not in comment:
                yield path, f"{name.removeprefix('#define').strip(' .=')}: {value}", comment.strip()


def comment_of(lines, at):
    """Behind the line, or the one in front of it, as far as it goes."""
    behind = lines[at].partition("//")[2]
    before, i = [], at - 1
    while i >= 0 and re.match(r"\s*(/\*|//|\*)|.*\*/\s*$", lines[i]):
        before.append(lines[i].strip())
        i -= 1
    return " ".join([behind.strip(), *reversed(before)]).strip()


def of_constants():
    named = re.compile(rf"^\s*(?:static const (?:double|int) )?([A-Z][A-Z_0-9]+) = ({NUMBER}|1 << \d+)\b")
    more = re.compile(rf"\b([A-Z][A-Z_0-9]+) = ({NUMBER})\b")
    for path in sorted(path for room in ROOMS for path in (ROOT / "src" / room).rglob("*.[ch]")):
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            code = line.partition("//")[0]
            for name, value in more.findall(code) if named.match(code) or re.match(r"\s*(enum|static const)", code) else []:
                comment = comment_of(lines, at)
                chooses = path.parent.name in ("model", "plan", "rprogram") and not name.startswith("MAX_")
                traced = TRACED.search(comment) or SIZE.search(comment)
                measured = comment.startswith("micro-kernel")
                if not measured and not SIZE.search(comment) and (FITTED.search(comment) or (chooses and not traced)):
                    yield path, f"{name}: {value}", comment
            for value in re.findall(r"register_overhead = (\d+)", code):
                yield path, f"register_overhead: {value}", comment_of(lines, at)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="every number with its comment")
    args = parser.parse_args()
    every = [*of_devices(), *of_standards(), *of_calibration(), *of_constants()]
    rows = [row for row in every if not row[2].startswith(LIMIT)]
    counts = collections.Counter(path for path, _, _ in rows)
    for path, count in counts.items():
        print(f"{count:4}  {path.relative_to(ROOT)}")
        for of, what, comment in rows if args.list else []:
            if of == path:
                print(f"          {what:40} {comment}")
    kinds = collections.Counter("devices" if path.suffix == ".yaml" else "src" for path, _, _ in rows)
    print(f"{len(rows):4}  in all: {kinds['src']} in src/, {kinds['devices']} in devices/; {len(every) - len(rows)} limits of the search beside them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
