#!/usr/bin/env python3
"""gpu_masked.py --rollerc BINARY --device NAME: attention whose v is NaN or infinite where a column is masked.

doc/language.md, Streaming: a term whose factor is exp(-inf) from a `select` may be left out, whatever the other factor is. So a result
is that of the columns a row sees, or, where some masked column's v is not finite, NaN; where a column that it sees is not, neither is
the result. Each shape's first and other kinds of kernels, in f16 and bf16, against float64. Needs PyTorch and a compiler.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
MASKS = {"causal": "j <= i", "window": "j <= i && i - j < 70", "padding": "j < lengths[b]"}
#         b, h, rows, columns, elements: persistent tiles, splits, clusters, warps alone, few rows in clusters, in two launches
SHAPES = [(2, 8, 300, 300, 64), (1, 2, 512, 512, 128), (1, 1, 700, 700, 128), (4, 16, 197, 197, 64), (1, 8, 16, 1024, 128), (1, 1, 4, 9000, 128)]
CANDIDATES = (1, 2, 4)
PROGRAM = """input q[{b}, {h}, {m}, {d}] : {type}
input k[{b}, {h}, {n}, {d}] : {type}
input v[{b}, {h}, {n}, {d}] : {type}
{lengths}s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * 0.1
t[b, h, i, j] = select({mask}, s[b, h, i, j], -inf)
m[b, h, i] = max[j](t[b, h, i, j])
e[b, h, i, j] = exp(t[b, h, i, j] - m[b, h, i])
z[b, h, i] = sum[j](e[b, h, i, j])
p[b, h, i, j] : {type} = e[b, h, i, j] / z[b, h, i]
y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h, j, d])
output y : f32
"""


def seen_by(mask, rows, columns, lengths):
    """[b, 1, i, j]"""
    import torch
    i, j = torch.arange(rows, device="cuda")[:, None], torch.arange(columns, device="cuda")
    return {"causal": (j <= i)[None, None], "window": ((j <= i) & (i - j < 70))[None, None],
            "padding": (j < lengths[:, None])[:, None, None]}[mask]


def wrong(kernel, mask, shape, dtype):
    """How many results are none of those allowed."""
    import torch
    batch, heads, rows, columns, elements = shape
    q, k, v = (torch.randn(batch, heads, n, elements, device="cuda", dtype=dtype) for n in (rows, columns, columns))
    lengths = torch.randint(1, columns, (batch,), device="cuda", dtype=torch.int32)
    seen = seen_by(mask, rows, columns, lengths)
    hidden = torch.rand(v.shape, device="cuda") < 0.002
    hidden[..., :min(rows, columns) // 2, :] = False   # all rows would see the first ones
    v[hidden] = torch.tensor([float("nan"), float("inf"), -float("inf")], device="cuda", dtype=dtype)[torch.randint(3, (int(hidden.sum()),), device="cuda")]
    y = kernel(q, k, v, *([lengths] if mask == "padding" else [])).double()
    scores = (q.double() @ k.double().transpose(2, 3) * 0.1).masked_fill(~seen, -float("inf"))
    wanted = torch.softmax(scores, -1) @ v.double().nan_to_num(0, 0, 0)
    finite = v.isfinite().double()
    sees = seen.double().expand(batch, heads, rows, columns) @ (1 - finite) > 0
    hides = (~seen).double().expand(batch, heads, rows, columns) @ (1 - finite) > 0
    near = (y - wanted).abs() <= 2e-2 * (wanted.abs() + 1)
    right = torch.where(sees, ~y.isfinite(), near | (hides & ~y.isfinite()))
    return int((~right).sum()), int((hides & ~sees & near).sum()), int((hides & ~sees).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--device", required=True)
    options = parser.parse_args()
    import rollerc
    import torch
    torch.manual_seed(1)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = []
        for mask, condition in MASKS.items():
            for at, shape in enumerate(SHAPES):
                if mask != "padding" and shape[2] != shape[3]:
                    continue
                name, (b, h, m, n, d) = ("f16", "bf16")[at % 2], shape
                path = pathlib.Path(folder) / f"{mask}_{at}.te"
                path.write_text(PROGRAM.format(b=b, h=h, m=m, n=n, d=d, type=name, mask=condition, lengths=f"input lengths[{b}] : i32\n" * (mask == "padding")))
                found += [(mask, shape, name, candidate, pool.submit(rollerc.load, str(path), options.device, rollerc=options.rollerc, cache=folder,
                                                                     options=["--candidate", str(candidate)])) for candidate in CANDIDATES]
        for mask, shape, name, candidate, loading in found:
            count, left_out, of = wrong(loading.result(), mask, shape, {"f16": torch.float16, "bf16": torch.bfloat16}[name])
            failed += count > 0
            print(f"{'ok  ' if count == 0 else 'FAIL'} {mask} {shape} {name}, candidate {candidate}: {count} wrong; {left_out} of {of} leave out what is masked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
