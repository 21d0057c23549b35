"""bench/step_cuda.py without a GPU: its arithmetic, plots and files, and torch's side where torch is. SPDX-License-Identifier: MIT"""

import argparse
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import quiet  # noqa: E402
import step_cells  # noqa: E402
import step_peer  # noqa: E402
import step_plots  # noqa: E402
import step_sweep  # noqa: E402

BERLU = pathlib.Path(os.environ.get("BERLU_LIBRARY", "build/libberlu.so.0")).resolve().parent / "berlu"
TORCH = all(importlib.util.find_spec(name) for name in ("torch", "timm"))


def cell(**more):
    return dict(width=192, tokens=65, batch=64, act="gelu", stream="bf16", keep="both", **more)


class Peer:
    """What step_sweep.py sees of a process of torch or of berlu."""

    def __init__(self, rates, mode="graph", failure=None):
        self.rates, self.mode, self.failure = rates, mode, failure
        self.last = {"bytes": 5, "version": "2", "planned_bytes": 7, "machine": "GPU"}


class Numbers(unittest.TestCase):
    def test_a_mode_is_read_or_refused_by_name(self):
        mode = step_peer.Mode("graph+cls+cudnn+budget0.7")
        self.assertEqual((mode.kind, mode.cls, mode.attention, mode.budget), ("graph", True, "cudnn", 0.7))
        for wrong in ("grahp", "graph+cudn", "graph+budgetX", "eager+budget0.5"):
            with self.assertRaises(ValueError):
                step_peer.Mode(wrong)

    def test_noise_compares_every_second_turn_with_the_others(self):
        self.assertIsNone(step_cells.noise([1, 2, 3]))
        self.assertEqual(step_cells.noise([10, 11, 10, 11]), 1.1)

    def test_a_point_of_torch_needs_one_of_ours_that_is_as_fast_and_as_small(self):
        point = lambda side, name, ms, gib: {"side": side, "name": name, "ms": ms, "gib": gib}
        ours = [point("berlu", "both", 8, 4), point("berlu", "input", 9, 3)]
        self.assertEqual(step_plots.not_dominated(ours + [point("torch", "1.0", 14, 5), point("torch", "0.3", 20, 3)]), [])
        self.assertEqual(step_plots.not_dominated(ours + [point("torch", "0.3", 20, 2.9)]), ["0.3"])

    def test_groups_hold_as_many_cells_as_are_wanted_and_as_fit(self):
        small, large = [cell(name=i) for i in range(3)], cell(name=3)
        large.update(width=768, tokens=197, batch=2048)
        groups = list(step_sweep.groups_of([large, *small], 2))
        self.assertEqual([[c["name"] for c in group] for group in groups], [[0, 1], [2], [3]])

    def test_a_line_of_the_sweep_takes_the_fastest_torch(self):
        line = step_sweep.cell_take(cell(), Peer([300, 100, 200]), [Peer([50, 50]), Peer([160, 160], "default")])
        self.assertEqual((line["berlu"], line["torch"], line["torch_mode"], line["ratio"]), ("200", "160", "default", "1.2500"))

    def test_too_little_memory_is_a_result_and_other_failures_are_not(self):
        full = Peer([], failure="memory")
        self.assertEqual(step_sweep.cell_take(cell(), Peer([1]), [full])["torch"], step_sweep.MEMORY)
        self.assertEqual(step_sweep.cell_take(cell(), full, [Peer([1])])["berlu"], step_sweep.MEMORY)
        self.assertIsNone(step_sweep.cell_take(cell(), Peer([1]), [Peer([], failure="code 1")]))
        self.assertIsNone(step_sweep.cell_take(cell(), Peer([], failure="code 1"), [Peer([1])]))

    def test_a_session_is_stopped_while_something_is_measured_and_goes_on_behind(self):
        def stopped():
            return [pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for p in quiet.members(other.pid)]

        command = "timeout 60 sleep 60 & exec sleep 60"  # timeout makes a process group of its own
        with subprocess.Popen(["sh", "-c", command], start_new_session=True) as other, mock.patch.object(quiet, "SETTLE", 0):
            try:
                while len(quiet.members(other.pid)) < 3:
                    time.sleep(0.01)
                with self.assertRaises(KeyError), quiet.Quiet([other.pid]):
                    while stopped() != [True] * 3:  # a busy machine takes its time
                        time.sleep(0.01)
                    raise KeyError  # a measurement that fails stops nothing for good
                while any(stopped()):
                    time.sleep(0.01)
            finally:
                quiet.tell([other.pid], signal.SIGKILL)

    def test_the_own_session_is_never_stopped(self):
        self.assertEqual(quiet.members(os.getsid(0)), [])


