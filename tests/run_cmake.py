#!/usr/bin/env python3
"""rollerc as another project's CMake sees it: installed, found, kernels made when they must be and only then, removed again;
and its Debian package.

A stand-in compiles the kernels, so that no CUDA compiler is needed; where there is one, examples/cmake is built, too.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CUDA)
find_package(Rollerc REQUIRED)
add_library(wide STATIC)
rollerc_add_kernel(wide EXPR sums.te DEVICE ./mine.yaml NAME wide DEFINES N=4096 R=3
                   OPTIONS --top-k 2 --templates ${CMAKE_CURRENT_SOURCE_DIR}/templates)
add_executable(user user.c)
target_link_libraries(user PRIVATE wide)
rollerc_add_kernel(user EXPR sums.te DEVICE a100 DEFINES N=1000 VERIFY)
"""
SOURCE = """\
#include "sums.h"
#include "wide.h"
int main(void) { return sums_launch(0, 0, 0, 0) + wide_launch(0, 0, 0, 0) + (int)(sums_workspace() + wide_workspace()); }
"""
# What nvcc is here: the C functions of an emitted file, and a note of what they were to be compiled for.
NVCC = """#!{python}
import json, re, subprocess, sys
words = sys.argv[1:]
source, output = [words[words.index(option) + 1] for option in ("-c", "-o")]
name = json.loads(open(source).readline().removeprefix("//rollerc: "))["name"]
with open("{notes}", "a") as notes:
    notes.write(json.dumps([name, *re.findall("arch=([a-z0-9_]+),code=.([a-z0-9_,]+)", " ".join(words))[0]]) + "\\n")
if "-MF" in words:
    open(words[words.index("-MF") + 1], "w").write(output + ": " + source + "\\n")
c = "int %s_launch(const void *a, void *b, void *c, void *d) {{ return !a - !b - !c + !d; }}\\nunsigned long %s_workspace(void) {{ return 0; }}\\n" % (name, name)
sys.exit(subprocess.run(["cc", "-c", "-x", "c", "-", "-o", output], input=c, text=True).returncode)
"""
EXPRESSION = """\
param R = 8  param N = 64
input x[R, N] : f32
y[i] = sum[j](x[i, j])
output y
"""


def run(*command, fails=False):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode != 0) == fails, f"{command}: exit {done.returncode}: {done.stdout}"
    return done.stdout


def made_by(build):
    """Names of the kernels that a build constructs."""
    return {line.split("Constructing ")[1].split()[0] for line in run("cmake", "--build", build).splitlines() if "Constructing" in line}


def configure(source, build, prefix, generator, *more, fails=False):
    return run("cmake", "-S", source, "-B", build, "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}", *more, fails=fails)


def stand_in(folder):
    """The options by which CMake takes the stand-in for nvcc without trying it out."""
    nvcc = folder / "nvcc"
    nvcc.write_text(NVCC.format(python=sys.executable, notes=folder / "notes"))
    nvcc.chmod(0o755)
    said = "#$ PATH=/usr/bin\n#$ LIBRARIES=-L/usr/lib\n#$ INCLUDES=-I/usr/include\n\n#$ gcc -L/usr/lib a.o\n"
    known = {"COMPILER": nvcc, "COMPILER_FORCED": 1, "COMPILER_ID": "NVIDIA", "COMPILER_ID_RUN": 1, "COMPILER_VERSION": "13.0.0",
             "COMPILER_PRODUCED_OUTPUT": said, "ARCHITECTURES": "75", "RUNTIME_LIBRARY": "None"}
    return [f"-DCMAKE_CUDA_{name}={value}" for name, value in known.items()]


def compiled(folder):
    """{kernel: (virtual architecture, code)} of what the stand-in was asked for since the last time."""
    notes = folder / "notes"
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    notes.unlink()
    return {name: (arch, code) for name, arch, code in lines}


def append(path, text):
    path.write_text(path.read_text() + text)


def check_rebuilds(folder, prefix, rollerc, generator):
    source, build = folder / generator, folder / f"{generator} build"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "user.c").write_text(SOURCE)
    (source / "sums.te").write_text(EXPRESSION)
    shutil.copytree(ROOT / "templates", source / "templates")
    device = source / "mine.yaml"
    device.write_text(run(rollerc, "--print-device", "h200"))
    configure(source, build, prefix, generator, *stand_in(folder))
    assert made_by(build) == {"sums", "wide"}
    assert compiled(folder) == {"sums": ("compute_80", "compute_80,sm_80"), "wide": ("compute_90a", "compute_90a,sm_90a")}
    run(build / "user")
    assert made_by(build) == set(), "a second build makes kernels again"
    kernel = build / "wide.kernels/wide.cu"
    assert '"shape":[3,4096]' in kernel.read_text()
    before = kernel.stat().st_mtime_ns
    for what, path, remark, made in (("device file", device, "# changed\n", {"wide"}),
                                     ("template", source / "templates/prelude.cuh", "// changed\n", {"wide"}),
                                     ("expression", source / "sums.te", "# changed\n", {"sums", "wide"})):
        append(path, remark)
        seen = made_by(build)
        assert seen == made, f"{generator}: a changed {what}: {seen}"
        assert made_by(build) == set(), f"the second build after a changed {what} makes kernels again"
    append(source / "templates/prelude.cuh", "// again\n")
    append(source / "CMakeLists.txt", "# changed\n")
    seen = made_by(build)
    assert "wide" in seen, f"{generator}: a changed template while CMake configures again: {seen}"
    assert kernel.stat().st_mtime_ns == before, "the same kernel: nothing is compiled again for it"
    (source / "sums.te").write_text(EXPRESSION.replace("sum[j]", "max[j]"))
    assert made_by(build) == {"sums", "wide"}, "a changed expression"
    (source / "sums.te").write_text(EXPRESSION.replace("sum[j]", "summ[j]"))
    assert "sums.te:3" in run("cmake", "--build", build, fails=True)
    (source / "CMakeLists.txt").write_text(PROJECT.replace("DEVICE a100 ", ""))
    assert "needs DEVICE" in run("cmake", build, fails=True)
    (source / "sums.te").write_text(EXPRESSION)
    (source / "CMakeLists.txt").write_text(PROJECT)
    compiled(folder)
    device.write_text(run(rollerc, "--print-device", "rtx4090"))
    run("cmake", "--build", build)
    assert compiled(folder)["wide"] == ("compute_89", "compute_89,sm_89"), "the device file has another architecture now"


