/* stats_images.c - what one bit per test image adds to a mean over seeds.
 * SPDX-License-Identifier: MIT
 *
 * An accuracy moves for two reasons: other seeds, and other test images. Seeds are what a
 * contrast judges; the second interval here asks whether the difference would hold on another draw
 * of the test set too. Model: right(seed, image) of an arm is a mean plus a seed effect, an image
 * effect and a rest that is independent between images. For the difference D of two arms with their
 * own seeds,
 *
 *     var D = var(seed effects) + var(image effects) / N + rest / (n N),
 *
 * where the error over seeds already holds the first and the last term, and the variance of the
 * N per-image mean differences, divided by N, the second and the last. Their sum counts the rest
 * twice; the residual mean squares of each arm (two-way layout, one value per cell) take it off
 * once (Cornfield and Tukey 1956). */
#include <math.h>

#include "study/stats.h"

static int bit(stats_images cell, size_t run, size_t image)
{
    return cell.bits[run][image / 8] >> image % 8 & 1;
}

static double right_runs(stats_images cell, size_t image)
{
    double right = 0;
    for (size_t run = 0; run < cell.runs; run++)
        right += bit(cell, run, image);
    return right;
}

/* Sum over the images of k (n - k) / n, k of n runs being right: the squares around each image's
 * own mean. */
static double squares_within_images(stats_images cell)
{
    double sum = 0, n = (double)cell.runs;
    for (size_t i = 0; i < cell.images; i++) {
        double right = right_runs(cell, i);
        sum += right * (n - right);
    }
    return sum / n;
}

double stats_images_deviation(stats_images cell)
{
    if (cell.runs < 2 || !cell.images)
        return NAN;
    double variance = squares_within_images(cell) / (double)(cell.runs - 1); /* summed over images */
    return 100 * sqrt(variance) / (double)cell.images;
}

/* N times the squares of the runs' means around the mean of all: what seeds explain of
 * squares_within_images(). */
static double squares_of_runs(stats_images cell)
{
    double sum = 0, squares = 0, n = (double)cell.runs;
    for (size_t run = 0; run < cell.runs; run++) {
        double right = 0;
        for (size_t i = 0; i < cell.images; i++)
            right += bit(cell, run, i);
        sum += right;
        squares += right * right;
    }
    return (squares - sum * sum / n) / (double)cell.images; /* integers below 2^53: exact until the divisions */
}

/* The variance of one image's result in one run that neither the seed nor the image explains. A
 * single run has no residual. */
static double residual(stats_images cell)
{
    if (cell.runs < 2)
        return 0;
    double left = squares_within_images(cell) - squares_of_runs(cell);
    return fmax(0, left) / ((double)(cell.runs - 1) * (double)(cell.images - 1));
}

stats_estimate stats_crossed(stats_images a, stats_images b, stats_estimate seeds)
{
    stats_estimate none = {NAN, NAN, NAN};
    if (a.images != b.images || a.images < 2 || !a.runs || !b.runs)
        return none;
    double images = (double)a.images, na = (double)a.runs, nb = (double)b.runs, sum = 0, squares = 0;
    for (size_t i = 0; i < a.images; i++)
        sum += right_runs(a, i) / na - right_runs(b, i) / nb;
    for (size_t i = 0; i < a.images; i++) {
        double off = right_runs(a, i) / na - right_runs(b, i) / nb - sum / images;
        squares += off * off;
    }
    double points = 100 * 100 / images; /* a variance between images becomes one of the mean, in points */
    double by_image = points * squares / (images - 1), twice = points * (residual(a) / na + residual(b) / nb);
    double by_seed = seeds.error * seeds.error;
    double total = by_seed + fmax(0, by_image - twice);
    /* Welch and Satterthwaite: the few seeds decide where they carry the variance */
    double df =
        total > 0 ? total * total / (by_seed * by_seed / seeds.df + by_image * by_image / (images - 1)) : seeds.df;
    return (stats_estimate){100 * sum / images, sqrt(total), fmax(df, fmin(seeds.df, images - 1))};
}
