"""Every example's .cu is accepted by nvcc and by NVRTC without a warning, and two of them link. Needs no GPU. In NVRTC's PTX no
kernel touches memory before it waits for what its stream did before.

    python3 tests/nvcc_examples.py build/rollerc
    python3 tests/nvcc_examples.py build/rollerc --candidates 10 --devices h200     # all that are kept

For each CUDA device as a user compiles it, and with the macros that PyTorch sets for extensions, which take the half
operators away; where they change nothing that the compiler would see, once is enough. Skips, loudly, what the machine has
no compiler for.
"""
import argparse
import ctypes
import ctypes.util
import glob
import json
import os
import re
import shutil
import sys
import tempfile

import common

STRICT = ["-Xcompiler", "-Wall,-Wextra", "-Werror", "all-warnings"]
FLAVOURS = {
    "plain": [],
    "pytorch": ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
                "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"],
}
NVRTC_DEVICES = {"a100": "sm_80", "h200": "sm_90a"}
LINKED = ["matmul", "matmul_bias_gelu", "softmax"]         # two from one template, one from another
BESIDE = 12   # sources of one translation unit: half of the time of one alone is that of nvcc's own headers


class Nvrtc:
    """Compiles text as a user of NVRTC would: no include path, no host part."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, function, *arguments):
        return getattr(self.library, "nvrtc" + function)(*arguments)

    def result(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", program, ctypes.byref(size))
        result = ctypes.create_string_buffer(max(size.value, 1))
        self.call(f"Get{what}", program, result)
        return result.raw

    def compile_text(self, source, arch, name="kernel.cu", strict=False):
        """PTX, machine code and None, or None, None and the reason; `strict`: a warning is one."""
        program = ctypes.c_void_p()
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
        if self.call("CreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None) != 0:
            return None, None, "nvrtcCreateProgram failed"
        code = self.call("CompileProgram", program, 1, options)
        log = self.result(program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if strict and (warned := re.search(r"warning #.*", log)):
            code = warned[0]
        made = [self.result(program, what) for what in ("PTX", "CUBIN")] if code == 0 else [None, None]
        self.call("DestroyProgram", ctypes.byref(program))
        return *made, None if code == 0 else f"NVRTC says {code}: {' | '.join(log.splitlines())[:600]}"

    def compile(self, path, arch):
        """None or the reason."""
        with open(path, encoding="utf-8") as file:
            source = file.read()
        ptx, _, reason = self.compile_text(source, arch, os.path.basename(path), strict=True)
        return reason or touched_too_early(source, ptx.decode())


TOUCHES = re.compile(r"\b(?:ld|st|atom|red)\.(?:\w+\.)*global|"
                     r"\bcp\.(?:async|reduce)\b(?!\.(?:commit|wait|bulk\.(?:commit|wait)))")


COPIES = re.compile(r"\bcp\.async\b")
MAY_COPY = re.compile(r"\bcopy_early\(|\bFetch<Operand[AB], Tile[AB]>\(t\)\.begin\(")   # as bulk.cu and gemm.cu have it


def touched_too_early(source, ptx):
    """The kernel that touches global memory before it waits for what its stream did before, or None. The compiler may
    think that nobody else writes what is const and __restrict__. What no launch of the program writes may be copied."""
    bodies = dict(re.findall(r"\.entry (\w+)\(.*?\n\{(.*?)\n\}", ptx, re.DOTALL))
    for launch in json.loads(source.split("\n")[0][len("//rollerc: "):])["launches"]:
        kernel = launch["kernel"]
        own = source.split(f" {kernel}(", 1)[1].split("\n}", 1)[0]
        if "wait_for_earlier();" not in own:
            continue                                # nor does it begin early, or what it reads nobody here writes
        before = bodies[kernel][:bodies[kernel].index("griddepcontrol.wait")]
        before = COPIES.sub("", before) if MAY_COPY.search(own.split("wait_for_earlier();")[0]) else before
        if first := TOUCHES.search(before):
            return f"{kernel} touches memory before it waits: {first.group()}"
    return None


def find_nvrtc(nvcc):
    """The one beside nvcc, else the system's; None if there is neither."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else ""
    beside = [path for folder in ("lib64", "lib", "targets/*/lib")
              for path in sorted(glob.glob(os.path.join(root, folder, "libnvrtc.so*")))] if root else []
    for path in beside + [ctypes.util.find_library("nvrtc")]:
        try:
            return Nvrtc(path) if path else None
        except OSError:
            continue
    return None


