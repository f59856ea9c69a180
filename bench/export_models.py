#!/usr/bin/env python3
"""Graphs of nine networks as PyTorch's exporter writes them, and the same networks as PyTorch runs them, without weights.

    python3 bench/export_models.py FOLDER [--only resnet50,bert] [--batches 1]

Needs PyTorch, torchvision, transformers, onnx and onnxscript, no GPU. Each network and batch becomes a folder with
    graph.onnx     weights as external data, in a file that model_peers.py draws
    module.py      the code that torch.export gives: what PyTorch and torch.compile are timed with
    weights.json   of each weight its name, shape, place in that file, and which numbers it is drawn from; those that module.py takes first
    inputs.json    of each input its name, shape and type, and how many values an index may have
Norms behind convolutions are folded into them first. The exporter does so, too: then all have the same weights, and PyTorch no more
kernels than it needs.
"""
import argparse
import json
import os
import pathlib
import sys
import warnings

import onnx
import torch
import torchvision.models as vision
import transformers
from onnx import numpy_helper
from torch.fx.experimental.optimization import fuse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model_peers import draw   # noqa: E402

ALIGNMENT = 256
SMALL_BYTES = 4096        # constants up to here are no weights
MOST_BYTES = 1 << 22      # of a constant that stays in the graph: a mask
LEAST_DEVIATION = 0.02    # what is initialised to one value, as biases are, shall be seen if it is forgotten


class Hidden(torch.nn.Module):
    """A language model from its indices to its last tensor."""

    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, input_ids):
        return self.model(input_ids, return_dict=False, **self.options)[0]


def scaled(module, given):
    """Each convolution's and layer's result has the deviation 1: else what a network makes of an image is soon lost in its biases."""
    def scale(layer, _, result):
        deviation = result.std()
        layer.weight.div_(deviation)
        return result / deviation

    layers = [layer for layer in module.modules() if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
    hooks = [layer.register_forward_hook(scale) for layer in layers]
    with torch.no_grad():
        module(given)
    for hook in hooks:
        hook.remove()
    return module


def image_model(make, size=224):
    return lambda batch: (scaled(fuse(make().eval()), torch.randn(1, 3, size, size)), torch.randn(batch, 3, size, size))


def language_model(make, tokens, words):
    return lambda batch: (make().eval(), torch.randint(0, words, (batch, tokens)))


def without_masks(library):
    """Sentences without padding: outside of an export the library makes no mask for them by itself."""
    library.create_causal_mask = library.create_bidirectional_mask = lambda *_, **__: None


def bert():
    return Hidden(transformers.BertModel(transformers.BertConfig(attn_implementation="sdpa"), add_pooling_layer=False))


def gpt2():
    return Hidden(transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="sdpa")), use_cache=False)


# Of each network how it is made, and its batches.
MODELS = {
    "resnet50": (image_model(vision.resnet50), (1, 32)),
    "mobilenet_v2": (image_model(vision.mobilenet_v2), (1, 32)),
    "efficientnet_b0": (image_model(vision.efficientnet_b0), (1, 32)),
    "inception_v3": (image_model(lambda: vision.inception_v3(aux_logits=False, init_weights=False), 299), (1, 32)),
    "densenet121": (image_model(vision.densenet121), (1, 32)),
    "convnext_tiny": (image_model(vision.convnext_tiny), (1, 32)),
    "vit_b_16": (lambda batch: (vision.vit_b_16().eval(), torch.randn(batch, 3, 224, 224)), (1, 16)),
    "bert_128": (language_model(bert, 128, 30522), (1,)),
    "bert_384": (language_model(bert, 384, 30522), (8,)),
    "gpt2_512": (language_model(gpt2, 512, 50257), (1, 8)),
}


def weights_of(program):
    """{name: tensor} of all that the exported code takes before its inputs, in its order."""
    state, constants, found = program.state_dict, program.constants, {}
    for spec in program.graph_signature.input_specs:
        if spec.target is not None:
            found[spec.target] = state[spec.target] if spec.target in state else constants[spec.target]
    return found


