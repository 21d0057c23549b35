#!/bin/sh
# c.sh - every program of docs/c.md and README.md compiles without a warning and prints what the page says.
# SPDX-License-Identifier: MIT
set -eu
work=$BERLU_BUILD_DIR/test-data/docs-c
rm -rf "$work"
mkdir -p "$work"
python3 - "$BERLU_SOURCE_DIR" "$work" <<'PY'
import pathlib, re, sys
root, work = map(pathlib.Path, sys.argv[1:])
number = 0
for page in ("docs/c.md", "README.md"):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (root / page).read_text(), flags=re.S | re.M)
    for i, (kind, text) in enumerate(blocks):
        if kind != "c":
            continue
        number += 1
        (work / f"{number}.c").write_text(text)
        following = blocks[i + 1] if i + 1 < len(blocks) else ("", "")
        (work / f"{number}.says").write_text(following[1] if following[0] == "prints" else "")
assert number >= 6, number
PY
for source in "$work"/*.c; do
    program=${source%.c}
    $CC -std=c11 -Wall -Wextra -Werror $BERLU_LINK -I"$BERLU_SOURCE_DIR/include" "$source" "$BERLU_BUILD_DIR/src/libberlu_core.a" -fopenmp -lm -o "$program"
    "$program" >"$program.out"
    while read -r line; do
        grep -qF -- "$line" "$program.out" || { echo "$source does not print '$line' but:"; cat "$program.out"; exit 1; }
    done <"$program.says"
done
echo "$(ls "$work"/*.c | wc -l) programs"
