#!/bin/sh
# check_format.sh [--fix] - all C sources are formatted as .clang-format says. SPDX-License-Identifier: MIT
#
# One version of clang-format is the judge, because versions differ; without it the check is skipped (exit 77).
set -eu
cd "$(dirname "$0")/.."
format=clang-format-14
if ! command -v $format >/dev/null 2>&1; then
    echo "$format is not installed: skipped" >&2
    exit 77
fi
sources() {
    find include src cli tests bench '(' -name '*.[ch]' -o -name '*.cu' ')' -print0
}
if [ "${1:-}" = --fix ]; then
    sources | xargs -0 $format -i
    exit 0
fi
faults=$(sources | xargs -0 -n 25 -P "$(nproc)" $format --dry-run 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort | uniq -c)
[ -z "$faults" ] || { echo "places that \`make format\` would change:" && echo "$faults" && exit 1; }
