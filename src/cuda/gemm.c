/* gemm.c - the one place that calls cuBLASLt: describes products, chooses algorithms, remembers
 * them. SPDX-License-Identifier: MIT
 *
 * A product's descriptors and its algorithm are made when a call first needs them and kept as long
 * as the device. Of what the library's heuristic offers the fastest is taken, measured on the
 * operands at hand; the choice is written to a file, so that the next run takes the same one and
 * gives the same bits (algorithms.h). Ways to ask for it:
 *
 *     NULL     the file of the user's cache folder; what it lacks is measured and added
 *     "new"    everything is measured anew and written there
 *     "first"  the heuristic's first, no file
 *     FILE     the choices of that file; what it lacks is measured and added. A choice made with
 *              another version of the library is refused: whoever names a file wants its bits
 *     a text   the same for the text of such a file, as run.json keeps it; what it lacks is
 *              measured
 *
 * Bias and residual go into the library's epilogue. Its gradient epilogues are never used: they are
 * slower than a kernel of ours (DGELU with a bias gradient 3.6 times, BGRADB adds more than the
 * product takes). Read on: linear.c. */
#include "cuda/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cuda/algorithms.h"
#include "cuda/cuda.h"

enum {
    OFFERS = 32,
    REPEATS = 7,
    SHAPE_TEXT = 160,
    FULL_ALIGN = 128, /* tensors lie on 256 bytes, bf16 copies of weights on 128 */
};
static const size_t workspace_bytes = (size_t)64 << 20;
static const size_t flush_bytes = (size_t)160 << 20; /* more than the L2 of any GPU */

typedef struct gemm_plan {
    lt_product product;
    lt_plan *plan;
    lt_algorithm algorithm;
    int offered; /* the library has something for it */
} gemm_plan;

typedef enum choice_mode { CHOICE_CACHE, CHOICE_NEW, CHOICE_FIRST, CHOICE_FILE } choice_mode;

