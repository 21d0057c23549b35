#!/usr/bin/env python3
"""torch_ops.py - BerLU through PyTorch beside what PyTorch has itself, in ratios.
SPDX-License-Identifier: MIT

Needs torch; timm for ConvNeXt and ResNet (the ViT is written by hand where timm is missing).
docs/python.md says how to install. Candidates of a table run in turns: a ratio within one table
says more on a busy machine than any time. Tables of single calls (the least time of a block counts):

    call     64 elements: what a call costs besides computing
    large    256 Ki and 4 Mi elements (CPU), forward and backward with the gradient of alpha, eager and compiled
    memory   bytes kept between forward and backward of ViT-Tiny/4, batch 32
    gpu      128 Mi bf16 against a copy and an add
    op_call  64 elements on --device: what a call of an operator costs the CPU; compiled programs call those without
             a derivative, which end in _raw

Tables of training steps (medians and least times of turns; torch_cells.py, a process for each candidate):

    step     ViT-Tiny/4 with each activation on the CPU, eager and compiled
    gpu_step the same on a GPU, batch 1024, bf16 autocast, also in reduce-overhead mode and as a captured graph;
             peak memory, and whether the losses are the same
    defaults compiled steps of ViT-Tiny/4, ConvNeXt-T and ResNet-50 with native and with pure operators (--backends:
             auto too), alpha learned and fixed, beside the network's own activation, on --device: what
             backend="auto" chooses by

On a CPU with --threads 1 the times of steps are those of the processor, which a busy machine changes least.

    bench/torch_ops.py [TABLE ...] [--device cpu|cuda] [--threads 2] [--seconds 2] [--ahead 1] [--jobs N]"""

import argparse
import signal
import sys
import time

import torch
from torch import nn

import berlu.torch as bt
import torch_cells
from quiet import Quiet, sessions


class Composition(nn.Module):
    """BerLU as anyone would write it."""

    def __init__(self, eps=0.01):
        super().__init__()
        self.alpha, self.eps = nn.Parameter(torch.tensor([0.01])), eps

    def forward(self, x):
        a, e = self.alpha, self.eps
        knee = (1 - a) / (4 * e) * x * x + (1 + a) / 2 * x + (1 - a) * e / 4
        return torch.where(x > e, x, torch.where(x < -e, a * x, knee))


def interleaved(candidates, seconds, wait=lambda: None, clock=time.perf_counter):
    """The least seconds per run of each candidate; all take turns until the time is over."""

    def block(run, count):
        start = clock()
        for _ in range(count):
            run()
        wait()
        return (clock() - start) / count

    counts = {name: max(1, int(0.005 / min(block(run, 1) for _ in range(6)))) for name, run in candidates.items()}
    best = {name: float("inf") for name in candidates}
    end = time.perf_counter() + seconds * len(candidates)
    while time.perf_counter() < end:
        for name, run in candidates.items():
            best[name] = min(best[name], block(run, counts[name]))
    return best


def table(title, best, base):
    print(f"\n{title}\n{'':34} {'us':>10} {'x of ' + base:>16}")
    for name, seconds in best.items():
        print(f"{name:34} {seconds * 1e6:10.1f} {seconds / best[base]:16.3f}", flush=True)


def both(module, x, dy):
    leaves = [x, *module.parameters()]

    def run():
        torch.autograd.grad(module(x), leaves, dy)

    return run


def forward_only(module, x):
    def run():
        with torch.no_grad():
            module(x)

    return run


MODULES = {"nn.GELU": nn.GELU, "nn.PReLU": nn.PReLU, "composition": Composition, "berlu": bt.BerLU}


def call(args):
    x = torch.randn(64, requires_grad=True)
    dy = torch.ones_like(x)
    torch.set_num_threads(1)
    kinds = {"forward without gradient": lambda m: forward_only(m, x), "forward and backward": lambda m: both(m, x, dy)}
    for (
        kind,
        run,
    ) in kinds.items():  # all in one thread, so that its own time can count, which others on the machine do not change
        best = interleaved({n: run(m()) for n, m in MODULES.items()}, args.seconds, clock=time.process_time)
        table(f"64 elements, {kind}, CPU time", best, "nn.GELU")
    torch.set_num_threads(args.threads)


def large(args):
    for count in (256 << 10, 4 << 20):
        x = torch.randn(count, requires_grad=True)
        dy = torch.randn(count)
        best = interleaved({n: both(m(), x, dy) for n, m in MODULES.items()}, args.seconds)
        table(f"{count >> 10} Ki f32, forward and backward, eager", best, "berlu")
        compiled = {
            f"compiled {n}": both(torch.compile(m()), x, dy)
            for n, m in MODULES.items()
            if n in ("composition", "berlu")
        }
        table(
            f"{count >> 10} Ki f32, forward and backward, compiled",
            interleaved(compiled, args.seconds),
            "compiled berlu",
        )


def memory(args):
    print("\nViT-Tiny/4, batch 32, kept between forward and backward")
    base = None
    for name, act in torch_cells.ACTS.items():
        model, x, kept = torch_cells.network("ViT-Tiny/4", act), torch.randn(32, 3, 32, 32), {}
        owned = {p.untyped_storage().data_ptr() for p in model.parameters()}

        def pack(t):
            if t.untyped_storage().data_ptr() not in owned:
                kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            loss = model(x).square().mean()
        total = sum(kept.values())
        base = base or total
        print(f"{name:34} {total / 2**20:8.1f} MiB {total / base:8.3f}")
        del loss


