#!/bin/sh
# neon.sh SOURCE BUILD - cross-compiles check_words for AArch64 and runs it under the emulator.
# SPDX-License-Identifier: MIT
# Exit 77 (skipped) where the compiler or the emulator is missing.
set -e
source=$1 build=$2
. "$source/tests/support/neon.sh"
mkdir -p "$build"
flags="$flags -O2"
"$compiler" $flags -DWORDS=words_neon -c "$source/tests/simd/words.c" -o "$build/words_neon.o"
"$compiler" $flags -DWORDS=words_scalar -DV_TARGET_SCALAR -c "$source/tests/simd/words.c" -o "$build/words_scalar.o"
"$compiler" $flags -static "$source/tests/simd/check_words.c" "$build/words_neon.o" "$build/words_scalar.o" \
    "$source/src/base/half.c" "$source/src/base/cpu.c" "$source/src/base/status.c" -lm -o "$build/check_words"
"$emulator" "$build/check_words"