def drawn_from(tensor):
    """What the module's own initialisation gives, as the numbers of a normal distribution."""
    if not tensor.is_floating_point():
        return {"values": tensor.flatten().tolist()}
    deviation = tensor.double().std(correction=0).item()
    return {"mean": tensor.double().mean().item(), "deviation": max(deviation, LEAST_DEVIATION), "positive": bool((tensor > 0).all())}


def is_drawn(tensor):
    return tensor.is_floating_point() and tensor.dim() > 0


class Outside:
    """The file that weights lie in, one after the other, as the graph's initialisers have them. The module gets those that are drawn:
    biases that are 0 would be left out of its graph."""

    def __init__(self, weights):
        self.weights, self.at, self.told = weights, 0, []
        for name, tensor in weights.items():
            self.told.append({"name": name, "shape": list(tensor.shape), **drawn_from(tensor)})
            if is_drawn(tensor):
                self.told[-1]["offset"] = self.take(tensor.numel())
                tensor.copy_(torch.from_numpy(draw(self.told[-1])))
        self.places = {entry["name"]: entry["offset"] for entry in self.told if "offset" in entry}

    def take(self, count):
        at, self.at = self.at, -(-(self.at + 4 * count) // ALIGNMENT) * ALIGNMENT
        return at

    def made_of_a_weight(self, tensor):
        """The exporter has transposed a matrix or repeated a vector: which one, its numbers say. None: neither."""
        values = torch.from_numpy(numpy_helper.to_array(tensor).copy())
        for name, weight in self.weights.items():
            for how, made in (("transposed", weight.t() if weight.dim() == 2 else weight), ("repeated", weight)):
                fits = made.dim() <= values.dim() and all(size in (1, whole) for size, whole in zip(made.shape[::-1], values.shape[::-1]))
                if weight.is_floating_point() and fits and torch.equal(made.expand(values.shape), values):
                    self.told.append({"name": tensor.name, "shape": list(values.shape), how: name, "offset": self.take(values.numel())})
                    return self.told[-1]["offset"]
        if values.numel() * 4 > MOST_BYTES:
            raise SystemExit(f"{tensor.name}, {list(values.shape)}, is no weight of the module")
        return None

    def place(self, tensor):
        """Where an initialiser lies; None: in the graph."""
        if tensor.name in self.places:
            return self.places[tensor.name]
        large = len(tensor.raw_data) > SMALL_BYTES and tensor.data_type == onnx.TensorProto.FLOAT
        return self.made_of_a_weight(tensor) if large else None


def send_outside(graph, outside):
    for node in graph.node:   # where in the module it comes from
        del node.metadata_props[:]
    for tensor in graph.initializer:
        place, length = outside.place(tensor), len(tensor.raw_data)
        if place is None:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in (("location", "weights.bin"), ("offset", place), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))


def export(folder, make, batch):
    torch.manual_seed(0)
    module, given = make(batch)
    with torch.no_grad():
        program = torch.export.export(module, (given,))
        outside = Outside(weights_of(program))
        graph = torch.onnx.export(program, dynamo=True, verbose=False).model_proto
    send_outside(graph.graph, outside)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, folder / "graph.onnx")
    (folder / "module.py").write_text(program.graph_module.code)
    (folder / "weights.json").write_text(json.dumps(outside.told))
    inputs = [{"name": graph.graph.input[0].name, "shape": list(given.shape), "dtype": "f32" if given.is_floating_point() else "i64",
               "values": None if given.is_floating_point() else int(given.max()) + 1}]
    (folder / "inputs.json").write_text(json.dumps(inputs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", help="networks, separated by commas")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    without_masks(transformers.models.bert.modeling_bert)
    without_masks(transformers.models.gpt2.modeling_gpt2)
    for name in options.only.split(",") if options.only else MODELS:
        make, batches = MODELS[name]
        for batch in batches:
            export(options.folder / f"{name}_b{batch}", make, batch)
            print(f"{name}, batch {batch}", flush=True)


if __name__ == "__main__":
    main()
