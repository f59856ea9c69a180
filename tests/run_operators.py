#!/usr/bin/env python3
"""ONNX's operators at values where mappings go wrong first. All inputs are constants, so that the importer evaluates the node
and writes what it gives into the file of weights; ONNX's own cases, which are compiled, are run_onnx.py's."""
import argparse
import math
import os
import re
import struct
import subprocess
import sys

import common
import onnx_model as onnx

ROLLERC = ""
DOUBLE, BFLOAT16 = 11, 16
FORMATS = {onnx.FLOAT: "f", onnx.UINT8: "B", onnx.INT8: "b", onnx.INT32: "i", onnx.INT64: "q", onnx.BOOL: "B", DOUBLE: "d",
           onnx.FLOAT16: "e"}
INF, NAN = math.inf, math.nan


class T:
    """A tensor; a list without a shape is a vector, a number a scalar."""

    def __init__(self, values, kind=onnx.FLOAT, shape=None):
        self.values = values if isinstance(values, list) else [values]
        self.kind = kind
        self.shape = shape if shape is not None else [len(values)] if isinstance(values, list) else []

    def proto(self, name):
        return onnx.tensor(name, self.shape, struct.pack(f"<{len(self.values)}{FORMATS[self.kind]}", *self.values), self.kind)


def f64(values, shape=None):
    return T(values, DOUBLE, shape)


def i64(values, shape=None):
    return T(values, onnx.INT64, shape)


def i32(values, shape=None):
    return T(values, onnx.INT32, shape)


def i8(values, shape=None):
    return T(values, onnx.INT8, shape)


def u8(values, shape=None):
    return T(values, onnx.UINT8, shape)


def b1(values, shape=None):
    return T(values, onnx.BOOL, shape)


def model_of(op, inputs, outputs, version, domain, attributes):
    names = [f"x{i}" if tensor else "" for i, tensor in enumerate(inputs)]
    node = onnx.node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    versions = onnx.field(8, onnx.field(1, domain) + onnx.field(2, version)) if domain else b""
    return onnx.model([node], [], [onnx.value(f"y{i}", [1]) for i in range(outputs)],
                      [tensor.proto(name) for name, tensor in zip(names, inputs) if tensor],
                      version=17 if domain else version, more=versions)


def run(folder, op, *inputs, outputs=1, version=17, domain="", **attributes):
    (folder / "m.onnx").write_bytes(model_of(op, inputs, outputs, version, domain, attributes))
    return subprocess.run([ROLLERC, "import", "m.onnx", "-o", "m.te", "--weights", "m.weights"], cwd=folder, capture_output=True,
                          timeout=60, text=True)


TYPES = {"f32": "f", "f64": "d", "i64": "q", "i32": "i", "i8": "b", "u8": "B", "f16": "e"}


def made(folder, *arguments, **more):
    """What each output holds."""
    result = run(folder, *arguments, **more)
    assert result.returncode == 0, result.stderr
    lines = [line for line in (folder / "m.te").read_text().splitlines() if line and not line.startswith("#")]
    data = (folder / "m.weights").read_bytes() if (folder / "m.weights").exists() else b""
    at, held = 0, {}
    for line in lines:
        name = re.match(r"(?:input |weight )?(\w+)", line).group(1)
        if line.startswith(("input ", "weight ")):
            at = (at + 255) // 256 * 256
            held[name] = read_weight(line, data, at)
            at += struct.calcsize(form_of(line))
        elif " = " in line:
            held[name] = read_definition(line, held)
    return [held[line.split()[1]] for line in lines if line.startswith("output")]


def form_of(line):
    sizes = [int(size) for size in re.findall(r"\d+", line[line.index("["):line.index("]")])]
    return f"<{math.prod(sizes)}{TYPES[line.split(' : ')[1]]}"


def read_weight(line, data, at):
    return list(struct.unpack_from(form_of(line), data, at))


