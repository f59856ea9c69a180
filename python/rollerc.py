"""Kernels of rollerc on arrays of PyTorch, CuPy, and whatever speaks DLPack or __cuda_array_interface__.

    import rollerc
    softmax = rollerc.load("softmax.te", device="h200", N=4096)     # compiled once, then kept by content
    y = softmax(x)                                                  # on the framework's current stream
    model = rollerc.load("model.te", device="h200", weights="model.weights")   # its weights are prepared once for each GPU

One file, without dependencies. Inputs are contiguous arrays on one GPU; outputs and workspace are made by the framework of the
first input, or given: softmax(x, out=y). Bits (b1) are int32 arrays of 32 elements each. Kernels are compiled with nvcc, or, where
there is none, by rollerc with NVRTC; both go by a C call or a driver call that a CUDA graph may capture.
"""
import contextlib
import ctypes
import functools
import hashlib
import json
import math
import os
import shutil
import subprocess
import tempfile

__all__ = ["load", "Kernel", "Error"]

PREFIX = "//rollerc: "   # of the line of metadata in an emitted file
MOST_ARGUMENTS = 1024   # of a function that ctypes calls
# Element type: its name in PyTorch and NumPy, bytes of what an array of it holds, (code, bits) in DLPack, in the array interface.
TYPES = {
    "f64": ("float64", 8, (2, 64), "<f8"),
    "f32": ("float32", 4, (2, 32), "<f4"),
    "f16": ("float16", 2, (2, 16), "<f2"),
    "bf16": ("bfloat16", 2, (4, 16), None),   # the array interface has no such type
    "i64": ("int64", 8, (0, 64), "<i8"),
    "i32": ("int32", 4, (0, 32), "<i4"),
    "i8": ("int8", 1, (0, 8), "|i1"),
    "u8": ("uint8", 1, (1, 8), "|u1"),
    "b1": ("int32", 4, (0, 32), "<i4"),
}


class Error(Exception):
    """What rollerc, a compiler, or the GPU said; or an array that does not fit."""


# ---- arrays: (address, shape, dense?, DLPack type or array-interface type or name)

class _Tensor(ctypes.Structure):   # DLTensor, dlpack.h
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _is_dense(shape, strides):
    """Strides in elements; a dimension of one may have any."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _from_interface(array):
    interface = array.__cuda_array_interface__
    shape, strides = interface["shape"], interface.get("strides")
    size = int(interface["typestr"][2:])
    dense = strides is None or _is_dense(shape, [stride // size for stride in strides])
    return interface["data"][0], shape, dense, interface["typestr"]


CPU, PINNED = 1, 3        # DLDeviceType, dlpack.h
ON_A_GPU = 2, 13          # a GPU's memory, managed memory


def _from_dlpack(array, stream):
    capsule = array.__dlpack__(stream=stream or 1)   # 1: the default stream
    tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if tensor.device_type not in ON_A_GPU:
        raise Error("an array is not on the GPU that its __dlpack_device__() names")
    shape = tuple(tensor.shape[:tensor.ndim])
    dense = not tensor.strides or _is_dense(shape, tensor.strides[:tensor.ndim])
    return tensor.data + tensor.byte_offset, shape, dense, (tensor.code, tensor.bits)


def _place(array, driver):
    """DLPack's word for where an array lies, and the number of the device; None: it is no array that can be launched on."""
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()
    if not hasattr(array, "__cuda_array_interface__"):
        return None, None
    number = driver.device_of(array.__cuda_array_interface__["data"][0])   # which the interface does not say
    return (CPU, 0) if number is None else (ON_A_GPU[0], number)


