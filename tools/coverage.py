#!/usr/bin/env python3
"""coverage.py BUILD [FLOOR] - which lines and branches of src/ and cli/ the tests reached. SPDX-License-Identifier: MIT

Reads gcov's JSON for every object of a BERLU_COVERAGE build, joins the counts per source line and branch (kernel.c is
compiled many times; a branch counts as reached when any of its compilations took it) and prints a table by folder; the
full list goes to BUILD/coverage.txt. FLOOR (tools/coverage_floor.txt) holds the figures of the last release: one below
them ends with 1."""
import collections, json, os, pathlib, subprocess, sys

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parent.parent
lines = collections.defaultdict(dict)     # file -> line -> count
branches = collections.defaultdict(dict)  # file -> (line, number) -> count


def take(file):
    path = pathlib.Path(os.path.normpath(build / file["file"]))
    if not path.is_relative_to(root) or path.relative_to(root).parts[0] not in ("src", "cli"):
        return
    path = path.relative_to(root)
    for line in file["lines"]:
        number = line["line_number"]
        lines[path][number] = lines[path].get(number, 0) + line["count"]
        for i, branch in enumerate(line["branches"]):
            branches[path][number, i] = branches[path].get((number, i), 0) + branch["count"]


for data in sorted(build.rglob("*.gcda")):
    out = subprocess.run(["gcov", "-b", "--json-format", "--stdout", str(data)], cwd=build, capture_output=True, text=True).stdout
    for text in out.splitlines():
        for source in json.loads(text)["files"]:
            take(source)


def share(reached, total):
    return 100 * reached / max(1, total)


folders = collections.defaultdict(lambda: [0, 0, 0, 0])  # lines reached, lines, branches taken, branches
with open(build / "coverage.txt", "w") as report:
    for path, counts in sorted(lines.items()):
        missed = sorted(n for n, c in counts.items() if c == 0)
        half = sorted({n for (n, _), c in branches[path].items() if c == 0} - set(missed))
        taken = sum(c > 0 for c in branches[path].values())
        for key in (str(path.parent), "all"):
            for i, value in enumerate((len(counts) - len(missed), len(counts), taken, len(branches[path]))):
                folders[key][i] += value
        print(f"{share(len(counts) - len(missed), len(counts)):5.1f}% {share(taken, len(branches[path])):5.1f}%  {path}  "
              f"not reached: {' '.join(map(str, missed)) or '-'}  one way only: {' '.join(map(str, half)) or '-'}", file=report)
print(" lines                   branches                folder")
for folder, (reached, total, taken, ways) in sorted(folders.items()):
    print(f"{share(reached, total):5.1f}% {reached:6d} of {total:6d}  {share(taken, ways):5.1f}% {taken:6d} of {ways:6d}  {folder}")
print(f"line by line: {build / 'coverage.txt'}")

now = {"lines": share(*folders["all"][:2]), "branches": share(*folders["all"][2:])}
below = 0
if len(sys.argv) > 2:
    for row in pathlib.Path(sys.argv[2]).read_text().splitlines():
        if row and not row.startswith("#"):
            what, figure = row.split()
            if now[what] < float(figure):
                print(f"{what}: {now[what]:.1f} % is below the {figure} % of the last release ({sys.argv[2]})")
                below = 1
sys.exit(below)
