#!/usr/bin/env python3
"""The ranking says all that makes the same kernel again, and doc/ranking.md says what each of its fields means."""
import argparse
import glob
import hashlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import jsonschema

import common

ROOT = os.path.dirname(common.TESTS)
TERMS = ("compute_us", "special_us", "shared_us", "l2_us", "dram_us", "start_us")   # that hide below the largest of them


def rollerc(binary, *arguments, text=None):
    done = subprocess.run([binary, *map(str, arguments)], input=text, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def ranking_of(binary, path, *options, text=None):
    """What is emitted, and its ranking."""
    with tempfile.TemporaryDirectory() as folder:
        kernel, ranking = os.path.join(folder, "k.cu"), os.path.join(folder, "rank.json")
        rollerc(binary, path, "-o", kernel, "--json", ranking, *options, text=text)
        with open(kernel, "rb") as file, open(ranking) as document:
            return file.read(), json.load(document)


def options_of(ranking):
    """The command line that it came from, but for the params, which are set in the text."""
    options = ranking["options"]
    words = ["--device", ranking["device"]["name"], "--name", options["name"], "--math", options["math"],
             "--top-k", options["top_k"]]
    if "candidate" in options:
        words += ["--candidate", options["candidate"]]
    return words + ["--verify"] * options["verify"] + ["--line-directives"] * options["line_directives"] + ["--with-test"] * options["with_test"]


def without_input(document):
    """Beside the params, which were options and are text now, and the clock, nothing may differ."""
    return {**document, "options": {**document["options"], "params": {}},
            "emitted": {**document["emitted"], "verified": None}}


def check_again(binary, path, *options):
    """None, or what its own ranking does not make again."""
    kernel, ranking = ranking_of(binary, path, *options)
    if hashlib.sha256(kernel).hexdigest() != ranking["emitted"]["source_sha256"]:
        return "emitted.source_sha256 is not that of the file"
    expr = ranking["workload"]["expr"]
    if hashlib.sha256(expr.encode()).hexdigest() != ranking["workload"]["id"]:
        return "workload.id is not that of workload.expr"
    again, second = ranking_of(binary, "-", *options_of(ranking), text=expr)
    if again != kernel:
        return "the text of workload.expr makes another kernel"
    return None if without_input(ranking) == without_input(second) else "the ranking of workload.expr is another one"


def test_an_expression_compiles_to_the_same_kernel(binary):
    for path in sorted(glob.glob(os.path.join(common.EXAMPLES, "*.te"))):
        reason = check_again(binary, path, "--device", "h200")
        assert not reason, f"{path}: {reason}"


def test_options_are_told(binary):
    softmax = os.path.join(common.EXAMPLES, "softmax.te")
    for options in (["-D", "R=+12", "-D", "N=300", "--math", "fast"], ["--candidate", "3", "--name", "rows"],
                    ["-D", "R=4", "-D", "N=33", "--verify", "--top-k", "2", "--line-directives", "--with-test"]):
        reason = check_again(binary, softmax, "--device", "a100", *options)
        assert not reason, f"{options}: {reason}"


def test_what_is_emitted_is_told(binary):
    matmul = os.path.join(common.EXAMPLES, "matmul.te")
    _, ranking = ranking_of(binary, matmul, "--device", "a100", "-D", "M=64", "-D", "N=64", "-D", "K=64", "--candidate", "2", "--verify")
    emitted = ranking["emitted"]
    assert emitted["id"] == ranking["candidates"][emitted["rank"] - 1]["id"] != ranking["summary"]["best_id"], emitted
    assert emitted["model_rank"] == 2 == ranking["options"]["candidate"], emitted
    proof = emitted["verified"]
    assert proof["elements"] >= 64 * 64 and proof["blocks_run"] == proof["blocks_total"] > 0, proof
    assert not proof["sampled"] and proof["seconds"] > 0, proof
    _, ranking = ranking_of(binary, matmul, "--device", "a100")
    assert "verified" not in ranking["emitted"]


def test_hashes_are_those_of_the_files(binary):
    paths = sorted(path for path in glob.glob(os.path.join(ROOT, "templates/**"), recursive=True) if os.path.isfile(path))
    def digest(path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    listed = "".join(f"{digest(path)}  {os.path.relpath(path, ROOT)}\n" for path in paths)
    templates = hashlib.sha256(listed.encode()).hexdigest()
    relu = os.path.join(common.EXAMPLES, "relu.te")
    for options in ([], ["--templates", os.path.join(ROOT, "templates")]):
        _, ranking = ranking_of(binary, relu, "--device", "v100", *options)
        assert ranking["tool"]["templates_sha256"] == templates, options
        assert ranking["device"]["yaml_sha256"] == digest(os.path.join(ROOT, "devices/v100.yaml"))


def launches_of(binary, example, *options):
    _, ranking = ranking_of(binary, os.path.join(common.EXAMPLES, example + ".te"), "--device", "h200", *options)
    return [launch for candidate in ranking["candidates"] for launch in candidate["launches"]]


def test_no_field_is_borrowed(binary):
    rows = [launch for launch in launches_of(binary, "log_softmax", "-D", "N=3000") if launch["family"] == "rowwise"]
    assert rows
    for launch in rows:
        assert "stages" not in launch["config"] and launch["config"]["vectors"] >= 1, launch["config"]
        assert launch["predicted"]["instructions"] > launch["predicted"]["flops"] > 0, launch["predicted"]
    for launch in launches_of(binary, "matmul"):
        assert "vectors" not in launch["config"] and "instructions" not in launch["predicted"], launch
        if launch["family"] == "matmul":
            assert launch["config"]["stages"] == (3 if launch["config"]["variant"] == "three stages" else 2), launch["config"]


def test_terms_add_up_to_the_time(binary):
    for example in ("matmul", "softmax", "bn_relu_training", "max_pool", "permute_021"):
        for launch in launches_of(binary, example):
            predicted = launch["predicted"]
            total = max(predicted[term] for term in TERMS) + sum(predicted[f"{part}_us"] for part in
                                                                 ("unhidden", "tail", "wait", "launch"))
            assert abs(total - predicted["time_us"]) <= 1e-9 * total, (example, total, predicted)
            room = predicted["occupancy"]["room_for"]
            assert predicted["occupancy"]["blocks_per_sm"] == min(room.values()), predicted["occupancy"]
            assert predicted["unit"] in ("fp32", "fp64"), predicted["unit"]


def fields_of(schema, definitions, path=""):
    """Paths of all fields: `device.name`; those of a shared definition once, `launch.grid`."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here
        if "$ref" not in field:
            yield from fields_of(field, definitions, here)
            yield from fields_of(field.get("items", {}), definitions, here)
    if not path:
        for name, definition in definitions.items():
            yield from fields_of(definition, {}, name)


def test_every_field_is_documented(binary):
    schema = json.loads(rollerc(binary, "--print-schema"))
    with open(os.path.join(ROOT, "doc/ranking.md")) as file:
        documented = re.findall(r"^\| `([\w$.]+)` \|", file.read(), re.MULTILINE)
    fields = list(fields_of(schema, schema["$defs"]))
    assert len(fields) > 100
    assert sorted(documented) == sorted(fields), \
        f"lacking: {sorted(set(fields) - set(documented))}; no fields: {sorted(set(documented) - set(fields))}"


def test_every_device_satisfies_the_schema(binary):
    schema = json.loads(rollerc(binary, "--print-schema"))
    for device in common.DEVICES:
        for example in ("matmul", "softmax"):
            _, ranking = ranking_of(binary, os.path.join(common.EXAMPLES, example + ".te"), "--device", device)
            jsonschema.validate(ranking, schema)


def test_a_device_that_is_ranked_only(binary):
    """No text, and so no digest; the exchange and the units' own memories are terms that add up like any other."""
    schema = json.loads(rollerc(binary, "--print-schema"))
    for device, example in itertools.product(("ipu_mk1", "ipu_mk2"), ("matmul", "softmax", "conv2d_3x3", "reduce_rows", "layer_norm")):
        sizes = ["-D", "R=64"] if example == "softmax" else []
        path = os.path.join(common.EXAMPLES, example + ".te")
        with tempfile.TemporaryDirectory() as folder:
            written = os.path.join(folder, "r.json")
            rollerc(binary, path, "--device", device, "-o", written, *sizes)
            assert os.listdir(folder) == ["r.json"]
            with open(written) as file:
                ranking = json.load(file)
            assert "\n  ranked only, first: candidate 1\n" in rollerc(binary, "explain", written)
        jsonschema.validate(ranking, schema)
        assert ranking["emitted"]["source_sha256"] is None and ranking["candidates"][0]["model_rank"] == 1
        times = [candidate["predicted"]["time_us"] for candidate in ranking["candidates"]]
        assert times == sorted(times)
        for launch in (launch for candidate in ranking["candidates"] for launch in candidate["launches"]):
            predicted = launch["predicted"]
            assert launch["template"] is None and launch["block"] == [6, 1, 1] and predicted["l2_us"] == 0
            rounds = math.ceil(launch["grid"][0] / ranking["device"]["sm_count"])
            assert predicted["supersteps"] >= rounds and predicted["supersteps"] % rounds == 0
            assert launch["dynamic_smem_bytes"] <= ranking["device"]["shared_bytes_per_block"]


def test_results_that_accumulators_do_not_hold_together(binary):
    """Lines of four floats of eight results are 32 numbers; a worker has 16 accumulators, and stores one result after another."""
    results = "".join(f"y{i}[i] = x[i] * {i}.5  output y{i}\n" for i in range(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.te")
        with open(path, "w") as file:
            file.write("input x[5000] : f32\n" + results)
        ranking = json.loads(rollerc(binary, path, "--device", "ipu_mk1", "-o", os.path.join(folder, "r.json"), "--json", "-"))
    assert len(ranking["candidates"][0]["launches"]) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    binary, failed = os.path.abspath(parser.parse_args().rollerc), 0
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name, test in tests.items():
        try:
            test(binary)
        except AssertionError as error:
            failed += 1
            print(f"FAIL {name}: {error}")
    print(f"ranking: {len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
