#!/usr/bin/env python3
"""rollerc explain: what it says is what the ranking holds, its page stands alone and fits a phone, and what is no ranking is
refused in plain words."""
import argparse
import copy
import html
import html.parser
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import common

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MUTANTS = 300
VOID = {"meta", "rect", "line", "circle"}   # elements without an end


class Skip(Exception):
    pass


def rollerc(*arguments, code=0, text=None):
    done = subprocess.run([BINARY, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, expected {code}: {done.stderr}"
    return done.stdout if code == 0 else done.stderr


def example(name):
    return os.path.join(common.EXAMPLES, name + ".te")


def ranking_of(name, device="h200"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rank.json")
        rollerc(example(name), "--device", device, "-o", path)
        with open(path) as file:
            return json.load(file)


def explain(ranking, code=0):
    """Text and page; of what is refused, the message."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = os.path.join(folder, "rank.json"), os.path.join(folder, "page.html")
        with open(path, "w") as file:
            file.write(ranking if isinstance(ranking, str) else json.dumps(ranking))
        said = rollerc("explain", path, "--html", page, code=code)
        if code:
            assert not os.path.exists(page)
            return said
        with open(page, encoding="ascii") as file:
            return said, file.read()


def measured(ranking):
    """As --profile leaves it: all are timed but the last, which is wrong; the model's second was the fastest."""
    ranking = copy.deepcopy(ranking)
    candidates = ranking["candidates"]
    candidates[0], candidates[1] = candidates[1], candidates[0]
    for rank, candidate in enumerate(candidates, 1):
        median = 40 + 3.25 * rank
        candidate.update(rank=rank, status="ok", measured={
            "gpu": "NVIDIA H200", "driver": "13.0", "warmup": 40, "reps": 200, "buffer_sets": 3,
            "time_us": {"min": median, "median": median, "mean": median, "p95": median + 1, "stdev": 0.1},
            "verified": {"elements": 2000, "unjudged": 0, "max_abs": 0, "max_of_bound": 0}})
    candidates[-1].update(status="wrong", reason="y[3] is <5> & not 6")
    del candidates[-1]["measured"]
    return ranking


# ---- in words ----

def number_rows(text):
    """The table of the comparison: what a row is called, and its first number."""
    rows = re.findall(r"^  (?:[+=]| ) (?:  )?([a-zA-Z][\w ,]*?) {2,}([\d.]+) ", text, re.MULTILINE)
    return {name: float(value) for name, value in rows}


def test_the_parts_are_those_of_the_ranking():
    for name in ("softmax", "matmul", "bn_relu_training", "permute_021", "max_pool", "log_softmax"):
        for device in ("h200", "v100", "mi50"):
            ranking = ranking_of(name, device)
            text, _ = explain(ranking)
            rows, first = number_rows(text), ranking["candidates"][0]
            predicted = [launch["predicted"] for launch in first["launches"]]
            parts = sum(rows[part] for part in ("longest term", "others, not hidden", "tail", "waiting", "launch"))
            assert abs(parts - rows["expected"]) < 0.05 and abs(rows["expected"] - first["predicted"]["time_us"]) < 0.01, rows
            for row, term in (("DRAM", "dram_us"), ("L2", "l2_us"), ("compute", "compute_us"), ("block start", "start_us")):
                assert abs(rows[row] - sum(launch[term] for launch in predicted)) < 0.01, (name, device, row)
            for launch in first["launches"]:
                assert f"Kernel {launch['kernel']}: {launch['family']}" in text, text
                assert f"{launch['predicted']['waves']:.2f} waves: " in text
            assert text.count("bound by") >= len(ranking["candidates"])
            assert max(map(len, text.splitlines())) <= 160, text


def test_equal_times_are_told_by_blocks():
    text, _ = explain(ranking_of("avg_pool"))
    assert "alike. Of equal times fewer blocks come first, then more threads, then smaller tiles." in " ".join(text.split()), text


SENTENCES = (   # one after the other, each whole
    r"All candidates failed; the first one: .*\.",
    r"Candidate \d+ is the fastest in the measurement: [\d.]+ us, [\d.]+ times the [\d.]+ us that the model expected\.",
    r"Candidate \d+ took [\d.]+ us, [\w. ]+ % (?:longer|shorter); the model expected [\d.]+ us\.",
    r"In the model's order candidate \d+ was number \d+\.",
    r"Candidate \d+ spills registers, and is ranked as if it took twice the time expected\.",
    r"The model expects [\d.]+ us\.", r"There is no other candidate\.",
    r"The model expects [\d.]+ us for candidate \d+ and [\d.]+ us for candidate \d+, (?:less than )?[\d.]+ % (?:more|less)\.",
    r"The model expects [\d.]+ us for candidates \d+ and \d+ alike\.",
    r"Of equal times fewer blocks come first, then more threads, then smaller tiles\.",
    r"For candidate \d+ it expects [\d.]+ us, (?:less than )?[\d.]+ % (?:more|less)\.",
    r"No part of the time stands out\.",
    r"What differs most is (?:the longest term of both, TERM|the time of the other terms that the longest does not hide|"
    r"the last wave of blocks, which leaves a part of the device idle|waiting for data and at barriers|launching the kernels): BOTH",
    r"What differs most is the longest term: TERM with [\d.]+ us in candidate \d+, TERM with [\d.]+ us in candidate \d+\.",
    r"The other terms are about as long in both; less of them is hidden\.", r"Of the others TERM differs most: BOTH",
)
TERM = "(?:compute|special functions|shared memory|L2|DRAM|block start)"
BOTH = r"[\d.]+ us in candidate \d+, [\d.]+ us in candidate \d+\."


def with_longer(ranking, term, factor):
    """The second candidate takes so much longer by one part of its time."""
    changed = copy.deepcopy(ranking)
    for launch in changed["candidates"][1]["launches"]:
        more = (factor - 1) * launch["predicted"]["time_us"]
        launch["predicted"][term] += more
        launch["predicted"]["time_us"] += more
    return changed


def rankings_to_read():
    for name in ("softmax", "matmul", "bn_relu_training", "bn_add_relu_mask", "permute_021", "max_pool", "log_softmax", "reduce_all", "relu"):
        for device in ("h200", "a100", "mi50"):
            yield ranking_of(name, device)
    softmax = ranking_of("softmax")
    yield measured(softmax)
    for term in ("compute_us", "l2_us", "unhidden_us", "tail_us", "wait_us", "launch_us"):
        yield with_longer(softmax, term, 1.5)
    slower = with_longer(softmax, "dram_us", 1.5)
    slower["candidates"][0], slower["candidates"][1] = slower["candidates"][1], slower["candidates"][0]
    yield slower
    yield {**softmax, "candidates": softmax["candidates"][:1]}
    spilling = copy.deepcopy(softmax)
    for launch in spilling["candidates"][1]["launches"]:
        launch["compiled"] = {"registers": 255, "spill_store_bytes": 8, "spill_load_bytes": 8}
    yield spilling


def test_why_is_said_in_whole_sentences():
    pattern = "|".join(SENTENCES).replace("TERM", TERM).replace("BOTH", BOTH)
    seen = set()
    for ranking in rankings_to_read():
        text, page = explain(ranking)
        said = " ".join(text.split("Why candidate 1 is first:")[1].split("\n", 1)[1].split("\n\n")[0].split())
        assert re.fullmatch(rf"(?:{pattern})(?: (?:{pattern}))*", said), said
        assert said in html.unescape(page), said
        seen |= {sentence for sentence in SENTENCES if re.search(sentence.replace("TERM", TERM).replace("BOTH", BOTH), said)}
    untold = [sentence for sentence in SENTENCES if sentence not in seen and not sentence.startswith(("All", "No part"))]
    assert not untold, f"no ranking here makes it say: {untold}"


def test_numbers_agree_with_their_nouns():
    single = ranking_of("reduce_all")
    for candidate in single["candidates"]:
        for launch in candidate["launches"]:
            launch.update(grid=[1, 1, 1], block=[1, 1, 1], estimated_registers=1)
            launch["predicted"].update(waves=1)
            launch["predicted"]["occupancy"]["blocks_per_sm"] = 1
    single["candidates"] = single["candidates"][:1]
    single["summary"]["generated"] = 1
    single["emitted"].update(rank=1, verified={"elements": 1, "seconds": 1, "sampled": False})
    for ranking in (single, *rankings_to_read()):
        for said in explain(ranking):
            nouns = "block|thread|register|part|program|candidate|element"
            wrong = re.findall(rf"(?<!x )(?<![.\d])1 (?:{nouns})(?: tile)?s\b|(?<!x )(?<![.\d])(?!1 )\d+ (?:{nouns})(?: tile)?\b(?! tile)",
                               re.sub("<[^>]*>", " ", said))
            assert not wrong, (wrong, said)


def test_each_term_is_told_in_words():
    text, page = explain(ranking_of("bn_relu_training"))
    words = dict(re.findall(r"^    (\w[\w, ]*?) {2,}([a-z].*)$", text.split("\n  in words\n")[1].split("\n\n")[0], re.MULTILINE))
    table = text.split("us of candidate")[1].split("\n  in words\n")[0]
    named = set(re.findall(r"^  [+ =] (?:  )?([a-zA-Z0-9][\w ,]*?) {2,}[\d.]", table, re.MULTILINE)) - {"expected"}
    assert named == set(words) and len(named) == 11, (named, words)
    assert dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", page)) == {name: html.escape(told, quote=True).replace("&#x27;", "'") for name, told in words.items()}


def test_a_tile_is_drawn():
    ranking = ranking_of("matmul")
    tile = ranking["candidates"][0]["launches"][0]["config"]["tile"]
    m, n, k = (tile["global"][axis] // tile["shared"][axis] for axis in "mnk")
    text, page = explain(ranking)
    assert f"drawn as {m} x {n} blocks, m by n; k in {k} steps of {tile['shared']['k']}" in text, text
    assert re.search(r"^ +\|###\|   \|", text, re.MULTILINE), text
    assert f">{m} x {n} block tiles<" in page


def test_what_was_measured_decides():
    ranking = measured(ranking_of("softmax"))
    expected = [candidate["predicted"]["time_us"] for candidate in ranking["candidates"]]
    text, page = explain(ranking)
    words = " ".join(text.split())
    assert (f"Candidate 1 is the fastest in the measurement: 43.25 us, {43.25 / expected[0]:.2f} times the {expected[0]:.2f} us"
            " that the model expected.") in words, text
    assert f"Candidate 2 took 46.50 us, 7.5 % longer; the model expected {expected[1]:.2f} us." in words, text
    assert "In the model's order candidate 1 was number 2." in words, text
    assert "wrong: y[3] is <5> & not 6" in text and "wrong: y[3] is &lt;5&gt; &amp; not 6" in page
    assert page.count('class="mark"') == len(ranking["candidates"]) and 'class="measured"' in page   # one of the legend
    for candidate in ranking["candidates"]:
        candidate.update(status="wrong", reason="it is 5, not 6")
        candidate.pop("measured", None)
    assert "All candidates failed; the first one: it is 5, not 6." in " ".join(explain(ranking)[0].split())


def test_an_expression_is_ranked_first():
    with tempfile.TemporaryDirectory() as folder:
        path, page = os.path.join(folder, "rank.json"), os.path.join(folder, "page.html")
        said = rollerc("explain", example("relu"), "--device", "a100", "--json", path, "--html", page)
        assert sorted(os.listdir(folder)) == ["page.html", "rank.json"]
        assert rollerc("explain", path) == said
        with open(path) as ranking, open(page) as text:
            assert rollerc("explain", "-", text=ranking.read()) == said
            assert rollerc("explain", path, "--emit", f"text={folder}/x.txt", "--html", "/dev/stdout") == text.read()
        rollerc(example("relu"), "--device", "a100", "-o", os.path.join(folder, "x.html"))
        assert sorted(os.listdir(folder)) == ["page.html", "rank.json", "x.html", "x.txt"]


def test_a_model_is_explained_without_its_weights():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(common.TESTS, "onnx_examples.py"), "digits", "digits.onnx"], cwd=folder, check=True)
        command = [BINARY, "explain", "digits.onnx", "--bind", "batch=1", "--device", "h200", "--html", "page.html", "--json", "rank.json"]
        said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        assert "Kernels of candidate 1 by time" in said
        assert sorted(os.listdir(folder)) == ["digits.onnx", "page.html", "rank.json"]


# ---- the page ----

class Page(html.parser.HTMLParser):
    """Every element ends, in order; what lies in a picture lies inside it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.pictures, self.box = [], 0, None
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert not {"src", "href", "onclick"} & set(attributes) and tag != "script", (tag, attributes)
        if tag == "svg":
            self.pictures += 1
            self.box = [float(number) for number in attributes["viewbox"].split()]
        elif self.box and tag in ("rect", "line", "text", "circle"):
            self.check_place(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def check_place(self, tag, attributes):
        number = {key: float(value) for key, value in attributes.items() if re.fullmatch(r"[xycr\d]+|width|height", key)}
        right = [number[key] for key in ("x", "x1", "x2", "cx") if key in number] + [number.get("x", 0) + number.get("width", 0)]
        below = [number[key] for key in ("y", "y1", "y2", "cy") if key in number] + [number.get("y", 0) + number.get("height", 0)]
        assert all(0 <= value <= self.box[2] for value in right), (tag, attributes)
        assert all(0 <= value <= self.box[3] for value in below), (tag, attributes, self.box)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open and self.open.pop() == tag, tag
        self.box = None if tag == "svg" else self.box


def rankings_to_draw():
    for name in ("softmax", "matmul", "bn_relu_training", "permute_0213", "reduce_all", "conv2d_grouped", "relu"):
        yield name, ranking_of(name)
    yield "measured", measured(ranking_of("softmax"))
    yield "K80", ranking_of("bn_add_relu_mask", "k80")


def test_a_page_stands_alone():
    for name, ranking in rankings_to_draw():
        _, text = explain(ranking)
        page = Page(text)
        assert page.pictures >= 1 + 4 * len(ranking["candidates"][0]["launches"]), (name, page.pictures)
        assert "prefers-color-scheme:dark" in text and "width=device-width" in text
        assert "http" not in text and "url(" not in text and "@import" not in text
        assert not re.search(r"\b(?:nan|inf)\b", text), name
        for line in ranking["workload"]["expr"].splitlines():
            assert line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in text, line


def test_each_kernel_has_a_row_of_cards():
    """Three kernels of three cards each would not fill rows of three behind two others."""
    ranking = ranking_of("bn_add_relu_mask", "a100")
    assert len(ranking["candidates"][0]["launches"]) == 3
    _, page = explain(ranking)
    rows = re.findall(r'<h2>Kernel (\S+): [^<]*</h2>\n<div class="cards">(.*?)</div>', page, re.DOTALL)
    assert [name for name, _ in rows] == [launch["kernel"] for launch in ranking["candidates"][0]["launches"]], page
    assert all(re.findall("<h3>(.*?)</h3>", cards) == ["Tiles", "How busy", "Occupancy"] for _, cards in rows), rows


LAYERS = "input x[4096, 4096] : f32\n" + "".join(
    f"input w{l}[4096, 4096] : f32\nh{l + 1}[i, j] = relu(sum[k]({f'h{l}' if l else 'x'}[i, k] * w{l}[k, j]))\n" for l in range(7)) + \
    "m[i] = max[j](h7[i, j])\noutput m\n"


def test_kernels_are_told_once_and_by_time():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layers.te")
        with open(path, "w") as file:
            file.write(LAYERS)
        rollerc(path, "--device", "a100", "-o", path[:-3] + ".json")
        with open(path[:-3] + ".json") as file:
            ranking = json.load(file)
    launches = ranking["candidates"][0]["launches"]
    by_kernel = {}
    for launch in launches:
        by_kernel.setdefault(launch["kernel"], []).append(launch)
    assert len(by_kernel) == 2 and len(launches) == 8, by_kernel
    text, page = explain(ranking)
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) % +(\d+) % +(\d+)  (.+), (\S+_k\d+), (\S+)(?: and (\d+) more)?$", text, re.MULTILINE)
    assert [row[5] for row in rows] == sorted(by_kernel, key=lambda kernel: -sum(one["predicted"]["time_us"] for one in by_kernel[kernel]))
    for us, share, limit, count, _, kernel, makes, more in rows:
        own = by_kernel[kernel]
        time = sum(launch["predicted"]["time_us"] for launch in own)
        longest = max(own[0]["predicted"][term] for term in ("compute_us", "special_us", "shared_us", "l2_us", "dram_us", "start_us"))
        assert abs(float(us) - time) < 0.01 and int(count) == len(own) and makes == own[0]["makes"], (kernel, text)
        assert abs(float(limit) - 100 * longest * len(own) / time) < 1 and int(more or 0) == len(own) - 1, (kernel, text)
        assert abs(float(share) - 100 * time / ranking["candidates"][0]["predicted"]["time_us"]) < 0.1, (kernel, text)
        assert text.count(f"Kernel {kernel}: ") == 1 and page.count(f"<h2>Kernel {kernel}: ") == 1
    assert re.search(r"^Why candidate 1 is first: 7 \w+", text, re.MULTILINE), text
    del launches[0]["makes"]   # of an older ranking
    explain(ranking)


def test_names_are_words_not_tags():
    ranking = ranking_of("relu")
    ranking["options"]["name"] = "<script>alert(1)</script>\u001b[2J\u00e9"
    ranking["candidates"][0]["launches"][0]["kernel"] = "\"><svg onload=x>"
    text, page = explain(ranking)
    assert "\x1b" not in text and "<script>" not in page and "<svg onload" not in page
    assert "</script>?[2J\u00e9 on" in text and "&lt;/script&gt;?[2J&#233; on" in page, text
    Page(page)


# What a browser sees: does the page scroll sideways, do a picture's words leave it, does one word cover another?
PROBE = """<script>
const faults = [];
for (const table of document.querySelectorAll('table')) {
  const shade = getComputedStyle(table.parentElement), cut = table.scrollWidth > table.parentElement.clientWidth + 1;
  if (cut && (shade.overflowX !== 'auto' || !/local.*scroll/.test(shade.backgroundAttachment))) faults.push('a table is cut without a sign');
}
for (const cards of document.querySelectorAll('.cards')) {
  const tops = new Set([...cards.children].map(card => Math.round(card.getBoundingClientRect().top)));
  if (innerWidth >= 1200 && tops.size > 1) faults.push('the cards of a kernel fill more than a row');
}
if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is wider than the screen');
for (const svg of document.querySelectorAll('svg')) {
  const box = svg.viewBox.baseVal, words = [...svg.querySelectorAll('text')].filter(t => t.textContent);
  const places = words.map(t => t.getBBox());
  places.forEach((p, i) => {
    const word = svg.getAttribute('aria-label') + ': ' + words[i].textContent;
    if (p.x < -1 || p.x + p.width > box.width + 1 || p.y < -1 || p.y + p.height > box.height + 4) faults.push(word + ' leaves it');
    places.slice(0, i).forEach((q, j) => {
      const across = Math.min(p.x + p.width, q.x + q.width) - Math.max(p.x, q.x);
      const down = Math.min(p.y + p.height, q.y + q.height) - Math.max(p.y, q.y);
      if (across > 1 && down > 3) faults.push(word + ' covers ' + words[j].textContent);
    });
  });
}
document.title = JSON.stringify([getComputedStyle(document.body).backgroundColor, innerWidth, faults]);
</script></body>"""


def see(browser, folder, pages, widths, dark):
    """Of each page in a frame of each width: background, width and faults."""
    for number, page in enumerate(pages):
        with open(os.path.join(folder, f"{number}.html"), "w") as file:
            file.write(page.replace("</body>", PROBE))
    screen = os.path.join(folder, "screen.html")
    with open(screen, "w") as file:   # a window is never as narrow as a phone; a frame is
        for number in range(len(pages)):
            for width in widths:
                file.write(f"<iframe src='{number}.html' width='{width}' height='800' style='border:0'></iframe>")
        file.write("<script>onload = () => document.title = 'FAULTS [' + [...document.querySelectorAll('iframe')].map("
                   "frame => frame.contentDocument.title).join() + ']'</script>")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                           "--allow-file-access-from-files", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                           "--window-size=1300,900", "--dump-dom", f"file://{screen}"],
                          capture_output=True, text=True, timeout=200)
    found = re.search(r"<title>FAULTS (.*?)</title>", done.stdout)
    assert found, f"{browser}: {done.stderr[-300:]}"
    return json.loads(html.unescape(found[1]))


def test_a_browser_shows_it():
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if not browser:
        raise Skip(f"there is no browser here ({', '.join(BROWSERS)}), so no page was looked at")
    names, pages = zip(*((name, explain(ranking)[1]) for name, ranking in rankings_to_draw()))
    widths = (390, 1200)
    for dark, paper in ((False, "rgb(255, 255, 255)"), (True, "rgb(18, 22, 28)")):
        with tempfile.TemporaryDirectory() as folder:
            seen = see(browser, folder, pages, widths, dark)
        assert len(seen) == len(pages) * len(widths)
        for (name, width), (background, inner, faults) in zip(itertools.product(names, widths), seen):
            assert (background, inner) == (paper, width) and not faults, (name, width, background, inner, faults)


# ---- what is no ranking ----

def test_what_is_no_ranking_is_told():
    ranking = ranking_of("relu")
    text = json.dumps(ranking)
    assert "rank.json:1:1: error: the file ends within the JSON: is it whole?" in explain("", 1)
    assert "the file ends within the JSON: is it whole?" in explain(text[:1000], 1)
    assert "rank.json:2:4: error: this is no JSON" in explain('{\n"a"; 1}', 1)
    assert "is no ranking; `rollerc EXPR.te --device NAME --json FILE' makes one" in explain("[1, 2]", 1)
    older = {**ranking, "$schema": "urn:rollerc:ranking:1", "schema_version": "1.0.0"}
    assert "has version 1.0.0 of the schema, and this rollerc reads 2.x; make the ranking again" in explain(older, 1)
    lacking = copy.deepcopy(ranking)
    del lacking["candidates"][1]["launches"][0]["predicted"]["dram_us"]
    assert "candidates[1].launches[0].predicted lacks the number 'dram_us'" in explain(lacking, 1)
    assert "it lacks the items of 'candidates'" in explain({**ranking, "candidates": []}, 1)
    assert "cannot read 'nowhere.json'" in rollerc("explain", "nowhere.json", code=1)


def test_wrong_usage_is_told():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rank.json")
        rollerc(example("relu"), "--device", "a100", "-o", path)
        assert "is a ranking, made for one device" in rollerc("explain", path, "--device", "a100", code=2)
        assert "is a ranking, made for one device" in rollerc("explain", path, "-d", "op", "-o", f"{folder}/x.txt", code=2)
        assert "only text and a page can be made" in rollerc("explain", path, "--emit", "cu=x.cu", code=2)
        assert "no --device" in rollerc("explain", example("relu"), code=2)
        assert "no input file" in rollerc("explain", code=2)
        assert "would be overwritten by --html" in rollerc("explain", path, "--html", path, code=2)
        rollerc("explain", path, "--html", f"{folder}/missing/page.html", code=4)


def places_of(value, place=()):
    yield place
    if isinstance(value, (dict, list)):
        for key, item in (value.items() if isinstance(value, dict) else enumerate(value)):
            yield from places_of(item, (*place, key))


def mutant_of(ranking, chance):
    """One value is gone, or another."""
    mutant = copy.deepcopy(ranking)
    *way, last = chance.choice([place for place in places_of(mutant) if place])
    holder = mutant
    for key in way:
        holder = holder[key]
    other = chance.choice([None, 0, -1, 1e300, 1e-300, 0.5, "", "x", [], {}, True, [1e30] * 3])
    if chance.random() < 0.3:
        del holder[last]
    else:
        holder[last] = other
    return mutant


def test_no_mutant_of_a_ranking_is_a_crash():
    ranking = ranking_of("bn_relu_training")
    ranking["candidates"] = ranking["candidates"][:3]
    chance, codes = random.Random(7), {0: 0, 1: 0}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rank.json")
        for _ in range(MUTANTS):
            with open(path, "w") as file:
                json.dump(mutant_of(ranking, chance), file)
            done = subprocess.run([BINARY, "explain", path, "--html", "/dev/null"], capture_output=True, timeout=20)
            assert done.returncode in codes, (done.returncode, done.stderr)
            codes[done.returncode] += 1
    assert min(codes.values()) > MUTANTS // 20, codes


def main():
    global BINARY
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollerc", required=True)
    BINARY = os.path.abspath(parser.parse_args().rollerc)
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    failed = 0
    for name, test in tests.items():
        try:
            test()
        except Skip as reason:
            print(f"NOT TESTED: {reason}")
        except AssertionError as error:
            failed += 1
            print(f"FAIL {name}: {error}")
    print(f"explain: {len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
