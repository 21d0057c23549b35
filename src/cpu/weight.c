/* weight.c - see weight.h. SPDX-License-Identifier: MIT */
#include "cpu/weight.h"

#include <string.h>

#include "cpu/blocks.h"

/* Outputs transposed at once; and the largest weight that is copied: a larger copy would show
 * in the memory plan (a head of a hundred thousand classes), and the few rows of a head do not
 * amortise it. */
enum { STRIP = 16, TURN_MOST = 1 << 22 };

static int is_forward(const op_call *c)
{
    return c->op == OP_LINEAR || c->op == OP_LINEAR_ACT;
}

/* Floats between rows of a copy of rows of n: an odd number of cache lines. */
static int64_t odd_stride(int64_t n)
{
    enum { LINE = 16 };
    return ((n + LINE - 1) / LINE | 1) * LINE;
}

/* Many short rows run in groups, whose members have no common beginning to copy in; their weights
 * are small anyway. dx copies W for its stride alone: long rows, and enough of dy that 6 % of their
 * products are more than the copy. */
static int is_copied(const op_call *c)
{
    enum { LONG = 512, ROWS = 512 };
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    if (!GEMM_TURN || rows_are_short(inputs, outputs) || inputs * outputs > TURN_MOST)
        return 0;
    return is_forward(c) || (outputs >= LONG && outputs != odd_stride(outputs) && c->out[0].rows >= ROWS);
}

size_t weight_bytes(const op_call *c)
{
    return is_copied(c) ? align_64((size_t)(c->in[0].channels * odd_stride(c->out[0].channels)) * sizeof(float)) : 0;
}

/* Strips of W's rows: outputs of a forward product, inputs of dx. */
void weight_copy(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels, stride = odd_stride(outputs);
    if (!is_copied(c))
        return;
    float *to = c->workspace;
    const float *from = c->in[1].data;
    blocks strips = blocks_of(is_forward(c) ? outputs : inputs, STRIP);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < strips.count; i++) {
        int64_t first = block_begin(&strips, i), rows = block_rows(&strips, i);
        if (is_forward(c))
            simd_of(c)->transpose(to + first, stride, from + first * inputs, inputs, rows, inputs);
        else
            for (int64_t r = first; r < first + rows; r++)
                memcpy(to + r * stride, from + r * outputs, (size_t)outputs * sizeof(float));
    }
}

gemm_matrix weight_matrix(const op_call *c)
{
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    if (is_copied(c))
        return (gemm_matrix){c->workspace, odd_stride(outputs), 0};
    return is_forward(c) ? (gemm_matrix){c->in[1].data, inputs, 1} : (gemm_matrix){c->in[1].data, outputs, 0};
}
