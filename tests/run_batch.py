#!/usr/bin/env python3
"""Many kernels at once: rollerc batch, its cache of machine code, and what runs it. One test function per behaviour.

NVRTC is a stand-in here, which makes machine code of a hash: 50 kernels compile in a second, and no toolkit is needed.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

import common
import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CI = ROOT / "examples/ci"
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "schema/batch.schema.json").read_text()))
ROLLERC = ""

TRIPLE = f"""
devices: [a100, h200, v100]
emit: [header, json]
kernels:
  - expr: {ROOT}/examples/softmax.te
    name: softmax_{{N}}
    defines: {{N: [256, 1024, 4096]}}
  - expr: {ROOT}/examples/matmul.te
    options: {{math: fast, top-k: 3}}
"""


def batch(*arguments, code=0, folder, env=None):
    result = subprocess.run([ROLLERC, "batch", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300,
                            env={**os.environ, **(env or {})})
    assert result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}"
    return result


def counts(result):
    """(made, unchanged, failed) of the last line that a run says."""
    line = result.stderr.splitlines()[-1]
    return tuple(int(word) for word in re.findall(r"(\d+) (?:made|unchanged|failed)", line))


def results(path):
    """The lines of a file of results, checked, without the one that says which shard they are of."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        SCHEMA.validate(line)
    lines = lines[1:] if lines and "shard" in lines[0] else lines
    for line in lines:
        for file in line.get("files", []):
            found = hashlib.sha256((path.parent / file["path"]).read_bytes()).hexdigest()
            assert found == file["sha256"], file["path"]
    assert [line["output"] for line in lines] == sorted(line["output"] for line in lines)
    return lines


def write(folder, text, name="kernels.yaml"):
    (folder / name).write_text(text)
    return name


def temporary(folder):
    return [path for path in folder.rglob("*") if path.name.startswith(".rollerc")]


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def is_sanitized():
    return b"__asan_init" in pathlib.Path(ROLLERC).read_bytes()


# ---- what is made ----

def test_a_hundred_and_fifty_kernels(folder):
    start = cpu_seconds()
    assert counts(batch(CI / "kernels.yaml", "-j", 2, folder=folder)) == (174, 0, 0)
    made = cpu_seconds() - start
    first = tree(folder)
    assert counts(batch(CI / "kernels.yaml", "-j", 2, folder=folder)) == (0, 174, 0)
    unchanged = cpu_seconds() - start - made
    assert tree(folder) == first and len(results(folder / "kernels.jsonl")) == 174
    print(f"batch: 174 kernels in {made:.2f} s of processors, then {unchanged:.2f} s")
    if not is_sanitized():   # on two cores in 1.5 s and 0.2 s; others may share them, so no judgement on the wall clock
        assert made < 2 * 1.5 and unchanged < 0.2, (made, unchanged)


def test_models(folder):
    """Sizes by `defines`, options that expressions do not have, and weights among the files."""
    subprocess.run([sys.executable, os.path.join(common.TESTS, "onnx_examples.py"), "digits", folder / "digits.onnx"], check=True)
    write(folder, f"""
devices: h200
options: {{precision: f16}}
kernels:
  - {{expr: digits.onnx, name: "digits_{{batch}}", defines: {{batch: [1, 64]}}, options: {{embed: true}}}}
  - {{expr: {ROOT}/examples/relu.te}}
""")
    assert counts(batch("kernels.yaml", folder=folder)) == (3, 0, 0)
    lines = {line["name"]: line for line in results(folder / "kernels.jsonl")}
    assert [file["path"] for file in lines["digits_64"]["files"]] == [
        "h200/digits_64.cu", "h200/digits_64.weights", "h200/digits_64.weights.S"]
    assert "--bind=batch=64" in lines["digits_64"]["command"] and "--precision=f16" not in lines["relu"]["command"]
    (folder / "h200/digits_1.weights").write_bytes(b"other")
    assert counts(batch("kernels.yaml", folder=folder)) == (1, 2, 0)
    write(folder, f"devices: h200\nkernels: [{{expr: {ROOT}/examples/relu.te, options: {{precision: f16}}}}]\n")
    said = batch("kernels.yaml", code=1, folder=folder).stderr
    assert "kernels.yaml:2:" in said and "model" in said, said


def test_the_bytes_are_those_of_the_single_commands(folder):
    write(folder, TRIPLE)
    batch("kernels.yaml", folder=folder)
    made = {name: text for name, text in tree(folder).items() if not name.startswith("kernels.")}
    commands = batch("kernels.yaml", "--list", folder=folder).stdout.splitlines()
    assert len(commands) == 12 and len(made) == 36
    assert [line["command"] for line in results(folder / "kernels.jsonl")] == sorted(
        (command.split() for command in commands), key=lambda words: words[-2])
    alone = folder / "alone"
    for command in commands[::4]:
        output = pathlib.Path(re.search("--output=(\\S+)", command)[1])
        (alone / output.parent).mkdir(parents=True, exist_ok=True)
        subprocess.run(command.replace("rollerc", ROLLERC, 1), shell=True, check=True, cwd=alone)
    found = tree(alone)
    assert len(found) == 9 and all(made[name] == text for name, text in found.items())


