/* stub.h - a GPU made of malloc: cuda_api.h, cuBLASLt and the kernels, on the host.
 * SPDX-License-Identifier: MIT
 *
 * Linked with the C files of src/cuda it makes the whole host side of the CUDA backend run on any
 * machine: kernels are the reference kernels of the CPU, products are plain loops, a capture keeps
 * a list of work that a launch of the graph repeats (a second stream as late as events allow), and
 * time is a clock that products advance. Tests set what the machine lacks and count what
 * happened. */
#ifndef TESTS_CUDA_STUB_H
#define TESTS_CUDA_STUB_H

#include "cuda/device.h"
#include "cuda/linear_norm.h"
#include "cuda/mlp.h"
#include "cuda/rows.h"

typedef struct stub_machine {
    /* what there is */
    int gpus;
    int old_driver, no_library, no_code; /* 1: that is what is wrong */
    size_t memory;                       /* bytes that are free */
    size_t piece;                        /* device memory is given out in whole ones; 0: to the byte */
    int major, minor, processors;        /* compute capability; multiprocessors */
    const char *version;                 /* of cuBLASLt */
    int offers;                          /* algorithms per product; number i takes cost[i] seconds */
    double cost[8];
    int refused;                       /* > 0: lt_accepts() says no to algorithm refused - 1 */
    int no_bias_epilogue, no_products; /* 1: the library has nothing for these */
    int launch_fails;                  /* > 0: that launch from now on fails */
    int events_late;                   /* 1: an event is over only when it is waited for */
    int lost;                          /* > 0: that call of the runtime and all behind it find no GPU any more */
    int others_at;                     /* > 0: from that allocation on other processes have all memory */

    /* what happened */
    int calls; /* that can find the GPU lost */
    int launches, products, captures, graph_launches, copies;
    int side_work; /* pieces of work that ran on a second stream */
    int rows;      /* launches of rows.cu, which does nothing here, and the last one's job */
    rows_job rows_job;
    int linear_norms; /* the same of linear_norm.cu */
    linear_norm_job linear_norm_job;
    int mlps; /* and of mlp.cu */
    mlp_job mlp_job;
    size_t joined_layers;   /* partial sums of parameters that its end was asked to join */
    int ends, end_launches; /* of sums over rows (ends.c) */
    size_t taken;           /* bytes of device memory alive */
    int allocations;        /* alive: memory, events, streams, graphs, plans, libraries */
} stub_machine;
extern stub_machine stub;

void stub_reset(void); /* a healthy machine with one GPU; counts are zero */

#endif
