#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/svd.tsv again: /usr/bin/python3 tools/golden_svd.py > tests/golden/svd.tsv

Singular values by LAPACK (numpy, double) of matrices that a few integer operations define, so that the test makes the same floats:
kind, rows, columns, then all values, largest first. Needs numpy."""
import numpy as np


def drawn(rows, columns):
    """A linear congruential generator, 24 bits a number, in [-1/2, 1/2)."""
    x, values = 12345, []
    for _ in range(rows * columns):
        x = (1664525 * x + 1013904223) % 2**32
        values.append((x >> 8) * 2.0**-24 - 0.5)
    return np.array(values, dtype=np.float32).reshape(rows, columns)


def hilbert(rows, columns):
    """Singular values from 1.8 down to what float32 leaves of 1e-16."""
    return np.array([[1.0 / (i + k + 1) for k in range(columns)] for i in range(rows)], dtype=np.float32)


def rank_one(rows, columns):
    return np.array([[(i + 1) * (k - 2) for k in range(columns)] for i in range(rows)], dtype=np.float32)


def graded(rows, columns):
    """Columns from 1 down to 2^-40."""
    return drawn(rows, columns) * np.array([2.0 ** -(40 * k // max(columns - 1, 1)) for k in range(columns)], dtype=np.float32)


print("# made by tools/golden_svd.py; see there")
for kind, sizes in (("drawn", ((1, 1), (1, 9), (9, 1), (7, 5), (5, 7), (16, 16), (64, 48), (96, 384), (100, 33))),
                    ("hilbert", ((12, 12), (9, 14))), ("rank_one", ((6, 8), (8, 6))), ("graded", ((24, 24), (40, 16)))):
    for rows, columns in sizes:
        values = np.linalg.svd(globals()[kind](rows, columns).astype(np.float64), compute_uv=False)
        print("\t".join([kind, str(rows), str(columns)] + [repr(float(v)) for v in values]))
