#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/stats.tsv again: /usr/bin/python3 tools/golden_stats.py > tests/golden/stats.tsv

Distributions come from mpmath in 40 digits and are compared here with SciPy's; statistics of samples come from SciPy, or from their
definition where SciPy has none (Holm's values as the closure of Bonferroni's test, the crossed estimate from the analysis of variance
written out). Nothing follows the formulas of src/study. Needs SciPy and mpmath.

Lines: `sample NAME v...` and `bits NAME run run ...` (0 and 1 in image order) are data; every other line is a statistic, its arguments
and, last, its value."""
import itertools

import mpmath
import numpy as np
from mpmath import mp, mpf
from scipy import optimize, stats

mp.dps = 40


def row(*fields):
    print("\t".join(f if isinstance(f, str) else mpmath.nstr(mpf(f), 20) if isinstance(f, mpf) else repr(float(f))
                    for f in fields))


def near(ours, theirs, digits=9):
    """SciPy must agree: two sources for each number."""
    assert abs(float(ours) - float(theirs)) <= 10.0**-digits * abs(float(theirs)) + 1e-300, (ours, theirs)
    return ours


def beta_regularised(a, b, x):
    return mpmath.betainc(mpf(a), mpf(b), 0, x, regularized=True)


def t_sides(t, df):
    return beta_regularised(mpf(df) / 2, mpf(1) / 2, mpf(df) / (mpf(df) + mpf(t) ** 2))


def t_quantile(p, df):
    p, start = mpf(p), stats.t.ppf(float(p), df)
    cdf = lambda t: t_sides(t, df) / 2 if t < 0 else 1 - t_sides(t, df) / 2
    return mpmath.findroot(lambda t: cdf(t) - p, (mpf(start), mpf(start) * (1 + mpf(10) ** -8)), tol=mpf(10) ** -60)


def t_power(shift, df, alpha):
    """P(|T'| > c) by integrating over the deviation."""
    c, d, s = -t_quantile(mpf(alpha) / 2, df), mpf(df), mpf(shift)
    normal = lambda z: mpmath.erfc(-z / mpmath.sqrt(2)) / 2
    density = lambda v: mpmath.exp((d - 1) * mpmath.log(v) - d * v * v / 2 + mpmath.log(2) + d / 2 * mpmath.log(d / 2)
                                   - mpmath.loggamma(d / 2))
    f = lambda v: density(v) * (normal(s - c * v) + normal(-s - c * v)) if v > 0 else mpf(0)
    width = 1 / mpmath.sqrt(2 * d)
    cuts = sorted({mpf(0), *(mpf(1) + k * width for k in range(-12, 25) if 1 + k * width > 0), s / c, s / c + 1 / c, 25 * width + 1})
    return mpmath.quad(f, cuts + [mp.inf] if cuts[-1] < 10 else cuts)


def interval(df, value, error):
    """95 %; SciPy's quantile holds ten digits only, so it is the check and not the source."""
    half = near(-t_quantile(mpf("0.025"), df), -stats.t.ppf(0.025, df)) * mpf(error)
    return mpf(value) - half, mpf(value) + half


def distributions():
    for df in (1, 2, 3.7, 4, 9, 18, 63, 250.5, 4000):
        for t in (1e-5, 0.1, 0.7, 1, 2.5, 7, 40):
            value = near(t_sides(t, df), 2 * stats.t.sf(t, df)) if not (df == 4000 and t == 40) else t_sides(t, df)
            row("t_sides", df, t, value)
            row("t_cdf", df, t, 1 - value / 2)
            row("t_cdf", df, -t, value / 2)
        for p in (1e-12, 1e-5, 0.005, 0.025, 0.1, 0.3, 0.4999, 0.51, 0.8, 0.975, 0.99):
            row("t_quantile", df, p, near(t_quantile(p, df), stats.t.ppf(p, df), 7))
    for df1, df2 in ((1, 4), (2, 6), (5, 18), (6, 63), (10, 200)):
        for f in (0.01, 0.6, 1, 3.3, 12):
            x = mpf(df2) / (df2 + df1 * mpf(f))
            row("f_upper", df1, df2, f, near(beta_regularised(mpf(df2) / 2, mpf(df1) / 2, x), stats.f.sf(f, df1, df2)))
    for a, b in ((0.5, 0.5), (0.5, 30), (3, 2), (12.5, 7), (400, 300)):
        for x in (1 / 1024, 0.25, 0.5, 0.75, 0.984375):
            row("beta", x, a, b, near(beta_regularised(a, b, mpf(x)), stats.beta.cdf(x, a, b)))
    for df in (2, 4, 18, 63):
        for alpha in (0.05, 0.01):
            for shift in (0, 0.5, 2, 3.5, 6):
                c = -stats.t.ppf(alpha / 2, df)
                theirs = stats.nct.sf(c, df, shift) + stats.nct.cdf(-c, df, shift) if shift else alpha
                row("power", shift, df, alpha, near(t_power(shift, df, alpha), theirs, 7))
    for df in (2, 4, 12, 63):
        for alpha in (0.05, 0.01):
            c = -stats.t.ppf(alpha / 2, df)
            start = optimize.brentq(lambda s: stats.nct.sf(c, df, s) + stats.nct.cdf(-c, df, s) - 0.8, 0.5, 60)
            root = mpmath.findroot(lambda s: t_power(s, df, alpha) - mpf("0.8"), (mpf(start), mpf(start) * (1 + mpf(10) ** -6)),
                                   tol=mpf(10) ** -36)
            row("detectable", df, alpha, near(root, start, 7))


SAMPLES = {
    "gelu": [70.31, 70.62, 70.17, 70.9, 70.44],
    "berlu": [78.5, 78.21, 78.77, 78.4, 78.96],
    "relu": [78.1, 78.9, 78.35],
    "wild": [60.2, 71.4, 55.9, 68.8, 49.5],
    "silu": [68.6, 68.3, 68.9, 68.05, 69.2, 68.51, 68.74, 68.33, 68.62, 68.9],
    "two": [50.5, 51.5],
    "large": [1e8 + 0.25, 1e8 + 0.5, 1e8 + 0.125, 1e8 + 1],
}


def samples():
    for name, values in SAMPLES.items():
        row("sample", name, *values)
    for name, values in SAMPLES.items():
        n, mean, sd = len(values), np.mean(values), np.std(values, ddof=1)
        if name == "large":  # SciPy's own sums lose digits here: exact rationals instead
            exact = [mpf(v) for v in values]
            mean = sum(exact) / n
            sd = mpmath.sqrt(sum((v - mean) ** 2 for v in exact) / (n - 1))
        row("mean", name, mean)
        row("deviation", name, sd)
        if name == "large":
            continue
        low, high = interval(n - 1, mean, stats.sem(values))
        row("interval", name, low, high)
        row("prediction", name, *interval(n - 1, mean, sd * np.sqrt(1 + 1 / n)))
    for a, b in (("berlu", "gelu"), ("berlu", "relu"), ("wild", "silu"), ("two", "relu")):
        test = stats.ttest_ind(SAMPLES[a], SAMPLES[b], equal_var=False)
        va, vb = (np.var(SAMPLES[k], ddof=1) / len(SAMPLES[k]) for k in (a, b))
        df = (va + vb) ** 2 / (va**2 / (len(SAMPLES[a]) - 1) + vb**2 / (len(SAMPLES[b]) - 1))
        row("welch", a, b, np.mean(SAMPLES[a]) - np.mean(SAMPLES[b]), np.sqrt(va + vb), df, test.pvalue)
        both = stats.ttest_ind(SAMPLES[a], SAMPLES[b])
        row("pooled_two", a, b, both.pvalue)
    cells = ["gelu", "berlu", "relu", "silu"]
    df = sum(len(SAMPLES[c]) - 1 for c in cells)
    sd = np.sqrt(sum(np.var(SAMPLES[c], ddof=1) * (len(SAMPLES[c]) - 1) for c in cells) / df)
    for a, b in itertools.combinations(cells, 2):
        value = np.mean(SAMPLES[a]) - np.mean(SAMPLES[b])
        error = sd * np.sqrt(1 / len(SAMPLES[a]) + 1 / len(SAMPLES[b]))
        low, high = interval(df, value, error)
        row("pooled", a, b, value, error, df, low, high, 2 * stats.t.sf(abs(value) / error, df))
    for names in (("gelu", "berlu"), ("gelu", "wild", "silu"), ("gelu", "berlu", "relu", "silu"), ("wild", "relu")):
        row("levene", ",".join(names), stats.levene(*(SAMPLES[n] for n in names)).pvalue)
    for a, b in (("berlu", "gelu"), ("wild", "gelu")):
        x, y = np.array(SAMPLES[a]), np.array(SAMPLES[b])
        test = stats.ttest_rel(x, y)
        low, high = interval(len(x) - 1, np.mean(x - y), stats.sem(x - y))
        row("paired", a, b, np.mean(x - y), low, high, test.pvalue)
        row("correlation", a, b, stats.pearsonr(x, y)[0])


def flips():
    generator = np.random.default_rng(20)
    for n in (2, 3, 5, 8, 10):
        for k in range(3):
            d = np.round(generator.normal(0.3 * k, 1, n), 2)
            test = stats.permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=False)
            row("sign_flip", *d, min(1.0, float(test.pvalue)))


