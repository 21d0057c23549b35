#!/bin/sh
# neon.sh SOURCE BUILD - cross-compiles the lanes for AArch64 and runs check_simd under the emulator. SPDX-License-Identifier: MIT
# Exit 77 (skipped) where the compiler or the emulator is missing.
set -e
source=$1 build=$2
. "$source/tests/support/neon.sh"
mkdir -p "$build"
flags="$flags -O2"
objects=
for file in "$source"/src/cpu/simd_*.c; do
    name=$(basename "$file" .c)
    [ "$name" = simd_scratch ] && continue # not compiled per instruction set
    "$compiler" $flags -DSIMD_ISA=neon -c "$file" -o "$build/${name}_neon.o"
    "$compiler" $flags -DSIMD_ISA=scalar -DV_TARGET_SCALAR -c "$file" -o "$build/${name}_scalar.o"
    objects="$objects $build/${name}_neon.o $build/${name}_scalar.o"
done
"$compiler" $flags -static "$source/tests/cpu/check_simd.c" "$source/src/cpu/simd_scratch.c" $objects "$source/src/base/cpu.c" \
    "$source/src/base/status.c" -lm -o "$build/check_simd"
"$emulator" "$build/check_simd"
