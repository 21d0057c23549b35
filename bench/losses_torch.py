#!/usr/bin/env python3
"""losses_torch.py - the same training in berlu and in PyTorch, loss by loss. SPDX-License-Identifier: MIT

    bench/losses_torch.py RUN [--berlu build/berlu] [--steps 200] [--device cpu|cuda] [--precision f32|bf16]
                          [--orders 2] [--also attention] [--also compiled]
                          -- --model vit_tiny_cifar --data cifar10:DIR --act berlu --batch 128

RUN is made by `berlu train OPTIONS --record-steps --max-steps STEPS` unless it is there already. PyTorch then trains
from its initial.safetensors on the images that steps.csv names, with AdamW, decay groups, clipping and learning rates
worked out from run.json alone, and the losses are put side by side. Nothing of berlu's Python package takes part: the
model is timm's (a ViT by hand where there is no timm), the activation is composed of torch operations, on a GPU as
one compiled kernel.

The same losses are also computed by PyTorch with other orders of summation: the rows of each batch in other orders;
`--also attention`: the other of its two fused attentions; `--also compiled`: torch.compile. Limits: in f32 every loss
within 1e-4 (exit 1 otherwise); with `--precision bf16` on a GPU (autocast, whose residual stream is f32, and so is
berlu's then) the distance between the programs, as root mean square over the steps, may not exceed the largest distance
between two of PyTorch's own. Images must reach the network as they are stored: `--augment none`, no mixing, no drop
path. Needs torch and numpy."""

import argparse
import contextlib
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 1e-4


class BerLU(nn.Module):
    def __init__(self, alpha, eps):
        super().__init__()
        self.alpha, self.eps = nn.Parameter(torch.tensor([alpha])), eps

    def forward(self, x):
        a, e = self.alpha, self.eps
        knee = a * x + (1 - a) * (x + e) ** 2 / (4 * e)
        return torch.where(x >= e, x, torch.where(x <= -e, a * x, knee))


class PReLU(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([alpha]))

    def forward(self, x):
        return torch.where(x > 0, x, self.alpha * x)


PLAIN = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU, "elu": nn.ELU, "mish": nn.Mish}


def activation(spec):
    name, _, rest = spec.partition(":")
    keys = dict(pair.split("=") for pair in rest.split(",") if pair)
    if name == "berlu" and keys.get("degree", "2") == "2" and keys.get("learn") == "alpha":
        return BerLU(float(keys["alpha"]), float(keys["eps"]))
    if name == "prelu" and keys.get("learn") == "alpha":
        return PReLU(float(keys["alpha"]))
    if name in PLAIN and "scale" not in keys and "center" not in keys:
        return PLAIN[name]()
    raise SystemExit(f"losses_torch.py: no PyTorch form of '{spec}' here")


# ---- files of the run ------------------------------------------------------------------------------------------------


def safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        first, last = (8 + size + offset for offset in entry["data_offsets"])
        assert entry["dtype"] == "F32", name
        out[name] = torch.from_numpy(np.frombuffer(data[first:last], "<f4").reshape(entry["shape"]).copy())
    return out


def packed(path):
    """Training images [n, 3, side, side] u8 and labels of a packed set (docs/formats.md)."""
    data = np.fromfile(path, "u1")
    assert bytes(data[:8]) == b"BERLUPK2", path
    side, _, train, test, _ = (int(v) for v in data[8:48].view("<u8"))
    pixels = side * side * 3
    images = data[4096 : 4096 + train * pixels].reshape(train, side, side, 3)
    at = 4096 + (train + test) * (pixels + 4)  # images, then a sum each
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(
        data[at : at + train * 4].view("<u4").astype("i8")
    )


