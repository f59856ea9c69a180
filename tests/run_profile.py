#!/usr/bin/env python3
"""`--profile` of programs of many kernels, with a stand-in for the clock (tests/stand_in/clock.c): which kernels are timed, the plan
that is made of the fastest, what the ranking says of it, and what fails. And the profiler itself with a stand-in for the driver
(tests/stand_in/zeros.c): kernels that crash, hang or write beside their buffers take no other down. NVRTC is needed, a GPU is not;
tests/gpu_profile.py has one."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common
import run_scarce
from run_jit import has_nvrtc

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77
STAND_IN = ""
ROLLERC = ""
CACHE = tempfile.TemporaryDirectory()   # of machine code, for all tests
TOP_K = 4
DEVICE = "a100"

# Four products of which two are alike, a norm twice, a last product of another size; filters that are packed once.
PROGRAM = """
input x[96, 128] : f16
weight a[128, 128] : f16   weight b[128, 128] : f16   weight c[128, 130] : f16   weight d[130, 64] : f16
p[i, j] : f16 = relu(sum[k](x[i, k] * a[k, j]))
m[i] = sum[j](p[i, j]) / 128
s[i] = sum[j](sq(p[i, j] - m[i])) / 128
n[i, j] : f16 = (p[i, j] - m[i]) * rsqrt(s[i] + 1e-5)
q[i, j] : f16 = relu(sum[k](n[i, k] * b[k, j]))
m2[i] = sum[j](q[i, j]) / 128
s2[i] = sum[j](sq(q[i, j] - m2[i])) / 128
n2[i, j] : f16 = (q[i, j] - m2[i]) * rsqrt(s2[i] + 1e-5)
r[i, j] : f16 = relu(sum[k](n2[i, k] * c[k, j]))
y[i, j] = sum[k](r[i, k] * d[k, j])
output y : f16
"""


# All of whose results are zero, whatever they are made of.
ZEROS = """
input x[96, 128] : f16
weight a[128, 128] : f16   weight b[128, 128] : f16   weight c[128, 130] : f16   weight d[130, 64] : f16
p[i, j] : f16 = min(sum[k](x[i, k] * a[k, j]), -1000) + 1000
q[i, j] : f16 = min(sum[k](p[i, k] * b[k, j]), -1000) + 1000
r[i, j] : f16 = min(sum[k](q[i, k] * c[k, j]), -1000) + 1000
y[i, j] : f16 = min(sum[k](r[i, k] * d[k, j]), -1000) + 1000
output y
"""


def profile(folder, *options, code=0, program=PROGRAM, env=None, top_k=TOP_K, rollerc=None, device=DEVICE):
    (folder / "k.te").write_text(program)
    command = [rollerc or STAND_IN, folder / "k.te", "--cache", CACHE.name, "--device", device, "--profile", "--top-k", top_k, "-o", folder / "k.cu", "--json",
               folder / "k.json", *options]
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, env={**os.environ, **(env or {})})
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stderr}"
    return done.stderr


def ranking(folder):
    schema = ROOT / "schema/ranking.schema.json"
    check = subprocess.run([sys.executable, ROOT / "tests/check_json.py", folder / "k.json", schema], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    return json.loads((folder / "k.json").read_text())


def kernels_of(candidate):
    """What is launched, without names: tiles, shapes, by what is made."""
    return {launch["makes"]: (launch["family"], launch["config"]["variant"], launch["config"]["tile"], launch["grid"], launch["block"])
            for launch in candidate["launches"]}


def test_each_different_kernel_is_timed_once(folder):
    said = profile(folder)
    kernels = ranking(folder)["kernels"]
    assert [kernel["makes"] for kernel in kernels] == ["p", "n", "r", "y"] and [kernel["times"] for kernel in kernels] == [2, 2, 1, 1], \
        [(kernel["makes"], kernel["times"]) for kernel in kernels]
    assert all(2 <= len(kernel["candidates"]) <= TOP_K for kernel in kernels)
    assert all(candidate["status"] == "ok" and candidate["measured"]["verified"]["elements"]
               for kernel in kernels for candidate in kernel["candidates"])
    assert re.findall(r"timed (\d+) of (\d+) kernels", said) == [(str(i + 1), "4") for i in range(4)], said
    assert len(re.findall(r"clock: .* a kernel", said)) == 4 and len(re.findall(r"clock: .* the whole", said)) == 1, said


def test_the_plan_is_made_of_the_fastest(folder):
    profile(folder)
    document = ranking(folder)
    best, first = document["candidates"][:2]
    assert (best["model_rank"], first["model_rank"]) == (0, 1) and document["emitted"]["model_rank"] == 0
    assert [best["measured"]["time_us"]["median"], first["measured"]["time_us"]["median"]] == [50, 60]
    assert all(candidate["status"] == "not_run" for candidate in document["candidates"][2:])
    emitted = kernels_of(best)
    for kernel in document["kernels"]:
        chosen = kernel["candidates"][0]
        assert chosen["rank"] == 1 and chosen["model_rank"] == max(candidate["model_rank"] for candidate in kernel["candidates"])
        for makes, what in kernels_of(chosen).items():
            assert emitted[makes] == what, (makes, emitted[makes], what)
    assert emitted["q"] == emitted["p"] and emitted["n2"] == emitted["n"]   # equal ones alike
    assert "made of the fastest kernels" in (folder / "k.cu").read_text()   # no --candidate N makes it
    line = common.read_metadata(folder / "k.cu")
    assert [launch["grid"] for launch in line["launches"]] == [launch["grid"] for launch in best["launches"]]


def test_what_is_written_is_proven(folder):
    said = profile(folder, "--verify")
    assert "verified all" in said and ranking(folder)["emitted"]["verified"]["elements"] > 0


def test_the_models_plan_stays_where_the_whole_is_faster(folder):
    profile(folder, env={"STAND_IN_WHOLE": "model"})
    document = ranking(folder)
    assert document["emitted"]["model_rank"] == 1 and document["candidates"][1]["model_rank"] == 0


def test_a_plan_without_room_is_not_timed(folder):
    """Of a GPU whose memory holds the model's own plan, and not that of the fastest, which sums in two launches. No device has less
    than 64 MB: a large map fills them."""
    count = 1 << 25
    program = PROGRAM.replace("130", "64").replace("128", "256") + f"input large[{count}] : f16  z[l] : f16 = relu(large[l])  output z : f16"
    tensors = 2 * (96 * 256 + 2 * 256 * 256 + 256 * 64 + 64 * 64 + 96 * 64 + 2 * count)
    profile(folder, program=program)   # the last of whose candidates for a norm has its rows in chunks
    fastest, first = ranking(folder)["candidates"][:2]
    room = (fastest["workspace_bytes"] + first["workspace_bytes"]) // 2
    assert (fastest["model_rank"], first["model_rank"]) == (0, 1) and first["workspace_bytes"] < room < fastest["workspace_bytes"]
    small = run_scarce.device(folder, DEVICE, "small", {"dram.bytes": tensors + room})
    said = profile(folder, program=program, device=small)
    wanted = re.search(r"needs a workspace of (\d+) bytes, for which small has no room: only the model's plan is timed", said)
    assert wanted and int(wanted[1]) > room, said
    document = ranking(folder)
    assert document["emitted"]["model_rank"] == 1 and all(candidate["model_rank"] for candidate in document["candidates"])
    assert common.read_metadata(folder / "k.cu")["workspace"] <= room


def test_a_candidate_that_crashes_is_a_result(folder):
    profile(folder, env={"STAND_IN_FAULTS": "2"})
    for kernel in ranking(folder)["kernels"]:
        states = {candidate["model_rank"]: candidate["status"] for candidate in kernel["candidates"]}
        assert all(state == ("ok" if rank % 2 else "fault") for rank, state in states.items()), states
        last = kernel["candidates"][-1]
        assert kernel["candidates"][0]["status"] == "ok" and last["status"] == "fault" and "Killed" in last["reason"]


def test_a_kernel_without_a_right_candidate_ends_it(folder):
    said = profile(folder, code=5, env={"STAND_IN_FAULTS": "1"})
    assert "every candidate of the kernel that makes p failed; the first one: ends the process" in said, said
    assert sorted(path.name for path in folder.iterdir()) == ["k.te"]


def test_a_kernel_takes_its_own_memory(folder):
    """Each part has the tensors of its kernel alone."""
    sizes = {makes: int(size) for size, makes in
             zip(re.findall(r"clock: (\d+) bytes, \d+ candidates, a kernel", profile(folder)), "pnry")}
    assert sizes == {"p": 2 * (96 * 128 + 128 * 128 + 96 * 128), "n": 2 * 2 * 96 * 128, "r": 2 * (96 * 128 + 128 * 130 + 96 * 130),
                     "y": 2 * (96 * 130 + 130 * 64 + 96 * 64)}, sizes


def test_equal_texts_are_compiled_once(folder):
    """All tens of kernels, then the whole, of which the model's first and the last have new texts: launches wait there."""
    compiled = [int(total) for total in re.findall(r"compiled \d+ of (\d+) kernels", profile(folder))]
    kernels = ranking(folder)["kernels"]
    texts = sum(len(candidate["launches"]) + len(candidate.get("prepare", [])) for kernel in kernels for candidate in kernel["candidates"])
    assert max(compiled) <= texts, (compiled, texts)


