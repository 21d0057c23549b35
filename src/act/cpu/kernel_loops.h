/* kernel_loops.h - the fast loops of kernel.c: whole groups of vectors, flat, plain function.
 * SPDX-License-Identifier: MIT
 *
 * A group is loaded, computed, stored. Lines of later groups are asked for before they are needed:
 * with arithmetic between the loads a processor does not look far enough ahead by itself, not even
 * to the second cache. Each loop is a function of its own, because side by side in one function
 * they compete for registers, and then sums live in memory and every addition waits for the last
 * one to come back from there. Read loop_pick() at the end first. Part of kernel.c, which defines
 * consts and lanes. */
#ifndef ACT_CPU_KERNEL_LOOPS_H
#define ACT_CPU_KERNEL_LOOPS_H

#ifdef ACT_FAST_PATH
#define ACT_RARE 1
#else
#define ACT_RARE         0
#define ACT_FAST_PATH(k) 1
#endif

#ifdef ACT_EXACT_KNEE
#define ACT_LONGER 1
#else
#define ACT_LONGER        0
#define ACT_EXACT_KNEE(k) 1
#endif

#ifdef ACT_COSTLY
#define LIGHT 0
#else
#define LIGHT 1 /* a few operations, so that memory or the loop itself takes the time */
#endif

enum {
    MAP_GROUP = 4, /* vectors of a group */
    SUM_GROUP =
        V_LANES == 8 || (V_LANES == 16 && LIGHT) ? 2 : 4, /* few registers; or little to do, where 2 were faster */
    AHEAD = 512,                                          /* bytes between what is read and what is asked for */
    /* bytes of a thread's output that is far: less is in the second cache, and only with AVX-512 is
     * there time to spare for asking for its lines all the same */
    FAR = V_LANES == 16 ? 0 : 3 << 18,
};

/* What the compiler may take as known in a loop: nothing, ACT_FAST_PATH, and in loops with a sum
 * ACT_EXACT_KNEE or not. */
enum { ANY, COMMON, LONGER };

#define LOOP_FN static __attribute__((noinline)) size_t

/* What a loop is given: the first n elements of each of some blocks that lie one behind the other,
 * from the element `from` on, whatever its place in its block is. It does the whole groups among
 * them and tells how many elements of a block those are. sums[b].lane[0] belongs to the first
 * element of block b. More than one block in one call, because their ends cost a call some percent
 * of what stays in the caches. */
typedef struct span {
    size_t from, n, blocks;
    lanes *sums;
} span;

typedef v_f32 (*map_fn)(v_f32, const act_consts *);
typedef void (*params_fn)(v_f32, const act_consts *, v_f32 *);

V_FN void put_group(int stream, void *p, berlu_dtype dtype, const v_f32 *r, int vectors)
{
    if (stream)
        group_stream(p, dtype, r, vectors);
    else
        group_store(p, dtype, r, vectors);
}

/* Whether lines of the output are asked for too. */
V_FN int output_is_far(const act_job *job, size_t size)
{
    return FAR == 0 || job->count * size > (size_t)FAR * (size_t)job->threads;
}

/* A loop walks with pointers and counts down, and streams or does not for good: where the
 * arithmetic of a group is as short as BerLU's, each instruction beside it can be seen in the time,
 * most of all on a core whose other thread is busy. */
V_FN size_t value_groups(const act_job *job, const span *s, berlu_dtype dtype, int common, int stream)
{
    enum { STEP = MAP_GROUP * V_LANES };
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    const act_consts k = ((const consts *)job->consts)->f; /* a copy, so that no store can seem to change it */
    const size_t groups = s->n / STEP;
    const int far = !stream && output_is_far(job, size);
    if (common && !ACT_FAST_PATH(&k))
        __builtin_unreachable();
    for (size_t b = 0; b < s->blocks; b++) {
        const size_t at = (s->from + b * ACT_BLOCK) * size;
        const char *x = (const char *)job->x + at;
        char *y = (char *)job->y + at;
        for (size_t left = groups; left; left--, x += STEP * size, y += STEP * size) {
            v_f32 r[MAP_GROUP];
            group_prefetch(x, dtype, MAP_GROUP, AHEAD);
            if (far)
                group_prefetch(y, dtype, MAP_GROUP, AHEAD);
            group_load(r, x, dtype, MAP_GROUP);
            V_FOR(int v = 0; v < MAP_GROUP; v++)
                r[v] = act_value(r[v], &k);
            put_group(stream, y, dtype, r, MAP_GROUP);
        }
    }
    return groups * STEP;
}

