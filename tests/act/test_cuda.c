/* test_cuda.c - the activations on CUDA against the CPU. SPDX-License-Identifier: MIT
 *
 * Values and dx must have the CPU's bits (NaN as a class) in every op, dtype, shape and alignment;
 * sums must be the same in every repeat and within the derived bound (cuda_sides.h). Without a GPU
 * the program reports it and counts as skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "act/cuda_sides.h"
#include "base/half.h"
#include "base/philox.h"
#include "base/status.h"

static const char *const specs[] = {"identity",
                                    "relu",
                                    "leaky_relu",
                                    "prelu",
                                    "relu6",
                                    "hard_tanh",
                                    "hard_sigmoid",
                                    "hard_swish",
                                    "elu",
                                    "elu:alpha=1.7",
                                    "celu",
                                    "celu:alpha=0.4",
                                    "selu",
                                    "gelu",
                                    "gelu_tanh",
                                    "silu",
                                    "quick_gelu",
                                    "softplus",
                                    "sigmoid",
                                    "tanh",
                                    "relu2",
                                    "mish",
                                    "smelu",
                                    "berlu",
                                    "berlu:alpha=0.02,eps=0.9",
                                    "berlu:alpha=0.1,eps=0.013",
                                    "berlu:eps=0.5,degree=4",
                                    "berlu:alpha=-0.3,eps=1,degree=6",
                                    "berlu:alpha=1.5,eps=2,degree=12",
                                    "gelu:scale=8",
                                    "berlu:eps=1,center=1",
                                    "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1; degree=4)"};

/* Every 16-bit pattern; for f32 special values, neighbourhoods of special points, random bits. */
static void fill_input(void *out, berlu_dtype dtype, size_t n, uint32_t seed)
{
    static const float special[] = {0.0f,      -0.0f,       INFINITY, -INFINITY,   NAN,    0x1p-149f,      -0x1p-149f,
                                    0x1p-126f, 1e30f,       -1e30f,   3.0f,        -3.0f,  6.0f,           0.01f,
                                    -0.01f,    -0.0081818f, -5.5f,    -0.7517915f, -13.5f, 0x1.fffffep127f};
    for (size_t i = 0; i < n; i++) {
        if (dtype != BERLU_F32) {
            ((uint16_t *)out)[i] = (uint16_t)(i * 40503u); /* an odd factor, so every pattern comes once in 65,536 */
            continue;
        }
        uint32_t word = philox_draw(seed, PURPOSE_TEST, 0, i / 4, 0).w[i % 4];
        float v = (philox_f32(word) - 0.5f) * (i % 3 == 0 ? 0.05f : i % 3 == 1 ? 8.0f : 250.0f);
        if (i % 17 == 0)
            memcpy(&v, &word, sizeof v);
        ((float *)out)[i] = i < COUNT(special) ? special[i] : v;
    }
}

/* Gradients of every size and sign, zeros, infinities and NaN among them: dx is compared, no
 * sum. */
static void fill_wild_gradient(void *out, berlu_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t word = philox_draw(9, PURPOSE_TEST, 3, i / 4, 0).w[i % 4];
        float v = ldexpf(philox_f32(word) * 2 - 1, (int)(word % 25) - 12);
        if (dtype == BERLU_F32)
            ((float *)out)[i] = v;
        else if (word % 7 == 0)
            ((uint16_t *)out)[i] = (uint16_t)(word >> 8);
        else
            ((uint16_t *)out)[i] = dtype == BERLU_BF16 ? bf16_from_f32(v) : f16_from_f32(v);
    }
}

static const berlu_dtype dtypes[] = {BERLU_F32, BERLU_BF16, BERLU_F16};

/* Activations whose 16-bit outputs do not determine the derivative; inputs.c has the same list. */
static int is_from_f32_output_only(const char *spec)
{
    return strcmp(spec, "hard_sigmoid") == 0 || strcmp(spec, "sigmoid") == 0 || strcmp(spec, "tanh") == 0;
}

/* Outputs of a biased call do not matter here: the op reads y alone. */
static int gives_slope_from_output(const char *spec, const plan *p)
{
    berlu_act *act = act_make(spec);
    int gives = berlu_act_has_from_output(act) && (p->dtype == BERLU_F32 || !is_from_f32_output_only(spec));
    berlu_act_free(act);
    return gives;
}

