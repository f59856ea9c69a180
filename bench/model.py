"""Is the model's first choice the fastest, and is its time right? Its candidates against the clock.

    python3 bench/generate.py build/rollerc bench-cases --only '^product' --candidates 10
    python3 bench/run.py bench-cases candidates.jsonl --peers ''                         # on a GPU machine
    python3 bench/model.py collect candidates.jsonl …      # into bench/results/h200-model.json; then `write`
    python3 bench/model.py write                           # h200-model.md from that file
    python3 bench/model.py check                           # exit code 1 if it is not what `write` would write

`collect` keeps what was measured of cases that the new lines do not hold.
"""
import fileinput
import json
import os
import sys

import cases

RESULTS = os.path.join(cases.BENCH, "results")
JSON, TABLE = os.path.join(RESULTS, "h200-model.json"), os.path.join(RESULTS, "h200-model.md")
KEPT = ["case", "group", "rank", "predicted_us", "tiles", "us", "failed"]     # of a result line
AS_FAST = 1.05                               # a choice as good as the best
LEVELS = (0.15, 0.2, 0.25)                   # of predicted times' errors


# ---- the JSON

def read_json():
    if not os.path.exists(JSON):
        return {"about": {}, "candidates": []}
    with open(JSON) as file:
        return json.load(file)


def collect(lines):
    """The last run of each case, in the order of the case list."""
    rows = [json.loads(line) for line in lines]
    about = [row["about"] for row in rows if "about" in row][-1]
    latest = {(row["case"], row["rank"]): {key: row[key] for key in KEPT if key in row} for row in rows if "case" in row}
    new = {case for case, _ in latest}
    rows = [row for row in read_json()["candidates"] if row["case"] not in new] + list(latest.values())
    place = {case.name: number for number, case in enumerate(cases.load())}
    rows = sorted((row for row in rows if row["case"] in place), key=lambda row: (place[row["case"]], row["rank"]))
    return {"about": about, "candidates": rows}


def write_json(results):
    """A line a candidate: differences stay readable."""
    lines = ",\n".join("  " + json.dumps(row) for row in results["candidates"])
    with open(JSON, "w") as file:
        file.write(f'{{\n "about": {json.dumps(results["about"])},\n "candidates": [\n{lines}\n ]\n}}\n')


# ---- the table

def by_case(rows):
    """{case: its timed candidates}, the model's order; without those whose first choice failed."""
    grouped = {}
    for row in rows:
        if "us" in row:
            grouped.setdefault(row["case"], []).append(row)
    return {case: candidates for case, candidates in grouped.items() if candidates[0]["rank"] == 1}


def loss(candidates):
    """How many times the fastest candidate's time the first choice takes."""
    return candidates[0]["us"] / min(row["us"] for row in candidates)


def share(values):
    values = list(values)
    return f"{sum(values)} of {len(values)} ({100 * sum(values) / len(values):.0f} %)"


def summary_row(group, measured):
    """measured: candidates of each case."""
    compared = [candidates for candidates in measured if len(candidates) > 1]
    off = [abs(rows[0]["predicted_us"] / rows[0]["us"] - 1) for rows in measured]
    return [group, share(loss(rows) <= AS_FAST for rows in compared) if compared else "",
            *(share(error <= level for error in off) for level in LEVELS)]


def case_row(case, rows):
    best = min(rows, key=lambda row: row["us"])
    return [case, len(rows), f"{rows[0]['us']:.1f}", f"{rows[0]['predicted_us'] / rows[0]['us']:.2f}",
            best["rank"], f"{best['us']:.1f}", f"{loss(rows):.2f}", best["tiles"][-1]]


def markdown(heads, rows):
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [heads, ["---"] * len(heads), *rows])


def table(results):
    measured = by_case(results["candidates"])
    groups = {}
    for candidates in measured.values():
        groups.setdefault(candidates[0]["group"], []).append(candidates)
    about = results["about"]
    return f"""\
# The model's order against the clock

Written by `bench/model.py`. {about["device"]}, {about["date"][:10]}; the first candidates of each case, timed in one run.

""" + markdown(["group", "first choice within 5 % of the fastest candidate",
                *(f"predicted within {100 * level:.0f} %" for level in LEVELS)],
               [summary_row(group, cases_of) for group, cases_of in groups.items()]) + """
Times in us; *lost* is how many times the fastest candidate's time the first choice takes.

""" + markdown(["case", "candidates", "first choice", "predicted / measured", "fastest", "us", "lost", "the fastest's last launch"],
               [case_row(case, rows) for case, rows in measured.items()])


def stale():
    """The table, if it is not what `write` would write."""
    with open(TABLE) as file:
        return [] if file.read() == table(read_json()) else [os.path.relpath(TABLE, cases.ROOT)]


def main():
    command, *paths = sys.argv[1:] or [""]
    if command == "collect":
        write_json(collect(fileinput.input(paths)))
    if command not in ("collect", "write", "check"):
        return __doc__
    if command == "check":
        return f"not what `bench/model.py write` writes: {TABLE}" if stale() else 0
    with open(TABLE, "w") as file:
        file.write(table(read_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
