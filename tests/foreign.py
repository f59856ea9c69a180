"""What other languages write and what is written here, from src/front/foreign.def: as a table of doc/language.md and as programs."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- foreign: begin -->\n", "<!-- foreign: end -->\n"
TYPES = {"r": "f32", "i": "i32", "b": "b1"}
OPERANDS = {"r": "real", "i": "integers", "b": "bits"}
DEFINITIONS = 16   # of a program


def strings(text):
    return "".join(re.findall(r'"([^"]*)"', text))


def rows():
    """(kind, names, operands, mend, note) of each row."""
    text = (ROOT / "src/front/foreign.def").read_text()
    found = re.findall(r'^FOREIGN\((\w+), "([^"]*)", "([^"]*)",\s*((?:"[^"]*"\s*)+),\s*(NULL|"[^"]*"),', text, re.MULTILINE)
    assert len(found) == text.count("\nFOREIGN("), "src/front/foreign.def looks otherwise"
    return [(kind, names.split(), operands, strings(mend), strings(note)) for kind, names, operands, mend, note in found]


def use(kind, names, operands):
    """How it is written elsewhere."""
    if kind == "OPERATOR":
        return f"`{names[1].replace('_', ' ')}`"
    if kind == "FUNCTION":
        names = [f"{name}({', '.join('abc'[:len(operands)])})" for name in names]
    where = {"REDUCTION": " over j", "ALONG": " along j"}.get(kind, "")
    return " ".join(f"`{name}`" for name in names) + where


def table():
    all_rows, lines = rows(), ["| elsewhere | here | |\n|---|---|---|\n"]
    for kind, names, operands, mend, note in all_rows:
        several = sum(names == other for _, other, *_ in all_rows) > 1
        words = ", ".join(word for word in (OPERANDS[operands[0]] if several else "", note) if word)
        cells = [cell.replace("|", "\\|") for cell in (use(kind, names, operands), f"`{mend}`", words)]
        lines.append(f"| {' | '.join(cells)} |\n".replace("|  |", "| |"))
    return "".join(lines)


def page(text):
    """The page with the table as it should be."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def with_types(mend, operands, inputs):
    """`a * b` of a real number and a bit -> `ar[j] * bb[j]`; what is read is put into `inputs`."""
    def element(match):
        letter, index = match[1], match[2] or "[j]"
        if "abc".index(letter) >= len(operands):
            return match[0]
        name = letter + operands["abc".index(letter)]
        inputs[name] = TYPES[name[1]]
        return name + index
    return re.sub(r"\b([abc])\b(\[[^\]]*\])?", element, mend)


def programs():
    """All mends, some a program."""
    all_rows = rows()
    for first in range(0, len(all_rows), DEFINITIONS):
        inputs, body = {}, []
        for number, (kind, _, operands, mend, _) in enumerate(all_rows[first:first + DEFINITIONS]):
            left = "" if kind == "REDUCTION" else "j:N"
            body.append(f"y{number}[{left}] = {with_types(mend, operands, inputs)}\noutput y{number}\n")
        yield "param N = 37\n" + "".join(f"input {name}[N] : {kind}\n" for name, kind in inputs.items()) + "".join(body)
