"""berlu.torch on a GPU: the bits of the CPU, streams, graphs, torch.compile.
SPDX-License-Identifier: MIT

Needs torch and the three libraries of berlu, nothing else:
    PYTHONPATH=python BERLU_LIBRARY=build/libberlu.so.0 python3 tests/python/test_cuda.py"""

import os
import shutil
import sys
import unittest

import torch

import berlu
import berlu.torch as bt
from berlu.torch import _ops

if not torch.cuda.is_available() or bt.cuda() is not None:
    print(f"{bt.cuda() or 'there is no GPU'}: skipped", file=sys.stderr)
    sys.exit(77)


def run(x, alpha, eps, dim=-1, keep="input"):
    x, alpha, eps = (t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, alpha, eps))
    y = _ops.apply(x, alpha, eps, "berlu:alpha=0.1", dim, keep)
    dy = torch.cos(torch.arange(y.numel(), device="cpu", dtype=torch.float32)).reshape(y.shape).to(y.device, y.dtype)
    return (y.detach(), *torch.autograd.grad(y, (x, alpha, eps), dy))


class Cuda(unittest.TestCase):
    def test_value_and_dx_have_the_bits_of_the_cpu_and_sums_agree(self):
        torch.manual_seed(1)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for keep in ("input", "output"):
                for channels in (1, 96):
                    x = (torch.randn(33, 5, 96) * 2).to(dtype)
                    alpha, eps = torch.linspace(0.1, 0.5, channels), torch.linspace(0.2, 1, channels)
                    host = run(x, alpha, eps, -1, keep)
                    device = run(x.cuda(), alpha.cuda(), eps.cuda(), -1, keep)
                    for h, d in zip(host[:2], device[:2]):
                        self.assertTrue(torch.equal(h, d.cpu()))
                    for h, d in zip(host[2:], device[2:]):
                        torch.testing.assert_close(h, d.cpu(), rtol=1e-5, atol=1e-4)

    def test_every_activation_and_layout(self):
        x = torch.randn(4, 6, 5, 3)
        for spec in [*berlu.names(), "berlu:eps=0.5,degree=4", "smooth(kinks=-1,1; slopes=0,1,0.5; eps=0.5; degree=4)"]:
            for t in (x, x.to(memory_format=torch.channels_last), x.transpose(0, 2), x[:, ::2]):
                self.assertTrue(torch.equal(bt.forward(spec, t), bt.forward(spec, t.cuda()).cpu()), spec)

    def test_channels_of_images(self):
        x, alpha, eps = torch.randn(4, 6, 50, 43), torch.linspace(0.1, 0.9, 6), torch.linspace(0.1, 0.9, 6)
        for t in (x, x.to(memory_format=torch.channels_last), x.transpose(2, 3), x.bfloat16()):
            for keep in ("input", "output"):
                host, device = run(t, alpha, eps, 1, keep), run(t.cuda(), alpha.cuda(), eps.cuda(), 1, keep)
                for h, d in zip(host[:2], device[:2]):
                    self.assertTrue(torch.equal(h, d.cpu()))
                for h, d in zip(host[2:], device[2:]):
                    torch.testing.assert_close(h, d.cpu(), rtol=1e-5, atol=1e-3)
                again = run(t.cuda(), alpha.cuda(), eps.cuda(), 1, keep)
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(device, again)))

    def test_work_goes_to_the_current_stream_and_can_be_captured(self):
        act, x = bt.BerLU(eps=0.5).cuda(), torch.randn(64, 32, device="cuda", requires_grad=True)
        dy = torch.ones_like(x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                torch.autograd.grad(act(x), (x, act.alpha), dy)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = act(x)
            dx, dalpha = torch.autograd.grad(y, (x, act.alpha), dy)
        with torch.no_grad():
            x.copy_(torch.randn_like(x))
            act.alpha.fill_(0.3)
        graph.replay()
        want_y = act(x)
        want = torch.autograd.grad(want_y, (x, act.alpha), dy)
        for got, right in zip((y, dx, dalpha), (want_y, *want)):
            self.assertTrue(torch.equal(got, right))

    @unittest.skipUnless(shutil.which("gcc") or shutil.which("clang"), "torch.compile needs a C compiler")
    def test_compile_and_reduce_overhead(self):
        for mode, backend in (("default", "native"), ("reduce-overhead", "native"), ("reduce-overhead", "auto")):
            torch._dynamo.reset()
            act = bt.BerLU(eps=0.5, backend=backend).cuda()
            compiled = torch.compile(act, fullgraph=True, mode=mode)
            for _ in range(4):
                x = torch.randn(128, 64, device="cuda", requires_grad=True)
                want = torch.autograd.grad(act(x).square().sum(), (x, act.alpha))
                got = torch.autograd.grad(compiled(x).square().sum(), (x, act.alpha))
                for a, b in zip(want, got):
                    self.assertTrue(torch.equal(a, b.clone()))

    @unittest.skipUnless(shutil.which("gcc") or shutil.which("clang"), "torch.compile needs a C compiler")
    def test_compiled_programs_call_the_operators_where_a_parameter_learns(self):
        from torch._inductor.utils import run_and_get_code

        for mode, keys, native in (
            ("default", {}, True),
            ("default", {"learn": "none"}, False),
            ("default", {"backend": "torch"}, False),
            ("default", {"keep": "output"}, True),
            ("reduce-overhead", {}, True),
            ("reduce-overhead", {"learn": "none"}, False),
        ):
            with self.subTest(mode=mode, **keys), torch._inductor.config.patch({"fx_graph_cache": False}):
                torch._dynamo.reset()
                act = bt.BerLU(eps=0.5, **keys).cuda()
                compiled = torch.compile(act, fullgraph=True, mode=mode)
                x = torch.randn(128, 64, device="cuda", requires_grad=True)
                got, programs = run_and_get_code(
                    lambda: torch.autograd.grad(compiled(x).square().sum(), (x, *act.parameters()))
                )
                self.assertEqual(any("berlu.forward_raw" in text for text in programs), native)
                want = torch.autograd.grad(act(x).square().sum(), (x, *act.parameters()))
                for a, b in zip(want, got):
                    torch.testing.assert_close(a, b.clone(), rtol=1e-5, atol=1e-5)

    @unittest.skipUnless(shutil.which("gcc") or shutil.which("clang"), "torch.compile needs a C compiler")
    def test_graphs_train_as_what_they_record(self):
        for keep in ("input", "output"):
            eager = self.losses("eager", keep)
            self.assertLess(eager[-1], eager[0])
            self.assertEqual(self.losses("captured", keep), eager)
            self.assertEqual(self.losses("reduce-overhead", keep), self.losses("compiled", keep))

    def losses(self, kind, keep, steps=6):
        """Those of a few steps of AdamW, after three that a graph needs to warm up."""
        torch._dynamo.reset()
        torch.manual_seed(4)
        act = bt.BerLU(eps=0.1, keep=keep, backend="native")
        layers = torch.nn.Linear(64, 256), act, torch.nn.Linear(256, 64)
        model, x = torch.nn.Sequential(*layers).cuda(), torch.randn(128, 64, device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)
        mode = "reduce-overhead" if kind == "reduce-overhead" else None
        f = torch.compile(model, mode=mode) if kind in ("compiled", "reduce-overhead") else model

        def step():
            optimizer.zero_grad()
            loss = (f(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        if kind != "captured":
            return [step().item() for _ in range(steps)]
        graph, out = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(graph):
            loss = step()
        for _ in range(steps):
            graph.replay()
            out.append(loss.item())
        return out

    def test_second_order_is_that_of_the_cpu(self):
        results = []
        for device in ("cpu", "cuda"):
            x = torch.linspace(-2, 2, 48).reshape(6, 8).to(device).requires_grad_()
            act = bt.BerLU(alpha=0.1, eps=0.5, learn="alpha+eps").to(device)
            first = torch.autograd.grad(act(x).square().sum(), [x, *act.parameters()], create_graph=True)
            second = torch.autograd.grad(sum(f.square().sum() for f in first), [x, *act.parameters()])
            results.append([t.cpu() for t in second])
        for h, d in zip(*results):
            torch.testing.assert_close(h, d, rtol=1e-4, atol=1e-4)

    def test_a_forked_child_is_told_to_spawn(self):
        x = torch.randn(64, device="cuda")
        bt.gelu(x)
        torch.cuda.synchronize()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with torch.no_grad():
                    bt.gelu(x)
                message = "computed"
            except BaseException as error:
                message = str(error)
            os.write(write, message.encode())
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        self.assertIn("spawn", os.read(read, 65536).decode())
        self.assertEqual(bt.gelu(x).shape, x.shape)

    def test_out_of_memory_is_torchs_exception(self):
        act = bt.BerLU().cuda()
        x = torch.randn(64 << 20, device="cuda", requires_grad=True)
        y = act(x)
        torch.cuda.empty_cache()
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + x.nbytes / 2) / total)
        try:
            for run in (lambda: act(x), lambda: torch.autograd.grad(y, (x, act.alpha), x.detach())):
                with self.assertRaises(torch.OutOfMemoryError):
                    run()
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        dx, _ = torch.autograd.grad(y, (x, act.alpha), x.detach())
        self.assertEqual(dx.shape, act(x).shape)

    def test_autocast_and_another_device(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), bt.BerLU(keep="output"), torch.nn.Linear(64, 8)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            y = model(torch.randn(16, 64, device="cuda"))
        y.float().sum().backward()
        self.assertEqual((y.dtype, model[1].alpha.grad.dtype), (torch.bfloat16, torch.float32))
        with self.assertRaisesRegex(ValueError, "a parameter lies on cpu"):
            bt.BerLU()(torch.randn(4, device="cuda"))


if __name__ == "__main__":
    unittest.main()
