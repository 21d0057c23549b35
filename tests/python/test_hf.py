"""berlu.hf: hidden_act by name in transformers. SPDX-License-Identifier: MIT"""

import doctest
import sys
import tempfile
import unittest

try:
    import torch
    import transformers
    from transformers.activations import ACT2FN
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

import berlu
import berlu.hf
import berlu.torch as bt


def config(act):
    return transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=16,
        patch_size=8,
        hidden_act=act,
    )


class HuggingFace(unittest.TestCase):
    def test_a_model_has_one_learned_slope_per_layer_and_survives_its_file(self):
        torch.manual_seed(1)
        model = transformers.ViTModel(config("berlu")).eval()
        acts = [m for m in model.modules() if isinstance(m, bt.Act)]
        self.assertEqual(len({id(m.alpha) for m in acts}), 2)
        with torch.no_grad():
            acts[0].alpha.fill_(0.5)
        x = torch.randn(2, 3, 16, 16)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model.save_pretrained(folder)
            again = transformers.ViTModel.from_pretrained(folder).eval()
            self.assertTrue(torch.equal(again(x).last_hidden_state, model(x).last_hidden_state))

    def test_weights_of_another_activation_leave_the_slopes_their_first_values(self):
        gelu, learned = transformers.ViTModel(config("gelu")), transformers.ViTModel(config("berlu"))
        with torch.no_grad():
            for act in (m for m in learned.modules() if isinstance(m, bt.Act)):
                act.alpha.fill_(0.5)
        for model, dtype, alpha in ((gelu, None, 0.01), (gelu, torch.bfloat16, 0.01), (learned, None, 0.5)):
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                loaded = transformers.ViTModel.from_pretrained(folder, hidden_act="berlu", dtype=dtype)
            acts = [m for m in loaded.modules() if isinstance(m, bt.Act)]
            want = torch.tensor([alpha], dtype=dtype)
            self.assertEqual([torch.equal(m.alpha, want) for m in acts], [True, True])

    def test_every_name_works_and_transformers_own_stay(self):
        for name in berlu.names():
            self.assertEqual(ACT2FN[name](torch.zeros(3)).shape, (3,))
        self.assertNotIsInstance(ACT2FN["gelu"], bt.Act)
        berlu.hf.register("soft_knee", "berlu:eps=0.5")
        self.assertEqual(ACT2FN["soft_knee"].activation, berlu.act("berlu:eps=0.5"))

    def test_replace_activations_knows_the_modules_of_transformers(self):
        for act in ("gelu", "gelu_new", "quick_gelu", "silu", "relu2", "gelu_pytorch_tanh", "gelu_fast"):
            model = transformers.ViTModel(config(act))
            report = bt.replace_activations(model, "berlu:eps=0.1", example=torch.randn(1, 3, 16, 16))
            self.assertEqual(
                (len([r for r in report.replaced if "pooler" not in r[0]]), report.functional), (2, []), act
            )

    def test_a_replaced_model_comes_back_by_a_registered_name(self):
        berlu.hf.register("my_berlu", "berlu:eps=0.1")
        model, x = transformers.ViTModel(config("gelu")).eval(), torch.randn(2, 3, 16, 16)
        bt.replace_activations(model, "berlu:eps=0.1", old="gelu")
        model.config.hidden_act = "my_berlu"
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            next(m for m in model.modules() if isinstance(m, bt.Act)).alpha.fill_(0.5)
            model.save_pretrained(folder)
            again = transformers.ViTModel.from_pretrained(folder).eval()
            self.assertTrue(torch.equal(again(x).last_hidden_state, model(x).last_hidden_state))

    def test_an_example_may_be_what_a_tokenizer_gives(self):
        sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
        model = transformers.BertModel(transformers.BertConfig(vocab_size=100, **sizes))
        ids = torch.ones(1, 4, dtype=torch.long)
        example = transformers.BatchEncoding({"input_ids": ids, "attention_mask": ids})
        report = bt.replace_activations(model, "berlu:eps=0.1", example=example, channels=True)
        self.assertEqual((len(report), report.functional, report.looked), (1, [], True))

    def test_the_examples_of_the_docstrings_hold(self):
        self.assertEqual(doctest.testmod(berlu.hf).failed, 0)


if __name__ == "__main__":
    unittest.main()
