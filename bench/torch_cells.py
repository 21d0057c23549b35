#!/usr/bin/env python3
"""torch_cells.py - training steps with each activation in processes of their own, measured by turns.
SPDX-License-Identifier: MIT

The tables `step`, `gpu_step` and `defaults` of torch_ops.py. A cell is a process that builds a network, compiles its
step and then waits: networks compile side by side, no cell meets another's guards or allocator, and measuring gives
each a turn, so that clocks, temperature and neighbours are shared. Nothing compiles while a table is measured.

    torch_cells.py JSON     one cell; `ready FACTS`, then a turn for every line of standard input"""

import contextlib
import json
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from quiet import Quiet

WARM = 3  # steps before anything counts; a CUDA graph is recorded in the second
NUMBERS = 10  # losses compared between cells
SHARE = 0.06  # of a GPU's memory; a cell that holds more gives it back after each turn, which costs the next one


# ---- a cell ----------------------------------------------------------------------------------------------------------


def vit():
    try:
        import timm
    except ImportError:
        from vit_by_hand import ViT

        return ViT(image=32, patch=4, width=192, depth=12, heads=3, classes=10)
    return timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=4, num_classes=10)


def network(name, act):
    """A network with the weights of seed 0; `act` holds the arguments of bt.BerLU, None its own activation."""
    import torch

    import berlu.torch as bt

    torch.manual_seed(0)
    if name == "ViT-Tiny/4":
        model = vit()
    else:
        import timm

        model = timm.create_model({"ConvNeXt-T": "convnext_tiny", "ResNet-50": "resnet50"}[name])
    if act is not None:
        bt.replace_activations(model, lambda: bt.BerLU(**act))
    return model.train()


