"""Every Python block of docs/python.md, README.md and python/README.md runs, in order, in one process per page, and so does
every command of berlu between them. SPDX-License-Identifier: MIT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = os.environ.get("BERLU_BUILD_DIR") or pathlib.Path(os.environ.get("BERLU_LIBRARY", ROOT / "build/x")).parent
for module in ("torch", "timm", "onnx", "onnxscript", "transformers", "jax"):
    try:
        __import__("importlib").import_module(module)
    except ImportError as error:
        print(f"{error}: skipped", file=sys.stderr)
        sys.exit(77)
if not pathlib.Path(BUILD, "berlu").exists():
    print(f"{BUILD}/berlu is not built: skipped", file=sys.stderr)
    sys.exit(77)


def blocks(page):
    """The program of a page: its Python, and commands as calls of a shell (README.md has those of the engine, which
    tools/test_docs.py runs)."""
    found = []
    for kind, text in re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
        if kind == "python":
            found.append(text)
        elif page == "docs/python.md" and text.startswith("berlu "):
            found.append(f"import subprocess\nsubprocess.run({'set -e; ' + text!r}, shell=True, check=True)\n")
    return found


class Pages(unittest.TestCase):
    def test_the_blocks_of_a_page_run_in_order(self):
        for page, least in (("docs/python.md", 15), ("README.md", 1), ("python/README.md", 2)):
            found = blocks(page)
            self.assertGreaterEqual(len(found), least)
            with tempfile.TemporaryDirectory() as folder:
                answer = subprocess.run(
                    [sys.executable, "-c", "\n".join(found)],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=900,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": f"{BUILD}:{os.environ['PATH']}"},
                )
                self.assertEqual(answer.returncode, 0, f"{page}: {answer.stderr[-3000:]}")


if __name__ == "__main__":
    unittest.main()
