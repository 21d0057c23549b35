"""berlu.torch in a training on a GPU: sizes, streams, memory, transformations, copies, one rank of NCCL.
SPDX-License-Identifier: MIT

Beside test_cuda.py, which compares bits; started like it. BERLU_TEST_DEVICE=cpu tries what needs no GPU."""

import copy
import os
import sys
import tempfile
import unittest

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import berlu
import berlu.torch as bt

DEVICE = os.environ.get("BERLU_TEST_DEVICE", "cuda")
if DEVICE == "cuda" and (not torch.cuda.is_available() or bt.cuda() is not None):
    print(f"{bt.cuda() or 'there is no GPU'}: skipped", file=sys.stderr)
    sys.exit(77)
on_gpu = unittest.skipIf(DEVICE == "cpu", "needs a GPU")
SMOOTHED = "smooth(kinks=-1,1; slopes=0,1,0.2; eps=0.3)"
close = torch.testing.assert_close


def gradients(act, x):
    """The value and the gradients by x and the parameters of the sum of its square."""
    y = act(x)
    return y.detach(), torch.autograd.grad(y.square().sum(), (x, *act.parameters()))


class Values(unittest.TestCase):
    def test_every_activation_against_doubles(self):
        x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30])])
        for spec in (*berlu.names(), "berlu:eps=0.5,degree=6", SMOOTHED, "gelu:scale=2,center=1"):
            with self.subTest(spec):
                single, double = x.to(DEVICE).requires_grad_(), x.double().requires_grad_()
                y, want = bt.forward(spec, single), bt.forward(spec, double)
                (dx,), (slope,) = torch.autograd.grad(y.sum(), single), torch.autograd.grad(want.sum(), double)
                close(y.detach().cpu(), want.detach().float(), rtol=3e-6, atol=3e-6)
                close(dx.cpu(), slope.float(), rtol=3e-6, atol=3e-6)

    def test_empty_strided_expanded_and_negated_tensors(self):
        images = torch.randn(2, 8, 3, 5, device=DEVICE)
        for x in (
            torch.randn(0, 4, device=DEVICE),
            torch.randn(2, 4, 0, device=DEVICE),
            torch.tensor(1.5, device=DEVICE),
            torch.randn(6, 8, device=DEVICE)[:, ::2],
            torch.randn(1, device=DEVICE).expand(5, 7),
            torch._neg_view(torch.randn(9, device=DEVICE)),
            torch.randn(7, device=DEVICE)[1:],
            images.to(memory_format=torch.channels_last),
        ):
            x = x.detach().requires_grad_()
            want = x.detach().double().cpu().requires_grad_()
            y, z = bt.mish(x), bt.mish(want)
            (dx,) = torch.autograd.grad(y, x, torch._neg_view(torch.ones_like(y)), retain_graph=True)
            (slope,) = torch.autograd.grad(z, want, -torch.ones_like(z))
            close(y.detach().cpu().double(), z.detach(), rtol=1e-5, atol=1e-5)
            close(dx.cpu().double(), slope, rtol=1e-5, atol=1e-5)

    @on_gpu
    def test_more_than_two_to_the_31_elements(self):
        ends = torch.linspace(-4, 4, 4096, device=DEVICE).half()
        x = torch.full((2**31 + 4097,), 0.5, dtype=torch.float16, device=DEVICE)
        x[:4096] = x[-4096:] = ends
        act = bt.BerLU(eps=0.5).to(DEVICE)
        y = act(x.requires_grad_())
        (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
        part = ends.clone().requires_grad_()
        want = act(part)
        (slope,) = torch.autograd.grad(want, part, torch.ones_like(want))
        for got, right in ((y.detach(), want.detach()), (dx, slope)):
            self.assertTrue(torch.equal(got[:4096], right) and torch.equal(got[-4096:], right))
        self.assertTrue(bool((y[4096:-4096] == y[4096]).all()))

    @on_gpu
    def test_a_parameter_per_channel_over_more_than_two_to_the_31_elements(self):
        x = torch.full((2**26 + 3, 33), 0.25, dtype=torch.bfloat16, device=DEVICE)
        act = bt.BerLU(alpha=0.1, eps=0.5, channels=33).to(DEVICE)
        dalpha = torch.autograd.grad(act(x).sum(), act.alpha)[0]
        one = torch.autograd.grad(act(x[:1]).sum(), act.alpha)[0]
        close(dalpha, one * x.shape[0], rtol=1e-4, atol=0)


class Training(unittest.TestCase):
    @on_gpu
    def test_no_memory_grows(self):
        acts = (bt.BerLU(eps=0.5, learn="alpha+eps"), bt.BerLU(channels=64), bt.BerLU(keep="output"), bt.Act("gelu"))
        model = nn.Sequential(*acts).to(DEVICE)
        x = torch.randn(128, 64, device=DEVICE, requires_grad=True)
        taken = []
        for steps in (50, 1000):
            for _ in range(steps):
                model(x).sum().backward()
            torch.cuda.synchronize()
            taken.append(torch.cuda.memory_allocated())
        self.assertEqual(taken[0], taken[1])

    @on_gpu
    def test_streams_side_by_side(self):
        act = bt.BerLU(eps=0.5, channels=256).to(DEVICE)
        inputs = [torch.randn(4096, 256, device=DEVICE, requires_grad=True) for _ in range(4)]
        streams = [torch.cuda.Stream() for _ in inputs]
        torch.cuda.synchronize()
        found = []
        for stream, x in zip(streams, inputs):
            with torch.cuda.stream(stream):
                found.append(gradients(act, x)[1])
        torch.cuda.synchronize()
        for got, x in zip(found, inputs):
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(got, gradients(act, x)[1])))

    def test_autocast_scaler_and_checkpoints(self):
        for dtype in (torch.float16, torch.bfloat16):
            acts = (bt.BerLU(eps=0.1, keep="output"), bt.BerLU(learn="alpha+eps"))
            model = nn.Sequential(nn.Linear(64, 64), acts[0], nn.Linear(64, 64), acts[1]).to(DEVICE)
            optimizer = torch.optim.AdamW(bt.parameter_groups(model, weight_decay=0.05), lr=1e-3)
            scaler = torch.amp.GradScaler(DEVICE)
            for step in range(3):
                with torch.autocast(DEVICE, dtype):
                    x = torch.randn(32, 64, device=DEVICE, requires_grad=True)
                    loss = checkpoint(model, x, use_reentrant=step % 2 == 1).float().square().mean()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                bt.project_(model, "alpha:0.0625:")
                self.assertTrue(torch.isfinite(loss))
            self.assertEqual(acts[0].alpha.dtype, torch.float32)
            self.assertGreaterEqual(acts[0].alpha.item(), 0.0625)

    @on_gpu
    def test_one_rank_of_nccl(self):
        import torch.distributed as dist
        from torch.distributed.fsdp import fully_shard

        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("nccl", init_method=f"file://{folder}/ranks", rank=0, world_size=1)
            try:
                for wrap in (lambda model: nn.parallel.DistributedDataParallel(model, device_ids=[0]), fully_shard):
                    model = nn.Sequential(nn.Linear(8, 8), bt.BerLU(channels=8), nn.Linear(8, 2)).to(DEVICE)
                    model = wrap(model) or model
                    model(torch.randn(4, 8, device=DEVICE)).sum().backward()
                    self.assertEqual(bt.project_(model, "alpha:0.5:"), 1)
                    self.assertEqual(bt.lipschitz(model).largest, 1)
            finally:
                dist.destroy_process_group()


