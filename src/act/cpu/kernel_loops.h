/* kernel_loops.h - the fast loops of kernel.c: whole groups of vectors over flat arrays.
 * SPDX-License-Identifier: MIT
 *
 * A group is loaded, computed, stored. Lines of later groups are prefetched, where that pays
 * (stream.c): with arithmetic between the loads a processor may not look far enough ahead by
 * itself, not even into L2. Each loop is a function of its own with dtype, sums and fast path as
 * constants, because loops in one function compete for registers, and a sum that is spilled to
 * memory makes every addition wait for the last one. Loops that a formula does not have are never
 * referenced, so the compiler drops them. Read loop_pick() at the end first. Part of kernel.c,
 * which defines consts and lanes. */
#ifndef ACT_CPU_KERNEL_LOOPS_H
#define ACT_CPU_KERNEL_LOOPS_H

enum {
    MAP_GROUP = 4, /* vectors of a group */
    /* with sums: few registers with AVX2; with AVX-512 two were faster where memory is the limit */
    SUM_GROUP = V_LANES == 8 || (V_LANES == 16 && !ACT_COSTLY) ? 2 : 4,
    /* Outputs up to this many bytes per thread are not prefetched: they are in L2, and only with
     * AVX-512 is there time to spare for prefetching them all the same. */
    NEAR_BYTES = V_LANES == 16 ? 0 : 3 << 18,
};

/* Conditions that the compiler may assume in a loop: none; ACT_FAST_PATH, and with sums
 * ACT_EXACT_KNEE; ACT_FAST_PATH without ACT_EXACT_KNEE; ACT_SECOND_PATH. */
enum { ANY, FAST, FAST_INEXACT, SECOND };

V_FN void assume_path(const act_consts *k, int assume)
{
    if ((assume == FAST || assume == FAST_INEXACT) && !ACT_FAST_PATH(k))
        __builtin_unreachable();
    if (assume == SECOND && !ACT_SECOND_PATH(k))
        __builtin_unreachable();
}

#define LOOP_FN static __attribute__((noinline)) size_t

/* The work of a loop: the first n elements of each of `blocks` consecutive blocks, from element
 * `from` on, which may lie anywhere in its block. A loop processes the whole groups among them and
 * returns their number of elements per block. sums[b].lane[0] belongs to the first element of block
 * b. One call takes several blocks, because a call per block costs a few percent within the
 * caches. */
typedef struct span {
    size_t from, n, blocks;
    lanes *sums;
} span;

typedef size_t (*loop_fn)(const act_job *job, const span *s);
typedef v_f32 (*map_fn)(v_f32, const act_consts *);
typedef void (*params_fn)(v_f32, const act_consts *, v_f32 *);

V_FN void put_group(int stream, void *p, berlu_dtype dtype, const v_f32 *r, int vectors)
{
    if (stream)
        group_stream(p, dtype, r, vectors);
    else
        group_store(p, dtype, r, vectors);
}

