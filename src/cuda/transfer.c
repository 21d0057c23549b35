/* transfer.c - bytes to and from the GPU without making the host wait. SPDX-License-Identifier: MIT
 *
 * Uploads pass through pinned slots: the caller may reuse its memory when its bytes are in a slot,
 * and the copy to the GPU happens in the order of the stream. A slot is reused once the GPU has
 * read it, so the host runs ahead of the GPU by as many bytes as the slots hold. Small transfers
 * (the step, the labels) have slots of their own and never wait behind images. Step results travel
 * the other way into a ring; an event marks the arrival of each. */
#include <assert.h>
#include <string.h>

#include "cuda/device.h"

/* ---- slots ----------------------------------------------------------------------------------- */

static berlu_status staging_open(cuda_device *d, cuda_staging *s, int slots, size_t slot_bytes)
{
    assert(slots <= SMALL_SLOTS);
    void *memory = NULL;
    TRY(cuda_take(d, &memory, MEMORY_HOST, (size_t)slots * slot_bytes, "transfers to the GPU"));
    s->memory = memory;
    s->slots = slots;
    s->slot_bytes = slot_bytes;
    for (int i = 0; i < slots; i++)
        TRY(gpu_event_create(&s->done[i], 0));
    return BERLU_OK;
}

static void staging_close(cuda_staging *s)
{
    for (int i = 0; i < s->slots; i++)
        gpu_event_destroy(s->done[i]);
    if (s->memory)
        gpu_host_free(s->memory);
}

berlu_status cuda_transfer_open(cuda_device *d)
{
    void *slots = NULL;
    TRY(staging_open(d, &d->large, STAGING_SLOTS, STAGING_BYTES));
    TRY(staging_open(d, &d->small, SMALL_SLOTS, SMALL_BYTES));
    TRY(cuda_take(d, &slots, MEMORY_HOST, RESULT_SLOTS * sizeof *d->results.slots, "results of steps"));
    d->results.slots = slots;
    for (int i = 0; i < RESULT_SLOTS; i++)
        TRY(gpu_event_create(&d->results.arrived[i], 0));
    return BERLU_OK;
}

void cuda_transfer_close(cuda_device *d)
{
    staging_close(&d->large);
    staging_close(&d->small);
    for (int i = 0; i < RESULT_SLOTS; i++)
        gpu_event_destroy(d->results.arrived[i]);
    if (d->results.slots)
        gpu_host_free(d->results.slots);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static berlu_status slot_send(cuda_device *d, cuda_staging *s, char *to, const char *from, size_t bytes)
{
    int slot = s->next;
    char *memory = s->memory + (size_t)slot * s->slot_bytes;
    berlu_status status = gpu_event_wait(s->done[slot]);
    if (status != BERLU_OK)
        return status;
    memcpy(memory, from, bytes);
    status = gpu_copy(to, memory, bytes, GPU_UPLOAD, d->stream);
    if (status == BERLU_OK)
        status = gpu_event_record(s->done[slot], d->stream);
    s->next = (slot + 1) % s->slots;
    return status;
}

berlu_status cuda_upload(device *opened, void *to, const void *from, size_t bytes)
{
    cuda_device *d = cuda_device_at(opened);
    cuda_staging *s = bytes <= SMALL_BYTES ? &d->small : &d->large;
    berlu_status status = gpu_use(d->index);
    for (size_t at = 0; at < bytes && status == BERLU_OK; at += s->slot_bytes) {
        size_t part = bytes - at < s->slot_bytes ? bytes - at : s->slot_bytes;
        status = slot_send(d, s, (char *)to + at, (const char *)from + at, part);
    }
    return status;
}

berlu_status cuda_download(device *opened, void *to, const void *from, size_t bytes)
{
    cuda_device *d = cuda_device_at(opened);
    TRY(gpu_use(d->index));
    if (bytes)
        TRY(gpu_copy(to, from, bytes, GPU_DOWNLOAD, d->stream));
    return gpu_stream_wait(d->stream);
}

berlu_status cuda_copy(device *opened, void *to, const void *from, size_t bytes)
{
    cuda_device *d = cuda_device_at(opened);
    berlu_status status = gpu_use(d->index);
    return status == BERLU_OK && bytes ? gpu_copy(to, from, bytes, GPU_WITHIN, d->stream) : status;
}

/* ---- results of steps ------------------------------------------------------------------------ */

berlu_status cuda_result_push(device *opened, const step_result *from)
{
    cuda_device *d = cuda_device_at(opened);
    cuda_results *r = &d->results;
    if (r->count == RESULT_SLOTS)
        return berlu_fail(BERLU_ERR_ARG,
                          "CUDA: the results of %d steps wait to be collected; there is no space for more",
                          RESULT_SLOTS);
    int slot = (r->first + r->count) % RESULT_SLOTS;
    TRY(gpu_use(d->index));
    TRY(gpu_copy(&r->slots[slot], from, sizeof *from, GPU_DOWNLOAD, d->stream));
    TRY(gpu_event_record(r->arrived[slot], d->stream));
    r->count++;
    return BERLU_OK;
}

berlu_status cuda_result_pop(device *opened, step_result *out, int *there, int wait)
{
    cuda_device *d = cuda_device_at(opened);
    cuda_results *r = &d->results;
    *there = 0;
    if (!r->count)
        return BERLU_OK;
    int done = 1;
    berlu_status status = gpu_use(d->index);
    if (status == BERLU_OK)
        status = wait ? gpu_event_wait(r->arrived[r->first]) : gpu_event_done(r->arrived[r->first], &done);
    if (status != BERLU_OK || !done)
        return status;
    *out = r->slots[r->first];
    *there = 1;
    r->first = (r->first + 1) % RESULT_SLOTS;
    r->count--;
    return BERLU_OK;
}
