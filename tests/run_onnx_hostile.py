#!/usr/bin/env python3
"""Models from strangers: whatever a file holds, the importer says what is wrong, with exit code 1, writes nothing, and takes no
more than some seconds and megabytes. One test function per behaviour; at the end, how fast a large model is read."""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys

import common
from onnx_model import field, varint

try:
    import numpy
    import onnx
    import onnx_models
    from onnx_bad_nodes import BAD_INTS, BAD_NODES, node
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"NOT TESTED: hostile models, since {error.name} is not here (python3-onnx)")
    sys.exit(77)

ROLLERC = ""
SECONDS, MEGABYTES = 5, 1024   # of processor time and address space that any small file may take
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


# Moves a cursor, or turns the direction of writing: what is shown would not be what is there.
NOT_SHOWN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


# ---- running it ----

def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start(path, *options):
    """Imports a file: the completed process. What is written lies in the folder `out` beside it."""
    out = pathlib.Path(path).parent / "out"
    out.mkdir(exist_ok=True)
    command = [ROLLERC, "import", path, "-o", out / "m.te", "--weights", out / "m.weights", *options]
    return subprocess.run(command, capture_output=True, timeout=60, preexec_fn=limit)


def bytes_of(model):
    return model if isinstance(model, bytes) else model.SerializeToString()


def import_of(folder, model, *options):
    path = folder / "m.onnx"
    path.write_bytes(bytes_of(model))
    return start(path, *options)


def accepted(folder, model, *options):
    """The program's text."""
    done = import_of(folder, model, *options)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.decode()[:600]}"
    return (folder / "out" / "m.te").read_text()


def check_refusal(folder, done, pattern, code=1, longest=8000):
    said = done.stderr.decode(errors="strict")
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}: {said[:600]}"
    assert re.search(pattern, said), f"/{pattern}/ is not in: {said[:600]}"
    assert len(said) < longest and not NOT_SHOWN.search(said), f"no plain short text: {said[:600]!r}"
    ours = all(re.match(r"rollerc: |\S*m.onnx, as |  ", line) for line in said.splitlines())
    assert code != 1 or ours, f"a line of a stranger: {said[:600]!r}"
    assert not list((folder / "out").iterdir()), "something was written"


def refused(folder, model, pattern, *options, code=1):
    check_refusal(folder, import_of(folder, model, *options), pattern, code)


# ---- making models ----

def value(name, shape, kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs=None, outputs=None, tensors=(), opset=17, functions=(), domains=()):
    inputs = [value("x", [2, 3])] if inputs is None else inputs
    outputs = [value("y", None)] if outputs is None else outputs
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


def with_weight(edit, shape=(2, 3)):
    """x + w, of which `edit` changes the tensor w."""
    tensor = numpy_helper.from_array(numpy.arange(6, dtype="f4").reshape(2, 3) + 0.5, "w")
    model = model_of([node("Add", ["x", "w"], ["y"])], tensors=[tensor])
    edit(model.graph.initializer[0])
    return model


def nested(depth, *numbers):
    """Messages within each other, by the numbers of their fields from the outside inwards, again and again."""
    parts, length = [], 0
    for level in range(depth * len(numbers) - 1, -1, -1):
        head = varint(numbers[level % len(numbers)] << 3 | 2) + varint(length)
        parts.append(head)
        length += len(head)
    return b"".join(reversed(parts))


SMALL = [node("MatMul", ["x", "w"], ["m"], name="first"), node("Relu", ["m"], ["y"])]


def small():
    return model_of(SMALL, tensors=[numpy_helper.from_array(numpy.arange(12, dtype="f4").reshape(3, 4), "w")])


# ---- bytes that are no model ----

def test_good_one_is_taken(folder):
    text = accepted(folder, small())
    assert "output y" in text and (folder / "out/m.weights").read_bytes() == numpy.arange(12, dtype="f4").tobytes()


def test_nested_graphs(folder):
    for depth in (20000, 200):   # graph, node, attribute, graph …
        refused(folder, b"\x08\x08" + field(7, nested(depth, 1, 5, 6)), "within each other|nest")
    refused(folder, field(7, field(1, field(5, nested(20000, 14, 7, 4)))), "within each other|nest|know|no ONNX")   # types of sequences
    refused(folder, nested(20000, 20, 1, 1, 5, 6), "within each other|nest|know|no ONNX")   # graphs of training
    refused(folder, b"\x3b" * 20000, "no ONNX")   # groups, which protobuf has given up


