#!/usr/bin/env python3
"""Activations on one GPU: berlu beside PyTorch, in one interleaved run.

    python3 bench/act_cuda.py --build build [--n 134217728] [--rounds 15] [--act berlu,gelu] [--dtype f32,bf16,f16]
                              [--csv F]

Prints, per activation and dtype, the forward as a multiple of a device copy and the backward (dx, and the parameter's
gradient where there is one) as a multiple of a three-array add of the same dtype, for berlu and for PyTorch. Medians
of rounds that run every call once. PyTorch's backward kernels are called directly (torch.ops.aten), without autograd.
SPDX-License-Identifier: MIT
"""
import argparse
import ctypes
import os
import random
import statistics

import torch

FORWARD, BACKWARD = 0, 1
DTYPES = {"f32": (0, torch.float32), "bf16": (1, torch.bfloat16), "f16": (2, torch.float16)}
aten = torch.ops.aten


class Param(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("stride", ctypes.c_size_t), ("grad", ctypes.c_void_p)]


class Call(ctypes.Structure):  # berlu_act_call of <berlu/act.h>
    _fields_ = [("dtype", ctypes.c_int), ("hint", ctypes.c_int), ("rows", ctypes.c_size_t), ("channels", ctypes.c_size_t),
                ("x", ctypes.c_void_p), ("y", ctypes.c_void_p), ("dy", ctypes.c_void_p), ("dx", ctypes.c_void_p),
                ("bias", ctypes.c_void_p), ("dbias", ctypes.c_void_p), ("param", Param * 4), ("param_index", ctypes.c_int),
                ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t), ("inner", ctypes.c_size_t)]


class Library:
    def __init__(self, build):
        self.core = ctypes.CDLL(os.path.join(build, "libberlu.so"), mode=ctypes.RTLD_GLOBAL)
        self.cuda = ctypes.CDLL(os.path.join(build, "libberlu_cuda.so"))
        self.core.berlu_last_error.restype = ctypes.c_char_p
        self.cuda.berlu_act_cuda_workspace.restype = ctypes.c_size_t

    def check(self, status):
        if status:
            raise RuntimeError(self.core.berlu_last_error().decode())

    def make(self, spec):
        act = ctypes.c_void_p()
        self.check(self.core.berlu_act_make(ctypes.byref(act), spec.encode()))
        return act

    def run(self, act, op, call):
        self.check(self.cuda.berlu_act_cuda_run(act, op, ctypes.byref(call),
                                                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))


def berlu_calls(lib, spec, learned, dtype, x, y, g, d):
    """Two functions: forward and backward of ours."""
    act = lib.make(spec)
    forward = Call(dtype=DTYPES[dtype][0], rows=1, channels=x.numel(), x=x.data_ptr(), y=y.data_ptr())
    backward = Call(dtype=DTYPES[dtype][0], rows=1, channels=x.numel(), x=x.data_ptr(), dy=g.data_ptr(), dx=d.data_ptr())
    keep = []
    if learned is not None:
        value = torch.full((1,), learned, device="cuda")
        grad = torch.empty(1, device="cuda")
        forward.param[0] = Param(value.data_ptr(), 0, None)
        backward.param[0] = Param(value.data_ptr(), 0, grad.data_ptr())
        size = lib.cuda.berlu_act_cuda_workspace(act, BACKWARD, ctypes.byref(backward))
        space = torch.empty(size, dtype=torch.uint8, device="cuda")
        backward.workspace, backward.workspace_bytes = space.data_ptr(), size
        keep = [value, grad, space]
    return (lambda keep=keep: lib.run(act, FORWARD, forward)), (lambda keep=keep: lib.run(act, BACKWARD, backward))


def torch_calls(name, x, y, g, d):
    """PyTorch's own kernels into preallocated memory where they allow it; None where it has none."""
    w = torch.full((1,), 0.25, device=x.device, dtype=x.dtype)
    table = {
        "relu": (lambda: aten.clamp_min.out(x, 0, out=y), lambda: aten.threshold_backward.grad_input(g, x, 0, grad_input=d)),
        "leaky_relu": (lambda: aten.leaky_relu.out(x, 0.01, out=y),
                       lambda: aten.leaky_relu_backward.grad_input(g, x, 0.01, False, grad_input=d)),
        "prelu": (lambda: torch.prelu(x, w), lambda: aten._prelu_kernel_backward(g, x, w)),
        "relu6": (lambda: aten.hardtanh.out(x, 0.0, 6.0, out=y),
                  lambda: aten.hardtanh_backward.grad_input(g, x, 0.0, 6.0, grad_input=d)),
        "hard_tanh": (lambda: aten.hardtanh.out(x, -1.0, 1.0, out=y),
                      lambda: aten.hardtanh_backward.grad_input(g, x, -1.0, 1.0, grad_input=d)),
        "hard_sigmoid": (lambda: aten.hardsigmoid.out(x, out=y),
                         lambda: aten.hardsigmoid_backward.grad_input(g, x, grad_input=d)),
        "hard_swish": (lambda: aten.hardswish.out(x, out=y), lambda: aten.hardswish_backward(g, x)),
        "elu": (lambda: aten.elu.out(x, 1, 1, 1, out=y),
                lambda: aten.elu_backward.grad_input(g, 1, 1, 1, False, x, grad_input=d)),
        "celu": (lambda: aten.elu.out(x, 1, 1, 1, out=y),
                 lambda: aten.elu_backward.grad_input(g, 1, 1, 1, False, x, grad_input=d)),
        "selu": (lambda: aten.elu.out(x, 1.6732632423543772, 1.0507009873554805, 1, out=y),
                 lambda: aten.elu_backward.grad_input(g, 1.6732632423543772, 1.0507009873554805, 1, False, x, grad_input=d)),
        "gelu": (lambda: aten.gelu.out(x, approximate="none", out=y),
                 lambda: aten.gelu_backward.grad_input(g, x, approximate="none", grad_input=d)),
        "gelu_tanh": (lambda: aten.gelu.out(x, approximate="tanh", out=y),
                      lambda: aten.gelu_backward.grad_input(g, x, approximate="tanh", grad_input=d)),
        "silu": (lambda: aten.silu.out(x, out=y), lambda: aten.silu_backward.grad_input(g, x, grad_input=d)),
        "mish": (lambda: aten.mish.out(x, out=y), lambda: aten.mish_backward(g, x)),
    }
    return table.get(name, (None, None))


