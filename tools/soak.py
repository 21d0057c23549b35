#!/usr/bin/env python3
"""soak.py BERLU MINUTES [SEED [FOLDER]] - random commands under random faults. SPDX-License-Identifier: MIT

Training runs of the four families are resumed again and again while they are killed, signalled,
stopped and continued, or given a small limit of file size, memory or open files, odd numbers of
threads, a full or closed output; commands that only read are sent at the same folders under the
same faults. What must hold:

- a process ends by an exit code, or by a signal that was sent to it; it never hangs;
- 0: weights, state and metrics are the bytes of a run that nobody touched; 3: the newest checkpoint
  is the step that the message names; 1: the last line of stderr is ours; 2 would blame the input,
  which is good;
- the newest checkpoint never gets older, whatever ended the process; nothing temporary is left when
  a run is complete.

The first violation is printed with the seed and everything that was done to the run, its folder is
kept, and the exit code is 1. A seed repeats the choices, not the moments."""
import os, pathlib, random, resource, shutil, signal, subprocess, sys, tempfile, time

ASKING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU]
COMMON = "--data synthetic --act berlu --eval-batch 40 --lr 0.003 --ema 0.9 --augment crop-flip --drop-path 0.1".split()
FAMILIES = {
    "vit": "--model vit_micro --patch 8 --synthetic-images 160 --batch 32 --epochs 8",
    "deit": "--model deit_micro --image-size 16 --patch 8 --synthetic-images 160 --batch 8 --epochs 4 --checkpoint-every 3",
    "tnt": "--model tnt_micro --image-size 16 --patch 8 --synthetic-images 80 --batch 8 --epochs 3 --checkpoint-every 3",
    "convnext": "--model convnext_micro --synthetic-images 80 --batch 16 --epochs 3 --checkpoint-every 2",
}
COMPARED = ["checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors",
            "checkpoints/last/ema.safetensors", "metrics.csv"]
HANGS = 600  # seconds after which a command of this size hangs, also on a busy machine

