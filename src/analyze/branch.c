/* branch.c - spectral norms of both layers of every MLP branch, and their product.
 * SPDX-License-Identifier: MIT
 *
 * branch.h has the bound. branches_find() takes the sites in order and finds the matrices beside
 * each by their names; the norms of all matrices are computed in parallel. */
#include "analyze/branch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/svd.h"
#include "base/threads.h"
#include "train/diagnose.h"

/* "blocks.0.mlp.act" is between "blocks.0.mlp.fc1" and "blocks.0.mlp.fc2"; LayerScale is
 * "blocks.0.gamma". Removes the last `levels` names. */
static void name_beside(char out[512], const char *site, int levels, const char *name)
{
    size_t length = strlen(site);
    for (; levels > 0 && length > 0; length--)
        levels -= site[length - 1] == '.';
    snprintf(out, 512, "%.*s%s%s", (int)length, site, length ? "." : "", name);
}

static berlu_status norm_of(double *out, const opened *o, const char *site, const char *name)
{
    char full[512];
    float *values;
    const tensor_info *info;
    name_beside(full, site, 1, name);
    berlu_status status = opened_parameter(o, ARRAY_WEIGHT, full, &values, &info);
    if (status != BERLU_OK)
        return status;
    size_t rows = (size_t)info->size[0], columns = (size_t)tensor_elements(info) / rows;
    double *singular = malloc((rows < columns ? rows : columns) * sizeof *singular);
    if (singular)
        status = singular_values(singular, values, rows, columns);
    else
        status = berlu_fail_memory(rows * sizeof *singular, "singular values");
    if (status == BERLU_OK)
        *out = singular[0];
    free(singular);
    free(values);
    return status;
}

/* 1 where no LayerScale follows the branch. */
static berlu_status scale_of(double *out, const opened *o, const char *site)
{
    char full[512];
    float *values;
    const tensor_info *info;
    *out = 1;
    name_beside(full, site, 2, "gamma");
    if (graph_find(engine_graph(o->engine), full) == TENSOR_NONE)
        return BERLU_OK;
    TRY(opened_parameter(o, ARRAY_WEIGHT, full, &values, &info));
    *out = 0;
    for (int64_t i = 0; i < tensor_elements(info); i++)
        *out = fmax(*out, fabsf(values[i]));
    free(values);
    return BERLU_OK;
}

typedef struct work {
    const opened *o;
    branch *branches;
    berlu_status *status;
    char (*message)[256];
} work;

/* One matrix: fc1 of the even blocks' site, fc2 of the odd ones'. */
static void matrix_look(void *context, size_t block)
{
    const work *w = context;
    branch *b = &w->branches[block / 2];
    w->status[block] =
        block % 2 ? norm_of(&b->fc2, w->o, b->site, "fc2.weight") : norm_of(&b->fc1, w->o, b->site, "fc1.weight");
    if (w->status[block] != BERLU_OK)
        snprintf(w->message[block], sizeof w->message[block], "%s", berlu_last_error());
}

static berlu_status matrices_look(branch *branches, size_t count, const opened *o, int threads)
{
    work w = {o, branches, calloc(2 * count + 1, sizeof *w.status), calloc(2 * count + 1, sizeof *w.message)};
    berlu_status status = BERLU_OK;
    if (!w.status || !w.message)
        status = berlu_fail_memory(2 * count * sizeof *w.message, "the work of threads");
    else
        threads_for(threads, 2 * count, matrix_look, &w);
    for (size_t i = 0; status == BERLU_OK && i < 2 * count; i++)
        if (w.status[i] != BERLU_OK)
            status = berlu_fail(w.status[i], "%s", w.message[i]);
    free(w.status);
    free(w.message);
    return status;
}

berlu_status branches_find(branch **out, size_t *count, opened *o, int threads)
{
    diagnosis *d = NULL;
    branch *branches = NULL;
    double *metrics = NULL;
    berlu_status status;
    TRY(diagnosis_create(&d, engine_graph(o->engine), threads));
    size_t sites = diagnosis_sites(d);
    branches = calloc(sites + 1, sizeof *branches);
    metrics = calloc(sites * SITE_METRICS + 1, sizeof *metrics);
    if (!branches || !metrics)
        TRY_DONE(berlu_fail_memory(sites * sizeof *branches, "the branches"));
    TRY_DONE(diagnosis_parameters(d, o->engine, metrics));
    for (size_t i = 0; i < sites; i++) {
        const double *m = metrics + i * SITE_METRICS;
        branches[i] = (branch){.site = graph_site_at(o->model->graph, (int)i)->name,
                               .alpha = m[SITE_ALPHA],
                               .eps = m[SITE_EPS],
                               .lipschitz = m[SITE_LIPSCHITZ]};
        TRY_DONE(scale_of(&branches[i].scale, o, branches[i].site));
    }
    TRY_DONE(matrices_look(branches, sites, o, threads));
    for (size_t i = 0; i < sites; i++)
        branches[i].bound = branches[i].fc1 * branches[i].lipschitz * branches[i].fc2 * branches[i].scale;
    *out = branches;
    *count = sites;
    branches = NULL; /* the caller's now */
done:
    diagnosis_free(d);
    free(metrics);
    free(branches);
    return status;
}