/* Whether the output is prefetched too. */
V_FN int output_is_far(const act_job *job, size_t size)
{
    return job->ahead && (NEAR_BYTES == 0 || job->count * size > (size_t)NEAR_BYTES * (size_t)job->threads);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Pointers and a count down, and `stream` a constant: where the arithmetic of a group is as short
 * as BerLU's, every other instruction shows in the time, most of all on a core whose other hardware
 * thread is busy. */
V_FN size_t value_groups(const act_job *job, const span *s, berlu_dtype dtype, int assume, int stream)
{
    enum { STEP = MAP_GROUP * V_LANES };
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    const act_consts k = ((const consts *)job->consts)->f; /* a copy, so that no store can seem to change it */
    const size_t groups = s->n / STEP, ahead = job->ahead;
    const int far = !stream && output_is_far(job, size);
    assume_path(&k, assume);
    for (size_t b = 0; b < s->blocks; b++) {
        const size_t at = (s->from + b * ACT_BLOCK) * size;
        const char *x = (const char *)job->x + at;
        char *y = (char *)job->y + at;
        for (size_t left = groups; left; left--, x += STEP * size, y += STEP * size) {
            v_f32 r[MAP_GROUP];
            group_prefetch(x, dtype, MAP_GROUP, ahead);
            if (far)
                group_prefetch(y, dtype, MAP_GROUP, ahead);
            group_load(r, x, dtype, MAP_GROUP);
            V_FOR(int v = 0; v < MAP_GROUP; v++)
                r[v] = dtype == BERLU_F32 ? act_value(r[v], &k) : ACT_VALUE16(r[v], &k);
            put_group(stream, y, dtype, r, MAP_GROUP);
        }
    }
    return groups * STEP;
}

V_FN size_t value_loop(const act_job *job, const span *s, berlu_dtype dtype, int assume)
{
    return job->stream ? value_groups(job, s, dtype, assume, 1) : value_groups(job, s, dtype, assume, 0);
}

#include "act/cpu/kernel_paths.h"

LOOP_FN value_f32(const act_job *job, const span *s)
{
    return VALUE_PATHS ? paths_loop(&value_paths, job, s, BERLU_F32, far_value_f32)
                       : value_loop(job, s, BERLU_F32, FAST);
}

LOOP_FN value_bf16(const act_job *job, const span *s)
{
    return VALUE_PATHS ? paths_loop(&value_paths, job, s, BERLU_BF16, far_value_bf16)
                       : value_loop(job, s, BERLU_BF16, FAST);
}

LOOP_FN value_f16(const act_job *job, const span *s)
{
    return VALUE_PATHS ? paths_loop(&value_paths, job, s, BERLU_F16, far_value_f16)
                       : value_loop(job, s, BERLU_F16, FAST);
}

/* Any dtype in one function: off the fast path arithmetic takes the time anyway. */
V_FN size_t value_slow(const act_job *job, const span *s, int assume)
{
    if (job->dtype == BERLU_F32)
        return value_loop(job, s, BERLU_F32, assume);
    if (job->dtype == BERLU_BF16)
        return value_loop(job, s, BERLU_BF16, assume);
    return value_loop(job, s, BERLU_F16, assume);
}

LOOP_FN value_any(const act_job *job, const span *s)
{
    return value_slow(job, s, ANY);
}

LOOP_FN value_second(const act_job *job, const span *s)
{
    return value_slow(job, s, SECOND);
}

/* ---- Derivatives and their sums -------------------------------------------------------------- */

/* The sixteen lanes of a sum in registers. Where two vectors are one round of lanes, they are in
 * the order of a bf16 pair; where one is, pairs of terms are reordered instead (pair_slopes). */
V_FN void lanes_load(const float *lane, berlu_dtype dtype, v_f32 *sum)
{
    V_FOR(int v = 0; v < V_GROUP; v++)
        sum[v] = v_load(lane + v * V_LANES);
    if (dtype == BERLU_BF16 && V_GROUP == 2)
        v_deal2(&sum[0], &sum[V_GROUP - 1]);
}

V_FN void lanes_store(float *lane, berlu_dtype dtype, v_f32 *sum)
{
    if (dtype == BERLU_BF16 && V_GROUP == 2)
        v_order2(&sum[0], &sum[V_GROUP - 1]);
    V_FOR(int v = 0; v < V_GROUP; v++)
        v_store(lane + v * V_LANES, sum[v]);
}

/* Vectors v and v + 1 of a group: x becomes dx, and their terms are added to the first `wanted`
 * sums. */
V_FN void pair_slopes(v_f32 *x, v_f32 *g, int v, const act_consts *k, berlu_dtype dtype, int wanted,
                      v_f32 sum[][V_GROUP], map_fn slope, params_fn slopes)
{
    v_f32 d[2][PARAMS + 1];
    V_FOR(int u = 0; u < 2; u++) {
        if (wanted)
            slopes(x[v + u], k, d[u]);
        x[v + u] = ACT_PRODUCT(slope(x[v + u], k), g[v + u]);
    }
    if (wanted && dtype == BERLU_BF16 && V_GROUP == 1)
        v_order2(&g[v], &g[v + 1]);
    V_FOR(int p = 0; p < wanted; p++) {
        if (dtype == BERLU_BF16 && V_GROUP == 1)
            v_order2(&d[0][p], &d[1][p]);
        V_FOR(int u = 0; u < 2; u++)
            sum[p][(v + u) % V_GROUP] = v_fma(g[v + u], d[u][p], sum[p][(v + u) % V_GROUP]);
    }
}

/* dx, and the first `wanted` parameter sums. */
V_FN size_t slope_groups(const act_job *job, const span *s, berlu_dtype dtype, int assume, int stream, int wanted,
                         const void *source, map_fn slope, params_fn slopes)
{
    enum { STEP = SUM_GROUP * V_LANES };
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    const act_consts k = ((const consts *)job->consts)->f;
    const size_t groups = s->n / STEP, ahead = job->ahead;
    const int far = !stream && output_is_far(job, size);
    assume_path(&k, assume);
    if ((assume == FAST || assume == FAST_INEXACT) && wanted && !ACT_EXACT_KNEE(&k) != (assume == FAST_INEXACT))
        __builtin_unreachable();
    for (size_t b = 0; b < s->blocks; b++) {
        const size_t at = (s->from + b * ACT_BLOCK) * size;
        const char *in = (const char *)source + at, *dy = (const char *)job->dy + at;
        char *dx = (char *)job->dx + at;
        v_f32 sum[PARAMS + 1][V_GROUP];
        V_FOR(int p = 0; p < wanted; p++)
            lanes_load(s->sums[b].lane[p], dtype, sum[p]);
        for (size_t left = groups; left; left--, in += STEP * size, dy += STEP * size, dx += STEP * size) {
            v_f32 x[SUM_GROUP], g[SUM_GROUP];
            group_prefetch(in, dtype, SUM_GROUP, ahead);
            group_prefetch(dy, dtype, SUM_GROUP, ahead);
            if (far)
                group_prefetch(dx, dtype, SUM_GROUP, ahead);
            group_load(x, in, dtype, SUM_GROUP);
            group_load(g, dy, dtype, SUM_GROUP);
            V_FOR(int v = 0; v < SUM_GROUP; v += 2)
                pair_slopes(x, g, v, &k, dtype, wanted, sum, slope, slopes);
            put_group(stream, dx, dtype, x, SUM_GROUP);
        }
        V_FOR(int p = 0; p < wanted; p++)
            lanes_store(s->sums[b].lane[p], dtype, sum[p]);
    }
    return groups * STEP;
}

V_FN size_t slope_loop(const act_job *job, const span *s, berlu_dtype dtype, int assume, int wanted, const void *source,
                       map_fn slope, params_fn slopes)
{
    return job->stream ? slope_groups(job, s, dtype, assume, 1, wanted, source, slope, slopes)
                       : slope_groups(job, s, dtype, assume, 0, wanted, source, slope, slopes);
}

V_FN size_t slope_from_x(const act_job *job, const span *s, berlu_dtype dtype, int assume, int wanted)
{
    return slope_loop(job, s, dtype, assume, wanted, job->x, act_slope, act_param_slopes);
}

LOOP_FN slope_f32(const act_job *job, const span *s)
{
    return SLOPE_PATHS ? paths_loop(&slope_paths, job, s, BERLU_F32, far_slope_f32)
                       : slope_from_x(job, s, BERLU_F32, FAST, 0);
}

LOOP_FN slope_bf16(const act_job *job, const span *s)
{
    return SLOPE_PATHS ? paths_loop(&slope_paths, job, s, BERLU_BF16, far_slope_bf16)
                       : slope_from_x(job, s, BERLU_BF16, FAST, 0);
}

LOOP_FN slope_f16(const act_job *job, const span *s)
{
    return SLOPE_PATHS ? paths_loop(&slope_paths, job, s, BERLU_F16, far_slope_f16)
                       : slope_from_x(job, s, BERLU_F16, FAST, 0);
}

LOOP_FN slope_sum_f32(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_F32, FAST, 1);
}

