/* kernel_rows.h - rows with a bias in f32, as a layer's activation has them: whole groups of
 * vectors. SPDX-License-Identifier: MIT
 *
 * What a training step asks for: values of u + bias, and backward dx, its column sums and the value
 * recomputed, all in one pass over rows that are in L2. Groups take the fast path together, as the
 * loops over flat arrays do (kernel_paths.h): without AVX-512 table look-ups are cheaper for four
 * vectors at once. Tiles do groups with an x beyond the fast path (where some vectors still have it
 * to themselves), the rest of a row, other dtypes and sums of parameters, with the same bits. These
 * loops are a tenth of libberlu, so a build without the engine, which nobody gives a bias to
 * (Python's wheel), leaves them out (ACT_ROW_GROUPS). Part of kernel.c, behind the tiles. */
#ifndef ACT_CPU_KERNEL_ROWS_H
#define ACT_CPU_KERNEL_ROWS_H

#ifndef ACT_ROW_GROUPS
#define ACT_ROW_GROUPS 1
#endif

enum { ROW_GROUP = 4, ROW_STEP = ROW_GROUP * V_LANES };
_Static_assert(!(VALUE_PATHS || SLOPE_PATHS) || (int)ROW_GROUP == (int)PATH_GROUP, "paths take this many vectors");

/* Whether groups may do the rows of this job. */
static int rows_in_groups(const act_job *job)
{
    int sums = 0;
    for (int p = 0; p < PARAMS; p++)
        sums |= job->layer_sum[p] || job->channel_sum[p];
    return ACT_ROW_GROUPS && GROUPS && job->plain && job->dtype == BERLU_F32 && !job->vector_consts && !sums &&
           (job->op == BERLU_ACT_FORWARD || job->op == BERLU_ACT_BACKWARD) &&
           ACT_FAST_PATH(&((const consts *)job->consts)->f);
}

/* Whether the fast paths hold for u + bias of a group. */
V_FN int group_is_near(const v_f32 *x, int backward, int value)
{
    return (!VALUE_PATHS || !value || act_value_path(x, ROW_GROUP) == ACT_ALL_NEAR) &&
           (!SLOPE_PATHS || !backward || act_slope_path(x, ROW_GROUP) == ACT_ALL_NEAR);
}

/* x becomes its value, or dx */
V_FN void group_values(v_f32 *x, const act_consts *k)
{
    if (VALUE_PATHS)
        act_near_value(x, ROW_GROUP);
    else
        V_FOR(int v = 0; v < ROW_GROUP; v++)
            x[v] = act_value(x[v], k);
}

V_FN void group_slopes(v_f32 *x, const v_f32 *dy, const act_consts *k)
{
    if (SLOPE_PATHS)
        act_near_backward(x, dy, ROW_GROUP);
    else
        V_FOR(int v = 0; v < ROW_GROUP; v++)
            x[v] = ACT_PRODUCT(act_slope(x[v], k), dy[v]);
}

/* Rows [row, end): the whole groups of each; returns the elements done in a row. What the job holds
 * is copied, so that no store can seem to change it. */
V_FN size_t rows_groups(const act_job *job, size_t row, size_t end, int backward, int value)
{
    const act_consts k = ((const consts *)job->consts)->f;
    const size_t channels = job->channels, whole = channels / ROW_STEP * ROW_STEP;
    const float *x = job->x, *gradient = job->dy, *bias = job->bias;
    float *y = job->y, *dx = job->dx, *sums = job->bias_sum;
    terms unused;
    assume_path(&k, FAST);
    for (; row < end; row++)
        for (size_t c = 0, at = row * channels; c < whole; c += ROW_STEP, at += ROW_STEP) {
            v_f32 r[ROW_GROUP], f[ROW_GROUP], dy[ROW_GROUP];
            group_load(r, x + at, BERLU_F32, ROW_GROUP);
            if (bias)
                V_FOR(int v = 0; v < ROW_GROUP; v++)
                    r[v] = v_add(r[v], v_load(bias + c + v * V_LANES));
            if (!group_is_near(r, backward, value)) {
                const tile t = {at, c, ROW_STEP};
                if (backward)
                    backward_tile(job, &t, &unused);
                else
                    map_tile(job, &t);
                continue;
            }
            if (backward)
                group_load(dy, gradient + at, BERLU_F32, ROW_GROUP);
            if (value) {
                V_FOR(int v = 0; v < ROW_GROUP; v++)
                    f[v] = r[v];
                group_values(f, &k);
                group_store(y + at, BERLU_F32, f, ROW_GROUP);
            }
            if (!backward)
                continue;
            group_slopes(r, dy, &k);
            group_store(dx + at, BERLU_F32, r, ROW_GROUP);
            if (sums) {
                float *sum = sums + row / ACT_ROWS * channels + c;
                V_FOR(int v = 0; v < ROW_GROUP; v++)
                    v_store(sum + v * V_LANES, v_add(v_load(sum + v * V_LANES), r[v]));
            }
        }
    return whole;
}

static __attribute__((noinline)) size_t rows_values(const act_job *job, size_t row, size_t end)
{
    return rows_groups(job, row, end, 0, 1);
}

static __attribute__((noinline)) size_t rows_slopes(const act_job *job, size_t row, size_t end)
{
    return rows_groups(job, row, end, 1, 0);
}

static __attribute__((noinline)) size_t rows_slopes_and_values(const act_job *job, size_t row, size_t end)
{
    return rows_groups(job, row, end, 1, 1);
}

#endif
