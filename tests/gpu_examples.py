"""Runs the emitted launchers of all examples on this GPU and compares them with PyTorch in float64.

    python3 tests/gpu_examples.py gpu-cases --json results.json       # the folder that gpu_generate.py wrote
    python3 tests/gpu_examples.py --self-check                        # only the comparison itself; no GPU

Needs nvcc and PyTorch. For each file: outputs, workspace and the memory around every argument are poisoned; the
launcher returns 0; outputs equal the reference; a second run, a CUDA graph and work right before and behind it give the
same bits; the memory around the arguments is untouched; a pointer aligned for one element only is either served or refused with
cudaErrorInvalidValue, and one that is not even that is refused.
"""
import argparse
import ctypes
import glob
import json
import math
import multiprocessing
import os
import queue
import sys
import tempfile
import zlib

import torch

import common
import gpu_stream
from reference import Expected, reference

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "b1": torch.bool}
CUDA_ERROR_INVALID_VALUE = 1
GUARD_BYTES = 256                            # as aligned as the workspace has to be
HANG_SECONDS = 180


class Failure(Exception):
    pass


def require(condition, reason):
    if not condition:
        raise Failure(reason)


# ---- memory: what a kernel sees

def pack_bits(bits):
    """bool of any shape -> int32 words; bit j of word w is element 32*w + j, the last word ends in zeros."""
    flat = torch.nn.functional.pad(bits.flatten(), (0, -bits.numel() % 32)).view(-1, 32)
    words = torch.zeros(len(flat), dtype=torch.int64, device=bits.device)
    for j in range(32):
        words |= flat[:, j].long() << j
    return torch.where(words < 2**31, words, words - 2**32).int()


def unpack_bits(words, shape):
    bits = ((words[:, None] >> torch.arange(32, device=words.device, dtype=torch.int32)) & 1).bool().flatten()
    count = math.prod(shape)
    require(not bits[count:].any(), "the last b1 word does not end in zeros")
    return bits[:count].view(shape)


def stored(tensor):
    """The bytes of a tensor in memory."""
    return (pack_bits(tensor) if tensor.dtype == torch.bool else tensor.contiguous()).flatten().view(torch.uint8)


class Buffer:
    """The memory of one argument, poisoned, between two guard zones; `shift` bytes off its full alignment."""

    def __init__(self, nbytes, shift=0, poison=0xFF):                   # 0xFF…: NaN in every real type
        self.poison = poison
        self.raw = torch.full((GUARD_BYTES + shift + nbytes + GUARD_BYTES,), poison, dtype=torch.uint8, device="cuda")
        self.begin, self.end = GUARD_BYTES + shift, GUARD_BYTES + shift + nbytes
        self.bytes = self.raw[self.begin:self.end]
        self.pointer = self.raw.data_ptr() + self.begin

    def intact(self):
        return bool((self.raw[:self.begin] == self.poison).all() and (self.raw[self.end:] == self.poison).all())


def argument_bytes(arg):
    count = math.prod(arg["shape"])
    return 4 * -(-count // 32) if arg["dtype"] == "b1" else count * DTYPES[arg["dtype"]].itemsize


def element_bytes(arg):
    return 4 if arg["dtype"] == "b1" else DTYPES[arg["dtype"]].itemsize


def make_input(arg, generator):
    """Reals uniform in [-1, 1), integers in [-8, 8) (u8: [0, 16)), bits by the toss of a coin."""
    shape, dtype, device = arg["shape"], DTYPES[arg["dtype"]], generator.device
    if dtype.is_floating_point:
        wide = dtype if dtype == torch.float64 else torch.float32
        return (torch.rand(shape, generator=generator, dtype=wide, device=device) * 2 - 1).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator, device=device) < 0.5
    low = 0 if dtype == torch.uint8 else -8
    return torch.randint(low, low + 16, shape, generator=generator, device=device, dtype=dtype)


def read_output(arg, buffer):
    if arg["dtype"] == "b1":
        return unpack_bits(buffer.bytes.view(torch.int32), arg["shape"])
    return buffer.bytes.view(DTYPES[arg["dtype"]]).view(arg["shape"])


# ---- comparison