def test_the_order_of_making_changes_nothing(folder):
    write(folder, TRIPLE)
    trees = []
    for jobs in (1, 5):
        batch("kernels.yaml", "-j", jobs, folder=folder)
        trees.append(tree(folder))
        shutil.rmtree(folder / "a100")
        (folder / "kernels.jsonl").unlink()
    assert trees[0] == trees[1]


def test_what_changed_is_made_again_and_nothing_else(folder):
    shutil.copy(ROOT / "examples/relu.te", folder)
    shutil.copy(ROOT / "devices/a100.yaml", folder / "mine.yaml")
    shutil.copytree(ROOT / "templates", folder / "templates")
    text = ("devices: [h200, ./mine.yaml]\nkernels:\n  - expr: relu.te\n"
            "  - {expr: relu.te, name: other, options: {templates: templates}}\n")

    def after(change):
        change()
        return counts(batch(write(folder, text), folder=folder))[0]
    assert after(lambda: None) == 4
    assert after(lambda: None) == 0
    assert after(lambda: (folder / "h200/relu.cu").write_text("broken")) == 1
    assert after(lambda: (folder / "mine/relu.cu").unlink()) == 1
    assert after(lambda: os.utime(folder / "relu.te")) == 0   # by content, not by time
    before = (folder / "h200/relu.cu").stat().st_mtime_ns
    assert after(lambda: (folder / "relu.te").write_text((folder / "relu.te").read_text() + "# a remark\n")) == 4
    assert (folder / "h200/relu.cu").stat().st_mtime_ns == before   # the same bytes: not touched
    mine = folder / "mine.yaml"
    assert after(lambda: mine.write_text(re.sub(r"(bandwidth_gb_s: +)1555", r"\g<1>1600", mine.read_text()))) == 2
    template = folder / "templates/elementwise.cu"
    assert after(lambda: template.write_text(template.read_text().replace("\n//", "\n// Also:", 1))) == 2
    text += "  - {expr: relu.te, name: wide, output: wide.cu, devices: h200}\n"
    assert after(lambda: None) == 1
    text = text.replace("wide, output", "wide, options: {math: fast}, output")
    assert after(lambda: None) == 1
    (folder / "kernels.jsonl").unlink()
    assert after(lambda: None) == 5
    copy = folder / "rollerc"
    shutil.copy(ROLLERC, copy)
    with open(copy, "ab") as program:
        program.write(b"another build")
    result = subprocess.run([copy, "batch", "kernels.yaml"], cwd=folder, capture_output=True, text=True)
    assert counts(result)[0] == 5, result.stderr


def test_names_may_hold_blanks_and_quotes(folder):
    shutil.copy(ROOT / "examples/relu.te", folder / "it's a relu.te")
    write(folder, "devices: a100\noutput: \"my $kernels/it's {name}.cu\"\nkernels:\n  - expr: it's a relu.te\n")
    assert counts(batch("kernels.yaml", folder=folder)) == (1, 0, 0)
    path = folder / "my $kernels/it's it_s_a_relu.cu"
    first = path.read_bytes()
    path.unlink()
    command = batch("kernels.yaml", "--list", folder=folder).stdout
    subprocess.run(command.replace("rollerc", ROLLERC, 1), shell=True, check=True, cwd=folder)
    assert path.read_bytes() == first
    if shutil.which("ninja"):
        path.unlink()
        batch("kernels.yaml", "--ninja", "build.ninja", folder=folder)
        assert "Constructing" in ninja(folder) and path.read_bytes() == first
        assert "no work to do" in ninja(folder)


# ---- what fails ----

def test_a_failure_is_a_result_and_the_exit_code_says_so(folder):
    write(folder, f"devices: a100\nkernels:\n  - expr: {ROOT}/examples/softmax.te\n    name: softmax_{{N}}\n"
                  f"    defines: {{N: [0, 64, 128]}}\n  - {{expr: {ROOT}/examples/matmul.te, defines: {{Q: 1}}}}\n")
    stopped = batch("kernels.yaml", "-j", 1, code=1, folder=folder)
    assert counts(stopped) == (0, 0, 1) and "3 not tried (--keep-going)" in stopped.stderr
    went_on = batch("kernels.yaml", "--keep-going", "-j", 1, code=2, folder=folder)   # the largest of 1 and 2
    assert counts(went_on) == (2, 0, 2)
    matmul, zero, small, large = results(folder / "kernels.jsonl")
    assert small["status"] == large["status"] == "done"
    assert (zero["exit_code"], matmul["exit_code"]) == (1, 2)
    assert "extent is 0" in zero["reason"] and "^" in zero["reason"] and zero["reason"] in went_on.stderr
    assert "it has M, N, K" in matmul["reason"]
    assert counts(batch("kernels.yaml", "--keep-going", code=2, folder=folder)) == (0, 2, 2)   # tried again


