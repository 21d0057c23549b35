"""reference.py - berlu's models as timm builds them, for golden files and live comparison. SPDX-License-Identifier: MIT

Used by golden_models.py and parity.py; needs torch and timm. `create(name, act)` gives timm's model of berlu's name with
the activation put at every site, `act` written as on berlu's command line (gelu, prelu, berlu:alpha=0.1,eps=0.5).
"""
import math
import pathlib
import runpy

import numpy as np
import timm
import torch
from torch import nn

CALLS = runpy.run_path(str(pathlib.Path(__file__).resolve().parent.parent / "python/berlu/_models.py"))["CALLS"]


class BerLU(nn.Module):
    """alpha x left of -eps, x right of eps, the parabola that joins them smoothly between."""

    def __init__(self, alpha, eps, channels, dim, learn_eps):
        super().__init__()
        self.alpha = nn.Parameter(torch.full([channels], float(alpha)))
        self.eps = nn.Parameter(torch.full([channels], float(eps))) if learn_eps else float(eps)
        self.dim = dim

    def forward(self, x):
        a, e = (spread(v, x, self.dim) for v in (self.alpha, self.eps))
        knee = a * x + (1 - a) * (x + e) ** 2 / (4 * e)
        return torch.where(x >= e, x, torch.where(x <= -e, a * x, knee))


class PReLU(nn.Module):
    """torch's PReLU takes dimension 1 as the channel; here it is `dim`, and the slope is called alpha."""

    def __init__(self, alpha, channels, dim):
        super().__init__()
        self.alpha = nn.Parameter(torch.full([channels], float(alpha)))
        self.dim = dim

    def forward(self, x):
        return torch.where(x > 0, x, spread(self.alpha, x, self.dim) * x)


def spread(value, x, dim):
    """`value` shaped so that it lies along dimension `dim` of x."""
    if not torch.is_tensor(value) or value.numel() == 1:
        return value
    return value.reshape([-1 if i == dim % x.dim() else 1 for i in range(x.dim())])


def site_module(act, mlp, per_channel):
    name, _, rest = act.partition(":")
    keys = dict(pair.split("=") for pair in rest.split(",") if pair)
    conv = isinstance(mlp.fc1, nn.Conv2d)
    channels = mlp.fc1.weight.shape[0] if per_channel else 1
    dim = 1 if conv else -1
    if name == "gelu":
        return nn.GELU()
    if name == "prelu":
        return PReLU(keys.get("alpha", 0.25), channels, dim)
    if name == "berlu":
        return BerLU(keys.get("alpha", 0.01), keys.get("eps", 0.01), channels, dim, "eps" in keys.get("learn", "alpha"))
    raise SystemExit(f"reference.py: no module for activation '{act}'")


def create(name, act="gelu", per_channel=False):
    call, arguments = CALLS[name]
    model = timm.create_model(call, **arguments)
    for module in list(model.modules()):
        if hasattr(module, "fc1") and hasattr(module, "act"):
            module.act = site_module(act, module, per_channel)
    return model.eval()


def image_size(name):
    return 32 if name.endswith(("_cifar", "_micro")) else 224


# ---- the known-answer fill (src/models/fill.c) ----

def fnv(name):
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def unit(name, count):
    x = (np.uint64(fnv(name)) + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B9)) & np.uint64(0xFFFFFFFF)
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float64) * 2.0**-23 - 1


FIRST = ("cls_token", "dist_token", "pos_embed", "patch_pos", "pixel_pos")
FIRST_CONV = ("patch_embed.proj.", "pixel_embed.proj.", "stem.0.")


def fill_value(name, shape):
    count = math.prod(shape)
    v = unit(name, count)
    if name in FIRST or name.startswith(FIRST_CONV):
        v = 0.02 * v
    elif name.endswith(".bias"):
        v = 0.2 * v
    elif name.endswith("gamma"):
        v = 0.5 * v
    elif name.endswith(".act.alpha"):
        v = 0.2 + 0.15 * v  # golden files only: far from 1, on both sides of nothing
    elif name.endswith(".act.eps"):
        v = 0.6 + 0.3 * v
    elif len(shape) == 1:
        v = 1 + 0.3 * v
    else:
        v = v * math.sqrt(3 / (count / shape[0]))
    return v.astype(np.float32).reshape(shape)


def fill(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(fill_value(name, tuple(parameter.shape))))


def fill_batch(name):
    size = image_size(name)
    images = (1.75 * unit("input", 2 * 3 * size * size)).astype(np.float32).reshape(2, 3, size, size)
    return torch.from_numpy(images), torch.tensor([3, 7])
