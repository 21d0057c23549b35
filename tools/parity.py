#!/usr/bin/env python3
"""parity.py - compares berlu with timm, live, model by model. SPDX-License-Identifier: MIT

    parity.py BERLU [--models a,b,...] [--acts "gelu;berlu:eps=0.5;..."] [--batch N] [--judge]      (make parity)

For each model and activation: random weights (every parameter, so that no 0, 1 or 1e-6 hides a mistake) and a random
batch go through `berlu forward --grads` and through timm in float32. Limits: logits within 1e-4 absolute, every
parameter's gradient within 1e-3 of its own 2-norm (absolute 1e-6 where that norm is zero by symmetry, as for the bias of
keys). With --judge timm runs in float64 too, and how far each of the two is from it stands beside.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

from reference import CALLS, create, image_size

LOGITS, GRADIENT, ZERO = 1e-4, 1e-3, 1e-6


def randomise(model, generator):
    """Everything random, at scales that keep each layer's output of order one."""
    for name, parameter in model.named_parameters():
        noise = torch.rand(parameter.shape, generator=generator) * 2 - 1
        if name.endswith(".act.alpha"):
            value = 0.2 + 0.15 * noise
        elif name.endswith(".act.eps"):
            value = 0.6 + 0.3 * noise
        elif name.endswith(".bias"):
            value = 0.2 * noise
        elif name.endswith("gamma"):
            value = 0.5 * noise
        elif parameter.dim() == 1:
            value = 1 + 0.3 * noise
        elif name.endswith(("_token", "_pos", "pos_embed")):
            value = 0.3 * noise
        else:
            value = noise * (3 * parameter.shape[0] / parameter.numel()) ** 0.5
        parameter.data.copy_(value)


def run_timm(model, images, labels):
    model.zero_grad()
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    grads = {name: parameter.grad.detach().clone() for name, parameter in model.named_parameters()}
    return logits.detach(), loss.item(), grads


def run_berlu(berlu, folder, name, act, per_channel, model, images, labels):
    weights, batch, out = (str(folder / f"{part}.safetensors") for part in ("weights", "batch", "out"))
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
    save_file({"input": images, "labels": labels}, batch)
    command = [berlu, "forward", name, "--weights", weights, "--batch", batch, "--out", out, "--grads", "--act", act]
    if per_channel:
        command += ["--act-params", "channel"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    answer = load_file(out)
    return answer.pop("logits"), answer.pop("loss").item(), answer


def gradient_gap(grads, want):
    """The worst |difference| / |wanted| over all parameters, and its name; zero gradients count in units of ZERO."""
    assert sorted(grads) == sorted(want), "names differ"
    worst, where = 0.0, ""
    for name, value in want.items():
        gap = (grads[name].reshape(value.shape).double() - value.double()).norm().item()
        norm = value.double().norm().item()
        ratio = gap / norm if norm > ZERO else gap / ZERO * GRADIENT
        if not ratio <= worst:
            worst, where = ratio, name
    return worst, where


def compare(berlu, name, act, per_channel, batch, folder, judge):
    generator = torch.Generator().manual_seed(len(name) * 1000 + len(act))
    model = create(name, act, per_channel)
    randomise(model, generator)
    size = image_size(name)
    images = torch.randn(batch, 3, size, size, generator=generator)
    labels = torch.randint(0, 10, (batch,), generator=generator)
    got = run_berlu(berlu, folder, name, act, per_channel, model, images, labels)
    want = run_timm(model, images, labels)
    logits = (got[0] - want[0]).abs().max().item()
    gradient, where = gradient_gap(got[2], want[2])
    beside = ""
    if judge:
        exact = run_timm(model.double(), images.double(), labels)[0]
        gaps = [(run[0].double() - exact).abs().max().item() for run in (got, want)]
        beside = f"  from float64: berlu {gaps[0]:.1e} timm {gaps[1]:.1e}"
    good = logits <= LOGITS and gradient <= GRADIENT and abs(got[1] - want[1]) <= LOGITS
    print(f"{'ok  ' if good else 'FAIL'} {name:26} {act + ('/channel' if per_channel else ''):24} logits {logits:.1e} "
          f"loss {abs(got[1] - want[1]):.1e} gradient {gradient:.1e} ({where}){beside}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("berlu")
    parser.add_argument("--models", default=",".join(CALLS))
    parser.add_argument("--acts", default="gelu;berlu:eps=0.5/channel",
                        help="separated by ';', each with /channel for one parameter per channel")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--judge", action="store_true", help="also compare both with timm in float64")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models.split(","):
            for act in arguments.acts.split(";"):
                act, _, channel = act.partition("/")
                bad += not compare(arguments.berlu, name, act, channel == "channel", arguments.batch, pathlib.Path(folder),
                                   arguments.judge)
    print(f"{bad} of the comparisons failed" if bad else "all within the limits")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
