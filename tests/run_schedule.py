#!/usr/bin/env python3
"""A schedule cannot lie: what it says of the first and the last block is what the CPU interpreter counts, for every kind of kernel
at even and ragged sizes; and it would be seen if any item of it were dropped or stood there twice.

What is not compared stands in differential/schedule_gaps.txt, which may only get shorter: figures that nobody states, and the
items of which neither loss nor repetition is found on any kernel of their family.

    python3 tests/run_schedule.py --rollerc build/rollerc [--only FAMILY/VARIANT] [--update]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common
from run_mutants import small_device

SOFTMAX = """m[i] = max[j](x[i, j])
e[i, j] = exp(x[i, j] - m[i])
s[i] = sum[j](e[i, j])
y[i, j] = e[i, j] / s[i]
output y : {type}
"""
LAYER_NORM = """input g[{n}] : f32
input b[{n}] : f32
mean[i] = sum[j](x[i, j]) / {n}
var[i] = sum[j](sq(x[i, j] - mean[i])) / {n}
y[i, j] = (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * g[j] + b[j]
output y : f16
output mean : f32
"""
COLUMN_NORM = """mean[c] = sum[r](x[r, c]) / {n}
var[c] = sum[r](sq(x[r, c] - mean[c])) / {n}
y[r, c] = (x[r, c] - mean[c]) * rsqrt(var[c] + 1e-5)
output y : f32
output mean : f32
"""
CHANNEL_NORM = """mean[c] = sum[n, h, w](x[n, c, h, w]) / {n}
var[c] = sum[n, h, w](sq(x[n, c, h, w] - mean[c])) / {n}
y[n, c, h, w] = relu((x[n, c, h, w] - mean[c]) * rsqrt(var[c] + 1e-5))
output y : f32
output mean : f32
"""
PHASES = """input d[3, 99, 72] : f16
input w[72, 5, 128] : f16
y[n, h:99, a:3, c] = sum[p:2, f](pad(d[n, h + p, f], 0) * pad(w[f, a - 3*p + 2, c], 0))
output y : f16
"""
# Whose launches wait at their ends: of kernels in one launcher each has its own list.
APART = """input x[64, 33] : f32
input z[512] : f32
y[i] = sum[j](x[i, j])
v[i] = exp(z[i])
output y : f32
output v : f32
"""
def planes(outputs, spread="h + r - 1, v + s - 1"):
    """Pixels are columns of the product; of so many a plane has 8 neighbours, 4 or one in an access."""
    return (f"input x[3, 10, 14, 72] : f16\ninput w[136, 3, 3, 72] : f16\ninput z[136] : f32\nC[n, f, {outputs}] = sum[r, s, c]"
            f"(pad(x[n, {spread}, c], 0) * w[f, r, s, c])\nD[n, f, h, v] = max(C[n, f, h, v] + z[f], 0)\noutput D : f16\n")


LINES_OF_PLANES = """input x[3, 136, 9, 24] : bf16
input w[136, 200] : bf16
y[n, f, h, v] = sum[c](x[n, c, h, v] * w[c, f])
output y : bf16
"""
COLUMN_NORMS = ["rowwise/warp", "rowwise/block", "channelwise/column", "channelwise/elements", "elementwise/scalar", "elementwise/x2", "elementwise/x4",
                "reduce/column", "reduce/column-x4"]   # not loop nests, of whose quotients no arithmetic is stated
MATMUL = ["matmul/tiled", "matmul/three stages"]
GEMM = ["gemm/two stages", "gemm/three stages", "gemm/four stages", "gemm/cluster"]
BULK = ["bulk/four stages", "bulk/six stages", "bulk/eight stages", "bulk/cluster"]
PRODUCTS = [*GEMM, *BULK]
MULTICAST = ["bulk/multicast"]   # where tiles fill the device, a small one
PERSISTENT = [*BULK[:3], *MULTICAST]   # where there are more tiles than SMs: on the same one
PING_PONG = ["bulk/multicast, ping-pong"]
STEPS = ["channelwise/totals", "channelwise/elements"]   # where the device is small, a block takes several
COLUMNS, ROWS = (["skinny/column", "skinny/column-cluster"], ["skinny/row", "skinny/row-cluster"])
LINES, CHANNELS = (["depthwise/lines"], ["depthwise/channels"])
BESIDE, CHANNELS_BESIDE = (["depthwise/lines beside"], ["depthwise/channels beside"])
STRIPS, STRIPS_OF_CHANNELS = (["strip/lines"], ["strip/channels"])
FILTER_STRIPS, FILTER_STRIPS_OF_CHANNELS = (["filter_strip/lines"], ["filter_strip/channels"])
TOEPLITZ = [f"toeplitz/{kind}" for kind in ("16 images", "8 images", "4 images", "2 images", "1 image")]
FILTER_GROUPS, FILTER_WIDE = ["filter_groups/taps"], ["filter_wide/taps"]
NARROW_ROWS, NARROW_GROUPS = (["narrow/rows", "narrow/rows x2"], ["narrow/groups", "narrow/groups x2"])
PAIR = ["pairs/32 by 4", "pairs/16 by 4", "pairs/16 by 2"]
ATTENTION = [f"attention/{rows} rows, {columns} columns" for rows, columns in ((16, 32), (16, 64), (16, 128), (32, 32), (32, 64))]
FEW_ROWS = ["attention/4 warps", "attention/clusters of 4 warps"]
ATTENTION_BULK = [f"attention_bulk/{groups} groups, {columns} columns"
                  for groups, columns in ((2, 64), (2, 128), (2, 192), (3, 64), (3, 128))]
SPLITS = [f"attention_bulk/{splits} splits, 64 columns" for splits in (2, 3, 4)]
LARGE = ["rowwise/block", "rowwise/cluster", "rowwise/memory", "rowwise/shared", "rowwise/shared-cluster",
         "rowwise/pairs-cluster", "rowwise/ahead"]


def softmax(rows, columns, dtype):
    return f"input x[{rows}, {columns}] : {dtype}\n" + SOFTMAX.format(type=dtype)


def layer_norm(rows, columns):
    return f"input x[{rows}, {columns}] : f16\n" + LAYER_NORM.format(n=columns)


def columns(rows, width):
    return f"input x[{rows}, {width}] : f32\n" + COLUMN_NORM.format(n=rows)


def channels(shape, points):
    return f"input x[{shape}] : f32\n" + CHANNEL_NORM.format(n=points)


def permute(shape, out, index, dtype="f32"):
    return f"input x[{shape}] : {dtype}\ny[{out}] = x[{index}]\noutput y : {dtype}\n"


def pool(height, width, down, along, index):
    return (f"input x[3, 5, {height}, {width}] : f32\n"
            f"y[n, c, h:{down}, v:{along}] = sum[r:3, s:3](pad(x[n, c, {index}], 0))\noutput y : f32\n")


def depthwise(x, w, y, image, tap, dtype="f32"):
    """The shapes of the image and the filter, what is defined, and of which element and tap."""
    return (f"input x[{x}] : {dtype}\ninput w[{w}] : {dtype}\ny[{y}] = sum[r, s](pad(x[{image}], 0) * w[{tap}])\n"
            f"output y : {dtype}\n")


def few_channels(x, w, y, image, tap, dtype="f16"):
    return depthwise(x, w, y, image, tap, dtype).replace("sum[r, s]", "sum[r, s, c]")


def beside(image, tap, filters, channels_last=False, dtype="f32"):
    """Filters over the same image, each of so many taps, padding and dilation down and along."""
    text, sums = f"input x[{image}] : {dtype}\n", []
    for i, (down, along) in enumerate(filters):
        index = [f"{axis} + {d}*{t} - {p}" for axis, t, (_, p, d) in (("h", "r", down), ("v", "s", along))]
        taps = f"{down[0]}, {along[0]}, 40" if channels_last else f"7, {down[0]}, {along[0]}"
        at, y = ([*index, "c"], "n, h:21, v:24, c") if channels_last else (["c", *index], "n, c, h:21, v:24")
        text += f"input w{i}[{taps}] : {dtype}\n"
        text += f"t{i}[{y}] = sum[r, s](pad(x[n, {', '.join(at)}], 0) * w{i}[{tap}])\n"
        sums.append(f"t{i}[n, h, v, c]" if channels_last else f"t{i}[n, c, h, v]")
    return text + f"y{sums[0][2:]} = {' * '.join(sums)}\noutput y : {dtype}\n"


def filters(images, side, taps, turned=False, dtype="f16"):
    before = f"+ {taps // 2}" if turned else f"- {taps // 2}"
    step = "-" if turned else "+"
    return (f"input x[{images}, 3, {side}, {side}] : {dtype}\ninput w[3, {taps}, {taps}] : {dtype}\ny[n, c, h:{side}, v:{side}] = "
            f"sum[r, s](pad(x[n, c, h {step} r {before}, v {step} s {before}], 0) * w[c, r, s])\noutput y : {dtype}\n")


def product(m, n, k, dtype="f32", turned=False):
    a = "k, m" if turned else "m, k"
    left = f"{k}, {m}" if turned else f"{m}, {k}"
    return (f"input A[{left}] : {dtype}\ninput B[{k}, {n}] : {dtype}\nC[m, n] = sum[k](A[{a}] * B[k, n])\n"
            f"D[m, n] = max(C[m, n], 0)\noutput D : {dtype}\n")


def product_of_part(m, n, k, dtype, along_k=False):
    """A factor begins within a tensor."""
    b = f"{n}, {k}" if along_k else f"{k}, {n}"
    return (f"input A[{m}, {k + 64}] : {dtype}\ninput B[{b}] : {dtype}\n"
            f"C[m, n] = sum[k:{k}](A[m, k + 64] * B[{'n, k' if along_k else 'k, n'}])\noutput C : {dtype}\n")


def with_residual(text, index="m, n", shape=None):
    """What `product` makes, and of which an epilogue reads a bias, a tensor of the output's shape, and an element a row."""
    rows, columns = shape
    dtype = text.split("output D : ")[1].split()[0]
    more = f"input r[{rows}, {columns}] : {dtype}\ninput g[{columns}] : f32\ninput s[{rows}] : {dtype}\n"
    return more + text.replace(f"max(C[{index}], 0)", f"max(C[{index}] * g[n] + r[{index}], 0) + s[m]")


def gated(m, n, k, dtype):
    """Two products of one factor, of which an element each makes a result."""
    return (f"input A[{m}, {k}] : {dtype}\ninput B[{n}, {k}] : {dtype}\ninput V[{n}, {k}] : {dtype}\ninput r[{m}, {n}] : {dtype}\n"
            "C[m, n] = sum[k](A[m, k] * B[n, k])\nD[m, n] = sum[k](A[m, k] * V[n, k])\n"
            f"E[m, n] = max(C[m, n], 0) * D[m, n] + r[m, n]\noutput E : {dtype}\n")


def three_products(m, n, k, dtype):
    """Of one factor, each with an output of its own."""
    text = f"input A[{m}, {k}] : {dtype}\ninput b[{n}] : {dtype}\n"
    for name in "CDE":
        text += f"input w{name}[{k}, {n}] : {dtype}\n{name}[m, n] : {dtype} = sum[k](A[m, k] * w{name}[k, n])\n"
    return text + f"F[m, n] = max(D[m, n], b[n])\noutput C : {dtype}\noutput F : {dtype}\noutput E : {dtype}\n"


def convolution(image, filters, outputs, index, taps=("q", "r", "s"), dtype="f16", summed="", last=False):
    """Channels last: the shape of the image, how many filters of what shape, the outputs, which element. `last`: filters are."""
    axes, tap = [output.split(":")[0] for output in outputs.split(", ")], ", ".join(taps[1 - filters.count(","):])
    shape, order = filters.split(", "), ["f", *tap.split(", "), "c"]
    if last:
        shape, order = shape[1:] + shape[:1], order[1:] + order[:1]
    return (f"input x[{image}] : {dtype}\ninput w[{', '.join(shape)}] : {dtype}\nC[{outputs}, f] = sum[{summed or tap + ', c'}]"
            f"(pad(x[{index}, c], 0) * w[{', '.join(order)}])\nD[{', '.join(axes)}, f] = max(C[{', '.join(axes)}, f], 0)\noutput D : {dtype}\n")


def filter_gradient(image, gradient, filters, index, dtype="f16", last=False):
    """Channels last. `last`: the filters are innermost."""
    outputs, taps = "n, h, v" if gradient.count(",") == 3 else "n, v", filters.split(", ")
    names = ["f", *"rs"[3 - len(taps):], "c"] if not last else [*"rs"[3 - len(taps):], "c", "f"]
    shape = [f"{name}:{tap}" if name in "rs" else name for name, tap in zip(names, ["", *taps[1:], ""] if not last else taps[1:] + ["", ""])]
    return (f"input x[{image}] : {dtype}\ninput d[{gradient}] : {dtype}\nC[{', '.join(shape)}] = sum[{outputs}]"
            f"(d[{outputs}, f] * pad(x[{index}, c], 0))\nD[{', '.join(names)}] = max(C[{', '.join(names)}], 0)\noutput D : {dtype}\n")


def products(batch, m, n, k, dtype="f32"):
    return (f"input A[{batch}, {m}, {k}] : {dtype}\ninput B[{batch}, {k}, {n}] : {dtype}\n"
            f"C[b, m, n] = sum[k](A[b, m, k] * B[b, k, n])\noutput C : {dtype}\n")


def attention(batch, rows, columns, depth, width, dtype="f16", more="", typed=True, beside=None):
    return (f"input q[{batch}, {rows}, {depth}] : {dtype}\ninput k[{batch}, {columns}, {depth}] : {dtype}\n"
            f"input v[{batch}, {columns}, {width}] : {dtype}\n{f'input a[{rows}, {columns}] : {beside}' if beside else ''}\n"
            "t[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])\n"
            f"s[b, i, j] = {'select(a[i, j], t[b, i, j], -800)' if beside == 'b1' else 't[b, i, j]'} * 0.125"
            f"{' + a[i, j]' if beside and beside != 'b1' else ''}\n"
            f"m[b, i] = max[j](s[b, i, j])\ne[b, i, j] = exp(s[b, i, j] - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n"
            f"p[b, i, j]{f' : {dtype}' if typed else ''} = e[b, i, j] / z[b, i]\ny[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])\noutput y : {dtype}\n" + more)


def product_rows(rows, columns, depth, dtype="f16", batch="", norms=False):
    """Of a product only its rows' log-sums are stored, by tiles of 64 columns and more."""
    size, at = (f"{batch}, ", "b, ") if batch else ("", "")
    return (f"input x[{size}{rows}, {depth}] : {dtype}\ninput w[{size}{columns}, {depth}] : {dtype}\n"
            + (f"input n[{columns}] : f32\n" if norms else "") +
            f"l[{at}i, j] = sum[d](x[{at}i, d] * w[{at}j, d]) * 0.25{' - n[j]' if norms else ''}\nm[{at}i] = max[j](l[{at}i, j])\n"
            f"z[{at}i] = sum[j](exp(l[{at}i, j] - m[{at}i]))\noutput z\noutput m\n")


def skinny(m, n, k, dtype="f32", along_k=False):
    large = f"{n}, {k}" if along_k else f"{k}, {n}"
    return (f"input A[{m}, {k}] : {dtype}\ninput B[{large}] : {dtype}\n"
            f"C[m, n] = sum[k](A[m, k] * B[{'n, k' if along_k else 'k, n'}])\noutput C : {dtype}\n")


def total(rows, width, axis, dtype):
    left = "j" if axis == "i" else "i"
    return f"input x[{rows}, {width}] : {dtype}\ny[{left}] = sum[{axis}](x[i, j])\noutput y : f32\n"


def filter_gradients(shape, taps, pad, dtype="f32"):
    n, c, h, v = shape
    tensor = f"[{n}, {c}, {h}, {v}] : {dtype}"
    return (f"input x{tensor}\ninput d{tensor}\ndw[c, r:{taps}, s:{taps}] = sum[n, h, v](d[n, c, h, v] * "
            f"pad(x[n, c, h + r - {pad}, v + s - {pad}], 0))\noutput dw : f32\n")


def filter_gradients_last(shape, taps, pad, dtype="f32", stride=1):
    """Channels are neighbours; the image is `stride` times as large as d."""
    n, h, v, c = shape
    return (f"input x[{n}, {h * stride}, {v * stride}, {c}] : {dtype}\ninput d[{n}, {h}, {v}, {c}] : {dtype}\n"
            f"dw[r:{taps}, s:{taps}, c] = sum[n, h, v](d[n, h, v, c] * "
            f"pad(x[n, {stride} * h + r - {pad}, {stride} * v + s - {pad}, c], 0))\noutput dw : f32\n")


def filter_gradients_of_groups(x, d, taps, index, dtype="f16"):
    return (f"input x[{x}] : {dtype}\ninput d[{d}] : {dtype}\n"
            f"dw[g, f, {taps}, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, {index}, g, c], 0))\noutput dw : f32\n")


def with_map(text, index, function="exp"):
    """The same, and a function of each result."""
    return text.replace("y[", "t[").replace("output y", f"y[{index}] = {function}(t[{index}])\noutput y")


def squares(shape, kept, summed):
    """Sums of squares, by which all is multiplied: nothing is divided, and each product is counted."""
    index = ", ".join(i for i in "abcd" if i in kept + summed)
    return (f"input x[{shape}] : f32\nm[{kept}] = sum[{', '.join(summed)}](sq(x[{index}]))\n"
            f"y[{index}] = x[{index}] * m[{kept}]\noutput y : f32\n")


def points(count, dtype, bits):
    mask = "b[i] = x[i] > 0\noutput b : b1\n" if bits else ""
    return f"input x[{count}] : {dtype}\ny[i] = max(x[i], 0)\n{mask}output y : {dtype}\n"


# Of each program the kinds that it is for; none: all that it can be.
PROGRAMS = [
    (softmax(96, 1024, "f32"), []), (softmax(37, 1001, "f32"), []), (softmax(64, 33, "f16"), ["rowwise/warp"]),
    (softmax(6, 32768, "f16"), LARGE), (softmax(5, 20001, "f16"), LARGE),
    (layer_norm(8, 32768), LARGE), (layer_norm(33, 200), ["rowwise/warp"]),
    (columns(512, 64), COLUMN_NORMS), (columns(100, 64), []),
    (columns(1000, 96), ["rowwise/warp", "rowwise/block", "channelwise/totals", "channelwise/elements", "window/windows"]),
    (columns(60000, 32), ["rowwise/cluster", "rowwise/memory", "rowwise/warp", "rowwise/block", "channelwise/totals"]),
    (channels("4, 16, 32, 32", 4096), ["rowwise/shared", "rowwise/shared-cluster"]),
    (channels("3, 5, 8, 20", 480), ["rowwise/shared", "rowwise/shared-cluster"]),
    (permute("256, 512", "j, i", "i, j"), []), (permute("200, 3, 300", "j, k, i", "i, k, j", "f16"), []),
    (permute("500, 333", "j, i", "i, j", "f16"), []),
    (pool(32, 32, 15, 15, "2*h + r, 2*v + s"), []), (pool(33, 37, 33, 37, "h + r - 1, v + s - 1"), []),
    (depthwise("9, 20, 32, 32", "20, 13, 13", "n, c, h:32, v:32", "n, c, h + r - 6, v + s - 6", "c, r, s"), LINES),
    (depthwise("5, 7, 21, 40", "7, 9, 5", "n, c, h:21, v:40", "n, c, h - r + 4, v - s + 2", "c, r, s", "f16"), LINES),
    (depthwise("5, 7, 21, 37", "7, 9, 5", "n, c, h:11, v:19", "n, c, 2*h + r - 4, 2*v + s - 2", "c, r, s"), LINES),
    (depthwise("5, 14, 20, 40", "9, 9, 40", "n, h:14, v:20, c", "n, h + r - 4, v + s - 4, c", "r, s, c"), CHANNELS),
    (depthwise("3, 14, 20, 17", "9, 9, 17", "n, h:14, v:20, c", "n, h + r - 4, v + s - 4, c", "r, s, c"), CHANNELS),
    (beside("5, 7, 21, 24", "c, r, s", [((9, 4, 1), (7, 3, 1)), ((3, 1, 1), (4, 2, 1))]), BESIDE),
    (beside("9, 7, 21, 24", "c, r, s", [((3, 3, 3), (3, 1, 1)), ((4, 1, 1), (5, 2, 1)), ((2, 0, 2), (9, 4, 1))],
            dtype="f16"), BESIDE),
    (beside("5, 21, 24, 40", "r, s, c", [((5, 2, 1), (5, 2, 1)), ((3, 1, 1), (7, 3, 1))], True),
     [*CHANNELS_BESIDE, "loopnest/generic"]),
    (depthwise("3, 20, 32, 32", "20, 5, 5", "n, c, h:32, v:32", "n, c, h + r - 2, v + s - 2", "c, r, s"), STRIPS),
    (depthwise("5, 7, 21, 37", "7, 3, 5", "n, c, h:11, v:19", "n, c, 2*h + r - 2, 2*v + s - 2", "c, r, s", "f16"), STRIPS),
    (depthwise("5, 14, 20, 40", "3, 3, 40", "n, h:14, v:20, c", "n, h + r - 1, v + s - 1, c", "r, s, c", "f16"), STRIPS_OF_CHANNELS),
    (depthwise("5, 14, 20, 40", "5, 5, 40", "n, h:14, v:20, c", "n, h + r - 2, v + s - 2, c", "r, s, c", "f16"), PAIR),
    (depthwise("3, 25, 37, 24", "7, 4, 24", "n, h:23, v:39, c", "n, h + r - 3, v + s - 3, c", "r, s, c", "bf16"), PAIR),
    (depthwise("1, 9, 70, 32", "9, 9, 32", "n, h:9, v:70, c", "n, h - r + 4, v - s + 4, c", "r, s, c", "f16"), PAIR),
    (few_channels("3, 20, 24, 3", "40, 7, 7, 3", "n, h:10, v:12, f", "n, 2*h + r - 3, 2*v + s - 3, c", "f, r, s, c"), NARROW_ROWS),
    (few_channels("2, 9, 11, 5", "9, 3, 2, 5", "n, h:9, v:11, f", "n, h + r - 1, v + s - 1, c", "f, r, s, c"), NARROW_ROWS),
    (few_channels("2, 12, 9, 5, 8", "5, 16, 3, 3, 8", "n, h:12, v:9, g, f", "n, h + r - 1, v + s - 1, g, c", "g, f, r, s, c"), NARROW_GROUPS),
    (few_channels("2, 12, 9, 12, 2", "12, 2, 3, 3, 2", "n, h:12, v:9, g, f", "n, h + r - 1, v + s - 1, g, c", "g, f, r, s, c"), NARROW_GROUPS),
    (few_channels("2, 5, 8, 12, 12", "5, 8, 8, 3, 3", "n, g, f, h:12, v:12", "n, g, c, h + r - 1, v + s - 1", "g, f, c, r, s"), NARROW_GROUPS),
    (few_channels("2, 8, 4, 12, 14", "8, 4, 4, 3, 3", "n, g, f, h:6, v:7", "n, g, c, 2*h + r - 1, 2*v + s - 1", "g, f, c, r, s"), NARROW_GROUPS),
    (with_map(few_channels("2, 12, 9, 12, 4", "12, 8, 3, 3, 4", "n, h:12, v:9, g, f", "n, h + r - 1, v + s - 1, g, c", "g, f, r, s, c"), "n, h, v, g, f"),
     NARROW_GROUPS),
    (depthwise("3, 14, 18, 17", "5, 5, 17", "n, h:14, v:18, c", "n, h + r - 2, v + s - 2, c", "r, s, c"), STRIPS_OF_CHANNELS),
    (product(256, 256, 128), MATMUL), (product(100, 90, 70), ["matmul/tiled"]), (product(200, 328, 134), MATMUL),
    (products(64, 8, 8, 8), ["matmul/several products"]), (products(37, 7, 8, 13), ["matmul/several products"]),
    (products(64, 16, 16, 16, "f16"), ["gemm/several products"]), (products(37, 14, 16, 9, "i8"), ["gemm/several products"]),
    (product(200, 328, 140, turned=True), MATMUL), (product(256, 512, 256, "i32", True), MATMUL),
    (product(256, 512, 512, "f16"), PRODUCTS), (product(200, 328, 264, "bf16"), PRODUCTS),
    (skinny(200, 331, 264, "bf16", True), BULK), (skinny(72, 131, 72, "f16", True), BULK),
    (product(72, 104, 1000, "f16", True), PRODUCTS), (product(100, 90, 70, "f16"), PRODUCTS),
    (product(256, 512, 512, "i8"), GEMM), (product(200, 328, 264, "u8", True), GEMM), (product(100, 90, 70, "i8"), GEMM),
    (skinny(256, 512, 512, "i8", True), BULK), (skinny(200, 328, 144, "u8", True), BULK),
    (product_of_part(200, 328, 160, "u8", True), BULK),
    (product(256, 512, 256, "f64"), GEMM), (product(200, 328, 136, "f64", True), GEMM), (product(100, 91, 77, "f64"), GEMM),
    (product(256, 512, 512, "f16"), MULTICAST), (product(256, 512, 264, "bf16"), MULTICAST),
    (product(200, 328, 264, "bf16"), MULTICAST), (product(20, 104, 520, "f16"), ["bulk/cluster", "bulk/eight stages"]),
    (product(256, 512, 200, "f16", True), MULTICAST), (skinny(256, 512, 512, "i8", True), MULTICAST), (product_of_part(200, 328, 256, "bf16"), MULTICAST),
    (product_rows(256, 512, 256), [*GEMM[:3], *BULK[:3], *MULTICAST]),
    (product_rows(200, 333, 136, "bf16", norms=True), [*GEMM[:3], *BULK[:3], *MULTICAST]), (product_rows(130, 264, 72, batch=3), PERSISTENT),
    (filters(9, 32, 7), TOEPLITZ), (filters(17, 24, 31), TOEPLITZ), (filters(5, 72, 9, True, "bf16"), TOEPLITZ),
    (filters(3, 19, 5), TOEPLITZ), (filters(9, 32, 31, dtype="f32"), TOEPLITZ), (filters(5, 72, 9, True, "f32"), TOEPLITZ),
    (filters(3, 19, 5, dtype="f32"), TOEPLITZ),
    (skinny(4, 512, 1024), COLUMNS), (skinny(5, 333, 1001), COLUMNS), (skinny(16, 2048, 2048, "f16"), COLUMNS),
    (skinny(4, 128, 4096, along_k=True), ROWS), (skinny(5, 33, 1001, "f16", True), ROWS),
    (skinny(1, 300, 4096, "f16", True), ROWS), (skinny(15, 1000, 520, "bf16", True), ROWS),
    (total(300, 1024, "j", "f32"), []), (total(300, 1000, "j", "f16"), []), (total(70, 999, "j", "i8"), []),
    (total(64, 4096, "j", "i8"), []), (total(64, 1030, "j", "f16"), []),
    (total(1000, 200, "i", "f32"), []), (total(1000, 202, "i", "f32"), []), (total(999, 201, "i", "f32"), []),
    (attention(3, 256, 256, 64, 64), [*ATTENTION, *ATTENTION_BULK, *SPLITS]), (attention(2, 197, 131, 72, 40, "bf16"), [*ATTENTION, *ATTENTION_BULK, *SPLITS]),
    (attention(2, 130, 260, 128, 128, more="output m : f32\n"), [*ATTENTION, *ATTENTION_BULK, *SPLITS[:2]]),
    (attention(2, 100, 700, 64, 64), SPLITS),
    (attention(2, 197, 136, 64, 64, beside="f16"), [*ATTENTION_BULK[:4], SPLITS[0]]),
    (attention(1, 130, 260, 64, 64, "bf16", beside="f32"), [*ATTENTION_BULK[:4], SPLITS[0]]),
    (attention(2, 130, 288, 64, 64, beside="b1"), [*ATTENTION_BULK, SPLITS[0]]),
    (attention(2, 197, 136, 64, 64, beside="f32").replace("a[197, ", "a[").replace("a[i, ", "a["), [*ATTENTION_BULK[:4], SPLITS[0]]),
    (attention(2, 197, 131, 72, 40, typed=False), [*ATTENTION, *ATTENTION_BULK]),
    (attention(3, 256, 256, 64, 64, "bf16", typed=False), [*ATTENTION, *ATTENTION_BULK]),
    (attention(3, 3, 600, 64, 64), FEW_ROWS), (attention(2, 16, 771, 72, 40, "bf16", more="output m : f32\n"), FEW_ROWS),
    (attention(1, 11, 300, 128, 128, typed=False), FEW_ROWS), (attention(1, 40, 50, 26, 20), ATTENTION), (attention(1, 11, 130, 25, 30), FEW_ROWS[:1]),
    (filter_gradients((8, 3, 32, 32), 5, 2), ["filter_direct/taps", "filter_gemm/diagonals"]),
    (filter_gradients((5, 2, 20, 21), 9, 4), ["filter_direct/taps", "filter_gemm/diagonals"]),
    (filter_gradients((8, 3, 32, 32), 5, 2, "f16"), ["filter_direct/taps", "filter_gemm/diagonals"]),
    (filter_gradients((5, 2, 20, 21), 9, 4, "bf16"), ["filter_gemm/diagonals"]),
    (filter_gradients_last((8, 32, 32, 3), 5, 2), ["filter_direct/taps"]),
    (filter_gradients_last((5, 20, 21, 2), 9, 4, "f16", 2), ["filter_direct/taps"]),
    (filter_gradients((8, 3, 32, 32), 3, 1), FILTER_STRIPS), (filter_gradients((5, 2, 20, 24), 5, 2, "f16"), FILTER_STRIPS),
    (filter_gradients((3, 2, 20, 150), 3, 1), FILTER_STRIPS),
    (filter_gradients_last((8, 32, 32, 40), 3, 1), FILTER_STRIPS_OF_CHANNELS),
    (filter_gradients_last((5, 20, 21, 66), 5, 2, "f16", 2), FILTER_STRIPS_OF_CHANNELS),
    (filter_gradients_last((3, 6, 90, 40), 3, 1), FILTER_STRIPS_OF_CHANNELS),
    (filter_gradients_last((2, 5, 131, 66), 3, 1, "f16"), FILTER_STRIPS_OF_CHANNELS),
    (filter_gradients_of_groups("3, 12, 13, 4, 16", "3, 12, 13, 4, 8", "r:3, s:3", "h + r - 1, v + s - 1"), FILTER_GROUPS),
    (filter_gradients_of_groups("5, 42, 80, 3, 8", "5, 21, 40, 3, 24", "r:3, s:4", "2*h + r - 1, 2*v + s - 2", "bf16"), FILTER_GROUPS),
    (filter_gradients_of_groups("3, 6, 7, 2, 64", "3, 6, 7, 2, 64", "r:3, s:3", "h + r - 1, v + s - 1"), FILTER_GROUPS),
    (filter_gradients_of_groups("17, 32, 33, 4, 8", "17, 32, 33, 4, 8", "r:3, s:3", "h + r - 1, v + s - 1"), FILTER_GROUPS),
    (filter_gradients_of_groups("3, 4, 16, 12, 14", "3, 4, 8, 12, 14", "r:3, s:3", "h + r - 1, v + s - 1").replace("n, h, v, g, f", "n, g, f, h, v")
     .replace("n, h + r - 1, v + s - 1, g, c", "n, g, c, h + r - 1, v + s - 1"), FILTER_GROUPS),
    (filter_gradients_of_groups("3, 12, 13, 2, 128", "3, 12, 13, 2, 64", "r:3, s:3", "h + r - 1, v + s - 1"), FILTER_WIDE),
    (filter_gradients_of_groups("2, 42, 33, 2, 96", "2, 21, 32, 2, 72", "r:3, s:2", "2*h + r - 1, v + s", "bf16"), FILTER_WIDE),
    (filter_gradients_of_groups("4, 7, 6, 2, 64", "4, 7, 6, 2, 64", "r:3, s:3", "h + 2*r - 2, v + 2*s - 2").replace("r:3, s:3, c", "c, r:3, s:3"),
     FILTER_WIDE),
    (filter_gradients_of_groups("2, 12, 26, 2, 64", "2, 6, 13, 2, 64", "r:3, s:3", "2*h + r - 1, 2*v + s - 1"), FILTER_WIDE),
    (points(65536, "f16", False), []), (points(100001, "f16", True), []), (points(65536, "i8", False), []),
    (points(65536, "f32", True), []),
    (APART, ["elementwise/scalar", "elementwise/x2"]),
    (with_residual(product(256, 512, 128), shape=(256, 512)), MATMUL), (with_residual(product(200, 331, 134), shape=(200, 331)), MATMUL),
    (with_residual(product(256, 512, 512, "f16"), shape=(256, 512)), PRODUCTS),
    (with_residual(product(200, 328, 264, "bf16"), shape=(200, 328)), PRODUCTS),
    (with_residual(product(100, 90, 70, "f16"), shape=(100, 90)), PRODUCTS),
    (with_residual(product(200, 328, 264, "bf16"), shape=(200, 328)), MULTICAST),
    (with_residual(product(700, 968, 264, "bf16"), shape=(700, 968)), PERSISTENT),
    (with_residual(product(5, 333, 1001), shape=(5, 333)), ["skinny/column", "skinny/column-cluster"]),
    (gated(256, 512, 512, "f16"), BULK), (gated(200, 328, 264, "bf16"), [*BULK, *MULTICAST]), (three_products(200, 328, 264, "f16"), [*BULK[:2], "bulk/cluster"]),
    (gated(700, 968, 264, "f16"), PERSISTENT), (three_products(700, 968, 264, "bf16"), PERSISTENT[:3]),
    (product(700, 968, 264, "bf16"), PING_PONG), (with_residual(product(700, 968, 264, "bf16"), shape=(700, 968)), PING_PONG),
    (gated(700, 968, 264, "f16"), PING_PONG), (product(700, 973, 264, "f16").replace("B[264, 973]", "B[973, 264]").replace("B[k, n]", "B[n, k]"), PING_PONG),
    (with_residual(product(700, 973, 264, "bf16"), shape=(700, 973)).replace("B[264, 973]", "B[973, 264]").replace("B[k, n]", "B[n, k]"), PERSISTENT[:3]),
    (convolution("17, 34, 192", "520, 3, 192", "n, v:17", "n, 2*v + s - 1"), PERSISTENT[:3]),
    (product(700, 968, 264, "bf16"), PERSISTENT), (products(3, 130, 264, 72, "f16"), PERSISTENT),
    (convolution("3, 9, 13, 128", "200, 3, 3, 128", "n, h:9, v:13", "n, h + r - 1, v + s - 1"), BULK),
    (convolution("3, 19, 22, 72", "88, 3, 2, 72", "n, h:9, v:11", "n, 2*h - r + 2, 2*v + 3*s - 1", dtype="bf16", last=True), BULK),
    (convolution("2, 6, 7, 9, 64", "72, 3, 2, 3, 64", "n, d:6, h:6, v:5", "n, d + q - 1, h + r, 2*v + s - 1", summed="c, s, q, r"), BULK),
    (few_channels("3, 9, 13, 3, 64", "3, 72, 3, 3, 64", "n, h:9, v:13, g, f", "n, h + r - 1, v + s - 1, g, c", "g, f, r, s, c"), BULK[:3]),
    (filter_gradient("3, 9, 13, 128", "3, 9, 13, 72", "72, 3, 3", "n, h + r - 1, v + s - 1"), BULK[:3]),
    (filter_gradient("5, 34, 64", "5, 17, 136", "136, 3", "n, 2*v + s - 1", "bf16", True), BULK),
    (filter_gradient("2, 18, 23, 64", "2, 9, 12, 40", "40, 3, 2", "n, 2*h + r - 1, 2*v + 3*s - 2"), BULK),
    (PHASES, BULK[:3]), (PHASES.replace("128", "72"), BULK[2:3]), (planes("h:10, v:12"), BULK), (planes("h:5, v:7", "2*h + r - 1, 2*v + s"), BULK),
    (LINES_OF_PLANES, [*BULK[:3], *MULTICAST]),
    (convolution("17, 34, 192", "520, 3, 192", "n, v:17", "n, 2*v + s - 1"), PERSISTENT[:3]),
    (convolution("5, 34, 34, 64", "136, 1, 1, 64", "n, h:17, v:17", "n, 2*h + r, 2*v + s"), PERSISTENT[:3]),
    # Of these all arithmetic is stated: no exchange, division or choice is in the way.
    (squares("96, 1024", "a", "b"), ["rowwise/warp", "rowwise/block"]), (squares("6, 32768", "a", "b"), LARGE[1:-1]),
    (columns(1024, 256), STEPS), (squares("512, 64", "b", "a"), ["channelwise/column"]),
    (squares("4, 16, 32, 32", "b", "acd"), ["rowwise/shared", "rowwise/shared-cluster"]),
    (with_map(permute("256, 512", "j, i", "i, j"), "i, j"), ["permute/256x256"]),
    (with_map(total(300, 1024, "j", "f32").replace("x[i, j])", "exp(x[i, j]))"), "i", "log"), ["reduce/row", "reduce/row-x4"]),
    (with_map(total(1000, 200, "i", "f32").replace("x[i, j])", "exp(x[i, j]))"), "j", "log"), ["reduce/column", "reduce/column-x4"]),
    (with_map(depthwise("9, 20, 32, 32", "20, 5, 5", "n, c, h:32, v:32", "n, c, h + r - 2, v + s - 2", "c, r, s"), "n, c, h, v"),
     [*LINES, *STRIPS, "window/windows"]),
    ("input x[3, 8, 16, 18] : f32\ninput w[3, 3, 3] : f32\n"
     "y[n, k:6, h:14, v:16] = sum[q, r, s](x[n, k + q, h + r, v + s] * w[q, r, s])\noutput y : f32\n", ["window/windows"]),
    (with_map(depthwise("5, 14, 20, 40", "5, 5, 40", "n, h:14, v:20, c", "n, h + r - 2, v + s - 2, c", "r, s, c", "f16"), "n, h, v, c"),
     [*CHANNELS, *STRIPS_OF_CHANNELS, PAIR[0]]),
    (with_map(filters(9, 32, 7), "n, c, h, v"), TOEPLITZ[:2]),
    (filter_gradients((8, 3, 32, 32), 5, 2).replace("dw[", "t[").replace("output dw", "dw[c, r, s] = exp(t[c, r, s])\noutput dw"),
     ["filter_direct/taps", "filter_gemm/diagonals", *FILTER_STRIPS]),
    (skinny(4, 512, 1024).replace("C[m", "t[m").replace("output C", "C[m, n] = exp(t[m, n])\noutput C"),
     ["skinny/column", "skinny/column-cluster"]),
]


class Gaps:
    """What is not compared: figures that a kind of kernel does not state, and changed schedules that no kernel of a family finds."""

    LIST = pathlib.Path(__file__).resolve().parent / "differential" / "schedule_gaps.txt"

    def __init__(self):
        self.figures, self.changes = {}, {}

    def read(self, output):
        for line in output.splitlines():
            said = re.fullmatch(r"(figure|change) ([^/]+)/(.+) (known|unknown|found|unfound) (.+?)(?: = \d+)?", line)
            if said and said[1] == "figure":
                self.figures.setdefault((f"{said[2]}/{said[3]}", said[5]), set()).add(said[4])
            elif said:
                self.changes.setdefault((said[2], said[5]), set()).add(said[4])

    def lines(self):
        for (kind, figure), said in sorted(self.figures.items()):
            if "unknown" in said:
                yield f"{kind}: {figure} {'is unknown at times' if 'known' in said else 'is unknown'}"
        for (family, change), said in sorted(self.changes.items()):
            if "found" not in said:
                yield f"{family}: {change} is not found"

    @classmethod
    def listed(cls):
        return [line for line in cls.LIST.read_text().splitlines() if line and not line.startswith("#")]

    @classmethod
    def update(cls, lines):
        head = [line for line in cls.LIST.read_text().splitlines() if line.startswith("#")]
        cls.LIST.write_text("\n".join([*head, *lines]) + "\n")


def differences(lines, listed):
    """A list may get shorter, and must when it can."""
    yield from (f"not in {Gaps.LIST.name}: {line}" for line in lines if line not in listed)
    yield from (f"no longer so, to be taken out of {Gaps.LIST.name}: {line}" for line in listed if line not in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="schedule_counts lies in tests/ beside it")
    parser.add_argument("--only", default="", help="a kind of kernel")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--update", action="store_true", help="write what is not compared to differential/schedule_gaps.txt")
    args = parser.parse_args()
    # The test itself: a list that lacks a line, or has one too many, is found.
    assert len(list(differences(["a", "b"], ["b", "c"]))) == 2
    binary = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests", "schedule_counts")
    missing = set(subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines())

    def count(program):
        text, kinds = program
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.te"
            path.write_text(text)
            device = "h200"
            if kinds in (MULTICAST, PERSISTENT, PERSISTENT[:3], PING_PONG, STEPS):
                device = pathlib.Path(folder) / "small.yaml"
                device.write_text(small_device())
            kinds = [args.only] if args.only else kinds
            return text, subprocess.run([binary, device, path, *kinds], capture_output=True, text=True)

    failed = kinds = mutants = 0
    gaps = Gaps()
    programs = [(text, kinds) for text, kinds in PROGRAMS if not args.only or not kinds or args.only in kinds]
    for text, done in common.in_parallel(args.jobs, count, programs):
        summary = re.search(r"kinds=(\d+) failures=(\d+) mutants=(\d+) unseen=(\d+)", done.stdout)
        missing -= {line.removesuffix(", persistent").removesuffix(", clusters").removesuffix(", rows") for line in done.stdout.splitlines()}
        gaps.read(done.stdout)
        if done.returncode != 0 or not summary or int(summary[4]):
            failed += 1
            said = "".join(line for line in done.stdout.splitlines(True) if not line.startswith(("figure", "change")))
            print(f"FAIL\n{text}{said}{done.stderr}")
        if summary:
            kinds, mutants = kinds + int(summary[1]), mutants + int(summary[3])
    if not args.only and missing:
        failed += 1
        print("no program is", *sorted(missing))
    lines = list(gaps.lines())
    if args.update:
        Gaps.update(lines)
    for difference in [] if args.only else differences(lines, Gaps.listed()):
        failed += 1
        print(difference)
    print(f"schedule: {kinds} kernels as their schedules say, {mutants} changed schedules found, {len(lines)} gaps, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
