/* cuda_sides.c - see cuda_sides.h. SPDX-License-Identifier: MIT */
#include "act/cuda_sides.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "base/half.h"
#include "base/philox.h"
#include "base/status.h"

enum { TERMS_MOST = (1 << 21) + 8, SPACE = 512 << 20 };

void *device_alloc(size_t bytes)
{
    void *p;
    assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
    return p;
}

void to_device(void *device, const void *host, size_t bytes)
{
    assert_int_equal(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
}

void to_host(void *host, const void *device, size_t bytes)
{
    assert_int_equal(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

berlu_act *act_make(const char *spec)
{
    berlu_act *act;
    if (berlu_act_make(&act, spec) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return act;
}

void must(berlu_status status)
{
    if (status != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

void fill_gradient(void *out, berlu_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v = philox_f32(philox_draw(7, PURPOSE_TEST, 1, i / 4, 0).w[i % 4]) * 2 - 1;
        if (dtype == BERLU_F32)
            ((float *)out)[i] = v;
        else
            ((uint16_t *)out)[i] = dtype == BERLU_BF16 ? bf16_from_f32(v) : f16_from_f32(v);
    }
}

/* Moderate inputs: sums are compared. */
void both_fill_moderate(both *b, berlu_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v = (philox_f32(philox_draw(3, PURPOSE_TEST, 2, i / 4, 0).w[i % 4]) - 0.5f) * 6;
        if (dtype == BERLU_F32)
            ((float *)b->host.x)[i] = v;
        else
            ((uint16_t *)b->host.x)[i] = dtype == BERLU_BF16 ? bf16_from_f32(v) : f16_from_f32(v);
    }
    fill_gradient(b->host.dy, dtype, n);
}

static float number(const void *p, berlu_dtype dtype, size_t i)
{
    if (dtype == BERLU_F32)
        return ((const float *)p)[i];
    uint16_t bits = ((const uint16_t *)p)[i];
    return dtype == BERLU_BF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

static void same_bits(const char *spec, const char *what, berlu_dtype dtype, const void *got, const void *want,
                      const void *x, size_t n)
{
    size_t size = berlu_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        float a = number(got, dtype, i), b = number(want, dtype, i);
        if (memcmp((const char *)got + i * size, (const char *)want + i * size, size) != 0 && !(isnan(a) && isnan(b)))
            fail_msg("%s, %s, %s: x[%zu] = %a gives %a on the GPU and %a on the CPU", spec, what,
                     berlu_dtype_name(dtype), i, (double)number(x, dtype, i), (double)a, (double)b);
    }
}

int both_make(void **state)
{
    both *b = calloc(1, sizeof *b);
    b->bytes = (size_t)MOST * sizeof(float) + 64;
    char **host[] = {&b->host.x, &b->host.y, &b->host.dy, &b->host.dx};
    char **device[] = {&b->device.x, &b->device.y, &b->device.dy, &b->device.dx};
    for (int i = 0; i < 4; i++) {
        *host[i] = aligned_alloc(64, (b->bytes + 63) / 64 * 64);
        *device[i] = device_alloc(b->bytes);
    }
    float **small[] = {&b->host.bias,     &b->host.dbias,   &b->host.param[0],
                       &b->host.param[1], &b->host.grad[0], &b->host.grad[1]};
    float **there[] = {&b->device.bias,     &b->device.dbias,   &b->device.param[0],
                       &b->device.param[1], &b->device.grad[0], &b->device.grad[1]};
    for (int i = 0; i < 6; i++) {
        *small[i] = malloc(CHANNELS_MOST * sizeof(float));
        *there[i] = device_alloc(CHANNELS_MOST * sizeof(float));
    }
    b->host.space = malloc(SPACE);
    b->device.space = device_alloc(SPACE);
    b->host.space_bytes = b->device.space_bytes = SPACE;
    *state = b;
    return 0;
}

int both_free(void **state)
{
    both *b = *state;
    void *host[] = {b->host.x,        b->host.y,        b->host.dy,      b->host.dx,      b->host.bias, b->host.dbias,
                    b->host.param[0], b->host.param[1], b->host.grad[0], b->host.grad[1], b->host.space};
    void *device[] = {b->device.x,       b->device.y,       b->device.dy,       b->device.dx,
                      b->device.bias,    b->device.dbias,   b->device.param[0], b->device.param[1],
                      b->device.grad[0], b->device.grad[1], b->device.space};
    for (size_t i = 0; i < COUNT(host); i++) {
        free(host[i]);
        cudaFree(device[i]);
    }
    free(b);
    return 0;
}

berlu_act_call side_call(const side *s, const plan *p, berlu_act_op op, const berlu_act *act)
{
    size_t skip = p->shift * berlu_dtype_size(p->dtype);
    int backward = op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    berlu_act_call call = {.dtype = p->dtype,
                           .rows = p->rows,
                           .channels = p->channels,
                           .x = s->x + skip,
                           .y = backward && op != BERLU_ACT_BACKWARD_FROM_OUTPUT && !p->with_y ? NULL : s->y + skip,
                           .dy = s->dy + skip,
                           .dx = s->dx + skip,
                           .bias = p->bias ? s->bias : NULL,
                           .dbias = p->dbias ? s->dbias : NULL,
                           .param_index = p->param_index,
                           .workspace = s->space,
                           .workspace_bytes = s->space_bytes};
    for (size_t i = 0; i < berlu_act_param_count(act) && i < 2; i++) {
        call.param[i].value = p->per_channel ? s->param[i] : NULL;
        call.param[i].stride = p->per_channel;
        call.param[i].grad = (int)i < p->grads && backward ? s->grad[i] : NULL;
    }
    return call;
}

/* |GPU - CPU| of a sum: each side has at most `chain` roundings of f32 in a row, and a final
 * one. */
static void near_sums(const char *spec, const float *got, const float *want, const double *size, size_t n, double chain)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= (2 * chain + 2) * 0x1p-24 * size[i] + 0x1p-140) &&
            !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: sum %zu is %a on the GPU and %a on the CPU; size of the terms %g", spec, i, (double)got[i],
                     (double)want[i], size[i]);
}

/* The size of the terms of each sum, as the CPU computes them: with one parameter per element a
 * gradient is one term. For the column sums of dx (parameter -1) the terms are dx itself. */
static void term_sizes(double *out, const berlu_act *act, const both *b, const plan *p, berlu_act_op op, int parameter)
{
    static float values[2][TERMS_MOST], terms[TERMS_MOST];
    size_t outputs = p->per_channel || parameter < 0 ? p->channels : 1, n = p->rows * p->channels;
    plan single = *p;
    single.grads = single.dbias = 0;
    berlu_act_call call = side_call(&b->host, &single, op, act);
    memset(out, 0, outputs * sizeof *out);
    if (parameter >= 0) {
        call.rows = 1;
        call.channels = n;
        for (size_t q = 0; q < berlu_act_param_count(act) && q < 2; q++) {
            berlu_act_param_info info;
            must(berlu_act_param(act, q, &info));
            for (size_t i = 0; i < n; i++)
                values[q][i] = p->per_channel ? b->host.param[q][i % p->channels] : (float)info.value;
            call.param[q] = (berlu_act_param_arg){values[q], 1, (int)q == parameter ? terms : NULL};
        }
        static float bias[TERMS_MOST];
        for (size_t i = 0; p->bias && i < n; i++)
            bias[i] = b->host.bias[i % p->channels];
        call.bias = p->bias ? bias : NULL;
        must(berlu_act_run(act, op, &call, NULL));
    }
    for (size_t i = 0; i < n; i++) {
        double term = parameter >= 0 ? (double)terms[i] : 1.01 * (double)number(b->host.dx, p->dtype, i + p->shift);
        out[outputs == 1 ? 0 : i % p->channels] += fabs(term);
    }
}

void both_compare(both *b, const char *spec, berlu_act_op op, const plan *p)
{
    static double size[CHANNELS_MOST];
    berlu_act *act = act_make(spec);
    size_t n = p->rows * p->channels, bytes = (n + p->shift) * berlu_dtype_size(p->dtype);
    berlu_act_call host = side_call(&b->host, p, op, act), device = side_call(&b->device, p, op, act);
    to_device(b->device.x, b->host.x, bytes);
    to_device(b->device.dy, b->host.dy, bytes);
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        to_device(b->device.y, b->host.y, bytes);
    must(berlu_act_run(act, op, &host, NULL));
    assert_true(berlu_act_cuda_workspace(act, op, &device) <= device.workspace_bytes);
    must(berlu_act_cuda_run(act, op, &device, NULL));
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    size_t skip = p->shift * berlu_dtype_size(p->dtype);
    char *got = malloc(bytes);
    if (host.y && op != BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        to_host(got, b->device.y, bytes);
        same_bits(spec, "y", p->dtype, got + skip, b->host.y + skip, b->host.x + skip, n);
    }
    if (op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        to_host(got, b->device.dx, bytes);
        same_bits(spec, "dx", p->dtype, got + skip, b->host.dx + skip, b->host.x + skip, n);
        for (int i = 0; i < (int)berlu_act_param_count(act) && i < p->grads; i++) {
            float sums[CHANNELS_MOST];
            size_t outputs = p->per_channel ? p->channels : 1;
            to_host(sums, b->device.grad[i], outputs * sizeof(float));
            term_sizes(size, act, b, p, op, i);
            near_sums(spec, sums, b->host.grad[i], size, outputs, 256);
        }
        if (p->dbias) {
            float sums[CHANNELS_MOST];
            to_host(sums, b->device.dbias, p->channels * sizeof(float));
            term_sizes(size, act, b, p, op, -1);
            near_sums(spec, sums, b->host.dbias, size, p->channels, 64);
        }
    }
    free(got);
    berlu_act_free(act);
}

void both_fill_params(both *b, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        b->host.bias[c] = (float)((int)(c % 7) - 3) * 0.01f;
        b->host.param[0][c] = 0.05f + 0.01f * (float)(c % 13);
        b->host.param[1][c] = 0.25f + 0.125f * (float)(c % 5);
    }
    to_device(b->device.bias, b->host.bias, channels * sizeof(float));
    to_device(b->device.param[0], b->host.param[0], channels * sizeof(float));
    to_device(b->device.param[1], b->host.param[1], channels * sizeof(float));
}
