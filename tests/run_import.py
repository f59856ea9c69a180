#!/usr/bin/env python3
"""rollerc import: what is printed of a model, what is refused, and how. One test function per behaviour."""
import argparse
import os
import struct
import subprocess
import sys

import common
import onnx_model as onnx

ROLLERC = ""


def run(*arguments, code=0, folder=None):
    result = subprocess.run([ROLLERC, *map(str, arguments)], cwd=folder, capture_output=True, timeout=120, text=True)
    assert result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}"
    return result


def imported(folder, model, *options):
    """The program's statements without comments, and the weights."""
    (folder / "m.onnx").write_bytes(model)
    run("import", "m.onnx", "-o", "m.te", "--weights", "m.weights", *options, folder=folder)
    lines = [line for line in (folder / "m.te").read_text().splitlines() if line and not line.startswith("#")]
    weights = folder / "m.weights"
    return lines, weights.read_bytes() if weights.exists() else b""


def refused(folder, model, *options, code=1):
    """What is said; nothing is written."""
    (folder / "m.onnx").write_bytes(model)
    result = run("import", "m.onnx", "-o", "m.te", *options, code=code, folder=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["m.onnx"], list(folder.iterdir())
    return result.stderr


def chain(*nodes, shape=(2, 3), **more):
    """x through nodes to y."""
    return onnx.model(list(nodes), [onnx.value("x", shape)], [onnx.value("y", shape)], **more)


RELU = onnx.node("Relu", ["x"], ["y"])


# ---- the program ----

def test_a_node_is_a_definition_below_a_comment(folder):
    imported(folder, chain(onnx.node("Relu", ["x"], ["y"], name="act")))
    assert (folder / "m.te").read_text() == "input x[2, 3] : f32\n\n# Relu act\ny[i, j] = max(x[i, j], 0)\n\noutput y\n"


def test_a_convolution_says_its_window(folder):
    weights = onnx.floats("w", [4, 3, 3, 3], [float(i) for i in range(108)])
    model = onnx.model([onnx.node("Conv", ["x", "w"], ["y"], name="c", pads=[1, 1, 1, 1], strides=[2, 2])],
                       [onnx.value("x", [1, 3, 8, 8])], [onnx.value("y", [1, 4, 4, 4])], [weights])
    lines, data = imported(folder, model)
    assert lines[-2] == "y[n, f, h:4, v:4] = sum[k, r, s](pad(x[n, k, 2*h + r - 1, 2*v + s - 1], 0) * w[f, k, r, s])", lines
    assert "# Conv c: 3x3, stride 2\n" in (folder / "m.te").read_text()
    assert data == struct.pack("<108f", *range(108))


def test_the_program_is_what_is_compiled(folder):
    (folder / "m.onnx").write_bytes(chain(RELU))
    run("import", "m.onnx", "-o", "m.te", folder=folder)
    run("m.onnx", "--device", "a100", "-o", "model.cu", "--name", "m", "--verify", folder=folder)
    run("m.te", "--device", "a100", "-o", "program.cu", "--name", "m", folder=folder)
    assert (folder / "model.cu").read_text() == (folder / "program.cu").read_text()


def test_weights_lie_at_multiples_of_256_in_the_order_of_the_model(folder):
    first, second = onnx.floats("a", [3], [1.0, 2.0, 3.0]), onnx.floats("b", [3], [4.0, 5.0, 6.0])
    model = chain(onnx.node("Add", ["x", "b"], ["t"]), onnx.node("Mul", ["t", "a"], ["y"]), initializers=[first, second])
    lines, data = imported(folder, model)
    assert [line.split()[1] for line in lines[1:3]] == ["a[3]", "b[3]"], lines
    assert data == struct.pack("<3f", 1, 2, 3) + bytes(244) + struct.pack("<3f", 4, 5, 6)


def test_names_become_legal(folder):
    model = onnx.model([onnx.node("Conv", ["sum", "w"], ["/layer1/conv1/Conv_output_0"]),
                        onnx.node("Relu", ["/layer1/conv1/Conv_output_0"], ["1"])],
                       [onnx.value("sum", [1, 1, 4, 4])], [onnx.value("1", [1, 2, 4, 4])], [onnx.floats("w", [2, 1, 1, 1], [1.0, 2.0])])
    lines, _ = imported(folder, model)
    assert [line.split("[")[0] for line in lines] == ["input sum_", "weight w", "layer1_conv1", "v1", "output v1"], lines


def test_bools_are_bytes_at_the_border_and_conditions_inside(folder):
    model = onnx.model([onnx.node("Not", ["m"], ["y"])], [onnx.value("m", [4], onnx.BOOL)], [onnx.value("y", [4], onnx.BOOL)])
    lines, _ = imported(folder, model)
    assert lines == ["input m_[4] : u8", "m_b1[i] = m_[i] != 0", "y_b1[i] = !m_b1[i]",
                     "y[i] : u8 = select(y_b1[i], 1, 0)", "output y"], lines


# ---- constants and shapes ----

def test_shapes_are_folded(folder):
    """x of [2, 3] as [3, 2], by way of Shape, Gather and Concat."""
    model = onnx.model([onnx.node("Shape", ["x"], ["s"]), onnx.node("Gather", ["s", "one"], ["g"]),
                        onnx.node("Concat", ["g", "rest"], ["t"], axis=0), onnx.node("Reshape", ["x", "t"], ["y"])],
                       [onnx.value("x", [2, 3])], [onnx.value("y", [3, 2])], [onnx.integers("one", [1]), onnx.integers("rest", [-1])])
    assert imported(folder, model)[0] == ["input x[2, 3] : f32", "view y[3, 2] = x", "output y"]


def test_large_integers_are_folded_exactly(folder):
    model = onnx.model([onnx.node("Concat", ["a", "b"], ["end"], axis=0), onnx.node("Slice", ["x", "start", "end"], ["y"])],
                       [onnx.value("x", [4, 5])], [onnx.value("y", [3, 5])],
                       [onnx.integers("a", [2**63 - 1]), onnx.integers("b", [2**62 + 1]), onnx.integers("start", [1, 0])])
    assert imported(folder, model)[0][1] == "y[i:3, j] = x[i + 1, j]"


def test_an_input_of_the_graph_is_bound_to_its_values(folder):
    model = onnx.model([onnx.node("Reshape", ["x", "shape"], ["y"])], [onnx.value("x", [2, 3]), onnx.value("shape", [1], onnx.INT64)],
                       [onnx.value("y", [6])])
    assert imported(folder, model, "--bind", "shape=-1")[0] == ["input x[2, 3] : f32", "view y[6] = x", "output y"]
    (folder / "m.te").unlink()
    said = refused(folder, model)
    assert "Reshape that makes 'y'" in said and "--bind shape=VALUE" in said, said


def test_symbols_are_bound_and_those_that_are_not_are_listed(folder):
    model = onnx.model([onnx.node("Add", ["a", "b"], ["y"])], [onnx.value("a", ["batch", "seq"]), onnx.value("b", ["batch", 1])],
                       [onnx.value("y", ["batch", "seq"])])
    assert imported(folder, model, "--bind", "batch=2", "--bind", "seq=5")[0][:2] == ["input a[2, 5] : f32", "input b_[2, 1] : f32".replace("b_", "b")]
    (folder / "m.te").unlink()
    said = refused(folder, model)
    assert "--bind batch=VALUE   of 'a', 'b'" in said and "--bind seq=VALUE   of 'a'" in said, said
    assert "no symbol and no input" in refused(folder, model, "--bind", "batch=2", "--bind", "seq=5", "--bind", "sq=5", code=2)


def test_a_condition_that_is_known_takes_its_branch(folder):
    branches = {name: onnx.graph([onnx.node(op, ["x"], ["r"])], [], [onnx.value("r", [2, 3])])
                for name, op in (("then_branch", "Exp"), ("else_branch", "Tanh"))}
    for flag, op in ((1, "exp"), (0, "tanh")):
        model = chain(onnx.node("If", ["c"], ["y"], **branches), initializers=[onnx.tensor("c", [], bytes([flag]), onnx.BOOL)])
        assert f"= {op}(x[i, j])" in "\n".join(imported(folder, model)[0])


def test_functions_are_inlined_with_their_attributes(folder):
    refers = onnx.field(1, "alpha") + onnx.field(21, "slope") + onnx.field(20, 1)
    gemm = onnx.node("Gemm", ["a", "b"], ["c"]) + onnx.field(5, refers)
    scaled = onnx.function("Scaled", "mine", ["a", "b"], ["d"], [gemm, onnx.node("Relu", ["c"], ["d"])])
    model = onnx.model([onnx.node("Scaled", ["x", "x"], ["y"], domain="mine", slope=3.0)], [onnx.value("x", [2, 2])],
                       [onnx.value("y", [2, 2])], functions=[scaled])
    assert "= 3.0 * sum[k](x[i, k] * x[k, j])" in "\n".join(imported(folder, model)[0])


# ---- loops and operators of many definitions ----

def loop(shape, trips, *nodes, condition="c"):
    """`nodes` make `next` of u, in each of some steps; y is what u is at last, z what it is after each step."""
    body = onnx.graph([*nodes, onnx.node("Identity", ["next"], ["kept"])],
                      [onnx.value("i", [], onnx.INT64), onnx.value("c", [], onnx.BOOL), onnx.value("u", shape)],
                      [onnx.value(condition, [], onnx.BOOL), onnx.value("next", shape), onnx.value("kept", shape)])
    return onnx.model([onnx.node("Loop", ["n", "", "x"], ["y", "z"], body=body)], [onnx.value("x", shape)],
                      [onnx.value("y", shape), onnx.value("z", [trips, *shape])],
                      [onnx.tensor("n", [], struct.pack("<q", trips), onnx.INT64)])


def test_a_loop_is_unrolled(folder):
    lines = imported(folder, loop([4], 3, onnx.node("Exp", ["u"], ["next"])))[0]
    assert [line for line in lines if "exp(" in line] == ["next[i] = exp(x[i])", "next_2[i] = exp(next[i])", "next_3[i] = exp(next_2[i])"], lines
    assert any(line.startswith("z[i:3, j] = select(i < 1, next[j], select(i < 2, next_2[j], next_3[j]))") for line in lines), lines


def test_a_loop_that_data_ends_is_refused(folder):
    compares = onnx.node("Equal", ["s", "s"], ["d"]), onnx.node("ReduceSum", ["u"], ["s"], keepdims=0), onnx.node("Exp", ["u"], ["next"])
    said = refused(folder, loop([4], 3, compares[1], compares[0], compares[2], condition="d"))
    assert "when it ends depends on data" in said, said
    assert "more than 4,096 steps" in refused(folder, loop([4], 5000, onnx.node("Exp", ["u"], ["next"])))


def test_loops_in_loops_end(folder):
    def body(depth):
        inner = [onnx.node("Loop", ["n", "", "x"], ["q"], body=body(depth - 1))] if depth else []
        return onnx.graph(inner, [onnx.value("i", [], onnx.INT64), onnx.value("c", [], onnx.BOOL), onnx.value("u", [1])],
                          [onnx.value("c", [], onnx.BOOL), onnx.value("q" if depth else "u", [1])])
    model = onnx.model([onnx.node("Loop", ["n", "", "x"], ["y"], body=body(6))], [onnx.value("x", [1])], [onnx.value("y", [1])],
                       [onnx.tensor("n", [], struct.pack("<q", 4000), onnx.INT64)])
    assert "has more than 131072 nodes" in refused(folder, model)


def test_what_a_branch_makes_may_be_asked_where_it_comes_from(folder):
    branch = onnx.graph([onnx.node("Cast", ["x"], ["r"], to=7)], [], [onnx.value("r", [2], onnx.INT64)])
    model = onnx.model([onnx.node("If", ["c"], ["s"], then_branch=branch, else_branch=branch), onnx.node("Expand", ["a", "s"], ["y"])],
                       [onnx.value("x", [2]), onnx.value("a", [2])], [onnx.value("y", [2, 2])],
                       [onnx.tensor("c", [], b"\1", onnx.BOOL)])
    assert "'s' must be known when the model is imported, and depends on data" in refused(folder, model)


def test_a_condition_that_is_an_input_says_how_it_is_bound(folder):
    branches = {name: onnx.graph([onnx.node(op, ["x"], ["r"])], [], [onnx.value("r", [2])])
                for name, op in (("then_branch", "Exp"), ("else_branch", "Tanh"))}
    model = onnx.model([onnx.node("If", ["c"], ["y"], **branches)], [onnx.value("c", [], onnx.BOOL), onnx.value("x", [2])],
                       [onnx.value("y", [2])])
    assert "bind it with --bind c=VALUE" in refused(folder, model)
    assert "= tanh(x[i])" in imported(folder, model, "--bind", "c=0")[0][1]


def test_many_tensors_are_joined_without_deep_brackets(folder):
    nodes = [onnx.node("Concat", ["x"] * 300, ["y"], axis=0)]
    lines = imported(folder, onnx.model(nodes, [onnx.value("x", [2, 3])], [onnx.value("y", [600, 3])]))[0]
    deepest = max(lines[1][:i].count("(") - lines[1][:i].count(")") for i in range(len(lines[1])))
    assert deepest <= 12, deepest


def test_a_transposed_convolution_is_one_of_stride_1_for_each_phase(folder):
    weights = onnx.floats("w", [1, 1, 3, 3], [float(i) for i in range(9)])
    model = onnx.model([onnx.node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 1])], [onnx.value("x", [1, 1, 4, 4])],
                       [onnx.value("y", [1, 1, 9, 6])], [weights])
    lines = imported(folder, model)[0]
    assert lines[2:4] == ["y_phase[n, f:1, h:5, v:6] = sum[r:2, s](pad(x[n, 0, h - r, v - s], 0) * w[0, 0, 2*r, s])",
                          "y_phase_2[n, f:1, h:5, v:6] = sum[s](pad(x[n, 0, h, v - s], 0) * w[0, 0, 1, s])"], lines
    assert lines[4] == "y[n, f, h:9, v] = select(h%2 < 1, y_phase[n, f, h/2, v], y_phase_2[n, f, h/2, v])", lines


