"""The shim functions that the bridge declares are those of the installed torch, type by type.
SPDX-License-Identifier: MIT"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

try:
    import torch
except ImportError as error:
    print(f"{error}: skipped", file=sys.stderr)
    sys.exit(77)
HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = pathlib.Path(torch.__file__).parent / "include"
CXX = os.environ.get("CXX", "g++")
if not shutil.which(CXX) or not (INCLUDE / "torch/csrc/stable/c/shim.h").exists():
    print(f"no {CXX}, or this torch has no headers: skipped", file=sys.stderr)
    sys.exit(77)


def compiled(text):
    return subprocess.run(
        [
            CXX,
            "-std=c++17",
            "-fsyntax-only",
            "-x",
            "c++",
            f"-I{INCLUDE}",
            f"-I{HERE.parent.parent}/python/bridge",
            "-DTORCH_TARGET_VERSION=0x020a000000000000",
            "-",
        ],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )


class Prototypes(unittest.TestCase):
    def test_all_prototypes_agree(self):
        answer = compiled((HERE / "prototypes.cpp").read_text())
        self.assertEqual(answer.returncode, 0, answer.stderr[:3000])

    def test_a_wrong_prototype_would_be_noticed(self):
        wrong = (
            HERE / "prototypes.cpp"
        ).read_text() + "SHIM(int64_t, aoti_torch_get_dim, (AtenTensorHandle, int64_t *))\n"
        self.assertIn("aoti_torch_get_dim has another type", compiled(wrong).stderr)


if __name__ == "__main__":
    unittest.main()
