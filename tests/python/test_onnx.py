"""berlu.onnx: both forms compute in onnxruntime what torch computes. SPDX-License-Identifier:
MIT"""

import collections
import contextlib
import doctest
import io
import os
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    import onnxscript
    import timm
    import torch
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

import berlu
import berlu.onnx
import berlu.torch as bt


class Broken(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError("broken")


class Masked(torch.nn.Module):
    """Takes what has no batch size, too."""

    def __init__(self):
        super().__init__()
        self.act = bt.BerLU()

    def forward(self, x, mask, scale):
        return self.act(x if mask is None else x * mask) * scale


class Onnx(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "model.onnx")

    def run_file(self, x):
        session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]

    def counts(self):
        return collections.Counter(node.op_type for node in onnx.load(self.path).graph.node)

    def test_every_degree_and_channel_layout_in_both_forms(self):
        for keys in (
            {},
            {"degree": 4},
            {"degree": 16},
            {"channels": 6, "dim": 1, "learn": "alpha+eps"},
            {"learn": "none"},
        ):
            model = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 1), bt.BerLU(alpha=0.1, eps=0.5, **keys))
            for functions in (False, True):
                with self.subTest(functions=functions, **keys):
                    berlu.onnx.export(model, torch.randn(2, 3, 4, 4), self.path, functions=functions)
                    x = torch.randn(5, 3, 4, 4) * 2
                    np.testing.assert_allclose(self.run_file(x), model(x).detach(), rtol=1e-5, atol=1e-6)
                    names = [f.name for f in onnx.load(self.path).functions if f.domain == "berlu"]
                    wanted = berlu.onnx.function_name(keys.get("degree", 2))
                    self.assertEqual(names, [wanted] if functions else [])
                    self.assertEqual(self.counts()[wanted], int(functions))

    def test_every_activation_exports_as_standard_operators(self):
        for name in [*berlu.names(), "smooth(kinks=-1,1; slopes=0,1,0.5; eps=0.5; degree=4)", "berlu:scale=2,center=1"]:
            act = bt.Act(name)
            berlu.onnx.export(act, torch.randn(2, 64), self.path, functions=True)
            x = torch.randn(3, 64) * 2
            np.testing.assert_allclose(self.run_file(x), act(x).detach(), rtol=1e-5, atol=2e-6, err_msg=name)

    def test_a_vision_transformer_in_both_forms(self):
        torch.manual_seed(2)
        model = timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=3, num_classes=10)
        bt.replace_activations(model, "berlu:alpha=0.1,eps=0.5")
        x = torch.randn(4, 3, 32, 32)
        with torch.no_grad():
            want = model.eval()(x)
        model.train()
        for functions in (False, True):
            berlu.onnx.export(model, x[:2], self.path, functions=functions)
            got = self.run_file(x)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(got.argmax(1), want.argmax(1))
        self.assertEqual(self.counts()["BerLU"], 3)
        self.assertTrue(model.training)

    def test_frozen_modules_stay_in_evaluation(self):
        frozen = torch.nn.BatchNorm1d(4).eval()
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), frozen, torch.nn.Dropout(), bt.BerLU())
        berlu.onnx.export(model, torch.randn(2, 4), self.path)
        self.assertEqual([m.training for m in model.modules()], [True, True, False, True, True])
        model.append(Broken())
        with self.assertRaises(Exception), contextlib.redirect_stderr(io.StringIO()):
            berlu.onnx.export(model, torch.randn(2, 4), self.path)
        self.assertEqual([m.training for m in model.modules()], [True, True, False, True, True, True])

    def test_inputs_that_are_no_tensors_have_no_batch_size(self):
        model, x = Masked(), torch.randn(5, 4)
        berlu.onnx.export(model, (torch.randn(2, 4), None, 2.0), self.path)
        np.testing.assert_allclose(self.run_file(x), model(x, None, 2.0).detach(), rtol=1e-6)

    def test_a_path_that_cannot_be_written_is_refused_and_leaves_nothing(self):
        for path in (os.path.join(self.folder.name, "no", "model.onnx"), self.folder.name, "/proc/model.onnx"):
            with self.assertRaisesRegex(ValueError, "cannot be written"):
                berlu.onnx.export(bt.BerLU(), torch.randn(2, 4), path)
        with self.assertRaisesRegex(TypeError, "module of torch"):
            berlu.onnx.export(3, torch.randn(2, 4), self.path)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_the_examples_of_the_docstrings_hold(self):
        self.assertEqual(doctest.testmod(berlu.onnx).failed, 0)


if __name__ == "__main__":
    unittest.main()
