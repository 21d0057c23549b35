/* landscape.c - the loss along random directions, on a plane, and up the gradient.
 * SPDX-License-Identifier: MIT
 *
 * landscape.h defines directions and sharpness. Every point is one evaluation of the network at
 * moved weights (loss_at); curvatures use gradients. Read landscape_find(). */
#include "analyze/landscape.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/svd.h"
#include "simd/normal.h"

/* ---- directions ------------------------------------------------------------------------------ */

static int moves(const tensor_info *t)
{
    return t->decay && t->rank >= 2; /* linear layers and convolutions */
}

void direction_draw(double *out, const graph *g, const double *weights, uint64_t seed, uint32_t index)
{
    size_t element = 0;
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *t = graph_tensor(g, graph_param(g, i));
        size_t count = (size_t)tensor_elements(t), rows = moves(t) ? (size_t)t->size[0] : 0;
        size_t width = rows ? count / rows : count;
        if (!rows)
            memset(out + element, 0, count * sizeof *out);
        for (size_t r = 0; r < rows; r++) {
            double *d = out + element + r * width;
            const double *w = weights + element + r * width;
            for (size_t k = 0; k < width; k++)
                d[k] =
                    normal_of_word(philox_draw(seed, PURPOSE_ANALYZE, index, element + r * width + k, UINT32_MAX).w[0]);
            double factor = sqrt(dot_product(w, w, width) / dot_product(d, d, width));
            for (size_t k = 0; k < width; k++)
                d[k] *= factor;
        }
        element += count;
    }
}

/* ---- the surface ----------------------------------------------------------------------------- */

typedef struct watch {
    opened *o;
    const landscape_options *options;
    size_t done;
} watch;

static berlu_status network_evaluate(void *context, const double *weights, double *loss, double *gradient)
{
    watch *w = context;
    TRY(opened_set(w->o, weights));
    berlu_status status = opened_loss(w->o, loss, gradient); /* a loss that is not finite took a pass too */
    w->done++;
    if (w->options->tick)
        w->options->tick(w->options->context, w->done, landscape_passes(w->options));
    return status;
}

/* The gradient, a rise, each point of lines and plane but the weights themselves, curvatures, the
 * eigenvalues' products. */
size_t landscape_passes(const landscape_options *o)
{
    return 2 + o->directions * (o->points - 1) + (o->grid ? o->grid * o->grid - 1 : 0) + 2 * o->directions +
           (o->eigenvalues ? 2 * (o->steps + o->eigenvalues) : 0);
}

/* Memory of a search: the weights, the directions, a gradient and two scratch vectors. */
typedef struct search {
    surface s;
    watch watch;
    double *weights, *gradient, *direction, *work;
} search;

static double *direction_at(const search *f, size_t i)
{
    return f->direction + i * f->s.count;
}

/* The loss at w + a d0 + b d1; d1 may be NULL. At the weights it is known. */
static berlu_status loss_at(search *f, const landscape *l, double a, const double *d0, double b, const double *d1,
                            double *out)
{
    *out = l->loss;
    if (a == 0 && b == 0)
        return BERLU_OK;
    for (size_t i = 0; i < f->s.count; i++)
        f->work[i] = f->weights[i] + a * d0[i] + (d1 ? b * d1[i] : 0);
    berlu_status status = f->s.evaluate(f->s.context, f->work, out, NULL);
    if (status == BERLU_ERR_NUMERIC)
        *out = INFINITY; /* far from the weights a network may overflow: a result, not a failure */
    return status == BERLU_ERR_NUMERIC ? BERLU_OK : status;
}

static void places(double *out, size_t count, double radius)
{
    for (size_t i = 0; i < count; i++) /* exact in the middle, symmetric around it */
        out[i] = count > 1 ? radius * ((double)i - (double)(count / 2)) / (double)(count / 2) : 0;
}

static berlu_status lines_find(landscape *l, search *f, const landscape_options *o)
{
    places(l->t, l->points, o->radius);
    for (size_t d = 0; d < l->directions; d++)
        for (size_t i = 0; i < l->points; i++)
            TRY(loss_at(f, l, l->t[i], direction_at(f, d), 0, NULL, &l->line[d * l->points + i]));
    return BERLU_OK;
}

