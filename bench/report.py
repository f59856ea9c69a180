"""Turns what bench/run.py measured into what the repository shows.

    python3 bench/report.py collect results.jsonl …      # into bench/results/h200.json; then `write`
    python3 bench/report.py write      # README's table, all cases and the plots, from that file
    python3 bench/report.py check      # exit code 1 if they are not what `write` would write
"""
import fileinput
import json
import os
import statistics
import sys

import cases
import plots

RESULTS = os.path.join(cases.BENCH, "results")
JSON, FULL = os.path.join(RESULTS, "h200.json"), os.path.join(RESULTS, "h200.md")
README = os.path.join(cases.ROOT, "README.md")
BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"
TITLES = {"torch": "torch", "layout": "torch, other layout", "compile": "torch.compile", "cudnn": "cuDNN", "oneflow": "OneFlow"}
LAYERS = 24                                  # of a network with large filters: RepLKNet-31B's
LEVEL = 0.98                                 # as fast as: within the 2 % that a time varies
KINDS = {                                    # README's rows: of several groups; a group that is in none has its own
    "permutations": ("permute", "odd permute"),
    "softmax, its gradient, with masks": ("softmax", "softmax gradient", "masked softmax", "sample mask"),
    "layer norm, adaptive and RMS": ("layer norm", "adaptive norm", "RMS norm"),
    "batch norm, training and backward": ("BN + ReLU", "BN + Add + ReLU", "BN backward"),
    "reductions, pooling": ("reduction", "pooling"),
    "matrix products": ("product", "exact product", "small exact product", "small product", "skinny"),
    "convolutions": ("dense",),
    "depthwise convolutions and gradients": ("depthwise",),
}


# ---- the JSON

def collect(lines):
    """The last line of each case, in the order of the case list, and what the last run says about itself."""
    rows = [json.loads(line) for line in lines]
    latest = {row["case"]: row for row in rows if row.get("rank") == 1}
    known = [case.name for case in cases.load()]
    about = [row["about"] for row in rows if "about" in row]
    return {"about": {**about[-1], "runs": len(about)},
            "cases": [latest[name] for name in known if name in latest]}


def write_json(path, results):
    """A line a case: differences stay readable."""
    lines = ",\n".join("  " + json.dumps(row) for row in results["cases"])
    with open(path, "w") as file:
        file.write(f'{{\n "about": {json.dumps(results["about"])},\n "cases": [\n{lines}\n ]\n}}\n')


def read_json():
    """The results; OneFlow's times are its share of a copy, from another run, applied to this run's copy."""
    with open(JSON) as file:
        results = json.load(file)
    with open(os.path.join(cases.BENCH, "oneflow.json")) as file:
        share = json.load(file)["of_copy"]
    for row in results["cases"]:
        if "failed" not in row:
            row["peers"] = {name: us for name, us in row["peers"].items() if isinstance(us, float)}
            if row["case"] in share:
                row["peers"]["oneflow"] = round(min(row["copies"].values()) / share[row["case"]], 3)
    return results


# ---- tables

def ahead(row):
    """How many times as fast as the fastest peer; None without one."""
    return min(row["peers"].values()) / row["us"] if row["peers"] else None


def spread(values, level):
    """Two cells: worst · median · best, and how many are at least `level` (if there is one)."""
    values = sorted(value for value in values if value is not None)
    if not values:
        return "– | –"
    listed = " · ".join(f"{value:.2f}" for value in (values[0], statistics.median(values), values[-1]))
    return f"{listed} | " + (f"{sum(value >= level for value in values)} of {len(values)}" if level else "–")


def by_group(results):
    groups = {}
    for row in results["cases"]:
        groups.setdefault(row["group"], []).append(row)
    return groups


def by_kind(results):
    kind_of = {group: kind for kind, groups in KINDS.items() for group in groups}
    kinds = {}
    for group, rows in by_group(results).items():
        kinds.setdefault(kind_of.get(group, group), []).extend(rows)
    return kinds


def table_row(name, rows, goal=None):
    """Cells of one kind or group. A copy is no measure for what is not bound by memory."""
    right = [row for row in rows if "failed" not in row]
    failed = f" ({len(rows) - len(right)} failed)" if len(right) < len(rows) else ""
    share, reached = spread([row["of_copy"] for row in right if row["group"] != "dense"], goal).split(" | ")
    return name + failed, len(rows), share, reached, spread(map(ahead, right), LEVEL)


def summary(results):
    """What README shows: a line for each kind."""
    about = results["about"]
    text = f"""\
{about['device']}, {about['date'][:10]}, driver {about['driver']}, PyTorch {about['torch']}, cuDNN {about['cuDNN']}; \
worst · median · best. A *copy* is the
faster of a 16-byte copy kernel and cudaMemcpy that moves as many bytes; the peers are PyTorch, torch.compile, cuDNN and,
for softmax and masks, OneFlow by its share of a copy. All outputs are checked against float64 first.

| kind | cases | share of a copy's speed | times as fast as the fastest peer | ≥ {LEVEL} |
|---|---|---|---|---|
"""
    for kind, rows in by_kind(results).items():
        name, count, share, _, peers = table_row(kind, rows)
        text += f"| {name} | {count} | {share} | {peers} |\n"
    shown = "\n".join(f"![{plots.TITLES[name]}](bench/results/{name}.svg)" for name in plots.IN_README)
    return f"{text}\nBy group, and every case: [bench/results/h200.md](bench/results/h200.md).\n\n{shown}\n"


