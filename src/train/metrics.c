/* metrics.c - scores of batches, and the columns of metrics.csv. SPDX-License-Identifier: MIT
 *
 * score_add() counts one row by the rank of its label (equal logits rank by class number, NaN last)
 * and adds its loss; metrics_names() and metrics_line() write the header and a row. */
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "io/csv.h"

size_t rank_of(const float *logits, size_t classes, size_t label)
{
    size_t before = 0;
    float right = logits[label];
    for (size_t k = 0; k < classes; k++) {
        if (isnan(logits[k]))
            return classes - 1 > 5 ? classes - 1 : 5; /* outside every top-k */
        before += logits[k] > right || (k < label && logits[k] == right);
    }
    return before;
}

double cross_entropy(const float *logits, size_t classes, size_t label)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < classes; k++)
        most = fmax(most, logits[k]);
    for (size_t k = 0; k < classes; k++)
        sum += exp(logits[k] - most);
    return most + log(sum) - logits[label];
}

void score_add(score *s, const float *logits, size_t classes, size_t label)
{
    size_t rank = rank_of(logits, classes, label);
    s->images++;
    s->top1 += rank < 1;
    s->top5 += rank < 5;
    s->loss += cross_entropy(logits, classes, label);
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : NAN;
}

double score_top1(const score *s)
{
    return percent(s->top1, s->images);
}

double score_top5(const score *s)
{
    return percent(s->top5, s->images);
}

double score_loss(const score *s)
{
    return s->images ? s->loss / (double)s->images : NAN;
}

const char *const site_metric_names[SITE_METRICS] = {
    [SITE_ALPHA] = "alpha",         [SITE_EPS] = "eps",     [SITE_LEFT] = "left",
    [SITE_INSIDE] = "inside",       [SITE_RIGHT] = "right", [SITE_DEAD] = "dead",
    [SITE_GRAD] = "grad",           [SITE_MEAN] = "mean",   [SITE_VAR] = "var",
    [SITE_Y_MEAN] = "y_mean",       [SITE_Y_VAR] = "y_var", [SITE_LIPSCHITZ] = "lipschitz",
    [SITE_NONLINEAR] = "nonlinear",
};

static const char *const leading[] = {"epoch",     "step",      "lr",        "train_loss", "train_top1",
                                      "test_loss", "test_top1", "test_top5", "grad_norm"};
static const char *const average[] = {"ema_loss", "ema_top1", "ema_top5"};

/* Columns that every reader may rely on come first: nine, then alpha to var of each site. Later
 * additions follow. */
enum { FIXED_FIGURES = SITE_VAR + 1 };

/* Calls for every metric of every site in the order of the columns. */
#define FOR_SITE_METRICS(form, s, f)                                                                                   \
    for (int part = 0; part < 2; part++)                                                                               \
        for (size_t s = 0; s < (form)->count; s++)                                                                     \
            for (int f = part ? FIXED_FIGURES : 0;                                                                     \
                 f < (part ? ((form)->old ? (int)SITE_METRICS_0 : (int)SITE_METRICS) : (int)FIXED_FIGURES); f++)

void metrics_names(text *out, const metrics_form *form)
{
    char name[512];
    for (size_t i = 0; i < COUNT(leading); i++)
        csv_text(out, leading[i]);
    FOR_SITE_METRICS(form, s, f)
    {
        snprintf(name, sizeof name, "%s.%s", site_metric_names[f], form->sites[s]);
        csv_text(out, name);
    }
    csv_text(out, "lipschitz");
    for (size_t i = 0; form->ema && i < COUNT(average); i++)
        csv_text(out, average[i]);
    csv_end(out);
}

static void number(text *out, double value)
{
    if (isnan(value))
        csv_empty(out);
    else
        csv_f64(out, value);
}

void metrics_line(text *out, const metrics_form *form, const metrics_row *row, const double *site_metrics)
{
    const double values[] = {row->lr,        row->train_loss, row->train_top1, row->test_loss,
                             row->test_top1, row->test_top5,  row->grad_norm};
    const double averages[] = {row->ema_loss, row->ema_top1, row->ema_top5};
    csv_int(out, (long long)row->epoch);
    csv_int(out, (long long)row->step);
    for (size_t i = 0; i < COUNT(values); i++)
        number(out, values[i]);
    FOR_SITE_METRICS(form, s, f)
    {
        number(out, site_metrics[s * SITE_METRICS + (size_t)f]);
    }
    number(out, row->lipschitz);
    for (size_t i = 0; form->ema && i < COUNT(averages); i++)
        number(out, averages[i]);
    csv_end(out);
}

berlu_status metrics_last(metrics_row *out, const char *path)
{
    csv_table t;
    metrics_row row;
    berlu_status status = csv_read(&t, path);
    if (status != BERLU_OK)
        return status;
    double epoch, step;
    const struct {
        const char *name;
        double *value;
    } cells[] = {{"epoch", &epoch},
                 {"step", &step},
                 {"lr", &row.lr},
                 {"train_loss", &row.train_loss},
                 {"train_top1", &row.train_top1},
                 {"test_loss", &row.test_loss},
                 {"test_top1", &row.test_top1},
                 {"test_top5", &row.test_top5},
                 {"grad_norm", &row.grad_norm},
                 {"lipschitz", &row.lipschitz},
                 {"ema_loss", &row.ema_loss},
                 {"ema_top1", &row.ema_top1},
                 {"ema_top5", &row.ema_top5}};
    for (size_t i = 0; t.rows && i < COUNT(cells); i++)
        *cells[i].value = csv_number(&t, t.rows - 1, csv_column(&t, cells[i].name));
    if (t.rows == 0 || !(epoch >= 0 && epoch < 0x1p53) || !(step >= 0 && step < 0x1p53)) {
        status = berlu_fail(BERLU_ERR_INPUT, "%s: has no row with an epoch and a step", path);
    } else {
        row.epoch = (uint64_t)epoch, row.step = (uint64_t)step;
        *out = row;
    }
    csv_free(&t);
    return status;
}
