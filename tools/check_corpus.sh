#!/bin/sh
# check_corpus.sh - the fuzz corpus of the tree stays small: under 2 MB, no file over 64 KB. SPDX-License-Identifier: MIT
set -eu
bytes=$(cat tests/fuzz/corpus/*/* | wc -c)
large=$(find tests/fuzz/corpus -type f -size +64k)
echo "$bytes bytes in $(find tests/fuzz/corpus -type f | wc -l) files"
[ "$bytes" -lt 2000000 ] && [ -z "$large" ] || { echo "too large: $large"; exit 1; }
