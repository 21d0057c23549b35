#!/bin/bash
# slurm_real.sh BERLU STUDY FOLDER - a study through a real Slurm of one node. SPDX-License-Identifier: MIT
#
# Starts Debian's munged, slurmctld and slurmd as plain processes below FOLDER, on loopback, without systemd, cgroups or
# accounting; submits the study as an array and compares the tables with those of an undisturbed one; and signals a training as
# a time limit does: it is saved and its task requeued. Ends what it started, by process id. Exit 77 where the programs are
# missing or this is not root (slurmd starts jobs as their users).
set -eu
berlu=$1 study=$2 folder=$3
skip() { echo "skipped: $*"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip "not root"
for program in munged slurmctld slurmd sbatch srun squeue scontrol; do
    command -v $program >/dev/null || skip "$program is not installed (Debian: slurm-wlm munge)"
done
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
here=$PWD
place=$(mktemp -d /tmp/berlu-slurm.XXXXXX) # munged refuses sockets below folders that others may write
chmod 755 "$place"
mkdir -m 700 "$place/key" && mkdir -m 755 "$place/socket" "$place/state" "$place/spool" "$place/temporary"
started=
export SLURM_CONF=$place/slurm.conf
finish() {
    scancel --full --user=root 2>/dev/null || true # jobs of this cluster: SLURM_CONF names it
    for _ in $(seq 60); do
        [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break
        sleep 0.5
    done
    for id in $started; do kill "$id" 2>/dev/null || true; done
    sleep 1
    for id in $started; do kill -9 "$id" 2>/dev/null || true; done
    rm -rf "$place"
}
trap finish EXIT
head -c 256 /dev/urandom >"$place/key/key" && chmod 400 "$place/key/key"
munged --foreground --key-file="$place/key/key" --socket="$place/socket/munge" --pid-file="$place/key/pid" \
    --log-file="$place/key/log" --seed-file="$place/key/seed" >munged.txt 2>&1 &
started="$started $!"
port=$((21000 + $$ % 20000)) name=$(hostname -s)
cat >"$place/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$place/socket/munge,cred_expire=5
CredType=cred/munge
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool
SlurmctldPidFile=$place/state/controller
SlurmdPidFile=$place/state/node
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=200000,batch_sched_delay=0,requeue_delay=1
MpiDefault=none
TmpFS=$place/temporary
SlurmdParameters=config_overrides
KillWait=5
MinJobAge=300
NodeName=n1 NodeHostname=$name NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1 Default=YES MaxTime=UNLIMITED State=UP
END
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n' >"$place/cgroup.conf"
for _ in $(seq 100); do [ ! -S "$place/socket/munge" ] || break; sleep 0.1; done
slurmctld -D -i -f "$SLURM_CONF" >slurmctld.txt 2>&1 &
started="$started $!"
slurmd -D -N n1 -f "$SLURM_CONF" >slurmd.txt 2>&1 &
started="$started $!"
for _ in $(seq 200); do
    [ "$(timeout 5 sinfo -h -t idle -o %N 2>/dev/null)" != n1 ] || break
    sleep 0.1
done
[ "$(sinfo -h -t idle -o %N)" = n1 ] || skip "Slurm does not start here: $(tail -n 1 slurmd.txt slurmctld.txt)"

tables() {
    "$berlu" study report "$1" --out "$2" --format csv >/dev/null
    cut -d, -f1-13 "$2/cells.csv" >"$2/cells" && cut -d, -f1-8 "$2/runs.csv" >"$2/runs"
}
all="--threads 1"
"$berlu" study run "$study" --dir whole --quiet $all >/dev/null
tables whole a
"$berlu" study run "$study" --dir cluster --launcher slurm --jobs 2 --sbatch "--time=5 --cpus-per-task=1" $all
for _ in $(seq 600); do
    [ -n "$(squeue -h -j "$(cat cluster/slurm/job)" 2>/dev/null)" ] || break
    sleep 0.5
done
"$berlu" study run "$study" --dir cluster --launcher slurm $all | tee answer
grep -q "8 done" answer
tables cluster b
cmp a/cells b/cells
cmp a/runs b/runs

# Signalled by Slurm while it trains: saved, back in the queue, and cut, not failed, in the folder.
"$berlu" study run "$study" --dir long --launcher slurm --jobs 1 --sbatch "--time=5 --signal=TERM@120" --set epochs=100000 $all
job=$(cat long/slurm/job)
for _ in $(seq 300); do
    ! grep -q running long/runs/*/lock 2>/dev/null || break
    sleep 0.2
done
scancel --signal=TERM "${job}_0" # what the limit does 120 s before its end, to the steps of the job
for _ in $(seq 300); do
    ! grep -q '"stopped"' long/runs/*/lock 2>/dev/null || break
    sleep 0.2
done
grep -q '"stopped"' long/runs/*/lock
for _ in $(seq 100); do
    ! grep -q "restart 1" long/slurm/task-0.txt 2>/dev/null || break
    sleep 0.5
done
grep -q "restart 1" long/slurm/task-0.txt
scancel "$job"
echo "the same tables through Slurm $(sinfo --version); signalled, saved and requeued"
