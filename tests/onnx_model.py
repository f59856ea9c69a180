"""Models in the ONNX format, written byte by byte: tests need no library of ONNX, and can write what none would."""
import struct

FLOAT, UINT8, INT8, UINT16, INT32, INT64, BOOL, FLOAT16 = 1, 2, 3, 4, 6, 7, 9, 10


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    """An integer, or bytes, text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(number, values):
    return b"".join(field(number, value) for value in values)


def tensor(name, shape, raw, kind=FLOAT):
    return fields(1, shape) + field(2, kind) + field(8, name) + field(9, raw)


def floats(name, shape, values):
    return tensor(name, shape, struct.pack(f"<{len(values)}f", *values))


def integers(name, values):
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), INT64)


def external(name, shape, **where):
    return fields(1, shape) + field(2, FLOAT) + field(8, name) + field(14, 1) + b"".join(
        field(13, field(1, key) + field(2, str(value))) for key, value in where.items())


def attribute(name, value):
    """An integer, a float, text, a list of integers, or bytes: a graph."""
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return field(1, name) + field(6, value) + field(20, 5)
    return field(1, name) + fields(8, value) + field(20, 7)


def node(op, inputs, outputs, name="", domain="", **attributes):
    return (fields(1, inputs) + fields(2, outputs) + (field(3, name) if name else b"") + field(4, op)
            + fields(5, [attribute(key, value) for key, value in attributes.items()]) + (field(7, domain) if domain else b""))


def value(name, shape, kind=FLOAT):
    """A size, or the name of a symbol."""
    dims = fields(1, [field(1, size) if isinstance(size, int) else field(2, size) for size in shape])
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def graph(nodes, inputs, outputs, initializers=()):
    return fields(1, nodes) + field(2, "g") + fields(5, initializers) + fields(11, inputs) + fields(12, outputs)


def function(name, domain, inputs, outputs, nodes, version=17):
    return (field(1, name) + fields(4, inputs) + fields(5, outputs) + fields(7, nodes) + field(9, field(2, version))
            + field(10, domain))


def model(nodes, inputs, outputs, initializers=(), version=17, functions=(), more=b""):
    return (field(1, 8) + field(8, field(2, version)) + fields(25, functions)
            + field(7, graph(nodes, inputs, outputs, initializers)) + more)
