"""Draws programs of every kind, as users write them, without looking at what any kernel takes.

    python3 bench/draw.py --seed 2 --n 80                      # a line of JSON each: set, name, kind, text
    python3 bench/draw.py --seed 2 --n 80 --only convolution

Sizes have an even logarithm: a third are multiples of 8, a third primes, a third anything; tensors have up to 2^28 elements. The
same seed draws the same programs. Even seeds may be looked at when kernels and the model are changed; odd seeds are held out
(CONTRIBUTING.md).
"""
import argparse
import json
import math
import random
import re
import sys

MOST_ELEMENTS = 2**28                        # of a tensor
MOST_FLOP = 2**42                            # of a program: 5 ms at 1 Pflop/s, 80 in f32
TYPES = ("f16", "bf16", "f32")


# ---- sizes

def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def draw_size(rng, most, least=1):
    size = round(math.exp(rng.uniform(math.log(least), math.log(most))))
    kind = rng.choice(("eights", "prime", "any"))
    if kind == "eights":
        return max(8, round(size / 8) * 8)
    while kind == "prime" and not is_prime(size):
        size -= 1 if size > 2 else -1
    return size


def draw_least(rng):
    """How many elements the largest tensor has at least: its size has an even logarithm, too."""
    return 2 ** rng.randrange(12, 25)


def draw_shape(rng, rank):
    least = draw_least(rng)
    while True:
        shape = [draw_size(rng, 2**16 if rank > 1 else MOST_ELEMENTS) for _ in range(rank)]
        if least <= math.prod(shape) <= MOST_ELEMENTS:
            return shape


def listed(shape):
    return ", ".join(map(str, shape))


def by(shape):
    return "x".join(map(str, shape))


# ---- what comes behind a product or a convolution

def draw_epilogue(rng, channel, index, shape, dtype):
    """(name, inputs, the statements that make y of c)."""
    bias = f"input b[{shape[index.index(channel)]}] : {dtype}\n"
    residual = f"input z[{listed(shape)}] : {dtype}\n"
    at = ", ".join(index)
    return rng.choice([
        ("", "", f"y[{at}] = c[{at}]\n"),
        ("bias", bias, f"y[{at}] = c[{at}] + b[{channel}]\n"),
        ("relu", "", f"y[{at}] = relu(c[{at}])\n"),
        ("bias relu", bias, f"y[{at}] = max(c[{at}] + b[{channel}], 0)\n"),
        ("bias residual relu", bias + residual, f"y[{at}] = relu(c[{at}] + b[{channel}] + z[{at}])\n"),
        ("bias gelu", bias, f"t[{at}] = c[{at}] + b[{channel}]\ny[{at}] = 0.5 * t[{at}] * (1 + erf(t[{at}] * 0.7071067811865476))\n"),
        ("swish", "", f"y[{at}] = c[{at}] * sigmoid(c[{at}])\n"),
    ])


def with_epilogue(epilogue, inputs, product, dtype):
    """One without has one definition."""
    name, more, after = epilogue
    body = product.replace("c[", "y[", 1) if not name else product + after
    return inputs + more + body + f"output y : {dtype}\n"


# ---- kinds: each gives (name, text)

def product(rng, dtype):
    least = draw_least(rng)
    while True:
        batch = draw_size(rng, 256) if rng.random() < 1 / 3 else 0
        m, n, k = (draw_size(rng, 8192) for _ in range(3))
        most = max(m * k, k * n, m * n) * max(batch, 1)
        if least <= most <= MOST_ELEMENTS and 2 * max(batch, 1) * m * n * k <= MOST_FLOP:
            break
    left, right = rng.random() < 1 / 3, rng.random() < 1 / 2
    size, each = ([batch], "l, ") if batch else ([], "")
    index, shape = (["l"] if batch else []) + ["i", "j"], size + [m, n]
    epilogue = draw_epilogue(rng, "j", index, shape, dtype)
    inputs = (f"input A[{listed(size + ([k, m] if left else [m, k]))}] : {dtype}\n"
              f"input B[{listed(size + ([n, k] if right else [k, n]))}] : {dtype}\n")
    body = (f"c[{', '.join(index)}] = sum[k](A[{each}{'k, i' if left else 'i, k'}] * B[{each}{'j, k' if right else 'k, j'}])\n")
    name = f"{'A^T' if left else 'A'} {'B^T' if right else 'B'} {by(size + [m, n, k])} {epilogue[0]}"
    return name, with_epilogue(epilogue, inputs, body, dtype)


