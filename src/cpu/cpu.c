/* cpu.c - the backends of the CPU: memory, and the two tables of kernels. SPDX-License-Identifier: MIT
 *
 * The f64 table is the plain kernels in double and nothing else. The f32 table is the plain kernels with everything that
 * matters replaced by a vectorised one. Read on: linear.c and attention.c, which are most of a step. */
#include "cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cpu/blocks.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/real.h"
#include "cpu/simd_kernels.h"

extern const op_entry ref_f64_ops[OP_COUNT];

static void *host_memory(size_t bytes, const char *what)
{
    void *memory = memory_aligned(bytes, what);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static void host_release(void *memory)
{
    free(memory);
}

/* ---- f32 ---- */

static size_t f32_bytes(tensor_role role)
{
    (void)role;
    return sizeof(float);
}

static void f32_put(void *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof(float));
}

static void f32_get(float *to, const void *from, size_t count)
{
    memcpy(to, from, count * sizeof(float));
}

static void f32_put_f64(void *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((float *)to)[i] = (float)from[i];
}

static void f32_get_f64(double *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = ((const float *)from)[i];
}

/* ---- f64 ---- */

static size_t f64_bytes(tensor_role role)
{
    (void)role;
    return sizeof(double);
}

static void f64_put(void *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((double *)to)[i] = from[i];
}

static void f64_get(float *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((const double *)from)[i];
}

static void f64_put_f64(void *to, const double *from, size_t count)
{
    memcpy(to, from, count * sizeof(double));
}

static void f64_get_f64(double *to, const void *from, size_t count)
{
    memcpy(to, from, count * sizeof(double));
}

/* ---- tables ---- */

static const op_entry fast_ops[OP_COUNT] = {
    [OP_LINEAR] = {cpu_linear, cpu_linear_workspace},
    [OP_NORM] = {cpu_norm, NULL},
    [OP_ATTENTION] = {cpu_attention, cpu_attention_workspace},
    [OP_ACT] = {cpu_act, cpu_act_workspace},
    [OP_UNFOLD] = {ref_f32_unfold, NULL},
    [OP_DEPTHWISE] = {cpu_depthwise, cpu_depthwise_workspace},
    [OP_TOKENS] = {ref_f32_tokens, NULL},
    [OP_PIXEL_POS] = {ref_f32_pixel_pos, NULL},
    [OP_ADD] = {cpu_add, NULL},
    [OP_ADD_TOKENS] = {ref_f32_add_tokens, NULL},
    [OP_SCALE] = {cpu_scale, NULL},
    [OP_MEAN] = {ref_f32_mean, NULL},
    [OP_SELECT] = {ref_f32_select, NULL},
    [OP_AVERAGE] = {ref_f32_average, NULL},
    [OP_DROPOUT] = {ref_f32_dropout, NULL},
    [OP_DROP_PATH] = {ref_f32_drop_path, NULL},
    [OP_CROSS_ENTROPY] = {ref_f32_cross_entropy, NULL},
    [OP_DISTILL] = {ref_f32_distill, NULL},
    [OP_LINEAR_DX] = {cpu_linear_dx, NULL},
    [OP_LINEAR_DW] = {cpu_linear_dw, cpu_linear_dw_workspace},
    [OP_NORM_GRAD] = {cpu_norm_grad, cpu_norm_grad_workspace},
    [OP_ATTENTION_GRAD] = {cpu_attention_grad, cpu_attention_workspace},
    [OP_ACT_GRAD] = {cpu_act_grad, cpu_act_workspace},
    [OP_ACT_GRAD_OUT] = {cpu_act_grad, cpu_act_workspace},
    [OP_FOLD] = {ref_f32_fold, NULL},
    [OP_DEPTHWISE_DX] = {cpu_depthwise_dx, cpu_depthwise_workspace},
    [OP_DEPTHWISE_DW] = {cpu_depthwise_dw, cpu_depthwise_workspace},
    [OP_TOKENS_GRAD] = {ref_f32_tokens_grad, NULL},
    [OP_PIXEL_POS_GRAD] = {ref_f32_pixel_pos_grad, NULL},
    [OP_TAKE_TOKENS] = {ref_f32_take_tokens, NULL},
    [OP_SCALE_GRAD] = {cpu_scale_grad, cpu_scale_grad_workspace},
    [OP_MEAN_GRAD] = {ref_f32_mean_grad, NULL},
    [OP_SELECT_GRAD] = {ref_f32_select_grad, NULL},
    [OP_HALF] = {ref_f32_half, NULL},
    [OP_CROSS_ENTROPY_GRAD] = {ref_f32_cross_entropy_grad, NULL},
    [OP_DISTILL_GRAD] = {ref_f32_distill_grad, NULL},
    [OP_LINEAR_ACT] = {cpu_linear_act, cpu_linear_act_workspace},
    [OP_LINEAR_DX_ACT] = {cpu_linear_dx_act, cpu_linear_dx_act_workspace},
    [OP_ACCUMULATE] = {ref_f32_accumulate, NULL},
    [OP_GRAD_NORM] = {cpu_grad_norm, cpu_grad_norm_workspace},
    [OP_ADAMW] = {cpu_adamw, NULL},
    [OP_SGD] = {ref_f32_sgd, NULL},
    [OP_EMA] = {ref_f32_ema, NULL},
};

#define F32_MEMORY                                                                                                     \
    .bytes_of = f32_bytes, .host_f32 = 1, .memory = host_memory, .release = host_release, .put = f32_put,              \
    .get = f32_get, .put_f64 = f32_put_f64, .get_f64 = f32_get_f64

#define PRODUCTS                                                                                                       \
    .library = cpu_library, .groupable = cpu_groupable, .group_rows = GROUP_ROWS, .group_width = GROUP_WIDTH,          \
    .group = cpu_group_run

const backend *cpu_f64_backend(void)
{
    static const backend machine = {.name = "cpu-f64",
                                    .ops = ref_f64_ops,
                                    .bytes_of = f64_bytes,
                                    .memory = host_memory,
                                    .release = host_release,
                                    .put = f64_put,
                                    .get = f64_get,
                                    .put_f64 = f64_put_f64,
                                    .get_f64 = f64_get_f64};
    return &machine;
}

const backend *cpu_ref_backend(void)
{
    static const backend machine = {.name = "cpu-ref", .ops = ref_f32_ops, F32_MEMORY};
    return &machine;
}

const backend *cpu_backend_at(int index)
{
    static const backend machines[] = {
#if defined(__x86_64__)
        {.name = "cpu", .ops = fast_ops, F32_MEMORY, PRODUCTS, .data = &simd_kernels_avx512},
        {.name = "cpu", .ops = fast_ops, F32_MEMORY, PRODUCTS, .data = &simd_kernels_avx2},
#elif defined(__aarch64__)
        {.name = "cpu", .ops = fast_ops, F32_MEMORY, PRODUCTS, .data = &simd_kernels_neon},
#endif
        {.name = "cpu", .ops = fast_ops, F32_MEMORY, PRODUCTS, .data = &simd_kernels_scalar},
    };
    return index >= 0 && index < (int)COUNT(machines) ? &machines[index] : NULL;
}

const backend *cpu_backend(void)
{
    const simd_kernels *best = simd_kernels_pick();
    for (int i = 0; cpu_backend_at(i); i++)
        if (cpu_backend_at(i)->data == best)
            return cpu_backend_at(i);
    return cpu_ref_backend();
}

const char *cpu_blas_name(void)
{
    return gemm_library();
}