def compare(out, expected):
    """Raises Failure, or gives {"error": worst |out - ref| / tolerance, "norm": ||out - ref|| / ||ref||}.

    With u = half an ulp of the output's type, v = that of the type sums are kept in (f32; f64 for f64) and K terms:

        |out - ref|     <= u |ref| + 16 v sqrt(K') (|ref| + rms(ref)) + half the smallest subnormal + slack   (every element)
        ||out - ref||   <= (u + 4 v sqrt(K')) ||ref|| + the same subnormal + ||slack||                        (the whole)

    sqrt(K): rounding errors of a sum are a random walk. K' = min(K, 4096): longer sums are not kept in one chain.
    16 leaves room for a chain of functions of a few ulp each. For f32 and K = 1024 that is 3e-5, for f16 5e-4.
    Integers and bits are exact, except where the reference is within 1e-5 of another answer.
    """
    ref = expected.value
    require(tuple(out.shape) == tuple(ref.shape), f"shape {tuple(out.shape)}, reference {tuple(ref.shape)}")
    require(ref.numel() == 1 or bool((ref != ref.flatten()[0]).any()), "the reference is constant: a trivial test")
    if not out.dtype.is_floating_point:
        wrong = out != ref
        if expected.margin is not None:
            wrong &= expected.margin >= 1e-5
        count = int(wrong.sum())
        require(count == 0, f"{count} of {ref.numel()} elements differ")
        return {"error": 0.0, "norm": 0.0}

    require(bool(torch.isfinite(ref).all()), "the reference is not finite: a trivial test")
    info = torch.finfo(out.dtype)
    u = info.eps / 2
    v = torch.finfo(torch.float64 if out.dtype == torch.float64 else torch.float32).eps / 2
    walk = v * math.sqrt(min(expected.terms, 4096))
    subnormal = info.tiny * u                                           # half of tiny * eps
    slack = torch.zeros_like(ref) if expected.slack is None else expected.slack
    size = ref.abs()
    rms = float(ref.square().mean().sqrt())
    difference = (out.double() - ref).abs()
    tolerance = u * size + 16 * walk * (size + rms) + subnormal + slack
    ratio = torch.where(difference.isnan(), torch.inf, difference / tolerance).flatten()
    worst = int(ratio.argmax())
    where = [int(i) for i in torch.unravel_index(torch.tensor(worst), ref.shape)] if ref.dim() else []
    require(float(ratio[worst]) <= 1,
            f"{int((ratio > 1).sum())} of {ref.numel()} elements differ, worst at {where}: "
            f"{float(out.flatten()[worst]):.9g}, reference {float(ref.flatten()[worst]):.9g}")
    count = math.sqrt(ref.numel())
    norm = float(difference.square().mean().sqrt())
    require(norm <= (u + 4 * walk) * rms + subnormal + float(slack.square().mean().sqrt()), f"norm of the error {norm:.3g}, of the reference {rms:.3g}")
    return {"error": round(float(ratio[worst]), 4), "norm": norm / rms}


def self_check():
    """The comparison accepts rounding and refuses everything else."""
    def accepts(out, expected):
        try:
            return bool(compare(out, expected))
        except Failure:
            return False

    def with_element(tensor, value):
        changed = tensor.clone()
        changed[3, 5] = value
        return changed

    generator = torch.Generator().manual_seed(1)
    ref = torch.rand(37, 41, generator=generator, dtype=torch.float64) * 2 - 1
    bits, margin = ref > 0, ref.abs()
    flipped = with_element(bits, ~bits[3, 5])
    ints = (ref * 100).int()
    cases = [(f"{name} rounded", accepts(ref.to(dtype), Expected(ref)), True)
             for name, dtype in DTYPES.items() if dtype.is_floating_point]
    cases += [(f"{name} {what}", accepts(with_element(ref.to(dtype), value), Expected(ref, 1024)), False)
              for name, dtype in DTYPES.items() if dtype.is_floating_point
              for what, value in (("nan", torch.nan), ("inf", torch.inf), ("off by 0.02", ref[3, 5] + 0.02))]
    cases += [
        ("f32 with f16 precision", accepts(ref.half().float(), Expected(ref, 1024)), False),
        ("f32 all off by 1e-6", accepts((ref * (1 + 1e-6)).float(), Expected(ref)), False),
        ("constant reference", accepts(torch.zeros(4), Expected(torch.zeros(4).double())), False),
        ("other shape", accepts(ref.float().t(), Expected(ref)), False),
        ("bits", accepts(bits, Expected(bits)), True),
        ("one bit flipped", accepts(flipped, Expected(bits, 1, margin)), False),
        ("one bit flipped, too close to call",
         accepts(flipped, Expected(bits, 1, with_element(margin, 1e-7))), True),
        ("integers", accepts(ints, Expected(ints)), True),
        ("integer off by one", accepts(with_element(ints, ints[3, 5] + 1), Expected(ints)), False),
        ("bits packed and back", torch.equal(unpack_bits(pack_bits(bits), bits.shape), bits), True),
        ("bit 31 of word 1 is element 63", int(pack_bits(torch.arange(64) == 63)[1]) == -2**31, True),
    ]
    tally = common.Tally()
    for case, got, want in cases:
        tally.add(case, None if got == want else f"got {got}, wanted {want}")
    return tally.exit_code()


