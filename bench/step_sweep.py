"""step_sweep.py - the sweep of step_cuda.py: berlu over the fastest torch for widths, tokens and batches.
SPDX-License-Identifier: MIT

A cell is a ViT of 12 blocks with GELU: width 192, 384 or 768 (3, 6, 12 heads), 65 tokens (32 x 32, patch 4) or 197
(224 x 224, patch 16). The CSV is written after every cell and read first, so that a sweep may be run in parts; what did
not fit into the card's memory is a result too, any other failure is tried again. --for SECONDS begins no group of cells
that would take longer than the time left, judged by the longest so far."""
import csv
import os
import statistics
import time

import step_plots
from step_peer import VIT

WIDTHS, TOKENS, BATCHES = [192, 384, 768], [65, 197], [64, 128, 256, 512, 1024, 2048]
COLUMNS = ["width", "tokens", "batch", "act", "stream", "keep", "berlu", "berlu_low", "berlu_high", "berlu_bytes", "torch", "torch_low",
           "torch_high", "torch_bytes", "torch_mode", "torch_version", "ratio", "machine"]
MEMORY = "out of memory"
KEYS = COLUMNS[:6]
AT_ONCE = 60e9  # bytes of the card that cells prepared together may take


def rows_read(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def rows_write(path, rows, columns):
    with open(path + ".new", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(path + ".new", path)


def points_write(path, row, points):
    """The curves of --memory: those of other rows in the file stay."""
    columns = ["row", "side", "name", "ms", "gib"]
    kept = [old for old in rows_read(path) if old["row"] != row]
    rows_write(path, kept + [dict(point, row=row, ms=f"{point['ms']:.4f}", gib=f"{point['gib']:.4f}") for point in points], columns)


def key_of(cell):
    return tuple(str(cell[name]) for name in KEYS)


def row_of(cell):
    name = VIT[cell["width"]][1] + ("_32" if cell["tokens"] == 65 else "")
    return f"{name}:{cell['act']}:{cell['batch']}:{cell['stream']}:{cell['keep']}"


def bytes_guess(cell):
    """What torch takes, roughly: 45 bytes an element of the residual stream and block."""
    return 12 * 45 * cell["width"] * cell["tokens"] * cell["batch"]


def groups_of(cells, ahead):
    """At most `ahead` cells that fit the card together; a large one is alone."""
    group, size = [], 0
    for cell in sorted(cells, key=bytes_guess):
        if group and (len(group) == ahead or size + bytes_guess(cell) > AT_ONCE):
            yield group
            group, size = [], 0
        group.append(cell)
        size += bytes_guess(cell)
    if group:
        yield group


def cell_take(cell, ours, peers):
    """The finished line of a cell; None where something failed for another reason than memory."""
    line = dict(cell, berlu=MEMORY, torch=MEMORY)
    if ours.rates:
        line.update(berlu=f"{statistics.median(ours.rates):.6g}", berlu_low=f"{min(ours.rates):.6g}", berlu_high=f"{max(ours.rates):.6g}",
                    berlu_bytes=ours.last["planned_bytes"], machine=ours.last["machine"])
    elif ours.failure != "memory":
        return None
    there = [peer for peer in peers if peer.rates]
    if there:
        best = max(there, key=lambda peer: statistics.median(peer.rates))
        line.update(torch=f"{statistics.median(best.rates):.6g}", torch_low=f"{min(best.rates):.6g}", torch_high=f"{max(best.rates):.6g}",
                    torch_bytes=best.last["bytes"], torch_mode=best.mode, torch_version=best.last["version"])
    elif any(peer.failure != "memory" for peer in peers):
        return None
    if ours.rates and there:
        line["ratio"] = f"{statistics.median(ours.rates) / statistics.median(best.rates):.4f}"
    return line


def run(args, prepare, measure):
    done = rows_read(args.csv)
    known = {key_of(line) for line in done}
    cells = [dict(width=w, tokens=t, batch=b, act="gelu", stream="bf16" if args.device == "cuda" else "f32", keep="both")
             for t in args.tokens for w in args.widths for b in args.batches]
    cells = [cell for cell in cells if key_of(cell) not in known]
    begin, longest = time.monotonic(), 0.0
    for group in groups_of(cells, args.ahead):
        start = time.monotonic()
        if longest and start - begin + longest > args.limit:
            print(f"{len(cells)} cells are left; the same call goes on with them", flush=True)
            break
        prepared = prepare(args, [row_of(cell) for cell in group])
        for cell in group:
            (ours,), peers = prepared[row_of(cell)]
            measure(args, [ours], peers)
            line = cell_take(cell, ours, peers)
            cells.remove(cell)
            if line:
                done.append(line)
                rows_write(args.csv, done, COLUMNS)
                print(f"{row_of(cell)}: berlu {line['berlu']}, torch {line['torch']}, ratio {line.get('ratio', '-')}", flush=True)
        longest = max(longest, time.monotonic() - start)
    if args.svg:
        step_plots.write(args.svg, step_plots.heat_map(rows_read(args.csv)))
