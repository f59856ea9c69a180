"""ONNX models with weights of our own seed: the light CNNs of the package `onnx`, a BERT-like and a ViT-like graph, a ResNet-50."""
import math
import pathlib
import re

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = 20
NAMES = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64}
LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")


class Weights:
    """Random numbers: of large tensors a pattern whose length is prime, since what a filter of any shape holds must differ and
    144 million normal numbers take seconds."""

    def __init__(self):
        self.pattern = numpy.random.default_rng(SEED).standard_normal(1048573, "f4")
        self.at = 0

    def normal(self, shape, scale):
        count = math.prod(shape)
        self.at = (self.at + 7919) % len(self.pattern)
        return (numpy.resize(numpy.roll(self.pattern, self.at), count).reshape(shape) * numpy.float32(scale)).astype("f4")

    def positive(self, shape):
        return 1 + 0.2 * numpy.tanh(self.normal(shape, 1))


def legal_names(graph):
    """Gives all values names that the importer keeps as they are: a test finds them again in its program."""
    taken = {}

    def legal(name):
        if name and name not in taken:
            wanted = "t_" + re.sub(r"\W+", "_", name)
            taken[name] = wanted if wanted not in taken.values() else f"{wanted}_{len(taken)}"
        return taken.get(name, "")

    for node in graph.node:
        node.input[:], node.output[:] = map(legal, node.input), map(legal, node.output)
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = legal(value.name)


# ---- the light CNNs ----

def fan_in(node, shape):
    if node.op_type == "Conv":
        return math.prod(shape[1:])
    by_rows = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return shape[1] if by_rows else shape[0]


def light_weight(weights, node, place, shape):
    """Of the input `place` of its first reader."""
    if node.op_type == "BatchNormalization" and place in (1, 4):   # scale and variance
        return weights.positive(shape)
    if node.op_type in ("Conv", "Gemm") and place == 1:
        return weights.normal(shape, math.sqrt(2 / fan_in(node, shape)))
    return weights.positive(shape) if node.op_type == "Unsqueeze" else weights.normal(shape, 0.1)


def light(name, image=None):
    """`image`: of that size, where the network ends with a mean over what there is. Constants of one value, of ConstantOfShape or initializers, become weights: a turned filter would not be seen."""
    path = pathlib.Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"
    model = onnx.load(path)
    graph, weights = model.graph, Weights()
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {name: array.shape for name, array in held.items() if array.dtype == numpy.float32}
    shapes.update({node.output[0]: tuple(held[node.input[0]]) for node in graph.node if node.op_type == "ConstantOfShape"})
    reader = {name: (node, place) for node in reversed(graph.node) for place, name in enumerate(node.input)}
    made = {name: light_weight(weights, *reader[name], shape) for name, shape in shapes.items() if name in reader}
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    kept = [tensor for tensor in graph.initializer if tensor.name not in made and any(tensor.name in node.input for node in nodes)]
    inputs = [value for value in graph.input if value.name not in held]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    for size in inputs[0].type.tensor_type.shape.dim[2:] if image else ():
        size.dim_value = image
    if image:   # what follows is of the size that was
        del graph.value_info[:], graph.output[0].type.tensor_type.shape.dim[:]
    graph.input.extend(inputs)
    graph.initializer.extend(kept + [numpy_helper.from_array(array, name) for name, array in made.items()])
    model.ir_version = 7   # whose initializers need not be inputs
    legal_names(graph)
    return model


# ---- graphs made here ----