# ---- one case

class Launcher:
    """NAME_launch of a compiled file."""

    def __init__(self, library, meta):
        loaded = ctypes.CDLL(library)
        workspace_of = getattr(loaded, meta["name"] + "_workspace")
        workspace_of.restype = ctypes.c_size_t
        require(workspace_of() == meta["workspace"], f"workspace() is {workspace_of()}, metadata {meta['workspace']}")
        self.function = getattr(loaded, meta["name"] + "_launch")
        self.function.argtypes = [ctypes.c_void_p] * (len(meta["args"]) + 2)
        self.function.restype = ctypes.c_int
        self.args, self.workspace = meta["args"], Buffer(meta["workspace"])

    def __call__(self, pointers):
        self.workspace.bytes.fill_(self.workspace.poison)
        workspace = self.workspace.pointer if len(self.workspace.bytes) else None
        return self.function(*pointers, workspace, torch.cuda.current_stream().cuda_stream)

    def outputs(self, shift=0, poison=0xFF):
        return [Buffer(argument_bytes(arg), shift, poison) for arg in self.args if arg["role"] == "output"]


def pointers_of(buffers):
    return [buffer.pointer for buffer in buffers]


def same_bits(left, right):
    return all(torch.equal(a.bytes, b.bytes) for a, b in zip(left, right))


def run_once(launcher, inputs, poison, what):
    outputs = launcher.outputs(poison=poison)
    code = launcher(pointers_of(inputs + outputs))
    require(code == 0, f"{what}: the launcher returned {code}")
    torch.cuda.synchronize()
    require(all(b.intact() for b in inputs + outputs + [launcher.workspace]), f"{what}: wrote outside its arguments")
    return outputs


