#!/bin/sh
# fuzz.sh BUILD SECONDS - runs every fuzz target of a BERLU_FUZZ build. SPDX-License-Identifier: MIT
#
# What a target finds interesting is kept in BUILD/corpus/NAME for the next time; the seeds of tests/fuzz/corpus stay as
# they are. A finding stops everything and leaves its input in BUILD/findings.
set -eu
build=$1 seconds=$2
mkdir -p "$build/findings"
for target in "$build"/fuzz/fuzz_*; do
    name=${target##*/fuzz_}
    seeds=tests/fuzz/corpus/$name
    mkdir -p "$build/corpus/$name"
    [ -d "$seeds" ] || seeds=
    echo "== $name, $seconds s"
    OMP_NUM_THREADS=1 "$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" $seeds 2>"$build/findings/$name.log" ||
        { tail -40 "$build/findings/$name.log" >&2; exit 1; }
    grep -E 'number_of_executed|new_units_added' "$build/findings/$name.log"
done
echo "no findings"