def test_templates_may_be_cited(folder):
    """A kernel by itself has line numbers of its own, too."""
    said = profile(folder, "--line-directives")
    assert "error" not in said and ranking(folder)["emitted"]["model_rank"] == 0, said


def test_two_runs_give_the_same(folder):
    seen = []
    for _ in range(2):
        profile(folder)
        seen.append([(folder / name).read_bytes() for name in ("k.cu", "k.json")])
    assert seen[0] == seen[1]


def test_machine_code_is_that_of_the_plan(folder):
    profile(folder, "--emit", "cubin=k.cubin")
    assert (folder / "k.cubin").read_bytes().startswith(b"\x7fELF")
    assert ranking(folder)["emitted"]["model_rank"] == 0


def test_few_kernels_are_tried_as_whole_plans(folder):
    """Four plans tell two kernels of two ways each apart."""
    few = "input x[96, 128] : f16  input a[128, 128] : f16  p[i, j] : f16 = sum[k](x[i, k] * a[k, j])  s[j] = sum[i](p[i, j])  output p  output s"
    profile(folder, program=few, env={"STAND_IN_WHOLE": "model"})
    document = ranking(folder)
    assert "kernels" not in document and all(candidate["model_rank"] for candidate in document["candidates"])
    profile(folder, "--candidate", 2)
    assert "kernels" not in ranking(folder)