def read_definition(line, held):
    """A copy of a weight, or a number that all elements are."""
    left, right = line.split(" = ", 1)
    weight = re.match(r"(?:select\()?(\w+)\[|(\w+) != 0", right)
    if weight:
        return held[weight.group(1)]
    if "1 == " in right:
        number = "1 == 1" in right
    else:
        number = {"sqrt(-1)": NAN, "inf": INF, "(-inf)": -INF}.get(right) or eval(right)   # what the importer wrote
    return [number] * math.prod(map(int, re.findall(r":(\d+)", left)))


def same(got, want, unit):
    if isinstance(want, float) and math.isnan(want):
        return math.isnan(got)
    return got == want or (math.isfinite(want) and math.isfinite(got) and abs(got - want) <= unit * abs(want))


def check(folder, want, *arguments, unit=3e-7, **more):
    got = made(folder, *arguments, **more)[0]
    assert len(got) == len(want) and all(map(lambda a, b: same(a, b, unit), got, want)), f"{got}, expected {want}"


def check_refused(folder, reason, *arguments, **more):
    result = run(folder, *arguments, **more)
    assert result.returncode == 1 and reason in result.stderr, f"{result.returncode}: {result.stderr}"


# ---- functions ----

def test_inverse_hyperbolic_functions_keep_their_digits(folder):
    small = [1e-5, -1e-5, 0.25, -30.0, 1e30, -1e30, INF, -INF, 0.0]
    check(folder, [math.asinh(v) for v in small], "Asinh", T(small))
    inside = [1e-5, -1e-5, 0.25, -0.75]
    check(folder, [math.atanh(v) for v in inside] + [INF, -INF, NAN], "Atanh", T(inside + [1.0, -1.0, 1.5]))
    above = [1.0, 1.0009765625, 2.0, 1e30]
    check(folder, [math.acosh(v) for v in above] + [INF, NAN, NAN, NAN], "Acosh", T(above + [INF, 0.5, -2.0, -1e6]))


def test_hyperbolic_functions_reach_the_end_of_their_range(folder):
    check(folder, [math.sinh(v) for v in (1e-5, -2.0, 89.0)] + [INF, -INF], "Sinh", T([1e-5, -2.0, 89.0, 90.0, -INF]))
    check(folder, [math.cosh(v) for v in (1e-5, -2.0, 89.0)] + [INF, INF], "Cosh", T([1e-5, -2.0, 89.0, 90.0, -INF]))


def test_softplus_and_mish_keep_small_values(folder):
    check(folder, [math.exp(-40), math.log(2), 40.0, INF], "Softplus", T([-40.0, 0.0, 40.0, INF]))
    check(folder, [-30 * math.tanh(math.exp(-30)), math.tanh(math.log(1 + math.e)), 100.0], "Mish", T([-30.0, 1.0, 100.0]),
          version=18)


def test_sign_and_max_keep_nan(folder):
    check(folder, [1.0, -1.0, 0.0, NAN], "Sign", T([3.0, -INF, 0.0, NAN]))
    check(folder, [NAN, NAN, 2.0], "Max", T([NAN, 1.0, 2.0]), T([1.0, NAN, 1.0]))


def test_infinities_of_one_sign(folder):
    values = T([INF, -INF, 1.0, NAN])
    for below, above, want in ((1, 1, [1, 1, 0, 0]), (0, 1, [1, 0, 0, 0]), (1, 0, [0, 1, 0, 0]), (0, 0, [0, 0, 0, 0])):
        check(folder, want, "IsInf", values, version=20, detect_negative=below, detect_positive=above)


def test_a_function_of_integers_is_refused(folder):
    check_refused(folder, "'x0' is of type i32, and real numbers are expected", "Exp", i32([1]))


# ---- powers, remainders, bits ----

