"""berlu.timm: names as act_layer, runs of the engine in timm and back, every family of timm.
SPDX-License-Identifier: MIT

The engine's part needs its command, BERLU_BUILD_DIR/berlu (the folder of the library unless
told)."""

import doctest
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import timm
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

import berlu
import berlu.timm
import berlu.torch as bt
from berlu.torch._replace import kind_of

COMMAND = pathlib.Path(os.environ.get("BERLU_BUILD_DIR", pathlib.Path(berlu.library_path).parent), "berlu")


class Names(unittest.TestCase):
    def test_every_name_is_an_act_layer(self):
        for name in berlu.names():
            layer = timm.layers.create_act_layer(name)
            self.assertEqual(layer(torch.zeros(2, 3)).shape, (2, 3))
        model = timm.create_model("vit_tiny_patch16_224", act_layer="berlu", img_size=32, patch_size=8, depth=2)
        self.assertEqual([m.spec.split(":")[0] for m in model.modules() if isinstance(m, bt.Act)], ["berlu"] * 2)
        self.assertIs(type(timm.layers.create_act_layer("relu")), torch.nn.ReLU)  # timm's own names stay timm's

    def test_a_spec_gets_a_name(self):
        berlu.timm.register("soft_knee", "berlu:eps=0.5,learn=none")
        layer = timm.layers.create_act_layer("soft_knee")
        self.assertEqual(layer.activation, berlu.act("berlu:eps=0.5,learn=none"))


