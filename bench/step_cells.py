"""step_cells.py - what step_cuda.py measures by turns: processes of PyTorch that wait, runs of berlu, the driver's memory.
SPDX-License-Identifier: MIT"""
import atexit
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

from step_peer import CALLS

PEER = pathlib.Path(__file__).resolve().parent / "step_peer.py"


class Cell:
    """A process that prints `ready`, is idle between its turns, and answers each with a line of JSON."""

    def __init__(self, name, command, env=None):
        self.name, self.rates, self.last, self.failure = name, [], {}, None
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        atexit.register(self.kill)
        self.messages = []  # read all the time: a compiler's warnings must not fill the pipe
        self.reader = threading.Thread(target=lambda: self.messages.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def answer(self, beginning):
        for line in self.process.stdout:
            if line.startswith(beginning):
                return line
        code = self.process.wait()
        self.reader.join()
        text = "".join(self.messages).strip()
        last = (text.splitlines() or ["no message"])[-1]
        self.failure = "memory" if "out of memory" in text.lower() or "MiB are free" in text else f"code {code}"
        print(f"    {self.name}: ended with code {code}: {last[:300]}", flush=True)
        return None

    def ready(self):
        return self.answer("ready")

    def result(self, line):
        return json.loads(line)

    def turn(self):
        if self.failure:
            return
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.answer("{")
        if line:
            self.last = self.result(line)
            self.rates.append(self.last["images_per_s"])

    def kill(self):
        """Where this program ends early no peer goes on compiling."""
        if self.process.poll() is None:
            self.process.kill()

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait()


class Peer(Cell):
    """PyTorch with one row in one mode."""

    def __init__(self, args, row, mode):
        command = [sys.executable, PEER, row, mode, "--device", args.device, "--seconds", str(args.seconds)]
        super().__init__(f"torch {mode}", command + ["--berlu-torch"] * args.berlu_torch)
        self.row, self.mode = row, mode


class Ours(Cell):
    """berlu with one row."""

    def __init__(self, args, row):
        super().__init__("berlu", berlu_command(args, row, ["--turns"]), berlu_env(args))
        self.row = row

    def result(self, line):
        return json.loads(line)["rows"][0]


def berlu_command(args, row, more=()):
    name, act, batch, stream, keep = (row.split(":") + ["both"])[:5]
    words = CALLS[name][3] if len(CALLS[name]) > 3 else [name]
    command = [args.berlu, "bench", "step", *words, "--device", args.device, "--act", act, "--batch", batch]
    command += ["--mode", "infer"] if keep == "infer" else ["--keep", keep]
    command += ["--residual", stream] if args.device == "cuda" else []
    return [*command, "--seconds", str(args.seconds), "--json", *more]


def berlu_env(args):
    return dict(os.environ, **dict(pair.split("=", 1) for pair in args.berlu_env))


def berlu_start(args, row, more=()):
    command = berlu_command(args, row, more)
    return subprocess.Popen(command, env=berlu_env(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def berlu_end(process):
    """Its row, or None and a printed reason."""
    out, err = process.communicate()
    if process.returncode:
        print(f"    berlu: {(err.strip().splitlines() or ['no message'])[-1]}", flush=True)
        return None
    return json.loads(out)["rows"][0]


def noise(rates):
    """A/A: the median of every second turn over that of the others; None below four turns."""
    return statistics.median(rates[1::2]) / statistics.median(rates[::2]) if len(rates) > 3 else None


# ---- memory as the driver sees it ----


class Driver:
    """Bytes of the card in use beyond what was in use when this was made, of all processes together. This process has a
    context of its own, whose size cancels."""

    def __init__(self):  # cuMemGetInfo asks for a current context
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0), "cuInit")
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
        self.check(self.cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        self.before = self.free()

    def check(self, error, name):
        if error:
            sys.exit(f"step_cuda.py: {name} returned {error}")

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.check(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
        return free.value

    def used(self, _process):
        return self.before - self.free()


class Resident:
    """For a trial without a GPU: the resident memory of a process."""

    def used(self, process):
        try:
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return 0
        return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))


class Watch:
    """The most that is in use while a block runs."""

    def __init__(self, memory, process):
        self.memory, self.process, self.most, self.over = memory, process, 0, False

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        if isinstance(self.memory, Driver):
            self.thread = threading.Thread(target=self.look_cuda)
        self.thread.start()
        return self

    def look_cuda(self):
        context = ctypes.c_void_p()
        self.memory.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.memory.cuda.cuCtxSetCurrent(context)  # contexts are current per thread
        self.look()

    def look(self):
        while not self.over:
            self.most = max(self.most, self.memory.used(self.process))
            time.sleep(0.01)

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


EMPTY = """
import ctypes, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print("ready", flush=True)
sys.stdin.readline()
"""


def empty_context(memory):
    """Bytes that a process takes which only opens the card."""
    if not isinstance(memory, Driver):
        return 0
    process = subprocess.Popen([sys.executable, "-c", EMPTY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    used = memory.used(process)
    process.communicate("\n")
    return used
