#!/usr/bin/env python3
"""Activations on the CPU: berlu beside PyTorch's own kernels, in one interleaved run. SPDX-License-Identifier: MIT

    python3 bench/act_torch.py [--build build] [--n 262144 4194304] [--range 3 12] [--threads 1 2] [--rounds 15]
                               [--act gelu,silu] [--least]

Both work on the same arrays, one after the other in every round; results are medians in ns per element, and ours over
PyTorch's. --least prints the fastest round of single calls instead: where other programs run, medians of longer rounds
measure the scheduler. BERLU_ISA=avx2 limits us, ATEN_CPU_CAPABILITY=avx2 PyTorch. PyTorch's backward kernels are
called directly (torch.ops.aten), without autograd, and write into preallocated memory where they can. Both sides pay
for one call from Python, a few microseconds. Needs torch (pip install torch) and a built libberlu.so."""
import argparse
import ctypes
import os
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("act_torch.py needs PyTorch: python3 -m venv v && v/bin/pip install torch, then v/bin/python bench/act_torch.py")

from act_cuda import ACTS, BACKWARD, FORWARD, Call, Param, torch_calls


class Exec(ctypes.Structure):  # berlu_exec of <berlu/act.h>
    _fields_ = [("isa", ctypes.c_int), ("threads", ctypes.c_int)]


class Library:
    def __init__(self, build):
        self.core = ctypes.CDLL(os.path.join(build, "libberlu.so"))
        self.core.berlu_last_error.restype = ctypes.c_char_p
        self.core.berlu_act_workspace.restype = ctypes.c_size_t

    def check(self, status):
        if status:
            raise RuntimeError(self.core.berlu_last_error().decode())

    def calls(self, spec, learned, threads, x, y, g, d):
        """Forward and backward of ours, as functions."""
        act = ctypes.c_void_p()
        self.check(self.core.berlu_act_make(ctypes.byref(act), spec.encode()))
        forward = Call(rows=1, channels=x.numel(), x=x.data_ptr(), y=y.data_ptr())
        backward = Call(rows=1, channels=x.numel(), x=x.data_ptr(), dy=g.data_ptr(), dx=d.data_ptr())
        keep = []
        if learned is not None:
            value, grad = torch.full((1,), learned), torch.empty(1)
            forward.param[0] = Param(value.data_ptr(), 0, None)
            backward.param[0] = Param(value.data_ptr(), 0, grad.data_ptr())
            size = self.core.berlu_act_workspace(act, BACKWARD, ctypes.byref(backward))
            space = torch.empty(size, dtype=torch.uint8)
            backward.workspace, backward.workspace_bytes = space.data_ptr(), size
            keep = [value, grad, space]
        how = Exec(0, threads)

        def run(op, call, keep=keep):
            self.check(self.core.berlu_act_run(act, op, ctypes.byref(call), ctypes.byref(how)))
        return (lambda: run(FORWARD, forward)), (lambda: run(BACKWARD, backward))


def time_all(calls, rounds, n, least):
    """Median or least ns per element of each call; every round runs every call once."""
    inner = 1 if least else max(1, (1 << 21) // n)
    times = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(inner):
                call()
            if number:
                times[name].append((time.perf_counter_ns() - start) / inner / n)
    return {name: (min if least else statistics.median)(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--n", type=int, nargs="+", default=[1 << 18, 1 << 22])
    parser.add_argument("--range", type=float, nargs="+", default=[3, 12])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--act", default="")
    parser.add_argument("--least", action="store_true")
    args = parser.parse_args()
    library = Library(args.build)
    chosen = [row for row in ACTS if not args.act or row[0] in args.act.split(",")]
    how = "the fastest" if args.least else "medians"
    print(f"torch {torch.__version__}, {how} of {args.rounds} rounds, f32; ns per number, ours / PyTorch = ratio")
    for threads in args.threads:
        torch.set_num_threads(threads)
        for n in args.n:
            for width in args.range:
                print(f"\n{n} elements in +-{width:g}, {threads} thread{'s' if threads > 1 else ''}")
                x, g = (torch.rand(n) * 2 - 1) * width, torch.rand(n) * 2 - 1
                y, d = torch.empty(n), torch.empty(n)
                for spec, name, learned in chosen:
                    theirs = torch_calls(name, x, y, g, d)
                    if theirs[0] is None:
                        continue
                    ours = library.calls(spec, learned, threads, x, y, g, d)
                    calls = {"f": ours[0], "tf": theirs[0], "b": ours[1], "tb": theirs[1]}
                    ns = time_all(calls, args.rounds, n, args.least)
                    print(f"{spec:14} forward {ns['f']:.3f} / {ns['tf']:.3f} = {ns['f'] / ns['tf']:.2f}    "
                          f"backward {ns['b']:.3f} / {ns['tb']:.3f} = {ns['b'] / ns['tb']:.2f}", flush=True)


if __name__ == "__main__":
    main()
