/* ref_images.c - the batch of a step from draws over a data set in memory.
 * SPDX-License-Identifier: MIT
 *
 * in: bytes of all images, one image_draw per row, the numbers of bytes; out: images, and where the
 * loss wants them labels and targets. engine/image_draw.h has the formulas. */
#include "cpu/real.h"
#include "engine/image_draw.h"

static void row_make(const op_call *c, const image_pixels *p, int64_t row)
{
    const image_draw *draws = c->in[1].data;
    int side = p->side;
    real *image = (real *)c->out[0].data + row * 3 * side * side;
    real *target = c->out[2].data ? (real *)c->out[2].data + row * c->out[2].channels : NULL;
    for (int channel = 0; channel < 3; channel++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                *image++ = (real)image_value(p, draws, row, channel, y, x);
    if (c->out[1].data)
        ((int32_t *)c->out[1].data)[row] = draws[row].label;
    for (int64_t k = 0; target && k < c->out[2].channels; k++)
        target[k] = (real)image_target(draws, row, k);
}

void REF(images)(const op_call *c)
{
    image_pixels p = {c->in[0].data, c->in[2].data, (int)c->out[0].info->size[1]};
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t row = 0; row < c->batch; row++)
        row_make(c, &p, row);
}
