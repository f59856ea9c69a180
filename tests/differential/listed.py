"""Candidates proven many in one translation unit (given_programs), and alone where that says nothing."""
import argparse
import collections
import os
import pathlib
import re
import shlex
import subprocess

import common

BATCH = 25   # programs of one process, which has them in one translation unit

# What given_programs knows of a command line.
OPTIONS = argparse.ArgumentParser(allow_abbrev=False)
OPTIONS.add_argument("--device", default="a100")
OPTIONS.add_argument("--math", default="exact")
OPTIONS.add_argument("--top-k", default=10, type=int)
OPTIONS.add_argument("--candidate", type=int)


class Choice(collections.namedtuple("Choice", "title text options rank kinds special")):
    """A candidate that is to be proven. `special`: the number of the special inputs that it is run on; None: all."""

    @property
    def device(self):
        return OPTIONS.parse_args(self.options).device

    def line(self, number, path):
        """Of given_programs' list; its text lies there."""
        said = OPTIONS.parse_args(self.options)
        special = "-" if self.special is None else self.special
        fields = number, path, "-", "-", "-", said.device, said.math, said.top_k, self.rank, special
        return "\t".join(map(str, fields)) + "\n"


class Prover:
    """Proves choices: together, and by `rollerc --verify` alone what is too large for that or fails there."""

    def __init__(self, rollerc, folder, jobs):
        self.rollerc, self.folder, self.jobs = rollerc, folder, jobs
        self.helper = os.path.join(os.path.dirname(rollerc), "tests", "given_programs")

    def __call__(self, choices, alone):
        """A reason or None for each; those whose numbers are in `alone` are not proven together."""
        numbers = sorted(set(range(len(choices))) - alone,
                         key=lambda i: (choices[i].special is None, choices[i].device, i))
        batches = [[(i, choices[i]) for i in numbers[first:first + BATCH]]
                   for first in range(0, len(numbers), BATCH)]
        said = {}
        for found in common.in_parallel(self.jobs, self.together, batches):
            said.update(found)
        left = [i for i in range(len(choices)) if said.get(i) != "ok"]
        reasons = common.in_parallel(self.jobs, lambda i: self.alone(i, choices[i], said.get(i)), left)
        reasons = dict(zip(left, reasons))
        return [reasons.get(i) for i in range(len(choices))]

    def together(self, numbered):
        """{number: "ok", "LARGE" or why it is wrong}; of which nothing is said, that is wrong, too."""
        lines = ""
        for i, choice in numbered:
            path = pathlib.Path(self.folder, f"{i}.te")
            path.write_text(choice.text)
            lines += choice.line(i, path)
        done = subprocess.run([self.helper], input=lines, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
        said = {i: f"given_programs ends with {done.returncode}" for i, _ in numbered}
        for word, i, why in re.findall(r"^(ok|FAIL|LARGE) (\d+): (.*)$", done.stdout, re.M):
            said[int(i)] = why if word == "FAIL" else word
        return said

    def alone(self, number, choice, said):
        """A reason or None; the reason ends with the program and how it is run again."""
        command = [self.rollerc, "-q", "-", *choice.options, "--candidate", str(choice.rank), "--verify", "-o", "-"]
        try:
            done = subprocess.run(command, input=choice.text, capture_output=True, text=True, errors="replace",
                                  timeout=300)
            reason = f"exit {done.returncode}: {done.stderr.strip()[:1500]}" if done.returncode else None
        except subprocess.TimeoutExpired:
            reason = "still running after 300 s"
        if reason:
            again = shlex.join(word for word in command if word != "-q")
            return f"{reason}\nagain: {again} << END > kernel.cu\n{choice.text}END"
        if said in (None, "LARGE"):
            return None
        again = f"printf {choice.line(number, 'program.te')!r} | {shlex.quote(self.helper)}"
        return f"right by itself, but not in given_programs: {said}\nagain: cat > program.te << END\n{choice.text}END\n{again}"
