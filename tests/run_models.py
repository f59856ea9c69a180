#!/usr/bin/env python3
"""Whole models from ONNX are what ONNX Runtime's CPU provider makes of them: the nine light CNNs of the package `onnx`, with weights
of our own seed, a BERT-like and a ViT-like graph.

    python3 tests/run_models.py --rollerc build/rollerc [--only REGEX] [--all] [--keep FOLDER]

Small ones are run whole under the CPU interpreter. Of large ones each definition is judged by itself, on what ONNX Runtime gives
of the tensors that it reads (tests/differential/layer_values.c). ONNX Runtime is of PyPI: `./setup test` puts it into build/pypi
where there is a network, and without it nothing is tested here. --all adds the largest ones.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common

sys.path.insert(0, os.path.join(os.path.dirname(common.TESTS), "build", "pypi"))
try:
    import numpy
    import onnx
    import onnx_models
    import onnxruntime
    from onnx_values import Tensor, tolerance
except ImportError as error:
    print(f"NOT TESTED: models against ONNX Runtime, since {error.name} is not here (./setup test with a network)")
    sys.exit(77)

WHOLE, FEW, LAYERS = "whole", "whole, which takes long", "layers"
MODELS = {   # name: (how it is compared, what makes it)
    "bert-small": (WHOLE, lambda: onnx_models.bert(2, 10, 32, 4, 2, 50)),
    "vit-small": (WHOLE, lambda: onnx_models.vit(2, 16, 4, 24, 3, 2, 10)),
    "resnet-small": (WHOLE, lambda: onnx_models.resnet50(1, 32, (4, 6, 8, 10), (1, 2, 1, 1), 10)),
    "squeezenet-small": (FEW, lambda: onnx_models.light("squeezenet", 32)),
    "mobile-small": (WHOLE, lambda: onnx_models.mobile(2, 16, 8, 5)),
    "gpt2-small": (WHOLE, lambda: onnx_models.gpt2(2, 10, 32, 4, 2, 50)),
    "gpt2-masked-small": (WHOLE, lambda: onnx_models.gpt2(1, 40, 16, 2, 1, 50, onnx_models.added_mask)),   # no constant of 1024 elements is folded
    "mobile-v2-small": (WHOLE, lambda: onnx_models.mobile_v2(2, 16, 4, 2, 5)),
    "efficient-small": (WHOLE, lambda: onnx_models.efficient(1, 16, 4, 2, 5)),
    "convnext-small": (WHOLE, lambda: onnx_models.convnext(2, 16, 16, 2, 5)),
    "dense-small": (WHOLE, lambda: onnx_models.dense(2, 16, 8, 8, 2, 5)),
    "bert": (LAYERS, lambda: onnx_models.bert(1, 128, 768, 12, 12, 30522)),
    "vit": (LAYERS, lambda: onnx_models.vit(1, 224, 16, 768, 12, 12, 1000)),
    "resnet50-trained": (LAYERS, onnx_models.resnet50),
    **{name: (LAYERS, lambda name=name: onnx_models.light(name)) for name in onnx_models.LIGHT},
}
LARGEST = ("bert", "vit", "vgg19")   # 340 to 570 MB of weights
# Options of the importer under which whole models are judged, and how far the result may be from that of f32, as a part of the largest
# value. f32: what sums in another order add up to over the layers of a small model. f16 and bf16: some twenty roundings of activations
# of half a unit, 2^-12 and 2^-9, one behind the other, most of which do not add up; a wrong order or a lost statistic errs by the whole.
MODES = {
    "f32": ([], 1e-4),
    "f32-nhwc": (["--layout", "nhwc"], 1e-4),
    "f16": (["--precision", "f16"], 16 * 2 ** -11),
    "f16-nchw": (["--precision", "f16", "--layout", "nchw"], 16 * 2 ** -11),
    "bf16": (["--precision", "bf16"], 16 * 2 ** -8),
}
MODES_OF = {WHOLE: tuple(MODES), FEW: ("f32-nhwc", "f16"), LAYERS: ("f32",)}


def inputs_of(model):
    draw = numpy.random.default_rng(7)
    given = {}
    for value in model.graph.input:
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        is_ids = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        given[value.name] = draw.integers(0, 2 if "mask" in value.name else 50, shape) if is_ids \
            else draw.standard_normal(shape, "f4")
    return given


def values_of(model, given, every):
    """{name: array} of the outputs, or of every value, as ONNX Runtime makes them without rewriting the graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if every:
        shown = {value.name for value in copy.graph.output}
        copy.graph.output.extend(onnx.ValueInfoProto(name=name) for node in copy.graph.node for name in node.output
                                 if name and name not in shown)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, given)))