def is_changed_by(macros, nvcc, arch, source):
    """Whether the preprocessor makes something else of the source with them, or fails."""
    texts = []
    for defines in ([], macros):
        made = f"{source[:-3]}.{len(texts)}.ii"
        if common.run([nvcc, f"-arch={arch}", *defines, "-E", source, "-o", made]):
            return True
        with open(made, "rb") as file:
            texts.append(file.read())
        os.unlink(made)
    return texts[0] != texts[1]


def compile_beside(nvcc, arch, flavour, sources, to):
    """None or the reason; all in one translation unit, and where that fails one by one."""
    unit = f"{to}.cu"
    with open(unit, "w", encoding="utf-8") as file:
        file.writelines(f'#include "{source}"\n' for source in sources)
    if FLAVOURS[flavour] and not is_changed_by(FLAVOURS[flavour], nvcc, arch, unit):
        return None   # the plain one is compiled
    reason = common.run([nvcc, f"-arch={arch}", *STRICT, *FLAVOURS[flavour], "-c", unit, "-o", f"{to}.o"])
    if not reason or len(sources) == 1:
        return reason
    alone = (compile_beside(nvcc, arch, flavour, [source], f"{to}.alone") for source in sources)
    return next((f"{os.path.basename(source)}: {why}" for source, why in zip(sources, alone) if why), f"beside each other: {reason}")


def link(nvcc, rollerc, folder):
    """Several emitted files in one shared object; each launcher is there and answers."""
    sources = []
    for name in LINKED:
        sources.append(os.path.join(folder, f"link_{name}.cu"))
        reason = common.run([rollerc, common.example_path(name), "--device", "a100", "--name", name,
                             "-o", sources[-1]])
        if reason:
            return reason
    library = os.path.join(folder, "linked.so")
    reason = common.run([nvcc, "-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", *sources, "-o", library])
    if reason:
        return reason
    loaded = ctypes.CDLL(library)
    for name, source in zip(LINKED, sources):
        workspace = getattr(loaded, name + "_workspace")
        workspace.restype = ctypes.c_size_t
        if workspace() != common.read_metadata(source)["workspace"]:
            return f"{name}_workspace() is not what its metadata says"
        getattr(loaded, name + "_launch")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollerc")
    parser.add_argument("--jobs", type=int, default=common.JOBS)
    parser.add_argument("--devices", nargs="*", default=common.CUDA_DEVICES, choices=common.CUDA_DEVICES)
    parser.add_argument("--only", nargs="*", help="these examples")
    parser.add_argument("--candidates", type=int, default=1, metavar="K", help="the first K of each, not the first alone")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    nvcc = shutil.which("nvcc")
    nvrtc = find_nvrtc(nvcc)
    for tool, found in (("nvcc", nvcc), ("NVRTC", nvrtc)):
        if not found:
            print(f"SKIPPED: {tool} is not here, nothing was compiled with it", flush=True)
    if not nvcc and not nvrtc:
        return 77

    names = args.only or sorted(common.example_sizes("ci"))
    cases = [("link",)] if nvcc else []
    kept = [str(rank + 1) for rank in range(args.candidates)]
    cases += [(name, device, "nvrtc", rank) for name in names for device in args.devices for rank in kept
              if nvrtc and device in NVRTC_DEVICES]
    cases += [(",".join(names[first:first + BESIDE]), device, flavour, rank) for first in range(0, len(names), BESIDE)
              for device in args.devices for flavour in FLAVOURS for rank in kept if nvcc]

    with tempfile.TemporaryDirectory() as folder:
        def check(case):
            if case == ("link",):
                return link(nvcc, args.rollerc, folder)
            these, device, how, rank = case
            sources = []
            for name in these.split(","):
                source = os.path.join(folder, ".".join((name, device, how, rank, "cu")))
                reason = common.run([args.rollerc, common.example_path(name), "--device", device, "--candidate", rank, "-o", source])
                if reason and f"there is no candidate {rank}:" not in reason:
                    return f"{name}: {reason}"
                sources += [] if reason else [source]
            if how != "nvrtc":
                to = os.path.join(folder, ".".join((these.split(",")[0], device, how, rank, "unit")))
                return compile_beside(nvcc, common.DEVICES[device], how, sources, to) if sources else None
            return next(filter(None, (nvrtc.compile(source, NVRTC_DEVICES[device]) for source in sources)), None)

        return common.check_all(cases, check, args.jobs, args.verbose)


if __name__ == "__main__":
    sys.exit(main())
