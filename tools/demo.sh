#!/bin/sh
# demo.sh BUILD - shows what berlu does, in about three minutes. SPDX-License-Identifier: MIT
set -eu
berlu=$1/berlu
out=demo-run
mkdir -p $out
show() {
    echo
    echo "\$ berlu $*"
    "$berlu" "$@"
}

show doctor
show smooth --kinks 0 --slopes 0.01,1 --eps 0.5 --svg $out/smooth.svg
show act eval berlu:alpha=0.01,eps=0.5 --x -2 -0.5 -0.1 0 0.1 0.5 2
show act plot --svg $out/activations.svg berlu:alpha=0.01,eps=0.5 gelu silu relu
show bench act --act berlu --act gelu --act relu --n 256Ki --seconds 1
rm -rf $out/training # the demo trains anew each time
show demo --out $out/training
