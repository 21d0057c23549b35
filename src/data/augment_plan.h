/* augment_plan.h - an augmentation with all options resolved, and its application to one sample.
 * SPDX-License-Identifier: MIT
 *
 * Workers share one plan; each owns a scratch. A sample is first drawn (augment_draw() returns
 * plain data) and then applied to pixels (augment_apply()), so that a device that holds the images
 * can do the second step itself from the same draws (engine/image_draw.h). */
#ifndef DATA_AUGMENT_PLAN_H
#define DATA_AUGMENT_PLAN_H

#include "data/augment.h"
#include "data/draws.h"
#include "data/levels.h"

typedef struct augment_plan {
    augment_options o; /* with all defaults resolved */
    uint64_t seed;
    levels levels;   /* bytes, normalised */
    uint8_t fill[3]; /* colour of pixels from outside a rotated or shifted image */
} augment_plan;

typedef struct augment_scratch {
    image current, spare;
    resize_scratch resize;
    image_file file;
    size_t byte_limit; /* for one decoded image */
} augment_scratch;     /* {0}, and a limit if wanted */
void augment_scratch_free(augment_scratch *w);

berlu_status augment_prepare(augment_plan *out, const augment_options *o, const data_info *info, const double mean[3],
                             const double std[3], uint64_t seed);

typedef struct erase_box {
    int top, left, height, width; /* height 0: nothing is erased */
} erase_box;

/* All random choices of one sample except its colours. */
typedef struct sample_draw {
    image_part part;      /* of the stored image, to be read */
    resize_filter filter; /* that resizes it to image_size */
    int left, top;        /* CROP_PAD: the window's corner on the resized image, negative in the padding */
    int flip;
    erase_box erase;
    uint32_t erase_words; /* words of PURPOSE_ERASE consumed by the box; the noise inside it begins there */
} sample_draw;

/* Whether a sample is a window of the stored bytes, possibly mirrored and erased, which a device
 * that has the bytes can compute: all images have the network's size, nothing resizes or recolours
 * them. */
int augment_only_moves(const augment_plan *plan, const data_info *info);

/* A function of its arguments alone; width and height are those of the stored image. */
sample_draw augment_draw(const augment_plan *plan, int width, int height, uint32_t epoch, uint64_t sample);

/* Writes 3 planes of image_size x image_size floats from the part that was read into w->current. */
berlu_status augment_apply(const augment_plan *plan, const sample_draw *draw, uint32_t epoch, uint64_t sample,
                           float *out, augment_scratch *w);

/* The image's bytes after crop, flip and colours, image_size x image_size, in w->current. */
berlu_status augment_image(const augment_plan *plan, data_source *source, data_split split, size_t index,
                           uint32_t epoch, uint64_t sample, augment_scratch *w);

/* Reads, draws and applies. `sample` distinguishes copies of a repeated image. */
berlu_status augment_sample(const augment_plan *plan, data_source *source, data_split split, size_t index,
                            uint32_t epoch, uint64_t sample, float *out, augment_scratch *w);

/* The parts, for tests. */
image_part crop_random(draws *d, int width, int height, double scale_low, double scale_high);
berlu_status randaugment_apply(const augment_plan *plan, draws *d, image *current, image *spare);
berlu_status randaugment_op(int op, double level, int negative, const augment_plan *plan, resize_filter filter,
                            image *current, image *spare);
enum { RANDAUGMENT_OPS = 15 };
extern const char *const randaugment_names[RANDAUGMENT_OPS];
void jitter_apply(const augment_options *o, draws *d, image *current);
erase_box erase_draw(draws *d, double probability, int height, int width);
void erase_fill(draws *d, erase_box box, float *planes, int height, int width);

#endif
