#!/bin/sh
# reach.sh BERLU SOURCE FOLDER - quick.yaml from an empty folder to its page, and what a stranger is promised about it.
# SPDX-License-Identifier: MIT
#
# 24 runs; the interval of `wide` lies below -10 points and that of elu minus celu holds 0; called again nothing runs; two more
# seeds are twelve runs; two runs trained again have equal bits; the page is well-formed and asks for nothing. With CIFAR-10 in
# BERLU_TEST_DATA a small ViT on real images as well.
set -eu
berlu=$1 source=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
study=$source/studies/quick.yaml
number() { # KEY < JSON
    tr ',{' '\n\n' | sed -n "s/^ *\"$1\": //p" | head -1
}
"$berlu" study run "$study" --dir quick --jobs 2 --quiet | grep -q "24 done"
before=$(cat quick/runs/*/lock | cksum)
began=$(date +%s%N)
"$berlu" study run "$study" --dir quick --quiet | grep -q "24 done"
echo "called again: $((($(date +%s%N) - began) / 1000000)) ms"
[ "$before" = "$(cat quick/runs/*/lock | cksum)" ]
sed 's/^seeds: 4/seeds: 6/' "$study" >more.yaml
"$berlu" study run more.yaml --dir quick --dry-run | grep -q "36 runs: 24 done, 0 running, 0 cut, 0 failed, 12 waiting"
"$berlu" study compare "$study" --dir quick --a "act=berlu:eps=10" --b act=berlu --json >wide.json
awk -v high="$(number high <wide.json)" 'BEGIN { exit !(high < -10) }'
"$berlu" study compare "$study" --dir quick --a act=elu --b act=celu --json >same.json
awk -v low="$(number low <same.json)" -v high="$(number high <same.json)" 'BEGIN { exit !(low <= 0 && 0 <= high) }'
[ "$("$berlu" study verify "$study" --dir quick --sample 2 --quiet | grep -c "equal bits")" = 2 ]
"$berlu" study report quick --out page >/dev/null
! grep -Eq '(src|href) *= *"?(https?:)?//' page/index.html || exit 1
if command -v xmllint >/dev/null; then xmllint --noout page/index.html; fi

images=${BERLU_TEST_DATA:-}/cifar-10-batches-bin
if [ -d "$images" ]; then
    cat >real.yaml <<END
study: real
base: {model: vit_micro, data: "cifar10:$images", train_images: 5000, test_images: 2000, epochs: 2, warmup: 1, batch: 32, recipe: paper}
axes: {act: [gelu, relu, berlu]}
seeds: 2
END
    "$berlu" study run real.yaml --dir real --jobs 2 --quiet | grep -q "6 done"
    "$berlu" study report real --out real-page >/dev/null
    grep -q berlu real-page/index.html
else
    echo "no CIFAR-10 in BERLU_TEST_DATA: real images are left out"
fi
echo "quick.yaml holds what is promised"
