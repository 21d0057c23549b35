/* cpu.c - the backends of the CPU: memory, results, and the table of kernels.
 * SPDX-License-Identifier: MIT
 *
 * The f64 table is the reference kernels in double and nothing else. The f32 table replaces every
 * reference kernel that matters by a vectorised one. Device memory is the host's, and run() is
 * synchronous. Read on: run.c, then linear.c and attention.c, which are most of a step. */
#include "cpu/cpu.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "cpu/blocks.h"
#include "cpu/device.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/real.h"

extern const op_entry ref_f64_ops[OP_COUNT];

/* ---- devices and memory ---------------------------------------------------------------------- */

static berlu_status device_open(device **out, const backend *b, tensor_dtype dtype)
{
    device *d = calloc(1, sizeof *d);
    if (!d)
        return berlu_fail_memory(sizeof *d, "a device");
    d->base.backend = b;
    d->simd = b->data;
    d->dtype = dtype;
    *out = d;
    return BERLU_OK;
}

static berlu_status f32_open(device **out, const backend *b, const device_options *o)
{
    if (o->precision && strcmp(o->precision, "f32") != 0)
        return berlu_fail(BERLU_ERR_ARG, "precision %s: the CPU computes in f32; leave --precision out", o->precision);
    TRY(gemm_prepare());
    return device_open(out, b, DTYPE_F32);
}

static berlu_status f64_open(device **out, const backend *b, const device_options *o)
{
    (void)o;
    return device_open(out, b, DTYPE_F64);
}

static void cpu_close(device *d)
{
    free(d);
}

static void cpu_dtypes(const device *d, tensor_dtype of_role[ROLE_COUNT])
{
    for (int i = 0; i < ROLE_COUNT; i++)
        of_role[i] = d->dtype;
}

static berlu_status cpu_alloc(device *d, void **out, memory_kind kind, size_t bytes, const char *what)
{
    (void)d, (void)kind;
    *out = memory_aligned(bytes, what);
    if (!*out)
        return BERLU_ERR_MEMORY;
    memset(*out, 0, bytes);
    return BERLU_OK;
}

static void cpu_release(device *d, memory_kind kind, void *memory)
{
    (void)d, (void)kind;
    free(memory);
}

static berlu_status cpu_copy(device *d, void *to, const void *from, size_t bytes)
{
    (void)d;
    memcpy(to, from, bytes);
    return BERLU_OK;
}

static berlu_status cpu_result_push(device *d, const step_result *from)
{
    assert(d->count < CPU_RESULTS);
    d->results[(d->first + d->count++) % CPU_RESULTS] = *from;
    return BERLU_OK;
}

static berlu_status cpu_result_pop(device *d, step_result *out, int *there, int wait)
{
    (void)wait;
    *there = d->count > 0;
    if (!*there)
        return BERLU_OK;
    *out = d->results[d->first];
    d->first = (d->first + 1) % CPU_RESULTS;
    d->count--;
    return BERLU_OK;
}

static void cpu_describe(const device *d, char *out, size_t size)
{
    snprintf(out, size, "%s, %s", gemm_library(), d->simd ? d->simd->isa : "reference loops");
}

