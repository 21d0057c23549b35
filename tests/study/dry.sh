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
# The hypothesis has no run of its own: every key is one of the three studies whose cells it compares.
keys() {
    "$berlu" study list "$studies/$1.yaml" --commands --set data=synthetic --set synthetic_images=64 --set batch=16 --set device=cpu |
        sed 's/.*runs\/\([0-9a-f]*\) --resume/\1/' | sort -u
}
keys hypothesis >asked
for study in vit_cifar10 epsilon start; do keys $study; done | sort -u >had
[ "$(wc -l <asked)" = 50 ]
[ -z "$(comm -23 asked had)" ]
# Expected time: from two seconds of training before any run is done.
"$berlu" study run "$studies/quick.yaml" --dry-run | grep -q "^needs: .* about [0-9]* s a run, .* min in all at .*two seconds"
"$berlu" study run "$studies/quick.yaml" --dry-run --json | grep -q '"expected_seconds": [0-9]*[1-9].*"runs_without_estimate": 0'
[ -z "$(ls -d runs 2>/dev/null)" ]
# An empty text takes back what base says; `berlu train` takes one for a variable that is not set, so commands have none.
"$berlu" study list "$studies/quick.yaml" --set init= --commands >commands
[ "$(wc -l <commands)" = 24 ]
[ "$(grep -c -e "--init ''" commands)" = 0 ]
sh -c "$(head -n 1 commands) --dry-run" 2>message || { cat message; exit 1; }

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
[ "$(grep -c "^note: lacks.yaml:[567]:" message)" = 3 ]
grep -q "^lacks: 3 runs" plan
code=0
"$berlu" study run lacks.yaml 2>message || code=$?
[ $code = 2 ]
[ "$(grep -c "lacks.yaml:[567]:" message)" = 3 ]
[ ! -e runs ]

# A list of problems longer than any message is printed whole, and what training refuses has a place too.
{ echo "study: long"; echo "base: {model: vit_micro, data: synthetic}"; echo "axes:"; echo "  act:"
  for i in $(seq 30); do echo "    - no_such_activation_$i"; done; echo "seeds: 1"; } >long.yaml
code=0
"$berlu" study run long.yaml 2>message || code=$?
[ $code = 2 ]
[ "$(grep -c "long.yaml:[0-9]*:7: activation" message)" = 30 ]
grep -q "30 problems" message
echo "study: late
base: {model: vit_micro, act: relu, data: synthetic, synthetic_images: 64, batch: 32}
axes: {how: [{label: a, train_images: 4096}, {label: b, epochs: 2, warmup: 2}]}
seeds: 1" >late.yaml
code=0
"$berlu" study run late.yaml 2>message || code=$?
[ $code = 2 ]
grep -q "late.yaml:3:39: train_images: 4096" message
grep -q "late.yaml:3:46: schedule: " message
[ ! -e runs ]

# A folder stands for its one study.
echo "study: tiny
base: {model: linear, image_size: 8, data: synthetic, synthetic_images: 64, batch: 16, epochs: 1, warmup: 0, lr: 1e-3}
seeds: 1" >tiny.yaml
"$berlu" study run tiny.yaml --dir here --quiet >/dev/null
"$berlu" study status here | grep -q "^tiny: 1 runs: 1 done"
[ "$("$berlu" study list here --commands | wc -l)" = 0 ]
# One JSON object, of runs or of the words of commands.
one() { # FILTER ARGUMENTS...: `study list --json` is an object of which the Python expression is true
    filter=$1
    shift
    "$berlu" study list "$@" --json >listed
    python3 -c "import json, sys; o = json.load(open('listed')); sys.exit(not ($filter))" || { cat listed; exit 1; }
}
one "[(r['state'], r['seed'], len(r['key'])) for r in o['runs']] == [('done', 0, 16)] and o['study'] == 'tiny'" here
one "o['commands'] == [] and o['later'] == 0" here --commands
one "len(o['commands']) == 1 and o['commands'][0][1] == 'train' and '--resume' in o['commands'][0]" tiny.yaml --dir none --commands
code=0
"$berlu" study status "$folder" 2>message || code=$?
[ $code = 2 ]
grep -q "no study.db" message
echo "$count study files"