def test_a_plain_enlargement_has_no_table(folder):
    scales = onnx.tensor("s", [2], struct.pack("<2f", 1, 2))
    model = onnx.model([onnx.node("Resize", ["x", "", "s"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
                                  nearest_mode="floor")], [onnx.value("x", [2, 3])], [onnx.value("y", [2, 6])], [scales])
    assert imported(folder, model)[0][1] == "y[i, j:6] = x[i, j/2]"


# ---- what is refused ----

def test_all_nodes_that_cannot_be_taken_are_named_at_once(folder):
    said = refused(folder, chain(onnx.node("NonZero", ["x"], ["t"], name="one"), onnx.node("Frobnicate", ["x"], ["u"], name="two"),
                                 onnx.node("Sum", ["t", "u"], ["y"])))
    assert "NonZero 'one'" in said and "Frobnicate 'two'" in said and "Sum" not in said, said


def test_what_no_output_needs_is_not_asked_for(folder):
    assert len(imported(folder, chain(RELU, onnx.node("Frobnicate", ["x"], ["u"])))[0]) == 3


def test_hostile_nesting_is_refused_before_it_is_unpacked(folder):
    inner = b""
    for _ in range(20000):
        inner = onnx.field(1, onnx.field(5, onnx.field(6, inner)))
    assert "within each other" in refused(folder, onnx.field(7, inner))


def test_fields_with_a_meaning_that_is_not_known_are_refused(folder):
    for node, what in ((RELU + onnx.field(8, "v2"), "field 8 of NodeProto"),):
        assert what in refused(folder, chain(node))
    function = onnx.function("F", "mine", ["a"], ["b"], [onnx.node("Relu", ["a"], ["b"])]) + onnx.field(11, onnx.attribute("k", 1))
    assert "field 11 of FunctionProto" in refused(folder, chain(RELU, functions=[function]))


def test_what_is_cut_off_is_refused(folder):
    whole = chain(RELU)
    for length in range(len(whole)):
        (folder / "m.onnx").write_bytes(whole[:length])
        run("import", "m.onnx", "-o", "m.te", code=1, folder=folder)
    assert not (folder / "m.te").exists()


def test_external_data_lies_below_the_model(folder):
    (folder / "in").mkdir()
    (folder / "outside.bin").write_bytes(struct.pack("<3f", 1, 2, 3))
    (folder / "in/data.bin").write_bytes(bytes(8) + struct.pack("<3f", 1, 2, 3))
    (folder / "in/link.bin").symlink_to("../outside.bin")
    def write(**where):
        (folder / "in/m.onnx").write_bytes(chain(onnx.node("Add", ["x", "b"], ["y"]), initializers=[onnx.external("b", [3], **where)]))
    write(location="data.bin", offset=8, length=12)
    run("import", "in/m.onnx", "-o", "m.te", folder=folder)
    assert (folder / "m.weights").read_bytes() == struct.pack("<3f", 1, 2, 3)
    for location in ("../outside.bin", "link.bin", str(folder / "outside.bin")):
        write(location=location, offset=0, length=12)
        assert "not below the model's folder" in run("import", "in/m.onnx", "-o", "n.te", code=1, folder=folder).stderr
    write(location="data.bin", offset=16, length=12)
    assert "beyond the end" in run("import", "in/m.onnx", "-o", "n.te", code=1, folder=folder).stderr


def test_types_that_there_are_not_are_named(folder):
    model = onnx.model([RELU], [onnx.value("x", [2], onnx.UINT16)], [onnx.value("y", [2], onnx.UINT16)])
    assert "input 'x' is of type uint16" in refused(folder, model)


# ---- precision and layout ----

def image_model(*nodes, channels=2, weights=(), **more):
    """image of [1, channels, 4, 4] through nodes to y."""
    return onnx.model(list(nodes), [onnx.value("image", [1, channels, 4, 4])], [onnx.value("y", more.pop("shape", [1, 3, 4, 4]))], weights)


FILTERS = onnx.floats("w", [3, 2, 3, 3], [float(number) for number in range(54)])
SAME = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def test_feature_maps_lie_channels_last_between_borders(folder):
    """A residual, a concatenation and a pool follow; the filter is turned in the file."""
    model = image_model(onnx.node("Conv", ["image", "w"], ["a"], **SAME), onnx.node("Add", ["a", "a"], ["b"]),
                        onnx.node("Concat", ["b", "a"], ["both"], axis=1),
                        onnx.node("MaxPool", ["both"], ["y"], kernel_shape=[2, 2]), weights=[FILTERS], shape=[1, 6, 3, 3])
    lines, data = imported(folder, model, "--layout", "nhwc")
    assert lines == [
        "input image[1, 2, 4, 4] : f32", "weight w[3, 3, 3, 2] : f32", "image_nhwc[n, h, v, c] = image[n, c, h, v]",
        "a[n, h:4, v:4, f] = sum[k, r, s](pad(image_nhwc[n, h + r - 1, v + s - 1, k], 0) * w[f, r, s, k])",
        "b[i, j, k, l] = a[i, j, k, l] + a[i, j, k, l]",
        "both[i, j, k, l:6] = select(l < 3, pad(b[i, j, k, l], 0), pad(a[i, j, k, l - 3], 0))",
        "y_nhwc[n, h:3, v:3, c] = max[r:2, s:2](both[n, h + r, v + s, c])", "y[n, c, h, v] = y_nhwc[n, h, v, c]", "output y"], lines
    turned = [18 * f + 9 * k + 3 * r + s for f in range(3) for r in range(3) for s in range(3) for k in range(2)]
    assert data == struct.pack("<54f", *turned)


def test_views_of_feature_maps_cost_nothing_where_dimensions_stay_together(folder):
    model = image_model(onnx.node("Conv", ["image", "w"], ["a"], **SAME), onnx.node("Reshape", ["a", "patches"], ["rows"]),
                        onnx.node("Transpose", ["rows"], ["y"], perm=[0, 2, 1]),
                        weights=[FILTERS, onnx.integers("patches", [1, 3, 16])], shape=[1, 16, 3])
    lines, _ = imported(folder, model, "--layout", "nhwc")
    assert lines[4:] == ["view rows[1, 16, 3] = a", "view y[1, 16, 3] = rows", "output y"], lines
    flat = image_model(onnx.node("Conv", ["image", "w"], ["a"], **SAME), onnx.node("Flatten", ["a"], ["y"]), weights=[FILTERS], shape=[1, 48])
    lines, _ = imported(folder, flat, "--layout", "nhwc")
    assert lines[4:] == ["a_in_order[n, c, h, v] = a[n, h, v, c]", "view y[1, 48] = a_in_order", "output y"], lines


def test_layouts_are_chosen_by_the_type(folder):
    model = image_model(onnx.node("Conv", ["image", "w"], ["y"], **SAME), weights=[FILTERS])
    plain, nchw, f16 = (imported(folder, model, *words)[0] for words in ([], ["--layout", "nchw"], ["--precision", "f16"]))
    assert plain == nchw and "nhwc" not in str(plain) and "image_nhwc[n, h, v, c] : f16 = image[n, c, h, v]" in f16, f16
    assert "nhwc" not in str(imported(folder, model, "--precision", "f16", "--layout", "nchw")[0])


def test_precision_rounds_weights_and_what_products_read(folder):
    """1 + 2^-11 is halfway between two numbers of f16, and goes to the even one."""
    weights = onnx.floats("w", [3, 2], [1 + 2 ** -11, 1 + 3 * 2 ** -11, 2.0, 3.0, 4.0, 65519.0])
    model = chain(onnx.node("MatMul", ["x", "w"], ["a"]), onnx.node("Add", ["a", "b"], ["added"]), onnx.node("MatMul", ["added", "last"], ["y"]),
                  initializers=[weights, onnx.floats("b", [2], [1.0, 2.0]), onnx.floats("last", [2, 2], [1.0, 2.0, 3.0, 4.0])])
    lines, data = imported(folder, model, "--precision", "f16")
    assert lines == [
        "input x[2, 3] : f32", "weight w[3, 2] : f16", "weight b[2] : f32", "weight last[2, 2] : f16", "x_f16[i, j] : f16 = x[i, j]",
        "a[i, j] : f16 = sum[k](x_f16[i, k] * w[k, j])", "added[i, j] : f16 = a[i, j] + b[j]",
        "y[i, j] = sum[k](added[i, k] * last[k, j])", "output y"], lines
    assert data[:12] == struct.pack("<6e", 1, 1 + 2 ** -9, 2, 3, 4, 65504), data[:12]
    narrow, _ = imported(folder, model, "--precision", "bf16", "--io-precision", "f16")
    assert narrow[0] == "input x[2, 3] : f16" and narrow[-2] == "y[i, j] : f16 = sum[k](added[i, k] * last[k, j])", narrow


def test_statistics_stay_f32_until_a_product_reads_what_is_made_of_them(folder):
    nodes = [onnx.node("MatMul", ["x", "w"], ["a"]), onnx.node("ReduceMean", ["a"], ["mean"], axes=[1]),
             onnx.node("Sub", ["a", "mean"], ["centred"]), onnx.node("Mul", ["centred", "centred"], ["square"]), onnx.node("ReduceMean", ["square"], ["var"], axes=[1]),
             onnx.node("Sqrt", ["var"], ["root"]), onnx.node("Div", ["centred", "root"], ["norm"]), onnx.node("Transpose", ["norm"], ["turned"]),
             onnx.node("MatMul", ["turned", "a"], ["y"])]
    model = chain(*nodes, initializers=[onnx.floats("w", [3, 3], [float(number) for number in range(9)])])
    lines, _ = imported(folder, model, "--precision", "f16")
    types = {line.split("[")[0]: ": f16" in line for line in lines if " = " in line}
    assert types == {"x_f16": True, "a": True, "mean": False, "centred": False, "square": False, "var": False, "root": False, "norm": True, "turned": False,
                     "y": False}, lines
    assert "norm[i, j] : f16 = centred[i, j] / root[i, 0]" in lines and "turned[i, j] = norm[j, i]" in lines, lines


def test_weights_beyond_the_type_stay_f32_and_are_named(folder):
    model = chain(onnx.node("Add", ["x", "w"], ["y"]), initializers=[onnx.floats("w", [2, 3], [65520.0, 1.0, 2.0, 3.0, 4.0, 5.0])])
    (folder / "m.onnx").write_bytes(model)
    said = run("import", "m.onnx", "-o", "m.te", "--precision", "f16", folder=folder).stderr
    assert "'w' stays f32: 1 of its elements" in said and "weight w[2, 3] : f32" in (folder / "m.te").read_text(), said
    assert run("import", "m.onnx", "-o", "m.te", "--precision", "bf16", folder=folder).stderr == ""


def test_a_batch_norm_is_a_scale_and_a_shift_of_each_channel(folder):
    """Made of weights alone, they are f32; what they are applied to is no finer for that."""
    vectors = [onnx.floats(name, [4], [1.0, 2.0, 3.0, 4.0]) for name in ("gain", "bias", "mean", "var")]
    weights = [onnx.floats("filters", [4, 4, 1, 1], [float(i) for i in range(16)]), *vectors]
    nodes = [onnx.node("Conv", ["image", "filters"], ["conv"]),
             onnx.node("BatchNormalization", ["conv", "gain", "bias", "mean", "var"], ["norm"]), onnx.node("Relu", ["norm"], ["y"])]
    model = onnx.model(nodes, [onnx.value("image", [1, 4, 8, 8])], [onnx.value("y", [1, 4, 8, 8])], weights)
    lines, _ = imported(folder, model, "--precision", "f16", "--io-precision", "f16", "--layout", "nchw")
    assert lines[-5:-1] == ["norm_scale[i] = gain[i] / sqrt(var[i] + 1e-05)", "norm_shift[i] = bias[i] - mean[i] * norm_scale[i]",
                            "norm[i, j, k, l] = conv[i, j, k, l] * norm_scale[j] + norm_shift[j]",
                            "y[i, j, k, l] : f16 = max(norm[i, j, k, l], 0)"], lines


def test_maps_that_are_turned_and_back_are_views(folder):
    nodes = [onnx.node("Conv", ["x", "w"], ["c"], group=4), onnx.node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
             onnx.node("Relu", ["t"], ["r"]), onnx.node("Transpose", ["r"], ["u"], perm=[0, 3, 1, 2]),
             onnx.node("Conv", ["u", "w"], ["y"], group=4)]
    weights = [onnx.floats("w", [4, 1, 1, 1], [1.0, 2.0, 3.0, 4.0])]
    model = onnx.model(nodes, [onnx.value("x", [1, 4, 8, 8])], [onnx.value("y", [1, 4, 8, 8])], weights)
    lines, _ = imported(folder, model, "--precision", "f16")
    assert "view t_[1, 8, 8, 4] = c_" in lines and "view u_[1, 8, 8, 4] = r_" in lines, lines


def test_a_model_is_compiled_with_the_same_options(folder):
    (folder / "m.onnx").write_bytes(image_model(onnx.node("Conv", ["image", "w"], ["y"], **SAME), weights=[FILTERS]))
    words = ["--precision", "f16", "--io-precision", "f16", "--layout", "nhwc"]
    run("import", "m.onnx", "-o", "m.te", "--weights", "program.weights", *words, folder=folder)
    run("m.onnx", "--device", "a100", "-o", "model.cu", "--name", "m", "--weights", "model.weights", "--verify", *words, folder=folder)
    run("m.te", "--device", "a100", "-o", "program.cu", "--name", "m", folder=folder)
    for left, right in (("model.cu", "program.cu"), ("model.weights", "program.weights")):
        assert (folder / left).read_bytes() == (folder / right).read_bytes(), left


def test_weights_take_no_other_file_s_place(folder):
    """That is seen before any of them is written."""
    model = chain(onnx.node("Add", ["x", "b"], ["y"]), initializers=[onnx.floats("b", [3], [1.0, 2.0, 3.0])])
    (folder / "m.onnx").write_bytes(model)
    (folder / "link").symlink_to("m.onnx")
    for words, what in ((("-o", "m.cu", "--weights", "m.onnx"), "is the model"), (("-o", "m.cu", "--weights", "link"), "is the model"),
                        (("-o", "m.cu", "--weights", "./m.cu"), "-o m.cu and the weights"), (("-o", "-", "--weights", "-"), "-o - and the weights"),
                        (("-o", "-", "--weights", "/dev/stdout"), "-o - and the weights"),
                        (("--emit", "cu=m.weights"), "--emit cu=m.weights and the weights"),
                        (("-o", "m.cu", "-MD", "-MF", "m.d", "--weights", "m.d"), "-MF m.d and the weights")):
        assert what in run("m.onnx", "--device", "a100", *words, code=2, folder=folder).stderr, words
        assert sorted(path.name for path in folder.iterdir()) == ["link", "m.onnx"], words
    assert (folder / "m.onnx").read_bytes() == model
    run("import", "m.onnx", "-o", "m.te", folder=folder)
    said = run("m.te", "--device", "a100", "--emit", "cu=m.weights", "--weights", "m.weights", "--verify", code=2, folder=folder).stderr
    assert "is an input and would be overwritten" in said, said


def test_a_run_that_fails_leaves_no_weights(folder):
    """They are on their way to the disk while kernels are planned."""
    (folder / "m.onnx").write_bytes(chain(onnx.node("Add", ["x", "b"], ["y"]), initializers=[onnx.floats("b", [3], [1.0, 2.0, 3.0])]))
    for words, code in ((("--candidate", "1000", "--top-k", "1000"), 2), (("--json", "/dev/full"), 4)):
        run("m.onnx", "--device", "a100", "-o", "m.cu", *words, code=code, folder=folder)
        assert sorted(path.name for path in folder.iterdir()) == ["m.onnx"], words


def test_wrong_words_are_refused(folder):
    for option, word, wanted in (("--precision", "f64", "f32, f16, bf16"), ("--io-precision", "half", "f32, f16, bf16"),
                                 ("--layout", "chwn", "auto, nchw, nhwc")):
        assert f"'{word}' for {option}; it is one of {wanted}" in refused(folder, chain(RELU), option, word, code=2)
        (folder / "m.te").write_text("input x[2] : f32\ny[i] = x[i]\noutput y\n")
        said = run("m.te", "--device", "a100", "-o", "-", option, word, code=2, folder=folder).stderr
        assert f"'{word}' for {option}" in said, said
        said = run("m.te", "--device", "a100", "-o", "-", option, wanted.split(", ")[0], code=2, folder=folder).stderr
        assert "are of models: 'm.te' is no .onnx" in said, said
        (folder / "m.te").unlink()


MASKED_SCORES = {"square": (256, 256, 256, 256), "a row for all": (4, 70000, 1, 70000), "a column for all": (70000, 3, 70000, 1)}


def masked(op, rows, columns, mask_rows, mask_columns):
    """Scores, a mask of positions alone that is added to them, and what is made of their rows."""
    nodes = [onnx.node("Trilu", ["ones", "offset"], ["seen"], upper=0), onnx.node("Equal", ["seen", "zero"], ["ahead"]),
             onnx.node("Where", ["ahead", "lowest", "zero"], ["mask"]), onnx.node("Add", ["x", "mask"], ["scores"]),
             onnx.node(op, ["scores"], ["y"], axis=-1)]
    constants = [onnx.floats("ones", [mask_rows, mask_columns], [1.0] * mask_rows * mask_columns), onnx.integers("offset", [0]),
                 onnx.floats("zero", [], [0.0]), onnx.floats("lowest", [], [-3.4e38])]
    return onnx.model(nodes, [onnx.value("x", [2, rows, columns])], [onnx.value("y", [2, rows, columns])], constants)


def test_a_mask_of_all_positions_is_a_select_of_a_softmax(folder):
    """One that is broadcast is no triangle of the scores; and logarithms of shares are finite where it is."""
    for name, sizes in MASKED_SCORES.items():
        lines, _ = imported(folder, masked("Softmax", *sizes))
        assert any("-inf" in line for line in lines) == (name == "square"), (name, lines)
    lines, _ = imported(folder, masked("LogSoftmax", *MASKED_SCORES["square"]))
    assert not any("-inf" in line for line in lines), lines


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "import", options.filter)


if __name__ == "__main__":
    sys.exit(main())
