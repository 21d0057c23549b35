"""berlu.torch: operators, gradients of every order, torch.compile, functorch, storage, refusals.
SPDX-License-Identifier: MIT"""

import copy
import doctest
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch.library import opcheck

import berlu
import berlu.torch as bt
from berlu.torch import _bridge, _modules, _ops, _replace, _train
from berlu.torch._forms import bump_polynomials, site_of

SPECS = [
    *berlu.names(),
    "berlu:eps=0.5,degree=4",
    "berlu:eps=1,degree=16,alpha=0.3",
    "gelu:scale=2,center=1",
    "berlu:eps=1,scale=3,center=1",
    "smooth(kinks=-1,1; slopes=0,1,0.5; eps=0.5; degree=4)",
]


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


class Forms(unittest.TestCase):
    def test_the_pure_form_is_the_reference_in_f64(self):
        x = torch.cat([torch.linspace(-5, 5, 401), torch.tensor([0.0, -0.0, 1, -1, 3, -3, 6])]).double()
        for spec in SPECS:
            site = site_of(spec)

            def reference(what, *rest):
                return torch.tensor([getattr(site.act, what)(v, *rest) for v in x.tolist()], dtype=torch.float64)

            for what in ("value", "slope", "second"):
                torch.testing.assert_close(
                    getattr(site.form, what)(x, site.own), reference(what), rtol=1e-12, atol=1e-13
                )
            for name, got in zip(site.form.params, site.form.by_param(x, site.own)):
                torch.testing.assert_close(got, reference("param_slope", name), rtol=1e-12, atol=1e-13)

    def test_gradcheck_and_gradgradcheck_of_the_pure_form(self):
        torch.manual_seed(2)
        x = torch.randn(4, 6, dtype=torch.float64) * 2
        x = (x + 0.07 * x.sign()).requires_grad_()  # no kink within the step of the check
        for spec in SPECS:
            site = site_of(spec)
            for channels in (1, 6):
                params = [torch.full((channels,), float(v), dtype=torch.float64, requires_grad=True) for v in site.own]
                p, q = (params + [None, None])[:2]
                inputs = [x, *params]

                def f(x, *params):
                    p, q = (list(params) + [None, None])[:2]
                    return _ops.apply(x, p, q, spec, -1)

                self.assertTrue(torch.autograd.gradcheck(f, inputs), spec)
                self.assertTrue(torch.autograd.gradgradcheck(f, inputs), spec)

    def test_the_slope_at_zero_is_that_of_the_smooth_function(self):
        for dtype in (torch.float32, torch.float64):
            for backend in ("native", "torch"):
                x = torch.zeros(3, dtype=dtype, requires_grad=True)
                (dx,) = torch.autograd.grad(bt.berlu(x, alpha=0.5, backend=backend).sum(), x)
                self.assertEqual(dx.tolist(), [0.75] * 3)
        slope = torch.func.grad(lambda t: bt.berlu(t, alpha=0.5))(torch.tensor(0.0))
        self.assertEqual(slope.item(), 0.75)

    def test_the_bump_polynomials_are_those_of_the_mathematics(self):
        self.assertEqual(bump_polynomials(4), ([35 / 8, 47 / 8, 25 / 8, 5 / 8], [8, 29 / 2, 10, 5 / 2]))
        self.assertEqual(bump_polynomials(8)[1][:3], [128, 9949 / 16, 2781 / 2])


