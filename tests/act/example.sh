#!/bin/sh
# example.sh - takes the example out of the head of <berlu/act.h>, compiles it as C and as C++, runs it, checks what it says.
# SPDX-License-Identifier: MIT
# Usage: example.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1
build=$2/example
mkdir -p "$build"
sed -n '/^ \*     #include/,/^ \*     }$/s/^ \*     //p' "$source/include/berlu/act.h" >"$build/example.c"
grep -q 'berlu_act_backward' "$build/example.c" || { echo "no example found"; exit 1; }
cc=${CC:-cc}
flags="-I$source/include $2/src/libberlu_core.a ${BERLU_OPENMP:--fopenmp} -lm"
if [ -n "${BERLU_SANITIZE:-}" ]; then flags="$flags -fsanitize=$BERLU_SANITIZE"; fi
$cc -std=c11 -Wall -Wextra -Werror "$build/example.c" $flags -o "$build/example"
$cc -x c++ -Wall -Wextra -Werror -I"$source/include" -c "$build/example.c" -o "$build/example_cc.o"
$cc "$build/example_cc.o" $flags -o "$build/example_cc"
for program in example example_cc; do
    "$build/$program" >"$build/said"
    cat "$build/said"
    grep -q "f(-1) = -0.01, f' = 0.01" "$build/said"
    grep -q "f(1) = 1, f' = 1" "$build/said"
done
