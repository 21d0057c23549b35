/* test_planes.c - a channel that is not innermost gives what a transposed array gives.
 * SPDX-License-Identifier: MIT
 *
 * Values and dx are compared to the bit with the same call over [rows * inner, channels]; the
 * sums with the rule of the header, written here a second time, naively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/berlu.h>

enum { MOST = 3 * 5 * 9000, CHANNELS = 5 };
static float x[MOST], dy[MOST], y[MOST], dx[MOST], tx[MOST], tdy[MOST], ty[MOST], tdx[MOST], slopes[MOST], back[MOST];
static float alpha[CHANNELS] = {0.01f, 0.25f, 0.5f, 1.5f, 0.75f}, eps[CHANNELS] = {0.5f, 0.1f, 1, 2, 0.01f};
static unsigned char space[4 << 20];

typedef struct shape {
    size_t rows, inner;
} shape;
static const shape shapes[] = {{3, 2}, {1, 7}, {3, 49}, {2, 4096}, {2, 4097}, {3, 9000}, {0, 5}};

static void fill(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < MOST; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / 0x1p24f - 0.5f) * 4;
        state = state * 1664525u + 1013904223u;
        dy[i] = (float)(state >> 8) / 0x1p24f - 0.5f;
    }
}

/* [rows, channels, inner] to [rows, inner, channels], or with `back` the other way. */
static void transpose(float *to, const float *from, shape s, int back_again)
{
    for (size_t r = 0; r < s.rows; r++)
        for (size_t c = 0; c < CHANNELS; c++)
            for (size_t i = 0; i < s.inner; i++) {
                size_t planes = (r * CHANNELS + c) * s.inner + i, last = (r * s.inner + i) * CHANNELS + c;
                to[back_again ? planes : last] = from[back_again ? last : planes];
            }
}

static berlu_act_call call_of(shape s)
{
    berlu_act_call call = {.rows = s.rows, .channels = CHANNELS, .inner = s.inner};
    call.x = x, call.y = y;
    call.param[0].value = alpha, call.param[0].stride = 1;
    call.param[1].value = eps, call.param[1].stride = 1;
    call.workspace = space, call.workspace_bytes = sizeof space;
    return call;
}

static berlu_act_call transposed(berlu_act_call call, shape s)
{
    call.rows = s.rows * s.inner, call.inner = 0;
    call.x = tx, call.y = ty, call.dy = tdy, call.dx = tdx;
    return call;
}

static berlu_act *made(const char *spec)
{
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, spec), BERLU_OK);
    return act;
}

static void every_op_equals_the_transposed_call_to_the_bit(void **state)
{
    (void)state;
    berlu_act *act = made("berlu");
    fill();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int op = BERLU_ACT_FORWARD; op <= BERLU_ACT_PARAM_SLOPE; op++)
            for (int threads = 1; threads < 4; threads++) {
                shape s = shapes[i];
                size_t n = s.rows * CHANNELS * s.inner;
                int backward = op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
                berlu_exec exec = {BERLU_ISA_BEST, threads};
                berlu_act_call call = call_of(s);
                call.param_index = 1, call.dy = dy, call.dx = dx;
                transpose(tx, x, s, 0);
                transpose(tdy, dy, s, 0);
                memcpy(y, x, sizeof y); /* any y is an output of an increasing function */
                transpose(ty, y, s, 0);
                berlu_act_call other = transposed(call, s);
                if (op == BERLU_ACT_BACKWARD)
                    call.y = other.y = NULL;
                assert_true(berlu_act_workspace(act, op, &call) <= sizeof space);
                assert_int_equal(berlu_act_run(act, op, &call, &exec), BERLU_OK);
                assert_int_equal(berlu_act_run(act, op, &other, &exec), BERLU_OK);
                transpose(back, backward ? tdx : ty, s, 1);
                assert_memory_equal(back, backward ? dx : y, n * sizeof(float));
            }
    berlu_act_free(act);
}

/* The tree over neighbours, level by level. */
static double tree(double *sums, size_t count)
{
    for (; count > 1; count = (count + 1) / 2)
        for (size_t i = 0; i < (count + 1) / 2; i++)
            sums[i] = 2 * i + 1 < count ? sums[2 * i] + sums[2 * i + 1] : sums[2 * i];
    return count ? sums[0] : 0;
}

