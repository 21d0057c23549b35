"""berlu.numpy: every dtype and layout gives what the reference in double gives.
SPDX-License-Identifier: MIT"""

import doctest
import sys
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("numpy is not installed (Debian: python3-numpy): skipped", file=sys.stderr)
    sys.exit(77)

import berlu
import berlu.numpy as bn

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

X = np.concatenate([np.linspace(-6, 6, 1001), [0.0, -0.0, 1e-30, -80, 80]])


def reference(f, x, what="value", *rest):
    return np.array([getattr(f, what)(float(v), *rest) for v in x.ravel()]).reshape(x.shape)


class Values(unittest.TestCase):
    def test_f64_is_the_reference_to_the_bit(self):
        for name in berlu.names():
            f = berlu.act(name)
            np.testing.assert_array_equal(bn.forward(f, X), reference(f, X))
            np.testing.assert_array_equal(bn.slope(f, X), reference(f, X, "slope"))
            np.testing.assert_array_equal(bn.second(f, X), reference(f, X, "second"))
            np.testing.assert_array_equal(bn.backward(f, 2 * X, X), 2 * X * reference(f, X, "slope"))
            for key, p in f.parameters.items():
                if p.learnable:
                    np.testing.assert_array_equal(bn.param_slope(f, X, key), reference(f, X, "param_slope", key))

    def test_f32_is_within_the_bound_that_the_object_states(self):
        x = X.astype(np.float32)
        for name in berlu.names():
            f = berlu.act(name)
            exact = reference(f, x)
            unit = (
                np.spacing(np.maximum(np.abs(exact), np.abs(x)).astype(np.float32))
                if name in ("berlu", "smelu")
                else np.spacing(np.abs(exact).astype(np.float32))
            )
            bound = f.ulp * unit.astype(np.float64)
            self.assertTrue(np.all(np.abs(bn.forward(f, x) - exact) <= bound), name)

    def test_sixteen_bits_are_the_f32_result_rounded_once(self):
        kinds = [np.float16] + ([ml_dtypes.bfloat16] if ml_dtypes else [])
        for kind in kinds:
            x = X.astype(kind)
            for name in ("berlu", "gelu", "hard_swish"):
                wide = x.astype(np.float32)
                y = bn.forward(name, x)
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, bn.forward(name, wide).astype(kind))

    def test_a_function_of_each_name_takes_its_parameters(self):
        for name in berlu.names():
            np.testing.assert_array_equal(getattr(bn, name)(X), bn.forward(name, X))
        np.testing.assert_array_equal(bn.berlu(X, eps=0.5, degree=4), bn.forward("berlu:eps=0.5,degree=4", X))
        self.assertIn("gelu", dir(bn))
        with self.assertRaises(AttributeError):
            bn.nothing
        with self.assertRaisesRegex(ValueError, "eps"):
            bn.berlu(X, ep=1)

    def test_a_number_gives_a_number_and_an_empty_array_an_empty_one(self):
        self.assertEqual(bn.relu(3.0), 3.0)
        self.assertEqual(bn.relu(np.float32(-3)).dtype, np.float32)
        for shape in ((0,), (3, 0, 2)):
            for dtype in (np.float32, np.float64):
                self.assertEqual(bn.gelu(np.zeros(shape, dtype)).shape, shape)

    def test_the_examples_of_the_docstrings_hold(self):
        for name in berlu.names():
            getattr(bn, name)
        failed, tried = doctest.testmod(bn)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 20)


