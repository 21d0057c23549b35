/* act_internal.h - the internal structure of a berlu_act, and the table of activations.
 * SPDX-License-Identifier: MIT
 *
 * spec.c makes one from a text, act.c reports its properties, call.c runs it. */
#ifndef ACT_ACT_INTERNAL_H
#define ACT_ACT_INTERNAL_H

#include "act/cpu/kernels.h"
#include "act/formulas/definition.h"
#include "base/cpu.h"
#include "base/text.h"

enum { ISA_COUNT = BERLU_ISA_NEON + 1, ACT_NAME_CAPACITY = 64 };

/* One row of the table: the definition, and its kernels by berlu_isa (NULL: not in this build). */
typedef struct act_row {
    const act_definition *definition;
    const act_kernels *kernels[ISA_COUNT];
} act_row;

const act_row *act_row_at(size_t index);       /* NULL after the last */
const act_row *act_row_find(const char *name); /* NULL when there is none */
const char *act_guess(const char *name);       /* the built-in name meant by one from elsewhere, "Swish"; or NULL */

/* The policy of loops for the caches of this machine (stream.c). Non-temporal stores pay for more
 * bytes read and written than `bytes` (in a backward `backward_bytes`) for every `sharers` threads,
 * at least once. */
typedef struct stream_rule {
    size_t bytes, backward_bytes;
    unsigned sharers;  /* 0: all threads together */
    size_t near_bytes; /* of a thread's data, up to which its L2 holds them */
    int interleave;    /* beyond that the processor must be helped: prefetch, and interleave streams */
    const char *cause; /* for people */
} stream_rule;

stream_rule stream_rule_for(const cpu_caches *caches);
size_t stream_limit(const stream_rule *rule, int backward, int threads);

/* The prefetch distance for that many bytes read and written. */
size_t stream_ahead(const stream_rule *rule, size_t bytes, int threads);

struct berlu_act {
    const act_definition *definition;
    /* index of its row in list.h: other libraries keep tables in the same order */
    size_t place;
    const act_kernels *kernels[ISA_COUNT]; /* those this machine can run; [BERLU_ISA_BEST] is the chosen one */
    char name[ACT_NAME_CAPACITY];
    act_shape shape;
    void *owned; /* memory behind shape.numbers and shape.exact, freed with the activation */
    void (*owned_free)(void *);
    float params[BERLU_ACT_PARAMS];
    double exact[BERLU_ACT_PARAMS]; /* the same as they were written: berlu_act_at() and the text speak of these */
    int learned[BERLU_ACT_PARAMS];
    float scale;
    double exact_scale; /* as it was written; kernels have it in f32 */
    int center;
    stream_rule stream;
    void *consts[ISA_COUNT]; /* prepared from params, for each of kernels[] */
    void *consts_space;
    char *spec; /* the canonical text */
};

/* Whether a smoothed function may have this name: its form, and that the table has no such row
 * (smooth_registry.c). */
berlu_status act_name_check(const char *name);

/* Fills kernels[] with those this machine can run and chooses the best (dispatch.c). */
berlu_status kernels_choose(berlu_act *act, const act_row *row);

/* Prepares the constants of its own parameters, the last step of making an activation
 * (dispatch.c). */
berlu_status kernels_prepare(berlu_act *act);

/* Gives an activation of the row `smooth` its function, and writes that as smooth(...)
 * (smoothed.c). */
berlu_status smoothed_fill(berlu_act *act, const berlu_smooth *f);
void smoothed_write(text *t, const berlu_act *act);

/* Whether the op computes dx, and sums of gradients where they are asked for. */
static inline int is_backward(berlu_act_op op)
{
    return op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
}

/* Whether a parameter of the call has one value per channel. */
static inline int is_per_channel(const berlu_act *act, const berlu_act_call *call)
{
    for (size_t p = 0; p < act->definition->param_count; p++)
        if (call->param[p].stride)
            return 1;
    return 0;
}

/* The number of threads of a call over `count` elements; `asked` is the caller's limit, 0 for the
 * default (call.c). */
int call_threads(int asked, size_t count);

/* Whether a checked call uses non-temporal stores on that many threads (call.c). */
int call_streams(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, int threads);

/* Sets the fields of a job that follow from the caches and its number of threads (call.c). */
void job_streams(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call);

/* Makes the job of a checked call, after the checks that need the workspace and the parameters'
 * values (call.c). */
berlu_status call_job(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call, int threads);

/* Whether the derivative follows from the output with the parameter values of this call, channel by
 * channel (call.c). */
berlu_status call_check_values(const berlu_act *act, const berlu_act_call *call);

/* berlu_act_workspace() and berlu_act_run() for checked calls with inner > 1 (planes.c). */
size_t planes_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
berlu_status planes_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, const berlu_exec *exec);

/* Checks the conditions of every device: numbers in range, needed pointers present (call.c).
 * Exported, though in no public header, because libberlu_cuda needs it too. */
BERLU_API berlu_status berlu_act_check(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);

#endif
