#!/bin/sh
# choose.sh BERLU STUDIES FOLDER - the second stage of a study is written from results alone, once they are all there.
# SPDX-License-Identifier: MIT
set -eu
berlu=$1 studies=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
refuses() { # WORDS COMMAND...: exit code 2 and these words
    words=$1 code=0
    shift
    "$@" >/dev/null 2>message || code=$?
    [ $code = 2 ] && grep -q "$words" message || { echo "wanted: $words"; cat message; exit 1; }
}
cat >first.yaml <<'END'
study: first
base: {model: vit_micro, patch: 8, data: synthetic, synthetic_images: 320, epochs: 1, warmup: 0, batch: 16, eval_batch: 64, clip: 0, holdout: 64}
axes: {act: [gelu, "berlu:eps=0.5"], lr: [1e-5, 1e-3, 1e30]}
seeds: 2
choose:
  study: second
  about: "each at its own rate: tested"
  axis: lr
  base: {holdout: 0, batch: 32}
  seeds: [5, 6]
  contrasts:
    - {name: own, a: {act: "berlu:eps=0.5"}, b: {act: gelu}, paper: 1.5}
    - {name: near, a: {act: "berlu:eps=0.5"}, b: {act: gelu}, expect: equal, margin: 0.25}
END
"$berlu" study run first.yaml --dir runs --dry-run >/dev/null
refuses "no such store" "$berlu" study choose first.yaml --dir runs --out second.yaml
"$berlu" study run first.yaml --dir runs --only gelu --jobs 2 --quiet >/dev/null 2>&1 || true
refuses "6 of 12 runs have no result; nothing is chosen" "$berlu" study choose first.yaml --dir runs --out second.yaml
"$berlu" study run first.yaml --dir rest --known runs --jobs 2 --quiet >/dev/null 2>&1 || true # a part is elsewhere
refuses "6 of 12 runs have no result; .*study merge. joins" "$berlu" study choose first.yaml --dir rest --out second.yaml
"$berlu" study merge runs rest --out both >/dev/null
"$berlu" study choose first.yaml --dir both --out both.yaml >/dev/null
"$berlu" study run first.yaml --dir runs --jobs 2 --quiet >/dev/null 2>&1 || true
[ ! -e second.yaml ]
"$berlu" study choose first.yaml --dir runs --out second.yaml >answer
grep -q "^second: second.yaml" answer

# The best mean of each that has no failed run, by the numbers of the report.
"$berlu" study report runs --out page >/dev/null
awk -F, '$1 == "first" { gsub(/"/, ""); print }' page/cells.csv >cells
for act in gelu berlu:eps=0.5; do
    best=$(awk -F, -v act="$act" '$2 == act && $5 == 0 && $7 > most { most = $7; lr = $3 } END { sub(/^ /, "", lr); print lr }' cells)
    grep -q "^$act, $best\$" answer
    grep -q "^# \* $act *$best " second.yaml
done
[ "$(grep -c "failed  failed" second.yaml)" = 2 ]
! grep -q "lr: 1e30" second.yaml || exit 1
sed -n '/^study:/,$p' second.yaml | grep -q "^base: {.*holdout: 0, batch: 32}"
grep -q "^seeds: \[5, 6\]" second.yaml
grep -q '{name: own, a: {act: "berlu:eps=0.5"}, b: {act: gelu}, paper: 1.5}' second.yaml
grep -q 'expect: equal, margin: 0.25}' second.yaml

# It is a study, its runs are new, and the same results give the same bytes.
"$berlu" study run second.yaml --dry-run | grep -q "^second: 4 runs: .* 4 waiting"
cp second.yaml again.yaml
"$berlu" study choose first.yaml --dir runs --out again.yaml --json | grep -q '"chosen": \["gelu, '
cmp second.yaml again.yaml
cmp second.yaml both.yaml
echo "# by hand" >>again.yaml
refuses "it is there and differs" "$berlu" study choose first.yaml --dir runs --out again.yaml

# Neither another file than the registered one, nor one that announces nothing.
sed 's/seeds: \[5, 6\]/seeds: [5, 7]/' first.yaml >other.yaml
refuses "has another file of this study" "$berlu" study choose other.yaml --dir runs --out third.yaml
"$berlu" study run second.yaml --dir plain --jobs 2 --quiet >/dev/null
refuses "has no section choose" "$berlu" study choose second.yaml --dir plain --out third.yaml
[ ! -e third.yaml ]

# Nor runs that were made with other settings than the file has.
"$berlu" study run first.yaml --dir longer --jobs 2 --quiet --set epochs=2 --set data_on=host >/dev/null 2>&1 || true
refuses "gelu, 1e-5 was run with other settings than the file's: epochs (2, not 1); put" "$berlu" study choose first.yaml --dir longer --out third.yaml
refuses "set has no effect" "$berlu" study choose first.yaml --dir longer --set epochs=2 --out third.yaml
[ ! -e third.yaml ]

# The rates of the project: the section is right, and its seeds are nobody's.
"$berlu" study run "$studies/rates.yaml" --dry-run --set data=synthetic --set synthetic_images=8192 --set batch=16 --set device=cpu |
    grep -q "^rates: 40 runs"
echo "chosen"
