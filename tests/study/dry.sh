#!/bin/sh
# dry.sh BERLU STUDIES FOLDER - every study file of the project is right, whatever this machine lacks. SPDX-License-Identifier: MIT
set -eu
berlu=$1 studies=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
count=0
for file in "$studies"/*.yaml; do
    BERLU_DATA=$folder/nothing "$berlu" study run "$file" --dry-run >plan 2>message || { cat message; exit 1; }
    grep -q "^$(basename "$file" .yaml): " plan # a study is called as its file
    count=$((count + 1))
done
[ -z "$(ls -d runs 2>/dev/null)" ] # a plan leaves nothing behind
# Data that is here gives keys to any study: the built-in set in the place of the real one.
"$berlu" study run "$studies/deit_distilled.yaml" --set data=synthetic --set synthetic_images=64 --set batch=16 --set device=cpu --dry-run | grep -q "34 runs: .* 34 waiting"
echo "$count study files"
