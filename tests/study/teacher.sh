#!/bin/sh
# teacher.sh BERLU FOLDER - a run may need a run: the teacher is trained first, once. SPDX-License-Identifier: MIT
set -eu
berlu=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cat >study.yaml <<'END'
study: taught
base: {model: deit_micro, patch: 16, data: synthetic, synthetic_images: 64, epochs: 1, warmup: 0, batch: 16, eval_batch: 32, distill: hard,
       teacher: {model: vit_micro, patch: 16, act: gelu, epochs: 1, warmup: 0, batch: 16}}
axes: {act: [relu, berlu]}
seeds: 2
contrasts: [{name: c, a: {act: berlu}, b: {act: relu}}]
END
all="--threads 1"
"$berlu" study run study.yaml --dir whole --dry-run | grep -q "taught: 5 runs: 0 done"
# Students have no command before there is a teacher; then four have.
[ "$("$berlu" study list study.yaml --dir listed --commands $all 2>message | wc -l)" = 1 ]
grep -q "4 runs wait for their teacher" message
"$berlu" study list study.yaml --dir listed --commands $all 2>message | sh >/dev/null 2>&1
[ "$("$berlu" study list study.yaml --dir listed --commands $all | grep -c -- --teacher)" = 4 ]
"$berlu" study list study.yaml --dir listed --commands $all | sh >/dev/null 2>&1
"$berlu" study rebuild study.yaml --dir listed | grep -q "5 done"
"$berlu" study run study.yaml --dir whole --jobs 2 --slim --quiet $all | grep -q "5 done"
for folder in listed whole; do
    "$berlu" study report $folder --out page-$folder --format csv >/dev/null
    cut -d, -f1-8 page-$folder/runs.csv >runs-$folder
done
cmp runs-listed runs-whole
[ "$(ls -d whole/runs/*/checkpoints | wc -l)" = 1 ] # the teacher keeps its weights
grep -q "^taught,teacher,0," runs-whole
"$berlu" study verify study.yaml --dir whole --sample 5 --quiet $all >verified
[ "$(grep -c "equal bits" verified)" = 5 ]
# A store knows the teacher's result and not its weights: where students are left, it is trained again.
"$berlu" study run study.yaml --dir part --only relu --quiet $all >/dev/null
"$berlu" study status study.yaml --dir rest --known part | grep -q "2 done, 0 running, 0 cut, 0 failed, 3 waiting"
"$berlu" study status study.yaml --dir rest --known whole | grep -q "5 done"
echo "teacher first, students after it"