static void every_value_and_dx_has_the_bits_of_the_cpu(void **state)
{
    both *b = *state;
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            plan p = {.dtype = dtypes[d], .rows = 1, .channels = dtypes[d] == BERLU_F32 ? 500003 : MOST};
            fill_input(b->host.x, p.dtype, p.channels, (uint32_t)s);
            fill_wild_gradient(b->host.dy, p.dtype, p.channels);
            both_compare(b, specs[s], BERLU_ACT_FORWARD, &p);
            both_compare(b, specs[s], BERLU_ACT_BACKWARD, &p);
        }
}

static void every_other_op_has_the_bits_of_the_cpu(void **state)
{
    both *b = *state;
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            plan p = {.dtype = dtypes[d], .rows = 1, .channels = 65536 + 9, .with_y = 1};
            berlu_act *act = act_make(specs[s]);
            fill_input(b->host.x, p.dtype, p.channels, (uint32_t)s);
            fill_gradient(b->host.dy, p.dtype, p.channels);
            both_compare(b, specs[s], BERLU_ACT_SLOPE, &p);
            both_compare(b, specs[s], BERLU_ACT_SECOND, &p);
            both_compare(b, specs[s], BERLU_ACT_BACKWARD, &p);
            for (p.param_index = 0; p.param_index < (int)berlu_act_param_count(act); p.param_index++)
                both_compare(b, specs[s], BERLU_ACT_PARAM_SLOPE, &p);
            p.param_index = 0;
            if (gives_slope_from_output(specs[s], &p)) {
                both_compare(b, specs[s], BERLU_ACT_FORWARD, &p); /* y in host.y */
                both_compare(b, specs[s], BERLU_ACT_BACKWARD_FROM_OUTPUT, &p);
            }
            berlu_act_free(act);
        }
}

static void every_shape_and_alignment_agrees(void **state)
{
    both *b = *state;
    static const size_t shapes[][2] = {{1, 1},    {1, 31},   {3, 7},     {65, 33}, {64, 32},
                                       {200, 96}, {1, 8192}, {129, 768}, {700, 5}};
    const char *every = getenv("BERLU_TEST_EVERY"); /* a sample, for tools that make a launch a hundred times slower */
    unsigned long stride = every ? strtoul(every, NULL, 10) : 1, turn = 0;
    both_fill_params(b, CHANNELS_MOST);
    for (size_t s = 0; s < COUNT(specs); s++) {
        for (size_t k = 0; k < COUNT(shapes); k++)
            for (unsigned bits = 0; bits < 32; bits++) {
                if (stride > 1 && turn++ % stride)
                    continue;
                plan p = {.dtype = dtypes[(s + k + bits) % 3],
                          .rows = shapes[k][0],
                          .channels = shapes[k][1],
                          .shift = bits & 1 ? 1 + k % 5 : 0,
                          .bias = bits >> 1 & 1,
                          .dbias = bits >> 2 & 1,
                          .grads = bits >> 3 & 1 ? 2 : 0,
                          .per_channel = bits >> 4 & 1,
                          .with_y = (s + k + bits / 2) % 2};
                if (p.channels > CHANNELS_MOST && bits >> 1)
                    continue;
                both_fill_moderate(b, p.dtype, p.rows * p.channels + p.shift);
                both_compare(b, specs[s], BERLU_ACT_FORWARD, &p); /* leaves y in host.y */
                if (gives_slope_from_output(specs[s], &p))
                    both_compare(b, specs[s], BERLU_ACT_BACKWARD_FROM_OUTPUT, &p);
                both_compare(b, specs[s], BERLU_ACT_BACKWARD, &p);
            }
    }
}

/* What keep="output" of training needs: dx, and the gradient of the first parameter or of none. */
static void the_gradient_of_the_first_parameter_alone_agrees(void **state)
{
    both *b = *state;
    static const char *const alphas[] = {
        "berlu",           "berlu:alpha=0.25,eps=0.5", "berlu:alpha=1", "berlu:alpha=3,eps=2", "berlu:alpha=1e-16",
        "prelu:alpha=0.25"};
    for (size_t s = 0; s < COUNT(alphas); s++)
        for (size_t d = 0; d < COUNT(dtypes); d++)
            for (int grads = 0; grads < 2; grads++) {
                plan p = {.dtype = dtypes[d], .rows = 1, .channels = (1 << 20) + 3, .grads = grads};
                both_fill_moderate(b, p.dtype, p.channels);
                both_compare(b, alphas[s], BERLU_ACT_BACKWARD, &p);
                both_compare(b, alphas[s], BERLU_ACT_FORWARD, &p); /* leaves y in host.y */
                both_compare(b, alphas[s], BERLU_ACT_BACKWARD_FROM_OUTPUT, &p);
            }
}

