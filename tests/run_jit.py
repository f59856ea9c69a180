#!/usr/bin/env python3
"""PTX, cubin and what the ranking says of them: NVRTC is needed, a GPU is not."""
import argparse
import ctypes
import json
import os
import re
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77
ROLLERC = ""


def run(*arguments, code=0, folder=None, env=None):
    result = subprocess.run([ROLLERC, *map(str, arguments)], cwd=folder, capture_output=True, text=True,
                            timeout=300, env={**os.environ, **(env or {})})
    assert result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}"
    return result


def example(name, device, *arguments, **more):
    return run(ROOT / f"examples/{name}.te", "--device", device, "--top-k", 3, *arguments, **more)


def check_schema(path):
    schema = ROOT / "schema/ranking.schema.json"
    check = subprocess.run([sys.executable, ROOT / "tests/check_json.py", path, schema],
                           capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    return json.loads(path.read_text())


def has_nvrtc():
    variables = ("ROLLERC_CUDA_PATH", "CUDA_PATH", "CUDA_HOME")
    folders = [os.environ.get(name) for name in variables] + ["/usr/local/cuda"]
    names = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    paths = [f"{folder}/{lib}/{name}" for folder in folders if folder
             for lib in ("lib64", "lib") for name in names]
    for path in [*paths, *names]:
        try:
            ctypes.CDLL(path)
            return True
        except OSError:
            pass
    return False


# ---- machine code ----

def test_ptx_and_cubin(folder):
    for device, arch in (("a100", "sm_80"), ("h200", "sm_90a")):
        for name in ("relu", "softmax"):
            example(name, device, "-o", "k.cubin", "--emit", "ptx", folder=folder)
            assert (folder / "k.cubin").read_bytes().startswith(b"\x7fELF")
            text = (folder / "k.ptx").read_text()
            assert f".target {arch}" in text and f".entry {name}_k0" in text, text[:500]


def test_two_runs_are_identical(folder):
    def all_bytes():
        example("softmax", "a100", "-o", "k.cubin", "--emit", "ptx,json,cu", folder=folder)
        return [(folder / f"k.{suffix}").read_bytes() for suffix in ("cubin", "ptx", "json", "cu")]
    assert all_bytes() == all_bytes()


def test_many_kernels_of_a_text_are_optimised_side_by_side(folder):
    """The machine code says so, and is the same again: it does not depend on how many cores there are."""
    def cubin(kernels):
        (folder / "many.te").write_text("".join(
            f"input x{i}[{500 + i}, {40 + i}] : f32  y{i}[m] = sum[n](x{i}[m, n])  output y{i}\n" for i in range(kernels)))
        run("many.te", "--device", "a100", "-o", "many.cubin", "--json", "many.json", "--top-k", 1, folder=folder)
        return (folder / "many.cubin").read_bytes()

    made = cubin(9)
    launches = json.loads((folder / "many.json").read_text())["candidates"][0]["launches"]
    compiler = launches[0]["compiled"]["compiler"]
    assert len(launches) == 9, launches
    assert made == cubin(9)
    if tuple(map(int, compiler.removeprefix("NVRTC ").split("."))) >= (12, 6):
        assert b"-split-compile" in made and b"-split-compile" not in cubin(2)


def test_machine_code_is_kept(folder):
    def all_bytes(*more, env=None):
        example("softmax", "a100", "-o", "k.cubin", "--emit", "ptx,json", *more, folder=folder, env=env)
        return [(folder / f"k.{suffix}").read_bytes() for suffix in ("cubin", "ptx", "json")]
    kept = all_bytes("--cache", "cache")
    entries = sorted((folder / "cache/nvrtc").iterdir())
    candidates = len(json.loads(kept[2])["candidates"])
    assert len(entries) == candidates
    cpu = cpu_seconds()
    assert all_bytes("--cache", "cache") == kept == all_bytes(env={"ROLLERC_CACHE": "cache"})
    assert cpu_seconds() - cpu < 0.5   # compiling takes seconds
    entries[0].write_bytes(b"damaged")
    assert all_bytes("--cache", "cache") == kept and entries[0].stat().st_size > 1000
    example("softmax", "a100", "-o", "k.cubin", "--json", "k.json", "--math=fast", "--cache", "cache", folder=folder)
    assert len(list((folder / "cache/nvrtc").iterdir())) > candidates   # another text
    example("relu", "a100", "-o", "r.cubin", env={"ROLLERC_CACHE": "cache", "ROLLERC_CACHE_MIB": "1"}, folder=folder)
    assert sum(path.stat().st_size for path in (folder / "cache/nvrtc").iterdir()) <= 1 << 20


def test_occupancy_is_that_of_the_registers_the_compiler_took(folder):
    """Each of an SM's four schedulers has 16,384, handed out in eights to whole warps."""
    example("softmax", "a100", "-o", "k.cubin", "--json", "k.json", folder=folder)
    launches = [launch for candidate in check_schema(folder / "k.json")["candidates"] for launch in candidate["launches"]]
    for launch in launches:
        warps, registers = -(-launch["config"]["threads"] // 32), -(-launch["compiled"]["registers"] // 8) * 8
        occupancy = launch["predicted"]["occupancy"]
        assert occupancy["room_for"]["registers"] == 4 * (16384 // (32 * registers)) // warps, launch
        assert occupancy["blocks_per_sm"] == min(occupancy["room_for"].values())
    assert any(launch["compiled"]["registers"] != launch["estimated_registers"] for launch in launches)


def test_only_machine_code_is_compiled(folder):
    # v100: an architecture that NVRTC 13 refuses.
    example("relu", "v100", "-o", "k.cu", "--json", "k.json", folder=folder)
    assert "compiled" not in (folder / "k.json").read_text()


def test_old_devices_say_which_toolkit_they_need(folder):
    message = example("relu", "k80", "-o", "k.cubin", code=4, folder=folder).stderr
    assert "sm_37 needs CUDA <= 11" in message, message
    message = example("relu", "mi50", "-o", "k.ptx", code=4, folder=folder).stderr
    assert "CUDA devices" in message, message
    result = subprocess.run([ROLLERC, ROOT / "examples/relu.te", "--device", "v100", "-o", "k.ptx"],
                            cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0 or "sm_70 needs CUDA <= 12" in result.stderr, result.stderr
    assert not [path for path in folder.iterdir() if path.suffix == ".cubin"]


def test_old_compilers_of_one_architecture_are_warned_of(folder):
    """Whichever NVRTC is here: the ranking has its version."""
    for device, own in (("a100", False), ("h200", True)):
        said = example("relu", device, "-o", "k.cubin", "--json", "k.json", folder=folder).stderr
        name = check_schema(folder / "k.json")["candidates"][0]["launches"][0]["compiled"]["compiler"]
        old = tuple(map(int, name.removeprefix("NVRTC ").split("."))) < (13, 1)
        assert (f"warning: {name} made this machine code" in said) == (own and old), (name, said)
    assert "warning" not in example("relu", "h200", "-o", "k.cu", folder=folder).stderr   # nothing was compiled


# ---- the ranking ----

def test_the_ranking_says_what_was_compiled(folder):
    example("softmax", "a100", "-o", "k.cubin", "--json", "k.json", folder=folder)
    ranking = check_schema(folder / "k.json")
    for candidate in ranking["candidates"]:
        for launch in candidate["launches"]:
            compiled = launch["compiled"]
            assert 8 <= compiled["registers"] <= 255, compiled
            assert compiled["compiler"].startswith("NVRTC "), compiled


def test_spilling_candidates_come_later(folder):
    run(ROOT / "examples/softmax.te", "--device", "h200", "-o", "k.json", "--emit", "cubin", folder=folder)

    def expected_us(candidate):
        spills = sum(launch["compiled"]["spill_store_bytes"] + launch["compiled"]["spill_load_bytes"]
                     for launch in candidate["launches"])
        predicted = candidate["predicted"]
        return predicted.get("compiled_time_us", predicted["time_us"]) * (2 if spills else 1)
    candidates = check_schema(folder / "k.json")["candidates"]
    times = [expected_us(candidate) for candidate in candidates]
    assert times == sorted(times), times
    slower = [candidate for candidate in candidates if "compiled_time_us" in candidate["predicted"]]
    assert slower, "no candidate took more registers than the model counted on: look for another program"
    for candidate in slower:
        assert candidate["predicted"]["compiled_time_us"] > candidate["predicted"]["time_us"], candidate["predicted"]
        assert any(launch["compiled"]["registers"] > launch["estimated_registers"] for launch in candidate["launches"])


def test_a_candidate_can_be_chosen(folder):
    example("relu", "a100", "--candidate", 2, "-o", "k.cubin", "--emit", "cu,json", folder=folder)
    candidates = check_schema(folder / "k.json")["candidates"]
    assert sum("compiled" in candidate["launches"][0] for candidate in candidates) == 1
    assert "candidate 2 of 3" in (folder / "k.cu").read_text()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_one_candidate_of_matmul_and_ten(folder):
    sizes = [word for axis in "MNK" for word in ("-D", f"{axis}=4096")]

    def make(*more):
        """(processor time, what was compiled); NVRTC makes other machine code of it from time to time."""
        start, cpu = time.monotonic(), cpu_seconds()
        run(ROOT / "examples/matmul.te", "--device", "a100", *sizes, "-o", "k.cubin", "--emit", "cu", *more, folder=folder)
        seconds, cpu = time.monotonic() - start, cpu_seconds() - cpu
        print(f"jit: {'ten candidates' if more else 'the first candidate'} of matmul 4096^3: {seconds:.1f} s, {cpu:.1f} s of one core")
        return cpu, (folder / "k.cu").read_bytes()
    one, ten = make(), make("--json", "k.json")
    assert one[1] == ten[1]   # the ranking changes nothing
    assert one[0] < ten[0] / 2, (one[0], ten[0])   # a text that spills is compiled twice
    assert ten[0] / 2 < 2, ten[0]   # 2 s on two cores; others may share them: no judgement on the wall clock


HALVES = "in f16"   # tensor cores do not multiply floats as they are


def compiled_families(folder, name, *options):
    """Of k.te, in the folder."""
    run("k.te", "--device", "h200", "--top-k", 4, *options, "-o", "k.json", "--emit", "cubin", folder=folder)
    candidates = check_schema(folder / "k.json")["candidates"]
    for candidate in candidates:
        assert candidate["status"] != "compile_error", f"{name}: {candidate['reason']}"
    return {launch["family"] for candidate in candidates for launch in candidate["launches"]}


def test_candidates_of_every_family_compile(folder):
    seen = set()
    for name, *options in (("bn_relu_training",), ("bn_add_relu_mask_nhwc",), ("layer_norm",), ("max_pool",), ("depthwise_31x31",), ("depthwise_3x3",),
                           ("depthwise_31x31_filter",), ("depthwise_3x3_s2_filter",), ("permute_210",), ("reduce_rows",), ("relu",), ("matmul_bias_gelu",),
                           ("matmul_i8",), ("matmul",), ("conv2d_nhwc",), ("part_of_the_channels",), ("matmul", "-D", "M=8"), ("matmul", "--math=tf32"),
                           ("depthwise_31x31", HALVES), ("depthwise_31x31_filter", HALVES), ("depthwise_7x7_nhwc",), ("attention",)):
        program = common.example_text(name)
        if HALVES in options:
            program = program.replace("f32", "f16")
            options.remove(HALVES)
        (folder / "k.te").write_text(program)
        seen |= compiled_families(folder, name, *options)
    families = set(re.findall(r"&(\w+)_family", (ROOT / "src/codegen/family/families.c").read_text()))
    for path in sorted(path for family in families - seen for path in (ROOT / "tests/golden/kernel" / family).glob("*.te")):
        (folder / "k.te").write_text(path.read_text())
        seen |= compiled_families(folder, path.name)
    assert seen == families - {"supersteps"}, families ^ seen   # which is for devices without text


# ---- what fails ----

def test_templates_that_do_not_compile_fail_with_a_reason(folder):
    templates = folder / "templates"
    shutil.copytree(ROOT / "templates", templates)
    for path in templates.glob("*.cu"):
        path.write_text(path.read_text().replace("= TENSORS;", "= TENSORS;\n    nonsense;", 1))   # what is reached is kept
    message = example("relu", "a100", "--templates", templates, "-o", "k.cubin", code=5, folder=folder).stderr
    assert "every candidate failed" in message and "\"nonsense\" is undefined" in message, message
    assert not (folder / "k.cubin").exists()


def test_a_candidate_that_does_not_compile_gives_way(folder):
    softmax = [ROOT / "examples/softmax.te", "--device", "a100"]   # in one launch or in several
    templates = folder / "templates"
    shutil.copytree(ROOT / "templates", templates)
    run(*softmax, "-o", "k.json", folder=folder)
    kinds = [{launch["template"] for launch in candidate["launches"]} for candidate in check_schema(folder / "k.json")["candidates"]]
    assert any(not kind & kinds[0] for kind in kinds), f"all ten are of one kind now: {kinds}"
    for name in kinds[0]:
        path = folder / name
        path.write_text(path.read_text().replace("= TENSORS;", "= TENSORS;\n    nonsense;", 1))
    seen = []
    for more in ([], ["--json", "k.json"]):
        run(*softmax, "--templates", templates, "-o", "k.cubin", "--emit", "cu", *more, folder=folder)
        seen.append((folder / "k.cu").read_bytes())
    first, *_, last = check_schema(folder / "k.json")["candidates"]
    assert seen[0] == seen[1] and f"candidate {first['model_rank']} of" in seen[0].decode()
    assert first["model_rank"] > 1 and first["status"] == "not_run" and last["status"] == "compile_error"


def test_profile_without_a_gpu(folder):
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""}
    message = example("relu", "a100", "--profile", code=4, folder=folder, env=no_gpu).stderr
    assert "no usable GPU" in message, message
    assert not list(folder.iterdir())


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupt_ends_the_workers(folder):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        command = [ROLLERC, ROOT / "examples/matmul.te", "--device", "a100", "-o", "k.cubin"]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        workers = []
        while not workers and process.poll() is None:
            time.sleep(0.02)
            workers = children_of(process.pid)
        assert workers
        start = time.monotonic()
        process.send_signal(number)
        assert process.wait(5) == code
        while any(map(is_alive, workers)) and time.monotonic() < start + 1:
            time.sleep(0.01)
        assert not any(map(is_alive, workers)) and time.monotonic() < start + 1
        assert not list(folder.iterdir())


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    if not has_nvrtc():
        print("SKIPPED: there is no NVRTC here; PTX, cubin and compiled rankings are NOT tested")
        return SKIPPED
    return common.run_tests(globals(), "jit", options.filter)


if __name__ == "__main__":
    sys.exit(main())
