#!/usr/bin/env python3
"""Imported models have the launches that a program written by hand would have: how many, and of which families, for an H100 in f16.
One test function per style of network; what a layer gains or loses shows here before it is measured.

    python3 tests/run_launches.py --rollerc build/rollerc [NAME]
"""
import argparse
import json
import os
import subprocess
import sys

import common

sys.path.insert(0, os.path.join(os.path.dirname(common.TESTS), "build", "pypi"))
try:
    import onnx
    import onnx_models
except ImportError as error:
    print(f"NOT TESTED: launches of imported models, since {error.name} is not here (./setup test with a network)")
    sys.exit(77)

ROLLERC = ""
POINTS = ("elementwise", "loopnest")   # each point by itself: of few rows of a table either
COPIES = ("permute", *POINTS)          # of a small image any
PRODUCTS = ("bulk", "gemm")   # families of tensor cores


def launches(folder, model):
    """Families of the first candidate, in order; all kinds of products are one."""
    onnx.save(model, folder / "m.onnx")
    return launches_of(folder, "m.onnx", "--precision", "f16")


def launches_of(folder, *program):
    command = [ROLLERC, *program, "--device", "h100", "-o", "m.cu", "--json", "m.json"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    ranking = json.loads((folder / "m.json").read_text())
    found = [launch["family"] for launch in ranking["candidates"][0]["launches"]]
    return ["product" if family in PRODUCTS else "attention" if family.startswith("attention") else family for family in found]


def test_layers_of_an_encoder(folder):
    """Norms in parts whose statistics keep a dimension, a mask, heads put side by side, several layers alike."""
    found = launches(folder, onnx_models.bert(1, 128, 512, 8, 3, 1000))
    # q, k and v are one kernel; the last product is split, and the launch that adds its parts has the residual, too
    layer = ["product", "attention", "product", "rowwise", "product", "product", "reduce", "rowwise"]
    assert found[0] in POINTS and found[1] == "rowwise", found   # rows of the table, the first norm
    assert found[2:-1] == 3 * layer, found


def test_layers_of_a_decoder(folder):
    """q, k and v are one product, what lies ahead is taken out by a table, layers multiply all tokens as one matrix."""
    found = launches(folder, onnx_models.gpt2(1, 128, 512, 8, 2, 1000))
    layer = ["rowwise", "product", "attention", "product", "rowwise", "product", "product", "reduce"]
    assert found[0] in POINTS, found
    assert found[1:] == 2 * layer + ["rowwise", "product"], found


def test_a_mask_of_positions_that_is_added(folder):
    """No launch makes it, no kernel reads it, and what it takes out is not computed."""
    found = launches(folder, onnx_models.gpt2(1, 128, 512, 8, 2, 1000, onnx_models.added_mask))
    layer = ["rowwise", "product", "attention", "product", "rowwise", "product", "product", "reduce"]
    assert found[0] in POINTS, found
    assert found[1:] == 2 * layer + ["rowwise", "product"], found
    assert "constexpr bool MASKS = true" in (folder / "m.cu").read_text()


def test_layers_of_a_vision_transformer(folder):
    found = launches(folder, onnx_models.vit(1, 224, 16, 256, 4, 2, 100))
    layer = ["rowwise", "product", "attention", "product", "rowwise", "product", "product"]   # q, k and v are one kernel
    assert found[0] in COPIES and found[1] == "product", found   # the image is rounded before tensor cores read it
    assert found[2:-2] == 2 * layer, found


def test_blocks_with_the_channels_last(folder):
    """ConvNeXt turns its maps for a norm and two layers, and back: none is copied."""
    found = launches(folder, onnx_models.convnext(1, 112, 96, 2, 100))
    block = ["window", "rowwise", "product", "product"]
    assert found[0] in COPIES and found[1:3] == ["product", "rowwise"] and found[3:11] == 2 * block, found


def test_blocks_with_batch_norms(folder):
    """Convolutions with all that follows them, up to the residual and the ReLU: one launch each."""
    found = launches(folder, onnx_models.resnet50(8, 64, (64, 128), (1, 2), 100))
    assert found[0] in COPIES and found[1] == "narrow" and found[2] in ("window", "loopnest"), found   # the image is rounded first
    assert found[3:-2] == 11 * ["product"], found


SMALL_IMAGE = """
input x[1, {size}, {size}, {channels}] : f16
input w[{filters}, 3, 3, {channels}] : f16
y[n, h:{size}, v:{size}, f] : f16 = sum[c, r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])
output y
"""


def test_parts_of_a_sum_are_vectors(folder):
    """A DenseNet's and an Inception's last convolutions have few outputs: parts of two or 14 channels would be more blocks, and each
    element an access. Parts of 8 channels and more are vectors."""
    for sizes in (dict(size=7, channels=128, filters=32), dict(size=5, channels=448, filters=192)):
        (folder / "m.te").write_text(SMALL_IMAGE.format(**sizes))
        assert launches_of(folder, "m.te") in (["product"], ["product", "reduce"]), sizes
        first = json.loads((folder / "m.json").read_text())["candidates"][0]["launches"][0]
        assert first["config"]["tile"]["global"]["k"] % (8 * 3 * 3) == 0, first["config"]["tile"]


GRADIENT_OF_GROUPS = """
input x[64, 9, 9, 32, 16] : f16   input dy[64, 9, 9, 32] : f16
dw[g, r:3, s:3, c] = sum[n, h, v](dy[n, h, v, g] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))
output dw : f16
"""


def test_parts_of_a_sum_whose_threads_wait(folder):
    """Each thread would wait for its loads some hundred times, one after the other: so many parts have room beside each other that it
    is some ten times."""
    (folder / "m.te").write_text(GRADIENT_OF_GROUPS)
    assert launches_of(folder, "m.te") == ["window", "reduce"]
    first = json.loads((folder / "m.json").read_text())["candidates"][0]["launches"][0]
    assert first["config"]["tile"]["global"]["tap"] <= 64, first["config"]["tile"]


GRADIENT_OF_EVERY_SECOND_PIXEL = """
input x[32, 256, 56, 56] : f16   input dy[32, 512, 28, 28] : f16
dw[f, c] = sum[n, h, v](dy[n, f, h, v] * x[n, c, 2*h, 2*v])
output dw : f16
"""


def test_parts_of_a_sum_over_pixels_that_are_apart(folder):
    """What is read is copied, a quarter of the image, and bulk copies bring it to parts of the sum; to turn both images takes twice
    as long, and without parts no kernel of the copy is as fast as that."""
    (folder / "m.te").write_text(GRADIENT_OF_EVERY_SECOND_PIXEL)
    assert launches_of(folder, "m.te") == ["elementwise", "product", "reduce"]


GRADIENT_OF_PLANES_BY_PHASE = """
input dy[32, 128, 28, 28] : f16   input w[128, 64, 3, 3] : f16
dx[n, c, h:28, a:2, v:28, b:2] = sum[p:2, q:2, f](pad(dy[n, f, h + p, v + q], 0) * pad(w[f, c, a - 2*p + 1, b - 2*q + 1], 0))
output dx : f16
"""


def test_planes_whose_last_phase_is_the_last_column(folder):
    """Two elements of a phase lie side by side, and behind them those of the next rows: nothing is turned back."""
    (folder / "m.te").write_text(GRADIENT_OF_PLANES_BY_PHASE)
    assert launches_of(folder, "m.te")[1:] == ["elementwise", "product"]


FLATTENED_HEADS = """
input q[64, 512, 64] : f16   input k[64, 512, 64] : f16   input v[64, 512, 64] : f16   input mask[2, 512] : f32
s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])
t[b, i, j] = s[b, i, j] / 8 + mask[b/32, j]
m[b, i] = max[j](t[b, i, j])
e[b, i, j] = exp(t[b, i, j] - m[b, i])
z[b, i] = sum[j](e[b, i, j])
p[b, i, j] : f16 = e[b, i, j] / z[b, i]
y[b, i, d] : f16 = sum[j](p[b, i, j] * v[b, j, d])
output y
"""


def test_heads_that_an_index_divides(folder):
    """Of k and v as `k[b, h/4, j, d]`, of a mask as `mask[b/32, j]`: one kernel, as with an axis for the groups. Of few rows heads of
    a group are rows of one product, whose columns the blocks of a cluster share, or a second launch combines what blocks have of them."""
    regressions = os.path.join(common.TESTS, "regressions")
    (folder / "m.te").write_text(FLATTENED_HEADS)
    assert launches_of(folder, "m.te") == ["attention"]
    assert launches_of(folder, os.path.join(regressions, "heads_that_share_k_and_v_by_a_quotient.te")) == ["attention"]
    found = launches_of(folder, os.path.join(regressions, "rotated_heads_that_share_k_and_v.te"))
    assert found[-1] == "attention" and len(found) == 3, found
    for few in ("few_rows_of_heads_by_a_quotient.te", "one_position_of_heads_that_share_k_and_v.te"):
        found = launches_of(folder, os.path.join(regressions, few))
        assert found[0] == "attention" and found[1:] in ([], ["rowwise"], ["channelwise"]), found
    found = launches_of(folder, os.path.join(regressions, "a_bias_that_is_fetched_for_each_score.te"))
    assert found == ["attention"], found


SHARES_IN_ONE_LINE = """
input q[8, 128, 64] : f16   input k[8, 128, 64] : f16   input v[8, 128, 64] : f16
s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d]) / 8
p[b, i, j] : f16 = exp(s[b, i, j] - max[c](s[b, i, c])) / sum[c](exp(s[b, i, c] - max[l](s[b, i, l])))
y[b, i, d] : f16 = sum[j](p[b, i, j] * v[b, j, d])
output y
"""


def test_a_softmax_in_one_line(folder):
    """As the language's page has it for those who write `softmax`: its two equal maxima are one."""
    (folder / "m.te").write_text(SHARES_IN_ONE_LINE)
    assert launches_of(folder, "m.te") == ["attention"]


TURNED_NORM = """
input x[16, 196, 768] : f16   input token[16, 1, 768] : f16   input place[197, 768] : f16
weight scale[768] : f32   weight w[768, 2304] : f16
all[b, t:197, c] : f16 = select(t < 1, pad(token[b, t, c], 0), pad(x[b, t - 1, c], 0)) + place[t, c]
mean[b, t] = sum[c](all[b, t, c]) / 768
centred[b, t, c] = all[b, t, c] - mean[b, t]
var[b, t] = sum[c](sq(centred[b, t, c])) / 768
norm[b, t, c] : f16 = centred[b, t, c] * rsqrt(var[b, t] + 1e-6) * scale[c]
turned[t, b, c] = norm[b, t, c]
y[t, b, n] : f16 = sum[c](turned[t, b, c] * w[c, n])
output y
"""


def test_a_norm_that_a_product_reads_in_another_order(folder):
    """It is made once, and not for each column of the product."""
    (folder / "m.te").write_text(TURNED_NORM)
    assert launches_of(folder, "m.te") == ["rowwise", "product"]


def test_queries_that_are_scaled_before_their_scores(folder):
    """The scale waits for the sum; parts of one product are read where they lie, by bulk copies, too. Where blocks share rows a
    second launch combines what they have."""
    program = os.path.join(common.TESTS, "regressions", "queries_that_are_scaled_before_their_scores.te")
    assert launches_of(folder, program) == ["attention"]
    families = {launch["family"] for candidate in json.loads((folder / "m.json").read_text())["candidates"] for launch in candidate["launches"]}
    assert families - {"channelwise", "rowwise"} == {"attention", "attention_bulk"}, families


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "launches", options.filter)


if __name__ == "__main__":
    sys.exit(main())
