"""What a user would run instead of rollerc, timed on the same inputs by the same method as rollerc's kernels."""
import ctypes
import functools
import glob
import multiprocessing
import os
import time

import timing

GPU_BUDGET_GB = 100                          # of all warming processes together
GPU_GB_PER_BYTE = 5e-9                       # a case's inputs, outputs and what PyTorch makes between them


def sets_of(problem):
    """Copies of the inputs as PyTorch holds them: together with outputs of their own, three times the L2."""
    sets = [problem.tensors]
    while len(sets) < timing.sets_for(problem.bytes):
        sets.append({name: x.clone() for name, x in problem.tensors.items()})
    return sets


def calls_of(problem, function, sets):
    setup = problem.arguments(problem.tensors)[len(problem.tensors):]
    return [lambda s=s: function(*s.values(), *setup) for s in sets]


# ---- PyTorch

def torch_calls(problem, sets):
    return calls_of(problem, problem.function(problem.entry["torch"]), sets)


def compiled(problem):
    import torch
    expression = problem.entry.get("compile", problem.entry["torch"])
    return torch.compile(problem.function(expression), dynamic=False, mode=problem.entry.get("mode"))


def compiles(entry):
    """It does, unless the entry says that there is nothing to be gained: `"compile": None`."""
    return entry.get("compile", entry.get("torch")) is not None


def compile_calls(problem, sets):
    import torch
    if not compiles(problem.entry):
        return None
    torch._dynamo.reset()                    # else later shapes silently fall back to eager
    calls = calls_of(problem, compiled(problem), sets)
    calls[0]()
    return calls


# ---- images in the other layout: other kernels of cuDNN

LAYOUTS = {"NHWC": (0, 2, 3, 1), "NCHW": (0, 3, 1, 2)}


def turned(x, layout):
    """The same tensor, its elements where those of the layout lie."""
    if x.dim() != 4:
        return x
    there = LAYOUTS[layout]
    return x.permute(there).contiguous().permute([there.index(i) for i in range(4)])


def reordered(x, order):
    """The same tensor, its elements where those of its dimensions in that order would lie."""
    return x.permute(order).contiguous().permute([order.index(i) for i in range(len(order))])


def layout_calls(problem, sets):
    if "turned" in problem.entry:
        orders = problem.entry["turned"]
        return torch_calls(problem, [{name: reordered(x, orders[name]) if name in orders else x for name, x in s.items()}
                                     for s in sets])
    if "layout" not in problem.entry:
        return None
    layout = problem.entry["layout"]
    return torch_calls(problem, [{name: turned(x, layout) for name, x in s.items()} for s in sets])


# ---- cuDNN where PyTorch may choose another library, and its softmax, which PyTorch does not call

class Cudnn:
    TYPES = {"f32": 0, "f16": 2}             # cudnnDataType_t
    ACCURATE, INSTANCE = 1, 0

    def __init__(self):
        self.library, self.handle = ctypes.CDLL(self.find()), ctypes.c_void_p()
        self.check(self.library.cudnnCreate(ctypes.byref(self.handle)))

    @staticmethod
    def find():
        import nvidia
        found = [path for base in nvidia.__path__ for path in glob.glob(base + "/**/libcudnn.so*", recursive=True)]
        return (found + ["libcudnn.so.9"])[0]

    @staticmethod
    def check(status):
        if status != 0:
            raise RuntimeError(f"cuDNN status {status}")

    def caller(self, operation, dtype, shape, tensors):
        """A call of `operation` over rows; `tensors`: the inputs, then the output."""
        import torch
        descriptor = ctypes.c_void_p()
        self.check(self.library.cudnnCreateTensorDescriptor(ctypes.byref(descriptor)))
        self.check(self.library.cudnnSetTensor4dDescriptor(descriptor, 0, self.TYPES[dtype], *shape, 1, 1))
        one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        pairs = [word for x in tensors for word in (descriptor, ctypes.c_void_p(x.data_ptr()))]

        def call():
            self.library.cudnnSetStream(self.handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            self.check(operation(self.handle, self.ACCURATE, self.INSTANCE, one, *pairs[:-2], zero, *pairs[-2:]))
            return tensors                   # which have to live as long as the call
        return call


@functools.cache
def cudnn_of_process():
    return Cudnn()


def cudnn_calls(problem, sets):
    import torch
    if "cudnn" not in problem.entry:
        return None
    if "(" in problem.entry["cudnn"]:
        return calls_of(problem, problem.function(problem.entry["cudnn"]), sets)
    cudnn, (dtype, shape) = cudnn_of_process(), (problem.inputs[0]["dtype"], problem.inputs[0]["shape"])
    operation = {"softmax": cudnn.library.cudnnSoftmaxForward,
                 "softmax_grad": cudnn.library.cudnnSoftmaxBackward}[problem.entry["cudnn"]]
    return [cudnn.caller(operation, dtype, shape, [*s.values(), torch.empty_like(next(iter(s.values())))]) for s in sets]


PEERS = {"torch": torch_calls, "layout": layout_calls, "compile": compile_calls, "cudnn": cudnn_calls}


def capture(problem, peers):
    """{peer: its calls, or the reason why there are none}; a peer that does not apply is left out."""
    sets, captured = sets_of(problem), {}
    for peer in peers:
        try:
            calls = PEERS[peer](problem, sets)
            if calls is not None:
                captured[peer] = timing.Captured(calls)
        except Exception as error:           # whatever a peer raises: it is not our case that failed
            captured[peer] = f"{type(error).__name__}: {str(error)[:120]}".replace("\n", " ")
    return captured


# ---- torch.compile takes seconds a case: first all of them in parallel, into its cache on disk

def prepare_cache(folder):
    """Before torch is imported. The compiler's own processes would only be in the way of ours."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.path.abspath(folder), "inductor"))
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def warm_process(folder, stop, space, changed):
    global WARM
    WARM = (folder, stop, space, changed)


def warm_one(row):
    """Compiles and runs one case once. Gives whether it did."""
    import torch
    import problem
    folder, stop, space, changed = WARM
    need = min(GPU_BUDGET_GB, row["bytes"] * GPU_GB_PER_BYTE + 0.5)
    with changed:
        changed.wait_for(lambda: space.value >= need, max(0.0, stop - time.time()))
        if time.time() > stop:
            return False
        space.value -= need
    try:
        case = problem.Problem(folder, row)
        compiled(case)(*case.arguments(case.tensors))
        torch.cuda.synchronize()
        return True
    except Exception:                        # the measuring process meets it again and tells
        return False
    finally:
        torch._dynamo.reset()
        case = None
        torch.cuda.empty_cache()
        with changed:
            space.value += need
            changed.notify_all()


def warm(folder, rows, jobs, seconds):
    """Fills the cache for these rows; what is chosen by timing is left to be chosen on a quiet GPU."""
    prepare_cache(folder)
    context = multiprocessing.get_context("spawn")
    space, changed = context.Value("d", GPU_BUDGET_GB), context.Condition()
    start = time.time()
    done, stop = 0, start + seconds
    with context.Pool(jobs, warm_process, (folder, stop, space, changed)) as pool:
        results = pool.imap_unordered(warm_one, rows)
        try:
            for _ in rows:
                done += results.next(timeout=max(1.0, stop + 30 - time.time()))
        except multiprocessing.TimeoutError:
            pass                             # one hangs or was killed: the measuring process compiles what is missing
    for path in glob.glob(os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "**", "*.best_config"), recursive=True):
        os.remove(path)
    print(f"torch.compile: {done} of {len(rows)} cases compiled in {time.time() - start:.0f} s", flush=True)
