/* test_sums.c - gradients are summed in the order that the header guarantees, whatever runs them.
 * SPDX-License-Identifier: MIT
 *
 * The rule is written here a second time, naively, and compared to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/berlu.h>

#include "act/inputs.h"

enum { MOST = 300000, CHANNELS = 400 };
static float x[MOST], dy[MOST], dx[MOST], slope[MOST], d[MOST];
static float bias[CHANNELS], alpha[CHANNELS];
static unsigned char space[32 << 20];

/* The binary tree, level by level from the leaves: neighbours are joined, one without a neighbour
 * moves up as it is. */
static double tree(double *sums, size_t count)
{
    for (; count > 1; count = (count + 1) / 2)
        for (size_t i = 0; i < (count + 1) / 2; i++)
            sums[i] = 2 * i + 1 < count ? sums[2 * i] + sums[2 * i + 1] : sums[2 * i];
    return count ? sums[0] : 0;
}

/* Element i in block i / 4096 and lane i mod 16; lanes by halves, blocks by the tree. */
static float layer_sum(const float *g, const float *term, size_t n)
{
    size_t blocks = (n + 4095) / 4096;
    double *sums = calloc(blocks + 1, sizeof *sums);
    for (size_t b = 0; b < blocks; b++) {
        float lane[16] = {0};
        double joined[16];
        for (size_t i = b * 4096; i < n && i < (b + 1) * 4096; i++)
            lane[i % 16] = fmaf(g[i], term[i], lane[i % 16]);
        for (int i = 0; i < 16; i++)
            joined[i] = (double)lane[i];
        for (int half = 8; half; half /= 2)
            for (int i = 0; i < half; i++)
                joined[i] += joined[i + half];
        sums[b] = joined[0];
    }
    float sum = (float)tree(sums, blocks);
    free(sums);
    return sum;
}

/* Rows in blocks of 64 in order, blocks by the tree. term NULL: the sum of g itself. */
static float column_sum(const float *g, const float *term, size_t rows, size_t channels, size_t c)
{
    double sums[MOST / 64 + 1];
    size_t blocks = (rows + 63) / 64;
    for (size_t b = 0; b < blocks; b++) {
        float sum = 0;
        for (size_t r = b * 64; r < rows && r < (b + 1) * 64; r++)
            sum = term ? fmaf(g[r * channels + c], term[r * channels + c], sum) : sum + g[r * channels + c];
        sums[b] = (double)sum;
    }
    return (float)tree(sums, blocks);
}

static int same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void run(const berlu_act *act, berlu_act_op op, const berlu_act_call *base, berlu_exec exec)
{
    berlu_act_call call = *base;
    call.workspace = space;
    call.workspace_bytes = berlu_act_workspace(act, op, &call);
    assert_true(call.workspace_bytes <= sizeof space);
    if (berlu_act_run(act, op, &call, &exec) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static void one_parameter_per_layer_is_summed_in_blocks_and_lanes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4095, 4096, 4097, 65536, 100003, MOST};
    static const int threads[] = {1, 2, 3, 8};
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.1,eps=0.5"), BERLU_OK);
    inputs_plain(x, MOST, BERLU_F32, 1);
    inputs_plain(dy, MOST, BERLU_F32, 2);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int p = 0; p < 2; p++) {
            berlu_act_call call = {.rows = sizes[s], .channels = 1, .x = x, .y = d, .param_index = p};
            run(act, BERLU_ACT_PARAM_SLOPE, &call, (berlu_exec){0});
            float want = layer_sum(dy, d, sizes[s]);
            for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++)
                for (size_t t = 0; t < 4 && berlu_act_can_run(act, (berlu_isa)isa); t++) {
                    float grad = -1;
                    berlu_act_call back = {.rows = sizes[s], .channels = 1, .x = x, .dy = dy, .dx = dx};
                    back.param[p].grad = &grad;
                    run(act, BERLU_ACT_BACKWARD, &back, (berlu_exec){(berlu_isa)isa, threads[t]});
                    assert_true(same(grad, want));
                }
        }
    berlu_act_free(act);
}

static void columns_are_summed_in_blocks_of_64_rows(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {64, 3}, {65, 16}, {200, 33}, {700, 400}, {1000, 31}};
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "prelu"), BERLU_OK);
    inputs_plain(x, MOST, BERLU_F32, 3);
    inputs_plain(dy, MOST, BERLU_F32, 4);
    for (size_t c = 0; c < CHANNELS; c++) {
        bias[c] = (float)(c % 7) * 0.25f - 0.75f;
        alpha[c] = (float)(c % 11) * 0.1f;
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t rows = sizes[s][0], channels = sizes[s][1], n = rows * channels;
        float dbias[CHANNELS], dalpha[CHANNELS];
        berlu_act_call call = {
            .rows = rows, .channels = channels, .x = x, .y = slope, .dy = dy, .dx = dx, .bias = bias};
        call.param[0] = (berlu_act_param_arg){.value = alpha, .stride = 1};
        run(act, BERLU_ACT_SLOPE, &call, (berlu_exec){0});
        call.y = d;
        run(act, BERLU_ACT_PARAM_SLOPE, &call, (berlu_exec){0});
        call.y = NULL;
        call.dbias = dbias;
        call.param[0].grad = dalpha;
        run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){0});
        for (size_t i = 0; i < n; i++)
            assert_true(same(dx[i], dy[i] * slope[i]));
        for (size_t c = 0; c < channels; c++) {
            assert_true(same(dbias[c], column_sum(dx, NULL, rows, channels, c)));
            assert_true(same(dalpha[c], column_sum(dy, d, rows, channels, c)));
        }
    }
    berlu_act_free(act);
}

