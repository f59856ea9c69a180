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
import onnx_model   # noqa: E402
import rollerc   # noqa: E402

ROWS = "param R = 6  param N = 40\ninput x[R, N] : f16\ninput w[N] : f32\ny[i] = sum[j](x[i, j] * w[j])\np[i, j] = x[i, j] > 0\noutput y  output p\n"
SCALE = "input x[1000] : f32  y[i] = x[i] * 2  output y\n"
LONG = "param N = 1000000  input x[N] : f32  y[] = sum[j](x[j])  output y\n"   # two launches of two arguments each, a workspace

# What nvcc makes here: a launcher that notes its arguments.
NVCC = """#!{python}
import json, subprocess, sys
source, output = [word for word in sys.argv[1:] if word.endswith((".cu", ".so", ".cubin"))] if "--version" not in sys.argv else (None, None)
if not source:
    print("nvcc: a stand-in")
    sys.exit()
if output.endswith(".cubin"):
    open(output, "w").write("machine code")
    sys.exit()
meta = json.loads(open(source).readline().removeprefix("//rollerc: "))
weights = sum(entry["role"] == "weight" for entry in meta["args"])
count = len(meta["args"]) - weights + (weights > 0) + 2
c = "int prepares; void *of_prepare[4];\\nint %s_prepare(void *w, void *p, void *s, void *t)\\n{{ of_prepare[0] = w; of_prepare[1] = p; " \\
    "of_prepare[2] = s; of_prepare[3] = t; return prepares++, 0; }}\\n" % meta["name"]
c += "void *seen[%d]; int calls, status;\\nint %s_launch(%s)\\n{{ %s return calls++, status; }}\\n" % (
    count, meta["name"], ", ".join("void *a%d" % i for i in range(count)), " ".join("seen[%d] = a%d;" % (i, i) for i in range(count)))
sys.exit(subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", output], input=c, text=True).returncode)
"""

# What libcuda.so is here.
DRIVER = """
#include <stdlib.h>
#include <string.h>
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
struct config configs[8]; void *arguments[8][16]; const char *kernels[8]; int launches, loads, status, attributes_set[2];
int launched_on[8], loaded_on[9];
int version = 12030;
static char names[8][64]; static int named;
unsigned long long maps[2][16]; int pointers;   // descriptions of tensors stand behind so many pointers; 0: there are none
char contexts[4]; int stack[8], depth, retained;   // contexts of devices; the current one is on top, at first of device 0
int missing;                                       // this thread has none yet
char *far_start; int far_bytes;                    // memory of device 1, and of no device behind it
int copied[4]; void *of_copies[2];                 // from the host, on the device; waits; what is allocated
int cuMemAlloc_v2(void **memory, size_t bytes) { copied[3]++; return posix_memalign(memory, 256, bytes); }
int cuMemFree_v2(void *memory) { copied[3]--; free(memory); return 0; }
int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) { copied[0]++; memcpy(to, from, bytes); return 0; }
int cuMemcpyDtoDAsync_v2(void *to, void *from, size_t bytes, void *stream)
{ of_copies[0] = to; of_copies[1] = from; copied[1]++; memcpy(to, from, bytes); return stream != (void *)77; }
int cuStreamSynchronize(void *stream) { copied[2]++; return stream != (void *)77; }
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int number) { *device = number; return number < 2 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &contexts[device]; retained++; return 0; }
int cuCtxPushCurrent_v2(void *context) { stack[++depth] = (char *)context - contexts; missing = 0; return 0; }
int cuCtxPopCurrent_v2(void **context) { *context = &contexts[stack[depth--]]; return 0; }
int cuCtxGetDevice(int *device) { *device = stack[depth]; return missing ? 201 : 0; }
int cuCtxGetCurrent(void **context) { *context = &contexts[stack[depth]]; return 0; }
int cuPointerGetAttribute(int *device, int attribute, char *address)
{
    *device = far_start && address >= far_start && address < far_start + far_bytes;
    return attribute != 9 || (far_start && address >= far_start + far_bytes);
}
int cuModuleLoadData(void **module, const void *image) { *module = (void *)image; loads++; loaded_on[loads] = stack[depth]; return 0; }
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
int cuTensorMapEncodeIm2col(unsigned long long *map, int type, unsigned rank, void *start, const unsigned long long *sizes,
                            const unsigned long long *strides, const int *lower, const int *upper, unsigned channels,
                            unsigned pixels, const unsigned *steps, int interleave, int swizzle, int promotion, int fill)
{
    const long long said[16] = {(long long)start, type, rank, sizes[0], sizes[1], sizes[2], sizes[3], strides[1], strides[2], lower[1],
                                upper[1], channels, pixels, steps[0] * 1000 + steps[1] * 100 + steps[2] * 10 + steps[3],
                                interleave * 10 + swizzle, promotion * 10 + fill};
    memcpy(map, said, sizeof said);
    return (unsigned long long)map % 64 != 0;
}
int cuLaunchKernelEx(const struct config *config, void *function, void **places, void **extra)
{
    (void)extra;
    configs[launches] = *config; kernels[launches] = function; launched_on[launches] = stack[depth];
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


class TorchLike:
    """A tensor as the loader knows PyTorch's."""

    def __init__(self, dtype, shape, device=0):
        self.memory, self.shape, self.dtype = ctypes.create_string_buffer(1 << 12), shape, "torch." + dtype
        self.is_cuda, self.device, self.number = device is not None, "cpu" if device is None else f"cuda:{device}", device

    def data_ptr(self):
        return ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 16

    def get_device(self):
        return self.number

    def is_contiguous(self):
        return True


