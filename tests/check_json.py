#!/usr/bin/env python3
"""check_json.py FILE SCHEMA: does the JSON file satisfy the schema?"""
import json
import sys

import jsonschema


def main():
    document, schema = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(document))
    for error in errors:
        print(f"{sys.argv[1]}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
