#!/usr/bin/env python3
"""Every family on the CPU interpreter against the reference: types, ragged sizes, devices, kinds of candidates.

    python3 tests/run_differential.py --rollerc build/rollerc           every pair of choices is met (the default)
    python3 tests/run_differential.py --rollerc build/rollerc --all     the full product

For each case the ranking says which candidates are of the family that the case is about, so that a family is proven
although another is ranked first. Of tests/regressions/*.te the first and the last of every kind of candidate are proven.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import time

import common
from differential.programs import PROGRAMS, options_of, source
from run_random import ELSEWHERE

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRIME = 97
SIZES = ("1", "2", "tile-1", "tile", "tile+1", "prime")
DEVICES = ("a100", "h200", "mi50", "v100")
PLACES = ("best", "middle", "last")   # among the family's candidates that fit the tile


class Ranker:
    """Rankings of sources, made once."""

    def __init__(self, rollerc, folder):
        self.rollerc, self.folder, self.count = rollerc, folder, itertools.count()

    def path(self):
        return os.path.join(self.folder, f"{next(self.count)}.json")

    def rank(self, text, *options):
        path = self.path()
        command = [self.rollerc, "-q", "-", *options, "-o", path]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
        with open(path) as file:
            return json.load(file)["candidates"]


def tile_of(candidate, family, axis):
    """The block's tile along the axis, in the candidate's launches of the family."""
    for launch in candidate["launches"]:
        if launch["family"] == family and axis in launch["config"]["tile"]["shared"]:
            return launch["config"]["tile"]["shared"][axis]
    return None


def all_cases():
    for program in PROGRAMS:
        for dtype, param, size, device, place in itertools.product(program.types, program.axes, SIZES, DEVICES, PLACES):
            yield (program, dtype, param, size, device, place)


def pairs(case):
    """Of a family's choices, and each size of each of a program's axes."""
    program, dtype, param, size, device, place = case
    values = {"program": program.name, "type": dtype, "size": size, "device": device, "place": place}
    return [(program.family, *pair) for pair in itertools.combinations(sorted(values.items()), 2)] + [(program.name, param, size)]


def pairwise(cases, seed):
    """Greedy: of some random cases the one that meets most new pairs, until all pairs are met."""
    chooser = random.Random(seed)
    left = {pair for case in cases for pair in pairs(case)}
    order = list(cases)
    chooser.shuffle(order)
    chosen = []
    while left and order:
        best = max(chooser.sample(range(len(order)), min(40, len(order))), key=lambda i: len(left.intersection(pairs(order[i]))))
        case = order[best]
        order[best] = order[-1]
        order.pop()
        met = left.intersection(pairs(case))
        if met:
            left -= met
            chosen.append(case)
    return sorted(chosen, key=lambda case: (case[0].family, case[0].name, case[1:]))


def options_of_case(case):
    program, dtype, _, _, device, _ = case
    return ["--device", device, "--top-k", "100", *options_of(program, dtype)]


def choose_sizes(ranker, case):
    """The params of a case; the tile is that of the family's best candidate at the base sizes."""
    program, dtype, param, size, _, _ = case
    sizes = {name: base for name, (_, base) in program.axes.items()}
    axis = program.axes[param][0]
    tile = 0
    if size.startswith("tile"):
        for candidate in ranker.rank(source(program, dtype, sizes), *options_of_case(case)):
            tile = tile or tile_of(candidate, program.family, axis) or 0
        tile = min(tile or 32, 2048)
    sizes[param] = PRIME if size == "prime" else int(size) if size.isdigit() else max(1, tile + int(size[4:] or 0))
    return sizes, tile


