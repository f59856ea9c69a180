#!/usr/bin/env python3
"""Programs with weights, from a model to the emitted file: what is made once, what a launch reads, the file of weights.

    python3 tests/run_weights.py --rollerc build/rollerc

Each is proven on the CPU interpreter, with weights that are drawn and with those of a file.
"""
import argparse
import json
import os
import struct
import subprocess
import sys

import common
import onnx_model as onnx

ROLLERC = ""
PREFIX = "//rollerc: "
FOLDED = """input x[16, 40] : f32
weight w[24, 40] : f32
weight gamma[24] : f32
weight var[24] : f32
weight bias[24] : f32
s[c]     = gamma[c] * rsqrt(abs(var[c]) + 1e-3)
ws[c, k] = w[c, k] * s[c]
y[n, c]  = max(sum[k](x[n, k] * ws[c, k]) + bias[c], 0)
output y
"""


def run(*arguments, code=0, folder=None):
    result = subprocess.run([ROLLERC, *map(str, arguments)], cwd=folder, capture_output=True, timeout=240, text=True)
    assert result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}"
    return result


def emitted(folder, program, *options, device="h200", name="k"):
    """The first line of what is made of the program, and its text. It is proven."""
    (folder / f"{name}.te").write_text(program)
    run(f"{name}.te", "--device", device, "-o", f"{name}.cu", "--verify", *options, folder=folder)
    text = (folder / f"{name}.cu").read_text()
    return json.loads(text.splitlines()[0].removeprefix(PREFIX)), text


def numbers(count, scale=1.0):
    return [scale * ((i * 7919) % 1009 / 504 - 1) for i in range(count)]


def floats_at_256(*lists):
    """A file of weights."""
    data = b""
    for values in lists:
        data += bytes(-len(data) % 256) + struct.pack(f"<{len(values)}f", *values)
    return data


def places(launches):
    return [arg for launch in launches for arg in launch.get("args", [])]


# ---- what is made once ----

def test_what_depends_on_weights_alone_is_prepared(folder):
    line, text = emitted(folder, FOLDED)
    assert line["schema"] == 2 and line["weights"] == 3840 + 2 * 256 + 96 and len(line["launches"]) == 1
    copies = [entry for entry in line["prepare"] if "copy" in entry]
    assert copies == [{"copy": 96, "from": {"weights": 3840 + 512}, "to": {"prepared": 0}}], copies   # the bias, as it is
    assert not any("weights" in arg for arg in places(line["launches"])), line["launches"]
    assert {"weights": 0} in places(line["prepare"]) and "rsqrt" in text.split("namespace k_k1_scope")[0]
    assert "rsqrt" not in text.split("namespace k_k1_scope")[1].split("k_launch(")[0]


def test_the_ranking_tells_what_is_prepared_apart(folder):
    emitted(folder, FOLDED, "--json", "k.json")
    first = json.loads((folder / "k.json").read_text())["candidates"][0]
    assert first["prepare"][-1]["makes"] == "ws", first["prepare"]
    assert [launch["makes"] for launch in first["launches"]] == ["y"], first["launches"]
    of_call = sum(launch["predicted"]["time_us"] for launch in first["launches"]) - 0.4   # early_launch_us: one brief launch
    assert abs(first["predicted"]["time_us"] / of_call - 1) < 1e-5, (first["predicted"], of_call)   # 1e-6 of what is prepared


def test_a_condition_over_weights_may_be_part_of_a_streamed_chain(folder):
    """The kernel of the chain reads the mask itself: nobody is left to read the conditions that were made of it."""
    line, _ = emitted(folder, """input q[2, 64, 64] : f16
input k[2, 64, 64] : f16
input v[2, 64, 64] : f16
weight mask[64, 64] : u8
seen[i, j]       = mask[i, j] != 0
t[h, i, j]       = select(seen[i, j], sum[d](q[h, i, d] * k[h, j, d]) * 0.125, -10000)
m[h, i]          = max[j](t[h, i, j])
e[h, i, j]       = exp(t[h, i, j] - m[h, i])
z[h, i]          = sum[j](e[h, i, j])
p[h, i, j] : f16 = e[h, i, j] / z[h, i]
y[h, i, d] : f16 = sum[j](p[h, i, j] * v[h, j, d])
output y
""")
    assert line["schema"] == 2 and line["launches"], line


