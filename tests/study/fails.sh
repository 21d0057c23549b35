#!/bin/sh
# fails.sh BERLU FOLDER - a loss that is not finite is a result: it fails alone, is counted and is on the page.
# SPDX-License-Identifier: MIT
set -eu
berlu=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cat >study.yaml <<'END'
study: burst
base: {model: linear, image_size: 8, data: synthetic, synthetic_images: 320, epochs: 2, warmup: 0, batch: 16, eval_batch: 64, clip: 0}
axes: {lr: [1e-3, 1e30]}
seeds: 2
contrasts: [{name: c, a: {lr: 1e30}, b: {lr: 1e-3}}]
END
code=0
"$berlu" study run study.yaml --dir runs --jobs 2 --quiet >answer 2>message || code=$?
[ $code = 1 ]
grep -q "2 done, 0 running, 0 cut, 2 failed, 0 waiting" answer
grep -q "2 of 4 runs failed" message
attempts=$(cat runs/runs/*/lock | cksum)
code=0
"$berlu" study run study.yaml --dir runs --quiet >/dev/null 2>&1 || code=$? # a result is not tried again
[ $code = 1 ]
[ "$attempts" = "$(cat runs/runs/*/lock | cksum)" ]
rm runs/study.db && "$berlu" study rebuild study.yaml --dir runs >/dev/null
"$berlu" study report runs --out page >/dev/null
grep -q "^burst,1e30,0,2" page/cells.csv
grep -q failed page/index.html
grep "^burst,1e30,0," page/runs.csv | grep -q "failed.*finite"
"$berlu" study pack runs --out runs.tar >/dev/null
"$berlu" study merge runs.tar --out carried | grep -q "4 runs added"
code=0
"$berlu" study run study.yaml --dir carried --quiet >answer 2>/dev/null || code=$?
[ $code = 1 ]
grep -q "2 done, 0 running, 0 cut, 2 failed" answer
echo "two failed, two done"