LOOP_FN slope_sum_bf16(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_BF16, FAST, 1);
}

LOOP_FN slope_sum_f16(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_F16, FAST, 1);
}

LOOP_FN slope_inexact_f32(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_F32, FAST_INEXACT, 1);
}

LOOP_FN slope_inexact_bf16(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_BF16, FAST_INEXACT, 1);
}

LOOP_FN slope_inexact_f16(const act_job *job, const span *s)
{
    return slope_from_x(job, s, BERLU_F16, FAST_INEXACT, 1);
}

/* Any dtype in one function, off the fast path. */
V_FN size_t slope_any(const act_job *job, const span *s, int assume, int wanted, const void *source, map_fn slope,
                      params_fn slopes)
{
    if (job->dtype == BERLU_F32)
        return slope_loop(job, s, BERLU_F32, assume, wanted, source, slope, slopes);
    if (job->dtype == BERLU_BF16)
        return slope_loop(job, s, BERLU_BF16, assume, wanted, source, slope, slopes);
    return slope_loop(job, s, BERLU_F16, assume, wanted, source, slope, slopes);
}

LOOP_FN slope_any_0(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, 0, job->x, act_slope, act_param_slopes);
}

LOOP_FN slope_any_1(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, 1, job->x, act_slope, act_param_slopes);
}

