/* loader_plan.c - order, shards, repeats and broken images: from (epoch, batch, row) to pixels.
 * SPDX-License-Identifier: MIT
 *
 * An epoch is a sequence of positions, divided into batches. Ranks get complete batches, so that a
 * batch, its draws and its mixing do not depend on the number of ranks. With repeats, an image
 * occupies several neighbouring positions and each copy draws its own augmentation (DeiT's
 * RASampler). The order is evaluated per position (permute.h). A holdout is a second, fixed
 * permutation of the split: its first N images are held out. */
#include "data/loader_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "data/permute.h"

static berlu_status pool_find(loader_plan *p, const data_info *info)
{
    const loader_options *o = &p->o;
    size_t all = info->images[o->split];
    if (all == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no %s images", *info->path ? info->path : info->kind,
                          data_split_names[o->split]);
    if (o->part != PART_ALL && o->holdout >= all)
        return berlu_fail(BERLU_ERR_ARG, "a holdout of %zu leaves nothing of %zu images", o->holdout, all);
    for (size_t i = 0; o->only && i < o->only_count; i++)
        if (o->only[i] >= all)
            return berlu_fail(BERLU_ERR_ARG, "image %llu of %zu does not exist", (unsigned long long)o->only[i], all);
    p->pool = o->part == PART_KEPT ? all - o->holdout : o->part == PART_HELD ? o->holdout : all;
    if (o->only)
        p->pool = o->only_count;
    if (p->pool == 0)
        return berlu_fail(BERLU_ERR_ARG, "a holdout of 0 has no images to test on");
    if (o->first && o->first < p->pool)
        p->pool = o->first;
    return BERLU_OK;
}

static berlu_status epoch_measure(loader_plan *p)
{
    const loader_options *o = &p->o;
    p->samples = p->pool;
    if (o->repeats > 1 && p->pool >= 256)
        p->samples = p->pool / 256 * 256; /* as RASampler */
    p->batches = o->drop_last ? p->samples / o->batch : (p->samples + o->batch - 1) / o->batch;
    if (o->drop_last)
        p->samples = p->batches * o->batch;
    if (p->batches == 0)
        return berlu_fail(BERLU_ERR_ARG, "a batch of %zu is more than the %zu images of an epoch; make it smaller",
                          o->batch, p->pool);
    return BERLU_OK;
}

static berlu_status mix_check(loader_plan *p)
{
    mix_options *m = &p->o.mix;
    if (!(m->mixup >= 0 && m->cutmix >= 0 && m->smoothing >= 0 && m->smoothing < 1 && m->probability >= 0 &&
          m->probability <= 1 && m->switch_to_cutmix >= 0 && m->switch_to_cutmix <= 1))
        return berlu_fail(BERLU_ERR_ARG,
                          "mixup and cutmix must be >= 0, probability and switch in [0, 1], smoothing in [0, 1)");
    if (!mix_is_on(m))
        return BERLU_OK;
    if (m->group == 0)
        m->group = mix_group_for(p->rows);
    if (m->group % 2 || p->rows % m->group)
        return berlu_fail(BERLU_ERR_ARG, "mixing groups of %zu rows: must be even and divide the %zu rows of a batch",
                          m->group, p->rows);
    if (!p->o.drop_last)
        return berlu_fail(BERLU_ERR_ARG, "mixing needs whole batches (drop_last)");
    return BERLU_OK;
}

berlu_status loader_plan_make(loader_plan *out, data_source *source, const loader_options *options)
{
    const data_info *info = data_describe(source);
    loader_plan p = {.source = source, .o = *options, .classes = info->classes};
    loader_options *o = &p.o;
    o->ranks = o->ranks ? o->ranks : 1;
    o->group = o->group ? o->group : 1;
    o->repeats = o->repeats > 1 ? o->repeats : 1;
    if (o->ranks < 1 || o->rank < 0 || o->rank >= o->ranks)
        return berlu_fail(BERLU_ERR_ARG, "rank %d of %d", o->rank, o->ranks);
    if (o->group % (size_t)o->ranks)
        return berlu_fail(BERLU_ERR_ARG, "%zu batches an update cannot be shared by %d ranks", o->group, o->ranks);
    if (o->batch == 0)
        return berlu_fail(BERLU_ERR_ARG, "a batch of 0 images");
    if (o->repeats > 1 && !o->shuffle)
        return berlu_fail(BERLU_ERR_ARG, "repeated augmentation needs shuffling");
    if (o->std[0] == 0 && o->std[1] == 0 && o->std[2] == 0) {
        memcpy(o->mean, info->mean, sizeof o->mean);
        memcpy(o->std, info->std, sizeof o->std);
    }
    p.rows = o->batch;
    p.image_floats = 3 * (size_t)o->augment.image_size * (size_t)o->augment.image_size;
    TRY(augment_prepare(&p.augment, &o->augment, info, o->mean, o->std, o->seed));
    TRY(pool_find(&p, info));
    TRY(epoch_measure(&p));
    TRY(mix_check(&p));
    *out = p;
    return BERLU_OK;
}

