#!/bin/sh
# example.sh - takes the example out of the head of <berlu/smooth.h>, compiles it as C and as C++, runs it, checks what it says.
# SPDX-License-Identifier: MIT
# Usage: example.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1
build=$2/example_smooth
mkdir -p "$build"
sed -n '/^ \*     #include/,/^ \*     }$/s/^ \*     \{0,1\}//p' "$source/include/berlu/smooth.h" >"$build/example.c"
grep -q 'berlu_smooth_make' "$build/example.c" || { echo "no example found"; exit 1; }
flags="-I$source/include $2/src/libberlu_core.a -fopenmp -lm"
if [ -n "${BERLU_SANITIZE:-}" ]; then flags="$flags -fsanitize=$BERLU_SANITIZE"; fi
cc -std=c11 -Wall -Wextra -Werror "$build/example.c" $flags -o "$build/example"
cp "$build/example.c" "$build/example.cc"
c++ -Wall -Wextra -Werror "$build/example.cc" $flags -o "$build/example_cc"
for program in example example_cc; do
    "$build/$program" >"$build/said"
    cat "$build/said"
    grep -q "f(0) = 0.09375, f'(0) = 0.5" "$build/said"
    grep -q "2 continuous derivatives, Lipschitz constant 1, never further than 0.09375 from relu6" "$build/said"
done
