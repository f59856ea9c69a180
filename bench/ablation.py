"""What does each part of the construction buy? Roller's 119 operators without the reuse score, with one path in place of three, without
shrinking, without padding of banks or tensors, and with the first programs found in place of the best.

    python3 bench/ablation.py build/rollerc roller_ops.json --device h100           # no GPU; some minutes
    python3 bench/ablation.py build/rollerc roller_ops.json --only '^M' --json a.json

The list of operators is that of the paper's artifact (OSDI'22, figure 10): id, kind and sizes of each. Times are those that the model
expects of its first choice: what the model does not price, as conflicts of banks, does not show. `rollerc --without` is for this
script: it goes with `-d` alone.
"""
import argparse
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile

PARTS = {
    "score": "reuse score: axes grow in their order",
    "beam": "three paths: one, as in the paper",
    "shrink": "shrinking while SMs idle",
    "bank-padding": "padding of banks",
    "tensor-padding": "padding of tensors",
    "model": "the model inside a kind of kernel: first found",
}
IDS = re.compile(r"[CDEPRM]\d+")   # of figure 10; the rest of the list is scaled up


def convolution(p, depthwise):
    pad, stride = p["pad"], p["stride"]
    at = lambda o, t: f"{stride}*{o} + {t} - {pad}" if pad else f"{stride}*{o} + {t}"
    read = f"x[n, {'f' if depthwise else 'k'}, {at('h', 'r')}, {at('v', 's')}]"
    read = f"pad({read}, 0)" if pad else read
    channels = p["C"] if depthwise else p["F"]
    height, width = (max(p[size], stride * (p[out] - 1) + p[taps] - 2 * pad)   # C38 reads an image that has its border
                     for size, out, taps in (("H", "HO", "KH"), ("W", "WO", "KW")))
    shape = f"{channels}, {p['KH']}, {p['KW']}" if depthwise else f"{channels}, {p['C']}, {p['KH']}, {p['KW']}"
    taps, filter_at = ("r, s", "w[f, r, s]") if depthwise else ("k, r, s", "w[f, k, r, s]")
    return (f"input x[{p['N']}, {p['C']}, {height}, {width}] : f32\ninput w[{shape}] : f32\n"
            f"y[n, f, h:{p['HO']}, v:{p['WO']}] = sum[{taps}]({read} * {filter_at})\n")


def pool(p):
    pad, stride = p["pad"], p["stride"]
    read = f"x[n, c, {stride}*h + r - {pad}, {stride}*v + s - {pad}]"
    read = f"pad({read}, 0)" if pad else read
    return (f"input x[{p['N']}, {p['C']}, {p['H']}, {p['W']}] : f32\n"
            f"y[n, c, h:{p['HO']}, v:{p['WO']}] = sum[r:{p['KH']}, s:{p['KW']}]({read}) / {p['KH'] * p['KW']}\n")


def elementwise(p):
    axes = ", ".join(f"i{d}" for d in range(len(p["shape"])))
    return f"input x[{', '.join(map(str, p['shape']))}] : f32\ny[{axes}] = max(x[{axes}], 0)\n"


def reduction(p):
    axes = [f"i{d}" for d in range(len(p["shape"]))]
    kept = [axis for d, axis in enumerate(axes) if d not in p["reduce_axes"]]
    return (f"input x[{', '.join(map(str, p['shape']))}] : f32\n"
            f"y[{', '.join(kept)}] = sum[{', '.join(axes[d] for d in p['reduce_axes'])}](x[{', '.join(axes)}])\n")


def product(p):
    return f"input a[{p['M']}, {p['K']}] : f32\ninput b[{p['K']}, {p['N']}] : f32\ny[m, n] = sum[k](a[m, k] * b[k, n])\n"


def program(operator):
    kind, p = operator["kind"], operator["params"]
    text = {"conv2d": lambda: convolution(p, False), "depthwise_conv2d": lambda: convolution(p, True), "avg_pool2d": lambda: pool(p),
            "elementwise_relu": lambda: elementwise(p), "reduce_sum": lambda: reduction(p), "matmul": lambda: product(p)}[kind]()
    return text + "output y : f32\n"


def construct(rollerc, device, path, without):
    """(programs completed, the first candidate's time, how it looks)."""
    options = ["--without", without] if without else []
    said = subprocess.run([rollerc, path, "--device", device, "-q", "-d", "rprogram", *options], capture_output=True, text=True, check=True).stdout
    first = re.search(r"^candidate 1: ([\d.]+) us.*?\n(.*?)(?=^candidate 2|^generated)", said, re.MULTILINE | re.DOTALL)
    tiles = re.sub(r"^  (predicted|[\d.]+ waves).*\n", "", first[2], flags=re.MULTILINE)
    return int(re.search(r"feasible (\d+)", said)[1]), float(first[1]), tiles


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(operators, found):
    kinds = list(dict.fromkeys(operator["kind"] for operator in operators))
    yield "| left out | programs completed | first choices that change | expected time | " + " | ".join(kinds) + " |"
    yield "|---" * (4 + len(kinds)) + "|"
    for part in ["", *PARTS]:
        pairs = [(operator["kind"], found[operator["id"], part], found[operator["id"], ""]) for operator in operators]
        ratios = {kind: geomean([own[1] / whole[1] for k, own, whole in pairs if k == kind]) for kind in kinds}
        yield (f"| {PARTS.get(part, 'nothing')} | {sum(own[0] for _, own, _ in pairs)} | {sum(own[2] != whole[2] for _, own, whole in pairs)} | "
               f"{geomean([own[1] / whole[1] for _, own, whole in pairs]):.3f} | " + " | ".join(f"{ratios[kind]:.3f}" for kind in kinds) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollerc")
    parser.add_argument("operators", help="a JSON list of id, kind, params")
    parser.add_argument("--device", default="h100")
    parser.add_argument("--only", default="", help="a regular expression that an id holds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", help="write each operator's figures to this file")
    args = parser.parse_args()
    with open(args.operators) as file:
        operators = [operator for operator in json.load(file) if IDS.fullmatch(operator["id"]) and re.search(args.only, operator["id"])]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool_of_threads:
        for operator in operators:
            with open(os.path.join(folder, operator["id"] + ".te"), "w") as file:
                file.write(program(operator))
        keys = [(operator["id"], part) for operator in operators for part in ["", *PARTS]]
        results = pool_of_threads.map(lambda key: construct(args.rollerc, args.device, os.path.join(folder, key[0] + ".te"), key[1]), keys)
        found = dict(zip(keys, results))
    if args.json:
        with open(args.json, "w") as file:
            json.dump([{"id": key[0], "without": key[1], "completed": value[0], "expected_us": value[1]} for key, value in found.items()], file, indent=0)
    print("\n".join(table(operators, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
