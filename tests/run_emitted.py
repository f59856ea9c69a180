#!/usr/bin/env python3
"""The emitted file is for a person: short, with the expression's names, and a program of its own when asked to be.

What a compiler is needed for is left out, loudly, where there is none.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a kernel's file.
LINES = {"softmax": 270, "permute_0213": 200, "permute_021": 222, "attention": 400}
CAUSAL = 450   # of causal attention:
CAUSAL_PROGRAM = """s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * 0.125
t[b, h, i, j] = select(j <= i, s[b, h, i, j], -inf)
m[b, h, i] = max[j](t[b, h, i, j])
e[b, h, i, j] = exp(t[b, h, i, j] - m[b, h, i])
z[b, h, i] = sum[j](e[b, h, i, j])
p[b, h, i, j] : f16 = e[b, h, i, j] / z[b, h, i]
y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h, j, d])
output y : f16"""
# One of each: bits, bytes, whole numbers, halves, guards, several outputs, a reduction of all.
PROGRAMS = ["mask_compare", "quantise_i8", "argmax", "softmax", "conv2d_3x3", "bn_relu_training", "reduce_all"]
# Products and depthwise convolutions: (template, device, example, its type instead of f32, sizes).
PRODUCTS = [("gemm", "a100", "matmul_bias_gelu", None, {}), ("bulk", "h200", "matmul_bias_gelu", None, {}),
            ("bulk", "h200", "conv2d_nhwc", None, {}), ("bulk", "h200", "part_of_the_channels", None, {}),
            ("skinny", "h200", "matmul", "f16", {"M": 1, "N": 1000, "K": 4096}),
            ("depthwise", "h200", "depthwise_31x31", None, {}), ("toeplitz", "h200", "depthwise_31x31", "f16", {}),
            ("pairs", "h200", "depthwise_7x7_nhwc", None, {}),
            ("strip", "h200", "depthwise_3x3", None, {}),
            ("filter_direct", "h200", "depthwise_31x31_filter", None, {}),
            ("filter_strip", "h200", "depthwise_3x3_s2_filter", None, {}),
            ("filter_gemm", "h200", "depthwise_31x31_filter", "f16", {})]
NVCC = shutil.which("nvcc")
CXX = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
INTERP = ROOT / "src/hal/interp"
BEGIN, END = "// <rollerc: intrinsics>\n", "// </rollerc>\n"   # around what the interpreter replaces


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
        lines = emitted(rollerc, name, "h200").count("\n")
        assert lines <= most, f"{name} has {lines} lines, {most} are allowed"


def test_causal_attention_is_short(rollerc, folder):
    for template, device, shape in (("attention_bulk", "h200", "[4, 16, 2048, 64]"), ("attention", "h200", "[16, 16, 197, 64]"),
                                    ("attention_bulk", "h200", "[1, 8, 512, 64]"), ("attention_bulk", "h200", "[1, 8, 512, 192]"),
                                    ("attention_bulk", "h200", "[1, 4, 512, 128]"), ("attention_bulk", "h200", "[1, 2, 1024, 256]"),
                                    ("attention_bulk", "h200", "[1, 1, 512, 256]"), ("attention_bulk", "h200", "[1, 1, 4096, 128]"),
                                    ("attention_bulk", "h200", "[1, 2, 3000, 16]"), ("attention", "h200", "[1, 1, 384, 192]"),
                                    ("attention", "h200", "[2, 1, 1, 64]"), ("attention", "h200", "[1, 1, 256, 64]"),
                                    ("attention", "a100", "[4, 16, 2048, 128]"), ("attention", "a100", "[20, 1, 4, 224]")):
        program = pathlib.Path(folder) / "causal.te"
        program.write_text("".join(f"input {name}{shape} : f16\n" for name in "qkv") + CAUSAL_PROGRAM)
        text = emitted(rollerc, str(program.with_suffix("")), device)
        assert f"templates/{template}.cu" in text and text.count("__global__") == 1, f"{shape} on {device}: another kernel, or more of them"
        assert text.count("\n") <= CAUSAL, f"{shape} on {device}: {text.count(chr(10))} lines, {CAUSAL} are allowed"


def test_what_is_not_called_is_not_there(rollerc, _):
    softmax = emitted(rollerc, "softmax", "h200")
    for word in ("double ", "bf16", "hip", "prefetch", "op_log", "op_tanh"):
        assert word not in softmax, word
    assert "main()" not in softmax and "main()" not in emitted(rollerc, "softmax", "mi50", "--with-test")
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
    assert "const float C = totals[e];" in emitted(rollerc, "matmul", "h200")
    for piece in ("store_vector<VECTOR>(t.y, ", "softmax_k0(const f16 *__restrict__ x, f16 *__restrict__ y)",
                  "softmax_launch(const void *x, void *y, void *workspace, void *stream)"):
        assert piece in softmax, piece
    # Names of the language, of CUDA, of templates and of launchers, and some that are anyone's.
    names = ["float", "threadIdx", "Tensors", "t", "row", "args", "workspace", "stream", "DEVICE", "Sum", "e", "k", "main"]
    program = "".join(f"input {name}[64, 32] : f16 " for name in names)
    program += "y[i, j] = " + " + ".join(f"{name}[i, j]" for name in names) + "  z[i] = sum[j](y[i, j])  output y : f16 output z"
    source = pathlib.Path(folder) / "names.te"
    source.write_text(program)
    subprocess.run([rollerc, source, "--device", "a100", "--verify", "--with-test", "-q", "-o", folder + "/names.cu"], check=True)
    if NVCC:
        code, said = compile_text((pathlib.Path(folder) / "names.cu").read_text(), folder, "-arch=sm_80", "-DROLLERC_MAIN")
        assert code == 0, said


def test_the_shape_is_the_users(rollerc, _):
    assert "const bits128 *x;   // [256, 128, 12, 64]" in emitted(rollerc, "permute_0213", "h200")


def test_attributes_are_set_before_a_launch(rollerc, _):
    """Of each kernel that asks for more shared memory than a block has without asking, or for large clusters."""
    for name in ("bn_relu_training", "matmul_bias_gelu"):
        text = emitted(rollerc, name, "h200")
        asked = re.findall(r"cudaFuncSetAttribute\((\w+::\w+), cudaFuncAttribute\w+, \d+\);", text)
        assert asked and all(re.search(rf"cudaFuncSetAttribute\({kernel}, .*launch\w*\([^;]*{kernel}, ", text, re.DOTALL) for kernel in asked), name


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
        assert len(re.findall(r"make_launch_with\(.*, true\);", text)) == text.split("\n")[0].count('"early":true') == 3
    begins, text = kernels_of_a_packed_product(rollerc, "a100")
    assert len(begins) > 1 and not any(begins) and "launch_early" not in text and "launch_with" not in text and '"early"' not in text and "griddepcontrol" not in text
    softmax = emitted(rollerc, "softmax", "h200")
    assert "griddepcontrol.wait" in softmax and "griddepcontrol.launch" not in softmax, "several blocks share an SM"


LAYERS = ("input x[256, 512] : f16 input w[512, 512] : f16 input v[512, 512] : f16 h[i, j] = cast(max(sum[k](x[i, k] * w[j, k]), 0), f16) "
          "y[i, j] = cast(sum[k](h[i, k] * v[j, k]), f16) output y")


def compile_layers(rollerc, folder, *options):
    return subprocess.run([rollerc, "-", "--device", "h200", "-o", folder / "layers.cu", *options], input=LAYERS, capture_output=True, text=True)


def candidate_whose_second_launch_is(rollerc, folder, family):
    compile_layers(rollerc, folder, "-q", "--json", folder / "layers.json")
    ranked = json.loads((folder / "layers.json").read_text())["candidates"]
    return next(rank for rank, candidate in enumerate(ranked, 1) if [launch["family"] for launch in candidate["launches"]][1:] == [family])


def test_what_no_launch_writes_is_asked_for_before_the_wait(rollerc, folder):
    """Of the second product the factor v; the first one waits before it reads anything. Where h is asked for, too, --verify says so."""
    folder = pathlib.Path(folder)
    for family, ask in ("bulk", "        if (EARLY_A)"), ("gemm", "    if (EARLY_A)"):
        candidate = f"--candidate={candidate_whose_second_launch_is(rollerc, folder, family)}"
        assert compile_layers(rollerc, folder, "-q", candidate).returncode == 0
        text = (folder / "layers.cu").read_text()
        asked = [re.findall(r"copy_early\(maps|(?<=Fetch<)Operand[AB](?=, Tile.>\(t\)\.begin)", kernel.split("wait_for_earlier();")[0])
                 for kernel in text.split("__launch_bounds__")[1:]]
        assert asked == [[], ["copy_early(maps" if family == "bulk" else "OperandB"]], asked
        templates = folder / f"templates_{family}"
        shutil.copytree(ROOT / "templates", templates)
        body = (templates / f"{family}.cu").read_text()
        assert body.count(ask + "\n") == 1
        (templates / f"{family}.cu").write_text(body.replace(ask, ask.replace("_A", "_B")))
        done = compile_layers(rollerc, folder, candidate, "--templates", templates, "--verify")
        assert done.returncode == 5 and "touches what an earlier launch writes, without waiting" in done.stderr, done.stderr


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
        text = emitted(rollerc, name, "a100", "--with-test")
        code, said = compile_text(text, folder, "-arch=sm_80", "-DROLLERC_MAIN", "-Werror", "all-warnings", "-Xcompiler",
                                  "-Wall,-Wextra,-Werror")
        assert code == 0, f"{name}: {said}"


def test_checks_know_what_is_rounded_on_the_way(rollerc, _):
    """Of f32 made of f16 that a kernel may round at another scale; inputs are as they are."""
    program = "input x[64, 32] : f16 p[i, j]{} = exp(x[i, j]) y[i] = sum[j](p[i, j] * p[i, j]) output y : f32"
    for rounded, tolerance in ((" : f16", "0.003"), ("", "0.0001")):
        text = subprocess.run([rollerc, "-", "--device", "h200", "-q", "-o", "-", "--with-test"], input=program.replace("{}", rounded),
                              capture_output=True, text=True, check=True).stdout
        assert re.search(r'check\("y", \w+, 64, ([^,]*),', text)[1] == tolerance, rounded


def test_products_are_programs_of_their_own(rollerc, folder):
    """Up to PTX: ptxas takes several times as long and has seen their like."""
    if not NVCC:
        print("SKIPPED: nvcc is not here, no main() of a product was compiled")
        return
    source = pathlib.Path(folder) / "product.te"
    together = {}   # by architecture, since most of the time is that of the headers
    for k, (template, device, example, dtype, sizes) in enumerate(PRODUCTS):
        source.write_text(common.example_text(example).replace(": f32", f": {dtype or 'f32'}"))
        defines = [word for name, size in sizes.items() for word in ("-D", f"{name}={size}")]
        text = subprocess.run([rollerc, source, "--device", device, "-q", "-o", "-", "--with-test", "--name", f"n{k}", *defines],
                              capture_output=True, text=True, check=True).stdout
        assert f"templates/{template}.cu" in text, f"another family comes first for {example} now"
        _, main = text.split("#ifdef ROLLERC_MAIN")
        assert main.count("\n") < 160, f"the main() of {example} has {main.count(chr(10))} lines"
        arch = {"a100": "sm_80", "h200": "sm_90a"}[device]
        together.setdefault(arch, []).append(f"#define main main_{k}\n#define plain plain_{k}\n{text}\n#undef main\n#undef plain\n")
    for arch, texts in together.items():
        code, said = compile_text("".join(texts), folder, f"-arch={arch}", "-DROLLERC_MAIN", "-ptx", "-Werror", "all-warnings")
        assert code == 0, said


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


def test_the_header_shows_the_users_lines(rollerc, folder):
    """As they were written; comments, which may hold anything, are not of the expression."""
    source = pathlib.Path(folder) / "lines.te"
    source.write_bytes("# ends here: */ \\\nparam N = (2+ 2)   # ends with \\\n# ??/\n# \u202eüñ\ninput  x[N] : f32\r\n\ty[i]   = ((x[i]*2))\n  output y"
                       .encode())
    def opening(*options):
        text = subprocess.run([rollerc, source, "--device", "a100", "-q", "-o", "-", *options], capture_output=True, text=True,
                              check=True).stdout.split("namespace")[0]
        assert text.isascii() and "\\\n" not in text, text
        return text.split("computes:\n")[1].split("\n\n")[0] + "\n"
    assert opening() == "//   param N = (2+ 2)\n//   input  x[N] : f32\n//   y[i]   = ((x[i]*2))\n//   output y\n"
    assert opening("-D", "N=9").startswith("//   param N = 9\n//   input  x[N] : f32\n")


def test_a_long_expression_is_cut_in_the_header(rollerc, folder):
    source = pathlib.Path(folder) / "long.te"
    def shown(program):
        source.write_text("input x[8] : f32 " + program)
        text = subprocess.run([rollerc, source, "--device", "a100", "-q", "-o", "-"], capture_output=True, text=True, check=True).stdout
        lines = text.split("computes:\n")[1].split("\n\n")[0].split("\n")
        assert all(line.startswith("//   ") and len(line) < 110 for line in lines), lines
        return lines
    chain = " ".join(f"y{k}[i] = {f'y{k - 1}' if k else 'x'}[i] + {k}" for k in range(300))
    lines = shown(chain + " output y299")
    assert len(lines) == 61 and lines[-1] == "//   … cut here: 60 of 302 statements are shown", lines[-2:]
    one = "y[i] = " + " + ".join(f"x[i]*{k}" for k in range(400)) + " output y"
    lines = shown(one)
    assert "".join(line[5:].strip() + " " for line in lines).split() == ("input x[8] : f32 " + one).split(), "it is broken, not cut"
    lines = shown("y[i] = " + " + ".join(f"x[i]*{k}.0123456789012345" for k in range(400)) + " output y")
    assert len(lines) == 61 and lines[-1] == "//   … cut here: 1 of 3 statements are shown", lines[-2:]


def blocks(text):
    """Lines of the file, and whether the interpreter has its own for them."""
    own = False
    for line in text.splitlines(True):
        own = own and line != END
        yield line, own
        own = own or line == BEGIN


def proven_text(rollerc, folder, *options):
    """The emitted file, and what of it the interpreter compiles: a compiler that keeps what it is given tells."""
    kept = pathlib.Path(folder) / "kept"
    kept.mkdir(exist_ok=True)
    compiler = pathlib.Path(folder) / "c++"
    compiler.write_text(f'#!/bin/sh\nfor word; do case $word in */program.cpp) cp "${{word%/*}}"/*.cu {kept}/kept.cu;; esac; done\n'
                        f'exec {CXX} "$@"\n')
    compiler.chmod(0o755)
    text = subprocess.run([rollerc, *options, "-q", "-o", "-", "--verify"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}).stdout
    return text, (kept / "kept.cu").read_text()


def test_what_is_proven_is_what_is_emitted(rollerc, folder):
    """Byte for byte, in the same lines, but for the intrinsics, in whose place nothing is."""
    for name, device, options in (("softmax", "h200", ["-D", "R=8", "-D", "N=72"]), ("matmul", "h200", ["-D", "M=64", "-D", "N=64"]),
                                  ("matmul", "h200", ["-D", "M=64", "-D", "N=64", "--line-directives"]),
                                  ("softmax", "mi50", ["-D", "R=8", "-D", "N=72"]), ("bn_relu_training", "a100", ["-D", "N=2"])):
        emitted_text, proven = proven_text(rollerc, folder, common.example_path(name), "--device", device, *options)
        assert "ROLLERC_INTERP" not in emitted_text, name
        wanted = ["\n" if own else line for line, own in blocks(emitted_text)]
        assert wanted == proven.splitlines(True), f"{name} for {device}"
        assert 5 < sum(own for _, own in blocks(emitted_text)) < len(wanted) / 3, name


def test_cited_templates_compile(rollerc, folder):
    """Branches that constants settle are left out there, too, with the names that they alone have; lines are those that are cited."""
    for name, options in (("depthwise_3x3", "-D N=2 -D C=8 -D H=16 -D W=20"), ("matmul_i8", "-D M=48 -D N=64 -D K=32"), ("covariance", "-D S=64 -D F=32")):
        path = pathlib.Path(folder) / f"{name}.cu"
        subprocess.run([rollerc, common.example_path(name), "--device", "a100", "-o", path, "-q", "--line-directives", "--verify", *options.split()], check=True)
        lines = path.read_text().split("\n")
        for i, line in enumerate(lines):
            cited = re.match(r'\s*#line (\d+) "(templates/\w+\.cu)"', line)
            if cited and lines[i + 1].strip():
                there = (ROOT / cited[2]).read_text().split("\n")[int(cited[1]) - 1]
                assert re.findall(r"\w+", there)[:1] == [word for word in re.findall(r"\w+", lines[i + 1]) if word != "static"][:1], (name, line, lines[i + 1], there)


def test_templates_can_be_members(rollerc, _):
    """Several kernels of a template share its functions as members of a class, where nvcc takes no specialisation of a variable."""
    for path in sorted(pathlib.Path(common.TESTS).parent.glob("templates/*.cu")):
        found = re.search(r"^template <[^;{]*> (static )?constexpr \w+ \w+<.*", path.read_text(), re.MULTILINE)
        assert not found, f"{path.name}: {found[0]}"


def test_only_intrinsics_ask_who_compiles_them(rollerc, _):
    """All other parts of the prelude, and all templates, are what the interpreter proves: no instruction, and no condition but on
    what an emitted file is made for, and has settled, and on whether there is a host."""
    templates = ROOT / "templates"
    for path in [*templates.glob("*.cu"), *templates.glob("prelude/*.cuh")]:
        text = path.read_text()
        assert not re.search(r"\basm\b", text), path
        for condition in re.findall(r"^ *#(?:if|ifdef|ifndef|elif) (.*)", text, re.MULTILINE):
            known = re.sub(r"defined|__CUDA_ARCH__|__HIP__|__CUDACC_RTC__|__HIPCC_RTC__|ROLLERC_FAST_MATH|[0-9()&|!>=< ]", "", condition)
            assert known == "", f"{path}: {condition}"
        text = re.sub("^// ----.*", "", text, flags=re.MULTILINE)   # headings of the prelude stay there
        assert "tuning-log" not in text and "src/" not in text, f"{path} cites what who reads a kernel does not have"
    for path in templates.glob("prelude/intrinsics/*.cuh"):
        assert not re.search("ROLLERC_INTERP|tuning-log|src/", path.read_text()), path


# Of each template, some twice, with other types, mathematics and devices: (example, device, options).
TOGETHER = [("softmax", "h200", []), ("softmax", "v100", ["--math=fast"]), ("matmul_bias_gelu", "h200", []), ("conv2d_nhwc", "h200", []),
            ("matmul_bias_gelu", "a100", []), ("matmul", "a100", ["--math=tf32"]), ("matmul_i8", "h200", []), ("mask_compare", "k80", []),
            ("permute_0213", "h200", []), ("bn_relu_training", "h200", []), ("bn_relu_training", "a100", []), ("reduce_all", "a100", []),
            ("depthwise_31x31", "h200", []), ("depthwise_7x7_nhwc", "h200", []), ("depthwise_3x3", "h200", []), ("max_pool", "h200", []),
            ("depthwise_31x31_filter", "h200", []), ("softmax", "mi50", []), ("matmul", "mi50", [])]


def together(rollerc, folder, cases):
    """Their files, each twice under other names, and their texts."""
    for k, (example, device, options) in enumerate([*cases, *cases[:3]]):
        text = emitted(rollerc, example, device, "--name", f"n{k}", *options)
        source = pathlib.Path(folder) / f"n{k}.cu"
        source.write_text(text)
        yield source, text


def test_files_can_be_included_together(rollerc, folder):
    """By one file, for the host: with the interpreter's intrinsics in each file's own namespace."""
    if not CXX:
        print("SKIPPED: there is no C++ compiler here, no files were compiled together")
        return
    program = [f'#include "{INTERP}/twin.h"']
    for source, text in together(rollerc, folder, TOGETHER):
        source.write_text("".join("" if own else line for line, own in blocks(text)))
        program += [f"#define rollerc {source.stem}_prelude", f'#include "{INTERP}/intrinsics.h"', "#undef rollerc", f'#include "{source}"']
    done = subprocess.run([CXX, "-x", "c++", "-std=c++17", "-Werror", "-fsyntax-only", "-DROLLERC_WARP=32", "-"], input="\n".join(program) + "\n",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


# Of each family that lays something out: (template, device, program or example).
PRODUCT = "input a[{m}, {k}] : {t}\ninput b[{k}, {n}] : {t}\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"
GRADIENT = ("input x[8, 3, 32, 32] : {t}\ninput d[8, 3, 32, 32] : {t}\ndw[c, r:{k}, s:{k}] = "
            "sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - {p}, v + s - {p}], 0))\noutput dw\n")
DEPTHWISE = ("input x[8, 16, 40, 40] : {t}\ninput w[16, 13, 13] : {t}\n"
             "y[n, c, h:40, v:40] = sum[r, s](pad(x[n, c, h + r - 6, v + s - 6], 0) * w[c, r, s])\noutput y : {t}\n")
GROUPS = ("input x[32, 28, 28, 32, 8] : f16\ninput d[32, 28, 28, 32, 8] : f16\n"
          "dw[g, f, r:3, s:3, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))\noutput dw : f16\n")
RESERVED = {"gemm", "reduce"}   # as much as other parts or the largest block need
LAID_OUT = [("matmul", "v100", PRODUCT.format(m=512, n=512, k=512, t="f32")), ("gemm", "a100", PRODUCT.format(m=500, n=496, k=504, t="f16")),
            ("bulk", "h200", PRODUCT.format(m=256, n=512, k=512, t="f16")), ("skinny", "h200", PRODUCT.format(m=4, n=512, k=1024, t="f32")), ("reduce", "h200", "input x[7, 9000] : f32\ny[i] = sum[j](x[i, j])\noutput y\n"),
            ("permute", "h200", "input x[512, 512] : f32\ny[j, i] = x[i, j]\noutput y\n"), ("attention", "a100", "attention"),
            ("attention_bulk", "h200", "attention"), ("depthwise", "h200", DEPTHWISE.format(t="f32")), ("toeplitz", "h200", DEPTHWISE.format(t="f16")),
            ("pairs", "h200", "depthwise_7x7_nhwc"), ("filter_direct", "h200", GRADIENT.format(t="f32", k=5, p=2)),
            ("filter_gemm", "h200", GRADIENT.format(t="f16", k=5, p=2)), ("filter_strip", "h200", GRADIENT.format(t="f32", k=3, p=1)),
            ("filter_groups", "h200", GROUPS), ("filter_wide", "h200", GROUPS.replace("32, 8]", "8, 64]")),
            ("rowwise", "h200", "input x[64, 40000] : f32\nm[b] = sum[c](x[b, c])\ny[b, c] = x[b, c] - m[b]\noutput y\n"),
            ("channelwise", "h200", "input x[300, 64] : f32\nm[c] = sum[i](x[i, c])\ny[i, c] = x[i, c] - m[c]\noutput y\n")]


def text_of_family(rollerc, family, device, program):
    """The first candidate that goes through the template."""
    text = program if "\n" in program else pathlib.Path(common.example_path(program)).read_text()
    for candidate in range(1, 11):
        done = subprocess.run([rollerc, "-", "--name", "k", "--device", device, "-q", "-o", "-", "--candidate", str(candidate)], input=text,
                              capture_output=True, text=True)
        if f"templates/{family}.cu (" in done.stdout:
            return done.stdout
    raise AssertionError(f"no candidate goes through {family}: take another program")


def refused_regions(text, folder):
    """Those that the compiler names where it says that something does not fit."""
    source = pathlib.Path(folder) / "k.cu"
    source.write_text("".join("" if own else line for line, own in blocks(text)))
    program = [f'#include "{INTERP}/twin.h"', "#define rollerc k_prelude", f'#include "{INTERP}/intrinsics.h"', "#undef rollerc", f'#include "{source}"']
    done = subprocess.run([CXX, "-x", "c++", "-std=c++17", "-w", "-fsyntax-only", "-DROLLERC_WARP=32", "-"], input="\n".join(program) + "\n",
                          capture_output=True, text=True)
    failed = done.stderr if "static assertion failed" in done.stderr else ""
    assert failed or done.returncode == 0, done.stderr[:2000]
    return {name for name in re.findall(r"^constexpr Region (\w+)", text, re.MULTILINE) if re.search(rf"\b{name}\b", failed)}


def test_a_region_that_is_too_small_is_refused(rollerc, folder):
    """Shared memory of each family's kernel: as it is laid out all fits, and what has a sixteenth of its room does not."""
    if not CXX:
        print("SKIPPED: there is no C++ compiler here, no regions were shrunk")
        return
    for family, device, program in LAID_OUT:
        text = text_of_family(rollerc, family, device, program)
        regions = re.findall(r"^constexpr Region (\w+) = \{\d+, (\d+)\}", text, re.MULTILINE)
        assert regions, f"{family} lays nothing out"
        assert not refused_regions(text, folder), family
        left = 4096 if family in RESERVED else 16
        small = re.sub(r"^(constexpr Region \w+ = \{\d+), (\d+)\}", lambda found: f"{found[1]}, {int(found[2]) // left}}}", text, flags=re.MULTILINE)
        kept = {name for name, size in regions if int(size)} - refused_regions(small, folder)
        assert not kept, f"{family}: {kept} may be too small"


