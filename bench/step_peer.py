#!/usr/bin/env python3
"""step_peer.py - PyTorch's side of step_cuda.py: one training step or forward pass, warm, measured on request.
SPDX-License-Identifier: MIT

    step_peer.py ROW MODE [--device cuda|cpu] [--seconds S] [--berlu-torch]

Prints `ready`, then for every line of standard input one JSON object with images/s over --seconds. ROW and MODE are those
of step_cuda.py. A process of its own, so that no cell meets another's guards, allocator or configuration."""
import argparse
import contextlib
import json
import sys
import time

VIT = {192: ("vit_tiny_patch16_224", "vit_tiny"), 384: ("vit_small_patch16_224", "vit_small"), 768: ("vit_base_patch16_224", "vit_base")}
CIFAR = dict(img_size=32, patch_size=4, num_classes=10)
CIFAR_WORDS = ["--image-size", "32", "--patch", "4", "--classes", "10"]

# Our name: timm's name, its options, side of the image, our model and options where they have another name.
CALLS = {
    "vit_tiny_cifar": ("vit_tiny_patch16_224", CIFAR, 32),
    "tnt_s_cifar": ("tnt_s_patch16_224", dict(CIFAR, first_stride=1), 32),
    "convnext_tiny_cifar": ("convnext_tiny", dict(patch_size=1, num_classes=10), 32),
    "vit_micro": ("vit_tiny_patch16_224", dict(CIFAR, embed_dim=64, depth=4, num_heads=2), 32),
}
for timm_name, ours in VIT.values():
    CALLS[ours] = (timm_name, dict(num_classes=1000), 224)
    CALLS[f"{ours}_32"] = (timm_name, CIFAR, 32, [ours, *CIFAR_WORDS])

ATTENTIONS = ("flash", "efficient", "math", "cudnn")
COMPILED = ("default", "reduce-overhead", "max-autotune", "graph")


class Mode:
    """How torch runs: graph, default, ..., eager; then words after a plus: an attention, `cls`, a memory budget."""

    def __init__(self, text):
        self.kind, *words = text.split("+")
        self.attention = next((w for w in words if w in ATTENTIONS), None)
        self.cls = "cls" in words
        self.budget = next((float(w[6:]) for w in words if w.startswith("budget")), None)
        unknown = [w for w in words if w not in ATTENTIONS and w != "cls" and not w.startswith("budget")]
        if self.kind not in (*COMPILED, "eager") or unknown:
            raise ValueError(f"'{text}' is no mode: {', '.join(COMPILED)} or eager, then +ATTENTION, +cls, +budgetN")
        if self.budget is not None and self.kind == "eager":
            raise ValueError(f"'{text}': the budget is the compiler's")


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


def class_token_block(block):
    """The last block of timm's ViT for the class token alone, which is all that the head reads: keys and values of every
    token, query, projection and MLP of one. The same parameters."""
    from torch import nn
    from torch.nn import functional as F

    class ClassTokenBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = block

        def forward(self, x):
            b, a = self.block, self.block.attn
            y, width = b.norm1(x), x.shape[-1]
            wq, wkv = a.qkv.weight.split((width, 2 * width))
            bq, bkv = a.qkv.bias.split((width, 2 * width))
            split = lambda t: t.unflatten(-1, (-1, a.num_heads, width // a.num_heads)).permute(2, 0, 3, 1, 4)
            (q,), (k, v) = split(F.linear(y[:, :1], wq, bq)), split(F.linear(y, wkv, bkv))
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = x[:, :1] + b.ls1(a.proj(y))
            return x + b.ls2(b.mlp(b.norm2(x)))

    return ClassTokenBlock()


def model_make(name, act, mode, package):
    import timm
    from torch import nn

    call, options, size = CALLS[name][:3]
    kind = act_make(act, package)
    if name.startswith("tnt"):
        model = timm.create_model(call, **options)  # TNT takes no activation
        for module in list(model.modules()):
            for child, value in list(module.named_children()):
                if isinstance(value, nn.GELU):
                    setattr(module, child, kind())
    else:
        model = timm.create_model(call, act_layer=kind, **options)
    if mode.cls:
        if not name.startswith("vit"):
            raise ValueError(f"{name} has no last block for the class token alone")
        model.blocks[-1] = class_token_block(model.blocks[-1])
    return model, size


def step_make(row, mode, device, package):
    """A function that enqueues one step, or one forward pass."""
    import torch
    from torch.nn import functional as F

    name, act, batch, stream, keep = (row.split(":") + ["both"])[:5]
    inference, batch = keep == "infer", int(batch)
    model, size = model_make(name, act, mode, package)
    layout = torch.channels_last if name.startswith("convnext") else torch.contiguous_format
    model = model.to(device).to(memory_format=layout).train(not inference)
    masters = None
    if stream == "bf16":
        masters = [p.detach().clone().float() for p in model.parameters()]
        model = model.bfloat16()
        for w in masters:
            w.grad = torch.zeros_like(w)
    params = list(model.parameters())
    dtype = torch.bfloat16 if masters else torch.float32
    x = torch.randn(batch, 3, size, size, device=device, dtype=dtype).contiguous(memory_format=layout)
    y = torch.randint(0, 10, (batch,), device=device)
    if mode.budget is not None:
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = mode.budget
    run = model if mode.kind == "eager" else torch.compile(model, mode=None if mode.kind in ("default", "graph") else mode.kind)
    cast = lambda: torch.autocast(device, torch.bfloat16, enabled=not masters)
    if inference:

        def answer():
            with torch.inference_mode(), cast():
                run(x)

        return answer
    optimizer = torch.optim.AdamW(masters or params, lr=1e-3, weight_decay=0.05, fused=True, capturable=mode.kind == "graph")

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


def captured(step):
    """The step inside one CUDA graph, after runs on a stream of its own. The closure owns what the graph reads and writes."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_owner=step):
        graph.replay()

    return replay


def warm(args, mode):
    import torch

    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    if args.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
        switches = dict(flash=torch.backends.cuda.enable_flash_sdp, efficient=torch.backends.cuda.enable_mem_efficient_sdp,
                        math=torch.backends.cuda.enable_math_sdp, cudnn=torch.backends.cuda.enable_cudnn_sdp)
        for name, enable in switches.items() if mode.attention else ():
            enable(name == mode.attention)
    step = step_make(args.row, mode, args.device, args.berlu_torch)
    times = 6 if args.device == "cuda" else 1
    aside = torch.cuda.stream(torch.cuda.Stream()) if args.device == "cuda" else contextlib.nullcontext()
    wait()
    with aside:
        for _ in range(times):
            step()
    wait()
    if mode.kind == "graph":
        step = captured(step)
    if args.device == "cuda":
        torch.cuda.empty_cache()
    for _ in range(times):
        step()
    wait()
    return step, wait


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("row")
    p.add_argument("mode")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--berlu-torch", action="store_true")
    args = p.parse_args()
    import torch

    step, wait = warm(args, Mode(args.mode))
    batch = int(args.row.split(":")[2])
    facts = {"version": torch.__version__, "bytes": torch.cuda.memory_reserved() if args.device == "cuda" else 0}
    print("ready", flush=True)
    for _ in sys.stdin:  # one measurement per line
        steps, begin = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - begin < args.seconds:
            for _ in range(10 if args.device == "cuda" else 1):
                step()
                steps += 1
            wait()
        print(json.dumps({"images_per_s": batch * steps / (time.perf_counter() - begin), **facts}), flush=True)


if __name__ == "__main__":
    main()