class Builder:
    def __init__(self):
        self.nodes, self.initializers, self.weights, self.inputs = [], [], Weights(), []

    def input(self, name, kind, shape):
        self.inputs.append(helper.make_tensor_value_info(name, NAMES[kind], shape))
        return name

    def constant(self, array):
        name = f"w_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(numpy.array(values, "i8"))

    def normal(self, *shape, scale=0.1):
        return self.constant(self.weights.normal(shape, scale))

    def positive(self, *shape):
        return self.constant(self.weights.positive(shape).astype("f4"))

    def add(self, op, *inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def linear(self, x, rows, columns):
        product = self.add("MatMul", x, self.normal(rows, columns, scale=1 / math.sqrt(rows)))
        return self.add("Add", product, self.normal(columns))

    def model(self, output, opset=17):
        shape = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [shape], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def attention(b, x, size, mask=None):
    """As exporters write it: products, a reshape and a transposition a head."""
    batch, tokens, width, heads = size

    def split(y, order):
        y = b.add("Reshape", b.linear(y, width, width), b.ints(batch, tokens, heads, width // heads))
        return b.add("Transpose", y, perm=order)

    q, k, v = split(x, [0, 2, 1, 3]), split(x, [0, 2, 3, 1]), split(x, [0, 2, 1, 3])
    scores = b.add("Div", b.add("MatMul", q, k), b.constant(numpy.float32(math.sqrt(width // heads))))
    if mask:
        scores = b.add("Add", scores, mask)
    mixed = b.add("Transpose", b.add("MatMul", b.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return b.linear(b.add("Reshape", mixed, b.ints(batch, tokens, width)), width, width)


def gelu(b, x):
    half = b.add("Mul", x, b.constant(numpy.float32(0.5)))
    erf = b.add("Erf", b.add("Div", x, b.constant(numpy.float32(math.sqrt(2)))))
    return b.add("Mul", half, b.add("Add", erf, b.constant(numpy.float32(1))))


def feed_forward(b, x, width):
    return b.linear(gelu(b, b.linear(x, width, 4 * width)), 4 * width, width)


def layer_norm_in_parts(b, x, width):
    """As it was written before there was an operator."""
    centred = b.add("Sub", x, b.add("ReduceMean", x, axes=[-1]))
    variance = b.add("ReduceMean", b.add("Pow", centred, b.constant(numpy.float32(2))), axes=[-1])
    deviation = b.add("Sqrt", b.add("Add", variance, b.constant(numpy.float32(1e-12))))
    scaled = b.add("Mul", b.add("Div", centred, deviation), b.positive(width))
    return b.add("Add", scaled, b.normal(width))


def layer_norm(b, x, width):
    return b.add("LayerNormalization", x, b.positive(width), b.normal(width), axis=-1, epsilon=1e-6)


def bert(batch, tokens, width, heads, layers, words):
    b = Builder()
    ids, mask = b.input("input_ids", "i8", [batch, tokens]), b.input("attention_mask", "i8", [batch, tokens])
    seen = b.add("Cast", b.add("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.FLOAT)
    mask = b.add("Mul", b.add("Sub", b.constant(numpy.float32(1)), seen), b.constant(numpy.float32(-10000)))
    x = b.add("Add", b.add("Gather", b.normal(words, width), ids), b.normal(1, tokens, width))
    x = layer_norm_in_parts(b, x, width)
    for _ in range(layers):
        x = layer_norm_in_parts(b, b.add("Add", x, attention(b, x, (batch, tokens, width, heads), mask)), width)
        x = layer_norm_in_parts(b, b.add("Add", x, feed_forward(b, x, width)), width)
    first = b.add("Gather", x, b.constant(numpy.int64(0)), axis=1)
    return b.model(b.add("Tanh", b.linear(first, width, width)))


def vit(batch, image, patch, width, heads, layers, classes):
    b, side = Builder(), image // patch
    pixels, tokens = b.input("pixels", "f4", [batch, 3, image, image]), side * side + 1
    filters = b.normal(width, 3, patch, patch, scale=1 / math.sqrt(3 * patch * patch))
    patches = b.add("Conv", pixels, filters, b.normal(width), kernel_shape=[patch, patch], strides=[patch, patch])
    patches = b.add("Transpose", b.add("Reshape", patches, b.ints(0, width, -1)), perm=[0, 2, 1])
    token = b.add("Expand", b.normal(1, 1, width), b.ints(batch, 1, width))
    x = b.add("Add", b.add("Concat", token, patches, axis=1), b.normal(1, tokens, width))
    for _ in range(layers):
        x = b.add("Add", x, attention(b, layer_norm(b, x, width), (batch, tokens, width, heads)))
        x = b.add("Add", x, feed_forward(b, layer_norm(b, x, width), width))
    first = b.add("Gather", layer_norm(b, x, width), b.constant(numpy.int64(0)), axis=1)
    return b.model(b.add("Gemm", first, b.normal(classes, width), b.normal(classes), transB=1))


def mobile(batch, image, width, classes):
    """What light networks are made of: depthwise and grouped convolutions, a shuffle of channels, a gate, a concatenation, maps that
    are flattened and maps that are transposed."""
    b = Builder()

    def conv(x, given, made, window, stride=1, groups=1):
        filters = b.normal(made, given // groups, window, window, scale=math.sqrt(2 / (given // groups * window * window)))
        return b.add("Conv", x, filters, b.normal(made), kernel_shape=[window] * 2, strides=[stride] * 2, pads=[window // 2] * 4, group=groups)

    side = image // 2
    x = b.add("Relu", conv(b.input("image", "f4", [batch, 3, image, image]), 3, width, 3, 2))
    y = b.add("Clip", conv(x, width, width, 3, groups=width), b.constant(numpy.float32(0)), b.constant(numpy.float32(6)))
    y = conv(y, width, width, 1, groups=2)
    y = b.add("Reshape", y, b.ints(batch, 2, width // 2, side, side))   # the shuffle
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3, 4]), b.ints(batch, width, side, side))
    gate = b.add("Sigmoid", conv(b.add("GlobalAveragePool", y), width, width, 1))
    x = b.add("Add", x, b.add("Mul", y, gate))
    pooled = b.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = b.add("Concat", x, pooled, axis=1)
    means = b.add("ReduceMean", b.add("Transpose", x, perm=[0, 2, 3, 1]), axes=[1, 2], keepdims=0)
    x = b.add("Flatten", b.add("MaxPool", b.add("Slice", x, b.ints(1), b.ints(width + 1), b.ints(1)), kernel_shape=[2, 2], strides=[2, 2]))
    flat = width * (side // 2) ** 2
    scores = b.add("MatMul", x, b.normal(flat, classes, scale=1 / math.sqrt(flat)))
    return b.model(b.add("Add", scores, b.add("MatMul", means, b.normal(2 * width, classes))))


def tanh_gelu(b, x):
    """GPT-2's, as the exporter takes it apart."""
    cubed = b.add("Pow", x, b.constant(numpy.float32(3)))
    inner = b.add("Add", x, b.add("Mul", cubed, b.constant(numpy.float32(0.044715))))
    inner = b.add("Tanh", b.add("Mul", inner, b.constant(numpy.float32(math.sqrt(2 / math.pi)))))
    return b.add("Mul", b.add("Mul", x, b.constant(numpy.float32(0.5))), b.add("Add", inner, b.constant(numpy.float32(1))))


def flat_linear(b, x, size, rows, columns):
    """A layer that is a Gemm of all tokens."""
    batch, tokens = size
    y = b.add("Gemm", b.add("Reshape", x, b.ints(-1, rows)), b.normal(rows, columns, scale=1 / math.sqrt(rows)), b.normal(columns))
    return b.add("Reshape", y, b.ints(batch, tokens, columns))


def added_mask(b, scores, tokens):
    """As torch.onnx.export writes what lies ahead: a triangle of ones, compared, chosen by and added."""
    ones = b.constant(numpy.ones((tokens, tokens), "f4"))
    ahead = b.add("Equal", b.add("Trilu", ones, b.constant(numpy.int64(0)), upper=0), b.constant(numpy.float32(0)))
    lowest = b.constant(numpy.float32(numpy.finfo("f4").min))
    return b.add("Add", scores, b.add("Where", ahead, lowest, b.constant(numpy.float32(0))))


def chosen_mask(b, scores, tokens):
    seen = b.constant(numpy.tril(numpy.ones((1, 1, tokens, tokens), bool)))
    return b.add("Where", seen, scores, b.constant(numpy.float32(numpy.finfo("f4").min)))


def causal_attention(b, x, size, mask):
    """GPT-2's: q, k and v are parts of one product."""
    batch, tokens, width, heads = size
    parts = [f"part_{len(b.nodes)}_{i}" for i in range(3)]
    qkv = flat_linear(b, x, (batch, tokens), width, 3 * width)
    b.nodes.append(helper.make_node("Split", [qkv, b.ints(width, width, width)], parts, axis=2))
    q, k, v = (b.add("Transpose", b.add("Reshape", part, b.ints(batch, tokens, heads, width // heads)), perm=perm)
               for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    scores = b.add("Div", b.add("MatMul", q, k), b.constant(numpy.float32(math.sqrt(width // heads))))
    shares = b.add("Softmax", mask(b, scores, tokens), axis=-1)
    mixed = b.add("Transpose", b.add("MatMul", shares, v), perm=[0, 2, 1, 3])
    return flat_linear(b, b.add("Reshape", mixed, b.ints(batch, tokens, width)), (batch, tokens), width, width)


def gpt2(batch, tokens, width, heads, layers, words, mask=chosen_mask):
    b = Builder()
    ids = b.input("input_ids", "i8", [batch, tokens])
    table = b.normal(words, width)
    x = b.add("Add", b.add("Gather", table, ids), b.normal(1, tokens, width))
    for _ in range(layers):
        x = b.add("Add", x, causal_attention(b, layer_norm(b, x, width), (batch, tokens, width, heads), mask))
        y = tanh_gelu(b, flat_linear(b, layer_norm(b, x, width), (batch, tokens), width, 4 * width))
        x = b.add("Add", x, flat_linear(b, y, (batch, tokens), 4 * width, width))
    return b.model(b.add("MatMul", layer_norm(b, x, width), b.add("Transpose", table, perm=[1, 0])))


def plain_conv(b, x, given, made, window=1, stride=1, groups=1, bias=True):
    """With its norm folded into it, as the exporter leaves it."""
    filters = b.normal(made, given // groups, window, window, scale=math.sqrt(2 / (given // groups * window * window)))
    pads = [window // 2] * 4
    return b.add("Conv", x, filters, *([b.normal(made)] if bias else []), kernel_shape=[window] * 2, strides=[stride] * 2,
                 pads=pads, group=groups)


def swish(b, x):
    return b.add("Mul", x, b.add("Sigmoid", x))


def squeezed(b, x, width, inner):
    """What gates channels: the mean of each, through two small convolutions."""
    y = swish(b, plain_conv(b, b.add("ReduceMean", x, axes=[2, 3], keepdims=1), width, inner))
    return b.add("Mul", x, b.add("Sigmoid", plain_conv(b, y, inner, width)))


def efficient(batch, image, width, blocks, classes):
    """EfficientNet's blocks: expanded, depthwise, gated, projected, added."""
    b = Builder()
    x, given = swish(b, plain_conv(b, b.input("image", "f4", [batch, 3, image, image]), 3, width, 3, 2)), width
    for block in range(blocks):
        stride, made = (2, 2 * given) if block % 2 else (1, given)
        y = swish(b, plain_conv(b, x, given, 4 * given))
        y = squeezed(b, swish(b, plain_conv(b, y, 4 * given, 4 * given, 5, stride, 4 * given)), 4 * given, given)
        y = plain_conv(b, y, 4 * given, made)
        x, given = b.add("Add", x, y) if stride == 1 else y, made
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model(b.add("Gemm", x, b.normal(classes, given, scale=0.1), b.normal(classes), transB=1))


def mobile_v2(batch, image, width, blocks, classes):
    """MobileNetV2's inverted bottlenecks."""
    b = Builder()

    def clipped(x):
        return b.add("Clip", x, b.constant(numpy.float32(0)), b.constant(numpy.float32(6)))

    x, given = clipped(plain_conv(b, b.input("image", "f4", [batch, 3, image, image]), 3, width, 3, 2)), width
    for block in range(blocks):
        stride, made = (2, 2 * given) if block % 2 else (1, given)
        y = clipped(plain_conv(b, clipped(plain_conv(b, x, given, 6 * given)), 6 * given, 6 * given, 3, stride, 6 * given))
        y = plain_conv(b, y, 6 * given, made)
        x, given = b.add("Add", x, y) if stride == 1 else y, made
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model(b.add("Gemm", x, b.normal(classes, given, scale=0.1), b.normal(classes), transB=1))


def convnext(batch, image, width, blocks, classes):
    """ConvNeXt's: a depthwise 7x7, and a norm and two layers with the channels last."""
    b, side = Builder(), image // 4
    pixels = b.input("image", "f4", [batch, 3, image, image])
    x = b.add("Conv", pixels, b.normal(width, 3, 4, 4, scale=0.2), b.normal(width), kernel_shape=[4, 4], strides=[4, 4])
    x = b.add("Transpose", layer_norm(b, b.add("Transpose", x, perm=[0, 2, 3, 1]), width), perm=[0, 3, 1, 2])
    for _ in range(blocks):
        y = b.add("Transpose", plain_conv(b, x, width, width, 7, 1, width), perm=[0, 2, 3, 1])
        y = b.add("Mul", feed_forward(b, layer_norm(b, y, width), width), b.normal(width))
        x = b.add("Add", b.add("Transpose", y, perm=[0, 3, 1, 2]), x)
    means = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model(b.linear(layer_norm(b, means, width), width, classes))


def dense(batch, image, width, growth, layers, classes):
    """DenseNet's: norms before convolutions, of all that was made so far."""
    b = Builder()

    def norm(x, channels):
        return b.add("Relu", b.add("BatchNormalization", x, b.positive(channels), b.normal(channels), b.normal(channels), b.positive(channels)))

    x, given = plain_conv(b, b.input("image", "f4", [batch, 3, image, image]), 3, width, 3, 2), width
    for _ in range(layers):
        y = plain_conv(b, norm(x, given), given, 4 * growth, bias=False)
        y = plain_conv(b, norm(y, 4 * growth), 4 * growth, growth, 3, bias=False)
        x, given = b.add("Concat", x, y, axis=1), given + growth
    x = plain_conv(b, norm(x, given), given, given // 2, bias=False)
    x = b.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("Flatten", b.add("GlobalAveragePool", norm(x, given // 2)))
    return b.model(b.add("Gemm", x, b.normal(classes, given // 2, scale=0.1), b.normal(classes), transB=1))


def resnet50(batch=1, image=224, widths=(64, 128, 256, 512), depths=(3, 4, 6, 3), classes=1000):
    """100 MB of weights, with batch norms as they are trained."""
    b = Builder()

    def conv(x, given, made, window, stride, relu=True):
        filters = b.normal(made, given, window, window, scale=math.sqrt(2 / (given * window * window)))
        pads = [window // 2] * 4
        x = b.add("Conv", x, filters, kernel_shape=[window, window], strides=[stride, stride], pads=pads)
        x = b.add("BatchNormalization", x, b.positive(made), b.normal(made), b.normal(made), b.positive(made))
        return b.add("Relu", x) if relu else x

    x, given = conv(b.input("image", "f4", [batch, 3, image, image]), 3, widths[0], 7, 2), widths[0]
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, (width, depth) in enumerate(zip(widths, depths)):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            y = conv(conv(conv(x, given, width, 1, 1), width, width, 3, stride), width, 4 * width, 1, 1, relu=False)
            if not block:
                x = conv(x, given, 4 * width, 1, stride, relu=False)
            x, given = b.add("Relu", b.add("Add", y, x)), 4 * width
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model(b.add("Gemm", x, b.normal(classes, given, scale=0.02), b.normal(classes), transB=1))
