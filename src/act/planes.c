/* planes.c - calls whose channels are not the innermost dimension (NCHW).
 * SPDX-License-Identifier: MIT
 *
 * With call->inner > 1 an array is rows x channels planes of `inner` neighbouring elements, and a
 * plane has one value of each parameter. So a plane is a small flat call: the kernels run over it
 * as over any array, with constants that are prepared once per channel, and planes are what threads
 * share. Where nothing depends on the channel the whole call is flat and goes back to
 * berlu_act_run().
 *
 * Sums keep a fixed order as everywhere: a plane is cut into blocks and lanes like a layer
 * (kernels.h), and the blocks of a channel, row after row, are joined by the binary tree in
 * double; for a parameter of the layer the blocks of all channels, channel after channel. The
 * workspace holds the constants and one double per block. Read planes_run(). */
#include <stdint.h>
#include <string.h>

#include "act/act_internal.h"
#include "base/arena.h"
#include "base/threads.h"

typedef struct planes {
    const berlu_act_call *call;
    const act_kernels *kernels;
    act_job job; /* of one plane, without its pointers */
    size_t count, blocks, units, shares;
    size_t plane_bytes, consts_bytes;
    unsigned char *consts;         /* [channels] */
    double *sum[BERLU_ACT_PARAMS]; /* [channels][rows][blocks]; NULL: not asked for */
} planes;

/* The same call with the planes as its channels, for what does not depend on the channel. */
static int flatten(berlu_act_call *flat, const berlu_act_call *call)
{
    *flat = *call;
    flat->inner = 1;
    return size_mul(call->channels, call->inner, &flat->channels);
}

static berlu_status fail_overflow(const berlu_act *act, const berlu_act_call *call)
{
    return berlu_fail(BERLU_ERR_ARG, "%s: %zu rows of %zu channels of %zu numbers overflow the size of memory",
                      act->name, call->rows, call->channels, call->inner);
}

/* The constants of a channel: as much as the most demanding instruction set of this machine
 * needs. */
static size_t consts_most(const berlu_act *act)
{
    size_t most = 0;
    for (int isa = 0; isa < ISA_COUNT; isa++)
        if (act->kernels[isa] && act->kernels[isa]->consts_bytes > most)
            most = act->kernels[isa]->consts_bytes;
    return (most + 63) / 64 * 64;
}

/* Sizes, and the places in a workspace that begins at `base` (0: only count). Returns 0 when
 * they overflow. */
static int planes_place(planes *s, const berlu_act *act, berlu_act_op op, const berlu_act_call *call, uintptr_t base,
                        size_t *used)
{
    size_t all, blocks, elements;
    s->blocks = call->inner / ACT_BLOCK + (call->inner % ACT_BLOCK != 0);
    s->consts_bytes = consts_most(act);
    if (!size_mul(call->rows, call->channels, &s->count) || !size_mul(s->count, call->inner, &elements) ||
        elements > SIZE_MAX / 64 || !size_mul(s->count, s->blocks, &blocks) || blocks > SIZE_MAX / 64 ||
        call->channels > SIZE_MAX / 64 / s->consts_bytes)
        return 0;
    all = call->channels * s->consts_bytes;
    s->consts = base ? (unsigned char *)base : NULL;
    for (size_t p = 0; p < act->definition->param_count; p++) {
        int wanted = is_backward(op) && call->param[p].grad;
        s->sum[p] = wanted && base ? (double *)(base + all) : NULL;
        all += wanted ? (blocks * sizeof(double) + 63) / 64 * 64 : 0;
    }
    *used = all + 63; /* to align the first byte */
    return 1;
}

size_t planes_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    planes s;
    berlu_act_call flat;
    size_t used;
    if (!is_per_channel(act, call) && flatten(&flat, call))
        return berlu_act_workspace(act, op, &flat);
    if (!planes_place(&s, act, op, call, 0, &used)) {
        fail_overflow(act, call);
        return 0;
    }
    return used;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void prepare_channels(planes *s, const berlu_act *act)
{
    for (size_t c = 0; c < s->call->channels; c++) {
        for (size_t p = 0; p < act->definition->param_count; p++)
            if (s->call->param[p].value)
                s->job.param[p] = s->call->param[p].value + s->call->param[p].stride * c;
        s->job.consts = s->consts + c * s->consts_bytes;
        s->kernels->prepare(&s->job);
    }
}

