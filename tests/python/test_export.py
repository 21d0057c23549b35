"""berlu export onnx and berlu export timm: one run, three programs, the same answers. SPDX-License-Identifier: MIT"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    import timm
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

import berlu
import berlu.timm

COMMAND = pathlib.Path(os.environ.get("BERLU_BUILD_DIR", pathlib.Path(berlu.library_path).parent), "berlu")
if not COMMAND.exists():
    print(f"{COMMAND} is not built: skipped", file=sys.stderr)
    sys.exit(77)
TRAIN = ["--data", "synthetic", "--synthetic-images", "256", "--batch", "32", "--epochs", "1", "--lr", "0.003"]


def command(*words, code=0):
    answer = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert answer.returncode == code, answer.stderr
    return answer.stderr if code else answer.stdout


def run_onnx(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["logits"], {"image": x.numpy()})[0])


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, model, act, *more):
        run = self.folder / f"{model}-{len(list(self.folder.iterdir()))}"
        command("train", "--model", model, "--act", act, "--run", run, "--test-images", 16, *TRAIN, *more)
        return run

    def engine(self, model, run, x, labels, *more):
        save_file({"input": x, "labels": labels}, self.folder / "batch.safetensors")
        weights = run / "checkpoints/last/model.safetensors"
        words = ["--weights", weights, "--batch", self.folder / "batch.safetensors"]
        out = command("forward", model, *words, "--out", self.folder / "out.safetensors", *more, "--json")
        return load_file(self.folder / "out.safetensors")["logits"], json.loads(out)["loss"]

    def same(self, got, logits, loss, labels):
        self.assertTrue(torch.equal(got.argmax(1), logits.argmax(1)))
        self.assertAlmostEqual(torch.nn.functional.cross_entropy(got, labels).item(), loss, delta=1e-5)
        torch.testing.assert_close(got, logits, rtol=1e-4, atol=1e-4)

    def test_a_run_of_each_model_answers_alike_in_onnxruntime_and_timm(self):
        for model, act, params in (
            ("vit_micro", "berlu:eps=0.1", "layer"),
            ("deit_micro", "berlu:eps=0.1,degree=4", "channel"),
            ("tnt_micro", "berlu:eps=0.5", "channel"),
            ("tnt_s_legacy", "gelu", "layer"),
            ("convnext_micro", "berlu:eps=0.1,learn=alpha+eps", "channel"),
        ):
            with self.subTest(model=model):
                sizes = ["--image-size", "32", "--patch", "8"] if model == "tnt_s_legacy" else []
                learned = ["--act-params", params] if params == "channel" else []
                more = ["--max-steps", "1", "--batch", "4"] if sizes else []
                run = self.train(model, act, *sizes, *learned, *more)
                torch.manual_seed(1)
                x, labels = torch.randn(6, 3, 32, 32), torch.arange(6)
                logits, loss = self.engine(model, run, x, labels, "--act", act, *sizes, *learned, "--classes", 10)
                for functions in ([], ["--functions"]):
                    file = self.folder / "model.onnx"
                    command("export", "onnx", run, file, *functions)
                    proto = onnx.load(file)
                    onnx.checker.check_model(proto, full_check=True)
                    self.same(run_onnx(file, x), logits, loss, labels)
                    self.assertEqual(run_onnx(file, x[:1]).shape, (1, 10))
                    counts = collections.Counter(node.op_type for node in proto.graph.node if node.domain == "berlu")
                    is_berlu = bool(functions) and act.startswith("berlu")
                    self.assertEqual(sum(counts.values()) > 0, is_berlu)
                    self.assertEqual(len(proto.functions), int(is_berlu))
                    self.assertEqual({o.domain: o.version for o in proto.opset_import}[""], 17)
                if params == "layer":
                    command("export", "timm", run, self.folder / f"timm-{model}")
                    loaded = timm.create_model(f"local-dir:{self.folder}/timm-{model}", pretrained=True).eval()
                    self.assertEqual(loaded.pretrained_cfg["mean"], [0.5, 0.5, 0.5])
                    with torch.no_grad():
                        self.same(loaded(x), logits, loss, labels)
                        self.same(berlu.timm.load(self.folder / f"timm-{model}")(x), logits, loss, labels)
                with torch.no_grad():
                    self.same(berlu.timm.load(run)(x), logits, loss, labels)

    def test_timm_prepares_images_as_the_run_does(self):
        data = self.folder / "set"
        command("data", "make", "synthetic", "--out", data, "--images", 20, "--image-size", 40)
        for i, (words, wanted) in enumerate(
            (
                (["--eval-crop", "squash", "--interpolation", "bilinear"], ("bilinear", "squash", 1.0)),
                (["--crop-pct", "0.8", "--interpolation", "random"], ("bicubic", "center", 0.8)),
                ([], ("bicubic", "center", 1.0)),
            )
        ):
            run = self.folder / f"run-{i}"
            sizes = ["--model", "vit_micro", "--batch", 4, "--epochs", 1]
            command("train", *sizes, "--data", data, "--act", "berlu", "--run", run, *words)
            command("export", "timm", run, self.folder / f"images-{i}")
            for model in (berlu.timm.load(run), berlu.timm.load(self.folder / f"images-{i}")):
                config = timm.data.resolve_model_data_config(model)
                self.assertEqual((config["interpolation"], config["crop_mode"], config["crop_pct"]), wanted)

    def test_every_activation_is_the_librarys_in_onnx(self):
        extra = [
            "smooth(kinks=-1,1; slopes=0,1,0.5; eps=0.5; degree=4)",
            "smooth(kinks=0; slopes=-1,1; at=0=0.5; eps=0.3; degree=3)",
            "berlu:eps=0.5,scale=2,center=1",
            "berlu:alpha=0.2,eps=0.5,degree=16",
            "gelu:scale=8",
            "elu:alpha=1.7",
            "celu:alpha=0.6",
        ]
        for spec in [*berlu.names(), *extra]:
            with self.subTest(act=spec):
                run = self.train("vit_micro", spec, "--max-steps", "1", "--image-size", "16", "--patch", "16")
                x, labels = torch.randn(4, 3, 16, 16) * 3, torch.arange(4)
                sizes = ["--image-size", "16", "--patch", "16"]
                logits, loss = self.engine("vit_micro", run, x, labels, "--act", spec, *sizes)
                command("export", "onnx", run, self.folder / "act.onnx")
                self.same(run_onnx(self.folder / "act.onnx", x), logits, loss, labels)

    def test_weights_and_files_say_what_they_are(self):
        run = self.train("convnext_micro", "berlu:eps=0.1", "--max-steps", "1")
        with safe_open(run / "checkpoints/last/model.safetensors", "pt") as file:
            said = file.metadata()
        self.assertEqual(said["model"], "convnext_micro")
        self.assertEqual((said["image_size"], said["stem"], said["classes"]), ("32", "1", "10"))
        self.assertEqual((said["mean"], said["std"]), ("0.5,0.5,0.5", "0.26,0.26,0.26"))
        self.assertNotIn("patch", said)
        self.assertTrue(said["activation"].startswith("berlu:"))
        command("export", "onnx", run, self.folder / "m.onnx")
        props = {p.key: p.value for p in onnx.load(self.folder / "m.onnx").metadata_props}
        self.assertEqual({k: v for k, v in said.items() if k != "format"}, props)

    def test_bad_input_is_one_message_and_writes_nothing(self):
        run = self.train("tnt_micro", "relu", "--max-steps", "1")
        before = sorted(self.folder.rglob("*"))
        self.assertIn("no/m.onnx", command("export", "onnx", run, self.folder / "no/m.onnx", code=1))
        self.assertIn("TNT takes no activation", command("export", "timm", run, self.folder / "t", code=2))
        self.assertIn("is there already", command("export", "timm", run, run, code=2))
        command("export", "onnx", self.folder / "nothing", self.folder / "m.onnx", code=2)
        for path in run.glob("checkpoints/*/model.safetensors"):
            path.write_bytes(path.read_bytes()[:-1])
        command("export", "onnx", run, self.folder / "m.onnx", code=2)
        self.assertEqual(sorted(self.folder.rglob("*")), before)


if __name__ == "__main__":
    unittest.main()