/* The same parameter sum with and without a bias of zeros: two traversals, one order. */
static void a_bias_of_zeros_changes_no_bit_of_the_layers_sum(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{3, 5}, {100, 37}, {513, 64}, {700, 400}, {4100, 7}};
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:eps=1"), BERLU_OK);
    inputs_plain(x, MOST, BERLU_F32, 5);
    inputs_plain(dy, MOST, BERLU_F32, 6);
    memset(bias, 0, sizeof bias);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        float flat[2], rows[2], dbias[CHANNELS];
        berlu_act_call call = {.rows = sizes[s][0], .channels = sizes[s][1], .x = x, .dy = dy, .dx = dx};
        call.param[0].grad = &flat[0];
        call.param[1].grad = &flat[1];
        run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){0});
        call.bias = bias;
        call.dbias = dbias;
        call.param[0].grad = &rows[0];
        call.param[1].grad = &rows[1];
        run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){0, 3});
        assert_true(same(flat[0], rows[0]) && same(flat[1], rows[1]));
    }
    berlu_act_free(act);
}

static void sums_stay_within_the_derived_bound_of_the_exact_sum(void **state)
{
    (void)state;
    berlu_act *act;
    float grad;
    double exact = 0, size = 0;
    assert_int_equal(berlu_act_make(&act, "prelu"), BERLU_OK);
    inputs_plain(x, MOST, BERLU_F32, 7);
    inputs_plain(dy, MOST, BERLU_F32, 8);
    berlu_act_call call = {.rows = MOST, .channels = 1, .x = x, .dy = dy, .dx = dx};
    call.param[0].grad = &grad;
    run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){0});
    for (size_t i = 0; i < MOST; i++) {
        double term = x[i] < 0 ? (double)x[i] * (double)dy[i] : 0;
        exact += term;
        size += fabs(term);
    }
    assert_true(fabs((double)grad - exact) <= (4096 / 16 + 1) * 0x1p-24 * size);
    berlu_act_free(act);
}

/* Where the output begins inside a cache line, each block has a head of its own, and lanes rotate:
 * four blocks at a time, a last short unit, every offset in a line, dx and the sum against
 * scalar. */
static void streamed_outputs_at_any_place_change_no_bit(void **state)
{
    (void)state;
    enum { N = 2 * 16384 + 5003, PLACES = 33 };
    static unsigned char streamed[(N + PLACES) * 4 + 64];
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.1,eps=0.5"), BERLU_OK);
    for (int dtype = BERLU_F32; dtype <= BERLU_F16; dtype++) {
        size_t size = berlu_dtype_size((berlu_dtype)dtype);
        unsigned char *line = streamed + (64 - (uintptr_t)streamed % 64) % 64;
        inputs_plain(x, MOST, (berlu_dtype)dtype, 9);
        inputs_plain(dy, MOST, (berlu_dtype)dtype, 10);
        float want[2], grad[2];
        berlu_act_call call = {.dtype = (berlu_dtype)dtype, .rows = N, .channels = 1, .x = x, .dy = dy, .dx = dx};
        call.param[0].grad = &want[0];
        call.param[1].grad = &want[1];
        run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){BERLU_ISA_SCALAR, 1});
        call.hint = BERLU_HINT_STREAM;
        for (int isa = BERLU_ISA_AVX2; isa <= BERLU_ISA_NEON; isa++)
            for (size_t place = 0; place < PLACES && berlu_act_can_run(act, (berlu_isa)isa); place++) {
                call.dx = line + place * size;
                call.param[0].grad = &grad[0];
                call.param[1].grad = place % 2 ? &grad[1] : NULL; /* one sum and two have loops of their own */
                run(act, BERLU_ACT_BACKWARD, &call, (berlu_exec){(berlu_isa)isa, 1 + (int)(place % 3)});
                assert_memory_equal(call.dx, dx, N * size);
                assert_true(same(grad[0], want[0]) && (place % 2 == 0 || same(grad[1], want[1])));
            }
    }
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_parameter_per_layer_is_summed_in_blocks_and_lanes),
        cmocka_unit_test(columns_are_summed_in_blocks_of_64_rows),
        cmocka_unit_test(a_bias_of_zeros_changes_no_bit_of_the_layers_sum),
        cmocka_unit_test(sums_stay_within_the_derived_bound_of_the_exact_sum),
        cmocka_unit_test(streamed_outputs_at_any_place_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
