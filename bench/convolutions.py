"""Convolutions in every direction, each written as a user would: those of networks, and some drawn at random.

    python3 bench/convolutions.py layers build/rollerc convolutions --device h100 --only 'filter .* f16'
    python3 bench/convolutions.py draw build/rollerc convolutions --device h100 --seed 1
    python3 bench/run.py convolutions convolutions.jsonl --peers torch,layout        # on a GPU machine
    python3 bench/convolutions.py collect convolutions.jsonl … bench/results/h100-convolutions.json

`forward`, `data` and `filter`: the convolution and its gradients for the image and for the filter; a transposed convolution is
the gradient for the image. The peer `layout` has the same elements in the other layout, NCHW beside NHWC. The same seed draws
the same convolutions.
"""
import argparse
import dataclasses
import json
import math
import random
import re
import statistics
import sys

import cases
import generate

POSITIONS, TAPS = "hvu", "rst"               # index variables, of up to three axes
MOST_INDICES = 8                             # that the language has in one statement's result
MOST_ELEMENTS, MOST_TERMS = 2**26, 2**36     # of a tensor; of all sums together


@dataclasses.dataclass(frozen=True)
class Convolution:
    """`size`: of the image; `channels`, `filters`: of a group."""
    direction: str
    layout: str
    dtype: str
    images: int
    size: tuple
    channels: int
    filters: int
    taps: tuple
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    groups: int = 1
    joined: bool = False                     # forward: with a bias, a residual and ReLU

    @property
    def outputs(self):
        return tuple((n + 2 * self.pad - self.dilation * (r - 1) - 1) // self.stride + 1 for n, r in zip(self.size, self.taps))

    @property
    def by_phase(self):
        return self.direction == "data" and self.stride > 1

    def is_legal(self):
        """Rows of a gradient by phase come in whole strides, and each was read."""
        indices = 2 + (self.groups > 1) + 2 * len(self.size)
        return min(self.outputs) >= 1 and (not self.by_phase or (self.dilation == 1 and indices <= MOST_INDICES and all(
            n % self.stride == 0 and n == o * self.stride for n, o in zip(self.size, self.outputs))))

    def terms(self):
        """Of one sum."""
        return {"forward": self.channels * math.prod(self.taps), "data": self.filters * math.prod(self.taps),
                "filter": self.images * math.prod(self.outputs)}[self.direction]

    def elements(self):
        """Of the image, the output and the filter."""
        return (self.images * math.prod(self.size) * self.channels * self.groups,
                self.images * math.prod(self.outputs) * self.filters * self.groups,
                self.groups * self.filters * self.channels * math.prod(self.taps))

    def label(self):
        def by(sizes):
            return "x".join(map(str, sizes))
        words = [self.direction, self.layout, f"{self.images}x{by(self.size)}", f"{self.channels}->{self.filters}", by(self.taps)]
        words += [f"/{self.stride}"] * (self.stride > 1) + [f"pad {self.pad}"] * (self.pad > 0)
        words += [f"dilated {self.dilation}"] * (self.dilation > 1) + [f"of {self.groups} groups"] * (self.groups > 1)
        words += ["+ residual"] * self.joined
        return " ".join(words + [self.dtype])


# ---- the program

def pixel(conv, n, group, channel, positions):
    """Dimensions of an image."""
    channels = [group] * (conv.groups > 1) + [channel]
    return ", ".join(map(str, [n, *positions, *channels] if conv.layout == "NHWC" else [n, *channels, *positions]))


def weight(conv, group, f, c, taps):
    taps = [tap for tap, count in zip(taps, conv.taps) if count > 1]
    return ", ".join(map(str, [group] * (conv.groups > 1) + [f] + ([*taps, c] if conv.layout == "NHWC" else [c, *taps])))


def plus(*parts):
    """`2*h + r - 1` of (2, "h"), (1, "r"), (-1, "")."""
    text = ""
    for times, name in parts:
        if times:
            size = name if name and abs(times) == 1 else f"{abs(times)}*{name}" if name else str(abs(times))
            text += (" - " if times < 0 else " + ") + size
    return text[3:] if text.startswith(" + ") else text.strip() or "0"


def padded(access, does=True):
    return f"pad({access}, 0)" if does else access


def axes_of(conv):
    """(position, tap, taps) of each."""
    return list(zip(POSITIONS, TAPS, conv.taps))


def window(conv):
    return [plus((conv.stride, h), (conv.dilation if taps > 1 else 0, r), (-conv.pad, "")) for h, r, taps in axes_of(conv)]


def used_taps(conv):
    return [r for _, r, taps in axes_of(conv) if taps > 1]


def forward_text(conv):
    indices = [f"{h}:{o}" for h, o in zip(POSITIONS, conv.outputs)]
    x = padded(f"x[{pixel(conv, 'n', 'g', 'c', window(conv))}]", conv.pad > 0)
    total = f"sum[{', '.join(used_taps(conv) + ['c'])}]({x} * w[{weight(conv, 'g', 'f', 'c', TAPS)}])"
    if conv.joined:
        total = f"max({total} + b[f] + z[{pixel(conv, 'n', 'g', 'f', POSITIONS[:len(conv.taps)])}], 0)"
    return f"y[{pixel(conv, 'n', 'g', 'f', indices)}] = {total}\n"


def filter_text(conv):
    positions = POSITIONS[:len(conv.taps)]
    indices = weight(conv, "g", "f", "c", [f"{r}:{taps}" for _, r, taps in axes_of(conv)])
    x = padded(f"x[{pixel(conv, 'n', 'g', 'c', window(conv))}]", conv.pad > 0)
    return (f"dw[{indices}] = "
            f"sum[{', '.join(['n', *positions])}](dy[{pixel(conv, 'n', 'g', 'f', positions)}] * {x})\n")


def data_text(conv):
    indices = [f"{h}:{n}" for h, n in zip(POSITIONS, conv.size)]
    reached = [plus((1, h), (-conv.dilation if taps > 1 else 0, r), (conv.pad, "")) for h, r, taps in axes_of(conv)]
    dy = padded(f"dy[{pixel(conv, 'n', 'g', 'f', reached)}]", any(taps > 1 or n != o for taps, n, o in
                                                                    zip(conv.taps, conv.size, conv.outputs)))
    return (f"dx[{pixel(conv, 'n', 'g', 'c', indices)}] = "
            f"sum[{', '.join(used_taps(conv) + ['f'])}]({dy} * w[{weight(conv, 'g', 'f', 'c', TAPS)}])\n")


def phases(conv):
    """Row s*h + a was read for output h + t - first by tap a + pad + s*first - s*t: (first, number of t) of each axis."""
    s = conv.stride
    first = [math.ceil((r - conv.pad - s) / s) for r in conv.taps]
    return [(f, (s - 1 + conv.pad + s * f) // s + 1) for f in first]


def phase_text(conv):
    """dx[n, h, a, v, b, c] is row 2*h + a and column 2*v + b."""
    s, letters = conv.stride, "abd"
    found = list(zip(POSITIONS, letters, "pqo", conv.outputs, phases(conv)))
    indices = [f"{h}:{n}, {a}:{s}" for h, a, _, n, _ in found]
    reached = [plus((1, h), (count > 1, t), (-first, "")) for h, _, t, _, (first, count) in found]
    taps = [plus((1, a), (-s * (count > 1), t), (conv.pad + s * first, "")) for _, a, t, _, (first, count) in found]
    sums = [f"{t}:{count}" for _, _, t, _, (_, count) in found if count > 1]
    dy = padded(f"dy[{pixel(conv, 'n', 'g', 'f', reached)}]", any(first or count > 1 for _, _, _, _, (first, count) in found))
    one = dataclasses.replace(conv, taps=tuple(max(r, 2) for r in conv.taps))    # a tap of one is named here
    w = padded(f"w[{weight(one, 'g', 'f', 'c', taps)}]")
    return f"dx[{pixel(conv, 'n', 'g', 'c', indices)}] = sum[{', '.join(sums + ['f'])}]({dy} * {w})\n"


TEXTS = {"forward": forward_text, "filter": filter_text, "data": data_text}
OPERANDS = {"forward": ("x", "w"), "data": ("dy", "w"), "filter": ("x", "dy")}
RESULT = {"forward": "y", "data": "dx", "filter": "dw"}


def operands(conv):
    return OPERANDS[conv.direction] + (("b", "z") if conv.joined else ())


def program(conv):
    shapes = {"x": pixel(conv, conv.images, conv.groups, conv.channels, conv.size),
              "dy": pixel(conv, conv.images, conv.groups, conv.filters, conv.outputs),
              "w": weight(conv, conv.groups, conv.filters, conv.channels, conv.taps),
              "b": conv.filters, "z": pixel(conv, conv.images, conv.groups, conv.filters, conv.outputs)}
    if conv.by_phase:
        shapes["w"] = weight(dataclasses.replace(conv, taps=(2,) * len(conv.taps)), conv.groups, conv.filters, conv.channels,
                             conv.taps)
    inputs = "".join(f"input {name}[{shapes[name]}] : {conv.dtype}\n" for name in operands(conv))
    text = phase_text(conv) if conv.by_phase else TEXTS[conv.direction](conv)
    return inputs + text + f"output {RESULT[conv.direction]} : {conv.dtype}\n"


# ---- what PyTorch runs

def other_layout(conv):
    """Of each operand, the order of its dimensions that has its elements lie as in the other layout."""
    def order(leading, spatial):
        """Of so many dimensions before channels and taps or positions, or the other way round."""
        last = list(range(leading + spatial, leading + spatial + 1 + (conv.groups > 1 and leading == 1)))
        if conv.layout == "NHWC":
            return [*range(leading), *last, *range(leading, leading + spatial)]
        channels = len(last)
        return [*range(leading), *range(leading + channels, leading + channels + spatial), *range(leading, leading + channels)]
    taps = len(conv.taps) if conv.by_phase else len(used_taps(conv))
    image, w = order(1, len(conv.taps)), order(1 + (conv.groups > 1), taps)
    return {name: w if name == "w" else image for name in operands(conv) if name != "b"}


def result_shape(conv):
    """As the program has it: taps of one have no dimension, and phases of a row have one."""
    if conv.direction == "filter":
        return [int(n) for n in weight(conv, conv.groups, conv.filters, conv.channels, conv.taps).split(", ")]
    sizes, channels = (conv.outputs, conv.filters) if conv.direction == "forward" else (conv.size, conv.channels)
    if conv.by_phase:
        sizes = [part for n in sizes for part in (n // conv.stride, conv.stride)]
    return [int(n) for n in pixel(conv, conv.images, conv.groups, channels, sizes).split(", ")]


def case_of(conv, group):
    call = f"convolution({dataclasses.asdict(conv)}, {', '.join(f'{name}={name}' for name in operands(conv))})"
    entry = {"terms": str(conv.terms()), "turned": other_layout(conv), "torch": call,
             "reference": f"{call}.reshape({result_shape(conv)})"}
    return cases.Case(f"{group} {conv.label()}", group, conv.dtype, program(conv), [], [], entry)


# ---- layers of networks

SQUARES = [(64, 64, 56), (128, 128, 28), (256, 256, 14), (512, 512, 7)]          # ResNet-50: channels, filters, map
HALVED = [(128, 128, 56), (256, 256, 28), (512, 512, 14)]
POINTS = [(64, 256, 56), (512, 128, 28), (256, 1024, 14), (2048, 512, 7)]
PROJECTIONS = [(256, 512, 56), (1024, 2048, 14)]


def resnet(direction, layout="NHWC", dtype="f16", images=32):
    def conv(c, f, n, taps, stride=1):
        return Convolution(direction, layout, dtype, images, (n, n), c, f, (taps, taps), stride, taps // 2)
    return ([conv(*sizes, 3) for sizes in SQUARES] + [conv(*sizes, 3, 2) for sizes in HALVED] +
            [conv(*sizes, 1) for sizes in POINTS] + [conv(*sizes, 1, 2) for sizes in PROJECTIONS])


def stems():
    of_image = [Convolution("forward", "NHWC", "f16", images, (224, 224), 3, f, (taps, taps), 2, taps // 2)
                for images, f, taps in ((1, 64, 7), (32, 64, 7), (256, 64, 7), (32, 32, 3))]
    return of_image + [dataclasses.replace(conv, layout="NCHW", dtype=dtype) for conv in of_image[1::2] for dtype in ("f16", "f32")]


def upward():
    return [Convolution("data", layout, dtype, 16, (n, n), c, f, (taps, taps), 2, pad)
            for c, f, n, taps, pad in ((64, 128, 112, 2, 0), (128, 256, 56, 4, 1), (128, 128, 56, 3, 1))
            for layout, dtype in (("NHWC", "f16"), ("NCHW", "f32"))]


def grouped():
    return [Convolution(direction, layout, dtype, 32, (n, n), c, c, (3, 3), 1, 1, 1, 32)
            for direction in ("forward", "data", "filter") for c, n in ((2, 56), (4, 56), (8, 28), (16, 14), (32, 7))
            for layout, dtype in (("NHWC", "f16"), ("NCHW", "f32")) if direction == "forward" or c in (4, 16)]


def dilated():
    return [Convolution(direction, layout, dtype, 8, (33, 33), 256, 256, (3, 3), 1, d, d)
            for direction in ("forward", "data", "filter") for d in (2, 6) for layout, dtype in (("NHWC", "f16"), ("NCHW", "f32"))
            if direction == "forward" or d == 2]


def three_axes():
    return [Convolution(direction, layout, dtype, 4, (16, 28, 28), 64, 64, (3, 3, 3), 1, 1)
            for direction in ("forward", "data", "filter") for layout, dtype in (("NHWC", "f16"), ("NCHW", "f16"), ("NHWC", "f32"))]


def planes_by_two():
    return [Convolution(direction, "NCHW", "f16", images, (n, n), c, f, (taps, taps), 2, taps // 2 if taps % 2 else 1, 1, groups)
            for direction, images, n, c, f, taps, groups in (
                ("data", 32, 56, 64, 128, 3, 1), ("data", 16, 56, 64, 128, 4, 1), ("forward", 32, 56, 64, 64, 3, 4),
                ("filter", 32, 56, 64, 64, 3, 4), ("filter", 32, 56, 256, 512, 1, 1))]


def layers():
    forward, data, filters = ([conv for images in (1, 32, 256) for conv in resnet(direction, images=images)]
                              for direction in ("forward", "data", "filter"))
    groups = {"forward 3x3": [conv for conv in forward if conv.taps == (3, 3)],
              "forward 1x1": [conv for conv in forward if conv.taps == (1, 1)],
              "forward with residual": [dataclasses.replace(conv, joined=True) for conv in forward],
              "stem": stems(), "data gradient": data, "filter gradient": filters, "upwards": upward(),
              "grouped": grouped(), "dilated": dilated(), "three axes": three_axes(), "planes by 2": planes_by_two(),
              "NCHW": [conv for d in ("forward", "data", "filter") for conv in resnet(d, "NCHW")[1:10:4]],
              "NCHW forward": [conv for i, conv in enumerate(resnet("forward", "NCHW")) if i not in (1, 5, 9)],   # the others
              "f32": [conv for d in ("data", "filter") for conv in resnet(d, "NCHW", "f32")[1:10:4]]}
    return [case_of(conv, group) for group, convs in groups.items() for conv in convs]


# ---- drawing

def draw_channels(rng, most):
    size = round(math.exp(rng.uniform(0, math.log(most))))
    return rng.choice((size, max(8, round(size / 8) * 8)))


def draw_convolution(rng):
    count = rng.choice((1, 2, 2, 2, 3))
    size, r = round(math.exp(rng.uniform(math.log(5), math.log(224)))), rng.choice((1, 2, 3, 3, 3, 4, 5, 7))
    dilation, groups = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2, 8, 32))
    return Convolution(rng.choice(("forward", "forward", "data", "filter")), rng.choice(("NHWC", "NCHW")),
                       rng.choice(("f16", "f16", "bf16", "f32")), rng.choice((1, 2, 8, 32, 64)), (size,) * count,
                       draw_channels(rng, 1024 // groups), draw_channels(rng, 1024 // groups), (r,) * count,
                       rng.choice((1, 1, 2, 3)), rng.choice((0, dilation * (r // 2), dilation * (r // 2))), dilation, groups)


def draw(seed, count):
    rng, drawn = random.Random(seed), []
    while len(drawn) < count:
        conv = draw_convolution(rng)
        if conv.is_legal() and max(conv.elements()) <= MOST_ELEMENTS and \
                conv.terms() * conv.elements()[{"forward": 1, "data": 0, "filter": 2}[conv.direction]] <= MOST_TERMS:
            drawn.append(case_of(conv, "random convolution"))
    return drawn


# ---- what was measured

def result(row):
    """Of a line of bench/run.py: `ahead` is how many times as fast as the faster peer."""
    if "failed" in row:
        return {"case": row["case"], "failed": row["failed"]}
    peers = {name: us for name, us in row["peers"].items() if isinstance(us, float)}
    return {"case": row["case"], "us": round(row["us"], 1), "predicted_us": round(row["predicted_us"], 1),
            "cudnn_us": {name: round(us, 1) for name, us in peers.items()}, "ahead": round(min(peers.values()) / row["us"], 2),
            "kernels": [" ".join(tile.split()[:2]) for tile in row["tiles"]]}


def collect(paths, target):
    """Of first choices: each group's geometric mean and least."""
    about, lines = cases.measured(paths)
    groups = {name: [result(row) for row in found] for name, found in lines.items()}
    summary = {name: {"cases": len(found), "geomean": round(statistics.geometric_mean(row["ahead"] for row in found if "ahead" in row), 2),
                      "least": min(row["ahead"] for row in found if "ahead" in row)} for name, found in groups.items()}
    with open(target, "w") as file:
        json.dump({"about": about, "method": "CUDA graph, cold L2, interleaved, medians, us; outputs checked against float64; cuDNN in "
                   "benchmark mode: torch the case's layout, layout the other one", "groups": summary,
                   "cases": [row for found in groups.values() for row in found]}, file, indent=1)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("layers", "draw"):
        generate.add_arguments(commands.add_parser(command))
    for command in list(commands.choices.values()):
        command.add_argument("--only", default="", help="a regular expression that a case's name holds")
    commands.choices["draw"].add_argument("--seed", type=int, default=1)
    commands.choices["draw"].add_argument("--count", type=int, default=60)
    collecting = commands.add_parser("collect")
    collecting.add_argument("results", nargs="+", help="what bench/run.py appended to")
    collecting.add_argument("target")
    args = parser.parse_args()
    if args.command == "collect":
        return collect(args.results, args.target)
    listed = layers() if args.command == "layers" else draw(args.seed, args.count)
    return generate.write_kernels(args, [case for case in listed if re.search(args.only, case.name)])


if __name__ == "__main__":
    sys.exit(main())