def gpu(args, device="cuda", count=128 << 20):
    if not torch.cuda.is_available() and device == "cuda":
        print("\nno GPU: the table gpu is left out")
        return
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    x = torch.randn(count, device=device, dtype=torch.bfloat16, requires_grad=True)
    dy, out, plain = torch.randn_like(x), torch.empty_like(x), x.detach()
    modules = {n: m().to(device) for n, m in MODULES.items()}
    for name in ("nn.PReLU", "composition"):  # torch's own take a bf16 x with bf16 parameters only, or answer in f32
        modules[name].to(torch.bfloat16)
    runs = {"copy": lambda: out.copy_(plain)}
    runs.update({f"{n}, forward": forward_only(m, x) for n, m in modules.items()})
    table(f"{count >> 20} Mi bf16, forward", interleaved(runs, args.seconds, wait), "copy")
    runs = {"add": lambda: torch.add(plain, dy, out=out)}
    for n, m in modules.items():
        y = m(x)
        runs[f"{n}, backward"] = lambda y=y, m=m: torch.autograd.grad(y, [x, *m.parameters()], dy, retain_graph=True)
    table(f"{count >> 20} Mi bf16, backward", interleaved(runs, args.seconds, wait), "add")


def op_call(args):
    """What the CPU does for a call: 64 elements, and nothing waits for the result."""
    cuda, device = args.device == "cuda", args.device
    torch.set_num_threads(1)
    x = torch.randn(64, device=device, dtype=torch.bfloat16 if cuda else torch.float32)
    leaf, dy, act = x.clone().requires_grad_(), torch.ones_like(x), bt.BerLU().to(device)
    rest, ops = (act.alpha.detach(), None, act.spec, -1), torch.ops.berlu

    def without_gradient(run):
        def call():
            with torch.no_grad():
                run()

        return call

    calls = {
        "aten::gelu": lambda: torch.ops.aten.gelu.default(x),
        "berlu::forward_raw": lambda: ops.forward_raw.default(x, *rest),
        "berlu::forward": lambda: ops.forward.default(x, *rest),
        "aten::gelu_backward": lambda: torch.ops.aten.gelu_backward.default(dy, x),
        "berlu::backward_raw": lambda: ops.backward_raw.default(dy, x, *rest, True, False),
        "berlu::backward": lambda: ops.backward.default(dy, x, *rest, True, False),
    }
    runs = {name: without_gradient(run) for name, run in calls.items()}
    runs["nn.GELU, both"], runs["bt.BerLU, both"] = both(nn.GELU(), leaf, dy), both(act, leaf, dy)
    wait = torch.cuda.synchronize if cuda else lambda: None
    best = interleaved(runs, args.seconds, wait, time.process_time)
    table(f"64 elements on {device}, CPU time", best, "aten::gelu")
    torch.set_num_threads(args.threads)


CALLS = {"call": call, "large": large, "memory": memory, "gpu": gpu, "op_call": op_call}
STEPS = {
    "step": lambda args: torch_cells.steps(args, "cpu"),
    "gpu_step": lambda args: torch_cells.steps(args, "cuda"),
    "defaults": lambda args: torch_cells.defaults(args, args.device),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["call", "large", "memory", "step", "gpu", "gpu_step"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="per candidate")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of a turn of a training step")
    parser.add_argument("--ahead", type=int, default=1, metavar="N", help="tables of steps prepared side by side")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="candidates that compile at once")
    parser.add_argument("--prepare", type=float, default=1800, metavar="S", help="leave out what compiles longer")
    parser.add_argument("--batch", type=int, default=0, help="of the training steps")
    parser.add_argument("--kinds", nargs="*", help="of the tables step and gpu_step: eager, compiled, ...")
    parser.add_argument("--networks", nargs="*", help="of the table defaults")
    parser.add_argument("--compile", choices=[*torch_cells.COMPILED], default="compiled", help="of the table defaults")
    parser.add_argument("--backends", nargs="*", choices=[*torch_cells.BACKENDS], default=["native", "torch"])
    parser.add_argument(
        "--pause", type=sessions, metavar="SESSION,...", help="sessions that are stopped while something is measured"
    )
    args = parser.parse_args()
    for name in args.tables:
        if name not in {**CALLS, **STEPS}:
            parser.error(f"there is no table '{name}'; there are {', '.join({**CALLS, **STEPS})}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that candidates end with this process
    torch.set_num_threads(args.threads)
    print(
        f"torch {torch.__version__}, {args.threads} threads, native operators: {bt.native() or 'yes'}; "
        f"CUDA: {bt.cuda() or 'yes'}",
        flush=True,
    )
    for name in args.tables:
        if name in CALLS:
            with Quiet(args.pause):
                CALLS[name](args)
    if "gpu_step" in args.tables and not torch.cuda.is_available():
        print("\nno GPU: the table gpu_step is left out")
        args.tables.remove("gpu_step")
    torch_cells.run([STEPS[name](args) for name in args.tables if name in STEPS], args)


if __name__ == "__main__":
    main()
