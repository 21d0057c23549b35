#!/usr/bin/env python3
"""Training steps of berlu and of PyTorch (timm) by turns on the same machine: images/s of both and the ratio.

    python bench/step_torch.py [--berlu build/berlu] [--threads 2] [--rounds 5] [--cpu-time] [MODEL:BATCH ...]

A step is forward, cross entropy, backward, clipping to norm 1, AdamW, in f32. Each round runs one after the other, PyTorch in a process
of its own (so that neither's threads disturb the other), with malloc kept from returning memory, which is PyTorch's better setting;
the figure is the median over rounds. --compile adds torch.compile. --cpu-time counts processor time of one thread instead of
the clock: for machines that others use too. --memory compares what is kept between forward and backward. Needs torch and timm."""
import argparse, json, os, statistics, subprocess, sys, time

CALLS = {
    "vit_tiny_cifar": ("vit_tiny_patch16_224", dict(img_size=32, patch_size=4, num_classes=10)),
    "tnt_s_cifar": ("tnt_s_patch16_224", dict(img_size=32, patch_size=4, first_stride=1, num_classes=10)),
    "convnext_atto_cifar": ("convnext_atto", dict(patch_size=1, num_classes=10)),
}
DEFAULT = ["vit_tiny_cifar:32", "convnext_atto_cifar:16", "tnt_s_cifar:16"]


def kept_bytes(model, x, y, loss):
    """Bytes that autograd saves, by storage, without parameters and input."""
    import torch
    known = {p.untyped_storage().data_ptr() for p in model.parameters()} | {x.untyped_storage().data_ptr()}
    seen = {}

    def pack(t):
        s = t.untyped_storage()
        if s.data_ptr() not in known:
            seen[s.data_ptr()] = (s.nbytes(), t)
        return t
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss(model(x), y)
    return sum(n for n, _ in seen.values())


def torch_side(name, batch, threads, seconds, compiled, cpu_time, memory):
    import torch, timm
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    call, options = CALLS[name]
    model = timm.create_model(call, **options).train()
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    loss = torch.nn.functional.cross_entropy
    if memory:
        print(json.dumps({"kept": kept_bytes(model, x, y, loss), "version": torch.__version__}))
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    run = torch.compile(model) if compiled else model
    clock = time.process_time if cpu_time else time.perf_counter

    def step():
        loss(run(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    step(), step()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        t = clock()
        step()
        times.append(clock() - t)
    print(json.dumps({"images_per_s": batch / statistics.median(times), "version": torch.__version__}))


def torch_run(args, name, batch, *extra):
    tuned = dict(os.environ, MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="4294967296", MALLOC_TOP_PAD_="268435456",
                 OMP_NUM_THREADS=str(args.threads))
    command = [sys.executable, __file__, "--torch-side", f"{name}:{batch}", "--threads", str(args.threads), "--seconds", str(args.seconds)]
    return json.loads(subprocess.run(command + list(extra), env=tuned, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def berlu_run(args, name, batch, what="step"):
    # In one thread the processor time of a step is what the clock would say on a machine of one's own.
    command = [args.berlu, "bench", what, name, "--batch", str(batch), "--threads", str(args.threads), "--json"]
    if what == "step":
        command += ["--seconds", str(args.seconds), "--steps", "3"] + (["--cpu-time"] if args.cpu_time else [])
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)["rows"][0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*", default=DEFAULT)
    p.add_argument("--berlu", default="build/berlu")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=4)
    for flag in ("compile", "cpu-time", "memory"):
        p.add_argument("--" + flag, action="store_true")
    p.add_argument("--torch-side", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.torch_side:
        name, batch = args.torch_side.split(":")
        torch_side(name, int(batch), args.threads, args.seconds, args.compile, args.cpu_time, args.memory)
        return
    if args.cpu_time:
        args.threads = 1
    flags = ["--cpu-time"] if args.cpu_time else []
    for spec in args.models or DEFAULT:
        name, batch = spec.split(":")
        if args.memory:
            ours, theirs = berlu_run(args, name, int(batch), "memory")["kept_bytes"], torch_run(args, name, batch, "--memory")
            print(f"{spec}: kept by berlu {ours / 2**20:.1f} MiB, by torch {theirs['version']} {theirs['kept'] / 2**20:.1f} MiB, ratio {ours / theirs['kept']:.3f}", flush=True)
            continue
        ours, eager, compiled = [], [], []
        for _ in range(args.rounds):
            ours.append(berlu_run(args, name, int(batch))["images_per_s"])
            answer = torch_run(args, name, batch, *flags)
            eager.append(answer["images_per_s"])
            if args.compile:
                compiled.append(torch_run(args, name, batch, "--compile", *flags)["images_per_s"])
        a, b = statistics.median(ours), statistics.median(eager)
        line = f"{spec} threads {args.threads}: berlu {a:.1f}, torch {answer['version']} eager {b:.1f} images/s, ratio {a / b:.2f}"
        if compiled:
            c = statistics.median(compiled)
            line += f"; compiled {c:.1f}, ratio {a / c:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
