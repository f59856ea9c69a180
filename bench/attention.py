"""Attention and what is written around it, each as plain definitions, beside scaled_dot_product_attention and flex_attention.

    python3 bench/attention.py build/rollerc attention --device h200 --only 'causal'
    python3 bench/run.py attention attention.jsonl --peers torch,cudnn,compile --seconds 300    # on a GPU machine
    python3 bench/attention.py collect attention.jsonl bench/results/h200-attention.json

The peer `cudnn` is cuDNN's attention, `torch` FlashAttention's, of a bias the memory-efficient one, and `compile` flex_attention
of biases, windows and soft caps. Few rows are beside a kernel that reads as many bytes and keeps only maxima; the log-sum of
logits beside its product alone and beside two launches with the logits in memory; the twelve layers of BERT-base beside
PyTorch's, eager and by torch.compile, which tries kernels for each product (`max-autotune`): that takes it a minute.
"""
import argparse
import dataclasses
import json
import re
import statistics
import sys

import cases
import generate

WINDOW, CAP = 256, 50                        # columns that a row sees, the bound of its scores
READ = 4096                                  # elements of each maximum of the kernel that only reads


@dataclasses.dataclass(frozen=True)
class Attention:
    """`groups`: heads of k and v; `rows`: of each head of q, `columns`: of each head of k."""
    images: int
    heads: int
    rows: int
    columns: int
    elements: int
    dtype: str = "f16"
    kind: str = "plain"                      # or causal, bias, window, soft cap
    groups: int = 0                          # as many as heads
    typed: bool = True

    @property
    def heads_of_k(self):
        return self.groups or self.heads

    def label(self):
        sizes = [self.images, self.heads, self.rows, self.columns, self.elements]
        words = ["x".join(map(str, sizes))] + [self.kind] * (self.kind != "plain")
        words += [f"{self.groups} heads of k"] * (self.groups > 0) + ["untyped"] * (not self.typed)
        return " ".join(words + [self.dtype])

    def bytes_of_k(self):
        """And of v."""
        return 2 * 2 * self.images * self.heads_of_k * self.columns * self.elements


SCORES = {"plain": "{s}", "bias": "{s} + bias[{head}, i, j]", "soft cap": f"{CAP} * tanh({{s}} / {CAP})",
          "causal": "select(j <= i, {s}, -inf)", "window": f"select(j <= i && i - j < {WINDOW}, {{s}}, -inf)"}
LIMITS = {"soft cap": f", limit={CAP}", "window": f", limit={WINDOW}"}


