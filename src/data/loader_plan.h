/* loader_plan.h - the content of row r of batch b of epoch e: a loader without its threads.
 * SPDX-License-Identifier: MIT */
#ifndef DATA_LOADER_PLAN_H
#define DATA_LOADER_PLAN_H

#include "data/augment_plan.h"
#include "data/loader.h"

typedef struct loader_plan {
    data_source *source;
    loader_options o; /* with all defaults resolved */
    augment_plan augment;
    size_t pool;    /* images to draw from: of the part, at most `first` */
    size_t samples; /* of an epoch, over all ranks */
    size_t batches; /* likewise */
    size_t rows;    /* of a batch */
    size_t classes, image_floats;
    size_t image_bytes; /* limit of one decoded image, 0: none of its own */
} loader_plan;

/* The memory of one batch. */
typedef struct loader_rows {
    float *images, *targets;
    int32_t *labels, *label_memory; /* label_memory: where they are an allocation of their own */
    uint64_t *indices;
    image_draw *draws;
    unsigned char *whole; /* 0: the image of this row is broken and omitted */
    size_t count, number;
} loader_rows;

berlu_status loader_plan_make(loader_plan *out, data_source *source, const loader_options *o);
size_t plan_own(const loader_plan *p, size_t batch);  /* batches of this rank before that one */
size_t plan_number(const loader_plan *p, size_t own); /* the batch that is number `own` of this rank */
size_t plan_rows(const loader_plan *p, size_t batch); /* rows of a batch that hold an image */
size_t plan_slot_bytes(const loader_plan *p);
berlu_status plan_rows_make(const loader_plan *p, loader_rows *out);
void plan_rows_free(loader_rows *r);

/* The image at a position of an epoch; `further` selects a later one in stored order, to replace a
 * broken one. */
uint64_t plan_index(const loader_plan *p, uint32_t epoch, uint64_t position, uint64_t further);

berlu_status plan_fill_row(const loader_plan *p, uint32_t epoch, size_t batch, size_t row, loader_rows *out,
                           augment_scratch *w);
void plan_finish(const loader_plan *p, uint32_t epoch, size_t batch,
                 loader_rows *r); /* closes gaps, zeroes the rest, mixes */
void plan_draw(const loader_plan *p, uint32_t epoch, size_t batch, loader_rows *r); /* a batch without pixels */
void plan_show(const loader_plan *p, const loader_rows *r, loader_batch *out);

#endif
