#!/bin/sh
# slurm.sh BERLU STUDY FOLDER - a study through an array job gives the tables of an undisturbed one. SPDX-License-Identifier: MIT
#
# Stand-ins for sbatch, srun, scontrol and squeue do what a real Slurm was seen to do: a training is signalled before the limit
# and its task requeued, srun answers 0 for a task that it never started, a run is still held by a process of before. Where
# Slurm itself is wanted: tests/study/slurm_real.sh.
set -eu
berlu=$1 study=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder/bin"
cd "$folder"
cat >bin/sbatch <<'END'
#!/bin/bash
# Runs the tasks of an array one after the other, each as often as it is requeued.
echo "$*" >>calls
for word; do case $word in --array=0-*) last=${word#--array=0-} ;; *.sh) script=$word ;; esac; done
for task in $(seq 0 "$last"); do
    restart=0
    while :; do
        rm -f requeued
        SLURM_JOB_ID=77 SLURM_ARRAY_TASK_ID=$task SLURM_RESTART_COUNT=$restart bash "$script" >>tasks.txt 2>&1
        [ -e requeued ] && [ $restart -lt 20 ] || break
        restart=$((restart + 1))
    done
done
echo "77;cluster"
END
cat >bin/srun <<'END'
#!/bin/bash
n=$(cat starts 2>/dev/null || echo 0); n=$((n + 1)); echo $n >starts
case $n in
2) exit 0 ;;                                 # said to be done, never started
3) "$@" & sleep 0.3; kill -TERM $!; wait $! ;; # the limit
4) exit 4 ;;                                 # still held
*) exec "$@" ;;
esac
END
printf '#!/bin/sh\ntouch requeued\necho "$*" >>calls\n' >bin/scontrol
printf '#!/bin/sh\n[ ! -e queued ] || echo 77\n' >bin/squeue
chmod +x bin/*
PATH=$PWD/bin:$PATH
tables() {
    "$berlu" study report "$1" --out "$2" --format csv >/dev/null
    cut -d, -f1-13 "$2/cells.csv" >"$2/cells" && cut -d, -f1-8 "$2/runs.csv" >"$2/runs"
}
"$berlu" study run "$study" --dir whole --jobs 2 --quiet >/dev/null
tables whole a
"$berlu" study run "$study" --dir cluster --launcher slurm --jobs 3 --sbatch "--time=60 --partition=long" --threads 1 >/dev/null
[ "$(head -1 calls)" = "--parsable --array=0-2 cluster/slurm/job.sh" ]
grep -q "requeue 77" calls
grep -q "^#SBATCH --time=60 --partition=long" cluster/slurm/job.sh
[ "$(cat cluster/slurm/job)" = 77 ]
"$berlu" study status "$study" --dir cluster | grep -q "8 done"
calls=$(wc -l <calls)
"$berlu" study run "$study" --dir cluster --launcher slurm | grep -q "8 done" # collects, and submits nothing
[ "$(wc -l <calls)" = "$calls" ]
tables cluster b
cmp a/cells b/cells
cmp a/runs b/runs

# While a job is queued nothing is submitted; without Slurm that is said.
mkdir -p waits/slurm && echo 77 >waits/slurm/job && touch queued
"$berlu" study run "$study" --dir waits --launcher slurm 2>message | grep -q "8 waiting"
grep -q "still in the queue" message
[ "$(wc -l <calls)" = "$calls" ]
rm bin/sbatch
code=0
"$berlu" study run "$study" --dir none --launcher slurm 2>message >/dev/null || code=$?
[ $code = 2 ]
grep -q "sbatch" message
"$berlu" study list "$study" --dir none --part 1/3 | wc -l | grep -qx 3
code=0
"$berlu" study list "$study" --dir none --part 3/3 2>message || code=$?
[ $code = 2 ]
echo "the same tables through an array job"
