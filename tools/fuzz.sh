#!/bin/sh
# fuzz.sh BUILD SECONDS - runs every fuzz target of a BERLU_FUZZ build and keeps what it found. SPDX-License-Identifier: MIT
#
# Seeds with names were put into tests/fuzz/corpus/NAME by people and stay as they are; files named by their SHA-1 were
# found by libFuzzer. After each target the found ones, old and new, are minimised to those that reach something of their
# own, smallest first within KEEP bytes a target (2 MB over all of them), and replace the old ones: commit them. A finding
# (crash, leak, hang) stops everything, leaves its input in BUILD/findings and the corpus as it was.
set -eu
build=$1 seconds=$2
KEEP=$((1900000 / $(ls "$build"/fuzz | wc -l)))
hash='[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*'
export OMP_NUM_THREADS=1
limits='-max_len=65536 -timeout=10 -rss_limit_mb=2048'
mkdir -p "$build/findings"

# is_found NAME: whether a file's name is a SHA-1.
is_found() {
    case $1 in $hash) [ ${#1} = 40 ] ;; *) false ;; esac
}

# keep TARGET SEEDS FOUND WORK - replaces the found files of SEEDS by the minimised union of them and FOUND.
keep() {
    rm -rf "$4" && mkdir -p "$4"
    for file in "$2"/*; do is_found "${file##*/}" || cp "$file" "$4/"; done
    "$1" -merge=1 $limits "$4" "$2" "$3" 2>"$4.log" || { tail -5 "$4.log" >&2; return 1; }
    for file in "$2"/*; do ! is_found "${file##*/}" || rm "$file"; done
    used=0
    for file in $(ls -rS "$4"); do
        is_found "$file" || continue
        used=$((used + $(wc -c <"$4/$file")))
        [ $used -le $KEEP ] || break
        cp "$4/$file" "$2/"
    done
}

for target in "$build"/fuzz/fuzz_*; do
    name=${target##*/fuzz_}
    seeds=tests/fuzz/corpus/$name found=$build/corpus/$name
    mkdir -p "$found" "$seeds"
    echo "== $name, $seconds s"
    "$target" -max_total_time="$seconds" $limits -print_final_stats=1 -artifact_prefix="$build/findings/$name-" \
        "$found" "$seeds" 2>"$build/findings/$name.log" || { tail -40 "$build/findings/$name.log" >&2; exit 1; }
    grep -E 'number_of_executed|new_units_added' "$build/findings/$name.log"
    keep "$target" "$seeds" "$found" "$build/merge/$name"
    echo "$(ls "$seeds" | wc -l) files in $seeds"
done
echo "no findings; the corpus has $(cat tests/fuzz/corpus/*/* | wc -c) bytes"
