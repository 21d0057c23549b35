/* memory_fit.c - checks before the first allocation that an engine fits into its device's free
 * memory. SPDX-License-Identifier: MIT
 *
 * The plan accounts for the bytes, so no trial allocation is needed; a device that gives memory out
 * in pieces may take one more for each allocation. Where memory does not suffice, planning smaller
 * batches finds the largest that fits. A run has two engines, and each takes some memory only when
 * it first runs, so the first check counts both (options.beside), and the second what the first has
 * still to take. */
#include <stdio.h>

#include "engine/engine_internal.h"

/* Bytes that engine_create() and the first step would take; UINT64_MAX where they cannot be
 * planned. */
static uint64_t taken_by(const engine *e, const graph *g, engine_options o, int shares)
{
    engine_memory m;
    o.device = e->device;
    if (engine_plan_memory(&m, g, &o) != BERLU_OK)
        return UINT64_MAX;
    uint64_t there = m.library + (shares ? m.parameters + m.shadow : 0); /* the library's came with the device */
    return m.total - there + ENGINE_ALLOCATIONS * (uint64_t)e->backend->memory_piece;
}

static uint64_t taken_beside(const engine *e, const graph *g)
{
    return e->options.beside ? taken_by(e, g, *e->options.beside, 1) : 0;
}

static uint64_t needed(const engine *e, const graph *g, int batch)
{
    engine_options o = e->options;
    o.batch = batch;
    uint64_t own = taken_by(e, g, o, o.share != NULL), beside = taken_beside(e, g);
    return own == UINT64_MAX || beside == UINT64_MAX ? UINT64_MAX : own + beside;
}

/* Bytes that an engine takes when it first runs a step. */
static uint64_t still_to_take(const engine *e)
{
    for (int i = 0; i < PROGRAM_COUNT; i++)
        if (e->program[i])
            return 0;
    return e->prepared_bytes;
}

static uint64_t bytes_left(const engine *e)
{
    uint64_t left = e->backend->free_bytes(e->device), taken = e->options.share ? still_to_take(e->options.share) : 0;
    return !left ? 0 : left > taken ? left - taken : 1; /* 0: not known */
}

static int largest_batch(const engine *e, const graph *g, uint64_t left)
{
    int fits = 0, too_much = e->options.batch;
    while (too_much - fits > 1) {
        int middle = fits + (too_much - fits) / 2;
        if (needed(e, g, middle) <= left)
            fits = middle;
        else
            too_much = middle;
    }
    return fits;
}

berlu_status engine_fit_check(const engine *e, const graph *g)
{
    if (!e->backend->free_bytes)
        return BERLU_OK;
    uint64_t left = bytes_left(e), bytes = needed(e, g, e->options.batch);
    if (bytes <= left || !left || bytes == UINT64_MAX)
        return BERLU_OK; /* not known; what cannot be planned fails with its own message */
    int fits = largest_batch(e, g, left);
    const double gib = 0x1p30;
    char beside[96] = "", largest[64] = "not even one image fits";
    if (e->options.beside)
        snprintf(beside, sizeof beside, ", with %.2f GiB to evaluate %d images at a time,",
                 (double)taken_beside(e, g) / gib, e->options.beside->batch);
    if (fits)
        snprintf(largest, sizeof largest, "the largest batch that fits is %d", fits);
    return berlu_fail(BERLU_ERR_MEMORY,
                      "a batch of %d needs %.2f GiB of the device's memory%s and %.2f GiB are "
                      "free: %s",
                      e->options.batch, (double)bytes / gib, beside, (double)left / gib, largest);
}
