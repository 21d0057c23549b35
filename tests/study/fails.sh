#!/bin/sh
# fails.sh BERLU FOLDER - a loss that is not finite is a result: it fails alone, is counted and is on the page.
# SPDX-License-Identifier: MIT
#
# A process that ends for another reason, here checkpoints larger than a file may be, is none: its run is given up, stays
# cut, counts nowhere, and yields to the result that another store has.
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

# Nor is it where a store alone holds it, this study's or another one's.
"$berlu" study merge runs/study.db --out joined >/dev/null
for known in "--dir joined" "--dir fresh --known joined"; do
    "$berlu" study status study.yaml $known >answer
    grep -q "2 done, 0 running, 0 cut, 2 failed, 0 waiting" answer
    [ "$(grep -c "failed .*(no folder here)" answer)" = 2 ]
    [ -z "$("$berlu" study list study.yaml $known --commands)" ]
    code=0
    "$berlu" study run study.yaml $known --quiet >answer 2>message || code=$?
    [ $code = 1 ]
    grep -q "2 of 4 runs failed" message
done
[ ! -e joined/runs ]
[ ! -e fresh/runs ]
"$berlu" study report joined --out page >/dev/null
grep "^burst,1e30,0," page/runs.csv | grep -q "failed.*finite"

cat >room.yaml <<'END'
study: room
base: {model: vit_micro, patch: 8, data: synthetic, synthetic_images: 64, epochs: 1, warmup: 0, batch: 16, eval_batch: 64}
axes: {act: [relu, gelu]}
seeds: 1
END
code=0
(ulimit -f 800 && "$berlu" study run room.yaml --retries 1 --quiet >answer 2>message) || code=$?
[ $code = 1 ]
grep -q "0 done, 0 running, 2 cut, 0 failed" answer
grep -q "2 of 2 runs have no result: 0 failed, 2 ended without progress and go on when called again" message
for name in runs/room room.yaml; do # as the run left the index, and brought up to date
    "$berlu" study report $name --out page | grep -q "0 of 2 runs done: page"
    grep "^room,relu,0," page/runs.csv | grep -q ",cut,.*File too large"
done
[ -s runs/room/study.db ]
"$berlu" study run room.yaml --dir much --quiet >/dev/null
"$berlu" study merge runs/room much --out both | grep -q "2 runs added"
"$berlu" study run room.yaml --quiet | grep -q "2 done, 0 running, 0 cut, 0 failed"
cat runs/room/runs/*/message.txt 2>/dev/null && exit 1
code=0
(ulimit -f 800 && "$berlu" study verify room.yaml --dir much --sample 2 --quiet >answer 2>message) || code=$?
[ $code = 1 ]
grep -q "2 of 2 runs could not be trained again (much/verify/runs/[0-9a-f]*/message.txt says why), 0 did not" message
why=$(sed 's/.*(\(.*\) says why.*/\1/' message)
grep -q "File too large" "$why"
echo "two failed, two done; two given up, then done"
