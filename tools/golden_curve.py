#!/usr/bin/env python3
"""golden_curve.py - the first 20 training steps of timm's ViT-Tiny/4 in PyTorch, for tests/train/test_curve.c.
SPDX-License-Identifier: MIT

    golden_curve.py tests/golden/curve_vit_tiny_cifar.csv

Weights are the known-answer fill (alpha of BerLU as the paper starts it, 0.01); batch k holds images 4k to 4k + 3 of the
filled input with labels 7 i mod 10. Settings are those of the paper: AdamW 1e-3 with betas 0.9 and 0.999 and eps 1e-8,
decay 0.05 on matrices only (timm's rule), gradients clipped to norm 1, cosine with linear warm-up (5 of 20 steps, from
1e-6, to 1e-5), cross entropy. float32, as the engine computes; with --double in float64, to see how far rounding alone
carries the curve.
"""
import math
import sys

import torch

from reference import create, fill, image_size, unit

MODEL, BATCH, STEPS, WARM = "vit_tiny_cifar", 4, 20, 5
PEAK, START, END = 1e-3, 1e-6, 1e-5


def rate(step):
    if step < WARM:
        return START + step * (PEAK - START) / WARM
    return END + 0.5 * (PEAK - END) * (1 + math.cos(math.pi * (step - WARM) / (STEPS - WARM)))


def groups(model):
    tokens = model.no_weight_decay()
    decay, rest = [], []
    for name, parameter in model.named_parameters():
        plain = parameter.ndim <= 1 or name.endswith(".bias") or name in tokens
        (rest if plain else decay).append(parameter)
    return [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]


def curve(act, dtype):
    model = create(MODEL, act)
    fill(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".act.alpha"):
                parameter.fill_(0.01)
    model.to(dtype).train()
    optimizer = torch.optim.AdamW(groups(model), lr=PEAK, betas=(0.9, 0.999), eps=1e-8, foreach=False, fused=False)
    size = image_size(MODEL)
    images = torch.from_numpy(1.75 * unit("input", STEPS * BATCH * 3 * size * size)).float().to(dtype)
    images = images.reshape(STEPS, BATCH, 3, size, size)
    labels = (torch.arange(STEPS * BATCH) * 7 % 10).reshape(STEPS, BATCH)
    rows = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[step]), labels[step])
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rows.append((loss.item(), norm.item()))
    return rows


def main():
    dtype = torch.float64 if "--double" in sys.argv else torch.float32
    acts = ["gelu", "berlu"]
    curves = [curve(act, dtype) for act in acts]
    with open(sys.argv[1], "w") as file:
        names = [f"{what}_{act}" for act in acts for what in ("loss", "norm")]
        print("step", "lr", *names, sep=",", file=file)
        for step in range(STEPS):
            values = [value for c in curves for value in c[step]]
            print(step, *(repr(float(v)) for v in [rate(step), *values]), sep=",", file=file)
    print(sys.argv[1])


if __name__ == "__main__":
    main()
