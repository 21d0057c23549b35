"""Activations and tensor layouts that the tests of berlu.torch share. SPDX-License-Identifier: MIT"""

import torch

import berlu

SPECS = [
    *berlu.names(),
    "berlu:eps=0.5,degree=4",
    "berlu:eps=1,degree=16,alpha=0.3",
    "gelu:scale=2,center=1",
    "berlu:eps=1,scale=3,center=1",
    "smooth(kinks=-1,1; slopes=0,1,0.5; eps=0.5; degree=4)",
]
# Their polynomials overflow where they are not selected.
HIGH_DEGREES = [f"smooth(kinks=-1,2; slopes=-1,1,0; eps=0.5; degree={degree})" for degree in (8, 16)]


def layouts():
    """(name, x, channel dimension) for every way a tensor can lie in memory."""
    g = torch.Generator().manual_seed(1)
    x = torch.randn(4, 6, 5, 3, generator=g)
    yield "contiguous", x, -1
    yield "images", x, 1
    yield "channels last", x.to(memory_format=torch.channels_last), 1
    yield "transposed", x.transpose(0, 2), 1
    yield "permuted", x.permute(3, 1, 0, 2), 3
    yield "strided", x[:, ::2, :, 1:], 1
    yield "expanded", torch.randn(6, 1, generator=g).expand(6, 4), 0
    yield "one of everything", torch.randn(1, 1, 1, generator=g), 1
    yield "a number", torch.randn((), generator=g), -1
    yield "empty", torch.empty(3, 0, 5), 2


def per_channel(x, dim):
    return torch.linspace(0.1, 0.9, x.shape[dim] if x.dim() else 1)
