/* spectrum.c - singular values of all matrices, in parallel, and gradient norms of the sites.
 * SPDX-License-Identifier: MIT
 *
 * For each state (start, trained): one backward over the images gives the norms (gradients_look),
 * then every matrix is decomposed by svd.h in a task of its own (matrices_look). Read
 * spectrum_find(). */
#include "analyze/spectrum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/svd.h"
#include "base/threads.h"

const char *const spectrum_states[SPECTRUM_STATES] = {"start", "trained"};

double stable_rank(const double *singular, size_t count)
{
    return count && singular[0] > 0 ? dot_product(singular, singular, count) / (singular[0] * singular[0]) : 0;
}

/* Linear layers and convolutions decay and have two dimensions or four; a depthwise kernel (one
 * input per output) is no matrix. */
static int is_matrix(const tensor_info *t)
{
    return t->decay && (t->rank == 2 || (t->rank == 4 && t->size[1] > 1));
}

static berlu_status matrices_list(spectrum *out, const graph *g)
{
    int count = graph_param_count(g);
    out->matrix = ARENA_ARRAY(&out->memory, spectrum_matrix, (size_t)count + 1);
    out->sites = (size_t)graph_site_count(g);
    out->site = ARENA_ARRAY(&out->memory, spectrum_site, out->sites + 1);
    if (!out->matrix || !out->site)
        return BERLU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const tensor_info *t = graph_tensor(g, graph_param(g, i));
        if (!is_matrix(t))
            continue;
        spectrum_matrix *m = &out->matrix[out->matrices++];
        m->name = t->name;
        m->rows = (size_t)t->size[0];
        m->columns = (size_t)tensor_elements(t) / m->rows;
        m->count = m->rows < m->columns ? m->rows : m->columns;
        for (int state = 0; state < out->states; state++)
            if (!(m->singular[state] = ARENA_ARRAY(&out->memory, double, m->count)))
                return BERLU_ERR_MEMORY;
    }
    for (size_t i = 0; i < out->sites; i++)
        out->site[i].name = graph_site_at(g, (int)i)->name;
    return BERLU_OK;
}

/* ---- singular values, a matrix a block of threads -------------------------------------------- */

typedef struct work {
    spectrum *s;
    const opened *o;
    int state;
    berlu_status *status;
} work;

static void matrix_look(void *context, size_t block)
{
    const work *w = context;
    const spectrum_matrix *m = &w->s->matrix[block];
    const tensor_info *info;
    float *values;
    w->status[block] = opened_parameter(w->o, ARRAY_WEIGHT, m->name, &values, &info);
    if (w->status[block] != BERLU_OK)
        return;
    w->status[block] = singular_values(m->singular[w->state], values, m->rows, m->columns);
    free(values);
}

static berlu_status matrices_look(spectrum *s, const opened *o, int state, int threads)
{
    work w = {s, o, state, calloc(s->matrices + 1, sizeof *w.status)};
    if (!w.status)
        return berlu_fail_memory(s->matrices * sizeof *w.status, "the work of threads");
    threads_for(threads, s->matrices, matrix_look, &w);
    berlu_status status = BERLU_OK;
    for (size_t i = 0; status == BERLU_OK && i < s->matrices; i++)
        if (w.status[i] != BERLU_OK)
            status = berlu_fail(w.status[i], "%s: its singular values could not be computed%s", s->matrix[i].name,
                                w.status[i] == BERLU_ERR_MEMORY ? ": no memory" : "");
    free(w.status);
    return status;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void norm_take(spectrum *s, const graph *g, const tensor_info *t, double norm, int state)
{
    for (size_t i = 0; i < s->matrices; i++)
        if (s->matrix[i].name == t->name)
            s->matrix[i].gradient[state] = norm;
    for (size_t i = 0; i < s->sites; i++) {
        char bias[512];
        const char *name = graph_site_at(g, (int)i)->name, *dot = strrchr(name, '.');
        snprintf(bias, sizeof bias, "%.*s.fc1.bias", dot ? (int)(dot - name) : 0, name);
        if (strcmp(bias, t->name) == 0)
            s->site[i].gradient[state] = norm;
    }
}

static berlu_status gradients_look(spectrum *s, opened *o, int state)
{
    const graph *g = o->model->graph;
    double *gradient = malloc(o->parameters * sizeof *gradient), *at = gradient;
    if (!gradient)
        return berlu_fail_memory(o->parameters * sizeof *gradient, "a gradient");
    for (size_t i = 0; i < s->sites; i++)
        s->site[i].gradient[state] = NAN;
    s->growth[state] = NAN;
    berlu_status status;
    TRY_DONE(opened_loss(o, &s->loss[state], gradient));
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *t = graph_tensor(g, graph_param(g, i));
        size_t count = (size_t)tensor_elements(t);
        norm_take(s, g, t, sqrt(dot_product(at, at, count)), state);
        at += count;
    }
    if (s->sites > 1)
        s->growth[state] =
            pow(s->site[0].gradient[state] / s->site[s->sites - 1].gradient[state], 1 / (double)(s->sites - 1));
done:
    free(gradient);
    return status;
}

berlu_status spectrum_find(spectrum *out, opened *o, int threads)
{
    *out = (spectrum){.states = o->is_run ? SPECTRUM_STATES : 1};
    berlu_status status;
    TRY_DONE(matrices_list(out, o->model->graph));
    for (int state = 0; state < out->states; state++) {
        TRY_DONE(state == SPECTRUM_START ? opened_start(o) : opened_checkpoint(o));
        TRY_DONE(gradients_look(out, o, state));
        TRY_DONE(matrices_look(out, o, state, threads));
    }
done:
    if (status != BERLU_OK)
        spectrum_free(out);
    return status;
}

void spectrum_free(spectrum *s)
{
    arena_free(&s->memory);
    *s = (spectrum){0};
}
