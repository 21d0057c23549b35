/* resize.h - antialiased resizing, equal to Pillow's to the bit. SPDX-License-Identifier: MIT */
#ifndef DATA_RESIZE_H
#define DATA_RESIZE_H

#include "data/image.h"

typedef enum resize_filter { RESIZE_BICUBIC, RESIZE_BILINEAR } resize_filter;

/* Memory that a resize needs and keeps for the next one: the coefficients and the image between the
 * two passes. */
typedef struct resize_scratch {
    void *memory;
    size_t capacity;
    const struct resize_passes *passes; /* the loops for this CPU, found once: CPUID is slow */
} resize_scratch;                       /* {0} is empty */
void resize_scratch_free(resize_scratch *s);

/* out = in at width x height. out and in must differ. Both passes are skipped where the size is
 * already right. */
berlu_status image_resize(image *out, const image *in, int width, int height, resize_filter filter, resize_scratch *s);

#endif