def ended_worker(folder, number):
    """A run whose first kernel's process is ended by the signal: its exit code and words."""
    process = subprocess.Popen([ROLLERC, "batch", "kernels.yaml", "-j", "1", "-k"], cwd=folder, stderr=subprocess.PIPE, text=True)
    workers = []
    while not workers and process.poll() is None:
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        workers = listed.stdout.split()
    os.kill(int(workers[0]), number)
    stderr = process.communicate(timeout=60)[1]
    return process.returncode, stderr


def test_a_crash_is_a_result(folder):
    if not shutil.which("g++") and not shutil.which("clang++"):
        raise common.Skip("no C++ compiler, so no proof that takes long enough to be killed")
    write(folder, f"devices: a100\nkernels:\n  - {{expr: {ROOT}/examples/softmax.te, options: {{verify: true}}}}\n"
                  f"  - {{expr: {ROOT}/examples/relu.te}}\n")
    ends = [(signal.SIGKILL, 4, "was killed; is there too little memory?")]
    if not is_sanitized():   # which catches it
        ends += [(signal.SIGSEGV, 70, "crashes (Segmentation fault)")]
    for number, code, words in ends:
        exit_code, stderr = ended_worker(folder, number)
        assert exit_code == code and words in stderr, stderr
        relu, softmax = results(folder / "kernels.jsonl")
        assert relu["status"] == "done" and softmax["exit_code"] == code and words in softmax["reason"]
    assert counts(batch("kernels.yaml", folder=folder)) == (1, 1, 0)


def test_what_a_kernel_says_is_shown(folder):
    (folder / "cut.te").write_text("param D = 64  input x[8] : f32  y[i, d:D] = x[i] * pow(10000, -2*d / D)  output y\n")
    write(folder, "devices: a100\nkernels: [{expr: cut.te}]\n")
    assert "cut.te:1:63: warning: a quotient" in batch("kernels.yaml", folder=folder).stderr
    (folder / "kernels.jsonl").unlink()
    assert batch("kernels.yaml", "-q", folder=folder).stderr == ""


def test_an_output_that_cannot_be_written_is_a_failure(folder):
    (folder / "a100").write_text("a file, where a folder is wanted")
    write(folder, f"devices: a100\nkernels: [{{expr: {ROOT}/examples/relu.te}}]\n")
    assert "cannot make the folder 'a100'" in batch("kernels.yaml", code=4, folder=folder).stderr


def test_results_may_go_to_a_stream(folder):
    write(folder, TRIPLE)
    printed = [batch("kernels.yaml", "--json", path, folder=folder).stdout for path in ("-", "/dev/stdout")]
    batch("kernels.yaml", folder=folder)
    assert printed == [(folder / "kernels.jsonl").read_text()] * 2
    batch("kernels.yaml", "--json", "/dev/full", code=4, folder=folder)


# ---- what is cut off ----

def interrupted(folder, number, after_lines):
    """Starts a run and stops it when so many kernels have been made; its exit code."""
    process = subprocess.Popen([ROLLERC, "batch", str(CI / "kernels.yaml"), "-j", "2"], cwd=folder, stderr=subprocess.DEVNULL)
    file = folder / "kernels.jsonl"
    while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < after_lines):
        time.sleep(0.001)
    process.send_signal(number)
    return process.wait(10)


def test_an_interrupted_run_goes_on_where_it_was(folder):
    whole = folder / "whole"
    whole.mkdir()
    batch(CI / "kernels.yaml", folder=whole)
    for number, code, lines in ((signal.SIGINT, 130, 10), (signal.SIGTERM, 143, 60), (signal.SIGKILL, -9, 30)):
        part = folder / number.name
        part.mkdir()
        assert interrupted(part, number, lines) == code
        deadline = time.monotonic() + 5
        while temporary(part) and time.monotonic() < deadline:   # SIGKILL: the workers outlive it for a moment
            time.sleep(0.01)
        assert not temporary(part)
        there = [json.loads(line)["output"] for line in (part / "kernels.jsonl").read_text().splitlines()]
        assert lines <= len(there) < 174
        made, unchanged, failed = counts(batch(CI / "kernels.yaml", folder=part))
        assert (made, unchanged, failed) == (174 - len(there), len(there), 0)
        assert tree(part) == tree(whole)


def test_a_line_that_was_cut_off_costs_one_kernel(folder):
    write(folder, TRIPLE)
    batch("kernels.yaml", folder=folder)
    whole = (folder / "kernels.jsonl").read_bytes()
    (folder / "kernels.jsonl").write_bytes(whole[:-40])
    assert counts(batch("kernels.yaml", folder=folder)) == (1, 11, 0)
    assert (folder / "kernels.jsonl").read_bytes() == whole
    (folder / "kernels.jsonl").write_bytes(re.sub(rb'"files":\[.*?\]', b'"files":[]', whole, count=1))
    assert counts(batch("kernels.yaml", folder=folder)) == (1, 11, 0)
    assert (folder / "kernels.jsonl").read_bytes() == whole
    (folder / "kernels.jsonl").write_bytes(b"\x00\xff{}\n[]\n3\n" + whole)
    assert counts(batch("kernels.yaml", folder=folder)) == (0, 12, 0)
    assert (folder / "kernels.jsonl").read_bytes() == whole


