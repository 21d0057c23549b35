#!/bin/sh
# added.sh - follows docs/add-an-op.md on a copy of the tree: its blocks, a build, the tests of graphs; then a wrong sign.
# SPDX-License-Identifier: MIT
# Usage: added.sh SOURCE_DIR BUILD_DIR BLAS_LIBRARY. Compiles the layers that know ops; the rest comes from the archives of
# the build, which fit because the new ops are the last of the list.
set -eu
source=$1
build=$2
blas=$3
copy=$build/op_added
rm -rf "$copy"
mkdir -p "$copy/tests/graph" "$copy/objects"
cp -r "$source/include" "$copy/include"
for layer in base smooth simd act act/formulas act/cpu io graph passes engine cpu; do
    mkdir -p "$copy/src/$layer"
    for file in "$source/src/$layer"/*.[ch] "$source/src/$layer"/*.inc; do [ ! -e "$file" ] || cp "$file" "$copy/src/$layer/"; done
done
cp "$source"/tests/graph/cases.[ch] "$source/tests/graph/test_gradients.c" "$source/tests/graph/test_engine.c" "$copy/tests/graph/"

# Each block of the page goes where the page says; what is in a list is indented by two.
page=$source/docs/add-an-op.md
block() { awk -v n="$1" '/^ *```c$/ { i++; on = i == n; next } /^ *```$/ { on = 0 } on' "$page"; }
insert() { # FILE PATTERN TEXT: before the last line that matches
    line=$(grep -n "$2" "$1" | tail -n 1 | cut -d: -f1)
    printf '%s\n' "$3" >insert.txt
    sed -i "$((line - 1))r insert.txt" "$1"
}
cd "$copy"
insert src/graph/ops.inc 'clang-format on' "$(block 1)"
{ echo '#include "graph/op_rules.h"'; block 2; block 3; } >src/graph/op_clamp_rows.c
insert src/graph/op_rules.h '^#endif' "$(block 4)"
insert src/cpu/ref.c '^};' "$(block 5)"
insert src/cpu/cpu.c '\[OP_SCALE\]' "$(block 5 | sed 's/REF(\([a-z_]*\))/ref_f32_\1/')"
{ echo '#include "cpu/real.h"'; block 6; } >src/cpu/ref_clamp_rows.c
block 7 >>src/graph/build.c
insert src/graph/graph.h '^tensor build_scale' "$(block 7 | sed -n '1s/) .*/);/p')"
insert tests/graph/cases.c '^const graph_case graph_cases' "$(block 8)"
insert tests/graph/cases.c '{"identity", case_act' "$(block 9)"
rm insert.txt

compile="${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fopenmp -Isrc -Iinclude -Itests -I$source/tests -c"
commands() {
    for file in src/graph/*.c src/passes/*.c src/engine/*.c src/cpu/*.c tests/graph/*.c; do
        case $file in src/cpu/simd_scratch.c) ;; src/cpu/simd_* | src/cpu/gemm.c) continue ;; esac
        echo "$compile $file -o objects/$(echo "$file" | tr / _).o"
    done
    for file in src/cpu/ref*.c; do echo "$compile -DREAL_F64 $file -o objects/$(echo "$file" | tr / _)_f64.o"; done
}
commands | xargs -d '\n' -n 1 -P 2 sh -c
mkdir programs
mv objects/tests_graph_test_*.o programs/
link() { ${CC:-cc} "programs/tests_graph_test_$1.c.o" objects/*.o "$build/libberlu_engine.a" "$build/src/libberlu_core.a" "$blas" -fopenmp -lcmocka -lm -o "$2"; }
link gradients test_gradients
link engine test_engine
(cd "$build" && "$copy/test_gradients" && "$copy/test_engine")

# A wrong sign in the gradient is found, and the case and the parameter are named.
sed -i 's/: (double)dy\[at\]/: -(double)dy[at]/' src/cpu/ref_clamp_rows.c
sh -c "$compile -DREAL_F64 src/cpu/ref_clamp_rows.c -o objects/src_cpu_ref_clamp_rows.c_f64.o"
link gradients test_wrong
if (cd "$build" && "$copy/test_wrong") >wrong.txt 2>&1; then
    echo "a wrong gradient was not found" >&2
    exit 1
fi
grep -q 'clamp_rows.*limit\|limit.*clamp_rows' wrong.txt
