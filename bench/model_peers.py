#!/usr/bin/env python3
"""Whole networks of export_models.py: proven against PyTorch in float64, and timed beside PyTorch and torch.compile.

    python3 bench/model_peers.py --draw FOLDER …                                         # anywhere: weights.bin of each
    python3 bench/model_peers.py --rollerc build/rollerc --device h100 --arch sm_90a --json peers.json FOLDER …

The second command needs a GPU, nvcc and PyTorch. The networks' weights are drawn from a seed, and rollerc imports the graphs with
them; where FOLDER has f32.so and f16.so, made elsewhere of the same graphs, nothing is compiled. Each network has a process. They
prepare side by side, for `--prepare` seconds at most; then one after the other has the GPU for itself. A call is a CUDA graph, of PyTorch
too, whose maps lie channels-last. Rivals take turns; a time is the median over replays, the GPU warm, everything where the last call
left it. `--kernels` adds what each kernel of a call on a stream takes, of all rivals.
"""
import argparse
import concurrent.futures
import ctypes
import json
import multiprocessing
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

TYPES = {"f32": "float32", "f16": "float16"}
ALLOWED = {"f32": 1e-4, "f16": 0.02}   # of the largest value, where PyTorch's own error is no larger
TIMES_PYTORCH = 3                      # its own error in the same type, which ours may be
PEERS = ("eager", "compile")
PROFILED = 5                           # calls


# ---- weights

def draw(entry):
    values = numpy.random.default_rng(zlib.crc32(entry["name"].encode())).standard_normal(entry["shape"], "f4")
    values = values * numpy.float32(entry["deviation"]) + numpy.float32(entry["mean"])
    return numpy.abs(values) if entry["positive"] else values


def weights_of(told):
    """{name: array} of all that weights.json tells of, in its order."""
    made = {}
    for entry in told:
        if "values" in entry:
            made[entry["name"]] = numpy.array(entry["values"], "i8").reshape(entry["shape"])
        elif "transposed" in entry and made[entry["transposed"]].ndim == 2:
            made[entry["name"]] = made[entry["transposed"]].T
        elif "transposed" in entry or "repeated" in entry:
            made[entry["name"]] = numpy.broadcast_to(made[entry.get("transposed") or entry["repeated"]], entry["shape"])
        else:
            made[entry["name"]] = draw(entry)
    return made


def write_weights(folder):
    """The file beside the graph; gives the arrays that the module takes."""
    told = json.loads((folder / "weights.json").read_text())
    made = weights_of(told)
    with open(folder / "weights.bin", "wb") as file:
        for entry in told:
            if "offset" in entry:
                file.seek(entry["offset"])
                file.write(numpy.ascontiguousarray(made[entry["name"]], "f4").tobytes())
    return [made[entry["name"]] for entry in told if "transposed" not in entry and "repeated" not in entry]


# ---- ours

def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}")


def build(options, folder, precision):
    """The library of a network, and where its weights lie."""
    stem = folder / precision
    text, library, weights = (stem.with_suffix(suffix) for suffix in (".te", ".so", ".weights"))
    run(options.rollerc, "import", folder / "graph.onnx", "--precision", precision, "--io-precision", precision, "-o", text,
        "--weights", weights, "-q")
    if not library.exists():
        emit(options, stem)
        run("nvcc", "-shared", "-Xcompiler", "-fPIC", f"-arch={options.arch}", "--split-compile=0", stem.with_suffix(".cu"), "-o", library,
            "-diag-suppress", "177")
    return library, weights


def emit(options, stem):
    run(options.rollerc, stem.with_suffix(".te"), "--device", options.device, "--name", "model", "-q", "-o", stem.with_suffix(".cu"),
        "--json", stem.with_suffix(".json"))


