#!/usr/bin/env python3
"""Training steps of berlu and of PyTorch on one GPU, interleaved: images/s, memory, and the ratio to the fastest torch.
SPDX-License-Identifier: MIT

    python bench/step_cuda.py [--berlu build/berlu] [--modes graph,default] [--rounds 5] [--ahead 2] [--inference] [ROW ...]

A ROW is MODEL:ACT:BATCH:STREAM[:KEEP], for instance vit_tiny_cifar:gelu:1024:bf16:both. STREAM is the dtype of the residual
stream, and fixes what torch is compared at equal precision: bf16 against a bf16 model with f32 master weights, f32 against
autocast. A step is forward, cross entropy, backward, clipping to norm 1 and AdamW. Modes of torch:

    default, reduce-overhead, max-autotune    of torch.compile
    graph                                     compiled, and the whole step, clip and update included, in one CUDA graph

each on torch's own choice of attention, or on one: graph+cudnn, graph+flash, graph+efficient, graph+math.

Every cell is a process that stays alive and idle between its turns; a round gives each a turn of --seconds, so that clocks
and temperature are shared. Figures are medians over rounds, then the ratio of berlu to the fastest cell. BerLU in torch is
the composition of torch operations, or with --berlu-torch the module of this project's Python package. Torch's memory is
what its allocator holds, berlu's what it planned. Nothing compiles while a row is measured; --ahead N prepares N rows side by
side, which saves time where compiling takes longer than measuring. --inference times answers alone. Needs torch and timm."""
import argparse, json, os, statistics, subprocess, sys, time

CALLS = {
    "vit_tiny_cifar": ("vit_tiny_patch16_224", dict(img_size=32, patch_size=4, num_classes=10), 32),
    "vit_tiny": ("vit_tiny_patch16_224", dict(num_classes=1000), 224),
    "tnt_s_cifar": ("tnt_s_patch16_224", dict(img_size=32, patch_size=4, first_stride=1, num_classes=10), 32),
    "convnext_tiny_cifar": ("convnext_tiny", dict(patch_size=1, num_classes=10), 32),
}
DEFAULT = ["vit_tiny_cifar:gelu:1024:bf16:both", "vit_tiny_cifar:gelu:1024:f32:both", "vit_tiny_cifar:berlu:1024:bf16:both",
           "vit_tiny_cifar:gelu:256:bf16:both"]


# ---- the torch side, in a process of its own ----

def act_make(name, package):
    import torch
    from torch import nn
    if name == "berlu" and package:
        import berlu.torch
        return berlu.torch.BerLU

    class Composition(nn.Module):
        def __init__(self, *_, **__):
            super().__init__()
            self.alpha = nn.Parameter(torch.tensor(0.01))

        def forward(self, x):
            e, a = 0.01, self.alpha
            inside = (1 - a) / (4 * e) * x * x + (1 + a) / 2 * x + (1 - a) * e / 4
            return torch.where(x < -e, a * x, torch.where(x > e, x, inside)).to(x.dtype)
    known = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU, "mish": nn.Mish, "prelu": lambda *_, **__: nn.PReLU()}
    return Composition if name == "berlu" else known[name]


def model_make(name, act, package):
    import timm
    from torch import nn
    call, options, size = CALLS[name]
    kind = act_make(act, package)
    if not name.startswith("tnt"):
        return timm.create_model(call, act_layer=kind, **options), size
    model = timm.create_model(call, **options)  # TNT takes no activation
    for module in list(model.modules()):
        for child, value in list(module.named_children()):
            if isinstance(value, nn.GELU):
                setattr(module, child, kind())
    return model, size


def step_make(row, mode, inference, package):
    """A function that enqueues one step."""
    import torch
    from torch.nn import functional as F
    name, act, batch, stream = row.split(":")[:4]
    batch = int(batch)
    model, size = model_make(name, act, package)
    model = model.to("cuda")
    layout = torch.channels_last if name.startswith("convnext") else torch.contiguous_format
    model = model.to(memory_format=layout).train(not inference)
    masters = None
    if stream == "bf16":
        masters = [p.detach().clone().float() for p in model.parameters()]
        model = model.bfloat16()
        for w in masters:
            w.grad = torch.zeros_like(w)
    params = list(model.parameters())
    dtype = torch.bfloat16 if masters else torch.float32
    x = torch.randn(batch, 3, size, size, device="cuda", dtype=dtype).contiguous(memory_format=layout)
    y = torch.randint(0, 10, (batch,), device="cuda")
    run = torch.compile(model, mode=None if mode in ("default", "graph") else mode)
    cast = lambda: torch.autocast("cuda", torch.bfloat16, enabled=not masters)
    if inference:
        def answer():
            with torch.inference_mode(), cast():
                run(x)
        return answer
    optimizer = torch.optim.AdamW(masters or params, lr=1e-3, weight_decay=0.05, fused=True, capturable=mode == "graph")

    def step():
        with cast():
            loss = F.cross_entropy(run(x).float(), y)
        loss.backward()
        if masters:
            torch._foreach_copy_([w.grad for w in masters], [p.grad for p in params])
        torch.nn.utils.clip_grad_norm_(masters or params, 1.0, foreach=True)
        optimizer.step()
        if masters:
            torch._foreach_copy_([p.data for p in params], masters)
        for p in params:
            p.grad = None
    return step


