/* trainer_images.c - where the images of a run lie: on the device as bytes, or with the loaders. SPDX-License-Identifier: MIT
 *
 * A set of CIFAR's size fits into a GPU's memory many times. Its bytes are sent there once; from then on a step needs some
 * 80 bytes an image (engine/image_draw.h), and no thread prepares pixels. What a device cannot do to bytes (resizing,
 * RandAugment, colour jitter) and sets that are too large or of many sizes stream as before. Numbers are the same either
 * way, to the bit, so this is no part of what a run is known by. */
#include <stdlib.h>

#include "train/trainer_internal.h"

#define SET_BYTES_MOST ((uint64_t)2 << 30)
enum { IMAGES_AT_ONCE = 4096 };

/* Images of both splits, the test split's only where it is used; DATA_TEST begins behind DATA_TRAIN. */
static size_t set_images(const trainer *t)
{
    const data_info *info = data_describe(t->data);
    return info->images[DATA_TRAIN] + (t->settings.holdout || t->settings.overfit_batch ? 0 : info->images[DATA_TEST]);
}

static uint64_t set_bytes(const trainer *t)
{
    const data_info *info = data_describe(t->data);
    return (uint64_t)set_images(t) * 3 * (uint64_t)info->width * (uint64_t)info->height;
}

/* Why the set cannot lie on the device; NULL: it can. */
static const char *obstacle(const trainer *t)
{
    const backend *b = ((const struct device_base *)engine_device(t->train))->backend;
    uint64_t bytes = set_bytes(t);
    size_t left = b->free_bytes ? b->free_bytes(engine_device(t->train)) : SIZE_MAX;
    if (!t->drawable)
        return "its images are resized or recoloured, or not of one size";
    if (set_images(t) > INT32_MAX || bytes > SET_BYTES_MOST)
        return "it has more than 2 GiB";
    return bytes > left / 4 ? "it takes more than a quarter of the memory that is free" : NULL;
}

static berlu_status split_send(trainer *t, data_split split, size_t to, uint8_t *pixels)
{
    berlu_status status = BERLU_OK;
    size_t all = data_describe(t->data)->images[split];
    for (size_t first = 0; first < all && status == BERLU_OK; first += IMAGES_AT_ONCE) {
        size_t count = all - first < IMAGES_AT_ONCE ? all - first : IMAGES_AT_ONCE;
        status = data_bytes(t->data, split, first, count, (int)t->settings.workers, pixels);
        if (status == BERLU_OK)
            status = image_set_write(t->set, to + first, count, pixels);
    }
    return status;
}

static berlu_status set_send(trainer *t)
{
    const data_info *info = data_describe(t->data);
    size_t train = info->images[DATA_TRAIN], bytes = IMAGES_AT_ONCE * 3 * (size_t)info->width * (size_t)info->height;
    device *d = engine_device(t->train);
    berlu_status status = image_set_create(&t->set, ((struct device_base *)d)->backend, d, info->width, set_images(t),
                                           loader_levels(t->batches));
    if (status != BERLU_OK)
        return status;
    uint8_t *pixels = malloc(bytes);
    if (!pixels)
        return berlu_fail_memory(bytes, "images on their way to the device");
    status = split_send(t, DATA_TRAIN, 0, pixels);
    if (status == BERLU_OK && set_images(t) > train)
        status = split_send(t, DATA_TEST, train, pixels);
    free(pixels);
    return status;
}

static berlu_status set_use(trainer *t)
{
    berlu_status status = engine_use_images(t->train, t->set);
    if (status == BERLU_OK)
        status = engine_use_images(t->eval, t->set);
    if (status == BERLU_OK && t->teacher.engine)
        status = engine_use_images(t->teacher.engine, t->set);
    return status == BERLU_OK ? trainer_loaders_open(t) : status;
}

berlu_status trainer_place_images(trainer *t)
{
    const train_settings *s = &t->settings;
    int must = s->data_on == RECIPE_DATA_DEVICE;
    if (s->data_on == RECIPE_DATA_HOST || (!must && s->device == RECIPE_CPU))
        return BERLU_OK;
    const char *why = obstacle(t);
    if (why)
        return must ? berlu_fail(BERLU_ERR_ARG, "data_on: %s cannot lie on the device: %s; leave --data-on out",
                                 s->data, why)
                    : BERLU_OK;
    berlu_status status = set_send(t);
    if (status == BERLU_OK)
        return set_use(t);
    if (must || (status != BERLU_ERR_INPUT && status != BERLU_ERR_MEMORY))
        return status;
    image_set_free(t->set); /* a broken image, or memory that somebody else took: the loaders know what to do */
    t->set = NULL;
    return BERLU_OK;
}
