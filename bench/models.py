#!/usr/bin/env python3
"""A call of a whole model: its launches on one stream, captured, beside NAME_graph, whose branches may run side by side.

    python3 bench/models.py --rollerc build/rollerc --device h100 --arch sm_90a --json models.json resnet50.te bert.te

Needs a GPU, nvcc and PyTorch. Weights and inputs are random, prepared once. Both forms are CUDA graphs, which take turns; a time
is the median over replays, the GPU warm, everything where the last call left it. The results are not judged here: see
tests/gpu_models.py.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from timing import DTYPES, Captured, bytes_of, times_us   # noqa: E402

PREFIX = "//rollerc: "
ALIGNMENT = 256
CALLS = 4   # of a graph that is replayed
SEED = 7


class NodeGraph:
    """NAME_graph, timed as timing.Captured is."""

    warm, sample, samples = Captured.warm, Captured.sample, Captured.samples

    def __init__(self, runtime, executable, stream):
        self.graph, self.count = self, 1
        self.launch = lambda: runtime.cudaGraphLaunch(executable, ctypes.c_void_p(stream))
        self.replay()
        torch.cuda.synchronize()
        self.us = 100.0

    def replay(self):
        if self.launch():
            sys.exit("cudaGraphLaunch fails")


def build(options, folder, path):
    """(metadata, library) of a model."""
    name = re.sub(r"\W", "_", os.path.basename(path).rsplit(".", 1)[0])
    text, library = os.path.join(folder, name + ".cu"), os.path.join(folder, name + ".so")
    subprocess.run([options.rollerc, path, "--device", options.device, "-o", text, "--name", name, "-q",
                    "--json", os.path.join(folder, name + ".json")], check=True)
    subprocess.run(["nvcc", "-shared", "-Xcompiler", "-fPIC", f"-arch={options.arch}", "--split-compile=0", text, "-o", library],
                   check=True, stderr=subprocess.DEVNULL)
    with open(text) as file:
        metadata = json.loads(file.readline()[len(PREFIX):])
    with open(os.path.join(folder, name + ".json")) as file:
        metadata["predicted_us"] = json.load(file)["candidates"][0]["predicted"]["time_us"]
    return metadata, library


def draw(shape, dtype):
    """Small values, so that layers neither grow nor vanish; indices stay in tables' ranges."""
    if dtype.is_floating_point:
        return (torch.randn(shape, device="cuda") * 0.05).to(dtype)
    return torch.randint(0, 2, shape, device="cuda", dtype=dtype)


def draw_weights(metadata):
    """All weights as they lie in their file."""
    data = torch.zeros(metadata.get("weights", 0) + ALIGNMENT, dtype=torch.uint8, device="cuda")
    for argument in metadata["args"]:
        if argument["role"] == "weight":
            values = draw(argument["shape"], DTYPES[argument["dtype"]]).contiguous().flatten().view(torch.uint8)
            data[argument["offset"]:argument["offset"] + len(values)] = values
    return data


def call(function, *arguments):
    status = function(*[ctypes.c_void_p(word if isinstance(word, int) else word.data_ptr()) for word in arguments])
    if status:
        sys.exit(f"{function.__name__} returns {status}")


def measure(metadata, path):
    """{form: microseconds} of a call."""
    torch.manual_seed(SEED)
    library, name = ctypes.CDLL(path), metadata["name"]
    function = {word: getattr(library, f"{name}_{word}") for word in ("launch", "graph")}
    prepared = []
    workspace = torch.empty(metadata["workspace"] + ALIGNMENT, dtype=torch.uint8, device="cuda")
    if "weights" in metadata:
        prepared = [torch.empty(metadata["prepared"] + ALIGNMENT, dtype=torch.uint8, device="cuda")]
        call(getattr(library, f"{name}_prepare"), draw_weights(metadata), prepared[0], workspace, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    given = [draw(argument["shape"], DTYPES[argument["dtype"]]) for argument in metadata["args"] if argument["role"] == "input"]
    made = [torch.empty(bytes_of(argument), dtype=torch.uint8, device="cuda") for argument in metadata["args"]
            if argument["role"] == "output"]
    arguments = [*given, *prepared, *made, workspace]
    stream = Captured([lambda: call(function["launch"], *arguments, torch.cuda.current_stream().cuda_stream)] * CALLS)
    runtime, graph, executable = ctypes.CDLL("libcudart.so"), ctypes.c_void_p(), ctypes.c_void_p()
    status = function["graph"](ctypes.byref(graph), *[ctypes.c_void_p(argument.data_ptr()) for argument in arguments])
    status = status or runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    if status:
        sys.exit(f"{name}_graph ends with {status}")
    nodes = NodeGraph(runtime, executable, torch.cuda.current_stream().cuda_stream)
    times = times_us([stream, nodes])
    return {"stream_us": times[0], "graph_us": times[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.te")
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--arch", default="native", help="of nvcc")
    parser.add_argument("--json", help="results")
    options = parser.parse_args()
    results = {"gpu": torch.cuda.get_device_name(0), "models": []}
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(len(options.models)) as pool:
            built = list(pool.map(lambda path: build(options, folder, path), options.models))
        for metadata, library in built:
            entry = {"name": metadata["name"], "launches": len(metadata["launches"]),
                     "kernels": len({launch["kernel"] for launch in metadata["launches"]}), "workspace": metadata["workspace"],
                     "prepared": metadata.get("prepared", 0), "predicted_us": metadata["predicted_us"], **measure(metadata, library)}
            results["models"].append(entry)
            print(f"{entry['name']}: {entry['launches']} launches, {entry['kernels']} kernels, predicted {entry['predicted_us']:.0f} us; "
                  f"stream {entry['stream_us']:.0f} us, graph {entry['graph_us']:.0f} us", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
