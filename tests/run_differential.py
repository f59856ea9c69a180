#!/usr/bin/env python3
"""Every family on the CPU interpreter against the reference: types, ragged sizes, devices, kinds of candidates.

    python3 tests/run_differential.py --rollerc build/rollerc           every pair of choices is met (the default)
    python3 tests/run_differential.py --rollerc build/rollerc --each    each size of each axis of a program, not of a family
    python3 tests/run_differential.py --rollerc build/rollerc --all     the full product

For each case the ranking says which candidates are of the family that the case is about, so that a family is proven
although another is ranked first; of devices that offer none of it few cases are proven. Of tests/regressions/*.te the first
candidate of every choice of families is proven, and of kinds that random programs are too small for, until each was met twice;
of those that no choice is, the first program of the cases that has a candidate of it is proven once more. With --each or --all
the first and the last of every kind. The first choice of each family's programs is proven by `rollerc --verify`, and what is too
large to be run whole; the others together, many in one translation unit: of a program's each on another kind of special
inputs, of a regression's on all.
"""
import argparse
import collections
import heapq
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
from differential.listed import OPTIONS, Choice, Prover
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
            candidates = json.load(file)["candidates"]
        ids = [candidate["id"] for candidate in candidates[:10]]
        if len(set(ids)) < len(ids):
            raise RuntimeError(f"a candidate stands there twice: {ids}")
        return candidates


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


def pairs(case, each):
    """Of a family's choices, and each size of each of its axes; with `each` of each of a program's."""
    program, dtype, param, size, device, place = case
    values = {"program": program.name, "type": dtype, "size": size, "device": device, "place": place}
    of_axes = [(program.family, program.axes[param][0], size), (program.name, param, size if each else None)]
    return [(program.family, *pair) for pair in itertools.combinations(sorted(values.items()), 2)] + of_axes


def pairwise(cases, seed, each=False):
    """Greedy: the one that meets most new pairs, until all are met. What a case met earlier, it meets at most now."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    meets = [frozenset(pairs(case, each)) for case in order]
    left = set().union(*meets)
    most = [(-len(met), i) for i, met in enumerate(meets)]   # a heap
    heapq.heapify(most)
    chosen = []
    while left:
        _, i = heapq.heappop(most)
        new = meets[i] & left
        if most and len(new) < -most[0][0]:
            heapq.heappush(most, (-len(new), i))
        else:
            left -= new
            chosen.append(order[i])
    return sorted(chosen, key=lambda case: (case[0].family, case[0].name, case[1:]))


def options_of_case(case):
    program, dtype, _, _, device, _ = case
    return ["--device", device, "--top-k", "100", *options_of(program, dtype)]


def tile_at_base_sizes(ranker, text, case):
    """Of the family's best candidate, which is among the first ten as a rule: they are ranked in half of the time."""
    program, _, param, _, _, _ = case
    for kept in ("10", "100"):
        for candidate in ranker.rank(text, *options_of_case(case), "--top-k", kept):
            tile = tile_of(candidate, program.family, program.axes[param][0])
            if tile:
                return tile
    return 0


def choose_sizes(ranker, case):
    """The params of a case; the tile is that of the family's best candidate at the base sizes."""
    program, dtype, param, size, _, _ = case
    sizes = {name: base for name, (_, base) in program.axes.items()}
    axis = program.axes[param][0]
    tile = 0
    if size.startswith("tile"):
        tile = min(tile_at_base_sizes(ranker, source(program, dtype, sizes), case) or 32, 2048)
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


def ranks_of_kinds(candidates, ends):
    """The first of every kind; with `ends` the last, too."""
    ranks = collections.defaultdict(list)
    for candidate in candidates:
        ranks[kinds_of(candidate)].append(candidate["rank"])
    return sorted({rank for same in ranks.values() for rank in (same[0], same[-1] if ends else same[0])})


def fewer(found):
    """Of regressions the first of every choice of families, and the kinds that are to be proven here, until met twice."""
    met, families = collections.Counter(), set()
    for these in found:
        kept = []
        for choice in these if isinstance(these, list) else ():
            of = choice.title, *(kind.split("/")[0] for kind in choice.kinds)
            rare = any(kind in ELSEWHERE and met[kind] < 2 for kind in choice.kinds)
            if choice.special is not None or of not in families or rare:
                kept.append(choice)
                families.add(of)
                met.update(choice.kinds)
        yield kept if isinstance(these, list) else these


def without_repeats(numbered, found, offered):
    """Where a device offers none of a family, its cases are all of the first candidate, of another family, which has cases of its own
    for each size and place. Kept are the first of each family and device, and what is a kind of kernel that no other case has there
    in its type."""
    def kernels(case, these):
        return {(kind, case[4], case[1]) for choice in (these if isinstance(these, list) else ()) for kind in choice.kinds}

    pairs = list(zip(numbered, found))
    others = [not isinstance(case, pathlib.Path) and (case[0].family, case[4]) not in offered for (_, case), _ in pairs]
    met = set().union(*(kernels(case, these) for ((_, case), these), other in zip(pairs, others)
                        if not other and not isinstance(case, pathlib.Path)))
    for ((number, case), these), other in zip(pairs, others):
        if other:
            new = kernels(case, these) | {(case[0].family, case[4])}
            if new <= met:
                continue
            met |= new
        yield (number, case), these


