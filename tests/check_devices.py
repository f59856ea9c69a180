#!/usr/bin/env python3
"""Every device file obeys schema/device.schema.json, bears its name and gives the source of each number."""
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


def main():
    schema = json.loads((ROOT / "schema/device.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((ROOT / "devices").glob("*.yaml"))
    bad = [f"{path.name}: {problem}" for path in files for problem in problems_of(path, validator)]
    print("\n".join(bad) or f"{len(files)} devices are well-formed")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
