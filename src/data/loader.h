/* loader.h - batches of images, prefetched by worker threads. SPDX-License-Identifier: MIT
 *
 * A batch is a function of (seed, epoch, batch number, options): the order of an epoch is a keyed
 * permutation, evaluated per position and never stored, and every random choice is drawn by
 * counter. So the number of workers changes no bit, a resume starts at any batch of any epoch
 * immediately, and batches do not depend on the number of ranks: rank r of R gets complete batches,
 * its share of every `group` (the micro-batches of an update).
 *
 * A set stored on a device as bytes needs no pixels from here: with `draws` a batch is one
 * image_draw per row, from which the device computes the same values. There are no workers then;
 * drawing a batch takes less time than launching a step.
 *
 * Use: loader_open; for each epoch loader_start, then loader_next until *batch is NULL;
 * loader_close. All calls come from one thread. Nothing is allocated between loader_start and the
 * end of an epoch, unless an image is larger than all before.
 *
 *     loader_options o = {.split = DATA_TRAIN, .batch = 128, .shuffle = 1, .drop_last = 1};
 *     augment_preset(&o.augment, "crop-flip", 32);
 *     loader_open(&l, source, &o);
 *     loader_start(l, epoch, first_batch);
 *     while (loader_next(l, &b) == BERLU_OK && b) step(b->images, b->labels); */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/data.h"
#include "data/mix.h"
#include "engine/image_draw.h"

/* The images of the split to use. A holdout of N moves N training images, chosen by counter from
 * the seed alone, from PART_KEPT to PART_HELD. */
typedef enum loader_part { PART_ALL, PART_KEPT, PART_HELD } loader_part;

typedef struct loader_options {
    data_split split;
    loader_part part;
    size_t holdout;        /* N of the holdout; used by PART_KEPT and PART_HELD */
    uint64_t holdout_seed; /* separate, so that runs with different seeds hold out the same images */
    const uint64_t
        *only; /* these indices of the split alone, instead of a part; NULL: by `part`; outlives the loader */
    size_t only_count;
    size_t first;            /* use the first N images of the part, before shuffling; 0: all */
    size_t batch;            /* images of a batch */
    size_t group;            /* batches of an update, a multiple of `ranks`; 0 means 1 */
    int rank, ranks;         /* of every group this rank has batches [rank group / ranks, (rank + 1) group / ranks);
                                * ranks 0 means 1 */
    int shuffle;             /* 0: in stored order */
    int drop_last;           /* 0: the last batch may be short */
    int repeats;             /* repeated augmentation, 3 in DeiT; 0 or 1: off. Needs shuffle. */
    uint64_t seed;           /* of order, augmentation and mixing */
    augment_options augment; /* image_size must be set */
    mix_options mix;
    double mean[3], std[3]; /* normalisation; std all 0: those of data_describe() */
    int draws;              /* batches consist of draws; requires loader_drawable() */
    size_t draws_first;     /* index of the split's first image in the device's set */
    int workers;            /* threads; 0: threads_default() */
    /* Bytes for prefetched batches and for decoding; 0: four batches, and buffers for images within
     * the limits of image.h. */
    size_t budget;
} loader_options;

typedef struct loader_batch {
    const float *images;     /* [rows][3][side][side], normalised; rows past `count` are zero. NULL with draws */
    const image_draw *draws; /* [rows], with options.draws; they include labels and targets */
    const int32_t *labels;   /* [rows]; 0 past `count` */
    const float *targets;    /* [rows][classes], NULL without mixing or with draws */
    const uint64_t
        *indices;  /* [rows]: index in the split; a broken training image is replaced by the next intact one */
    size_t rows;   /* those of options.batch */
    size_t count;  /* rows that hold an image; less than rows only in a short last batch or, in evaluation
                                (no shuffle), where broken images are omitted */
    size_t number; /* of this batch in its epoch, from 0 */
    int side;
    size_t classes;
} loader_batch;

typedef struct loader loader;
berlu_status loader_open(loader **out, data_source *source, const loader_options *options); /* source outlives it */
void loader_close(loader *l);                                                               /* NULL is allowed */

/* Whether this set and these options can give batches as draws. */
int loader_drawable(data_source *source, const loader_options *options);
/* The normalised value of every byte, [3][256]. */
const float *loader_levels(const loader *l);

size_t loader_images(const loader *l); /* samples of an epoch over all ranks, of complete batches only with drop_last */
size_t loader_batches(const loader *l); /* batches of an epoch, over all ranks */
size_t loader_bytes(const loader *l);   /* of batches; decoding buffers of workers come on top, within the budget */

/* Starts or restarts at a batch of an epoch, or at this rank's first one after it; batches in
 * flight are discarded. */
berlu_status loader_start(loader *l, uint32_t epoch, size_t first_batch);

/* *batch is the next batch, valid until the next call, or NULL at the end of the epoch. Fails with
 * the message of the first image that cannot be loaded (more than max_bad broken, no memory). */
berlu_status loader_next(loader *l, const loader_batch **batch);

/* Seconds that loader_next has waited for workers since loader_open. */
double loader_waited(const loader *l);

/* The index in the split at a position of an epoch: the permutation itself. */
uint64_t loader_index_at(const loader *l, uint32_t epoch, uint64_t position);

#endif
