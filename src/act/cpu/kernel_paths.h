/* kernel_paths.h - loops of a formula with a fast path for near x and a slow one (ACT_VALUE_PATHS,
 * ACT_SLOPE_PATHS). SPDX-License-Identifier: MIT
 *
 * The slow path of one vector is a chain of dependent operations, and across branches a processor
 * does not see enough of the next vector. So the path is chosen once per group; a group with any
 * far lane takes the slow path as a whole, its vectors interleaved, in a function that has all
 * registers to itself. Where the slow path has a limit too, groups beyond it go one vector at a
 * time. No bit depends on the choice. Part of kernel_loops.h. */
#ifndef ACT_CPU_KERNEL_PATHS_H
#define ACT_CPU_KERNEL_PATHS_H

enum {
    VALUE_PATHS = ACT_VALUE_PATHS && ACT_INTERLEAVED > 1,
    SLOPE_PATHS = ACT_SLOPE_PATHS && ACT_INTERLEAVED > 1,
    PATH_GROUP = ACT_INTERLEAVED > 1 ? ACT_INTERLEAVED : 2,
    PATH_STEP = PATH_GROUP * V_LANES
};
_Static_assert(ACT_PARAMS == 0 || !(VALUE_PATHS || SLOPE_PATHS), "no parameters");

/* The functions of formula.h; those of the value ignore dy. */
typedef struct paths {
    int (*path)(const v_f32 *x, int n);
    void (*near)(v_f32 *x, const v_f32 *dy, int n);
    void (*far)(v_f32 *x, const v_f32 *dy, int n);
    v_f32 (*beyond)(v_f32 x, v_f32 dy);
    int slopes;
} paths;

/* The position of a loop; dy is NULL for the value. */
typedef struct iterator {
    const char *x, *dy;
    char *out;
    size_t left;  /* groups */
    size_t ahead; /* prefetch distance */
    int far;      /* the output is prefetched too */
} iterator;

V_FN void iterator_step(iterator *w, berlu_dtype dtype, int slopes, size_t groups)
{
    size_t bytes = groups * PATH_STEP * (dtype == BERLU_F32 ? 4u : 2u);
    w->x += bytes;
    w->out += bytes;
    if (slopes)
        w->dy += bytes;
    w->left -= groups;
}

/* Loads dy of the group and prefetches for later ones. */
V_FN void iterator_load(const iterator *w, berlu_dtype dtype, int slopes, v_f32 *dy)
{
    group_prefetch(w->x, dtype, PATH_GROUP, w->ahead);
    if (slopes) {
        group_prefetch(w->dy, dtype, PATH_GROUP, w->ahead);
        group_load(dy, w->dy, dtype, PATH_GROUP);
    }
    if (w->far)
        group_prefetch(w->out, dtype, PATH_GROUP, w->ahead);
}

/* The slow path, up to the first group that does not need it; returns the number of groups. */
V_FN size_t far_loop(const paths *f, iterator w, berlu_dtype dtype, int stream)
{
    v_f32 x[PATH_GROUP], g[PATH_GROUP];
    const v_f32 *dy = f->slopes ? g : x;
    size_t all = w.left;
    group_load(x, w.x, dtype, PATH_GROUP);
    do {
        iterator_load(&w, dtype, f->slopes, g);
        f->far(x, dy, PATH_GROUP);
        put_group(stream, w.out, dtype, x, PATH_GROUP);
        iterator_step(&w, dtype, f->slopes, 1);
        if (w.left == 0)
            break;
        group_load(x, w.x, dtype, PATH_GROUP);
    } while (f->path(x, PATH_GROUP) == ACT_SOME_FAR);
    return all - w.left;
}

typedef size_t (*far_fn)(iterator w, int stream);

/* The fast path, and other groups by `far` or a vector at a time. */
V_FN void paths_run(const paths *f, const act_job *job, size_t from, size_t groups, berlu_dtype dtype, int stream,
                    far_fn far)
{
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    iterator w = {.x = (const char *)job->x + from * size,
                  .dy = f->slopes ? (const char *)job->dy + from * size : NULL,
                  .out = (char *)(f->slopes ? job->dx : job->y) + from * size,
                  .left = groups,
                  .ahead = job->ahead,
                  .far = !stream && output_is_far(job, size)};
    while (w.left) {
        v_f32 x[PATH_GROUP], g[PATH_GROUP];
        const v_f32 *dy = f->slopes ? g : x;
        group_load(x, w.x, dtype, PATH_GROUP);
        int path = f->path(x, PATH_GROUP);
        if (path == ACT_SOME_FAR) {
            iterator_step(&w, dtype, f->slopes, far(w, stream));
            continue;
        }
        iterator_load(&w, dtype, f->slopes, g);
        if (path == ACT_ALL_NEAR)
            f->near(x, dy, PATH_GROUP);
        else
            V_FOR(int v = 0; v < PATH_GROUP; v++)
                x[v] = f->beyond(x[v], dy[v]);
        put_group(stream, w.out, dtype, x, PATH_GROUP);
        iterator_step(&w, dtype, f->slopes, 1);
    }
}

V_FN size_t paths_loop(const paths *f, const act_job *job, const span *s, berlu_dtype dtype, far_fn far)
{
    const size_t groups = s->n / PATH_STEP;
    for (size_t b = 0; b < s->blocks; b++)
        if (job->stream)
            paths_run(f, job, s->from + b * ACT_BLOCK, groups, dtype, 1, far);
        else
            paths_run(f, job, s->from + b * ACT_BLOCK, groups, dtype, 0, far);
    return groups * PATH_STEP;
}

V_FN size_t far_groups(const paths *f, iterator w, berlu_dtype dtype, int stream)
{
    return stream ? far_loop(f, w, dtype, 1) : far_loop(f, w, dtype, 0);
}

V_FN void value_near(v_f32 *x, const v_f32 *dy, int n)
{
    (void)dy;
    act_near_value(x, n);
}

V_FN void value_far(v_f32 *x, const v_f32 *dy, int n)
{
    (void)dy;
    act_far_value(x, n);
}

V_FN v_f32 value_beyond(v_f32 x, v_f32 dy)
{
    (void)dy;
    return act_value(x, &(act_consts){0});
}

V_FN v_f32 slope_beyond(v_f32 x, v_f32 dy)
{
    return ACT_PRODUCT(act_slope(x, &(act_consts){0}), dy);
}

static const paths value_paths = {act_value_path, value_near, value_far, value_beyond, 0};
static const paths slope_paths = {act_slope_path, act_near_backward, act_far_backward, slope_beyond, 1};

LOOP_FN far_value_f32(iterator w, int stream)
{
    return far_groups(&value_paths, w, BERLU_F32, stream);
}

LOOP_FN far_value_bf16(iterator w, int stream)
{
    return far_groups(&value_paths, w, BERLU_BF16, stream);
}

LOOP_FN far_value_f16(iterator w, int stream)
{
    return far_groups(&value_paths, w, BERLU_F16, stream);
}

LOOP_FN far_slope_f32(iterator w, int stream)
{
    return far_groups(&slope_paths, w, BERLU_F32, stream);
}

LOOP_FN far_slope_bf16(iterator w, int stream)
{
    return far_groups(&slope_paths, w, BERLU_BF16, stream);
}

LOOP_FN far_slope_f16(iterator w, int stream)
{
    return far_groups(&slope_paths, w, BERLU_F16, stream);
}

#endif
