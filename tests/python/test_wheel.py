"""The wheel beside torch: one OpenMP runtime, torch's threads, a forked child, in either order of import.
SPDX-License-Identifier: MIT

Needs torch and what `make wheel` left in BERLU_BUILD_DIR/wheel (the folder of the library unless told). The wheel is
unpacked, not installed, and nothing of the source tree or of its build takes part."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD = os.environ.get("BERLU_BUILD_DIR") or pathlib.Path(os.environ.get("BERLU_LIBRARY", "build/x")).resolve().parent
WHEELS = sorted(pathlib.Path(BUILD, "wheel").glob("berlu-*.whl"))
try:
    import torch
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)
if not WHEELS:
    print(f"no wheel in {BUILD}/wheel (make wheel): skipped", file=sys.stderr)
    sys.exit(77)

ORDERS = ("import torch, berlu.torch as bt", "import berlu, berlu.torch as bt, torch")


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with zipfile.ZipFile(WHEELS[-1]) as wheel:
            wheel.extractall(self.folder.name)

    def python(self, code):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BERLU_")}
        env["PYTHONPATH"] = self.folder.name
        answer = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], capture_output=True,
                                text=True, timeout=300, env=env, cwd=self.folder.name)  # fmt: skip
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.split("\n")

    def test_the_native_operators_of_the_wheel_compute(self):
        code = (
            "x = torch.randn(64, 64, requires_grad=True); act = bt.BerLU(eps=0.5)\n"
            "grads = []\n"
            "for name in ('native', 'torch'):\n"
            "    with bt.backend(name): grads.append(torch.autograd.grad(act(x).square().sum(), [x, act.alpha]))\n"
            "for a, b in zip(*grads): torch.testing.assert_close(a, b)\n"
            "import berlu; print(bt.native(), berlu.library_path)"
        )
        for order in ORDERS:
            said = self.python(f"{order}\n{code}")[0].split()
            self.assertEqual(said[0], "None")
            self.assertTrue(said[1].startswith(self.folder.name), said)

    def test_there_is_one_openmp_runtime_and_it_obeys_torch(self):
        code = (
            "import os\n"
            "torch.set_num_threads(1)\n"
            "bt.gelu(torch.randn(1000, 1000)); before = len(os.listdir('/proc/self/task'))\n"
            "bt.gelu(torch.randn(1000, 1000)); one = len(os.listdir('/proc/self/task'))\n"
            "torch.set_num_threads(3); bt.gelu(torch.randn(1000, 1000)); three = len(os.listdir('/proc/self/task'))\n"
            "names = ('gomp', 'libomp', 'iomp')\n"
            "maps = {l.split()[-1] for l in open('/proc/self/maps') if any(n in l for n in names)}\n"
            "print(len(maps), one - before, three - before)"
        )
        for order in ORDERS:
            self.assertEqual(self.python(f"{order}\n{code}")[0], "1 0 2", order)

    def test_a_forked_child_answers(self):
        code = (
            "import os\n"
            "x = torch.randn(1000, 1000); y = bt.gelu(x)\n"
            "read, write = os.pipe(); child = os.fork()\n"
            "if child == 0:\n"
            "    torch.set_num_threads(1); os.write(write, b'1' if torch.equal(bt.gelu(x), y) else b'0'); os._exit(0)\n"
            "os.waitpid(child, 0); print(os.read(read, 1).decode())"
        )
        for order in ORDERS:
            self.assertEqual(self.python(f"{order}\n{code}")[0], "1", order)


if __name__ == "__main__":
    unittest.main()