def test_factors_are_packed_once(folder):
    """Rows of 1023 elements end within a vector of 16 bytes: products want them longer, or transposed. The input is packed in each call."""
    line, _ = emitted(folder, "input x[512, 1023] : f16\nweight w[512, 1023] : f16\n"
                              "y[i, j] = sum[k](x[i, k] * w[j, k])\noutput y : f16\n")
    launch, = line["prepare"]
    assert launch["args"] == [{"weights": 0}, {"prepared": 0}] and line["prepared"] in (2 * 512 * 1024, 2 * 512 * 1023), line
    pack, product = line["launches"]
    assert [arg for arg in pack["args"] if "map" not in arg] == [{"arg": 0}, {"workspace": 0}], pack
    assert {"prepared": 0} in product["args"] and {"arg": 1} not in product["args"], product


def test_a_launch_reads_no_more_than_it_is_given(folder):
    _, text = emitted(folder, FOLDED)
    assert "int k_launch(const void *x, const void *prepared, void *y, void *workspace, void *stream)" in text
    assert "weights" not in text.split("int k_launch(")[1]


def test_outputs_of_weights_alone_are_made_in_each_call(folder):
    line, _ = emitted(folder, "input x[4] : f32\nweight w[4] : f32\nd[i] = w[i] * 2\ny[i] = x[i] + d[i]\noutput y\noutput d\n")
    assert line["prepare"] == [{"copy": 16, "from": {"weights": 0}, "to": {"prepared": 0}}] and line["launches"]


def test_weights_that_nobody_reads_have_no_place(folder):
    line, _ = emitted(folder, "input x[4] : f32\nweight a[4] : f32\nweight b[4] : f32\ny[i] = x[i] + b[i]\noutput y\n")
    assert line["weights"] == 272 and line["prepared"] == 256
    assert [arg["offset"] for arg in line["args"] if arg["role"] == "weight"] == [0, 256]


def test_views_bits_and_casts_of_weights(folder):
    emitted(folder, "input x[6, 12] : f16\nweight w[72] : f32\nweight m[6, 12] : b1\nview v[6, 12] = w\nh[i, k] : f16 = v[i, k]\n"
                    "y[n, i] = sum[k](x[n, k] * select(m[i, k], h[i, k], 0))\noutput y\n")


# ---- layouts ----

def test_equal_layouts_have_equal_ids(folder):
    one, _ = emitted(folder, FOLDED)
    two, _ = emitted(folder, FOLDED.replace("x[16", "x[48"), name="k2")
    other, _ = emitted(folder, FOLDED.replace("1e-3", "1e-4"), name="k3")
    assert one["prepared_id"] == two["prepared_id"] != other["prepared_id"], "what is made of weights is the same, or another"


def test_programs_without_weights_have_nothing_of_this(folder):
    line, text = emitted(folder, "input x[4] : f32  input w[4] : f32  y[i] = x[i] * w[i]  output y\n")
    assert line["schema"] == 1 and not {"weights", "prepared", "prepare"} & set(line) and "prepare" not in text


def test_the_header_has_offsets(folder):
    emitted(folder, FOLDED, "--emit", "header")
    (folder / "t.c").write_text('#include "k.h"\nstatic_assert(k_gamma_offset == 3840 && k_bias_offset == 4352 && k_w_bytes == 3840, "");\n'
                                "unsigned long long id(void) { return k_PREPARED_ID; }\n"
                                "size_t sizes(void) { return k_weights() + k_prepared(); }\n"
                                "int both(void *p) { return k_prepare(p, p, p, p) + k_launch(p, p, p, p, p); }\n")
    for compiler in (["cc", "-std=c11"], ["c++", "-x", "c++", "-std=c++11"]):
        subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-c", "t.c", "-o", "t.o"], cwd=folder, check=True)


# ---- the file ----

