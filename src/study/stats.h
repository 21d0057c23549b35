/* stats.h - the statistics of a study: intervals, contrasts, corrections, power.
 * SPDX-License-Identifier: MIT
 *
 * Few seeds, so everything rests on Student's t and nothing on large samples or resampling of
 * means (at three seeds a percentile bootstrap of 95 % covers 75 %). No function allocates or
 * fails: what cannot be computed is NaN (an interval from one value, a correlation of constants),
 * so a table shows a hole instead of an invented number.
 *
 * An estimate (value, standard error, degrees of freedom) is the common currency:
 * stats_pooled(), stats_welch(), stats_paired() and stats_crossed() make one, and stats_range(),
 * stats_p(), stats_p_equivalent() and stats_detectable() read any of them. stats_contrast() puts
 * together what a report prints about two cells. Files: stats_special.c (distributions), stats.c
 * (samples and tests), stats_images.c (what the per-image results add). */
#ifndef STUDY_STATS_H
#define STUDY_STATS_H

#include <stddef.h>
#include <stdint.h>

/* -- distributions (stats_special.c) -- */

/* The regularised incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1]. The caller
 * gives y = 1 - x as well, because 1 - x loses digits where x is near 1. */
double stats_beta(double x, double y, double a, double b);

double stats_t_cdf(double t, double df);                /* P(T <= t) */
double stats_t_sides(double t, double df);              /* P(|T| >= |t|) */
double stats_t_quantile(double p, double df);           /* the t with P(T <= t) = p; -inf and inf at 0 and 1 */
double stats_f_upper(double f, double df1, double df2); /* P(F >= f) */

/* Power of a two-sided t test at level `alpha` when the true effect is `shift` standard errors:
 * P(|T'| > critical value) for the noncentral T'. */
double stats_t_power(double shift, double df, double alpha);

/* -- one sample -- */

typedef struct stats_sample {
    const double *values;
    size_t count;
} stats_sample;

double stats_mean(stats_sample s);      /* NaN without values */
double stats_deviation(stats_sample s); /* with n - 1; NaN below two values */

/* -- estimates -- */

typedef struct stats_estimate {
    double value, error, df; /* the error is the standard error of the value */
} stats_estimate;

typedef struct stats_interval {
    double low, high;
} stats_interval;

stats_estimate stats_of_mean(stats_sample s);
stats_estimate stats_welch(stats_sample a, stats_sample b); /* mean a - mean b, unequal variances */

/* mean a - mean b with the deviation pooled over `cells`, which include a and b: more degrees of
 * freedom than two samples of three have alone. Valid only where the cells share a deviation;
 * stats_levene() tests that. */
stats_estimate stats_pooled(stats_sample a, stats_sample b, const stats_sample *cells, size_t count);
double stats_pooled_deviation(const stats_sample *cells, size_t count, double *df);

/* mean a - mean b as contrasts are judged: pooled, or by Welch where Levene's p over the cells is
 * below 0.01. */
stats_estimate stats_difference(stats_sample a, stats_sample b, const stats_sample *cells, size_t count);

/* The mean of a[i] - b[i]; both samples have the same length and the same seeds in the same
 * order. */
stats_estimate stats_paired(stats_sample a, stats_sample b);

/* A sum of means, each times its weight, from n, mean and deviation of each sample alone: a
 * difference is the weights 1 and -1, a difference of differences 1, -1, -1, 1. Unequal variances;
 * the degrees of freedom are Welch and Satterthwaite's. NaN where a sample has fewer than two
 * values. */
typedef struct stats_summary {
    double n, mean, deviation;
} stats_summary;
stats_estimate stats_combined(const stats_summary *samples, const double *weights, size_t count);

stats_interval stats_range(stats_estimate e, double level); /* a t interval; level 0.95 for 95 % */
double stats_p(stats_estimate e);                           /* two-sided p of "the value is 0" */

/* Two one-sided tests: p of "the value lies outside (-margin, margin)". Below 0.05 exactly where
 * the 90 % interval is inside. */
double stats_p_equivalent(stats_estimate e, double margin);

/* What a study predicted of a true value: that it lies inside (-limit, limit), below or above the
 * limit. */