class _Argument:
    """An input or output: what must be true of the array, and what it is in each framework's words."""

    def __init__(self, number, entry):
        self.name, self.role, self.dtype, self.number = entry["name"], entry["role"], entry["dtype"], number
        self.shape = tuple(entry["shape"])
        if self.dtype == "b1":   # 32 elements a word, along the flattened tensor
            self.shape = (-(-math.prod(self.shape) // 32),)
        self.type_name, self.size, dlpack, interface = TYPES[self.dtype]
        self.types, self.torch_type = (dlpack, interface), None

    def describe(self):
        bits = " of 32 bits each, for b1" if self.dtype == "b1" else ""
        return f"{self.role} {self.number} ('{self.name}') is {self.type_name}{list(self.shape)}{bits}"

    def refuse(self, what):
        raise Error(f"{self.describe()}; {what}")

    def device(self, array, driver):
        """The number of the GPU that the array lies on. Nothing is asked of one that lies elsewhere."""
        if hasattr(array, "data_ptr"):   # PyTorch; the quick way
            if not array.is_cuda:
                self.refuse(f"saw one on {array.device}: call .cuda()")
            return array.get_device()
        place, number = _place(array, driver)
        if place in ON_A_GPU:
            return number
        kind = f"{type(array).__module__}.{type(array).__name__}".removeprefix("builtins.")
        copied = ", like torch.from_numpy(x).cuda() or cupy.asarray(x)" if kind.startswith("numpy.") else ""
        if place in (CPU, PINNED):
            self.refuse(f"saw a {kind} in the memory of the CPU: copy it to the GPU first{copied}")
        self.refuse(f"saw a {kind}, which is no array on a GPU: wanted one of PyTorch or CuPy, or with __cuda_array_interface__ or "
                    f"__dlpack__ on a CUDA device{copied}")

    def is_torch_type(self, dtype):
        """The one that was right before is right again: its name takes longer to make than all else here."""
        if dtype is not self.torch_type and str(dtype) == "torch." + self.type_name:
            self.torch_type = dtype
        return dtype is self.torch_type

    def address(self, array, stream):
        """Of the array, which lies on a GPU, when it fits."""
        if hasattr(array, "data_ptr"):
            if array.shape != self.shape or not self.is_torch_type(array.dtype):
                self.refuse(f"saw {str(array.dtype).removeprefix('torch.')}{list(array.shape)}")
            if not array.is_contiguous():
                self.refuse("saw one that is not contiguous: call .contiguous()")
            return array.data_ptr()
        if hasattr(array, "__cuda_array_interface__"):
            address, shape, dense, dtype = _from_interface(array)
        else:
            address, shape, dense, dtype = _from_dlpack(array, stream)
        if tuple(shape) != self.shape or dtype not in self.types:
            self.refuse(f"saw {dtype}{list(shape)}")
        if not dense:
            self.refuse("saw one that is not contiguous")
        return address


# ---- frameworks: how they make arrays, and their current stream

class _Torch:
    def __init__(self, like):
        import torch
        self.torch, self.device = torch, like.device
        raw_stream = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)   # the same in a tenth of the time
        self.stream = raw_stream(like.get_device()) if raw_stream else torch.cuda.current_stream(like.device).cuda_stream

    def empty(self, argument):
        return self.torch.empty(argument.shape, dtype=getattr(self.torch, argument.type_name), device=self.device)

    def bytes(self, count):
        array = self.torch.empty(count + 256, dtype=self.torch.uint8, device=self.device)
        return array, array.data_ptr()


class _CuPy:
    def __init__(self, like):
        import cupy
        self.cupy = cupy
        self.stream = cupy.cuda.get_current_stream().ptr

    def empty(self, argument):
        if argument.dtype == "bf16":
            argument.refuse("CuPy has no such type: give the output, like out=")
        return self.cupy.empty(argument.shape, dtype=argument.type_name)

    def bytes(self, count):
        array = self.cupy.empty(count + 256, dtype="uint8")
        return array, array.data.ptr


_FRAMEWORKS = {"torch": _Torch, "cupy": _CuPy}


# ---- the driver

MEMORY_DEVICE = 9   # CUpointer_attribute


class _Driver:
    """libcuda.so: whose memory an address is, and which device is the current one. Devices have the numbers of the runtime."""

    def __init__(self, name):
        try:
            self.library = ctypes.CDLL(name)
        except OSError as error:
            raise Error(f"there is no CUDA driver here: {error}") from None
        self.contexts = {}   # of devices: those of the runtime, and so of every framework

    def check(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise Error(f"{name}: {(text.value or b'unknown error').decode()}")

    def device_of(self, address):
        """None: it is no memory of a GPU."""
        number = ctypes.c_int()
        status = self.library.cuPointerGetAttribute(ctypes.byref(number), MEMORY_DEVICE, ctypes.c_uint64(address))
        return None if status else number.value

    def current_device(self):
        """None: this thread has none yet."""
        number = ctypes.c_int()
        return None if self.library.cuCtxGetDevice(ctypes.byref(number)) else number.value

    def context(self, device):
        if device not in self.contexts:
            number, context = ctypes.c_int(), ctypes.c_void_p()
            self.check("cuInit", 0)
            self.check("cuDeviceGet", ctypes.byref(number), device)
            self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
            self.contexts[device] = context
        return self.contexts[device]

    @contextlib.contextmanager
    def on(self, device):
        """What is done inside is done with this device as the current one; afterwards that is again what it was."""
        self.check("cuCtxPushCurrent_v2", self.context(device))
        try:
            yield
        finally:
            self.check("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@functools.cache
def _driver_named(name):
    return _Driver(name)


def _driver():
    """Only a call needs it: kernels can be compiled where there is no GPU."""
    return _driver_named(os.environ.get("ROLLERC_LIBCUDA", "libcuda.so.1"))


# ---- the two ways to launch

class _Library:
    """NAME_launch() and NAME_prepare() of a shared library."""

    def __init__(self, path, metadata):
        library, name, self.has_weights = ctypes.CDLL(path), metadata["name"], "prepare" in metadata
        roles = [entry["role"] for entry in metadata["args"]]
        self.inputs, others = roles.count("input"), roles.count("output") + self.has_weights + 2
        self.launch = self.function(library, name + "_launch", self.inputs + others)
        self.prepare_all = self.function(library, name + "_prepare", 4) if self.has_weights else None

    @staticmethod
    def function(library, name, count):
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_void_p] * count, ctypes.c_int
        return function

    def __call__(self, addresses, workspace, stream, prepared=0):
        if self.has_weights:   # it stands between inputs and outputs
            addresses = [*addresses[:self.inputs], prepared, *addresses[self.inputs:]]
        status = self.launch(*addresses, workspace, stream)
        if status:
            raise Error(f"the launch failed with cudaError_t {status}")

    def prepare(self, weights, prepared, workspace, stream):
        status = self.prepare_all(weights, prepared, workspace, stream)
        if status:
            raise Error(f"preparing the weights failed with cudaError_t {status}")


class _LaunchAttribute(ctypes.Structure):   # CUlaunchAttribute, cuda.h
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _LaunchConfig(ctypes.Structure):      # CUlaunchConfig
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(_LaunchAttribute)), ("count", ctypes.c_uint)]


