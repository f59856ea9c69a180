#!/usr/bin/env python3
"""The floors and rooms hold: by the symbols of its objects no file calls one of a floor or room above it, no files lean on
each other in circles, no function is public for nobody; and no two types have one name."""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the ground up; a room uses what stands before it. The linker checks floors, too; this test sees rooms and circles.
ROOMS = ["base", "explain", "ir", "front", "hal", "rtile", "schedule", "rprogram/cost", "rprogram", "codegen/cuda", "codegen/family/depthwise", "codegen/family/gemm",
         "codegen/family/permute", "codegen/family/rows", "codegen/family/window", "codegen/family", "codegen/plan", "codegen",
         "prove", "rank", "clock", "", "batch", "main"]
STRANGERS = [("front", "hal"), ("prove", "rank"), ("prove", "clock")] + [
    (f"codegen/family/{a}", f"codegen/family/{b}") for a in ("depthwise", "gemm", "permute", "rows", "window")
    for b in ("depthwise", "gemm", "permute", "rows", "window") if a != b]   # neither uses the other


def read_symbols(objects):
    """(object, kind, name) of all; in one process, since starting nm takes longer than it works."""
    path = None
    for line in subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(":"):
            path = pathlib.Path(line[:-1])
        elif line:
            *_, kind, name = line.split()
            yield path, kind, name


def symbols(build):
    """What each source file defines and what it takes from others, by its object."""
    defined, taken, sources = {}, {}, {}
    for path in sorted((build / "CMakeFiles").glob("*.dir/src/**/*.c.o")):
        source = str(path.relative_to(build / "CMakeFiles")).split(".dir/src/")[1].removesuffix(".o")
        if (ROOT / "src" / source).exists():   # not moved or deleted since
            sources[path] = source
    for path, kind, name in read_symbols(sources):
        if kind in "TDRBVW":
            defined[name] = sources[path]
        elif kind == "U":
            taken.setdefault(sources[path], set()).add(name)
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


def shared_names(texts):
    """Types that two of the files define: a reader would take one for the other."""
    homes = {}
    for source, text in sorted(texts.items()):
        for name in re.findall(r"^typedef (?:struct|enum|union) (\w+)", text, re.MULTILINE):
            homes.setdefault(name, []).append(source)
    return [f"{name} is a type in {' and in '.join(sources)}" for name, sources in homes.items() if len(sources) > 1]


def called_by_tests(build):
    return {name for _, kind, name in read_symbols((build / "tests").rglob("*.o")) if kind == "U"}


def uncalled(defined, taken, others=()):
    """Functions that no other object calls: they are static, or nobody needs them."""
    called = set(others).union(*taken.values())
    return [f"{name} of {source} is called by no other file" for name, source in sorted(defined.items())
            if name not in called and name != "main"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    build = pathlib.Path(parser.parse_args().rollerc).resolve().parent
    defined, taken = symbols(build)
    graph = uses(defined, taken)
    for source in graph:
        assert room(source) in ROOMS, f"src/{source} stands in a room that ROOMS does not name"
    texts = {str(path): path.read_text() for path in (ROOT / "src").rglob("*.[ch]")}
    faults = [*calls_upwards(graph), *circles(graph), *shared_names(texts), *uncalled(defined, taken, called_by_tests(build))]
    assert len(graph) > 100, f"only {len(graph)} objects below {build}"
    # The test itself: a call upwards and a circle put in on purpose are found.
    some = {"rtile/align.c": {"codegen/codegen.c": "x"}, "codegen/codegen.c": {"rtile/align.c": "y"}}
    assert list(calls_upwards(some)) and list(circles(some))
    assert shared_names({"a.c": "typedef struct Twice {", "b.h": "typedef enum Twice {"})
    assert uncalled({"alone": "a.c"}, {"b.c": {"other"}})
    print(f"symbols: {len(graph)} files, {sum(map(len, graph.values()))} uses, {len(faults)} faults", *faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
