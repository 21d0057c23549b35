#!/usr/bin/env python3
"""golden_models.py - answers of timm's micro models in float64, for tests/models/test_golden.c. SPDX-License-Identifier: MIT

    golden_models.py tests/golden/models_micro.safetensors

Weights and images are the known-answer fill, so the file holds answers only. For each case `MODEL/ACT[/channel]/`:
`logits` (2 x 10), `loss`, and `grads`, a row per parameter in state-dict order: the 2-norm of its gradient and eight of
its values, those at k * count / 8. Everything is computed in float64 from float32 weights (and a float32 eps in norms: the
difference would be seen, 2e-10 in a loss); the rows are stored as float32.
"""
import sys

import torch
from safetensors.torch import save_file

from reference import create, fill, fill_batch

MODELS = ["vit_micro", "deit_micro", "tnt_micro", "convnext_micro"]
ACTS = [("gelu", False), ("prelu", False), ("prelu", True), ("berlu:eps=0.5", False), ("berlu:eps=0.5", True),
        ("berlu:learn=alpha+eps", False), ("berlu:learn=alpha+eps", True)]


def case(name, act, per_channel):
    model = create(name, act, per_channel)
    fill(model)
    model.double()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = torch.tensor(module.eps, dtype=torch.float32).double().item()
    images, labels = fill_batch(name)
    logits = model(images.double())
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    prefix = f"{name}/{act}/{'channel' if per_channel else 'layer'}/"
    rows = []
    for parameter in model.parameters():
        grad = parameter.grad.flatten()
        places = [k * grad.numel() // 8 for k in range(8)]
        rows.append(torch.cat([grad.norm().reshape(1), grad[places]]))
    return {prefix + "logits": logits.detach(), prefix + "loss": loss.detach().reshape(1),
            prefix + "grads": torch.stack(rows).float()}


def main():
    torch.manual_seed(0)
    tensors = {}
    for name in MODELS:
        for act, per_channel in ACTS:
            tensors.update(case(name, act, per_channel))
    save_file(tensors, sys.argv[1], metadata={"made_by": "tools/golden_models.py"})
    print(f"{sys.argv[1]}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
