#!/bin/sh
# kill_cuda.sh BERLU [KILLS [SIGNALS [FOLDER]]] - kill.sh on a GPU: bf16, captured steps, images on the device.
# SPDX-License-Identifier: MIT
#
# On an H200 a process starts in 1.7 s and an epoch takes 22 ms, so a run has epochs enough for most
# moments to lie in training, and they reach over all of it. The product algorithms are chosen by the first, whole run
# and kept in a file of this test: chosen again by timing they could differ, and with them the bits.
# Without a GPU the script says so and exits with 77.
set -eu
berlu=$1 kills=${2:-20} signals=${3:-5} work=${4:-$(mktemp -d)}
if "$berlu" doctor --json | grep -q '"gpus": \[\]'; then
    echo "skipped: no GPU, or a build without CUDA"
    exit 77
fi
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)
export XDG_CACHE_HOME="$work-cache" REACH=100 THREADS=1
export FAMILY="--model vit_micro --patch 8 --device cuda --precision bf16 --synthetic-images 4096 --test-images 512
    --batch 64 --epochs ${EPOCHS:-120} --checkpoint-every 16"
code=0
"$(dirname "$0")/kill.sh" "$berlu" "$kills" "$signals" "$work" || code=$?
rm -rf "$work-cache"
exit $code
