/* loader.h - batches of images, made ahead of the trainer by worker threads. SPDX-License-Identifier: MIT
 *
 * A batch is a function of (seed, epoch, batch number, options): the order of an epoch is a keyed permutation that is
 * evaluated place by place, never stored, and every random choice is drawn by counter. So the number of workers changes no
 * bit, a resume starts at any batch of any epoch at once, and the batches of an epoch are the same whoever makes them:
 * rank r of R is handed whole ones, its share of every `group` (the micro-batches of an update).
 *
 * A set that lies on a device as bytes needs no pixels from here: with `draws` a batch is one image_draw a row, from which the
 * device makes the same numbers. There are no workers then; drawing a batch takes less than launching a step.
 *
 * Use: loader_open; for each epoch loader_start, then loader_next until *batch is NULL; loader_close.
 * One thread calls these; the workers are the loader's own. Nothing is allocated between loader_start and the end of an
 * epoch except when an image larger than all before needs more.
 *
 *     loader_options o = {.split = DATA_TRAIN, .batch = 128, .shuffle = 1, .drop_last = 1, .seed = seed};
 *     augment_preset(&o.augment, "crop-flip", 32);
 *     loader_open(&l, source, &o);
 *     loader_start(l, epoch, first_batch);
 *     while (loader_next(l, &b) == BERLU_OK && b) step(b->images, b->labels);  */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/data.h"
#include "data/mix.h"
#include "engine/image_draw.h"

/* Which images of the split. A holdout of N takes N training images, chosen by counter from the seed alone, away
 * from PART_KEPT and gives them as PART_HELD. */
typedef enum loader_part { PART_ALL, PART_KEPT, PART_HELD } loader_part;

typedef struct loader_options {
    data_split split;
    loader_part part;
    size_t holdout;        /* N of the holdout; used by PART_KEPT and PART_HELD */
    uint64_t holdout_seed; /* so that runs with different seeds may hold out the same images */
    const uint64_t
        *only; /* these indices of the split alone, instead of a part; NULL: by `part`; outlives the loader */
    size_t only_count;
    size_t first;            /* only the first so many images of the part, before shuffling; 0: all */
    size_t batch;            /* images of a batch */
    size_t group;            /* batches of an update, shared by the ranks, who divide it; 0 means 1 */
    int rank, ranks;         /* of every group this rank has batches [rank group / ranks, (rank + 1) group / ranks);
                                * ranks 0 means 1 */
    int shuffle;             /* 0: in stored order */
    int drop_last;           /* 0: the last batch may be short */
    int repeats;             /* repeated augmentation, 3 in DeiT; 0 or 1: off. Needs shuffle. */
    uint64_t seed;           /* of order, augmentation and mixing */
    augment_options augment; /* image_size must be set */
    mix_options mix;
    double mean[3], std[3]; /* normalisation; std all 0: those of data_describe() */
    int draws;              /* batches as draws alone; loader_drawable() must allow it */
    size_t draws_first;     /* place of the split's first image in the set that draws name */
    int workers;            /* threads; 0: threads_default() */
    size_t
        budget; /* bytes for batches made ahead and for decoding; 0: four batches, and for decoding what images within the
                               limits of image.h need */
} loader_options;

typedef struct loader_batch {
    const float *images;     /* [rows][3][side][side], normalised; rows past `count` are zero. NULL with draws */
    const image_draw *draws; /* [rows], where they were asked for; they hold labels and targets, too */
    const int32_t *labels;   /* [rows]; 0 past `count` */
    const float *targets;    /* [rows][classes], NULL without mixing or with draws */
    const uint64_t *indices; /* [rows]: index in the split; a broken training image is replaced by the next whole one */
    size_t rows;             /* those of options.batch */
    size_t count;            /* rows that hold an image; less than rows only in a short last batch or, in evaluation
                                (no shuffle), where broken images were left out */
    size_t number;           /* of this batch in its epoch, from 0 */
    int side;
    size_t classes;
} loader_batch;

typedef struct loader loader;
berlu_status loader_open(loader **out, data_source *source, const loader_options *options); /* source outlives it */
void loader_close(loader *l);                                                               /* NULL is allowed */

/* 1: batches of this set with these options can be had as draws. */
int loader_drawable(data_source *source, const loader_options *options);
/* The numbers that bytes become, [3][256]. */
const float *loader_levels(const loader *l);

size_t loader_images(const loader *l);  /* samples of an epoch over all ranks, whole batches only with drop_last */
size_t loader_batches(const loader *l); /* batches of an epoch, over all ranks */
size_t loader_bytes(const loader *l); /* held for batches; decoding buffers of workers come on top, within the budget */

/* Begins (or begins again) at a batch of an epoch, or at this rank's first one after it; work in flight for another place
 * is dropped. */
berlu_status loader_start(loader *l, uint32_t epoch, size_t first_batch);

/* *batch is the next batch, valid until the next call, or NULL at the end of the epoch. The first image that cannot be
 * had (more than max_bad broken, no memory) makes this fail with its sentence. */
berlu_status loader_next(loader *l, const loader_batch **batch);

/* Seconds that loader_next has waited for workers since loader_open. */
double loader_waited(const loader *l);

/* Place `position` of epoch `epoch` as an index of the split: the permutation itself, for tests and resume checks. */
uint64_t loader_index_at(const loader *l, uint32_t epoch, uint64_t position);

#endif
