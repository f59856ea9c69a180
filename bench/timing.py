"""Device time of calls, and the memory they run on: the same method for rollerc, its peers and the copies.

Calls over rotating sets of buffers, three times the L2 together, are captured into one CUDA graph; the time of a call
is the median over replays of the graph, once the GPU is warm; those that are compared take turns. Outputs that PyTorch allocates live until the graph is
done, so that they rotate as ours do.
"""
import ctypes
import math
import statistics

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "b1": torch.bool}
MAX_SETS = 2048                              # of buffers: with 64 all tensors of less than 0.8 MB stayed in L2
GRAPH_US, TOTAL_US = 400, 20000              # a graph lasts at least, its replays together at least
WARM_US, WARM_REPLAYS = 40000, 40            # for the first 16 to 36 an H200 moved memory 10 % slower after a check
SMALL = 0.05                                 # of weights
WARM_MOST_US = 400000                        # so many of a graph that lasts 0.1 s would be 4 s
FAR_BEHIND, FAR_TURNS = 3, 3                 # times as slow as the fastest: so few turns, once warm, tell by how much


def count_of(arg):
    return math.prod(arg["shape"])


def bytes_of(arg):
    """b1 is packed: 32 to a word."""
    return 4 * -(-count_of(arg) // 32) if arg["dtype"] == "b1" else count_of(arg) * DTYPES[arg["dtype"]].itemsize


def sets_for(nbytes):
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    return max(2, min(MAX_SETS, math.ceil(3 * l2 / nbytes)))


def replay_us(graph, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


class Captured:
    """Calls, one for each set of buffers, in a graph; what they use and allocate lives as long."""

    def __init__(self, calls):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            calls[0]()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph, self.kept, self.count = torch.cuda.CUDAGraph(), [calls], len(calls)
        with torch.cuda.graph(self.graph):
            for call in calls:
                self.kept.append(call())
        self.graph.replay()
        self.us = max(replay_us(self.graph, 1), 1.0)

    def warm(self):
        most = math.ceil(WARM_MOST_US / self.us)
        replay_us(self.graph, min(max(WARM_REPLAYS, math.ceil(WARM_US / self.us)), most))

    def sample(self):
        return replay_us(self.graph, max(1, math.ceil(GRAPH_US / self.us))) / self.count

    def samples(self):
        """So many are enough."""
        return max(5, min(15, math.ceil(TOTAL_US / max(GRAPH_US, self.us))))


def times_us(rivals):
    """Microseconds of one call of each. They take turns: products run at the power limit, where whoever comes behind a pause has
    a higher clock for a while (4096 cubed in f16: 182 us, then 204). Of who is far behind only a few turns are taken."""
    fastest = min(rival.us / rival.count for rival in rivals)
    near = [rival.us / rival.count < FAR_BEHIND * fastest for rival in rivals]
    most = max(rival.samples() for rival in rivals)
    samples = [[] for _ in rivals]
    for rival, is_near in zip(rivals, near):
        if is_near:
            rival.warm()
    for turn in range(most):
        for rival, is_near, times in zip(rivals, near, samples):
            if is_near or turn < FAR_TURNS:
                times.append(rival.sample())
    return [statistics.median(times) for times in samples]


def device_us(calls):
    """Microseconds of one call; `calls` run in turn, one for each set of buffers."""
    return times_us([Captured(calls)])[0]


# ---- inputs and outputs

def make_input(arg, how):
    """Normally distributed reals (`how` "uniform": in [0, 1), "small": so that layers neither grow nor vanish), integers in [-8, 8), bits by the toss of a coin."""
    shape, dtype = arg["shape"], DTYPES[arg["dtype"]]
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, device="cuda", dtype=torch.int8).bool()
    if not dtype.is_floating_point:
        return torch.randint(-8, 8, shape, device="cuda", dtype=dtype)
    if how == "uniform":
        return torch.rand(shape, device="cuda", dtype=dtype)
    return torch.randn(shape, device="cuda", dtype=dtype) * (SMALL if how == "small" else 1)


def pack_bits(bits):
    """bool -> the bytes of b1: bit j of word w is element 32*w + j, little endian."""
    flat = torch.nn.functional.pad(bits.flatten(), (0, -bits.numel() % 32)).view(-1, 8)
    packed = torch.zeros(len(flat), dtype=torch.uint8, device=bits.device)
    for j in range(8):
        packed |= flat[:, j].to(torch.uint8) << j
    return packed


def unpack_bits(packed, shape):
    bits = torch.stack([(packed >> j) & 1 for j in range(8)], 1).bool().flatten()
    return bits[:math.prod(shape)].view(shape)


def to_bytes(tensor):
    return pack_bits(tensor) if tensor.dtype == torch.bool else tensor.contiguous().flatten().view(torch.uint8)


def from_bytes(raw, arg):
    if arg["dtype"] == "b1":
        return unpack_bits(raw, arg["shape"])
    return raw.view(DTYPES[arg["dtype"]]).view(arg["shape"])


# ---- copies of the same bytes

class Copier:
    """The faster of the copy kernel and cudaMemcpy; each number of bytes is timed once."""

    def __init__(self, library):
        self.launch = ctypes.CDLL(library).copy_launch
        self.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.known = {}

    def kernel_call(self, a, b):
        def call():
            code = self.launch(a.data_ptr(), b.data_ptr(), a.numel(), torch.cuda.current_stream().cuda_stream)
            assert code == 0, f"copy_launch returned {code}"
        return call

    def us(self, nbytes):
        """{"copy kernel": …, "cudaMemcpy": …} for `nbytes` of traffic: half of it read, half written."""
        size = max(16, nbytes // 2 // 16 * 16)
        if size not in self.known:
            zeros = torch.zeros(size, dtype=torch.uint8, device="cuda")
            sets = [(zeros.clone(), zeros.clone()) for _ in range(sets_for(2 * size))]
            self.known[size] = {"copy kernel": device_us([self.kernel_call(a, b) for a, b in sets]),
                                "cudaMemcpy": device_us([lambda a=a, b=b: b.copy_(a) for a, b in sets])}
        return self.known[size]
