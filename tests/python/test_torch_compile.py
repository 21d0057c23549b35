"""berlu.torch under torch.compile, export, functorch, autocast and checkpointing.
SPDX-License-Identifier: MIT"""

import copy
import io
import pickle
import re
import threading
import unittest
import warnings

import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

import berlu
import berlu.torch as bt
from berlu.torch._forms import site_of
from torch_cases import SPECS


class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def model(self, **keys):
        torch.manual_seed(8)
        return nn.Sequential(
            nn.Linear(12, 16), bt.BerLU(eps=0.5, **keys), nn.Linear(16, 8), bt.Act("gelu"), nn.Linear(8, 4)
        )

    def gradients(self, model, x):
        for p in model.parameters():
            p.grad = None
        y = model(x)
        y.square().sum().backward()
        return [y.detach().clone(), *(p.grad.clone() for p in model.parameters())]

    def test_one_graph_with_the_values_of_eager_to_the_bit(self):
        x = torch.randn(10, 16, generator=torch.Generator().manual_seed(9))
        for keys in (
            {},
            {"channels": 16},
            {"learn": "alpha+eps"},
            {"keep": "output"},
            {"learn": "none", "backend": "native"},
        ):
            with self.subTest(**keys):
                torch._dynamo.reset()  # each case is a program of its own, and there is a limit to these
                act = bt.BerLU(eps=0.5, **keys)
                compiled = torch.compile(act, fullgraph=True)
                for rows, dynamic in ((10, None), (7, None), (9, True), (5, True)):
                    if dynamic and rows == 9:
                        compiled = torch.compile(act, fullgraph=True, dynamic=True)
                    leaves = [x[:rows].clone().requires_grad_() for _ in range(2)]
                    got = [f(leaf) for f, leaf in zip((act, compiled), leaves)]
                    self.assertTrue(torch.equal(*got))
                    grads = [
                        torch.autograd.grad(y.square().sum(), [leaf, *act.parameters()]) for y, leaf in zip(got, leaves)
                    ]
                    for a, b in zip(*grads):
                        self.assertTrue(torch.equal(a, b))

    def test_the_pure_form_of_every_activation_has_eagers_gradient(self):
        """In f32 and bf16: torch 2.11 loses a gradient that passes through a conversion to its own dtype."""
        for spec in SPECS:
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(spec=spec, dtype=dtype):
                    torch._dynamo.reset()
                    act = bt.Act(spec, backend="torch")
                    compiled = torch.compile(act, fullgraph=True, backend="aot_eager")
                    x = torch.randn(64, generator=torch.Generator().manual_seed(3)).to(dtype).requires_grad_()
                    leaves = [x, *act.parameters()]
                    grads = [torch.autograd.grad(f(x).square().sum(), leaves) for f in (act, compiled)]
                    for a, b in zip(*grads):
                        self.assertTrue(torch.equal(a, b))

    def test_a_network_compiles_to_one_graph_with_dynamic_shapes(self):
        for keys in (
            {},
            {"channels": 16},
            {"learn": "none"},
            {"keep": "output"},
            {"backend": "torch"},
            {"backend": "native"},
        ):
            with self.subTest(**keys):
                torch._dynamo.reset()
                model = self.model(**keys)
                compiled = torch.compile(model, fullgraph=True, dynamic=True)
                for rows in (5, 9, 6):
                    x = torch.randn(rows, 12)
                    for a, b in zip(self.gradients(model, x), self.gradients(compiled, x)):
                        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_the_default_is_native_where_a_parameter_learns_and_pure_where_not(self):
        def operators(act):
            seen = []

            def look(graph, inputs):
                seen.extend(str(n.target) for n in graph.graph.nodes if n.op == "call_function")
                return graph.forward

            torch._dynamo.reset()
            torch.compile(act, backend=look, fullgraph=True)(torch.randn(4, 4, requires_grad=True))
            return any("berlu.forward" in s for s in seen)

        if bt.native() is None:
            self.assertTrue(operators(bt.BerLU()))
            self.assertTrue(operators(bt.BerLU(learn="none", backend="native")))
            with bt.backend("torch"):
                self.assertFalse(operators(bt.BerLU()))
        self.assertFalse(operators(bt.BerLU(learn="none")))
        self.assertFalse(operators(bt.BerLU(backend="torch")))

    def test_functions_compile_to_one_graph(self):
        """With a spec that is new inside the compiled function, too."""
        x, alpha = torch.randn(4, 8), torch.rand(8)
        act = berlu.act("berlu:eps=0.25")
        functions = {
            "a name": lambda t: bt.forward("gelu", t),
            "an object": lambda t: bt.forward(act, t),
            "two new specs": lambda t: bt.forward("berlu:eps=0.125", t) + bt.forward("elu:alpha=0.375", t),
            "a parameter": lambda t: bt.forward("berlu", t, alpha=alpha),
            "keep": lambda t: bt.forward("prelu", t, keep="output"),
            "smoothed": lambda t: bt.forward("smooth(kinks=0; slopes=0,1; eps=0.5)", t),
            "numbers": lambda t: bt.berlu(t, 0.0625, 0.5),
            "a number and a tensor": lambda t: bt.berlu(t, alpha, eps=0.5),
        }
        for name, f in functions.items():
            with self.subTest(name):
                torch._dynamo.reset()
                a, b = (x.clone().requires_grad_() for _ in range(2))
                y, z = torch.compile(f, fullgraph=True, backend="aot_eager")(a), f(b)
                torch.testing.assert_close(y, z)
                grads = [torch.autograd.grad(t.square().sum(), leaf)[0] for t, leaf in ((y, a), (z, b))]
                torch.testing.assert_close(*grads)

    def test_functions_compile_with_numbers_that_change(self):
        """The second number and those after it reach the tracer as symbols; as a tensor they need one program only."""
        x = torch.randn(16)
        compiled = torch.compile(lambda t, eps: bt.berlu(t, 0.0625, eps), fullgraph=True, backend="aot_eager")
        for eps in (0.5, 0.375, 0.25, 1.0, 2, 0.375):
            torch.testing.assert_close(compiled(x, eps), bt.berlu(x, 0.0625, eps))
        counter = CompileCounter()
        compiled = torch.compile(lambda t, eps: bt.berlu(t, 0.0625, eps), fullgraph=True, backend=counter)
        for eps in (0.5, 0.375, 0.25):
            torch.testing.assert_close(compiled(x, torch.tensor(eps)), bt.berlu(x, 0.0625, eps))
        self.assertEqual(counter.frame_count, 1)

    def test_activations_made_later_compile_nothing_again(self):
        counter = CompileCounter()
        act, x = bt.BerLU(), torch.randn(4)
        compiled = torch.compile(act, backend=counter, fullgraph=True)
        for eps in (0.5, 0.25, 0.375):
            compiled(x)
            bt.BerLU(eps=eps)(x)
        self.assertEqual(counter.frame_count, 1)

    @unittest.skipIf(bt.native(), f"no native operators: {bt.native()}")
    def test_a_block_chooses_for_its_own_thread(self):
        """Eager by what the graph holds, compiled by a program that is chosen anew in each thread."""
        act, x = bt.BerLU(), torch.randn(4, requires_grad=True)
        programs = []

        def look(graph, inputs):
            programs.append(any("berlu.forward" in str(n.target) for n in graph.graph.nodes))
            return graph.forward

        compiled = torch.compile(act, backend=look, fullgraph=True)

        def eager():
            compiled(x)
            return type(act(x).grad_fn).__name__

        def elsewhere():
            seen = []
            thread = threading.Thread(target=lambda: seen.append(eager()))
            thread.start()
            thread.join()
            return seen[0]

        with bt.backend("torch"):
            self.assertEqual([eager(), elsewhere(), eager()], ["_PureBackward", "_NativeBackward", "_PureBackward"])
            with bt.backend("native"):
                self.assertEqual(eager(), "_NativeBackward")
        self.assertEqual(eager(), "_NativeBackward")
        self.assertEqual(programs[:2], [False, True])

    def calls(self, f, x):
        """The operators that the compiled forward and backward of f call."""
        from torch._inductor.utils import run_and_get_code

        compiled = torch.compile(f, fullgraph=True)

        def run():
            y = compiled(x)
            if y.requires_grad:
                y.square().sum().backward()

        torch._dynamo.reset()
        with torch._inductor.config.patch({"fx_graph_cache": False}):
            with torch._functorch.config.patch({"enable_autograd_cache": False}):
                _, programs = run_and_get_code(run)
        self.assertTrue(programs)
        return sorted(set(re.findall(r"torch\.ops\.berlu\.(\w+)", "".join(programs))))

    @unittest.skipIf(bt.native(), f"no native operators: {bt.native()}")
    def test_compiled_programs_call_operators_without_python_between(self):
        for keys, names in (
            ({}, ["backward_raw", "forward_raw"]),
            ({"keep": "output"}, ["backward_from_output_raw", "forward_raw"]),
        ):
            with self.subTest(**keys):
                seen = self.calls(bt.BerLU(**keys), torch.randn(4, 4, requires_grad=True))
                self.assertEqual(seen, names)
        with torch.no_grad():
            seen = self.calls(bt.BerLU(backend="native"), torch.randn(4, 4))
        self.assertEqual(seen, ["forward_raw"])

    def test_export_holds_standard_operators_only(self):
        act = bt.BerLU(channels=6, dim=1)
        x = torch.randn(2, 6, 3)
        program = torch.export.export(act, (x,))
        self.assertFalse(any("berlu" in str(n.target) for n in program.graph.nodes if n.op == "call_function"))
        torch.testing.assert_close(program.module()(x), act(x))

    def test_export_and_tracing_refuse_bad_input(self):
        whole = torch.arange(6)
        with self.assertRaisesRegex(TypeError, "x is torch.int64"):
            torch.export.export(bt.BerLU(), (whole,))
        with self.assertRaisesRegex(TypeError, "x is torch.int64"):
            torch.jit.trace(bt.BerLU(), (whole,), check_trace=False)
        with self.assertRaisesRegex(ValueError, "there are 5 channels"):  # which torch would broadcast
            torch.jit.trace(bt.BerLU(channels=5), (torch.randn(4, 1),), check_trace=False)
        with self.assertRaisesRegex(ValueError, "there are 5 channels"):
            torch.export.export(bt.BerLU(channels=5), (torch.randn(4, 6),))

    def test_symbolic_tracing(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.alpha = nn.Linear(4, 4), nn.Parameter(torch.rand(4))
                self.acts = nn.Sequential(bt.BerLU(), bt.Act("gelu"), bt.BerLU(channels=4, keep="output"))

            def forward(self, x):
                x = self.acts(self.fc(x))
                return bt.berlu(x, self.alpha, eps=0.5) + bt.mish(x) + bt.forward("prelu", x, alpha=self.alpha)

        model, x = Model(), torch.randn(3, 4)
        traced = torch.fx.symbolic_trace(model)
        for other in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
            results = []
            for f in (model, other):
                y, params = f(x), dict(f.named_parameters())
                grads = torch.autograd.grad(y.square().sum(), [params[name] for name in sorted(params)])
                results.append([y, *grads])
            for a, b in zip(*results):
                self.assertTrue(torch.equal(a, b))
        torch.testing.assert_close(torch.compile(traced, backend="eager", fullgraph=True)(x), model(x))

    def test_jit_trace(self):
        for act in (bt.BerLU(eps=0.5), bt.BerLU(eps=0.5, channels=4), bt.Act("smooth(kinks=0; slopes=0,1; eps=0.5)")):
            x = torch.randn(3, 4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer torch advises against TorchScript
                warnings.simplefilter("error", torch.jit.TracerWarning)
                traced = torch.jit.trace(act, (x,))
            torch.testing.assert_close(traced(2 * x), act(2 * x))


class Script(unittest.TestCase):
    def script(self, module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer torch advises against TorchScript
            return torch.jit.script(module)

    def test_every_activation_can_be_scripted_in_every_dtype(self):
        x = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(12))
        for spec in SPECS:
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                with self.subTest(spec=spec, dtype=dtype):
                    model = nn.Sequential(nn.Linear(8, 8), bt.Act(spec)).to(dtype)
                    torch.testing.assert_close(self.script(model)(x.to(dtype)), model(x.to(dtype)))

    def test_channels_of_any_rank_gradients_and_files(self):
        act = bt.BerLU(eps=0.5, channels=6, dim=1, learn="alpha+eps", degree=4)
        scripted = self.script(act)
        self.assertEqual(list(scripted.state_dict()), ["alpha", "eps"])
        for shape in ((2, 6), (2, 6, 4), (2, 6, 4, 3)):
            x = torch.randn(shape, requires_grad=True)
            torch.testing.assert_close(scripted(x), act(x))
            grads = [torch.autograd.grad(f(x).square().sum(), [x, *act.parameters()]) for f in (scripted, act)]
            for a, b in zip(*grads):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
        file = io.BytesIO()
        torch.jit.save(scripted, file)
        file.seek(0)
        torch.testing.assert_close(torch.jit.load(file)(x), act(x))
        with self.assertRaisesRegex(Exception, "must be a floating-point tensor"):
            scripted(torch.ones(2, 6, dtype=torch.int64))

    def test_a_scripted_module_is_what_it_was(self):
        model = nn.Sequential(nn.Linear(4, 4), bt.BerLU())
        self.script(model)
        self.assertIs(type(model[1]), bt.BerLU)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.assertEqual(list(other.state_dict()), list(model.state_dict()))
        self.assertEqual(list(model.state_dict()), ["0.weight", "0.bias", "1.alpha"])


class Transforms(unittest.TestCase):
    def test_compiled_transforms_have_the_tangent_of_eager_ones(self):
        x = torch.linspace(-2, 2, 5)
        for keys in ({}, {"keep": "output"}, {"learn": "none"}):
            with self.subTest(**keys):
                torch._dynamo.reset()
                act = bt.BerLU(alpha=0.3, eps=0.5, **keys)

                def jvp(t):
                    return torch.func.jvp(act, (t,), (torch.ones_like(t),))[1]

                torch.testing.assert_close(torch.compile(jvp, backend="aot_eager")(x), jvp(x))
                self.assertTrue((jvp(x) != 0).all())

    def test_derivatives_at_zero_do_not_depend_on_how_torch_clamps(self):
        for spec, want in (("elu", 1), ("celu", 1), ("softplus", 0.5), ("relu", 0), ("relu6", 0), ("hard_swish", 0.5)):
            act, x = bt.Act(spec), torch.zeros(3)
            got = torch.func.grad(lambda t: act(t).sum())(x)
            torch.testing.assert_close(got, torch.full((3,), float(want)))

    def test_vmap_grad_jvp_jacrev_hessian_and_per_sample_gradients(self):
        torch.manual_seed(10)
        x, alpha = torch.randn(5, 4), torch.tensor([0.3])

        def f(x, alpha):
            return bt.berlu(x, alpha, 0.5)

        double = [t.double() for t in (x, alpha)]
        torch.testing.assert_close(torch.vmap(f, (0, None))(x, alpha), f(x, alpha))
        value, tangent = torch.func.jvp(lambda t: f(t, alpha), (x,), (torch.ones_like(x),))
        torch.testing.assert_close(tangent, site_of("berlu:eps=0.5").form.slope(x, [alpha, 0.5]))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(f(dual, alpha)).tangent, tangent)
        hessian = torch.func.hessian(lambda t: f(t, alpha).square().sum())(x[0])
        want = torch.func.hessian(lambda t: f(t, double[1]).square().sum())(double[0][0])
        torch.testing.assert_close(hessian.double(), want, rtol=1e-5, atol=1e-5)
        self.assertEqual(torch.func.jacrev(lambda t: f(t, alpha))(x[0]).shape, (4, 4))
        samples = torch.vmap(torch.func.grad(lambda a, t: f(t, a).sum()), (None, 0))(alpha, x)
        each = [torch.func.grad(lambda a: f(t, a).sum())(alpha) for t in x]
        torch.testing.assert_close(samples, torch.stack(each))

    def test_a_gradient_keeps_the_tangent_of_what_comes_in(self):
        forward_ad = torch.autograd.forward_ad
        x = torch.linspace(-2, 2, 6).requires_grad_()
        dy, tangent = torch.rand(6), torch.rand(6)
        for keep in ("input", "output"):
            act = bt.BerLU(alpha=0.3, eps=0.5, learn="alpha+eps", keep=keep)
            leaves, y = [x, *act.parameters()], act(x)
            plain = torch.autograd.grad(y, leaves, dy, retain_graph=True)
            want = torch.autograd.grad(y, leaves, tangent, retain_graph=True)  # the gradient is linear in dy
            with forward_ad.dual_level():
                dual = torch.autograd.grad(y, leaves, forward_ad.make_dual(dy, tangent))
                for g, first, second in zip(dual, plain, want):
                    torch.testing.assert_close(forward_ad.unpack_dual(g).primal, first)
                    torch.testing.assert_close(forward_ad.unpack_dual(g).tangent, second)

    def test_gradients_in_batches(self):
        x = torch.linspace(-2, 2, 6).requires_grad_()
        for keep in ("input", "output"):
            act = bt.BerLU(alpha=0.3, eps=0.5, keep=keep)
            want = torch.diag(torch.autograd.grad(act(x).sum(), x)[0])
            got = torch.autograd.grad(act(x), x, torch.eye(6), is_grads_batched=True)[0]
            torch.testing.assert_close(got, want)
            for strategy in ("reverse-mode", "forward-mode"):
                got = torch.autograd.functional.jacobian(act, x.detach(), vectorize=True, strategy=strategy)
                torch.testing.assert_close(got, want)

    def test_autocast_keeps_the_gradient_of_alpha_in_f32(self):
        for dtype in (torch.bfloat16, torch.float16):
            model = nn.Sequential(nn.Linear(8, 8), bt.BerLU(), nn.Linear(8, 2))
            with torch.autocast("cpu", dtype):
                y = model(torch.randn(4, 8))
            self.assertEqual(y.dtype, dtype)
            y.float().sum().backward()
            self.assertEqual(model[1].alpha.grad.dtype, torch.float32)

    def test_checkpointing_and_saved_tensor_hooks(self):
        from torch.utils.checkpoint import checkpoint

        act, x = bt.BerLU(eps=0.5), torch.randn(6, 4, requires_grad=True)
        want = torch.autograd.grad(act(x).sum(), [x, act.alpha])
        got = torch.autograd.grad(checkpoint(act, x, use_reentrant=False).sum(), [x, act.alpha])
        for a, b in zip(want, got):
            self.assertTrue(torch.equal(a, b))
        for keep in ("input", "output"):  # what runs again, outside of the block, is another backend
            other = bt.BerLU(eps=0.5, keep=keep)
            with bt.backend("torch"):
                y = checkpoint(other, x, use_reentrant=False)
            torch.testing.assert_close(torch.autograd.grad(y.sum(), [x, other.alpha]), want)
        with torch.autograd.graph.save_on_cpu():
            y = act(x)
        self.assertTrue(torch.equal(torch.autograd.grad(y.sum(), x)[0], want[0]))

    def test_checkpointing_of_a_compiled_module_runs_another_backend_again(self):
        """backend() around the forward pass alone: what is kept must be what the second program keeps."""
        from torch.utils.checkpoint import checkpoint

        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(14), requires_grad=True)
        for compiler in ("aot_eager", "inductor"):
            for keep in ("input", "output"):
                for keys in ({}, {"learn": "none"}, {"learn": "alpha+eps", "channels": 4}):
                    torch._dynamo.reset()
                    model = nn.Sequential(nn.Linear(4, 4), bt.BerLU(alpha=0.1, eps=0.5, keep=keep, **keys))
                    leaves = [x, *model.parameters()]
                    want = torch.autograd.grad(model(x).square().sum(), leaves)
                    compiled = torch.compile(model, backend=compiler, fullgraph=True)
                    for backend in ("torch", "native"):
                        with self.subTest(compiler=compiler, keep=keep, backend=backend, **keys):
                            with bt.backend(backend):
                                y = checkpoint(compiled, x, use_reentrant=False)
                            got = torch.autograd.grad(y.square().sum(), leaves)
                            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)

    def test_inference_mode_and_meta(self):
        act, x = bt.BerLU(), torch.randn(3, 4)
        with torch.inference_mode():
            y = act(x)
        self.assertTrue(torch.equal(y, act(x)))
        meta = bt.BerLU(device="meta", channels=4)
        self.assertEqual(meta(torch.empty(3, 4, device="meta")).shape, (3, 4))


if __name__ == "__main__":
    unittest.main()
