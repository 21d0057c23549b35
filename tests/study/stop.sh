#!/bin/sh
# stop.sh BERLU STUDY FOLDER - a study that is asked to stop saves everything and exits with 3. SPDX-License-Identifier: MIT
#
# By a signal to the scheduler and by --for; what ran is cut, not failed, the one file study.db is all there is of the index,
# and `status --watch` sees it from outside. A second scheduler is refused.
set -eu
berlu=$1 study=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
long="--set epochs=200000 --jobs 2"
begun() { # until two runs have taken their folders
    n=0
    until [ "$(cat "$1"/runs/*/lock 2>/dev/null | grep -c running)" = 2 ]; do
        n=$((n + 1))
        [ $n -lt 600 ]
        sleep 0.1
    done
}
"$berlu" study run "$study" --dir signal $long --quiet >answer 2>message &
pid=$!
begun signal
code=0
"$berlu" study run "$study" --dir signal $long --quiet >/dev/null 2>second || code=$?
[ $code = 4 ]
grep -qx "berlu: study run: signal: .berlu study run. works there (process [0-9]* on .*) and keeps the index; try again when it is done" second
code=0
"$berlu" study rebuild "$study" --dir signal --set epochs=200000 >/dev/null 2>second || code=$?
[ $code = 4 ]
grep -q "study rebuild: signal: .berlu study run. works there" second
"$berlu" study status "$study" --dir signal --set epochs=200000 | grep -q "2 running"
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 3 ]
grep -q "2 cut, 0 failed, 6 waiting" answer
[ "$(ls signal)" = "lock
runs
study.db" ]
# While a scheduler works there, its index is read by the study's name and written by nobody else.
name=$(sed -n 's/^study: *\([a-z_0-9]*\).*/\1/p' "$study")
"$berlu" study run "$study" $long --quiet >/dev/null &
pid=$!
begun "runs/$name"
"$berlu" study pack "$study" --out now.tar | grep -q "0 runs packed"
"$berlu" study report "$study" --out page >/dev/null
[ -s page/index.html ]
kill -TERM $pid
wait $pid || true

code=0
"$berlu" study run "$study" --dir timed $long --for 2s --quiet >answer 2>message || code=$?
[ $code = 3 ]
grep -q "0 running, 2 cut, 0 failed, 6 waiting" answer

# Watched from elsewhere until the last run is done.
"$berlu" study run "$study" --dir whole --quiet >/dev/null &
pid=$!
"$berlu" study status "$study" --dir whole --watch 2>watched | grep -q "8 done"
grep -q "8 done, left" watched || grep -q "waiting" watched
wait $pid
echo "stopped and saved, watched"