def torch_side(args):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    row, mode = args.torch_side.rsplit("/", 1)
    mode, _, attention = mode.partition("+")
    if attention:
        for name, enable in dict(flash=torch.backends.cuda.enable_flash_sdp, efficient=torch.backends.cuda.enable_mem_efficient_sdp,
                                 math=torch.backends.cuda.enable_math_sdp, cudnn=torch.backends.cuda.enable_cudnn_sdp).items():
            enable(name == attention)
    step = step_make(row, mode, args.inference, args.berlu_torch)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(6):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    if mode == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        captured, step = step, graph.replay  # the closure owns the weights and images that the graph reads and writes
    torch.cuda.empty_cache()
    for _ in range(6):
        step()
    torch.cuda.synchronize()
    memory = torch.cuda.memory_reserved()
    print("ready", flush=True)
    batch = int(row.split(":")[2])
    for _ in sys.stdin:  # one measurement per line
        steps, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < args.seconds:
            for _ in range(10):
                step()
            torch.cuda.synchronize()
            steps += 10
        rate = batch * steps / (time.perf_counter() - begin)
        print(json.dumps({"images_per_s": rate, "bytes": memory, "version": torch.__version__}), flush=True)


# ---- rounds ----

class Peer:
    def __init__(self, args, row, mode):
        command = [sys.executable, __file__, "--torch-side", f"{row}/{mode}", "--seconds", str(args.seconds)]
        command += ["--inference"] * args.inference + ["--berlu-torch"] * args.berlu_torch
        self.mode, self.rates, self.last = mode, [], {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def answer(self, beginning):
        for line in self.process.stdout:
            if line.startswith(beginning):
                return line
        last = (self.process.stderr.read().strip().splitlines() or ["no message"])[-1]
        print(f"    torch {self.mode}: ended with code {self.process.wait()}: {last}", flush=True)
        return None

    def turn(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.answer("{")
        if line:
            self.last = json.loads(line)
            self.rates.append(self.last["images_per_s"])


def berlu_run(args, row):
    name, act, batch, stream, keep = (row.split(":") + ["both"])[:5]
    command = [args.berlu, "bench", "step", name, "--device", "cuda", "--act", act, "--batch", batch, "--residual", stream,
               "--keep", keep, "--seconds", str(args.seconds), "--json"] + ["--mode", "infer"] * args.inference
    env = dict(os.environ, **dict(pair.split("=", 1) for pair in args.berlu_env))
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)["rows"][0]


def prepare(args, rows):
    """The torch processes of several rows, warm and idle."""
    peers = {row: [Peer(args, row, mode) for mode in args.modes.split(",")] for row in rows}  # they compile side by side
    return {row: [peer for peer in cells if peer.answer("ready")] for row, cells in peers.items()}


def compare(args, row, peers):
    ours, result = [], {}
    for _ in range(args.rounds):
        result = berlu_run(args, row)
        ours.append(result["images_per_s"])
        for peer in peers:
            peer.turn()
    for peer in peers:
        peer.process.stdin.close()
        peer.process.wait()
    rate = statistics.median(ours)
    print(f"{row}: berlu {rate:.0f} images/s ({min(ours):.0f} to {max(ours):.0f}), planned {result['planned_bytes'] / 2**20:.0f} MiB", flush=True)
    peers = sorted((peer for peer in peers if peer.rates), key=lambda peer: -statistics.median(peer.rates))
    for place, peer in enumerate(peers):
        theirs = statistics.median(peer.rates)
        print(f"    torch {peer.last['version']} {peer.mode}: {theirs:.0f} ({min(peer.rates):.0f} to {max(peer.rates):.0f}), "
              f"{peer.last['bytes'] / 2**20:.0f} MiB, ratio {rate / theirs:.2f}{'  <- fastest' if place == 0 else ''}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", nargs="*")
    p.add_argument("--berlu", default="build/berlu")
    p.add_argument("--berlu-env", action="append", default=[], metavar="NAME=VALUE", help="environment of berlu alone")
    p.add_argument("--modes", default="graph,default,reduce-overhead")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--ahead", type=int, default=1, metavar="N", help="rows prepared side by side before they are measured")
    p.add_argument("--inference", action="store_true")
    p.add_argument("--berlu-torch", action="store_true")
    p.add_argument("--torch-side", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.torch_side:
        torch_side(args)
        return
    rows = args.rows or DEFAULT
    for row in rows:
        if len(row.split(":")) not in (4, 5) or row.split(":")[0] not in CALLS:
            p.error(f"'{row}' is not MODEL:ACT:BATCH:STREAM[:KEEP] with a model of {', '.join(CALLS)}")
    for first in range(0, len(rows), args.ahead):
        for row, peers in prepare(args, rows[first:first + args.ahead]).items():
            compare(args, row, peers)


if __name__ == "__main__":
    main()
