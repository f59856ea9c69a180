#!/usr/bin/env python3
"""rollerc calibrate: what it writes is a device file that loads and ranks, and without a GPU it says so. A stand-in takes the place of
the driver: every launch takes as long as it says. The micro-kernels themselves are compiled where NVRTC is here.

    python3 tests/run_calibrate.py --rollerc build/rollerc
"""
import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys

import jsonschema
import yaml

import common
import nvcc_examples
import run_batch

ROOT = os.path.dirname(common.TESTS)

# Each launch takes 7 ms, each kernel says 1 ms by its own clock.
DRIVER = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long Pointer;
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuGetErrorName(int error, const char **name) { return *name = "A_STAND_INS_ERROR", 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int bytes, int device) { return strcpy(name, "Stand-in H100"), 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { return *value = which == 16 ? 132 : which == 75 ? 9 : 0, 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 85000000000, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { return 0; }
int cuMemAlloc_v2(Pointer *memory, size_t bytes) { return *memory = (Pointer)malloc(bytes < 1 << 20 ? bytes : 1 << 20), 0; }
int cuMemFree_v2(Pointer memory) { return 0; }
int cuMemsetD8_v2(Pointer memory, unsigned char value, size_t bytes) { return 0; }
int cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) { return 0; }
int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void *stream) { return 0; }
int cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) { return *(uint64_t *)to = 1000000, 0; }
int cuModuleLoadData(void **module, const void *image) { return *module = (void *)image, 0; }
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return *function = (void *)name, getenv("FAILS") && !strcmp(name, getenv("FAILS"));
}
int cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
int cuLaunchKernelEx(const void *config, void *function, void **parameters, void **extra) { return 0; }
int cuStreamCreate(void **stream, unsigned flags) { return 0; }
int cuStreamSynchronize(void *stream) { return 0; }
int cuEventCreate(void **event, unsigned flags) { return 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventElapsedTime(float *ms, void *from, void *to) { return *ms = 7, 0; }
int cuStreamBeginCapture_v2(void *stream, int mode) { return 0; }
int cuStreamEndCapture(void *stream, void **graph) { return 0; }
int cuGraphInstantiateWithFlags(void **run, void *graph, unsigned long long flags) { return 0; }
int cuGraphLaunch(void *run, void *stream) { return 0; }
int cuGraphExecDestroy(void *run) { return 0; }
int cuGraphDestroy(void *graph) { return 0; }
"""


def calibrate(*arguments, folder, env=None, code=0):
    done = subprocess.run([ROLLERC, "calibrate", *arguments], cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def stand_ins(folder):
    env = run_batch.stand_in(folder)
    library = os.path.join(env["ROLLERC_CUDA_PATH"], "lib", "libcuda.so.1")
    subprocess.run([shutil.which("gcc") or "clang", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=DRIVER.encode(), check=True)
    return env


def test_what_is_written_loads_and_ranks(folder):
    env = stand_ins(folder)
    said = calibrate("--device", "h100", "-o", "mine.yaml", folder=folder, env=env).stderr
    assert re.fullmatch(r"rollerc: measured \d\d numbers of a Stand-in H100\n", said), said
    text = (folder / "mine.yaml").read_text()
    written = yaml.safe_load(text)
    with open(os.path.join(ROOT, "schema/device.schema.json")) as file:
        jsonschema.validate(written, yaml.safe_load(file))
    assert written["like"] == "h100" and written["device"] == {"name": "h100"}
    assert f"Measured {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d} on one Stand-in H100, CUDA 13.0" in text
    assert written["compute"] == {"launch_us": 70}             # 7 ms are a hundred launches
    assert written["timing"]["grid_barrier_us"] == 2           # 1 ms are 500
    assert written["l2"]["latency_ns"] == 61                   # 1 ms are 16384 steps
    few = float(re.search(r"4 KiB an SM under way +([\d.]+)", text)[1])
    assert abs(written["dram"]["latency_ns"] * few / (4096 * 132) - 1) < 0.01      # what is under way over what arrives
    assert written["timing"]["block_start_cycles"] == 13.9     # 7 ms x 1980 MHz / 1,000,000 blocks
    assert abs(written["dram"]["bandwidth_gb_s"] / (2**29 / 7e6) - 1) < 0.04    # whole rounds of 512 MiB in 7 ms
    with open(os.path.join(ROOT, "devices/h100.yaml")) as file:
        before = yaml.safe_load(file)["dram"]["bandwidth_gb_s"]
    assert "# measured" in text and f"+- 0.0 %; {before:.0f} before" in text
    for line in ("read, 4 KiB an SM under way", "bulk copy, from L2", "clusters of 8 meet", "fma, 2 chain(s), 4 warp(s) a scheduler"):
        assert f"#   {line}" in text, line
    ranked = subprocess.run([ROLLERC, os.path.join(common.EXAMPLES, "softmax.te"), "--device", "./mine.yaml", "-d", "device,rprogram"], cwd=folder,
                            capture_output=True, text=True, check=True).stdout
    assert re.search(r"block_start_cycles +13.9\n", ranked) and "launch 70\n" in ranked
    assert "132 SMs x 128 lanes" in ranked                     # which is the base's


def test_what_fails_is_told_and_nothing_is_written(folder):
    env = stand_ins(folder)
    failed = calibrate("--device", "h100", folder=folder, env={**env, "FAILS": "micro_sfu"}, code=4)
    assert "cannot measure: micro_sfu: A_STAND_INS_ERROR" in failed.stderr
    other = calibrate("--device", "a100", folder=folder, env=env, code=4)
    assert "is not the device 'a100'" in other.stderr and "--force-device" in other.stderr
    assert not list(folder.glob("*.yaml"))


def test_without_a_gpu_it_says_so(folder):
    if os.path.exists("/dev/nvidiactl"):
        raise common.Skip("there is a GPU")
    none = calibrate("--device", "h100", "-o", "mine.yaml", folder=folder, code=4)
    assert "there is no usable GPU" in none.stderr and not (folder / "mine.yaml").exists()
    for device in ("mi50", "ipu_mk1"):
        assert "no CUDA device" in calibrate("--device", device, folder=folder, code=4).stderr
    assert "--help' shows" in calibrate(folder=folder, code=2).stderr
    assert "takes no file" in calibrate("h100", folder=folder, code=2).stderr
    assert "unknown word 'sometimes' for --color" in calibrate("--device", "h100", "--color", "sometimes", folder=folder, code=2).stderr
    (folder / "mine.yaml").write_text("like: h100\ndevice: {name: mine}\n")
    assert "the name of a built-in device" in calibrate("--device", "./mine.yaml", folder=folder, code=2).stderr


def test_the_kernels_compile(folder):
    nvrtc = nvcc_examples.find_nvrtc(shutil.which("nvcc"))
    if not nvrtc:
        raise common.Skip("no NVRTC")
    with open(os.path.join(ROOT, "src/hal/gpu/micro.cu")) as file:
        source = file.read()
    with open(os.path.join(ROOT, "src/clock/micro.c")) as file:
        wanted = set(re.findall(r'"micro_(\w+)"', file.read())) - {"read_", "fma_", "mma_", "wgmma_"}
    defined = set(re.findall(r"MICRO\((?:\d+, )?(\w+)\)", source)) - {"name"}
    assert wanted <= defined and len(wanted) > 10, wanted - defined
    for arch in ("sm_75", "sm_80", "sm_90a"):
        _, _, reason = nvrtc.compile_text(source, arch, "micro.cu", strict=True)
        assert reason is None, reason


def test_a_file_may_be_like_another(folder):
    def device(text, code=0):
        (folder / "d.yaml").write_text(text)
        done = subprocess.run([ROLLERC, os.path.join(common.EXAMPLES, "relu.te"), "--device", "./d.yaml", "-d", "device"], cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr
    said = device("like: k80\ndevice: {name: mine}\ncompute: {launch_us: 7}\ntiming: {barrier_cycles: 45}\n")
    assert said.startswith("device mine: NVIDIA K80") and re.search("barrier_cycles +45\n", said)
    assert re.search(r"block_wait_us +2.26\n", said)           # what is absent follows from the base's clock,
    faster = device("like: k80\ndevice: {name: mine}\ncompute: {clock_mhz: 900}\npeak_gflop_s: {fp32: 4493}\nshared: {bandwidth_gb_s: 2995}\n")
    assert re.search(r"block_wait_us +2.2\n", faster)          # or from the file's own: 1980 / 900
    assert "d.yaml:1:7: error: like wants the name of a built-in device, found 'k8O'; did you mean 'k80'?" in device(
        "like: k8O\ndevice: {name: mine}\n", 1)
    assert "missing key 'device.name'" in device("like: k80\n", 1)
    assert "like wants the name of a built-in device" in device("like: {a: b}\ndevice: {name: mine}\n", 1)
    assert "unknown key 'compute.launch'" in device("like: k80\ndevice: {name: mine}\ncompute: {launch: 7}\n", 1)
    wrong = device("like: k80\ndevice: {name: mine}\npeak_gflop_s: {fp32: 9999}\n", 1)
    assert "./d.yaml:3:22: error: peak_gflop_s.fp32 = 9999 contradicts" in wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="")
    args = parser.parse_args()
    ROLLERC = os.path.abspath(args.rollerc)
    sys.exit(common.run_tests(globals(), "calibrate", args.filter))