def choose_rank(candidates, case, tile):
    """Of the family's candidates, if it can hold any, those with the tile the case asks for."""
    program, _, param, _, _, place = case
    axis = program.axes[param][0]
    ranks = [c["rank"] for c in candidates if any(launch["family"] == program.family for launch in c["launches"])]
    fitting = [c["rank"] for c in candidates if tile and tile_of(c, program.family, axis) == tile]
    ranks = fitting or ranks or [candidates[0]["rank"]]
    return ranks[{"best": 0, "middle": len(ranks) // 2, "last": -1}[place]]


def kinds_of(candidate):
    """Of its launches."""
    return tuple(f"{launch['family']}/{launch['config']['variant']}" for launch in candidate["launches"])


def ends_of_kinds(candidates):
    """The ranks of the first and the last of every kind."""
    ranks = collections.defaultdict(list)
    for candidate in candidates:
        ranks[kinds_of(candidate)].append(candidate["rank"])
    return sorted({rank for same in ranks.values() for rank in (same[0], same[-1])})


class Checker:
    def __init__(self, rollerc, folder):
        self.ranker, self.rollerc = Ranker(rollerc, folder), rollerc
        self.met = collections.Counter()   # family/variant -> launches of it that were proven

    def __call__(self, case):
        if isinstance(case, pathlib.Path):
            return self.check_regression(case)
        program, dtype, _, _, _, _ = case
        options = options_of_case(case)
        try:
            sizes, tile = choose_sizes(self.ranker, case)
            text = source(program, dtype, sizes)
            candidates = self.ranker.rank(text, *options)
            rank = choose_rank(candidates, case, tile)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return f"no ranking: {error}"
        return self.verify_ranked(text, options, candidates, rank)

    def verify_ranked(self, text, options, candidates, rank):
        kinds = next(kinds_of(candidate) for candidate in candidates if candidate["rank"] == rank)
        return self.verify(text, [*options, "--candidate", str(rank)], kinds)

    def verify(self, text, options, kinds):
        command = [self.rollerc, "-q", "-", *options, "--verify", "-o", "-"]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", timeout=300)
            reason = f"exit {done.returncode}: {done.stderr.strip()[:1500]}" if done.returncode else None
        except subprocess.TimeoutExpired:
            reason = "still running after 300 s"
        if not reason:
            self.met.update(kinds)
        again = [word for word in command if word != "-q"]
        return reason and f"{reason}\nagain: {shlex.join(again)} << END > kernel.cu\n{text}END"

    def check_regression(self, path):
        text = path.read_text()
        first = text.split("\n", 1)[0]
        options = shlex.split(first.removeprefix("# rollerc:")) if first.startswith("# rollerc:") else ["--device", "a100"]
        try:
            candidates = self.ranker.rank(text, *options)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return f"no ranking: {error}"
        if "--candidate" in options:
            rank = int(options[options.index("--candidate") + 1])
            kinds = next((kinds_of(candidate) for candidate in candidates if candidate["rank"] == rank), ())
            return self.verify(text, options, kinds)
        for rank in ends_of_kinds(candidates):
            reason = self.verify_ranked(text, options, candidates, rank)
            if reason:
                return reason
        return None


def title(case):
    if isinstance(case, pathlib.Path):
        return f"regression {case.name}"
    program, dtype, param, size, device, place = case
    return f"{program.family} {program.name} {dtype} {param}={size} {device} {place}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true", help="the full product of all choices")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of cases")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose title holds this")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    started = time.monotonic()
    every = list(all_cases())
    cases = every if args.all else pairwise(every, args.seed)
    cases += sorted((ROOT / "tests/regressions").glob("*.te"))
    cases = [case for case in cases if args.only in title(case)]
    tally = common.Tally(args.verbose)
    with tempfile.TemporaryDirectory() as folder:
        check = Checker(os.path.abspath(args.rollerc), folder)
        for case, reason in zip(cases, common.in_parallel(args.jobs, check, cases)):
            tally.add(title(case), reason)
    families = collections.Counter()
    for kind, count in check.met.items():
        families[kind.split("/")[0]] += count
    wanted = {kind.split("/")[0] for kind in common.kinds(args.rollerc)}.union(ELSEWHERE)
    for name in sorted(wanted.difference(families, check.met)):
        if not args.only:
            tally.add(name, "no candidate of it was proven")
    proven = ", ".join(f"{count} {family}" for family, count in sorted(families.items()))
    print(f"seed {args.seed}: {len(cases)} of {len(every)} cases in {time.monotonic() - started:.0f} s; launches proven: "
          f"{proven}")
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