berlu = str(pathlib.Path(sys.argv[1]).resolve())
minutes = float(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
work = pathlib.Path(sys.argv[4] if len(sys.argv) > 4 else tempfile.mkdtemp(prefix="soak-"))
rng = random.Random(seed)
counts = {}


class Finding(Exception):
    pass


def count(what):
    counts[what] = counts.get(what, 0) + 1


class Fault:
    """What is done to one process: limits before it starts, events while it runs."""

    def __init__(self, kind):
        self.kind, self.limits, self.env, self.words = kind, [], {}, []
        self.stdout, self.sent, self.begun = subprocess.DEVNULL, set(), False
        if kind == "file size":
            self.limits = [(resource.RLIMIT_FSIZE, rng.choice([0, 1, 4, 16, 64, 256, 1024]) * 1024)]
        elif kind == "memory":
            self.limits = [(resource.RLIMIT_AS, rng.randint(60, 900) << 20)]
        elif kind == "open files":
            self.limits = [(resource.RLIMIT_NOFILE, rng.randint(3, 24))]
        elif kind == "threads":
            self.env = {"OMP_NUM_THREADS": str(rng.choice([1, 3, 7, 64, 5000]))}
            self.words = ["--threads", str(rng.choice([1, 2, 5, 9, 1024]))] if rng.random() < 0.5 else []
        elif kind == "full output":
            self.stdout = open("/dev/full", "w")
        elif kind == "closed output":
            read, write = os.pipe()
            os.close(read)
            self.stdout = os.fdopen(write, "w")

    def apply(self):  # in the child
        for which, value in self.limits:
            resource.setrlimit(which, (value, value))

    def describe(self):
        return " ".join([self.kind, *(str(v) for _, v in self.limits), *self.env.values(), *self.words,
                         *sorted(s.name for s in self.sent)])


FAULTS = ["none", "kill", "signals", "signals", "pause", "file size", "memory", "open files", "threads", "full output",
          "closed output"]


def begun(process):
    """From the first line of `berlu train` on every signal is blocked."""
    try:
        return "SigBlk:\tfffffff" in pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False


def send(process, number, fault):
    if process.poll() is None:
        fault.sent.add(number)
        process.send_signal(number)


def disturb(process, fault, span):
    """Kills, signals or pauses a process at a random moment within half a run."""
    try:
        process.wait(rng.random() * span / 2)
        return
    except subprocess.TimeoutExpired:
        pass
    fault.begun = begun(process)
    if fault.kind == "kill":
        send(process, signal.SIGKILL, fault)
    elif fault.kind == "pause":
        send(process, signal.SIGSTOP, fault)
        time.sleep(0.2)
        send(process, signal.SIGCONT, fault)
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            send(process, rng.choice(ASKING), fault)
            time.sleep(rng.choice([0, 0, 0.01, 0.1]))


def run(words, fault, span):
    """Runs the command under a fault; the exit code and what it wrote to stderr."""
    process = subprocess.Popen([berlu, *words, *fault.words], stdout=fault.stdout, stderr=subprocess.PIPE,
                               preexec_fn=fault.apply, env={**os.environ, **fault.env})
    try:
        if fault.kind in ("kill", "signals", "pause"):
            disturb(process, fault, span)
        text = process.communicate(timeout=HANGS)[1].decode(errors="replace")
        return process.returncode, text
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Finding("hangs") from None


def judge_end(code, text, fault, trains):
    """Whether a process may end like this; a finding says why not."""
    if code < 0:
        # a limit of memory also ends a process whose stack cannot grow or whose loader is refused a page
        starved = fault.kind == "memory" and fault.limits[0][1] < 96 << 20 and -code == signal.SIGSEGV
        at_once = trains and fault.begun and "ended at once" in text
        if signal.Signals(-code) in fault.sent and (-code == signal.SIGKILL or at_once or not (trains and fault.begun)):
            return
        if not starved:
            raise Finding(f"ended by {signal.Signals(-code).name}")
    elif code == 127 or "error while loading shared libraries" in text:
        if fault.kind not in ("memory", "open files"):
            raise Finding("could not be started")
    elif code == 3 and not (trains and fault.sent):
        raise Finding("3, and nobody asked for a stop")
    elif code not in (0, 1, 3):
        raise Finding(f"exit code {code}")
    elif code == 1 and fault.kind in ("none", "kill", "signals", "pause", "threads"):
        raise Finding("exit code 1 without a cause")
    elif code == 1 and fault.stdout == subprocess.DEVNULL and not text.rstrip("\n").split("\n")[-1].startswith("berlu: "):
        raise Finding("the last line is not ours")


def newest(folder):
    return max([int(p.name[5:]) for p in (folder / "checkpoints").glob("step-*")], default=-1)


def compare(folder, whole):
    for name in COMPARED:
        if (folder / name).read_bytes() != (whole / name).read_bytes():
            raise Finding(f"{name} differs from the run that nobody touched")
    left = [str(p) for p in folder.rglob("*") if p.name.startswith((".tmp", ".old"))]
    if left:
        raise Finding(f"left behind: {left}")


def train_once(folder, words, fault, span, whole):
    """One start of a run. True when it is complete."""
    before = newest(folder)
    words = ["train", *words, "--run", str(folder), "--resume", "--workers", str(rng.randint(1, 3))]
    words += ["--json-lines"] if fault.stdout != subprocess.DEVNULL else ["--quiet"]
    code, text = run(words, fault, span)
    judge_end(code, text, fault, True)
    if newest(folder) < before:
        raise Finding(f"the newest checkpoint was {before} and is {newest(folder)}")
    if code == 3 and f"stopped at step {newest(folder)};" not in text:
        raise Finding(f"the newest checkpoint is {newest(folder)}, but: {text.strip()}")
    if code == 0:
        compare(folder, whole)
    return code == 0


def read_once(folder, words, fault, span):
    """A command that only reads: the run's folder must be the same afterwards."""
    if newest(folder) < 0:
        return
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    svg = str(folder.parent / "plot.svg")
    choices = [["eval", str(folder)], ["eval", str(folder), "--ema"],
               ["train", *words, "--run", str(folder), "--resume", "--dry-run"], ["summary", "vit_micro"], ["doctor"]]
    if (folder / "metrics.csv").read_bytes().count(b"\n") > 1:  # a run before the end of its first epoch has no curve
        choices.append(["eval", str(folder), "--svg", svg])
    code, text = run(rng.choice(choices) + ([] if fault.stdout == subprocess.DEVNULL else ["--json"]), fault, span)
    # a command without a state keeps the defaults: any of our signals ends it
    if not (code < 0 and signal.Signals(-code) in fault.sent):
        judge_end(code, text, fault, code == 3)
    if before != {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}:
        raise Finding("a command that reads has changed the run")


def soak_run(name, span, whole):
    """One run from nothing to its end. The list of what was done to it is printed when something is found."""
    folder, words, done = work / "run", COMMON + FAMILIES[name].split(), []
    shutil.rmtree(folder, ignore_errors=True)
    try:
        while True:
            kind = rng.choice(FAULTS) if len(done) < 25 else "none"
            fault, trains = Fault(kind), rng.random() < 0.8 or kind == "none"
            done.append(f"{'train' if trains else 'read'}: {kind}")
            count(kind)
            complete = train_once(folder, words, fault, span, whole) if trains else read_once(folder, words, fault, span)
            done[-1] = f"{'train' if trains else 'read'}: {fault.describe()}"
            if complete:
                return
    except Finding as finding:
        done[-1] += f" ({fault.describe()})"
        sys.exit(f"soak: {name}, seed {seed}: {finding}\n  " + "\n  ".join(done) + f"\nkept: {folder}")


def reference(name):
    """The folder of a whole run and how many seconds it took."""
    whole = work / f"whole-{name}"
    shutil.rmtree(whole, ignore_errors=True)
    began = time.monotonic()
    code, text = run(["train", *COMMON, *FAMILIES[name].split(), "--run", str(whole), "--quiet"], Fault("none"), 0)
    if code != 0:
        sys.exit(f"soak: the whole run of {name} ended with {code}: {text}")
    return whole, time.monotonic() - began


def main():
    work.mkdir(parents=True, exist_ok=True)
    wholes = {name: reference(name) for name in FAMILIES}
    end, runs = time.monotonic() + minutes * 60, 0
    while time.monotonic() < end:
        name = rng.choice(list(FAMILIES))
        soak_run(name, wholes[name][1], wholes[name][0])
        runs += 1
    shutil.rmtree(work)
    print(f"soak: seed {seed}: {runs} runs, {sum(counts.values())} starts, nothing lost: "
          + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))


main()
