#!/usr/bin/env python3
"""Small models on this GPU: weights prepared once, launches on a stream and as a CUDA graph, against what the CPU interpreter made.

    python3 tests/gpu_models.py FOLDER --make --rollerc build/rollerc                       # anywhere: programs, inputs, results
    python3 tests/gpu_models.py FOLDER --rollerc build/rollerc --device h100 --arch sm_90a   # needs nvcc and PyTorch

The first command needs python3-onnx and onnxruntime (see run_models.py), which a machine with a GPU seldom has: it writes a folder
for each model and precision. The second one prepares the weights, and poisons them, for launches need them no more; then it
launches on other inputs, on the inputs, and as a graph, three times each. Outputs must be as near to the interpreter's, which ONNX
Runtime's agree with, as run_models.py asks of those, and all of them the same bits. The evaluator's bounds are of no use here: over the
layers of a transformer they are infinite.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import pathlib
import subprocess
import sys

MODES = ("f32", "f16", "bf16")   # of run_models.py
BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i8": 1, "u8": 1}
PREFIX = "//rollerc: "
ROUNDS = 3
POISON = 0xFF


def make(options):
    import run_models
    for name, (how, _) in run_models.MODELS.items():
        for mode in MODES if how == run_models.WHOLE else ():
            folder = options.folder / f"{name}-{mode}"
            folder.mkdir(parents=True, exist_ok=True)
            work = run_models.Work(options, folder, name)
            work.take(mode)
            print(f"{folder.name}: {work.compare_whole(mode)}")
            (folder / "tolerance").write_text(repr(run_models.MODES[mode][1]))   # of the largest value
            (folder / "model.onnx").unlink()


def build(options, folder):
    """The shared library of a model and its line of metadata; or what a compiler said."""
    text, library = folder / "model.cu", folder / "model.so"
    for command in ([options.rollerc, folder / "model.te", "--device", options.device, "-o", text, "--name", "model", "-q"],
                    ["nvcc", "-shared", "-Xcompiler", "-fPIC", f"-arch={options.arch}", text, "-o", library, "-lcuda"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return done.stdout[-2000:]
    return json.loads(text.read_text().split("\n", 1)[0][len(PREFIX):])


def size(argument):
    return math.prod(argument["shape"]) * BYTES[argument["dtype"]]


class Model:
    """A library on the GPU, its weights prepared."""

    def __init__(self, folder, metadata):
        import torch
        self.torch, self.metadata = torch, metadata
        self.library = ctypes.CDLL(str((folder / "model.so").resolve()))
        arguments = metadata["args"]
        self.inputs = [argument for argument in arguments if argument["role"] == "input"]
        self.outputs = [argument for argument in arguments if argument["role"] == "output"]
        given, at = (folder / "in").read_bytes(), 0
        self.given = []
        for argument in self.inputs:
            self.given.append(self.on_gpu(given[at:at + size(argument)]))
            at += size(argument)
        self.made = [self.empty(size(argument)) for argument in self.outputs]
        self.workspace = self.empty(self.bytes_of("model_workspace"))
        self.stream = torch.cuda.Stream()
        self.prepared = self.prepare(folder) if "weights" in metadata else None

    def on_gpu(self, data):
        return self.torch.frombuffer(bytearray(data) + bytearray(-len(data) % 256), dtype=self.torch.uint8).cuda()

    def empty(self, count):
        return self.torch.full((count + 256,), POISON, dtype=self.torch.uint8, device="cuda")

    def bytes_of(self, name):
        function = getattr(self.library, name)
        function.restype = ctypes.c_size_t
        return function()

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*[ctypes.c_void_p(argument if isinstance(argument, int) else argument.data_ptr())
                                               for argument in arguments])
        if status:
            raise RuntimeError(f"{name} returns {status}")

    def prepare(self, folder):
        weights = self.on_gpu((folder / "weights").read_bytes())
        prepared = self.empty(self.bytes_of("model_prepared"))
        self.torch.cuda.synchronize()
        self.call("model_prepare", weights, prepared, self.workspace, self.stream.cuda_stream)
        self.stream.synchronize()
        weights.fill_(POISON)
        return prepared

    def arguments(self, given):
        return [*given, *([self.prepared] if self.prepared is not None else []), *self.made, self.workspace]

    def launch(self, given):
        self.call("model_launch", *self.arguments(given), self.stream.cuda_stream)

    def results(self, run):
        """The bytes of all outputs after `run`, which finds them and the workspace poisoned."""
        for tensor in (*self.made, self.workspace):
            tensor.fill_(POISON)
        self.torch.cuda.synchronize()
        run()
        self.torch.cuda.synchronize()
        return b"".join(bytes(tensor[:size(argument)].cpu().numpy()) for tensor, argument in zip(self.made, self.outputs))

    def graph(self):
        """A function that launches the program as a graph."""
        graph, executable, runtime = ctypes.c_void_p(), ctypes.c_void_p(), cuda_runtime()
        pointers = [ctypes.c_void_p(argument.data_ptr()) for argument in self.arguments(self.given)]
        for status in (self.library.model_graph(ctypes.byref(graph), *pointers),
                       runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))):
            if status:
                raise RuntimeError(f"the graph ends with {status}")
        return lambda: runtime.cudaGraphLaunch(executable, ctypes.c_void_p(self.stream.cuda_stream))


def cuda_runtime():
    import glob
    places = [*glob.glob("/usr/local/cuda/lib64/libcudart.so*"), "libcudart.so"]
    return ctypes.CDLL(places[0])


def error_of(model, made, folder):
    """None, or how far what was made is from what the interpreter made."""
    import numpy
    assert all(argument["dtype"] == "f32" for argument in model.outputs), "outputs keep the model's types"
    got = numpy.frombuffer(made, "f4").astype("f8")
    wanted = numpy.frombuffer((folder / "out").read_bytes(), "f4", count=got.size).astype("f8")
    error, most = abs(got - wanted).max() / abs(wanted).max(), float((folder / "tolerance").read_text())
    return None if error <= most else f"the largest error is {error:.2g} of the largest value, and {most:.2g} is allowed"


def check(folder, metadata):
    model = Model(folder, metadata)
    others = [model.torch.roll(tensor, 64) for tensor in model.given]   # other inputs, whose results must leave no trace
    runs = {"other inputs": lambda: model.launch(others), "stream": lambda: model.launch(model.given)}
    if hasattr(model.library, "model_graph"):
        runs["graph"] = model.graph()
    wanted = None
    for name, run in [(name, run) for _ in range(ROUNDS) for name, run in runs.items()]:
        made = model.results(run)
        if name == "other inputs":
            continue
        if wanted is None:
            wanted, reason = made, error_of(model, made, folder)
            if reason:
                return reason
        if made != wanted:
            return f"the {name} gives other bits than the first launch"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--rollerc", required=True, help="with --make, given_programs lies in tests/ beside it")
    parser.add_argument("--device")
    parser.add_argument("--arch", default="native", help="of nvcc")
    options = parser.parse_args()
    if options.make:
        return make(options)
    folders = sorted(path.parent for path in options.folder.glob("*/model.te"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(lambda folder: build(options, folder), folders))
    failed = 0
    for folder, metadata in zip(folders, built):
        reason = metadata if isinstance(metadata, str) else check(folder, metadata)
        failed += reason is not None
        print(f"{'FAIL' if reason else 'ok  '} {folder.name}{': ' + reason if reason else ''}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
