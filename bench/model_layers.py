#!/usr/bin/env python3
"""Launch by launch, what a model's program takes beside what was predicted: the worst differences first.

    python3 bench/model_layers.py --rollerc build/rollerc --device h100 --json layers.json resnet50.te bert.te
    python3 bench/model_layers.py --json layers.json resnet50.cu         # emitted elsewhere, resnet50.json beside it
    python3 bench/model_layers.py --compile-only resnet50.cu             # without a GPU: does each kernel compile?

Needs a GPU, PyTorch, nvcc, and rollerc where a model is no .cu. Launches of one kind (family, tile, grid, predicted time) are
measured once, each kernel compiled by itself, all of them in parallel. A launch is repeated in one CUDA graph, on so many copies
of the model's arguments and workspace as are three times the L2 together, or as fit: `--sets 1` leaves everything in the L2 where
it fits. All values are random; elements that are indices are clamped by the kernels themselves.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import json
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "bench")]
import rollerc   # noqa: E402

MOST_BYTES = 24 << 30   # of all copies of a model's tensors
MOST_COPIES = 64
CALLS_US = 200          # a graph calls a launch so often that it is as long by the prediction, once for each copy at least

Kind = collections.namedtuple("Kind", "kernel launch predicted places")   # places: positions in the program


# ---- programs

def emit(model, options, folder):
    """Paths of the text and of the ranking."""
    if model.endswith(".cu"):
        return model, model[:-3] + ".json"
    stem = re.sub(r"\W", "_", os.path.basename(model).rsplit(".", 1)[0])
    text, ranking = os.path.join(folder, stem + ".cu"), os.path.join(folder, stem + ".json")
    subprocess.run([options.rollerc, model, "--device", options.device, "-o", text, "--json", ranking, "--name", stem, "-q",
                    *options.option], check=True)
    return text, ranking


def read_program(paths):
    """(the emitted text, its metadata, what the ranking says of each launch of a call)"""
    with open(paths[0]) as file:
        text = file.read()
    metadata = json.loads(text.split("\n", 1)[0][len(rollerc.PREFIX):])
    with open(paths[1]) as file:
        told = collections.defaultdict(list)
        for said in json.load(file)["candidates"][0]["launches"]:
            told[said["kernel"]].append(said)
    missing = {launch["kernel"] for launch in metadata["launches"]} - set(told)
    if missing:
        sys.exit(f"{paths[1]} is not the ranking of {paths[0]}: it knows no {min(missing)}")
    return text, metadata, [told[launch["kernel"]].pop(0) if len(told[launch["kernel"]]) > 1 else told[launch["kernel"]][0]
                            for launch in metadata["launches"]]


def without_names(schedule):
    """What a block does, whatever its tensors are called."""
    return re.sub(r"\b(load|store|map|reduce \w+|product \w+)\b[^;}]*", r"\1", schedule)


def kinds_of(metadata, told):
    """Launches that are alike are one kind, in the order of their first ones."""
    kinds = {}
    for place, (launch, said) in enumerate(zip(metadata["launches"], told)):
        config = {key: value for key, value in said["config"].items() if key != "schedule"}
        shape = {key: launch.get(key) for key in ("grid", "block", "cluster", "shared", "cooperative", "early")}
        key = json.dumps([said["family"], config, without_names(said["config"].get("schedule", "")), shape, len(launch["args"]),
                          said["predicted"]["time_us"]], sort_keys=True)
        kinds.setdefault(key, Kind(launch["kernel"], launch, said, [])).places.append(place)
    return list(kinds.values())


# ---- kernels

def alone(text, kernel, kernels):
    """The text with this kernel only, and without what launches it."""
    kept, dropped, last = [], None, 0
    for line in text.split("\n"):
        opened = re.match(r"namespace (\w+)_scope \{", line)
        if dropped is None and opened and opened[1] in kernels and opened[1] != kernel:
            dropped = f"namespace {opened[1]}_scope"
        if dropped is None:
            kept.append(line)
        if line.startswith("}") and line.endswith("_scope"):
            last = len(kept)
            dropped = None if dropped and line.endswith(dropped) else dropped
    return "\n".join(kept[:last]) + "\n"


def compile_kernel(arguments):
    """The path of its cubin: of it alone or, where the text cannot be taken apart so, of the whole program."""
    text, kernel, kernels, folder, arch = arguments
    nvcc, source, cubin = rollerc._nvcc(), os.path.join(folder, kernel + ".cu"), os.path.join(folder, kernel + ".cubin")
    for part in (alone(text, kernel, kernels), text):
        with open(source, "w") as file:
            file.write(part)
        done = subprocess.run([nvcc, "-O3", f"-arch={arch}", "-cubin", source, "-o", cubin], capture_output=True, text=True)
        if done.returncode == 0:
            return cubin
    raise SystemExit(f"{kernel} does not compile:\n{done.stderr}")


# ---- memory

BESIDE = ("workspace", "prepared", "weights")   # what lies beside the arguments: keys of the metadata, and of launches' arguments


def bytes_of(metadata, beside):
    return metadata.get(beside) or 0


class Memory:
    """Copies of all arguments and of what lies beside them, as many as are wanted."""

    def __init__(self, metadata, copies):
        import torch
        import timing
        made = []
        for entry in metadata["args"]:
            if entry["dtype"] == "b1":
                entry = {**entry, "shape": [-(-math.prod(entry["shape"]) // 32)], "dtype": "i32"}
            made.append(timing.make_input(entry, "normal"))
        noise = torch.randn(1 << 20, device="cuda").half().view(torch.uint8)
        for beside in BESIDE:
            size = bytes_of(metadata, beside) + 256
            made.append(noise.repeat(-(-size // noise.numel()))[:size])
        self.copies = [made] + [[tensor.clone() for tensor in made] for _ in range(copies - 1)]

    def address(self, copy, arg):
        """Of {"arg": number}, or of {"workspace": offset}."""
        tensors = self.copies[copy]
        if "arg" in arg:
            return tensors[arg["arg"]].data_ptr()
        beside = next(number for number, name in enumerate(BESIDE) if name in arg)
        base = tensors[len(tensors) - len(BESIDE) + beside].data_ptr()
        return -(-base // 256) * 256 + arg[BESIDE[beside]]


def bytes_of_model(metadata):
    args = sum(math.prod(entry["shape"]) * rollerc.TYPES[entry["dtype"]][1] for entry in metadata["args"])
    return args + sum(bytes_of(metadata, beside) for beside in BESIDE)


class Launch:
    """One launch by the driver, as the metadata describes it."""

    def __init__(self, cubin, launch):
        self.module, handle = rollerc._Module(cubin, {"args": [], "launches": []}), ctypes.c_void_p()
        self.module.check("cuModuleLoadData", ctypes.byref(handle), self.module.cubin)
        self.function, self.config = self.module.function(handle, launch), self.module.config(launch)
        self.args = launch["args"]

    def __call__(self, memory, copy, stream):
        self.config.stream = stream
        values = [memory.address(copy, arg) for arg in self.args if "map" not in arg]
        maps = [self.module.tensor_map(values[arg["map"]], arg) for arg in self.args if "map" in arg]
        cells = (ctypes.c_void_p * max(len(values), 1))(*values)
        places = [ctypes.addressof(cells) + i * ctypes.sizeof(ctypes.c_void_p) for i in range(len(values))] + [at for at, _ in maps]
        self.module.check("cuLaunchKernelEx", ctypes.byref(self.config), self.function,
                          (ctypes.c_void_p * max(len(places), 1))(*places), None)


# ---- the clock

def measure(kind, cubin, memory, copies):
    """Microseconds of a launch."""
    import torch
    import timing
    launch = Launch(cubin, kind.launch)
    traffic = sum(kind.predicted["predicted"]["bytes"][way] for way in ("dram_load", "dram_store"))
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = min(copies, max(1, math.ceil(3 * l2 / max(traffic, 1))))
    calls = max(sets, math.ceil(CALLS_US / kind.predicted["predicted"]["time_us"]))
    return timing.device_us([lambda copy=i % sets: launch(memory, copy, torch.cuda.current_stream().cuda_stream) for i in range(calls)])


def row_of(kind, us):
    said = kind.predicted
    row = {"kernel": kind.kernel, "times": len(kind.places), "first": kind.places[0], "family": said["family"],
           "variant": said["config"].get("variant"), "tile": said["config"].get("tile", {}).get("global"),
           "schedule": said["config"].get("schedule"), "bound_by": said["predicted"]["bound_by"],
           "predicted_us": said["predicted"]["time_us"], "launch_us": said["predicted"]["launch_us"], "us": us}
    return row


def show(model, rows):
    print(f"{model}: {sum(row['times'] for row in rows)} launches of {len(rows)} kinds, "
          f"{sum(row['us'] * row['times'] for row in rows):.0f} us one by one, "
          f"{sum(row['predicted_us'] * row['times'] for row in rows):.0f} predicted")
    print("  lost us  times  measured  predicted  ratio  kernel")
    for row in sorted(rows, key=lambda row: -row["times"] * (row["us"] - row["predicted_us"])):
        sizes = " ".join(f"{axis} {size}" for axis, size in (row["tile"] or {}).items())
        print(f"  {row['times'] * (row['us'] - row['predicted_us']):7.1f}  {row['times']:5d}  {row['us']:8.2f}  {row['predicted_us']:9.2f}  "
              f"{row['us'] / row['predicted_us']:5.2f}  {row['kernel']} {row['family']} {row['variant']}  {sizes}  "
              f"{(row['schedule'] or '')[-60:]}")


def layers_of(model, program, cubins, options):
    text, metadata, told = program
    copies = max(1, min(options.sets, MOST_BYTES // max(bytes_of_model(metadata), 1)))
    memory, rows = Memory(metadata, copies), []
    for kind in kinds_of(metadata, told):
        try:
            us = measure(kind, cubins[kind.kernel], memory, copies)
        except rollerc.Error as error:
            print(f"{model}: {kind.kernel} ({kind.predicted['family']}): {error}", file=sys.stderr)
            continue
        rows.append(row_of(kind, us))
    show(model, rows)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="+", help=".te, .onnx, or .cu with its .json beside it")
    parser.add_argument("--rollerc", default="rollerc")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--arch", default="sm_90a", help="of the kernels, for nvcc")
    parser.add_argument("--option", action="append", default=[], help="of rollerc: --option=--precision --option=f16")
    parser.add_argument("--json", help="all rows of all models")
    parser.add_argument("--sets", type=int, default=MOST_COPIES, help="copies of all tensors at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compile-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = [read_program(emit(model, options, folder)) for model in options.model]
        tasks = []
        for number, (text, metadata, told) in enumerate(programs):
            place = os.path.join(folder, str(number))
            os.mkdir(place)
            kernels = {launch["kernel"] for launch in metadata["launches"]}
            tasks.append([(text, kind.kernel, kernels, place, options.arch) for kind in kinds_of(metadata, told)])
        cubins = [{task[1]: pool.submit(compile_kernel, task) for task in of_one} for of_one in tasks]
        cubins = [{kernel: cubin.result() for kernel, cubin in of_one.items()} for of_one in cubins]
        for model, of_one in zip(options.model, cubins):
            print(f"{model}: {len(of_one)} kernels are compiled", flush=True)
        if options.compile_only:
            return
        results = {model: layers_of(model, program, of_one, options)
                   for model, program, of_one in zip(options.model, programs, cubins)}
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": options.device, "models": results}, file, indent=1)


if __name__ == "__main__":
    main()
