#!/bin/bash
# golden_runs.sh BERLU FOLDER - makes the run folders of tests/golden/runs with one version of the program.
# SPDX-License-Identifier: MIT
#
# Two small runs that were cut in the middle of an epoch, so that a later version has to resume them: a linear classifier with
# everything a checkpoint can hold (moments, an average, two checkpoints and a best one), and a TNT of one checkpoint, whose
# metrics.csv has the columns of activation sites. Event files are left out. tests/golden/runs/0.1.0 was made with the program
# of commit f5982ba, tests/golden/runs/1 with the first one that wrote format 1; neither is ever made again.
set -eu
berlu=$(realpath "$1")
mkdir -p "$2" && cd "$2"
ln -sf "$berlu" berlu # run.json holds the words of the command line
export PATH=$PWD:$PATH
common="--data synthetic --synthetic-images 40 --batch 8 --eval-batch 8 --epochs 3 --workers 1 --threads 1 --quiet"
rm -rf linear tnt
berlu train --model linear --image-size 8 --lr 0.003 --ema 0.9 --max-steps 8 $common --run linear
berlu train --model tnt_micro --image-size 16 --act berlu --optimizer sgd --momentum 0 --lr 0.1 --max-steps 2 $common --run tnt
rm -f berlu linear/events.* tnt/events.*