class Ours:
    """A library on the GPU, its weights prepared."""

    def __init__(self, library, weights, given, output, dtype):
        import torch
        self.library = ctypes.CDLL(str(library.resolve()))
        sizes = {}
        for word in ("weights", "prepared", "workspace"):
            function = getattr(self.library, f"model_{word}")
            function.restype = ctypes.c_size_t
            sizes[word] = function()
        self.prepared, self.workspace = (torch.empty(sizes[word] + 256, dtype=torch.uint8, device="cuda")
                                         for word in ("prepared", "workspace"))
        raw = torch.from_numpy(numpy.fromfile(weights, "u1")).cuda()
        if len(raw) < sizes["weights"]:
            sys.exit(f"{weights} has {len(raw)} bytes, and {library} wants {sizes['weights']}")
        self.sizes, self.made = sizes, torch.empty(output, dtype=dtype, device="cuda")
        self.arguments = [given, self.prepared, self.made, self.workspace]
        self.call("prepare", raw, self.prepared, self.workspace, torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()

    def call(self, word, *arguments):
        from models import call
        call(getattr(self.library, f"model_{word}"), *arguments)

    def launch(self):
        import torch
        self.call("launch", *self.arguments, torch.cuda.current_stream().cuda_stream)
        return self.made

    def node_graph(self):
        """NAME_graph, made executable."""
        import torch
        from models import NodeGraph
        runtime, graph, executable = ctypes.CDLL("libcudart.so"), ctypes.c_void_p(), ctypes.c_void_p()
        status = self.library.model_graph(ctypes.byref(graph), *[ctypes.c_void_p(argument.data_ptr()) for argument in self.arguments])
        status = status or runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        if status:
            sys.exit(f"model_graph ends with {status}")
        return NodeGraph(runtime, executable, torch.cuda.current_stream().cuda_stream)


# ---- PyTorch's

def function_of(folder, dtype):
    """The exported code, on the GPU and in this type. What is contiguous on the CPU need not be here: views of it may be copies."""
    import torch
    lines = [line for line in (folder / "module.py").read_text().strip().split("\n") if "_assert_tensor_metadata" not in line]
    text = "\n".join(lines).replace("device(type='cpu')", "device(type='cuda')").replace("torch.float32", str(dtype))
    names = {"torch": torch, "device": torch.device, "inf": float("inf"), "nan": float("nan")}
    exec(text.replace("aten.view.default", "aten.reshape.default"), names)
    return names["forward"]


def on_gpu(array, dtype):
    """Maps and filters lie channels-last, as cuDNN likes them."""
    import torch
    tensor = torch.from_numpy(numpy.ascontiguousarray(array)).cuda()
    tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


class Theirs:
    def __init__(self, folder, weights, given, dtype):
        self.function = function_of(folder, dtype)
        self.arguments = [*(on_gpu(array, dtype) for array in weights), on_gpu(given, dtype)]

    def compile(self, mode):
        import torch
        self.function = torch.compile(self.function, mode=mode, dynamic=False, fullgraph=True)

    def __call__(self):
        return self.function(None, *self.arguments)[0]


# ---- a network

def error_of(made, wanted):
    """Of the largest value; what is no number is as wrong as can be."""
    error = (made.double().reshape(wanted.shape) - wanted).abs().max() / wanted.abs().max()
    return error.item() if error.isfinite() else float("inf")


def calls_of(rivals):
    """One stream each."""
    return {name: rival.launch if name == "ours" else rival for name, rival in rivals.items() if name != "graph"}


def kernels_of(call):
    """[name, grid, us] of each kernel of a call on a stream. Its time is what passes between the end of the one before and its own:
    a launch that begins early waits for that one."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    call()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for _ in range(PROFILED):
                call()
            torch.cuda.synchronize()
        profiled.export_chrome_trace(file.name)
        events = json.loads(pathlib.Path(file.name).read_text())["traceEvents"]
    kernels = sorted((event for event in events if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")), key=lambda event: event["ts"])
    ends = [event["ts"] + event["dur"] for event in kernels]
    times = [min(event["dur"], end - before) for event, end, before in zip(kernels, ends, [0, *ends])]
    count = len(kernels) // PROFILED
    return [[kernel["name"][:100], kernel["args"].get("grid"), round(statistics.median(times[place::count]), 2)]
            for place, kernel in enumerate(kernels[:count])]


class Network:
    """All that is measured of a folder. PyTorch and what is compiled are ready when it is made."""

    def __init__(self, options, folder, one_by_one):
        import torch
        torch.set_grad_enabled(False)
        torch.backends.cudnn.allow_tf32 = False   # f32 means f32
        self.folder, self.entry = folder, {"name": folder.name}
        self.weights = write_weights(folder)
        (told,) = json.loads((folder / "inputs.json").read_text())
        generator = numpy.random.default_rng(zlib.crc32(told["name"].encode()))
        self.given = (generator.standard_normal(told["shape"], "f4") if told["dtype"] == "f32"
                      else generator.integers(0, told["values"], told["shape"], "i8"))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:   # nvcc works while PyTorch does
            built = {precision: pool.submit(build, options, folder, precision) for precision in options.precisions}
            self.prepare(options, built, one_by_one)

    def prepare(self, options, built, one_by_one):
        import torch
        with one_by_one:   # it takes four times the memory
            self.wanted = Theirs(self.folder, self.weights, self.given, torch.float64)()
            torch.cuda.empty_cache()
        self.rivals = {precision: self.rivals_of(options, precision, built[precision]) for precision in options.precisions}

    def rivals_of(self, options, precision, built):
        import torch
        dtype = getattr(torch, TYPES[precision])
        rivals = {"ours": None}
        if "eager" in options.peers:
            rivals["eager"] = Theirs(self.folder, self.weights, self.given, dtype)
        if "compile" in options.peers:
            rivals["compile"] = Theirs(self.folder, self.weights, self.given, dtype)
            rivals["compile"].compile(options.mode)
            rivals["compile"]()
        given = torch.from_numpy(self.given).cuda()
        given = given.to(dtype) if given.is_floating_point() else given
        rivals["ours"] = Ours(*built.result(), given, self.wanted.shape, dtype)
        return rivals

    def prove(self, precision):
        """Errors of all rivals, and whether ours is right on a stream and as a graph."""
        import torch
        torch.backends.cudnn.benchmark = True   # now, that the GPU is ours alone
        rivals, told = self.rivals[precision], {}
        made = rivals["ours"].launch().clone()
        for name, rival in rivals.items():
            told[f"{name}_error"] = error_of(made if name == "ours" else rival(), self.wanted)
        rivals["ours"].made.fill_(float("nan"))
        rivals["graph"] = rivals["ours"].node_graph()
        rivals["graph"].replay()
        torch.cuda.synchronize()
        allowed = max(ALLOWED[precision], TIMES_PYTORCH * told.get("eager_error", 0))
        told["right"] = told["ours_error"] <= allowed and bool((rivals["ours"].made == made).all())
        return told

    def time(self, precision):
        from models import CALLS
        from timing import Captured, times_us
        rivals = self.rivals[precision]
        graph = rivals.pop("graph")
        names = ["graph", *rivals]
        times = times_us([graph, *(Captured([call] * CALLS) for call in calls_of(rivals).values())])
        return {f"{'stream' if name == 'ours' else name}_us": us for name, us in zip(names, times)}

    def kernels(self, precision):
        try:
            return {name: kernels_of(call) for name, call in calls_of(self.rivals[precision]).items()}
        except Exception as error:   # times need no profiler
            return {"failed": f"{type(error).__name__}: {error}"}

    def measure(self, options):
        for precision in options.precisions:
            told = self.prove(precision)
            if not options.no_times:
                told.update(self.time(precision))
            if options.kernels:
                told["kernels"] = self.kernels(precision)
            del self.rivals[precision]
            self.entry[precision] = told
        return self.entry


def failure(folder, why, trace=""):
    return {"name": folder.name, "failed": why[:2000], "trace": trace[-1500:]}


class Worker:
    """The process of a network."""

    def __init__(self, context, options, folder, shared):
        self.folder, self.ready = folder, context.Event()
        self.process = context.Process(target=work, args=(options, folder, self.ready, *shared))
        self.process.start()

    def prepares(self):
        return self.process.is_alive() and not self.ready.is_set()


def work(options, folder, ready, go, one_by_one, results):
    try:
        network = Network(options, folder, one_by_one)
        ready.set()
        go.wait()
        with one_by_one:
            results.put(network.measure(options))
    except BaseException as error:   # of whatever kind: the others go on
        results.put(failure(folder, f"{type(error).__name__}: {error}", traceback.format_exc()))


def leave_out_the_late(workers, seconds):
    """Some compile for minutes, and all others wait for them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(worker.prepares() for worker in workers):
        time.sleep(0.1)
    for worker in workers:
        if worker.prepares():
            worker.process.kill()


def results_of(workers, results):
    """An entry for each network, as they come; also for those whose processes ended without any."""
    missing = {worker.folder.name: worker for worker in workers}
    while missing:
        ended = [worker for worker in missing.values() if not worker.process.is_alive()]
        try:
            entry = results.get(timeout=1)
        except queue.Empty:
            for worker in ended:
                del missing[worker.folder.name]
                yield failure(worker.folder, "its process was ended, or not ready in time")
            continue
        missing.pop(entry["name"])
        yield entry


def show(entry):
    if "failed" in entry:
        print(f"{entry['name']}: FAILED {entry['failed']}\n{entry['trace']}", flush=True)
    for precision in TYPES:
        told = entry.get(precision)
        if told:
            print(f"{entry['name']} {precision}: {'right' if told['right'] else 'WRONG'}, " + ", ".join(
                f"{key} {value:.3g}" for key, value in told.items() if key.endswith("error")) + "; " + ", ".join(
                f"{key[:-3]} {value:.1f}" for key, value in told.items() if key.endswith("_us")), flush=True)


def save(options, entries):
    """After each, for whoever runs out of time."""
    import torch
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"gpu": torch.cuda.get_device_name(0), "mode": options.mode, "models": entries}, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--draw", action="store_true", help="only write the weights")
    parser.add_argument("--emit", action="store_true", help="only import the graphs and write .cu and ranking")
    parser.add_argument("--rollerc")
    parser.add_argument("--device")
    parser.add_argument("--arch", default="native", help="of nvcc")
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=["f16"])
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="of torch.compile; the graph is made here")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--json", help="results")
    parser.add_argument("--kernels", action="store_true", help="also of each kernel of a call, in the results")
    parser.add_argument("--prepare", type=float, default=600, help="seconds after which a network that is not ready is left out")
    options = parser.parse_args()
    if options.draw or options.emit:
        for folder in options.folders:
            write_weights(folder)
            for precision in options.precisions if options.emit else ():
                run(options.rollerc, "import", folder / "graph.onnx", "--precision", precision, "--io-precision", precision,
                    "-o", folder / f"{precision}.te", "--weights", folder / f"{precision}.weights", "-q")
                emit(options, folder / precision)
        return 0
    context = multiprocessing.get_context("spawn")
    go, results = context.Event(), context.Queue()
    shared = go, context.Lock(), results
    workers = [Worker(context, options, folder, shared) for folder in options.folders]
    leave_out_the_late(workers, options.prepare)
    go.set()
    entries = []
    for entry in results_of(workers, results):
        entries.append(entry)
        show(entry)
        save(options, entries)
    failed = [entry["name"] for entry in entries if "failed" in entry or not all(entry[word]["right"] for word in options.precisions)]
    print(f"{len(entries) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
