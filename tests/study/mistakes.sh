#!/bin/sh
# mistakes.sh BERLU SOURCE FOLDER - what `study compare` and `study report` cannot do is one line that says what and what to do:
# exit code 2, and nothing is written. SPDX-License-Identifier: MIT
set -eu
berlu=$1 source=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cp -r "$source/docs/results" results
study=$source/studies/vit_cifar10.yaml
cat >one.yaml <<'END'
study: one
base: {model: vit_micro, act: relu, patch: 8, data: synthetic, synthetic_images: 320, epochs: 1, warmup: 0, batch: 32}
seeds: 1
END
refuses() { # WORDS COMMAND...: exit code 2, and one line of error with these words
    words=$1 code=0
    shift
    "$berlu" study "$@" >answer 2>all || code=$?
    grep -v '^note: ' all >message || true
    [ $code = 2 ] && [ ! -s answer ] && [ "$(wc -l <message)" = 1 ] && grep -q "^berlu: study $1: .*$words" message ||
        { echo "study $*: wanted: $words; exit code $code"; cat all; exit 1; }
}
compares() { # WORDS ARGUMENTS...
    words=$1
    shift
    refuses "$words" compare "$study" --dir results "$@"
}
"$berlu" study compare "$study" --dir results --a act=berlu --b act=gelu 2>/dev/null | grep -q '^berlu - gelu, top1, not registered: +1.95'
"$berlu" study report results --out read | grep -q '^[0-9]* studies, [0-9]* of [0-9]* runs done: read/index.html$'
compares "AXIS=LABEL is expected, for example act=berlu" --a berlu --b act=gelu
compares "has no such axis; its axes are act" --a activation=berlu --b act=gelu
compares "no cell of vit_cifar10 has this label; on this axis there are berlu | prelu | " --a act=berlu --b act=gellu
compares "no cell of vit_cifar10 has all of these labels" --a act=berlu --a act=relu --b act=gelu
compares "name the same cell" --a act=gelu --b act=gelu
sed 's/^study: one/study: two/; s/act: relu, //; s/^seeds.*/axes: {act: [relu, gelu]}\nseeds: 2/' one.yaml >two.yaml
"$berlu" study run two.yaml --dir two --only relu --quiet >/dev/null 2>&1
refuses "relu has 2 finished runs and gelu has 0: a difference needs two or more on each side" \
    compare two.yaml --dir two --a act=relu --b act=gelu
refuses "has no axes, so it is one cell" compare one.yaml --a act=berlu --b act=gelu
refuses "study of kind cost" compare "$source/studies/cost.yaml" --a act=berlu --b act=gelu
for verb in "compare --a act=berlu --b act=relu" "report --out page"; do
    set -- $verb
    verb=$1
    shift
    refuses "cannot be read: No such file" "$verb" nothing.yaml "$@"
    refuses "no study.db in this folder" "$verb" . "$@"
    refuses "is the store of a study; give the folder it lies in, results" "$verb" results/study.db "$@"
    refuses "runs/quick: no such folder, so nothing of quick has run here" "$verb" "$source/studies/quick.yaml" "$@"
    mkdir -p cut
    head -c 5000 results/study.db >cut/study.db
    refuses "cut/study.db: " "$verb" cut "$@"
done
refuses "study vit_cifar10 is given twice" report results results --out page
refuses "neither a store (study.db) nor a pack" merge one.yaml --out joined
refuses "no study.db in this folder" merge . --out joined
refuses "there is no setting 'lrr'" run one.yaml --set lrr=1
refuses "a time is expected, such as 90s" run one.yaml --for soon
refuses "at most 64 runs at a time" run one.yaml --devices 0,1,2,3,4 --per-device 16
refuses "options in one line" run one.yaml --launcher slurm --sbatch "--time=1
--gres=gpu:1"
"$berlu" study merge results --out whole >/dev/null
"$berlu" study pack whole --out all.tar >/dev/null
code=0
"$berlu" study pack whole --out nowhere/all.tar >answer 2>message || code=$?
[ $code = 1 ]
[ ! -s answer ]
grep -qx "berlu: study pack: option --out: nowhere/all.tar: there is no folder nowhere/" message
refuses "is a pack; .berlu study merge all.tar --out DIR" report all.tar --out page
[ ! -e runs ]
[ ! -e page ]
[ ! -e joined ]
# Runs made with --set are not the file's: who reads by the file leaves them in the index, with a note.
cat >set.yaml <<'END'
study: set
base: {model: linear, image_size: 8, data: synthetic, synthetic_images: 64, epochs: 1, warmup: 0, batch: 16}
axes: {lr: [1e-3, 1e-2]}
seeds: 2
END
"$berlu" study run set.yaml --set epochs=2 --quiet | grep -q "4 done"
for verb in "compare set.yaml --a lr=1e-3 --b lr=1e-2" "report set.yaml --out page" "pack set.yaml --out set.tar"; do
    "$berlu" study $verb >answer 2>message
    grep -q "study.db stays as it is: 4 finished runs of set in it are not the file's" message
    "$berlu" study report runs/set --out page | grep -q "4 of 4 runs done"
done
"$berlu" study rebuild set.yaml >/dev/null # the file's own, which have not run
"$berlu" study report runs/set --out page | grep -q "0 of 4 runs done"