def window(rng):
    """A square filter: (taps, stride, dilation, pad)."""
    taps = rng.choice((1, 1, 3, 3, 3, 5, 7))
    dilation = rng.choice((1, 1, 1, 2)) if taps > 1 else 1
    reach = dilation * (taps - 1)
    return taps, rng.choice((1, 1, 1, 2)), dilation, rng.choice((reach // 2, reach // 2, 0))


def tap(position, along, stride, dilation, pad):
    terms = (f"{stride}*{position}" if stride > 1 else position) + " + " + (f"{dilation}*{along}" if dilation > 1 else along)
    return terms + (f" - {pad}" if pad else "")


def draw_images(rng, depthwise):
    """(images, channels, filters, side, outputs a side, window) whose tensors and work are bounded."""
    least = draw_least(rng)
    while True:
        taps, stride, dilation, pad = window(rng) if not depthwise else (rng.choice((3, 3, 5, 7, 9)), rng.choice((1, 1, 2)), 1, 0)
        if depthwise:
            pad = taps // 2
        n, c, f = draw_size(rng, 256), draw_size(rng, 1024), draw_size(rng, 1024)
        side = draw_size(rng, 256, 4)
        out = (side + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
        f = c if depthwise else f
        flop = 2 * n * f * out * out * taps * taps * (1 if depthwise else c)
        if out >= 1 and least <= max(n * c * side * side, n * f * out * out) <= MOST_ELEMENTS and flop <= MOST_FLOP:
            return n, c, f, side, out, (taps, stride, dilation, pad)


def convolution(rng, dtype):
    n, c, f, side, out, (taps, stride, dilation, pad) = draw_images(rng, False)
    last = rng.random() < 1 / 2                                     # channels
    direction = rng.choice(("forward", "forward", "forward", "data", "filter"))
    images, results = ([n, side, side, c], [n, out, out, f]) if last else ([n, c, side, side], [n, f, out, out])
    filters, at_filter = ([f, taps, taps, c], "f, r, s, k") if last else ([f, c, taps, taps], "f, k, r, s")

    def place(channel, row, column):
        return f"n, {row}, {column}, {channel}" if last else f"n, {channel}, {row}, {column}"

    inside = place("k", tap("h", "r", stride, dilation, pad), tap("v", "s", stride, dilation, pad))
    image = f"pad(x[{inside}], 0)" if pad else f"x[{inside}]"
    name = f"{direction} {'nhwc' if last else 'nchw'} {n}x{c}x{side} {f} k{taps} s{stride} d{dilation} p{pad}"
    if direction == "data" and stride == 1:
        reach = dilation * (taps - 1) - pad                         # of the turned filter
        inside = place("f", tap("h", f"{reach}", 1, 1, 0) + (f" - {dilation}*r" if dilation > 1 else " - r"),
                       tap("v", f"{reach}", 1, 1, 0) + (f" - {dilation}*s" if dilation > 1 else " - s"))
        inside = re.sub(r" \+ 0\b| \+ 0 ", " ", inside)
        inside = f"pad(y[{inside}], 0)" if taps > 1 else f"y[{inside.replace(' - r', '').replace(' - s', '')}]"
        weight = f"w[{at_filter}]"
        return name, (f"input y[{listed(results)}] : {dtype}\ninput w[{listed(filters)}] : {dtype}\n"
                      f"g[{place('k', f'h:{side}', f'v:{side}')}] = sum[f, r:{taps}, s:{taps}]({inside} * {weight})\noutput g : {dtype}\n")
    if direction == "filter":
        return name, (f"input x[{listed(images)}] : {dtype}\ninput y[{listed(results)}] : {dtype}\n"
                      f"g[{at_filter.replace('r', f'r:{taps}').replace('s', f's:{taps}')}] = "
                      f"sum[n, h, v]({image} * y[{place('f', 'h', 'v')}])\noutput g : {dtype}\n")
    index = re.split(", ", place("f", "h", "v"))
    epilogue = draw_epilogue(rng, "f", index, results, dtype)
    inputs = f"input x[{listed(images)}] : {dtype}\ninput w[{listed(filters)}] : {dtype}\n"
    body = f"c[{place('f', f'h:{out}', f'v:{out}')}] = sum[k, r, s]({image} * w[{at_filter}])\n"
    return name.replace("data", "forward") + " " + epilogue[0], with_epilogue(epilogue, inputs, body, dtype)


def depthwise(rng, dtype):
    n, c, _, side, out, (taps, stride, _, pad) = draw_images(rng, True)
    last = rng.random() < 1 / 2
    images, results = ([n, side, side, c], [n, out, out, c]) if last else ([n, c, side, side], [n, c, out, out])
    filters, at_filter = ([taps, taps, c], "r, s, c") if last else ([c, taps, taps], "c, r, s")

    def place(row, column):
        return f"n, {row}, {column}, c" if last else f"n, c, {row}, {column}"

    image = f"pad(x[{place(tap('h', 'r', stride, 1, pad), tap('v', 's', stride, 1, pad))}], 0)"
    name = f"{'nhwc' if last else 'nchw'} {n}x{c}x{side} k{taps} s{stride}"
    if rng.random() < 1 / 4:
        return "filter " + name, (f"input x[{listed(images)}] : {dtype}\ninput y[{listed(results)}] : {dtype}\n"
                                  f"g[{at_filter.replace('r', f'r:{taps}').replace('s', f's:{taps}')}] = "
                                  f"sum[n, h, v]({image} * y[{place('h', 'v')}])\noutput g : {dtype}\n")
    return "forward " + name, (f"input x[{listed(images)}] : {dtype}\ninput w[{listed(filters)}] : {dtype}\n"
                               f"y[{place(f'h:{out}', f'v:{out}')}] = sum[r, s]({image} * w[{at_filter}])\noutput y : {dtype}\n")


ROWS = {
    "softmax": ("", "m[i] = max[j](x[i, j])\ne[i, j] = exp(x[i, j] - m[i])\ns[i] = sum[j](e[i, j])\ny[i, j] = e[i, j] / s[i]\n"),
    "log softmax": ("", "m[i] = max[j](x[i, j])\ns[i] = sum[j](exp(x[i, j] - m[i]))\ny[i, j] = x[i, j] - m[i] - log(s[i])\n"),
    "layer norm": ("input gamma[{n}] : {t}\ninput beta[{n}] : {t}\n",
                   "mean[i] = sum[j](x[i, j]) / {n}\nvar[i] = sum[j](sq(x[i, j] - mean[i])) / {n}\n"
                   "y[i, j] = (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * gamma[j] + beta[j]\n"),
    "rms norm": ("input gamma[{n}] : {t}\n", "ms[i] = sum[j](sq(x[i, j])) / {n}\ny[i, j] = x[i, j] * rsqrt(ms[i] + 1e-6) * gamma[j]\n"),
    "residual layer norm": ("input z[{r}, {n}] : {t}\ninput gamma[{n}] : {t}\ninput beta[{n}] : {t}\n",
                            "u[i, j] = x[i, j] + z[i, j]\nmean[i] = sum[j](u[i, j]) / {n}\nvar[i] = sum[j](sq(u[i, j] - mean[i])) / {n}\n"
                            "y[i, j] = (u[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * gamma[j] + beta[j]\n"),
    "softmax gradient": ("input p[{r}, {n}] : {t}\n", "s[i] = sum[j](p[i, j] * x[i, j])\ny[i, j] = p[i, j] * (x[i, j] - s[i])\n"),
}


def rows(rng, dtype):
    r, n = draw_shape(rng, 2)
    kind = rng.choice(sorted(ROWS))
    inputs, body = (text.format(r=r, n=n, t=dtype) for text in ROWS[kind])
    return f"{kind} {r}x{n}", f"input x[{r}, {n}] : {dtype}\n{inputs}{body}output y : {dtype}\n"


def norm(rng, dtype):
    """Of channels of images: at inference, in training, of groups."""
    least = draw_least(rng)
    while True:
        n, c, side = draw_size(rng, 256), draw_size(rng, 1024), draw_size(rng, 256)
        if least <= n * c * side * side <= MOST_ELEMENTS:
            break
    last, kind = rng.random() < 1 / 2, rng.choice(("inference", "training", "instance"))
    shape, at = ([n, side, side, c], "n, h, v, c") if last else ([n, c, side, side], "n, c, h, v")
    of, over, count = ("n, c", "h, v", side * side) if kind == "instance" else ("c", "n, h, v", n * side * side)
    inputs = f"input x[{listed(shape)}] : {dtype}\ninput gamma[{c}] : f32\ninput beta[{c}] : f32\n"
    if kind == "inference":
        stats = ""
        inputs += f"input mean[{c}] : f32\ninput var[{c}] : f32\n"
    else:
        stats = (f"mean[{of}] = sum[{over}](x[{at}]) / {count}\nvar[{of}] = sum[{over}](sq(x[{at}] - mean[{of}])) / {count}\n")
    body = f"y[{at}] = relu((x[{at}] - mean[{of}]) * rsqrt(var[{of}] + 1e-5) * gamma[c] + beta[c])\n"
    return f"{kind} {'nhwc' if last else 'nchw'} {n}x{c}x{side}", f"{inputs}{stats}{body}output y : {dtype}\n"


def loss(rng, dtype):
    r, n = draw_shape(rng, 2)
    kind = rng.choice(("cross entropy", "square", "absolute"))
    if kind == "cross entropy":
        return f"{kind} {r}x{n}", (f"input x[{r}, {n}] : {dtype}\ninput label[{r}] : i32\nm[i] = max[j](x[i, j])\n"
                                   "s[i] = sum[j](exp(x[i, j] - m[i]))\nt[i] = sum[j](select(j == label[i], x[i, j], 0))\n"
                                   "loss[i] = m[i] + log(s[i]) - t[i]\noutput loss : f32\n")
    term = "sq(x[i, j] - t[i, j])" if kind == "square" else "abs(x[i, j] - t[i, j])"
    return f"{kind} {r}x{n}", (f"input x[{r}, {n}] : {dtype}\ninput t[{r}, {n}] : {dtype}\n"
                               f"loss[] = sum[i, j]({term}) / {r * n}\noutput loss : f32\n")


def pool(rng, dtype):
    least = draw_least(rng)
    while True:
        n, c, side = draw_size(rng, 256), draw_size(rng, 1024), draw_size(rng, 256, 4)
        taps, stride = rng.choice(((2, 2), (3, 2), (3, 1), (5, 1), (7, 7)))
        pad = rng.choice((0, taps // 2)) if taps % 2 else 0
        out = (side + 2 * pad - taps) // stride + 1
        if out >= 1 and least <= n * c * side * side <= MOST_ELEMENTS:
            break
    last, kind = rng.random() < 1 / 2, rng.choice(("max", "average"))
    shape = [n, side, side, c] if last else [n, c, side, side]

    def place(row, column):
        return f"n, {row}, {column}, c" if last else f"n, c, {row}, {column}"

    inside = f"x[{place(tap('h', 'r', stride, 1, pad), tap('v', 's', stride, 1, pad))}]"
    inside = f"pad({inside}, {'-inf' if kind == 'max' else '0'})" if pad else inside
    window_of = f"[r:{taps}, s:{taps}]({inside})"
    value = f"max{window_of}" if kind == "max" else f"sum{window_of} / {taps * taps}"
    return (f"{kind} {'nhwc' if last else 'nchw'} {n}x{c}x{side} k{taps} s{stride} p{pad}",
            f"input x[{listed(shape)}] : {dtype}\ny[{place(f'h:{out}', f'v:{out}')}] = {value}\noutput y : {dtype}\n")


def permute(rng, dtype):
    rank = rng.choice((2, 3, 4, 5))
    shape = draw_shape(rng, rank)
    order = list(range(rank))
    while order == sorted(order):
        rng.shuffle(order)
    names = "abcde"[:rank]
    return (f"({','.join(map(str, order))}) {by(shape)}",
            f"input x[{listed(shape)}] : {dtype}\ny[{', '.join(names[d] for d in order)}] = x[{', '.join(names)}]\noutput y : {dtype}\n")


def reduction(rng, dtype):
    rank = rng.choice((1, 2, 2, 3))
    shape = draw_shape(rng, rank)
    names = "abc"[:rank]
    gone = [name for name in names if rng.random() < 1 / 2] or [rng.choice(names)]
    kind = rng.choice(("sum", "sum", "max"))
    value = rng.choice(("x[{0}]", "x[{0}]", "sq(x[{0}])", "abs(x[{0}])")).format(", ".join(names))
    left = ", ".join(name for name in names if name not in gone)
    return (f"{kind} {','.join(gone)} of {by(shape)}",
            f"input x[{listed(shape)}] : {dtype}\ny[{left}] = {kind}[{', '.join(gone)}]({value})\noutput y : {dtype}\n")


def points(rng, dtype):
    shape = draw_shape(rng, rng.choice((1, 2, 3)))
    at = ", ".join("abc"[:len(shape)])
    last = "abc"[len(shape) - 1]
    body = rng.choice(("relu(x[{a}])", "x[{a}] * sigmoid(x[{a}]) + z[{a}]", "tanh(x[{a}] + w[{l}]) * 0.5", "max(x[{a}] * z[{a}] + w[{l}], 0)"))
    value = body.format(a=at, l=last)
    inputs = f"input x[{listed(shape)}] : {dtype}\n"
    inputs += f"input z[{listed(shape)}] : {dtype}\n" if "z[" in value else ""
    inputs += f"input w[{shape[-1]}] : {dtype}\n" if "w[" in value else ""
    return f"{by(shape)} {value}", f"{inputs}y[{at}] = {value}\noutput y : {dtype}\n"


# How many of twenty.
KINDS = {convolution: 5, product: 4, depthwise: 1, rows: 2, norm: 1, loss: 1, pool: 1, permute: 2, reduction: 2, points: 1}


def draw(seed, count, only=""):
    """Rows {set, name, kind, text}."""
    rng = random.Random(seed)
    order = [kind for kind, times in KINDS.items() for _ in range(times)]
    drawn = []
    for number in range(count):
        if number % len(order) == 0:
            rng.shuffle(order)
        kind, dtype = order[number % len(order)], rng.choice(TYPES)
        name, text = kind(rng, dtype)
        drawn.append({"set": f"seed {seed}", "name": f"{kind.__name__} {' '.join(name.split())} {dtype}", "kind": kind.__name__, "text": text})
    return [row for row in drawn if re.search(only, row["name"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--n", type=int, default=80)
    parser.add_argument("--only", default="", help="a regular expression that a program's name holds")
    args = parser.parse_args()
    for row in draw(args.seed, args.n, args.only):
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
