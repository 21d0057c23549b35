#!/bin/sh
# check_atomics.sh - no kernel adds by atomics: sums have a fixed order. SPDX-License-Identifier: MIT
#
# A run twice gives the same bytes because of it (src/cuda/cuda.h). Looks for CUDA's functions and for instructions in
# inline PTX; words of comments do not count.
set -eu
cd "$(dirname "$0")/.."
found=$(grep -nE 'atomic[A-Z][A-Za-z]*\(|[^a-z_]atomic_ref|"([^"]*[^a-z])?(atom|red|multimem)\.[a-z]' \
    $(find src bench tests include -name '*.cu' -o -name '*.cuh') || true)
[ -z "$found" ] || { echo "atomics, whose order differs from run to run:" && echo "$found" && exit 1; }
