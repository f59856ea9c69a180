#!/usr/bin/env python3
"""How far each function of the language is from the right value, in units in the last place: the promise of doc/language.md, measured.

    python3 tests/gpu_functions.py                    on this machine's GPU: all 2^32 arguments of f32, 65536 of f16 and bf16, 2^22 of f64
    python3 tests/gpu_functions.py --host --every 4099     the prelude's own text with the host's mathematical library, some arguments

Every function of src/ir/ops.def (class REAL), and + - * / floor ceil round whose results must be the nearest, denormal ones too. One JSON object on
stdout; exit code 1 if a promise is broken. Needs nvcc (or with --host g++) and nothing else.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r'^OP\((\w+),\s*"([^"]*)",\s*(\d),\s*(\w+),\s*(.*?),\s*"(.*)"\)', re.M)
# The host has no such quotient: one that is off by as many units in the last place as the GPU's may be (CUDA C++ Programming Guide).
FAST_QUOTIENT = "-D__fdividef(a, b)=nextafterf(nextafterf((a) / (b), 9), 9)"
ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
WHOLE_NUMBERS = ("FLOOR", "CEIL", "ROUND")
MAY_FLUSH = ("exp", "softmax_exp_f16", "softmax_exp_bf16")   # of f32: to 0 below 2^-126
# exp(a) where a softmax is rounded to 16 bits: within (5/4 |a| + 4) units of 2^-24 of itself.
SOFTMAX = ("softmax_exp_f16", "softmax_exp_bf16")


def promised_ulps():
    return int(re.search(r"FUNCTION_ULPS = (\d+)", (ROOT / "src/ir/eval_bound.c").read_text())[1])


def functions():
    """[(name, operands, value in double)]"""
    rows = ROW.findall((ROOT / "src/ir/ops.def").read_text())
    found = [(call.split("(")[0], int(operands), value) for name, _, operands, kind, value, call in rows if kind == "REAL" or name in ARITHMETIC + WHOLE_NUMBERS]
    assert len(found) >= 20, found
    return found


def source(every, host):
    lines = ['#include "measure.h"', "namespace measure {"]
    calls = []
    for name, operands, value in functions():
        short = name.removeprefix("op_")
        second = ", b" if operands == 2 else ""
        lines.append(f"struct F_{short} {{\n"
                     f"    template <class T> HERE static T device(T a, T b) {{ (void)b; return {name}(a{second}); }}\n"
                     f"    template <class R> BOTH static R right(R a, R b) {{ (void)b; return {value.replace('fmin(a, 0)', 'fmin(a, R(0))')}; }}\n}};")
        exact = "true" if short.upper() in ARITHMETIC + WHOLE_NUMBERS or short == "sqrt" else "false"
        pairs = "true" if operands == 2 else "false"
        flush = "true" if short in MAY_FLUSH else "false"
        calls.append(f'    measure_f32<F_{short}, {pairs}>("{short}", {flush}, {exact});')
        calls.append(f'    measure_f64<F_{short}, {pairs}>("{short}", {exact});')
        if operands == 1 and not host:
            calls += [f'    measure_16<F_{short}, {type}>("{short}", "{type}");' for type in ("f16", "bf16")]
    for name in SOFTMAX:
        lines.append(f"struct F_{name} {{\n    HERE static float device(float a, float) {{ return {name}(a); }}\n"
                     "    BOTH static double right(double a, double) { return exp(a); }\n};")
        calls.append(f'    measure_softmax<F_{name}>("{name}");')
    lines += ["}", "int main()", "{", "    using namespace measure;", f"    begin({every});", *calls, "    return end();", "}"]
    return "\n".join(lines) + "\n"


def verdict(row, ulps):
    """What of a row breaks the promise; None: nothing."""
    if row["wrong"]:
        return f"{row['wrong']} results are of another kind (NaN, an infinity, 0), the last for {row['wrong_at']}"
    if row["flushed_from"] >= 2.0 ** -126:
        return f"{row['flushed_from']} became 0"
    allowed = 1 if row["function"] in SOFTMAX else 0.5 if row["exact"] else ulps
    if row["ulps"] > allowed:
        return f"{row['ulps']:.2f} where {allowed} are allowed, for {row['at']}"
    return None


def measure(options, folder):
    path, binary = folder / "functions.cu", folder / "functions"
    path.write_text(source(options.every, options.host))
    includes = [f"-I{ROOT / 'tests/conformance'}", f"-I{ROOT / 'templates'}"]
    if options.host:
        compiler = ["g++", "-x", "c++", "-O1", "-ffp-contract=off", "-DMEASURE_HOST", FAST_QUOTIENT, "-std=c++17", *includes, str(path), "-o", str(binary)]
    else:
        compiler = ["nvcc", f"-arch={options.arch}", "-std=c++17", "--expt-relaxed-constexpr", "-diag-suppress=20208", *includes, str(path), "-o", str(binary)]
    subprocess.run(compiler, check=True, stdout=sys.stderr)
    return json.loads(subprocess.run([str(binary)], check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="arguments of f32: every so-manieth")
    parser.add_argument("--arch", default="native", help="of nvcc")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options, pathlib.Path(folder))
    result["promised_ulps"] = promised_ulps()
    for row in result["functions"]:
        row["broken"] = verdict(row, result["promised_ulps"])
    print(json.dumps(result, indent=1))
    broken = [f"{row['function']} of {row['type']}: {row['broken']}" for row in result["functions"] if row["broken"]]
    print("\n".join(broken) or "all within what is promised", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