size_t plan_own(const loader_plan *p, size_t batch)
{
    size_t share = p->o.group / (size_t)p->o.ranks, first = share * (size_t)p->o.rank;
    size_t within = batch % p->o.group, begun = within > first ? within - first : 0;
    return batch / p->o.group * share + (begun < share ? begun : share);
}

size_t plan_number(const loader_plan *p, size_t own)
{
    size_t share = p->o.group / (size_t)p->o.ranks;
    assert(share > 0 && p->o.group % (size_t)p->o.ranks == 0);
    return own / share * p->o.group + share * (size_t)p->o.rank + own % share;
}

size_t plan_rows(const loader_plan *p, size_t batch)
{
    assert(batch < p->batches && batch * p->o.batch < p->samples);
    size_t left = p->samples - batch * p->o.batch;
    return left < p->o.batch ? left : p->o.batch;
}

uint64_t plan_index(const loader_plan *p, uint32_t epoch, uint64_t position, uint64_t further)
{
    const loader_options *o = &p->o;
    uint64_t place = position / (uint64_t)o->repeats;
    assert(place < p->pool);
    if (o->shuffle)
        place = permutation_at(&(permutation){p->pool, o->seed, PURPOSE_SHUFFLE, epoch}, place);
    place = (place + further) % p->pool;
    if (o->only)
        return o->only[place];
    if (o->part == PART_ALL)
        return place;
    permutation held = {data_describe(p->source)->images[o->split], o->holdout_seed, PURPOSE_HOLDOUT, 0};
    return permutation_at(&held, o->part == PART_HELD ? place : o->holdout + place);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t soft_floats(const loader_plan *p)
{
    return mix_is_on(&p->o.mix) ? p->rows * p->classes : 0;
}

size_t plan_slot_bytes(const loader_plan *p)
{
    if (p->o.draws)
        return p->rows * (sizeof(image_draw) + sizeof(int32_t) + sizeof(uint64_t));
    return (p->rows * p->image_floats + soft_floats(p)) * sizeof(float) +
           p->rows * (sizeof(int32_t) + sizeof(uint64_t) + 1);
}

static berlu_status draw_rows_make(const loader_plan *p, loader_rows *out)
{
    out->draws = calloc(p->rows, sizeof *out->draws);
    out->labels = out->label_memory = calloc(p->rows, sizeof *out->labels);
    out->indices = calloc(p->rows, sizeof *out->indices);
    if (out->draws && out->labels && out->indices)
        return BERLU_OK;
    plan_rows_free(out);
    return berlu_fail_memory(plan_slot_bytes(p), "the draws of a batch");
}

berlu_status plan_rows_make(const loader_plan *p, loader_rows *out)
{
    if (p->o.draws)
        return draw_rows_make(p, out);
    char *block = memory_aligned(plan_slot_bytes(p), "a batch of images");
    if (!block)
        return BERLU_ERR_MEMORY;
    out->images = (float *)block;
    out->targets = soft_floats(p) ? out->images + p->rows * p->image_floats : NULL;
    block += (p->rows * p->image_floats + soft_floats(p)) * sizeof(float);
    memset(block, 0, p->rows * (sizeof(int32_t) + sizeof(uint64_t) + 1));
    out->indices = malloc(p->rows * sizeof *out->indices); /* separate: the block is aligned to four bytes here */
    out->labels = (int32_t *)block;
    out->whole = (unsigned char *)(block + p->rows * sizeof(int32_t));
    if (out->indices)
        return BERLU_OK;
    plan_rows_free(out);
    return berlu_fail_memory(p->rows * sizeof *out->indices, "a batch of images");
}

void plan_rows_free(loader_rows *r)
{
    free(r->images);
    free(r->indices);
    free(r->draws);
    free(r->label_memory);
    *r = (loader_rows){0};
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The position of a row in its epoch. */
static uint64_t row_position(const loader_plan *p, size_t batch, size_t row)
{
    return (uint64_t)batch * p->o.batch + row;
}

/* Replaces a broken training image by the next intact one in stored order; in evaluation its row is
 * omitted. */
berlu_status plan_fill_row(const loader_plan *p, uint32_t epoch, size_t batch, size_t row, loader_rows *out,
                           augment_scratch *w)
{
    const loader_options *o = &p->o;
    uint64_t position = row_position(p, batch, row);
    uint64_t copy = position % (uint64_t)o->repeats;
    berlu_status status = BERLU_OK;
    assert(row < p->rows);
    for (uint64_t further = 0; further < p->pool; further++) {
        uint64_t index = plan_index(p, epoch, position, further);
        out->indices[row] = index;
        out->labels[row] = data_label(p->source, o->split, index);
        status = augment_sample(&p->augment, p->source, o->split, index, epoch, index * (uint64_t)o->repeats + copy,
                                out->images + row * p->image_floats, w);
        out->whole[row] = status == BERLU_OK;
        if (status != BERLU_ERR_INPUT)
            return status;
        status = data_report_bad(p->source, o->split, index);
        if (status != BERLU_OK || !o->shuffle)
            return status;
    }
    return berlu_fail(BERLU_ERR_INPUT, "%s: no intact image is left", data_describe(p->source)->path);
}

static void gaps_close(const loader_plan *p, loader_rows *r, size_t filled)
{
    size_t to = 0;
    for (size_t row = 0; row < filled; row++) {
        if (!r->whole[row])
            continue;
        if (to != row) {
            memcpy(r->images + to * p->image_floats, r->images + row * p->image_floats,
                   p->image_floats * sizeof(float));
            r->labels[to] = r->labels[row];
            r->indices[to] = r->indices[row];
        }
        to++;
    }
    r->count = to;
}

static size_t mix_groups(const loader_plan *p)
{
    return mix_is_on(&p->o.mix) ? p->rows / p->o.mix.group : 0;
}

static mix_draw group_draw(const loader_plan *p, uint32_t epoch, size_t batch, size_t group)
{
    const loader_options *o = &p->o;
    return mix_draw_for(&o->mix, o->seed, epoch, (uint64_t)batch * mix_groups(p) + group, o->augment.image_size,
                        o->augment.image_size);
}

void plan_finish(const loader_plan *p, uint32_t epoch, size_t batch, loader_rows *r)
{
    const loader_options *o = &p->o;
    gaps_close(p, r, plan_rows(p, batch));
    r->number = batch;
    size_t rest = p->rows - r->count;
    if (rest) {
        memset(r->images + r->count * p->image_floats, 0, rest * p->image_floats * sizeof(float));
        memset(r->labels + r->count, 0, rest * sizeof *r->labels);
        memset(r->indices + r->count, 0, rest * sizeof *r->indices);
    }
    size_t groups = mix_groups(p);
    int side = o->augment.image_size;
    for (size_t g = 0; g < groups; g++) {
        size_t row = g * o->mix.group;
        mix_draw d = group_draw(p, epoch, batch, g);
        mix_images(&d, r->images + row * p->image_floats, o->mix.group, 3, side, side);
        mix_targets(&d, o->mix.smoothing, r->labels + row, r->targets + row * p->classes, o->mix.group, p->classes);
    }
}

/* ---- draws ----------------------------------------------------------------------------------- */

static image_draw row_draw(const loader_plan *p, uint32_t epoch, size_t batch, size_t row, loader_rows *r)
{
    const loader_options *o = &p->o;
    uint64_t position = row_position(p, batch, row), index = plan_index(p, epoch, position, 0);
    uint64_t sample = index * (uint64_t)o->repeats + position % (uint64_t)o->repeats;
    sample_draw d = augment_draw(&p->augment, o->augment.image_size, o->augment.image_size, epoch, sample);
    erase_box e = d.erase;
    r->indices[row] = index;
    r->labels[row] = data_label(p->source, o->split, index);
    return (image_draw){
        .seed = o->seed,
        .sample = sample,
        .epoch = epoch,
        .erase_words = d.erase_words,
        .index = (int32_t)(o->draws_first + index),
        .label = r->labels[row],
        .partner = (int32_t)row,
        .erased = {(int16_t)e.top, (int16_t)e.left, (int16_t)(e.top + e.height), (int16_t)(e.left + e.width)},
        .left = (int16_t)d.left,
        .top = (int16_t)d.top,
        .flip = (uint8_t)d.flip};
}

void plan_draw(const loader_plan *p, uint32_t epoch, size_t batch, loader_rows *r)
{
    const loader_options *o = &p->o;
    r->count = plan_rows(p, batch);
    r->number = batch;
    for (size_t row = 0; row < r->count; row++)
        r->draws[row] = row_draw(p, epoch, batch, row, r);
    for (size_t row = r->count; row < p->rows; row++) {
        r->draws[row] = (image_draw){.index = -1, .partner = (int32_t)row};
        r->labels[row] = 0;
        r->indices[row] = 0;
    }
    for (size_t g = 0; g < mix_groups(p); g++) {
        mix_draw d = group_draw(p, epoch, batch, g);
        mix_draws(&d, o->mix.smoothing, r->draws, g * o->mix.group, o->mix.group, p->classes);
    }
}

void plan_show(const loader_plan *p, const loader_rows *r, loader_batch *out)
{
    *out = (loader_batch){.images = r->images,
                          .draws = r->draws,
                          .labels = r->labels,
                          .targets = r->targets,
                          .indices = r->indices,
                          .rows = p->rows,
                          .count = r->count,
                          .number = r->number,
                          .side = p->o.augment.image_size,
                          .classes = p->classes};
}
