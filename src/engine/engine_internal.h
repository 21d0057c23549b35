/* engine_internal.h - the struct behind engine.h, for the files of this layer and its tests.
 * SPDX-License-Identifier: MIT
 *
 * An engine is a graph, a plan, the calls that build.c lowered them to, and the memory they point
 * to. The store (parameters, moments, average) may be shared by several engines. Files: create.c,
 * build.c, memory.c, run.c, params.c, image_set.c. */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/image_draw.h"
#include "engine/plan.h"
#include "graph/dtype.h"

/* Arrays of the parameters, independent of a plan; engines created with `share` use one store. */
typedef struct param_store {
    void *array[ARRAY_COUNT]; /* device memory; NULL where absent. ARRAY_GRADIENT is in gradient order */
    void *shadow;             /* copies of weights in the branch's dtype */
    uint64_t bytes;           /* of the weights */
    int shadow_stale;         /* weights were set since the copies were written */
} param_store;

typedef enum feed_id { FEED_IMAGE, FEED_LABELS, FEED_TARGETS, FEED_TEACHER, FEED_COUNT } feed_id;

typedef struct engine_feed {
    tensor t;             /* TENSOR_NONE: this engine has none */
    void *host;           /* filled by the caller, f32 or i32; device memory itself where that is possible */
    const void *borrowed; /* the caller's own buffer; NULL: host */
    int owned;            /* host is memory of its own */
    int staged;           /* and uploaded by every forward */
} engine_feed;

/* Lists of calls that the backend prepares. Their calls are contiguous in `calls`: images, forward,
 * backward, update, shadow; so a complete step is a list, too. */
typedef enum program_id {
    PROGRAM_IMAGES, /* makes the batch from draws (image_set.h) */
    PROGRAM_FORWARD,
    PROGRAM_BACKWARD,
    PROGRAM_UPDATE, /* grad_norm, optimizer, average */
    PROGRAM_NORM,   /* grad_norm alone */
    PROGRAM_SHADOW, /* refresh of the copies */
    PROGRAM_STEP,   /* forward, backward, update */
    PROGRAM_IMAGES_STEP,
    PROGRAM_COUNT
} program_id;
enum { IMAGES_CALL = -1 }; /* its place: in front of the graph's calls */

struct engine {
    graph *model; /* as the caller gave it */
    graph *g;     /* as it runs */
    engine_options options;
    const backend *backend;
    device *device;
    int owns_device;
    tensor_dtype dtype[ROLE_COUNT];
    plan plan;
    param_store *store;
    int owns_store;
    void *area[AREA_COUNT]; /* device memory; weights, gradients and shadows are the store's */
    void *partial_sums;     /* device memory: of the gradients of micro-batches */
    void *workspace;        /* device memory */
    size_t workspace_bytes, library_bytes;
    size_t prepared_bytes; /* taken by the backend when it prepares a whole step */
    op_call *calls;        /* calls[IMAGES_CALL] precedes the first */
    int call_count;        /* of the graph: forward and backward */
    int backward_begin;    /* the first of the backward */
    int first[PROGRAM_COUNT], count[PROGRAM_COUNT];
    program *program[PROGRAM_COUNT]; /* NULL: prepared at the first run */
    op_operand **image_uses;         /* operands that are the images, where those can be read in place */
    int image_use_count;
    param_span *spans;
    param_table table;
    engine_step host_step; /* as last uploaded */
    engine_step *step;     /* device memory */
    step_result *result;   /* device memory */
    engine_feed feed[FEED_COUNT];
    image_draw *draws;            /* device memory, [batch]; NULL where no set of images is used */
    const image_draw *host_draws; /* the caller's; NULL: batches come from the feeds */
    void *staging;                /* feeds are converted and logits downloaded through it, where dtypes differ */
    float *logits;                /* [batch, K] on the host where device memory is not */
    int64_t classes;
    int profiled_steps;
    uint64_t allocated;
};

static inline int engine_calls_end(const engine *e) /* of all lists */
{
    return e->first[PROGRAM_SHADOW] + e->count[PROGRAM_SHADOW];
}

/* create.c */
berlu_status engine_begin(engine **out, const graph *g,
                          const engine_options *options); /* options checked, device open, no more */

/* memory_fit.c */
berlu_status engine_fit_check(const engine *e, const graph *g); /* BERLU_ERR_MEMORY names the largest batch */

/* build.c */
berlu_status engine_rewrite(engine *e, engine_pass last); /* losses, gradients, fusions: the passes up to this one */
berlu_status engine_resolve(engine *e);                   /* the flat list of calls, and how much scratch they need */
berlu_status engine_take_scratch(engine *e);              /* allocates it */

op_operand engine_operand(const engine *e, tensor t);

/* image_set.c */
berlu_status engine_draws_upload(engine *e);

/* memory.c */
berlu_status engine_allocate(engine *e); /* all memory the plan names */
enum { ENGINE_ALLOCATIONS = 20 };        /* of device memory at most, those of the first step included */
/* once: nothing where *out is set */
berlu_status engine_device_take(engine *e, void **out, uint64_t bytes, const char *what);
void *engine_data(const engine *e, tensor t); /* device memory of a tensor; NULL if it has none */

#endif
