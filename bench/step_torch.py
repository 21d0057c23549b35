#!/usr/bin/env python3
"""Training steps of berlu and of PyTorch, interleaved on the same machine: images/s of both and the ratio.
SPDX-License-Identifier: MIT

    python bench/step_torch.py [--berlu build/berlu] [--peers eager,compiled,debian] [--rounds 5] [--log FILE]
                               [MODEL:BATCH ...]

A step is forward, cross entropy, backward, clipping to norm 1, AdamW, in f32. Each round runs berlu and then every
peer for some seconds, each in a process of its own; peers stay alive between rounds, asleep, so that rounds can be
short and follow each other closely: on a machine shared with other virtual machines minutes differ more than programs.
Results are medians over the rounds. Peers:

    eager      timm's model, fused AdamW, malloc kept from returning memory (worth a factor of 1.2)
    compiled   the same under torch.compile (needs a C++ compiler; the first run compiles for a minute or two)
    debian     another torch, that of --debian-python (Debian's python3-torch has no timm, so only ViT:
               vit_by_hand.py), whose OpenMP and OpenBLAS threads compete by default: measured with each of two
               remedies, the better one counts

--log FILE appends every measurement to FILE and takes the medians over all of it, so that a long comparison can be
made in short pieces (--rounds 1, --peers compiled ...). --memory compares the memory saved for the backward pass,
with and without recomputing attention's output. --cpu-time counts processor time of one thread instead of the clock.
Needs torch and timm."""
import argparse, json, os, pathlib, statistics, subprocess, sys, time

CALLS = {
    "vit_tiny_cifar": ("vit_tiny_patch16_224", dict(img_size=32, patch_size=4, num_classes=10)),
    "tnt_s_cifar": ("tnt_s_patch16_224", dict(img_size=32, patch_size=4, first_stride=1, num_classes=10)),
    "convnext_atto_cifar": ("convnext_atto", dict(patch_size=1, num_classes=10)),
}
DEFAULT = ["vit_tiny_cifar:32", "convnext_atto_cifar:16", "tnt_s_cifar:16"]
TUNED = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}
PEERS = {  # flags of the peer's process and its environment; of several settings the better one counts
    "eager": [([], {})],
    "compiled": [(["--compile"], {})],
    "debian": [(["--by-hand"], {"OMP_WAIT_POLICY": "PASSIVE"}), (["--by-hand"], {"OPENBLAS_NUM_THREADS": "1"})],
}


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


def model_make(name, by_hand):
    if by_hand:
        from vit_by_hand import ViT
        return ViT(image=32, patch=4, width=192, depth=12, heads=3, classes=10)
    import timm
    call, options = CALLS[name]
    return timm.create_model(call, **options)


def torch_side(name, batch, args):
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = model_make(name, args.by_hand).train()
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    loss = torch.nn.functional.cross_entropy
    if args.memory:
        print(json.dumps({"kept": kept_bytes(model, x, y, loss), "version": torch.__version__}))
        return
    faster = {"foreach": True} if torch.__version__.startswith("1.") else {"fused": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, **faster)
    run = torch.compile(model) if args.compile else model
    clock = time.process_time if args.cpu_time else time.perf_counter

    def step():
        loss(run(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    step(), step()
    print("ready", flush=True)
    for _ in sys.stdin:  # one measurement per line
        times, begin = [], time.perf_counter()
        step()
        while len(times) < 3 or time.perf_counter() - begin < args.seconds:
            t = clock()
            step()
            times.append(clock() - t)
        print(json.dumps({"images_per_s": batch / statistics.median(times), "version": torch.__version__}), flush=True)


def torch_start(args, spec, python, flags, env):
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads), **TUNED, **env)
    command = [python, __file__, "--torch-side", spec, "--threads", str(args.threads), "--seconds", str(args.seconds)]
    command += flags + (["--cpu-time"] if args.cpu_time else [])
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_read(process, beginning):
    for line in process.stdout:
        if line.startswith(beginning):
            return line
    sys.exit(f"{' '.join(process.args)}: ended with code {process.wait()}")


