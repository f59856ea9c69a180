"""The case list: bench/cases.json, expanded. An entry there is a program at sizes x types; a case is one of them."""
import dataclasses
import itertools
import json
import os
import re

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)


@dataclasses.dataclass
class Case:
    name: str                                # "softmax 49152x1024 f16": unique
    group: str
    dtype: str
    text: str                                # the .te program, its element type substituted
    defines: list                            # ["R=49152", "N=1024"], for -D
    options: list                            # ["--math=tf32"], for rollerc
    entry: dict                              # what cases.json says: torch, compile, reference, inputs, …


def program_text(entry):
    """The program, with every size as a param."""
    if "program" in entry:
        with open(os.path.join(ROOT, entry["program"])) as file:
            return file.read()
    names = [size.split("=")[0] for size in entry["sizes"][0].split()]
    return "\n".join([f"param {name} = 1" for name in names] + entry["source"]) + "\n"


def expand(entry, sizes, names):
    text, written = program_text(entry), entry.get("from", entry["types"][0])
    for (size, name), dtype in itertools.product(zip(sizes, names), entry["types"]):
        label = entry["label"].format(name=name, **dict(define.split("=") for define in size.split()))
        typed = re.sub(rf": {written}\b", f": {dtype}", text)
        options = [f"--math={entry['math']}"] if "math" in entry else []
        yield Case(f"{entry['group']} {label} {dtype}", entry["group"], dtype, typed, size.split(), options, entry)


def measured(paths):
    """What bench/run.py appended: about the last run, and {group: lines of first choices}, of a case that was timed again the last."""
    rows = []
    for path in paths:
        with open(path) as file:
            rows += [json.loads(line) for line in file]
    groups = {}
    for row in {row["case"]: row for row in rows if row.get("rank") == 1}.values():
        groups.setdefault(row["group"], []).append(row)
    return [row["about"] for row in rows if "about" in row][-1], groups


def load(only="", small=False):
    """Every case whose name holds the regular expression `only`; `small`: at the sizes that CI proves."""
    with open(os.path.join(BENCH, "cases.json")) as file:
        entries = json.load(file)["entries"]
    cases = []
    for entry in entries:
        sizes = entry["small"] if small else entry["sizes"]
        names = ["small"] * len(sizes) if small else entry.get("names", [""] * len(sizes))
        cases += expand(entry, sizes, names)
    repeated = {case.name for case in cases if [other.name for other in cases].count(case.name) > 1}
    assert small or not repeated, f"cases.json: these names stand for two cases: {sorted(repeated)}"
    return [case for case in cases if re.search(only, case.name)]
