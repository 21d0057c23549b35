#!/usr/bin/env python3
"""coverage.py BUILD - which lines of src/ and cli/ the tests reached. SPDX-License-Identifier: MIT

Reads gcov's JSON for every object of a BERLU_COVERAGE build, joins the counts per source line (kernel.c is compiled many
times) and prints a table by folder; the full list goes to BUILD/coverage.txt."""
import collections, json, os, pathlib, subprocess, sys

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parent.parent
lines = collections.defaultdict(dict)  # file -> line -> count
for data in sorted(build.rglob("*.gcda")):
    out = subprocess.run(["gcov", "--json-format", "--stdout", str(data)], cwd=build, capture_output=True, text=True).stdout
    for text in out.splitlines():
        for file in json.loads(text)["files"]:
            path = pathlib.Path(os.path.normpath(build / file["file"]))
            if not path.is_relative_to(root) or path.relative_to(root).parts[0] not in ("src", "cli"):
                continue
            counts = lines[path.relative_to(root)]
            for line in file["lines"]:
                counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]

folders = collections.defaultdict(lambda: [0, 0])
with open(build / "coverage.txt", "w") as report:
    for path, counts in sorted(lines.items()):
        missed = sorted(n for n, c in counts.items() if c == 0)
        for key in (str(path.parent), "all"):
            folders[key][0] += len(counts) - len(missed)
            folders[key][1] += len(counts)
        share = 100 * (1 - len(missed) / max(1, len(counts)))
        print(f"{share:5.1f}%  {path}  not reached: {' '.join(map(str, missed)) or '-'}", file=report)
for folder, (reached, total) in sorted(folders.items()):
    print(f"{100 * reached / max(1, total):5.1f}%  {reached:6d} of {total:6d} lines  {folder}")
print(f"line by line: {build / 'coverage.txt'}")
