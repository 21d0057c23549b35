#!/bin/bash
# shared.sh BERLU HERE THERE - one run folder over two mounts of one shared disk. SPDX-License-Identifier: MIT
#
# HERE and THERE lead to the same folder, as two clients of a file server see it (two mounts with
# different options or versions of NFS, or one and the server's own path). Who comes second is told
# so and exits with 4; who waits gets the run when the first dies; a run handed over between the two
# at kills and signals comes to the bytes of one that stayed; a reader that holds files of old
# checkpoints open ends no run; a bare --resume finds a run that it missed just before. `make test`
# runs it with one local folder under two names, which shows that the script works;
# docs/reliability.md says where it was run over NFS.
set -u
berlu=$1 here=$2/shared there=$3/shared
options="--model vit_micro --image-size 16 --patch 8 --data synthetic --synthetic-images 64 --act berlu --batch 8
    --eval-batch 16 --lr 1e-3 --workers 1 --threads 1 --ema 0.9 --quiet"
RANDOM=${SEED:-1}
rm -rf "$here"
mkdir -p "$here"
messages=$(mktemp)
trap 'rm -f "$messages"' EXIT

fail()
{
    echo "shared.sh: $*"
    tail -n 3 "$messages"
    exit 1
}

train() # FOLDER WORDS...
{
    "$berlu" train $options --run "$@" 2> "$messages"
}

# Until the run in FOLDER has written so many rows.
rows()
{
    for ((i = 0; i < 3000; i++)); do
        [ "$(cat "$1/metrics.csv" 2> /dev/null | wc -l)" -le "$2" ] || return 0
        sleep 0.02
    done
    fail "$1 does not train"
}

touch "$here/seen"
for ((i = 0; i < 3000; i++)); do # clients keep what they know of names for a while
    [ ! -e "$there/seen" ] || break
    sleep 0.02
done
[ "$here/seen" -ef "$there/seen" ] || [ "$(stat -c %i "$there/seen")" = "$(stat -c %i "$here/seen")" ] ||
    fail "$here and $there are two folders, not one"

"$berlu" train $options --run "$here/lock" --epochs 100000 2> "$messages" &
first=$!
rows "$here/lock" 2
for folder in "$here" "$there"; do
    train "$folder/lock" --epochs 100000 --resume
    code=$?
    [ $code = 4 ] || fail "a second trainer in $folder/lock ended with $code instead of 4"
done
"$berlu" train $options --run "$there/lock" --epochs 100000 --resume --wait 300 2> "$messages" &
second=$!
sleep 1
kill -9 $first
wait $first 2> /dev/null
for ((i = 0; i < 3000; i++)); do
    grep -q '"running", "attempt": 2' "$there/lock/lock" && break
    sleep 0.02
done
kill -TERM $second
wait $second
code=$?
[ $code = 3 ] || fail "who waited for the run ended with $code instead of 3"

train "$here/whole" --epochs 12 --checkpoint-every 3 || fail "the whole run ended with $?"
for ((n = 0, code = 1; code != 0; n++)); do
    folder=$here
    [ $((n % 2)) = 0 ] || folder=$there
    "$berlu" train $options --run "$folder/moving" --epochs 12 --checkpoint-every 3 --resume 2> "$messages" &
    child=$!
    sleep "0.$((RANDOM % 9))"
    [ "$n" -ge 20 ] || kill "-$([ $((RANDOM % 2)) = 0 ] && echo KILL || echo TERM)" $child 2> /dev/null
    wait $child 2> /dev/null
    code=$?
    case $code in 0 | 3 | 137 | 143) ;; *) fail "a resumed run ended with $code" ;; esac # 143: before the first line
done
for file in checkpoints/last/{model,state,ema}.safetensors metrics.csv; do
    cmp "$here/whole/$file" "$there/moving/$file" || fail "$file differs after $n starts"
done

# Whoever asked for a run before it was there finds it at once: a client keeps that a name is missing for up to a minute.
for folder in "$here/late" "$there/late"; do
    "$berlu" train --run "$folder" --resume --quiet 2> "$messages"
    code=$?
    [ $code = 2 ] || fail "a resume of no run ended with $code instead of 2"
    [ "$folder" = "$here/late" ] && other=$there/late || other=$here/late
    train "$other" --epochs 2 || fail "the run asked for too early ended with $?"
    "$berlu" train --run "$folder" --resume --quiet 2> "$messages" || fail "a bare resume of a new run ended with $?"
    rm -rf "$other"
    for ((i = 0; i < 6000; i++)); do [ -e "$folder" ] || break; sleep 0.02; done
done

train "$there/read" --epochs 8 --checkpoint-every 2 &
child=$!
rows "$there/read" 1
until exec {reader}< "$(ls -d "$there"/read/checkpoints/step-*/model.safetensors | tail -n 1)"; do :; done 2> /dev/null
wait $child || fail "a run whose checkpoints were being read ended with $?"
exec {reader}<&-
train "$there/read" --epochs 8 --checkpoint-every 2 --resume || fail "its resume ended with $?"
[ -z "$(ls -d "$there"/read/checkpoints/.old* 2> /dev/null)" ] || fail "an old checkpoint stays"
echo "one trainer at a time, $n starts to the same bytes"
rm -rf "$here"
