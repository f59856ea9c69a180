"""The operators that Roller was measured with, as programs: a line of JSON each, like those of bench/draw.py.

    python3 bench/operators.py
"""
import json
import math
import os
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))


def place(position, along, stride, pad):
    step = f"{stride}*{position}" if stride > 1 else position
    return f"{step} + {along}" + (f" - {pad}" if pad else "")


def window(kind, sizes):
    n, c, f, height, width, taps, stride, pad, down, along = sizes
    channel = {"convolution": "k", "depthwise": "f", "pool": "f"}[kind]
    image = f"x[n, {channel}, {place('h', 'r', stride, pad)}, {place('v', 's', stride, pad)}]"
    image = f"pad({image}, 0)" if pad else image
    value = {"convolution": f"sum[k, r, s]({image} * w[f, k, r, s])", "depthwise": f"sum[r, s]({image} * w[f, r, s])",
             "pool": f"sum[r:{taps}, s:{taps}]({image}) / {taps * taps}"}[kind]
    shape = {"convolution": f"{f}, {c}, ", "depthwise": f"{f}, ", "pool": None}[kind]
    weights = f"input w[{shape}{taps}, {taps}] : f32\n" if shape else ""
    return f"input x[{n}, {c}, {height}, {width}] : f32\n{weights}y[n, f, h:{down}, v:{along}] = {value}\noutput y : f32\n"


def product(sizes):
    m, n, k = sizes
    return f"input A[{m}, {k}] : f32\ninput B[{k}, {n}] : f32\nC[i, j] = sum[k](A[i, k] * B[k, j])\noutput C : f32\n"


def relu(shape):
    return f"input x[{math.prod(shape)}] : f32\ny[i] = relu(x[i])\noutput y : f32\n"


def reduction(shape, axes):
    names = "abcd"[:len(shape)]
    kept = ", ".join(name for d, name in enumerate(names) if d not in axes)
    return (f"input x[{', '.join(map(str, shape))}] : f32\n"
            f"y[{kept}] = sum[{', '.join(names[d] for d in axes)}](x[{', '.join(names)}])\noutput y : f32\n")


def text_of(kind, sizes, axes=()):
    if kind == "matmul":
        return product(sizes)
    if kind == "relu":
        return relu(sizes)
    return reduction(sizes, axes) if kind == "reduce" else window(kind, sizes)


def load():
    with open(os.path.join(BENCH, "operators.json")) as file:
        operators = json.load(file)["operators"]
    return [{"set": "roller", "name": name, "kind": kind, "text": text_of(kind, *sizes)} for name, kind, *sizes in operators]


if __name__ == "__main__":
    for row in load():
        print(json.dumps(row))
    sys.exit(0)
