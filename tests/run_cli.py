#!/usr/bin/env python3
"""The command line as the manual describes it. One test function per behaviour."""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import common

ROOT = pathlib.Path(__file__).resolve().parent.parent
MATMUL = str(ROOT / "examples/matmul.te")
ROLLERC = ""


def run(*arguments, code=0, folder=None, env=None, stdin=None, **more):
    result = subprocess.run([ROLLERC, *map(str, arguments)], cwd=folder, input=stdin, capture_output=True, timeout=120,
                            env={**os.environ, **(env or {})}, **more)
    assert result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr.decode()}"
    return result


def compile_matmul(folder, *arguments, **more):
    return run(MATMUL, "--device", "a100", *arguments, folder=folder, **more)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- talking about itself ----

def test_help_lists_every_option(folder):
    text = run("--help").stdout.decode()
    for option in ("--device", "--output", "--emit", "--json", "--html", "--name", "--top-k", "--effort", "--verify", "--profile", "--force-device", "--hang-after", "-D", "--math", "-d",
                   "-MD", "-MF", "--templates", "--line-directives", "--with-test", "--cache", "--list-devices", "--print-arch", "--print-device", "--print-schema", "--color"):
        assert option in text, option
    assert run("-h").stdout.decode() == text
    assert run("--usage").stdout.startswith(b"Usage: rollerc")


def test_each_command_says_how_it_is_called(folder):
    for words, usages in (([], ["rollerc [OPTION...] EXPR.te --device NAME|FILE"]),
                          (["explain"], ["rollerc explain [OPTION...] RANKING.json", "rollerc explain [OPTION...] EXPR.te --device NAME|FILE"]),
                          (["batch"], ["rollerc batch [OPTION...] MANIFEST.yaml", "rollerc batch [OPTION...] --merge RESULTS.jsonl..."]),
                          (["import"], ["rollerc import [OPTION...] MODEL.onnx"]),
                          (["calibrate"], ["rollerc calibrate [OPTION...]"])):
        lines = run(*words, "--help").stdout.decode().splitlines()
        assert [re.sub("^(Usage|  or): +", "", line) for line in lines[:len(usages)]] == usages, lines[:4]
        assert not lines[len(usages)].startswith(("Usage", "  or")), lines[:4]
        assert run(*words, "--usage").stdout.decode().startswith(" ".join(["Usage: rollerc", *words, "[-"])), words
        command = " ".join(["rollerc", *words])
        assert f"`{command} --help' shows" in run(*words, code=2).stderr.decode()
        assert f"'--frobnicate'; `{command} --help' shows them" in run(*words, "--frobnicate", code=2).stderr.decode()
        assert f"'-Z'; `{command} --help' shows them" in run(*words, "-Z", code=2).stderr.decode()


def test_man_page_is_up_to_date(folder):
    manual = (ROOT / "man/rollerc.1").read_text()
    assert "\nrollerc \\- constructive tensor compiler\n" in manual, "the NAME line, which whatis reads"
    text = re.sub(r'^\.(\\"|TH|SH|TP|IP|PP).*', "", manual, flags=re.MULTILINE)
    text = re.sub(r"\\f[BIR]|\\[,/&]", "", text).replace("\\-", "-")
    said, start = run("--help").stdout.decode(), "Compile a tensor expression"
    assert text[text.index(start):].split() == said[said.index(start):].split(), "not what --help says: ninja -C build man"


def test_effort_is_how_many_a_gpu_chooses_among(folder):
    for effort, kept in (("quick", 10), ("full", 100)):        # there is no k80 here: the GPU is asked for when the plans are made
        said = run(MATMUL, "--device", "k80", f"--effort={effort}", "-v", folder=folder, code=4).stderr.decode()
        assert f" {kept} plans kept" in said and "GPU" in said, said
    run(MATMUL, "--device", "k80", "--effort=none", "--top-k", "3", "--json", "k.json", folder=folder)
    options = json.loads((folder / "k.json").read_text())["options"]
    assert options["profile"] is False and options["top_k"] == 3


def test_version_is_the_first_line(folder):
    assert re.fullmatch(r"rollerc \d+\.\d+\.\d+", run("--version").stdout.decode().splitlines()[0])