def holm():
    generator = np.random.default_rng(7)
    for m in (1, 2, 5, 7):
        for k in range(3):
            p = np.round(generator.uniform(0, 0.2, m) ** (k + 1), 6)
            if m > 2 and k == 1:
                p[1] = p[0]
            subsets = [s for r in range(1, m + 1) for s in itertools.combinations(range(m), r)]
            adjusted = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in subsets if i in s) for i in range(m)]
            row("holm", *p, *adjusted)


def equivalence():
    for value, error, df, margin in ((0.1, 0.15, 12, 0.5), (0.45, 0.1, 4, 0.5), (-0.3, 0.2, 18, 0.5), (0.9, 0.2, 8, 0.5)):
        lower = stats.t.sf((value + margin) / error, df)
        upper = stats.t.cdf((value - margin) / error, df)
        row("equivalence", value, error, df, margin, max(lower, upper))


def images():
    """The crossed estimate from the textbook's two-way table, with every mean and residual written out."""
    generator = np.random.default_rng(3)
    for n_a, n_b, count in ((3, 3, 60), (5, 2, 97), (2, 4, 16)):
        skill = generator.uniform(-1, 2, count)
        arm = lambda n, shift: (skill + shift + generator.normal(0, 0.3, (n, 1)) + generator.normal(0, 1, (n, count)) > 0) * 1
        a, b = arm(n_a, 0.3), arm(n_b, 0.0)
        names = []
        for label, bits in (("a", a), ("b", b)):
            names.append(f"{label}{n_a}{n_b}{count}")
            row("bits", names[-1], *("".join(map(str, r)) for r in bits))
            share = bits.mean(axis=0)
            unbiased = share * (1 - share) * len(bits) / (len(bits) - 1)
            row("images_deviation", names[-1], 100 * np.sqrt(unbiased.sum()) / count)
        residuals = []
        for bits in (a, b):
            rest = bits - bits.mean(axis=1, keepdims=True) - bits.mean(axis=0, keepdims=True) + bits.mean()
            residuals.append((rest**2).sum() / ((len(bits) - 1) * (count - 1)) / len(bits))
        error, df = 0.8, 11.0
        difference = a.mean(axis=0) - b.mean(axis=0)
        by_image = 1e4 * np.var(difference, ddof=1) / count
        extra = max(0.0, by_image - 1e4 * sum(residuals) / count)
        total = error**2 + extra
        freedom = max(total**2 / (error**4 / df + by_image**2 / (count - 1)), min(df, count - 1))
        row("crossed", *names, error, df, 100 * difference.mean(), np.sqrt(total), freedom)


print("# made by tools/golden_stats.py; see there")
distributions()
samples()
flips()
holm()
equivalence()
images()