def geomean(rows):
    """Of the times as fast as the fastest peer."""
    values = [ahead(row) for row in rows if "failed" not in row and row["peers"]]
    return f"{statistics.geometric_mean(values):.2f}" if values else "–"


def group_table(results):
    heads = ["group", "cases", "share of a copy's speed", "goal", "reached by", "times as fast as the fastest peer",
             f"≥ {LEVEL}", "geomean"]
    text = f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"
    goals = {case.group: case.entry.get("goal") for case in cases.load()}
    for group, rows in by_group(results).items():
        name, count, share, reached, peers = table_row(group, rows, goals.get(group))
        text += f"| {name} | {count} | {share} | {goals.get(group) or '–'} | {reached} | {peers} | {geomean(rows)} |\n"
    return text


def full_row(row, name):
    if "failed" in row:
        return [name, "failed: " + row["failed"].replace("|", "/")]
    peers = [f"{row['peers'][peer]:.1f}" if peer in row["peers"] else "" for peer in TITLES]
    return [name + (" †" if "peers_from" in row else ""), f"{row['predicted_us']:.1f}", f"{row['us']:.1f}", f"{row['gbps']:.0f}", f"{row['of_copy']:.2f}",
            f"{row['error']:.2f}", *peers, f"{ahead(row):.2f}" if row["peers"] else ""]


def layers(results, dtype):
    """A network's large filters: ours of 31 a side against the fastest peers' of 9; empty where a case is missing."""
    rows = {row["case"]: row for row in results["cases"] if "failed" not in row}

    def cases_of(k):
        return [rows.get(f"depthwise {way} 32x32 k{k} {dtype}") for way in ("forward", "data", "filter")]
    ours, theirs = cases_of(31), cases_of(9)
    if None in ours + theirs:
        return ""
    ms = LAYERS * sum(row["us"] for row in ours) / 1e3
    peer_ms = LAYERS * sum(min(row["peers"].values()) for row in theirs) / 1e3
    return (f"* {LAYERS} layers forwards and backwards, {dtype}: {ms:.1f} ms with filters of 31 x 31; the fastest peers take "
            f"{peer_ms:.1f} ms with 9 x 9, {peer_ms / ms:.2f} times as long\n")


def full_table(results):
    heads = ["case", "predicted", "us", "GB/s", "of copy", "error", *TITLES.values(), "times the fastest"]
    text = "# Measurements\n\nWritten by `bench/report.py` from `h200.json`; worst · median · best of each group.\n\n"
    text += "".join(f"* {key}: {value}\n" for key, value in results["about"].items())
    text += f"\n{group_table(results)}\n"
    text += "".join(f"![{title}]({name}.svg)\n" for name, title in plots.TITLES.items())
    drawn = plots.draw_all(results["cases"])
    text += "".join(f"![{title}]({name}.svg)\n" for name, title in plots.DEPTHWISE.items() if name in drawn)
    sums = "".join(layers(results, dtype) for dtype in ("f32", "f16"))
    text += f"\nDepthwise convolutions of 64 x 384 x 32 x 32:\n\n{sums}" if sums else ""
    text += ("\nIn what follows times are in us; GB/s are of inputs and outputs, each once; the error is a share of what rounding "
             "explains.\n")
    if any("peers_from" in row for row in results["cases"]):
        text += "† Its peers were timed in another run of the same day.\n"
    for group, rows in by_group(results).items():
        text += f"\n## {group}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"
        for row in rows:
            cells = full_row(row, row["case"][len(group) + 1:])
            text += f"| {' | '.join(cells + [''] * (len(heads) - len(cells)))} |\n"
    return text


def readme(results):
    with open(README) as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    return before + BEGIN + summary(results) + END + rest.split(END)[1]


def products(results):
    """{path: text} of all that is generated."""
    return {README: readme(results), FULL: full_table(results),
            **{os.path.join(RESULTS, name + ".svg"): text for name, text in plots.draw_all(results["cases"]).items()}}


def stale():
    """The generated files that are not what `write` would write."""
    found = []
    for path, text in products(read_json()).items():
        with open(path) as file:
            if file.read() != text:
                found.append(os.path.relpath(path, cases.ROOT))
    return found


def main():
    command, *paths = sys.argv[1:] or [""]
    if command == "collect":
        write_json(JSON, collect(fileinput.input(paths)))
    if command in ("write", "collect"):
        for path, text in products(read_json()).items():
            with open(path, "w") as file:
                file.write(text)
        return 0
    if command == "check":
        found = stale()
        return f"not what `bench/report.py write` writes: {' '.join(found)}" if found else 0
    return __doc__


if __name__ == "__main__":
    sys.exit(main())
