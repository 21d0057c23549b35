"""bench/study_torch.py: a run does not depend on those before it; rows are kept. SPDX-License-Identifier: MIT"""

import csv
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

try:
    import numpy
    import timm  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import study_torch  # noqa: E402


class StudyTorch(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        draws = numpy.random.default_rng(1)
        for name in ("data_batch_1", "test_batch"):
            rows = draws.integers(0, 256, (10, 3073), dtype=numpy.uint8)
            rows[:, 0] %= 10
            rows.tofile(self.folder / f"{name}.bin")

    def call(self, out, *words):
        options = ["--data", self.folder, "--device", "cpu", "--batch", "4", "--epochs", "2"]
        call = [sys.executable, BENCH / "study_torch.py", *options, "--out", self.folder / out, *words]
        answer = subprocess.run(call, capture_output=True, text=True, timeout=600)
        rows = []
        if (self.folder / out).exists():
            with open(self.folder / out, newline="") as file:
                rows = list(csv.DictReader(file))
        return answer, rows

    def test_a_second_run_has_the_bits_of_a_fresh_process(self):
        answer, both = self.call("both.csv", "--functions", "berlu", "--seeds", "2,8")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        answer, alone = self.call("alone.csv", "--functions", "berlu", "--seeds", "8")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual([row["seed"] for row in both], ["2", "8"])
        self.assertEqual(both[1], alone[0])
        self.assertNotEqual(both[0]["weights"], both[1]["weights"])

    def test_rows_are_kept_and_not_run_again(self):
        old = "study,source,cell,seed,value\nequivalence,pytorch,gelu,1,72.6\ntrial,pytorch,relu,4,10.0\n"
        (self.folder / "rows.csv").write_text(old)
        answer, rows = self.call("rows.csv", "--functions", "relu", "--seeds", "4-5")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual([(r["study"], r["cell"], r["seed"]) for r in rows],
                         [("equivalence", "gelu", "1"), ("trial", "relu", "4"), ("trial", "relu", "5")])  # fmt: skip
        self.assertEqual((rows[0]["value"], rows[1]["value"], rows[1]["loss"]), ("72.6", "10.0", ""))
        self.assertEqual(rows[2]["timm"], timm.__version__)
        # No time is left: nothing is started that cannot end, and nothing is lost.
        answer, rows = self.call("rows.csv", "--functions", "relu", "--seeds", "6", "--for", "0.001")
        self.assertEqual((answer.returncode, len(rows)), (3, 3), answer.stderr)

    def test_rows_of_other_sizes_are_no_rows_of_the_registered_study(self):
        def name(**changed):
            args = types.SimpleNamespace(**{"study": None, "model": "vit_tiny_cifar", "epochs": 100, "batch": 1024, **changed})
            return study_torch.study_name(args, types.SimpleNamespace(labels=range(50000), test_labels=range(10000)))

        self.assertEqual(name(), "equivalence")
        self.assertEqual({name(epochs=99), name(batch=512), name(model="vit_micro/8")}, {"trial"})
        self.assertEqual(name(epochs=2, study="mine"), "mine")

    def test_processes_share_a_file(self):
        path = self.folder / "shared.csv"
        first, second = study_torch.Rows(path), study_torch.Rows(path)
        for rows, cell, seed in ((first, "relu", 2), (second, "gelu", 10), (first, "relu", 1), (second, "gelu", 9)):
            rows.add(dict(zip(study_torch.COLUMNS, ("trial", "pytorch", cell, seed, 50.0))))
        kept = [(row["cell"], row["seed"]) for row in study_torch.Rows(path).items]
        self.assertEqual(kept, [("gelu", "9"), ("gelu", "10"), ("relu", "1"), ("relu", "2")])

    def test_mistakes_are_one_line(self):
        for words in (("--seeds", "x"), ("--seeds", "9-8"), ("--functions", "gelu,tanh"), ("--batch", "99"),
                      ("--data", "/nowhere")):  # fmt: skip
            with self.subTest(words=words):
                answer, rows = self.call("never.csv", *words)
                self.assertEqual((answer.returncode, rows), (2, []), answer.stderr)
                self.assertEqual(len(answer.stderr.strip().splitlines()), 1, answer.stderr)

    def test_rates_are_the_recipes(self):
        # 50,000 images in batches of 1024: 48 steps an epoch, 240 of warm-up, 4,800 in all
        for step, rate in ((0, 1e-6), (1, 5.1625e-6), (239, 9.958375e-4), (240, 1e-3), (2520, 5.05e-4)):
            self.assertAlmostEqual(study_torch.rate_at(step, 48, 100), rate, delta=1e-15)
        self.assertAlmostEqual(study_torch.rate_at(4799, 48, 100), 1.000011747e-05, delta=1e-14)


if __name__ == "__main__":
    unittest.main()