def captured(run):
    """The step inside a CUDA graph, after runs on a stream of its own. Returns the loss of the replay."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = run()

    def replay():
        graph.replay()
        return loss

    return replay


def compile_blocks(model):
    """Compiles each block by itself: blocks of one shape share a program (ResNet-50 has eight, ConvNeXt-T four)."""
    import torch

    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.automatic_dynamic_shapes = False  # a block of another shape is another program
    for name, module in model.named_modules():
        if name.rpartition(".")[2].isdigit() and any(hasattr(module, part) for part in ("mlp", "conv3", "fc1")):
            module.compile()


class Step:
    """A training step as a call: AdamW, bf16 autocast on a GPU and f32 on a CPU."""

    def __init__(self, cell):
        import torch

        import berlu.torch as bt

        self.cuda = cell["device"] == "cuda"
        self.model = network(cell["network"], cell["act"]).to(cell["device"])
        self.x = torch.randn(cell["batch"], 3, cell["side"], cell["side"], device=cell["device"])
        self.labels = torch.arange(cell["batch"], device=cell["device"]) % 10
        self.start = [t.clone() for t in self.model.state_dict().values()]
        fast = {"fused": True, "capturable": True} if self.cuda else {}
        # A small rate: hundreds of steps on noise shall not move alpha below what keep="output" needs.
        self.optimizer = torch.optim.AdamW(bt.parameter_groups(self.model, 0.05), lr=1e-5, **fast)
        mode = "reduce-overhead" if cell["kind"] == "reduce-overhead" else None
        self.call = self.model
        if cell["kind"] in ("blocks", "captured-blocks"):
            compile_blocks(self.model)
        elif cell["kind"] in ("compiled", "reduce-overhead"):
            self.call = torch.compile(self.model, mode=mode)
        self.run = self.once
        if cell["kind"] in ("captured", "captured-blocks"):
            self.run = captured(self.once)

    def once(self):
        import torch

        self.optimizer.zero_grad()
        with torch.autocast(self.x.device.type, torch.bfloat16, enabled=self.cuda):
            loss = torch.nn.functional.cross_entropy(self.call(self.x).float(), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def wait(self):
        import torch

        if self.cuda:
            torch.cuda.synchronize()

    def losses(self):
        """The losses of the first steps, from the first weights."""
        import torch

        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for t, start in zip(self.model.state_dict().values(), self.start):
                t.copy_(start)
            for state in self.optimizer.state.values():
                for t in state.values():
                    t.zero_()
        out = []
        for _ in range(NUMBERS):
            self.x.copy_(torch.randn(self.x.shape, generator=generator))
            out.append(self.run().clone())
        return [float(loss) for loss in out]

    def peak(self):
        """Bytes that tensors take at most during a step, weights and optimizer included."""
        import torch

        torch.cuda.reset_peak_memory_stats()
        self.run()
        self.wait()
        return torch.cuda.max_memory_allocated()


def cell_main(cell):
    os.nice(cell["nice"])
    import torch

    torch.set_num_threads(cell["threads"])
    step = Step(cell)
    for _ in range(WARM):
        step.run()
    step.wait()
    facts = {}
    if step.cuda and cell["kind"] in ("eager", "compiled"):  # the memory of a CUDA graph is taken once, before
        facts["peak"] = step.peak()
    if cell["numbers"]:
        facts["losses"], facts["again"] = step.losses(), step.losses()
    # The time of one thread is its own: neighbours on the machine change it little.
    clock = time.process_time if cell["threads"] == 1 and not step.cuda else time.perf_counter
    count = 1
    print("ready", json.dumps(facts), flush=True)
    for line in sys.stdin:
        step.run()  # takes back from the driver what it gave back below
        step.run()
        step.wait()
        begin = clock()
        for _ in range(count):
            step.run()
        step.wait()
        seconds = (clock() - begin) / count
        count = max(1, round(float(line) / seconds))
        if step.cuda and "captured" not in cell["kind"] and torch.cuda.memory_reserved() > SHARE * torch.cuda.mem_get_info()[1]:
            torch.cuda.empty_cache()  # what an idle cell holds the others lack
        print("turn", seconds, flush=True)


# ---- the cells of a table, prepared together and measured by turns ---------------------------------------------------


class Cell:
    def __init__(self, name, what):
        self.name, self.what, self.seconds, self.facts, self.fault = name, what, [], None, None
        self.process, self.lines = None, queue.Queue()

    def start(self):
        self.errors, self.begin = tempfile.TemporaryFile("w+"), time.monotonic()
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps(self.what)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True)  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith(("ready ", "turn ")):
                self.lines.put(line.split(" ", 1))
        self.lines.put(("end", ""))

    def answer(self, timeout):
        """(word, rest), or None while there is none."""
        try:
            word, rest = self.lines.get(timeout=timeout)
        except queue.Empty:
            return None
        if word == "end":
            self.errors.seek(0)
            text = (self.errors.read().strip().splitlines() or ["no message"])[-1]
            self.fault = f"ended with code {self.process.wait()}: {text}"
        return word, rest

    def poll(self):
        """Whether the cell is ready, or has failed."""
        answer = self.answer(0.02)
        if answer and answer[0] == "ready":
            self.facts, self.prepared = json.loads(answer[1]), time.monotonic() - self.begin
        return answer is not None

    def turn(self, seconds):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        answer = self.answer(120)
        if answer and answer[0] == "turn":
            self.seconds.append(float(answer[1]))
        elif not self.fault:
            self.stop("a turn took over 120 s")

    def stop(self, why):
        self.fault = self.fault or why
        self.kill()

    def kill(self):
        """Together with the processes that compile for it; returns before they are gone."""
        with contextlib.suppress(ProcessLookupError):
            if self.process:
                os.killpg(self.process.pid, signal.SIGKILL)


def prepare(cells, jobs, seconds):
    waiting, busy, end = list(cells), [], time.monotonic() + seconds
    while waiting or busy:
        while waiting and len(busy) < jobs:
            busy.append(waiting.pop(0))
            busy[-1].start()
        busy = [cell for cell in busy if not cell.poll()]
        if time.monotonic() > end:
            for cell in busy + waiting:
                cell.stop(f"not ready after {seconds:.0f} s")
            return


def measure(cells, args):
    """Turns until the time is over; the first of each, whose length is a guess, does not count."""
    cells = [cell for cell in cells if not cell.fault]
    end = time.monotonic() + args.seconds * len(cells)
    rounds = 0
    while cells and (rounds < 4 or time.monotonic() < end):
        for cell in cells[rounds % len(cells) :] + cells[: rounds % len(cells)]:  # nobody follows the same one always
            cell.turn(args.turn)
        cells = [cell for cell in cells if not cell.fault]
        rounds += 1
    for cell in cells:
        cell.seconds = cell.seconds[1:]


def report(title, cells):
    good = [cell for cell in cells if cell.seconds]
    print(
        f"\n{title}\n{'':38} {'ms':>8} {'ratio':>6} {'least':>8} {'ratio':>6} {'spread':>7} "
        f"{'peak MiB':>9} {'ratio':>6}"
    )
    for cell in good:
        median, least = statistics.median(cell.seconds), min(cell.seconds)
        base = good[0]
        line = f"{cell.name:38} {median * 1e3:8.2f} {median / statistics.median(base.seconds):6.3f} {least * 1e3:8.2f} "
        line += f"{least / min(base.seconds):6.3f} {max(cell.seconds) / least - 1:6.1%} "
        if "peak" in cell.facts and "peak" in base.facts:
            line += f"{cell.facts['peak'] / 2**20:9.0f} {cell.facts['peak'] / base.facts['peak']:6.3f}"
        print(line)
    for cell in cells:
        if cell.fault:
            print(f"{cell.name:38} {cell.fault}")
    sys.stdout.flush()


def numbers(cells):
    """How far the losses of the first steps are apart between ways to run the same network."""
    known = {tuple(cell.name.split(" ", 1)): cell.facts for cell in cells if cell.facts and "losses" in cell.facts}
    for (kind, act), facts in known.items():
        others = {"eager": (), "compiled": ("eager",), "reduce-overhead": ("compiled", "eager"), "captured": ("eager",)}
        gaps = [("itself again", facts["again"])]
        gaps += [(other, known[other, act]["losses"]) for other in others[kind] if (other, act) in known]
        text = ", ".join(f"{max(abs(a - b) for a, b in zip(facts['losses'], b)):.1e} to {name}" for name, b in gaps)
        print(
            f"losses of {NUMBERS} steps, {kind} {act}: {facts['losses'][0]:.4f} to {facts['losses'][-1]:.4f}; "
            f"at most {text}"
        )
    sys.stdout.flush()


# ---- the tables ------------------------------------------------------------------------------------------------------

COMPILED = {
    "compiled": "compiled",
    "blocks": "its blocks compiled one by one",
    "captured-blocks": "its blocks compiled one by one, the step in a CUDA graph",  # the time of the GPU alone
    "reduce-overhead": "compiled in reduce-overhead mode",
}
BACKENDS = {"auto": "auto", "native": "native", "torch": "pure"}
ACTS = {"nn.GELU": None, "berlu": {}, "berlu keep=output": {"keep": "output"}}


def what(args, device, network, act, kind, batch, side=32, nice=0, numbers=False):
    return {"device": device, "network": network, "act": act, "kind": kind, "batch": batch, "side": side,
            "nice": nice, "numbers": numbers, "threads": args.threads}  # fmt: skip


def steps(args, device):
    """One group of cells: ViT-Tiny/4 run in every way."""
    cuda = device == "cuda"
    batch = args.batch or (1024 if cuda else 32)
    kinds = ("eager", "compiled", "captured", "reduce-overhead") if cuda else ("eager", "compiled")
    cells = [
        Cell(f"{kind} {name}", what(args, device, "ViT-Tiny/4", act, kind, batch, numbers=cuda))
        for kind in kinds
        if not args.kinds or kind in args.kinds
        for name, act in ACTS.items()
    ]
    yield f"ViT-Tiny/4, batch {batch}, {'bf16' if cuda else 'f32'}, a training step on {device}", cells


def defaults(args, device):
    """Groups of cells: what backend="auto" must choose by."""
    try:
        import timm  # noqa: F401

        names = {"ViT-Tiny/4": (32, 32, 2048), "ConvNeXt-T": (224, 2, 64), "ResNet-50": (224, 2, 64)}
    except ImportError as error:
        print(f"{error}: ConvNeXt-T and ResNet-50 are left out")
        names = {"ViT-Tiny/4": (32, 32, 2048)}  # at 1,024 a GPU waits for the CPU that launches its kernels
    for name, (side, small, large) in names.items():
        if args.networks and name not in args.networks:
            continue
        batch = args.batch or (large if device == "cuda" else small)
        acts = {"its own activation": None}
        for learn, word in (("alpha", "learned"), ("none", "fixed")):
            for backend in args.backends:
                acts[f"{word} alpha, {BACKENDS[backend]}"] = {"learn": learn, "backend": backend}
        cells = [
            Cell(row, what(args, device, name, act, args.compile, batch, side, nice=0 if device == "cuda" else 10))
            for row, act in acts.items()
        ]
        dtype, how = "bf16" if device == "cuda" else "f32", COMPILED[args.compile]
        yield f"{name}, batch {batch}, {dtype}, a step on {device}, {how}", cells


def run(tables, args):
    """Prepares and measures the groups of the tables, --ahead groups at a time."""
    groups = [group for table in tables for group in table]
    cpus = os.cpu_count() or 1
    jobs = args.jobs or max(1, cpus // 2)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(2, cpus // jobs)))
    for first in range(0, len(groups), args.ahead):
        some = groups[first : first + args.ahead]
        begin = time.monotonic()
        try:
            prepare([cell for _, cells in some for cell in cells], jobs, args.prepare)
            times = ", ".join(f"{cell.prepared:.0f}" for _, cells in some for cell in cells if cell.facts is not None)
            print(f"\nprepared in {time.monotonic() - begin:.0f} s ({times})", flush=True)
            for title, cells in some:
                with Quiet(args.pause):
                    measure(cells, args)
                report(title, cells)
                numbers(cells)
        finally:  # all at once: freeing the memory of a GPU takes each a while
            used = [cell for _, cells in some for cell in cells if cell.process]
            for cell in used:
                cell.kill()
            for cell in used:
                cell.process.wait()


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    cell_main(json.loads(sys.argv[1]))