# ---- what is left in $TMPDIR ----

def needs_a_proof():
    if not shutil.which("g++") and not shutil.which("clang++"):
        raise common.Skip("no C++ compiler, so no proof that makes temporary files")


def proofs(folder, more=""):
    """A manifest of kernels that are proven, and the environment whose temporary files lie in folder/tmp."""
    write(folder, f"devices: a100\noptions: {{verify: true}}\nkernels:\n  - {{expr: {ROOT}/examples/relu.te, name: \"relu_{{N}}\",\n"
                  f"     defines: {{N: [64, 96, 128, 160]}}}}\n{more}")
    (folder / "tmp").mkdir()
    return {"TMPDIR": str(folder / "tmp")}


def check_nothing_is_left(folder):
    deadline = time.monotonic() + 5
    while (list((folder / "tmp").iterdir()) or temporary(folder)) and time.monotonic() < deadline:
        time.sleep(0.01)   # who outlives a killed process needs a moment
    assert not list((folder / "tmp").iterdir()) and not temporary(folder), list((folder / "tmp").iterdir())


def test_proofs_leave_nothing(folder):
    needs_a_proof()
    env = proofs(folder)
    assert counts(batch("kernels.yaml", folder=folder, env=env)) == (4, 0, 0)
    assert not list((folder / "tmp").iterdir())


def test_failing_proofs_leave_nothing(folder):
    needs_a_proof()
    shutil.copytree(ROOT / "templates", folder / "templates")
    for path in (folder / "templates").glob("elementwise.cu"):
        path.write_text(path.read_text().replace("= TENSORS;", "= TENSORS;\n    nonsense;", 1))
    env = proofs(folder, f"  - {{expr: {ROOT}/examples/relu.te, name: broken, options: {{templates: templates}}}}\n")
    failed = batch("kernels.yaml", "-k", code=5, folder=folder, env=env)
    assert counts(failed) == (4, 0, 1) and "the kernel is wrong" in failed.stderr, failed.stderr
    assert not list((folder / "tmp").iterdir())


def proof_begins(folder, process):
    """The numbers of the processes below a run, once one of them has made its folder and starts the C++ compiler there."""
    while process.poll() is None:
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True).stdout
        rows = [line.split(maxsplit=2) for line in listed.splitlines()]
        workers = [pid for pid, parent, _ in rows if int(parent) == process.pid]
        if any(parent in workers and "cc1plus" not in name for _, parent, name in rows) and list((folder / "tmp").iterdir()):
            return [int(pid) for pid in workers]
        time.sleep(0.002)
    raise AssertionError("the run has ended before a proof was seen")


def test_interrupted_proofs_leave_nothing(folder):
    needs_a_proof()
    env = proofs(folder)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGSEGV, -11)):
        if number == signal.SIGSEGV and is_sanitized():   # which catches it
            continue
        process = subprocess.Popen([ROLLERC, "batch", "kernels.yaml", "-j", "2"], cwd=folder, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **env})
        proof_begins(folder, process)
        process.send_signal(number)
        assert process.wait(10) == code
        check_nothing_is_left(folder)


def test_killed_workers_leave_nothing(folder):
    needs_a_proof()
    env = proofs(folder)
    for number, code in ((signal.SIGKILL, 4), (signal.SIGTERM, 143), (signal.SIGSEGV, 70)):
        if number == signal.SIGSEGV and is_sanitized():
            continue
        process = subprocess.Popen([ROLLERC, "batch", "kernels.yaml", "-j", "2"], cwd=folder, stderr=subprocess.DEVNULL,
                                   env={**os.environ, **env})
        for worker in proof_begins(folder, process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, number)
        assert process.wait(60) == code
        assert not list((folder / "tmp").iterdir()) and not temporary(folder)


def test_a_single_proof_leaves_nothing(folder):
    needs_a_proof()
    env = {**os.environ, **proofs(folder)}
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGQUIT, -3), (signal.SIGSEGV, -11)):
        if number == signal.SIGSEGV and is_sanitized():
            continue
        process = subprocess.Popen([ROLLERC, ROOT / "examples/softmax.te", "--device", "a100", "--verify", "-o", "k.cu"], cwd=folder,
                                   env=env, stderr=subprocess.DEVNULL)
        while not list((folder / "tmp").iterdir()) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        assert process.wait(10) == code
        check_nothing_is_left(folder)


# ---- shards ----

