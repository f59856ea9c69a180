#!/usr/bin/env python3
"""Same inputs, same bytes: from two folders, in a locale with a decimal comma, with and without address randomisation."""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEVICES = ["a100", "mi50"]


def comma_locale(folder):
    """An environment in which printf writes 1,5; None where no locale sources are installed."""
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")],
                          capture_output=True)
    environment = {**os.environ, "LOCPATH": folder, "LC_ALL": "de_DE.UTF-8"}
    printed = subprocess.run(["/usr/bin/printf", "%.1f", "1,5"], env=environment, capture_output=True, text=True)
    return environment if made.returncode <= 1 and printed.stdout == "1,5" else None


def artefacts(binary, cwd, environment, prefix):
    """Everything that the examples make, as bytes."""
    made = {}
    for example in sorted(glob.glob(os.path.join(ROOT, "examples/*.te"))):
        for device in DEVICES:
            name = os.path.basename(example)
            shutil.copy(example, os.path.join(cwd, name))
            run = subprocess.run([*prefix, binary, name, "--device", device, "-o", "k.cu", "--json", "r.json"], cwd=cwd,
                                 env=environment, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            for artefact in ["k.cu", "r.json"]:
                with open(os.path.join(cwd, artefact), "rb") as file:
                    made[name, device, artefact] = file.read()
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    binary = os.path.abspath(parser.parse_args().rollerc)
    with tempfile.TemporaryDirectory() as folder:
        first, second, locales = (os.path.join(folder, name) for name in ["first", "a/deeper/folder", "locales"])
        for path in [first, second, locales]:
            os.makedirs(path)
        comma = comma_locale(locales)
        if not comma:
            print("SKIP the comma locale: localedef has no sources here (Debian package locales)")
        plain = artefacts(binary, first, os.environ, [])
        other = artefacts(binary, second, comma or os.environ, ["setarch", "-R"])
    different = [key for key in plain if plain[key] != other[key]]
    for key in different:
        print("FAIL", *key)
    print(f"determinism: {len(plain) - len(different)} passed, {len(different)} failed")
    return 1 if different else 0 if comma else 77


if __name__ == "__main__":
    sys.exit(main())
