"""Nodes that contradict themselves or what they read: run_onnx_hostile.py imports each alone."""
from onnx import helper


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


BAD_NODES = [   # of inputs x[2, 3], p[1, 4, 8, 8], k[5, 4, 3, 3]; what they lack is said with the operator's name
    node("Transpose", ["x"], ["y"], perm=[0, 0]), node("Transpose", ["x"], ["y"], perm=[0, 2]), node("Transpose", ["x"], ["y"], perm=[0]),
    node("Transpose", ["x"], ["y"], perm=1.5), node("Softmax", ["x"], ["y"], axis=2), node("Softmax", ["x"], ["y"], axis=-3),
    node("Softmax", ["x"], ["y"], axis=1 << 40), node("Concat", ["x", "p"], ["y"], axis=0), node("Concat", ["x"], ["y"]),
    node("Concat", ["x", "x"], ["y"], axis=7), node("MatMul", ["x", "x"], ["y"]), node("Add", ["x", "p"], ["y"]),
    node("Conv", ["p", "k"], ["y"], strides=[0, 1]), node("Conv", ["p", "k"], ["y"], strides=[-1, 1]), node("Conv", ["p", "k"], ["y"], strides=[1]),
    node("Conv", ["p", "k"], ["y"], dilations=[0, 0]), node("Conv", ["p", "k"], ["y"], dilations=[1 << 40, 1]),
    node("Conv", ["p", "k"], ["y"], kernel_shape=[5, 5]), node("Conv", ["p", "k"], ["y"], group=0), node("Conv", ["p", "k"], ["y"], group=3),
    node("Conv", ["p", "k"], ["y"], group=-1), node("Conv", ["p", "k"], ["y"], pads=[1 << 62, 0, 1 << 62, 0]),
    node("Conv", ["p", "k"], ["y"], pads=[1, 1]), node("Conv", ["p", "k"], ["y"], auto_pad="SIDEWAYS"), node("Conv", ["x", "k"], ["y"]),
    node("Conv", ["p", "x"], ["y"]), node("MaxPool", ["p"], ["y"]), node("MaxPool", ["p"], ["y"], kernel_shape=[0, 2]),
    node("MaxPool", ["p"], ["y"], kernel_shape=[9, 9]), node("MaxPool", ["p"], ["y"], kernel_shape=[2]),
    node("AveragePool", ["p"], ["y"], kernel_shape=[1 << 40, 1 << 40]), node("Flatten", ["x"], ["y"], axis=9),
    node("Reshape", ["x"], ["y"]), node("Gemm", ["x", "x"], ["y"]), node("Gemm", ["p", "x"], ["y"]), node("Gather", ["x", "x"], ["y"]),
    node("BatchNormalization", ["p", "x", "x", "x", "x"], ["y"]), node("LayerNormalization", ["x", "p"], ["y"], axis=5),
    node("Cast", ["x"], ["y"], to=8), node("Cast", ["x"], ["y"], to=99), node("Cast", ["x"], ["y"]), node("And", ["x", "x"], ["y"]),
    node("Where", ["x", "x", "x"], ["y"]), node("ReduceSum", ["x", "x"], ["y"]), node("ReduceMean", ["x"], ["y"], axes=[0, 5]),
    node("Unsqueeze", ["x", "x"], ["y"]), node("DepthToSpace", ["p"], ["y"], blocksize=3), node("DepthToSpace", ["p"], ["y"], blocksize=0),
    node("SpaceToDepth", ["p"], ["y"], blocksize=-2), node("Einsum", ["x", "x"], ["y"], equation="ij,jk->ik"),
    node("Einsum", ["x"], ["y"], equation="i" * 100000), node("Einsum", ["x"], ["y"], equation="ij->zz"), node("Einsum", ["x"], ["y"], equation=""),
    node("LRN", ["p"], ["y"], size=-1), node("LRN", ["p"], ["y"], size=1 << 40), node("Split", ["x"], ["y", "b", "c"], axis=0),
    node("Constant", [], ["y"]), node("ConstantOfShape", ["x"], ["y"]), node("If", ["x"], ["y"]), node("Loop", ["x"], ["y"]),
]

BAD_INTS = [   # an operator, a vector of integers that is its second input
    ("Reshape", [-1, -1]), ("Reshape", [4]), ("Reshape", [-2, 3]), ("Reshape", [0, 0, 0]), ("Reshape", [1 << 62, 1 << 62]), ("Reshape", [5, -1]),
    ("Expand", [3, 3]), ("Expand", [-1]), ("Expand", [1 << 41, 1, 1]), ("Tile", [1]), ("Tile", [-1, 1]), ("Tile", [1 << 40, 1 << 40]),
    ("Pad", [1, 1]), ("Pad", [-3, 0, 0, 0]), ("Pad", [1 << 62, 0, 1 << 62, 0]), ("Squeeze", [0]), ("Squeeze", [5]), ("Unsqueeze", [9]),
    ("Unsqueeze", [0, 0]), ("Unsqueeze", list(range(7))), ("ReduceSum", [2]), ("ReduceSum", [-(1 << 63)]),
]
