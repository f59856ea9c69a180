#!/usr/bin/env python3
"""Bugs planted in the templates are found by --verify.

    python3 tests/run_mutants.py --rollerc build/rollerc            50 random ones (automatic: of TRIAGED), and NAMED
    python3 tests/run_mutants.py --rollerc build/rollerc --all      all of them
    python3 tests/run_mutants.py --rollerc build/rollerc --only reduce.cu --unlisted   after a change of one template

A mutant that changes nothing a program could see is listed in tests/mutants/equivalent.txt, one a line, its reason
behind " # "; one that waits for a better detector likewise, its reason beginning with "WAITS: ". No others may survive.
"""
import argparse
import collections
import functools
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import common
from differential.programs import PROGRAMS, options_of, source
from mutants.automatic import TRIAGED, automatic
from mutants.hand import HAND, NAMED
from run_differential import Ranker

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "templates"
EQUIVALENT = ROOT / "tests/mutants/equivalent.txt"
HANG_SECONDS = 10   # of work, however busy the machine is
MAX_EQUIVALENT = 0.07   # of all; most of them only cost time, a fifth wait for a better program or detector

# An h200 of a few units, for kernels that wait until there are many rows for each; and one with small launches, too.
SMALL, FEW = "small", "few"


def small_device(units=4):
    text = (ROOT / "devices/h200.yaml").read_text().replace("name: h200", f"name: {SMALL}")
    count = int(re.search(r"sm_count: (\d+)", text)[1])
    return re.sub(r"(?m)^(  (?:sm_count|fp\d+|int32|sfu|tensor_\w+|bandwidth_gb_s): )(\d+)",
                  lambda match: match[1] + str(int(match[2]) * units // count), text)


# (program of differential/programs.py, type, sizes[, devices]): what each family's template is exercised with. Several
# candidates of each: the best one of every variant and the family's last.
CASES = {
    "elementwise": [("chain", "f32", dict(M=67, N=64)), ("mask", "f32", dict(M=3, N=1031)),
                    ("mask", "f16", dict(M=64, N=40)),
                    ("transpose", "i8", dict(M=37, N=129)), ("chain", "bf16", dict(M=1, N=2)),
                    ("chain", "f64", dict(M=5, N=1021))],
    "loopnest": [("bits", "f32", dict(M=1030, N=3)), ("generic_matmul", "f32", dict(M=19, N=13)),
                 ("bits", "f32", dict(M=64, N=5))],
    "matmul": [("matmul", "f32", dict(M=67, N=61, K=37)), ("matmul_batched", "f16", dict(M=33, N=64, K=16), "v100"),
               ("matmul_transposed", "f32", dict(M=130, N=66, K=8)), ("convolution", "f32", dict(M=9, N=11, K=3)),
               ("matmul", "f32", dict(M=600, N=36, K=4)), ("matmul", "i8", dict(M=5, N=7, K=64)),
               ("matmul", "f64", dict(M=32, N=32, K=33)), ("matmul", "f32", dict(M=130, N=132, K=37), SMALL),
               ("matmul_small", "f32", dict(M=7, N=8, K=20)), ("matmul_small", "f64", dict(M=6, N=4, K=11)),
               ("matmul_transposed", "f32", dict(M=132, N=130, K=52), SMALL),
               ("matmul_batched", "f32", dict(M=66, N=68, K=16), SMALL),
               ("convolution_phases", "f32", dict(M=9, N=18)), ("convolution_by_taps", "f32", dict(M=9, N=5)),
               ("convolution_last", "f32", dict(M=12, N=9))],
    "gemm": [("gemm_phases", "f16", dict(M=3, N=18)), ("gemm_planes_of_phases", "f16", dict(M=5, N=18)), ("gemm", "f16", dict(M=33, N=80, K=296)), ("gemm", "i8", dict(M=19, N=80, K=304)),
             ("gemm", "f32", dict(M=64, N=32, K=320)),
             ("gemm", "f64", dict(M=20, N=80, K=65)), ("gemm_transposed", "bf16", dict(M=40, N=34, K=261)),
             ("gemm_transposed", "i8", dict(M=33, N=33, K=300)), ("gemm_transposed", "u8", dict(M=48, N=35, K=304)),
             ("gemm_transposed", "f64", dict(M=128, N=33, K=50)), ("gemm_transposed", "f32", dict(M=64, N=18, K=140)),
             ("gemm_small", "f16", dict(M=10, N=16, K=40)), ("gemm_small", "i8", dict(M=16, N=9, K=70)),
             ("gemm_batched", "u8", dict(M=20, N=33, K=67)), ("gemm_pixels", "f16", dict(M=18, N=9)),
             ("gemm_conv", "bf16", dict(M=18)),
             ("gemm", "f16", dict(M=65, N=8, K=8400), "a100"), ("gemm", "bf16", dict(M=300, N=40, K=32)),
             ("gemm", "f64", dict(M=129, N=80, K=65)),
             ("gemm_rows", "f16", dict(M=5, N=17, K=40)), ("gemm_rows", "bf16", dict(M=9, N=40, K=33))],
    "bulk": [("bulk_rows", "f16", dict(M=70, N=130, K=5)), ("bulk_rows", "bf16", dict(M=130, N=333, K=9)),
             ("bulk", "f16", dict(M=129, K=72)), ("bulk", "f16", dict(M=49, K=136)),
             ("bulk_turned", "bf16", dict(M=49, N=129, K=9)), ("bulk", "bf16", dict(M=3, K=1040)),
             ("bulk_turns", "f16", dict(M=320, N=64)), ("bulk_along_k", "i8", dict(M=129, N=44, K=9)),
             ("bulk_along_k", "f32", dict(M=40, N=128, K=5)), ("bulk_pixels_apart", "bf16", dict(M=17, N=7, K=9)),
             ("bulk_boxes_of_pixels", "f16", dict(M=136, N=9)),
             ("bulk_pixels_of_groups", "f16", dict(M=72, N=9)), ("bulk_gradient_of_groups", "bf16", dict(M=9, N=7)),
             ("bulk_filter", "f16", dict(M=9, N=5)), ("bulk_filter_turned", "bf16", dict(M=9, N=7)),
             ("bulk_filter_of_groups", "f16", dict(M=9, N=7)),
             ("bulk_phases", "bf16", dict(M=17, N=7)), ("bulk_phases_turned", "f16", dict(M=9, N=9)),
             ("bulk_planes_of_phases", "f16", dict(M=9, N=7)), ("bulk_phases_of_groups", "f16", dict(M=3, N=7))],
    "attention": [("attention", "f16", dict(M=37, N=70)), ("attention", "bf16", dict(M=16, N=129)),
                  ("attention_masked", "f16", dict(M=67, N=67)),
                  ("attention_masked", "bf16", dict(M=20, N=41)), ("attention", "f16", dict(M=8, N=330)),
                  ("attention", "bf16", dict(M=15, N=137)),
                  ("attention", "f16", dict(M=5, N=300), "h200"), ("attention", "bf16", dict(M=11, N=141), "h200")],
    "attention_bulk": [("attention_bulk", "f16", dict(M=70, N=133)), ("attention_bulk", "bf16", dict(M=70, N=300)),
                       ("attention_bulk_heads", "f16", dict(M=131, N=131)),
                       ("attention_bulk_heads", "f16", dict(M=300, N=200)),
                       ("attention_bulk_parts", "f16", dict(M=66, N=130)),
                       ("attention_bulk_parts", "bf16", dict(M=70, N=65))],
    "skinny": [("skinny", "f32", dict(N=40, K=72)), ("skinny", "f32", dict(N=40, K=129)),
               ("skinny", "f16", dict(N=33, K=130)), ("skinny_transposed", "f32", dict(M=4, N=19, K=136)),
               ("skinny_transposed", "f16", dict(M=5, N=34, K=67)), ("skinny_transposed", "f16", dict(M=6, N=20, K=36)),
               ("skinny_vector", "f64", dict(N=9, K=104)), ("skinny", "i8", dict(N=7, K=515))],
    "toeplitz": [("toeplitz", "f16", dict(M=5, N=18)), ("toeplitz_wide", "f16", dict(M=9, N=18)),
                 ("toeplitz_wide", "f32", dict(M=3, N=5)), ("toeplitz", "bf16", dict(M=17, N=9)),
                 ("toeplitz_turned", "f16", dict(M=1, N=65)),
                 ("toeplitz_lines", "f16", dict(M=17, N=33)), ("toeplitz_beside", "f16", dict(M=5, N=18)),
                 ("toeplitz", "f32", dict(M=5, N=18)), ("toeplitz_turned", "f32", dict(M=1, N=65)),
                 ("toeplitz_beside", "f32", dict(M=5, N=18))],
    "pairs": [("pairs", "f16", dict(M=3, N=25)), ("pairs_turned", "bf16", dict(M=3, N=70)),
              ("pairs_beside", "f16", dict(M=5, N=18)),
              ("pairs_apart", "f16", dict(M=17, N=9)), ("pairs_lines", "bf16", dict(M=3, N=65))],
    "narrow": [("narrow", "f16", dict(M=12, N=20)), ("narrow_odd", "bf16", dict(M=2, N=11)),
               ("narrow_lines", "f16", dict(M=70, N=200)),
               ("narrow_groups", "bf16", dict(M=9, N=14)), ("narrow_groups_of_two", "f16", dict(M=12, N=9)),
               ("narrow_gradient", "f16", dict(M=5, N=17)), ("narrow_volume", "f16", dict(M=3, N=9)),
               ("narrow_planes", "f16", dict(M=3, N=12)), ("narrow_planes_of_four", "bf16", dict(M=6, N=14))],
    "reduce": [("rows", "f32", dict(M=37, N=1023), "a100", "mi50"), ("columns", "f32", dict(M=257, N=70)),
               ("rows", "f16", dict(M=5, N=4096)), ("everything", "i32", dict(M=9, N=1000)),
               ("columns", "i8", dict(M=67, N=128)),
               ("product", "f64", dict(M=13, N=5)), ("columns", "f32", dict(M=3, N=1024)),
               ("columns", "f32", dict(M=5, N=40), "a100", "mi50"), ("rows", "f32", dict(M=40, N=3), "a100", "mi50"),
               ("rows", "f32", dict(M=3, N=96))],
    "window": [("padded_sum", "f32", dict(M=37, N=257)), ("dilated", "f16", dict(M=3, N=33)),
               ("depthwise", "f32", dict(M=5, N=9)),
               ("depthwise", "f16", dict(M=3, N=33)), ("last_pool", "f32", dict(M=9, N=6)),
               ("whole_columns", "f32", dict(M=5, N=11))],
    "depthwise": [("filter", "f32", dict(M=5, N=17)), ("filter_strided", "f16", dict(M=3, N=21)),
                  ("filter_channels", "f32", dict(M=17, N=13)),
                  ("filter_turned", "f32", dict(M=41, N=33)), ("filter_row", "f64", dict(M=7, N=300)),
                  ("filter_channels", "f16", dict(M=16, N=9)), ("filters_beside", "f32", dict(M=5, N=18)),
                  ("filters_beside_channels", "f16", dict(M=17, N=9))],
    "strip": [("strip", "f32", dict(M=5, N=36)), ("strip", "f16", dict(M=3, N=72)),
              ("strip_strided", "f16", dict(M=3, N=36)),
              ("strip_channels", "f32", dict(M=17, N=13)), ("strip_channels", "f16", dict(M=66, N=9)),
              ("strip_strided", "f64", dict(M=2, N=9))],
    "filter_direct": [("filter_gradient", "f32", dict(M=3, N=19, K=5)),
                      ("filter_gradient", "bf16", dict(M=5, N=24, K=9)),
                      ("filter_gradient_apart", "f32", dict(M=3, N=30, K=9)),
                      ("filter_gradient_lines", "f32", dict(M=9, N=19, K=5))],
    "filter_strip": [("filter_strip", "f32", dict(M=5, N=24, K=5)), ("filter_strip", "bf16", dict(M=3, N=19, K=3)),
                     ("filter_strip_strided", "f32", dict(M=3, N=10, K=3)),
                     ("filter_strip_channels", "f32", dict(M=9, N=40)),
                     ("filter_strip_channels", "f16", dict(M=3, N=66))],
    "filter_gemm": [("filter_gradient_16", "f16", dict(M=5, N=24, K=3)),
                    ("filter_gradient_16", "bf16", dict(M=4, N=15, K=7)),
                    ("filter_gradient_last", "f16", dict(M=5, N=24, K=3)),
                    ("filter_gradient_16", "f32", dict(M=4, N=15, K=7))],
    "filter_groups": [("filter_groups", "f16", dict(M=4, N=13, K=3)), ("filter_groups_apart", "bf16", dict(M=3, N=40)),
                      ("filter_groups_lines", "f16", dict(M=301, K=5)), ("filter_groups_wide", "f16", dict(M=21)),
                      ("filter_groups_planes", "bf16", dict(M=4, N=12))],
    "filter_wide": [("filter_wide", "f16", dict(M=13, K=3)), ("filter_wide", "bf16", dict(M=24, K=2)),
                    ("filter_wide_strided", "f16", dict(M=24, K=3))],
    "rowwise": [("row_softmax", "f32", dict(M=37, N=1023), "a100", "mi50"),
                ("row_range", "i32", dict(M=13, N=40), "a100", "mi50"),
                ("row_norm", "f16", dict(M=5, N=4096)), ("inner_axes", "i8", dict(M=7, N=67)),
                ("row_mask", "f32", dict(M=33, N=130)), ("batch_norm", "f32", dict(M=3, N=1030), "a100"),
                ("normalised_bits", "f32", dict(M=2, N=40)), ("norm_gradient", "f32", dict(M=3, N=67)),
                ("row_norm", "f64", dict(M=1, N=40)), ("row_range", "f32", dict(M=40, N=2)),
                ("row_range", "f32", dict(M=2, N=20000), "h200"), ("row_weights", "f16", dict(M=5, N=77)),
                ("row_specials", "f32", dict(M=6)), ("row_softmax", "f16", dict(M=35, N=12345), SMALL),
                ("row_slope", "f32", dict(M=3, N=1501), "a100", "mi50"), ("row_slope", "f64", dict(M=2, N=4096)),
                ("row_slope", "f16", dict(M=35, N=12345), SMALL), ("row_affine", "f16", dict(M=32, N=24578), "h200"),
                ("row_slope", "f16", dict(M=2, N=28000), "h200"), ("row_causal", "f32", dict(M=6, N=1501)),
                ("row_weights", "f16", dict(M=2, N=1301))],
    "channelwise": [("channels_last", "f32", dict(M=133, N=64)), ("column_softmax", "f32", dict(M=70, N=33), "a100"),
                    ("channels_last", "f16", dict(M=64, N=96)), ("column_softmax", "f64", dict(M=5, N=6)),
                    ("column_softmax", "bf16", dict(M=300, N=7), "a100"),
                    ("column_statistics", "f32", dict(M=2049, N=24)),
                    ("column_statistics", "f32", dict(M=5, N=8), "a100"),
                    ("column_statistics", "f64", dict(M=1000, N=6), "a100"),
                    ("column_gradient", "f32", dict(M=401, N=24), "a100"),
                    ("column_gradient", "f16", dict(M=400, N=96), "a100"),
                    ("columns_of_several_results", "f32", dict(M=401, N=24), "a100"),
                    ("columns_of_several_results", "f64", dict(M=300, N=6), "a100"),
                    ("columns_of_several_results", "f32", dict(M=130, N=300), "a100"),
                    ("column_softmax", "f32", dict(M=10, N=64), "a100")],
    "permute": [("turned", "f32", dict(M=67, N=130)), ("turned", "i8", dict(M=129, N=65)),
                ("turned_inside", "f16", dict(P=5, M=3, N=640)),
                ("turned_inside", "u8", dict(P=4, M=67, N=31)), ("several_axes", "f32", dict(M=7, N=9)),
                ("turned_and_scaled", "f32", dict(M=33, N=70)), ("turned_and_scaled", "f16", dict(M=72, N=40)),
                ("turned_far", "f64", dict(P=33, M=3, N=18)), ("turned", "f32", dict(M=1000, N=3)),
                ("turned", "i8", dict(M=3, N=2000)),
                ("turned_inside", "f16", dict(P=64, M=3, N=40)), ("turned", "i8", dict(M=640, N=128)),
                ("turned_inside", "f16", dict(P=3, M=301, N=193)), ("turned", "i8", dict(M=601, N=67)),
                ("turned", "u8", dict(M=301, N=64)),
                ("turned", "i8", dict(M=9, N=67)), ("turned", "i8", dict(M=5001, N=3)),
                ("several_axes", "f16", dict(M=16, N=9)),
                ("turned_inside", "f64", dict(P=2, M=49, N=49)), ("turned_inside", "f16", dict(P=33, M=7, N=67)),
                ("turned_inside", "f16", dict(P=8, M=301, N=151))],
}
# Where neither the width of a warp nor clusters matter, one device tells as much as several.
DEVICES = collections.defaultdict(lambda: ("a100", "mi50"), gemm=(SMALL,), bulk=(SMALL,),
                                  skinny=("h200",),
                                  attention=("a100",), attention_bulk=(SMALL,),
                                  toeplitz=(SMALL,), depthwise=("h200",), strip=("h200",), pairs=("h200",),
                                  narrow=("a100",), filter_wide=("h200",), filter_direct=("a100",), filter_strip=("a100",),
                                  filter_gemm=("a100",), filter_groups=("a100",),
                                  reduce=("a100",), window=("a100",), rowwise=("a100",),
                                  permute=("a100",))
TEXT_DEVICE = collections.defaultdict(lambda: "a100", gemm="h200", filter_wide="h200", pairs="h200", skinny="h200", toeplitz=SMALL,
                                      bulk=SMALL, attention_bulk=SMALL)
# How many candidates of each program, beside the last and one of odd threads.
COUNTS = collections.defaultdict(lambda: 6, gemm=3, bulk=5, pairs=3, narrow=3, attention=3, attention_bulk=3)
# Infinite taps of images' outermost rows, in two thirds of the channels: outputs that meet them beside the image alone
# are no numbers.
INFINITE_ROWS_OF_TAPS = ("input x[64, 384, 32, 32] : f32  input f[384, 5, 5] : f32"
                         "  w[c, r, s] = select(c < 200 && r == 0 && s == 2"
                         " || c > 220 && r == 4 && s == 0, inf, f[c, r, s])"
                         "  y[n, c, h:32, v:32] = sum[r, s](pad(x[n, c, h + r - 2, v + s - 2], 0) * w[c, r, s])"
                         "  output y  output w")
# One infinite element in a corner of an image, for some channels: not all taps meet it.
INFINITE_CORNERS = ("input g[40, 16, 24, 32] : f32  input d[40, 16, 24, 32] : f32"
                    "  x[n, c, h, v] = select(n == 1 && c < 8 && h == 0 && v == 0"
                    " || n == 2 && c > 9 && h == 23 && v == 31, inf, g[n, c, h, v])"
                    "  w[c, r:3, s:3] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 1, v + s - 1], 0))  output w"
                    "  output x")
# One infinite tap for each of three channels, in rows of the filter that meet none of x;
INFINITE_TAPS = ("input x[9, 4, 3, 8] : f16  input f[4, 23, 9] : f16  w[c, r, s] = select(c == 0 && r == 0 && s == 0"
                 " || c == 1 && r == 22 && s == 8 || c == 2 && r == 0 && s == 5, inf, f[c, r, s])"
                 "  y[n, c, h:3, v:8] = sum[r, s](pad(x[n, c, h + r - 11, v + s - 4], 0) * w[c, r, s])  output y : f16"
                 "  output w : f16")
# of rows of d that meet none of x three channels hold one infinity, and the fourth nothing else.
INFINITE_ROWS = ("input x[5, 400, 2, 24] : f16  input e[5, 400, 21, 16] : f16"
                 "  d[n, c, h, v] = select(h == 0 && (n == 0 && c == 0 && v == 0"
                 " || n == 1 && c == 1 && v == 9 || n == 4 && c == 2 && v == 7) || h < 16 && c == 3, inf, e[n, c, h,"
                 " v])"
                 "  dw[c, r:3, s:3] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 20, v + s - 1], 0))  output dw"
                 "  output d : f16")
# The same of channels that lie side by side, in the outermost taps and in inputs that few taps meet.
INFINITE_CHANNELS = ("input g[32, 32, 32, 128] : f16  input f[7, 7, 128] : f16"
                     "  x[n, h, v, c] = select(n == 0 && h == 0 && v == 31 && c == 3"
                     " || n == 31 && h == 31 && v == 7 && c == 112, inf, g[n, h, v, c])"
                     "  w[r, s, c] = select(r == 0 && s == 6 && c == 70, inf, f[r, s, c])"
                     "  y[n, h:32, v:32, c] = sum[r, s](pad(x[n, h + r - 3, v + s - 3, c], 0) * w[r, s, c])"
                     "  output y : f16  output x : f16  output w : f16")
# Infinite elements beside windows that begin with an odd one, and of every third group of two channels.
INFINITE_PIXELS = ("input a[2, 12, 16, 3] : f16  input w[40, 7, 7, 3] : f16"
                   "  x[n, h:12, v:16, c:3] = select(h == 3 && v % 5 == 0 && c != 1, inf,"
                   " a[n, h, v, c])  y[n, h:6, v:8, f] = sum[r, s, c](pad(x[n, 2*h + r - 3, 2*v + s - 3, c], 0) * w[f,"
                   " r, s, c])"
                   "  output x : f16  output y : f16")
INFINITE_GROUPS = ("input a[8, 28, 28, 32, 2] : f16  input w[32, 2, 3, 3, 2] : f16"
                   "  x[n, h:28, v:28, g, c] = select(h == 3 && v % 5 == 0 && g % 3 == 1 &&"
                   " c == 1, inf, a[n, h, v, g, c])  y[n, h:28, v:28, g, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s -"
                   " 1, g, c], 0) * w[g, f, r, s, c])"
                   "  output x : f16  output y : f16")
# An infinite element in the last column, and windows of no whole number of eight pixels.
INFINITE_COLUMN = ("input a[2, 6, 6, 72] : f16  input d[2, 6, 6, 64] : f16"
                   "  x[n, h:6, v:6, c] = select(n == 1 && h == 2 && v == 5 && c < 9, inf, a[n, h, v, c])"
                   "  dw[f, r:3, s:3, c] = sum[n, h, v](d[n, h, v, f] * pad(x[n, h + r - 1, v + s - 1, c], 0))"
                   "  output x : f16  output dw")
def far_rows(B=2, M=33, N=70, D=8, W=24, share=" : f16"):
    """Attention whose scores of neighbouring rows lie far apart, so that the maximum of another row is found; every
    third row has one score, which is taken from it before it is scaled. Lines of one piece of 16 bytes, or of half a
    tile more than whole ones."""
    return (f"input q[{B}, {M}, {D}] : f16  input k[{B}, {N}, {D}] : f16  input v[{B}, {N}, {W}] : f16"
            f"  input r[{B}, {M}] : f32"
            "  s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])"
            "  t[b, i, j] = select(i % 3 == 0, -1e9, s[b, i, j] + r[b, i] + 50 * (5 * i % 16))"
            "  m[b, i] = max[j](t[b, i, j])  e[b, i, j] = exp(t[b, i, j] - m[b, i])  z[b, i] = sum[j](e[b, i, j])"
            f"  p[b, i, j]{share} = e[b, i, j] / z[b, i]  y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])"
            "  l[b, i] = m[b, i] + log(z[b, i])  output y : f16  output l  output m  output z")


def biased(M, N, bias="f16", masked=""):
    """Attention with something that is read for each score, every one of which has another share."""
    score = "select(a[h, i, j], s[b, h, i, j], -4)" if bias == "b1" else "s[b, h, i, j] + 3 * a[h, i, j]"
    return (f"input q[2, 2, {M}, 64] : f16  input k[2, 2, {N}, 64] : f16  input v[2, 2, {N}, 64] : f16  input a[2, {M}, {N}] : {bias}"
            f"  s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) / 8  t[b, h, i, j] = {f'select({masked}, {score}, -inf)' if masked else score}"
            "  m[b, h, i] = max[j](t[b, h, i, j])  e[b, h, i, j] = exp(t[b, h, i, j] - m[b, h, i])  z[b, h, i] = sum[j](e[b, h, i, j])"
            "  p[b, h, i, j] : f16 = e[b, h, i, j] / z[b, h, i]  y[b, h, i, n] = sum[j](p[b, h, i, j] * v[b, h, j, n])  output y : f16")


def fewer_columns(M, N, condition, more=""):
    """Attention of which each row has other columns than the one before it."""
    return (f"input q[2, {M}, 64] : f16  input k[2, {N}, 64] : f16  input v[2, {N}, 64] : f16"
            "  s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])"
            f"  t[b, i, j] = select({condition}, s[b, i, j] / 8, -inf)  m[b, i] = max[j](t[b, i, j])"
            "  e[b, i, j] = exp(t[b, i, j] - m[b, i])"
            "  z[b, i] = sum[j](e[b, i, j])  p[b, i, j] : f16 = e[b, i, j] / z[b, i]"
            f"  y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])  output y : f16{more}")


# Further programs, and on which device, if not on that one, with which options.
TEXTS = {
    "permute": ["input x[37, 301] : i8  y[j, i:40] = pad(x[i, j], 0)  output y : i8"],
    "elementwise": ["input x[37, 41] : f32  y[i, j] = x[i, j] + i - 2 * j  output y",
                    "input x[9, 300] : i8  y[i, j:300] = x[i, 299 - j] * j  output y : i8"],
    "loopnest": ["input x[1030, 3] : f32  y[i] = sum[j](x[i, j]) + i * 1e-9 > -0.5  output y",
                 # more points, or words of bits, than a launch has threads for
                 ("input x[300000] : u8  y[i:299520] = max[k:3](x[i + k])  output y", FEW),   # turns that are all full,
                 ("input x[300000] : u8  y[i:299521] = max[k:3](x[i + k])  output y",
                  FEW),   # and one of a single thread
                 *((f"input x[2200001] : u8  b[i:{points}] = x[i + 1] * x[i] > x[i + 2]  output b",
                    FEW) for points in (2199968, 2199999))],
    # three stages of a part of a step, of one, of one and a k more, of two
    "matmul": [(f"input A[{k}, 256] : f32  input B[{k}, 256] : f32  C[m, n] = sum[k](A[k, m] * B[k, n])  output C",
                SMALL) for k in (4, 8, 9, 32)]
              + ["input A[257, 20, 8] : f32  input B[257, 20, 8] : f32  C[b, m, n] = sum[k](A[b, k, m] * B[b, k, n])"
                 "  output C"],
    "gemm": ["input x[40, 325] : f16  input B[325, 24] : f16  t[i, k] = select(i == 7 && k == 0, inf, x[i, k])"
             "  y[i, j] = sum[k](t[i, k] * B[k, j])  output y  output t : f16",
             "input A[453, 24] : f16  input w[20, 453] : f16  t[j, k] = select(j == 7 && k == 0, inf, w[j, k])"
             "  y[i, j] = sum[k](A[k, i] * t[j, k])  output y  output t : f16",
             "input A[133, 20, 24] : f16  input B[133, 24, 8] : f16  C[b, m, n] = sum[k](A[b, m, k] * B[b, k, n])"
             "  output C : f16",
             "input A[21, 20, 70] : i8  input B[21, 70, 9] : i8  C[b, m, n] = sum[k](A[b, m, k] * B[b, k, n])"
             "  output C",
             ("input A[40, 192] : f64  input B[40, 16] : f64  C[m, n] = sum[k](A[k, m] * B[k, n])  output C", SMALL),
             ("input A[20, 80] : i8  input B[80, 144] : i8  C[m, n] = sum[k](A[m, k] * B[k, n])  output C", SMALL),
             ("input A[512, 136] : f16  input B[136, 256] : f16  C[m, n] = sum[k](A[m, k] * B[k, n])  output C : f16",
              SMALL),
             # vectors of a lane's rows are read ahead, and rows end within a tile
             "input A[77, 40] : f16  input B[40, 72] : f16  input r[77, 72] : f16  C[i, j] = sum[k](A[i, k] * B[k, j])"
             "  y[i, j] = C[i, j] + r[i, j]  output y : f16"],
    "skinny": ["input x[17] : f32  input B[17, 16] : f32  y[n] = sum[k](x[k] * B[k, n])  output y",
               "input A[5, 70] : f32  input x[70] : f32  y[i] = sum[k](A[i, k] * x[k])  output y",
               "input A[2, 3, 40] : f32  input B[2, 40, 8] : f32  y[b, i, n] = sum[k](A[b, i, k] * B[b, k, n])"
               "  output y",
               "input A[11, 40] : f16  input B[40, 200] : f16  y[i, n] = sum[k](A[i, k] * B[k, n])  output y : f16"],
    "toeplitz": ["input x[5, 4, 16, 8] : f16  input w[4, 9, 9] : f16"
                 "  y[n, c, h:16, v:8] = sum[r, s](pad(x[n, c, h + r - 4, v + s - 4], 0) * w[c, r, s])  output y : f16",
                 "input x[5, 1, 9, 8] : f16  input w[1, 23, 9] : f16"
                 "  y[n, c, h:9, v:8] = sum[r, s](pad(x[n, c, h + r - 11, v + s - 4], 0) * w[c, r, s])  output y : f16",
                 "input x[2, 4, 40] : f16  input w[4, 3] : f16  y[n, c, v:38] = sum[s](x[n, c, v + s] * w[c, s])"
                 "  output y",
                 "input x[9, 5, 1, 8] : f16  input w[5, 2, 4] : f16"
                 "  y[n, c, h:2, v:8] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[c, r, s])  output y",
                 "input x[5, 4, 6, 13] : f16  input w[4, 17, 9] : f16"
                 "  y[n, c, h:6, v:13] = sum[r, s](pad(x[n, c, h + r - 8, v + s - 4], 0) * w[c, r, s])  output y : f16",
                 "input x[9, 2, 6, 13] : f16  input w[2, 17, 9] : f16"
                 "  y[n, c, h:6, v:13] = sum[r, s](pad(x[n, c, h + r - 8, v + s - 4], 0) * w[c, r, s])  output y : f16",
                 "input x[2, 2, 19, 16] : f16  input w[2, 3, 3] : f16"
                 "  y[n, c, h:12, v:12] = sum[r, s](x[n, c, h + r + 5, v + s + 2] * w[c, r, s])  output y : f16",
                 "input x[33, 4, 16, 16] : f16  input w[4, 15, 3] : f16"
                 "  y[n, c, h:16, v:16] = sum[r, s](pad(x[n, c, h + r - 7, v + s - 1], 0) * w[c, r, s])"
                 "  output y : f16",
                 "input x[1, 2, 33, 72] : bf16  input w[2, 3, 19] : bf16"
                 "  y[n, c, h:33, v:72] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 9], 0) * w[c, r, s])"
                 "  output y : bf16",
                 INFINITE_TAPS, (INFINITE_TAPS.replace("f16", "f32"), SMALL, ["--math=tf32"])],
    "pairs": ["input x[2, 13, 9, 8] : f16  input w[3, 3, 8] : f16"
              "  y[n, h:13, v:9, c] = sum[r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[r, s, c])  output y : f16",
              "input x[2, 30, 140, 48] : bf16  input w[3, 19, 48] : bf16"
              "  y[n, h:28, v:115, c] = sum[r, s](x[n, h + r, v + s + 2, c] * w[r, s, c])  output y : bf16",
              "input x[33, 20, 4, 16] : f16  input w[2, 1, 16] : f16"
              "  y[n, h:20, v:4, c] = sum[r, s](pad(x[n, h + r - 1, v + s, c], 0) * w[r, s, c])  output y : f16",
              (INFINITE_CHANNELS, "h200"), (INFINITE_CHANNELS.replace("output y : f16", "output y"), "h200"),
              (INFINITE_CHANNELS.replace("f16", "bf16"), "h200")],
    "narrow": ["input x[3, 20, 300, 4] : f16  input w[140, 3, 3, 4] : f16"
               "  y[n, h:18, v:296, f] = sum[r, s, c](x[n, h + r, v + 2*s, c] * w[f, r, s, c])  output y : f16",
               "input x[2, 9, 130, 3] : bf16  input w[30, 2, 4, 3] : bf16"
               "  y[n, h:8, v:127, f] = sum[r, s, c](x[n, h + r, v + s, c] * w[f, r, s, c])  output y",
               "input x[2, 9, 14, 6, 8] : f16  input w[6, 8, 3, 3, 8] : f16"
               "  y[n, h:9, v:14, g, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, g, c], 0) * w[g, f, r, s, c])"
               "  output y : f16",
               INFINITE_PIXELS, INFINITE_GROUPS],
    "reduce": ["input x[37, 1023] : f32  y[i] = sum[j](select(j < 25 * i, x[i, j], 1))  output y",
               "input x[100003] : f32  s[] = sum[i](x[i])  output s",
               ("input x[2003, 16] : f32  y[j] = sum[i](x[i, j])  output y", SMALL)],   # a last part that lacks whole steps
    "window": ["input x[9, 41, 23] : f32  y[h:8, v:20, c:11] = sum[r:2, s:3, q:3](x[h + r, 2 * v + s, 2 * c + q])"
               "  output y",
               "input x[7, 25, 9] : f64  y[p, v:25, c:9] = sum[s:3, q:3](pad(x[p, v + s - 1, c + q - 1], 0))  output y",
               "input x[64, 63, 9, 9] : f32  input w[63, 5, 5] : f32  y[n, c, h:9, v:9] = sum[r, s](pad(x[n, c, h + r -"
               " 2, v + s - 2], 0) * w[c, r, s])  output y",
               "input x[31, 41, 9, 9] : f32  input w[31, 41, 3, 3] : f32  y[n, c, h:9, v:9] = sum[r, s](pad(x[n, c, h +"
               " r - 1, v + s - 1], 0) * w[n, c, r, s])  output y"],
    "depthwise": ["input x[2, 3, 14, 20] : f32  input w[3, 3, 5] : f32  y[n, c, h:9, v:8] = sum[r, s](x[n, c, h + r +"
                  " 1, v + s + 5] * w[c, r, s])  output y",
                  "input x[2, 3, 268] : f32  input w[3, 9] : f32  y[n, c, v:257] = sum[s](x[n, c, v + s] * w[c, s])"
                  "  output y",
                  "input x[3, 2, 10, 16] : f16  input w[2, 5, 5] : f16  y[n, c, h:10, v:16] = sum[r, s](pad(x[n, c, h +"
                  " r - 2, v + s - 2], 0) * w[c, r, s])  output y : f16",
                  "input x[2, 2, 14, 72] : f32  input w[2, 2, 3, 3] : f32"
                  "  y[n, c, m, h:9, v:70] = sum[r, s](pad(x[n, c, h + r, v + 3 * s - 3], 0) * w[c, m, r, s])"
                  "  output y",
                  "input x[2, 259, 40] : f16  input w[3, 40] : f16  y[n, v:257, c] = sum[s](x[n, v + s, c] * w[s, c])"
                  "  output y : f16",
                  "input x[3, 7, 6, 33] : f32  input w[3, 3, 33, 2] : f32"
                  "  y[n, h:7, v:6, c, m] = sum[r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[r, s, c, m])  output y",
                  "input x[2, 2, 40, 3] : f32  input w[2, 3, 3] : f32  y[n, c, h:40, v:3] = sum[r, s](pad(x[n, c, h + r"
                  " - 1, v + s - 1], 0) * w[c, r, s])  output y",
                  "input x[2, 8, 40] : bf16  input w[8, 4] : bf16  y[n, c, v:40] = sum[s](pad(x[n, c, v + s - 3], 0) *"
                  " w[c, s])  output y : bf16",
                  # an infinite tap of the first filter, none of the second
                  "input x[3, 3, 6, 8] : f32  input f[3, 5, 5] : f32  input u[3, 3, 3] : f32"
                  "  w[c, r, q] = select(c == 0 && r == 0 && q == 0, inf, f[c, r, q])"
                  "  s[n, c, h:6, v:8] = sum[r, q](pad(x[n, c, h + r - 2, v + q - 2], 0) * w[c, r, q])"
                  "  t[n, c, h:6, v:8] = sum[r, q](pad(x[n, c, h + r - 1, v + q - 1], 0) * u[c, r, q])"
                  "  y[n, c, h, v] = s[n, c, h, v] - t[n, c, h, v]  output y  output w"],
    "strip": ["input x[2, 3, 268] : f32  input w[3, 3] : f32  y[n, c, v:266] = sum[s](x[n, c, v + s] * w[c, s])"
              "  output y",
              "input x[70, 1, 9, 72] : f16  input w[1, 3, 3] : f16  y[n, c, h:9, v:72] = sum[r, s](pad(x[n, c, h + r -"
              " 1, v + s - 1], 0) * w[c, r, s])  output y : f16",
              "input x[2, 259, 40] : f16  input w[3, 40] : f16  y[n, v:257, c] = sum[s](x[n, v + s, c] * w[s, c])"
              "  output y : f16",
              "input x[3, 7, 6, 33] : f32  input w[3, 3, 33, 2] : f32  y[n, h:7, v:6, c, m] = sum[r, s](pad(x[n, h + r"
              " - 1, v + s - 1, c], 0) * w[r, s, c, m])  output y",
              "input x[2, 2, 27, 36] : f32  input w[2, 2, 3] : f32  y[n, c, h:9, v:16] = sum[r, s](x[n, c, 3 * h + r, 2"
              " * v + 2 * s] * w[c, r, s])  output y",
              # several blocks along, several down, the last ones ragged
              "input x[2, 2, 45, 304] : f32  input w[2, 3, 3] : f32  y[n, c, h:45, v:304] = sum[r, s](pad(x[n, c, h + r"
              " - 1, v + s - 1], 0) * w[c, r, s])  output y",
              "input x[1, 3, 31, 301] : f16  input w[3, 5, 5] : f16  y[n, c, h:31, v:301] = sum[r, s](pad(x[n, c, h + r"
              " - 2, v + s - 2], 0) * w[c, r, s])  output y : f16",
              "input x[7, 5, 33, 36] : f32  input w[5, 3, 5] : f32  y[n, c, h:16, v:34] = sum[r, s](pad(x[n, c, 2 * h +"
              " 2 * r - 1, v + s - 1], 0) * w[c, r, s])  output y",
              # strips whose ends are known: one or two to an image, of channels, of rows further apart
              "input x[40, 2, 7, 32] : f32  input w[2, 5, 5] : f32  y[n, c, h:7, v:32] = sum[r, s](pad(x[n, c, h + r -"
              " 2, v + s - 2], 0) * w[c, r, s])  output y",
              "input x[2, 36, 10, 128] : f16  input w[5, 5, 128] : f16  y[n, h:36, v:10, c] = sum[r, s](pad(x[n, h + r"
              " - 2, v + s - 2, c], 0) * w[r, s, c])  output y : f16",
              "input x[40, 2, 19, 64] : f32  input w[2, 5, 5] : f32  y[n, c, h:10, v:32] = sum[r, s](pad(x[n, c, 2 * h"
              " + r - 2, 2 * v + s - 2], 0) * w[c, r, s])  output y",
              "input x[33, 2, 37, 64] : f16  input w[2, 5, 5] : f16  y[n, c, h:37, v:64] = sum[r, s](pad(x[n, c, h + r"
              " - 1, v + s - 2], 0) * w[c, r, s])  output y : f16",
              # several strips of a block one below the other, outputs of neighbouring channels and columns of taps apart
              ("input x[128, 42, 83, 83] : f32  input w[42, 5, 5] : f32  y[n, c, h:83, v:83] = sum[r, s](pad(x[n, c, h"
               " + r - 2, v + s - 2], 0) * w[c, r, s])  output y", "h200"),
              ("input x[64, 32, 32, 384] : f32  input w[3, 3, 384, 2] : f32"
               "  y[n, h:32, v:32, c, m] = sum[r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[r, s, c, m])  output y",
               "h200"),
              ("input x[64, 384, 32, 64] : f32  input w[384, 3, 9] : f32  y[n, c, h:32, v:64] = sum[r, s](pad(x[n, c, h"
               " + 2 * r - 2, v + 2 * s - 8], 0) * w[c, r, s])  output y", "h200"),
              (INFINITE_ROWS_OF_TAPS, "h200")],
    "filter_strip": ["input x[3, 2, 47, 28] : f32  input d[3, 2, 45, 26] : f32"
                     "  w[c, r:3, s:3] = sum[n, h, v](d[n, c, h, v] * x[n, c, h + r, v + s])  output w",
                     "input x[150, 1, 8, 12] : f32  input d[150, 1, 6, 8] : f32"
                     "  w[c, r:3, s:5] = sum[n, h, v](d[n, c, h, v] * x[n, c, h + r, v + s])  output w",
                     "input x[40, 64, 26, 30] : f32  input d[40, 64, 5, 6] : f32"
                     "  w[c, r:3, s:3] = sum[n, h, v](d[n, c, h, v] * x[n, c, 5 * h + r, 5 * v + s])  output w",
                     # several strips of a thread side by side
                     "input x[3, 9, 132, 40] : f32  input d[3, 7, 130, 40] : f32"
                     "  w[c, r:3, s:3] = sum[n, h, v](d[n, h, v, c] * x[n, h + r, v + s, c])  output w",
                     INFINITE_CORNERS],
    "filter_wide": [INFINITE_COLUMN],
    "filter_direct": ["input x[3, 2, 31, 19] : f32  input d[3, 2, 9, 17] : f32"
                      "  dw[c, r:7, s:3] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, 2 * h + r + 3, v + s - 1], 0))"
                      "  output dw",
                      "input x[3, 2, 16, 19] : f32  input d[3, 2, 9, 17] : f32"
                      "  dw[c, r:7, s:3] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + 2 * r - 3, v + s - 1], 0))"
                      "  output dw",
                      "input x[8, 1, 428] : f32  input d[8, 1, 412] : f32"
                      "  dw[c, r:4, s:17] = sum[h, v](d[c, h, v] * pad(x[c, h + r - 3, v + s], 0))  output dw",
                      "input x[9, 2, 4, 16] : f16  input d[9, 2, 17, 8] : f16"
                      "  dw[c, r:5, s:5] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 19, v + s + 1], 0))"
                      "  output dw : f16",
                      "input x[48, 5, 45] : f64  input d[48, 2, 90] : f64"
                      "  dw[c, r:3, s:3] = sum[h, v:33](d[c, h, v] * x[c, h + r + 1, v + s + 4])  output dw",
                      "input x[48, 1, 45] : f32  input d[48, 1, 90] : f32"
                      "  dw[c, r:11, s:3] = sum[h, v:33](d[c, h, v] * pad(x[c, h + r - 10, v + s + 4], 0))  output dw"],
    "filter_gemm": ["input x[5, 2, 8, 300] : f16  input d[5, 2, 6, 272] : f16"
                    "  dw[c, r:2, s:7] = sum[n, h, v](d[n, c, h, v] * x[n, c, h + r, v + s + 19])  output dw",
                    "input x[9, 1, 2, 50] : bf16  input d[9, 1, 17, 18] : bf16"
                    "  dw[c, r:3, s:33] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 17, v + s], 0))  output dw",
                    "input x[4, 24, 5, 45] : f16  input d[4, 24, 2, 90] : f16"
                    "  dw[c, r:3, s:3] = sum[n, h, v:33](d[n, c, h, v] * x[n, c, h + r + 1, v + s + 4])  output dw",
                    "input x[67, 4, 28, 28] : f16  input d[67, 4, 28, 28] : f16"
                    "  dw[c, r:7, s:7] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 3, v + s - 3], 0))"
                    "  output dw",
                    INFINITE_ROWS, (INFINITE_ROWS.replace("f16", "f32").replace("400", "40"), "a100", ["--math=tf32"])],
    "bulk": [("input x[32, 56, 56, 64] : f16  input w[512, 64] : f16  input z[32, 28, 28, 512] : f16"
              "  t[n, h:28, v:28, f] = sum[c](x[n, 2*h, 2*v, c] * w[f, c])"
              "  y[n, h, v, f] = t[n, h, v, f] + z[n, h, v, f]  output y : f16", "h200"),
             ("input A[130, 72] : f16  input B[72, 136] : f16  input D[72, 136] : f16  input z[130, 136] : f16"
              "  g[m, n] = sum[k](A[m, k] * B[k, n])"
              "  u[m, n] = sum[k](A[m, k] * D[k, n])  y[m, n] = g[m, n] * u[m, n] + z[m, n]  output y : f16", "h200"),
             ("input A[130, 72] : f16  input B[136, 72] : f16  input D[136, 72] : f16"
              "  g[m, n] = sum[k](A[m, k] * B[n, k])"
              "  u[m, n] = sum[k](A[m, k] * D[n, k])  y[m, n] = g[m, n] * u[m, n]  output y : f16", "h200"),
             "input A[65, 72] : f16  input B[65, 200] : f16  C[m, n] = sum[k](A[k, m] * B[k, n])  output C",
             "input A[65, 72] : bf16  input B[43, 72] : bf16  C[m, n] = sum[k](A[m, k] * B[n, k])"
             "  y[m, n] = C[m, n] + 1"
             "  output y  output C : bf16",
             "input A[61, 264] : bf16  input B[120, 264] : bf16  C[m, n] = sum[k](A[m, k] * B[n, k])  output C",
             "input A[200, 72] : f16  input B[141, 72] : f16  C[m, n] = sum[k](A[m, k] * B[n, k])  output C : f16",
             "input A[2, 65, 72] : f16  input B[2, 133, 72] : f16  C[b, m, n] = sum[k](A[b, m, k] * B[b, n, k])"
             "  output C : f16",
             "input x[2, 5, 9, 72] : f16  input w[72, 3, 2, 72] : f16"
             "  y[f, n, h:3, v:8] = sum[r, s, c](x[n, h + r, v + s, c] * w[f, r, s, c])  output y"],   # pixels are columns
    # lines of pieces that fill no tile, of 16 bytes or less, q that does not stay in registers, one part after the other, clusters
    "attention": [far_rows(), far_rows(D=20, W=36), far_rows(D=26), far_rows(W=21), far_rows(D=136, W=120), far_rows(M=201, N=40, D=72), far_rows(share=""),
                  (far_rows(M=5, N=600, D=64, W=64), "h200"),
                  fewer_columns(40, 100, "i + j < 90"), fewer_columns(5, 300, "j > i + 130 && j < 290 - i"),
                  fewer_columns(9, 130, "j < 20 * i - 5"),
                  fewer_columns(40, 100, "j <= i + 1"), fewer_columns(40, 100, "j < i - 20"),
                  (fewer_columns(5, 600, "j > i + 540", "  output z : f32"), "h200")],
    "attention_bulk": [far_rows(), fewer_columns(200, 300, "i + j < 290"), far_rows(B=1, M=384, D=192, W=192),
                       far_rows(B=1, M=385, D=256, W=64), biased(140, 256), biased(200, 264, "f32"), biased(130, 208, masked="j <= i + 40"),
                       biased(140, 256, "b1"), biased(200, 288, "b1"),
                       (biased(70, 192), "h200"),   # groups of warps share three steps
                       far_rows(B=3, M=130, N=260, D=64, W=64), far_rows(N=520, D=24, W=136),
                       fewer_columns(128, 256, "j <= i"), fewer_columns(200, 300, "j <= i + 1"),
                       fewer_columns(200, 300, "i + j > 150"),
                       fewer_columns(200, 300, "j >= i - 3 && j <= i + 165"),
                       fewer_columns(200, 300,
                                     "j < i - 150")],   # rows that fill tiles, more than two lines of 128 bytes
    "rowwise": ["input x[13, 40] : f32  input b[13] : f32  s[i] = sum[j](x[i, j])  t[i] = s[i] * b[i]"
                "  y[i, j] = x[i, j] - t[i]  output y",
                "input x[5, 1500] : f64  a[i] = min[j](x[i, j])  b[i] = sum[j](x[i, j] - a[i])"
                "  c[i] = max[j](x[i, j] * b[i])"
                "  y[i, j] = x[i, j] - c[i]  output y",
                "input x[5, 1500] : f32  input b[5] : f32  c[i] = 2 * b[i]  s[i] = sum[j](x[i, j] * c[i])"
                "  m[i] = max[j](x[i, j] * s[i])"
                "  y[i, j] = x[i, j] * c[i] + m[i]  output y  output m",
                ("input x[32, 24578] : f16  input g[24578] : f32  input b[24578] : f32  input c[24578] : f32"
                 "  input d[24578] : f32"
                 "  s[i] = sum[j](x[i, j])  m[i] = max[j]((x[i, j] * g[j] + b[j]) * s[i])"
                 "  y[i, j] = (x[i, j] - s[i]) * g[j] + b[j] * m[i] + c[j] + d[j]  output y : f16", "h200"),
                # from memory: groups of vectors in a loop; masked ones with weights, one at a time or several
                ("input x[2, 17501] : f32  a[i] = sum[j](sq(x[i, j] - 3))  b[i] = sum[j](sq(x[i, j] - a[i]))"
                 "  y[i, j] = (x[i, j] + j) / b[i]  output y  output a", SMALL),
                "input x[2, 5001] : f16  input g[5001] : f32  t[i, j] = select(j <= 2000 * i + 2900, x[i, j], -1)"
                "  a[i] = sum[j](t[i, j]) / 5001  b[i] = sum[j](sq(t[i, j] - a[i]))"
                "  y[i, j] = (t[i, j] - a[i]) * b[i] * g[j] + j  output y : f16"],
    "channelwise": ["input x[1000, 64] : f16  mean[c] = sum[i](x[i, c]) / 1000"
                    "  var[c] = sum[i](sq(x[i, c] - mean[c])) / 1000"
                    "  y[i, c] = (x[i, c] - mean[c]) * rsqrt(var[c] + 0.001)  output y : f16  output mean"],
}
# Past 2^31 elements positions take 64 bits; some blocks are run.
HUGE = "input x[2147488777] : i8  y[i] = x[i] + 1  output y : i8"
# The prelude serves all families: each of its parts is exercised by a few small programs. These reach parts that need a
# certain kernel, with several candidates of each,
PRELUDE_PROGRAMS = [
    ("gemm_rows", "f16", dict(M=5, N=17, K=40), "a100"), ("gemm_rows", "f16", dict(M=5, N=24, K=40), "a100"),
    ("gemm_rows", "bf16", dict(M=9, N=40, K=33), "a100"), ("attention_bulk_parts", "f16", dict(M=66, N=70), "h200"),
    ("attention_bulk_parts", "bf16", dict(M=66, N=70), "h200"),
    ("attention_masked", "f16", dict(M=67, N=67), "a100"),
    ("row_softmax", "f32", dict(M=3, N=67), "a100"), ("row_weights", "f16", dict(M=3, N=77), "a100"),
    ("row_mask", "f32", dict(M=3, N=40), "a100"), ("normalised_bits", "f32", dict(M=3, N=12), "a100"),
    ("turned", "i8", dict(M=20, N=28), "a100"), ("turned", "i8", dict(M=128, N=128), "a100"),
    ("turned_inside", "f16", dict(P=3, M=21, N=25), "a100"),
    ("turned", "f32", dict(M=9, N=20), "a100"), ("chain", "f16", dict(M=5, N=67), "a100"),
    ("chain", "f32", dict(M=5, N=67), "a100"),
    ("channels_last", "f16", dict(M=20, N=96), "a100"), ("column_statistics", "f32", dict(M=5, N=8), "a100"),
    ("matmul", "f32", dict(M=5, N=7, K=3), "a100"),
    ("column_gradient", "f32", dict(M=70, N=32), "a100"), ("skinny", "f32", dict(N=16, K=8), "a100"),
    ("bulk", "f16", dict(M=65, K=20), SMALL), ("bulk_rows", "f16", dict(M=70, N=130, K=5), "h200"),
    ("gemm", "f16", dict(M=33, N=40, K=24), "a100"), ("gemm", "f32", dict(M=20, N=24, K=36), "a100"),
    ("gemm", "f64", dict(M=19, N=18, K=10), "a100"),
    ("gemm_batched", "u8", dict(M=20, N=33, K=67), SMALL), ("gemm_transposed", "bf16", dict(M=40, N=34, K=17), "a100"),
    ("gemm_batched", "u8", dict(M=20, N=32, K=48), "a100"), ("gemm_transposed", "i8", dict(M=19, N=21, K=35), "a100"),
    ("gemm_transposed", "i8", dict(M=19, N=21, K=33), "a100"),
    ("gemm_transposed", "f64", dict(M=18, N=17, K=9), "a100"),
    ("gemm_conv", "bf16", dict(M=18), "a100"), ("gemm", "f16", dict(M=5, N=8, K=8400), "a100"),
    ("toeplitz_wide", "f16", dict(M=3, N=5), SMALL), ("toeplitz_wide", "bf16", dict(M=3, N=5), SMALL),
    ("toeplitz_wide", "f32", dict(M=3, N=5), SMALL),
    ("filter_gradient_16", "bf16", dict(M=4, N=15, K=7), "a100"), ("filter_gradient_16", "f16", dict(M=5, N=24, K=3), "a100"),
    ("filter_gradient", "f32", dict(M=3, N=19, K=5), "a100"), ("filter_gradient", "bf16", dict(M=5, N=24, K=9), "a100"),
    ("narrow_planes", "f16", dict(M=2, N=12), "a100"), ("narrow_planes", "bf16", dict(M=2, N=13), "a100"),
]
# rows in shared memory that end with a part of 16 bytes, sums of exponentials beside a growing maximum, lines of bytes,
# infinite elements that some taps of a filter meet,
PRELUDE_TEXTS = {
    "rowwise": [
        "input x[2, 8192] : f16  input z[2, 8192] : f32  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] * z[i, j] + s[i]"
        "  output y",
        "input x[2, 9001] : f16  input z[2, 9001] : f32  a[i] = min[j](x[i, j])  b[i] = sum[j](x[i, j] - a[i])"
        "  c[i] = max[j](z[i, j] * b[i])"
        "  y[i, j] = x[i, j] - c[i] * z[i, j]  output y",
        "input x[2, 1501] : f32  m[i] = max[j](50 * x[i, j])  s[i] = sum[j](exp(50 * x[i, j] - m[i]))"
        "  y[i, j] = exp(50 * x[i, j] - m[i]) / s[i]  output y  output m",
        "input x[2, 601] : f32  m[i] = sum[j](x[i, j]) / 601  v[i] = sum[j](sq(x[i, j] - m[i]))"
        "  y[i, j] = (x[i, j] - m[i]) * v[i]"
        "  output y  output m  output v",
        "input x[2, 600] : f64  m[i] = sum[j](x[i, j]) / 600  v[i] = sum[j](sq(x[i, j] - m[i]))"
        "  y[i, j] = (x[i, j] - m[i]) * v[i]"
        "  output y  output m  output v",
    ],
    "elementwise": ["input x[5, 67] : i8  input b[134] : i8  y[i, j:67] = x[i, j] + b[j + 3]  output y : i8"],
    "filter_strip": [INFINITE_CORNERS],
}
# and these what the best kernel has.
PRELUDE_CASES = [
    "input x[2, 8197] : f16  input g[8197] : f32  input q[8197] : f16  s[i] = sum[j](abs(x[i, j]))"
    "  y[i, j] = x[i, j] * g[j] + q[j] + s[i]  output y",
    "input x[2, 8197] : i8  input g[8197] : i8  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] * g[j] + s[i]  output y",
    "input x[5, 67] : f16  input b[67] : f16  y[i, j] = x[i, j] + b[j]  output y : f16",
    "input x[3, 64] : f16  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] - s[i]  output y",
    "input x[3, 9] : f16  s[i] = sum[j](x[i, j])  y[j, i] = x[i, j] - s[i]  output y",
    "input x[4, 33] : f16  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] - s[i]  output y",
    "input x[2, 1024] : f16  input z[2, 1024] : f32  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] * z[i, j] + s[i]"
    "  output y",
    "input x[5, 131] : i8  input b[262] : i8  y[i, j:131] = x[i, j] + b[j + 3]  output y : i8",
    "input x[5, 9] : i32  a[i] = max[j](x[i, j] * 0 - 9223372036854775807 - 1)"
    "  b[i] = min[j](x[i, j] * 0 + 9223372036854775807)"
    "  output a : i32  output b : i32",
    "input x[5, 9] : i32  t[i, j] = cast(x[i, j] * 0 - 2147483647 - 1, i32)"
    "  u[i, j] = cast(x[i, j] * 0 + 2147483647, i32)"
    "  a[i] = max[j](t[i, j])  b[i] = min[j](u[i, j])  output a : i32  output b : i32",
    "input x[5, 37] : f32  input b[37] : f32  y[i, j] = x[i, j] + b[j]  output y",
    "input x[70] : f32  y[] = max[i](log(x[i]))  z[] = min[i](sqrt(x[i]))  m[i] = max(log(x[i]), x[i])"
    "  n[i] = min(sqrt(x[i]), x[i])"
    "  output y  output z  output m  output n",
    "input x[70] : f64  y[] = max[i](log(x[i]))  z[] = min[i](sqrt(x[i]))  m[i] = max(log(x[i]), x[i])"
    "  n[i] = min(sqrt(x[i]), x[i])"
    "  output y  output z  output m  output n",
    "input x[97] : f32  y[i] = cast(1000 * x[i], i8)  z[i] = cast(1e10 * x[i], i32)  u[i] = cast(sqrt(x[i]), u8)"
    "  w[i] = cast(1000 * x[i], u8)"
    "  v[i] = cast(x[i] * 0 + 2147483648, i32)  output y  output z  output u  output w  output v",
    "input x[97] : f64  y[i] = cast(1000 * x[i], i8)  z[i] = cast(1e10 * x[i], i32)  w[i] = cast(300 * x[i], u8)"
    "  a[i] = cast(128 + 0.1 * x[i], i8)  output a  output y  output z  output w",
    "input x[97] : f32  h[i] = 70000 * x[i]  d[i] = x[i] * 1e-7  t[i] = x[i] * 4e-5  b[i] = x[i] * 1e38 * 4"
    "  e[i] = x[i] * 1e-39"
    "  s[i] = (floor(x[i] * 2048) + 0.5) / 1024  g[i] = (floor(x[i] * 256) + 0.5) / 128  l[i] = floor(x[i] * 2000) * 32"
    "  output h : f16  output d : f16  output t : f16  output b : bf16  output e : bf16  output s : f16"
    "  output g : bf16  output l : f16",
    "input x[97] : f16  input b[97] : bf16  y[i] = x[i] / 0  z[i] = x[i] * 1e-4  v[i] = b[i] / 0  n[i] = sqrt(x[i])"
    "  o[i] = sqrt(b[i])"
    "  output y : f16  output z : f16  output v : bf16  output n : f16  output o : bf16",
    "input x[97] : f16  y[i] = 0.5 * x[i] * (1 + tanh(0.8 * x[i]))  output y : f16",
    "input x[97] : f16  y[i] = x[i] * 1  z[i] = x[i] / 65536 / 4  w[i] = z[i] * 65536 output y  output z : f16"
    "  output w",
    "input n[97] : f16  q[i] = n[i] / 0  r[i] = select(n[i] == 0, 1, 0 * q[i])  s[i] = q[i] output q : f16"
    "  output r : f32  output s : f32",
    "param c = 1.00048828125090949  param d = 1.0048828124990905 input x[37] : f64  y[i] = 0 * x[i] + c"
    "  z[i] = 0 * x[i] - c"
    "  w[i] = 0 * x[i] + d  v[i] = 0 * x[i] - d  t[i] = 0 * x[i] + 1e-60  u[i] = x[i]"
    "  s[i] = 0 * x[i] + 1.00048828124909051  r[i] = 0 * x[i]  q[i] = 0 * x[i] + 2 * c"
    "  output y : f16  output z : f16  output w : f16  output v : f16  output t : f16  output u : bf16  output s : f16"
    "  output r : f16  output q : f16",
    "input a[97] : i32  input b[97] : i32  y[i] = a[i] / (b[i] * 2 + 1)  z[i] = abs(a[i] * 3) - relu(b[i])"
    "  w[i] = a[i] * 65536 * 65536 + sq(b[i])"
    "  v[i] = max(a[i], b[i]) - min(a[i], 2)  u[i] = -(a[i]) u2[i] = floor(a[i]) + ceil(b[i]) + round(a[i] * 3) p[i] ="
    " (a[i] * 0 - 2147483647 - 1) / (b[i] * 0 - 1)"
    "  m[i] = a[i] % (b[i] * 2 + 1)  n[i] = (a[i] * 0 - 2147483647 - 1) % (b[i] * 0 - 1)"
    "  output y output z output w output v output u : i8 output u2 output p output m output n",
    "input x[97] : f32  y[i] = abs(x[i])  z[i] = floor(x[i] * 4)  w[i] = ceil(x[i] * 4)  v[i] = tanh(x[i])"
    "  u[i] = erf(x[i])  t[i] = sigmoid(x[i])"
    "  s[i] = sin(x[i])  r[i] = cos(x[i])  q[i] = pow(x[i] + 2, 1.5)  p[i] = rsqrt(x[i] + 2)"
    "  o[i] = exp(x[i]) + log(x[i] + 2)  n[i] = relu(-x[i]) + sq(x[i])"
    "  output y output z output w output v output u output t output s output r output q output p output o output n",
    "input x[97] : f64  y[i] = abs(x[i])  z[i] = floor(x[i] * 4)  w[i] = ceil(x[i] * 4)  v[i] = tanh(x[i])"
    "  u[i] = erf(x[i])  t[i] = sigmoid(x[i])"
    "  s[i] = sin(x[i])  r[i] = cos(x[i])  q[i] = pow(x[i] + 2, 1.5)  p[i] = rsqrt(x[i] + 2)"
    "  o[i] = exp(x[i]) + log(x[i] + 2) n[i] = relu(-x[i]) + sq(x[i])"
    "  output y output z output w output v output u output t output s output r output q output p output o output n",
    "input x[97] : f32  y[i] = round(select(x[i] > 0, 0.5, 2.5))  v[i] = atan(x[i] * 4)  u[i] = asin(x[i] * 2)"
    "  t[i] = acos(x[i] * 2)"
    "  output y output v output u output t",
    "input x[97] : f64  y[i] = round(cast(select(x[i] > 0, 0.5, 2.5), f64))  v[i] = atan(x[i] * 4)"
    "  u[i] = asin(x[i] * 2)  t[i] = acos(x[i] * 2)"
    "  output y output v output u output t",
    "input x[5, 9] : i32  input u[5, 9] : f64  a[i] = max[j](x[i, j] - 100)  b[i] = min[j](x[i, j] + 100)"
    "  c[i] = prod[j](x[i, j])"
    "  d[i] = max[j](u[i, j] - 2)  e[i] = min[j](u[i, j] + 2)  f[i] = prod[j](u[i, j])"
    "  output a output b output c output d output e output f",
    "input x[5, 9] : f32  a[i] = max[j](x[i, j] - 100)  b[i] = min[j](x[i, j] + 100)  c[i] = prod[j](x[i, j])"
    "  p[i:5, j:9] = pad(x[i - 1, j + 1], 3)  output a output b output c output p",
    "input m[71, 3] : b1  input x[71, 3] : f32  y[i, j] = m[i, j] && x[i, j] > 0  z[j, i] = !m[i, j]"
    "  s[i] = sum[j](m[i, j])"
    "  output y  output z  output s",
    "input x[5, 300] : f32  s[i] = sum[j](x[i, j])  y[i, j] = x[i, j] / s[i]"
    "  z[i, j] = x[i, j] / (s[i] * select(i > 2, 0, 1e37))"
    "  w[i, j] = y[i, j] * 1e30 * 1e30 / s[i]  output y  output z  output w",
    "input x[6, 40] : f32  t[i, j] = select(j <= 4 * i + 1, x[i, j], -1)  m[i] = max[j](t[i, j])"
    "  e[i, j] = exp(t[i, j] - m[i])"
    "  s[i] = sum[j](e[i, j])  y[i, j] = e[i, j] / s[i]  output y",
    "input m[4096] : b1  input x[4096] : f16  y[i] = select(m[i], x[i], 0)  n[i] = x[i] > 0 || m[i]  output y : f16"
    "  output n",
    "input x[3, 2, 9, 24] : f16  input d[3, 2, 7, 16] : f16  w[c, r:3, s:9] = sum[n, h, v](d[n, c, h, v] * x[n, c, h +"
    " r, v + s])  output w",
    "input x[2, 10, 9, 40] : f32  input d[2, 10, 4, 40] : f32"
    "  w[c, r:7, s:8] = sum[n, h:4, v:7](d[n, c, h, v] * pad(x[n, c, h + r - 1, v + s - 1], 0))  output w",
    "input x[2, 31, 9, 40] : f32  input d[2, 31, 4, 40] : f32"
    "  w[c, r:5, s:4] = sum[n, h:4, v:7](d[n, c, h, v] * pad(x[n, c, h + r - 1, v + s - 1], 0))  output w",
]


class Bench:
    """Compiles and verifies the cases with a folder of templates."""

    def __init__(self, rollerc, folder):
        self.rollerc, self.folder = rollerc, folder
        self.ranker = Ranker(rollerc, folder)
        self.small, self.few = os.path.join(folder, f"{SMALL}.yaml"), os.path.join(folder, f"{FEW}.yaml")
        pathlib.Path(self.small).write_text(small_device())
        pathlib.Path(self.few).write_text(small_device().replace("\n  warp_size:",
                                                                 "\n  max_per_launch: 65536\n  warp_size:"))
        self.lock = threading.RLock()
        self.cases = {}   # template -> [(options, text)]
        self.kernels = {}   # case -> its text without a mutant
        self.kills, self.seconds = collections.Counter(), {}   # by template and number of the case; of its last proof
        self.sound = {}   # case -> it is right without a mutant
        self.unmet = []   # texts that a family is listed with and none of whose candidates is the family's

    def cases_of(self, template):
        """What exercises the template; chosen once."""
        with self.lock:
            if template not in self.cases:
                self.cases[template] = (self.prelude_cases if template.startswith("prelude") else
                                        self.family_cases(template.removesuffix(".cu")))
            return self.cases[template]

    def described(self, device):
        return {SMALL: self.small, FEW: self.few}.get(device, device)

    def family_cases(self, family):
        programs = {program.name: program for program in PROGRAMS}
        all_sizes = [(program.name, program.types[0], {}) for program in PROGRAMS if program.family == family]
        texts = [(source(programs[name], dtype, sizes), device, options_of(programs[name], dtype))
                 for name, dtype, sizes, *devices in CASES.get(family,
                                                               all_sizes) for device in devices or DEVICES[family]]
        own = [(text, TEXT_DEVICE[family], []) if isinstance(text, str) else (*text,
                                                                              [])[:3] for text in TEXTS.get(family, [])]
        chosen = [self.chosen(self.ranker, text, family, self.described(device), more, COUNTS[family])
                  for text, device, more in texts + own]
        self.unmet += [(family, text) for (text, _, _), found in zip(texts + own, chosen) if not found]
        # Those of one text are alike.
        cases = [case for turn in itertools.zip_longest(*chosen) for case in turn if case]
        # First, since what it alone finds is tried on all others before it, and it takes no longer than they do.
        return ([(["--device", "a100"], HUGE)] if family == "elementwise" else []) + cases

    @functools.cached_property
    def prelude_cases(self):
        """Of every part of the prelude. Short kernels first, which compile in less time."""
        cases = [(["--device", "a100"], text) for text in [*PRELUDE_CASES, HUGE]]
        cases += [case for text in PRELUDE_CASES for case in [(["--device", "mi50"],
                                                               text)] if "warp_" in self.kernel(case)]
        cases += [case for text in PRELUDE_CASES for case in [(["--device", "v100"],
                                                               text)] if "bf16_of" in self.kernel(case)]
        cases.sort(key=lambda case: len(self.kernel(case)))
        programs = {program.name: program for program in PROGRAMS}
        cases += [case for name, dtype, sizes, *devices in PRELUDE_PROGRAMS for device in devices
                  for case in self.chosen(self.ranker, source(programs[name], dtype, sizes), programs[name].family,
                                          self.described(device), options_of(programs[name], dtype), count=3)]
        cases += [case for family, texts in PRELUDE_TEXTS.items() for text in texts
                  for case in self.chosen(self.ranker, text, family, "a100")]
        return cases

    def kernel(self, case):
        options, text = case
        key = (*options, text)
        if key not in self.kernels:
            self.kernels[key] = self.emitted(case, str(TEMPLATES))
            assert self.kernels[key] is not None, case
        return self.kernels[key]

    def emitted(self, case, templates):
        """The kernel's text without a proof; None if there is none."""
        options, text = case
        command = [self.rollerc, "-q", "-", *options, "--templates", templates, "-o", "-"]
        process = subprocess.run(command, input=text, capture_output=True, text=True)
        return process.stdout if process.returncode == 0 else None

    def concerned(self, template, text):
        """Where the mutant is, and the numbers of the cases whose kernels hold what it changes, since of the prelude a
        kernel carries what it uses; first those that have found most mutants there, then those that find most in a
        second."""
        before, after = (TEMPLATES / template).read_text().splitlines(True), text.splitlines(True)
        start = len(os.path.commonprefix([before, after]))
        end = len(before) - len(os.path.commonprefix([before[start:][::-1], after[start:][::-1]]))
        changed = "".join(before[start:end] or before[max(start - 1, 0):start + 1])
        numbers = [i for i, case in enumerate(self.cases_of(template))
                   if not template.startswith("prelude/") or changed in self.kernel(case)]
        return (template, start), sorted(numbers, key=lambda i: (-self.kills[template, start, i],
                                                                 -self.rate(template, i)))

    def rate(self, template, i):
        """Mutants that the case finds in a second; one that was not tried is worth a trial."""
        return (self.kills[template, i] + 1) / self.seconds.get((template, i), 1)

    @staticmethod
    def chosen(ranker, text, family, device, more=(), count=6):
        """The best ones of different register tiles, of each variant in turn; the family's last; one of odd threads."""
        tiles, last, odd = collections.defaultdict(dict), None, None   # variant -> register tile -> rank
        for candidate in ranker.rank(text, "--device", device, "--top-k", "100", *more):
            for launch in candidate["launches"]:
                if launch["family"] == family:
                    tile = launch["config"]["tile"]["register"]
                    tiles[launch["config"]["variant"]].setdefault(tuple(tile.values()), candidate["rank"])
                    last, threads = candidate["rank"], launch["config"]["threads"]
                    odd = odd or (last if threads & (threads - 1) else None)   # not a power of two
        turns = itertools.zip_longest(*(ranks.values() for ranks in tiles.values()))
        firsts = [rank for turn in turns for rank in turn if rank]
        return [(["--device", device, *more, "--top-k", "100", "--candidate", str(rank)], text)
                for rank in sorted({*firsts[:count], last, odd} - {None})]

    def verify(self, case, templates):
        """None if the kernel is right, else what is said."""
        options, text = case
        command = ["prlimit", f"--cpu={HANG_SECONDS}", self.rollerc, "-q", "-", *options, "--templates", templates,
                   "--verify", "-o", "-"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True,
                                   errors="replace")
        try:
            _, said = process.communicate(text, timeout=60 * HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.communicate()
            return "hangs"
        return f"exit {process.returncode}: {said.strip()}" if process.returncode else None

    def check_case(self, template, i):
        """What kills a mutant must be right without it."""
        case = self.cases_of(template)[i]
        key = (*case[0], case[1])
        if key not in self.sound:
            self.sound[key] = True
            said = self.verify(case, str(TEMPLATES))
            if said:
                self.sound[key] = False
                print(f"FAIL  without any mutant: {said}\n{case}", flush=True)

    def kill(self, template, text):
        """What finds the mutant: None nothing, "" it does not compile, else what was said."""
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(TEMPLATES, folder, dirs_exist_ok=True)
        pathlib.Path(folder, template).write_text(text)
        place, numbers = self.concerned(template, text)
        said = None
        for i in numbers:
            case = self.cases_of(template)[i]
            if self.emitted(case, folder) == self.kernel(case):
                continue   # this kernel has nothing of what the mutant changes
            started = time.monotonic()
            said = self.verify(case, folder)
            self.seconds[template, i] = time.monotonic() - started
            if said is not None:
                self.kills[template, i] += 1
                self.kills[(*place, i)] += 1
                self.check_case(template, i)
                break
        shutil.rmtree(folder)
        return "" if said and "ends with status" in said else said


def hand_mutants(texts):
    """[(name, template, changed text)], and the names of those whose place is gone."""
    found, gone = [], []
    for name, template, old, new, which in HAND:
        parts = texts[template].split(old)
        if len(parts) > which:
            found.append((f"{name} ({template})", template, old.join(parts[:which]) + new + old.join(parts[which:])))
        else:
            gone.append(f"{name} ({template})")
    return found, gone


def read_equivalent():
    found = {}
    for line in EQUIVALENT.read_text().split("\n"):
        name, separator, reason = line.rpartition(" # ")
        if line and not line.startswith("#"):
            assert separator and reason, f"{EQUIVALENT}: no reason: {line}"
            found[name.strip()] = reason.strip()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, default=50, help="of random ones")
    parser.add_argument("--seed", type=int,
                        help="the default follows from the templates: other mutants after each change of them")
    parser.add_argument("--only", nargs="+", default=[], help="mutants whose name holds one of these")
    parser.add_argument("--unlisted", action="store_true", help="without those of equivalent.txt, which take longest")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    started = time.monotonic()
    texts = {str(path.relative_to(TEMPLATES)): path.read_text() for path in sorted(TEMPLATES.rglob("*.cu*"))}
    seed = zlib.crc32("".join(texts.values()).encode()) if args.seed is None else args.seed
    hand, gone = hand_mutants(texts)
    made = [(name, template, text) for template in texts for name, text in automatic(template, texts[template])]
    equivalent = read_equivalent()
    unknown = set(equivalent) - {name for name, _, _ in hand + made}
    if args.all or args.only:
        tried = [m for m in hand + made if args.all or any(part in m[0] for part in args.only)]
    else:
        named = [m for m in hand if m[0].startswith(NAMED)]
        others = [m for m in hand if m not in named] + [m for m in made if m[1] in TRIAGED]
        tried = named + random.Random(seed).sample(others, min(args.count, len(others)))
    if args.unlisted or not (args.all or args.only):
        tried = [m for m in tried if m[0] not in equivalent]
    print(f"seed {seed}: {len(hand)} mutants by hand, {len(made)} automatic; {len(tried)} are tried", flush=True)

    killed = stillborn = spared = 0
    survivors, needless = [], []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(args.rollerc), folder)
        for (name, _, _), said in zip(tried, common.in_parallel(args.jobs, lambda m: bench.kill(m[1], m[2]), tried)):
            listed = name in equivalent
            killed += said not in (None, "")
            stillborn += said == ""
            spared += said is None and listed
            if said is None and not listed:
                survivors.append(name)
            if said is not None and listed and said != "hangs":
                needless.append(name)
            if args.verbose or name.startswith(NAMED):
                print(f"{'survives' if said is None else 'stillborn' if said == '' else 'killed'}  {name}"
                      f"  {(said or '').splitlines()[0][:150] if said else ''}", flush=True)
    for name in survivors:
        print(f"SURVIVES  {name}")
    for name in needless:
        print(f"is killed, but listed in equivalent.txt: {name}")
    for family, text in bench.unmet:
        print(f"FAIL  no candidate of {family} is kept of {text}")
    for name in gone:
        print(f"FAIL  the template no longer holds what hand.py would change: {name}")
    for name in sorted(unknown):
        print(f"is listed in equivalent.txt, but there is no such mutant: {name}")
    too_many = len(equivalent) > MAX_EQUIVALENT * len(hand + made)
    if too_many:
        print(f"equivalent.txt lists {len(equivalent)} of {len(hand + made)} mutants: more than {MAX_EQUIVALENT:.0%}")
    print(f"{killed} killed, {stillborn} do not compile, {spared} equivalent, {len(survivors)} survive;"
          f" {time.monotonic() - started:.0f} s")
    stale = unknown and args.all   # a run of some of them does not mind that a template has changed since
    wrong = bench.unmet or survivors or needless or gone or stale or too_many
    return 1 if wrong or not killed or not all(bench.sound.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
