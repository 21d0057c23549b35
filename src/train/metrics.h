/* metrics.h - losses and accuracies of a run, and their row in metrics.csv.
 * SPDX-License-Identifier: MIT
 *
 * Accuracy is counted in integers over the complete set; the loss is a sum over images in double,
 * never a mean of batch means. A row holds only values that are reproducible to the bit: no
 * times. */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* ---- accuracy -------------------------------------------------------------------------------- */

/* The number of classes that precede the right one: those with a larger logit, or an equal one and
 * a smaller index. Rank 0 is the argmax. A row with a NaN has the last rank. */
size_t rank_of(const float *logits, size_t classes, size_t label);

/* Cross entropy of one row, in double. */
double cross_entropy(const float *logits, size_t classes, size_t label);

typedef struct score {
    uint64_t images, top1, top5;
    double loss; /* sum */
} score;
void score_add(score *s, const float *logits, size_t classes, size_t label);
double score_top1(const score *s); /* percent; NaN without images */
double score_top5(const score *s); /* top-K where there are K < 5 classes */
double score_loss(const score *s);

/* ---- metrics.csv ----------------------------------------------------------------------------- */

/* Metrics of one activation site at the end of an epoch (diagnose.h), in the order of the
 * columns. */
typedef enum site_metric {
    SITE_ALPHA, /* mean over channels; NaN where the activation has none */
    SITE_EPS,
    SITE_LEFT, /* shares of pre-activations left of, inside and right of the transition |x| <= eps */
    SITE_INSIDE,
    SITE_RIGHT,
    SITE_DEAD, /* share of units whose derivative is below 1/1000 for every input */
    SITE_GRAD, /* norm of the gradient that reaches the site, summed over positions: that of fc1's bias */
    SITE_MEAN, /* of the pre-activations */
    SITE_VAR,
    SITE_Y_MEAN, /* of the activation's output */
    SITE_Y_VAR,
    SITE_LIPSCHITZ, /* of the activation with its current parameters */
    SITE_NONLINEAR, /* share of the output's variance that no affine map explains: 1 - cov(x, y)^2 / (var x var y) */
    SITE_METRICS,
    SITE_METRICS_0 = SITE_NONLINEAR /* their number in 0.1.0 */
} site_metric;
extern const char *const site_metric_names[SITE_METRICS]; /* "alpha", "eps", ... */

typedef struct metrics_row {
    uint64_t epoch, step; /* epochs done, updates done */
    double lr;            /* of the last update */
    double train_loss, train_top1, test_loss, test_top1, test_top5, grad_norm;
    double ema_loss, ema_top1, ema_top5; /* only with an average of the weights */
    double lipschitz;                    /* greatest of all sites */
} metrics_row;

/* The columns: those of this version, or of a file that berlu 0.1.0 created. */
typedef struct metrics_form {
    const char *const *sites; /* names */
    size_t count;             /* of sites */
    int ema;                  /* the run maintains an average of the weights */
    int old;                  /* SITE_METRICS_0 metrics per site */
} metrics_form;

/* The names of the columns, and a row. `site_metrics` holds SITE_METRICS values per site; NaN
 * leaves a cell empty. */
void metrics_names(text *out, const metrics_form *form);
void metrics_line(text *out, const metrics_form *form, const metrics_row *row, const double *site_metrics);

/* The last row of a metrics.csv; missing columns are NaN. A file without rows is
 * BERLU_ERR_INPUT. */
berlu_status metrics_last(metrics_row *out, const char *path);

#endif
