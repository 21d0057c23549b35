#!/usr/bin/env python3
"""Training steps of berlu and of PyTorch on one GPU, interleaved: images/s, memory, and the ratio to the fastest torch.
SPDX-License-Identifier: MIT

    python bench/step_cuda.py [ROW ...] [--modes graph,graph+cls,default] [--rounds 6] [--ahead 2]
    python bench/step_cuda.py --memory [ROW] [--budgets 1.0,0.7,0.5,0.3] [--svg FILE]
    python bench/step_cuda.py --sweep --csv FILE [--for SECONDS] [--svg FILE]
    python bench/step_cuda.py --processes 1,2,3,4 [ROW ...]

A ROW is MODEL:ACT:BATCH:STREAM[:KEEP], for instance vit_tiny_cifar:gelu:1024:bf16:both. STREAM is the dtype of the residual
stream, and fixes what torch is compared at equal precision: bf16 against a bf16 model with f32 master weights, f32 against
autocast. KEEP is both (default), input, output, or infer: the forward pass alone; several with commas take turns, and the
first is what torch is compared with. A step is forward, cross entropy, backward, clipping to norm 1 and AdamW. Modes of torch,
or `none`:

    default, reduce-overhead, max-autotune    of torch.compile
    graph                                     compiled, and the whole step, clip and update included, in one CUDA graph
    eager                                     not compiled

each with words after a plus: +cudnn, +flash, +efficient, +math for one attention instead of torch's own choice; +cls for a
ViT whose last block is computed for the class token alone, as berlu's plan does; +budget0.5 for a compiler that recomputes
so that activations take half.

Every cell, berlu's too, is a process that stays alive and idle between its turns; a round gives each a turn of --seconds, so
that clocks and temperature are shared. Figures are medians over rounds, then the ratio of berlu to the fastest cell; A/A is the median
of every second round over that of the others, so what equal things differ by. A cell with +cls is shown, and is not the
fastest torch: its model is not timm's. BerLU in torch is the composition of torch operations, or with --berlu-torch the
module of this project's Python package. Nothing compiles while a row is measured; --ahead N prepares N rows side by side,
which saves time where compiling takes longer than measuring. A card that others train on meanwhile: --pause stops their
sessions while something is measured (quiet.py), and --memory then counts what berlu adds.

--memory: time and memory of one row under each of torch's budgets and each of berlu's policies (--keep, with and without
--recompute-attention). Memory is the driver's, less what an empty context takes: of berlu the most during a run that has the
card to itself, of torch what its process gives back when it ends. --sweep: step_sweep.py. --processes: berlu's rate where N processes share the card.
--device cpu tries everything without a GPU, on a small model (vit_micro). Needs torch and timm."""
import argparse
import signal
import statistics
import sys
import threading

import step_plots
import step_sweep
from quiet import Quiet, sessions
from step_cells import Driver, Ours, Peer, Resident, Watch, berlu_end, berlu_start, empty_context, noise
from step_peer import CALLS, Mode

DEFAULT = ["vit_tiny_cifar:gelu:1024:bf16:both", "vit_tiny_cifar:gelu:1024:f32:both", "vit_tiny_cifar:berlu:1024:bf16:both",
           "vit_tiny_cifar:gelu:256:bf16:both", "vit_tiny:gelu:256:bf16:both", "tnt_s_cifar:gelu:512:bf16:both",
           "convnext_tiny_cifar:gelu:512:bf16:both", "vit_tiny_cifar:gelu:1024:bf16:input", "vit_tiny_cifar:gelu:1024:bf16:infer"]
CPU_DEFAULT = ["vit_micro:gelu:8:f32:both"]


# ---- rows ----


def keeps_of(row):
    """A row for each of its policies."""
    *shape, keep = (row.split(":") + ["both"])[:5]
    return [":".join([*shape, one]) for one in keep.split(",")]


def prepare(args, rows):
    """Of each row berlu's processes, one a policy, and torch's, warm and idle. Torch's compile side by side; berlu's start
    when these are done, one by one, because they time algorithms."""
    peers = {row: [Peer(args, row, mode) for mode in args.modes if ("+cls" not in mode or row.startswith("vit"))] for row in rows}
    for cells in peers.values():
        for peer in cells:
            peer.ready()
    ours = {}
    with Quiet(args.pause):
        for row in rows:
            ours[row] = [Ours(args, one) for one in keeps_of(row)]
            for cell in ours[row]:
                cell.ready()
    return {row: (ours[row], peers[row]) for row in rows}


