#!/usr/bin/env python3
"""check_chain.py - the chain of calls to the AdamW update that docs/source.md lists. SPDX-License-Identifier: MIT

Every function of the table must be defined in its file and call the next one, by its name or through a pointer that is
called `run`; and there are at most nine calls."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 9


def body_of(file, name):
    """The body of a function, whose name may be that of SIMD_FN(name) for an instruction set."""
    text = (ROOT / ("cli" if file.startswith("cli/") else "src") / file.removeprefix("cli/")).read_text()
    short = re.sub(r"^simd_[a-z0-9]+_", "", name)
    found = re.search(rf"^[a-z][^\n;]*\b(?:{name}|SIMD_FN\({short}\))\([^;{{]*\)\n{{\n(.*?)^}}", text, re.M | re.S)
    return found.group(1) if found else sys.exit(f"docs/source.md: {name}() is not defined in {file}")


def main():
    rows = re.findall(r"^ *\| (\d*) *\| `(\w+)` \| `([\w/.]+)` \|", (ROOT / "docs/source.md").read_text(), re.M)
    if not rows or int(rows[-1][0]) != len(rows) - 1 or len(rows) - 1 > MOST:
        sys.exit(f"docs/source.md: the chain to AdamW must have 1 to {MOST} calls, numbered")
    for (_, name, file), (_, callee, _) in zip(rows, rows[1:]):
        short = re.sub(r"^simd_[a-z0-9]+_", "", callee)
        if not re.search(rf"\b{callee}\(|->{short}\(|(?:->|\.)run\(", body_of(file, name)):
            sys.exit(f"docs/source.md: {name}() does not call {callee}()")
    body_of(rows[-1][2], rows[-1][1])


main()