def images_of(args, settings):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "set.pack"
        command = [args.berlu, "data", "pack", settings["data"], "--out", file]
        subprocess.run(
            [*command, "--image-size", str(settings["image_size"])], check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return packed(file)


# ---- the same in PyTorch ---------------------------------------------------------------------------------------------

BY_HAND = (("patch_embed.proj", "patch"), (".attn.", "."), (".mlp.", "."))  # names in vit_by_hand.py
VITS = {"vit_tiny_cifar": (192, 12, 3), "vit_micro": (64, 4, 2)}  # width, depth, heads


def model_by_hand(settings):
    from vit_by_hand import ViT

    if settings["model"] not in VITS:
        raise SystemExit(f"losses_torch.py: {settings['model']} needs timm")
    width, depth, heads = VITS[settings["model"]]
    return ViT(settings["image_size"], settings["patch"], width, depth, heads, settings["classes"])


def model_make(settings, weights):
    try:
        import timm
    except ImportError:
        model = model_by_hand(settings)
        for name in list(weights):
            other = name
            for long, short in BY_HAND:
                other = other.replace(long, short)
            weights[other] = weights.pop(name)
    else:
        import runpy

        call, arguments = runpy.run_path(str(ROOT / "python/berlu/_models.py"))["CALLS"][settings["model"]]
        arguments = {**arguments, "num_classes": settings["classes"]}
        for key, argument in (("patch", "patch_size"), ("stem", "patch_size"), ("stride", "first_stride")):
            if key in settings:
                arguments[argument] = settings[key]
        if not call.startswith("convnext"):
            arguments["img_size"] = settings["image_size"]
        model = timm.create_model(call, **arguments)
    specs, sites = settings["act"], [m for m in model.modules() if hasattr(m, "fc1") and hasattr(m, "act")]
    for site, spec in zip(sites, specs * len(sites) if len(specs) == 1 else specs):
        site.act = activation(spec)
    want = model.state_dict()
    model.load_state_dict({k: v.reshape(want[k].shape) if k in want else v for k, v in weights.items()})
    return model.train()


def optimizer_make(model, s):
    """timm's rule: biases, everything of one dimension, tokens and positions do not decay."""
    still = {"pos_embed", "cls_token", "dist_token", "patch_pos", "pixel_pos"}
    parameters = dict(model.named_parameters())
    decay = [p for n, p in parameters.items() if p.dim() > 1 and n not in still]
    rest = [p for n, p in parameters.items() if not (p.dim() > 1 and n not in still)]
    groups = [{"params": decay, "weight_decay": s["weight_decay"]}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=s["lr"], betas=(s["beta1"], s["beta2"]), eps=s["adam_eps"])


def rate(s, step, per_epoch):
    """Linear warm-up, then half a cosine; or a constant."""
    if s["schedule"] == "constant":
        return s["lr"]
    warm, all_steps = math.floor(s["warmup"] * per_epoch), s["epochs"] * per_epoch
    if step < warm:
        return s["warmup_lr"] + step * (s["lr"] - s["warmup_lr"]) / warm
    share = (step - warm) / (all_steps - warm)
    return s["min_lr"] + 0.5 * (s["lr"] - s["min_lr"]) * (1 + math.cos(math.pi * share))


def attention_of(way):
    """torch's own choice of attention, or for `attention` the one that tiles its sums in another way."""
    if way != "attention":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def train(args, settings, facts, steps, way):
    """The losses of PyTorch; way 0 takes the rows of a batch as berlu does, other numbers rotate and reverse them."""
    order = way if isinstance(way, int) else 0
    model = model_make(settings, safetensors(args.run / "initial.safetensors")).to(args.device)
    optimizer = optimizer_make(model, settings)
    if args.device == "cuda":  # in single operations these are some twenty passes over memory
        for module in model.modules():
            if isinstance(module, (BerLU, PReLU)):
                module.compile()
    call = torch.compile(model) if way == "compiled" else model
    pixels, labels = args.images
    mean, std = (
        torch.tensor([float(v) for v in settings[k].split(",")]).view(3, 1, 1).to(args.device) for k in ("mean", "std")
    )
    per_epoch, losses = facts["train_images"] // settings["batch"], []
    for index, step in enumerate(steps):
        rows = torch.tensor([int(i) for i in step["images"].split()], device=args.device)
        if order:
            rows = rows.flip(0).roll(order)
        lr = rate(settings, index, per_epoch)
        assert abs(lr - float(step["lr"])) <= 1e-12 * lr, f"learning rates differ in step {index + 1}"
        for group in optimizer.param_groups:
            group["lr"] = lr
        x = (pixels[rows].float() / 255 - mean) / std
        with attention_of(way), torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = nn.functional.cross_entropy(call(x).float(), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        if settings["clip"]:
            nn.utils.clip_grad_norm_(model.parameters(), settings["clip"])
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).double().cpu()


# ---- the comparison --------------------------------------------------------------------------------------------------


def run_make(args, options):
    if not (args.run / "run.json").exists():
        command = [args.berlu, "train", "--run", args.run, "--record-steps", "--max-steps", str(args.steps), "--quiet"]
        cuda = ["--device", "cuda", "--precision", args.precision] if args.device == "cuda" else []
        cuda += ["--residual", "f32"] if cuda and args.precision == "bf16" else []
        subprocess.run([*command, *cuda, *options], check=True)
    record = json.loads((args.run / "run.json").read_text())
    settings, facts = record["settings"], record["data"]
    wrong = [k for k, v in (("augment", "none"), ("mixup", 0), ("cutmix", 0), ("drop_path", 0), ("smoothing", 0),
                            ("distill", "none"), ("accumulate", 1), ("optimizer", "adamw"), ("act_params", "layer"),
                            ("act_constraint", "none"), ("act_lr", 1), ("decay_all", False))
             if settings.get(k, v) != v]  # fmt: skip
    if wrong or settings["schedule"] not in ("cosine-step", "constant"):
        raise SystemExit(f"losses_torch.py: {', '.join(wrong) or 'schedule'}: not repeated here")
    with open(args.run / "steps.csv", newline="") as file:
        csv.field_size_limit(1 << 24)
        return settings, facts, list(csv.DictReader(file))[: args.steps]


def name_of(way):
    return ("plain" if way == 0 else f"order {way}") if isinstance(way, int) else way


def distances(title, a, b):
    gap = (a - b).abs()
    most, rms, bias = gap.max().item(), gap.square().mean().sqrt().item(), (a - b).mean().item()
    grown = " ".join(f"{gap[:n].max().item():.0e}" for n in (1, 10, 50, 100, 200) if n <= len(gap))
    print(f"{title:34} largest {most:.2e} (step {int(gap.argmax()) + 1}), rms {rms:.2e}, mean {bias:+.1e}; "
          f"up to step 1, 10, 50 ...: {grown}", flush=True)  # fmt: skip
    return most, rms


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--berlu", default=ROOT / "build/berlu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--orders", type=int, default=2, help="orders of summation in PyTorch, berlu's among them")
    parser.add_argument("--also", action="append", default=[], choices=("attention", "compiled"))
    parser.add_argument("--threads", type=int, default=0)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, options = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if args.threads:
        torch.set_num_threads(args.threads)
    settings, facts, steps = run_make(args, options)
    args.images = [t.to(args.device) for t in images_of(args, settings)]
    ours = torch.tensor([float(step["loss"]) for step in steps], dtype=torch.float64)
    print(f"{settings['model']} {settings['act'][0]} batch {settings['batch']}, {len(steps)} steps on {args.device}, "
          f"{args.precision}, torch {torch.__version__}: loss {ours[0]:.6f} to {ours[-1]:.6f}", flush=True)  # fmt: skip
    theirs, rms, most, spread = {}, 0.0, 0.0, 0.0
    for way in [*range(args.orders), *args.also]:
        losses = train(args, settings, facts, steps, way)
        apart = distances(f"berlu and PyTorch, {name_of(way)}", ours, losses)
        most, rms = (most, rms) if theirs else apart
        for other, before in theirs.items():
            pair = f"PyTorch, {name_of(other)} and {name_of(way)}"
            spread = max(spread, distances(pair, before, losses)[1])
        theirs[way] = losses
    good = most <= LIMIT if args.precision == "f32" else rms <= spread
    if good:
        print("the same losses")
    else:
        print(f"the losses differ by {'less' if rms <= spread else 'more'} than PyTorch's own from each other")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
