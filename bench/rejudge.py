"""Predictions of a compiler for candidates that were timed before it was built: `bench/model.py rejudge`."""
import concurrent.futures
import json
import os
import subprocess
import time
import zlib

import candidates
import draw
import operators

MOST = 100                                   # --top-k
DRAWN = {1: 60, 55: 200, 57: 200, 61: 200, 63: 200, 65: 200, 66: 200, 67: 200, 69: 200, 110: 320}   # programs of seeds of bench/draw.py


def is_held(name):
    """Half of the programs are not looked at while the model is changed."""
    return zlib.crc32(name.encode()) % 2 == 1


def texts():
    rows = operators.load() + [row for seed, count in DRAWN.items() for row in draw.draw(seed, count)]
    return {(row["set"], row["name"]): row["text"] for row in rows}


def ranked(rollerc, text, device):
    """(id, predicted us, tiles, us of each launch) of its candidates."""
    command = [rollerc, "-", "--name", "k", "--device", device, "-q", "--top-k", str(MOST), "-o", os.devnull,
               "--emit", "json=/dev/stdout"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"rejudge: {done.stderr.strip()}")
    return [(row["id"], row["predicted"]["time_us"], candidates.tiles(row), [launch["predicted"]["time_us"] for launch in row["launches"]])
            for row in json.loads(done.stdout)["candidates"]]


def alike(tiles, longest):
    """What a candidate is but for the tiles of launches that take little of its time: these change with every tie."""
    return tuple(tile if i == longest else tile.split()[0] for i, tile in enumerate(tiles))


def matched(timed, now):
    """{id of a timed candidate: which of today's it is}, by id or tiles or, of several launches, by their families and the tiles of the longest."""
    place = {row[0]: i for i, row in enumerate(now)}
    found = {row[0]: place[row[0]] for row in timed if row[0] in place}
    others = {}
    for i, (_, us, tiles, launches) in enumerate(now):
        if i not in found.values():
            others.setdefault(alike(tiles, launches.index(max(launches))), []).append((us, i))
    for name, _, then, text, *_ in timed:
        tiles = text.split(" + ")
        near = [pair for longest in range(len(tiles)) for pair in others.get(alike(tiles, longest), [])]
        if name not in found and near:
            found[name] = min(near, key=lambda pair: abs(pair[0] - then))[1]
    return found


def judged(entry, now):
    """[predicted, measured, measured again] of the timed candidates that are still made, in today's order; is today's first among them?"""
    found = matched(entry["timed"], now)
    pairs = sorted([round(now[found[row[0]]][1], 3), row[1], *row[4:]] for row in entry["timed"] if row[0] in found)
    first = min(range(len(now)), key=lambda i: now[i][1]) if now else None
    return {"candidates": pairs, "first_timed": first in found.values()}


def commit():
    """The one that is checked out, whose compiler this is said to be."""
    done = subprocess.run(["git", "-C", os.path.dirname(__file__), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def rejudged(results, rollerc, device):
    known, programs = texts(), results["programs"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rankings = pool.map(lambda entry: ranked(rollerc, known[entry["set"], entry["name"]], device), programs)
        programs = [{**entry, "now": judged(entry, now)} for entry, now in zip(programs, rankings)]
    version = subprocess.run([rollerc, "--version"], capture_output=True, text=True).stdout.split()[1]
    about = {"version": version, "commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "device": device}
    return {"about": results["about"], "rejudged": about, "programs": programs}
