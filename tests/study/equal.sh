#!/bin/sh
# equal.sh BERLU FOLDER - another program's results beside ours: imported, compared, never mixed. SPDX-License-Identifier: MIT
set -eu
berlu=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
study() { # MARGIN
    cat <<END
study: equal
base: {model: linear, image_size: 8, data: synthetic, synthetic_images: 320, epochs: 2, warmup: 1, batch: 16, eval_batch: 64}
axes: {lr: [1e-3, 1e-1]}
seeds: 3
equivalence: {source: other, margin: $1, differences: [{a: {lr: 1e-1}, b: {lr: 1e-3}, margin: $1}]}
END
}
study 90 >wide.yaml
study 1e-6 >narrow.yaml
"$berlu" study run wide.yaml --dir wide --quiet >/dev/null
"$berlu" study report wide --out page --format csv >/dev/null
grep -q "not tested" page/equivalence.csv
cp page/runs.csv before.csv

# Our own values as the other program's: no difference, equivalent within any margin that exceeds the noise.
{ echo study,source,cell,seed,value; awk -F, 'NR > 1 { print "equal,other," $2 "," $3 "," $6 }' page/runs.csv; } >same.csv
"$berlu" study import same.csv --out wide | grep -q "6 rows"
"$berlu" study report wide --out page >/dev/null
[ "$(grep -c ",equivalent," page/equivalence.csv)" = 3 ]
[ -s page/equivalence.md ]
awk -F, 'NR > 1 && ($10 != 0 || $4 != 3 || $7 != 3) { exit 1 }' page/equivalence.csv
cmp before.csv page/runs.csv # nothing of it is among our runs
# More seeds of the other program, as bench/study_torch.py writes them: columns of its own, rows of a trial beside them.
# Both sides may have different numbers of seeds; the verdict is whole when ours are all there.
{
    echo study,source,cell,seed,value,loss,torch,device
    sed -n '2,$s/$/,,,/p' same.csv
    for seed in 7 8; do for cell in 1e-1 1e-3; do echo "equal,other,$cell,$seed,50,1.5,2.11,gpu"; done; done
    echo trial,other,1e-1,7,99,0.1,2.11,gpu
} >topped.csv
"$berlu" study import topped.csv --out wide | grep -q "11 rows"
"$berlu" study report wide --out page --format csv >/dev/null
awk -F, 'NR > 1 && ($4 != 3 || $7 != 5) { exit 1 }' page/equivalence.csv
[ "$(grep -c ",equivalent," page/equivalence.csv)" = 3 ]
! grep -q partial page/equivalence.csv || exit 1
cmp before.csv page/runs.csv
"$berlu" study import same.csv --out wide >/dev/null # replaces: a file has all rows of its source
"$berlu" study rebuild narrow.yaml --dir wide >/dev/null # another margin is another registration
"$berlu" study report wide --out page --format csv >/dev/null
[ "$(grep -c ",not shown," page/equivalence.csv)" = 3 ]

# A mean, a deviation and a number in the place of runs; importing again replaces.
printf 'source,study,cell,n,mean,sd,remark\nother,equal,1e-3,5,10,1,x\nother,equal,1e-1,5,20,2,y\n' >means.csv
"$berlu" study import means.csv --out wide | grep -q "2 rows"
"$berlu" study report wide --out page --format csv >/dev/null
awk -F, 'NR > 1 && $7 != 5 { exit 1 } $3 == "1e-1 - 1e-3" && $8 != 10 { exit 1 }' page/equivalence.csv

# After the fact, and marked so.
"$berlu" study compare wide.yaml --dir wide --a lr=1e-1 --b lr=1e-3 | grep -q "not registered"
"$berlu" study compare wide.yaml --dir wide --a lr=1e-1 --b lr=1e-3 --json | grep -q '"registered": false'
for bad in "study compare wide.yaml --dir wide --a lr=7 --b lr=1e-3" "study import wide.yaml --out never" "study import nothing.csv --out never"; do
    code=0
    "$berlu" $bad >/dev/null 2>message || code=$?
    [ $code = 2 ]
    [ ! -e never ]
done
echo "imported, compared, not mixed"
