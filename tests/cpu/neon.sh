#!/bin/sh
# neon.sh SOURCE BUILD - cross-compiles the lanes for AArch64 and runs check_lanes under the emulator. SPDX-License-Identifier: MIT
# Exit 77 (skipped) where the compiler or the emulator is missing.
set -e
source=$1 build=$2
compiler=$(command -v aarch64-linux-gnu-gcc) || { echo "skipped: no aarch64-linux-gnu-gcc"; exit 77; }
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || { echo "skipped: no qemu-aarch64"; exit 77; }
mkdir -p "$build"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wshadow -ffp-contract=off -fno-math-errno -I$source/src -I$source/include -DBERLU_VERSION=\"neon\""
objects=
for file in "$source"/src/cpu/lanes.c "$source"/src/cpu/lanes_[a-z]*.c; do
    name=$(basename "$file" .c)
    [ "$name" = lanes_pick ] && continue # chooses among tables; not compiled per instruction set
    "$compiler" $flags -DLANES_ISA=neon -c "$file" -o "$build/${name}_neon.o"
    "$compiler" $flags -DLANES_ISA=scalar -DV_TARGET_SCALAR -c "$file" -o "$build/${name}_scalar.o"
    objects="$objects $build/${name}_neon.o $build/${name}_scalar.o"
done
"$compiler" $flags -static "$source/tests/cpu/check_lanes.c" "$source/src/cpu/lanes_pick.c" $objects "$source/src/base/cpu.c" \
    "$source/src/base/status.c" -lm -o "$build/check_lanes"
"$emulator" "$build/check_lanes"
