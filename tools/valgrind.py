#!/usr/bin/env python3
"""valgrind.py BUILD [JOBS [NAMES]] - runs tests under memcheck. SPDX-License-Identifier: MIT

Which ones: the programs of the layers that handle foreign bytes and memory of their own (base, io, data, what the smoother
allocates, the replay of every fuzz corpus). Left out is what calls a matrix library: oneDNN
runs code that it generates, with the stack pointer in heap memory, which memcheck takes for errors. Also left out are
the tests that start the command (a child is another program) and those over millions of floats. Reads of undefined
memory, invalid accesses and definite leaks fail; what OpenMP's pool keeps until the end is only "possibly" lost. The plain
loops run (BERLU_ISA=scalar): vector loads may reach into the slack behind an image, whose bytes meet weights of 0, which
memcheck cannot know; data_golden compares them byte by byte with the plain ones."""
import concurrent.futures, json, os, pathlib, re, subprocess, sys

build = sys.argv[1]
jobs = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
CHOSEN = re.compile(sys.argv[3] if len(sys.argv) > 3 else r"^(base|io|data|fuzz)_|^safetensors|^smooth_(memory|refusals|source)$")
LEFT_OUT = {
    "data_commands": "starts the command", "data_golden": "minutes of resizing", "data_loader": "minutes of augmentation",
    "data_augment": "minutes of augmentation", "fuzz_options": "links the command", "fuzz_act_spec": "builds kernels' tables",
}
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
            "--show-leak-kinds=definite", "--num-callers=20", "--fair-sched=yes",
            f"--suppressions={pathlib.Path(__file__).resolve().parent / 'valgrind.supp'}"]

listing = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                                    check=True).stdout)


def properties(test):
    return {p["name"]: p["value"] for p in test.get("properties", [])}


def run(test):
    values = properties(test)
    env = dict(os.environ, OMP_NUM_THREADS="2", BERLU_REPLAY="16", BERLU_ISA="scalar",
               **dict(pair.split("=", 1) for pair in values.get("ENVIRONMENT", [])))
    done = subprocess.run(VALGRIND + test["command"], cwd=values.get("WORKING_DIRECTORY"), env=env, capture_output=True,
                          text=True, errors="replace", timeout=1800)
    return test["name"], done.returncode, done.stdout + done.stderr


chosen = [t for t in listing["tests"] if CHOSEN.match(t["name"]) and t["name"] not in LEFT_OUT and "command" in t]
failed = 0
with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    for name, code, output in pool.map(run, chosen):
        print(f"{name:28s} {'ok' if code == 0 else 'skipped' if code == 77 else f'FAILED ({code})'}", flush=True)
        if code not in (0, 77):
            failed += 1
            print(output[-6000:])
print(f"{len(chosen)} programs under memcheck, {failed} failed")
sys.exit(1 if failed or not chosen else 0)
