#!/bin/sh
# small.sh BERLU STUDY KILLS FOLDER - a study gives the same tables however it was run. SPDX-License-Identifier: MIT
#
# Undisturbed; killed with all its workers at random moments and called again; through `list --commands | xargs`; after its index
# was thrown away; merged from two halves; and completed beside a store that holds a part. The CSV files must be the same bytes
# each time.
set -eu
berlu=$1 study=$2 kills=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

tables() { # FOLDER OUT: the tables without what depends on time (registration, speed)
    "$berlu" study report "$1" --out "$2" --format csv >/dev/null
    cut -d, -f1-13 "$2/cells.csv" >"$2/cells" && cut -d, -f1-24,26- "$2/contrasts.csv" >"$2/contrasts"
    cut -d, -f1-8 "$2/runs.csv" >"$2/runs"
}
same() { # A B
    for name in cells contrasts runs; do cmp "$1/$name" "$2/$name"; done
}

"$berlu" study run "$study" --dir whole --jobs 2 --quiet >/dev/null
tables whole a

# Killed: the scheduler and every worker, without a chance to save.
n=0
while [ $n -lt "$kills" ]; do
    setsid "$berlu" study run "$study" --dir cut --jobs $((n % 2 + 1)) --quiet >/dev/null 2>&1 &
    pid=$!
    sleep "0.$((1 + n * 7 % 9))"
    kill -9 -- -$pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    n=$((n + 1))
done
"$berlu" study run "$study" --dir cut --jobs 2 --quiet >/dev/null
tables cut b
same a b

# Two runs on a GPU: a word about MPS, unless it is at work.
shares() { "$berlu" study run "$study" --dir whole --devices 0 --per-device 2 2>&1 >/dev/null; }
if [ ! -e /tmp/nvidia-mps ]; then (unset CUDA_MPS_PIPE_DIRECTORY; shares | grep -q "NVIDIA's MPS"); fi
shares | grep -q "^note: no cell of this study has device: cuda, so its runs train on the CPU; "
if (export CUDA_MPS_PIPE_DIRECTORY=pipe; shares) | grep MPS; then exit 1; fi

# Cells that are not there.
code=0
"$berlu" study run "$study" --dir never --only "no such cell" >/dev/null 2>error || code=$?
[ $code = 2 ]
[ ! -e never ]
grep -q "no cell's label holds this" error

# Called again it runs nothing.
before=$(cat cut/runs/*/lock | cksum)
"$berlu" study run "$study" --dir cut --quiet >/dev/null
[ "$before" = "$(cat cut/runs/*/lock | cksum)" ]

# The index from the folders alone.
rm cut/study.db
"$berlu" study rebuild "$study" --dir cut >/dev/null
tables cut c
same a c

# Any other launcher.
"$berlu" study list "$study" --dir listed --commands | xargs -P 2 -I{} sh -c '{} --quiet' >/dev/null
"$berlu" study rebuild "$study" --dir listed >/dev/null
tables listed d
same a d

# Two halves, merged.
"$berlu" study run "$study" --dir left --only 1e-2 --quiet >/dev/null
"$berlu" study run "$study" --dir right --quiet >/dev/null
"$berlu" study merge left/study.db right/study.db --out merged >/dev/null
tables merged e
same a e
# Results without folders: done, and nothing that runs again could replace them.
"$berlu" study status "$study" --dir merged | grep -q "8 done"
[ "$("$berlu" study list "$study" --dir merged --commands | wc -l)" = 0 ]
"$berlu" study run "$study" --dir merged --quiet | grep -q "8 done"
[ ! -e merged/runs ]
"$berlu" study pack merged --out merged.tar | grep -q "8 runs packed"
"$berlu" study merge merged.tar --out twice | grep -q "8 runs added"
tables merged e
same a e

# What another store holds is not run again, here or by a list, and counts as done; a store that is none is refused.
"$berlu" study run "$study" --dir part --only 1e-2 --quiet >/dev/null
"$berlu" study status "$study" --dir rest --known part | grep -q "2 done, 0 running, 0 cut, 0 failed, 6 waiting"
"$berlu" study run "$study" --dir rest --known part/study.db --dry-run | grep -q "2 done, 0 running, 0 cut, 0 failed, 6 waiting"
[ "$("$berlu" study list "$study" --dir rest --known part --commands | wc -l)" = 6 ]
"$berlu" study run "$study" --dir rest --known part --known whole/study.db --quiet | grep -q "8 done"
[ ! -e rest/runs ]
"$berlu" study run "$study" --dir rest --known part --quiet | grep -q "8 done"
[ "$(ls rest/runs | wc -l)" = 6 ]
"$berlu" study merge part/study.db rest/study.db --out joined >/dev/null
tables joined f
same a f

