/* trainer_images.c - places a run's images on the device, or leaves them to the loaders.
 * SPDX-License-Identifier: MIT
 *
 * A set of CIFAR's size fits into GPU memory many times over. Its bytes are uploaded once; from
 * then on a step needs some 80 bytes per image (engine/image_draw.h), and no thread prepares
 * pixels. Augmentation that a device does not implement (resizing, RandAugment, colour jitter) and
 * sets that are too large or of mixed sizes stream through the loaders. Results are equal to the
 * bit, so the placement is not part of a run's identity. */
#include <stdlib.h>

#include "train/trainer_internal.h"

#define SET_BYTES_MOST ((uint64_t)2 << 30)
enum { IMAGES_AT_ONCE = 4096 };

/* The number of images placed: DATA_TRAIN, then DATA_TEST where it is used. */
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

/* Returns why the set cannot be placed on the device, or NULL. */
static const char *obstacle(const trainer *t)
{
    const backend *b = engine_backend(t->train);
    uint64_t bytes = set_bytes(t);
    size_t left = b->free_bytes ? b->free_bytes(engine_device(t->train)) : SIZE_MAX;
    if (!t->drawable)
        return "its images are resized or recoloured, or not of one size";
    if (set_images(t) > INT32_MAX || bytes > SET_BYTES_MOST)
        return "it has more than 2 GiB";
    return bytes > left / 4 ? "it takes more than a quarter of the memory that is free" : NULL;
}

static berlu_status split_upload(trainer *t, data_split split, size_t to, uint8_t *pixels)
{
    size_t all = data_describe(t->data)->images[split];
    for (size_t first = 0; first < all; first += IMAGES_AT_ONCE) {
        size_t count = all - first < IMAGES_AT_ONCE ? all - first : IMAGES_AT_ONCE;
        TRY(data_bytes(t->data, split, first, count, (int)t->settings.workers, pixels));
        TRY(image_set_write(t->set, to + first, count, pixels));
    }
    return BERLU_OK;
}

static berlu_status set_upload(trainer *t)
{
    const data_info *info = data_describe(t->data);
    size_t train = info->images[DATA_TRAIN], bytes = IMAGES_AT_ONCE * 3 * (size_t)info->width * (size_t)info->height;
    device *d = engine_device(t->train);
    TRY(image_set_create(&t->set, engine_backend(t->train), d, info->width, set_images(t), loader_levels(t->batches)));
    uint8_t *pixels = malloc(bytes);
    if (!pixels)
        return berlu_fail_memory(bytes, "images being uploaded to the device");
    berlu_status status;
    TRY_DONE(split_upload(t, DATA_TRAIN, 0, pixels));
    if (set_images(t) > train)
        TRY_DONE(split_upload(t, DATA_TEST, train, pixels));
done:
    free(pixels);
    return status;
}

static berlu_status set_use(trainer *t)
{
    TRY(engine_use_images(t->train, t->set));
    TRY(engine_use_images(t->eval, t->set));
    if (t->teacher.engine)
        TRY(engine_use_images(t->teacher.engine, t->set));
    return trainer_loaders_open(t);
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
    berlu_status status = set_upload(t);
    if (status == BERLU_OK)
        return set_use(t);
    if (must || (status != BERLU_ERR_INPUT && status != BERLU_ERR_MEMORY))
        return status;
    image_set_free(t->set); /* a damaged image, or too little memory after all: stream */
    t->set = NULL;
    return BERLU_OK;
}
