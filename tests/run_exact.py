#!/usr/bin/env python3
"""What --math=exact promises of functions and denormal numbers (doc/language.md): the text of kernels, the machine code that NVRTC makes of them,
the prelude with the host's functions, and what the sources and documents say. tests/gpu_functions.py measures the GPU's."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import common
import gpu_functions
from run_jit import has_nvrtc

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROLLERC = ""
# In CUDA C++: only softmax_exp_f16, softmax_exp_bf16, power_of_two and reciprocal_of take an instruction that is not exact, and
# --math=fast takes others.
INEXACT_TEXT = re.compile(r"\.ftz|\.approx|__(?:exp|exp10|log|log2|log10|sin|cos|tan|pow|tanh|fdividef?|frcp_r[nzud]|saturate)f?\(")
ALLOWED_PLACES = re.compile(r"float (?:softmax_exp_b?f16|power_of_two|reciprocal_of|op_sigmoid)\(float a\)\n?\s*{.*?\n?}$", re.S | re.M)
FAST = re.compile(r"#(?:el)?if defined\(ROLLERC_FAST_MATH\)\n.*?\n#(?:else|endif)", re.S)
# In PTX: what CUDA's own functions, which are within the promise, are made of. Arithmetic is none of it.
INEXACT_PTX = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z0-9_.]*\.(?:ftz|approx|full)\b[a-z0-9_.]*)", re.M)
ALLOWED_PTX = re.compile(r"(?:ex2|lg2|rcp|rsqrt)\.approx(?:\.ftz)?\.f(?:32|64)")

EVERY_FUNCTION = "input x[64, 40] : {type}\n" + "\n".join(
    f"y{i}[i, j] = {name[3:]}(x[i, j]{', 1.7' if operands == 2 else ''})  output y{i} : {{type}}"
    for i, (name, operands, _) in enumerate(gpu_functions.functions()) if name[3:].upper() not in gpu_functions.ARITHMETIC)
ARITHMETIC = """input x[64, 40] : {type}  input z[64, 40] : {type}
a[i, j] = (x[i, j] + z[i, j]) * x[i, j] - z[i, j] / x[i, j]  output a : {type}
s[i] = sum[j](x[i, j]) / 40  v[i] = sum[j](sq(x[i, j] - s[i]))  b[i, j] = (x[i, j] - s[i]) / sqrt(v[i] + 1e-5)  output b : {type}
"""
SOFTMAX = """input x[64, 4000] : {type}
m[i] = max[j](x[i, j])  e[i, j] = exp(x[i, j] - m[i])  s[i] = sum[j](e[i, j])  y[i, j] = e[i, j] / s[i]  output y : {type}
"""


def emit(folder, program, suffix, *options):
    path = folder / "k.te"
    path.write_text(program)
    result = subprocess.run([ROLLERC, "-q", path, "--device", "h200", "--top-k", "1", "-o", folder / f"k{suffix}", *options],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return (folder / f"k{suffix}").read_text()


def inexact_text(text):
    return INEXACT_TEXT.findall(ALLOWED_PLACES.sub("", FAST.sub("#else", text)))


def inexact_ptx(text):
    return sorted({word for word in INEXACT_PTX.findall(text) if not ALLOWED_PTX.fullmatch(word)})


def test_no_template_takes_what_is_not_exact(folder):
    places = 0
    for path in (ROOT / "templates").rglob("*.cu*"):
        text = path.read_text()
        places += len(INEXACT_TEXT.findall(text))
        assert not inexact_text(text), f"{path}: {inexact_text(text)}"
    assert places >= 5   # two softmax_exp, __expf, __logf, __fdividef


def test_no_kernel_takes_what_is_not_exact(folder):
    fast = 0
    for path in sorted((ROOT / "examples").glob("*.te")):
        text = emit(folder, path.read_text(), ".cu")
        assert not inexact_text(text), f"{path}: {inexact_text(text)}"
        fast += bool(inexact_text(emit(folder, path.read_text(), ".cu", "--math=fast")))
    assert fast > 5   # which this test would find


def test_machine_code_keeps_denormal_numbers(folder):
    if not has_nvrtc():
        raise common.Skip("NVRTC is not there")
    for type in ("f32", "f16", "bf16", "f64"):
        for program in (EVERY_FUNCTION, ARITHMETIC, SOFTMAX):
            text = emit(folder, program.format(type=type), ".ptx")
            corrected = {"div.approx.f32"} if program is EVERY_FUNCTION else set()   # sigmoid's reciprocal
            assert set(inexact_ptx(text)) <= corrected, f"{type}: {inexact_ptx(text)} in\n{program}"
    assert "div.approx.f32" in inexact_ptx(emit(folder, ARITHMETIC.format(type="f32"), ".ptx", "--math=fast"))
    assert "ex2.approx.ftz.f32" in emit(folder, SOFTMAX.format(type="f16"), ".ptx")


def test_the_prelude_is_as_exact_as_its_functions(folder):
    result = subprocess.run([sys.executable, ROOT / "tests/gpu_functions.py", "--host", "--every", "40009"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["functions"]
    assert {row["function"] for row in rows} >= {name[3:] for name, _, _ in gpu_functions.functions()}
    assert all(row["arguments"] > 50000 for row in rows)


def test_a_broken_promise_is_noticed(folder):
    row = dict(function="exp", type="f32", ulps=1.0, at="0x0", wrong=0, wrong_at="0x0", flushed_from=1e-39, exact=False)
    assert gpu_functions.verdict(row, 4) is None
    for change in (dict(ulps=4.5), dict(wrong=1), dict(flushed_from=1.2e-38), dict(exact=True)):
        assert gpu_functions.verdict({**row, **change}, 4), change


def test_documents_say_what_is_judged_by(folder):
    ulps = gpu_functions.promised_ulps()
    for name in ("language", "proof", "kernels"):
        assert f"within {ulps} units in the last place" in " ".join((ROOT / f"doc/{name}.md").read_text().split()), f"doc/{name}.md"


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="")
    args = parser.parse_args()
    ROLLERC = os.path.abspath(args.rollerc)
    return common.run_tests(globals(), "exact", args.filter)


if __name__ == "__main__":
    sys.exit(main())