V_FN size_t value_loop(const act_job *job, const span *s, berlu_dtype dtype, int common)
{
    return job->stream ? value_groups(job, s, dtype, common, 1) : value_groups(job, s, dtype, common, 0);
}

#if (defined(ACT_FAR) || defined(ACT_FAR_VALUE)) && ACT_SIDE > 1
#include "act/cpu/kernel_paths.h"
#endif

#if !defined(ACT_FAR_VALUE) || ACT_SIDE == 1
/* By dtype; ACT_FAST_PATH holds. */
LOOP_FN value_f32(const act_job *job, const span *s)
{
    return value_loop(job, s, BERLU_F32, COMMON);
}

LOOP_FN value_bf16(const act_job *job, const span *s)
{
    return value_loop(job, s, BERLU_BF16, COMMON);
}

LOOP_FN value_f16(const act_job *job, const span *s)
{
    return value_loop(job, s, BERLU_F16, COMMON);
}
#endif

#if ACT_RARE
LOOP_FN value_rare(const act_job *job, const span *s)
{
    if (job->dtype == BERLU_F32)
        return value_loop(job, s, BERLU_F32, ANY);
    if (job->dtype == BERLU_BF16)
        return value_loop(job, s, BERLU_BF16, ANY);
    return value_loop(job, s, BERLU_F16, ANY);
}
#endif

/* The sixteen lanes of a sum in registers. Where two vectors are one round of lanes, they are dealt
 * as the elements are; where one is, pairs of terms come in order instead (pair_slopes). */
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

/* Vectors v and v + 1 of a group: x becomes dx, and their terms go to the first `wanted` sums. */
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

/* The slope's loop: dx, and the first `wanted` parameter sums. */
V_FN size_t slope_groups(const act_job *job, const span *s, berlu_dtype dtype, int common, int stream, int wanted,
                         const void *source, map_fn slope, params_fn slopes)
{
    enum { STEP = SUM_GROUP * V_LANES };
    const size_t size = dtype == BERLU_F32 ? 4 : 2;
    const act_consts k = ((const consts *)job->consts)->f;
    const size_t groups = s->n / STEP;
    const int far = !stream && output_is_far(job, size);
    if ((common && !ACT_FAST_PATH(&k)) || (common && wanted && !ACT_EXACT_KNEE(&k) != (common == LONGER)))
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
            group_prefetch(in, dtype, SUM_GROUP, AHEAD);
            group_prefetch(dy, dtype, SUM_GROUP, AHEAD);
            if (far)
                group_prefetch(dx, dtype, SUM_GROUP, AHEAD);
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

V_FN size_t slope_loop(const act_job *job, const span *s, berlu_dtype dtype, int common, int wanted, const void *source,
                       map_fn slope, params_fn slopes)
{
    return job->stream ? slope_groups(job, s, dtype, common, 1, wanted, source, slope, slopes)
                       : slope_groups(job, s, dtype, common, 0, wanted, source, slope, slopes);
}

#if !ACT_PARAMS
V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    (void)x;
    (void)k;
    (void)out;
}
#endif

/* From x, by dtype, with no sum and with that of the first parameter. */
#define SLOPE_LOOP(name, dtype, common, wanted)                                                                        \
    LOOP_FN name(const act_job *job, const span *s)                                                                    \
    {                                                                                                                  \
        return slope_loop(job, s, dtype, common, wanted, job->x, act_slope, act_param_slopes);                         \
    }
#if !defined(ACT_FAR) || ACT_SIDE == 1
SLOPE_LOOP(slope_f32, BERLU_F32, COMMON, 0)
SLOPE_LOOP(slope_bf16, BERLU_BF16, COMMON, 0)
SLOPE_LOOP(slope_f16, BERLU_F16, COMMON, 0)
#endif
#if ACT_PARAMS
SLOPE_LOOP(slope_sum_f32, BERLU_F32, COMMON, 1)
SLOPE_LOOP(slope_sum_bf16, BERLU_BF16, COMMON, 1)
SLOPE_LOOP(slope_sum_f16, BERLU_F16, COMMON, 1)
#endif
#if ACT_LONGER
SLOPE_LOOP(slope_longer_f32, BERLU_F32, LONGER, 1)
SLOPE_LOOP(slope_longer_bf16, BERLU_BF16, LONGER, 1)
SLOPE_LOOP(slope_longer_f16, BERLU_F16, LONGER, 1)
#endif

