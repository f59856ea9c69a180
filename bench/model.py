"""Is the model's first choice the fastest, and is its time right? Its candidates against the clock.

    python3 bench/generate.py build/rollerc bench-cases --only '^product' --candidates 10
    python3 bench/run.py bench-cases candidates.jsonl --peers ''                         # on a GPU machine
    python3 bench/model.py collect candidates.jsonl …      # into bench/results/h200-model.json; then `write`
    python3 bench/model.py write                           # h200-model.md from that file
    python3 bench/model.py check                           # exit code 1 if it is not what `write` would write

`collect` keeps what was measured of cases that the new lines do not hold. And of programs that nobody tuned for, beside those:

    python3 bench/candidates.py drawn.jsonl times.jsonl --rollerc old=… new=… --device h100    # on a GPU machine
    python3 bench/model.py gather times.jsonl              # into bench/results/h100-candidates.json or another GPU's; `write` makes unseen.md
    python3 bench/model.py rejudge build/rollerc           # what this one predicts for them, into the same files: no GPU
"""
import fileinput
import json
import os
import statistics
import sys

import cases
import rejudge

RESULTS = os.path.join(cases.BENCH, "results")
JSON, TABLE = os.path.join(RESULTS, "h200-model.json"), os.path.join(RESULTS, "h200-model.md")
UNSEEN_END, UNSEEN_TABLE = "-candidates.json", os.path.join(RESULTS, "unseen.md")
KEPT = ["case", "group", "rank", "predicted_us", "tiles", "us", "failed"]     # of a result line
AS_FAST, AS_FAST_US = 1.05, 0.3              # a choice as good as the best
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


# ---- programs that nobody tuned for: those of bench/draw.py and bench/operators.py

KIND_GROUPS = {"convolution": "convolutions", "depthwise": "convolutions", "product": "products"}   # else bound by memory


def time_of(row):
    """The fastest candidate and the first choice were timed again."""
    return row.get("again", row["us"])


def gather(lines):
    """A program's candidates in the order of the last rollerc that was timed; `before`: the first choice of the one before."""
    rows = [json.loads(line) for line in lines]
    about = [row["about"] for row in rows if "about" in row][-1]
    names = about["rollerc"]
    programs = {}
    for row in rows:
        if "us" in row:
            programs.setdefault((row["set"], row["name"]), []).append(row)
    gathered = []
    for (kept, name), candidates in programs.items():
        ranked = sorted((row["predicted"][names[-1]] + [time_of(row), row["tiles"][-1]] for row in candidates if names[-1] in row["predicted"]))
        best = min(map(time_of, [row for row in candidates if "again" in row] or candidates))
        entry = {"set": kept, "name": name, "kind": candidates[0]["kind"], "candidates": ranked, "best": best}
        first = [time_of(row) for row in candidates if row["predicted"].get(names[0], [0])[0] == 1]
        entry["timed"] = [[row["id"], row["us"], list(row["predicted"].values())[-1][1], " + ".join(row["tiles"]),
                           *([row["again"]] if "again" in row else [])] for row in candidates]
        gathered.append({**entry, "before": first[0]} if len(names) > 1 and first else entry)
    return {"about": about, "programs": [entry for entry in gathered if entry["candidates"]]}


def unseen_devices():
    """Those of which there are timings, by the names of their files."""
    return sorted(name[:-len(UNSEEN_END)] for name in os.listdir(RESULTS) if name.endswith(UNSEEN_END))


def device_of(about):
    """"NVIDIA H100 80GB HBM3" is h100."""
    return about["device"].split()[1].lower()


def read_unseen_json(device):
    with open(os.path.join(RESULTS, device + UNSEEN_END)) as file:
        return json.load(file)


def write_unseen_json(results):
    lines = ",\n".join("  " + json.dumps(entry) for entry in results["programs"])
    with open(os.path.join(RESULTS, device_of(results["about"]) + UNSEEN_END), "w") as file:
        later = f' "rejudged": {json.dumps(results["rejudged"])},\n' if "rejudged" in results else ""
        file.write(f'{{\n "about": {json.dumps(results["about"])},\n{later} "programs": [\n{lines}\n ]\n}}\n')


def group_of(entry):
    if entry["set"] == "roller":
        return f"Roller's operators: {entry['kind']}"
    held = "held out" if int(entry["set"].split()[1]) % 2 else "drawn"
    return f"{held}: {KIND_GROUPS.get(entry['kind'], 'bound by memory')}"


def order(candidates):
    """Kendall's tau of predicted and measured times."""
    agree = differ = 0
    for i, a in enumerate(candidates):
        for b in candidates[i + 1:]:
            sign = (a[1] - b[1]) * (a[2] - b[2])
            agree, differ = agree + (sign > 0), differ + (sign < 0)
    return (agree - differ) / max(agree + differ, 1)


def is_as_fast(us, best):
    return us <= AS_FAST * best or us <= best + AS_FAST_US


def unseen_row(group, entries):
    firsts = [entry["candidates"][0] for entry in entries]
    before = [entry for entry in entries if "before" in entry]
    lost = statistics.geometric_mean(first[2] / entry["best"] for first, entry in zip(firsts, entries))
    return [group, len(entries), share(is_as_fast(first[2], entry["best"]) for first, entry in zip(firsts, entries)), f"{lost:.3f}",
            share(abs(first[1] / first[2] - 1) <= LEVELS[0] for first in firsts),
            f"{statistics.mean(order(entry['candidates']) for entry in entries):.2f}",
            f"{statistics.geometric_mean(entry['before'] / entry['candidates'][0][2] for entry in before):.3f}" if before else ""]