def test_prefixes(folder):
    data = bytes_of(small())
    for length in range(len(data)):
        done = import_of(folder, data[:length])
        assert done.returncode == 1 and done.stderr, f"exit code {done.returncode} of the first {length} bytes"
        assert not list((folder / "out").iterdir()), length


def test_changed_bytes(folder):
    data = bytes_of(small())
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xff):
            done = import_of(folder, data[:at] + bytes([data[at] ^ flip]) + data[at + 1:])
            assert done.returncode in (0, 1), f"exit code {done.returncode}: byte {at} ^ {flip}: {done.stderr[:300]}"


def test_lengths_that_overflow(folder):
    for length in (1 << 31, (1 << 32) - 1, (1 << 63), (1 << 64) - 1):
        refused(folder, varint(7 << 3 | 2) + varint(length) + b"xxxx", "no ONNX model")
    refused(folder, b"\xff" * 40, "no ONNX model")


def test_other_files(folder):
    for name, data in (("empty", b""), ("text", b"input x[4] : f32\n"), ("zeros", bytes(1000)), ("zip", b"PK\x03\x04" + bytes(100))):
        refused(folder, data, "is no ONNX model|does not know")
    (folder / "out").mkdir(exist_ok=True)
    check_refusal(folder, start(folder / "missing.onnx"), "missing.onnx.*No such file")
    (folder / "folder.onnx").mkdir()
    check_refusal(folder, start(folder / "folder.onnx"), "no regular file")
    os.mkfifo(folder / "pipe.onnx")
    check_refusal(folder, start(folder / "pipe.onnx"), "no regular file")


def test_unknown_fields_of_meaning(folder):
    plain = node("Relu", ["x"], ["y"]).SerializeToString()
    x, y = (field(number, value(name, [2, 3]).SerializeToString()) for number, name in ((11, "x"), (12, "y")))
    overload, attributes = field(8, b"other"), field(25, field(1, b"f") + field(11, field(1, b"alpha")))
    for node_more, model_more, what in ((overload, b"", "field 8 of NodeProto"), (b"", attributes, "field 11 of FunctionProto")):
        graph = field(7, field(1, plain + node_more) + x + y)
        refused(folder, b"\x08\x0a" + graph + field(8, b"\x10\x11") + model_more, what)


# ---- tensors ----

def test_sizes_of_weights(folder):
    def dims(*sizes):
        def edit(tensor):
            tensor.dims[:] = sizes
        return edit

    for sizes in ([-2, -3], [-1, 6], [1 << 62, 4], [1 << 32, 1 << 32], [1 << 40, 1 << 40, 1 << 40], [2, 4], [6, 2], [1] * 9,
                  [(1 << 63) - 1], [-(1 << 63)], [2, 3, 0]):
        refused(folder, with_weight(dims(*sizes)), "'w'|\\[2, 3, 0\\]")
    for sizes in ([-2, 3], [1 << 41, 3], [1 << 62, 1 << 62]):
        refused(folder, model_of([node("Relu", ["x"], ["y"])], [value("x", sizes)]), "'?x'?|bind|size|shape")


def test_contents_of_weights(folder):
    def raw(data):
        def edit(tensor):
            tensor.raw_data = data
        return edit

    def none(tensor):
        tensor.ClearField("raw_data")

    def floats(count):
        def edit(tensor):
            none(tensor)
            tensor.float_data[:] = [1.5] * count
        return edit

    def kind(number):
        def edit(tensor):
            tensor.data_type = number
        return edit

    for edit in (raw(b""), raw(bytes(23)), raw(bytes(25)), none, floats(5), floats(7), kind(0), kind(8), kind(99), kind(14)):
        refused(folder, with_weight(edit), "'?w'?")
    accepted(folder, with_weight(floats(6)))


def external(location, offset=None, length=None):
    def edit(tensor):
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", offset), ("length", length)):
            if text is not None:
                tensor.external_data.add(key=key, value=str(text))
    return edit


