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
mode='--dry-run --Werror'
[ "${1:-}" != --fix ] || mode=-i
find include src cli tests bench $([ ! -d examples ] || echo examples) '(' -name '*.[ch]' -o -name '*.cu' ')' -print0 |
    xargs -0 -n 40 -P "$(nproc)" $format $mode
