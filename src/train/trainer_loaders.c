/* trainer_loaders.c - the three loaders of a run: training batches, test images, and a probe of the
 * training images without augmentation. SPDX-License-Identifier: MIT
 *
 * They are opened twice where the images move to the device (trainer_images.c): first for pixels,
 * to learn whether each can deliver draws (engine/image_draw.h: random choices, no pixels) instead,
 * then for draws. */
#include <string.h>

#include "train/subset.h"
#include "train/trainer_internal.h"

/* Opens a loader with the options that all three share, in place of an earlier one. */
static berlu_status loader_reopen(loader **out, trainer *t, loader_options *o, int training)
{
    const train_settings *s = &t->settings;
    int side = t->model->config.image_size;
    TRY(training ? image_options_train(&o->augment, s, side) : image_options_eval(&o->augment, s, side));
    o->seed = (uint64_t)s->seed;
    o->holdout = (size_t)s->holdout;
    o->workers = (int)s->workers;
    memcpy(o->mean, t->normalization.mean, sizeof o->mean);
    memcpy(o->std, t->normalization.std, sizeof o->std);
    if (t->set) {
        o->draws = 1;
        o->draws_first = o->split == DATA_TEST ? data_describe(t->data)->images[DATA_TRAIN] : 0;
    } else
        t->drawable &= loader_drawable(t->data, o);
    loader_close(*out);
    *out = NULL;
    return loader_open(out, t->data, o);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static berlu_status train_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    size_t images = t->train_images;
    loader_options o = {.split = DATA_TRAIN, .part = s->holdout ? PART_KEPT : PART_ALL, .batch = (size_t)s->batch};
    if ((size_t)s->batch > images)
        return berlu_fail(BERLU_ERR_ARG, "batch: %lld is larger than the %zu training images; make it smaller",
                          (long long)s->batch, images);
    o.only = t->train_only, o.only_count = (size_t)s->train_images;
    o.drop_last = 1;
    o.shuffle = !s->overfit_batch;
    o.first = s->overfit_batch ? (size_t)s->batch : 0;
    o.repeats = (int)s->repeats;
    o.mix = (mix_options){.mixup = s->mixup,
                          .cutmix = s->cutmix,
                          .probability = s->mix_prob,
                          .switch_to_cutmix = s->mix_switch,
                          .smoothing = s->smoothing,
                          .group = (size_t)s->mix_group};
    return loader_reopen(&t->batches, t, &o, 1);
}

/* The test split, or the images held out of the training split; overfit_batch is tested on its own
 * training batch. */
static berlu_status test_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    const data_info *info = data_describe(t->data);
    loader_options o = {.split = DATA_TEST, .batch = (size_t)t->eval_batch};
    if (s->holdout)
        o.split = DATA_TRAIN, o.part = PART_HELD;
    o.only = t->test_only, o.only_count = (size_t)s->test_images;
    if (s->overfit_batch)
        o.split = DATA_TRAIN, o.part = PART_ALL, o.first = (size_t)s->batch, o.only = t->train_only,
        o.only_count = (size_t)s->train_images;
    if (info->images[o.split] == 0)
        return berlu_fail(BERLU_ERR_ARG, "data: %s has no test images; keep some training images with --holdout N",
                          s->data);
    return loader_reopen(&t->test, t, &o, 0);
}

static berlu_status subsets_choose(trainer *t)
{
    const train_settings *s = &t->settings;
    loader_part train = s->holdout ? PART_KEPT : PART_ALL, test = s->holdout ? PART_HELD : PART_ALL;
    data_split split = s->holdout ? DATA_TRAIN : DATA_TEST;
    if (s->train_images)
        TRY(subset_choose(&t->train_only, t->data, DATA_TRAIN, train, (size_t)s->holdout, (size_t)s->train_images,
                          "train_images"));
    if (s->test_images)
        TRY(subset_choose(&t->test_only, t->data, split, test, (size_t)s->holdout, (size_t)s->test_images,
                          "test_images"));
    return BERLU_OK;
}

static berlu_status probe_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    loader_options o = {.split = DATA_TRAIN, .part = s->holdout ? PART_KEPT : PART_ALL, .batch = (size_t)t->eval_batch};
    o.only = t->train_only, o.only_count = (size_t)s->train_images;
    o.first = s->overfit_batch ? (size_t)s->batch : least(PROBE_IMAGES, t->train_images);
    return loader_reopen(&t->probe, t, &o, 0);
}

berlu_status trainer_loaders_open(trainer *t)
{
    t->drawable = 1;
    TRY(train_loader(t));
    TRY(test_loader(t));
    return probe_loader(t);
}

/* Limits the evaluation batch to the larger of the two sets evaluated. The setting itself is not
 * changed: it is part of the settings' hash. */
static void eval_batch_find(trainer *t, size_t images)
{
    const train_settings *s = &t->settings;
    size_t test = s->test_images ? (size_t)s->test_images
                  : s->holdout   ? (size_t)s->holdout
                                 : data_describe(t->data)->images[DATA_TEST];
    size_t most = least(PROBE_IMAGES, images);
    most = test > most ? test : most;
    t->eval_batch = (int)least((size_t)s->eval_batch, s->overfit_batch ? (size_t)s->batch : most);
    t->eval_batch = t->eval_batch < 1 ? 1 : t->eval_batch;
}

berlu_status trainer_loaders_make(trainer *t)
{
    const train_settings *s = &t->settings;
    size_t images = data_describe(t->data)->images[DATA_TRAIN];
    if ((size_t)s->holdout >= images)
        return berlu_fail(BERLU_ERR_ARG, "holdout: %lld leaves nothing of %zu training images", (long long)s->holdout,
                          images);
    TRY(subsets_choose(t));
    t->train_images = s->train_images ? (size_t)s->train_images : images - (size_t)s->holdout;
    eval_batch_find(t, t->train_images);
    return trainer_loaders_open(t);
}