def run_graph(launcher, inputs, first):
    """Captures one launch and replays it: the same bits. Gives the milliseconds of a replay."""
    outputs, graph = launcher.outputs(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        code = launcher(pointers_of(inputs + outputs))
    require(code == 0, f"under capture the launcher returned {code}")
    graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    require(same_bits(outputs, first), "a CUDA graph gives other bits")
    return begin.elapsed_time(end)


def run_among_others(launcher, inputs):
    outputs = run_once(launcher, inputs, 0xFF, "third run")
    pointers = pointers_of(inputs + outputs) + [launcher.workspace.pointer if len(launcher.workspace.bytes) else None]
    way = gpu_stream.first_way_that_matters(
        lambda: require(launcher.function(*pointers, torch.cuda.current_stream().cuda_stream) == 0, "among others"),
        [b.bytes for b in inputs], [b.bytes for b in outputs])
    require(way is None, f"other bits beside other work, {way}")


def run_misaligned(launcher, inputs, first):
    """Each argument in turn, one element and one byte off. Gives the alignments that were refused."""
    refused = []
    for index, arg in enumerate(launcher.args):
        step = element_bytes(arg)
        for shift in {1, step}:
            outputs = launcher.outputs(poison=0x5A)
            buffers = inputs + outputs
            moved = Buffer(argument_bytes(arg), shift, 0x5A)
            if arg["role"] == "input":
                moved.bytes.copy_(buffers[index].bytes)
            else:
                outputs[index - len(inputs)] = moved
            buffers[index] = moved
            code = launcher(pointers_of(buffers))
            torch.cuda.synchronize()
            what = f"argument {arg['name']} {shift} bytes off"
            require(moved.intact(), f"{what}: wrote outside the argument")
            if code == CUDA_ERROR_INVALID_VALUE:
                require(all((b.bytes == 0x5A).all() for b in outputs), f"{what}: refused, yet it ran")
                refused.append(f"{arg['name']}+{shift}")
            else:
                require(code == 0 and shift % step == 0, f"{what}: the launcher returned {code}")
                require(same_bits(outputs, first), f"{what}: accepted, but wrong")
    return refused


def run_case(source, library):
    meta = common.read_metadata(source)
    stem = os.path.basename(source)[:-3]
    generator = torch.Generator("cuda").manual_seed(zlib.crc32(stem.encode()))
    launcher = Launcher(library, meta)

    tensors = [make_input(arg, generator) for arg in meta["args"] if arg["role"] == "input"]
    inputs = [Buffer(argument_bytes(arg)) for arg in meta["args"] if arg["role"] == "input"]
    for buffer, tensor in zip(inputs, tensors):
        buffer.bytes.copy_(stored(tensor))

    first = run_once(launcher, inputs, 0xFF, "first run")
    result = {"outputs": {}}
    expected = reference(stem.split(".")[0], tensors)
    output_args = [arg for arg in meta["args"] if arg["role"] == "output"]
    require(len(expected) == len(output_args), "the reference has another number of outputs")
    for arg, buffer, want in zip(output_args, first, expected):
        try:
            result["outputs"][arg["name"]] = compare(read_output(arg, buffer), want)
        except Failure as failure:
            raise Failure(f"{arg['name']}: {failure}") from None
    del expected, tensors

    second = run_once(launcher, inputs, 0x5A, "second run")
    require(same_bits(first, second), "a second run gives other bits")
    result["ms"] = round(run_graph(launcher, inputs, first), 4)
    run_among_others(launcher, inputs)
    result["refused"] = run_misaligned(launcher, inputs, first)
    return result


# ---- all cases: in a child process, since a crash of one kernel takes the CUDA context with it

def work(cases, results):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for source, library in cases:
        try:
            results.put((source, None, run_case(source, library)))
        except Failure as failure:
            results.put((source, str(failure), {}))
        except Exception as error:                                      # a CUDA error: this process is of no more use
            results.put((source, f"{type(error).__name__}: {str(error).splitlines()[0][:300]}", {}))
            return
        torch.cuda.empty_cache()


def run_all(cases):
    """(source, reason or None, result) of every case."""
    spawn = multiprocessing.get_context("spawn")
    while cases:
        results = spawn.Queue()
        worker = spawn.Process(target=work, args=(cases, results))
        worker.start()
        done, waited = 0, 0
        while done < len(cases) and waited < HANG_SECONDS:
            try:
                yield results.get(timeout=1)
                done, waited = done + 1, 0
            except queue.Empty:
                waited += 1
                if not worker.is_alive() and results.empty():
                    break
        worker.join(5)
        died = worker.exitcode not in (0, None)                         # None: it hangs
        if done < len(cases) and (died or worker.exitcode is None):
            yield cases[done][0], f"the process {'died' if died else 'hangs'} ({worker.exitcode})", {}
            done += 1
        worker.kill()
        cases = cases[done:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--arch", default="native")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at once")
    parser.add_argument("--only", nargs="*", help="these examples")
    parser.add_argument("--self-check", action="store_true")
    args = parser.parse_args()
    if args.self_check:
        return self_check()
    if not args.folder:
        parser.error("a folder of .cu files is wanted")

    sources = [path for path in sorted(glob.glob(os.path.join(args.folder, "*.cu")))
               if not args.only or os.path.basename(path).split(".")[0] in args.only]
    tally, report = common.Tally(verbose=True), []
    with tempfile.TemporaryDirectory() as build:
        def library_of(source):
            return os.path.join(build, os.path.basename(source)[:-3] + ".so")

        def build_one(source):
            return common.run(["nvcc", "-O3", f"-arch={args.arch}", "-shared", "-Xcompiler", "-fPIC",
                               source, "-o", library_of(source)])

        def record(source, reason, result):
            case = os.path.basename(source)[:-3]
            tally.add(case, reason, json.dumps(result))
            report.append({"case": case, "passed": reason is None, "reason": reason, **result})

        built = []
        for source, reason in zip(sources, common.in_parallel(args.jobs, build_one, sources)):
            if reason is None:
                built.append((source, library_of(source)))
            else:
                record(source, reason, {})
        for outcome in run_all(built):
            record(*outcome)

    if args.json:
        with open(args.json, "w") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cases": report},
                      file, indent=1)
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
