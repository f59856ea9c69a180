#!/usr/bin/env python3
"""The limits of a program are those that doc/language.md states: a program at each is accepted, one past it is refused, in words
that hold the limit. A row of the page without a program here fails, and so does a program without a row."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common

PAGE = pathlib.Path(__file__).resolve().parent.parent / "doc/language.md"


# ---- programs that reach `n`, and what else is on the command line

def file_of(n):
    text = "input x[4] : f32\ny[i] = x[i]\noutput y\n#"
    return text + "-" * (n - len(text))


def statements(n):
    return "".join(f"y{k}[i:4] = i\n" for k in range(n - 1)) + "output y0"


def nodes(n):
    """The extent is one; a sum of 200 operands has 399, and one joins it to the next; the last sum begins with i or with -i."""
    sums = ["(" + "+".join(["i"] * 200) + ")"] * ((n - 200) // 400)
    rest = n - 1 - 400 * len(sums)
    first, left = ("i", rest - 1) if rest % 2 else ("-i", rest - 2)
    return f"y[i:4] = {'+'.join([*sums, first])}{'+i' * (left // 2)}\noutput y"


def deep(n):
    return f"y[i:4] = {'-' * n}i\noutput y"


def brackets(n):
    return f"y[i:4] = {'(' * n}i{')' * n}\noutput y"


def name(n):
    return f"y[i:4] = i\n{'n' * n}[i] = y[i]\noutput {'n' * n}"


def dimensions(n):
    return f"input x[{', '.join(['2'] * n)}] : f32\ny[i] = x[{', '.join(['i'] + ['0'] * (n - 1))}]\noutput y"


def variables(n):
    return f"input x[2] : f32\ny[i:2] = sum[{', '.join(f'k{k}:2' for k in range(n - 1))}](x[i])\noutput y"


def tensors(n):
    inputs = "".join(f"input x{k}[4] : f32\n" for k in range(n))
    return f"{inputs}y[i] = {' + '.join(f'x{k}[i]' for k in range(n))}\noutput y"


def elements(n):
    columns = 3 if n % 1024 else 1024   # past 2^40 it is the next number that 3 divides
    return f"input x[{-(-n // columns)}, {columns}] : i8\ny[] = x[0, 0]\noutput y"


def extent(n):
    return f"y[i:{n}] : u8 = 0\noutput y"


def points(n):
    return f"input x[2] : f32\ny[] = sum[i:{2**40}, k:{-(-n // 2**40)}](x[0])\noutput y"


def integer(n):
    return f"param N = {n}\ny[i:4] = i + N\noutput y"


def overrides(n):
    return "".join(f"param p{k} = 1\n" for k in range(n)) + "y[i:4] = i\noutput y"


PROGRAMS = {
    "bytes of the file": file_of,
    "statements": statements,
    "operations and operands of a statement": nodes,
    "operations within each other": deep,
    "brackets within each other": brackets,
    "characters of a name": name,
    "dimensions of a tensor": dimensions,
    "index variables of a definition and its reductions": variables,
    "tensors that a definition reads, also by way of others that are folded into it": tensors,
    "elements of a tensor": elements,
    "extent of an index variable": extent,
    "points of all index variables together": points,
    "whole number": integer,
    "params that `-D` sets": overrides,
}


# ---- the page

def number(text):
    """1,024 and 2^63 - 1"""
    power = re.fullmatch(r"(\d+)\^(\d+)( - 1)?", text)
    return int(power[1]) ** int(power[2]) - bool(power[3]) if power else int(text.replace(",", ""))


def rows():
    section = PAGE.read_text().split("\n## Limits\n")[1].split("\n## ")[0]
    return {what: limit for what, limit in re.findall(r"^\| ([^|]+) \| ([\d,^ -]+) \|", section, re.MULTILINE)}


def run(binary, what, limit):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "program.te")
        file.write_text(PROGRAMS[what](limit))
        defines = [word for k in range(limit) for word in ("-D", f"p{k}=2")] if PROGRAMS[what] is overrides else []
        return subprocess.run([binary, file, "--device", "a100", "-q", "-d", "fusion", *defines], capture_output=True, text=True,
                              timeout=120)


def check(binary, what, limit):
    """None, or what is wrong with the programs at the limit and past it."""
    most = number(limit)
    within, past = run(binary, what, most), run(binary, what, most + 1)
    if within.returncode:
        return f"at {limit}: exit {within.returncode}: {within.stderr[:400]}"
    message = past.stderr.split("\n")[0]
    if past.returncode not in (1, 2):
        return f"past {limit}: exit {past.returncode}"
    if limit not in message and limit.replace(",", "") not in message:
        return f"past {limit}: the message does not hold it: {message[:400]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    binary = parser.parse_args().rollerc
    tally, told = common.Tally(), rows()
    lost = set(told) ^ set(PROGRAMS)
    tally.add("the rows of the page", f"not those of {__file__}: {sorted(lost)}" if lost else None)
    for what in sorted(set(told) & set(PROGRAMS)):
        tally.add(what, check(binary, what, told[what]))
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
