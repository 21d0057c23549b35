"""berlu.torch: modules, training helpers, and the behaviour without native operators.
SPDX-License-Identifier: MIT"""

import copy
import doctest
import importlib
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn

import berlu
import berlu.torch as bt
from berlu.torch import _modules, _ops, _replace, _train


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

    def test_functions_pickle_as_part_of_a_layer(self):
        for name in berlu.names():
            function = getattr(bt, name)
            self.assertIs(pickle.loads(pickle.dumps(function)), function)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, activation=bt.mish, batch_first=True)
        x = torch.randn(1, 2, 8)
        torch.testing.assert_close(pickle.loads(pickle.dumps(layer))(x), layer(x))

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

    def test_numbers_of_numpy_are_numbers(self):
        half = importlib.import_module("numpy").float32(0.5)
        self.assertEqual(bt.BerLU(alpha=half, eps=half).spec, bt.BerLU(alpha=0.5, eps=0.5).spec)
        self.assertEqual(berlu.smooth(half, [0, half], eps=half), berlu.smooth(0.5, [0, 0.5], eps=0.5))

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
            (ValueError, "keep the input", lambda: bt.BerLU(keep="output", degree=4)),
            (ValueError, "keep the input", lambda: bt.BerLU(keep="output", alpha=0)),
            (ValueError, "0.001", lambda: bt.BerLU(keep="output", alpha=0.0001)),
            (ValueError, "keep the input", lambda: bt.Act("gelu", keep="output")),
            (ValueError, "backend is", lambda: bt.BerLU(backend="fast")),
            (ValueError, "channels is", lambda: bt.BerLU(channels=0)),
            (TypeError, "no parameter 'beta'", lambda: bt.forward("gelu", x, beta=x)),
            (ValueError, "did you mean", lambda: bt.Act("gulu")),
            (TypeError, "parameter is torch.int64", lambda: bt.berlu(x, torch.tensor([1]))),
            (TypeError, "parameter is torch.complex64", lambda: bt.berlu(x, torch.tensor([1j]))),
            (ValueError, "has no value", lambda: bt.berlu(x, torch.empty(0))),
            (ValueError, r"shape \(8, 1\)", lambda: bt.berlu(x, torch.rand(8, 1))),
            (ValueError, r"shape \(8, 1\)", lambda: bt.berlu(x, torch.rand(8, 1), backend="torch")),
            (ValueError, r"shape \(2, 4\)", lambda: bt.forward("berlu", x, alpha=torch.rand(2, 4))),
            (TypeError, "each once", lambda: bt.berlu(x, 0.1, 0.1, 2, 5)),
            (TypeError, "each once", lambda: bt.berlu(x, 0.1, alpha=0.1)),
            (ValueError, "degree=2.5", lambda: bt.berlu(x, degree=2.5)),
            (ValueError, "keep is 'nothing'", lambda: bt.gelu(x, keep="nothing")),
            (ValueError, "backend is", lambda: bt.gelu(x, backend="fast")),
            (ValueError, "keep the input", lambda: bt.gelu(x, keep="output")),
            (ValueError, "keep the input", lambda: bt.berlu(x, alpha=0.0, keep="output")),
            (ValueError, "keep the input", lambda: bt.berlu(x, degree=4, keep="output")),
            (ValueError, "16 bits needs alpha >= 0.0078125", lambda: bt.BerLU(0.002, keep="output")(x.bfloat16())),
            (ValueError, "16 bits", lambda: bt.BerLU(0.002, keep="output", dtype=torch.float16)),
            (ValueError, "16 bits", lambda: torch.compile(bt.BerLU(0.002, keep="output"), backend="eager")(x.half())),
            (ValueError, "f32 outputs only, not from bf16", lambda: bt.sigmoid(x.bfloat16(), keep="output")),
            (ValueError, "f32 outputs only, not from f16", lambda: bt.Act("tanh", keep="output")(x.half())),
            (ValueError, "f32 outputs only", lambda: bt.Act("tanh", keep="output", dtype=torch.float16)),
            (ValueError, "not from bf16", lambda: torch.compile(bt.Act("tanh", keep="output"), backend="eager")(x.bfloat16())),
            (TypeError, "a parameter is a float", lambda: bt.forward("berlu", x, alpha=0.5)),
            (TypeError, "is no number", lambda: bt.berlu(x, [0.1] * 8)),
            (TypeError, "is no number", lambda: bt.berlu(x, None)),
            (ValueError, "unknown key 'approximate'", lambda: bt.gelu(x, approximate="tanh")),
            (TypeError, "alpha is 'berlu:eps=0.1'", lambda: bt.BerLU("berlu:eps=0.1")),
            (TypeError, "eps is None", lambda: bt.BerLU(eps=None)),
            (ValueError, "alpha has no value", lambda: bt.BerLU(alpha=[])),
            (TypeError, "dim is 'C'", lambda: bt.BerLU(channels=8, dim="C")),
            (TypeError, "dim is 1.0", lambda: bt.berlu(x, torch.rand(8), dim=1.0)),
            (TypeError, "channels is True", lambda: bt.BerLU(channels=True)),
            (TypeError, "dtype is float32", lambda: bt.BerLU(dtype="float32")),
            (TypeError, "model is a int", lambda: bt.parameter_groups(3)),
            (TypeError, "model is a int", lambda: bt.project_(3, "alpha:0:")),
            (TypeError, "model is a int", lambda: bt.lipschitz(3)),
            (TypeError, "channels is 2.5", lambda: bt.BerLU(channels=2.5)),
            (TypeError, "dtype is torch.int32", lambda: bt.BerLU(dtype=torch.int32)),
            (TypeError, "torch.sparse_coo", lambda: bt.gelu(x.to_sparse())),
            (TypeError, "model is a int", lambda: bt.replace_activations(3, "berlu")),
            (TypeError, "neither a spec", lambda: bt.replace_activations(nn.Sequential(nn.GELU()), 3)),
            (TypeError, "neither a spec", lambda: bt.replace_activations(nn.Sequential(nn.GELU()), bt.BerLU())),
            (TypeError, "is no module", lambda: bt.replace_activations(nn.Sequential(nn.GELU()), lambda: None)),
        ):
            with self.assertRaisesRegex(error, text):
                what()

    def test_memory_that_there_is_not_is_torchs_own_error(self):
        """Programs wait for its words to try again with a smaller batch."""
        huge = torch.zeros(1).expand(2**46)
        for act in (bt.Act("gelu"), bt.BerLU(), bt.BerLU(backend="torch")):
            with self.assertRaisesRegex(RuntimeError, "can't allocate memory") as seen:
                act(huge)
            self.assertNotIsInstance(seen.exception, berlu.Error)

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
                for keep in ("input", "output"):
                    smelu = bt.Act("smelu:learn=beta", keep=keep, backend=backend)
                    with torch.no_grad():
                        smelu.beta.fill_(eps)
                    y = smelu(x)
                    torch.testing.assert_close(y, x.relu())
                    dx, dbeta = torch.autograd.grad(y.sum(), [x, smelu.beta])
                    torch.testing.assert_close(dx, (x > 0).float())
                    self.assertEqual(dbeta.item(), 0)

    def test_slopes_that_outputs_do_not_tell_are_an_error_whatever_computes(self):
        x = torch.randn(4, 8, requires_grad=True)
        for spec in ("berlu", "prelu", "elu:learn=alpha", "celu:learn=alpha"):
            for alpha in (0.0, -0.5):
                for backend, dtype in (("native", torch.float32), ("torch", torch.float32), ("auto", torch.float64)):
                    kept = bt.Act(spec, keep="output", backend=backend, channels=8, dtype=dtype)
                    with torch.no_grad():
                        kept.alpha[3] = alpha
                    y = kept(x.to(dtype))
                    for graph in (False, True):
                        with self.assertRaisesRegex(berlu.Error, f"alpha = {alpha:g} its slope cannot be had from"):
                            torch.autograd.grad(y.sum(), x, create_graph=graph, retain_graph=True)

    def test_parameters_may_lie_in_memory_as_they_like(self):
        x = torch.randn(4, 8)
        wide = torch.linspace(0.1, 0.9, 16, requires_grad=True)
        one = torch.tensor([0.5], requires_grad=True)
        for leaf, alpha in ((wide, wide[::2]), (one, one.expand(8))):
            grads = []
            for backend in ("native", "torch"):
                y = bt.berlu(x, alpha, 0.5, backend=backend)
                grads.append((y, torch.autograd.grad(y.square().sum(), leaf, retain_graph=True)[0]))
            for a, b in zip(*grads):
                torch.testing.assert_close(a, b)

    def test_every_activation_class_of_torch_timm_and_transformers_is_known(self):
        # Not elementwise, or nothing at all.
        others = {"MultiheadAttention", "Softmin", "Softmax", "Softmax2d", "LogSoftmax", "LinearActivation"}
        homes = ["torch.nn.modules.activation", "timm.layers.activations", "timm.layers.activations_me"]
        for home in [*homes, "transformers.activations"]:
            try:
                module = importlib.import_module(home)
            except ImportError:
                continue
            for name, cls in vars(module).items():
                if isinstance(cls, type) and issubclass(cls, nn.Module) and cls.__module__ == home:
                    self.assertEqual(sum(name in words for words in (_replace.KINDS, _replace._GATES, others)), 1, name)

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