class Work:
    """One model, in a folder of its own."""

    def __init__(self, args, folder, name):
        self.rollerc, self.folder, self.name, self.expected = args.rollerc, folder, name, None
        self.tools = os.path.join(os.path.dirname(os.path.abspath(args.rollerc)), "tests")
        self.model, self.judged = MODELS[name][1](), {}
        self.given = inputs_of(self.model)
        onnx.save(self.model, folder / "model.onnx")

    def take(self, mode):
        folder = self.folder
        command = [self.rollerc, "import", folder / "model.onnx", "-o", folder / "model.te", "--weights", folder / "weights", *MODES[mode][0]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        assert done.returncode == 0, f"the importer ends with {done.returncode}: {done.stdout[:600]}"

    def imported(self):
        """What two modes may have in common: the layout of a model without images is no matter."""
        return (self.folder / "model.te").read_bytes(), (self.folder / "weights").read_bytes()

    def run(self, tool, words, text):
        done = subprocess.run([os.path.join(self.tools, tool), *words], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout.strip()

    def compare_whole(self, mode):
        self.expected = expected = self.expected or list(values_of(self.model, self.given, every=False).values())
        (self.folder / "in").write_bytes(b"".join(numpy.ascontiguousarray(array).tobytes() for array in self.given.values()))
        files = [str(self.folder / name) for name in ("model.te", "in", "weights", "out")]
        _, said = self.run("given_programs", [], "\t".join([self.name, *files]) + "\n")
        assert said.startswith(f"ok {self.name}: "), said[:600]
        made = numpy.frombuffer((self.folder / "out").read_bytes(), "f4", count=sum(array.size for array in expected))
        wanted = numpy.concatenate([array.reshape(-1) for array in expected])
        error = abs(made - wanted).max() / abs(wanted).max()
        assert error <= MODES[mode][1], f"the largest error is {error:.2g} of the largest value"
        return f"whole, the largest error is {error:.2g} of the largest value"

    def compare_layers(self):
        values = {**self.given, **values_of(self.model, self.given, every=True)}
        lines = []
        for i, (name, array) in enumerate(values.items()):
            (self.folder / str(i)).write_bytes(numpy.ascontiguousarray(array).tobytes())
            lines.append(f"{name}\t{self.folder / str(i)}\n")
        code, said = self.run("layer_values", [self.folder / "model.te", self.folder / "weights"], "".join(lines))
        assert code == 0, said[:600]
        judged = int(said.split()[0])
        assert judged >= 0.7 * self.operators(), f"only {judged} definitions of {self.operators()} nodes have a value of ONNX Runtime's"
        return said

    def operators(self):
        moves = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Dropout", "Identity")   # become views
        return sum(node.op_type not in moves for node in self.model.graph.node)


def judge(name, how, work, mode):
    """None and what is to be said, or what is wrong."""
    try:
        work.take(mode)
        known = work.judged.setdefault(work.imported(), mode)
        if known != mode:
            return None, f"the same program as {known}"
        said = work.compare_layers() if how == LAYERS else work.compare_whole(mode)
    except AssertionError as error:
        return str(error), ""
    return None, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True, help="given_programs and layer_values lie in tests/ beside it")
    parser.add_argument("--only", default="", help="models whose name holds this regular expression")
    parser.add_argument("--all", action="store_true", help="the largest ones, too")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for models, programs and values")
    args = parser.parse_args()
    tally = common.Tally(verbose=True)
    for name, (how, _) in MODELS.items():
        if not re.search(args.only, name) or (name in LARGEST and not (args.all or args.only)):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            folder = args.keep / name if args.keep else pathlib.Path(folder)
            folder.mkdir(parents=True, exist_ok=True)
            work = Work(args, folder, name)
            for mode in MODES_OF[how]:
                reason, said = judge(name, how, work, mode)
                tally.add(f"{name} ({mode})", reason, f"{said}; {time.monotonic() - started:.0f} s")
    return tally.exit_code()


if __name__ == "__main__":
    sys.exit(main())
