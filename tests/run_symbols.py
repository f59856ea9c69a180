#!/usr/bin/env python3
"""The floors and rooms hold: by the symbols of its objects no file calls one of a floor or room above it, and none includes
one; no files lean on each other in circles, no function is public for nobody, what a fusion is only views ask; no family is named
but in their list; no two types have one name; and a kind of kernel has few members, each of which several families set."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the ground up, as the table of doc/architecture.md has them; a room uses what stands before it. The linker checks floors, too; this test sees rooms and circles.
ROOMS = ["base", "explain", "ir", "front", "front/onnx", "hal", "schedule", "rtile", "kernel", "kernel/schedule", "model", "rprogram", "codegen/cuda", "codegen/family/attention", "codegen/family/depthwise", "codegen/family/gemm",
         "codegen/family/permute", "codegen/family/rows", "codegen/family/window", "codegen/family", "codegen/plan", "codegen",
         "prove", "rank", "clock", "", "batch", "main"]
STRANGERS = [("front", "hal"), ("front/onnx", "hal"), ("prove", "clock")] + [
    (f"codegen/family/{a}", f"codegen/family/{b}") for a in ("attention", "depthwise", "gemm", "permute", "rows", "window")
    for b in ("attention", "depthwise", "gemm", "permute", "rows", "window") if a != b]   # neither uses the other


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
    """What each source file defines and what it takes from others, by its object; and the files that define a view."""
    defined, taken, sources, views = {}, {}, {}, set()
    for path in sorted((build / "CMakeFiles").glob("*.dir/src/**/*.c.o")):
        source = str(path.relative_to(build / "CMakeFiles")).split(".dir/src/")[1].removesuffix(".o")
        if (ROOT / "src" / source).exists():   # not moved or deleted since
            sources[path] = source
    for path, kind, name in read_symbols(sources):
        if kind in "TDRBVW":
            defined[name] = sources[path]
        elif kind == "U":
            taken.setdefault(sources[path], set()).add(name)
        if kind in "tT" and re.search(r"(^|_)view(_of)?$", name):
            views.add(sources[path])
    return defined, taken, views


def uses(defined, taken):
    """By file: the files that it calls, each with a symbol that shows it."""
    return {source: {defined[name]: name for name in sorted(names) if defined.get(name, source) != source}
            for source, names in taken.items()}


def room(source):
    if source == "main.c":
        return "main"   # stands beside the driver, and calls what is above it
    if source.startswith("hal/"):
        return "hal"   # with its interpreter, whose interface C and C++ read
    folder = str(pathlib.PurePath(source).parent)
    return "" if folder == "." else folder


def is_no_room_below(target, source):
    above, below = room(source), room(target)
    return ROOMS.index(below) > ROOMS.index(above) or (above, below) in STRANGERS or (below, above) in STRANGERS


def calls_upwards(graph):
    for source, targets in sorted(graph.items()):
        for target, name in sorted(targets.items()):
            if is_no_room_below(target, source):
                yield f"{source} calls {name} of {target}, which is no room below"


def included_by(source, text, sources):
    """Those of the sources that the text includes, written from src/ or, in the interpreter's machine, from its folder."""
    for name in re.findall(r'^ *# *include +"(.*?)"', text, re.MULTILINE):
        beside = os.path.normpath(pathlib.PurePath(source).parent / name)
        found = name if name in sources else beside
        assert found in sources, f"src/{source} includes {name}, which is nowhere"
        yield found


def includes_upwards(texts):
    for source, text in sorted(texts.items()):
        for target in included_by(source, text, texts):
            if is_no_room_below(target, source):
                yield f"{source} includes {target}, which is in no room below"


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


def is_recogniser(name, source):
    """A function that asks what a fusion is."""
    return name in ("reads_find", "window_find", "window_find_standing", "window_has_tap") or (source.startswith("codegen/family/") and re.search(r"_find(_|$)", name))


def recognised_again(defined, taken, views):
    """Recognisers outside of views: what these have found is passed on. One may ask another one."""
    recognisers = {name: source for name, source in defined.items() if is_recogniser(name, source)}
    for source, names in sorted(taken.items()):
        if source not in views and source not in recognisers.values():
            for name in sorted(names & recognisers.keys()):
                yield f"{source} calls {name} of {recognisers[name]}, and defines no view"


def families_named(defined, taken, texts):
    """Families' records outside of their own files and of the one list; and what the planner includes of their rooms."""
    records = {name: source for name, source in defined.items()
               if name.endswith("_family") and source.startswith("codegen/family/")}
    for source, names in sorted(taken.items()):
        if source != "codegen/family/families.c":
            for name in sorted(names & records.keys()):
                yield f"{source} names {name} of {records[name]}"
    for source, text in sorted(texts.items()):
        if source.startswith("codegen/plan/"):
            for name in re.findall(r'#include "(codegen/family/.*?)"', text):
                if name != "codegen/family/family.h":
                    yield f"{source} includes {name}"


