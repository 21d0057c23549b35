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
# Expected time: from two seconds of training before any run is done.
"$berlu" study run "$studies/quick.yaml" --dry-run | grep -q "^needs: .* about [0-9]* s a run, .* min in all at .*two seconds"
"$berlu" study run "$studies/quick.yaml" --dry-run --json | grep -q '"expected_seconds": [0-9]*[1-9].*"runs_without_estimate": 0'
[ -z "$(ls -d runs 2>/dev/null)" ]

# What this machine lacks, every cell of it with its place: notes of a plan, and a refusal before anything runs.
cat >lacks.yaml <<END
study: lacks
base: {model: vit_tiny, act: relu, epochs: 1, recipe: paper}
axes:
  how:
    - {label: a, data: "cifar10:$folder/nowhere"}
    - {label: b, data: "folder:$folder/nowhere"}
    - {label: c, data: synthetic, synthetic_images: 1048576, batch: 1048576}
seeds: 1
END
"$berlu" study run lacks.yaml --dry-run >plan 2>message
[ "$(grep -c "^note: lacks.yaml:[567]:" message)" = 3 ] && grep -q "^lacks: 3 runs" plan
code=0
"$berlu" study run lacks.yaml 2>message || code=$?
[ $code = 2 ] && [ "$(grep -c "lacks.yaml:[567]:" message)" = 3 ] && [ ! -e runs ]
echo "$count study files"