def test_powers_of_integers_are_exact(folder):
    check(folder, [3**39, (-2)**63, 1, -1, 1, 0, 0], "Pow", i64([3, -2, -1, -1, 1, 2, 0]), i64([39, 63, 100, 101, -5, -1, 5]),
          unit=0)
    check(folder, [125, 7**11, 1, 0], "Pow", i32([5, 7, -1, 3]), i32([3, 11, -2, -1]), unit=0)
    check(folder, [125, 1000, 3], "Pow", i32([5, 10, 9]), T([3.0, 3.0, 0.5]), unit=0)
    check(folder, [2**31 - 1], "Pow", i32([46341]), T([2.0, ]), unit=0)
    check(folder, [2.0**40, 0.125], "Pow", T([2.0, 2.0]), i64([40, -3]))


def test_remainders_have_the_sign_of_the_divisor_or_with_fmod_of_the_dividend(folder):
    a, b = [7, -7, 7, -7, -6], [3, 3, -3, -3, 3]
    for tensor in (i32, i64, i8):
        check(folder, [1, 2, -2, -1, 0], "Mod", tensor(a), tensor(b), unit=0)
        check(folder, [1, -1, 1, -1, 0], "Mod", tensor(a), tensor(b), fmod=1, unit=0)
    check(folder, [250 % 7], "Mod", u8([250]), u8([7]), unit=0)


def test_remainders_of_real_numbers_are_exact(folder):
    f32 = lambda value: struct.unpack("f", struct.pack("f", value))[0]
    a, b = [6.0, f32(1e10), f32(3e38), -5.5, 1.0, INF, 1.0, 1.0, -0.75, f32(2.0**-140)], \
           [f32(0.1), f32(0.3), f32(0.7), 2.0, 0.0, 2.0, INF, -INF, 0.5, f32(2.0**-149)]
    want = [math.fmod(x, y) if y != 0 and x != INF else NAN for x, y in zip(a, b)]
    check(folder, want, "Mod", T(a), T(b), fmod=1, unit=0)
    check(folder, [f32(6.0 % f32(0.1)), 0.5, -0.5, -INF, 3.0], "Mod", T([6.0, -5.5, 5.5, 1.0, 3.0]),
          T([b[0], 2.0, -2.0, -INF, INF]), version=28, unit=0)
    check_refused(folder, "a remainder of f64 cannot be told exactly", "Mod", f64([1.0]), f64([2.0]), fmod=1)


def test_shifts_by_more_than_the_type_leave_nothing(folder):
    check(folder, [16, 128, 0, 0], "BitShift", u8([1, 1, 1, 255]), u8([4, 7, 8, 200]), direction="LEFT", unit=0)
    check(folder, [1, 0, 0], "BitShift", u8([255, 255, 255]), u8([7, 8, 200]), direction="RIGHT", unit=0)
    for tensor, bits in ((i8, 8), (i32, 32), (i64, 64)):
        least = -2**(bits - 1)
        check(folder, [-2, -1, -1, -1, 1, 0, 0], "BitShift", tensor([-5, -5, least, -1, -least - 1, -least - 1, 7]),
              tensor([2, bits, bits - 1, 63, bits - 2, bits - 1, -1]), version=28, direction="RIGHT", unit=0)
        check(folder, [-20, least, 0, 0], "BitShift", tensor([-5, 1, 1, 3]), tensor([2, bits - 1, bits, -1]), version=28,
              direction="LEFT", unit=0)


def test_bits_of_all_types_and_signs(folder):
    cases = {u8: ([0, 255, 170, 7], [255, 255, 85, 12]), i8: ([-128, -1, 127, -86], [-1, 64, -128, 85]),
             i32: ([-2**31, -1, 2**31 - 1, 12345], [-1, 7, -2**31, -54321]),
             i64: ([-2**63, -1, 2**63 - 1, 5], [-1, 9, -2**63, -7])}
    for tensor, (a, b) in cases.items():
        check(folder, [x & y for x, y in zip(a, b)], "BitwiseAnd", tensor(a), tensor(b), version=18, unit=0)
        check(folder, [x | y for x, y in zip(a, b)], "BitwiseOr", tensor(a), tensor(b), version=18, unit=0)
        check(folder, [x ^ y for x, y in zip(a, b)], "BitwiseXor", tensor(a), tensor(b), version=18, unit=0)
        check(folder, [~x & 255 if tensor is u8 else ~x for x in a], "BitwiseNot", tensor(a), version=18, unit=0)