class Files(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.csv = str(pathlib.Path(place.name) / "sweep.csv")

    def sweep(self, limit):
        """Cells that were measured in one call."""
        seen = []
        args = argparse.Namespace(csv=self.csv, svg=self.csv + ".svg", tokens=[65], widths=[192, 384], batches=[64, 128], ahead=1,
                                  device="cuda", limit=limit)

        def prepare(_args, rows):
            seen.extend(rows)
            return {row: ([Peer([100.0])], [Peer([200.0 if "small" in row else 50.0])]) for row in rows}

        step_sweep.run(args, prepare, lambda *_: None)
        return seen

    def test_a_sweep_goes_on_where_it_ended(self):
        self.assertEqual(self.sweep(0), ["vit_tiny_32:gelu:64:bf16:both"])
        self.assertEqual(len(self.sweep(1000)), 3)
        self.assertEqual(self.sweep(1000), [])
        self.assertEqual(len(step_sweep.rows_read(self.csv)), 4)

    def test_the_heat_map_shows_where_torch_is_faster(self):
        self.sweep(1000)
        text = pathlib.Path(self.csv + ".svg").read_text()
        xml.dom.minidom.parseString(text)
        self.assertEqual(text.count(">torch is faster<"), 2)
        self.assertEqual((text.count(">2.00<"), text.count(">0.50<")), (2, 2))

    def test_curves_of_other_rows_stay_in_the_file(self):
        point = {"side": "torch", "name": "a, b", "ms": 1.0, "gib": 2.0}
        for row in ("one", "two", "one"):
            step_sweep.points_write(self.csv, row, [point])
        self.assertEqual(sorted(line["row"] for line in step_sweep.rows_read(self.csv)), ["one", "two"])
        xml.dom.minidom.parseString(step_plots.curves([point, dict(point, side="berlu")], "a <row>"))


@unittest.skipUnless(BERLU.exists(), "berlu is not built")
class Program(unittest.TestCase):
    def call(self, *words):
        call = [sys.executable, BENCH / "step_cuda.py", "--berlu", BERLU, "--device", "cpu", "--seconds", "0", "--rounds", "1", *words]
        return subprocess.run(call, capture_output=True, text=True, timeout=300)

    def test_several_processes_are_added_up(self):
        answer = self.call("--processes", "1,2", "vit_micro:gelu:2:f32:both")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("2 processes:", answer.stdout)

    def test_bad_words_are_refused(self):
        for words in (["--sweep"], ["vit_nano:gelu:2:f32"], ["--modes", "graph"], ["--modes", "gr"]):
            self.assertEqual(self.call(*words).returncode, 2, words)

    @unittest.skipUnless(TORCH, "torch or timm is missing")
    def test_a_row_is_compared_and_its_memory_told(self):
        answer = self.call("--modes", "eager,eager+cls", "vit_micro:gelu:2:f32:both")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual([answer.stdout.count(word) for word in ("berlu", " eager:", " eager+cls:", "<- fastest")], [1] * 4, answer.stdout)
        answer = self.call("--memory", "vit_micro:gelu:2:f32:both")
        self.assertIn("torch, eager:", answer.stdout, answer.stderr)
        self.assertIn("everywhere: ", answer.stdout)


@unittest.skipUnless(TORCH, "torch or timm is missing")
class ClassToken(unittest.TestCase):
    def test_the_last_block_for_one_token_gives_the_same_output_and_gradients(self):
        import torch

        torch.manual_seed(0)
        model, size = step_peer.model_make("vit_micro", "gelu", step_peer.Mode("eager"), False)
        model = model.double()
        x, found = torch.randn(2, 3, size, size, dtype=torch.float64), []
        for block in (model.blocks[-1], step_peer.class_token_block(model.blocks[-1])):
            model.blocks[-1] = block
            y = model(x)
            grads = torch.autograd.grad(y.square().sum(), [model.patch_embed.proj.weight, model.blocks[0].attn.qkv.weight,
                                                           model.head.weight])
            found.append([y, *grads])
        for a, b in zip(*found):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


if __name__ == "__main__":
    unittest.main()