CLUSTER_DIMENSION, COOPERATIVE, BEGINS_EARLY = 4, 2, 6      # CUlaunchAttributeID
GRAPHS_BEGIN_EARLY = 12030                                  # the first driver whose graphs have the last of them
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14            # CUfunction_attribute
PORTABLE_CLUSTER, STATIC_SHARED = 8, 48 * 1024              # past these a kernel must be told that it may


def _place_beside(entry, beside):
    """Of {"prepared": offset}, in what lies beside the arguments."""
    (name, offset), = entry.items()
    return beside[name] + offset


class _Module:
    """The launches of a cubin, by the driver, as the metadata describes them. A context, and so each device, loads it when it
    needs it first."""

    def __init__(self, path, metadata):
        with open(path, "rb") as file:
            self.cubin = file.read()
        self.metadata, self.loaded = metadata, {}
        given = [i for i, entry in enumerate(metadata["args"]) if entry["role"] != "weight"]
        self.order = {position: i for i, position in enumerate(given)}   # of arguments among those that calls are given

    @functools.cached_property
    def check(self):
        return _driver().check

    @functools.cached_property
    def version(self):
        version = ctypes.c_int()
        self.check("cuDriverGetVersion", ctypes.byref(version))
        return version.value

    def launches(self, key):
        """(function, configuration, arguments) of each, of a call or of "prepare", in the current context."""
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.check("cuCtxGetCurrent", ctypes.byref(context))
        if context.value not in self.loaded:
            self.check("cuModuleLoadData", ctypes.byref(module), self.cubin)
            self.loaded[context.value] = {
                key: [(self.function(module, launch), self.config(launch), launch["args"])
                      for launch in self.metadata.get(key, []) if "kernel" in launch] for key in ("prepare", "launches")}
        return self.loaded[context.value][key]

    def function(self, module, launch):
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), module, launch["kernel"].encode())
        if launch["shared"] > STATIC_SHARED:
            self.check("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, launch["shared"])
        if math.prod(launch.get("cluster", [1])) > PORTABLE_CLUSTER:
            self.check("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER, 1)
        return function

    def config(self, launch):
        attributes = []
        if "cluster" in launch:
            attributes.append(_LaunchAttribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint32 * 16)(*launch["cluster"])))
        if launch["cooperative"]:
            attributes.append(_LaunchAttribute(COOPERATIVE, 0, (ctypes.c_uint32 * 16)(1)))
        if "early" in launch and self.version >= GRAPHS_BEGIN_EARLY:
            attributes.append(_LaunchAttribute(BEGINS_EARLY, 0, (ctypes.c_uint32 * 16)(1)))
        return _LaunchConfig(tuple(launch["grid"]), tuple(launch["block"]), launch["shared"], None,
                             (_LaunchAttribute * max(len(attributes), 1))(*attributes), len(attributes))

    def tensor_map(self, address, entry):
        """Where 128 bytes lie at a multiple of 64 that describe a tensor to bulk copies, and what keeps them."""
        held = ctypes.create_string_buffer(192)
        at = ctypes.addressof(held) + -ctypes.addressof(held) % 64
        def array(kind, values):
            return (kind * len(values))(*values)

        if "pixels" in entry:
            encode = "cuTensorMapEncodeIm2col"
            what = [array(ctypes.c_int, entry["lower"]), array(ctypes.c_int, entry["upper"]), entry["channels"], entry["pixels"],
                    array(ctypes.c_uint32, [1, *entry["steps"], 1])]
        else:
            encode = "cuTensorMapEncodeTiled"
            what = [array(ctypes.c_uint32, entry["box"]), array(ctypes.c_uint32, [1] * len(entry["box"]))]
        self.check(encode, ctypes.c_void_p(at), 11 if "tf32" in entry else {8: 0, 16: 1, 32: 2}[entry["bits"]], len(entry["sizes"]),
                   ctypes.c_void_p(address + entry.get("offset", 0)), array(ctypes.c_uint64, entry["sizes"]), array(ctypes.c_uint64, entry["strides"]), *what,
                   0, 3, 2, 0)   # lines of 128 bytes, as many at once from memory
        return at, held

    def __call__(self, addresses, workspace, stream, prepared=0):
        if any(address % 16 for address in addresses):
            raise Error("a tensor's address is no multiple of 16 bytes")
        self.start("launches", addresses, {"workspace": workspace, "prepared": prepared}, stream)

    def prepare(self, weights, prepared, workspace, stream):
        beside = {"workspace": workspace, "prepared": prepared, "weights": weights}
        for entry in self.metadata["prepare"]:
            if "copy" in entry:
                self.check("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(_place_beside(entry["to"], beside)),
                           ctypes.c_uint64(_place_beside(entry["from"], beside)), ctypes.c_size_t(entry["copy"]), ctypes.c_void_p(stream))
        self.start("prepare", [], beside, stream)

    def start(self, key, addresses, beside, stream):
        for function, config, args in self.launches(key):
            config.stream = stream
            values = [addresses[self.order[arg["arg"]]] + arg.get("offset", 0) if "arg" in arg else _place_beside(arg, beside)
                      for arg in args if "map" not in arg]
            maps = [self.tensor_map(values[arg["map"]], arg) for arg in args if "map" in arg]
            cells = (ctypes.c_void_p * len(values))(*values)
            base = ctypes.addressof(cells)
            parameters = [base + i * ctypes.sizeof(ctypes.c_void_p) for i in range(len(values))] + [at for at, _ in maps]
            places = (ctypes.c_void_p * len(parameters))(*parameters)
            self.check("cuLaunchKernelEx", ctypes.byref(config), function, places, None)