static void two_million_rows_with_a_bias_fit_the_grid(void **state)
{
    both *b = *state;
    plan p = {.dtype = BERLU_F32, .rows = 2097153, .channels = 1, .bias = 1, .dbias = 1, .grads = 2};
    both_fill_params(b, 1);
    both_fill_moderate(b, p.dtype, p.rows);
    both_compare(b, "prelu", BERLU_ACT_FORWARD, &p);
    both_compare(b, "prelu", BERLU_ACT_BACKWARD, &p);
}

/* Half of them beside a call on the other stream that occupies most of the device, so blocks run in
 * another order and on other processors. */
static void a_hundred_repeats_on_two_streams_give_the_same_sums(void **state)
{
    both *b = *state;
    cudaStream_t streams[2];
    berlu_act *act = act_make("berlu:eps=0.5"), *other = act_make("gelu");
    berlu_act_call beside = {.dtype = BERLU_F32, .rows = 1, .channels = MOST};
    beside.x = beside.y = device_alloc(MOST * sizeof(float));
    assert_int_equal(cudaMemset(beside.y, 0, MOST * sizeof(float)), cudaSuccess);
    plan p = {.dtype = BERLU_BF16, .rows = 1500, .channels = 768, .grads = 2};
    both_fill_moderate(b, p.dtype, p.rows * p.channels);
    to_device(b->device.x, b->host.x, p.rows * p.channels * 2);
    to_device(b->device.dy, b->host.dy, p.rows * p.channels * 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cudaStreamCreate(&streams[i]), cudaSuccess);
    berlu_act_call call = side_call(&b->device, &p, BERLU_ACT_BACKWARD, act);
    float first[2], next[2];
    for (int i = 0; i < 100; i++) {
        for (int busy = 0; busy < i % 4; busy++)
            must(berlu_act_cuda_run(other, BERLU_ACT_FORWARD, &beside, streams[(i + 1) % 2]));
        must(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, streams[i % 2]));
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        to_host(&next[0], b->device.grad[0], sizeof(float));
        to_host(&next[1], b->device.grad[1], sizeof(float));
        if (i == 0)
            memcpy(first, next, sizeof first);
        assert_memory_equal(first, next, sizeof first);
    }
    for (int i = 0; i < 2; i++)
        cudaStreamDestroy(streams[i]);
    cudaFree(beside.y);
    berlu_act_free(other);
    berlu_act_free(act);
}

static void a_replayed_graph_sees_a_changed_alpha(void **state)
{
    both *b = *state;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    berlu_act *act = act_make("prelu");
    plan p = {.dtype = BERLU_F32, .rows = 1, .channels = 100000, .grads = 2};
    size_t bytes = p.channels * sizeof(float);
    both_fill_moderate(b, p.dtype, p.channels);
    to_device(b->device.x, b->host.x, bytes);
    to_device(b->device.dy, b->host.dy, bytes);
    berlu_act_call forward = side_call(&b->device, &p, BERLU_ACT_FORWARD, act);
    berlu_act_call backward = side_call(&b->device, &p, BERLU_ACT_BACKWARD, act);
    forward.param[0].value = backward.param[0].value = b->device.param[0];
    assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    must(berlu_act_cuda_run(act, BERLU_ACT_FORWARD, &forward, stream));
    must(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &backward, stream));
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int i = 0; i < 3; i++) {
        float alpha = 0.125f * (float)(i + 1), *y = malloc(bytes);
        to_device(b->device.param[0], &alpha, sizeof alpha);
        assert_int_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
        to_host(y, b->device.y, bytes);
        for (size_t j = 0; j < p.channels; j++) {
            float x = ((float *)b->host.x)[j];
            assert_true(y[j] == (x > 0 ? x : alpha * x));
        }
        free(y);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    berlu_act_free(act);
}

