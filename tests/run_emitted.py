#!/usr/bin/env python3
"""The emitted file is for a person: short, with the expression's names, and a program of its own when asked to be.

What a compiler is needed for is left out, loudly, where there is none.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a kernel's file, up to its main().
LINES = {"softmax": 335, "permute_0213": 255, "permute_021": 260}
# One of each: bits, bytes, whole numbers, halves, guards, several outputs, a reduction of all.
PROGRAMS = ["mask_compare", "quantise_i8", "argmax", "softmax", "conv2d_3x3", "bn_relu_training", "reduce_all"]
# Products and depthwise convolutions: (template, device, example, its type instead of f32, sizes).
PRODUCTS = [("gemm", "a100", "matmul_bias_gelu", None, {}), ("bulk", "h200", "matmul_bias_gelu", None, {}),
            ("wgmma", "h200", "conv2d_nhwc", None, {}), ("skinny", "h200", "matmul", "f16", {"M": 1}),
            ("depthwise", "h200", "depthwise_31x31", None, {}), ("toeplitz", "h200", "depthwise_31x31", "f16", {}),
            ("pairs", "h200", "depthwise_7x7_nhwc", None, {}),
            ("strip", "h200", "depthwise_3x3", None, {}),
            ("filter_direct", "h200", "depthwise_31x31_filter", None, {}),
            ("filter_strip", "h200", "depthwise_3x3_s2_filter", None, {}),
            ("filter_gemm", "h200", "depthwise_31x31_filter", "f16", {})]
NVCC = shutil.which("nvcc")


def emitted(rollerc, name, device, *options):
    command = [rollerc, common.example_path(name), "--device", device, "-q", "-o", "-", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compile_text(text, folder, *options, name="kernel.cu"):
    """What nvcc says, and its exit code."""
    source = pathlib.Path(folder) / name
    source.write_text(text)
    done = subprocess.run([NVCC, *options, source, "-o", source.with_suffix(".out")], capture_output=True, text=True)
    return done.returncode, done.stderr


def test_it_is_short(rollerc, _):
    for name, most in LINES.items():
        lines = emitted(rollerc, name, "h200").split("#ifdef ROLLERC_MAIN")[0].count("\n")
        assert lines <= most, f"{name} has {lines} lines, {most} are allowed"


def test_what_is_not_called_is_not_there(rollerc, _):
    softmax = emitted(rollerc, "softmax", "h200")
    for word in ("double ", "bf16", "hip", "prefetch", "op_log", "op_tanh"):
        assert word not in softmax.split("#ifdef ROLLERC_MAIN")[0], word
    assert "cluster_wait" in emitted(rollerc, "bn_relu_training", "h200")
    assert "hipLaunchKernel" in emitted(rollerc, "softmax", "mi50")
    for device in common.CUDA_DEVICES:
        assert "__HIP" not in emitted(rollerc, "softmax", device)


def test_parameters_come_first(rollerc, _):
    text = emitted(rollerc, "softmax", "h200")
    assert text.index("constexpr Index ROWS = 49152;") < text.index("namespace softmax_prelude")
    assert text.index("//   global           49152") < text.index("constexpr Index ROWS") < 3000


def test_names_are_the_expressions(rollerc, folder):
    softmax = emitted(rollerc, "softmax", "h200")
    assert "const float C = total;" in emitted(rollerc, "matmul", "h200")
    for piece in ("store_vector<VECTOR>(t.y, ", "softmax_k0(const f16 *__restrict__ x, f16 *__restrict__ y)",
                  "softmax_launch(const void *x, void *y, void *workspace, void *stream)"):
        assert piece in softmax, piece
    # Names of the language, of CUDA, of templates and of launchers, and some that are anyone's.
    names = ["float", "threadIdx", "Tensors", "t", "row", "args", "workspace", "stream", "DEVICE", "Sum", "e", "k", "main"]
    program = "".join(f"input {name}[64, 32] : f16 " for name in names)
    program += "y[i, j] = " + " + ".join(f"{name}[i, j]" for name in names) + "  z[i] = sum[j](y[i, j])  output y : f16 output z"
    source = pathlib.Path(folder) / "names.te"
    source.write_text(program)
    subprocess.run([rollerc, source, "--device", "a100", "--verify", "-q", "-o", folder + "/names.cu"], check=True)
    if NVCC:
        code, said = compile_text((pathlib.Path(folder) / "names.cu").read_text(), folder, "-arch=sm_80", "-DROLLERC_MAIN")
        assert code == 0, said


def test_the_shape_is_the_users(rollerc, _):
    assert "const bits128 *x;   // [256, 128, 12, 64]" in emitted(rollerc, "permute_0213", "h200")


def test_attributes_are_set_once(rollerc, _):
    text = emitted(rollerc, "bn_relu_training", "h200")
    allow = re.search(r"static cudaError_t bn_relu_training_allow\(\)\n\{.*?\n\}", text, re.DOTALL)[0]
    assert allow.count("cudaFuncSetAttribute") == text.count("cudaFuncSetAttribute") > 0
    assert allow.index("thread_local") < allow.index("return cudaSuccess;") < allow.index("cudaFuncSetAttribute")


PACKED = "input a[1000, 777] : f16 input b[777, 1313] : f16 c[i, j] = sum[k](a[i, k] * b[k, j]) output c"


def kernels_of_a_packed_product(rollerc, device, *options):
    """What the kernels of two packs and the product that reads them do before anything else, and the whole file."""
    text = subprocess.run([rollerc, "-", "--device", device, "-q", "-o", "-", *options], input=PACKED, capture_output=True, text=True,
                          check=True).stdout
    found = re.findall(r"const Tensors t = [^;]*;((?:\s+(?:let_next_begin\(\)|wait_for_earlier\(\)|const WaitsAtItsEnd waits_at_its_end);(?:   //.*)?)*)",
                       text)
    return [re.findall(r"let_next_begin|wait_for_earlier|WaitsAtItsEnd", begin) for begin in found], text


def test_no_template_uses_the_name_of_what_is_put_into_it(rollerc, _):
    """A lambda `end` of gemm.cu stood in the way of an object of that name."""
    for template in sorted(pathlib.Path(common.TESTS, "../templates").glob("*.cu")):
        assert not re.search(r"\bwaits_at_its_end\b", template.read_text()), template


def test_launches_begin_early(rollerc, _):
    """The second pack has nothing to do with the first one, so it waits at its end."""
    wanted = [["wait_for_earlier", "let_next_begin"], ["WaitsAtItsEnd", "let_next_begin"],
              ["wait_for_earlier", "let_next_begin"]]
    for options in ([], ["--line-directives"]):
        begins, text = kernels_of_a_packed_product(rollerc, "h200", *options)
        assert begins == wanted, begins
        assert text.count("= begins_early()") == text.split("\n")[0].count('"early":true') == 3
    begins, text = kernels_of_a_packed_product(rollerc, "a100")
    assert len(begins) > 1 and not any(begins) and "early" not in text and "griddepcontrol" not in text
    softmax = emitted(rollerc, "softmax", "h200")
    assert "griddepcontrol.wait" in softmax and "griddepcontrol.launch" not in softmax, "several blocks share an SM"


def test_too_old_an_architecture_is_told(rollerc, folder):
    text = emitted(rollerc, "bn_relu_training", "h200")
    assert '#error "bn_relu_training was made for the device h200 and needs sm_90 or later: compile it with -arch=sm_90a"' in text
    assert "#error" not in emitted(rollerc, "softmax", "v100")
    if NVCC:
        code, said = compile_text(text, folder, "-arch=sm_80", "-c")
        assert code != 0 and "needs sm_90 or later" in said, said


def test_the_header_serves_c_and_cpp(rollerc, folder):
    for name in ("mask_compare", "bn_relu_training"):
        subprocess.run([rollerc, common.example_path(name), "--device", "a100", "-q", "--emit", f"header={folder}/{name}.h"],
                       check=True)
        text = pathlib.Path(folder, f"{name}.h").read_text()
        for compiler, language in (("cc", "c"), ("c++", "c++")):
            subprocess.run([compiler, "-std=" + {"c": "c11", "c++": "c++11"}[language], "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                            "-x", language, "-"], input=f'#include "{folder}/{name}.h"\n#include "{folder}/{name}.h"\n', text=True, check=True)
    assert "static_assert(bn_relu_training_x_bytes == 25690112u, \"x[16, 32, 112, 112] : f32\");" in text
    assert "bn_relu_training_launch(const void *x, const void *gamma, const void *beta, void *y, void *mean, void *inv, " in text


def test_it_is_a_program_of_its_own(rollerc, folder):
    if not NVCC:
        print("SKIPPED: nvcc is not here, no main() was compiled")
        return
    for name in PROGRAMS:
        text = emitted(rollerc, name, "a100")
        code, said = compile_text(text, folder, "-arch=sm_80", "-DROLLERC_MAIN", "-Werror", "all-warnings", "-Xcompiler",
                                  "-Wall,-Wextra,-Werror")
        assert code == 0, f"{name}: {said}"


def test_products_are_programs_of_their_own(rollerc, folder):
    """Up to PTX: ptxas takes several times as long and has seen their like."""
    if not NVCC:
        print("SKIPPED: nvcc is not here, no main() of a product was compiled")
        return
    source = pathlib.Path(folder) / "product.te"
    for template, device, example, dtype, sizes in PRODUCTS:
        source.write_text(pathlib.Path(common.example_path(example)).read_text().replace(": f32", f": {dtype or 'f32'}"))
        defines = [word for name, size in sizes.items() for word in ("-D", f"{name}={size}")]
        text = subprocess.run([rollerc, source, "--device", device, "-q", "-o", "-", *defines], capture_output=True, text=True,
                              check=True).stdout
        assert f"templates/{template}.cu" in text, f"another family comes first for {example} now"
        _, main = text.split("#ifdef ROLLERC_MAIN")
        assert main.count("\n") < 160, f"the main() of {example} has {main.count(chr(10))} lines"
        arch = {"a100": "sm_80", "h200": "sm_90a"}[device]
        code, said = compile_text(text, folder, f"-arch={arch}", "-DROLLERC_MAIN", "-ptx", "-Werror", "all-warnings")
        assert code == 0, f"{example}, {template}: {said}"


def test_products_on_tensor_cores_go_on_meanwhile(rollerc, folder):
    """ptxas says so (C75xx) where it makes each wait for the one before. It has nothing else to say, of PTX beside it either."""
    if not NVCC:
        print("SKIPPED: nvcc is not here, no product for sm_90a was compiled")
        return
    text = emitted(rollerc, "matmul_bias_gelu", "h200")
    assert "templates/bulk.cu" in text, "another family comes first now: take a candidate of bulk"
    code, said = compile_text(text, folder, "-arch=sm_90a", "-c", "-Xptxas", "-v")
    assert code == 0 and "C75" not in said and "serialized" not in said and "warning" not in said, said
    assert " 0 bytes spill stores" in said, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("only", nargs="*", help="tests whose names hold one of these")
    args = parser.parse_args()
    rollerc = os.path.abspath(args.rollerc)
    failed = passed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (args.only and not any(part in name for part in args.only)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(rollerc, folder)
                passed += 1
            except (AssertionError, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"FAIL {name}: {error}")
    print(f"emitted: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