# ---- weights

class _Memory:
    """Memory of the current device, aligned to 256, that no framework knows; it is given back with the object."""

    def __init__(self, driver, count):
        self.driver, address = driver, ctypes.c_uint64()
        driver.check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
        self.address = address.value

    def __del__(self):
        with contextlib.suppress(Exception):   # the process may end
            self.driver.library.cuMemFree_v2(ctypes.c_uint64(self.address))


class _Weights:
    """The file of a kernel's weights, and what was prepared of it for each device."""

    def __init__(self, kernel, path):
        self.kernel, self.path, self.prepared = kernel, os.fspath(path), {}
        size, wanted = os.path.getsize(self.path), kernel.metadata["weights"]
        if size != wanted:
            raise Error(f"{self.path} has {size} bytes; the weights of {kernel.name} have {wanted}")

    def on(self, device, driver, stream):
        """The address of what is prepared for the current device. The first call makes it, and waits until it is there."""
        if device not in self.prepared:
            self.prepared[device] = self.prepare(driver, stream)
        return self.prepared[device].address

    def prepare(self, driver, stream):
        with open(self.path, "rb") as file:
            content = file.read()
        weights, prepared = _Memory(driver, len(content)), _Memory(driver, self.kernel.metadata["prepared"])
        workspace = _Memory(driver, self.kernel.workspace)
        driver.check("cuMemcpyHtoD_v2", ctypes.c_uint64(weights.address), content, ctypes.c_size_t(len(content)))
        self.kernel._launch.prepare(weights.address, prepared.address, workspace.address, stream)
        driver.check("cuStreamSynchronize", ctypes.c_void_p(stream))   # other streams may launch, too, and `weights` goes
        return prepared


