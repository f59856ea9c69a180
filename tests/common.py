"""What the example tests share: where things are, how a program is run, how results are told."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import traceback

TESTS = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(TESTS), "examples")
JOBS = int(os.environ.get("TEST_JOBS", "2"))   # processes of one test; ctest runs several tests, each with one

# Device -> the architecture that nvcc is asked for; None: not a CUDA device.
# CUDA 13 no longer targets v100 and k80: the oldest one that it does stands in.
DEVICES = {
    "a100": "sm_80", "h100": "sm_90a", "h200": "sm_90a", "v100": "sm_75", "k80": "sm_75",
    "rtx2080ti": "sm_75", "rtx3090": "sm_86", "rtx4090": "sm_89", "mi50": None,
}
CUDA_DEVICES = [device for device, arch in DEVICES.items() if arch]


def example_path(name):
    return os.path.join(EXAMPLES, name + ".te")


# What no example becomes: products of `bulk` whose first factor begins within a tensor.
OTHERS = {"part_of_the_channels": "input x[16, 56, 56, 128] : f16\ninput w[64, 3, 3, 64] : f16\ny[n, h:56, v:56, f] = sum[r, s, c:64]"
                                  "(pad(x[n, h + r - 1, v + s - 1, c + 64], 0) * w[f, r, s, c])\noutput y : f16\n"}


def example_text(name):
    """Of one of these, too."""
    if name in OTHERS:
        return OTHERS[name]
    with open(example_path(name)) as file:
        return file.read()


def example_sizes(where):
    """{example: {size: ["-D", "M=64", …]}} for where = "ci" or "gpu"; on the GPU, "own" are the file's defaults."""
    with open(os.path.join(TESTS, "examples.json")) as file:
        table = json.load(file)
    files = {name[:-3] for name in os.listdir(EXAMPLES) if name.endswith(".te")}
    assert files == set(table), f"examples/ and tests/examples.json differ: {sorted(files ^ set(table))}"
    own = {"own": ""} if where == "gpu" else {}
    return {name: {size: [word for define in text.split() for word in ("-D", define)]
                   for size, text in {**own, **row[where]}.items()} for name, row in table.items()}


def read_metadata(path):
    """The JSON object on an emitted file's first line."""
    prefix = "//rollerc: "
    with open(path) as file:
        line = file.readline()
    assert line.startswith(prefix), f"{path}: the first line is not '{prefix}{{…}}'"
    return json.loads(line[len(prefix):])


def run(command, timeout=600):
    """None if the command exits 0, else the reason on one line."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              encoding="utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        return f"still running after {timeout} s"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if done.returncode == 0:
        return None
    return f"exit {done.returncode}: " + " | ".join(done.stdout.strip().split("\n")[:6])[:600]


def kinds(rollerc):
    """Every family and variant there is, "gemm/cluster", of the table in codegen/family/families.c."""
    said = subprocess.run([pathlib.Path(rollerc).resolve().parent / "tests/schedule_counts"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def run_within(cpu_seconds, command):
    """As run(), and the processor time of the command and its children, which no busy machine changes, is limited."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)   # it has been waited for
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode:
        return f"exit {process.returncode}: " + " | ".join(text.strip().split("\n")[:6])[:600]
    used = usage.ru_utime + usage.ru_stime
    return f"takes {used:.1f} s of processor time where {cpu_seconds} are allowed" if used > cpu_seconds else None


def in_parallel(jobs, function, items):
    """[function(item) …] in the order of `items`; threads, since the work is done by child processes."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(function, items)


class Tally:
    """Counts results, prints a line for each failure (and for each success if verbose), then the summary."""

    def __init__(self, verbose=False):
        self.verbose, self.passed, self.failed = verbose, 0, 0

    def add(self, case, reason, detail=""):
        if reason is None:
            self.passed += 1
            if self.verbose:
                print(f"ok    {case}  {detail}".rstrip(), flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {case}: {reason}", flush=True)

    def exit_code(self):
        """A run that tried nothing has not passed."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 0 if self.passed and not self.failed else 1


def check_all(cases, check, jobs, verbose=False):
    """check(case) gives None or a reason; the exit code of the whole script."""
    tally = Tally(verbose)
    for case, reason in zip(cases, in_parallel(jobs, check, cases)):
        tally.add(" ".join(str(part) for part in case), reason)
    return tally.exit_code()


class Skip(Exception):
    """What a test needs is not here; the text says what."""


def run_tests(tests, called, filter=""):
    """Calls every test_*(folder) among `tests` (globals()) whose name holds the filter, each in a folder of its own; the exit code."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in list(tests.items()):
        if not name.startswith("test_") or filter not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder))
                counts["passed"] += 1
            except Skip as reason:
                counts["skipped"] += 1
                print(f"SKIP {name}: {reason}")
            except Exception:
                counts["failed"] += 1
                print(f"FAIL {name}\n{traceback.format_exc(limit=-2)}")
    print(f"{called}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0