def check_refusals(folder, prefix):
    """What cannot be built is refused when the project is configured, with the mend."""
    source = folder / "refused"
    source.mkdir()
    (source / "sums.te").write_text(EXPRESSION)

    def refused(text, *more):
        (source / "CMakeLists.txt").write_text(text)
        shutil.rmtree(source / "build", ignore_errors=True)
        said = configure(source, source / "build", prefix, "Unix Makefiles" if shutil.which("make") else "Ninja", *more, fails=True)
        return " ".join(said.split())   # CMake breaks lines
    cxx = ("cmake_minimum_required(VERSION 3.25)\nproject(app {})\nfind_package(Rollerc REQUIRED)\nfile(WRITE main.cpp \"int main() {{}}\")\n"
           "add_executable(app main.cpp)\nrollerc_add_kernel(app EXPR sums.te DEVICE {})\n")
    said = refused(cxx.format("CXX", "h200"))
    assert "kernels for h200 are CUDA, which this project does not compile" in said, said
    assert "Write project(app LANGUAGES CXX CUDA), or enable_language(CUDA) before." in said, said
    assert "are HIP, which this project does not compile" in refused(cxx.format("CXX", "mi50"))
    cuda = stand_in(folder)
    assert "DEVICE h2000: rollerc: error: unknown device 'h2000'; did you mean 'h200'?" in refused(cxx.format("CXX CUDA", "h2000"), *cuda)
    said = refused(cxx.format("CXX CUDA", "h200") + "rollerc_add_kernel(app EXPR sums.te DEVICE a100 NAME other)\n", *cuda)
    assert "app has kernels for architecture 90a, and a100 is of 80. Give each a library of its own" in said, said


def check_example(folder, prefix):
    build = folder / "example"
    configure(ROOT / "examples/cmake", build, prefix, "Ninja")
    assert "warning" not in run("cmake", "--build", build)
    assert "no work to do" in run("cmake", "--build", build)


def check_pkg_config(prefix):
    """What it says must hold wherever the files went."""
    folder = next(prefix.rglob("rollerc.pc")).parent
    ask = ("env", f"PKG_CONFIG_PATH={folder}", "pkg-config")
    assert run(*ask, "--modversion", "rollerc").strip() in run(prefix / "bin/rollerc", "--version")
    said = {name: pathlib.Path(run(*ask, f"--variable={name}", "rollerc").strip()).resolve() for name in ("bindir", "datadir")}
    assert said == {"bindir": prefix / "bin", "datadir": prefix / "share/rollerc"}, said


def check_package(folder, ours):
    run("cpack", "-G", "DEB", "--config", ours / "CPackConfig.cmake", "-B", folder / "package")
    root = folder / "package/root"
    run("dpkg-deb", "-x", next((folder / "package").glob("rollerc_*.deb")), root)
    prefix = root / "usr"
    assert run(prefix / "bin/rollerc", "--version") and list(prefix.glob("share/man/man1/rollerc.1*"))
    check_pkg_config(prefix)
    source = folder / "packaged"
    source.mkdir()
    (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES NONE)\n"
                                           "find_package(Rollerc 0.2 REQUIRED)\n")
    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True, type=os.path.abspath)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, ours = pathlib.Path(name).resolve(), pathlib.Path(args.rollerc).parent
        prefix = folder / "prefix"
        run("cmake", "--install", ours, "--prefix", prefix)
        try:
            assert run(prefix / "bin/rollerc", "--version")
            check_pkg_config(prefix)
            for generator, tool in {"Ninja": "ninja", "Unix Makefiles": "make"}.items():
                if shutil.which(tool):
                    check_rebuilds(folder, prefix, args.rollerc, generator)
                else:
                    print(f"NOT TESTED: there is no {tool} here")
            check_refusals(folder, prefix)
            if shutil.which("nvcc"):
                check_example(folder, prefix)
            else:
                print("NOT TESTED: there is no nvcc here, so examples/cmake was not built")
            if shutil.which("cpack") and shutil.which("dpkg-deb"):
                check_package(folder, ours)
            else:
                print("NOT TESTED: there is no cpack or dpkg-deb here, so no .deb was made")
        finally:   # of what was installed, and not of the package
            run("cmake", "-P", ours / "Uninstall.cmake")
        left = [path for path in prefix.rglob("*") if path.is_file()]
        assert not left, f"left behind by the uninstall target: {left}"
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