def test_shards_are_the_whole(folder):
    write(folder, TRIPLE)
    outputs, files = [], []
    for shard in range(3):
        batch("kernels.yaml", "--shard", f"{shard}/3", folder=folder)
        files.append(f"kernels.{shard}-of-3.jsonl")
        outputs += [line["output"] for line in results(folder / files[-1])]
    batch("kernels.yaml", folder=folder)
    whole = (folder / "kernels.jsonl").read_bytes()
    assert sorted(outputs) == [line["output"] for line in results(folder / "kernels.jsonl")]
    for order in (files, files[::-1], files + files):
        assert batch("--merge", *order, folder=folder).stdout.encode() == whole
    (folder / "all.jsonl").write_bytes(b"".join((folder / name).read_bytes() for name in files))
    assert batch("--merge", "all.jsonl", folder=folder).stdout.encode() == whole
    batch("--merge", *files, "--json", "merged.jsonl", folder=folder)
    assert (folder / "merged.jsonl").read_bytes() == whole
    # What is added to a manifest moves nothing from one shard to another.
    write(folder, TRIPLE + f"  - {{expr: {ROOT}/examples/relu.te}}\n")
    for shard in range(3):
        before = {line["output"] for line in results(folder / files[shard])}
        batch("kernels.yaml", "--shard", f"{shard}/3", folder=folder)
        assert before <= {line["output"] for line in results(folder / files[shard])}


def test_missing_shards_are_an_error(folder):
    write(folder, f"devices: a100\nkernels:\n  - {{expr: {ROOT}/examples/relu.te, name: \"relu_{{N}}\", defines: {{N: [32, 64, 96]}}}}\n")
    files = [f"part{shard}" for shard in range(8)]   # not by their names: five of them at least are empty
    for shard, name in enumerate(files):
        batch("kernels.yaml", "--shard", f"{shard}/8", "--json", name, folder=folder)
        assert json.loads((folder / name).read_text().splitlines()[0]) == {"shard": shard, "shards": 8, "kernels": len(results(folder / name))}
    batch("kernels.yaml", folder=folder)
    whole = (folder / "kernels.jsonl").read_text()
    assert batch("--merge", *files, folder=folder).stdout == whole
    for missing in (0, 3, 7):
        some = [name for shard, name in enumerate(files) if shard != missing]
        refused = batch("--merge", *some, "--json", "merged.jsonl", code=1, folder=folder)
        assert f"no results of shard {missing}/8;" in refused.stderr and "--partial" in refused.stderr, refused.stderr
        assert not (folder / "merged.jsonl").exists()
        allowed = batch("--merge", *some, "--json", "some.jsonl", "--partial", folder=folder)
        assert allowed.stderr.endswith(f"; none of shard {missing}/8\n"), allowed.stderr
        assert f"no results of shard {missing}/8;" in batch("--merge", "some.jsonl", code=1, folder=folder).stderr
        assert batch("--merge", "some.jsonl", files[missing], folder=folder).stdout == whole   # the rest came later
    refused = batch("--merge", files[5], files[2], code=1, folder=folder).stderr
    assert "no results of shard 0/8, shard 1/8, shard 3/8, shard 4/8, shard 6/8, shard 7/8;" in refused, refused
    assert "--partial without --merge" in batch("kernels.yaml", "--partial", code=2, folder=folder).stderr


def test_more_missing_shards_than_a_line_holds_are_counted(folder):
    write(folder, f"devices: a100\nkernels: [{{expr: {ROOT}/examples/relu.te}}]\n")
    batch("kernels.yaml", "--shard", "20/99999", "--json", "part", folder=folder)
    refused = batch("--merge", "part", code=1, folder=folder).stderr
    assert "no results of shard 0/99999, " in refused and "shard 7/99999 and 99990 more;" in refused, refused


def test_shards_that_were_cut_off_are_not_whole(folder):
    write(folder, TRIPLE)
    for shard in range(2):
        batch("kernels.yaml", "--shard", f"{shard}/2", folder=folder)
    path = folder / "kernels.1-of-2.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]))   # killed between two lines
    refused = batch("--merge", "kernels.0-of-2.jsonl", path, code=1, folder=folder).stderr
    assert f"no results of 2 of the {len(lines) - 1} kernels of shard 1/2;" in refused, refused
    write(folder, TRIPLE + f"  - {{expr: {ROOT}/examples/relu.te, name: \"relu_{{N}}\", defines: {{N: [0, 1, 2, 3, 4, 5]}}}}\n")
    for shard in range(2):   # stopped at a failure, which is one of the first
        (folder / f"kernels.{shard}-of-2.jsonl").unlink()
        subprocess.run([ROLLERC, "batch", "kernels.yaml", "--shard", f"{shard}/2", "-j", "1"], cwd=folder, capture_output=True)
    merge = ("--merge", "kernels.0-of-2.jsonl", path)
    assert "kernels of shard" in batch(*merge, code=1, folder=folder).stderr
    for shard in range(2):
        subprocess.run([ROLLERC, "batch", "kernels.yaml", "--shard", f"{shard}/2", "-k"], cwd=folder, capture_output=True)
    assert "30 results of 2 files, 3 of kernels that failed\n" in batch(*merge, folder=folder).stderr


