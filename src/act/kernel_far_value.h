/* kernel_far_value.h - the value's loop where a formula has a short way and a long one. SPDX-License-Identifier: MIT
 *
 * As kernel_far.h, which says why, for the value (ACT_FAR_VALUE); here the long way may have an end too, and groups with an x
 * behind it take act_value(), a vector at a time. Part of kernel_loops.h. */
#ifndef ACT_KERNEL_FAR_VALUE_H
#define ACT_KERNEL_FAR_VALUE_H

_Static_assert(MAP_GROUP % ACT_SIDE == 0, "whole groups");

enum { VALUE_STEP = MAP_GROUP * V_LANES };

V_FN void value_prefetch(const char *in, const char *out, berlu_dtype dtype, int large)
{
    group_prefetch(in, dtype, MAP_GROUP, AHEAD);
    if (large)
        group_prefetch(out, dtype, MAP_GROUP, AHEAD);
}

/* The long way for as many groups as come that need it and no more; tells how many. */
V_FN size_t far_values(const char *in, char *out, size_t left, berlu_dtype dtype, int large, int stream)
{
    const size_t bytes = VALUE_STEP * (dtype == BERLU_F32 ? 4u : 2u);
    v_f32 x[MAP_GROUP];
    size_t done = 0;
    group_load(x, in, dtype, MAP_GROUP);
    do {
        value_prefetch(in, out, dtype, large);
        V_UNROLL for (int v = 0; v < MAP_GROUP; v += ACT_SIDE) act_far_value(x + v, ACT_SIDE);
        put_group(stream, out, dtype, x, MAP_GROUP);
        in += bytes, out += bytes;
        if (++done == left)
            break;
        group_load(x, in, dtype, MAP_GROUP);
    } while (act_value_way(x, MAP_GROUP) == ACT_LONG);
    return done;
}

typedef size_t (*far_values_fn)(const char *in, char *out, size_t left, int large, int stream);

/* The short way, and the others by `far` or one by one */
V_FN size_t near_values(const act_job *job, size_t from, size_t to, berlu_dtype dtype, int stream, far_values_fn far)
{
    const size_t size = dtype == BERLU_F32 ? 4 : 2, bytes = VALUE_STEP * size, groups = (to - from) / VALUE_STEP;
    const act_consts k = ((const consts *)job->consts)->f;
    const int large = !stream && job->count * size > (size_t)FAR * (size_t)job->threads;
    const char *in = (const char *)job->x + from * size;
    char *out = (char *)job->y + from * size;
    for (size_t left = groups, done; left; left -= done, in += done * bytes, out += done * bytes) {
        v_f32 x[MAP_GROUP];
        group_load(x, in, dtype, MAP_GROUP);
        int way = act_value_way(x, MAP_GROUP);
        if (way == ACT_LONG) {
            done = far(in, out, left, large, stream);
            continue;
        }
        done = 1;
        value_prefetch(in, out, dtype, large);
        V_UNROLL for (int v = 0; v < MAP_GROUP; v++) x[v] =
            way == ACT_SHORT ? act_near_value(x[v]) : act_value(x[v], &k);
        put_group(stream, out, dtype, x, MAP_GROUP);
    }
    return from + groups * VALUE_STEP;
}

#define VALUE_WAYS(name, far, dtype)                                                                                   \
    static __attribute__((noinline)) size_t far(const char *in, char *out, size_t left, int large, int stream)         \
    {                                                                                                                  \
        return stream ? far_values(in, out, left, dtype, large, 1) : far_values(in, out, left, dtype, large, 0);       \
    }                                                                                                                  \
    LOOP_FN name(const act_job *job, size_t from, size_t to, lanes *sums)                                              \
    {                                                                                                                  \
        (void)sums;                                                                                                    \
        return job->stream ? near_values(job, from, to, dtype, 1, far) : near_values(job, from, to, dtype, 0, far);    \
    }
VALUE_WAYS(value_f32, far_value_f32, BERLU_F32)
VALUE_WAYS(value_bf16, far_value_bf16, BERLU_BF16)
VALUE_WAYS(value_f16, far_value_f16, BERLU_F16)

#endif
