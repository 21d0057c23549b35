#!/bin/bash
# kill.sh BERLU [KILLS [FOLDER]] - kills training runs at random moments and compares what they leave. SPDX-License-Identifier: MIT
#
# A run is started, killed with SIGKILL after a random time, resumed, killed again, until it ends; then its weights, its
# state and its metrics must be the bytes of a run that nobody touched. Goes on until KILLS (default 5) kills were made.
# Before that: SIGTERM saves and exits with 3, and bad input exits with 2.
# SEED in the environment repeats a sequence of moments as far as the machine allows.
set -u
export OMP_NUM_THREADS=1
berlu=$1 kills=${2:-5} work=${3:-$(mktemp -d)}
RANDOM=${SEED:-1}
settings="--model vit_micro --image-size 16 --patch 8 --data synthetic --synthetic-images 160 --act berlu --batch 8
    --eval-batch 16 --lr 0.003 --workers 1 --threads 1 --checkpoint-every 3 --augment crop-flip --ema 0.9
    --drop-path 0.1 --quiet"
short="$settings --epochs 6" long="$settings --epochs 100000 --run $work/long"
mkdir -p "$work"
rm -rf "$work/whole" "$work/run" "$work/long"

began=$(date +%s%N)
$berlu train $short --run "$work/whole" || exit 1
span=$((($(date +%s%N) - began) / 1000000)) # milliseconds of a whole run

# A polite stop saves and says so with exit code 3. The run is too long to end by itself, and the signal
# goes out once metrics.csv is there: by then the handler is in place.
$berlu train $long 2> "$work/error" &
child=$!
while kill -0 $child 2> /dev/null && [ ! -e "$work/long/metrics.csv" ]; do
    sleep 0.02
done
kill -TERM $child
wait $child
code=$?
if [ $code != 3 ] || [ ! -e "$work/long/checkpoints/last/state.safetensors" ]; then
    echo "kill.sh: after SIGTERM the run ended with $code: $(cat "$work/error")"
    exit 1
fi
for words in "--lr 0.5 --resume" "" "--batch 100000 --run $work/other" "--model no_such --run $work/other"; do
    $berlu train $long $words 2> "$work/error"
    code=$?
    if [ $code != 2 ] || [ -e "$work/other" ]; then
        echo "kill.sh: '$words' ended with $code instead of 2: $(cat "$work/error")"
        exit 1
    fi
done

made=0 runs=0
while [ $made -lt "$kills" ]; do
    [ $runs = 0 ] || rm -rf "$work/run"
    while :; do
        $berlu train $short --run "$work/run" --resume 2> "$work/error" &
        child=$!
        sleep "$(printf '%d.%03d' $(((RANDOM % span) / 1000)) $((RANDOM % 1000 % span)))" &
        nap=$!
        wait -n $child $nap
        if kill -9 $child 2> /dev/null; then
            made=$((made + 1))
            wait $child 2> /dev/null
            continue
        fi
        kill $nap 2> /dev/null
        wait $child
        code=$?
        [ $code = 0 ] && break
        echo "kill.sh: a resumed run ended with $code: $(cat "$work/error")"
        exit 1
    done
    runs=$((runs + 1))
    for file in checkpoints/last/model.safetensors checkpoints/last/state.safetensors checkpoints/last/ema.safetensors metrics.csv; do
        if ! cmp "$work/whole/$file" "$work/run/$file"; then
            echo "kill.sh: $file differs after $made kills, run $runs"
            exit 1
        fi
    done
done
echo "$made kills, $runs runs: the same bytes"
rm -rf "$work"
