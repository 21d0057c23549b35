/* attention_args.cuh - what every attention kernel is handed. SPDX-License-Identifier: MIT
 *
 * q, k and v lie in one array or two; here each has its own pointer, so kernels need not know. Of
 * all arrays the row is the token, and a head owns `width` neighbouring channels of it. A group is
 * what attends to itself: an image, or a patch. */
#ifndef CUDA_ATTENTION_ARGS_CUH
#define CUDA_ATTENTION_ARGS_CUH

#include "cuda/prim.cuh"

typedef struct attention_args {
    array q, k, v, y, dy, dq, dk, dv; /* y of a gradient: NULL where it is not at hand */
    float *logsum;                    /* [row][heads]; forward: NULL where nobody wants them */
    float *delta;                     /* [row][heads], workspace: sum over keys of p dp */
    float *partial; /* [parts][3 dim], workspace: column sums of dq, dk, dv over some rows; NULL: nobody wants them */
    int64_t stride_k, stride_v, dim; /* elements from row to row: q, k and their gradients; v and dv; y and dy */
    int64_t groups;
    int tokens, heads, width;
    float scale;
} attention_args;

/* The group of a block with one head, from the last to the first (prim.cuh, last_first). */
DEVICE int64_t group_of(const attention_args &a)
{
    return last_first(blockIdx.x / a.heads, a.groups);
}

/* First element of a head of a group in an array with that stride; bf16 arrays only. */
DEVICE uint16_t *attention_at(array a, int64_t stride, const attention_args &t, int64_t group, int head)
{
    return (uint16_t *)a.data + group * t.tokens * stride + head * t.width;
}

/* Where the log-sum (or delta) of a head's first row is; those of further rows are `heads`
 * apart. */
DEVICE float *attention_row(float *rows, const attention_args &t, int64_t group, int head)
{
    return rows + group * t.tokens * t.heads + head;
}

#define LOG2_E 1.44269504088896f

#endif