# Carried in packs: the folders without checkpoints and the index, to the same tables; equal folders give equal packs.
"$berlu" study pack part --out part.tar | grep -q "2 runs packed"
"$berlu" study pack rest --out rest.tar >/dev/null
"$berlu" study pack rest --out again.tar >/dev/null
cmp rest.tar again.tar
tar tf rest.tar >names
[ "$(grep -c weights.sha256 names)" = 6 ]
! grep -q checkpoint names || exit 1
"$berlu" study merge part.tar rest.tar --out carried | grep -q "8 runs added"
tables carried g
same a g
"$berlu" study run "$study" --dir carried --quiet | grep -q "8 done"
[ "$(ls carried/runs | wc -l)" = 8 ]
[ ! -e "carried/runs/$(ls carried/runs | head -1)/checkpoints" ]
rm carried/study.db && "$berlu" study rebuild "$study" --dir carried >/dev/null
tables carried h
same a h
"$berlu" study merge part.tar whole --out slim --slim >/dev/null
tables slim i
same a i

# Runs with other settings are no more seeds of a cell, whichever store comes first and whether its own run is done.
"$berlu" study run "$study" --dir odd --set batch=32 --only 1e-3 --quiet >/dev/null
"$berlu" study pack odd --out odd.tar >/dev/null
for pair in "whole odd.tar" "odd whole" "odd part.tar"; do
    code=0
    "$berlu" study merge $pair --out mixed 2>message || code=$?
    [ $code = 2 ]
    grep -q "^berlu: study merge: ${pair#* }.*, seed [01] of small was run with other settings than are registered" message
    "$berlu" study status "$study" --dir mixed | grep -q "$([ "$pair" = "whole odd.tar" ] && echo 8 || echo 0) done"
    [ ! -e mixed/runs ]
    rm -r mixed
done

# Several at once into a folder that does not exist yet.
merges=
for i in 1 2 3 4; do
    "$berlu" study merge part.tar whole --out crowd >/dev/null &
    merges="$merges $!"
done
for pid in $merges; do
    wait $pid
done
tables crowd j
same a j
[ ! -e crowd/study.db.old ]

# A pack that was cut, or holds no study, adds nothing.
for bad in cut foreign; do
    code=0
    [ $bad = cut ] && head -c 20000 rest.tar >bad.tar || tar cf bad.tar message names 2>/dev/null || tar cf bad.tar names
    "$berlu" study merge bad.tar --out "bad-$bad" 2>message || code=$?
    [ $code = 2 ]
    [ ! -e "bad-$bad/runs" ]
    [ -z "$(ls -A "bad-$bad" | grep incoming)" ]
done

# Trained again: equal bits, from folders and from a store alone. Another hash is another result where the program is the same;
# where it is not, bits are not comparable and the metric is tested.
[ "$("$berlu" study verify "$study" --dir whole --sample 2 --quiet | grep -c "equal bits")" = 2 ]
[ "$("$berlu" study verify "$study" --dir merged --sample 1 --quiet | grep -c "weights equal, metrics.csv equal, correct.bin equal")" = 1 ]
"$berlu" study verify "$study" --dir beside --known merged --known part --comparable --sample 1 --quiet >verified
grep -q "weights equal, metrics.csv equal, correct.bin equal" verified
grep -q "^1 of 1 runs comparable bit for bit, 1 equal; candidates for that: 8 of 8 finished runs" verified
[ "$(ls beside)" = verify ]
run=whole/runs/$(ls whole/runs | head -1)
cp "$run/weights.sha256" kept && tr 0-9a-f 1-9a-f0 <kept >"$run/weights.sha256"
code=0
"$berlu" study verify "$study" --dir whole --sample 8 --quiet >verified 2>message || code=$?
[ $code = 1 ]
[ "$(grep -c " different  weights different, metrics.csv equal" verified)" = 1 ]
[ "$(grep -c "equal bits" verified)" = 7 ]
sed -i 's/"commit": "/"commit": "0/' "$run/run.json"
"$berlu" study verify "$study" --dir whole --sample 8 --quiet >verified
[ "$(grep -c "not comparable bit for bit: program" verified)" = 1 ]
grep -q " inside " verified
grep -q "^7 of 8 runs comparable bit for bit, 7 equal; candidates for that: 7 of 8 finished runs" verified
"$berlu" study verify "$study" --dir whole --sample 8 --comparable --quiet >verified # draws none of another program's
grep -q "^7 of 7 runs comparable bit for bit, 7 equal" verified
! grep -q "${run##*/}" verified || exit 1
rm -rf other && cp -r whole other && sed -i 's/"commit": "/"commit": "0/' other/runs/*/run.json && rm -rf other/verify
code=0
"$berlu" study verify "$study" --dir other --comparable --quiet 2>message || code=$?
[ $code = 2 ]
grep -q "of 8 finished runs none was made by this program" message
[ ! -e other/verify ]
code=0
"$berlu" study verify "$study" --dir nowhere --quiet 2>message || code=$?
[ $code = 2 ]
grep -q "no run is finished" message

for what in "$study not a store" "rest.tar is a pack; .berlu study merge rest.tar --out DIR"; do
    code=0
    "$berlu" study run "$study" --dir never --known "${what%% *}" --quiet 2>message || code=$?
    [ $code = 2 ]
    grep -q "${what#* }" message
    [ ! -e never ]
done
echo "$kills kills, the same tables by nine ways"
