"""Every Python block of docs/python.md and README.md runs, in order, in one process per page.
SPDX-License-Identifier: MIT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
for module in ("torch", "timm", "onnx", "onnxscript", "transformers", "jax"):
    try:
        __import__("importlib").import_module(module)
    except ImportError as error:
        print(f"{error}: skipped", file=sys.stderr)
        sys.exit(77)


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


class Pages(unittest.TestCase):
    def test_the_blocks_of_a_page_run_in_order(self):
        for page, least in (("docs/python.md", 10), ("README.md", 1)):
            found = blocks(page)
            self.assertGreaterEqual(len(found), least)
            with tempfile.TemporaryDirectory() as folder:
                answer = subprocess.run(
                    [sys.executable, "-c", "\n".join(found)],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=900,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                )
                self.assertEqual(answer.returncode, 0, f"{page}: {answer.stderr[-3000:]}")


if __name__ == "__main__":
    unittest.main()