@unittest.skipIf(bt.native(), f"no native operators: {bt.native()}")
class Operators(unittest.TestCase):
    def test_opcheck_of_every_operator_and_layout(self):
        for name, x, dim in layouts():
            for alpha, eps in (
                (torch.tensor([0.25]), None),
                (per_channel(x, dim), torch.tensor([0.5])),
                (per_channel(x, dim), per_channel(x, dim)),
            ):
                with self.subTest(layout=name, alpha=alpha.numel(), eps=eps):
                    a, e = alpha.clone().requires_grad_(), None if eps is None else eps.clone().requires_grad_()
                    leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
                    opcheck(torch.ops.berlu.forward.default, (leaf, a, e, "berlu:eps=0.5", dim))
                    for op in (torch.ops.berlu.backward, torch.ops.berlu.backward_from_output):
                        args = (
                            torch.ones_like(x).requires_grad_(),
                            leaf,
                            a,
                            e,
                            "berlu:eps=0.5",
                            dim,
                            True,
                            e is not None,
                        )
                        opcheck(op.default, args)

    def test_opcheck_of_strides_that_clone_would_change(self):
        for name, x, dim in layouts():
            opcheck(torch.ops.berlu.forward.default, (x, per_channel(x, dim), None, "berlu:eps=0.5", dim))

    def test_value_and_gradients_are_those_of_f64_in_every_layout(self):
        for name, x, dim in layouts():
            with self.subTest(layout=name):
                alpha, eps = per_channel(x, dim), per_channel(x, dim) + 0.2
                got = self.run_one(x, alpha, eps, dim)
                want = self.run_one(x.double(), alpha.double(), eps.double(), dim)
                for g, w in zip(got, want):
                    torch.testing.assert_close(g.double(), w, rtol=1e-6, atol=1e-6)
                if name not in ("strided", "expanded"):
                    self.assertEqual(got[0].stride(), x.stride())

    def run_one(self, x, alpha, eps, dim, dy=None):
        x, alpha, eps = (
            t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, alpha, eps)
        )
        y = _ops.apply(x, alpha, eps, "berlu", dim)
        return (y, *torch.autograd.grad(y, (x, alpha, eps), torch.cos(y.detach()) if dy is None else dy))

    def test_every_activation_agrees_with_its_pure_form(self):
        torch.manual_seed(3)
        x = torch.randn(1000) * 3
        for spec in SPECS:
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                with self.subTest(spec=spec, dtype=dtype):
                    a, b = (x.to(dtype).requires_grad_() for _ in range(2))
                    y, z = bt.forward(spec, a), bt.forward(spec, b, backend="torch")
                    self.assertEqual(y.dtype, dtype)
                    torch.testing.assert_close(y, z)
                    da, db = (torch.autograd.grad(t, s, torch.ones_like(t))[0] for t, s in ((y, a), (z, b)))
                    torch.testing.assert_close(da, db)

    def test_second_order_through_the_operators_is_that_of_f64(self):
        torch.manual_seed(4)
        for spec in ("berlu:eps=0.5", "berlu:eps=0.5,degree=6", "smelu", "prelu", "elu", "celu", "gelu", "mish"):
            for keep in ("input", "output"):
                act = berlu.act(spec)
                if keep == "output" and not act.from_output:
                    continue
                with self.subTest(spec=spec, keep=keep):
                    results = []
                    for dtype in (torch.float32, torch.float64):
                        g = torch.Generator().manual_seed(5)
                        x = (torch.randn(6, 8, generator=g) * 2).to(dtype).requires_grad_()
                        params = [torch.full((8,), v, dtype=dtype).requires_grad_() for v in site_of(spec).own]
                        p, q = (params + [None, None])[:2]
                        weights = [torch.randn(t.shape, generator=g).to(dtype) for t in (x, *params)]
                        y = _ops.apply(x, p, q, spec, -1, keep)
                        first = torch.autograd.grad(y.square().sum(), (x, *params), create_graph=True)
                        scalar = sum((w * f).sum() for w, f in zip(weights, first))
                        results.append(torch.autograd.grad(scalar, (x, *params)))
                    for got, want in zip(*results):
                        torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5)

    def test_keep_output_gives_the_gradients_of_keep_input(self):
        torch.manual_seed(6)
        x, dy = torch.randn(64, 32), torch.randn(64, 32)
        grads = []
        for keep in ("input", "output"):
            act, leaf = bt.BerLU(alpha=0.05, eps=0.3, learn="alpha+eps", keep=keep), x.clone().requires_grad_()
            y = act(leaf)
            self.assertIs(y.grad_fn.saved_tensors[0] is not None, True)
            kept = y.grad_fn.saved_tensors[0]
            self.assertEqual(kept.data_ptr() == y.data_ptr(), keep == "output")
            y.backward(dy)
            grads.append((leaf.grad, act.alpha.grad, act.eps.grad))
        for a, b in zip(*grads):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_threads_and_deterministic_mode_change_no_bit(self):
        torch.manual_seed(7)
        x, dy, results = torch.randn(500, 300), torch.randn(500, 300), []
        before = torch.get_num_threads()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(threads == 2)
            results.append(self.run_one(x, torch.tensor([0.1]), torch.linspace(0.1, 0.5, 300), 1, dy))
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(before)
        for other in results[1:]:
            for a, b in zip(results[0], other):
                self.assertTrue(torch.equal(a, b))

    def test_dtype_and_shape_of_gradients_follow_the_parameters(self):
        x = torch.randn(8, 4, dtype=torch.bfloat16, requires_grad=True)
        act = bt.BerLU(channels=4)
        act(x).sum().backward()
        self.assertEqual(
            (x.grad.dtype, act.alpha.grad.dtype, act.alpha.grad.shape), (torch.bfloat16, torch.float32, (4,))
        )
        act = bt.BerLU(channels=4).to(torch.bfloat16)
        act(x).sum().backward()
        self.assertEqual(act.alpha.grad.dtype, torch.bfloat16)

    def test_operators_refuse_what_python_did_not_catch(self):
        f, x = torch.ops.berlu.forward, torch.randn(4, 8)
        for args, text in (
            ((x.double(), None, None, "gelu", -1), "float32"),
            ((x, None, None, "berlu:ep=1", -1), "did you mean 'eps'"),
            ((x, torch.ones(4), None, "berlu", -1), "4 channels"),
            ((x, torch.ones(8), torch.ones(4), "berlu", -1), "8 and 4 channels"),
            ((x, torch.ones(8).double(), None, "berlu", -1), "parameter must be float32"),
            ((x, torch.ones(1), None, "gelu", -1), "no parameter number 0"),
        ):
            with self.assertRaisesRegex(RuntimeError, text):
                f(*args)
        with self.assertRaisesRegex(RuntimeError, "shape of dy"):
            torch.ops.berlu.backward(x[:2], x, None, None, "gelu", -1, False, False)


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
                act = bt.BerLU(eps=0.5, **keys)
                compiled = torch.compile(act, fullgraph=True)
                for rows in (10, 7):
                    leaves = [x[:rows].clone().requires_grad_() for _ in range(2)]
                    got = [f(leaf) for f, leaf in zip((act, compiled), leaves)]
                    self.assertTrue(torch.equal(*got))
                    grads = [
                        torch.autograd.grad(y.square().sum(), [leaf, *act.parameters()]) for y, leaf in zip(got, leaves)
                    ]
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

    def test_export_holds_standard_operators_only(self):
        act = bt.BerLU(channels=6, dim=1)
        x = torch.randn(2, 6, 3)
        program = torch.export.export(act, (x,))
        self.assertFalse(any("berlu" in str(n.target) for n in program.graph.nodes if n.op == "call_function"))
        torch.testing.assert_close(program.module()(x), act(x))

    def test_jit_trace(self):
        act, x = bt.BerLU(eps=0.5), torch.randn(3, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(act, (x,))
        torch.testing.assert_close(traced(2 * x), act(2 * x))


class Transforms(unittest.TestCase):
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
        with torch.autograd.graph.save_on_cpu():
            y = act(x)
        self.assertTrue(torch.equal(torch.autograd.grad(y.sum(), x)[0], want[0]))

    def test_inference_mode_and_meta(self):
        act, x = bt.BerLU(), torch.randn(3, 4)
        with torch.inference_mode():
            y = act(x)
        self.assertTrue(torch.equal(y, act(x)))
        meta = bt.BerLU(device="meta", channels=4)
        self.assertEqual(meta(torch.empty(3, 4, device="meta")).shape, (3, 4))


class Modules(unittest.TestCase):
    def test_modules_copy_pickle_and_load_by_the_names_of_run_folders(self):
        act = bt.BerLU(alpha=[0.1, 0.2, 0.3], channels=3, learn="alpha+eps", degree=4, dim=1)
        self.assertEqual(list(act.state_dict()), ["alpha", "eps"])
        x = torch.randn(2, 3, 5)
        for other in (copy.deepcopy(act), pickle.loads(pickle.dumps(act))):
            self.assertTrue(torch.equal(other(x), act(x)))
        file = io.BytesIO()
        torch.save(act.state_dict(), file)
        file.seek(0)
        fresh = bt.BerLU(channels=3, learn="alpha+eps", degree=4, dim=1)
        fresh.load_state_dict(torch.load(file, weights_only=True))
        self.assertEqual(fresh.alpha.tolist(), act.alpha.tolist())
        self.assertIn("degree=4", repr(act))

    def test_act_learns_what_its_spec_says(self):
        self.assertEqual([n for n, _ in bt.Act("prelu").named_parameters()], ["alpha"])
        self.assertEqual([n for n, _ in bt.Act("elu").named_parameters()], [])
        self.assertEqual([n for n, _ in bt.Act("smelu:learn=beta").named_parameters()], ["beta"])
        act = bt.Act("smelu:learn=beta")
        act(torch.randn(50)).sum().backward()
        self.assertGreater(act.beta.grad.item(), 0)

    def test_functions_take_numbers_and_tensors(self):
        x = torch.randn(4, 3)
        torch.testing.assert_close(bt.berlu(x, 0.2, 0.5), bt.berlu(x, torch.tensor(0.2), eps=torch.tensor([0.5] * 3)))
        torch.testing.assert_close(bt.elu(x, 2.0), nn.functional.elu(x, 2.0))
        self.assertTrue(set(berlu.names()) <= set(dir(bt)))
        with self.assertRaises(AttributeError):
            bt.nothing

    def test_bad_input_is_refused_by_name(self):
        x = torch.randn(2, 8)
        for error, text, what in (
            (TypeError, "torch.int64", lambda: bt.BerLU()(torch.arange(4))),
            (TypeError, "torch.int64", lambda: bt.gelu(torch.arange(4), backend="torch")),
            (TypeError, "torch.complex64", lambda: bt.gelu(x.to(torch.complex64))),
            (TypeError, "float8", lambda: bt.BerLU()(x.to(torch.float8_e4m3fn))),
            (TypeError, "x is a list", lambda: bt.BerLU()([1.0, 2.0])),
            (ValueError, "alpha=nan", lambda: bt.BerLU(alpha=float("nan"))),
            (ValueError, "dimension 5", lambda: bt.BerLU(channels=8, dim=5)(x)),
            (ValueError, "4 channels", lambda: bt.BerLU(channels=4)(x)),
            (ValueError, "lies on meta", lambda: bt.BerLU(device="meta")(x)),
            (ValueError, "eps", lambda: bt.BerLU(eps=0)),
            (ValueError, "eps", lambda: bt.BerLU(eps=[0.1, 1e30], channels=2, learn="eps")),
            (ValueError, "alpha has 2 values", lambda: bt.BerLU(alpha=[1, 2], channels=3)),
            (ValueError, "must be learned", lambda: bt.BerLU(alpha=[1, 2], channels=2, learn="none")),
            (ValueError, "degree", lambda: bt.BerLU(degree=99)),
            (ValueError, "learn", lambda: bt.BerLU(learn="gamma")),
            (ValueError, "keep is", lambda: bt.BerLU(keep="nothing")),
            (ValueError, "keep='input'", lambda: bt.BerLU(keep="output", degree=4)),
            (ValueError, "keep='input'", lambda: bt.BerLU(keep="output", alpha=0)),
            (ValueError, "0.001", lambda: bt.BerLU(keep="output", alpha=0.0001)),
            (ValueError, "keep='input'", lambda: bt.Act("gelu", keep="output")),
            (ValueError, "backend is", lambda: bt.BerLU(backend="fast")),
            (ValueError, "channels is", lambda: bt.BerLU(channels=0)),
            (TypeError, "no parameter 'beta'", lambda: bt.forward("gelu", x, beta=x)),
            (ValueError, "did you mean", lambda: bt.Act("gulu")),
        ):
            with self.assertRaisesRegex(error, text):
                what()

    def test_parameters_that_training_drove_out_of_range_give_no_nan(self):
        x = torch.randn(4, 8, requires_grad=True)
        for backend in ("native", "torch"):
            act = bt.BerLU(alpha=0.1, learn="alpha+eps", backend=backend)
            for eps in (0.0, -1.0):
                with torch.no_grad():
                    act.eps.fill_(eps)
                y = act(x)
                torch.testing.assert_close(y, nn.functional.leaky_relu(x, 0.1))
                self.assertFalse(any(g.isnan().any() for g in torch.autograd.grad(y.sum(), [x, *act.parameters()])))
        kept = bt.BerLU(keep="output", backend="native")
        with torch.no_grad():
            kept.alpha.fill_(-0.5)
        if bt.native() is None:
            with self.assertRaisesRegex(RuntimeError, "with alpha = -0.5 its slope cannot be had from the output"):
                kept(x).sum().backward()

    def test_the_examples_of_the_docstrings_hold(self):
        for module in (bt, _modules, _ops, _train, _replace):
            failed, tried = doctest.testmod(module)
            self.assertEqual(failed, 0, module.__name__)
            self.assertGreater(tried, 0, module.__name__)
        for name in berlu.names():
            finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
            for test in finder.find(getattr(bt, name), name, globs={}):
                runner.run(test)
            self.assertEqual((runner.failures, runner.tries), (0, 3), name)


class Training(unittest.TestCase):
    def test_slopes_do_not_decay_and_may_have_their_own_rate(self):
        model = nn.Sequential(nn.Linear(4, 4), bt.BerLU(), nn.LayerNorm(4), nn.PReLU(), nn.Linear(4, 2))
        groups = {g["name"]: g for g in bt.parameter_groups(model, 0.05, act_lr=0.1, lr=1e-2)}
        self.assertEqual([groups[n]["weight_decay"] for n in ("decay", "no_decay", "activation")], [0.05, 0, 0])
        self.assertEqual([len(groups[n]["params"]) for n in ("decay", "no_decay", "activation")], [2, 4, 2])
        self.assertAlmostEqual(groups["activation"]["lr"], 1e-3)
        torch.optim.AdamW(list(groups.values()))
        with self.assertRaisesRegex(ValueError, "lr must be given"):
            bt.parameter_groups(model, 0.05, act_lr=0.1)

    def test_what_a_model_names_does_not_decay(self):
        class Tokens(nn.Module):
            def __init__(self):
                super().__init__()
                self.token, self.fc = nn.Parameter(torch.zeros(1, 1, 4)), nn.Linear(4, 4)

            def no_weight_decay(self):
                return {"token"}

        groups = {g["name"]: len(g["params"]) for g in bt.parameter_groups(Tokens(), 0.05)}
        self.assertEqual(groups, {"decay": 1, "no_decay": 2})

    def test_project_keeps_parameters_inside(self):
        model = nn.Sequential(bt.BerLU(alpha=-1, learn="alpha+eps"), bt.BerLU(alpha=3))
        with torch.no_grad():
            model[0].eps.fill_(-1)
        self.assertEqual(bt.project_(model, "alpha:0.001:2"), 2)
        self.assertEqual([round(m.alpha.item(), 6) for m in model], [0.001, 2])
        self.assertGreater(model[0].eps.item(), 0)
        for rule, want in (("|alpha|<=1", 1.0), ("alpha<=0.5", 0.5), ("alpha>=0.75,eps>=0.25", 0.75)):
            bt.project_(model, rule)
            self.assertEqual(model[1].alpha.item(), want)
        for bad in ("alpha", "alpha:2:1", "alpha:x:", "|alpha|>=1"):
            with self.assertRaisesRegex(ValueError, "is no rule"):
                bt.project_(model, bad)
        with self.assertRaisesRegex(ValueError, "learns 'beta'"):
            bt.project_(model, "beta:0:")

    def test_lipschitz_constants_follow_the_parameters(self):
        model = nn.Sequential(bt.BerLU(alpha=[0.5, -3], channels=2), bt.Act("hard_swish"), bt.BerLU(learn="none"))
        constants = bt.lipschitz(model)
        self.assertEqual(constants.sites, {"0": 3.0, "1": 1.5, "2": 1.0})
        self.assertEqual(constants.largest, 3.0)

    def test_a_network_learns_alpha(self):
        torch.manual_seed(11)
        model = nn.Sequential(nn.Linear(2, 16), bt.BerLU(channels=16), nn.Linear(16, 1))
        before = model[1].alpha.clone()
        optimizer = torch.optim.AdamW(bt.parameter_groups(model, 0.01), lr=1e-2)
        x = torch.randn(256, 2)
        y = (x[:, :1] * x[:, 1:]).sin()
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            bt.project_(model, "alpha:0.001:")
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertFalse(torch.equal(before, model[1].alpha))


class Fallback(unittest.TestCase):
    def test_without_the_bridge_the_pure_form_computes_and_one_warning_says_so(self):
        code = (
            "import warnings, torch; warnings.simplefilter('always')\n"
            "with warnings.catch_warnings(record=True) as seen:\n"
            "    import berlu.torch as bt\n"
            "x = torch.randn(4, requires_grad=True); bt.BerLU()(x).sum().backward()\n"
            "off = [w for w in seen if 'native operators are off' in str(w.message)]\n"
            "print(len(off), bt.native() is None, x.grad is not None)"
        )
        answer = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "BERLU_TORCH_LIBRARY": "/nowhere.so"},
        )
        self.assertEqual(answer.stdout.split(), ["1", "False", "True"], answer.stderr)

    def test_a_torch_without_the_shim_is_said_and_the_pure_form_computes(self):
        code = (
            "import torch; torch.__file__ = '{}/torch/__init__.py'\n"
            "import berlu.torch as bt\n"
            "print(bt.native()); bt.BerLU()(torch.randn(4))"
        )
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/torch/lib")
            maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
            math = next(line.split()[-1] for line in maps if "/libm.so" in line or "/libm-" in line)
            for file, word in ((None, "libtorch_cpu.so"), (math, "aoti_torch")):
                if file:
                    os.symlink(file, f"{folder}/torch/lib/libtorch_cpu.so")
                answer = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", code.format(folder)], capture_output=True, text=True, timeout=300
                )
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertIn(word, answer.stdout)

    @unittest.skipIf(bt.native(), "no native operators")
    def test_a_cuda_package_that_fails_is_said_and_leaves_the_cpu_working(self):
        code = "import torch, berlu.torch as bt; bt.BerLU()(torch.randn(4)); print(bt.native(), bt.cuda())"
        good = "import pathlib\nlibrary_path = str(pathlib.Path(__file__).parent / 'libberlu_cuda.so')\n"
        environment = {k: v for k, v in os.environ.items() if k != "BERLU_CUDA_LIBRARY"}
        for text, version, library, words in (
            ("raise RuntimeError('out of tune')", berlu.__version__, b"", "berlu_cuda cannot be used: out of tune"),
            ("", berlu.__version__, b"", "library_path"),
            (good, "9.9.9", b"", "berlu-cuda is version 9.9.9"),
            (good, berlu.__version__, b"no library", "libberlu_cuda"),
        ):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                package, info = pathlib.Path(folder, "berlu_cuda"), pathlib.Path(folder, "berlu_cuda-1.dist-info")
                package.mkdir()
                info.mkdir()
                (package / "__init__.py").write_text(text)
                (package / "libberlu_cuda.so").write_bytes(library)
                (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: berlu-cuda\nVersion: {version}\n")
                path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
                answer = subprocess.run(
                    [sys.executable, "-c", code],
                    capture_output=True,
                    text=True,
                    timeout=300,
                    env={**environment, "PYTHONPATH": path},
                )
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertTrue(answer.stdout.startswith("None "), answer.stdout)
                if "libtorch_cuda.so is not loaded" not in answer.stdout or version == "9.9.9":
                    self.assertIn(words, answer.stdout)

    @unittest.skipIf(bt.native(), "no native operators")
    def test_one_openmp_runtime_and_torchs_threads(self):
        for order in ("import torch, berlu.torch as bt", "import berlu, berlu.torch as bt, torch"):
            code = (
                f"{order}\nbt.gelu(torch.randn(1000, 1000))\n"
                "names = ('gomp', 'libomp', 'iomp')\n"
                "print(len({l.split()[-1] for l in open('/proc/self/maps') if any(n in l for n in names)}))"
            )
            answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
            self.assertEqual(answer.stdout.strip(), "1", answer.stderr)


if __name__ == "__main__":
    unittest.main()
