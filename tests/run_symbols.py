#!/usr/bin/env python3
"""The floors and rooms hold: by the symbols of its objects no file calls one of a floor or room above it, and no files lean on
each other in circles."""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the ground up; a room uses what stands before it. The linker checks floors, too; this test sees rooms and circles.
ROOMS = ["base", "explain", "ir", "front", "hal", "rtile", "schedule", "rprogram/cost", "rprogram", "codegen/cuda", "codegen/family/gemm",
         "codegen/family/permute", "codegen/family/rows", "codegen/family/window", "codegen/family", "codegen/plan", "codegen",
         "prove", "rank", "clock", "", "batch", "main"]
STRANGERS = [("front", "hal"), ("prove", "rank"), ("prove", "clock")] + [
    (f"codegen/family/{a}", f"codegen/family/{b}") for a in ("gemm", "permute", "rows", "window")
    for b in ("gemm", "permute", "rows", "window") if a != b]   # neither uses the other


def symbols(build):
    """What each source file defines and what it takes from others, by its object."""
    defined, taken = {}, {}
    for path in sorted((build / "CMakeFiles").glob("*.dir/src/**/*.c.o")):
        source = str(path.relative_to(build / "CMakeFiles")).split(".dir/src/")[1].removesuffix(".o")
        if not (ROOT / "src" / source).exists():
            continue   # moved or deleted since
        for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
            *_, kind, name = line.split()
            if kind in "TDRBVW":
                defined[name] = source
            elif kind == "U":
                taken.setdefault(source, set()).add(name)
    return defined, taken


def uses(defined, taken):
    """By file: the files that it calls, each with a symbol that shows it."""
    return {source: {defined[name]: name for name in sorted(names) if defined.get(name, source) != source}
            for source, names in taken.items()}


def room(source):
    if source == "main.c":
        return "main"   # stands beside the driver, and calls what is above it
    folder = str(pathlib.PurePath(source).parent)
    return "" if folder == "." else folder


def calls_upwards(graph):
    for source, targets in sorted(graph.items()):
        for target, name in sorted(targets.items()):
            above, below = room(source), room(target)
            if ROOMS.index(below) > ROOMS.index(above) or (above, below) in STRANGERS or (below, above) in STRANGERS:
                yield f"{source} calls {name} of {target}, which is no room below"


def circles(graph):
    """Files that reach themselves, by the shortest way."""
    for start in sorted(graph):
        came, queue = {start: None}, [start]
        for source in queue:
            for target in graph.get(source, ()):
                if target == start:
                    way = [start]
                    while source:
                        way.append(source)
                        source = came[source]
                    yield " <- ".join(way)
                    return
                if target not in came:
                    came[target] = source
                    queue.append(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    build = pathlib.Path(parser.parse_args().rollerc).resolve().parent
    defined, taken = symbols(build)
    graph = uses(defined, taken)
    for source in graph:
        assert room(source) in ROOMS, f"src/{source} stands in a room that ROOMS does not name"
    faults = [*calls_upwards(graph), *circles(graph)]
    assert len(graph) > 100, f"only {len(graph)} objects below {build}"
    # The test itself: a call upwards and a circle put in on purpose are found.
    some = {"rtile/align.c": {"codegen/codegen.c": "x"}, "codegen/codegen.c": {"rtile/align.c": "y"}}
    assert list(calls_upwards(some)) and list(circles(some))
    print(f"symbols: {len(graph)} files, {sum(map(len, graph.values()))} uses, {len(faults)} faults", *faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
