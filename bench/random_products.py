"""Products drawn at random: which sizes, types and transpositions nobody thought of?

    python3 bench/random_products.py draw build/rollerc random-cases --seed 1       # kernels, and an index of them
    python3 bench/run.py random-cases random.jsonl --peers torch,compile             # on a GPU machine
    python3 bench/random_products.py collect random.jsonl --seed 1                   # into bench/results/

Sizes are drawn from 1 to 8192 with an even logarithm: a third are multiples of 8, a third primes, a third anything. One
product in four is batched. The same seed draws the same products, so that what was measured can be measured again.
"""
import argparse
import json
import os
import random
import statistics
import sys

import cases
import generate
from draw import draw_size

GROUP = "random product"
MOST = 8192                                  # of a size
MOST_BATCH, MOST_ELEMENTS = 256, 2**28       # of a batch; of a factor or the output
TYPES = ("f16", "bf16", "f32")
TOLERANCE_US = 1                             # as fast: what a launch varies by
RESULTS = os.path.join(cases.BENCH, "results", "random-products.md")


# ---- drawing

def draw_sizes(rng):
    """(batch, m, n, k) that memory holds; batch 0: there is none."""
    while True:
        batch = draw_size(rng, MOST_BATCH) if rng.random() < 1 / 4 else 0
        m, n, k = (draw_size(rng, MOST) for _ in range(3))
        if max(batch, 1) * max(m * k, k * n, m * n) <= MOST_ELEMENTS:
            return batch, m, n, k


def dims(batch, first, second, turned):
    """Of a factor, which may lie turned."""
    return ", ".join([batch] * bool(batch) + ([second, first] if turned else [first, second]))


def draw_case(rng):
    batch, m, n, k = (str(size or "") for size in draw_sizes(rng))
    dtype, each = rng.choice(TYPES), "l" if batch else ""
    turned = [rng.random() < 1 / 2 for _ in "AB"]
    text = (f"input A[{dims(batch, m, k, turned[0])}] : {dtype}\n"
            f"input B[{dims(batch, k, n, turned[1])}] : {dtype}\n"
            f"C[{dims(each, 'i', 'j', False)}] = "
            f"sum[k](A[{dims(each, 'i', 'k', turned[0])}] * B[{dims(each, 'k', 'j', turned[1])}])\n"
            f"output C : {dtype}\n")
    factors = [factor + ".mT" * turn for factor, turn in zip("AB", turned)]
    name = f"{GROUP} {' '.join(factors)} {'x'.join(size for size in (batch, m, n, k) if size)} {dtype}"
    return cases.Case(name, GROUP, dtype, text, [], [], {"torch": " @ ".join(factors), "terms": k})


def draw(seed, count):
    rng = random.Random(seed)
    return [draw_case(rng) for _ in range(count)]


# ---- what was measured

def ahead(row):
    """How many times as fast as the faster peer; at least 1 within the tolerance."""
    peer = min(us for us in row["peers"].values() if isinstance(us, float))
    return max(peer / row["us"], 1.0 if row["us"] <= peer + TOLERANCE_US else 0.0)


def cells(row):
    """Of one line of the table."""
    name = row["case"][len(GROUP) + 1:]
    if "failed" in row:
        return [name, "failed: " + row["failed"].replace("|", "/")]
    times = [row["predicted_us"], row["us"], row["peers"].get("torch"), row["peers"].get("compile")]
    return [name, *(f"{us:.1f}" if isinstance(us, float) else "" for us in times), f"{ahead(row):.2f}"]


def table(rows, about, seed):
    """Markdown, the slowest beside its peers first."""
    rows = sorted(rows, key=lambda row: 0 if "failed" in row else ahead(row))
    ratios = [ahead(row) for row in rows if "failed" not in row]
    heads = ["product", "predicted", "us", "torch", "torch.compile", "times as fast"]
    lines = [heads, ["---"] * len(heads), *map(cells, rows)]
    return f"""\
# {len(rows)} products drawn with seed {seed}

Written by `bench/random_products.py`. {about["device"]}, {about["date"][:10]}, PyTorch {about["torch"]}; times in us, beside
the faster peer. Who is within {TOLERANCE_US} us of it is as fast.

Geometric mean {statistics.geometric_mean(ratios):.2f}; {sum(ratio < 0.6 for ratio in ratios)} below 0.6, \
{sum(ratio < 0.4 for ratio in ratios)} below 0.4, {len(rows) - len(ratios)} failed.

""" + "".join(f"| {' | '.join(line + [''] * (len(heads) - len(line)))} |\n" for line in lines)


def collect(path, seed):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    about = [row["about"] for row in rows if "about" in row][-1]
    text = table([row for row in rows if "case" in row], about, seed)
    with open(RESULTS, "w") as file:
        file.write(text)
    print(text)
    return 0


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    generate.add_arguments(drawing)
    drawing.add_argument("--count", type=int, default=60)
    collecting = commands.add_parser("collect")
    collecting.add_argument("results", help="what bench/run.py appended to")
    for command in (drawing, collecting):
        command.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.command == "collect":
        return collect(args.results, args.seed)
    return generate.write_kernels(args, draw(args.seed, args.count))


if __name__ == "__main__":
    sys.exit(main())
