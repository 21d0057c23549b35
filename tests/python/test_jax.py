"""berlu.jax: values, derivatives and transformations of every activation. SPDX-License-Identifier:
MIT"""

import doctest
import sys
import unittest

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)
jax.config.update("jax_enable_x64", True)
from jax.test_util import check_grads

import berlu
import berlu.jax as bj

X = np.concatenate([np.linspace(-5, 5, 301), [0.0, -0.0, 3, -3, 6, 1, -1, 0.01, -0.01, 0.5, -0.5]])
SPECS = [*berlu.names(), "berlu:eps=0.5,degree=4", "berlu:eps=1,alpha=0.3,degree=16"]


class Jax(unittest.TestCase):
    def test_value_and_slope_are_the_reference_at_kinks_too(self):
        for spec in SPECS:
            f = berlu.act(spec)
            np.testing.assert_allclose(bj.act(spec)(X), [f.value(x) for x in X], rtol=1e-12, atol=1e-13, err_msg=spec)
            slope = jax.jit(jax.vmap(jax.grad(bj.act(spec))))(X)
            np.testing.assert_allclose(slope, [f.slope(x) for x in X], rtol=1e-12, atol=1e-13, err_msg=spec)
            second = jax.jit(jax.vmap(jax.grad(jax.grad(bj.act(spec)))))(X)
            np.testing.assert_allclose(second, [f.second(x) for x in X], rtol=1e-9, atol=1e-10, err_msg=spec)
            for name, p in f.parameters.items():
                if p.learnable:
                    got = jax.jit(jax.vmap(jax.grad(lambda v, x: bj.act(spec)(x, **{name: v})), (None, 0)))(p.value, X)
                    np.testing.assert_allclose(
                        got, [f.param_slope(x, name) for x in X], rtol=1e-12, atol=1e-13, err_msg=spec
                    )

    def test_far_out_and_at_infinities_every_derivative_is_the_limit(self):
        far = [89, 200, 1e4, 1e10, 1e20, 1e30, 1e38, np.inf]
        at = [-x for x in far] + [-0.0, 0.0] + far
        for spec in SPECS:
            f, g = berlu.act(spec), bj.act(spec)
            for dtype in (np.float32, np.float64):
                x = jnp.asarray(at, dtype)

                def same(got, want, what):
                    with np.errstate(over="ignore"):
                        want = np.asarray(want).astype(dtype)
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=f"{spec} {what} {dtype}")

                def derivatives(x):
                    return g(x), jax.grad(g)(x), jax.grad(jax.grad(g))(x)

                for what, got in zip(("value", "slope", "second"), jax.jit(jax.vmap(derivatives))(x)):
                    same(got, [getattr(f, what)(v) for v in at], what)
                for name, p in f.parameters.items():
                    if p.learnable:

                        def by(v, x):
                            return jax.grad(lambda v, x: g(x, **{name: v}))(v, x)

                        def all_by(v, x):
                            return by(v, x), jax.grad(by)(v, x), jax.grad(by, 1)(v, x)

                        got, *second = jax.jit(jax.vmap(all_by, (None, 0)))(jnp.asarray(p.value, dtype), x)
                        same(got, [f.param_slope(t, name) for t in at], name)
                        self.assertFalse(any(bool(jnp.isnan(d).any()) for d in second), (spec, name))

    def test_gradients_to_second_order_under_jit_and_vmap(self):
        x = np.random.default_rng(1).normal(0, 2, 40)
        x = x + 0.07 * np.sign(x)
        for spec in ("berlu", "berlu:eps=0.5,degree=4", "smelu", "prelu", "elu", "celu", "gelu", "mish"):
            f = berlu.act(spec)
            keys = [name for name, p in f.parameters.items() if p.learnable]

            def function(x, *v):
                return bj.act(spec)(x, **dict(zip(keys, v)))

            check_grads(
                jax.jit(function),
                (x, *(f.parameters[k].value for k in keys)),
                order=2,
                modes=("fwd", "rev"),
                atol=1e-3,
                rtol=1e-3,
            )
            np.testing.assert_allclose(jax.vmap(function)(x), function(x))

    def test_parameters_broadcast_and_sixteen_bits_round_once(self):
        x = jnp.asarray(np.random.default_rng(2).normal(0, 1, (5, 3)), jnp.float32)
        alpha = jnp.array([0.1, 0.2, 0.3], jnp.float32)
        self.assertEqual(jax.grad(lambda a: bj.berlu(x, a).sum())(alpha).shape, (3,))
        half = x.astype(jnp.bfloat16)
        y = bj.gelu(half)
        self.assertEqual(y.dtype, jnp.bfloat16)
        np.testing.assert_array_equal(y, bj.gelu(half.astype(jnp.float32)).astype(jnp.bfloat16))

    def test_a_width_that_training_drove_to_zero_gives_no_nan(self):
        x = jnp.array([-2.0, 0.0, 3.0])
        for eps in (0.0, -1.0):
            y, (dx, de) = jax.value_and_grad(lambda x, e: bj.berlu(x, 0.1, e).sum(), (0, 1))(x, jnp.array(eps))
            self.assertAlmostEqual(float(y), 2.8, places=6)
            self.assertFalse(bool(jnp.isnan(dx).any() | jnp.isnan(de)))

    def test_bad_input_is_refused(self):
        for error, what in (
            (TypeError, lambda: bj.gelu(jnp.arange(3))),
            (TypeError, lambda: bj.gelu(1.0, alpha=2)),
            (TypeError, lambda: bj.berlu(1.0, 0.1, alpha=0.2)),
            (ValueError, lambda: bj.berlu(1.0, degree=99)),
            (ValueError, lambda: bj.act("gelu:scale=2")),
            (TypeError, lambda: bj.act("gelu")(1.0, alpha=2)),
            (ValueError, lambda: bj.berlu(jnp.ones(3), 0.1, -1.0)),
            (ValueError, lambda: bj.berlu(jnp.ones(3), float("nan"))),
            (ValueError, lambda: bj.berlu(jnp.ones(3), degree=2.5)),
            (ValueError, lambda: bj.berlu(jnp.ones(()), jnp.ones(4))),
            (ValueError, lambda: bj.berlu(jnp.ones((2, 3)), jnp.ones(2))),
            (AttributeError, lambda: bj.nothing),
        ):
            with self.assertRaises(error):
                what()

    def test_the_examples_of_the_docstrings_hold(self):
        for name in berlu.names():
            getattr(bj, name)
        failed, tried = doctest.testmod(bj)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 20)


if __name__ == "__main__":
    unittest.main()
