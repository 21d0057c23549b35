/* kernel_far.h - the slope's loop where a formula has a short way and a long one (ACT_FAR). SPDX-License-Identifier: MIT
 *
 * One vector on the long way is a chain of operations that wait for each other, and between branches a processor does not see
 * enough of the next. So the question is asked once for a group, and a group with any far lane goes the long way as a whole, its
 * vectors side by side, in a function that has all registers for it. No bit depends on it. Part of kernel_loops.h. */
#ifndef ACT_KERNEL_FAR_H
#define ACT_KERNEL_FAR_H

_Static_assert(ACT_PARAMS == 0 && SUM_GROUP % ACT_SIDE == 0, "no parameters, and whole groups");

enum { FAR_STEP = SUM_GROUP * V_LANES };

/* The lines of later groups are asked for (kernel_loops.h); dx where it is large. */
V_FN void far_prefetch(const char *in, const char *dy, const char *dx, berlu_dtype dtype, int large)
{
    group_prefetch(in, dtype, SUM_GROUP, AHEAD);
    group_prefetch(dy, dtype, SUM_GROUP, AHEAD);
    if (large)
        group_prefetch(dx, dtype, SUM_GROUP, AHEAD);
}

/* The long way, until there is a group without a far lane, or none left; tells how many groups that were. */
V_FN size_t far_groups(const char *in, const char *dy, char *dx, size_t left, berlu_dtype dtype, int large, int stream)
{
    const size_t bytes = FAR_STEP * (dtype == BERLU_F32 ? 4u : 2u);
    v_f32 x[SUM_GROUP], g[SUM_GROUP];
    size_t done = 0;
    group_load(x, in, dtype, SUM_GROUP);
    do {
        far_prefetch(in, dy, dx, dtype, large);
        group_load(g, dy, dtype, SUM_GROUP);
        V_UNROLL for (int v = 0; v < SUM_GROUP; v += ACT_SIDE) act_far_times(x + v, g + v, ACT_SIDE);
        put_group(stream, dx, dtype, x, SUM_GROUP);
        in += bytes, dy += bytes, dx += bytes;
        if (++done == left)
            break;
        group_load(x, in, dtype, SUM_GROUP);
    } while (!act_near(x, SUM_GROUP));
    return done;
}

typedef size_t (*far_fn)(const char *in, const char *dy, char *dx, size_t left, int large, int stream);

/* The short way, and the other by `far` */
V_FN size_t near_groups(const act_job *job, size_t from, size_t to, berlu_dtype dtype, int stream, far_fn far)
{
    const size_t size = dtype == BERLU_F32 ? 4 : 2, bytes = FAR_STEP * size, groups = (to - from) / FAR_STEP;
    const int large = !stream && job->count * size > (size_t)FAR * (size_t)job->threads;
    const char *in = (const char *)job->x + from * size, *dy = (const char *)job->dy + from * size;
    char *dx = (char *)job->dx + from * size;
    for (size_t left = groups, done; left; left -= done, in += done * bytes, dy += done * bytes, dx += done * bytes) {
        v_f32 x[SUM_GROUP], g[SUM_GROUP];
        group_load(x, in, dtype, SUM_GROUP);
        if (!act_near(x, SUM_GROUP)) {
            done = far(in, dy, dx, left, large, stream);
            continue;
        }
        done = 1;
        far_prefetch(in, dy, dx, dtype, large);
        group_load(g, dy, dtype, SUM_GROUP);
        V_UNROLL for (int v = 0; v < SUM_GROUP; v++) x[v] = act_near_times(x[v], g[v]);
        put_group(stream, dx, dtype, x, SUM_GROUP);
    }
    return from + groups * FAR_STEP;
}

#define TWO_WAYS(name, far, dtype)                                                                                     \
    static __attribute__((noinline)) size_t far(const char *in, const char *dy, char *dx, size_t left, int large,      \
                                                int stream)                                                            \
    {                                                                                                                  \
        return stream ? far_groups(in, dy, dx, left, dtype, large, 1) : far_groups(in, dy, dx, left, dtype, large, 0); \
    }                                                                                                                  \
    LOOP_FN name(const act_job *job, size_t from, size_t to, lanes *sums)                                              \
    {                                                                                                                  \
        (void)sums;                                                                                                    \
        return job->stream ? near_groups(job, from, to, dtype, 1, far) : near_groups(job, from, to, dtype, 0, far);    \
    }
TWO_WAYS(slope_f32, far_f32, BERLU_F32)
TWO_WAYS(slope_bf16, far_bf16, BERLU_BF16)
TWO_WAYS(slope_f16, far_f16, BERLU_F16)

#endif
