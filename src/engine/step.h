/* step.h - the inputs and the results of a step. SPDX-License-Identifier: MIT
 *
 * Everything that changes from step to step is one engine_step: the caller fills it, the engine
 * resolves its defaults and uploads it once, kernels read it in device memory. The results beside
 * tensors are one step_result: kernels write it in device memory, and it comes back when the device
 * is done, possibly some steps later (engine_poll()). Kernels are handed pointers to both, so a
 * captured graph of launches never changes.
 *
 * Also here: the table over which the update ops run. Both structs and the two rules on spans
 * compile as CUDA too. */
#ifndef ENGINE_STEP_H
#define ENGINE_STEP_H

#include <stdint.h>

#ifdef __CUDACC__
#define STEP_FN static __host__ __device__ inline
#else
#define STEP_FN static inline
#endif

typedef struct engine_step {
    uint64_t seed;  /* of dropout and drop path */
    uint32_t step;  /* index of the update from 0: the `epoch` word of the random counter */
    uint32_t count; /* updates this optimizer has made, this one included: 1, 2, ...; 0 means 1 */
    /* This batch is number micro_batch of the micro_batches (0 means 1) of an update. Draws and the
     * order of the sum follow from the number, so it does not matter which process computes it. */
    uint32_t micro_batch, micro_batches;
    double smoothing, distill_alpha, distill_tau; /* tau 0 means 1 */
    double loss_scale;                            /* multiplies gradients (1/A when accumulating); 0 means 1 */
    double lr, weight_decay, clip;                /* clip 0: none */
    double act_lr;    /* multiplier of lr for activation parameters; 0 means 1 (freeze them by act_frozen) */
    double act_decay; /* weight decay of activation parameters; 0 with decay_all: weight_decay */
    int act_frozen, decay_all;
    double beta1, beta2, eps; /* AdamW; all three 0: .9, .999, 1e-8 */
    double momentum;          /* SGD */
    double ema_decay;
    /* Derived by the engine. */
    double correction1, correction2; /* 1 - beta^count */
    uint64_t first_sample;           /* index of this batch's first image among those of the update */
} engine_step;

typedef struct step_result {
    double loss_part[2]; /* cross entropy; distillation: means over the counted images */
    double grad_norm, clip_factor;
    /* 1 from the first loss or norm on that is not finite: update ops then leave every array as it
     * is. It stays set for the life of the engine, so that steps already enqueued change nothing
     * either. */
    int fault;
} step_result;

/* One parameter within the arrays that update ops work on. Weights, moments and average share
 * offsets; gradients lie in the order the backward finishes them. Offsets and counts are in
 * elements. */
typedef struct param_span {
    int64_t offset, gradient, count; /* gradient -1: has none */
    int64_t shadow;                  /* offset of its copy in the branch's dtype; -1: there is none */
    int decay, activation;
    float low, high; /* bounds kept by the update; infinite where there is none */
} param_span;

typedef struct param_table {
    const param_span *spans; /* host memory; a device keeps its own copy */
    int count;
    int64_t total; /* elements of the gradients' area, gaps included; gaps are zero */
    void *weight, *gradient, *moment1, *moment2, *ema, *shadow; /* device memory; NULL where absent */
    void *partial_sums; /* of micro-batches: `total` elements for each level of the tree; NULL with one micro-batch */
    int nesterov;
} param_table;

/* The weight decay of a span: an activation's own, or with decay_all the common one where it has
 * none. */
STEP_FN double span_decay(const param_span *p, const engine_step *s)
{
    if (p->activation && (s->act_decay != 0 || !s->decay_all))
        return s->act_decay;
    return p->decay || s->decay_all ? s->weight_decay : 0;
}

/* Does this step update the span? Frozen spans are also left out of the norm of the gradients. */
STEP_FN int span_moves(const param_span *p, const engine_step *s)
{
    return p->gradient >= 0 && !(p->activation && s->act_frozen);
}

/* The sum over micro-batches is a binary tree over their numbers: level k keeps the sum of 2^k
 * aligned ones, so a process that has only some of them computes the same partial sums. Micro-batch
 * m adds to its gradient, in rising order, the levels that are set in sum_levels(); then it is
 * kept at level sum_level(), or, after the last one, in the array of the gradients itself. */
STEP_FN uint32_t sum_levels(const engine_step *s)
{
    uint32_t m = s->micro_batch;
    return m + 1 == s->micro_batches ? m : m & ~(m + 1);
}

STEP_FN int sum_level(const engine_step *s) /* -1: the last */
{
    int level = 0;
    if (s->micro_batch + 1 == s->micro_batches)
        return -1;
    while (s->micro_batch >> level & 1)
        level++;
    return level;
}

/* Levels that the sum of so many micro-batches takes. */
STEP_FN int sum_levels_for(int micro_batches)
{
    int levels = 0;
    while (micro_batches > 1 << levels)
        levels++;
    return levels;
}

#endif