LOOP_FN slope_second_0(const act_job *job, const span *s)
{
    return slope_any(job, s, SECOND, 0, job->x, act_slope, act_param_slopes);
}

LOOP_FN slope_second_1(const act_job *job, const span *s)
{
    return slope_any(job, s, SECOND, 1, job->x, act_slope, act_param_slopes);
}

LOOP_FN slope_any_all(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, PARAMS, job->x, act_slope, act_param_slopes);
}

LOOP_FN output_slope_0(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, 0, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}

LOOP_FN output_slope_1(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, 1, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}

LOOP_FN output_slope_all(const act_job *job, const span *s)
{
    return slope_any(job, s, ANY, PARAMS, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}

/* ---- The choice ------------------------------------------------------------------------------ */

/* `wanted` sums. Conditions on PARAMS and ACT_... are constants: they remove loops that the formula
 * does not have. */
static loop_fn slope_pick(const act_job *job, const act_consts *k, int wanted)
{
    static const loop_fn none[] = {[BERLU_F32] = slope_f32, [BERLU_BF16] = slope_bf16, [BERLU_F16] = slope_f16};
    static const loop_fn one[] = {
        [BERLU_F32] = slope_sum_f32, [BERLU_BF16] = slope_sum_bf16, [BERLU_F16] = slope_sum_f16};
    static const loop_fn inexact[] = {
        [BERLU_F32] = slope_inexact_f32, [BERLU_BF16] = slope_inexact_bf16, [BERLU_F16] = slope_inexact_f16};
    if (ACT_FROM_OUTPUT && job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        if (PARAMS > 1 && wanted > 1)
            return output_slope_all;
        return PARAMS > 0 && wanted ? output_slope_1 : output_slope_0;
    }
    if (PARAMS > 1 && wanted > 1)
        return slope_any_all;
    if (!ACT_FAST_PATH(k) && ACT_SECOND_PATH(k))
        return PARAMS > 0 && wanted ? slope_second_1 : slope_second_0;
    if (!ACT_FAST_PATH(k))
        return PARAMS > 0 && wanted ? slope_any_1 : slope_any_0;
    if (PARAMS > 0 && wanted)
        return ACT_EXACT_KNEE(k) ? one[job->dtype] : inexact[job->dtype];
    return none[job->dtype];
}

/* NULL where tiles must do everything. */
static loop_fn loop_pick(const act_job *job)
{
    static const loop_fn value[] = {[BERLU_F32] = value_f32, [BERLU_BF16] = value_bf16, [BERLU_F16] = value_f16};
    const act_consts *k = &((const consts *)job->consts)->f;
    int wanted = 0;
    for (int p = 0; p < PARAMS; p++)
        if (job->layer_sum[p])
            wanted = p + 1;
    if (!GROUPS || !job->plain)
        return NULL;
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT || (job->op == BERLU_ACT_BACKWARD && !job->y))
        return slope_pick(job, k, wanted);
    if (job->op != BERLU_ACT_FORWARD)
        return NULL;
    return ACT_FAST_PATH(k) ? value[job->dtype] : ACT_SECOND_PATH(k) ? value_second : value_any;
}

#endif
