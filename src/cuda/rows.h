/* rows.h - a product with an activation as its epilogue: the kernels' interface.
 * SPDX-License-Identifier: MIT
 *
 *     forward    u = a W^T + bias, y = act(u)
 *     backward   du = (a W) act'(u), its column sums, sums of learned parameters, y recomputed;
 *                or with the slope from y
 *
 * rows.c decides for a call of the engine and fills a rows_job; rows.cu, compiled once per
 * activation, launches it. */
#ifndef CUDA_ROWS_H
#define CUDA_ROWS_H

#include "act/cuda/fused_job.h"
#include "cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ROWS_DEPTH = 192,      /* channels of a: the inner dimension */
    ROWS_SLICE = 192,      /* columns whose weights a block keeps in shared memory */
    ROWS_TILE = 64,        /* rows that stream past them at a time */
    ROWS_PROCESSORS = 132, /* of an H200: one block each; the grid is the same on every GPU */
    ROWS_FEWEST = 16384,   /* rows for which it is faster; with 4,160 it is not */
};

/* bf16 throughout. Forward: act.y and u are written, u only where it is given. Backward: act.x is
 * read (y with act.from_output), act.dx written, and act.y where it is given. Passed to the device
 * by value. */
typedef struct rows_job {
    fused_job act;
    const void *a;    /* [rows][ROWS_DEPTH] */
    const void *w;    /* forward [channels][ROWS_DEPTH], backward [ROWS_DEPTH][channels] */
    const void *bias; /* forward; may be NULL */
    void *u;
} rows_job;

/* NULL: slower than a product and a pass. */
typedef struct rows_kernels {
    berlu_status (*forward)(const rows_job *job, cuda_stream stream);
    berlu_status (*backward)(const rows_job *job, cuda_stream stream);
} rows_kernels;

/* Blocks that share the rows: so many partial sums has a column, and as often as there are slices a
 * parameter. */
static inline size_t rows_groups(const fused_job *job)
{
    size_t slices = job->channels / ROWS_SLICE, most = (job->rows + 2 * ROWS_TILE - 1) / (2 * ROWS_TILE);
    size_t groups = ROWS_PROCESSORS / slices;
    return groups < most ? groups : most;
}

static inline size_t rows_blocks(const fused_job *job)
{
    return rows_groups(job) * (job->channels / ROWS_SLICE);
}

/* rows.c: does a kernel take a linear_act or linear_dx_act, and is it faster than product and pass?
 * The other two only then. */
int cuda_rows_takes(const op_call *c);
size_t cuda_rows_workspace(const op_call *c);
void cuda_rows(const op_call *c);

#ifdef __cplusplus
}
#endif
#endif