static const void *plane_of(const void *array, size_t bytes)
{
    return array ? (const unsigned char *)array + bytes : NULL;
}

static void plane_run(const planes *s, size_t index)
{
    size_t channel = index % s->call->channels, row = index / s->call->channels, at = index * s->plane_bytes;
    act_job job = s->job;
    job.x = plane_of(job.x, at);
    job.dy = plane_of(job.dy, at);
    job.y_in = plane_of(job.y_in, at);
    job.y = (void *)(uintptr_t)plane_of(job.y, at);
    job.dx = (void *)(uintptr_t)plane_of(job.dx, at);
    job.consts = s->consts + channel * s->consts_bytes;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        if (s->sum[p])
            job.layer_sum[p] = s->sum[p] + (channel * s->call->rows + row) * s->blocks;
    s->kernels->units(&job, 0, s->units);
}

static void planes_share(void *context, size_t share)
{
    const planes *s = context;
    for (size_t i = s->count * share / s->shares, end = s->count * (share + 1) / s->shares; i < end; i++)
        plane_run(s, i);
}

static void join_sums(const planes *s, const berlu_act *act)
{
    size_t each = s->call->rows * s->blocks, channels = s->call->channels;
    for (size_t p = 0; p < act->definition->param_count; p++) {
        float *grad = s->call->param[p].grad;
        if (!s->sum[p])
            continue;
        if (!s->call->param[p].stride)
            *grad = (float)tree_sum(s->sum[p], channels * each);
        else
            for (size_t c = 0; c < channels; c++)
                grad[c] = (float)tree_sum(s->sum[p] + c * each, each);
    }
}

/* The job of one plane: a flat call of `inner` elements whose sums and parameters are set plane
 * by plane. Non-temporal stores need whole cache lines, which short planes do not have. */
static berlu_status plane_job(planes *s, const berlu_act *act, berlu_act_op op, int threads)
{
    enum { STREAM_LEAST = 16384 }; /* bytes */
    berlu_act_call one = *s->call, flat;
    one.rows = 1, one.channels = s->call->inner, one.inner = 1;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        one.param[p].stride = 0, one.param[p].grad = NULL;
    berlu_status status = call_job(&s->job, act, op, &one, 0);
    if (status != BERLU_OK)
        return status;
    flatten(&flat, s->call);
    s->job.threads = call_threads(threads, s->count * s->call->inner);
    job_streams(&s->job, act, op, &flat);
    s->job.stream &= s->plane_bytes >= STREAM_LEAST;
    return BERLU_OK;
}

berlu_status planes_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, const berlu_exec *exec)
{
    planes s = {.call = call, .kernels = act->kernels[exec ? exec->isa : BERLU_ISA_BEST]};
    berlu_act_call flat;
    size_t used;
    if (!is_per_channel(act, call) && flatten(&flat, call))
        return berlu_act_run(act, op, &flat, exec);
    if (!planes_place(&s, act, op, call, ((uintptr_t)call->workspace + 63) / 64 * 64, &used))
        return fail_overflow(act, call);
    if (!call->workspace || call->workspace_bytes < used)
        return berlu_fail(BERLU_ERR_ARG, "%s: the call needs a workspace of %zu bytes and has %zu", act->name, used,
                          call->workspace ? call->workspace_bytes : (size_t)0);
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        TRY(call_check_values(act, call));
    s.plane_bytes = call->inner * berlu_dtype_size(call->dtype);
    TRY(plane_job(&s, act, op, exec ? exec->threads : 0));
    prepare_channels(&s, act);
    s.units = call->inner / ACT_UNIT + (call->inner % ACT_UNIT != 0);
    s.shares = s.count < (size_t)s.job.threads ? s.count : (size_t)s.job.threads;
    threads_for(s.job.threads, s.shares, planes_share, &s);
    join_sums(&s, act);
    return BERLU_OK;
}
