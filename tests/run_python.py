#!/usr/bin/env python3
"""python/rollerc.py without a GPU: a C library and a driver that note what they are called with stand in for nvcc's and CUDA's.

tests/gpu_python.py runs it with PyTorch and CuPy on a GPU.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import rollerc   # noqa: E402

ROWS = "param R = 6  param N = 40\ninput x[R, N] : f16\ninput w[N] : f32\ny[i] = sum[j](x[i, j] * w[j])\np[i, j] = x[i, j] > 0\noutput y  output p\n"
LONG = "param N = 1000000  input x[N] : f32  y[] = sum[j](x[j])  output y\n"   # two launches of two arguments each, a workspace

# What nvcc makes here: a launcher that notes its arguments.
NVCC = """#!{python}
import json, subprocess, sys
source, output = [word for word in sys.argv[1:] if word.endswith((".cu", ".so"))] if "--version" not in sys.argv else (None, None)
if not source:
    print("nvcc: a stand-in")
    sys.exit()
meta = json.loads(open(source).readline().removeprefix("//rollerc: "))
count = len(meta["args"]) + 2
c = "void *seen[%d]; int calls, status;\\nint %s_launch(%s)\\n{{ %s return calls++, status; }}\\n" % (
    count, meta["name"], ", ".join("void *a%d" % i for i in range(count)), " ".join("seen[%d] = a%d;" % (i, i) for i in range(count)))
