#!/bin/sh
# demo.sh BUILD - shows what berlu does, with the commands that exist. SPDX-License-Identifier: MIT
set -eu
# Threads that wait without spinning leave the cores to the loader (4 times the images/s on two busy cores).
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
berlu=$1/berlu
out=demo-run
mkdir -p $out
show() {
    echo
    echo "\$ berlu $*"
    "$berlu" "$@"
}
has() {
    "$berlu" --help | grep -q "^  $1  *"
}

show doctor
if has smooth; then
    show smooth --kinks 0 --slopes 0.01,1 --eps 0.5 --svg $out/smooth.svg
fi
if has 'act eval'; then
    show act eval berlu:alpha=0.01,eps=0.5 --x -2 -0.5 -0.1 0 0.1 0.5 2
    show act plot --svg $out/activations.svg berlu:alpha=0.01,eps=0.5 gelu silu relu
fi
if has 'bench'; then
    show bench act --act berlu --act gelu --act relu --n 256Ki
fi
if has demo; then
    show demo --out $out/training
fi
