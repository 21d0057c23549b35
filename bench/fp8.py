#!/usr/bin/env python3
"""fp8.py - would products in 8 bits make a training step faster? Products of ViT-Tiny/4 alone, bf16 and fp8 by turns.
SPDX-License-Identifier: MIT

    bench/fp8.py [--batch 1024] [--rounds 9]

For each product of a block: cuBLASLt in bf16, the same in fp8 (e4m3, one scale a matrix, fast accumulation, bf16 result),
and what fp8 adds: converting the input that comes in bf16 (read 2 bytes, write 1), for weight gradients also transposing
both matrices, because 8-bit tensor cores take operands along the depth alone. A kernel before the product could write 8
bits instead and save that; then the product itself is what remains, so both sums are printed. Every product runs over
several sets of matrices, more than the L2 holds; medians of rounds that take turns. Needs torch and a GPU of compute
capability 8.9 or later."""
import argparse
import statistics

import torch

WIDTH, TOKENS, BLOCKS = 192, 65, 12
PRODUCTS = {"qkv": (WIDTH, 3 * WIDTH), "proj": (WIDTH, WIDTH), "fc1": (WIDTH, 4 * WIDTH), "fc2": (4 * WIDTH, WIDTH)}
FP8 = torch.float8_e4m3fn


def microseconds(run, sets, repeats=24):
    """Of one call, from a replayed graph of `repeats` calls over all sets."""
    for each in sets:
        run(*each)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            run(*sets[i % len(sets)])
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def replay():
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / repeats

    return replay


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--rounds", type=int, default=9)
    args = p.parse_args()
    rows, one = args.batch * TOKENS, torch.ones((), device="cuda")
    total = {}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {rows} rows; us of a call")
    print(f"{'product':12} {'inputs':>6} {'outputs':>7} {'bf16':>8} {'fp8':>8} {'convert':>8} {'with it':>8}")

    def line(name, depth, columns, plain, eight, convert, sets, sets8):
        runs = {"bf16": microseconds(plain, sets), "fp8": microseconds(eight, sets8), "convert": microseconds(convert, sets)}
        taken = {key: [] for key in runs}
        for _ in range(args.rounds):
            for key, run in runs.items():
                taken[key].append(run())
        median = {key: statistics.median(values) for key, values in taken.items()}
        print(f"{name:12} {depth:6} {columns:7} {median['bf16']:8.1f} {median['fp8']:8.1f} {median['convert']:8.1f} "
              f"{median['fp8'] + median['convert']:8.1f}", flush=True)
        for key, value in median.items():
            total[key] = total.get(key, 0) + value * BLOCKS / 1e3

    for name, (inputs, outputs) in PRODUCTS.items():
        def matrices(a_rows, b_rows, depth):
            return [tuple(torch.randn(r, depth, device="cuda", dtype=torch.bfloat16) for r in (a_rows, b_rows)) for _ in range(3)]

        def eights(sets):
            return [tuple(m.to(FP8) for m in pair) for pair in sets]

        def scaled(a, b):
            return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)

        forward = matrices(rows, outputs, inputs)
        line(f"{name} y", inputs, outputs, lambda a, b: a @ b.t(), scaled, lambda a, b: a.to(FP8), forward, eights(forward))
        back = matrices(rows, inputs, outputs)
        line(f"{name} dx", outputs, inputs, lambda a, b: a @ b.t(), scaled, lambda a, b: a.to(FP8), back, eights(back))
        dw = [(torch.randn(rows, outputs, device="cuda", dtype=torch.bfloat16), torch.randn(rows, inputs, device="cuda", dtype=torch.bfloat16))
              for _ in range(3)]
        dw8 = [tuple(m.t().to(FP8).contiguous() for m in pair) for pair in dw]
        line(f"{name} dw", rows, inputs * outputs, lambda a, b: a.t() @ b, scaled,
             lambda a, b: (a.t().to(FP8).contiguous(), b.t().to(FP8).contiguous()), dw, dw8)
        del forward, back, dw, dw8
        torch.cuda.empty_cache()
    print(f"a step of {BLOCKS} blocks, ms: bf16 {total['bf16']:.2f}, fp8 {total['fp8']:.2f}, conversions {total['convert']:.2f}")


if __name__ == "__main__":
    main()
