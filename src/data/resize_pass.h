/* resize_pass.h - the two inner loops of a resize, one table per instruction set.
 * SPDX-License-Identifier: MIT */
#ifndef DATA_RESIZE_PASS_H
#define DATA_RESIZE_PASS_H

#include "data/resize.h"

enum { RESIZE_BITS = 22 };

/* One axis: output i is the sum of weights[i * taps + j] * input[low[i] + j], j < count[i]; weights
 * past count are 0. */
typedef struct resize_axis {
    int in, out, taps, groups; /* groups: of four taps, rounded up */
    int32_t *weights, *low, *count;
    int16_t *packed; /* (out + 3) * groups * 32 elements, aligned to 64 bytes, for loops that repack the weights */
} resize_axis;

typedef struct resize_passes {
    void (*prepare)(resize_axis *axis); /* once per image, before across; may move runs; may be NULL */
    /* `rows` rows of RGB pixels, `in_row` bytes apart; the results follow each other without
     * gaps. */
    void (*across)(uint8_t *out, const uint8_t *in, size_t in_row, int rows, const resize_axis *axis);
    void (*down)(uint8_t *out, const uint8_t *in, size_t bytes, const int32_t *k,
                 int count); /* rows of `bytes`, in order */
} resize_passes;

extern const resize_passes resize_passes_plain;
void resize_tail_down(uint8_t *out, const uint8_t *in, size_t bytes, size_t from, const int32_t *k, int count);
#if defined(__x86_64__)
extern const resize_passes resize_passes_avx2, resize_passes_vnni;
#endif

/* image_resize() with given loops, for the test that compares them. */
berlu_status image_resize_by(image *out, const image *in, int width, int height, resize_filter filter,
                             resize_scratch *s, const resize_passes *passes);

#endif
