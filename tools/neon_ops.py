#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that the NEON kernels execute per vector of four floats: python3 tools/neon_ops.py [NAME...]

No aarch64 machine is needed: each kernel is cross-compiled, and the emulator logs every instruction of a run over N and
over 2 N elements; the difference belongs to the loop. Beside it stands the number of operations of the formula as it is
written, with the instructions that NEON needs for each word of src/simd/vec.h (tools/neon_ops.c), so the ratio is what
the compiler and the loop add. Instructions are counted in four classes: arithmetic on vectors, vector loads (tables and
spilled registers included), vector stores, and all others. A scalar floating-point instruction in a loop is an error.
Needs aarch64-linux-gnu-gcc, its objdump, and qemu-aarch64."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
N, VECTOR = 4096, 4
LOADS, STORES = re.compile(r"ld[rpu1]|ldnp|ldur|ld1"), re.compile(r"st[rpu1]|stnp|stur|st1")
VECTOR_REGISTER = re.compile(r"\bv\d+\.|\bq\d+\b")
SCALAR_FLOAT = re.compile(r"^f\w+\s+[sd]\d+\b")
LEARNED = {"berlu", "prelu"}
DEFAULTS = {"berlu": "0.01f, 0.01f", "leaky_relu": "0.01f", "prelu": "0.25f", "smelu": "2.0f", "elu": "1.0f", "celu": "1.0f"}
# The log has one line per instruction, with its address in brackets and its function behind them. fill() makes the input,
# with scalar numbers.
LOGGED = re.compile(r"\[[0-9a-f]+/([0-9a-f]+)/[^]]*\] (?!fill)")


def names():
    text = (ROOT / "src/act/list.h").read_text()
    return [n for n in re.findall(r"^ACT\((\w+)\)", text, re.M) if n != "smoothed"]


def compile_to(path, compiler, name, extra):
    command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-fno-math-errno", "-I%s/src" % ROOT,
               "-I%s/include" % ROOT, '-DACT_FORMULA="act/formulas/%s.h"' % name, "-DLEARNED=%d" % (name in LEARNED),
               "-DDEFAULTS=%s" % DEFAULTS.get(name, "1.0f"), *extra, str(ROOT / "tools/neon_ops.c"), "-o", str(path), "-lm"]
    subprocess.run(command, check=True)


def disassembly(program):
    """By address: the instruction."""
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", str(program)], check=True,
                          capture_output=True, text=True).stdout
    return {int(a, 16): i.split("//")[0].strip() for a, i in re.findall(r"^\s+([0-9a-f]+):\s+(.*)$", text, re.M)}


def kind(instruction):
    name = instruction.split()[0]
    if not VECTOR_REGISTER.search(instruction):
        return "scalar float" if SCALAR_FLOAT.match(instruction) else "other"
    if LOADS.match(name):
        return "loads"
    return "stores" if STORES.match(name) else "arithmetic"


def executed(program, code, n, op, folder):
    log = pathlib.Path(folder) / "log"
    subprocess.run(["qemu-aarch64", "-singlestep", "-d", "exec,nochain", "-D", str(log), str(program), str(n), op], check=True)
    counts = {"arithmetic": 0, "loads": 0, "stores": 0, "other": 0, "scalar float": 0}
    with open(log) as lines:
        for line in lines:
            m = LOGGED.search(line)
            if m and int(m.group(1), 16) in code:
                counts[kind(code[int(m.group(1), 16)])] += 1
    return counts


def measure(name, folder):
    program, words = pathlib.Path(folder) / name, pathlib.Path(folder) / (name + "_words")
    compile_to(program, "aarch64-linux-gnu-gcc", name, ["-static"])
    compile_to(words, "cc", name, ["-DV_TARGET_SCALAR", "-DCOUNT_WORDS", "-Wno-unused"])
    code, rows = disassembly(program), []
    for op in ("forward", "backward"):
        formula = float(subprocess.run([words, str(N), op], check=True, capture_output=True, text=True).stdout)
        once, twice = (executed(program, code, m * N, op, folder) for m in (1, 2))
        each = {k: (twice[k] - once[k]) * VECTOR / N for k in once}
        if each["scalar float"] > 0.1:  # sums of a block are joined one by one, 0.02 a vector
            raise SystemExit("%s %s: %.2f scalar floating-point instructions per vector" % (name, op, each["scalar float"]))
        rows.append((op, formula, each))
    return rows


def main():
    chosen = sys.argv[1:] or names()
    print("| | formula | vector arithmetic | ratio | loads | stores | other |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            for op, formula, each in measure(name, folder):
                print("| %s %s | %.0f | %.1f | %.2f | %.1f | %.1f | %.1f |" % (
                    name, op, formula, each["arithmetic"], each["arithmetic"] / max(formula, 1), each["loads"],
                    each["stores"], each["other"]), flush=True)


if __name__ == "__main__":
    main()
