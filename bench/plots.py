"""The plots, as SVG written by hand: legible on a light and on a dark page."""
import math

COLOURS = {"copy": "#868e96", "torch": "#868e96", "torch.compile": "#1c7ed6", "cuDNN": "#2b8a3e",
           "OneFlow": "#9c36b5", "rollerc": "#d9480f"}
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #6c757d } .title { font-size: 14px; font-weight: 600 }
.grid { stroke: #adb5bd; stroke-opacity: 0.45 } .end { text-anchor: end } .mid { text-anchor: middle }
@media (prefers-color-scheme: dark) { text { fill: #dee2e6 } }
</style>
"""
ROWS = {"softmax": "softmax", "softmax-gradient": "softmax gradient", "masked-softmax": "masked softmax",
        "layer-norm": "layer norm", "rms-norm": "RMS norm"}
TITLES = {"copy-share": "Share of a copy's speed, every case", "peers": "Times as fast as the fastest peer, every case",
          **{name: f"{group}, f16: GB/s over the length of a row" for name, group in ROWS.items()}}
DEPTHWISE = {f"depthwise-{way}-{dtype}": f"{words}, {dtype}: us over the side k of the filter, 64 x 384 x 32 x 32"
             for way, words in (("forward", "Depthwise convolution"), ("data", "Its gradient for the input"),
                                ("filter", "Its gradient for the filters"))
             for dtype in ("f32", "f16")}
IN_README = ("copy-share", "peers")
FP32_FLOP_PER_US = 63.5e6            # of an H200, measured; tensor cores pass it
WIDTH = 720


def svg(height, title, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}">\n{STYLE}<text class="title" x="12" y="22">{title}</text>\n{body}</svg>\n')


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>\n'


def line(x0, y0, x1, y1, dash=""):
    return f'<line class="grid" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke-dasharray="{dash}"/>\n'


# ---- GB/s over N

def curve(points, name):
    width, dash = (2.2 if name == "rollerc" else 1.5), ("5 4" if name == "copy" else "")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{width}" '
            f'stroke-dasharray="{dash}"/>\n')


def dot(x, y, name, filled):
    if name == "copy":
        return ""
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.7" stroke="{COLOURS[name]}" '
            f'fill="{COLOURS[name] if filled else "none"}"/>\n')


def is_power_of_2(n):
    return n & (n - 1) == 0


def series_of(rows):
    """{name: [(N, GB/s), …]}"""
    names = {"torch": "torch", "compile": "torch.compile", "cudnn": "cuDNN", "oneflow": "OneFlow"}
    series = {}
    for row in rows:
        n = int(dict(define.split("=") for define in row["params"])["N"])
        times = {"copy": min(row["copies"].values()), **{names[peer]: us for peer, us in row["peers"].items()},
                 "rollerc": row["us"]}
        for name, us in times.items():
            series.setdefault(name, []).append((n, row["bytes"] / us / 1e3))
    return {name: sorted(points) for name, points in series.items()}


def draw_lines(title, rows):
    """Powers of two are joined; other lengths are hollow dots."""
    series = series_of(rows)
    lengths = sorted({n for points in series.values() for n, _ in points})
    top = 1000 * math.ceil(max(g for points in series.values() for _, g in points) / 1000)
    left, right, high, low = 60, WIDTH - 130, 40, 320

    def place(n, gbps):
        along = math.log2(n / lengths[0]) / max(1e-9, math.log2(lengths[-1] / lengths[0]))
        return left + (right - left) * along, low - (low - high) * gbps / top

    body = ""
    for gbps in range(0, top + 1, 1000):
        y = place(lengths[0], gbps)[1]
        body += line(left, y, right, y) + text(left - 8, y + 4, f"{gbps}", "end")
    for n in filter(is_power_of_2, lengths):
        body += text(place(n, 0)[0], low + 18, n, "mid")
    for index, (name, points) in enumerate(series.items()):
        body += curve([place(*point) for point in points if is_power_of_2(point[0])], name)
        body += "".join(dot(*place(*point), name, is_power_of_2(point[0])) for point in points)
        y = high + 10 + 20 * index
        body += curve([(right + 14, y - 4), (right + 34, y - 4)], name) + text(right + 40, y, name)
    return svg(low + 34, title, body)


# ---- time over the side of a filter

def pairs_inside(side, k):
    """Of a row of pixels and one of taps, those that meet the image: both dimensions have as many."""
    return sum(side - abs(tap) for tap in range(-(k // 2), k // 2 + 1))


def filter_series(rows):
    """{name: [(k, us), …]}: ours, the fastest peer, and what multiply-adds of f32 inside the image or a copy take at least."""
    series = {"rollerc": [], "cuDNN": [], "copy": []}
    for row in rows:
        size = {name: int(value) for name, value in (define.split("=") for define in row["params"])}
        flop = 2 * size["N"] * size["C"] * pairs_inside(size["H"], size["K"]) ** 2
        series["rollerc"].append((size["K"], row["us"]))
        series["copy"].append((size["K"], max(min(row["copies"].values()), flop / FP32_FLOP_PER_US)))
        if row["peers"]:
            series["cuDNN"].append((size["K"], min(row["peers"].values())))
    return {name: sorted(points) for name, points in series.items()}


def draw_filters(title, rows):
    """Both axes are logarithmic."""
    series = filter_series(rows)
    sides = sorted({k for points in series.values() for k, _ in points})
    times = [us for points in series.values() for _, us in points]
    first, last = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    left, right, high, low = 70, WIDTH - 150, 40, 320

    def place(k, us):
        along = math.log2(k / sides[0]) / max(1e-9, math.log2(sides[-1] / sides[0]))
        return left + (right - left) * along, low - (low - high) * (math.log10(us) - first) / max(1, last - first)

    body = ""
    for power in range(first, last + 1):
        y = place(sides[0], 10.0**power)[1]
        body += line(left, y, right, y) + text(left - 8, y + 4, f"{10**power} us", "end")
    for k in sides:
        body += text(place(k, 10.0**first)[0], low + 18, k, "mid")
    words = {"copy": "limit in f32", "cuDNN": "fastest peer"}
    for index, (name, points) in enumerate(series.items()):
        body += curve([place(*point) for point in points], name)
        body += "".join(dot(*place(*point), name, True) for point in points)
        y = high + 10 + 20 * index
        body += curve([(right + 14, y - 4), (right + 34, y - 4)], name) + text(right + 40, y, words.get(name, name))
    return svg(low + 34, title, body)


def draw_depthwise(rows):
    """A plot for each way and type of which there is a case; the crossover of kernels is where our line bends."""
    drawn = {}
    for stem, title in DEPTHWISE.items():
        _, way, dtype = stem.split("-")
        chosen = [row for row in rows if row["dtype"] == dtype and row["case"].startswith(f"depthwise {way} 32x32 ")]
        if chosen:
            drawn[stem] = draw_filters(title, chosen)
    return drawn


# ---- every case as a dot

def draw_strips(title, groups, ticks, value, scale):
    """A row a group; `scale` maps a value to 0 … 1, `ticks` are the values that are marked."""
    left, right, high = 150, WIDTH - 24, 44
    bottom = high + 24 * len(groups)
    body = ""
    for tick in ticks:
        x = left + (right - left) * scale(tick)
        body += line(x, high, x, bottom, "" if tick == 1 else "3 4") + text(x, bottom + 16, f"{tick:g}", "mid")
    for index, (group, rows) in enumerate(groups.items()):
        y = high + 24 * index + 12
        body += text(left - 12, y + 4, group, "end")
        for row in rows:
            if value(row) is not None:
                x = left + (right - left) * min(1.0, max(0.0, scale(value(row))))
                body += f'<circle cx="{x:.1f}" cy="{y}" r="3.5" fill="{COLOURS["rollerc"]}" fill-opacity="0.55"/>\n'
    return svg(bottom + 28, title, body)


def draw_all(rows):
    """{file stem: SVG}; failed cases are not drawn."""
    groups = {}
    for row in rows:
        if "failed" not in row:
            groups.setdefault(row["group"], []).append(row)
    bound = {group: members for group, members in groups.items() if group != "dense"}
    drawn = {
        "copy-share": draw_strips(TITLES["copy-share"], bound, (0, 0.25, 0.5, 0.65, 0.85, 1),
                                  lambda row: row["of_copy"], lambda share: share / 1.1),
        "peers": draw_strips(TITLES["peers"], groups, (0.25, 0.5, 1, 2, 4, 8),
                             lambda row: min(row["peers"].values()) / row["us"] if row["peers"] else None,
                             lambda times: math.log2(times / 0.25) / 5.5)}
    for name, group in ROWS.items():
        halves = [row for row in groups.get(group, []) if row["dtype"] == "f16"]
        if halves:
            drawn[name] = draw_lines(TITLES[name], halves)
    return {**drawn, **draw_depthwise(groups.get("depthwise", []))}
