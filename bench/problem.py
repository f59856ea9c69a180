"""One case on the GPU: its arguments, PyTorch's functions of them, and whether a kernel's outputs are right."""
import ctypes
import json
import math
import os

import torch

import timing
import torch_ops

MAY_DIFFER = 1e-5                            # share of bits and integers: reals at a threshold up to rounding
PART = 2**26                                 # elements compared at once: float64 takes space


class Wrong(Exception):
    """The kernel is not right."""


class Problem:
    def __init__(self, folder, row):
        with open(os.path.join(folder, row["file"])) as file:
            self.meta = json.loads(file.readline()[len("//rollerc: "):])
        self.entry = row["entry"]
        self.tf32 = self.entry.get("math") == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.tf32
        self.params = {name: int(value) for name, value in (define.split("=") for define in row["params"])}
        self.inputs = [arg for arg in self.meta["args"] if arg["role"] == "input"]
        self.outputs = [arg for arg in self.meta["args"] if arg["role"] == "output"]
        self.bytes = sum(timing.bytes_of(arg) for arg in self.meta["args"])
        how = self.entry.get("inputs", {})
        self.tensors = {arg["name"]: timing.make_input(arg, how.get(arg["name"])) for arg in self.inputs}

    def function(self, expression):
        """The expression as a function of the inputs, then of what `setup` names."""
        names = {**self.params, **vars(torch_ops)}
        arguments = [arg["name"] for arg in self.inputs] + list(self.entry.get("setup", {}))
        exec(f"def peer({', '.join(arguments)}):\n    return {expression}", names)
        return names["peer"]

    def arguments(self, tensors):
        """What such a function is called with."""
        names = {**self.params, **vars(torch_ops), **tensors}
        return [*tensors.values(), *(eval(setup, names) for setup in self.entry.get("setup", {}).values())]

    def expected(self):
        """What float64 says; bits and integers, and what is only moved, as they are."""
        def widen(x):
            return x.double() if x.is_floating_point() and not self.entry.get("exact") else x
        expression = self.entry.get("reference", self.entry.get("compile", self.entry["torch"]))
        arguments = self.arguments({name: widen(x) for name, x in self.tensors.items()})
        values = self.function(expression)(*arguments)
        return values if isinstance(values, tuple) else (values,)

    def rounded(self):
        """What factors are wrong by: those of TF32, and what the program itself keeps in a narrow type."""
        kept = self.entry.get("rounded")
        return 2**-10 if self.tf32 else torch.finfo(timing.DTYPES[kept]).eps / 2 if kept else 0

    def terms(self):
        return eval(self.entry.get("terms", "1"), dict(self.params))


def worst_error(out, ref, terms, rounded):
    """max |out - ref| / (u |ref| + 16 v sqrt(min(K, 4096)) (|ref| + rms(ref))): 1 is the most that is right.

    u: half an ulp of the output's type, v: that of the type sums are kept in; as in tests/gpu_examples.py. `rounded`: what factors
    are wrong by, 2^-10 of those that are rounded or cut off to 11 bits; sums of any length are as much of the rms.
    """
    info = torch.finfo(out.dtype)
    wide = torch.finfo(torch.float64 if out.dtype == torch.float64 else torch.float32)
    walk = 16 * wide.eps / 2 * math.sqrt(min(terms, 4096)) + 16 * rounded
    out, ref = out.flatten(), ref.flatten()
    rms = math.sqrt(sum(float(part.double().square().sum()) for part in ref.split(PART)) / ref.numel())
    worst = 0.0
    for a, b in zip(out.split(PART), ref.split(PART)):
        size = b.double().abs()
        ratio = (a.double() - b.double()).abs() / (info.eps / 2 * size + walk * (size + rms) + info.tiny * info.eps)
        worst = max(worst, float(torch.where(ratio.isnan(), torch.inf, ratio).max()))
    return worst


def compare(problem, raw_outputs):
    """The worst error; raises Wrong."""
    expected = problem.expected()
    if len(expected) != len(problem.outputs):
        raise Wrong(f"the reference has {len(expected)} outputs, the program {len(problem.outputs)}")
    worst = 0.0
    for arg, raw, ref in zip(problem.outputs, raw_outputs, expected):
        out = timing.from_bytes(raw, arg)
        if tuple(out.shape) != tuple(ref.shape):
            raise Wrong(f"{arg['name']}: shape {tuple(out.shape)}, reference {tuple(ref.shape)}")
        if problem.entry.get("exact") or not out.dtype.is_floating_point:
            share = float((out != ref).float().mean())
            if share > (0 if problem.entry.get("exact") else problem.entry.get("may_differ", MAY_DIFFER)):
                raise Wrong(f"{arg['name']}: {100 * share:.4f} % of the elements differ")
            continue
        error = worst_error(out, ref, problem.terms(), problem.rounded())
        if error > 1:
            raise Wrong(f"{arg['name']}: {error:.3g} times the error that rounding explains")
        worst = max(worst, error)
    return worst


class Launcher:
    """NAME_launch of a compiled file."""

    def __init__(self, library, meta):
        self.function = getattr(ctypes.CDLL(library), meta["name"] + "_launch")
        self.function.argtypes = [ctypes.c_void_p] * (len(meta["args"]) + 2)
        self.workspace = torch.full((max(meta["workspace"], 16),), 0xFF, dtype=torch.uint8, device="cuda")

    def call(self, buffers):
        code = self.function(*(buffer.data_ptr() for buffer in buffers), self.workspace.data_ptr(),
                             torch.cuda.current_stream().cuda_stream)
        if code != 0:
            raise Wrong(f"the launcher returned {code}")


def check(problem, library):
    """Checks a kernel with poisoned outputs. Gives its error, and calls of it."""
    launcher = Launcher(library, problem.meta)
    inputs = [timing.to_bytes(problem.tensors[arg["name"]]) for arg in problem.inputs]
    outputs = [torch.full((timing.bytes_of(arg),), 0xFF, dtype=torch.uint8, device="cuda") for arg in problem.outputs]
    launcher.call(inputs + outputs)
    torch.cuda.synchronize()
    error = compare(problem, outputs)
    sets = [inputs + outputs]
    while len(sets) < timing.sets_for(problem.bytes):
        sets.append([buffer.clone() for buffer in sets[0]])
    return error, [lambda s=s: launcher.call(s) for s in sets]