class OnlyDLPack:
    """An array that lies where DLPack's word says. What is no GPU's must not be asked for more."""

    def __init__(self, kind, number=0):
        self.place = kind, number

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, stream=None):
        raise RuntimeError("NumPy only supports stream=None")


class DLPack(OnlyDLPack):
    """1000 floats that lie on one device and may say that they lie on another."""

    def __init__(self, said, kind):
        super().__init__(*said)
        self.memory, self.shape = ctypes.create_string_buffer(1 << 12), (ctypes.c_int64 * 1)(1000)
        self.tensor = rollerc._Tensor(ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 16, kind, said[1], 1, 2, 32, 1,
                                      ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)), None, 0)

    def __dlpack__(self, stream=None):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@contextlib.contextmanager
def refused(*texts):
    try:
        yield
    except rollerc.Error as error:
        for text in texts:
            assert text in str(error), f"no '{text}' in: {error}"
    else:
        raise AssertionError(f"'{texts}' was not refused")


class Place:
    """A folder with the stand-ins, a cache, and expressions."""

    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        (folder / "bin").mkdir()
        (folder / "bin/nvcc").write_text(NVCC.format(python=sys.executable))
        (folder / "bin/nvcc").chmod(0o755)
        os.environ["CUDA_PATH"] = str(folder)
        (folder / "driver.c").write_text(DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", folder / "driver.c", "-o", folder / "driver.so"], check=True)
        os.environ["ROLLERC_LIBCUDA"] = str(folder / "driver.so")
        self.driver = ctypes.CDLL(os.environ["ROLLERC_LIBCUDA"])
        (folder / "rows.te").write_text(ROWS)
        (folder / "long.te").write_text(LONG)
        (folder / "scale.te").write_text(SCALE)

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


def test_inputs_may_be_named(place):
    kernel = place.load("rows.te")
    x, w, out = arrays()
    for inputs, named in (((), {"w": w, "x": x}), ((x,), {"w": w})):
        kernel(*inputs, **named, out=out, stream=77)
        seen = (ctypes.c_void_p * 6).in_dll(ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so")), "seen")
        assert list(seen)[:2] == [x.address, w.address]
    for inputs, named, what in (((), {"x": x}, "'w' is missing"), ((x,), {"x": x, "w": w}, "'x' is given twice"),
                                ((), {"x": x, "w": w, "v": w}, "'v' is no input")):
        with refused("takes the inputs x, w: " + what):
            kernel(*inputs, **named, out=out)


def test_a_model_brings_its_weights_and_its_symbols_are_params(place):
    weights = onnx_model.floats("w", [4], [1.0, 2.0, 3.0, 4.0])
    model = onnx_model.model([onnx_model.node("Mul", ["x", "w"], ["y"])], [onnx_model.value("x", ["batch", 4])],
                             [onnx_model.value("y", ["batch", 4])], [weights])
    (place.folder / "scaled.onnx").write_bytes(model)
    kernel = place.load("scaled.onnx", batch=3)
    kernel(x=Array("<f4", (3, 4)), out=Array("<f4", (3, 4)), stream=77)
    library = ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so"))
    assert ctypes.c_int.in_dll(library, "prepares").value == 1 and kernel.metadata["weights"] == 16


def of_weights(place, count):
    """x plus so many weights, of which three stand before it; each kernel reads at most 400."""
    lines = [f"weight w{i}[4] : f32" for i in range(count)]
    lines.insert(3, "input x[4] : f32")
    for first in range(0, count, 400):
        lines.append(f"y{first}[i] = x[i] + " + " + ".join(f"w{i}[i]" for i in range(first, min(first + 400, count))))
        lines.append(f"output y{first}")
    (place.folder / f"weights{count}.te").write_text("\n".join(lines))
    (place.folder / f"{count}.weights").write_bytes(bytes(range(16)) * (16 * count - 15))
    return place.load(f"weights{count}.te", weights=place.folder / f"{count}.weights")


def test_weights_are_prepared_once_and_stand_between_inputs_and_outputs(place):
    kernel = of_weights(place, 700)
    x, out = Array("<f4", (4,)), [Array("<f4", (4,)), Array("<f4", (4,))]
    kernel(x, out=out, stream=77)
    kernel(x, out=out, stream=77)
    library = ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so"))
    seen = list((ctypes.c_void_p * 6).in_dll(library, "seen"))
    weights, prepared, workspace, stream = (ctypes.c_void_p * 4).in_dll(library, "of_prepare")
    assert seen == [x.address, prepared, out[0].address, out[1].address, None, 77] and stream == 77 and workspace
    assert ctypes.c_int.in_dll(library, "prepares").value == 1 and weights % 256 == 0 and prepared % 256 == 0
    assert copied(place.driver) == [1, 0, 1, 1]   # the file goes up, is waited for and dropped; what was prepared stays
    assert [argument.name for argument in kernel.inputs] == ["x"]


def test_without_nvcc_the_driver_copies_and_launches_what_prepares(place):
    (place.folder / "scaled.te").write_text("input x[2, 8] : f32  weight w[3, 8] : f32  weight b[3] : f32\n"
                                            "s[c] = b[c] * b[c] + 1\n"
                                            "y[n, c] = sum[k](x[n, k] * w[c, k]) * s[c]\noutput y\n")
    (place.folder / "scaled.weights").write_bytes(bytes(range(256)) + bytes(12))
    kernel, noted = cubin_of(place, place.folder / "scaled.te", "h200", weights=place.folder / "scaled.weights")
    x, out = Array("<f4", (2, 8)), Array("<f4", (2, 3))
    for _ in range(2):
        kernel(x, out=out, stream=77)
    assert copied(noted) == [1, 1, 1, 1] and ctypes.c_int.in_dll(noted, "launches").value == 3
    prepared = (ctypes.c_void_p * 2).in_dll(noted, "of_copies")[0]
    first, call = list(((ctypes.c_void_p * 16) * 8).in_dll(noted, "arguments"))[:2]
    assert first[0] % 256 == 0 and first[1] == prepared + 256   # b of the file, s behind w
    assert call[0] == x.address and call[1] == prepared


def test_more_arguments_than_ctypes_takes_go_to_each_kernel(place):
    count = 1100
    lines = [f"input x{i}[4] : f32" for i in range(count)]
    for first in range(0, count, 400):
        lines.append(f"y{first}[i] = " + " + ".join(f"x{i}[i]" for i in range(first, min(first + 400, count))))
        lines.append(f"output y{first}")
    (place.folder / "many.te").write_text("\n".join(lines))
    kernel = place.load("many.te")
    folder = pathlib.Path(kernel.source).parent
    assert isinstance(kernel._launch, rollerc._Module) and (folder / "kernel.cubin").exists() and len(kernel.inputs) == count


def test_weights_that_do_not_fit_are_refused(place):
    (place.folder / "weighed.te").write_text("input x[4] : f32  weight w[4] : f32  y[i] = x[i] * w[i]  output y\n")
    (place.folder / "short.weights").write_bytes(bytes(12))
    with refused("has weights: give load() their file, weights="):
        place.load("weighed.te")
    with refused("short.weights has 12 bytes; the weights of weighed have 16"):
        place.load("weighed.te", weights=place.folder / "short.weights")
    with refused("rows has no weights"):
        place.load("rows.te", weights=place.folder / "short.weights")


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


def numpy_like():
    array = OnlyDLPack(1)
    array.__class__ = type("ndarray", (OnlyDLPack,), {"__module__": "numpy"})
    return array


def test_what_is_not_on_a_gpu_is_refused_before_it_is_asked(place):
    kernel = place.load("rows.te")
    x, w, out = arrays()
    copied = ": copy it to the GPU first"
    for array, text in ((OnlyDLPack(1), "OnlyDLPack in the memory of the CPU" + copied), (OnlyDLPack(3), "in the memory of the CPU" + copied),
                        (numpy_like(), "saw a numpy.ndarray in the memory of the CPU" + copied + ", like torch.from_numpy(x).cuda() or cupy.asarray(x)"),
                        (OnlyDLPack(10), "which is no array on a GPU"), (object(), "saw a object, which is no array on a GPU: wanted one of PyTorch"),
                        (TorchLike("float16", (6, 40), None), "saw one on cpu: call .cuda()")):
        with refused("input 0 ('x') is float16[6, 40]; saw", text):
            kernel(array, w, out=out)
        with refused("output 1 ('p')", text):
            kernel(x, w, out=[out[0], array])
        with refused(text):
            kernel(array, w)   # that there is nobody to make the outputs comes later
    ctypes.c_void_p.in_dll(place.driver, "far_start").value = x.address   # and none of it belongs to a GPU
    with refused("input 0 ('x')", "in the memory of the CPU" + copied):
        kernel(x, w, out=out)
    assert not calls_of(kernel), "it was launched"


def library_of(kernel):
    return ctypes.CDLL(str(pathlib.Path(kernel.source).parent / "kernel.so"))


def calls_of(kernel):
    return ctypes.c_int.in_dll(library_of(kernel), "calls").value


def number_in(driver, name):
    return ctypes.c_int.in_dll(driver, name).value


def test_the_device_of_the_arrays_is_the_current_one_around_a_launch(place):
    kernel = place.load("rows.te")
    tensors = [TorchLike("float16", (6, 40), 1), TorchLike("float32", (40,), 1)]
    outputs = [TorchLike("float32", (6,), 1), TorchLike("int32", (8,), 1)]
    seen, launch = [], kernel._launch

    def noting(*arguments):
        depth = number_in(place.driver, "depth")
        seen.append((depth, (ctypes.c_int * 8).in_dll(place.driver, "stack")[depth]))
        return launch(*arguments)
    kernel._launch = noting

    def call_on(number):
        for tensor in tensors + outputs:
            tensor.number = number
        kernel(*tensors, out=outputs)
    for number in (1, 1, 0):
        call_on(number)
    assert seen == [(1, 1), (1, 1), (0, 0)] and number_in(place.driver, "retained") == 1   # 0 was the current one already
    ctypes.c_int.in_dll(place.driver, "missing").value = 1   # as in a new thread
    call_on(0)
    assert seen[-1] == (1, 0) and number_in(place.driver, "depth") == 0
    ctypes.c_int.in_dll(library_of(kernel), "status").value = 9
    with refused("cudaError_t 9"):
        call_on(1)
    assert number_in(place.driver, "depth") == 0, "also after an error"
    with refused("cuDeviceGet: out of luck"):
        call_on(2)


def test_arrays_of_several_devices_are_refused(place):
    kernel = place.load("rows.te")
    tensors = [TorchLike("float16", (6, 40)), TorchLike("float32", (40,), 1)]
    outputs = [TorchLike("float32", (6,)), TorchLike("int32", (8,))]
    with refused("input 1 ('w') is float32[40]; saw one on cuda:1, but input 0 ('x') is on cuda:0: all arrays of a call must be on one device"):
        kernel(*tensors, out=outputs)
    tensors[1].number, outputs[1].number = 0, 1
    with refused("output 1 ('p')", "saw one on cuda:1"):
        kernel(*tensors, out=outputs)
    assert not calls_of(kernel), "it was launched"


def test_each_device_has_its_module(place):
    kernel, noted = cubin_of(place, place.folder / "scale.te", "a100")
    x, y = TorchLike("float32", (1000,), 1), TorchLike("float32", (1000,), 1)
    for number in (1, 0, 1, 0):
        x.number = y.number = number
        kernel(x, out=y)
    assert list((ctypes.c_int * 8).in_dll(noted, "launched_on"))[:4] == [1, 0, 1, 0]
    assert number_in(noted, "loads") == 2 and list((ctypes.c_int * 9).in_dll(noted, "loaded_on"))[1:3] == [1, 0]
    assert number_in(noted, "depth") == 0


def test_dlpack_says_where_an_array_lies(place):
    kernel, noted = cubin_of(place, place.folder / "scale.te", "a100")
    x, y = DLPack((2, 1), 2), DLPack((13, 1), 13)   # a GPU's memory, and managed memory
    kernel(x, out=y)
    assert (ctypes.c_int * 8).in_dll(noted, "launched_on")[0] == 1
    assert list(((ctypes.c_void_p * 16) * 8).in_dll(noted, "arguments")[0])[:2] == [x.tensor.data, y.tensor.data]
    with refused("an array is not on the GPU that its __dlpack_device__() names"):
        kernel(DLPack((2, 1), 1), out=y)
    assert number_in(noted, "launches") == 1


def test_the_driver_says_where_memory_is(place):
    kernel, noted = cubin_of(place, place.folder / "scale.te", "a100")
    x = Array("<f4", (1000,))
    y = Array("<f4", (1000,))
    y.__cuda_array_interface__["data"] = (x.address + 4096, False)
    ctypes.c_void_p.in_dll(noted, "far_start").value, ctypes.c_int.in_dll(noted, "far_bytes").value = x.address, 4097
    kernel(x, out=y, stream=5)
    assert (ctypes.c_int * 8).in_dll(noted, "launched_on")[0] == 1
    ctypes.c_int.in_dll(noted, "far_bytes").value = 4096   # where y begins belongs to no GPU
    with refused("output 0 ('y') is float32[1000]; saw a __main__.Array in the memory of the CPU"):
        kernel(x, out=y, stream=5)


def test_a_kernel_can_be_loaded_where_there_is_no_driver(place):
    os.environ["ROLLERC_LIBCUDA"] = str(place.folder / "missing.so")
    kernel = place.load("rows.te")
    x, w, out = arrays()
    with refused("there is no CUDA driver here"):
        kernel(x, w, out=out)


def test_params_may_be_called_like_arguments(place):
    names = ("name", "math", "verify", "options", "cache", "device", "expression", "rollerc", "defines")
    (place.folder / "names.te").write_text("".join(f"param {name} = 2\n" for name in names) + "param N = 3\n" +
                                           f"input x[N, {', '.join(names[:7])}] : f32\ny[i:N, a:rollerc, b:defines] = x[i, 0, 0, 0, 0, 0, 0, 0] + a + b\noutput y\n")
    values = {name: 3 + i for i, name in enumerate(names)}
    kernel = place.load("names.te", defines=values, N=20)
    assert kernel.inputs[0].shape == (20, *range(3, 10)) and kernel.outputs[0].shape == (20, 10, 11)
    assert place.load("names.te", defines={**values, "N": 20}).source == kernel.source
    with refused("param N is given twice"):
        place.load("names.te", defines={"N": 1}, N=2)


def test_errors_are_those_of_the_compiler(place):
    with refused("no param of that name; it has R, N"):
        place.load("rows.te", Q=3)
    with refused("unknown device 'a1000'"):
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


def cubin_of(place, expression, device, *options, weights=None):
    """A kernel without a C library, and what its stand-in for the driver notes."""
    folder = place.folder / "cubin"
    folder.mkdir()
    subprocess.run([place.binary, expression, "--device", device, "-q", "-o", folder / "kernel.cu", *options], check=True)
    (folder / "kernel.cubin").write_bytes(b"machine code")
    return rollerc.Kernel(str(folder), weights), place.driver


def copied(noted):
    """How often weights went up, were copied, and were waited for; and pieces of memory that are held."""
    return list((ctypes.c_int * 4).in_dll(noted, "copied"))


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


def test_bulk_copies_are_told_what_pixels_are(place):
    source = place.folder / "pixels.te"
    source.write_text("input x[8, 40, 60, 64] : f16\ninput w[64, 3, 5, 64] : f16\ny[n, h:20, v:20, f] = sum[r, s, c]"
                      "(pad(x[n, 2*h + r - 1, 3*v + s - 2, c], 0) * w[f, r, s, c])\noutput y : f16\n")
    kernel, noted = cubin_of(place, source, "h200", "--candidate", "1")
    launch, = kernel.metadata["launches"]
    entry, = [arg for arg in launch["args"] if "pixels" in arg]
    assert [entry[name] for name in ("sizes", "lower", "upper", "steps", "channels")] == [[64, 60, 40, 8], [-2, -1], [-4, -2], [3, 2], 64], entry
    ctypes.c_int.in_dll(noted, "pointers").value = len(launch["args"]) - 2
    addresses = [16 * (1 + i) for i in range(3)]   # nobody reads there
    kernel._launch(addresses, 0, 5)
    found = list(((ctypes.c_int64 * 16) * 2).in_dll(noted, "maps")[0])
    assert found == [16, 1, 4, 64, 60, 40, 8, 60 * 128, 40 * 60 * 128, -1, -2, 64, entry["pixels"], 1321, 3, 20], found


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
