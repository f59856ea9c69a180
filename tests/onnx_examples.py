#!/usr/bin/env python3
"""Models that doc/models.md and doc/tutorial.md show, with the names and nodes that PyTorch's exporter gives and weights of a pattern.

    python3 tests/onnx_examples.py resnet50|encoder|digits FILE.onnx
"""
import math
import struct
import sys

import onnx_model as onnx


class Graph:
    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, *shape, scale=1.0):
        """Numbers that differ: a pattern whose length is prime."""
        count, pattern = math.prod(shape), [scale * ((i * 7919) % 1009 / 504 - 1) for i in range(1009)]
        raw = struct.pack("<1009f", *pattern) * (count // 1009 + 1)
        self.weights.append(onnx.tensor(name, shape, raw[:4 * count]))
        return name

    def number(self, name, value):
        self.weights.append(onnx.floats(name, [], [value]))
        return name

    def add(self, op, name, *inputs, **attributes):
        """The node of the module `name`."""
        made = f"/{name}_output_0"
        self.nodes.append(onnx.node(op, inputs, [made], name=f"/{name}", **attributes))
        return made


# ---- ResNet-50, whose batch norms the exporter has folded into the convolutions ----

def slashed(module):
    """`layer1.0.conv1` as the exporter has it in the names of values."""
    stage, _, rest = module.partition(".")
    return f"{stage}/{stage}.{rest.replace('.', '/')}" if rest else stage


def conv(g, module, x, given, made, window, stride):
    filters = g.weight(f"{module}.weight", made, given, window, window, scale=math.sqrt(6 / (given * window * window)))
    return g.add("Conv", f"{slashed(module)}/Conv", x, filters,
                 g.weight(f"{module}.bias", made, scale=0.1), kernel_shape=[window] * 2, strides=[stride] * 2, pads=[window // 2] * 4)


def bottleneck(g, place, x, given, width, stride, first):
    y = g.add("Relu", f"{slashed(place)}/relu/Relu", conv(g, f"{place}.conv1", x, given, width, 1, 1))
    y = g.add("Relu", f"{slashed(place)}/relu_1/Relu", conv(g, f"{place}.conv2", y, width, width, 3, stride))
    y = conv(g, f"{place}.conv3", y, width, 4 * width, 1, 1)
    if first:
        x = conv(g, f"{place}.downsample", x, given, 4 * width, 1, stride)
    return g.add("Relu", f"{slashed(place)}/relu_2/Relu", g.add("Add", f"{slashed(place)}/Add", y, x))


def resnet50(path):
    g = Graph()
    x = g.add("Relu", "relu/Relu", conv(g, "conv1", "image", 3, 64, 7, 2))
    x = g.add("MaxPool", "maxpool/MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    given = 64
    for stage, (width, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for block in range(depth):
            x = bottleneck(g, f"layer{stage}.{block}", x, given, width, 2 if stage > 1 and not block else 1, not block)
            given = 4 * width
    x = g.add("Flatten", "Flatten", g.add("GlobalAveragePool", "avgpool/GlobalAveragePool", x))
    weight, bias = g.weight("fc.weight", 1000, given, scale=0.02), g.weight("fc.bias", 1000)
    g.nodes.append(onnx.node("Gemm", [x, weight, bias], ["scores"], name="/fc/Gemm", transB=1))
    save(g, path, [onnx.value("image", ["batch", 3, 224, 224])], onnx.value("scores", ["batch", 1000]))


# ---- one layer of an encoder ----

def linear(g, module, x, rows, columns):
    product = g.add("MatMul", f"{module}/MatMul", x, g.weight(f"{module}.weight", rows, columns, scale=1 / math.sqrt(rows)))
    return g.add("Add", f"{module}/Add", product, g.weight(f"{module}.bias", columns, scale=0.1))


def norm(g, module, x, width, name=None):
    """As exporters wrote it before there was an operator."""
    centred = g.add("Sub", f"{module}/Sub", x, g.add("ReduceMean", f"{module}/ReduceMean", x, axes=[-1]))
    variance = g.add("ReduceMean", f"{module}/ReduceMean_1", g.add("Mul", f"{module}/square/Mul", centred, centred), axes=[-1])
    deviation = g.add("Sqrt", f"{module}/Sqrt", g.add("Add", f"{module}/Add", variance, g.number(f"{module}.eps", 1e-5)))
    scaled = g.add("Mul", f"{module}/Mul", g.add("Div", f"{module}/Div", centred, deviation), g.weight(f"{module}.weight", width))
    bias = g.weight(f"{module}.bias", width)
    if not name:
        return g.add("Add", f"{module}/Add_1", scaled, bias)
    g.nodes.append(onnx.node("Add", [scaled, bias], [name], name=f"/{module}/Add_1"))
    return name


def encoder(path, batch=8, tokens=384, width=768, heads=12):
    g = Graph()
    g.weights.append(onnx.integers("split", [batch, tokens, heads, width // heads]))
    g.weights.append(onnx.integers("join", [batch, tokens, width]))

    def head(module, order):
        y = g.add("Reshape", f"{module}/Reshape", linear(g, module, "x", width, width), "split")
        return g.add("Transpose", f"{module}/Transpose", y, perm=order)

    scores = g.add("MatMul", "attention/scores/MatMul", head("attention/query", [0, 2, 1, 3]), head("attention/key", [0, 2, 3, 1]))
    scores = g.add("Div", "attention/Div", scores, g.number("root", math.sqrt(width // heads)))
    shares = g.add("Softmax", "attention/Softmax", scores, axis=-1)
    mixed = g.add("MatMul", "attention/mixed/MatMul", shares, head("attention/value", [0, 2, 1, 3]))
    mixed = g.add("Reshape", "attention/Reshape", g.add("Transpose", "attention/Transpose", mixed, perm=[0, 2, 1, 3]), "join")
    x = norm(g, "norm1", g.add("Add", "Add", "x", linear(g, "attention/out", mixed, width, width)), width)
    y = linear(g, "linear2", g.add("Relu", "activation/Relu", linear(g, "linear1", x, width, 4 * width)), 4 * width, width)
    norm(g, "norm2", g.add("Add", "Add_1", x, y), width, "y")
    save(g, path, [onnx.value("x", [batch, tokens, width])], onnx.value("y", [batch, tokens, width]))


# ---- a network for digits, small enough to be proven while one waits ----

def digits(path):
    g = Graph()
    x = g.add("Relu", "relu/Relu", conv(g, "conv1", "image", 1, 8, 3, 1))
    x = g.add("MaxPool", "pool/MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.add("Relu", "relu_1/Relu", conv(g, "conv2", x, 8, 16, 3, 1))
    x = g.add("Flatten", "Flatten", g.add("GlobalAveragePool", "mean/GlobalAveragePool", x))
    x = g.add("Gemm", "fc/Gemm", x, g.weight("fc.weight", 10, 16), g.weight("fc.bias", 10), transB=1)
    g.nodes.append(onnx.node("Softmax", [x], ["shares"], name="/Softmax", axis=1))
    save(g, path, [onnx.value("image", ["batch", 1, 28, 28])], onnx.value("shares", ["batch", 10]))


def save(g, path, inputs, output):
    with open(path, "wb") as file:
        file.write(onnx.model(g.nodes, inputs, [output], g.weights))


if __name__ == "__main__":
    {"resnet50": resnet50, "encoder": encoder, "digits": digits}[sys.argv[1]](sys.argv[2])
