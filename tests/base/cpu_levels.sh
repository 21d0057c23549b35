#!/bin/sh
# cpu_levels.sh - what cpu.c reads from the processor is the same whatever compiles it, and for whatever: some of it goes past
# the compiler. SPDX-License-Identifier: MIT
set -eu
work=$BERLU_BUILD_DIR/test-data/cpu_levels
rm -rf "$work"
mkdir -p "$work"
cat >"$work/use.c" <<'END'
#include "base/cpu.h"
#include <stdio.h>

int main(void)
{
    char model[64];
    cpu_caches c = cpu_caches_read();
    printf("%zu %zu %u %d %d %s", c.l2, c.l3, c.l3_threads, cpu_has(CPU_AVX2), cpu_has(CPU_AVX512),
           cpu_model(model, sizeof model));
    return 0;
}
END
cd "$BERLU_SOURCE_DIR"
count=0 first=
for compiler in gcc clang-14 "$CC"; do
    command -v "$compiler" >/dev/null || continue
    for level in -O0 -O1 -O2 -O3 -Os; do
        "$compiler" $level -std=c11 -D_GNU_SOURCE -DBERLU_VERSION='"0"' -Isrc -Iinclude -o "$work/use" "$work/use.c" src/base/cpu.c src/base/status.c
        found=$(timeout 60 "$work/use") || { echo "$compiler $level: the program ended with $?"; exit 1; }
        [ "$found" = "${first:=$found}" ] || { echo "$compiler $level: '$found' instead of '$first'"; exit 1; }
        count=$((count + 1))
    done
done
echo "$count programs found $first"
