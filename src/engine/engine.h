/* engine.h - runs a graph: forward, backward, update, in memory planned beforehand.
 * SPDX-License-Identifier: MIT
 *
 * engine_create() copies the graph, adds the loss, differentiates, fuses, and plans one arena for a
 * batch size and a mode. After that a step allocates nothing and cannot fail for lack of memory.
 * Training and evaluation are two engines over one set of parameters: the second is created with
 * `share`.
 *
 *     engine *train, *eval;
 *     engine_options o = {.backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = 32};
 *     engine_create(&train, g, &o);
 *     o.mode = ENGINE_INFER, o.batch = 100, o.share = train;
 *     engine_create(&eval, g, &o);
 *     memcpy(engine_input(train), images, ...); memcpy(engine_labels(train), labels, ...);
 *     engine_forward(train, &step); engine_backward(train); engine_update(train);
 *
 * Everything that changes from step to step is in an engine_step (engine/step.h), uploaded once.
 * Calls may return before the device is done; functions that return results wait for it, and
 * engine_poll() does not. Read on: engine/run.c, then build.c and plan.c; backend.h for
 * backends. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdint.h>

#include "base/text.h"
#include "engine/backend.h"
#include "graph/op.h"

typedef struct engine engine;

typedef enum engine_mode { ENGINE_INFER, ENGINE_TRAIN } engine_mode;
typedef enum engine_loss_kind {
    LOSS_NONE,          /* logits only */
    LOSS_CROSS_ENTROPY, /* labels, with step.smoothing */
    LOSS_SOFT_TARGET    /* a row of probabilities per image */
} engine_loss_kind;
typedef enum engine_optimizer { OPTIMIZER_ADAMW, OPTIMIZER_SGD } engine_optimizer;

/* Every update keeps the activation parameters of that name ("alpha", "eps") within [low, high]. */
typedef struct engine_bound {
    const char *parameter;
    float low, high;
} engine_bound;

typedef struct engine_options {
    const backend *backend; /* required; cpu_backend() of cpu/cpu.h, or backend_find() of backends.h */
    device *device; /* one opened by backend->open; NULL: the engine opens its own (of `share`: that engine's) */
    device_options opening; /* how it opens its own; threads are those below */
    engine_mode mode;       /* INFER: no gradients, random ops are identities */
    int batch;              /* images per step, at least 1 */
    engine_keep keep;       /* tensors that activation sites save */
    const engine_bound
        *bounds; /* of learned activation parameters, kept by every update; borrowed during engine_create() */
    int bound_count;
    int recompute_attention; /* 1: the backward recomputes attention's output (less memory, more time) */
    int threads;             /* 0: all */
    engine *share;           /* use that engine's parameters (same graph, same backend); it must outlive this one */
    /* An engine that will share these parameters: counted where engine_create() checks that memory
     * suffices; borrowed during the call. */
    const struct engine_options *beside;
    engine_loss_kind loss;  /* TRAIN needs one */
    engine_distill distill; /* needs two heads; the base loss then reads head 0, distillation head 1 */
    engine_optimizer optimizer;
    int nesterov;   /* SGD */
    int accumulate; /* micro-batches of an update at most, see step.micro_batch; 0 means 1 */
    int ema;        /* 1: keeps an average of the weights, see step.ema_decay */
    int no_update;  /* 1: gradients only; no moments are allocated */
    int profile;    /* 1: engine_profile_text() reports time per call */
} engine_options;

berlu_status engine_create(engine **out, const graph *g, const engine_options *options);
void engine_free(engine *e); /* NULL is allowed */

/* Host buffers to fill before engine_forward(). */
float *engine_input(engine *e);    /* [batch, C, H, W] */
int32_t *engine_labels(engine *e); /* [batch]; a negative label leaves the image out of loss and count */
float *engine_targets(engine *e);  /* [batch, K] with LOSS_SOFT_TARGET */
float *engine_teacher(engine *e);  /* [batch, K] logits, with a distillation */

/* Images are read where the caller has them ([batch, C, H, W], unchanged until engine_backward()
 * returns) instead of in engine_input(); this holds until the next call; NULL reverts to
 * engine_input(). Where device memory is not the host's they are uploaded from there. */
void engine_borrow_input(engine *e, const float *images);

/* A step in three parts. engine_forward() uploads the step and the feeds; engine_set_step() uploads
 * the step alone: a clip or a rate that changes between backward and update, or an update by a
 * process that had no forward of its own. */
berlu_status engine_forward(engine *e, const engine_step *step);
berlu_status engine_backward(engine *e);
berlu_status engine_update(engine *e);
berlu_status engine_set_step(engine *e, const engine_step *step);
/* All three parts as one list, on a GPU one launch; nothing can be read in between. With
 * accumulate: of a single pass. */
berlu_status engine_step_run(engine *e, const engine_step *step);

/* Runs forward and backward once on uninitialised data, so that the device makes its choices by
 * timing; parameters do not change. To be called before the first step. */
berlu_status engine_warm_up(engine *e);

/* Results of steps without waiting for the device. engine_step_end() follows engine_backward() or
 * engine_update() and marks the step's result for collection; engine_poll() returns the oldest
 * marked one that has arrived (*there is 0 where none has, with `wait` only where none is
 * outstanding). Results come in order, so sums over them have an order too. */