# ---- kernels

class Kernel:
    """A compiled expression. `metadata` is what the emitted file's first line says, `source` that file's path; `weights` the file of
    its weights."""

    def __init__(self, folder, weights=None):
        self.source = os.path.join(folder, "kernel.cu")
        with open(self.source) as file:
            self.metadata = json.loads(file.readline()[len(PREFIX):])
        self.name, self.workspace = self.metadata["name"], self.metadata["workspace"]
        entries = self.metadata["args"]
        self.inputs = [_Argument(i, entry) for i, entry in enumerate(entry for entry in entries if entry["role"] == "input")]
        self.outputs = [_Argument(i, entry) for i, entry in enumerate(entry for entry in entries if entry["role"] == "output")]
        self.arguments = self.inputs + self.outputs
        beside = os.path.join(folder, "kernel.weights")   # a model's
        if weights is None and os.path.exists(beside):
            weights = beside
        self.has_weights = "prepare" in self.metadata
        if self.has_weights and weights is None:
            raise Error(f"{self.name} has weights: give load() their file, weights=")
        if weights is not None and not self.has_weights:
            raise Error(f"{self.name} has no weights")
        self._weights = _Weights(self, weights) if self.has_weights else None
        library, cubin = os.path.join(folder, "kernel.so"), os.path.join(folder, "kernel.cubin")
        self._launch = _Library(library, self.metadata) if os.path.exists(library) else _Module(cubin, self.metadata)

    def __call__(self, *inputs, out=None, stream=None, **named):
        """The output, or a tuple of them if there are several. Inputs stand in their order, or have their names. `out`: the array or
        arrays to write; `stream`: an address."""
        if named:
            inputs = self._in_order(inputs, named)
        if len(inputs) != len(self.inputs):
            names = ", ".join(argument.name for argument in self.inputs)
            raise Error(f"{self.name} takes {len(self.inputs)} inputs ({names}), saw {len(inputs)}")
        if out is not None:
            out = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(out) != len(self.outputs):
                raise Error(f"{self.name} has {len(self.outputs)} outputs, saw {len(out)} in out=")
        arrays = [*inputs, *(out or [])]
        device = self._device(arrays)
        if self._driver.current_device() == device:   # as nearly always: a context manager would take a microsecond
            return self._run(device, arrays, inputs, out, stream)
        with self._driver.on(device):
            return self._run(device, arrays, inputs, out, stream)

    def _in_order(self, inputs, named):
        """Those without a name are the first ones."""
        rest = [argument.name for argument in self.inputs[len(inputs):]]
        wrong = [name for name in named if name not in rest] + [name for name in rest if name not in named]
        if wrong:
            known = ", ".join(argument.name for argument in self.inputs)
            what = "is given twice" if wrong[0] in named and wrong[0] in known.split(", ") else "is no input" if wrong[0] in named else "is missing"
            raise Error(f"{self.name} takes the inputs {known}: '{wrong[0]}' {what}")
        return (*inputs, *(named[name] for name in rest))

    def _run(self, device, arrays, inputs, out, stream):
        """On that device, which is the current one."""
        framework = self._framework(arrays)
        if out is None:
            out = [framework.empty(argument) for argument in self.outputs]
        if stream is None:
            stream = framework.stream if framework else 0
        addresses = [argument.address(array, stream) for argument, array in zip(self.arguments, [*inputs, *out])]
        workspace, held = 0, None
        if self.workspace:
            if not framework:
                raise Error(f"{self.name} needs {self.workspace} bytes of workspace: give arrays of PyTorch or CuPy")
            held, workspace = framework.bytes(self.workspace)
            workspace += -workspace % 256
        prepared = self._weights.on(device, self._driver, stream) if self.has_weights else 0
        self._launch(addresses, workspace, stream, prepared)
        del held   # frameworks give memory back in the order of the stream
        return out[0] if len(out) == 1 else tuple(out)

    @functools.cached_property
    def _driver(self):
        return _driver()

    def _device(self, arrays):
        """The number of the one GPU that they all lie on."""
        first = None
        for argument, array in zip(self.arguments, arrays):
            number = argument.device(array, self._driver)
            if first is None:
                first, device = argument, number
            elif number != device:
                argument.refuse(f"saw one on cuda:{number}, but {first.role} {first.number} ('{first.name}') is on cuda:{device}: "
                                "all arrays of a call must be on one device")
        if first is None:
            raise Error(f"{self.name} has no input that says on which device: give its outputs, like out=")
        return device

    def _framework(self, arrays):
        for array in arrays:
            make = _FRAMEWORKS.get(type(array).__module__.split(".")[0])
            if make:
                return make(array)
        if len(arrays) == len(self.inputs):
            for argument, array in zip(self.inputs, arrays):
                argument.address(array, 0)   # what is wrong with an array is said first
            raise Error(f"{self.name}: only PyTorch and CuPy make its outputs by themselves; give them, like out=")
        return None


