/* image_set.h - a data set that lives on a device as bytes, and batches made of it there.
 * SPDX-License-Identifier: MIT
 *
 * Square images of one size, 8-bit RGB, and the table that turns bytes into normalised numbers. An
 * engine that uses a set gets its batches as image_draws (some 80 bytes an image) instead of
 * numbers:
 *
 *     image_set_create(&set, backend, device, 32, count, levels);
 *     image_set_write(set, first, count, bytes);            // once
 *     engine_use_images(e, set);
 *     engine_set_draws(e, draws); engine_step_run(e, &step); // every step
 *
 * Read on: image_draw.h for what a draw means. */
#ifndef ENGINE_IMAGE_SET_H
#define ENGINE_IMAGE_SET_H

#include "engine/engine.h"
#include "engine/image_draw.h"

typedef struct image_set image_set;
/* The device outlives the set, the set the engines that use it. BERLU_ERR_MEMORY where it does not
 * fit. */
berlu_status image_set_create(image_set **out, const backend *b, device *d, int side, size_t count,
                              const float levels[IMAGE_LEVELS]);
berlu_status image_set_write(image_set *s, size_t first, size_t count, const uint8_t *pixels);
void image_set_free(image_set *s); /* NULL is allowed */
size_t image_set_bytes(const image_set *s);

/* Once, before the first draws. BERLU_ERR_ARG where the network's input has another size. */
berlu_status engine_use_images(engine *e, const image_set *s);

/* Makes the device compute images, labels and targets of the following forwards from one draw per
 * row, read by engine_forward(). NULL: they come from the feeds again. */
void engine_set_draws(engine *e, const image_draw *draws);

#endif
