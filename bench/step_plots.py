"""step_plots.py - the plots of step_cuda.py as SVG: a heat map of ratios, and curves of time and memory.
SPDX-License-Identifier: MIT

    python bench/step_plots.py SWEEP.csv OUT.svg     the heat map of a sweep anew"""
import csv
import math
import os
import sys
from xml.sax.saxutils import escape

FONT = 'font-family="sans-serif"'
MEMORY = "out of memory"


def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def page(width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n')


def label(x, y, text, size=12, anchor="middle", fill="#222222", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" {FONT} {more}>{escape(str(text))}</text>\n'


# ---- heat map ----


def colour(ratio):
    """White at 1, blue above, red below; full at a factor of 2.5 in either direction."""
    depth = max(-1.0, min(1.0, math.log(ratio) / math.log(2.5)))
    full = (33, 102, 172) if depth > 0 else (178, 24, 43)
    return "#" + "".join(f"{round(255 + (c - 255) * abs(depth)):02x}" for c in full)


def cell_draw(x, y, wide, high, line):
    ratio = float(line["ratio"]) if line and line.get("ratio") else None
    if ratio is None:
        text = "not measured"
        if line:
            text = {(True, True): "neither fits", (True, False): "berlu does not fit", (False, True): "torch does not fit"}[
                line["berlu"] == MEMORY, line["torch"] == MEMORY]
        return (f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" fill="#eeeeee" stroke="#ffffff"/>\n'
                + label(x + wide / 2, y + high / 2 + 4, text, 9, fill="#666666"))
    slower = ratio < 1
    dark = abs(math.log(ratio)) > 0.55
    out = (f'<rect x="{x + 1}" y="{y + 1}" width="{wide - 2}" height="{high - 2}" fill="{colour(ratio)}" '
           f'stroke="{"#67000d" if slower else "#ffffff"}" stroke-width="{2.5 if slower else 1}"/>\n')
    ink = "#ffffff" if dark else "#222222"
    out += label(x + wide / 2, y + high / 2, f"{ratio:.2f}", 15, fill=ink, more='font-weight="bold"')
    under = "torch is faster" if slower else f"{float(line['berlu']) / 1000:.1f} k/s"
    return out + label(x + wide / 2, y + high / 2 + 15, under, 9, fill=ink)


def heat_map(lines):
    """Ratios of a sweep: a panel for each number of tokens, widths downwards, batches to the right."""
    at = {(int(r["tokens"]), int(r["width"]), int(r["batch"])): r for r in lines}
    tokens, widths, batches = (sorted({key[i] for key in at}) for i in range(3))
    wide, high, left, top, gap = 84, 52, 86, 76, 62
    body = label(left, 24, "Training steps of berlu over those of the fastest PyTorch, images/s", 15, "start", more='font-weight="bold"')
    facts = next((f"{r['machine']}; torch {r['torch_version']}; {r['act']}, {r['stream']} stream, keep {r['keep']}"
                  for r in lines if r.get("torch_version")), "")
    body += label(left, 42, facts, 11, "start", "#555555")
    for panel, count in enumerate(tokens):
        y0 = top + panel * (len(widths) * high + gap)
        body += label(left, y0 - 8, f"{count} tokens; berlu's images/s under the ratio", 12, "start")
        for i, width in enumerate(widths):
            body += label(left - 10, y0 + i * high + high / 2 + 4, f"width {width}", 11, "end")
            for j, batch in enumerate(batches):
                body += cell_draw(left + j * wide, y0 + i * high, wide, high, at.get((count, width, batch)))
        for j, batch in enumerate(batches):
            body += label(left + j * wide + wide / 2, y0 + len(widths) * high + 15, f"batch {batch}" if j == 0 else batch, 11)
    height = top + len(tokens) * (len(widths) * high + gap)
    for i, ratio in enumerate((0.5, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5)):
        body += f'<rect x="{left + i * 52}" y="{height - 18}" width="52" height="14" fill="{colour(ratio)}"/>\n'
        body += label(left + i * 52 + 26, height - 7, f"{ratio:g}", 9, fill="#ffffff" if abs(math.log(ratio)) > 0.55 else "#222222")
    body += label(left + 7 * 52 + 8, height - 7, "below 1, framed: torch is faster", 10, "start", "#67000d")
    return page(left + max(len(batches) * wide, 600) + 20, height + 8, body)


# ---- curves of time and memory ----


def not_dominated(points):
    """Names of torch's points that none of berlu's is at least as fast as and at least as small as."""
    ours = [p for p in points if p["side"] == "berlu"]
    return [p["name"] for p in points
            if p["side"] == "torch" and not any(o["ms"] <= p["ms"] and o["gib"] <= p["gib"] for o in ours)]


def curves(points, title):
    """Milliseconds of a step to the right, GiB upwards, both from zero; a line through the points of each side."""
    wide, high, left, top = 560, 360, 64, 46
    most_ms = max([p["ms"] for p in points], default=1) * 1.25
    most_gib = max([p["gib"] for p in points], default=1) * 1.15 or 1
    x = lambda p: left + p["ms"] / most_ms * wide
    y = lambda p: top + high - p["gib"] / most_gib * high
    body = label(left, 24, f"{title}: time and memory of a step", 14, "start", more='font-weight="bold"')
    body += f'<path d="M{left} {top}V{top + high}H{left + wide}" fill="none" stroke="#888888"/>\n'
    for i in range(1, 6):
        body += label(left + wide * i / 5, top + high + 16, f"{most_ms * i / 5:.3g}", 10)
        body += label(left - 6, top + high - high * i / 5 + 4, f"{most_gib * i / 5:.3g}", 10, "end")
    body += label(left + wide / 2, top + high + 34, "ms") + label(18, top + high / 2, "GiB")
    for side, ink in (("berlu", "#2166ac"), ("torch", "#b2182b")):
        own = sorted((p for p in points if p["side"] == side), key=lambda p: (p["gib"], p["ms"]))
        if len(own) > 1:
            body += f'<polyline points="{" ".join(f"{x(p):.1f},{y(p):.1f}" for p in own)}" fill="none" stroke="{ink}" stroke-opacity="0.5"/>\n'
        for p in own:
            body += f'<circle cx="{x(p):.1f}" cy="{y(p):.1f}" r="4" fill="{ink}"/>\n'
            body += label(x(p) + 7, y(p) + 4, f"{side}, {p['name']}", 9, "start", ink)
    return page(left + wide + 150, top + high + 44, body)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as source:
        write(sys.argv[2], heat_map(list(csv.DictReader(source))))