# ---- compiling

def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Error(f"{os.path.basename(command[0])} ended with status {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def _nvcc():
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root and os.access(os.path.join(root, "bin", "nvcc"), os.X_OK):
            return os.path.join(root, "bin", "nvcc")
    return shutil.which("nvcc")


def _argument_count(kernel):
    with open(kernel) as file:
        return sum(entry["role"] != "weight" for entry in json.loads(file.readline()[len(PREFIX):])["args"]) + 1


def _compile(folder, command, compiler, arch):
    """kernel.cu, and kernel.so or kernel.cubin: ctypes calls no function of more arguments, which then go to each kernel."""
    kernel = os.path.join(folder, "kernel.cu")
    _run([*command, "-o", kernel] if compiler else [*command, "-o", kernel, "--emit", "cubin=" + os.path.join(folder, "kernel.cubin")])
    if compiler and _argument_count(kernel) + 2 > MOST_ARGUMENTS:
        _run([compiler, "-O3", f"-arch={arch}", "-cubin", kernel, "-o", os.path.join(folder, "kernel.cubin")])
    elif compiler:
        target = arch.replace("sm_", "compute_")
        _run([compiler, "-O3", f"-gencode=arch={target},code={arch}", "-shared", "-Xcompiler", "-fPIC", kernel, "-o",
              os.path.join(folder, "kernel.so")])


def _params(defines, params):
    twice = sorted(set(defines) & set(params))
    if twice:
        raise Error(f"param {twice[0]} is given twice: in defines= and as {twice[0]}=")
    return {**defines, **params}


def load(expression, device, *, defines=None, name=None, math=None, verify=False, options=(), weights=None, rollerc=None, cache=None,
         **params):
    """The kernel of a .te file for a device (a built-in name or a .yaml file), its params by name: load("softmax.te", "h200", N=4096);
    or a model (.onnx), its symbolic dimensions by name: load("bert.onnx", "h200", batch=8, options=["--precision", "f16"]).

    `weights` is the file of its weights, as `rollerc import` writes it; of a model (.onnx) it is made.

    `defines` has params, too, also those that are called like an argument of this function: defines={"name": 4096}. `math`, `verify`
    and further `options` go to rollerc. Compiled kernels are kept below `cache` (default: $ROLLERC_CACHE, else ~/.cache/rollerc), in
    folders named by all that they are made of; several processes may share it.
    """
    rollerc = rollerc or os.environ.get("ROLLERC") or shutil.which("rollerc")
    if not rollerc:
        raise Error("rollerc is not on the PATH; name it by rollerc= or $ROLLERC")
    expression, device = os.fspath(expression), os.fspath(device)
    command = [rollerc, expression, "--device", device, "-q"] + ["--name", name] * bool(name)
    define = "--bind={}={}" if expression.endswith(".onnx") else "-D{}={}"
    command += [define.format(key, value) for key, value in sorted(_params(defines or {}, params).items())]
    command += [f"--math={math}"] * bool(math) + ["--verify"] * verify + list(options)
    compiler, arch = _nvcc(), _run([rollerc, "--print-arch", device]).strip()
    content = hashlib.sha256(repr(command[2:]).encode())
    for path in [expression, rollerc] + [device] * os.path.isfile(device):
        with open(path, "rb") as file:
            content.update(hashlib.sha256(file.read()).digest())
    content.update((_run([compiler, "--version"]) if compiler else "nvrtc").encode())
    cache = cache or os.environ.get("ROLLERC_CACHE") or os.path.expanduser("~/.cache/rollerc")
    folder = os.path.join(cache, content.hexdigest())
    if not os.path.isdir(folder):
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            _compile(made, command, compiler, arch)
            with contextlib.suppress(OSError):   # another process was first
                os.rename(made, folder)
            os.makedirs(made, exist_ok=True)     # what TemporaryDirectory removes
    return Kernel(folder, weights)
