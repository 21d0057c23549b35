/* image_set.c - the set in device memory, and the op that makes batches of it.
 * SPDX-License-Identifier: MIT
 *
 * image_set.h shows its use. engine_use_images() fills the call `images`, which stands before the
 * first call of the forward: its inputs are the set and the draws, its outputs the feeds. Only the
 * draws are uploaded for a step. */
#include "engine/image_set.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/engine_internal.h"

struct image_set {
    const backend *backend;
    device *device;
    int side;
    size_t count;
    void *pixels, *levels; /* device memory: bytes, floats */
};

static size_t image_bytes(const image_set *s)
{
    return 3 * (size_t)s->side * (size_t)s->side;
}

size_t image_set_bytes(const image_set *s)
{
    return s->count * image_bytes(s);
}

berlu_status image_set_create(image_set **out, const backend *b, device *d, int side, size_t count,
                              const float levels[IMAGE_LEVELS])
{
    assert(side > 0 && count > 0 && count <= INT32_MAX);
    image_set *s = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, "a set of images");
    *s = (image_set){.backend = b, .device = d, .side = side, .count = count};
    berlu_status status;
    TRY_DONE(b->alloc(d, &s->pixels, MEMORY_DEVICE, image_set_bytes(s), "the data set"));
    TRY_DONE(b->alloc(d, &s->levels, MEMORY_DEVICE, IMAGE_LEVELS * sizeof *levels, "the numbers of bytes"));
    TRY_DONE(b->upload(d, s->levels, levels, IMAGE_LEVELS * sizeof *levels));
    *out = s;
    s = NULL;
done:
    image_set_free(s);
    return status;
}

berlu_status image_set_write(image_set *s, size_t first, size_t count, const uint8_t *pixels)
{
    assert(first <= s->count && count <= s->count - first);
    return s->backend->upload(s->device, (char *)s->pixels + first * image_bytes(s), pixels, count * image_bytes(s));
}

void image_set_free(image_set *s)
{
    if (!s)
        return;
    s->backend->release(s->device, MEMORY_DEVICE, s->pixels);
    s->backend->release(s->device, MEMORY_DEVICE, s->levels);
    free(s);
}

/* ---- an engine that uses one ----------------------------------------------------------------- */

berlu_status engine_use_images(engine *e, const image_set *s)
{
    const tensor_info *image = graph_tensor(e->g, e->feed[FEED_IMAGE].t);
    size_t batch = (size_t)e->options.batch;
    assert(e->backend == s->backend && e->device == s->device);
    if (image->rank != 3 || image->size[0] != 3 || image->size[1] != s->side || image->size[2] != s->side)
        return berlu_fail(BERLU_ERR_ARG, "engine: the network takes other images than those of %d pixels on the device",
                          s->side);
    void *draws = e->draws;
    TRY(engine_device_take(e, &draws, batch * sizeof *e->draws, "the draws of a batch"));
    e->draws = draws;
    op_call *c = &e->calls[IMAGES_CALL];
    c->in[0] = (op_operand){
        .data = s->pixels, .rows = (int64_t)s->count, .channels = (int64_t)image_bytes(s), .dtype = DTYPE_U8};
    c->in[1] =
        (op_operand){.data = e->draws, .rows = e->options.batch, .channels = sizeof *e->draws, .dtype = DTYPE_U8};
    c->in[2] = (op_operand){.data = s->levels, .rows = 3, .channels = IMAGE_LEVELS / 3, .dtype = DTYPE_F32};
    c->out[0] = engine_operand(e, e->feed[FEED_IMAGE].t);
    c->out[1] = engine_operand(e, e->feed[FEED_LABELS].t);
    c->out[2] = engine_operand(e, e->feed[FEED_TARGETS].t);
    return BERLU_OK;
}

void engine_set_draws(engine *e, const image_draw *draws)
{
    assert(!draws || e->draws);
    e->host_draws = draws;
    if (draws)
        engine_borrow_input(e, NULL);
}

berlu_status engine_draws_upload(engine *e)
{
    for (int i = 0; i < e->options.batch; i++)
        if (e->host_draws[i].label >= e->classes)
            return berlu_fail(BERLU_ERR_INPUT, "label %d of image %d is outside the %lld classes",
                              e->host_draws[i].label, i, (long long)e->classes);
    return e->backend->upload(e->device, e->draws, e->host_draws, (size_t)e->options.batch * sizeof *e->draws);
}
