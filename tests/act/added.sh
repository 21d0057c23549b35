#!/bin/sh
# added.sh - follows docs/add-an-activation.md on a copy of the tree: its two files, its line, a build, its tests.
# SPDX-License-Identifier: MIT
# Usage: added.sh SOURCE_DIR BUILD_DIR. Only the layers of libberlu are copied, and of the other activations only
# smoothed, which every build has, so that this takes seconds; tests that name other activations are left out by a filter.
set -eu
source=$1
copy=$2/added
rm -rf "$copy"
mkdir -p "$copy/tests/act"
cp -r "$source/include" "$copy/include"
for layer in base smooth simd act act/formulas act/cpu; do mkdir -p "$copy/src/$layer"; cp "$source/src/$layer"/*.[ch] "$copy/src/$layer/"; done
for file in inputs.c inputs.h reference.c reference.h check.c test_accuracy.c test_special.c; do
    cp "$source/tests/act/$file" "$copy/tests/act/$file"
done

# The three steps, taken from the page itself; and the ends of the parameter's range among the tested specs, as it says.
page=$source/docs/add-an-activation.md
block() { awk -v n="$1" '/^```c$/ { i++; on = i == n; next } /^```$/ { on = 0 } on' "$page"; }
block 1 >"$copy/src/act/formulas/squareplus.h"
block 2 >"$copy/src/act/formulas/squareplus.c"
line=$(block 3)
sed -i "s/^ACT(smoothed)/$line\nACT(smoothed)/" "$copy/src/act/list.h"
sed -i '/^ACT(/{/^ACT(\(squareplus\|smoothed\))/!d}' "$copy/src/act/list.h"
sed -i 's/^    NULL,$/    "squareplus:width=0x1p-20",\n    "squareplus:width=0x1p20",\n    NULL,/' "$copy/tests/act/inputs.c"
grep -q '^ACT(squareplus)$' "$copy/src/act/list.h"
grep -q 'squareplus:width=0x1p20' "$copy/tests/act/inputs.c"

cd "$copy"
cat >filter.c <<'END'
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
int main(void)
{
    int test_main(void);
    FILTER;
    return test_main();
}
END

case $(uname -m) in
x86_64) isas="scalar avx2 avx512" ;;
aarch64) isas="scalar neon" ;;
*) isas="scalar" ;;
esac
compile="cc -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fopenmp -Isrc -Iinclude -Itests -DBERLU_VERSION='\"copy\"' -c"
commands() { # one per line
    for name in squareplus smoothed; do
        for isa in $isas; do
            case $isa in
            scalar) extra=-DV_TARGET_SCALAR ;;
            avx2) extra="-mavx2 -mfma -mf16c" ;;
            avx512) extra="-mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mf16c" ;;
            neon) extra= ;;
            esac
            echo "$compile $extra -DACT_FORMULA='\"act/formulas/$name.h\"' -DACT_TABLE=act_kernels_${name}_$isa src/act/cpu/kernel.c -o kernel_${name}_$isa.o"
        done
        echo "$compile src/act/formulas/$name.c -o $name.o"
    done
    for file in src/act/act.c src/act/spec.c src/act/smooth_registry.c src/act/guess.c src/act/cpu/dispatch.c src/act/cpu/stream.c src/act/call.c \
        src/act/simple.c src/act/planes.c src/act/eval_f64.c \
        src/base/*.c src/smooth/*.c tests/act/inputs.c; do
        echo "$compile $file -o $(basename "$file" .c).o"
    done
    mkdir programs
    echo "$compile tests/act/check.c -o programs/check.o"
    echo "$compile -DREFERENCE_NO_MPFR tests/act/reference.c -o programs/reference.o"
    for test in accuracy special; do
        echo "$compile -Dmain=test_main -Wno-missing-prototypes tests/act/test_$test.c -o programs/$test.o"
    done
    echo "$compile -DFILTER='cmocka_set_skip_filter(\"scaled_*\")' filter.c -o programs/accuracy_filter.o"
    echo "$compile -DFILTER='cmocka_set_test_filter(\"*nan*\")' filter.c -o programs/special_filter.o"
}
commands | xargs -d '\n' -n 1 -P 2 sh -c
cc -fopenmp programs/check.o ./*.o -lm -o check
cc -fopenmp programs/accuracy*.o programs/reference.o ./*.o -lcmocka -lm -o accuracy
cc -fopenmp programs/special*.o ./*.o -lcmocka -lm -o special
./check squareplus
./accuracy
./special
