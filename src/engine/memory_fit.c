/* memory_fit.c - checks before the first allocation that an engine fits into its device's free
 * memory. SPDX-License-Identifier: MIT
 *
 * The plan accounts for every byte, so no trial allocation is needed. Where memory does not
 * suffice, planning smaller batches finds the largest that fits. */
#include "engine/engine_internal.h"

/* Bytes that engine_create() would take with this batch; UINT64_MAX where it cannot be planned. */
static uint64_t needed(const engine *e, const graph *g, int batch)
{
    engine_options o = e->options;
    engine_memory m;
    o.device = e->device;
    o.batch = batch;
    if (engine_plan_memory(&m, g, &o) != BERLU_OK)
        return UINT64_MAX;
    return m.total - m.library - (o.share ? m.parameters + m.shadow : 0); /* the library's came with the device */
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
    uint64_t left = e->backend->free_bytes(e->device), bytes = needed(e, g, e->options.batch);
    if (bytes <= left || !left || bytes == UINT64_MAX)
        return BERLU_OK; /* not known; what cannot be planned fails with its own message */
    int fits = largest_batch(e, g, left);
    const double gib = 0x1p30;
    if (fits == 0)
        return berlu_fail(BERLU_ERR_MEMORY,
                          "a batch of %d needs %.2f GiB of the device's memory and %.2f GiB are free: not even one "
                          "image fits",
                          e->options.batch, (double)bytes / gib, (double)left / gib);
    return berlu_fail(BERLU_ERR_MEMORY,
                      "a batch of %d needs %.2f GiB of the device's memory and %.2f GiB are free: the largest batch "
                      "that fits is %d",
                      e->options.batch, (double)bytes / gib, (double)left / gib, fits);
}