sys.exit(subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", output], input=c, text=True).returncode)
"""

# What libcuda.so is here.
DRIVER = """
#include <string.h>
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
struct config configs[8]; void *arguments[8][16]; const char *kernels[8]; int launches, loads, status, attributes_set[2];
int version = 12030;
static char names[8][64]; static int named;
unsigned long long maps[2][16]; int pointers;   // descriptions of tensors stand behind so many pointers; 0: there are none
int cuCtxGetCurrent(void **context) { *context = &launches; return 0; }
int cuModuleLoadData(void **module, const void *image) { *module = (void *)image; loads++; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{ (void)module; strcpy(names[named], name); *function = names[named++]; return 0; }
int cuFuncSetAttribute(void *function, int attribute, int value)
{ (void)function; attributes_set[0] = attribute; attributes_set[1] = value; return 0; }
int cuDriverGetVersion(int *known) { *known = version; return 0; }
int cuGetErrorString(int code, const char **text) { (void)code; *text = "out of luck"; return 0; }
int cuTensorMapEncodeTiled(unsigned long long *map, int type, unsigned rank, void *start, const unsigned long long *sizes,
                           const unsigned long long *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill)
{
    const unsigned long long said[16] = {(unsigned long long)start, type, rank, sizes[0], sizes[1], sizes[2], strides[0], strides[1],
                                         box[0], box[1], box[2], steps[0] * steps[1] * steps[2], interleave, swizzle, promotion, fill};
    memcpy(map, said, sizeof said);
    return (unsigned long long)map % 64 != 0;
}
int cuLaunchKernelEx(const struct config *config, void *function, void **places, void **extra)
{
    (void)extra;
    configs[launches] = *config; kernels[launches] = function;
    for (int i = 0; i < 2; i++) arguments[launches][i] = *(void **)places[i];
    for (int i = 0; pointers && i < 2; i++) memcpy(maps[i], places[pointers + i], sizeof maps[i]);
    launches++;
    return status;
}
"""


class Array:
    """Memory of this process that says it is a GPU's."""

    def __init__(self, typestr, shape, strides=None):
        self.memory = ctypes.create_string_buffer(1 << 16)
        self.address = ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 16
        self.__cuda_array_interface__ = {"data": (self.address, False), "shape": shape, "typestr": typestr, "strides": strides, "version": 3}


@contextlib.contextmanager
def refused(text):
    try:
        yield
    except rollerc.Error as error:
        assert text in str(error), f"no '{text}' in: {error}"
    else:
        raise AssertionError(f"'{text}' was not refused")


class Place:
    """A folder with the stand-ins, a cache, and expressions."""

    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        (folder / "bin").mkdir()
        (folder / "bin/nvcc").write_text(NVCC.format(python=sys.executable))
        (folder / "bin/nvcc").chmod(0o755)
        os.environ["CUDA_PATH"] = str(folder)
        (folder / "rows.te").write_text(ROWS)
        (folder / "long.te").write_text(LONG)

    def load(self, name, **more):
        return rollerc.load(self.folder / name, device="a100", rollerc=self.binary, cache=str(self.folder / "cache"), **more)


def arrays():
    return Array("<f2", (6, 40)), Array("<f4", (40,)), [Array("<f4", (6,)), Array("<i4", (8,))]   # 240 bits are 8 words


def test_arguments_arrive_in_order(place):
    kernel = place.load("rows.te")
    x, w, out = arrays()
    assert kernel(x, w, out=out, stream=77) == tuple(out)
    seen = (ctypes.c_void_p * 6).in_dll(ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so")), "seen")
    assert list(seen) == [x.address, w.address, out[0].address, out[1].address, None, 77]
    assert [argument.shape for argument in kernel.outputs] == [(6,), (8,)]


def test_what_does_not_fit_is_refused_in_plain_words(place):
    kernel = place.load("rows.te", N=40)
    x, w, out = arrays()
    with refused("takes 2 inputs (x, w), saw 1"):
        kernel(x, out=out)
    with refused("input 0 ('x') is float16[6, 40]; saw <f2[40, 6]"):
        kernel(Array("<f2", (40, 6)), w, out=out)
    with refused("input 1 ('w') is float32[40]; saw <f8[40]"):
        kernel(x, Array("<f8", (40,)), out=out)
    with refused("not contiguous"):
        kernel(Array("<f2", (6, 40), (2, 12)), w, out=out)
    with refused("output 1 ('p') is int32[8] of 32 bits each, for b1; saw <i4[240]"):
        kernel(x, w, out=[out[0], Array("<i4", (240,))])
    with refused("has 2 outputs, saw 1"):
        kernel(x, w, out=out[0])
    with refused("saw a list, which is no array on a GPU"):
        kernel([1, 2], w, out=out)
    with refused("only PyTorch and CuPy make its outputs by themselves"):
        kernel(x, w)


def test_errors_are_those_of_the_compiler(place):
    with refused("no param of that name; it has R, N"):
        place.load("rows.te", Q=3)
    with refused("no built-in device 'a1000'"):
        rollerc.load(place.folder / "rows.te", device="a1000", rollerc=place.binary, cache=str(place.folder / "cache"))
    assert not [path for path in (place.folder / "cache").iterdir() if path.name.startswith("tmp")]


def test_a_status_is_an_error(place):
    kernel = place.load("rows.te", R=6)
    ctypes.c_int.in_dll(ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so")), "status").value = 9
    x, w, out = arrays()
    with refused("cudaError_t 9"):
        kernel(x, w, out=out)


def test_content_names_what_is_kept(place):
    first = place.load("rows.te").source
    assert place.load("rows.te").source == first
    assert place.load("rows.te", N=48).source != first
    assert place.load("rows.te", math="fast").source != first
    (place.folder / "rows.te").write_text(ROWS.replace("* w[j]", "+ w[j]"))
    assert place.load("rows.te").source != first


def cubin_of(place, expression, device, *options):
    """A kernel without a C library, and what its stand-in for the driver notes."""
    folder = place.folder / "cubin"
    folder.mkdir()
    subprocess.run([place.binary, expression, "--device", device, "-q", "-o", folder / "kernel.cu", *options], check=True)
    (folder / "kernel.cubin").write_bytes(b"machine code")
    (place.folder / "driver.c").write_text(DRIVER)
    driver = place.folder / "driver.so"
    subprocess.run(["cc", "-shared", "-fPIC", place.folder / "driver.c", "-o", driver], check=True)
    os.environ["ROLLERC_LIBCUDA"] = str(driver)
    return rollerc.Kernel(str(folder)), ctypes.CDLL(str(driver))


def test_a_cubin_is_launched_as_the_metadata_says(place):
    kernel, noted = cubin_of(place, place.folder / "long.te", "a100")
    launches = kernel.metadata["launches"]
    assert len(launches) == 2 and kernel.workspace > 0, "this expression was to be cut in two"
    x, y = Array("<f4", (1000000,)), Array("<f4", ())
    with refused("bytes of workspace"):
        kernel(x, out=y)
    workspace = 1 << 20
    kernel._launch([x.address, y.address], workspace, 5)
    kernel._launch([x.address, y.address], workspace, 5)
    assert ctypes.c_int.in_dll(noted, "loads").value == 1 and ctypes.c_int.in_dll(noted, "launches").value == 4
    arguments = ((ctypes.c_void_p * 16) * 8).in_dll(noted, "arguments")
    names = (ctypes.c_char_p * 8).in_dll(noted, "kernels")
    for i, launch in enumerate(launches):
        wanted = [[x.address, y.address][arg["arg"]] if "arg" in arg else workspace + arg["workspace"] for arg in launch["args"]]
        assert list(arguments[i])[:len(wanted)] == wanted and names[i].decode() == launch["kernel"]
    ctypes.c_int.in_dll(noted, "status").value = 700
    with refused("cuLaunchKernelEx: out of luck"):
        kernel._launch([x.address, y.address], workspace, 5)
    with refused("multiple of 16"):
        kernel._launch([x.address + 4, y.address], workspace, 5)


def attributes_of(noted, launch):
    """{attribute: its first word} of a launch, as cuLaunchKernelEx got them."""
    config = ctypes.cast(ctypes.addressof(ctypes.c_char.in_dll(noted, "configs")) + 56 * launch, ctypes.POINTER(ctypes.c_uint64))
    count = ctypes.cast(ctypes.addressof(config.contents) + 48, ctypes.POINTER(ctypes.c_uint32))[0]
    words = ctypes.cast(config[5], ctypes.POINTER(ctypes.c_uint32))
    return {words[18 * i]: words[18 * i + 2] for i in range(count)}


def test_a_launch_begins_early(place):
    """Where the metadata says so; graphs of older drivers do not know how."""
    kernel, noted = cubin_of(place, place.folder / "long.te", "h200")
    launches = kernel.metadata["launches"]
    assert [launch.get("early") for launch in launches] == [True, True], launches
    kernel._launch([16, 32], 1 << 20, 5)
    assert [attributes_of(noted, i) for i in range(2)] == [{6: 1}, {6: 1}]
    ctypes.c_int.in_dll(noted, "version").value = 12020
    old = rollerc.Kernel(os.path.dirname(kernel.source))
    old._launch([16, 32], 1 << 20, 5)
    assert attributes_of(noted, 3) == {}


def bulk_copies_are_told(place, element_type, *arguments):
    kernel, noted = cubin_of(place, *arguments)
    launch, = kernel.metadata["launches"]
    entries = [arg for arg in launch["args"] if "map" in arg]
    assert len(entries) == 2, "another family comes first now: take a candidate of bulk"
    ctypes.c_int.in_dll(noted, "pointers").value = len(launch["args"]) - 2
    addresses = [16 * (1 + i) for i in range(4)]   # nobody reads there
    kernel._launch(addresses, 0, 5)
    for entry, found in zip(entries, ((ctypes.c_uint64 * 16) * 2).in_dll(noted, "maps")):
        fixed = [1, 0, 3, 2, 0]   # every element; no interleaving, lines of 128 bytes, as many at once from memory, zeros outside
        assert list(found) == [addresses[entry["map"]], element_type, 3, *entry["sizes"], *entry["strides"], *entry["box"], *fixed], list(found)
    config = (ctypes.c_uint32 * 7).in_dll(noted, "configs")
    assert list(config) == [*launch["grid"], *launch["block"], launch["shared"]]


def test_bulk_copies_are_told_what_a_tensor_is(place):
    integers_of_16_bits = 1   # to the driver
    bulk_copies_are_told(place, integers_of_16_bits, ROOT / "examples/matmul_bias_gelu.te", "h200")


def test_bulk_copies_are_told_that_they_round(place):
    rounded_floats, source = 11, place.folder / "along_k.te"
    source.write_text("input A[512, 512] : f32  input B[512, 512] : f32  C[i, j] = sum[k](A[i, k] * B[j, k])  output C : f32")
    bulk_copies_are_told(place, rounded_floats, source, "h200", "--math=tf32")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    args = parser.parse_args()
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(Place(pathlib.Path(folder), args.rollerc))
    print(f"{len(tests)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
