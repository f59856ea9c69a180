#!/usr/bin/env python3
"""Every device file obeys schema/device.schema.json, bears its name and gives the source of each number. No source of the
compiler names a device, and what cites the tuning log cites an entry that is there. doc/devices.md tells what keys that may be
absent come to."""
import json
import pathlib
import re
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST_LINE = "# yaml-language-server: $schema=../schema/device.schema.json"


def problems_of(path, validator):
    text = path.read_text(encoding="ascii")
    device = yaml.safe_load(text)
    for error in validator.iter_errors(device):
        yield f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
    if device["device"]["name"] != path.stem:
        yield "device.name differs from the name of the file"
    if text.splitlines()[0] != FIRST_LINE:
        yield f"the first line must be: {FIRST_LINE}"
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s+\w+: (\d|true|false)", line) and not re.search(r"# \w", line):
            yield f"line {number}: no source"


def names_in_sources(devices):
    """A device is data: the compiler knows none by its name, and what was tried on which stands in the log."""
    name = re.compile(rf"\b({'|'.join(devices)})\b", re.IGNORECASE)
    for path in files_of("src/**/*.[ch]*", "templates/**/*.cu*"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if name.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: names a device: {line.strip()}"


def missing_entries():
    entries = set(re.findall(r"^### (\d+)\. ", (ROOT / "doc/tuning-log.md").read_text(), re.MULTILINE))
    for path in files_of("src/**/*.[ch]*", "templates/**/*.cu*", "devices/*.yaml"):
        for cited in re.findall(r"tuning-log(?:\.md)? (\d+)(?: and (\d+))?", path.read_text()):
            for number in filter(None, cited):
                if number not in entries:
                    yield f"{path.relative_to(ROOT)}: doc/tuning-log.md has no entry {number}"


def other_standards():
    """What an absent key comes to is told in doc/devices.md as the reader has it: `1980 clocks`, `4.5 latencies`, `30`."""
    rows = re.findall(r'(?:FITTED|MEASURED)\("([\w.]+)", [\w.]+, ([\d.]+), (\w+),', (ROOT / "src/hal/device_fields.c").read_text())
    assert len(rows) > 5, "src/hal/device_fields.c looks otherwise"
    told = {line.split("`")[1]: line for line in (ROOT / "doc/devices.md").read_text().splitlines() if line.startswith("| `")}
    units = {"ITSELF": "", "CLOCKS_US": " clocks", "LATENCIES_US": " latenc(y|ies)", "LATENCIES_NS": " latenc(y|ies)"}
    for key, count, of in rows:
        if not re.search(rf"(\| |absent: ){re.escape(count)}{units[of]}( \||\))", told.get(key, "")):
            yield f"doc/devices.md: {key}: absent is {count} {of}, it says otherwise"


def files_of(*patterns):
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())


def main():
    schema = json.loads((ROOT / "schema/device.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((ROOT / "devices").glob("*.yaml"))
    bad = [f"{path.name}: {problem}" for path in files for problem in problems_of(path, validator)]
    bad += [*names_in_sources([path.stem for path in files]), *missing_entries(), *other_standards()]
    print("\n".join(bad) or f"{len(files)} devices are well-formed")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
