#!/bin/sh
# neon.sh - builds the activations for aarch64, runs check.c under qemu, and compares its hash with this machine's.
# SPDX-License-Identifier: MIT
# Usage: neon.sh SOURCE_DIR BUILD_DIR CHECK_PROGRAM. Exits with 77 (skipped) where compiler or emulator are missing.
set -eu
source=$1
build=$2/neon
check=$3
. "$source/tests/support/neon.sh"
# Six of them and the smoothed ones, which are in every build: an emulator is slow, and every one is compiled by the
# same rule. NEON_ACTS="..." names others (prelu needs leaky_relu), NEON_ACTS=all takes every name of the list (the
# test act_neon_all, label slow).
names=${NEON_ACTS:-berlu gelu silu elu leaky_relu prelu}
if [ "$names" = all ]; then
    names=$(sed -n 's/^ACT(\([a-z0-9_]*\)).*/\1/p' "$source/src/act/list.h" | grep -vx smoothed)
    build=$2/neon_all
fi
mkdir -p "$build"
flags="$flags -O1 -fopenmp"
list=$build/include/act
mkdir -p "$list"
for name in $names smoothed; do echo "ACT($name)"; done >"$list/list.h.new"
cmp -s "$list/list.h.new" "$list/list.h" || mv "$list/list.h.new" "$list/list.h"

objects=
compile() { # OBJECT SOURCE FLAGS...: only what is older than any source
    object=$build/$1
    file=$2
    shift 2
    objects="$objects $object"
    if [ -e "$object" ] && [ -z "$(find "$source/src/act" "$source/src/simd" "$source/src/base" "$source/tests/act" "$file" \
            -newer "$object" -print -quit)" ]; then
        return
    fi
    $compiler -I"$build/include" $flags "$@" -c "$file" -o "$object"
}
for name in $names smoothed; do
    compile "$name.o" "$source/src/act/formulas/$name.c"
    compile "kernel_${name}_neon.o" "$source/src/act/cpu/kernel.c" -DACT_FORMULA="\"act/formulas/$name.h\"" -DACT_TABLE=act_kernels_${name}_neon
    compile "kernel_${name}_scalar.o" "$source/src/act/cpu/kernel.c" -DV_TARGET_SCALAR -DACT_FORMULA="\"act/formulas/$name.h\"" \
        -DACT_TABLE=act_kernels_${name}_scalar
done
for file in "$source"/src/act/act.c "$source"/src/act/spec.c "$source"/src/act/smooth_registry.c "$source"/src/act/guess.c \
    "$source"/src/act/cpu/dispatch.c "$source"/src/act/cpu/stream.c "$source"/src/act/call.c "$source"/src/act/simple.c "$source"/src/act/planes.c "$source"/src/act/eval_f64.c \
    "$source"/src/base/*.c "$source"/src/smooth/*.c "$source"/tests/act/check.c "$source"/tests/act/inputs.c; do
    compile "$(basename "$file" .c).o" "$file"
done
$compiler -static -fopenmp $objects -o "$build/check" -lm 2>"$build/link.txt" || { cat "$build/link.txt"; exit 1; }

for name in $names smooth; do # one by one: the order of the two lists differs, and the hash knows order
    here=$("$check" --quick "$name" | tail -1)
    there=$("$emulator" "$build/check" --quick "$name" | tail -1)
    echo "$name here:  $here"
    echo "$name there: $there"
    [ "${here##* }" = "${there##* }" ]
done
