"""berlu.act and berlu.smooth: objects that equal, pickle and refuse as they promise.
SPDX-License-Identifier: MIT"""

import copy
import doctest
import math
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import berlu
from berlu import _act, _lib
from berlu._files import written


def python(code, **environment):
    """Runs code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


class Act(unittest.TestCase):
    def test_the_object_tells_what_the_library_knows(self):
        f = berlu.act("berlu:eps=0.1")
        self.assertEqual((f.name, f.spec.partition(":")[0]), ("berlu", "berlu"))
        self.assertEqual(list(f.parameters), ["alpha", "eps", "degree"])
        self.assertTrue(f.parameters["alpha"].learned and f.parameters["degree"].setting)
        self.assertEqual((f.lipschitz, f.ulp), (1.0, 5.0))
        a, e = f.parameters["alpha"].value, f.parameters["eps"].value
        self.assertAlmostEqual(f.value(0), (1 - a) * e / 4, places=15)
        self.assertAlmostEqual(f.slope(0), (1 + a) / 2, places=15)
        self.assertAlmostEqual(f.second(0), (1 - a) / (2 * e), places=12)
        self.assertAlmostEqual(f.param_slope(0, "alpha"), -e / 4, places=15)
        self.assertTrue(math.isnan(f.value(math.nan)))

    def test_equal_by_spec_hashable_picklable_copyable(self):
        f, g = berlu.act("berlu:eps=0.1"), _act.Act("berlu:alpha=0.01,eps=0.1,degree=3")
        self.assertIsNot(f, g)
        self.assertEqual(f, g)
        self.assertEqual(len({f, g}), 1)
        self.assertNotEqual(f, berlu.act("berlu"))
        self.assertNotEqual(f, "berlu")
        for h in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f), berlu.act(f), berlu.act(f.spec)):
            self.assertEqual(h, f)
            self.assertEqual(h.value(0.03), f.value(0.03))

    def test_it_cannot_be_changed(self):
        f = berlu.act("gelu")
        for change in (
            lambda: setattr(f, "spec", "relu"),
            lambda: setattr(f, "other", 1),
            lambda: delattr(f, "name"),
            lambda: f.parameters.update(a=1),
        ):
            self.assertRaises(AttributeError, change)

    def test_every_name_makes_an_activation_that_its_spec_makes_again(self):
        self.assertIn("berlu", berlu.names())
        for name in berlu.names():
            f = berlu.act(name)
            self.assertEqual(berlu.act(f.spec), f)
            self.assertEqual(f.name, name)

    def test_smooth_is_the_function_of_its_kinks(self):
        f = berlu.smooth(kinks=[-3, 3], slopes=[0, 1, 0], eps=0.1, degree=4)
        self.assertEqual([f.value(x) for x in (-5, -1, 0.25, 2.9, 7)], [-3, -1, 0.25, 2.9, 3])
        self.assertEqual(f.lipschitz, 1.0)
        self.assertEqual(berlu.act(f.spec), f)
        one = berlu.smooth(0, [0.01, 1], 0.1)
        line = berlu.act("berlu:eps=0.1")
        for x in (-1, -0.05, 0, 0.02, 3):
            self.assertAlmostEqual(one.value(x), line.value(x), places=9)

    def test_bad_input_is_an_exception_with_the_message_of_the_library(self):
        with self.assertRaisesRegex(ValueError, "did you mean 'eps'"):
            berlu.act("berlu:ep=1")
        for bad in ("", "nothing", "berlu:eps=0", "berlu:degree=99", "gelu\0", "smooth(kinks=1)"):
            with self.assertRaises(ValueError, msg=bad):
                berlu.act(bad)
        with self.assertRaisesRegex(ValueError, "degree is '2.5'"):
            berlu.smooth([0], [0, 1], degree=2.5)
        for at in (3, (1,), (1, 2, 3)):
            with self.assertRaisesRegex(ValueError, "it must be two numbers"):
                berlu.smooth([0], [0, 1], at=at)
        with self.assertRaisesRegex(TypeError, "neither a number nor numbers"):
            berlu.smooth([0], [0, 1], at=None)
        with self.assertRaises(TypeError):
            berlu.act("gelu").value(None)
        for bad in (None, 3, b"gelu", ["gelu"]):
            with self.assertRaises(TypeError, msg=str(bad)):
                berlu.act(bad)
        with self.assertRaisesRegex(ValueError, "overlap"):
            berlu.smooth([0, 0.1], [0, 1, 0], eps=0.1)
        with self.assertRaisesRegex(ValueError, "no parameter 'beta'"):
            berlu.act("berlu").param_slope(0, "beta")

    def test_threads_share_an_activation(self):
        f, wanted, got = berlu.act("mish"), berlu.act("mish").value(0.3), []
        threads = [threading.Thread(target=lambda: got.extend(f.value(0.3) for _ in range(200))) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(set(got), {wanted})

    def test_the_examples_of_the_docstrings_hold(self):
        for module in (_act, _lib):
            failed, tried = doctest.testmod(module)
            self.assertEqual(failed, 0)
            self.assertGreater(tried, 0)


class Library(unittest.TestCase):
    def test_a_named_library_that_is_missing_is_an_import_error_that_says_what_to_do(self):
        answer = python("import berlu", BERLU_LIBRARY="/nowhere/libberlu.so.0")
        self.assertEqual(answer.returncode, 1)
        self.assertRegex(answer.stderr, "ImportError: .*nowhere.*BERLU_LIBRARY")

    def test_a_library_that_is_another_one_is_refused(self):
        answer = python("import berlu", BERLU_LIBRARY="libm.so.6")
        self.assertRegex(answer.stderr, "ImportError: .*libm.so.6 is not the library of version")

    def test_a_library_of_another_version_is_refused(self):
        package = pathlib.Path(berlu.__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(package, f"{folder}/berlu", ignore=shutil.ignore_patterns("__pycache__", "torch"))
            text = (package / "_lib.py").read_text()
            pathlib.Path(folder, "berlu/_lib.py").write_text(text.replace(f'VERSION = "{_lib.VERSION}"', 'VERSION = "9.9"'))
            answer = python("import berlu", PYTHONPATH=folder, BERLU_LIBRARY=berlu.library_path)
        self.assertRegex(answer.stderr, f"ImportError: .* is version {_lib.VERSION}, and this package is 9.9")

    def test_importing_berlu_imports_neither_numpy_nor_torch(self):
        answer = python("import berlu, sys; print(*[m for m in ('numpy', 'torch') if m in sys.modules])")
        self.assertEqual((answer.returncode, answer.stdout.strip()), (0, ""), answer.stderr)

    def test_two_that_write_one_file_at_once_leave_it_whole(self):
        def write(words):
            with written(target) as part:
                part.write_text(words)

        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder, "file")
            with written(target) as part, open(part, "w") as slow:
                print("the first half", file=slow, flush=True)
                other = threading.Thread(target=write, args=("another",))
                other.start()
                other.join()
                print("the second half", file=slow, flush=True)
                self.assertEqual(target.read_text(), "another")
            self.assertEqual(target.read_text(), "the first half\nthe second half\n")
            with self.assertRaises(KeyError), written(target) as part:
                part.write_text("half")
                raise KeyError
            self.assertEqual((target.read_text()[:9], os.listdir(folder)), ("the first", ["file"]))


if __name__ == "__main__":
    unittest.main()