def test_external_data(folder):
    room = folder / "room"
    (room / "below").mkdir(parents=True)
    data = numpy.arange(64, dtype="f4").tobytes()
    for path in (room / "data.bin", room / "below/data.bin", folder / "secret.bin"):
        path.write_bytes(data)
    (room / "link.bin").symlink_to(folder / "secret.bin")
    (room / "away").symlink_to(folder)
    os.mkfifo(room / "pipe.bin")
    accepted(room, with_weight(external("data.bin", 16, 24)))
    assert (room / "out/m.weights").read_bytes() == data[16:40]
    accepted(room, with_weight(external("below/data.bin", 3, 24)))
    assert (room / "out/m.weights").read_bytes() == data[3:27]
    for name in (room / "out").iterdir():
        name.unlink()
    for location in ("../secret.bin", "below/../../secret.bin", str(folder / "secret.bin"), "link.bin", "away/secret.bin", "missing.bin",
                     "pipe.bin", "below", ".", "", "/dev/zero", "data.bin/../../secret.bin", "data\x01.bin", "a" * 5000):
        refused(room, with_weight(external(location, 0, 24)), "'w'|external|regular file")
    for offset, length in ((-4, 24), (1 << 62, 24), (240, 24), (0, -24), (0, 20), (0, 1 << 62), ((1 << 63) - 1, 24), ("x", 24),
                           (0, "24 "), ("9" * 40, 24), (0, 28)):
        refused(room, with_weight(external("data.bin", offset, length)), "'?w'?|external")
    refused(room, with_weight(external(None)), "'?w'?|external")


# ---- graphs ----

def test_cycles(folder):
    refused(folder, model_of([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]), "'?b'?")
    refused(folder, model_of([node("Add", ["x", "y"], ["y"])]), "'?y'?")


def test_names_twice(folder):
    relu = node("Relu", ["x"], ["y"])
    one = numpy_helper.from_array(numpy.ones(3, "f4"), "w")
    refused(folder, model_of([relu, node("Exp", ["x"], ["y"])]), "'?y'?")
    refused(folder, model_of([node("Split", ["x"], ["y", "y"], axis=0)]), "'?y'?")
    refused(folder, model_of([node("Exp", ["y"], ["x"]), relu]), "'?[xy]'?")
    refused(folder, model_of([relu], [value("x", [2, 3]), value("x", [3, 2])]), "'?x'?")
    refused(folder, model_of([node("Add", ["x", "w"], ["y"])], tensors=[one, one]), "'?w'?")
    refused(folder, model_of([node("Exp", ["x"], ["w"]), node("Add", ["x", "w"], ["y"])], tensors=[one]), "'?w'?")


def test_what_is_missing(folder):
    relu = node("Relu", ["x"], ["y"])
    refused(folder, model_of([relu], outputs=[]), "output")
    refused(folder, model_of([]), "'?y'?")
    refused(folder, model_of([node("Relu", ["z"], ["y"])]), "'?z'?")
    refused(folder, model_of([node("Relu", [], ["y"])]), "Relu")
    refused(folder, model_of([node("Relu", [""], ["y"])]), "Relu")
    refused(folder, model_of([node("", ["x"], ["y"])]), "y|operator")
    model = model_of([relu])
    del model.opset_import[:]
    refused(folder, model, "opset|version")
    for version in (0, -1, 10000):
        model.opset_import.extend([helper.make_opsetid("", version)])
        refused(folder, model, "opset|version")
        del model.opset_import[:]


def test_unknown_operators(folder):
    refused(folder, model_of([node("Frobnicate", ["x"], ["y"])]), "Frobnicate")
    refused(folder, model_of([node("Relu", ["x"], ["y"], domain="com.stranger")]), "com.stranger")
    refused(folder, model_of([node("Relu", ["x"], ["y"], domain="com.stranger")], domains=["com.stranger"]), "com.stranger")


def test_many_bad_nodes(folder):
    for count, rest in ((3, 0), (20, 0), (21, 1), (1000, 980)):
        bad = [node(f"Strange{i}", ["x"], [f"y{i}"], name=f"bad{i}") for i in range(count)]
        done = import_of(folder, model_of(bad, outputs=[value(f"y{i}", None) for i in range(count)]))
        check_refusal(folder, done, "Strange0")
        said = done.stderr.decode()
        assert len(set(re.findall(r"Strange\d+", said))) == min(count, 20), said
        assert bool(re.search(rf"\b{rest}\b (more|others?|nodes)", said)) == (rest > 0), said