# ---- reductions ----

def test_a_logarithm_of_a_sum_of_exponentials_does_not_overflow(folder):
    check(folder, [1000 + math.log(2), -INF, INF, NAN], "ReduceLogSumExp",
          T([1000.0, 1000.0, -INF, -INF, INF, 1.0, NAN, 1.0], shape=[4, 2]), axes=[1], keepdims=0)


def test_norms_of_integers_are_integers(folder):
    check(folder, [5, 13], "ReduceL2", i32([3, -4, 5, 12], [2, 2]), axes=[1], unit=0)
    check(folder, [3, 7], "ReduceL1", i64([1, -2, -3, 4], [2, 2]), axes=[1], unit=0)
    check(folder, [1, 2], "ReduceLogSum", i32([1, 2, 4, 5], [2, 2]), axes=[1], unit=0)


def test_reductions_of_bools(folder):
    values = b1([1, 0, 0, 0], [2, 2])
    check(folder, [1, 0], "ReduceMax", values, i64([1]), version=20, unit=0)
    check(folder, [0, 0], "ReduceMin", values, i64([1]), version=20, unit=0)


def test_reductions_without_axes_that_are_no_operation_still_square(folder):
    check(folder, [1.0, 4.0, 9.0], "ReduceSumSquare", T([1.0, -2.0, 3.0]), version=18, noop_with_empty_axes=1)
    check(folder, [14.0], "ReduceSumSquare", T([1.0, -2.0, 3.0]), version=18)


def test_reductions_of_no_elements(folder):
    nothing = T([], shape=[2, 0])
    for op, want in (("Sum", 0.0), ("Prod", 1.0), ("Max", -INF), ("Min", INF), ("L2", 0.0), ("LogSum", -INF),
                     ("LogSumExp", -INF)):
        check(folder, [want, want], f"Reduce{op}", nothing, i64([1]), version=18, keepdims=0)
    check_refused(folder, "'x0' has no elements to be reduced", "ReduceMean", nothing, i64([1]), version=18)


# ---- along an axis ----

def test_the_first_or_last_of_the_largest_and_nan_above_all(folder):
    values = T([1.0, 3.0, 3.0, 0.0, NAN, 5.0, NAN, 2.0], shape=[2, 4])
    check(folder, [1, 0], "ArgMax", values, axis=1, keepdims=0, unit=0)
    check(folder, [2, 2], "ArgMax", values, axis=1, keepdims=0, select_last_index=1, unit=0)
    check(folder, [3, 0], "ArgMin", values, axis=1, keepdims=0, unit=0)


def test_the_largest_k_with_ties_and_nan(folder):
    values = [2.0, NAN, 5.0, 2.0, -INF, 5.0, NAN]
    got = made(folder, "TopK", T(values), i64([7]), outputs=2)
    assert got[1] == [1, 6, 2, 5, 0, 3, 4], got
    got = made(folder, "TopK", T(values), i64([3]), outputs=2, largest=0)
    assert got == [[-INF, 2.0, 2.0], [4, 0, 3]], got


def test_sums_and_products_so_far(folder):
    rows = i64([1, 2, 3, 4, 5, 6], [2, 3])
    for exclusive, reverse, want in ((0, 0, [1, 3, 6, 4, 9, 15]), (1, 0, [0, 1, 3, 0, 4, 9]), (0, 1, [6, 5, 3, 15, 11, 6]),
                                     (1, 1, [5, 3, 0, 11, 6, 0])):
        check(folder, want, "CumSum", rows, i32(1), exclusive=exclusive, reverse=reverse, unit=0)
    check(folder, [1, 1, 2, 1, 4, 20], "CumProd", rows, i32(1), version=26, exclusive=1, unit=0)


