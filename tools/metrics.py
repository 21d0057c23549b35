#!/usr/bin/env python3
"""metrics.py [--json] [FOLDER...] - figures of the source, by folder: is it getting better or worse?

    code       lines that are neither blank nor comment
    comments   share of lines that begin with or belong to a comment
    files      number of files, and lines of the largest
    functions  number of functions, and of those longer than 60 lines
    asserts    run-time asserts per 1,000 lines of code
    one use    static functions that are named once beside their definition: each should earn its place by a name
               that explains, or be inlined
    long       lines of more than 120 columns

Without FOLDERs: every folder of src, then cli, bench and tests. Functions are found by clang-format's layout: a body
begins with a brace in the first column and ends with one. SPDX-License-Identifier: MIT"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
LONGEST = 60  # lines of a function
COLUMNS = 120
TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
BODY = re.compile(r"^\{\n(.*?)^\}", re.S | re.M)
STATIC = re.compile(r"^(?:static|V_FN|STEP_FN)\b[^;={]*?\b(\w+)\([^;{]*\)\n\{", re.M)
ASSERT = re.compile(r"(?<![\w])assert\(")
COUNTS = ("files", "lines", "code", "comments", "functions", "over", "asserts", "once", "long", "largest")


def without_comments(text):
    """The text with comments blanked, so that lines keep their numbers and strings their place."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m["comment"] else m[0], text)


def file_figures(path):
    text = path.read_text(encoding="utf-8")
    code = without_comments(text)
    lines, code_lines = text.splitlines(), code.splitlines()
    bodies = [body[1].count("\n") for body in BODY.finditer(code)]
    names = re.findall(r"\w+", code)
    return {
        "files": 1,
        "lines": len(lines),
        "code": sum(bool(line.strip()) for line in code_lines),
        "comments": sum(bool(a.strip()) and not b.strip() for a, b in zip(lines, code_lines)),
        "functions": len(bodies),
        "over": sum(length > LONGEST for length in bodies),
        "asserts": len(ASSERT.findall(code)),
        "once": sum(names.count(name) == 2 for name in STATIC.findall(code)),
        "long": sum(len(line) > COLUMNS for line in lines),
        "largest": len(lines),
    }


def folder_figures(folder):
    total = dict.fromkeys(COUNTS, 0)
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        for key, value in file_figures(path).items():
            total[key] = max(total[key], value) if key == "largest" else total[key] + value
    return total


def add(rows):
    total = dict.fromkeys(COUNTS, 0)
    for row in rows:
        for key, value in row.items():
            total[key] = max(total[key], value) if key == "largest" else total[key] + value
    return total


def main(words):
    as_json = "--json" in words
    named = [pathlib.Path(word) for word in words if word != "--json"]
    folders = named or sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()) + [
        ROOT / name for name in ("cli", "bench", "tests")]
    for folder in folders:
        if not folder.is_dir():
            sys.exit(f"metrics.py: {folder}: no such folder")
    rows = {str(f.resolve().relative_to(ROOT) if f.resolve().is_relative_to(ROOT) else f): folder_figures(f)
            for f in folders}
    if not named:
        rows["src in all"] = add(row for name, row in rows.items() if name.startswith("src/"))
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'folder':14}{'code':>8}{'comments':>10}{'files':>7}{'largest':>9}{'functions':>11}{'over ' + str(LONGEST):>9}"
          f"{'asserts/1000':>14}{'one use':>9}{'long':>6}")
    for name, r in rows.items():
        print(f"{name:14}{r['code']:8}{100 * r['comments'] / max(r['lines'], 1):9.1f}%{r['files']:7}{r['largest']:9}"
              f"{r['functions']:11}{r['over']:9}{1000 * r['asserts'] / max(r['code'], 1):14.2f}{r['once']:9}{r['long']:6}")


main(sys.argv[1:])
