"""bench/losses_torch.py: berlu and PyTorch train alike, loss by loss. SPDX-License-Identifier: MIT"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401
    import timm  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

import berlu

COMMAND = pathlib.Path(os.environ.get("BERLU_BUILD_DIR", pathlib.Path(berlu.library_path).parent), "berlu")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/losses_torch.py"


@unittest.skipUnless(COMMAND.exists(), f"{COMMAND} is not built")
class Losses(unittest.TestCase):
    def compare(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, SCRIPT, f"{folder}/run", "--berlu", COMMAND, "--steps", "12", "--orders", "1"]
            words += ["--", "--data", "synthetic", "--synthetic-images", "2000", "--test-images", "16", "--batch", "16"]
            return subprocess.run([*words, *options], capture_output=True, text=True, timeout=600)

    def test_every_family_follows_the_recipe_of_the_paper(self):
        for model, act in (("vit_micro", "berlu"), ("tnt_micro", "gelu"), ("convnext_micro", "prelu")):
            with self.subTest(model=model):
                answer = self.compare("--model", model, "--act", act)
                self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
                self.assertIn("the same losses", answer.stdout)

    def test_another_training_is_seen(self):
        answer = self.compare("--model", "vit_micro", "--act", "berlu", "--decay-all")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("decay_all", answer.stderr)


if __name__ == "__main__":
    unittest.main()
