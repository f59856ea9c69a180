#!/usr/bin/env python3
"""Half a megabyte or two of anything are answered within a second: every token, bracket and statement, again and again, as a
program; every kind of line as a device file, a manifest, a ranking. What takes time by the square of the input does
not end within the limit.

Only how rollerc ends is judged: an exit code of its own, and processor time.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BYTES = (1 << 20) - 4096   # of a manifest, which has a megabyte at most, with room for what stands around it
TOKEN_BYTES = 1 << 19
PROGRAM_BYTES = 2 << 20   # which has four at most; what is a statement or a part of one has so many here
RANKING_BYTES = 4 << 20   # which has 256 at most
SECONDS = 3   # of processor time; the slowest takes one

WORDS = """param input output sum max min prod inf pi pad cast select exp log sqrt rsqrt tanh erf sigmoid sin cos atan asin acos round abs
floor ceil sq relu pow f64 f32 f16 bf16 i32 i8 u8 b1 y i 1 1.5 1e9 0x""".split()
SYMBOLS = "( ) [ ] { } , : = + - * / < <= > >= == != && || ! % ^ ** // ? ; @ & | . $ \" ' \\ ~ ` \x01 \x7f é".split()
CALLS = [word + "(" for word in "sum max pad cast select exp pow floor round".split()]
OPENINGS = ["weight y[", "view y[", "y[", "y[y[", "sum[i](", "max[i:", "sum[", "y[(", "y[i](", "y(", "pad(y[", "select(y[i] > 0, ", "-(", "!(", "y[-",
            "y[i] = y[", "y[i:", "y[i] : f32 = (", "input y[", "output y :", "param y = (", "y ] [", "] [", ") ("]
STATEMENTS = ["param y = 1\n", "param y# = 1\n", "param y# = y#\n", "input x[8] : f32\n", "weight w#[8] : f32\n", "view v#[8] = x\n", "weight weight[8] : f32\n", "input x#[8] : f32\n", "output y\n",
              "output y#\n", "y[i] = x[i]\n", "y#[i] = x[i]\n", "y#[i] = z[i]\n", "y[i] x[i]\n", "inptu x[8] : f32\n",
              "y[i] += x[i]\n", "y[i] = \n", "y[i] = x[i] x\n", "y[i:8] = 1\n", "y[y[i]] = 1\n", "y : f32\n", "x y\n", "y\n",
              "x[y# = 1\n", "y# y[\n", "input y#[y#\n"]
EXPRESSIONS = [" + x[i]", " - - x[i]", " * x[i] / 2", " && x[i] > 0", " < x[i]", " == 1", "(x[i])", "[i]", ", x[i]", " x[i]", " 1"]


def many(text, size=BYTES):
    """The text so often that it fills the size; # stands for how often it has been said."""
    if "#" in text:
        return "".join(text.replace("#", str(i)) for i in range(size // (len(text) + 7)))
    return text * (size // len(text.encode()))


def programs():
    head, tail = "input x[8] : f32\n", "\noutput y\n"
    for text in [*WORDS, *SYMBOLS, *CALLS, *OPENINGS, *STATEMENTS]:
        yield f"{text!r}", many(text, PROGRAM_BYTES if len(text.split()) > 1 else TOKEN_BYTES)
        yield f"{text!r} in blanks", many(text + " ", TOKEN_BYTES)
        yield f"{text!r} on lines of their own", many(text.rstrip("\n") + "\n", TOKEN_BYTES)
        yield f"{text!r} in an expression", f"{head}y[i] = {many(text, TOKEN_BYTES)}{tail}"
    for text in EXPRESSIONS:
        yield f"an expression of {text!r}", f"{head}y[i] = x[i]{many(text, PROGRAM_BYTES)}{tail}"
        yield f"a param of {text!r}", f"param y = 1{many(text, TOKEN_BYTES)}"
    yield "one name", "y" * BYTES
    yield "one number", "1" * BYTES
    yield "one fraction", "." + "1" * BYTES
    yield "one comment", "#" * BYTES
    yield "comments", many("# \n".replace("#", "\0")).replace("\0", "#")
    yield "blanks", " " * BYTES
    yield "lines", "\n" * BYTES
    yield "NUL", "\0" * BYTES
    yield "warnings", "".join(f"y{i}[i] = x[i]{' ' * 980}\n" for i in range(1000)).join([head, tail.replace("y", "y1")])
    yield "names in a gap", head + "".join(f"a{i}[i] = z[i]\n" for i in range(1000)) + "y[i] = (" + many(" w", TOKEN_BYTES) + " z\noutput y\n"
    yield "a definition, then garbage", f"{head}y[i] = x[i]{tail}{many('x[ = ')}"


def devices():
    good = (ROOT / "devices/a100.yaml").read_text()
    for size in (65536 - 8192, BYTES):   # the first is the most that a device file has
        for line in ("a: 1\n", "a#: 1\n", "a#:\n  b: 1\n", "- a\n", "a: [", "a: {", "{", "[", "? ", "&a ", "*a\n", "!a ", "'", "\"",
                     "# a\n", "\t", "é", "%", "---\n", "<<: a\n", "a: |\n", "compute:\n"):
            yield f"{size} bytes of {line!r}", many(line, size)
            yield f"{size} bytes of {line!r} behind a device", good + many(line, size)
        yield f"{size} bytes of keys of a group", good + many("  b#: 1\n", size)


def manifests():
    """Those that would be right have an expression that is not there, so that nothing is compiled."""
    kernel = "kernels:\n  - expr: none.te\n"
    for line in ("a: 1\n", "a#: 1\n", "a#:\n  b: 1\n", "- a\n", "a: [", "a: {", "{", "[", "? ", "&a ", "*a\n", "!a ", "'", "\"",
                 "é", "%", "---\n", "<<: a\n", "a: |\n", "kernels:\n"):
        yield f"{line!r}", many(line)
    yield "kernels", "devices: a100\nkernels:\n" + many("  - {expr: none.te}\n")
    yield "kernels that are words", "devices: a100\nkernels:\n" + many("  - a\n")
    yield "keys of a kernel", "devices: a100\n" + kernel + many("    a#: 1\n")
    yield "options", "devices: a100\n" + kernel + "    options:\n" + many("      a#: 1\n")
    yield "the same option", "devices: a100\n" + kernel + "    options:\n" + many("      math: fast\n")
    yield "kinds", "devices: a100\n" + kernel + "    emit: [" + many("cu, ") + "cu]\n"
    for name in ("a100", "mi50", "none", "none#"):
        yield f"devices {name}", "devices: [" + many(name + ", ") + name + "]\n" + kernel
        yield f"devices {name} of a kernel", kernel + "    devices: [" + many(name + ", ") + name + "]\n"
    yield "devices, the last one unknown", "devices: [" + many("a100, ") + "none]\n" + kernel
    yield "device files", "devices: [" + many("./none#.yaml, ") + "a100]\n" + kernel
    made = "devices: [{}]\nkernels:\n  - expr: " + str(ROOT / "examples/permute_021.te") + "\n"
    yield "devices of a kernel that is there", made.format(many("a100, ") + "a100")
    yield "values", made.format("a100") + "    output: a.cu\n    defines: {N: [" + many("1, ") + "1]}\n"
    yield "combinations", made.format("a100") + "    defines:\n" + "".join(f"      N{i}: [1, 2, 3, 4]\n" for i in range(200))
    yield "sets of defines", made.format("a100") + "    defines:\n" + many("      - {N: #}\n")
    yield "a pattern", made.format("a100") + "    output: " + many("{device}") + "\n"
    yield "open braces", made.format("a100") + "    output: \"" + many("{") + "\"\n"


def rankings(rollerc, folder):
    """A ranking with one list or object of it so long."""
    path = folder / "ranking.json"
    subprocess.run([rollerc, ROOT / "examples/softmax.te", "--device", "a100", "--json", path, "-d", "tokens"], check=True,
                   stdout=subprocess.DEVNULL)
    text = path.read_text()
    first = json.loads(text)["candidates"][0]
    for token in ('{"a":', "[", "{", "1,", '"', "\\", "a", "1", "-", "null,", '{"a":1},', "\n"):
        yield f"{token!r}", many(token, RANKING_BYTES)
    for opened, closed in (('{"a":', "}"), ("[", "]")):
        yield f"{opened!r} closed", many(opened, RANKING_BYTES) + "1" + many(closed)

    def with_change(change):
        ranking = json.loads(text)
        change(ranking)
        return json.dumps(ranking)
    launch = first["launches"][0]
    yield "candidates", with_change(lambda r: r["candidates"].extend([first] * (RANKING_BYTES // len(json.dumps(first)))))
    yield "launches", with_change(lambda r: r["candidates"][0]["launches"].extend([launch] * (RANKING_BYTES // len(json.dumps(launch)))))
    yield "keys", with_change(lambda r: r.update({f"k{i}": 1 for i in range(RANKING_BYTES // 14)}))
    yield "axes", with_change(lambda r: launch_of(r)["config"]["tile"]["global"].update({f"k{i}": 1 for i in range(RANKING_BYTES // 14)}))
    yield "reduced", with_change(lambda r: launch_of(r)["config"]["reduced"].extend(["a"] * (RANKING_BYTES // 5)))
    yield "grid", with_change(lambda r: launch_of(r)["grid"].extend([1] * (RANKING_BYTES // 3)))
    yield "the expression", with_change(lambda r: r["workload"].update(expr="<&\n" * (RANKING_BYTES // 4)))
    yield "a name", with_change(lambda r: launch_of(r).update(family="a" * RANKING_BYTES))


def launch_of(ranking):
    return ranking["candidates"][0]["launches"][0]


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def problem_of(rollerc, arguments, folder):
    """What is wrong with how rollerc ends, or None, and the seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([rollerc, *arguments], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, preexec_fn=limits)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    if done.returncode < 0:
        return f"ends by signal {-done.returncode}", took
    if done.returncode not in (0, 1, 3):
        return f"exit code {done.returncode}: {done.stderr[:300].decode(errors='replace')}", took
    return None, took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--only", help="kinds of input: program, device, manifest, ranking, page")
    parser.add_argument("--times", action="store_true", help="print those that take longest")
    options = parser.parse_args()
    rollerc, failures, times = os.path.abspath(options.rollerc), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kinds = (
            ("program", ".te", programs(), lambda path: [path, "--device", "a100", "-o", "-"]),
            ("device", ".yaml", devices(), lambda path: [ROOT / "examples/permute_021.te", "--device", path, "-o", "-"]),
            ("manifest", ".yaml", manifests(), lambda path: ["batch", path, "--list"]),
            ("ranking", ".json", rankings(rollerc, folder), lambda path: ["explain", path]),
            ("page", ".json", rankings(rollerc, folder), lambda path: ["explain", path, "--html=page.html"]),
        )
        for kind, suffix, inputs, command in kinds:
            for what, text in inputs if options.only in (None, kind) else ():
                path = folder / ("input" + suffix)
                path.write_text(text, encoding="utf-8")
                problem, took = problem_of(rollerc, command(path), folder)
                times.append((took, f"{kind}: {what}"))
                if problem:
                    failures.append(f"{kind} of {what}: {problem}")
                    print(failures[-1], flush=True)
    for took, what in sorted(times, reverse=True)[:15 if options.times else 1]:
        print(f"{took:6.2f} s  {what}")
    print(f"{len(times)} long inputs, {len(failures)} failures")
    return 1 if failures or (not times) else 0


if __name__ == "__main__":
    sys.exit(main())