def tuned():
    """The bench's own cases, in the same form."""
    for case, rows in by_case(read_json()["candidates"]).items():
        yield {"set": "tuned", "name": case, "kind": rows[0]["group"], "best": min(row["us"] for row in rows),
               "candidates": [[row["rank"], row["predicted_us"], row["us"], row["tiles"][-1]] for row in rows]}


def unseen_table():
    return f"""\
# The model where nobody tuned it

Written by `bench/model.py`. Programs of `bench/draw.py` (even seeds
may be looked at, odd ones are held out) and Roller's 119 operators (`bench/operators.py`). *Best* is the fastest of all candidates of a program
that were timed; a first choice within {100 * (AS_FAST - 1):.0f} % or {AS_FAST_US} us of it counts. *Lost* is how many times the best one's time the first choices take
(geometric mean), *order* Kendall's tau of a program's candidates, *gained* how many times as long the first choice of the rollerc before took.
""" + "".join(unseen_section(read_unseen_json(device)) for device in unseen_devices())


def unseen_section(results):
    groups, about = {"tuned: the bench's own, on an H200": list(tuned())}, results["about"]
    for entry in results["programs"]:
        groups.setdefault(group_of(entry), []).append(entry)
        groups.setdefault(group_of(entry).split(":")[0] + ": all", []).append(entry)
    worst = sorted(results["programs"], key=lambda entry: entry["best"] / entry["candidates"][0][2])[:24]
    return f"""
## {about["device"]}, driver {about["driver"]}, {about["date"][:10]}

""" + markdown(["programs", "", "first choice is the best", "lost", f"predicted within {100 * LEVELS[0]:.0f} %", "order", "gained"],
               [unseen_row(group, groups[group]) for group in sorted(groups)]) + """
Where most is lost (us):

""" + markdown(["program", "first choice", "predicted", "best", "the first's last launch"],
               [[f"{entry['set']} {entry['name']}", f"{first[2]:.1f}", f"{first[1]:.1f}", f"{entry['best']:.1f}", first[3]]
                for entry in worst for first in entry["candidates"][:1]]) + rejudged_table(results)


# ---- the same timings, judged by another compiler

def rejudged_group(entry):
    kind = KIND_GROUPS.get("product" if entry["kind"] == "matmul" else entry["kind"], "bound by memory")
    return f"{'half 1' if rejudge.is_held(entry['name']) else 'half 0'}: {kind}"


def first_and_best(candidates):
    """The first one's predicted and measured time and the best one's, by the second timing if both have one."""
    first, fastest = candidates[0], min(candidates, key=lambda row: row[1])
    timing = min(len(first), len(fastest)) - 1
    return first[0], first[timing], min(first[timing], fastest[timing])


def rejudged_row(group, entries):
    firsts = [first_and_best(entry["now"]["candidates"]) for entry in entries]
    every = [row for entry in entries for row in entry["now"]["candidates"]]
    return [group, len(entries), share(is_as_fast(us, best) for _, us, best in firsts),
            f"{statistics.geometric_mean(us / best for _, us, best in firsts):.3f}",
            *(share(abs(row[0] / row[1] - 1) <= LEVELS[0] for row in rows) for rows in (firsts, every)),
            f"{statistics.mean(order([(0, *row) for row in entry['now']['candidates']]) for entry in entries):.2f}",
            sum(not entry["now"]["first_timed"] for entry in entries)]


def rejudged_table(results):
    entries = [entry for entry in results["programs"] if entry.get("now", {}).get("candidates")]
    if not entries:
        return ""
    groups = {}
    for entry in entries:
        for group in (rejudged_group(entry), rejudged_group(entry).split(":")[0] + ": all"):
            groups.setdefault(group, []).append(entry)
    about = results["rejudged"]
    return f"""
### The same timings, later predictions

Times are those above, of {results["about"]["date"][:10]}; predictions are of rollerc {about["version"]}{f" ({about['commit']})" if "commit" in about else ""} as it was on {about["date"]}, for an {about["device"]}, without a GPU
(`bench/model.py rejudge`). Of a program's candidates those count that it still makes: {sum(len(entry["now"]["candidates"]) for entry in entries)} of {sum(len(entry["timed"]) for entry in results["programs"])}; *first* is the first of
them in its order, *untimed* how often another one that was not timed comes before. Programs are in halves by their names: `half 1` was not
looked at when the model was changed (tuning-log 132).

""" + markdown(["programs", "", "first is the best", "lost", "first within 15 %", "all within 15 %", "order", "untimed"],
               [rejudged_row(group, groups[group]) for group in sorted(groups)])


# ---- what is written

def pages():
    """{path: what `write` writes there}."""
    made = {TABLE: table(read_json())}
    if unseen_devices():
        made[UNSEEN_TABLE] = unseen_table()
    return made


def stale():
    """The tables that are not what `write` would write."""
    return [os.path.relpath(path, cases.ROOT) for path, text in pages().items() if not os.path.exists(path) or open(path).read() != text]


def main():
    command, *paths = sys.argv[1:] or [""]
    if command not in ("collect", "gather", "rejudge", "write", "check"):
        return __doc__
    if command == "collect":
        write_json(collect(fileinput.input(paths)))
    if command == "gather":
        write_unseen_json(gather(fileinput.input(paths)))
    for device in unseen_devices() if command == "rejudge" else []:
        write_unseen_json(rejudge.rejudged(read_unseen_json(device), *paths, device))
    if command == "check":
        return f"not what `bench/model.py write` writes: {' '.join(stale())}" if stale() else 0
    for path, text in pages().items():
        with open(path, "w") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