def test_bad_nodes_hide_no_others(folder):
    """What reads the output of a bad node is not called bad for that."""
    nodes = [node("Strange", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Odd", ["b"], ["c"]), node("Add", ["a", "c"], ["y"])]
    done = import_of(folder, model_of(nodes))
    check_refusal(folder, done, "Strange")
    assert "Odd" in done.stderr.decode() and not re.search("Relu|Add", done.stderr.decode()), done.stderr.decode()


def test_unbound_symbols(folder):
    inputs = [value("x", ["batch", 3, "height"]), value("z", ["batch", 3, None])]
    model = model_of([node("Add", ["x", "z"], ["y"])], inputs)
    done = import_of(folder, model)
    check_refusal(folder, done, "batch")
    said = done.stderr.decode()
    assert "height" in said and re.search(r"'?x'?", said) and re.search(r"'?z'?", said), said
    refused(folder, model, "height", "--bind", "batch=2")
    model = model_of([node("Relu", ["x"], ["y"])], [value("x", ["batch", 3, "height"])])
    text = accepted(folder, model, "--bind", "batch=2", "--bind", "height=5")
    assert "[2, 3, 5]" in text, text


def test_bindings(folder):
    model = model_of([node("Relu", ["x"], ["y"])], [value("x", ["batch", 3])])
    for words, code in ((["batch=0"], (1, 2)), (["batch=-1"], (1, 2)), (["batch=two"], (1, 2)), (["batch"], (2,)), (["=3"], (1, 2)),
                        (["batch=9223372036854775808"], (1, 2)), (["batch=4611686018427387904"], (1, 2)), (["batch=1,2"], (1, 2)),
                        (["batch=2", "nothing=3"], (1, 2)), (["batch=2.5"], (1, 2))):
        done = import_of(folder, model, *(word for text in words for word in ("--bind", text)))
        assert done.returncode in code, f"{words}: exit code {done.returncode}: {done.stderr.decode()}"
        check_refusal(folder, done, "batch|nothing|bind", done.returncode)


def test_bad_attributes_and_shapes(folder):
    inputs = [value("x", [2, 3]), value("p", [1, 4, 8, 8]), value("k", [5, 4, 3, 3])]
    for bad in BAD_NODES:
        try:
            refused(folder, model_of([bad], inputs), bad.op_type)
        except AssertionError as error:
            raise AssertionError(f"{helper.printable_node(bad)[:200]}: {error}") from None


def test_bad_integers(folder):
    for op, ints in BAD_INTS:
        tensor = numpy_helper.from_array(numpy.array(ints, "i8"), "w")
        try:
            refused(folder, model_of([node(op, ["x", "w"], ["y"])], tensors=[tensor]), op)
        except AssertionError as error:
            raise AssertionError(f"{op} {ints}: {error}") from None


def test_types_that_contradict(folder):
    """What only the language finds wrong is told before anything is written."""
    kinds = [value("x", [2, 3], I64), value("z", [2, 3])]
    refused(folder, model_of([node("Add", ["x", "z"], ["y"])], kinds), "does not become i64")


def test_functions_that_call_themselves(folder):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for callee in (["f"], ["g", "f"]):
        functions = [helper.make_function("own", name, ["a"], ["b"], [node(then, ["a"], ["b"], domain="own")], imports)
                     for name, then in zip(["f", *callee[:-1]], callee)]
        refused(folder, model_of([node("f", ["x"], ["y"], domain="own")], functions=functions, domains=["own"]), "itself|nest|deep|f")


def test_functions_that_double(folder):
    """Thirty functions that each call the next one twice are a billion nodes."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def twice(then):
        return [node(then, ["a"], ["c"], domain="own"), node(then, ["c"], ["b"], domain="own")]

    functions = [helper.make_function("own", f"f{i}", ["a"], ["b"], twice(f"f{i + 1}"), imports) for i in range(30)]
    functions.append(helper.make_function("own", "f30", ["a"], ["b"], [node("Relu", ["a"], ["b"])], imports))
    refused(folder, model_of([node("f0", ["x"], ["y"], domain="own")], functions=functions, domains=["own"]),
            "has more than 131072 nodes")


def test_repeats_that_grow(folder):
    """Sizes that double with each node end with a message, not with memory."""
    twice = numpy_helper.from_array(numpy.array([2, 2], "i8"), "w")
    nodes = [node("Tile", [f"v{i}" if i else "x", "w"], [f"v{i + 1}" if i < 59 else "y"]) for i in range(60)]
    refused(folder, model_of(nodes, tensors=[twice]), "Tile")


def test_constants_that_are_not_folded(folder):
    """A sum over 2^39 elements that are alike, and a hundred of 2^20, are not worked out by the importer."""
    for count, sizes in ((1, [1 << 20, 1 << 19]), (100, [1 << 10, 1 << 10])):
        shape = numpy_helper.from_array(numpy.array(sizes, "i8"), "w")
        nodes = [node("ConstantOfShape", ["w"], ["c"])]
        for i in range(count):
            nodes += [node("ReduceSum", ["c"], [f"s{i}"], keepdims=0), node("Add", [f"a{i - 1}" if i else "x", f"s{i}"], [f"a{i}"])]
        nodes.append(node("Relu", [f"a{count - 1}"], ["y"]))
        assert "sum[" in accepted(folder, model_of(nodes, tensors=[shape]))


# ---- names ----

HOSTILE = ["a;}//", "#include <x>", "input", "sum", "output", "i", "k", "weight", "view", "f32", "9lives", " ", "a b", "née", "a\"b", "\\",
           "%s%n", "y_2", "n" * 4000, "__asm__", "??/", "../up", "x", "X", "_", "exp", "pad", "select", "inf", "pi", "i64", "round"]
UNSEEN = ["a\nb", "a\rb", "\x1b[31mred", "a\0b", "\u202e", "\u2028", "\x7f"]


def test_hostile_names(folder):
    """Of values and nodes: the program is plain text, compiles, and has nothing of them but letters."""
    nodes = [node("Relu", [before], [after], name=f"{after}; output z", doc_string="\nz") for before, after in zip(HOSTILE, HOSTILE[1:])]
    text = accepted(folder, model_of(nodes, [value(HOSTILE[0], [2, 3])], [value(HOSTILE[-1], None)]))
    assert not NOT_SHOWN.search(text), text
    assert len(re.findall(r"^output ", text, re.M)) == 1 and "z" not in re.findall(r"^(\w+)", text, re.M), text
    done = subprocess.run([ROLLERC, folder / "out/m.te", "--device", "h200", "-o", folder / "m.cu"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_names_that_cannot_be_shown(folder):
    for name in UNSEEN:
        refused(folder, model_of([node("Relu", [name], ["y"])], [value(name, [2, 3])]), "cannot be shown")
        refused(folder, model_of([node("Relu", ["x"], ["y"], name=name)]), "cannot be shown")
        refused(folder, model_of([node(f"Relu{name}", ["x"], ["y"])]), "cannot be shown")
        refused(folder, model_of([node("Relu", ["x"], ["y"], domain=name)]), "cannot be shown")
        refused(folder, model_of([node("Relu", ["x"], ["y"])], [value("x", [name, 3])]), "cannot be shown")
    data = bytes_of(model_of([node("Relu", ["x"], ["y"], name="name")]))
    refused(folder, data.replace(b"name", b"\xff\xfe\xc0\x80"), "cannot be shown")
    refused(folder, model_of([node("Relu", ["x"], ["y"], name="n" * 5000)]), "5000 bytes")


def test_hostile_names_in_messages(folder):
    for name in HOSTILE:
        done = import_of(folder, model_of([node("Frobnicate", ["x"], ["y"], name=name)], outputs=[value("y", None)]))
        check_refusal(folder, done, "Frobnicate", longest=10000)


def test_names_that_become_alike(folder):
    """None of 20,000 has a letter that the language knows: numbering them takes no time."""
    names = ["x", *(chr(0x4e00 + i) for i in range(20000)), "y"]
    model = model_of([node("Identity", [before], [after]) for before, after in zip(names, names[1:])])
    assert "output y" in accepted(folder, model)


def test_old_files_stay(folder):
    accepted(folder, small())
    old = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert import_of(folder, model_of([node("Frobnicate", ["x"], ["y"])])).returncode == 1
    assert old == {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


# ---- speed ----

IMPORT_SECONDS = 0.5   # of a ResNet-50 with 100 MB of weights, on one core


def test_large_model_is_read_fast(folder):
    onnx.save(onnx_models.resnet50(), folder / "m.onnx")
    assert (folder / "m.onnx").stat().st_size > 100e6
    command, best = [ROLLERC, "import", folder / "m.onnx", "-o", folder / "m.te", "--weights", folder / "m.weights"], 1e9
    for _ in range(5):   # the fastest: other processes only make it slower
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        best = min(best, usage.ru_utime + usage.ru_stime)
    assert best <= IMPORT_SECONDS, f"{best:.2f} s of processor time"
    print(f"a ResNet-50 with 100 MB of weights is imported in {best:.2f} s of processor time")


def main():
    global ROLLERC
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollerc", required=True)
    parser.add_argument("--filter", default="", help="only tests whose name holds this")
    args = parser.parse_args()
    ROLLERC = os.path.abspath(args.rollerc)
    return common.run_tests(globals(), "hostile models", args.filter)


if __name__ == "__main__":
    sys.exit(main())