static berlu_status plane_find(landscape *l, search *f, const landscape_options *o)
{
    places(l->side, l->grid, o->radius);
    for (size_t b = 0; b < l->grid; b++)
        for (size_t a = 0; a < l->grid; a++)
            TRY(loss_at(f, l, l->side[a], direction_at(f, 0), l->side[b], direction_at(f, 1),
                        &l->plane[b * l->grid + a]));
    return BERLU_OK;
}

/* d' H d, from gradients: second differences of the loss are lost in its rounding. */
static berlu_status curvatures_find(landscape *l, search *f, const landscape_options *o)
{
    size_t n = f->s.count;
    double *product = malloc(n * sizeof *product), h = o->step > 0 ? o->step : hessian_step(&f->s, f->weights);
    if (!product)
        return berlu_fail_memory(n * sizeof *product, "a product");
    berlu_status status = BERLU_OK;
    for (size_t d = 0; d < l->directions; d++) {
        const double *v = direction_at(f, d);
        double length = sqrt(dot_product(v, v, n));
        TRY_DONE(hessian_times(product, &f->s, f->weights, v, length > 0 ? h / length : h, f->work));
        l->curvature[d] = dot_product(product, v, n);
    }
done:
    free(product);
    return status;
}

static berlu_status middle_find(landscape *l, search *f, const landscape_options *o)
{
    double up;
    TRY(f->s.evaluate(f->s.context, f->weights, &l->loss, f->gradient));
    l->gradient = sqrt(dot_product(f->gradient, f->gradient, f->s.count));
    l->sharpness = 0;
    if (!(l->gradient > 0))
        return BERLU_OK;
    TRY(loss_at(f, l, o->rho / l->gradient, f->gradient, 0, NULL, &up));
    l->sharpness = up - l->loss;
    return BERLU_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static berlu_status memory_make(landscape *l, search *f, const opened *o, const landscape_options *options)
{
    size_t n = o->parameters;
    *l = (landscape){.directions = options->directions, .points = options->points, .grid = options->grid};
    l->t = ARENA_ARRAY(&l->memory, double, l->points);
    l->line = ARENA_ARRAY(&l->memory, double, l->points * l->directions);
    l->curvature = ARENA_ARRAY(&l->memory, double, l->directions);
    l->side = ARENA_ARRAY(&l->memory, double, l->grid + 1);
    l->plane = ARENA_ARRAY(&l->memory, double, l->grid * l->grid + 1);
    l->eigen = ARENA_ARRAY(&l->memory, eigenvalue, options->eigenvalues + 1);
    if (!l->t || !l->line || !l->curvature || !l->side || !l->plane || !l->eigen)
        return BERLU_ERR_MEMORY;
    f->s = (surface){.count = n, .evaluate = network_evaluate, .context = &f->watch};
    f->weights = malloc((l->directions + 4) * n * sizeof *f->weights);
    if (!f->weights)
        return berlu_fail_memory((l->directions + 4) * n * sizeof *f->weights, "directions");
    f->gradient = f->weights + n;
    f->work = f->gradient + n;
    f->direction = f->work + 2 * n;
    return BERLU_OK;
}

berlu_status landscape_find(landscape *out, opened *o, const landscape_options *options)
{
    assert(options->directions >= (options->grid ? 2 : 1) && options->points % 2 == 1);
    assert(options->grid == 0 || options->grid % 2 == 1);
    search f = {.watch = {.o = o, .options = options}};
    const hessian_options lanczos = {
        .wanted = options->eigenvalues, .steps = options->steps, .step = options->step, .seed = options->seed};
    berlu_status status = BERLU_OK;
    TRY_DONE(memory_make(out, &f, o, options));
    TRY_DONE(opened_get(o, f.weights));
    for (size_t i = 0; i < options->directions; i++)
        direction_draw(direction_at(&f, i), o->model->graph, f.weights, options->seed, (uint32_t)i);
    TRY_DONE(middle_find(out, &f, options));
    TRY_DONE(lines_find(out, &f, options));
    if (options->grid)
        TRY_DONE(plane_find(out, &f, options));
    TRY_DONE(curvatures_find(out, &f, options));
    if (options->eigenvalues)
        TRY_DONE(hessian_largest(out->eigen, &out->found, &f.s, f.weights, &lanczos));
    TRY_DONE(opened_set(o, f.weights)); /* restores the weights */
done:
    free(f.weights);
    if (status != BERLU_OK)
        landscape_free(out);
    return status;
}

void landscape_free(landscape *l)
{
    arena_free(&l->memory);
    *l = (landscape){0};
}
