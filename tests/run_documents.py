#!/usr/bin/env python3
"""What README.md, CONTRIBUTING.md and doc/*.md show is true.

    ```te         a program compiles and is proven, or is refused where a line says `# error: text`, like tests/errors/*.te
    ```console    a session does what it shows: see sessions.py. --update rewrites what it prints
    ```c, …       whose first line is a comment of a file of this repository is an excerpt of it; `…` stands for lines left out

Links lead somewhere and paths in backticks exist; each key of a device file has its row in doc/devices.md, each family of kernels its
section in doc/kernels.md, with all its variants; what messages advise instead of other languages' words stands in doc/language.md
and is proven.
"""
import argparse
import itertools
import os
import pathlib
import re
import sys
import tempfile

import common
import foreign
import run_errors
import sessions

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "doc").glob("*.md"))]
LANGUAGE = ROOT / "doc/language.md"
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
FOLDERS = "src|doc|tests|templates|devices|schema|examples|bench|python|cmake|man"
PATH = re.compile(rf"`(?!\S*NAME)((?:{FOLDERS})/[\w./-]*\w)`")
CONFLICT = re.compile(r"^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE)


def check_program(binary, text):
    """None, or what is wrong with what the compiler says of the program."""
    with tempfile.TemporaryDirectory() as name:
        file, output = pathlib.Path(name, "program.te"), pathlib.Path(name, "output")
        file.write_text(text)
        output.mkdir()
        if run_errors.MARK in text:
            return "; ".join(run_errors.check_file(binary, file, output)) or None
        return common.run([binary, file, "--device", "a100", "--verify", "-o", output / "program.cu"])


def programs(document):
    return {f"{document.name}:{line}": text for line, language, _, text in sessions.blocks(document) if language == "te"}


# ---- what is named and quoted

def check_names(document):
    """None, or what the text names that is not there."""
    text = FENCED.sub("", document.read_text())
    lost = {link for link in LINK.findall(CODE.sub("", text)) if not (document.parent / link).exists()}
    lost |= {path for path in PATH.findall(text) if not (ROOT / path).exists()}
    return f"leads nowhere: {' '.join(sorted(lost))}" if lost else None


def check_excerpts(document):
    """None, or the quoted files that no longer hold what is quoted."""
    lost = []
    for line, _, _, text in sessions.blocks(document):
        name = sessions.file_of(text)
        if name and (ROOT / name).exists():
            pieces = re.split(r"^ *…\n", text.split("\n", 1)[1], flags=re.MULTILINE)
            quoted = ".*".join(re.escape(piece) for piece in pieces)
            if not re.search(quoted, (ROOT / name).read_text(), re.DOTALL):
                lost.append(f"{document.name}:{line} ({name})")
    return f"no longer what the file says: {', '.join(lost)}" if lost else None


# ---- what must be told

def device_keys():
    """Those that the reader of device files knows, from its table."""
    table = (ROOT / "src/hal/device_fields.c").read_text()
    rows = re.findall(r'(?:TEXT|FLAG|NUMBER|CACHE|FITTED|MEASURED)\("([\w.]+)"|\.path = "([\w]+\.[\w.]*\w)"', table)
    return {left or right for left, right in rows} | {
        f"peak_gflop_s.{name}" for name in re.findall(r'^ +PEAK\("(\w+)"', table, re.MULTILINE)}


def check_device_keys():
    """None, or the keys that doc/devices.md does not have in common with the reader."""
    keys = device_keys()
    assert len(keys) > 40, "src/hal/device_fields.c looks otherwise"
    told = set(re.findall(r"^\| `([\w.]+)` \|", (ROOT / "doc/devices.md").read_text(), re.MULTILINE))
    return f"not the keys of src/hal/device_fields.c: {' '.join(sorted(keys ^ told))}" if keys != told else None


def families():
    """{name: its variants}, from the records of the families."""
    found = {}
    for file in (ROOT / "src/codegen/family").rglob("*.c"):
        for record in re.findall(r"^const Family \w+ = \{\n(.*?)^\};", file.read_text(), re.MULTILINE | re.DOTALL):
            variants = re.search(r"\.variants =[^{]*\{(.*?)\}", record, re.DOTALL)[1]
            found[re.search(r'\.name = "(\w+)"', record)[1]] = re.findall(r'"([^"]+)"', variants)
    assert len(found) > 8, "the records of families look otherwise"
    return found


def check_families():
    """None, or families and variants that doc/kernels.md does not have in common with the sources."""
    text, known = (ROOT / "doc/kernels.md").read_text(), families()
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    lost = set(known) ^ set(sections)
    lost |= {f"{name}/{variant}" for name in known for variant in known[name] if f"`{variant}`" not in sections.get(name, "")}
    return f"not the families and variants of src/codegen/family: {' '.join(sorted(lost))}" if lost else None


def check_foreign():
    """None, or what is wrong with the table of other languages' words."""
    text = LANGUAGE.read_text()
    return None if foreign.page(text) == text else "the table is not that of src/front/foreign.def: --update"


def check_document(binary, document):
    """(what, what is wrong or None) of all but the programs."""
    yield from sessions.check(binary, document)
    yield f"names in {document.name}", check_names(document)
    yield f"excerpts in {document.name}", check_excerpts(document)
    yield f"merge of {document.name}", "a conflict is not resolved" if CONFLICT.search(document.read_text()) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("filter", nargs="?", default="", help="only documents whose name holds this")
    args = parser.parse_args()
    documents = [document for document in DOCUMENTS if args.filter in document.name]
    for document in documents if args.update else []:
        sessions.update(args.rollerc, document)
    if args.update and LANGUAGE in documents:
        LANGUAGE.write_text(foreign.page(LANGUAGE.read_text()))
    tally = common.Tally()
    texts = dict(itertools.chain.from_iterable(programs(document).items() for document in documents))
    if LANGUAGE in documents:
        texts |= {f"other languages' words, program {number}": text for number, text in enumerate(foreign.programs())}
    for place, reason in zip(texts, common.in_parallel(common.JOBS, lambda text: check_program(args.rollerc, text), texts.values())):
        tally.add(place, reason)
    for results in common.in_parallel(common.JOBS, lambda document: list(check_document(args.rollerc, document)), documents):
        for what, reason in results:
            tally.add(what, reason)
    tally.add("keys in devices.md", check_device_keys())
    tally.add("families in kernels.md", check_families())
    tally.add("other languages' words in language.md", check_foreign())
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