static double block_sum(const float *g, const float *d, size_t n)
{
    float lane[16] = {0};
    double joined[16];
    for (size_t i = 0; i < n; i++)
        lane[i % 16] = fmaf(g[i], d[i], lane[i % 16]);
    for (int i = 0; i < 16; i++)
        joined[i] = (double)lane[i];
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            joined[i] += joined[i + half];
    return joined[0];
}

/* Appends the blocks of a channel, row after row. */
static size_t channel_blocks(double *sums, shape s, size_t c)
{
    size_t count = 0;
    for (size_t r = 0; r < s.rows; r++)
        for (size_t at = 0, plane = (r * CHANNELS + c) * s.inner; at < s.inner; at += 4096)
            sums[count++] = block_sum(dy + plane + at, slopes + plane + at, s.inner - at < 4096 ? s.inner - at : 4096);
    return count;
}

static void sums_have_the_order_of_the_header_with_any_number_of_threads(void **state)
{
    (void)state;
    berlu_act *act = made("berlu");
    static double sums[MOST];
    fill();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int p = 0; p < 2; p++)
            for (int layer = 0; layer < 2; layer++)
                for (int threads = 1; threads < 4; threads++) {
                    shape s = shapes[i];
                    float grad[CHANNELS];
                    size_t count = 0;
                    berlu_exec exec = {BERLU_ISA_BEST, threads};
                    berlu_act_call call = call_of(s);
                    if (layer)
                        call.param[p].stride = 0;
                    berlu_act_call slope = call;
                    slope.param_index = p, slope.y = slopes;
                    assert_int_equal(berlu_act_run(act, BERLU_ACT_PARAM_SLOPE, &slope, NULL), BERLU_OK);
                    call.y = NULL, call.dy = dy, call.dx = dx, call.param[p].grad = grad;
                    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, &exec), BERLU_OK);
                    for (size_t c = 0; c < CHANNELS; c++) {
                        size_t more = channel_blocks(sums + count, s, c);
                        if (!layer)
                            assert_true((float)tree(sums, more) == grad[c]);
                        count += layer ? more : 0;
                    }
                    if (layer)
                        assert_true((float)tree(sums, count) == grad[0]);
                }
    berlu_act_free(act);
}

static void without_anything_per_channel_the_call_is_flat(void **state)
{
    (void)state;
    berlu_act *act = made("gelu");
    fill();
    berlu_act_call call = {.rows = 3, .channels = CHANNELS, .inner = 49, .x = x, .y = y};
    assert_int_equal(berlu_act_workspace(act, BERLU_ACT_FORWARD, &call), 0);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_OK);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, ty, x, 3 * CHANNELS * 49), BERLU_OK);
    assert_memory_equal(y, ty, 3 * CHANNELS * 49 * sizeof(float));
    berlu_act_free(act);
}

static void bad_calls_are_refused_before_anything_is_written(void **state)
{
    (void)state;
    berlu_act *act = made("berlu");
    memset(y, 0x5a, sizeof y);
    memcpy(ty, y, sizeof y);
    berlu_act_call good = call_of((shape){3, 49}), bad = good;
    bad.bias = alpha;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &bad, NULL), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "berlu: bias and dbias need inner 1, and it is 49");
    bad = good, bad.workspace_bytes = berlu_act_workspace(act, BERLU_ACT_FORWARD, &good) - 1;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &bad, NULL), BERLU_ERR_ARG);
    float grad[CHANNELS];
    bad = good, bad.workspace = NULL, bad.dy = bad.x, bad.dx = y, bad.y = NULL, bad.param[0].grad = grad;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &bad, NULL), BERLU_ERR_ARG);
    bad = good, bad.inner = SIZE_MAX / 4;
    assert_int_equal(berlu_act_workspace(act, BERLU_ACT_FORWARD, &bad), 0);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &bad, NULL), BERLU_ERR_ARG);
    bad.param[0].stride = bad.param[1].stride = 0;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &bad, NULL), BERLU_ERR_ARG);
    assert_memory_equal(y, ty, sizeof y);
    float negative[CHANNELS] = {0.5f, 0.5f, -0.5f, 0.5f, 0.5f};
    bad = good, bad.dy = dy, bad.dx = dx, bad.param[0].value = negative;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, &bad, NULL), BERLU_ERR_UNSUPPORTED);
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_equals_the_transposed_call_to_the_bit),
        cmocka_unit_test(sums_have_the_order_of_the_header_with_any_number_of_threads),
        cmocka_unit_test(without_anything_per_channel_the_call_is_flat),
        cmocka_unit_test(bad_calls_are_refused_before_anything_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
