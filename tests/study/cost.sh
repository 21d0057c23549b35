#!/bin/sh
# cost.sh BERLU STUDY FOLDER - a study of kind cost measures every cell in every round, once. SPDX-License-Identifier: MIT
#
# Cut by a time limit it goes on where it was; called again it measures nothing; the report has a row per cell and policy, the
# first cell a second time (A/A), and memory that grows with what is kept.
set -eu
berlu=$1 study=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
code=0
"$berlu" study run "$study" --dir cut --threads 1 --for 0.1s --quiet >/dev/null || code=$?
[ $code = 3 ]
"$berlu" study status "$study" --dir cut | grep -q "8 measurements: 1 done, 7 waiting"
"$berlu" study run "$study" --dir cut --threads 1 2>shown | grep -q "8 done, 0 waiting"
# Each round begins with another cell, and the first cell's second measurement is half a round from its first.
[ "$(sed 's/.*: round //' shown | tr '\n' ' ')" = "1, relu 1, gelu 1, berlu 2, relu 2, gelu 2, berlu 2, gelu " ]
"$berlu" study run "$study" --dir cut --threads 1 2>again | grep -q "8 done, 0 waiting"
[ ! -s again ] # no measurement is announced
# Cells that were measured with other settings are not taken for these, and a cell that is not there is no cell.
refused() { # WORDS ARGUMENTS...
    words=$1 code=0
    shift
    "$berlu" study run "$study" --dir cut "$@" >/dev/null 2>message || code=$?
    [ $code = 2 ]
    grep -q "$words" message
}
refused "gelu was measured with other settings" --set batch=8
refused "no cell's label holds this" --only tanh
"$berlu" study report cut --out page >/dev/null
[ "$(grep -c . page/cost.csv)" = 11 ]
[ -s page/cost.md ]
# gelu at input and both, the same again, relu and berlu at all three policies; two rounds each.
awk -F'"?,"?' 'NR > 1 { name = $4 "/" $5; rounds[name] = $6; kept[name] = $11; forward[name] = $7 }
    END { n = 0; for (k in rounds) { n++; if (rounds[k] != 2 || !(forward[k] > 0) || !(kept[k] > 0)) exit 1 }
          if (n != 10 || !(kept["gelu/both"] > kept["gelu/input"]) || kept["gelu (again)/input"] != kept["gelu/input"]) exit 1 }' page/cost.csv
code=0
"$berlu" study list "$study" --dir cut 2>message || code=$?
[ $code = 2 ]
grep -q "kind cost" message
# Merged, the rows are the same.
"$berlu" study merge cut --out merged | grep -q "^0 runs and 8 measurements of costs added to merged"
"$berlu" study pack cut --out cut.tar | grep -q "^0 runs and 8 measurements of costs packed into"
"$berlu" study merge cut.tar --out merged | grep -q "^0 runs added to merged"
"$berlu" study report merged --out other --format csv >/dev/null
cmp page/cost.csv other/cost.csv
# A terminal's Ctrl-C ends the measuring process itself, maybe first: that is a stop, and no failure.
"$berlu" study run "$study" --dir stopped --threads 1 --quiet >/dev/null 2>message &
run=$!
child=
while [ -z "$child" ] && kill -0 $run; do child=$(cat /proc/$run/task/$run/children); done
kill -TERM $child
code=0
wait $run || code=$?
[ $code = 3 ]
grep -q "stopped" message
# Another batch is another cost.
"$berlu" study run "$study" --dir batch --threads 1 --set batch=8 --for 0.1s --quiet >/dev/null || [ $? = 3 ]
code=0
"$berlu" study merge batch --out merged 2>message || code=$?
[ $code = 2 ]
grep -q "the costs of gelu were measured with other settings" message
echo "eight measurements, cut and resumed"
