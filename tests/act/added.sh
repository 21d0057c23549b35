#!/bin/sh
# added.sh - follows docs/add-an-activation.md on a copy of the tree: its two files, its line, a build, a call.
# SPDX-License-Identifier: MIT
# Usage: added.sh SOURCE_DIR BUILD_DIR. Only the rooms of libberlu are copied, and of the other activations only relu and
# smoothed, so that this takes seconds.
set -eu
source=$1
copy=$2/added
rm -rf "$copy"
mkdir -p "$copy"
cp -r "$source/include" "$copy/include"
for room in base smooth simd act; do mkdir -p "$copy/src/$room"; cp "$source/src/$room"/*.[ch] "$copy/src/$room/"; done

# The three steps, taken from the page itself.
page=$source/docs/add-an-activation.md
block() { awk -v n="$1" '/^```c$/ { i++; on = i == n; next } /^```$/ { on = 0 } on' "$page"; }
block 1 >"$copy/src/act/squareplus.h"
block 2 >"$copy/src/act/squareplus.c"
line=$(block 3)
sed -i "s/^ACT(smoothed)/$line\nACT(smoothed)/" "$copy/src/act/list.h"
sed -i '/^ACT(/{/^ACT(\(relu\|squareplus\|smoothed\))/!d}' "$copy/src/act/list.h"
grep -q '^ACT(squareplus)$' "$copy/src/act/list.h"

cat >"$copy/use.c" <<'END'
#include <berlu/berlu.h>
#include <math.h>
#include <stdio.h>
int main(void)
{
    float x[37], y[37], dy[37], dx[37];
    berlu_act *act;
    if (berlu_act_make(&act, "squareplus:width=2") != BERLU_OK)
        return puts(berlu_last_error()), 1;
    for (int i = 0; i < 37; i++)
        x[i] = (float)(i - 18) * 0.5f, dy[i] = 1;
    if (berlu_act_forward(act, BERLU_F32, y, x, 37) || berlu_act_backward(act, BERLU_F32, dx, dy, x, 37))
        return puts(berlu_last_error()), 1;
    for (int i = 0; i < 37; i++) {
        berlu_act_point at = berlu_act_at(act, x[i], NULL);
        if (!(fabs(y[i] - at.value) <= 4e-7 * at.value) || !(fabs(dx[i] - at.slope) <= 4e-7 * at.slope))
            return printf("f(%g) = %g, %g; want %g, %g\n", x[i], y[i], dx[i], at.value, at.slope), 1;
    }
    printf("%s on %s\n", berlu_act_spec(act), berlu_isa_name(berlu_act_isa(act)));
    berlu_act_free(act);
    return 0;
}
END
cd "$copy"
flags="-std=c11 -O1 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fopenmp -Isrc -Iinclude -DBERLU_VERSION=\"copy\""
names="relu squareplus smoothed"
case $(uname -m) in
x86_64) isas="scalar avx2 avx512" ;;
aarch64) isas="scalar neon" ;;
*) isas="scalar" ;;
esac
for name in $names; do
    for isa in $isas; do
        case $isa in
        scalar) extra=-DV_TARGET_SCALAR ;;
        avx2) extra="-mavx2 -mfma -mf16c" ;;
        avx512) extra="-mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mf16c" ;;
        neon) extra= ;;
        esac
        cc $flags $extra -DACT_FORMULA="\"act/$name.h\"" -DACT_TABLE=act_kernels_${name}_$isa -c src/act/kernel.c -o "kernel_${name}_$isa.o"
    done
    cc $flags -c "src/act/$name.c" -o "$name.o"
done
cc $flags use.c src/act/act.c src/act/spec.c src/act/dispatch.c src/act/call.c src/act/sums.c src/base/*.c src/smooth/*.c ./*.o -lm -o use
./use
