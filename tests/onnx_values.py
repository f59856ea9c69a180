"""ONNX's tensors as rollerc's kernels have them in memory, and how far a result may be from what ONNX says."""
import re

import numpy
import onnx
from onnx import numpy_helper

BF16 = onnx.TensorProto.BFLOAT16


class Tensor:
    """`values`: what the elements are, of a type that numpy has; `raw`: the bytes that a kernel reads or writes."""

    def __init__(self, values, raw=None):
        self.values, self.size, self.is_bf16 = values, values.size, raw is not None   # no other type needs to give its bytes
        self.raw = raw if raw is not None else numpy.ascontiguousarray(values).tobytes()   # bools are bytes of 0 and 1


def bits_of(proto):
    """numpy has no bf16. Some cases keep it as uint16."""
    if proto.HasField("raw_data"):
        return numpy.frombuffer(proto.raw_data, "u2")
    return numpy.array(proto.int32_data, "u2")


def tensor_of(proto, declared):
    if BF16 not in (proto.data_type, declared):
        return Tensor(numpy_helper.to_array(proto))
    bits = bits_of(proto)
    return Tensor((bits.astype("u4") << 16).view("f4").reshape(tuple(proto.dims)), bits.tobytes())


def read_tensor(path, declared):
    """`declared`: the type that the graph gives it. None: it is no tensor, or holds text."""
    proto = onnx.TensorProto()
    try:
        proto.ParseFromString(path.read_bytes())
        return None if proto.data_type in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED) else tensor_of(proto, declared)
    except Exception:   # protobuf has many names for it: a sequence, an optional
        return None


def resized(tensor, shape):
    """Some cases of CastLike give one element where the graph declares a matrix, of which only the type is read."""
    if tensor.values.shape == shape or 0 in shape:
        return tensor
    width = len(tensor.raw) // tensor.size
    raw = numpy.resize(numpy.frombuffer(tensor.raw, f"V{width}"), shape).tobytes()
    return Tensor(numpy.resize(tensor.values, shape), raw if tensor.is_bf16 else None)


def bound_text(tensor):
    """As --bind takes it."""
    return ",".join(repr(value) if isinstance(value, float) else str(int(value)) for value in tensor.values.reshape(-1).tolist())


# Cases whose expected values are less exact than their type: how far they are from what the operator's text says, and why.
INEXACT = {
    r"(blackman|hamming|hann)window": (1e-4, "made with a pi of 3.1415: twice the difference, of a cosine that is halved"),
    r"test_dft": (1e-12, "numpy's transform leaves rounding errors of the largest element where zeros are"),
    r"gridsample_bicubic|roialign_aligned": (1e-4, "printed with four digits"),
    r"adam_multiple": (4e-3, "made with an epsilon of 1e-2, which the model does not have"),
}


def error_of_data(name):
    return max((error for pattern, (error, _) in INEXACT.items() if re.search(pattern, name)), default=0)


# Units in the last place beside what the reference allows. ONNX's values come from numpy in the same type, which rounds
# after every operator; its functions err by up to 4 units, as ours may.
UNITS = {"f2": 2, "bf": 2, "f4": 8, "f8": 8}


def unit(tensor, magnitude):
    """Of the last place of each element."""
    digits, least = {"f2": (10, -24), "bf": (7, -133), "f4": (23, -149), "f8": (52, -1074)}[kind(tensor)]
    exponent = numpy.floor(numpy.log2(numpy.maximum(magnitude, 2.0 ** (least + digits))))
    return 2.0 ** (exponent - digits)


def kind(tensor):
    return "bf" if tensor.is_bf16 else tensor.values.dtype.str[1:]


def values_of(tensor, raw):
    """What the bytes hold if they are of the tensor's type."""
    if tensor.is_bf16:
        return (numpy.frombuffer(raw, "u2").astype("u4") << 16).view("f4")
    return numpy.frombuffer(raw, "u1" if tensor.values.dtype == bool else tensor.values.dtype)


def tolerance(tensor, raw, reference, error):
    """None if a kernel's `raw` is what ONNX says, else the first difference. `reference`: value and bound of each element, by the
    evaluator: a kernel and numpy may each be away from the value by the bound, and ONNX by `error`. Integers are the same."""
    want, got = tensor.values.reshape(-1), values_of(tensor, raw)
    if tensor.values.dtype.kind not in "fb":
        wrong = want != got
    elif tensor.values.dtype == bool:
        wrong = want != (got != 0)
        wrong |= got > 1
    else:
        want, got = want.astype("f8"), got.astype("f8")
        bound = numpy.where(numpy.isfinite(reference[:, 1]), reference[:, 1], 0)
        with numpy.errstate(all="ignore"):
            allowed = error + 2 * bound + UNITS[kind(tensor)] * unit(tensor, numpy.where(numpy.isfinite(want), abs(want), 0))
            same = (want == got) | (numpy.isnan(want) & numpy.isnan(got))
            wrong = ~(same | (abs(want - got) <= allowed))
    if not wrong.any():
        return None
    at = int(wrong.argmax())
    return f"{wrong.sum()} of {wrong.size} elements differ; number {at} is {got[at]!r}, and ONNX has {want[at]!r}"
