#!/bin/sh
# flat.sh BERLU FOLDER - C18 is judged by landscapes measured before --slim deletes weights. SPDX-License-Identifier: MIT
#
# A study that names C18 leaves landscape.json in every run and no checkpoint; the verdict survives a rebuilt index, a merge
# and a pack. Without the claim nothing is measured, and weights that are gone leave C18 not tested.
set -eu
berlu=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cat >flat.yaml <<END
study: flat
base: {model: vit_micro, patch: 16, data: synthetic, synthetic_images: 64, epochs: 1, warmup: 0, batch: 16, lr: 1e-3}
axes: {act: [berlu, relu]}
seeds: 2
claims: [C18]
END
grep -v claims flat.yaml >plain.yaml
verdict() { # FOLDER
    "$berlu" study report "$1" --out page --format csv --json | tr '{' '\n' | sed -n 's/.*"C18", "direction": "\([a-z ]*\)".*/\1/p'
}

# Without the claim: weights deleted, nothing measured.
"$berlu" study run plain.yaml --dir plain --jobs 2 --slim --quiet | grep -q "4 done"
[ -z "$(find plain -name landscape.json -o -name checkpoints)" ]
[ "$(verdict plain)" = "not tested" ]
"$berlu" study run flat.yaml --dir plain --quiet | grep -q "4 done" # the weights are gone
[ "$(verdict plain)" = "not tested" ]

# With it: one landscape a run, then the weights go.
"$berlu" study run flat.yaml --dir flat --jobs 2 --slim --quiet | grep -q "4 done"
[ "$(find flat -name landscape.json | wc -l)" = 4 ]
[ -z "$(find flat -name checkpoints)" ]
found=$(verdict flat)
[ "$found" != "not tested" ]
[ "$(cut -d, -f15 page/runs.csv | grep -c '[0-9]')" = 4 ]
cp page/runs.csv whole.csv
before=$(cat flat/runs/*/lock flat/runs/*/landscape.json | cksum)
"$berlu" study run flat.yaml --dir flat --quiet | grep -q "4 done"
[ "$before" = "$(cat flat/runs/*/lock flat/runs/*/landscape.json | cksum)" ]
"$berlu" study merge flat/study.db --out merged >/dev/null
[ "$(verdict merged)" = "$found" ]
cmp page/runs.csv whole.csv
"$berlu" study pack flat --out flat.tar >/dev/null && "$berlu" study merge flat.tar --out carried >/dev/null
[ "$(verdict carried)" = "$found" ]
cmp page/runs.csv whole.csv
rm flat/study.db && "$berlu" study rebuild flat.yaml --dir flat >/dev/null
[ "$(verdict flat)" = "$found" ]
cmp page/runs.csv whole.csv

# A damaged landscape costs its figures and nothing else.
echo '{"how": 3' >"flat/runs/$(ls flat/runs | head -1)/landscape.json"
rm flat/study.db && "$berlu" study rebuild flat.yaml --dir flat >/dev/null
[ "$(verdict flat)" = undecided ]
[ "$(cut -d, -f5 page/runs.csv | grep -c done)" = 4 ]
echo "C18 is $found, from 4 landscapes"