/* Any dtype in one function, for the rest: there arithmetic takes the time anyway. */
V_FN size_t slope_any(const act_job *job, const span *s, int wanted, const void *source, map_fn slope, params_fn slopes)
{
    if (job->dtype == BERLU_F32)
        return slope_loop(job, s, BERLU_F32, ANY, wanted, source, slope, slopes);
    if (job->dtype == BERLU_BF16)
        return slope_loop(job, s, BERLU_BF16, ANY, wanted, source, slope, slopes);
    return slope_loop(job, s, BERLU_F16, ANY, wanted, source, slope, slopes);
}

#if ACT_RARE
LOOP_FN slope_rare(const act_job *job, const span *s)
{
    return slope_any(job, s, 0, job->x, act_slope, act_param_slopes);
}
#endif

#if ACT_PARAMS && ACT_RARE
LOOP_FN slope_sum_rare(const act_job *job, const span *s)
{
    return slope_any(job, s, 1, job->x, act_slope, act_param_slopes);
}
#endif

#if ACT_PARAMS > 1
LOOP_FN slope_sums(const act_job *job, const span *s)
{
    return slope_any(job, s, PARAMS, job->x, act_slope, act_param_slopes);
}
#endif

#if ACT_FROM_OUTPUT && !ACT_PARAMS
V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    act_param_slopes(y, k, out);
}
#endif

#if ACT_FROM_OUTPUT
LOOP_FN slope_from_output(const act_job *job, const span *s)
{
    return slope_any(job, s, 0, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}
#endif

#if ACT_FROM_OUTPUT && ACT_PARAMS
LOOP_FN slope_sum_from_output(const act_job *job, const span *s)
{
    return slope_any(job, s, 1, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}
#endif

#if ACT_FROM_OUTPUT && ACT_PARAMS > 1
LOOP_FN slope_sums_from_output(const act_job *job, const span *s)
{
    return slope_any(job, s, PARAMS, job->y_in, act_slope_from_output, act_param_slopes_from_output);
}
#endif

typedef size_t (*loop_fn)(const act_job *job, const span *s);

static loop_fn slope_pick(const act_job *job, int common, int wanted)
{
    static const loop_fn none[] = {[BERLU_F32] = slope_f32, [BERLU_BF16] = slope_bf16, [BERLU_F16] = slope_f16};
    (void)common;
    (void)wanted;
#if ACT_FROM_OUTPUT && ACT_PARAMS > 1
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && wanted > 1)
        return slope_sums_from_output;
#endif
#if ACT_FROM_OUTPUT && ACT_PARAMS
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && wanted)
        return slope_sum_from_output;
#endif
#if ACT_FROM_OUTPUT
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        return slope_from_output;
#endif
#if ACT_PARAMS > 1
    if (wanted > 1)
        return slope_sums;
#endif
#if ACT_PARAMS && ACT_RARE
    if (wanted && !common)
        return slope_sum_rare;
#endif
#if ACT_LONGER
    static const loop_fn longer[] = {
        [BERLU_F32] = slope_longer_f32, [BERLU_BF16] = slope_longer_bf16, [BERLU_F16] = slope_longer_f16};
    if (wanted && !ACT_EXACT_KNEE(&((const consts *)job->consts)->f))
        return longer[job->dtype];
#endif
#if ACT_PARAMS
    static const loop_fn one[] = {
        [BERLU_F32] = slope_sum_f32, [BERLU_BF16] = slope_sum_bf16, [BERLU_F16] = slope_sum_f16};
    if (wanted)
        return one[job->dtype];
#endif
#if ACT_RARE
    if (!common)
        return slope_rare;
#endif
    return none[job->dtype];
}

/* NULL where tiles must do everything. */
static loop_fn loop_pick(const act_job *job)
{
    static const loop_fn value[] = {[BERLU_F32] = value_f32, [BERLU_BF16] = value_bf16, [BERLU_F16] = value_f16};
    int common = ACT_FAST_PATH(&((const consts *)job->consts)->f), wanted = 0;
    for (int p = 0; p < PARAMS; p++)
        if (job->layer_sum[p])
            wanted = p + 1;
    if (!GROUPS || !job->plain)
        return NULL;
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT || (job->op == BERLU_ACT_BACKWARD && !job->y))
        return slope_pick(job, common, wanted);
#if ACT_RARE
    if (job->op == BERLU_ACT_FORWARD && !common)
        return value_rare;
#endif
    return job->op == BERLU_ACT_FORWARD ? value[job->dtype] : NULL;
}

#endif