class Replace(unittest.TestCase):
    def test_every_activation_module_of_every_family_is_replaced(self):
        families = [timm.list_models(module=module) for module in timm.list_modules()]
        names = [family[0] for family in families if family]
        self.assertGreater(len(names), 80)
        places = 0
        for name in names:
            with self.subTest(model=name), torch.device("meta"):
                model = timm.create_model(name)
                before = [n for n, m in model.named_modules(remove_duplicate=False) if kind_of(m) and n]
                if not before:
                    continue
                report = bt.replace_activations(model, lambda: bt.Act("berlu:eps=0.1", device="meta"))
                after = [n for n, m in model.named_modules(remove_duplicate=False) if kind_of(m) not in (None, "berlu")]
                self.assertEqual(after, [])
                self.assertEqual(len(report), len(before))
                odd = {
                    type(m).__name__
                    for m in model.modules()
                    if not list(m.children())
                    and not list(m.parameters())
                    and any(
                        word in type(m).__name__.lower() for word in ("relu", "gelu", "swish", "silu", "mish", "elu")
                    )
                }
                self.assertEqual(odd - {"BerLU", "Act"}, set())
                places += len(before)
        print(f"{places} places in {len(names)} models", file=sys.stderr)

    def test_shared_modules_stay_shared_and_gates_stay(self):
        shared = torch.nn.GELU()
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), shared, torch.nn.Linear(4, 4), shared, torch.nn.Sigmoid())
        report = bt.replace_activations(model, bt.BerLU)
        self.assertIs(model[1], model[3])
        self.assertEqual((len(report), report.gates), (2, [("4", "Sigmoid")]))

    def test_choices_by_name_by_place_and_by_map(self):
        def model():
            return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 4), torch.nn.ReLU())

        self.assertEqual([r[0] for r in bt.replace_activations(model(), "berlu", old="relu").replaced], ["3"])
        self.assertEqual([r[0] for r in bt.replace_activations(model(), "berlu", where="1").replaced], ["1"])
        mapped = bt.replace_activations(model(), {"gelu": "berlu:eps=0.5", "relu": bt.BerLU})
        self.assertEqual(["eps=0.5" in r[2] for r in mapped.replaced], [True, False])
        chosen = bt.replace_activations(model(), "berlu", where=lambda name, module: isinstance(module, torch.nn.ReLU))
        self.assertEqual(len(chosen), 1)
        with self.assertRaisesRegex(ValueError, "nothing to replace"):
            bt.replace_activations(model(), "berlu", old="mish")
        with self.assertRaisesRegex(ValueError, "nothing to replace"):
            bt.replace_activations(torch.nn.Linear(2, 2), "berlu")
        kept = model()
        with self.assertRaisesRegex(ValueError, "did you mean"):
            bt.replace_activations(kept, "berlo")
        self.assertIsInstance(kept[1], torch.nn.GELU)

    def test_widths_come_from_the_layer_before_or_from_an_example(self):
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(6 * 36, 5),
            torch.nn.GELU(),
        )
        x = torch.randn(2, 3, 8, 8)
        for example in (None, x):
            model = __import__("copy").deepcopy(net)
            bt.replace_activations(model, "berlu", channels=True, example=example)
            self.assertEqual([(m.channels, m.dim) for m in model.modules() if isinstance(m, bt.Act)], [(6, 1), (5, -1)])
            self.assertEqual(model(x).shape, (2, 5))

    def test_transformer_layers_do_not_keep_their_gelu_in_evaluation(self):
        for kind in (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer):
            layer = kind(16, 2, 32, activation="gelu", batch_first=True, dropout=0).eval()
            x = torch.randn(2, 3, 16)
            args = (x,) if kind is torch.nn.TransformerEncoderLayer else (x, x)
            before = layer(*args)
            bt.replace_activations(layer, "berlu:eps=1")
            with torch.no_grad():
                evaluated = layer(*args)
            self.assertGreater((evaluated - before).abs().max().item(), 1e-3)
            torch.testing.assert_close(layer.train()(*args), evaluated)

    def test_an_example_lists_plain_functions_by_module(self):
        class Old(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.act = torch.nn.Linear(4, 4), torch.nn.GELU()

            def forward(self, x):
                return torch.nn.functional.relu(self.act(self.fc(x))).relu()

        model = torch.nn.Sequential(Old(), Old())
        report = bt.replace_activations(model, "berlu", example=torch.randn(2, 4))
        self.assertEqual(report.functional, [("0", "relu", 2), ("1", "relu", 2)])
        self.assertIn("plain functions remain", str(report))
        self.assertTrue(model.training)


@unittest.skipUnless(COMMAND.exists(), f"{COMMAND} is not built")
class Runs(unittest.TestCase):
    def command(self, *args):
        answer = subprocess.run([COMMAND, *map(str, args), "--json"], capture_output=True, text=True, timeout=600)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_a_run_of_each_model_is_the_same_in_timm_and_back(self):
        cases = [
            ("vit_micro", "berlu:eps=0.1", "layer"),
            ("deit_micro", "berlu:eps=0.1", "channel"),
            ("tnt_micro", "prelu", "layer"),
            ("convnext_micro", "berlu:eps=0.1,learn=alpha+eps", "channel"),
        ]
        for name, act, params in cases:
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                run = pathlib.Path(folder, "run")
                self.command(
                    "train",
                    "--model",
                    name,
                    "--data",
                    "synthetic",
                    "--synthetic-images",
                    512,
                    "--batch",
                    64,
                    "--epochs",
                    1,
                    "--lr",
                    0.003,
                    "--act",
                    act,
                    "--act-params",
                    params,
                    "--run",
                    run,
                )
                model = berlu.timm.load(run)
                config = timm.data.resolve_model_data_config(model)
                self.assertEqual((config["mean"], config["input_size"]), ((0.5, 0.5, 0.5), (3, 32, 32)))
                self.assertEqual((config["crop_pct"], model.pretrained_cfg["num_classes"]), (1.0, 10))
                torch.manual_seed(1)
                x, labels = torch.randn(16, 3, 32, 32), torch.arange(16) % 10
                save_file({"input": x, "labels": labels}, f"{folder}/batch.safetensors")
                with torch.no_grad():
                    logits = model(x)
                berlu.timm.save(model, f"{folder}/back.safetensors")
                for weights in (run / "checkpoints/last/model.safetensors", f"{folder}/back.safetensors"):
                    out = self.command(
                        "forward",
                        name,
                        "--weights",
                        weights,
                        "--batch",
                        f"{folder}/batch.safetensors",
                        "--out",
                        f"{folder}/out.safetensors",
                        "--act",
                        act,
                        "--act-params",
                        params,
                    )
                    engine = load_file(f"{folder}/out.safetensors")["logits"]
                    torch.testing.assert_close(engine, logits, rtol=1e-5, atol=2e-5)
                    self.assertTrue(torch.equal(engine.argmax(1), logits.argmax(1)))
                    self.assertAlmostEqual(
                        out["loss"], torch.nn.functional.cross_entropy(logits, labels).item(), delta=1e-5
                    )

    def test_files_name_the_activations_of_any_model(self):
        def model(*layers):
            sizes = {"img_size": 32, "patch_size": 4, "embed_dim": 64, "depth": 4, "num_heads": 2, "num_classes": 10}
            made = timm.create_model("vit_tiny_patch16_224", **sizes)
            for i, block in enumerate(made.blocks):
                block.mlp.act = layers[i % len(layers)]
            return made

        shared = bt.Act("prelu")
        mixed = [bt.Act("gelu"), torch.nn.SiLU(), bt.BerLU(0.5), torch.nn.GELU(approximate="tanh")]
        with tempfile.TemporaryDirectory() as folder:
            for layers in ([torch.nn.ReLU()], [torch.nn.GELU()], [shared], mixed):
                berlu.timm.save(model(*layers), f"{folder}/w.safetensors")
                said = self.command("eval", "vit_micro", "--weights", f"{folder}/w.safetensors", "--data", "synthetic")
                specs = [getattr(m, "spec", kind_of(m)) for m in layers]
                self.assertEqual(said["act"], "; ".join(specs[:3] + ["gelu_tanh"] if layers is mixed else specs))
            with self.assertRaisesRegex(ValueError, "blocks.0.mlp.act' is LeakyReLU.* cannot name"):
                berlu.timm.save(model(torch.nn.LeakyReLU(0.3)), f"{folder}/none.safetensors")
            self.assertEqual(os.listdir(folder), ["w.safetensors"])

    def test_what_is_no_run_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "is no run folder"):
                berlu.timm.load(folder)
            pathlib.Path(folder, "run.json").write_text("{}")
            with self.assertRaisesRegex(ValueError, "not the description of a run"):
                berlu.timm.load(folder)
            pathlib.Path(folder, "run.json").write_text('{"settings": {"model": "vit_micro"}}')
            with self.assertRaisesRegex(ValueError, "no whole checkpoint 'last'"):
                berlu.timm.load(folder)
            path = pathlib.Path(folder, "checkpoints/last/model.safetensors")
            path.parent.mkdir(parents=True)
            save_file({"head.weight": torch.zeros(10, 4)}, path)
            with self.assertRaisesRegex(ValueError, "does not fit vit_micro"):
                berlu.timm.load(folder)
            whole = path.read_bytes()
            for size in (0, 5, len(whole) - 1):
                path.write_bytes(whole[:size])
                with self.assertRaisesRegex(ValueError, "no whole checkpoint 'last'"):
                    berlu.timm.load(folder)

    def test_a_file_that_cannot_be_written_is_refused_and_leaves_nothing(self):
        model = torch.nn.Linear(2, 2)
        with tempfile.TemporaryDirectory() as folder:
            for file in (folder, f"{folder}/no/w.safetensors"):
                with self.assertRaisesRegex(ValueError, "cannot be written"):
                    berlu.timm.save(model, file)
            with self.assertRaisesRegex(ValueError, "cannot be written"):
                berlu.timm.save(model, "/dev/full/w.safetensors")
            with self.assertRaises(TypeError):
                berlu.timm.save(3, f"{folder}/w.safetensors")
            self.assertEqual(os.listdir(folder), [])

    def test_the_examples_of_the_docstrings_hold(self):
        failed, tried = doctest.testmod(berlu.timm, optionflags=doctest.ELLIPSIS)
        self.assertEqual(failed, 0)
        self.assertGreaterEqual(tried, 7)


if __name__ == "__main__":
    unittest.main()