ACTS = [("berlu", "berlu", 0.01), ("berlu:degree=4", "berlu", 0.01), ("smelu", "smelu", None), ("identity", "identity", None),
        ("relu", "relu", None), ("leaky_relu", "leaky_relu", None), ("prelu", "prelu", 0.25), ("relu6", "relu6", None),
        ("hard_tanh", "hard_tanh", None), ("hard_sigmoid", "hard_sigmoid", None), ("hard_swish", "hard_swish", None),
        ("elu", "elu", None), ("celu", "celu", None), ("selu", "selu", None), ("gelu", "gelu", None),
        ("gelu_tanh", "gelu_tanh", None), ("silu", "silu", None), ("mish", "mish", None)]


def time_all(calls, rounds, inner):
    """Median milliseconds of each call; every round runs every call in a new random order, so that none always follows
    the same neighbour."""
    times = {name: [] for name in calls}
    order, draw = list(calls.items()), random.Random(1)
    for round_number in range(rounds + 2):
        draw.shuffle(order)
        for name, call in order:
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(inner):
                call()
            stop.record()
            stop.synchronize()
            if round_number >= 2:
                times[name].append(start.elapsed_time(stop) / inner)
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--n", type=int, default=1 << 27)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--inner", type=int, default=5)
    parser.add_argument("--act", default="")
    parser.add_argument("--dtype", default="f32,bf16,f16")
    parser.add_argument("--csv")
    args = parser.parse_args()
    lib = Library(args.build)
    wanted = [a for a in ACTS if not args.act or a[0] in args.act.split(",")]
    rows = []
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, n = {args.n}, "
          f"medians of {args.rounds} rounds of {args.inner}; x normal(0, 1)")
    for dtype in args.dtype.split(","):
        torch.manual_seed(1)
        x = torch.randn(args.n, device="cuda").to(DTYPES[dtype][1])
        g = torch.randn(args.n, device="cuda").to(DTYPES[dtype][1])
        y, d = torch.empty_like(x), torch.empty_like(x)
        calls = {"copy": lambda: y.copy_(x), "add": lambda: torch.add(x, g, out=y)}
        for spec, name, learned in wanted:
            ours, theirs = berlu_calls(lib, spec, learned, dtype, x, y, g, d), torch_calls(name, x, y, g, d)
            if spec == "berlu:degree=4":
                theirs = (None, None)
            for op in (0, 1):
                calls[(spec, op, "berlu")] = ours[op]
                if theirs[op]:
                    calls[(spec, op, "torch")] = theirs[op]
        ms = time_all(calls, args.rounds, args.inner)
        size = x.element_size() * args.n / 1e9
        print(f"\n{dtype}: copy {ms['copy']:.4f} ms ({2 * size / ms['copy']:.2f} TB/s), "
              f"add {ms['add']:.4f} ms ({3 * size / ms['add']:.2f} TB/s)")
        print(f"{'activation':16}{'forward':>9}{'torch':>9}{'backward':>10}{'torch':>9}")
        for spec, name, learned in wanted:
            cells = []
            for op, yard in ((0, "copy"), (1, "add")):
                for who in ("berlu", "torch"):
                    value = ms.get((spec, op, who))
                    cells.append(f"{value / ms[yard]:.3f}" if value else "-")
                    if value:
                        rows.append((dtype, spec, "forward" if op == 0 else "backward", who, value, value / ms[yard]))
            print(f"{spec:16}{cells[0]:>9}{cells[1]:>9}{cells[2]:>10}{cells[3]:>9}")
    if args.csv:
        with open(args.csv, "w") as out:
            out.write("dtype,act,op,who,median_ms,ratio\n")
            for row in rows:
                out.write(",".join(str(v) for v in row) + "\n")


if __name__ == "__main__":
    main()