class Programs(unittest.TestCase):
    def test_script_trace_export_and_fx(self):
        acts = (bt.BerLU(eps=0.5, channels=4, dim=1), bt.Act("selu"), bt.Act(SMOOTHED))
        model, x = nn.Sequential(*acts).to(DEVICE), torch.randn(2, 4, 5, device=DEVICE)
        exported = torch.export.export(model, (x,)).module()
        moved = torch.jit.script(copy.deepcopy(model).cpu()).to(DEVICE)  # its constants follow
        traced = (torch.jit.trace(model, (x,)), torch.fx.symbolic_trace(model))
        for run in (torch.jit.script(model), *traced, exported, moved):
            close(run(x), model(x), rtol=1e-5, atol=1e-5)

    def test_a_gradient_under_vmap(self):
        act, x = bt.BerLU(alpha=0.3, eps=0.5).to(DEVICE), torch.randn(6, 5, device=DEVICE, requires_grad=True)
        want = torch.autograd.grad(act(x).sum(), x)[0]
        close(torch.vmap(torch.func.grad(lambda t: act(t).sum()))(x.detach()), want, rtol=1e-5, atol=1e-6)

    def test_copies_of_a_replaced_decoder(self):
        layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, activation="gelu").to(DEVICE)
        bt.replace_activations(layer, "berlu:alpha=-3")
        x = torch.randn(3, 2, 8, device=DEVICE)
        self.assertEqual(layer.activation.alpha.device.type, DEVICE)
        self.assertTrue(torch.equal(copy.deepcopy(layer)(x, x), layer(x, x)))

    def test_default_device(self):
        with torch.device(DEVICE):
            act, host = bt.BerLU(alpha=[0.1, 0.2], channels=2), bt.BerLU(alpha=[0.1, 0.2], channels=2, device="cpu")
            self.assertEqual(act.alpha.device.type, DEVICE)
            self.assertEqual(host(torch.ones(1, 2, device="cpu")).device.type, "cpu")
            act(torch.randn(3, 2)).sum().backward()


if __name__ == "__main__":
    unittest.main()
