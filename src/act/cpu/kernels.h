/* kernels.h - the interface between a call and the kernels of one activation on one instruction
 * set. SPDX-License-Identifier: MIT
 *
 * call.c checks a call, fills an act_job and cuts it into units; a kernel computes some of them.
 * The partition of sums depends on the call alone, never on threads or instruction set, and each
 * unit writes its partial sums to memory of its own, so the sums do not depend on the schedule.
 * There are two traversals:
 *
 *     flat  nothing depends on the channel: units of ACT_UNIT of the rows * channels elements.
 *           The library's own calls, and an engine's activation without a layer before it.
 *     rows  bias, column sums or per-channel parameters: unit_rows rows at a time, row by row.
 *           The backward of a fused layer, which sums the bias gradient.
 *
 * Read on in kernel.c, which fills the table, and in base/threads.h, which joins the partial
 * sums. */
#ifndef ACT_CPU_KERNELS_H
#define ACT_CPU_KERNELS_H

#include <berlu/act.h>

#include "act/formulas/shape.h"

enum {
    ACT_LANES = 16,           /* of a per-layer sum, on every instruction set */
    ACT_BLOCK = 4096,         /* elements that share those lanes */
    ACT_UNIT = 4 * ACT_BLOCK, /* elements of a unit in the flat traversal */
    ACT_ROWS = 64,            /* rows whose column sums are added in order */
    ACT_CONSTS_BYTES = 2048   /* capacity for one vector's prepared constants */
};

typedef struct act_job {
    berlu_act_op op;
    berlu_dtype dtype;
    int stream;     /* non-temporal stores; the output is then aligned to its element */
    int interleave; /* streams, see kernel.c */
    size_t ahead;   /* prefetch distance in bytes */
    int plain;      /* scale 1 and no centering */
    float scale;
    int center;
    int param_index;
    int threads;                  /* number of threads of the call */
    size_t rows, channels, count; /* count = rows * channels */
    size_t blocks, row_blocks;    /* of ACT_BLOCK elements, of ACT_ROWS rows */
    size_t unit_rows;             /* 0: the flat traversal */
    const act_shape *shape;

    const void *x, *dy, *y_in; /* y_in: the output as input of backward_from_output */
    void *y, *dx;
    const float *bias;

    /* By parameter, for those that exist. */
    const float *param[BERLU_ACT_PARAMS]; /* never NULL */
    int per_channel[BERLU_ACT_PARAMS];
    void *consts;      /* prepared constants, aligned to 64: one, or one per vector of channels; units only read them */
    int vector_consts; /* the latter */

    /* Partial sums; NULL: not requested. */
    double *layer_sum[BERLU_ACT_PARAMS];  /* [blocks] */
    float *channel_sum[BERLU_ACT_PARAMS]; /* [row_blocks][channels] */
    float *bias_sum;                      /* the same */
} act_job;

/* The kernels of one activation on one instruction set. */
typedef struct act_kernels {
    size_t lanes;
    size_t consts_bytes; /* of one vector's prepared constants */
    void (*prepare)(act_job *job);
    void (*units)(const act_job *job, size_t from, size_t to); /* from <= unit < to */
} act_kernels;

#endif