class Replacing(unittest.TestCase):
    """tests/python/test_timm.py has models of timm and transformers."""

    def acts(self, model):
        return [m for m in model.modules() if isinstance(m, bt.Act)]

    def test_channels_of_every_convolution_and_of_sequences(self):
        for layer, x in (
            (nn.Conv1d(3, 5, 1), torch.randn(2, 3, 7)),
            (nn.Conv2d(3, 5, 1), torch.randn(2, 3, 7, 6)),
            (nn.Conv3d(3, 5, 1), torch.randn(2, 3, 7, 6, 4)),
            (nn.ConvTranspose1d(3, 5, 1), torch.randn(2, 3, 5)),
            (nn.Linear(3, 5), torch.randn(2, 7, 3)),
            (nn.Linear(3, 5), torch.randn(2, 7, 6, 4, 3)),
            (nn.Sequential(nn.Conv1d(3, 5, 1), nn.InstanceNorm1d(5)), torch.randn(2, 3, 7)),
        ):
            for example in (None, x):
                with self.subTest(layer=layer, example=example is not None):
                    model = nn.Sequential(copy.deepcopy(layer), nn.ReLU())
                    bt.replace_activations(model, "berlu", channels=True, example=example)
                    linear = isinstance(layer, nn.Linear)
                    self.assertEqual((model[1].channels, model[1].dim), (5, -1 if linear else 1))
                    self.assertEqual(model(x).shape, layer(x).shape)

    def test_widths_are_those_of_the_forward_pass_not_of_the_registration(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.act, self.conv, self.other, self.fc = nn.ReLU(), nn.Conv1d(3, 5, 1), nn.Linear(9, 9), nn.Linear(5, 2)

            def forward(self, x):
                return self.fc(self.act(self.conv(x)).mean(-1))

        model = Model()
        bt.replace_activations(model, "berlu", channels=True, example=torch.randn(2, 3, 7))
        self.assertEqual((model.act.channels, model.act.dim), (5, 1))

    def test_a_module_that_runs_at_two_widths_is_refused(self):
        act = nn.ReLU()
        model = nn.Sequential(nn.Linear(3, 5), act, nn.Linear(5, 4), act)
        for run in (model, nn.Sequential(nn.Linear(3, 5), Twice())):
            with self.assertRaisesRegex(ValueError, "runs with 5 and with 4 channels"):
                bt.replace_activations(run, "berlu", channels=True, example=torch.randn(2, 3))
            self.assertEqual(self.acts(run), [])

    def test_new_parameters_are_where_their_neighbours_are(self):
        for keys in ({"device": "meta"}, {"dtype": torch.float64}, {"dtype": torch.bfloat16}):
            block = nn.Sequential(nn.Linear(3, 4, **keys), nn.GELU(), nn.Linear(4, 3))  # the last is elsewhere
            model = nn.Sequential(nn.Linear(3, 3), block, nn.Sequential(nn.ReLU()))
            bt.replace_activations(model, "berlu")
            inner, last = self.acts(model)
            self.assertEqual((inner.alpha.device, inner.alpha.dtype), (block[0].weight.device, block[0].weight.dtype))
            self.assertEqual((last.alpha.device, last.alpha.dtype), (torch.device("cpu"), torch.float32))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dtype=torch.float64)
        bt.replace_activations(layer, "berlu", channels=True)
        self.assertEqual((layer.activation.alpha.dtype, layer.activation.channels), (torch.float64, 16))
        lazy = nn.Sequential(nn.LazyLinear(4, dtype=torch.float64), nn.ReLU())
        bt.replace_activations(lazy, "berlu", channels=True)
        self.assertEqual((lazy[1].alpha.dtype, lazy(torch.randn(2, 3).double()).shape), (torch.float64, (2, 4)))
        alone = nn.Sequential(nn.ReLU())
        bt.replace_activations(alone, bt.BerLU)
        self.assertEqual(alone[0].alpha.dtype, torch.float32)

    def test_a_model_on_meta_gets_its_first_values_later(self):
        for act in (bt.BerLU(alpha=[0.5, 0.25], channels=2, device="meta"), bt.Act("prelu", channels=2, device="meta")):
            act.to_empty(device="cpu").reset_parameters()
            self.assertEqual(act.alpha.tolist(), [0.5, 0.25] if isinstance(act, bt.BerLU) else [0.25, 0.25])

    def test_values_per_channel_have_the_precision_of_the_parameter(self):
        with torch.device("meta"):
            on_cpu = bt.BerLU(alpha=[0.1, 0.2], channels=2, device="cpu")
        for act in (on_cpu, bt.BerLU(alpha=[0.1, 0.2], channels=2, dtype=torch.float64)):
            self.assertEqual(act.alpha.tolist(), torch.tensor([0.1, 0.2], dtype=act.alpha.dtype).tolist())

    def test_an_encoder_takes_padding_masks_in_evaluation(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, dropout=0)
        encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
        x, padding = torch.randn(2, 5, 8), torch.tensor([[False, False, False, True, True], [False] * 5])
        before = encoder(x, src_key_padding_mask=padding)
        bt.replace_activations(encoder, "gelu")
        with torch.no_grad():
            after = encoder(x, src_key_padding_mask=padding)
        torch.testing.assert_close(after[~padding], before[~padding], rtol=1e-5, atol=1e-5)

    def test_copies_of_a_decoder_compute_what_it_computes(self):
        """torch gives relu to the copies of a decoder layer whose activation is a module."""
        x = torch.randn(3, 2, 8)
        for activation in ("gelu", nn.GELU()):
            model = nn.Transformer(8, 2, 1, 2, 16, dropout=0, activation=activation)
            bt.replace_activations(model, "berlu:alpha=-3")
            self.assertEqual(len(self.acts(model)), 3)
            for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                self.assertEqual(len(self.acts(other)), 3)
                self.assertTrue(torch.equal(other(x, x), model(x, x)))
                self.assertEqual(list(other.state_dict()), list(model.state_dict()))
                with torch.no_grad():  # the parameters that are registered are those that run
                    for act in self.acts(other):
                        act.alpha.fill_(2)
                self.assertFalse(torch.allclose(other(x, x), model(x, x)))
            bt.replace_activations(model, "gelu")
            self.assertEqual({act.spec for act in self.acts(model)}, {"gelu"})
            torch.testing.assert_close(torch.compile(model, backend="eager")(x, x), model(x, x))

    def test_nothing_to_replace_says_what_there_is(self):
        class Plain(nn.Module):
            def forward(self, x):
                return nn.functional.gelu(x).relu()

        some = nn.Sequential(nn.Linear(2, 2), nn.GELU(), nn.TransformerEncoderLayer(2, 1, 2))
        for words, keys, model in (
            ("model has gelu, relu, which", {"old": "glu"}, some),
            ("model has gelu, relu, which", {"where": "blocks.*"}, some),
            ("no activation module$", {}, Plain()),
            ("no activation module, but calls gelu, relu,", {"example": torch.randn(2)}, Plain()),
            ("itself is an activation", {}, nn.GELU()),
        ):
            with self.assertRaisesRegex(ValueError, f"nothing to replace: .*{words}"):
                bt.replace_activations(model, "berlu", **keys)

    def test_an_example_that_fails_changes_nothing(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.TransformerEncoder(layer, 2))
        decoder = nn.TransformerDecoderLayer(8, 2, 16, activation=nn.GELU())
        model[2].unused = copy.deepcopy(decoder)  # has a relu beside the module

        def state():
            return [(dict(vars(m)), dict(m._modules)) for m in model.modules()]

        before = state()
        for channels in (False, True):
            with self.assertRaisesRegex(RuntimeError, "cannot be multiplied"):
                bt.replace_activations(model, "berlu", example=torch.randn(2, 3, 5), channels=channels)
            self.assertTrue(state() == before)
        bt.replace_activations(model, "berlu", example=torch.randn(2, 3, 4))
        self.assertEqual(len(self.acts(model)), 4)
        self.assertEqual([m.activation_relu_or_gelu for m in model[2].layers], [0, 0])
        self.assertFalse(model[2].use_nested_tensor)

    def test_frozen_modules_stay_in_evaluation(self):
        model = nn.Sequential(nn.BatchNorm1d(4).eval(), nn.Sequential(nn.ReLU(), nn.Dropout().eval()), nn.Linear(4, 2))
        modes = [m.training for m in model.modules()]
        bt.replace_activations(model, "berlu", example=torch.randn(2, 4))
        self.assertEqual([m.training for m in model.modules()], modes)
        with self.assertRaises(RuntimeError):
            bt.replace_activations(model, "berlu", example=torch.randn(2, 5))
        self.assertEqual([m.training for m in model.modules()], modes)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.fc = nn.ReLU(), nn.Linear(5, 4)

    def forward(self, x):
        return self.act(self.fc(self.act(x)))


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

        tokens = Tokens()
        for model in (
            tokens,
            torch.compile(tokens),
            nn.DataParallel(tokens),
            torch.compile(nn.DataParallel(torch.compile(tokens))),
            torch.optim.swa_utils.AveragedModel(tokens),
            nn.ModuleDict({"backbone": tokens}),
        ):
            groups = {g["name"]: len(g["params"]) for g in bt.parameter_groups(model, 0.05)}
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

    def test_a_class_derived_from_ours_may_have_parameters_of_its_own(self):
        class Scaled(bt.BerLU):
            def __init__(self):
                super().__init__(alpha=-1)
                self.gain = nn.Parameter(torch.tensor([-3.0]))

        model = nn.Sequential(Scaled())
        self.assertEqual(bt.project_(model, "alpha:0.5:"), 1)
        self.assertEqual((model[0].alpha.item(), model[0].gain.item()), (0.5, -3))
        with self.assertRaisesRegex(ValueError, "learns 'gain'"):
            bt.project_(model, "gain:0:")

    def test_lipschitz_constants_follow_the_parameters(self):
        model = nn.Sequential(bt.BerLU(alpha=[0.5, -3], channels=2), bt.Act("hard_swish"), bt.BerLU(learn="none"))
        constants = bt.lipschitz(model)
        self.assertEqual(constants.sites, {"0": 3.0, "1": 1.5, "2": 1.0})
        self.assertEqual(constants.largest, 3.0)
        for act in (bt.BerLU(alpha=2, learn="alpha+eps"), bt.Act("smelu:learn=beta")):
            constant = act.lipschitz()
            for width in (0.0, -1.0, 1e30):
                with torch.no_grad():
                    list(act.parameters())[-1].fill_(width)
                self.assertEqual(act.lipschitz(), constant)

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

    @unittest.skipIf(bt.native(), "no native operators")
    def test_the_operators_run_whatever_torchs_defaults_were_on_import(self):
        for default in ("dtype(torch.float64)", "dtype(torch.bfloat16)", "device('meta')"):
            code = f"import torch; torch.set_default_{default}; import berlu.torch as bt; print(bt.native())"
            answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
            self.assertEqual(answer.stdout, "None\n", answer.stderr)

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