berlu_status engine_step_end(engine *e);
berlu_status engine_poll(engine *e, step_result *out, int *there, int wait);
berlu_status engine_wait(engine *e);                     /* until the device is idle */
double step_loss(const engine *e, const step_result *r); /* mean over the counted images, distillation included */

/* The newest values; these wait. After engine_forward(): */
double engine_loss(const engine *e);
const float *
engine_logits(engine *e); /* [batch, K], host memory, until the next forward; NULL where the device failed */
/* After engine_update(): the norm of all gradients that move, before clipping; also where step.clip
 * is 0. */
double engine_grad_norm(const engine *e);
berlu_status engine_compute_grad_norm(engine *e); /* the same without an update, after engine_backward() */

/* ---- parameters and their arrays, in state-dict order ---------------------------------------- */

typedef enum engine_array {
    ARRAY_WEIGHT,
    ARRAY_GRADIENT,
    ARRAY_MOMENT1,
    ARRAY_MOMENT2,
    ARRAY_EMA,
    ARRAY_COUNT
} engine_array;
/* SGD's buffer is ARRAY_MOMENT1. */
const graph *engine_graph(const engine *e); /* the model's graph as copied; parameters have the same indices */
device *engine_device(const engine *e);
const backend *engine_backend(const engine *e);
int engine_has(const engine *e, engine_array array);
berlu_status engine_get(const engine *e, engine_array array, int parameter, float *out);
berlu_status engine_set(engine *e, engine_array array, int parameter, const float *values);
berlu_status engine_get_f64(const engine *e, engine_array array, int parameter, double *out);
berlu_status engine_set_f64(engine *e, engine_array array, int parameter, const double *values);
float *engine_host(engine *e, engine_array array, int parameter); /* in place, where memory is host f32; else NULL */
berlu_status engine_apply_bounds(engine *e);                      /* to the weights as they are (start of a run) */
berlu_status engine_swap_ema(engine *e); /* swaps weights and average, to evaluate the average; again to undo */
berlu_status engine_sync_ema(engine *e); /* the average becomes a copy of the weights (start of a run) */

/* All that a checkpoint holds of the arrays (weights, moments, average), fetched with one transfer
 * each, and put into another engine with the same parameters. The second neither uses nor changes
 * `like`'s device: another thread may do it. */
size_t engine_snapshot_bytes(const engine *e);
berlu_status engine_snapshot_take(const engine *e, void *to); /* waits for the device */
berlu_status engine_snapshot_put(engine *e, const engine *like, const void *from);

/* Activation sites: the input of the activation in the last forward, for the columns of
 * metrics.csv. Copies rows [first, first + count) of x (the bias of the layer before included) into
 * `out` (count * channels elements); in mode TRAIN, after engine_forward() and before
 * engine_backward(). BERLU_ERR_UNSUPPORTED where x is not in memory (keep output). */
berlu_status engine_site_read(const engine *e, int site, int64_t first, int64_t count, float *out);
int64_t engine_site_rows(const engine *e, int site); /* batch included; channels: graph_site_at(g, site)->channels. The
                                                      * last block of a ViT has one row an image: passes/slice.c */

/* ---- memory, profile, prints ----------------------------------------------------------------- */

typedef struct engine_memory {
    uint64_t parameters, gradients, moments, ema; /* bytes */
    uint64_t arena;                               /* activations and temporary tensors */
    uint64_t kept;                                /* of it: alive from forward to backward, without the input */
    uint64_t input;                               /* input, labels, targets */
    uint64_t shadow;                              /* copies of weights in the branch's dtype */
    uint64_t workspace;                           /* kernels' own scratch, and the backend's for a whole step */
    uint64_t library;                             /* allocated by the matrix library during a product */
    uint64_t total;                               /* planned: the sum of all but `kept` */
    uint64_t allocated;                           /* requested from the system so far */
    uint64_t site_values; /* elements that pass through activation sites in a forward, of the rows that are computed */
} engine_memory;
engine_memory engine_memory_use(const engine *e);
/* The same from a plan alone, without an engine. */
berlu_status engine_plan_memory(engine_memory *out, const graph *g, const engine_options *options);

/* Times per call since the last reset, when options.profile: one line per op, or per op and shape;
 * longest first. */
typedef enum engine_profile_by { PROFILE_BY_OP, PROFILE_BY_SHAPE } engine_profile_by;
typedef struct engine_profile {
    engine_profile_by by;
    double bytes_per_s, flops_per_s; /* peaks of the device, for the share of the floor; 0: not known */
} engine_profile;
void engine_profile_reset(engine *e);
berlu_status engine_profile_text(const engine *e, const engine_profile *how, text *out);
/* The graph as it is after a pass that engine_create() would run with these options. Allocates no
 * tensors. */
typedef enum engine_pass {
    PASS_NONE, /* as the model built it */
    PASS_SLICE,
    PASS_LOSS,
    PASS_PRUNE_EARLY,
    PASS_WEIGHTS, /* where the backend asks for it */
    PASS_DIFFERENTIATE,
    PASS_FUSE,
    PASS_PRUNE, /* again: dead code */
    PASS_PRECISION,
    PASS_GROUP, /* which calls run together, some rows at a time */
    PASS_PLAN
} engine_pass;
berlu_status engine_pass_print(const graph *g, const engine_options *options, engine_pass pass, text *out, int dot);

const char *engine_keep_name(engine_keep keep);

#endif
