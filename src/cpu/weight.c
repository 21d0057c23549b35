/* weight.c - see weight.h. SPDX-License-Identifier: MIT */
#include "cpu/weight.h"

#include "cpu/blocks.h"

/* Outputs transposed at once; and the largest weight that is transposed: a larger copy would show
 * in the memory plan (a head of a hundred thousand classes), and the few rows of a head do not
 * amortise it. */
enum { STRIP = 16, TURN_MOST = 1 << 22 };

static int is_forward(const op_call *c)
{
    return c->op == OP_LINEAR || c->op == OP_LINEAR_ACT;
}

/* Many short rows run in groups, whose members have no common beginning to transpose in; their
 * weights are small anyway. */
static int is_transposed(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    return GEMM_TURN && is_forward(c) && !rows_are_short(inputs, outputs) && inputs * outputs <= TURN_MOST;
}

/* Row stride of W^T. oneDNN packs matrices with a stride that is a multiple of 1024 (gemm.c), so
 * those get one cache line more. */
static int64_t transposed_stride(const op_call *c)
{
    int64_t outputs = c->out[0].channels;
    return outputs % 1024 ? outputs : outputs + 16;
}

size_t weight_bytes(const op_call *c)
{
    return is_transposed(c) ? align_64((size_t)(c->in[0].channels * transposed_stride(c)) * sizeof(float)) : 0;
}

void weight_transpose(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    if (!is_transposed(c))
        return;
    blocks strips = blocks_of(outputs, STRIP);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < strips.count; i++) {
        int64_t first = block_begin(&strips, i);
        simd_of(c)->transpose((float *)c->workspace + first, transposed_stride(c),
                              (const float *)c->in[1].data + first * inputs, inputs, block_rows(&strips, i), inputs);
    }
}

gemm_matrix weight_matrix(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    if (is_transposed(c))
        return (gemm_matrix){c->workspace, transposed_stride(c), 0};
    return is_forward(c) ? (gemm_matrix){c->in[1].data, inputs, 1} : (gemm_matrix){c->in[1].data, outputs, 0};
}