static void bad_calls_are_refused_and_the_next_one_works(void **state)
{
    both *b = *state;
    berlu_act *act = act_make("berlu");
    plan p = {.dtype = BERLU_F32, .rows = 2, .channels = 64, .grads = 2};
    berlu_act_call good = side_call(&b->device, &p, BERLU_ACT_BACKWARD, act), call = good;
    both_fill_moderate(b, p.dtype, 128);
    to_device(b->device.x, b->host.x, 128 * sizeof(float));
    to_device(b->device.dy, b->host.dy, 128 * sizeof(float));
    call.x = NULL;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    call = good;
    call.x = b->host.x;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "host memory"));
    call = good;
    call.dy = b->device.dy + 2;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    call = good;
    call.workspace = NULL;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    call = good;
    call.workspace_bytes = 1;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    call = good;
    call.rows = SIZE_MAX / 8;
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_cuda_run(NULL, BERLU_ACT_BACKWARD, &good, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_cuda_run(act, (berlu_act_op)99, &good, NULL), BERLU_ERR_ARG);
    static const char *const no_slope[] = {"berlu:degree=4", "berlu:alpha=0", "leaky_relu:alpha=-0.5", "gelu"};
    for (size_t i = 0; i < COUNT(no_slope); i++) {
        berlu_act *other = act_make(no_slope[i]);
        plan q = {.dtype = BERLU_F32, .rows = 2, .channels = 64};
        berlu_act_call from = side_call(&b->device, &q, BERLU_ACT_BACKWARD_FROM_OUTPUT, other);
        assert_int_equal(berlu_act_cuda_run(other, BERLU_ACT_BACKWARD_FROM_OUTPUT, &from, NULL), BERLU_ERR_UNSUPPORTED);
        berlu_act_free(other);
    }
    must(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &good, NULL));
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    call = good;
    call.rows = 0;
    call.workspace = NULL;
    call.workspace_bytes = 0;
    must(berlu_act_cuda_run(act, BERLU_ACT_BACKWARD, &call, NULL));
    float grad = 1;
    to_host(&grad, b->device.grad[0], sizeof grad);
    assert_true(grad == 0);
    berlu_act_free(act);
}

/* Synchronising a stream that is being captured is not allowed and invalidates the capture; nothing
 * can be launched into it then. */
static void a_failed_launch_reports_cudas_message_and_the_next_one_works(void **state)
{
    both *b = *state;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    berlu_act *act = act_make("relu");
    plan p = {.dtype = BERLU_F32, .rows = 2, .channels = 64};
    berlu_act_call call = side_call(&b->device, &p, BERLU_ACT_FORWARD, act);
    float y[128];
    both_fill_moderate(b, p.dtype, COUNT(y));
    to_device(b->device.x, b->host.x, sizeof y);
    assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    assert_int_not_equal(cudaStreamSynchronize(stream), cudaSuccess);
    cudaGetLastError();
    assert_int_equal(berlu_act_cuda_run(act, BERLU_ACT_FORWARD, &call, stream), BERLU_ERR_DEVICE);
    assert_non_null(strstr(berlu_last_error(), cudaGetErrorString(cudaErrorStreamCaptureInvalidated)));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    must(berlu_act_cuda_run(act, BERLU_ACT_FORWARD, &call, stream));
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    to_host(y, b->device.y, sizeof y);
    for (size_t i = 0; i < COUNT(y); i++)
        assert_true(y[i] == fmaxf(((float *)b->host.x)[i], 0));
    cudaStreamDestroy(stream);
    berlu_act_free(act);
}

/* Runs everywhere: the library loads and reports with CUDA's message why there is no device. */
static int without_gpu(void)
{
    char text[64];
    if (berlu_cuda_describe(0, text, sizeof text) != BERLU_ERR_DEVICE || !*berlu_last_error())
        return 1;
    printf("skipped: no GPU (%s)\n", berlu_last_error());
    return 77;
}

/* An argument selects tests by pattern ('*shape*'), for the slow checkers. */
int main(int argc, char **argv)
{
    char text[128];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (berlu_cuda_count() == 0)
        return without_gpu();
    must(berlu_cuda_describe(0, text, sizeof text));
    printf("%s\n", text);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_and_dx_has_the_bits_of_the_cpu),
        cmocka_unit_test(every_other_op_has_the_bits_of_the_cpu),
        cmocka_unit_test(every_shape_and_alignment_agrees),
        cmocka_unit_test(the_gradient_of_the_first_parameter_alone_agrees),
        cmocka_unit_test(two_million_rows_with_a_bias_fit_the_grid),
        cmocka_unit_test(a_hundred_repeats_on_two_streams_give_the_same_sums),
        cmocka_unit_test(a_replayed_graph_sees_a_changed_alpha),
        cmocka_unit_test(bad_calls_are_refused_and_the_next_one_works),
        cmocka_unit_test(a_failed_launch_reports_cudas_message_and_the_next_one_works),
    };
    return cmocka_run_group_tests(tests, both_make, both_free);
}
