#!/bin/sh
# check_format.sh [--fix] - all C sources are formatted as .clang-format says. SPDX-License-Identifier: MIT
#
# Versions of clang-format differ, so one of them is the reference; without it the check is skipped (exit 77).
# Block comments are wrapped at 100 columns by wrap_comments.py, in what `wrapped` lists.
set -eu
cd "$(dirname "$0")/.."
wrapped="include/berlu bench tests/act tests/simd tests/smooth tests/base $(find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | grep -v train/settings.h | tr '\n' ' ')"
format=clang-format-14
if ! command -v $format >/dev/null 2>&1; then
    echo "$format is not installed: skipped" >&2
    exit 77
fi
sources() {
    find include src cli tests bench '(' -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' ')' -print0
}
if [ "${1:-}" = --fix ]; then
    python3 tools/wrap_comments.py $wrapped
    sources | xargs -0 $format -i
    exit 0
fi
too_long=$(python3 tools/wrap_comments.py --check $wrapped) || {
    echo "comments to be wrapped, by \`make format\` or by hand:" && echo "$too_long" && exit 1
}
faults=$(sources | xargs -0 -n 25 -P "$(nproc)" $format --dry-run 2>&1 |
    sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort | uniq -c)
[ -z "$faults" ] || { echo "files that \`make format\` would change:" && echo "$faults" && exit 1; }
