#!/usr/bin/env python3
"""The main job on real input: a ranking of diverse candidates, a kernel that says what it is, families by structure."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FAMILIES = {
    "matmul": ["matmul", "matmul_batched", "matmul_transposed"],
    "gemm": ["matmul_bias_gelu"],   # 16-bit elements, on tensor cores
    "elementwise": ["relu", "bn_inference", "elementwise_chain"],
    "reduce": ["reduce_rows", "reduce_columns", "reduce_all"],
    "window": ["max_pool", "avg_pool"],
}


def rollerc(binary, *args):
    return subprocess.run([binary, *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def ranking_of(binary, *args):
    with tempfile.TemporaryDirectory() as folder:
        kernel, ranking = os.path.join(folder, "kernel.cu"), os.path.join(folder, "rank.json")
        rollerc(binary, *args, "-o", kernel, "--json", ranking)
        with open(kernel) as text, open(ranking) as document:
            return text.read(), json.load(document)


def test_main_job(binary):
    kernel, ranking = ranking_of(binary, "examples/matmul.te", "--device", "a100")
    with open(os.path.join(ROOT, "schema/ranking.schema.json")) as schema:
        jsonschema.validate(ranking, json.load(schema))
    times = [candidate["predicted"]["time_us"] for candidate in ranking["candidates"]]
    assert len(times) >= 10 and times == sorted(times), times

    launch = json.loads(kernel.split("\n", 1)[0].removeprefix("//rollerc: "))["launches"][0]
    table = re.search(r"//   shared .*?(\d+) blocks.*?(\d+) bytes\n//   register .*?(\d+) threads", kernel, re.DOTALL)
    assert [int(n) for n in table.groups()] == [launch["grid"][0], launch["shared"], launch["block"][0]], table.group()
    tile = ranking["candidates"][0]["launches"][0]["config"]["tile"]["shared"]
    assert f"constexpr int BM = {tile['m']}, BN = {tile['n']}, BK = {tile['k']};" in kernel
    assert launch["grid"][0] == -(-4096 // tile["m"]) * -(-4096 // tile["n"])
    assert f"_k0, {launch['grid'][0]}, {launch['block'][0]}, args" in kernel


def test_top_ten_are_diverse(binary):
    for device in ["a100", "v100", "k80"]:
        ranking = ranking_of(binary, "examples/matmul.te", "--device", device)[1]
        tiles = [candidate["launches"][0]["config"]["tile"] for candidate in ranking["candidates"]
                 if candidate["launches"][0]["family"] == "matmul"]
        for level in ["register", "shared"]:
            distinct = {json.dumps(tile[level]) for tile in tiles}
            assert len(distinct) >= 4, f"{device} has only the {level} tiles {distinct}"


def test_families_are_found_by_structure(binary):
    for family, examples in FAMILIES.items():
        for example in examples:
            best = rollerc(binary, f"examples/{example}.te", "--device", "a100", "-d", "fusion").splitlines()[-1]
            through = re.findall(r"through (\w+)", best)
            assert through and set(through) == {family}, f"{example}: {best}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    binary = os.path.abspath(parser.parse_args().rollerc)
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
    failed = 0
    for test in tests:
        try:
            test(binary)
        except (AssertionError, subprocess.CalledProcessError, jsonschema.ValidationError) as error:
            failed += 1
            print(f"FAIL {test.__name__}: {error}")
    print(f"main job: {len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
