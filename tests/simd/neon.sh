#!/bin/sh
# neon.sh SOURCE BUILD - cross-compiles check_words for AArch64 and runs it under the emulator. SPDX-License-Identifier: MIT
# Exit 77 (skipped) where the compiler or the emulator is missing.
set -e
source=$1 build=$2
compiler=$(command -v aarch64-linux-gnu-gcc) || { echo "skipped: no aarch64-linux-gnu-gcc"; exit 77; }
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || { echo "skipped: no qemu-aarch64"; exit 77; }
mkdir -p "$build"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -I$source/src -I$source/include -I$source/tests -DBERLU_VERSION=\"neon\""
"$compiler" $flags -DWORDS=words_neon -c "$source/tests/simd/words.c" -o "$build/words_neon.o"
"$compiler" $flags -DWORDS=words_scalar -DV_TARGET_SCALAR -c "$source/tests/simd/words.c" -o "$build/words_scalar.o"
"$compiler" $flags -static "$source/tests/simd/check_words.c" "$build/words_neon.o" "$build/words_scalar.o" \
    "$source/src/base/half.c" "$source/src/base/cpu.c" "$source/src/base/status.c" -lm -o "$build/check_words"
"$emulator" "$build/check_words"