def program(case):
    """Heads of a group have a dimension of their own."""
    shape, head, of_k = ([case.heads], "h", "h") if not case.groups else ([case.groups, case.heads // case.groups], "g, h", "g")
    sizes = ", ".join(map(str, [case.images, *shape, case.rows, case.elements]))
    k_sizes = f"{case.images}, {case.heads_of_k}, {case.columns}, {case.elements}"
    bias = f"input bias[{', '.join(map(str, shape))}, {case.rows}, {case.columns}] : {case.dtype}\n" * (case.kind == "bias")
    scores = SCORES[case.kind].format(s=f"s[b, {head}, i, j] * {case.elements ** -0.5!r}", head=head)
    return f"""\
input q[{sizes}] : {case.dtype}
input k[{k_sizes}] : {case.dtype}
input v[{k_sizes}] : {case.dtype}
{bias}s[b, {head}, i, j] = sum[d](q[b, {head}, i, d] * k[b, {of_k}, j, d])
t[b, {head}, i, j] = {scores}
m[b, {head}, i] = max[j](t[b, {head}, i, j])
e[b, {head}, i, j] = exp(t[b, {head}, i, j] - m[b, {head}, i])
z[b, {head}, i] = sum[j](e[b, {head}, i, j])
p[b, {head}, i, j]{f" : {case.dtype}" * case.typed} = e[b, {head}, i, j] / z[b, {head}, i]
y[b, {head}, i, d] = sum[j](p[b, {head}, i, j] * v[b, {of_k}, j, d])
output y : {case.dtype}
"""


def case_of(case, group):
    def call(how):
        return (f"attention({how!r}, {case.kind!r}, q, k, v{', bias' * (case.kind == 'bias')}"
                f"{', mask=mask' * (case.kind == 'window')}{LIMITS.get(case.kind, '')})")
    entry = {"terms": str(case.columns), "rounded": case.dtype, "torch": call("efficient" if case.kind == "bias" else "flash"),
             "cudnn": call("cudnn"), "reference": call("reference"), "bytes of k": case.bytes_of_k(), "compile": None}
    if case.kind in ("bias", "window", "soft cap"):
        entry["compile"] = call("flex")
    if case.kind == "window":
        entry["setup"] = {"mask": f"window_mask({case.rows}, {case.columns}, {WINDOW})"}
    return cases.Case(f"{group} {case.label()}", group, case.dtype, program(case), [], [], entry)


def of_squares(sizes, dtypes=("f16",), kinds=("plain", "causal")):
    return [Attention(images, heads, n, n, d, dtype, kind) for images, heads, n, d in sizes for kind in kinds for dtype in dtypes]


LONG = ((16, 32, 2048, 64), (16, 16, 2048, 128), (4, 32, 8192, 64), (4, 16, 8192, 128), (8, 16, 2048, 64), (2, 8, 8192, 128))
SHORT = ((16, 16, 197, 64), (32, 12, 512, 64), (16, 12, 577, 64), (8, 16, 577, 128))
ODD = ((8, 16, 1000, 64), (1, 16, 4097, 128), (8, 16, 1000, 72), (8, 16, 1024, 80), (8, 16, 1024, 96), (4, 12, 1000, 128))
AROUND = ((4, 16, 2048, 64), (4, 16, 2048, 128))


def few(rows, heads, columns, elements, groups=0):
    return Attention(1, heads, rows, columns, elements, groups=groups)


LARGE = [few(1, 32, 16384, 128), few(4, 32, 16384, 128), few(1, 64, 65536, 128, 8), few(2, 64, 65536, 128, 8), few(1, 32, 2048, 128),
         few(1, 32, 8000, 128, 8), few(16, 8, 8192, 128), few(16, 8, 65536, 128), few(4, 64, 2048, 64)]
SMALL = [few(rows, heads, columns, elements) for rows, sizes in {
    1: ((32, 1024, 128), (8, 4096, 128), (32, 512, 128), (8, 2048, 128), (8, 512, 128), (64, 512, 128), (16, 2048, 64), (8, 12288, 64),
        (32, 1536, 128)),
    4: ((32, 1024, 128), (8, 4096, 128), (16, 2048, 128), (8, 1024, 128), (32, 1024, 64), (64, 512, 64), (8, 6144, 128), (8, 512, 64)),
    16: ((8, 4096, 128), (8, 2048, 128), (8, 1024, 128), (16, 512, 128), (16, 2048, 64), (8, 8192, 64), (32, 1024, 128), (64, 512, 64),
         (16, 2048, 128), (8, 6144, 128))}.items() for heads, columns, elements in sizes]


def reading(nbytes):
    text = f"input x[{nbytes // 2 // READ}, {READ}] : f16\ny[a] = max[b](x[a, b])\noutput y : f16\n"
    return cases.Case(f"reading {nbytes}", "reading", "f16", text, [], [], {"torch": "x.amax(1)", "reference": "x.amax(1)", "compile": None, "bytes of k": nbytes})


LOGITS = "sum[k](x[i, k] * w[j, k])"
HEAD = "input x[8192, 1024] : f16\ninput w[50257, 1024] : f16\n"
LOG_SUM = "m[i] = max[j](l[i, j])\nz[i] = sum[j](exp(l[i, j] - m[i]))\ny[i] = m[i] + log(z[i])\noutput y : f32\n"


def logits():
    """The log-sum of a row of logits in one program, its product alone, and the log-sum of logits that are in memory."""
    texts = {"log-sum": (HEAD + f"l[i, j] = {LOGITS}\n" + LOG_SUM, "torch.logsumexp(wide(x) @ wide(w).T, 1)",
                         "torch.logsumexp((x @ w.T).float(), 1)"),
             "product, f32": (HEAD + f"l[i, j] = {LOGITS}\noutput l : f32\n", "wide(x) @ wide(w).T", "(x @ w.T).float()"),
             "log-sum of what is stored": ("input l[8192, 50257] : f32\n" + LOG_SUM, "torch.logsumexp(l, 1)", "torch.logsumexp(l, 1)")}
    return [cases.Case(f"logits {name}", "logits", "f16", text, [], [],
                       {"terms": "50257", "reference": reference, "torch": eager, "compile": None})
            for name, (text, reference, eager) in texts.items()]


# ---- BERT-base

LAYERS, WIDTH, HEADS, HIDDEN = 12, 768, 12, 3072
TENSORS = {**{f"w{of}": (WIDTH, WIDTH) for of in "qkvo"}, "w1": (WIDTH, HIDDEN), "w2": (HIDDEN, WIDTH),
           **{f"b{of}": (WIDTH,) for of in "qkvo"}, "b1": (HIDDEN,), "b2": (WIDTH,),
           **{f"{of}{of_layer}": (WIDTH,) for of in ("gamma", "beta") for of_layer in (1, 2)}}   # of a layer


def normalised(name, of, gamma, beta):
    return f"""\
{name}_mean[b, i] = sum[c]({of}[b, i, c]) / {WIDTH}
{name}_centred[b, i, c] = {of}[b, i, c] - {name}_mean[b, i]
{name}_square[b, i] = sum[c](sq({name}_centred[b, i, c])) / {WIDTH}
{name}[b, i, c] : f16 = {name}_centred[b, i, c] / sqrt({name}_square[b, i] + 1e-12) * {gamma}[c] + {beta}[c]
"""


def layer(n, images, rows):
    """x{n} to x{n + 1}; its maps are of f16, scores are not."""
    lines = "".join(f"""\
{of}{n}_lines[b, i, c] : f16 = sum[k](x{n}[b, i, k] * w{of}_{n}[k, c]) + b{of}_{n}[c]
view {of}{n}[{images}, {rows}, {HEADS}, {WIDTH // HEADS}] = {of}{n}_lines
""" for of in "qkv")
    return f"""{lines}\
s{n}[b, h, i, j] = sum[d](q{n}[b, i, h, d] * k{n}[b, j, h, d]) / {(WIDTH // HEADS) ** 0.5}
m{n}[b, h, i] = max[j](s{n}[b, h, i, j])
e{n}[b, h, i, j] = exp(s{n}[b, h, i, j] - m{n}[b, h, i])
z{n}[b, h, i] = sum[j](e{n}[b, h, i, j])
p{n}[b, h, i, j] : f16 = e{n}[b, h, i, j] / z{n}[b, h, i]
y{n}[b, i, h, d] : f16 = sum[j](p{n}[b, h, i, j] * v{n}[b, j, h, d])
view y{n}_lines[{images}, {rows}, {WIDTH}] = y{n}
a{n}[b, i, c] : f16 = sum[k](y{n}_lines[b, i, k] * wo_{n}[k, c]) + bo_{n}[c] + x{n}[b, i, c]
{normalised(f"g{n}", f"a{n}", f"gamma1_{n}", f"beta1_{n}")}\
l{n}[b, i, j] : f16 = sum[c](g{n}[b, i, c] * w1_{n}[c, j]) + b1_{n}[j]
h{n}[b, i, j] : f16 = l{n}[b, i, j] * 0.5 * (1 + erf(l{n}[b, i, j] * {0.5 ** 0.5!r}))
r{n}[b, i, c] : f16 = sum[j](h{n}[b, i, j] * w2_{n}[j, c]) + b2_{n}[c] + g{n}[b, i, c]
{normalised(f"x{n + 1}", f"r{n}", f"gamma2_{n}", f"beta2_{n}")}"""


def bert(images, rows):
    """Errors of twelve layers, each of which rounds its maps, add up: as much as one of the next narrower type is right."""
    names = [f"{name}_{n}" for n in range(LAYERS) for name in TENSORS]
    sizes = [shape for _ in range(LAYERS) for shape in TENSORS.values()]
    inputs = [f"input {name}[{', '.join(map(str, shape))}] : f16\n" for name, shape in zip(names, sizes)]
    text = "".join([f"input x0[{images}, {rows}, {WIDTH}] : f16\n", *inputs, *(layer(n, images, rows) for n in range(LAYERS)),
                    f"output x{LAYERS} : f16\n"])
    call = f"bert(x0, {HEADS}, {len(TENSORS)}, [{', '.join(names)}])"
    entry = {"torch": call, "reference": call, "compile": call, "mode": "max-autotune-no-cudagraphs", "terms": str(HIDDEN),
             "rounded": "bf16", "inputs": dict.fromkeys(names, "small")}
    return cases.Case(f"BERT {images}x{rows} f16", "BERT", "f16", text, [], [], entry)


def listed():
    both = ("f16", "bf16")
    groups = {"long": of_squares(LONG, both), "short": of_squares(SHORT, both), "odd": of_squares(ODD),
              "around": [Attention(images, heads, n, n, d, kind=kind) for images, heads, n, d in AROUND
                         for kind in ("bias", "window", "soft cap")] +
              [Attention(images, heads, n, n, d, groups=4) for images, heads, n, d in AROUND],
              "untyped": [Attention(images, heads, n, n, d, dtype, typed=False) for images, heads, n, d in AROUND for dtype in both],
              "few rows": LARGE, "few rows, small": SMALL}
    sizes = sorted({case.bytes_of_k() for case in LARGE + SMALL})
    return [case_of(case, group) for group, found in groups.items() for case in found] + [reading(n) for n in sizes] + logits() + \
        [bert(1, 128), bert(8, 384)]


# ---- what was measured

METHOD = ("CUDA graphs, cold L2, in turns, medians, us; outputs checked against float64; ahead: of the fastest peer; cudnn, torch "
          "(FlashAttention, of a bias the memory-efficient one): back ends of scaled_dot_product_attention; compile: flex_attention")


def result(row):
    """Of a line of bench/run.py."""
    if "failed" in row:
        return {"case": row["case"], "failed": row["failed"]}
    peers = {name: round(us, 2) for name, us in row["peers"].items() if isinstance(us, float)}
    found = {"case": row["case"], "us": round(row["us"], 2), "predicted_us": round(row["predicted_us"], 2), "peers_us": peers,
             "launches": [" ".join(tile.split()[:2]) for tile in row["tiles"]]}
    return {**found, "ahead": round(min(peers.values()) / row["us"], 3)} if peers else found


def collect(paths, target):
    about, lines = cases.measured(paths)
    groups = {name: [result(row) for row in found] for name, found in lines.items()}
    readings = {int(row["case"].split()[1]): row["us"] for row in groups.get("reading", []) if "us" in row}
    sizes = {case.name: case.entry.get("bytes of k") for case in listed()}
    for row in groups.get("few rows", []) + groups.get("few rows, small", []):
        if "us" in row and sizes[row["case"]] in readings:
            row["reading_us"] = readings[sizes[row["case"]]]
    summary = {name: {"cases": len(ahead), "geomean": round(statistics.geometric_mean(ahead), 3), "least": min(ahead)}
               for name, found in groups.items() if (ahead := [row["ahead"] for row in found if "ahead" in row])}
    with open(target, "w") as file:
        json.dump({"about": about, "method": METHOD, "groups": summary, "cases": [row for found in groups.values() for row in found]},
                  file, indent=1)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if sys.argv[1:2] == ["collect"]:
        parser.add_argument("command")
        parser.add_argument("results", nargs="+", help="what bench/run.py appended to")
        parser.add_argument("target")
        args = parser.parse_args()
        return collect(args.results, args.target)
    generate.add_arguments(parser)
    parser.add_argument("--only", default="", help="a regular expression that a case's name holds")
    args = parser.parse_args()
    return generate.write_kernels(args, [case for case in listed() if re.search(args.only, case.name)])


if __name__ == "__main__":
    sys.exit(main())
