#!/usr/bin/env python3
"""Every family on tensors of about 2^31 elements and more, up to 2^40: some blocks, at the corners, edges and random places, on sparse memory."""
import argparse
import os
import sys
import tempfile

import common

CASES = [
    ("softmax", "R=1048576 N=1048576"),
    ("matmul", "M=1048576 N=1048576 K=512"),
    ("matmul_bias_gelu", "M=3000000000 N=128 K=128"),    # coordinates of boxes are signed
    ("matmul_bias_gelu", "M=2100000000 N=64 K=512"),     # more bytes than a stride of boxes may have
    ("matmul_transposed", "M=50000001 N=100 K=64"),
    ("conv2d_3x3", "N=11000 C=64 F=64 H=56 W=56"),
    ("group_norm", "N=8192 G=1024 C=32 H=64 W=64"),
    ("relu", "N=2147500001"),
    ("elementwise_chain", "R=70001 N=40000"),
    ("permute_021", "B=3 R=30011 C=30000"),
    ("reduce_rows", "R=70001 N=40000"),
    ("reduce_columns", "R=2000 N=1100000"),
    ("softmax", "R=70001 N=40000"),
    ("softmax_grad", "R=2200001 N=1000"),
    ("layer_norm", "R=2200001 N=1000"),
    ("max_pool", "N=3000 C=60 H=112 W=113"),
    ("max_pool", "N=1 C=1 H=6 W=1500000000"),   # two rows are 2^31 elements
    ("bn_relu_training", "N=2 C=300001 H=60 W=60"),
    ("bn_add_relu_mask", "N=2 C=300001 H=60 W=64"),
    ("bn_add_relu_mask_nhwc", "N=2 C=600000 H=40 W=48"),
    ("bn_backward_mask", "N=2 C=300001 H=60 W=64"),
    ("depthwise_7x7_nhwc", "N=63 H=8192 W=32"),   # ends below 2^31; its blocks reach past that
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    args = parser.parse_args()
    rollerc = os.path.abspath(args.rollerc)
    with tempfile.TemporaryDirectory() as folder:
        def verify(case):
            example, sizes = case
            defines = [word for size in sizes.split() for word in ("-D", size)]
            return common.run([rollerc, "-q", common.example_path(example), "--device", "h200", "--verify",
                               "-o", os.path.join(folder, f"{example}.cu"), *defines])
        return common.check_all(CASES, verify, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