class Chooser:
    """What is proven of a case."""

    def __init__(self, ranker, ends):
        self.ranker, self.ends = ranker, ends
        self.offered = set()   # (family, device)
        self.rare = collections.defaultdict(list)   # kind of ELSEWHERE -> programs of cases that have a candidate of it

    def __call__(self, numbered):
        """Its choices, or why there are none."""
        number, case = numbered
        try:
            return self.of_regression(case) if isinstance(case, pathlib.Path) else self.of_program(case, number)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return f"no ranking: {error}"

    def of_program(self, case, number):
        program, dtype, _, _, _, _ = case
        options = options_of_case(case)
        sizes, tile = choose_sizes(self.ranker, case)
        text = source(program, dtype, sizes)
        candidates = self.ranker.rank(text, *options)
        rank = choose_rank(candidates, case, tile)
        kinds = {candidate["rank"]: kinds_of(candidate) for candidate in candidates}
        self.offered |= {(kind.split("/")[0], case[4]) for each in kinds.values() for kind in each}
        for other in ranks_of_kinds(candidates, False):
            for kind in set(kinds[other]).intersection(ELSEWHERE):
                self.rare[kind].append((number, Choice(title(case), text, options, other, kinds[other], number)))
        return [Choice(title(case), text, options, rank, kinds[rank], number)]

    def unmet(self, choices):
        """Of each kind of ELSEWHERE that none of the choices is the first program that has it."""
        met = {kind for choice in choices for kind in choice.kinds}
        return [[min(self.rare[kind], key=lambda pair: pair[0])[1]] for kind in ELSEWHERE if kind not in met and self.rare[kind]]

    def of_regression(self, path):
        text = path.read_text()
        first = text.split("\n", 1)[0]
        options = shlex.split(first.removeprefix("# rollerc:")) if first.startswith("# rollerc:") else ["--device", "a100"]
        candidates = self.ranker.rank(text, *options)
        said = OPTIONS.parse_args(options)
        ranks = [said.candidate] if said.candidate else ranks_of_kinds(candidates, self.ends)
        kinds = {candidate["rank"]: kinds_of(candidate) for candidate in candidates}
        return [Choice(title(path), text, options, rank, kinds.get(rank, ()), None) for rank in ranks]


def first_of_each(choices):
    """The numbers of those that are the first of their family, or of all regressions."""
    found = {}
    for i, choice in enumerate(choices):
        found.setdefault(choice.title.split()[0], i)
    return set(found.values())


def title(case):
    if isinstance(case, pathlib.Path):
        return f"regression {case.name}"
    program, dtype, param, size, device, place = case
    return f"{program.family} {program.name} {dtype} {param}={size} {device} {place}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--each", action="store_true", help="each size of each axis of a program; two candidates of a kind")
    parser.add_argument("--all", action="store_true", help="the full product of all choices")
    parser.add_argument("--seed", type=int, default=2, help="of the choice of cases")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--only", default="", help="cases whose title holds this")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    started = time.monotonic()
    every = list(all_cases())
    cases = every if args.all else pairwise(every, args.seed, args.each)
    cases += sorted((ROOT / "tests/regressions").glob("*.te"))
    numbered = [(number, case) for number, case in enumerate(cases) if args.only in title(case)]
    tally = common.Tally(args.verbose)
    met = collections.Counter()   # family/variant -> launches of it that were proven
    with tempfile.TemporaryDirectory() as folder:
        rollerc = os.path.abspath(args.rollerc)
        chooser = Chooser(Ranker(rollerc, folder), args.each or args.all)
        found = list(common.in_parallel(args.jobs, chooser, numbered))
        if not (args.each or args.all):
            numbered, found = zip(*without_repeats(numbered, fewer(found), chooser.offered))
            found = list(found)
        choices = [choice for these in found if isinstance(these, list) for choice in these]
        unmet = chooser.unmet(choices)
        found, choices = found + unmet, choices + sum(unmet, [])
        reasons = iter(Prover(rollerc, folder, args.jobs)(choices, first_of_each(choices)))
        names = [title(case) for _, case in numbered] + [f"{these[0].title} once more" for these in unmet]
        for name, these in zip(names, found):
            if isinstance(these, str):
                tally.add(name, these)
                continue
            said = [(choice, next(reasons)) for choice in these]
            tally.add(name, next((reason for _, reason in said if reason), None))
            met.update(kind for choice, reason in said if not reason for kind in choice.kinds)
    families = collections.Counter()
    for kind, count in met.items():
        families[kind.split("/")[0]] += count
    wanted = {kind.split("/")[0] for kind in common.kinds(args.rollerc)}.union(ELSEWHERE)
    for name in sorted(wanted.difference(families, met)):
        if not args.only:
            tally.add(name, "no candidate of it was proven")
    proven = ", ".join(f"{count} {family}" for family, count in sorted(families.items()))
    print(f"seed {args.seed}: {len(numbered)} of {len(every)} cases in {time.monotonic() - started:.0f} s; launches proven: "
          f"{proven}")
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
