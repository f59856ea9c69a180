#!/usr/bin/env python3
"""ONNX's backend tests (Debian's libonnx-testdata) through the importer, the compiler and the CPU interpreter.

    python3 tests/run_onnx.py --rollerc build/rollerc [--only REGEX] [--keep FOLDER] [--operators] [--update]

A case passes if the kernel that its program becomes gives, on the case's own inputs, what ONNX says, and is right by the
reference evaluator on these, on whole numbers and on inputs of a special kind (tests/differential/given_programs.c). Or it is
refused with a reason that stands in tests/onnx/refused.txt; the list may only get shorter: a case that passes must leave it
(--update), a case that is refused and does not stand there is a failure. A wrong one always is. Inputs that the importer must
know are bound to what the case has. What passes is proven once more with feature maps channels-last (`--layout nhwc`) where that
changes its program, and each of its outputs can be asked for alone.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common

try:
    import numpy
    import onnx
    from onnx_values import bound_text, error_of_data, read_tensor, resized, tolerance
except ImportError as error:
    print(f"NOT TESTED: ONNX's backend tests, since {error.name} is not here (python3-onnx)")
    sys.exit(77)

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "pytorch-converted", "pytorch-operator", "simple")
REFUSED = pathlib.Path(common.TESTS, "onnx", "refused.txt")
LEAST = 836        # of the 932 node cases pass
LEAST_AGAIN = 81   # change with --layout nhwc
BATCH = 25         # programs of one process: one translation unit of given_programs
MOST_BINDINGS = 8  # inputs of a case that may have to be known
BIND = re.compile(r"--bind (\S+?)=VALUE")

Result = collections.namedtuple("Result", "status reason operators")   # passed, refused, wrong


class Case:
    """A model with one set of inputs and outputs."""

    def __init__(self, name, folder, options=(), plain=None):
        """`plain`: the case without the options, whose program is not proven once more."""
        self.name, self.model, self.options, self.plain = name, DATA / name / "model.onnx", options, plain
        self.place = folder / name.replace("/", "-")
        self.sets = sorted((DATA / name).glob("test_data_set_*"))
        self.graph = onnx.load(self.model, load_external_data=False).graph
        self.operators = "+".join(dict.fromkeys(node.op_type for node in self.graph.node))

    def file(self, suffix):
        return self.place.with_suffix(suffix)

    def given(self, kind, values):
        """The tensors of input_0.pb, … of the first set, by number; those that are no tensors are None."""
        types = dict(enumerate(value.type.tensor_type.elem_type for value in values))
        numbers = {int(path.stem.rpartition("_")[2]): path for path in (self.sets[0].glob(f"{kind}_*.pb") if self.sets else ())}
        return {number: read_tensor(path, types.get(number)) for number, path in numbers.items()}

    def inputs(self):
        """{name: tensor}: graph inputs that no initializer gives, in order."""
        values, initialized = list(self.graph.input), {tensor.name for tensor in self.graph.initializer}
        if len(self.given("input", values)) < len(values):
            values = [value for value in values if value.name not in initialized]
        given = self.given("input", values)
        return {value.name: as_declared(value, given.get(i)) for i, value in enumerate(values)}

    def outputs(self):
        return [tensor for _, tensor in sorted(self.given("output", self.graph.output).items())]


def as_declared(value, tensor):
    sizes = value.type.tensor_type.shape.dim
    known = tensor is not None and all(size.HasField("dim_value") for size in sizes)
    return resized(tensor, tuple(size.dim_value for size in sizes)) if known else tensor


def import_model(rollerc, case, bindings):
    command = [rollerc, "import", case.model, "-o", case.file(".te"), "--weights", case.file(".weights"),
               *case.options, *(word for name, value in bindings.items() for word in ("--bind", f"{name}={bound_text(value)}"))]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=60)


def one_line(case, text):
    """What a message says, without the paths of this machine."""
    text = text.replace(str(case.model), "model").replace("rollerc: ", "").replace("error: ", "")
    return " | ".join(line.strip() for line in text.strip().split("\n"))[:300]


def take(rollerc, case):
    """Imports a model: a Result that ends the case, or the inputs that were bound."""
    inputs, bindings = case.inputs(), {}
    while True:
        done = import_model(rollerc, case, bindings)
        wanted = [name for name in BIND.findall(done.stderr) if name in inputs and name not in bindings]
        if done.returncode != 1 or not wanted or len(bindings) >= MOST_BINDINGS:
            break
        bindings.update({name: inputs[name] for name in wanted if inputs[name] is not None})
        if not any(name in bindings for name in wanted):
            break
    if done.returncode == 0:
        return bindings
    if done.returncode == 1 and done.stderr.strip():
        return Result("refused", one_line(case, done.stderr), case.operators)
    return Result("wrong", f"the importer ends with {done.returncode}: {one_line(case, done.stderr)}", case.operators)


def write_arguments(case, bindings):
    """False: some input is no tensor."""
    tensors = [tensor for name, tensor in case.inputs().items() if name not in bindings]
    if any(tensor is None for tensor in tensors):
        return False
    case.file(".in").write_bytes(b"".join(tensor.raw for tensor in tensors))
    return True


def compare(case):
    """What a kernel made against what ONNX says; None: the same."""
    made, at = case.file(".out").read_bytes(), 0
    expected = case.outputs()
    if any(tensor is None for tensor in expected) or len(expected) != len(case.graph.output):
        return "the case has other outputs"
    sizes = [len(tensor.raw) for tensor in expected]
    elements = sum(tensor.size for tensor in expected)
    if len(made) != sum(sizes) + 16 * elements:
        return f"outputs of {sum(sizes)} bytes were expected, and {len(made) - 16 * elements} are there"
    reference = numpy.frombuffer(made, "f8", offset=sum(sizes)).reshape(-1, 2)
    for i, (tensor, size) in enumerate(zip(expected, sizes)):
        reason = tolerance(tensor, made[at:at + size], reference[:tensor.size], error_of_data(case.name))
        if reason:
            return f"output {i}: {reason}"
        at, reference = at + size, reference[tensor.size:]
    return None


def prove(helper, cases):
    """{name: reason or None} of the programs of one batch."""
    lines = ["\t".join(map(str, (case.name, case.file(".te"), case.file(".in"),
                                 case.file(".weights") if case.file(".weights").exists() else "-", case.file(".out"))))
             for case in cases]
    done = subprocess.run([helper], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    found = {name: None if word == "ok" else why for word, name, why in
             re.findall(r"^(ok|FAIL) (\S+): (.*)$", done.stdout, re.M)}
    missing = f"given_programs ends with {done.returncode}"
    return {case.name: found.get(case.name, missing) or compare(case) for case in cases}


def run_cases(args, cases):
    """{name: Result}, without those that are as their plain ones."""
    results, compiled = {}, []
    for case, taken in zip(cases, common.in_parallel(args.jobs, lambda case: take(args.rollerc, case), cases)):
        if isinstance(taken, Result):
            results[case.name] = taken
        elif case.plain and case.file(".te").read_text() == case.plain.file(".te").read_text():
            continue
        elif not write_arguments(case, taken):
            results[case.name] = Result("wrong", "it is imported though it has inputs that are no tensors", case.operators)
        else:
            compiled.append(case)
    helper = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "given_programs")
    batches = [compiled[first:first + BATCH] for first in range(0, len(compiled), BATCH)]
    for batch, reasons in zip(batches, common.in_parallel(args.jobs, lambda batch: prove(helper, batch), batches)):
        for case in batch:
            reason = reasons[case.name]
            results[case.name] = Result("wrong" if reason else "passed", reason, case.operators)
    return results


def run_channels_last(args, cases, results, folder):
    """{name: Result} of what passed and becomes another program."""
    folder.mkdir(exist_ok=True)
    again = [Case(case.name, folder, ["--layout", "nhwc"], case) for case in cases if results[case.name].status == "passed"]
    return {f"{name} (nhwc)": result._replace(status="wrong" if result.status == "refused" else result.status)
            for name, result in run_cases(args, again).items()}


def outputs_alone(args, cases, results, folder):
    """Failures of models that pass: without all outputs but one, they must be imported, too."""
    folder.mkdir(exist_ok=True)
    several = [case for case in cases if results[case.name].status == "passed" and len(case.graph.output) > 1]

    def failures_of(case):
        model, bindings = onnx.load(case.model), take(args.rollerc, case)
        alone = Case(case.name, folder)
        alone.model = alone.file(".onnx")
        outputs = list(model.graph.output)
        for output in outputs:
            del model.graph.output[:]
            model.graph.output.append(output)
            onnx.save(model, alone.model)
            done = import_model(args.rollerc, alone, bindings)
            if done.returncode:
                yield f"{case.name}, {output.name} alone: the importer ends with {done.returncode}: {one_line(alone, done.stderr)}"

    return [failure for found in common.in_parallel(args.jobs, lambda case: list(failures_of(case)), several) for failure in found]


def read_list():
    lines = REFUSED.read_text().splitlines() if REFUSED.exists() else []
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


HEADER = "# ONNX's backend cases that are refused, and why. The list may only get shorter: run_onnx.py --update.\n"


def write_list(results, listed, whole):
    """Of cases that were not run, what stood there stays."""
    kept = {} if whole else {name: reason for name, reason in listed.items() if name not in results}
    kept.update({name: result.reason for name, result in results.items() if result.status == "refused"})
    REFUSED.write_text(HEADER + "".join(f"{name}: {reason}\n" for name, reason in sorted(kept.items())))


def failures(results, listed):
    for name, result in sorted(results.items()):
        if result.status == "wrong":
            yield f"{name}: {result.reason}"
        elif result.status == "refused" and name not in listed:
            yield f"{name} is refused, and does not stand in {REFUSED.name}: {result.reason}"
        elif result.status == "refused" and listed[name] != result.reason:
            yield f"{name} is refused with another reason than {REFUSED.name} gives (--update): {result.reason}"
        elif result.status == "passed" and name in listed:
            yield f"{name} passes: take it out of {REFUSED.name} (--update)"


def print_operators(results):
    table = collections.defaultdict(collections.Counter)
    for result in results.values():
        table[result.operators][result.status] += 1
    for operators, counts in sorted(table.items()):
        print(f"  {operators[:80]:40} " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="given_programs lies in tests/ beside it")
    parser.add_argument("--only", default="", help="cases whose name, `node/test_abs`, holds this regular expression")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for programs, weights and results")
    parser.add_argument("--operators", action="store_true", help="say what became of each combination of operators")
    parser.add_argument("--update", action="store_true", help="write the list of refused cases anew")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    args = parser.parse_args()
    if not DATA.is_dir():
        print(f"NOT TESTED: ONNX's backend tests, since {DATA} is not here (libonnx-testdata)")
        return 77
    started = time.monotonic()
    names = [f"{suite}/{path.name}" for suite in SUITES for path in sorted((DATA / suite).iterdir())]
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        cases = [Case(name, folder) for name in names if re.search(args.only, name)]
        results = run_cases(args, cases)
        again = run_channels_last(args, cases, results, folder / "nhwc")
        alone = outputs_alone(args, cases, results, folder / "alone")
    listed, counts = read_list(), collections.Counter(result.status for result in results.values())
    if args.operators:
        print_operators(results)
    if args.update:
        write_list(results, listed, not args.only)
        listed = read_list()
    failed = list(failures(results | again, listed)) + alone
    failed += [f"{name} stands in {REFUSED.name} and is no case" for name in listed if not args.only and name not in results]
    passed = sum(name.startswith("node/") and result.status == "passed" for name, result in results.items())
    if not args.only and passed < LEAST:
        failed.append(f"{passed} node cases pass, and {LEAST} must")
    if not args.only and len(again) < LEAST_AGAIN:
        failed.append(f"only {len(again)} programs change with --layout nhwc, and {LEAST_AGAIN} did")
    for line in failed:
        print(f"FAIL  {line}")
    print(f"{len(results)} cases in {time.monotonic() - started:.0f} s: {counts['passed']} pass ({passed} of suite node), "
          f"{counts['refused']} are refused, {counts['wrong']} are wrong; {len(again)} once more channels-last")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