def test_results_that_do_not_go_together_are_refused(folder):
    write(folder, TRIPLE)
    batch("kernels.yaml", "--json", "a.jsonl", folder=folder)
    first = (folder / "a.jsonl").read_text().splitlines()[0]
    other = json.loads(first)
    failed = {key: value for key, value in other.items() if key not in ("files", "predicted_us")}
    (folder / "failed.jsonl").write_text(json.dumps({**failed, "status": "failed", "exit_code": 3, "reason": "no"}) + "\n")
    for order in (["a.jsonl", "failed.jsonl"], ["failed.jsonl", "a.jsonl"]):   # another attempt has made it
        assert batch("--merge", *order, folder=folder).stdout == (folder / "a.jsonl").read_text()
    (folder / "b.jsonl").write_text(json.dumps({**other, "content": "0" * 64}) + "\n")
    assert "speak of 'a100/" in batch("--merge", "a.jsonl", "b.jsonl", code=1, folder=folder).stderr
    (folder / "torn.jsonl").write_text(first[:99])
    assert "torn.jsonl:1: this is no result" in batch("--merge", "a.jsonl", "torn.jsonl", code=1, folder=folder).stderr
    assert "missing.jsonl" in batch("--merge", "missing.jsonl", code=1, folder=folder).stderr


# ---- engines ----

