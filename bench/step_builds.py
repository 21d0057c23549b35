#!/usr/bin/env python3
"""step_builds.py - training steps of two builds of berlu, interleaved: is the new one as fast as the old one?

    python3 bench/step_builds.py OLD/berlu NEW/berlu [--rounds 9] [--seconds 3] [--threads 1] [--cpu-time]
                                 [MODEL:BATCH ...]
    python3 bench/step_builds.py OLD/berlu NEW/berlu --instructions [MODEL:BATCH ...]

A round runs `berlu bench step` of the old build, of the old build again and of the new build, for some seconds each, in
an order that rotates. The first ratio, old over old, is 1 but for noise: where its interval is wider than the limit
the machine is too busy to decide. The second, new over old (the mean of both), is the result: the median over the
rounds, with the range of the 95 % interval of the median (all rounds where there are fewer than six).

--instructions counts instead of timing: instructions of a step under valgrind's callgrind, with AVX2, which it knows
best, in one thread; counted over the additional steps of a longer run, so that the start does not count. "own" are
those of functions with a name: the program's, without the matrix library, which has none. SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

MODELS = ("vit_tiny_cifar:32", "deit_tiny_cifar:32", "tnt_s_cifar:16", "convnext_atto_cifar:16")
MICRO = ("vit_micro:2", "deit_micro:2", "tnt_micro:2", "convnext_micro:2")
LIMIT = 0.01


def step(program, spec, words, before=(), env=None):
    model, batch = spec.split(":")
    command = [*before, program, "bench", "step", model, "--batch", batch, "--json", *words]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip() or run.returncode}")
    return json.loads(run.stdout)["rows"][0]["images_per_s"]


def interval(values):
    """The 95 % interval of the median, by order statistics; the range where there are fewer than six."""
    values, n = sorted(values), len(values)
    k = 0
    while 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n <= 0.05:
        k += 1
    k = max(k - 1, 0)
    return values[k], values[n - 1 - k]


def ratio_print(name, values):
    low, high = interval(values)
    print(f"    {name}: {statistics.median(values):.4f} ({low:.4f} to {high:.4f}, {len(values)} rounds)")
    return low, high


def measure(args, spec):
    words = ["--threads", str(args.threads), "--seconds", str(args.seconds), "--steps", "3"]
    words += ["--cpu-time"] if args.cpu_time else []
    subjects = [("old", args.old), ("again", args.old), ("new", args.new)]
    rates = {name: [] for name, _ in subjects}
    for i in range(args.rounds):
        for name, program in subjects[i % 3:] + subjects[:i % 3]:
            rates[name].append(step(program, spec, words))
        if args.log:
            with open(args.log, "a") as file:
                file.write(json.dumps({"spec": spec, **{name: rates[name][-1] for name in rates}}) + "\n")
    print(f"{spec}, {args.threads} threads: old {statistics.median(rates['old'] + rates['again']):.1f}, "
          f"new {statistics.median(rates['new']):.1f} images/s")
    quiet = ratio_print("old / old", [a / b for a, b in zip(rates["again"], rates["old"])])
    low, high = ratio_print("new / old", [2 * n / (a + b) for n, a, b in zip(rates["new"], rates["old"], rates["again"])])
    if high < 1 - LIMIT or low > 1 + LIMIT:
        verdict = "slower by more than the limit" if high < 1 else "faster by more than the limit"
    elif low >= 1 - LIMIT:
        verdict = "not slower by more than the limit"
    elif quiet[1] - quiet[0] > 2 * LIMIT:
        verdict = "undecided: the machine is too busy"
    else:
        verdict = "undecided: more rounds"
    print(f"    limit {100 * LIMIT:g} %: {verdict}", flush=True)


def instructions(program, spec, steps):
    """Of a run with so many steps: (all, those of functions with a name)."""
    env = dict(os.environ, BERLU_ISA="avx2", DNNL_MAX_CPU_ISA="AVX2")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "counts")
        step(program, spec, ["--threads", "1", "--steps", str(steps), "--seconds", "0"],
             ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"], env)
        listed = subprocess.run(["callgrind_annotate", "--threshold=100", "--inclusive=no", "--auto=no", out],
                                stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = re.findall(r"^\s*([\d,]+) \(.*?\)\s+(.*)$", listed, re.M)
    count = {name: int(value.replace(",", "")) for value, name in rows if name.startswith("PROGRAM TOTALS")}
    own = sum(int(value.replace(",", "")) for value, name in rows
              if not name.startswith("PROGRAM TOTALS") and not name.startswith("???:"))
    return count["PROGRAM TOTALS"], own


def count(args, spec):
    per_step = {}
    for name, program in (("old", args.old), ("new", args.new)):
        few, many = instructions(program, spec, 2), instructions(program, spec, 2 + args.steps)
        per_step[name] = [(b - a) / args.steps for a, b in zip(few, many)]
    (old, old_own), (new, new_own) = per_step["old"], per_step["new"]
    print(f"{spec}: instructions of a step: old {old / 1e6:.3f} M, new {new / 1e6:.3f} M, ratio {new / old:.4f}; "
          f"own: {old_own / 1e6:.3f} M, {new_own / 1e6:.3f} M, ratio {new_own / old_own:.4f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("models", nargs="*", metavar="MODEL:BATCH")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--cpu-time", action="store_true", help="processor time: one thread on a shared machine")
    p.add_argument("--instructions", action="store_true")
    p.add_argument("--steps", type=int, default=4, help="with --instructions: steps to count")
    p.add_argument("--log", metavar="FILE")
    args = p.parse_intermixed_args()
    for program in (args.old, args.new):
        if not os.access(program, os.X_OK):
            p.error(f"{program}: no program")
    for spec in args.models or (MICRO if args.instructions else MODELS):
        count(args, spec) if args.instructions else measure(args, spec)


main()
