/* weight.c - see weight.h. SPDX-License-Identifier: MIT */
#include "cpu/weight.h"

#include "cpu/blocks.h"

/* Outputs that are transposed at once; and a weight that is larger stays as it is: its copy would be felt in the plan (the head of
 * a hundred thousand classes), and the few rows that a head has do not pay for it. */
enum { STRIP = 16, TURN_MOST = 1 << 22 };

static int is_forward(const op_call *c)
{
    return c->op == OP_LINEAR || c->op == OP_LINEAR_ACT;
}

/* Many short rows go through groups, which have no moment for it; short rows have small weights anyway. */
static int is_transposed(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    return GEMM_TURN && is_forward(c) && !rows_are_short(inputs, outputs) && inputs * outputs <= TURN_MOST;
}

/* Of W^T. oneDNN copies what has rows of a multiple of 1024 numbers (gemm.c), so those get a line more. */
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