def test_files_can_be_included_together_by_nvcc(rollerc, folder):
    if not NVCC:
        print("SKIPPED: nvcc is not here, no files were compiled together with it")
        return
    few = [TOGETHER[k] for k in (0, 1, 4, 8)]
    program = "".join(f'#include "{source}"\n' for source, _ in together(rollerc, folder, few))
    code, said = compile_text(program, folder, "-arch=sm_90a", "-c", "-Xptxas", "-O0", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")
    assert code == 0, said[:2000]


def test_constants_of_a_line_that_are_not_used_say_so(rollerc, _):
    found = 0
    for name, device in (("depthwise_7x7_nhwc", "v100"), ("depthwise_31x31_branch", "v100"), ("permute_021", "h200"), ("matmul", "h200")):
        for candidate in range(1, 11):
            text = emitted(rollerc, name, device, "--candidate", str(candidate))
            code = re.sub(r"//.*", "", text)
            for line in re.findall(r"^.*\bconstexpr \w+ .*;", code, re.MULTILINE):
                names = re.findall(r"(\w+) = ", line)
                unused = [name for name in names if len(re.findall(rf"\b{name}\b", code)) == 1]
                assert not unused or line.startswith("[[maybe_unused]]"), f"{name}, candidate {candidate}: {unused}"
                found += bool(unused)
    assert found, "other candidates are kept now: take some with a line of constants of which one is not used"


def test_relocatable_code_is_told_what_it_loses(rollerc, folder):
    text = emitted(rollerc, "matmul_bias_gelu", "h200")
    assert text.count("setmaxnreg.") == 2 and "-rdc=true" in text, "another family comes first now: take a candidate of bulk"
    assert "__CUDACC_RDC__" not in emitted(rollerc, "softmax", "h200")
    if NVCC:
        for options, warns in (([], False), (["-rdc=true"], True)):
            code, said = compile_text(text, folder, "-arch=sm_90a", "-ptx", *options)
            assert code == 0 and ("takes setmaxnreg away" in said) == warns, said


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