def spread(rates):
    aa = noise(rates)
    return f"{statistics.median(rates):.0f} images/s ({min(rates):.0f} to {max(rates):.0f}{f', A/A {aa:.4f}' if aa else ''})"


def measure(args, ours, peers):
    """Rounds of one row; the cells have their rates. A first round does not count: clocks and caches are another row's."""
    with Quiet(args.pause):
        for cell in [*ours, *peers]:
            cell.turn()
            cell.rates.clear()
        for i in range(args.rounds):
            for cell in [*ours, *peers][:: 1 if i % 2 == 0 else -1]:
                cell.turn()
    for cell in [*ours, *peers]:
        cell.end()


def compare(args, row, ours, peers):
    measure(args, ours, peers)
    first, *others = ours
    if not first.rates:
        return
    rate = statistics.median(first.rates)
    print(f"{row}: berlu {spread(first.rates)}, planned {first.last['planned_bytes'] / 2**20:.0f} MiB", flush=True)
    for cell in (cell for cell in others if cell.rates):
        print(f"    keep {cell.row.split(':')[4]}: {spread(cell.rates)}, {cell.last['planned_bytes'] / 2**20:.0f} MiB, "
              f"{statistics.median(cell.rates) / rate:.3f} of the first", flush=True)
    peers = sorted((peer for peer in peers if peer.rates), key=lambda peer: -statistics.median(peer.rates))
    fastest = next((peer for peer in peers if not Mode(peer.mode).cls), None)
    for peer in peers:
        print(f"    torch {peer.last['version']} {peer.mode}: {spread(peer.rates)}, {peer.last['bytes'] / 2**20:.0f} MiB, "
              f"ratio {rate / statistics.median(peer.rates):.3f}{'  <- fastest' if peer is fastest else ''}", flush=True)


# ---- memory ----


def memory_berlu(args, memory, row, keep, more):
    with Quiet(args.pause):
        before = memory.used(None) if args.pause else 0
        process = berlu_start(args, ":".join(row.split(":")[:4] + [keep]), more)
        with Watch(memory, process) as watch:
            result = berlu_end(process)
    return result and (result["images_per_s"], watch.most - before)


def memory_torch(args, memory, row, modes):
    """Of each mode (rate, bytes): all are prepared side by side and take turns; then they end one by one, and what the
    driver gets back is what a process had."""
    peers = [Peer(args, row, mode) for mode in modes]
    peers = [peer for peer in peers if peer.ready()]
    found = {}
    with Quiet(args.pause):
        for _ in range(args.rounds):
            for peer in peers:
                peer.turn()
        for peer in peers:
            before = memory.used(peer.process)
            peer.end()
            if peer.rates:
                found[peer.mode] = (statistics.median(peer.rates), before - memory.used(peer.process))
    return found


def memory_curves(args, row):
    memory = Driver() if args.device == "cuda" else Resident()
    empty, points = empty_context(memory), []
    print(f"{row}: time and memory of a step; an empty context takes {empty / 2**20:.0f} MiB, which is subtracted", flush=True)

    def take(side, name, found):
        ms, gib = int(row.split(":")[2]) / found[0] * 1e3, (found[1] - empty) / 2**30
        points.append({"side": side, "name": name, "ms": ms, "gib": gib})
        print(f"    {side}, {name}: {ms:.3f} ms, {gib:.3f} GiB", flush=True)

    for keep in args.keeps:
        for more in ((), ("--recompute-attention",)):
            found = memory_berlu(args, memory, row, keep, more)
            if not found:
                break
            take("berlu", f"keep {keep}{', attention recomputed' if more else ''}", found)
    kind = args.modes[0].partition("+")[0]
    modes = [f"{kind}+budget{b}" for b in args.budgets] if kind != "eager" else [kind]
    for mode, found in memory_torch(args, memory, row, modes).items():
        take("torch", mode, found)
    above = step_plots.not_dominated(points)
    print(f"    berlu lies below torch's curve everywhere: {'no, not at ' + ', '.join(above) if above else 'yes'}", flush=True)
    if args.svg:
        step_plots.write(args.svg, step_plots.curves(points, row))
    if args.csv:
        step_sweep.points_write(args.csv, row, points)