def ninja(folder, *arguments):
    result = subprocess.run(["ninja", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_ninja_makes_what_changed_and_nothing_twice(folder):
    if not shutil.which("ninja"):
        raise common.Skip("no ninja")
    shutil.copy(ROOT / "examples/relu.te", folder)
    shutil.copy(ROOT / "devices/a100.yaml", folder / "mine.yaml")
    shutil.copytree(ROOT / "templates", folder / "templates")
    write(folder, TRIPLE + "  - {expr: relu.te, devices: [h200, ./mine.yaml], options: {templates: templates}}\n")
    counted = counts(batch("kernels.yaml", folder=folder))
    batch("kernels.yaml", "--ninja", "build.ninja", folder=folder)
    assert "[14/14]" in ninja(folder)   # it has not seen what was there
    assert "no work to do" in ninja(folder)
    made = {name: text for name, text in tree(folder).items() if name.endswith((".cu", ".h", ".json")) and "templates" not in name}
    assert len(made) == 42
    assert counted == (14, 0, 0) and counts(batch("kernels.yaml", folder=folder)) == (0, 14, 0)   # the same bytes
    for change, edges in ((folder / "relu.te", 2), (folder / "mine.yaml", 1), (folder / "templates/elementwise.cu", 2)):
        time.sleep(0.01)
        os.utime(change)
        assert f"[{edges}/{edges}]" in ninja(folder), change
        assert "no work to do" in ninja(folder)
    write(folder, (folder / "kernels.yaml").read_text().replace("256, ", ""))
    assert "Reading kernels.yaml" in ninja(folder) and "softmax_256" not in (folder / "build.ninja").read_text()
    assert "no work to do" in ninja(folder)


def test_the_slurm_script_runs_a_shard(folder):
    (folder / "bin").mkdir()
    (folder / "bin/rollerc").symlink_to(ROLLERC)
    write(folder, TRIPLE)
    for task in range(2):
        env = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_CPUS_PER_TASK": "2",
               "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder)}
        subprocess.run([CI / "slurm.sh", "kernels.yaml"], cwd=folder, env={**os.environ, **env}, check=True,
                       stderr=subprocess.DEVNULL)
    merge = re.search(r"rollerc (batch --merge .*jsonl)", (CI / "slurm.sh").read_text())[1].replace("of-8", "of-2")
    subprocess.run(f"{ROLLERC} {merge}", shell=True, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    assert len(results(folder / "kernels.jsonl")) == 12


def test_the_workflow_makes_every_shard(folder):
    workflow = yaml.safe_load((CI / "github.yml").read_text())
    job = workflow["jobs"]["kernels"]
    command = next(step["run"] for step in job["steps"] if step.get("name") == "make kernels")
    write(folder, TRIPLE)
    assert "build/rollerc batch examples/ci/kernels.yaml" in command
    for shard in job["strategy"]["matrix"]["shard"]:
        words = command.replace("build/rollerc", ROLLERC).replace("examples/ci/kernels.yaml", f"{folder}/kernels.yaml")
        part = folder / f"part-{shard}"
        part.mkdir()
        subprocess.run(words.replace("${{ matrix.shard }}", str(shard)), shell=True, cwd=part, check=True,
                       stderr=subprocess.DEVNULL)
    gather = next(step["run"] for step in workflow["jobs"]["results"]["steps"] if step.get("name") == "put the results together")
    subprocess.run(gather.replace("build/rollerc", ROLLERC), shell=True, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    assert len((folder / "kernels.jsonl").read_text().splitlines()) == 12


# ---- talk ----

def on_terminal(folder, *arguments):
    """What a run writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([ROLLERC, "batch", *arguments], cwd=folder, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 4096)
        except OSError:   # the other end is closed
            break
    os.close(ours)
    assert process.wait(60) == 0
    return said.decode()


def test_progress_is_redrawn_on_a_terminal_only(folder):
    write(folder, TRIPLE)
    said = on_terminal(folder, "kernels.yaml")
    assert re.search(r"\r\x1b\[K\d+ of 12 kernels, 0 failed, \d+ s left", said), said
    assert said.rstrip().endswith("12 made, 0 unchanged, 0 failed")
    shutil.rmtree(folder / "a100")
    plain = batch("kernels.yaml", folder=folder).stderr
    assert plain == "rollerc: 12 kernels: 4 made, 8 unchanged, 0 failed\n"
    shutil.rmtree(folder / "a100")
    assert "rollerc: a100/matmul.cu: made" in batch("kernels.yaml", "-v", folder=folder).stderr
    assert batch("kernels.yaml", "-q", folder=folder).stderr == ""


def test_the_manual_knows_every_option(folder):
    text = batch("--help", folder=folder).stdout
    manual = (ROOT / "man/rollerc-batch.1").read_text().replace("\\", "")
    options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    assert {"--shard", "--keep-going", "--cache", "--ninja", "--merge", "--json"} <= set(options)
    for option in options:
        assert option in manual, f"{option} is missing: ninja man"
    assert "rollerc batch" in (ROOT / "man/rollerc.1").read_text()


# ---- machine code, with a stand-in for NVRTC ----

STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program { unsigned long hash; const char *text; };
static char ptx[100], cubin[100];

int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = VERSION; return 0; }
const char *nvrtcGetErrorString(int result) { return result ? "an error" : "no error"; }
int nvrtcCreateProgram(struct program **program, const char *text, const char *name, int count, const char *const *texts,
                       const char *const *names)
{
    *program = calloc(1, sizeof **program);
    (*program)->text = strdup(text);
    for ((*program)->hash = 5381 + VERSION; *text; text++)
        (*program)->hash = (*program)->hash * 33 + (unsigned char)*text;
    return 0;
}
static int is_named(const char *variable, const char *text) { return getenv(variable) && strstr(text, getenv(variable)); }
static const char *log_text;   // $REFUSED, $SPILLS: what stands in texts that do not compile, or not without spills
int nvrtcCompileProgram(struct program *program, int count, const char *const *options)
{
    log_text = is_named("REFUSED", program->text) ? "k.cu(1): error: refused" : is_named("SPILLS", program->text) ?
               "ptxas info : Compiling entry function 'k' for 'sm_80'\n 8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads" : "";
    if (strstr(log_text, "refused"))
        return 6;
    snprintf(ptx, sizeof ptx, "// ptx %lx\n", program->hash);
    snprintf(cubin, sizeof cubin, "cubin %lx for %s\n", program->hash, options[0]);
    return 0;
}
int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) { *bytes = strlen(log_text) + 1; return 0; }
int nvrtcGetProgramLog(struct program *program, char *log) { strcpy(log, log_text); return 0; }
int nvrtcGetPTXSize(struct program *program, size_t *bytes) { *bytes = strlen(ptx) + 1; return 0; }
int nvrtcGetPTX(struct program *program, char *text) { strcpy(text, ptx); return 0; }
int nvrtcGetCUBINSize(struct program *program, size_t *bytes) { *bytes = strlen(cubin); return 0; }
int nvrtcGetCUBIN(struct program *program, char *bytes) { memcpy(bytes, cubin, strlen(cubin)); return 0; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return 0; }
int nvrtcGetSupportedArchs(int *archs) { archs[0] = 80, archs[1] = 90; return 0; }
"""


def stand_in(folder, version=0):
    """The environment in which NVRTC is a stand-in."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise common.Skip("no C compiler for the stand-in of NVRTC")
    library = folder / f"cuda{version}/lib/libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,--build-id", "-x", "c", "-", "-o", library, f"-DVERSION={version}"],
                   input=STAND_IN.encode(), check=True)
    return {"ROLLERC_CUDA_PATH": str(library.parent.parent)}


def fifty(folder):
    examples = sorted(path.stem for path in (ROOT / "examples").glob("*.te"))[:25]
    return write(folder, "devices: [a100, h200]\noutput: \"{device}/{name}.cubin\"\nemit: json\noptions: {top-k: 3}\nkernels:\n" +
                 "".join(f"  - expr: {ROOT}/examples/{name}.te\n" for name in examples))


def entries(folder):
    return {path.name: path.stat().st_ino for path in (folder / "cache/nvrtc").iterdir()}


def test_one_candidate_is_compiled_where_no_ranking_tells_of_the_others(folder):
    env = stand_in(folder)

    def compiled(*more, env=env):
        """(how many, which was chosen) of a compilation."""
        shutil.rmtree(folder / "cache", ignore_errors=True)
        words = [ROLLERC, ROOT / "examples/softmax.te", "--device", "a100", "-D", "N=4096", "--top-k", "5", "--cache", "cache", "-o", "k.cubin",
                 "--emit", "cu", *more]
        subprocess.run(words, cwd=folder, env={**os.environ, **env}, check=True)
        chosen = re.search(r"candidate (\d) of 5", (folder / "k.cu").read_text())[1]
        return len(entries(folder)), int(chosen), (folder / "k.cubin").read_bytes()
    one = compiled()
    assert one[:2] == (1, 1)
    for more in (["--json", "k.json"], ["--html", "k.html"], ["--emit", "text"]):
        assert compiled(*more) == (5, *one[1:])   # a ranking tells of all, and the kernel is the same
    assert compiled("--candidate", "3", "--json", "k.json")[:2] == (1, 3)
    for trouble in ("REFUSED", "SPILLS"):
        troubled = {**env, trouble: "candidate 1 of 5"}
        some, all_five = compiled(env=troubled), compiled("--json", "k.json", env=troubled)
        ranking = json.loads((folder / "k.json").read_text())["candidates"]
        assert some[1:] == all_five[1:] and some[1] == ranking[0]["model_rank"]
        if trouble == "REFUSED":
            assert some[1] == 2 and some[0] == all_five[0] == 4   # of what does not compile nothing is kept
        times = {candidate["model_rank"]: candidate["predicted"]["time_us"] for candidate in ranking}
        if trouble == "SPILLS":
            assert some[0] == 1 + sum(times[rank] < 2 * times[1] for rank in range(2, 6))   # those that may be faster than it is now
            assert some[1] == (2 if times[2] < 2 * times[1] else 1)


def test_fifty_cubins_come_from_the_cache(folder):
    env, manifest = stand_in(folder), fifty(folder)
    assert counts(batch(manifest, "--cache", "cache", folder=folder, env=env)) == (50, 0, 0)
    first, kept = tree(folder), entries(folder)
    assert len(kept) >= 100 and not temporary(folder)
    for output in results(folder / "kernels.jsonl"):
        (folder / output["output"]).unlink()
    start = cpu_seconds()
    assert counts(batch(manifest, folder=folder, env={**env, "ROLLERC_CACHE": "cache"})) == (50, 0, 0)
    assert is_sanitized() or cpu_seconds() - start < 2 * 1
    assert tree(folder) == first and entries(folder) == kept   # nothing was compiled
    assert counts(batch(manifest, "--cache", "cache", folder=folder, env=env)) == (0, 50, 0)
    other = {**stand_in(folder, 1)}   # another NVRTC makes all of it again
    assert counts(batch(manifest, "--cache", "cache", folder=folder, env=other)) == (50, 0, 0)
    assert len(entries(folder)) == 2 * len(kept)


def test_damaged_entries_are_compiled_again(folder):
    env, manifest = stand_in(folder), fifty(folder)
    batch(manifest, "--cache", "cache", folder=folder, env=env)
    first, kept = tree(folder), sorted((folder / "cache/nvrtc").iterdir())
    for number, path in enumerate(kept[:40]):
        content = bytearray(path.read_bytes())
        if number % 4 == 0:
            content = content[:len(content) * number // 40]   # torn
        elif number % 4 == 1:
            content[len(content) * number // 40] ^= 0x20   # damaged
        elif number % 4 == 2:
            content = kept[50].read_bytes()   # another one's
        else:
            content += b"more"
        path.write_bytes(content)
    (folder / "kernels.jsonl").unlink()
    batch(manifest, "--cache", "cache", folder=folder, env=env)
    assert tree(folder) == first


def test_a_cache_that_others_may_write_to_is_told_of_once_and_not_used(folder):
    env, manifest = stand_in(folder), fifty(folder)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o775)
    done = batch(manifest, "--cache", "cache", folder=folder, env=env)
    assert counts(done) == (50, 0, 0) and done.stderr.count("chmod go-w") == 1 and not entries(folder)


def test_pipes_in_the_place_of_entries_and_outputs_do_not_hang(folder):
    env, manifest = stand_in(folder), fifty(folder)
    batch(manifest, "--cache", "cache", folder=folder, env=env)
    outputs = [folder / output["output"] for output in results(folder / "kernels.jsonl")]
    for path in [*sorted((folder / "cache/nvrtc").iterdir())[:5], *outputs[:1]]:
        path.unlink()
        os.mkfifo(path)
    reader = os.open(outputs[0], os.O_RDONLY | os.O_NONBLOCK)   # of the output, which is written to again
    done = batch(manifest, "--cache", "cache", folder=folder, env=env, code=4)
    os.close(reader)
    assert counts(done) == (0, 49, 1) and "cannot read 'a100/adaptive_layer_norm.cubin'" in done.stderr


def test_writers_of_one_cache_do_not_disturb_each_other(folder):
    env, manifest = stand_in(folder), fifty(folder)
    batch(manifest, folder=folder, env=env)
    first = {name: text for name, text in tree(folder).items() if name.endswith(".cubin")}
    writers = []
    for number in range(4):
        place = folder / f"writer{number}"
        place.mkdir()
        writers.append((place, subprocess.Popen([ROLLERC, "batch", folder / manifest, "--cache", folder / "cache", "-q"], cwd=place,
                                                env={**os.environ, **env, "ROLLERC_CACHE_MIB": "1"})))
    for place, process in writers:
        assert process.wait(120) == 0
        assert {name: text for name, text in tree(place).items() if name.endswith(".cubin")} == first
    assert not temporary(folder)
    assert sum(path.stat().st_size for path in (folder / "cache/nvrtc").iterdir()) <= 1 << 20


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "batch", options.filter)


if __name__ == "__main__":
    sys.exit(main())
