"""berlu.torch: pure forms and native operators, values and gradients of every order.
SPDX-License-Identifier: MIT"""

import concurrent.futures
import unittest
import unittest.mock

import torch
from torch.library import opcheck

import berlu
import berlu.torch as bt
from berlu._bump import bump_polynomials
from berlu.torch import _forms, _ops
from berlu.torch._forms import site_of
from torch_cases import HIGH_DEGREES, SPECS, layouts, per_channel


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

    def test_far_out_and_at_infinities_every_derivative_is_the_limit(self):
        """Of the form itself, of the pure form with its backward formula, and of transforms, which
        differentiate the value and see the branches that are not selected, too."""
        infinity = float("inf")
        for dtype in (torch.float32, torch.float64):
            far = torch.tensor([89, 200, 1e4, 1e10, 1e20, 1e30, infinity], dtype=dtype)
            x = torch.cat([-far, torch.tensor([-0.0, 0.0], dtype=dtype), far])
            for spec in [*SPECS, *HIGH_DEGREES]:
                site = site_of(spec)

                def reference(what, *rest):
                    wide = [getattr(site.act, what)(v, *rest) for v in x.tolist()]
                    return torch.tensor(wide, dtype=torch.float64).to(dtype)

                def same(got, want, what):
                    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6, msg=lambda m: f"{spec} {what}: {m}")

                def f(t, **params):
                    return bt.forward(spec, t, **params)

                value, slope, second = (reference(what) for what in ("value", "slope", "second"))
                for what, want in (("value", value), ("slope", slope), ("second", second)):
                    same(getattr(site.form, what)(x, site.own), want, what)
                for backend in ("torch", "native"):
                    leaf = x.clone().requires_grad_()
                    y = bt.forward(spec, leaf, backend=backend)
                    (dx,) = torch.autograd.grad(y.sum(), leaf, create_graph=True)
                    same(y.detach(), value, f"y, {backend}")
                    same(dx.detach(), slope, f"dx, {backend}")
                    if dx.requires_grad:
                        same(torch.autograd.grad(dx.sum(), leaf)[0], second, f"second, {backend}")
                each = torch.func.grad(f)
                same(torch.vmap(each)(x), slope, "func.grad")
                same(torch.vmap(torch.func.grad(each))(x), second, "func.grad of func.grad")
                same(torch.func.jvp(f, (x,), (torch.ones_like(x),))[1], slope, "jvp")
                for own, name in zip(site.own, site.form.params):
                    v, want = torch.full_like(x, own), reference("param_slope", name)
                    by_v = torch.func.grad(lambda t, v: f(t, **{name: v}), 1)
                    same(torch.vmap(by_v)(x, v), want, f"func.grad by {name}")
                    for backend in ("torch", "native"):
                        leaf = v.clone().requires_grad_()
                        y = bt.forward(spec, x, dim=0, backend=backend, **{name: leaf})
                        same(torch.autograd.grad(y.sum(), leaf)[0], want, f"by {name}, {backend}")

    def test_nan_stays_nan_and_the_product_of_0_and_infinity_is_the_only_other(self):
        x = torch.tensor([float("nan"), -float("inf"), -0.0, 0.0, float("inf")])
        for spec in [*SPECS, "berlu:alpha=0", "leaky_relu:alpha=0", "prelu:alpha=0"]:
            for backend in ("torch", "native"):
                with self.subTest(spec=spec, backend=backend):
                    site = site_of(spec)
                    leaves = [x.clone().requires_grad_()]
                    leaves += [torch.full((5,), float(v)).requires_grad_() for v in site.own]
                    y = bt.forward(spec, leaves[0], backend=backend, dim=0, **dict(zip(site.form.params, leaves[1:])))
                    grads = torch.autograd.grad(y.sum(), leaves)
                    zero_times_infinity = spec.endswith("alpha=0")
                    self.assertEqual(y.isnan().tolist(), [True, zero_times_infinity, False, False, False])
                    for grad in grads:
                        self.assertEqual(grad.isnan().tolist(), [True] + [False] * 4)

    def test_slopes_at_kinks_are_those_of_the_library_in_every_way(self):
        kinks = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0], dtype=torch.float64)
        for spec in SPECS:
            want = torch.tensor([berlu.act(spec).slope(x) for x in kinks.tolist()], dtype=torch.float64)
            leaf = kinks.clone().requires_grad_()
            (pure,) = torch.autograd.grad(bt.forward(spec, leaf).sum(), leaf)
            leaf = kinks.float().requires_grad_()
            (native,) = torch.autograd.grad(bt.forward(spec, leaf).sum(), leaf)
            transformed = torch.func.grad(lambda x: bt.forward(spec, x).sum())(kinks)
            for got in (pure, native.double(), transformed):
                torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6, msg=lambda m: f"{spec}: {m}")

    def test_second_derivatives_at_kinks_are_those_of_the_library_in_every_way(self):
        """Also where f'' jumps: at the ends of a knee of degree 2."""
        kinks = torch.tensor([-3.0, -1.0, -0.5, -0.01, 0.0, 0.01, 0.5, 1.0, 3.0, 6.0], dtype=torch.float64)
        for spec in [*SPECS, "berlu:eps=0.5", "berlu:alpha=-2,eps=1"]:
            want = torch.tensor([berlu.act(spec).second(x) for x in kinks.tolist()], dtype=torch.float64)

            def f(t):
                return bt.forward(spec, t)

            first = torch.func.grad(f)
            got = {
                "grad of grad": torch.vmap(torch.func.grad(first))(kinks),
                "jacfwd of grad": torch.vmap(torch.func.jacfwd(first))(kinks),
            }
            for dtype in (torch.float32, torch.float64):
                for backend in ("native", "torch"):
                    leaf = kinks.to(dtype).requires_grad_()
                    (dx,) = torch.autograd.grad(bt.forward(spec, leaf, backend=backend).sum(), leaf, create_graph=True)
                    second = torch.autograd.grad(dx.sum(), leaf)[0] if dx.requires_grad else torch.zeros_like(leaf)
                    got[f"{backend} {dtype}"] = second.double()
            for way, second in got.items():
                torch.testing.assert_close(second, want, rtol=1e-5, atol=1e-5, msg=lambda m: f"{spec}, {way}: {m}")

    def test_the_slope_at_zero_is_that_of_the_smooth_function(self):
        for dtype in (torch.float32, torch.float64):
            for backend in ("native", "torch"):
                x = torch.zeros(3, dtype=dtype, requires_grad=True)
                (dx,) = torch.autograd.grad(bt.berlu(x, alpha=0.5, backend=backend).sum(), x)
                self.assertEqual(dx.tolist(), [0.75] * 3)
        slope = torch.func.grad(lambda t: bt.berlu(t, alpha=0.5))(torch.tensor(0.0))
        self.assertEqual(slope.item(), 0.75)

    def test_programs_may_name_specs_without_end_from_many_threads(self):
        def use(first):
            for i in range(first, 2500, 4):
                spec = f"berlu:alpha={i / 8192},eps=0.5"
                self.assertEqual(site_of(spec).own[0], i / 8192)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))

    def test_a_look_up_that_meets_the_end_of_a_site_makes_it_again(self):
        """As when another thread's new spec takes its place between the name and the site."""
        find, stale = _forms._site_name, iter(["site0"])
        with unittest.mock.patch.object(_forms, "_site_name", lambda spec: next(stale, None) or find(spec)):
            self.assertEqual(site_of("gelu").act.name, "gelu")

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

    def test_opcheck_of_the_operators_without_a_derivative(self):
        for name, x, dim in layouts():
            args = (per_channel(x, dim), None, "berlu:eps=0.5", dim)
            with self.subTest(layout=name):
                opcheck(torch.ops.berlu.forward_raw.default, (x, *args))
                for op in (torch.ops.berlu.backward_raw, torch.ops.berlu.backward_from_output_raw):
                    opcheck(op.default, (torch.ones_like(x), x, *args, True, False))

    def test_operators_without_a_derivative_give_the_same_bits(self):
        ops, x, rest = torch.ops.berlu, torch.randn(64), (torch.tensor([0.25]), None, "berlu:eps=0.5", -1)
        dy = torch.randn(64)
        self.assertTrue(torch.equal(ops.forward(x, *rest), ops.forward_raw(x, *rest)))
        for name in ("backward", "backward_from_output"):
            one, other = (f(dy, x, *rest, True, False) for f in (getattr(ops, name), getattr(ops, name + "_raw")))
            self.assertTrue(torch.equal(one[0], other[0]) and torch.equal(one[1], other[1]))
            self.assertTrue(one[2] is None and other[2] is None)
        leaf = x.clone().requires_grad_()
        self.assertFalse(ops.forward_raw(leaf, *rest).requires_grad)
        self.assertTrue(ops.forward(leaf, *rest).requires_grad)

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

    def test_second_order_of_smelu_from_the_output(self):
        """Also where it is flat, and the output does not tell x."""
        seconds = []
        for keep in ("input", "output"):
            x, act = torch.tensor([-3.0, -1.0, -0.2, 0.3, 2.0], requires_grad=True), bt.Act("smelu:beta=0.7,learn=beta", keep=keep)
            leaves = (x, *act.parameters())
            first = torch.autograd.grad(act(x).sum(), leaves, create_graph=True)
            seconds.append(torch.autograd.grad(sum(g.sum() for g in first), leaves))
        for a, b in zip(*seconds):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)

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
        for keep, backend in (("input", "native"), ("output", "native"), ("output", "torch")):
            act = bt.BerLU(alpha=0.05, eps=0.3, learn="alpha+eps", keep=keep, backend=backend)
            leaf = x.clone().requires_grad_()
            y = act(leaf)
            kept = y.grad_fn.saved_tensors[0]
            self.assertEqual(kept.data_ptr() == y.data_ptr(), keep == "output")
            y.backward(dy)
            grads.append((leaf.grad, act.alpha.grad, act.eps.grad))
        for other in grads[1:]:
            for a, b in zip(grads[0], other):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_keep_output_is_differentiated_twice_in_f64(self):
        x = torch.linspace(-2.9, 3.1, 12, dtype=torch.float64, requires_grad=True)  # next to kinks, not on them
        for spec in filter(lambda spec: berlu.act(spec).from_output, berlu.names()):
            site = site_of(spec)
            params = [torch.full((1,), 0.3, dtype=torch.float64, requires_grad=True) for _ in site.form.params]

            def f(x, *v):
                return bt.forward(spec, x, keep="output", **dict(zip(site.form.params, v)))

            with self.subTest(spec):
                self.assertTrue(torch.autograd.gradcheck(f, [x, *params]))
                self.assertTrue(torch.autograd.gradgradcheck(f, [x, *params]))

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

    def test_operators_that_are_wrong_are_noticed_when_they_are_imported(self):
        self.assertIsNone(_ops._self_test())

        def broken(*args):
            raise RuntimeError("broken")

        for forward, words in ((lambda x, *rest: 0 * x, "differ from the pure form"), (broken, "broken")):
            with unittest.mock.patch.object(_ops, "_raw_forward", forward):
                self.assertIn(words, _ops._self_test())

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


if __name__ == "__main__":
    unittest.main()
