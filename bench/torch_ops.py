#!/usr/bin/env python3
"""torch_ops.py - BerLU through PyTorch beside what PyTorch has itself, in ratios.
SPDX-License-Identifier: MIT

Needs torch; timm for ConvNeXt and ResNet (the ViT is written by hand where timm is missing).
docs/python.md says how to install. Candidates of a table run in turns, in blocks, and the least
time of a block counts: a ratio within one table says more on a busy machine than any time. Tables:

    call     64 elements: what a call costs besides computing
    large    256 Ki and 4 Mi elements (CPU), forward and backward with the gradient of alpha, eager and compiled
    memory   bytes kept between forward and backward of ViT-Tiny/4, batch 32
    step     a training step of ViT-Tiny/4 with each activation
    defaults compiled steps of ViT-Tiny/4, ConvNeXt-T and ResNet-50 with native and with pure operators, alpha
             learned and fixed, on the CPU and on a GPU where there is one: what backend="auto" chooses by
    gpu      128 Mi bf16 against a copy and an add
    gpu_step ViT-Tiny/4, batch 1024, bf16 autocast: eager, compiled, reduce-overhead, a captured graph; peak memory

    bench/torch_ops.py [TABLE ...] [--threads 2] [--seconds 2]"""

import argparse
import time

import torch
from torch import nn

import berlu.torch as bt


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
        print(f"{name:34} {seconds * 1e6:10.1f} {seconds / best[base]:16.2f}")


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


def vit(act):
    torch.manual_seed(0)
    try:
        import timm
    except ImportError:
        from vit_by_hand import ViT

        model = ViT(image=32, patch=4, width=192, depth=12, heads=3, classes=10)
    else:
        model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=4, num_classes=10)
    if act:
        bt.replace_activations(model, act)
    return model.train()


VITS = {"nn.GELU": None, "berlu": bt.BerLU, "berlu keep=output": lambda: bt.BerLU(keep="output")}


def memory(args):
    print("\nViT-Tiny/4, batch 32, kept between forward and backward")
    base = None
    for name, act in VITS.items():
        model, x, kept = vit(act), torch.randn(32, 3, 32, 32), {}
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


def step(args):
    x, labels, runs = torch.randn(32, 3, 32, 32), torch.arange(32) % 10, {}
    for compiled in (False, True):
        for name, act in VITS.items():
            model = vit(act)
            optimizer = torch.optim.AdamW(bt.parameter_groups(model, 0.05), lr=1e-4)
            f = torch.compile(model) if compiled else model

            def run(f=f, optimizer=optimizer):
                optimizer.zero_grad()
                nn.functional.cross_entropy(f(x), labels).backward()
                optimizer.step()

            runs[("compiled " if compiled else "") + name] = run
    table("ViT-Tiny/4, batch 32, a training step", interleaved(runs, args.seconds), "nn.GELU")


def training_step(f, model, x, labels, autocast=None):
    """One step of AdamW as a call without arguments."""
    optimizer = torch.optim.AdamW(bt.parameter_groups(model, 0.05), lr=1e-4, capturable=x.is_cuda)

    def run():
        optimizer.zero_grad()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=bool(autocast)):
            loss = nn.functional.cross_entropy(f(x).float(), labels)
        loss.backward()
        optimizer.step()

    return run


def networks():
    """(name, model with its own activations, side, batches on CPU and GPU)."""
    yield "ViT-Tiny/4", lambda: vit(None), 32, (32, 1024)
    try:
        import timm
    except ImportError as error:
        print(f"{error}: ConvNeXt-T and ResNet-50 are left out")
        return
    yield "ConvNeXt-T", lambda: timm.create_model("convnext_tiny"), 224, (2, 64)
    yield "ResNet-50", lambda: timm.create_model("resnet50"), 224, (2, 64)


def defaults(args):
    for place, device in enumerate(("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)):
        for name, make, side, batches in networks():
            batch, runs = batches[place], {}
            x, labels = torch.randn(batch, 3, side, side, device=device), torch.arange(batch, device=device) % 10
            for learn in ("alpha", "none"):
                for backend in ("native", "torch"):
                    torch._dynamo.reset()
                    torch.manual_seed(0)
                    model = make()
                    bt.replace_activations(model, lambda: bt.BerLU(learn=learn, backend=backend))
                    model = model.to(device).train()
                    run = training_step(torch.compile(model), model, x, labels, device == "cuda")
                    run()  # compiled before the next one resets the compiler
                    runs[f"{'learned' if learn == 'alpha' else 'fixed'} alpha, {backend}"] = run
            wait = torch.cuda.synchronize if device == "cuda" else lambda: None
            table(f"{name}, batch {batch}, {device}, compiled step", interleaved(runs, args.seconds, wait), next(iter(runs)))


def captured(run):
    """The step inside a CUDA graph, after three runs on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def gpu_step(args):
    if not torch.cuda.is_available():
        print("\nno GPU: the table gpu_step is left out")
        return
    x, labels = torch.randn(1024, 3, 32, 32, device="cuda"), torch.arange(1024, device="cuda") % 10
    runs, peaks = {}, {}
    for kind in ("eager", "compiled", "reduce-overhead", "captured"):
        for name, act in VITS.items():
            model = vit(act).cuda()
            mode = "reduce-overhead" if kind == "reduce-overhead" else None
            f = torch.compile(model, mode=mode) if kind in ("compiled", "reduce-overhead") else model
            run = training_step(f, model, x, labels, autocast=True)
            run()
            if kind == "eager":
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                run()
                peaks[name] = torch.cuda.max_memory_allocated() - before
            runs[f"{kind} {name}"] = captured(run) if kind == "captured" else run
    table("ViT-Tiny/4, batch 1024, bf16, a step", interleaved(runs, args.seconds, torch.cuda.synchronize), "eager nn.GELU")
    for name, peak in peaks.items():
        print(f"peak of a step, {name:24} {peak / 2**20:8.0f} MiB {peak / peaks['nn.GELU']:6.3f}")


def gpu(args):
    if not torch.cuda.is_available():
        print("\nno GPU: the table gpu is left out")
        return
    x = torch.randn(128 << 20, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    dy, out = torch.randn_like(x), torch.empty_like(x)
    with torch.no_grad():
        runs = {"copy": lambda: out.copy_(x.detach()), "add": lambda: torch.add(x.detach(), dy, out=out)}
    modules = {n: m().cuda() for n, m in MODULES.items()}
    runs.update({f"{n}, forward": forward_only(m, x) for n, m in modules.items()})
    table("128 Mi bf16, forward", interleaved(runs, args.seconds, torch.cuda.synchronize), "copy")
    with torch.no_grad():
        adds = {"add": lambda: torch.add(x.detach(), dy, out=out)}
    for n, m in modules.items():
        y = m(x)
        adds[f"{n}, backward"] = lambda y=y, m=m: torch.autograd.grad(y, [x, *m.parameters()], dy, retain_graph=True)
    table("128 Mi bf16, backward", interleaved(adds, args.seconds, torch.cuda.synchronize), "add")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["call", "large", "memory", "step", "gpu", "gpu_step"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="per candidate")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(
        f"torch {torch.__version__}, {args.threads} threads, native operators: {bt.native() or 'yes'}; "
        f"CUDA: {bt.cuda() or 'yes'}"
    )
    known = {"call": call, "large": large, "memory": memory, "step": step, "defaults": defaults, "gpu": gpu}
    known["gpu_step"] = gpu_step
    for name in args.tables:
        if name not in known:
            parser.error(f"there is no table '{name}'; there are {', '.join(known)}")
        known[name](args)


if __name__ == "__main__":
    main()