typedef enum stats_expects { STATS_NOTHING, STATS_WITHIN, STATS_BELOW, STATS_ABOVE } stats_expects;
typedef struct stats_expected {
    stats_expects what;
    double limit;
} stats_expected;

/* p of "the prediction is wrong" and of "it is right": the first small shows that it holds, the
 * second that it does not. One-sided t tests at the limit; NaN without a prediction. */
double stats_p_wrong(stats_estimate e, stats_expected x);
double stats_p_right(stats_estimate e, stats_expected x);

/* The true difference that a two-sided test at level `alpha` with this error and these degrees
 * of freedom finds with the given power. With k contrasts under Holm the first step has alpha =
 * 0.05 / k. */
double stats_detectable(stats_estimate e, double alpha, double power);

/* Where one more value of the cell lies with probability `level`. */
stats_interval stats_prediction(stats_sample s, double level);

/* -- tests over samples -- */

/* Levene's test of equal deviations around medians (Brown and Forsythe): its p. Samples below three
 * values carry no information (both of two values are equally far from their median) and are left
 * out; NaN when fewer than two samples remain. */
double stats_levene(const stats_sample *cells, size_t count);

double stats_correlation(stats_sample a, stats_sample b); /* Pearson's r of pairs; NaN when one side is constant */

/* The exact two-sided sign-flip p of paired differences: the share of the 2^n sign patterns
 * whose sum is at least as far from 0. NaN for n = 0 and beyond STATS_FLIPS pairs. */
enum { STATS_FLIPS = 16 };
double stats_sign_flip(stats_sample a, stats_sample b);

/* Holm's adjusted p values. A NaN counts as a test of the list (one that was registered and
 * could not be judged) and stays NaN. */
void stats_holm(double *restrict out, const double *restrict p, size_t count);

/* -- per-image results (stats_images.c) -- */

/* Right or wrong for each test image of each run of a cell: run r has bit i % 8 (from the least)
 * of byte bits[r][i / 8]. */
typedef struct stats_images {
    const uint8_t *const *bits;
    size_t runs, images;
} stats_images;

/* The deviation of a run's accuracy, in points, if each image were right independently of the
 * others with its own probability: what the finite test set alone would give. NaN below two
 * runs. */
double stats_images_deviation(stats_images cell);

/* The difference of two cells, in points, as an estimate over new seeds and new test images at
 * once: seeds and images are crossed random factors. `seeds` is the contrast that judges (its error
 * and degrees of freedom are retained); the images add the variance of the per-image mean
 * differences, less the part of it that comes from the seeds. NaN when the cells do not share their
 * images. */
stats_estimate stats_crossed(stats_images a, stats_images b, stats_estimate seeds);

/* -- a contrast, as a report prints it -- */

typedef enum stats_test { STATS_POOLED, STATS_WELCH } stats_test;
const char *stats_test_name(stats_test test); /* "pooled", "welch" */

typedef struct stats_contrast_input {
    stats_sample a, b;         /* last-epoch metric by seed */
    const stats_sample *cells; /* all cells of the same model, data and epochs, a and b included */
    size_t count;
    const stats_sample *minus; /* NULL, or two samples: judged is (a - b) - (minus[0] - minus[1]) */
    size_t pairs;              /* the first `pairs` values of a and of b have the same seeds; 0 beside `minus` */
    size_t contrasts;          /* registered in the same Holm list; 0 counts as 1 */
    double margin;             /* for equivalence */
    stats_expected expected;   /* a prediction */
} stats_contrast_input;

typedef struct stats_contrast {
    double mean_a, sd_a, mean_b, sd_b;
    stats_estimate judged; /* of a - b, less the second difference where there is one, by `test` */
    stats_test test;       /* Welch where Levene's p is below 0.01 */
    double levene;
    double low, high, p;           /* 95 % */
    double low90, high90, p_equal; /* 90 %, for the two one-sided tests */
    double p_flip, paired_low, paired_high, r;
    double detectable;       /* with 80 % power at the first Holm step; of a prediction the distance from its limit */
    double p_wrong, p_right; /* of the prediction; NaN without one */
} stats_contrast;

stats_contrast stats_contrast_make(const stats_contrast_input *in);

#endif
