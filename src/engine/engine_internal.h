/* engine_internal.h - the struct behind engine.h, for engine.c, engine_build.c and engine_params.c. SPDX-License-Identifier: MIT */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/plan.h"
#include "graph/op.h"

/* What belongs to the parameters rather than to a plan; engines that share use one. */
typedef struct param_store {
    void *array[ARRAY_COUNT]; /* backend memory; NULL where absent. ARRAY_GRADIENT is in gradient order */
    void *sum;                /* gradients of several micro-batches */
    uint64_t bytes;           /* of the weights */
} param_store;

typedef struct engine_feed {
    tensor t;              /* TENSOR_NONE: this engine has none */
    float *host;           /* what the caller fills; the backend's own memory where that is possible */
    const float *borrowed; /* what the caller has filled elsewhere; NULL: host */
    void *memory;          /* to free; NULL when host lies in the feed area */
} engine_feed;
enum { FEED_IMAGE, FEED_TARGETS, FEED_TEACHER, FEED_COUNT };

struct engine {
    graph *model; /* as the caller gave it */
    graph *g;     /* as it runs */
    engine_options options;
    const backend *backend;
    plan plan;
    param_store *store;
    int owns_store;
    void *area[AREA_COUNT]; /* backend memory; weights and gradients are the store's */
    void *workspace;
    size_t workspace_bytes, library_bytes;
    op_call *calls; /* one per node, then none */
    int call_count, backward_begin;
    op_operand **image_uses; /* the operands of calls that are the images, where those can be read in place */
    int image_use_count;
    op_call update; /* the same operands for all update ops: none */
    param_span *spans;
    param_table table;
    step_values *step; /* backend memory */
    engine_feed feed[FEED_COUNT];
    tensor label_feed;
    int32_t *labels;
    float *logits; /* [batch, K] on the host where the backend's memory is not */
    int64_t classes;
    int micro_batches; /* since the last update */
    double *seconds;   /* per call, when profiling; then one per update op */
    int profiled_steps;
    uint64_t allocated;
};

/* engine.c */
berlu_status engine_begin(engine **out, const graph *g,
                          const engine_options *options); /* checked; nothing is done yet */

/* engine_build.c */
berlu_status engine_rewrite(engine *e, engine_pass last); /* losses, gradients, fusions: the passes up to this one */
berlu_status engine_allocate(engine *e);                  /* all memory */
berlu_status engine_resolve(engine *e);                   /* the flat list of calls, and how much scratch they need */
berlu_status engine_take_scratch(engine *e);              /* that scratch, and the profile's seconds */
void *engine_memory_take(engine *e, size_t bytes, const char *what);
void *engine_data(const engine *e, tensor t); /* where a tensor lies; NULL if nowhere */

#endif
