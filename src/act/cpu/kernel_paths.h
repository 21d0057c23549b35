/* kernel_paths.h - loops of a formula that has a short way and a long one (ACT_FAR, ACT_FAR_VALUE).
 * SPDX-License-Identifier: MIT
 *
 * One vector on the long way is a chain of operations that wait for each other, and between
 * branches a processor does not see enough of the next. So the question is asked once for a group,
 * and a group with any far lane goes the long way as a whole, its vectors side by side, in a
 * function that has all registers for it. Where the long way has an end too, groups with an x
 * behind it go a vector at a time. No bit depends on it. Part of kernel_loops.h. */
#ifndef ACT_CPU_KERNEL_PATHS_H
#define ACT_CPU_KERNEL_PATHS_H

enum { WAYS_GROUP = 4, WAYS_STEP = WAYS_GROUP * V_LANES };
_Static_assert(WAYS_GROUP % ACT_SIDE == 0 && ACT_PARAMS == 0, "whole groups, and no parameters");

/* What formula.h asks of a header; the value looks at no dy. */
typedef struct paths {
    int (*way)(const v_f32 *x, int n);
    v_f32 (*near)(v_f32 x, v_f32 dy);
    void (*far)(v_f32 *x, const v_f32 *dy, int n);
    v_f32 (*any)(v_f32 x, v_f32 dy); /* where the way is ACT_NEITHER */
    int slopes;
} paths;

/* Where a loop stands: dy is NULL for the value. */
typedef struct iterator {
    const char *x, *dy;
    char *out;
    size_t left; /* groups */
    int large;   /* lines of the output are asked for too */
} iterator;

V_FN void iterator_step(iterator *w, berlu_dtype dtype, int slopes, size_t groups)
{
    size_t bytes = groups * WAYS_STEP * (dtype == BERLU_F32 ? 4u : 2u);
    w->x += bytes;
    w->out += bytes;
    if (slopes)
        w->dy += bytes;
    w->left -= groups;
}

/* dy of the group, and the lines of later ones are asked for */
V_FN void iterator_load(const iterator *w, berlu_dtype dtype, int slopes, v_f32 *dy)
{
    group_prefetch(w->x, dtype, WAYS_GROUP, AHEAD);
    if (slopes) {
        group_prefetch(w->dy, dtype, WAYS_GROUP, AHEAD);
        group_load(dy, w->dy, dtype, WAYS_GROUP);
    }
    if (w->large)
        group_prefetch(w->out, dtype, WAYS_GROUP, AHEAD);
}

/* The long way, for as many groups as come that need it and no more; tells how many. */
V_FN size_t paths_long(const paths *f, iterator w, berlu_dtype dtype, int stream)
{
    v_f32 x[WAYS_GROUP], g[WAYS_GROUP];
    const v_f32 *dy = f->slopes ? g : x;
    size_t all = w.left;
    group_load(x, w.x, dtype, WAYS_GROUP);
    do {
        iterator_load(&w, dtype, f->slopes, g);
        V_FOR(int v = 0; v < WAYS_GROUP; v += ACT_SIDE)
            f->far(x + v, dy + v, ACT_SIDE);
        put_group(stream, w.out, dtype, x, WAYS_GROUP);
        iterator_step(&w, dtype, f->slopes, 1);
        if (w.left == 0)
            break;
        group_load(x, w.x, dtype, WAYS_GROUP);
    } while (f->way(x, WAYS_GROUP) == ACT_LONG);
    return all - w.left;
}

typedef size_t (*long_fn)(iterator w, int stream);

/* The short way, and the others by `rest` or a vector at a time */
V_FN void paths_run(const paths *f, const act_job *job, size_t from, size_t groups, berlu_dtype dtype, int stream,
                    long_fn rest)
{
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    iterator w = {.x = (const char *)job->x + from * size,
                  .dy = f->slopes ? (const char *)job->dy + from * size : NULL,
                  .out = (char *)(f->slopes ? job->dx : job->y) + from * size,
                  .left = groups,
                  .large = !stream && output_is_far(job, size)};
    while (w.left) {
        v_f32 x[WAYS_GROUP], g[WAYS_GROUP];
        const v_f32 *dy = f->slopes ? g : x;
        group_load(x, w.x, dtype, WAYS_GROUP);
        int way = f->way(x, WAYS_GROUP);
        if (way == ACT_LONG) {
            iterator_step(&w, dtype, f->slopes, rest(w, stream));
            continue;
        }
        iterator_load(&w, dtype, f->slopes, g);
        V_FOR(int v = 0; v < WAYS_GROUP; v++)
            x[v] = way == ACT_SHORT ? f->near(x[v], dy[v]) : f->any(x[v], dy[v]);
        put_group(stream, w.out, dtype, x, WAYS_GROUP);
        iterator_step(&w, dtype, f->slopes, 1);
    }
}

V_FN size_t paths_loop(const paths *f, const act_job *job, const span *s, berlu_dtype dtype, long_fn rest)
{
    const size_t groups = s->n / WAYS_STEP;
    for (size_t b = 0; b < s->blocks; b++)
        if (job->stream)
            paths_run(f, job, s->from + b * ACT_BLOCK, groups, dtype, 1, rest);
        else
            paths_run(f, job, s->from + b * ACT_BLOCK, groups, dtype, 0, rest);
    return groups * WAYS_STEP;
}

#define PATHS_LOOP(name, rest, paths, dtype)                                                                           \
    static __attribute__((noinline)) size_t rest(iterator w, int stream)                                               \
    {                                                                                                                  \
        return stream ? paths_long(&paths, w, dtype, 1) : paths_long(&paths, w, dtype, 0);                             \
    }                                                                                                                  \
    LOOP_FN name(const act_job *job, const span *s)                                                                    \
    {                                                                                                                  \
        return paths_loop(&paths, job, s, dtype, rest);                                                                \
    }

#ifdef ACT_FAR_VALUE
V_FN v_f32 value_near(v_f32 x, v_f32 dy)
{
    (void)dy;
    return act_near_value(x);
}

V_FN void value_far(v_f32 *x, const v_f32 *dy, int n)
{
    (void)dy;
    act_far_value(x, n);
}

V_FN v_f32 value_any(v_f32 x, v_f32 dy)
{
    (void)dy;
    return act_value(x, &(act_consts){0});
}

static const paths value_paths = {act_value_path, value_near, value_far, value_any, 0};
PATHS_LOOP(value_f32, value_long_f32, value_paths, BERLU_F32)
PATHS_LOOP(value_bf16, value_long_bf16, value_paths, BERLU_BF16)
PATHS_LOOP(value_f16, value_long_f16, value_paths, BERLU_F16)
#endif

#ifdef ACT_FAR
static const paths slope_paths = {act_slope_path, act_near_times, act_far_times, act_near_times, 1};
PATHS_LOOP(slope_f32, slope_long_f32, slope_paths, BERLU_F32)
PATHS_LOOP(slope_bf16, slope_long_bf16, slope_paths, BERLU_BF16)
PATHS_LOOP(slope_f16, slope_long_f16, slope_paths, BERLU_F16)
#endif

#endif