def measured(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    return json.loads(line_read(process, "{"))


def berlu_run(args, spec, what, flags=()):
    name, batch = spec.split(":")
    command = [args.berlu, "bench", what, name, "--batch", batch, "--threads", str(args.threads), "--json", *flags]
    if what == "step":  # in one thread a step's processor time is its wall time on an idle machine
        command += ["--seconds", str(args.seconds), "--steps", "3"] + (["--cpu-time"] if args.cpu_time else [])
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)["rows"][0]


def memory_compare(args, spec):
    with torch_start(args, spec, sys.executable, ["--memory"], {}) as process:
        theirs = json.loads(line_read(process, "{"))
    for words, flags in (("", []), (", attention recomputed", ["--recompute-attention"])):
        ours = berlu_run(args, spec, "memory", flags)
        print(f"{spec}{words}: kept by berlu {ours['kept_bytes'] / 2**20:.1f} MiB, by torch {theirs['version']} {theirs['kept'] / 2**20:.1f} MiB, "
              f"ratio {ours['kept_bytes'] / theirs['kept']:.3f}; plan {ours['planned_bytes'] / 2**20:.1f} MiB, "
              f"peak {ours['peak_bytes'] / 2**20:.1f} MiB", flush=True)


def peers_start(args, spec):
    """Every peer in every setting, warm: pairs of name and process."""
    peers = []
    for peer in args.peers.split(","):
        if peer == "debian" and not spec.startswith("vit_tiny_cifar"):
            continue
        for flags, env in PEERS[peer]:
            setting = " ".join(f"{key}={value}" for key, value in env.items())
            process = torch_start(args, spec, args.debian_python if peer == "debian" else sys.executable, flags, env)
            peers.append((f"{peer} {setting}".strip(), process))
            line_read(process, "ready")
    return peers


def measure(args, spec, log):
    def note(who, rate, version=""):
        log.append({"spec": spec, "who": who, "threads": args.threads, "images_per_s": rate, "version": version})
        if args.log:
            with open(args.log, "a") as file:
                file.write(json.dumps(log[-1]) + "\n")
    peers = peers_start(args, spec)
    for _ in range(args.rounds):
        note("berlu", berlu_run(args, spec, "step")["images_per_s"])
        for name, process in peers:
            result = measured(process)
            note(name, result["images_per_s"], result["version"])
    for _, process in peers:
        process.stdin.close()
        process.wait()


def report(spec, threads, log):
    rates = {}
    for row in log:
        if row["spec"] == spec and row["threads"] == threads:
            rates.setdefault((row["who"], row["version"]), []).append(row["images_per_s"])
    ours = statistics.median(rates.pop(("berlu", "")))
    print(f"{spec}, {threads} threads: berlu {ours:.1f} images/s")
    for (who, version), values in rates.items():
        rate = statistics.median(values)
        print(f"    torch {version} {who}: {rate:.1f} ({min(values):.1f} to {max(values):.1f}, {len(values)} rounds), ratio {ours / rate:.2f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*")
    p.add_argument("--berlu", default="build/berlu")
    p.add_argument("--peers", default="eager")
    p.add_argument("--debian-python", default="/usr/bin/python3")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--log")
    for flag in ("cpu-time", "memory"):
        p.add_argument("--" + flag, action="store_true")
    p.add_argument("--torch-side", help=argparse.SUPPRESS)
    for flag in ("compile", "by-hand"):
        p.add_argument("--" + flag, action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.torch_side:
        name, batch = args.torch_side.split(":")
        torch_side(name, int(batch), args)
        return
    unknown = [peer for peer in args.peers.split(",") if peer not in PEERS]
    if unknown:
        p.error(f"unknown peer '{unknown[0]}': {', '.join(PEERS)} are possible")
    if args.cpu_time:
        args.threads = 1
    log = [json.loads(line) for line in open(args.log)] if args.log and pathlib.Path(args.log).exists() else []
    for spec in args.models or DEFAULT:
        if args.memory:
            memory_compare(args, spec)
            continue
        measure(args, spec, log)
        report(spec, args.threads, log)


if __name__ == "__main__":
    main()