def test_an_explanation_has_them(folder):
    profile(folder)
    said = subprocess.run([STAND_IN, "explain", folder / "k.json"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    table = said.stdout[said.stdout.index("Different kernels of the program"):].split("\n\n")[0].splitlines()[2:]
    assert [row.split("  ")[-1].split(":")[0] for row in table] == ["p", "n", "r", "y"], table
    for row in table:
        call, share, _, times, one, ratio, model, place = row.split()[:8]
        assert float(call) == int(times) * float(one) and float(model) == 199 and int(place) == 200 - float(one), row
    assert "made of the kernels that were the fastest by themselves" in " ".join(said.stdout.split()), said.stdout
    page = folder / "k.html"
    assert subprocess.run([STAND_IN, "explain", folder / "k.json", "--html", page], stdout=subprocess.DEVNULL).returncode == 0
    section = page.read_text().split("Different kernels of the program, timed by themselves")[1].split("</table>")[0]
    assert section.count("<tr>") == 5 and section.count("<td>199.00</td>") == 4, section
    assert abs(sum(float(row.split()[1]) for row in table) - 100) < 0.3


def profile_zeros(folder, bugs=(), code=0):
    """The candidates of each kernel, and what was said."""
    driver = os.path.join(os.path.dirname(STAND_IN), "stand_in_zeros")
    env = {"LD_LIBRARY_PATH": driver + ":" + os.environ.get("LD_LIBRARY_PATH", ""),
           "STAND_IN_BUGS": "".join(f"{bug} {grid}x{block}," for bug, (grid, block) in bugs)}
    said = profile(folder, "--force-device", "--hang-after", 1, program=ZEROS, env=env, code=code, rollerc=ROLLERC)
    return [] if code else [kernel["candidates"] for kernel in ranking(folder)["kernels"]], said


def shapes_of(candidate):
    return {(launch["grid"][0], launch["block"][0]) for launch in candidate["launches"] + candidate.get("prepare", [])}


def shapes_of_one(kernels):
    """Of each kernel's candidates a shape that no other candidate has, where there is one."""
    everywhere = [shape for kernel in kernels for candidate in kernel for shape in shapes_of(candidate)]
    alone = [[[shape for shape in shapes_of(candidate) if everywhere.count(shape) == 1] for candidate in kernel] for kernel in kernels]
    return [[min(shapes) for shapes in kernel if shapes] for kernel in alone]


def test_one_process_times_all_kernels(folder):
    kernels, said = profile_zeros(folder)
    assert len(kernels) == 3 and all(candidate["status"] == "ok" for kernel in kernels for candidate in kernel), kernels
    assert all(candidate["measured"]["verified"]["elements"] == 4000 for kernel in kernels for candidate in kernel)
    assert re.findall(r"timed (\d+) of 3 kernels", said) == ["1", "2", "3"], said


def test_a_bug_in_a_candidate_takes_no_other_down(folder):
    shapes = shapes_of_one(profile_zeros(folder)[0])
    assert all(len(of_kernel) >= 2 for of_kernel in shapes), shapes
    first, second, third = shapes
    for bugs in ([("crash", first[0]), ("hang", second[1]), ("fault", third[0]), ("beside", third[1])],
                 [("fault", first[-1]), ("beside", second[0]), ("crash", second[-1]), ("hang", third[-1])]):
        kernels, _ = profile_zeros(folder, bugs)
        planted, found = {shape: "timeout" if bug == "hang" else "fault" for bug, shape in bugs}, 0
        for candidate in [candidate for kernel in kernels for candidate in kernel]:
            expected = {planted[shape] for shape in shapes_of(candidate) if shape in planted} or {"ok"}
            found += expected != {"ok"}
            assert candidate["status"] in expected, (shapes_of(candidate), expected, candidate["status"], candidate["reason"])
        assert found == len(bugs), (found, bugs)
        emitted = [(launch["grid"][0], launch["block"][0]) for launch in common.read_metadata(folder / "k.cu")["launches"]]
        assert not set(emitted) & set(planted), (emitted, planted)


def test_a_kernel_whose_candidates_all_crash_ends_it(folder):
    last = profile_zeros(folder)[0][-1]
    _, said = profile_zeros(folder, [("crash", shape) for candidate in last for shape in shapes_of(candidate)], code=5)
    assert "every candidate of the kernel that makes y failed; the first one: ends the process that runs it (Killed)" in said, said


def test_what_was_compiled_for_a_kernel_is_not_compiled_for_the_whole(folder):
    """Where no launch waits within a kernel, all texts are there: one more compilation would say so."""
    said = profile_zeros(folder)[1]
    assert len(set(re.findall(r"compiled \d+ of (\d+) kernels", said))) <= 1, said


def main():
    global STAND_IN, ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    STAND_IN = os.path.join(os.path.dirname(os.path.abspath(options.rollerc)), "tests", "stand_in_clock")
    ROLLERC = os.path.abspath(options.rollerc)
    if not has_nvrtc():
        print("SKIPPED: there is no NVRTC here; the profile of programs of many kernels is NOT tested")
        return SKIPPED
    return common.run_tests(globals(), "profile", options.filter)


if __name__ == "__main__":
    sys.exit(main())