def test_hardmax_before_version_13_takes_all_axes_from_one_on(folder):
    values = T([1.0, 9.0, 9.0, 2.0, 7.0, 7.0, 8.0, 1.0], shape=[2, 2, 2])
    check(folder, [0, 1, 0, 0, 0, 0, 1, 0], "Hardmax", values, version=12, axis=1)
    check(folder, [0, 1, 1, 0, 1, 0, 1, 0], "Hardmax", values, axis=2)


# ---- types ----

def compiled_types(folder, op, *inputs, outputs=1, version=17, domain="", **attributes):
    """Of the outputs of a kernel whose inputs are no constants, but for TopK's number."""
    constants = [tensor.proto(f"x{i}") for i, tensor in enumerate(inputs) if op == "TopK" and i == 1]
    given = [onnx.value(f"x{i}", tensor.shape, tensor.kind) for i, tensor in enumerate(inputs) if op != "TopK" or i == 0]
    node = onnx.node(op, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    versions = onnx.field(8, onnx.field(1, domain) + onnx.field(2, version)) if domain else b""
    model = onnx.model([node], given, [onnx.value(f"y{i}", [1]) for i in range(outputs)], constants,
                       version=17 if domain else version, more=versions)
    (folder / "m.onnx").write_bytes(model)
    subprocess.run([ROLLERC, "m.onnx", "--device", "a100", "-o", "k.cu", "--verify"], cwd=folder, check=True, timeout=120,
                   capture_output=True)
    return [argument["dtype"] for argument in common.read_metadata(folder / "k.cu")["args"] if argument["role"] == "output"]


def test_results_have_the_type_of_the_operator(folder):
    """Integers alone would be i32, and parts in f64 make f64."""
    ml = {"domain": "ai.onnx.ml", "version": 1}
    for want, op, inputs, more in ((["i64"], "ArgMax", [i64([4, 9, 9])], {"axis": 0}),
                                   (["f64"], "Hardmax", [f64([1.0, 2.0])], {}),
                                   (["i64", "i64"], "TopK", [i64([4, 9, 8]), i64([3])], {"outputs": 2}),
                                   (["f32"], "Mod", [T([5.0, 4.0]), T([3.0, 3.0])], {"fmod": 1}),
                                   (["f32"], "Binarizer", [T([5.0, -4.0])], ml), (["f64"], "Binarizer", [f64([5.0, -4.0])], ml),
                                   (["i64"], "BitwiseAnd", [i64([5, -4]), i64([3, 3])], {"version": 18}),
                                   (["i64"], "BitShift", [i64([5, -4]), i64([3, 3])], {"version": 28, "direction": "LEFT"}),
                                   (["f32"], "LayerNormalization", [T([5.0, -4.0]), T([1.0, 1.0])], {"stash_type": 11})):
        assert compiled_types(folder, op, *inputs, **more) == want, op


# ---- equations ----

def test_equations(folder):
    a, b = i64([1, 2, 3, 4], [2, 2]), i64([5, 6, 7, 8], [2, 2])
    for equation, inputs, want in (("ij,jk", (a, b), [19, 22, 43, 50]), ("ij,jk->ki", (a, b), [19, 43, 22, 50]),
                                   ("ii", (a,), [5]),
                                   ("ii->i", (a,), [1, 4]), ("ba", (a,), [1, 3, 2, 4]), ("...i->...", (a,), [3, 7]),
                                   ("...i,...i", (a, b), [17, 53]), (" Ab , bA -> ", (a, b), [1*5 + 2*7 + 3*6 + 4*8]),
                                   ("ij,->ij", (a, i64(3)), [3, 6, 9, 12]), ("ij,jk,kl->il", (a, b, a), [85, 126, 193, 286])):
        check(folder, want, "Einsum", *inputs, equation=equation, unit=0)
    for equation, inputs in (("ij->ijk", (a,)), ("ij->ii", (a,)), ("ijk->i", (a,)), ("ij", (a, b)), ("i.j", (a,)),
                             ("ij,jk,kl", (a, b))):
        check_refused(folder, "Einsum that makes 'y0': ", "Einsum", *inputs, equation=equation)


# ---- integers that stand for real numbers ----

def test_quantised_values_saturate_and_halves_go_to_the_even_one(folder):
    values = T([0.5, 1.5, -0.5, 300.0, -300.0, 2.5])
    check(folder, [128, 130, 128, 255, 0, 130], "QuantizeLinear", values, T(1.0), u8(128), version=13, unit=0)
    check(folder, [0, 2, 0, 127, -128, 2], "QuantizeLinear", values, T(1.0), i8(0), version=13, unit=0)
    stored, scale, zero = u8([127, 1, 128, 6], [2, 2]), T([2.0, 0.5]), u8([128, 0])
    check(folder, [-2.0, -254.0, 64.0, 3.0], "DequantizeLinear", stored, scale, zero, version=13, axis=0)
    check(folder, [-2.0, 0.5, 0.0, 3.0], "DequantizeLinear", stored, scale, zero, version=13, axis=1)


def test_quantised_products(folder):
    a, b = u8([11, 7, 3, 10, 6, 2], [2, 3]), u8([1, 4, 2, 5, 3, 6], [3, 2])
    want = [sum((x - 12) * y for x, y in zip(row, column)) for row in ((11, 7, 3), (10, 6, 2))
            for column in ((1, 2, 3), (4, 5, 6))]
    check(folder, want, "MatMulInteger", a, b, u8([12]), u8([0]), unit=0)
    rows = [sum((x - z) * y for x, y in zip(row, column)) for row, z in (((11, 7, 3), 12), ((10, 6, 2), 1))
            for column in ((1, 2, 3), (4, 5, 6))]
    check(folder, rows, "MatMulInteger", a, b, u8([12, 1]), u8([0]), unit=0)


# ---- losses and normalisations ----

def test_targets_that_are_ignored_may_be_no_class(folder):
    logs = T([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], shape=[2, 3])
    check(folder, [1.0], "NegativeLogLikelihoodLoss", logs, i64([0, -7]), ignore_index=-7)
    check(folder, [2.0, 0.0], "NegativeLogLikelihoodLoss", logs, i64([1, 99]), reduction="none", ignore_index=99)
    check(folder, [(2 * 1.0 + 6 * 0.5) / 1.5], "NegativeLogLikelihoodLoss", logs, i64([1, 2]), T([9.0, 1.0, 0.5]))


def test_a_norm_of_zero_gives_zero(folder):
    check(folder, [0.0, 0.0, 0.6, 0.8], "LpNormalization", T([0.0, 0.0, 3.0, 4.0], shape=[2, 2]))


def test_a_batch_in_training_updates_the_running_statistics(folder):
    x = T([1.0, 3.0, 5.0, 9.0], shape=[2, 1, 2])
    got = made(folder, "BatchNormalization", x, T([1.0]), T([0.0]), T([10.0]), T([1.0]), outputs=3, training_mode=1,
               momentum=0.75)
    assert got[1] == [8.625] and got[2] == [0.75 + 8.75 / 4], got


# ---- what cannot be said ----

def test_what_the_language_cannot_say_has_its_reason(folder):
    for op, reason in (("NonZero", "a shape that depends on data"), ("Bernoulli", "numbers drawn at random"),
                       ("StringConcat", "strings")):
        check_refused(folder, f"{op} that makes 'y0': {reason}", op, T([1.0, 0.0]), version=20)


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "operators", options.filter)


if __name__ == "__main__":
    sys.exit(main())
