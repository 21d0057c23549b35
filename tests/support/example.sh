#!/bin/sh
# example.sh - takes the example out of the head of a public header, compiles it as C and as C++, runs it, checks what it says.
# SPDX-License-Identifier: MIT
# Usage: example.sh HEADER SENTENCE...      (<berlu/HEADER.h>; every SENTENCE must stand in the output)
set -eu
header=$1
shift
work=$BERLU_BUILD_DIR/test-data/example_$header
rm -rf "$work"
mkdir -p "$work"
sed -n '/^ \*     #include/,/^ \*     }$/s/^ \*     \{0,1\}//p' "$BERLU_SOURCE_DIR/include/berlu/$header.h" >"$work/example.c"
grep -q 'int main' "$work/example.c" || { echo "<berlu/$header.h> has no example"; exit 1; }
compile="$CC -Wall -Wextra -Werror -I$BERLU_SOURCE_DIR/include -c $work/example.c"
$compile -std=c11 -o "$work/as_c.o"
$compile -x c++ -o "$work/as_cc.o"
for language in c cc; do
    $CC "$work/as_$language.o" "$BERLU_BUILD_DIR/src/libberlu_core.a" $BERLU_LINK -lm -o "$work/as_$language"
    "$work/as_$language" >"$work/said"
    cat "$work/said"
    for sentence in "$@"; do
        grep -qF -- "$sentence" "$work/said" || { echo "it does not say: $sentence"; exit 1; }
    done
done
