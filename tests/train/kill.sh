#!/bin/bash
# kill.sh BERLU [KILLS [SIGNALS [FOLDER]]] - interrupts training runs at random moments and compares what they leave.
# SPDX-License-Identifier: MIT
#
# A run is started, interrupted after a random time, resumed, interrupted again, until it ends; then
# its weights, state and metrics must be the bytes of a run that nobody touched. Goes on, over the
# four families in turn, until KILLS (default 20) were killed with SIGKILL and SIGNALS (default 20)
# got a signal that asks for a stop. After such a signal the command must have ended with 3, and the
# newest checkpoint must be the step it names; or with 0, when it was done; of three signals at once
# the third may end it. Before that: bad input exits with 2 and writes nothing, and with the four
# families a limit of open files or memory with 1.
# SEED in the environment repeats a sequence of moments as far as the machine allows; FAMILY, the
# options of a run, takes the place of the four; THREADS that of one or two at random; REACH is the
# percentage of a whole run within which the moments lie (50).
set -um # jobs of their own: without -m the shell starts what runs beside it with SIGINT ignored
berlu=$1 kills=${2:-20} signals=${3:-20} work=${4:-$(mktemp -d)}
RANDOM=${SEED:-1}
common="--data synthetic --act berlu --eval-batch 40 --lr 0.003 --workers 1 --ema 0.9 --augment crop-flip --drop-path 0.1 --quiet"
families=(
    "--model vit_micro --patch 8 --synthetic-images 160 --batch 32 --epochs 8"
    "--model deit_micro --image-size 16 --patch 8 --synthetic-images 160 --batch 8 --epochs 5 --checkpoint-every 3"
    "--model tnt_micro --image-size 16 --patch 8 --synthetic-images 80 --batch 8 --epochs 4 --checkpoint-every 3"
    "--model convnext_micro --synthetic-images 80 --batch 16 --epochs 4 --checkpoint-every 2"
)
[ -z "${FAMILY:-}" ] || families=("$FAMILY")
names=(INT TERM HUP USR1 USR2 XCPU)
mkdir -p "$work"
rm -rf "$work"/whole* "$work"/run* "$work/other"

fail()
{
    echo "kill.sh: $*"
    [ ! -s "$work/error" ] || tail -n 3 "$work/error"
    exit 1
}

# Resumes the run of this family; sets `child`.
start()
{
    $berlu train $common ${families[$family]} --run "$run" --resume --threads "${THREADS:-$((RANDOM % 2 + 1))}" 2> "$work/error" &
    child=$!
}

# Sleeps for a random part of REACH percent of a whole run, or until it ends.
nap()
{
    local moment=$((RANDOM * 32768 + RANDOM))
    moment=$((moment % (${span[$family]} * ${REACH:-50} / 100 + 1)))
    sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))" &
    local sleeper=$!
    wait -n $child $sleeper
    kill $sleeper
    wait $sleeper
}

# Whether the child has reached the first line of its command: from there on it blocks every signal.
begun()
{
    [[ $(cat /proc/$child/status 2> /dev/null) == *SigBlk:$'\t'fffffff* ]]
}

# Sends a signal, in one of four cases a second, in one of eight a third; judges the end.
interrupt()
{
    until begun || ! kill -0 $child 2> /dev/null; do :; done
    [ $((RANDOM % 4)) = 0 ] || nap
    local often=1 chance=$((RANDOM % 8))
    [ $chance -gt 2 ] || often=2
    [ $chance -gt 0 ] || often=3
    local last=
    for ((i = 0; i < often; i++)); do
        last=${names[RANDOM % ${#names[@]}]}
        kill -$last $child
    done
    wait $child
    code=$?
    sent=$((sent + (code != 0)))
    if [ $code = 3 ]; then
        step=$(sed -n 's/.*stopped at step \([0-9]*\);.*/\1/p' "$work/error")
        newest=$(readlink "$run/checkpoints/last")
        [ -n "$step" ] && [ "${newest##*step-}" = "$(printf %08d "$step")" ] ||
            fail "stopped at step '$step', but the newest checkpoint is '$newest'"
    elif [ $code != 0 ] && ! { [ $often = 3 ] && [ $code -gt 128 ] && grep -q "ended at once by signal" "$work/error"; }; then
        fail "after SIG$last (of $often) the run ended with $code"
    fi
}

span=()
for family in "${!families[@]}"; do
    run=$work/whole$family
    began=$(date +%s%N)
    start
    wait $child || fail "the whole run of family $family ended with $?"
    span[family]=$((($(date +%s%N) - began) / 1000000)) # milliseconds
done

family=0 run=$work/whole0
for words in "--lr 0.5 --resume" "" "--batch 100000 --run $work/other" "--model no_such --run $work/other"; do
    $berlu train $common ${families[0]} --run "$run" $words 2> "$work/error"
    code=$?
    [ $code = 2 ] && [ ! -e "$work/other" ] || fail "'$words' ended with $code instead of 2"
done

# A limit of open files is no fault of the input (1, not 2), and a run is never taken for one without checkpoints; the
# whole run is compared with below.
for ((open = 4; open < 9 && ${#families[@]} > 1; open++)); do
    for run in "$work/whole0" "$work/other"; do
        (ulimit -n $open && exec $berlu train $common ${families[0]} --run "$run" --resume --threads 1) 2> "$work/error"
        code=$?
        [ $code -le 1 ] || [ $code = 127 ] || fail "with $open open files '$run' ended with $code"
        ! grep -q "broken\|from the beginning" "$work/error" || fail "with $open open files checkpoints were not seen"
    done
    rm -rf "$work/other"
done
# Nor does a limit of memory end in a signal, wherever it strikes: here also in the matrix library's code generator. A
# sanitizer takes terabytes of address space.
for space in 150 200 220 240 260 300 350; do
    [ ${#families[@]} -gt 1 ] && ! $berlu doctor | grep -q 'sanitizer *yes' || break
    (ulimit -v ${space}000 && exec $berlu train $common ${families[3]} --run "$work/other" --threads 1) 2> "$work/error"
    code=$?
    [ $code -le 1 ] || [ $code = 127 ] || fail "with $space MB of memory a run ended with $code"
    rm -rf "$work/other"
done

made=0 sent=0 runs=0
while [ $made -lt "$kills" ] || [ $sent -lt "$signals" ]; do
    family=$((runs % ${#families[@]})) run=$work/run$family
    rm -rf "$run"
    for ((code = 1; code != 0;)); do
        start
        if [ $made -lt "$kills" ] && { [ $sent -ge "$signals" ] || [ $((RANDOM % 2)) = 0 ]; }; then
            nap
            kill -9 $child
            wait $child
            code=$?
            made=$((made + (code == 137)))
            [ $code = 137 ] || [ $code = 0 ] || fail "a resumed run ended with $code"
        elif [ $sent -lt "$signals" ]; then
            interrupt
        else
            wait $child
            code=$?
            [ $code = 0 ] || fail "the last resume ended with $code"
        fi
    done 2>> "$work/shell" # it reports every job that was killed
    runs=$((runs + 1))
    for file in checkpoints/last/{model,state,ema}.safetensors metrics.csv; do
        cmp "$work/whole$family/$file" "$run/$file" || fail "$file of family $family differs after $made kills and $sent signals"
    done
done
echo "$made kills, $sent signals, $runs runs: the same bytes"
rm -rf "$work"