class Layout(unittest.TestCase):
    def layouts(self, dtype):
        base = np.random.default_rng(1).normal(0, 2, (6, 8, 10)).astype(dtype)
        yield base
        yield base.transpose(2, 0, 1)
        yield np.asfortranarray(base)
        yield base[::2, ::-1, 1::3]
        yield np.broadcast_to(base[0, 0], (4, 10))
        yield base.astype(base.dtype.newbyteorder(">"))
        raw = np.zeros(base.nbytes + 1, np.uint8)
        unaligned = raw[1:].view(base.dtype)
        unaligned[:] = base.ravel()
        yield unaligned

    def test_every_layout_gives_the_same_values(self):
        for dtype in (np.float32, np.float64, np.float16):
            for x in self.layouts(dtype):
                native = np.ascontiguousarray(x).astype(dtype)
                np.testing.assert_array_equal(bn.gelu(x), bn.gelu(native))
                np.testing.assert_array_equal(bn.backward("gelu", x, x), bn.backward("gelu", native, native))

    def test_a_dense_array_keeps_its_layout(self):
        x = np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1)
        self.assertEqual(bn.gelu(x).strides, x.strides)

    def test_out_is_written_whatever_its_layout(self):
        for dtype in (np.float32, np.float64):
            x = np.random.default_rng(2).normal(0, 2, (6, 8)).astype(dtype)
            wanted, slope = bn.mish(x), bn.backward("mish", x, x)
            big = np.full((12, 8), 7, dtype)
            for out in (np.empty_like(x), np.empty((8, 6), dtype).T, big[::2]):
                self.assertIs(bn.mish(x, out=out), out)
                np.testing.assert_array_equal(out, wanted)
                self.assertIs(bn.backward("mish", x, x, out=out), out)
                np.testing.assert_array_equal(out, slope)
            self.assertTrue(np.all(big[1::2] == 7))

    def test_out_may_be_x_or_overlap_it(self):
        for dtype in (np.float32, np.float64):
            x = np.random.default_rng(3).normal(0, 2, 101).astype(dtype)
            wanted, at = bn.gelu(x[:100]), x.copy()
            bn.gelu(at[:100], out=at[1:])
            np.testing.assert_array_equal(at[1:], wanted)
            at = x.copy()
            bn.backward("gelu", at[:100], at[1:], out=at[1:])
            np.testing.assert_array_equal(at[1:], bn.backward("gelu", x[:100], x[1:]))
            for at in (x.copy(), x.astype(x.dtype.newbyteorder(">"))):
                self.assertIs(bn.gelu(at, out=at), at)
                np.testing.assert_array_equal(at, bn.gelu(x))

    def test_threads_change_no_bit(self):
        x = np.random.default_rng(4).normal(0, 2, 300000)
        for dtype in (np.float32, np.float64):
            y = bn.gelu(x.astype(dtype), threads=1)
            for threads in (0, 2, 3):
                np.testing.assert_array_equal(bn.gelu(x.astype(dtype), threads=threads), y)

    def test_python_threads_compute_at_once(self):
        x = np.random.default_rng(5).normal(0, 2, 100000).astype(np.float32)
        wanted, got = bn.gelu(x), [None] * 4

        def work(i):
            got[i] = bn.gelu(x, threads=1)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        for y in got:
            np.testing.assert_array_equal(y, wanted)


class Refusals(unittest.TestCase):
    def test_dtypes_that_are_none_are_type_errors(self):
        for bad in (
            [1, 2],
            np.zeros(3, np.int32),
            np.zeros(3, bool),
            np.zeros(3, complex),
            ["a"],
            np.zeros(3, np.longdouble),
        ):
            with self.assertRaisesRegex(TypeError, "dtype"):
                bn.gelu(bad)
        with self.assertRaisesRegex(TypeError, "dy has dtype"):
            bn.backward("gelu", np.zeros(3), np.zeros(3, np.float32))

    def test_a_masked_array_is_refused_because_its_mask_would_be_lost(self):
        x = np.ones(3)
        masked = np.ma.masked_array(np.zeros(3), mask=[True, False, False])
        for call in (
            lambda: bn.gelu(masked),
            lambda: bn.gelu(x, out=masked),
            lambda: bn.backward("gelu", masked, x),
            lambda: bn.backward("gelu", x, masked),
        ):
            with self.assertRaisesRegex(TypeError, "mask would be lost"):
                call()
        np.testing.assert_array_equal(masked.data, np.zeros(3))

    def test_shapes_and_outs_that_do_not_fit_are_refused_and_nothing_is_written(self):
        x = np.ones(4)
        locked = np.zeros(4)
        locked.flags.writeable = False
        for error, out in (
            (ValueError, np.zeros(5)),
            (TypeError, np.zeros(4, np.float32)),
            (ValueError, locked),
            (TypeError, [0, 0, 0, 0]),
        ):
            with self.assertRaises(error):
                bn.gelu(x, out=out)
        with self.assertRaisesRegex(ValueError, "dy has shape"):
            bn.backward("gelu", np.zeros(3), np.zeros(4))
        for bad in (-1, 2**40):
            with self.assertRaisesRegex(ValueError, "threads"):
                bn.gelu(x, threads=bad)
        with self.assertRaisesRegex(TypeError, "threads"):
            bn.gelu(x, threads=1.5)
        with self.assertRaisesRegex(ValueError, "degree=2.5"):
            bn.berlu(x, degree=2.5)


if __name__ == "__main__":
    unittest.main()
