#!/usr/bin/env python3
"""rollerc as another project's CMake sees it: installed, found, kernels made when they must be and only then, removed again;
and its Debian package.

The project's target is C, so that no CUDA compiler is needed; where there is one, examples/cmake is built, too.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(Rollerc REQUIRED)
add_library(user STATIC user.c)
rollerc_add_kernel(user EXPR sums.te DEVICE a100 DEFINES N=1000 VERIFY)
rollerc_add_kernel(user EXPR sums.te DEVICE ./mine.yaml NAME wide DEFINES N=4096 R=3
                   OPTIONS --top-k 2 --templates ${CMAKE_CURRENT_SOURCE_DIR}/templates)
"""
SOURCE = """\
#include "sums.h"
#include "wide.h"
size_t bytes(void) { return sums_workspace() + wide_workspace(); }
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


def configure(source, build, prefix, generator, *more):
    run("cmake", "-S", source, "-B", build, "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}", *more)


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
    configure(source, build, prefix, generator)
    assert made_by(build) == {"sums", "wide"}
    assert made_by(build) == set(), "a second build makes kernels again"
    kernel = build / "user.kernels/wide.cu"
    assert '"shape":[3,4096]' in kernel.read_text()
    before = kernel.stat().st_mtime_ns
    for what, path, remark, made in (("device file", device, "# changed\n", {"wide"}),
                                     ("template", source / "templates/prelude.cuh", "// changed\n", {"wide"}),
                                     ("expression", source / "sums.te", "# changed\n", {"sums", "wide"})):
        append(path, remark)
        assert made_by(build) == made, f"a changed {what}"
        assert made_by(build) == set(), f"the second build after a changed {what} makes kernels again"
    assert kernel.stat().st_mtime_ns == before, "the same kernel: nothing is compiled again for it"
    (source / "sums.te").write_text(EXPRESSION.replace("sum[j]", "max[j]"))
    assert made_by(build) == {"sums", "wide"}, "a changed expression"
    (source / "sums.te").write_text(EXPRESSION.replace("sum[j]", "summ[j]"))
    assert "sums.te:3" in run("cmake", "--build", build, fails=True)
    (source / "CMakeLists.txt").write_text(PROJECT.replace("DEVICE a100 ", ""))
    assert "needs DEVICE" in run("cmake", build, fails=True)


def check_example(folder, prefix):
    build = folder / "example"
    configure(ROOT / "examples/cmake", build, prefix, "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=90a")
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