struct gemm_state {
    lt_library *lt;
    void *workspace;
    char version[32], machine[192];
    choice_mode mode;
    char *path; /* NULL: no file */
    algorithm_list known, used;
    int unsaved;
    gemm_plan *plans;
    int count, capacity;
    cuda_event begin, end;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* The user's cache folder; a machine without a home has none, and then nothing is kept. */
static berlu_status cache_path(char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    text path = {0};
    *out = NULL;
    if (cache && cache[0] == '/')
        text_add(&path, "%s/berlu/algorithms.txt", cache);
    else if (home && home[0] == '/')
        text_add(&path, "%s/.cache/berlu/algorithms.txt", home);
    else
        return BERLU_OK;
    *out = path.data;
    return text_status(&path);
}

static berlu_status mode_set(gemm_state *g, const char *algorithms)
{
    if (!algorithms || strcmp(algorithms, "new") == 0) {
        g->mode = algorithms ? CHOICE_NEW : CHOICE_CACHE;
        berlu_status status = cache_path(&g->path);
        if (status == BERLU_OK && g->mode == CHOICE_CACHE && g->path && algorithms_read(&g->known, g->path) != BERLU_OK)
            algorithms_free(&g->known); /* a cache that cannot be read is an empty one */
        return status;
    }
    if (strcmp(algorithms, "first") == 0) {
        g->mode = CHOICE_FIRST;
        return BERLU_OK;
    }
    g->mode = CHOICE_FILE;
    if (algorithms_is_text(algorithms))
        return algorithms_parse(&g->known, algorithms, strlen(algorithms), "the record of product algorithms");
    g->path = strdup(algorithms);
    return g->path ? algorithms_read(&g->known, g->path) : berlu_fail_memory(strlen(algorithms), "the name of a file");
}

berlu_status cuda_gemm_open(cuda_device *d, const char *algorithms)
{
    gemm_state *g = d->gemm = calloc(1, sizeof *g);
    if (!g)
        return berlu_fail_memory(sizeof *g, "cuBLASLt");
    TRY(lt_open(&g->lt));
    lt_version(g->lt, g->version);
    snprintf(g->machine, sizeof g->machine, "%s, %d processors", d->gpu.name, d->gpu.processors);
    for (char *bar = strchr(g->machine, '|'); bar; bar = strchr(bar, '|'))
        *bar = ' '; /* the file's separator */
    TRY(cuda_take(d, &g->workspace, MEMORY_DEVICE, workspace_bytes, "cuBLASLt's workspace"));
    TRY(gpu_event_create(&g->begin, 1));
    TRY(gpu_event_create(&g->end, 1));
    return mode_set(g, algorithms);
}

void cuda_gemm_close(cuda_device *d)
{
    gemm_state *g = d->gemm;
    if (!g)
        return;
    for (int i = 0; i < g->count; i++)
        lt_plan_free(g->plans[i].plan);
    free(g->plans);
    gpu_event_destroy(g->begin);
    gpu_event_destroy(g->end);
    cuda_release((device *)d, MEMORY_DEVICE, g->workspace);
    lt_close(g->lt);
    algorithms_free(&g->known);
    algorithms_free(&g->used);
    free(g->path);
    free(g);
    d->gemm = NULL;
}

void cuda_gemm_describe(const cuda_device *d, char *out, size_t size)
{
    snprintf(out, size, "cuBLASLt %s", d->gemm->version);
}

size_t cuda_gemm_library(const op_call *c)
{
    switch (c->op) {
    case OP_LINEAR:
    case OP_LINEAR_DX:
    case OP_LINEAR_DW:
    case OP_LINEAR_ACT:
    case OP_LINEAR_DX_ACT:
    case OP_LINEAR_NORM:
        return workspace_bytes;
    default:
        return 0;
    }
}

/* ---- records --------------------------------------------------------------------------------- */

berlu_status cuda_gemm_save(cuda_device *d)
{
    gemm_state *g = d->gemm;
    if (!g->unsaved || !g->path)
        return BERLU_OK;
    g->unsaved = 0; /* said once, if it fails */
    char *folder = strdup(g->path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash && slash != folder && g->mode != CHOICE_FILE) {
        *slash = '\0';
        folder_make(folder);
    }
    free(folder);
    berlu_status status = algorithms_write(&g->used, g->path);
    return g->mode == CHOICE_FILE ? status : BERLU_OK; /* a cache that cannot be written is no reason to stop */
}

berlu_status cuda_algorithms_text(const device *d, text *out)
{
    algorithms_print(&cuda_device_at(d)->gemm->used, out);
    return text_status(out);
}

static void shape_text(char out[SHAPE_TEXT], const lt_product *p)
{
    snprintf(out, SHAPE_TEXT, "%lldx%lldx%lld %c%c %s>%s%s%s", (long long)p->m, (long long)p->n, (long long)p->k,
             p->transpose_a ? 't' : 'n', p->transpose_b ? 't' : 'n',
             p->in_bf16 ? "bf16"
             : p->tf32  ? "tf32"
                        : "f32",
             p->out_bf16 ? "bf16" : "f32", p->bias ? " bias" : "", p->add ? " add" : "");
    if (p->align < FULL_ALIGN) /* rare: a tensor that does not begin where the plan lays them */
        snprintf(out + strlen(out), SHAPE_TEXT - strlen(out), " aligned to %d", p->align);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int seconds_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of REPEATS timings in seconds; negative where the library refuses. Before each of them
 * `flush` is written, where there is one: inside a step most operands come from memory, and an
 * algorithm chosen on operands in L2 can be a third slower there. */
static double offer_time(cuda_device *d, gemm_plan *g, const lt_algorithm *a, const lt_pointers *p, void *flush)
{
    double seconds[REPEATS];
    if (lt_run(g->plan, a, p, d->stream) != BERLU_OK)
        return -1;
    for (int i = 0; i < REPEATS; i++) {
        berlu_status status = flush ? gpu_zero(flush, flush_bytes, d->stream) : BERLU_OK;
        if (status == BERLU_OK)
            status = gpu_event_record(d->gemm->begin, d->stream);
        if (status == BERLU_OK)
            status = lt_run(g->plan, a, p, d->stream);
        if (status == BERLU_OK)
            status = gpu_event_record(d->gemm->end, d->stream);
        if (status == BERLU_OK)
            status = gpu_event_wait(d->gemm->end);
        if (status == BERLU_OK)
            status = gpu_event_seconds(&seconds[i], d->gemm->begin, d->gemm->end);
        if (status != BERLU_OK)
            return -1;
    }
    qsort(seconds, REPEATS, sizeof *seconds, seconds_compare);
    return seconds[REPEATS / 2];
}

/* Times what the heuristic offers on the operands themselves; -1 where none of it runs. A residual
 * that lies where the result goes is saved before and put back behind; where there is no memory for
 * that the first offer has to do. */
static int offer_pick(cuda_device *d, gemm_plan *g, const lt_pointers *p, const lt_algorithm *offers, int count)
{
    size_t bytes = (size_t)(g->product.m * g->product.n) * (g->product.out_bf16 ? 2 : 4);
    void *saved = NULL, *flush = NULL;
    int best = -1;
    double least = -1;
    if (g->product.add && p->c == p->d &&
        (gpu_alloc(&saved, bytes) != BERLU_OK || gpu_copy(saved, p->d, bytes, GPU_WITHIN, d->stream) != BERLU_OK)) {
        gpu_free(saved);
        return 0;
    }
    if (gpu_alloc(&flush, flush_bytes) != BERLU_OK)
        flush = NULL;
    for (int i = 0; i < count; i++) {
        double seconds = offer_time(d, g, &offers[i], p, flush);
        if (seconds >= 0 && (least < 0 || seconds < least))
            best = i, least = seconds;
    }
    if (saved && gpu_copy(p->d, saved, bytes, GPU_WITHIN, d->stream) != BERLU_OK)
        cuda_device_fail(d, BERLU_ERR_DEVICE, "%s", berlu_last_error());
    gpu_stream_wait(d->stream);
    gpu_free(saved);
    gpu_free(flush);
    return best;
}

/* The recorded choice of this shape; NULL: there is none. A named file whose record cannot be taken
 * is a failure. */
static const algorithm_entry *record_find(cuda_device *d, gemm_plan *g, const char *shape)
{
    gemm_state *s = d->gemm;
    const algorithm_entry *e = algorithms_find(&s->known, s->machine, s->version, shape);
    if (e && lt_accepts(g->plan, &e->algorithm, workspace_bytes))
        return e;
    if (!e)
        e = algorithms_find(&s->known, s->machine, NULL, shape);
    if (e && s->mode == CHOICE_FILE)
        cuda_device_fail(
            d, BERLU_ERR_UNSUPPORTED,
            "%s: the algorithm recorded for %s was chosen with cuBLASLt %s, and cuBLASLt %s does not take it; "
            "--algorithms new chooses anew (the last bits of results may then differ)",
            s->path ? s->path : "run.json", shape, e->version, s->version);
    return NULL;
}

static void choose(cuda_device *d, gemm_plan *g, const lt_pointers *p)
{
    gemm_state *s = d->gemm;
    lt_algorithm offers[OFFERS];
    char shape[SHAPE_TEXT];
    shape_text(shape, &g->product);
    const algorithm_entry *recorded = s->mode == CHOICE_FIRST ? NULL : record_find(d, g, shape);
    int count = recorded || d->failed != BERLU_OK ? 0 : lt_offers(g->plan, workspace_bytes, offers, OFFERS);
    int best = count > 0 ? 0 : -1;
    if (count > 1 && s->mode != CHOICE_FIRST)
        best = offer_pick(d, g, p, offers, count);
    g->offered = recorded || best >= 0;
    if (!g->offered)
        return;
    g->algorithm = recorded ? recorded->algorithm : offers[best];
    s->unsaved += !recorded && s->mode != CHOICE_FIRST;
    berlu_status status = algorithms_set(&s->used, s->machine, s->version, shape, &g->algorithm);
    if (status != BERLU_OK)
        cuda_device_fail(d, status, "%s", berlu_last_error());
}

/* ---- products -------------------------------------------------------------------------------- */

static gemm_plan *plan_of(cuda_device *d, const lt_product *product, const lt_pointers *p)
{
    gemm_state *s = d->gemm;
    for (int i = 0; i < s->count; i++)
        if (memcmp(&s->plans[i].product, product, sizeof *product) == 0)
            return &s->plans[i];
    if (s->count == s->capacity) {
        int more = s->capacity ? 2 * s->capacity : 64;
        gemm_plan *grown = realloc(s->plans, (size_t)more * sizeof *grown);
        if (!grown) {
            cuda_device_fail(d, BERLU_ERR_MEMORY, "out of memory for the plans of products");
            return NULL;
        }
        s->plans = grown;
        s->capacity = more;
    }
    gemm_plan *g = &s->plans[s->count];
    *g = (gemm_plan){.product = *product};
    berlu_status status = lt_plan_make(&g->plan, s->lt, product);
    if (status != BERLU_OK) {
        cuda_device_fail(d, status, "%s", berlu_last_error());
        return NULL;
    }
    choose(d, g, p);
    if (d->failed != BERLU_OK) {
        lt_plan_free(g->plan);
        return NULL;
    }
    s->count++;
    return g;
}

/* The largest power of two, up to FULL_ALIGN, that divides all of them. */
static int alignment_of(const lt_pointers *p)
{
    uintptr_t all =
        (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->d | (uintptr_t)p->bias | FULL_ALIGN;
    return (int)(all & -all);
}

/* Row-major matrices are the library's column-major ones transposed, so y^T = b a^T is what it is
 * asked for. */
int cuda_gemm(const op_call *c, const gemm_call *g)
{
    cuda_device *d = cuda_device_of(c);
    lt_pointers p = {.a = g->b,
                     .b = g->a,
                     .c = g->residual,
                     .bias = g->bias,
                     .d = g->y,
                     .workspace = d->lt_workspace ? d->lt_workspace : d->gemm->workspace,
                     .workspace_bytes = workspace_bytes};
    lt_product product;
    memset(&product, 0, sizeof product); /* compared byte by byte */
    product.m = g->columns, product.n = g->rows, product.k = g->depth;
    product.transpose_a = !g->b_by_depth, product.transpose_b = g->a_by_depth;
    product.in_bf16 = g->in_bf16, product.out_bf16 = g->out_bf16;
    product.tf32 = d->precision == PRECISION_TF32 && !g->in_bf16;
    product.bias = g->bias != NULL, product.add = g->residual != NULL;
    product.align = alignment_of(&p);
    gemm_plan *plan = plan_of(d, &product, &p);
    if (!plan)
        return 1;
    if (!plan->offered)
        return 0;
    berlu_status status = lt_run(plan->plan, &plan->algorithm, &p, d->stream);
    if (status != BERLU_OK)
        cuda_device_fail(d, status, "%s: %s", op_rules[c->op].name, berlu_last_error());
    return 1;
}