# ---- several processes on one card ----


def together(cells):
    """A turn of all at once."""
    threads = [threading.Thread(target=cell.turn) for cell in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def processes(args, row):
    berlu_end(berlu_start(args, row))  # choices of algorithms are made once
    alone = None
    for count in args.processes:
        totals, cells = [], [Ours(args, row) for _ in range(count)]
        if not all([cell.ready() for cell in cells]):
            break
        with Quiet(args.pause):
            for _ in range(args.rounds):
                together(cells)
                totals.append(sum(cell.rates[-1] for cell in cells))
        for cell in cells:
            cell.end()
        if totals:
            alone = alone or statistics.median(totals) / count
            print(f"{row}: {count} process{'es' if count > 1 else ''}: {spread(totals)} together, "
                  f"{statistics.median(totals) / alone:.3f} of the first line's one", flush=True)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", nargs="*")
    p.add_argument("--berlu", default="build/berlu")
    p.add_argument("--berlu-env", action="append", default=[], metavar="NAME=VALUE", help="environment of berlu alone")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--modes", type=lambda text: text.split(","), default=None, help="of torch, with commas; none: berlu alone")
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    p.add_argument("--ahead", type=int, default=1, metavar="N", help="rows prepared side by side before they are measured")
    p.add_argument("--pause", type=sessions, metavar="SESSION,...", help="sessions that are stopped while something is measured")
    p.add_argument("--berlu-torch", action="store_true")
    p.add_argument("--memory", action="store_true")
    p.add_argument("--budgets", type=lambda text: text.split(","), default=["1.0", "0.7", "0.5", "0.3"])
    p.add_argument("--keeps", type=lambda text: text.split(","), default=["both", "input", "output"], help="berlu's, of --memory")
    p.add_argument("--sweep", action="store_true")
    p.add_argument("--processes", type=lambda text: [int(n) for n in text.split(",")], metavar="N,N")
    p.add_argument("--csv", metavar="FILE", help="results of --sweep, which goes on where they end, or of --memory")
    p.add_argument("--svg", metavar="FILE", help="plot of --memory or --sweep")
    p.add_argument("--for", dest="limit", type=float, default=float("inf"), metavar="SECONDS", help="begin nothing after that")
    p.add_argument("--widths", type=lambda text: [int(n) for n in text.split(",")], default=step_sweep.WIDTHS)
    p.add_argument("--tokens", type=lambda text: [int(n) for n in text.split(",")], default=step_sweep.TOKENS)
    p.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=step_sweep.BATCHES)
    return p


def ended(*_):
    """Torch's processes end with this one (Peer.kill), however often it is told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def main():
    p = options()
    args = p.parse_args()
    signal.signal(signal.SIGTERM, ended)
    cpu = args.device == "cpu"
    args.modes = [] if args.modes == ["none"] else args.modes or (["eager"] if cpu else ["graph"] if args.sweep or args.memory else ["graph", "graph+cls", "default", "reduce-overhead"])
    try:
        kinds = [Mode(mode).kind for mode in args.modes]
    except ValueError as error:
        p.error(str(error))
    if cpu and set(kinds) & {"graph", "reduce-overhead"}:
        p.error("graphs are CUDA's: --device cpu takes default and eager")
    rows = args.rows or (CPU_DEFAULT if cpu else DEFAULT[:1] if args.memory or args.processes else DEFAULT)
    for row in rows:
        if len(row.split(":")) not in (4, 5) or row.split(":")[0] not in CALLS:
            p.error(f"'{row}' is not MODEL:ACT:BATCH:STREAM[:KEEP] with a model of {', '.join(CALLS)}")
    if not args.modes and (args.sweep or args.memory):
        p.error("--sweep and --memory compare: --modes none is for rows alone")
    if args.sweep:
        if not args.csv:
            p.error("--sweep needs --csv")
        step_sweep.run(args, prepare, measure)
    elif args.memory:
        for row in rows:
            memory_curves(args, row)
    elif args.processes:
        for row in rows:
            processes(args, row)
    else:
        for first in range(0, len(rows), args.ahead):
            for row, cells in prepare(args, rows[first:first + args.ahead]).items():
                compare(args, row, *cells)


if __name__ == "__main__":
    main()