def test_devices_can_be_listed_and_printed(folder):
    listed = run("--list-devices").stdout.decode().splitlines()
    assert any(line.startswith("a100") for line in listed), listed
    text = run("--print-device", "a100").stdout
    assert text == (ROOT / "devices/a100.yaml").read_bytes()
    (folder / "copy.yaml").write_bytes(text)
    run(MATMUL, "--device", "./copy.yaml", folder=folder)
    assert run("--print-arch", "h200").stdout == b"sm_90a\n" and run("--print-arch", "mi50").stdout == b"gfx906\n"
    assert run("--print-arch", "./copy.yaml", folder=folder).stdout == b"sm_80\n"


def test_schema_is_json(folder):
    assert json.loads(run("--print-schema").stdout)["title"] == "rollerc ranking"


def test_a_full_stdout_is_noticed(folder):
    for option in ("--help", "--version", "--list-devices", "--print-schema"):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([ROLLERC, option], stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert result.returncode == 4, (option, result.returncode)


def test_a_wrong_option_names_the_mend(folder):
    for words, mend in ((["--devcie=h200"], "unknown option '--devcie'; did you mean '--device'?"),
                        (["--devcie", "h200"], "did you mean '--device'?"),
                        (["--frobnicate"], "unknown option '--frobnicate'; `rollerc --help' shows them"),
                        ([MATMUL, "--device"], "--device wants NAME|FILE"),
                        (["--verify=3"], "--verify takes no value; '3' is given"),
                        (["--li"], "'--li' may stand for --line-directives, --list-devices"),
                        (["-qZ", MATMUL], "unknown option '-Z'"), (["-v", "-Zq", MATMUL], "unknown option '-Z'"),
                        (["-qD"], "-D wants NAME=NUMBER")):
        stderr = run(*words, code=2).stderr.decode()
        assert mend in stderr and stderr.startswith("rollerc: error: ") and stderr.count("\n") == 1, (words, stderr)


def test_verbose_says_what_each_stage_did(folder):
    lines = compile_matmul(folder, "-v", "--json", "rank.json", "-o", "k.cu").stderr.decode().splitlines()
    told = [re.fullmatch(r"rollerc: (\w+) +(\S.*?) +\d+\.\d\d ms", line) for line in lines]
    assert all(told), lines
    stages = {line[1]: line[2] for line in told}
    assert list(stages) == ["device", "lex", "parse", "lower", "fuse", "plan", "codegen", "rank", "write"], stages
    assert stages["parse"] == "7 statements, 1 reductions" and stages["write"] == "2 files", stages
    assert re.fullmatch(r"\d+ programs, \d+ legal, 10 plans kept", stages["plan"]), stages


# ---- outputs ----

def test_default_output_is_named_after_the_input(folder):
    compile_matmul(folder)
    assert names(folder) == ["matmul.cu"]


def test_a_lost_fraction_is_warned_of(folder):
    def warnings(expression):
        text = f"param D = 64  input x[8] : f32  y[i, d:D] = x[i] * pow(10000, {expression})  output y\n".encode()
        return run("-", "--device", "a100", "-o", "k.cu", folder=folder, stdin=text).stderr.decode()
    assert "1:63: warning: a quotient of integers is cut off" in warnings("-2*d / D")
    for lost in ("1 + (d / D)", "d / 8 * 4", "4 * (d / 8)", "d / D + (d - d / 8 * 8)"):
        assert "warning" in warnings(lost), lost
    for whole in ("-2*d / 64.0", "cast(-2*d, f32) / D", "cast(d / D, f32)", "3 / 2", "d * 2", "d - d / 8 * 8", "8 * (d / 8)"):
        assert warnings(whole) == "", whole


def test_a_factor_that_stays_in_a_product_is_warned_of(folder):
    def warnings(dtype, body, *options):
        text = f"input a[64, 32] : {dtype}  input b[32, 48] : {dtype}  input s[64] : f32\n{body}\noutput y\n".encode()
        return run("-", "--device", "a100", "-o", "k.cu", *options, folder=folder, stdin=text).stderr.decode()
    assert "2:38: warning: this factor stays in the sum" in warnings("f32", "y[i, j] = sum[k](a[i, k] * b[k, j] * 0.125)")
    assert "stays in the sum" in warnings("bf16", "y[i, j] = sum[k](a[i, k] * s[i] * b[k, j])")
    for dtype, body, *options in (("f16", "sum[k](a[i, k] * b[k, j] * s[i])"), ("bf16", "sum[k](a[i, k] * b[k, j] * 0.125)"),
                                  ("f32", "sum[k](a[i, k] * b[k, j]) * s[i]"),
                                  ("f32", "sum[k](a[i, k] * b[k, j] * s[i])", "--math=fast")):
        assert "stays in the sum" not in warnings(dtype, f"y[i, j] = {body}", *options), body


def test_a_definition_that_keeps_a_product_off_tensor_cores_is_warned_of(folder):
    def warnings(dtype, definition, factor="b[k, j]", *options):
        text = (f"input a[1024, 512] : {dtype}  input b[512, 1024] : {dtype}  input c[512] : f32\n"
                f"h{definition}\ny[i, j] = sum[k](h[i, k] * {factor})\noutput y : f32\n").encode()
        return run("-", "--device", "h100", "-o", "k.cu", *options, folder=folder, stdin=text).stderr.decode()
    for dtype in ("f16", "bf16"):
        said = warnings(dtype, "[i, k] = exp(a[i, k])")
        assert f"2:1: warning: a product takes longer for want of a type: write h[...] : {dtype} (" in said, said
    assert "for want of a type: write h[...]" in warnings("f16", "[i, k] = exp(a[i, k]) * c[k]")
    for dtype, definition, factor, *options in (("f16", "[i, k] : f16 = exp(a[i, k])", "b[k, j]"), ("f16", "[i, k] = cast(exp(a[i, k]), f16)", "b[k, j]"),
                                                ("f16", "[i, k] = max(a[i, k], 0)", "b[k, j]"), ("f32", "[i, k] = exp(a[i, k])", "b[k, j]"),
                                                ("f16", "[i, k] = exp(a[i, k])", "cast(b[k, j], f32) * c[k]"), ("f16", "[i, k] = exp(a[i, k])", "b[k, j]", "-q")):
        assert "for want of a type" not in warnings(dtype, definition, factor, *options), definition


def test_the_params_are_named_to_who_misses_one(folder):
    assert "no param of that name; it has M, N, K" in run(MATMUL, "--device", "a100", "-D", "Q=3", code=2).stderr.decode()


def test_no_file_of_ours_is_named_to_a_compiler_unless_asked_for(folder):
    text = compile_matmul(folder, "-o", "-").stdout.decode()
    assert "#line" not in text and "// templates/matmul.cu:" not in text and "templates/prelude/" in text
    text = compile_matmul(folder, "-o", "-", "--line-directives").stdout.decode()
    named = re.findall(r'^#line \d+ "(.*)"$', text, re.MULTILINE)
    assert "templates/prelude/types.cuh" in named and named[-1] == "matmul.cu", named


def test_stdin_and_stdout(folder):
    text = pathlib.Path(MATMUL).read_bytes()
    direct = run("-", "--device", "a100", "-o", "-", stdin=text).stdout
    assert direct.startswith(b"//rollerc: ")
    run("-", "--device", "a100", stdin=text, folder=folder)
    assert names(folder) == ["kernel.cu"]
    assert (folder / "kernel.cu").read_bytes() == direct


def test_only_the_artefact_goes_to_stdout(folder):
    assert compile_matmul(folder, "-v").stdout == b""
    assert compile_matmul(folder, "-q").stderr == b""


def test_several_artefacts(folder):
    compile_matmul(folder, "-o", "out.cu", "--emit", "header,json=rank.json")
    assert names(folder) == ["out.cu", "out.h", "rank.json"]
    header = (folder / "out.h").read_text()
    assert "matmul_launch" in header and "matmul_workspace" in header
    json.loads((folder / "rank.json").read_text())


def test_suffix_picks_the_form(folder):
    compile_matmul(folder, "-o", "x.json")
    assert names(folder) == ["x.json"]
    assert json.loads((folder / "x.json").read_text())["schema_version"]


def test_ranking_satisfies_the_schema(folder):
    for example in ("matmul", "softmax", "reduce_rows", "conv2d_3x3", "bn_add_relu_mask"):
        run(ROOT / f"examples/{example}.te", "--device", "a100", "-o", "rank.json", "-q", folder=folder)
        check = subprocess.run([sys.executable, ROOT / "tests/check_json.py", folder / "rank.json",
                                ROOT / "schema/ranking.schema.json"], capture_output=True, text=True)
        assert check.returncode == 0, check.stdout + check.stderr


def test_unchanged_output_keeps_its_time(folder):
    compile_matmul(folder)
    before = (folder / "matmul.cu").stat()
    compile_matmul(folder)
    assert (folder / "matmul.cu").stat().st_mtime_ns == before.st_mtime_ns


def test_failure_leaves_the_old_output(folder):
    (folder / "k.cu").write_text("old")
    compile_matmul(folder, "-o", "k.cu", "--json", "missing/rank.json", code=4)
    assert (folder / "k.cu").read_text() == "old"
    assert names(folder) == ["k.cu"]


def test_read_only_folder(folder):
    if os.geteuid() == 0:
        raise common.Skip("root may write everywhere")
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    compile_matmul(folder, code=4)
    folder.chmod(stat.S_IRWXU)


def test_special_files_survive(folder):
    compile_matmul(folder, "-o", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    compile_matmul(folder, "-o", "/dev/full", code=4)
    assert names(folder) == []


def test_input_is_never_overwritten(folder):
    source = folder / "x.te"
    source.write_bytes(pathlib.Path(MATMUL).read_bytes())
    os.link(source, folder / "x.cu")
    run("x.te", "--device", "a100", folder=folder, code=2)
    (folder / "y.json").symlink_to("x.te")
    run("x.te", "--device", "a100", "-o", "y.json", folder=folder, code=2)
    with open(source, "rb") as stdin:
        result = subprocess.run([ROLLERC, "-", "--device", "a100", "--json", "x.te"], stdin=stdin, cwd=folder,
                                stderr=subprocess.PIPE)
    assert result.returncode == 2 and b"'/dev/stdin' is an input" in result.stderr, result.stderr
    assert source.read_bytes() == pathlib.Path(MATMUL).read_bytes()


def test_one_file_under_two_names_is_refused(folder):
    (folder / "sub").mkdir()
    (folder / "old.cu").write_text("old")
    os.link(folder / "old.cu", folder / "hard.json")
    (folder / "soft.json").symlink_to("sub/../new.cu")
    before = names(folder)
    for first, second in ((("-o", "a.cu"), ("--json", "./a.cu")), (("--emit", "cu=m.cu"), ("--emit", "header=./m.cu")),
                          (("-o", "dd.cu"), ("-MF", "dd.cu")), (("-o", "dd.cu"), ("-MF", "sub/../dd.cu")),
                          (("-o", "old.cu"), ("--json", "hard.json")), (("-o", "new.cu"), ("--json", "soft.json")),
                          (("-o", "-"), ("--json", "-")), (("-o", "-"), ("--json", "/dev/stdout")),
                          (("-o", "a.cu"), ("--emit", f"json={folder}/a.cu"))):
        more = ["-MD"] if second[0] == "-MF" else []
        stderr = compile_matmul(folder, *more, *first, *second, code=2).stderr.decode()
        for option in (first, second):
            assert " ".join(option) in stderr, (option, stderr)
        assert names(folder) == before
    assert (folder / "old.cu").read_text() == "old"
    compile_matmul(folder, "-o", "-", "--json", "/dev/null")


def test_a_link_stays_a_link(folder):
    (folder / "sub").mkdir()
    (folder / "link.cu").symlink_to("sub/target.cu")
    for known in (False, True):
        compile_matmul(folder, "-o", "link.cu", *["-D", "M=64"] * known)
        assert (folder / "link.cu").is_symlink() and names(folder / "sub") == ["target.cu"], known
    assert "64" in (folder / "sub/target.cu").read_text()
    assert names(folder) == ["link.cu", "sub"]


def test_a_file_that_is_too_long_is_shown_where(folder):
    (folder / "long.te").write_bytes(b"#".ljust(99, b"-") + b"\n" + b"#\n" * (1 << 21))
    (folder / "long.yaml").write_bytes((folder / "long.te").read_bytes())
    place = 2 + ((4 << 20) - 100) // 2   # the first line has 100 bytes, the others 2
    for name, arguments in (("long.te", ["long.te", "--device", "a100"]), ("long.yaml", [MATMUL, "--device", "./long.yaml"])):
        stderr = run(*arguments, folder=folder, code=1).stderr.decode()
        assert f"{name}:{place}:1: error: a file has at most 4194304 bytes" in stderr, stderr
    (folder / "exact.te").write_bytes(pathlib.Path(MATMUL).read_bytes() + b"\n#")
    with open(folder / "exact.te", "ab") as file:
        file.write(b"-" * ((4 << 20) - file.tell()))
    run("exact.te", "--device", "a100", folder=folder)


def test_a_byte_order_mark_is_skipped(folder):
    mark, text, device = b"\xef\xbb\xbf", pathlib.Path(MATMUL).read_bytes(), (ROOT / "devices/a100.yaml").read_bytes()
    kernels = []
    for marks in ((b"", b""), (mark, b""), (b"", mark)):
        (folder / "k.te").write_bytes(marks[0] + text)
        (folder / "d.yaml").write_bytes(marks[1] + device)
        run("k.te", "--device", "./d.yaml", folder=folder)
        kernels.append((folder / "k.cu").read_bytes())
    assert len(set(kernels)) == 1
    (folder / "wrong.te").write_bytes(mark + b"parm N = 3\n")
    assert "wrong.te:1:1: error: unknown statement 'parm'" in run("wrong.te", "--device", "a100", folder=folder, code=1).stderr.decode()
    for wide in (text.decode().encode("utf-16"), b"\xfe\xff" + text.decode().encode("utf-16-be"), text.decode().encode("utf-32")):
        (folder / "wide.te").write_bytes(wide)
        stderr = run("wide.te", "--device", "a100", folder=folder, code=1).stderr.decode()
        assert "'wide.te' is UTF-16 or UTF-32, as its byte-order mark says; save it as UTF-8" in stderr, stderr


def test_names_are_printed_as_they_are(folder):
    """But for what a terminal would take as a command, and for what is no text."""
    for name, shown in (("größe 数.te", "größe 数.te"), ("a\x1b[31m.te", r"a\x1b[31m.te"), ("a\nb.te", r"a\x0ab.te"),
                        ("a\u202eet.te", r"a\xe2\x80\xaeet.te"), ("a\u0085.te", r"a\xc2\x85.te"), ("a\udcff\udcc3.te", r"a\xff\xc3.te")):
        (folder / name).write_text("param ä\n")
        stderr = run(name, "--device", "a100", folder=folder, code=1).stderr.decode()
        assert stderr.startswith(f"{shown}:1:7: error: unexpected 'ä'"), stderr
        if "\n" not in name:
            assert f"cannot read 'no {shown}'" in run("no " + name, "--device", "a100", folder=folder, code=1).stderr.decode()


def test_a_caret_stands_below_its_character(folder):
    for line, column in (("y[i] = x[i] + äöü", 15), ("y[i] = x[i]  + 数 # ä", 16), ("y[i] = x[i] + é + z", 15)):
        stderr = run("-", "--device", "a100", folder=folder, stdin=line.encode(), code=1).stderr.decode().split("\n")
        assert stderr[1] == "    " + line and stderr[2].index("^") == 3 + column, stderr


def test_dumps_write_no_artefact(folder):
    assert compile_matmul(folder, "-d", "op").stdout
    assert names(folder) == []
    compile_matmul(folder, "-d", "tokens,ast", "-o", "k.cu")
    assert names(folder) == ["k.cu"]


def test_every_stage_can_be_printed(folder):
    for stage in re.findall(r"^STAGE\((\w+)", (ROOT / "src/stages.def").read_text(), re.MULTILINE):
        assert compile_matmul(folder, "-d", stage).stdout, stage


def test_dependency_file(folder):
    compile_matmul(folder, "-o", "k.cu", "-MD", "-MF", "k.d")
    assert (folder / "k.d").read_text().startswith("k.cu:")
    assert MATMUL in (folder / "k.d").read_text()
    compile_matmul(folder, "-o", "k.cu", "-MD", "-MFx.d", "-MT", "target")
    assert (folder / "x.d").read_text().startswith("target:")
    compile_matmul(folder, "-o", "k.cu", "-MD", "--templates", ROOT / "templates")
    for read in ("matmul.cu", "prelude.cuh", "prelude/intrinsics/threads.cuh"):
        assert f"{ROOT}/templates/{read}" in (folder / "k.d").read_text(), read


# ---- names ----

def test_kernel_names_are_c_identifiers(folder):
    for stem, name in {"relu": "relu", "1x1": "k_1x1", "my-conv.v2": "my_conv_v2", "double": "double_", "class": "class_",
                       "a;}": "a__", "größe": "gr____e", "a b": "a_b", ".te": "_te"}.items():
        source = folder / f"{stem}.te"
        source.write_bytes(pathlib.Path(MATMUL).read_bytes())
        text = run(source, "--device", "a100", "-o", "-", "-q").stdout.decode()
        assert f"int {name}_launch(" in text, (stem, name)
    assert "int fast_launch(" in compile_matmul(folder, "--name", "fast", "-o", "-").stdout.decode()


def test_params_can_be_set(folder):
    name = re.search(r"^\s*param (\w+)", pathlib.Path(MATMUL).read_text(), re.MULTILINE).group(1)
    one = compile_matmul(folder, "-D", f"{name}=96", "-o", "-").stdout
    two = compile_matmul(folder, f"-D{name}=64", f"-D{name}=96", "-o", "-").stdout
    assert one == two and one != compile_matmul(folder, "-o", "-").stdout


# ---- response files ----

def test_response_files_quote_as_gnu_tools_do(folder):
    (folder / "a b.te").write_bytes(pathlib.Path(MATMUL).read_bytes())
    (folder / "args").write_text("'a b.te' --device\n\t\"a100\" @more\n")
    (folder / "more").write_text("-o out\\ put.cu")
    run("@args", folder=folder)
    assert "out put.cu" in names(folder)


def test_response_files_end(folder):
    (folder / "loop").write_text("@loop")
    assert b"nested" in run("@loop", folder=folder, code=2).stderr
    for level in range(7):
        (folder / f"wide{level}").write_text(f"@wide{level + 1} " * 20)
    (folder / "wide7").write_text("x " * 20)
    assert b"arguments" in run("@wide0", folder=folder, code=2).stderr


# ---- colour ----

def test_colour_follows_the_conventions(folder):
    def coloured(*arguments, **env):
        clean = {"NO_COLOR": "", "CLICOLOR_FORCE": "", "TERM": "xterm", **env}
        return b"\033[" in run("missing.te", "--device", "a100", *arguments, folder=folder, code=1, env=clean).stderr
    assert not coloured()
    assert coloured("--color=always")
    assert coloured(CLICOLOR_FORCE="1")
    assert not coloured(CLICOLOR_FORCE="1", NO_COLOR="1")
    assert not coloured("--color=never", CLICOLOR_FORCE="1")


# ---- the same inputs, the same bytes ----

def test_two_runs_are_identical(folder):
    def both(where, **env):
        where.mkdir()
        compile_matmul(where, "-o", "k.cu", "--json", "r.json", env=env)
        return (where / "k.cu").read_bytes() + (where / "r.json").read_bytes()
    first = both(folder / "one")
    assert first == both(folder / "two", LC_ALL="de_DE.UTF-8", LANG="tr_TR.UTF-8", TZ="Asia/Tokyo", COLUMNS="20")
    assert str(folder).encode() not in first


def test_the_folder_does_not_matter(folder):
    relative = run("examples/matmul.te", "--device", "a100", "-o", "-", folder=ROOT).stdout
    assert relative == run("matmul.te", "--device", "a100", "-o", "-", folder=ROOT / "examples").stdout


# ---- large programs ----

def is_sanitized():
    return b"asan" in subprocess.run(["readelf", "-sW", "--dyn-syms", ROLLERC], capture_output=True).stdout


def many_kernels():
    """Programs of hundreds of kernels: (name, text)."""
    outputs = "".join(f"output s_{i}\n" for i in range(500))
    rows = "input x[256, 1024] : f32\n"
    yield "independent.te", rows + "".join(f"s_{i}[r] = sum[c](x[r, c] * {i + 1})\n" for i in range(500)) + outputs
    yield "chained.te", (rows + "s_0[r] = sum[c](x[r, c])\n" +
                         "".join(f"s_{i}[r] = sum[c](x[r, c] * s_{i - 1}[r])\n" for i in range(1, 500)) + "output s_499\n")
    yield "products.te", ("input a[256, 256] : f32\nm_0[i, j] = sum[k](a[i, k] * a[k, j])\n" +
                          "".join(f"m_{i}[i, j] = sum[k](m_{i - 1}[i, k] * a[k, j])\n" for i in range(1, 300)) +
                          "output m_299\n")


def test_hundreds_of_kernels_take_little_time_and_memory(folder):
    if is_sanitized():
        raise common.Skip("a sanitizer build")
    for name, text in many_kernels():
        (folder / name).write_text(text)
        process = subprocess.Popen([ROLLERC, name, "--device", "h200", "-q"], cwd=folder)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (name, process.returncode)
        assert used.ru_maxrss < 300 << 10, f"{name}: {used.ru_maxrss >> 10} MB"
        seconds = used.ru_utime + used.ru_stime   # some 0.5; 3 to 6 where each plan is written out for each kernel
        assert seconds < 3, f"{name}: {seconds:.1f} s"


# ---- interruption ----

def test_signals_end_at_once_and_leave_nothing(folder):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        # Reading from a pipe that nobody closes: certainly still running when the signal comes.
        process = subprocess.Popen([ROLLERC, "-", "--device", "a100"], cwd=folder, stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait(5) == code
        process.stdin.close()
        process.stderr.close()
        assert names(folder) == []


def test_text_of_a_template_that_does_not_end_is_refused(folder):
    shutil.copytree(ROOT / "templates", folder / "templates")
    template = folder / "templates/elementwise.cu"
    text = template.read_text()
    for broken, what in ((text.replace('extern "C', 'extern "\nC'), "a string does not end in its line"),
                         (text.replace("    store_words(t, point, out);\n}", "    store_words(t, point, out);"), "this definition does not end")):
        template.write_text(broken)
        result = run(ROOT / "examples/relu.te", "--device", "a100", "--templates", folder / "templates", "-o", "k.cu", folder=folder,
                     code=1)
        assert what.encode() in result.stderr, result.stderr


def test_a_kernel_that_does_not_end_is_not_called_wrong(folder):
    shutil.copytree(ROOT / "templates", folder / "templates")
    template = folder / "templates/elementwise.cu"
    text, mark = template.read_text(), "    const Tensors t = TENSORS;\n"
    assert mark in text
    template.write_text(text.replace(mark, mark + "    for (volatile int i = 0;; ) {}\n"))
    result = run(ROOT / "examples/relu.te", "--device", "a100", "-D", "N=1000", "--templates", folder / "templates", "--verify",
                 "--hang-after", "1", "-o", "k.cu", folder=folder, code=4)
    assert b"the proof takes too long" in result.stderr and b"does not end within 1 s" in result.stderr
    assert b"wrong" not in result.stderr and not (folder / "k.cu").exists()


# ---- the machine fails, not the kernel ----

def verify_relu(folder, *arguments, **more):
    return run(ROOT / "examples/relu.te", "--device", "a100", "-D", "N=1000", "--verify", "-o", "k.cu", *arguments,
               folder=folder, **more)


def fake_compiler(folder, script):
    """An environment in which `c++` is a shell script."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "bin/c++").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin/c++").chmod(0o755)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "TMPDIR": f"{folder}/tmp"}


def test_a_broken_compiler_is_no_wrong_kernel(folder):
    for script in ("exit 1", "kill -9 $$", "echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1",
                   "echo 'kernel.cu:1:1: fatal error: cannot write'; exit 1", "echo 'collect2: error: ld'; exit 1",
                   "echo 'twin.h:3:1: error: what is this?'; exit 1"):
        stderr = verify_relu(folder, env=fake_compiler(folder, script), code=4).stderr
        assert b"cannot verify: c++ ends with status" in stderr, stderr
        assert names(folder) == ["bin", "tmp"] and names(folder / "tmp") == [], script


def test_a_text_that_does_not_compile_is_a_wrong_kernel(folder):
    shutil.copytree(ROOT / "templates", folder / "templates")
    template = folder / "templates/elementwise.cu"
    text, mark = template.read_text(), "const Tensors t = TENSORS;"
    template.write_text(text.replace(mark, mark + " no_such_function();"))
    assert b"no_such_function" in verify_relu(folder, "--templates", folder / "templates", code=5).stderr
    template.write_text(text.replace(mark, "const Tensors t = NO_TENSORS;"))   # what a launch waits for would stand behind it
    assert b"'templates/elementwise.cu' lacks '" + mark.encode() in verify_relu(folder, "--templates", folder / "templates", code=1).stderr
    assert names(folder) == ["templates"]


def test_no_space_is_no_wrong_kernel(folder):
    (folder / "tmp").mkdir()
    codes = set()
    for kilobytes in (2, 20, 60, 75, 90, 1000):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, kilobytes << 10))
        result = subprocess.run([ROLLERC, ROOT / "examples/relu.te", "--device", "a100", "-D", "N=10", "--verify", "-o",
                                 "k.cu"], cwd=folder, env={**os.environ, "TMPDIR": f"{folder}/tmp"}, preexec_fn=limit,
                                capture_output=True, timeout=120)
        assert result.returncode in (0, 4), (kilobytes, result.returncode, result.stderr)
        assert names(folder) == ["k.cu", "tmp"][result.returncode != 0:] and names(folder / "tmp") == [], kilobytes
        codes.add(result.returncode)
    assert codes == {0, 4}


def is_alive(process):
    try:
        return ") Z" not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_an_interrupt_takes_the_compiler_along(folder):
    env = fake_compiler(folder, f'echo partial > "$TMPDIR/cc1.s"; echo $$ > {folder}/pid; mv {folder}/pid {folder}/started; '
                                "exec sleep 100")
    process = subprocess.Popen([ROLLERC, ROOT / "examples/relu.te", "--device", "a100", "--verify", "-o", "k.cu"],
                               cwd=folder, env={**os.environ, **env}, stderr=subprocess.PIPE)
    while not (folder / "started").exists():
        time.sleep(0.01)
    assert len(names(folder / "tmp")) == 1   # our folder, in which the compiler's file lies
    compiler = int((folder / "started").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
    process.stderr.close()
    assert names(folder) == ["bin", "started", "tmp"] and names(folder / "tmp") == []
    deadline = time.monotonic() + 5
    while is_alive(compiler) and time.monotonic() < deadline:   # SIGKILL: a busy machine takes a moment
        time.sleep(0.01)
    assert not is_alive(compiler)


def test_what_is_too_much_to_run_is_not_proven(folder):
    for example, sizes, said in (("softmax", ("R=1024", "N=1073741824"), b"2 blocks of softmax_k0, the fewest that prove"),
                                 ("reduce_all", ("N=1099511627776",), b"an element of y, which")):
        defines = [word for size in sizes for word in ("-D", size)]
        result = run(ROOT / f"examples/{example}.te", "--device", "h200", *defines, "--verify", "-o", "k.cu", folder=folder,
                     code=4)
        assert b"the proof takes too long" in result.stderr and said in result.stderr, result.stderr
        assert b"wrong" not in result.stderr and not (folder / "k.cu").exists()


def test_a_closed_pipe_is_no_death_and_no_news(folder):
    """`| head` reads what it wants and leaves: more than a pipe holds could not be written, and nobody misses it."""
    for words in ([MATMUL, "--device", "a100", "-o", "-"], [MATMUL, "--device", "a100", "-d", "op"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run([ROLLERC, *words], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        assert result.returncode == 4 and result.stderr == b"", (words, result.returncode, result.stderr)


def test_closed_standard_streams(folder):
    command = f"'{ROLLERC}' '{MATMUL}' --device a100 -o k.cu <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], cwd=folder).returncode == 0
    assert (folder / "k.cu").read_bytes().startswith(b"//rollerc: ")


# ---- the binary ----

def test_the_binary_is_hardened(folder):
    headers = subprocess.run(["readelf", "-hlWd", ROLLERC], capture_output=True, text=True).stdout
    if is_sanitized():
        raise common.Skip("a sanitizer build")
    assert "DYN (Position-Independent Executable" in headers
    assert "GNU_RELRO" in headers and "BIND_NOW" in headers
    assert re.search(r"GNU_STACK .* RW ", headers)


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    ROLLERC = os.path.abspath(options.rollerc)
    return common.run_tests(globals(), "cli", options.filter)


if __name__ == "__main__":
    sys.exit(main())
