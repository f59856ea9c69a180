#!/usr/bin/env python3
"""python/rollerc.py on a GPU: PyTorch and CuPy against float64, in a CUDA graph, as a custom operator, on a second GPU
where there is one, and what a call costs the host.

    python3 tests/gpu_python.py --rollerc build/rollerc --device h200
"""
import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import rollerc   # noqa: E402

HOST_US = 10   # a call may cost so much more than the bare launcher


def example(name):
    return ROOT / "examples" / f"{name}.te"


def check(name, seen, expected, bound):
    error = ((seen.double() - expected).norm() / expected.norm()).item()
    print(f"{name}: relative error {error:.2e}, at most {bound:.0e}")
    assert error <= bound, name


def softmax(load):
    x = torch.randn(512, 1000, device="cuda", dtype=torch.float16)
    kernel = load("softmax", R=512, N=1000)
    check("softmax, PyTorch", kernel(x), torch.softmax(x.double(), -1), 1e-3)
    out = torch.full_like(x, torch.nan)
    assert kernel(x, out=out) is out
    check("softmax, out=", out, torch.softmax(x.double(), -1), 1e-3)
    return kernel, x


def matmul(load):
    a, b = (torch.randn(513, 513, device="cuda") for _ in range(2))
    check("matmul, PyTorch", load("matmul", M=513, N=513, K=513)(a, b), a.double() @ b.double(), 1e-5)


def bn_training(load):
    x, gamma, beta = torch.randn(4, 8, 30, 30, device="cuda"), torch.rand(8, device="cuda"), torch.randn(8, device="cuda")
    y, mean, inv = load("bn_relu_training", N=4, C=8, H=30, W=30)(x, gamma, beta)
    x = x.double()
    check("BN training, mean", mean, x.mean((0, 2, 3)), 1e-4)
    check("BN training, inv", inv, (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt(), 1e-5)
    expected = torch.relu(torch.nn.functional.batch_norm(x, None, None, gamma.double(), beta.double(), True, 0.1, 1e-5))
    check("BN training, y", y, expected, 1e-5)


def cupy_arrays(kernel, x):
    try:
        import cupy
    except ImportError:
        print("NOT TESTED: there is no CuPy here")
        return
    y = kernel(cupy.asarray(x))
    assert isinstance(y, cupy.ndarray)
    check("softmax, CuPy", torch.as_tensor(y, device="cuda"), torch.softmax(x.double(), -1), 1e-3)


class OnlyDLPack:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def dlpack(kernel, x):
    out = torch.empty_like(x)
    kernel(OnlyDLPack(x), out=out)
    check("softmax, DLPack", out, torch.softmax(x.double(), -1), 1e-3)


def refusal(call, *words):
    try:
        call()
    except rollerc.Error as error:
        assert all(word in str(error) for word in words), f"no {words} in: {error}"
    else:
        raise AssertionError(f"{words}: was not refused")


def arrays_elsewhere(kernel, x):
    """What does not lie on a GPU is refused before anything is launched on it."""
    out = torch.full_like(x, torch.nan)
    refusal(lambda: kernel(x.cpu(), out=out), "saw one on cpu")
    refusal(lambda: kernel(OnlyDLPack(x.cpu()), out=out), "in the memory of the CPU")
    refusal(lambda: kernel(x, out=OnlyDLPack(x.cpu())), "output 0", "in the memory of the CPU")
    try:
        refusal(lambda: kernel(x.cpu().numpy(), out=out), "numpy.ndarray", "torch.from_numpy(x).cuda()")
    except RuntimeError as error:   # PyTorch without NumPy
        print(f"NOT TESTED: {error}")
    torch.cuda.synchronize()
    assert out.isnan().all(), "it was launched"


def second_device(kernel, x):
    """On cuda:1, while cuda:0 is the current device, also in a thread that has none yet, and not on both."""
    if torch.cuda.device_count() < 2:
        print("NOT TESTED: there is one GPU here")
        return
    far, out = x.to("cuda:1"), torch.full_like(x, torch.nan, device="cuda:1")
    expected = torch.softmax(x.double(), -1)
    for name, call in (("PyTorch", lambda: kernel(far)), ("out=", lambda: kernel(far, out=out)), ("DLPack", lambda: kernel(OnlyDLPack(far), out=out))):
        out.fill_(torch.nan)
        seen = call()
        assert torch.cuda.current_device() == 0
        check(f"softmax on cuda:1, {name}", (out if name == "DLPack" else seen).to("cuda:0"), expected, 1e-3)
    results = []
    thread = threading.Thread(target=lambda: results.append(kernel(far)))
    thread.start()
    thread.join()
    check("softmax on cuda:1, in a thread", results[0].to("cuda:0"), expected, 1e-3)
    with torch.cuda.device(1):
        check("softmax on cuda:0, cuda:1 the current one", kernel(x), expected, 1e-3)
        assert torch.cuda.current_device() == 1
    with torch.cuda.stream(torch.cuda.Stream("cuda:1")):
        check("softmax on cuda:1, on a stream of its own", kernel(far).to("cuda:0"), expected, 1e-3)
    refusal(lambda: kernel(x, out=out), "saw one on cuda:1, but input 0 ('x') is on cuda:0")


def graph(kernel, x):
    static = x.clone()
    graph, out = torch.cuda.CUDAGraph(), torch.empty_like(x)
    kernel(static, out=out)
    with torch.cuda.graph(graph):
        kernel(static, out=out)
    static.copy_(torch.randn_like(x))
    graph.replay()
    check("softmax, replayed", out, torch.softmax(static.double(), -1), 1e-3)


def operator(kernel, x):
    @torch.library.custom_op("rollerc_test::softmax", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return kernel(x)

    @op.register_fake
    def _(x):
        return torch.empty_like(x)

    check("softmax, torch.compile", torch.compile(lambda t: op(t * 2) + 1)(x), torch.softmax(2 * x.double(), -1) + 1, 1e-3)


def host_us(call, count=2000):
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count * 1e6)
    torch.cuda.synchronize()
    return best


def host_time(load):
    x = torch.randn(4, 64, device="cuda", dtype=torch.float16)
    kernel, out = load("softmax", R=4, N=64), torch.empty_like(x)
    kernel(x, out=out)
    addresses, stream = [x.data_ptr(), out.data_ptr()], torch.cuda.current_stream().cuda_stream
    bare = host_us(lambda: kernel._launch.launch(*addresses, None, stream)) if hasattr(kernel._launch, "launch") else None
    given, made = host_us(lambda: kernel(x, out=out)), host_us(lambda: kernel(x))
    print(f"host time a call: launcher {bare:.1f} us, kernel(x, out=y) {given:.1f} us, kernel(x) {made:.1f} us")
    assert given - bare <= HOST_US, "a call costs the host too much"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    parser.add_argument("--device", required=True)
    args = parser.parse_args()
    torch.manual_seed(time.time_ns() % 2**31)
    nvcc = rollerc._nvcc
    with tempfile.TemporaryDirectory() as folder:
        for way in ("nvcc", "NVRTC and the driver"):
            print(f"---- by {way}")
            rollerc._nvcc = nvcc if way == "nvcc" else lambda: None

            def load(name, **params):
                return rollerc.load(example(name), args.device, rollerc=args.rollerc, cache=folder, **params)

            kernel, x = softmax(load)
            matmul(load)
            bn_training(load)
            cupy_arrays(kernel, x)
            dlpack(kernel, x)
            arrays_elsewhere(kernel, x)
            second_device(kernel, x)
            graph(kernel, x)
            if way == "nvcc":
                operator(kernel, x)
                host_time(load)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