static void cpu_group(graph *g, int batch)
{
    cpu_group_mark(g, GROUP_ROWS, batch);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const op_entry fast_ops[OP_COUNT] = {
    [OP_LINEAR] = {cpu_linear, cpu_linear_workspace, .in_place = 8, .absorbs = 3},
    [OP_NORM] = {cpu_norm, .in_place = 1},
    [OP_ATTENTION] = {cpu_attention, cpu_attention_workspace},
    [OP_ACT] = {cpu_act, cpu_act_workspace, .in_place = 1},
    [OP_UNFOLD] = {cpu_unfold},
    [OP_DEPTHWISE] = {cpu_depthwise, cpu_depthwise_workspace},
    [OP_TOKENS] = {ref_f32_tokens},
    [OP_PIXEL_POS] = {ref_f32_pixel_pos, .in_place = 1},
    [OP_ADD] = {cpu_add, .in_place = 3},
    [OP_ADD_TOKENS] = {ref_f32_add_tokens, .in_place = 1},
    [OP_SCALE] = {cpu_scale, .in_place = 5, .absorbs = 2},
    [OP_MEAN] = {ref_f32_mean},
    [OP_SELECT] = {ref_f32_select},
    [OP_AVERAGE] = {ref_f32_average},
    [OP_DROPOUT] = {ref_f32_dropout, .in_place = 1},
    [OP_DROP_PATH] = {ref_f32_drop_path, .in_place = 3, .absorbs = 1},
    [OP_CROSS_ENTROPY] = {ref_f32_cross_entropy},
    [OP_DISTILL] = {ref_f32_distill},
    [OP_LINEAR_DX] = {cpu_linear_dx, cpu_linear_workspace, .in_place = 4, .absorbs = 2},
    [OP_LINEAR_DW] = {cpu_linear_dw, cpu_linear_dw_workspace},
    [OP_NORM_GRAD] = {cpu_norm_grad, cpu_norm_grad_workspace, .in_place = 1 | 16, .absorbs = 4},
    [OP_ATTENTION_GRAD] = {cpu_attention_grad, cpu_attention_workspace},
    [OP_ACT_GRAD] = {cpu_act_grad, cpu_act_workspace, .in_place = 1},
    [OP_ACT_GRAD_OUT] = {cpu_act_grad, cpu_act_workspace, .in_place = 1},
    [OP_FOLD] = {ref_f32_fold},
    [OP_DEPTHWISE_DX] = {cpu_depthwise_dx, cpu_depthwise_workspace, .in_place = 4, .absorbs = 2},
    [OP_DEPTHWISE_DW] = {cpu_depthwise_dw, cpu_depthwise_workspace},
    [OP_TOKENS_GRAD] = {ref_f32_tokens_grad},
    [OP_PIXEL_POS_GRAD] = {ref_f32_pixel_pos_grad},
    [OP_TAKE_TOKENS] = {ref_f32_take_tokens},
    [OP_SCALE_GRAD] = {cpu_scale_grad, cpu_scale_grad_workspace, .in_place = 1},
    [OP_MEAN_GRAD] = {ref_f32_mean_grad},
    [OP_SELECT_GRAD] = {ref_f32_select_grad},
    [OP_HALF] = {ref_f32_half, .in_place = 1},
    [OP_CROSS_ENTROPY_GRAD] = {ref_f32_cross_entropy_grad},
    [OP_DISTILL_GRAD] = {ref_f32_distill_grad},
    [OP_LINEAR_ACT] = {cpu_linear_act, cpu_linear_act_workspace, .raw = 1},
    [OP_LINEAR_DX_ACT] = {cpu_linear_dx_act, cpu_linear_dx_act_workspace},
    [OP_SCALE_WEIGHT] = {ref_f32_scale_weight},
    [OP_SCALE_WEIGHT_GRAD] = {ref_f32_scale_weight_grad},
    [OP_SPREAD_WEIGHT] = {ref_f32_spread_weight},
    [OP_SPREAD_WEIGHT_GRAD] = {ref_f32_spread_weight_grad},
    [OP_JOIN_WEIGHT] = {ref_f32_join_weight},
    [OP_JOIN_WEIGHT_GRAD] = {ref_f32_join_weight_grad},
    [OP_IMAGES] = {ref_f32_images},
    [OP_ACCUMULATE] = {ref_f32_accumulate},
    [OP_GRAD_NORM] = {cpu_grad_norm, cpu_grad_norm_workspace},
    [OP_ADAMW] = {cpu_adamw},
    [OP_SGD] = {ref_f32_sgd},
    [OP_EMA] = {ref_f32_ema},
    [OP_SHADOW] = {ref_f32_shadow},
};

#define HOST                                                                                                           \
    .alignment = 64, .host_memory = 1, .close = cpu_close, .dtypes = cpu_dtypes, .alloc = cpu_alloc,                   \
    .release = cpu_release, .upload = cpu_copy, .download = cpu_copy, .copy = cpu_copy, .prepare = cpu_prepare,        \
    .run = cpu_run, .program_free = cpu_program_free, .seconds = cpu_seconds, .result_push = cpu_result_push,          \
    .result_pop = cpu_result_pop, .describe = cpu_describe

#define FAST .name = "cpu", .ops = fast_ops, HOST, .open = f32_open, .library = cpu_library, .group = cpu_group

const backend *cpu_f64_backend(void)
{
    static const backend reference = {.name = "cpu-f64", .ops = ref_f64_ops, HOST, .open = f64_open};
    return &reference;
}

const backend *cpu_ref_backend(void)
{
    static const backend reference = {.name = "cpu-ref", .ops = ref_f32_ops, HOST, .open = f32_open};
    return &reference;
}

const backend *cpu_backend_at(int index)
{
    static const backend backends[] = {
#if defined(__x86_64__)
        {FAST, .data = &simd_kernels_avx512},
        {FAST, .data = &simd_kernels_avx2},
#elif defined(__aarch64__)
        {FAST, .data = &simd_kernels_neon},
#endif
        {FAST, .data = &simd_kernels_scalar},
    };
    return index >= 0 && index < (int)COUNT(backends) ? &backends[index] : NULL;
}

const backend *cpu_backend(void)
{
    cpu_isa isa;
    const char *wanted = cpu_isa_pick(&isa) == BERLU_OK ? cpu_isa_name(isa) : "scalar";
    for (int i = 0; cpu_backend_at(i); i++)
        if (strcmp(((const simd_kernels *)cpu_backend_at(i)->data)->isa, wanted) == 0)
            return cpu_backend_at(i);
    return cpu_ref_backend();
}

const char *cpu_blas_name(void)
{
    return gemm_library();
}