def test_a_proof_takes_real_weights(folder):
    (folder / "w").write_bytes(floats_at_256(numbers(960), numbers(24), numbers(24), numbers(24)))
    emitted(folder, FOLDED, "--weights", "w")
    (folder / "short").write_bytes((folder / "w").read_bytes()[:-4])
    said = run("k.te", "--device", "h200", "-o", "no.cu", "--verify", "--weights", "short", code=1, folder=folder).stderr
    assert "'short' has 4444 bytes; the weights of 'k.te' have 4448" in said and not (folder / "no.cu").exists(), said
    assert "which is not asked for" in run("k.te", "--device", "h200", "--weights", "w", code=2, folder=folder).stderr
    assert "cannot read 'none'" in run("k.te", "--device", "h200", "--verify", "--weights", "none", code=1, folder=folder).stderr
    assert "--embed without a model" in run("k.te", "--device", "h200", "--embed", code=2, folder=folder).stderr
    (folder / "plain.te").write_text("input x[4] : f32  y[i] = x[i] * 2  output y\n")
    assert "'plain.te' has none" in run("plain.te", "--device", "h200", "--verify", "--weights", "w", code=2, folder=folder).stderr


def small_model(batch):
    """A convolution, its norm, a pool, a layer."""
    nodes = [onnx.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
             onnx.node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["b"]),
             onnx.node("Relu", ["b"], ["r"]), onnx.node("GlobalAveragePool", ["r"], ["p"]), onnx.node("Flatten", ["p"], ["f"]),
             onnx.node("Gemm", ["f", "m", "v"], ["y"], transB=1)]
    weights = [onnx.floats("w", [40, 3, 3, 3], numbers(1080)), onnx.floats("m", [35, 40], numbers(1400)), onnx.floats("v", [35], numbers(35)),
               *(onnx.floats(name, [40], numbers(40, 0.5)) for name in ("scale", "shift", "mean")),
               onnx.floats("var", [40], [1 + value / 2 for value in numbers(40)])]
    return onnx.model(nodes, [onnx.value("x", [batch, 3, 8, 8])], [onnx.value("y", [batch, 35])], weights)


def test_a_model_brings_its_file_and_batches_share_it(folder):
    for batch in (1, 3):
        (folder / f"m{batch}.onnx").write_bytes(small_model(batch))
        run(f"m{batch}.onnx", "--device", "h200", "--name", "m", "-o", f"m{batch}.cu", "--verify", "--weights", f"m{batch}.weights", folder=folder)
        run("import", f"m{batch}.onnx", "-o", f"m{batch}.te", "--weights", f"again{batch}.weights", folder=folder)
        run(f"m{batch}.te", "--device", "h200", "--name", "m", "-o", "t.cu", "--verify", "--weights", f"m{batch}.weights", folder=folder)
        assert (folder / "t.cu").read_text() == (folder / f"m{batch}.cu").read_text()
    files = {(folder / name).read_bytes() for name in ("m1.weights", "m3.weights", "again1.weights", "again3.weights")}
    line = json.loads((folder / "m1.cu").read_text().splitlines()[0].removeprefix(PREFIX))
    assert len(files) == 1 and len(files.pop()) == line["weights"]


def test_lower_precision_casts_and_turns_in_the_file(folder):
    (folder / "m.onnx").write_bytes(small_model(2))
    run("m.onnx", "--device", "h200", "-o", "m.cu", "--precision", "f16", "--verify", "--weights", "m.weights", folder=folder)


def test_embedded_weights_are_those_of_the_file(folder):
    (folder / "m.onnx").write_bytes(small_model(1))
    run("m.onnx", "--device", "h200", "-o", "m.cu", "--embed", folder=folder)
    (folder / "t.c").write_text("#include <stddef.h>\n#include <stdio.h>\nextern const unsigned char m_weights_data[];\n"
                                "extern const size_t m_weights_size;\n"
                                "int main(void) { return (size_t)m_weights_data % 256 || fwrite(m_weights_data, 1, m_weights_size, stdout) == 0; }\n")
    subprocess.run(["cc", "t.c", "m.weights.S", "-o", "t"], cwd=folder, check=True)
    assert subprocess.run([folder / "t"], check=True, capture_output=True).stdout == (folder / "m.weights").read_bytes()
    run("import", "m.onnx", "-o", "n.te", "--embed", folder=folder)
    assert "n_weights_data:" in (folder / "n.weights.S").read_text() and '.incbin "n.weights"' in (folder / "n.weights.S").read_text()


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "weights", options.filter)


if __name__ == "__main__":
    sys.exit(main())