def members(text, name):
    """Of the struct, those of structs that the text defines, too, by their path: threads.most."""
    body = re.search(rf"^(?:typedef )?struct {name} {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL).group(1)
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", body, flags=re.DOTALL)
    for statement in body.split(";"):
        statement = statement.strip()
        function = re.search(r"\(\*(\w+)\)\(", statement)
        if function:
            yield function.group(1)
        elif statement:
            type_name, *names = re.findall(r"\w+(?:\[.*?\])?", re.sub(r"^(const|struct) ", "", re.sub(r"^const ", "", statement)))
            inside = re.search(rf"^typedef struct {type_name} {{", text, re.MULTILINE) and "*" not in statement and type_name != CHOICE
            for member in names:
                yield from ([f"{member}.{part}" for part in members(text, type_name)] if inside else [member])


MOST_MEMBERS, CHOICE = 18, "FamilyChoice"   # which is the family's own


def kinds_grown(texts):
    """Members of a kernel's kind beyond the number that there may be, and those that one family alone sets."""
    names = list(members(texts["kernel/kind.h"], "KernelKind"))
    if len(names) > MOST_MEMBERS:
        yield f"a KernelKind has {len(names)} members, of which there may be {MOST_MEMBERS}: {' '.join(names)}"
    for name in names:
        setting = re.compile(rf"[\s.>]{re.escape(name)}(\.\w+)? (= )+|\bkind_{'choose' if name == 'choice' else 'begin' if name in ('space', 'schedule') else name}\(")
        by = sorted(source for source, text in texts.items() if source.startswith("codegen/family/") and setting.search(text))
        if len(by) < 2:
            yield f"KernelKind.{name} is set by {' '.join(by) or 'no family'} alone"


def folders_of_table():
    """The table's folders of src/ in order, which are rooms or hold some."""
    table = (ROOT / "doc" / "architecture.md").read_text().split("## The floors")[1].split("\n\n")[2]
    names = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
    return ["" if name == "src/*.c" else name.rstrip("/") for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    build = pathlib.Path(parser.parse_args().rollerc).resolve().parent
    defined, taken, views = symbols(build)
    graph = uses(defined, taken)
    for source in graph:
        assert room(source) in ROOMS, f"src/{source} stands in a room that ROOMS does not name"
    texts = {str(path.relative_to(ROOT / "src")): path.read_text() for path in (ROOT / "src").rglob("*")
             if path.suffix in (".c", ".h", ".cpp", ".def")}
    faults = [*calls_upwards(graph), *includes_upwards(texts), *circles(graph), *shared_names(texts),
              *uncalled(defined, taken, called_by_tests(build)), *recognised_again(defined, taken, views),
              *families_named(defined, taken, texts), *kinds_grown(texts)]
    assert len(views) > 10, f"only {len(views)} files define a view"
    assert [name for name in ROOMS if name in folders_of_table()] == folders_of_table(), "the table of doc/architecture.md has another order"
    assert len(graph) > 100, f"only {len(graph)} objects below {build}"
    # The test itself: a call upwards and a circle put in on purpose are found.
    some = {"rtile/align.c": {"codegen/codegen.c": "x"}, "codegen/codegen.c": {"rtile/align.c": "y"}}
    assert list(calls_upwards(some)) and list(circles(some))
    upwards = {"rtile/align.c": '#include "rtile/rtile.h"\n#include "kernel/layout.h"\n', "rtile/rtile.h": "", "kernel/layout.h": "",
               "codegen/family/gemm/mma.h": '#include "codegen/family/rows/passes.h"\n', "codegen/family/rows/passes.h": ""}
    assert len(list(includes_upwards(upwards))) == 2   # of a floor above, and of a room that is a stranger
    assert shared_names({"a.c": "typedef struct Twice {", "b.h": "typedef enum Twice {"})
    known = {"product_find": "codegen/family/gemm/product.c", "reads_find": "codegen/cuda/reads.c"}
    asks = {"codegen/family/gemm/mma.c": {"product_find"}, "codegen/family/gemm/bulk.c": {"product_find", "product_view"},
            "codegen/family/reduce.c": {"reads_find"}}
    records = {"gemm_family": "codegen/family/gemm/gemm.c", "families": "codegen/family/families.c"}
    names = {"codegen/family/families.c": {"gemm_family"}, "codegen/family/gemm/bulk.c": {"gemm_family"}, "codegen/plan/choices.c": {"families"}}
    assert len(list(families_named(records, names, {"codegen/plan/choices.c": '#include "codegen/family/gemm/pack.h"\n'}))) == 2
    assert len(list(recognised_again(known, asks, {"codegen/family/gemm/mma.c"}))) == 2
    kind = {"kernel/kind.h": "typedef struct Two {\n    int a, b;   // c\n} Two;\nstruct KernelKind {\n    Two two;\n    bool *x;\n};\n",
            "codegen/family/a.c": " two.a = 1;", "codegen/family/b.c": "k->two.a = 1, .two.b = 2"}
    assert list(members(kind["kernel/kind.h"], "KernelKind")) == ["two.a", "two.b", "x"]
    assert len(list(kinds_grown(kind))) == 2   # b, and x
    assert uncalled({"alone": "a.c"}, {"b.c": {"other"}})
    print(f"symbols: {len(graph)} files, {sum(map(len, graph.values()))} uses, {len(faults)} faults", *faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
