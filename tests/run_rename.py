#!/usr/bin/env python3
"""Nothing is recognised by its name: an example whose tensors, index variables, params, comments and file are called
otherwise has the same candidates, and their parameter blocks differ in comments only.

Names become `unpad_<n>`, numbered backwards so that their alphabetical order is another one too.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import common

BLOCK = re.compile(r"^// <rollerc: parameters>.*?^}   // namespace", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r" *//.*$", re.MULTILINE)
MOST_NAMES = 1000   # of one example


def call(binary, path, device, *options):
    run = subprocess.run([binary, path, "--device", device, *options], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, f"{path}: {run.stderr}"
    return run.stdout


def renamed(binary, path, device):
    """The program's text with other names and without comments, by the tokens that rollerc finds; and which tensor's name became which."""
    new, tensors, lines = {}, {}, {}
    for token in call(binary, path, device, "-d", "tokens").splitlines():
        match = re.fullmatch(r"(\d+):\d+ (\w+) ?(.*)", token)
        if not match:
            continue
        line, kind, text = match.groups()
        if kind == "name":
            old, text = text, new.setdefault(text, f"unpad_{MOST_NAMES - len(new)}")
            if lines.get(int(line), ["input"]) == ["input"]:   # the name that a statement is about
                tensors[old] = text
        lines.setdefault(int(line), []).append(text)
    return "\n".join(" ".join(words) for _, words in sorted(lines.items())) + "\n", tensors


def what_is_made(binary, path, device, folder, names):
    """The candidates as the ranking has them, and the parameter blocks of each without comments. `names` replace those of tensors; a
    "chunk mean" and the axis of a loop are rollerc's own."""
    ranking = os.path.join(folder, "ranking.json")
    call(binary, path, device, "-o", os.path.join(folder, "kernel.cu"), "--json", ranking)
    with open(ranking) as file:
        candidates = json.load(file)["candidates"]
    for candidate in candidates:
        for launch in candidate["launches"]:
            launch.pop("kernel", None)   # named after the file
            launch.pop("makes", None)    # a tensor's name
            schedule = launch["config"]["schedule"]
            launch["config"]["schedule"] = re.sub(r"(?<!chunk )(?<!loop )\b\w+", lambda word: names.get(word[0], word[0]), json.dumps(schedule))
    blocks = [COMMENT.sub("", block) for candidate in candidates
              for block in BLOCK.findall(call(binary, path, device, "-o", "-", "--candidate", str(candidate["rank"])))]
    return candidates, blocks


def check(binary, path, device, folder):
    """None or what differs."""
    other = os.path.join(folder, "matmul_softmax.te")
    with open(other, "w") as file:
        text, names = renamed(binary, path, device)
        file.write(text)
    candidates, blocks = what_is_made(binary, path, device, folder, names)
    other_candidates, other_blocks = what_is_made(binary, other, device, folder, {})
    if not blocks:
        return "no parameter block was found"
    if candidates != other_candidates:
        return "the ranking differs"
    different = [at for at, (left, right) in enumerate(zip(blocks, other_blocks)) if left != right]
    return f"parameter blocks differ: {different}" if different or len(blocks) != len(other_blocks) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", nargs="*", help="these examples")
    args = parser.parse_args()
    binary, tally = os.path.abspath(args.rollerc), common.Tally()
    for path in sorted(glob.glob(os.path.join(common.EXAMPLES, "*.te"))):
        name = os.path.basename(path)[:-3]
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            tally.add(name, check(binary, path, args.device, folder))
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
