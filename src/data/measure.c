/* measure.c - mean and standard deviation of the pixels of a set, and a contact sheet.
 * SPDX-License-Identifier: MIT
 *
 * Values are bytes, so their sums and sums of squares are integers: exact, whatever the order and
 * number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "data/permute.h"
#include "data/resize.h"
#include "data/source.h"

enum { BLOCKS = 64 };

typedef struct block_sum {
    uint64_t sum[3], squares[3], pixels, images;
    int least_width, least_height, most_width, most_height;
    kept_failure failure;
} block_sum;

typedef struct measuring {
    data_source *source;
    data_split split;
    size_t count;   /* images measured, evenly spaced */
    size_t holdout; /* images left out */
    block_sum *blocks;
} measuring;

static void image_add(block_sum *b, const image *i)
{
    size_t n = (size_t)i->width * (size_t)i->height;
    const uint8_t *p = i->pixels;
    for (size_t k = 0; k < n; k++, p += 3)
        for (int c = 0; c < 3; c++) {
            b->sum[c] += p[c];
            b->squares[c] += (unsigned)p[c] * p[c];
        }
    b->pixels += n;
    int first = b->images++ == 0;
    b->least_width = first || i->width < b->least_width ? i->width : b->least_width;
    b->least_height = first || i->height < b->least_height ? i->height : b->least_height;
    b->most_width = i->width > b->most_width ? i->width : b->most_width;
    b->most_height = i->height > b->most_height ? i->height : b->most_height;
}

/* Image i of those measured: evenly spaced over the split, or over its rest without a holdout. */
static size_t image_index(const measuring *m, size_t i)
{
    size_t all = m->source->info.images[m->split], left = all - m->holdout;
    size_t place = (size_t)((unsigned __int128)i * left / m->count);
    permutation held = {all, 0, PURPOSE_HOLDOUT, 0};
    return m->holdout ? (size_t)permutation_at(&held, m->holdout + place) : place;
}

static void block_measure(void *context, size_t block)
{
    const measuring *m = context;
    block_sum *b = &m->blocks[block];
    image read = {0};
    image_file file = {0};
    image_request request = {.file = &file};
    size_t first = m->count * block / BLOCKS, end = m->count * (block + 1) / BLOCKS;
    berlu_status status = BERLU_OK;
    for (size_t i = first; i < end && status == BERLU_OK; i++) {
        size_t index = image_index(m, i);
        status = data_read(m->source, m->split, index, &request, &read);
        if (status == BERLU_OK)
            image_add(b, &read);
        else if (status == BERLU_ERR_INPUT)
            status = data_report_bad(m->source, m->split, index);
    }
    failure_keep(&b->failure, status);
    image_free(&read);
    free(file.bytes);
}

static void blocks_join(block_sum *to, const block_sum *b)
{
    if (b->images == 0)
        return;
    int first = to->images == 0;
    for (int c = 0; c < 3; c++) {
        to->sum[c] += b->sum[c];
        to->squares[c] += b->squares[c];
    }
    to->pixels += b->pixels;
    to->images += b->images;
    to->least_width = first || b->least_width < to->least_width ? b->least_width : to->least_width;
    to->least_height = first || b->least_height < to->least_height ? b->least_height : to->least_height;
    to->most_width = b->most_width > to->most_width ? b->most_width : to->most_width;
    to->most_height = b->most_height > to->most_height ? b->most_height : to->most_height;
}

static void statistics_from(data_statistics *out, const block_sum *b)
{
    *out = (data_statistics){.images = b->images,
                             .least_width = b->least_width,
                             .least_height = b->least_height,
                             .most_width = b->most_width,
                             .most_height = b->most_height};
    for (int c = 0; c < 3 && b->pixels; c++) {
        long double n = (long double)b->pixels, mean = (long double)b->sum[c] / n;
        long double variance = (long double)b->squares[c] / n - mean * mean;
        out->mean[c] = (double)(mean / 255);
        out->std[c] = variance > 0 ? sqrt((double)variance) / 255 : 0;
    }
}

berlu_status data_measure(data_source *source, data_split split, size_t limit, size_t holdout, int threads,
                          data_statistics *out)
{
    size_t all = source->info.images[split];
    if (holdout && holdout >= all)
        return berlu_fail(BERLU_ERR_ARG, "holdout: %zu leaves nothing of %zu images", holdout, all);
    all -= holdout;
    measuring m = {source, split, limit && limit < all ? limit : all, holdout, calloc(BLOCKS, sizeof(block_sum))};
    if (!m.blocks)
        return berlu_fail_memory(BLOCKS * sizeof(block_sum), "measuring a set");
    if (all)
        threads_for(threads, BLOCKS, block_measure, &m);
    block_sum total = {0};
    berlu_status status = BERLU_OK;
    for (int b = 0; b < BLOCKS; b++) {
        TRY_DONE(failure_report(&m.blocks[b].failure));
        blocks_join(&total, &m.blocks[b]);
    }
    statistics_from(out, &total);
done:
    free(m.blocks);
    return status;
}

/* ---- the contact sheet ----------------------------------------------------------------------- */

/* An image, fitted into a cell with its aspect ratio. */
static berlu_status cell_fill(image *sheet, int left, int top, int cell, const image *read, image *small,
                              resize_scratch *scratch)
{
    int w = read->width, h = read->height, long_side = w > h ? w : h;
    int fit_w = (int)((int64_t)w * cell / long_side), fit_h = (int)((int64_t)h * cell / long_side);
    fit_w = fit_w < 1 ? 1 : fit_w;
    fit_h = fit_h < 1 ? 1 : fit_h;
    TRY(image_resize(small, read, fit_w, fit_h, RESIZE_BICUBIC, scratch));
    left += (cell - fit_w) / 2;
    top += (cell - fit_h) / 2;
    for (int y = 0; y < fit_h; y++)
        memcpy(sheet->pixels + ((size_t)(top + y) * (size_t)sheet->width + (size_t)left) * 3,
               small->pixels + (size_t)y * (size_t)fit_w * 3, (size_t)fit_w * 3);
    return BERLU_OK;
}

berlu_status data_contact_sheet(data_source *source, int rows, int columns, int cell, image *out)
{
    enum { GAP = 2 };
    const data_info *info = &source->info;
    data_split split = info->images[DATA_TRAIN] ? DATA_TRAIN : DATA_TEST;
    rows = (size_t)rows < info->classes ? rows : (int)info->classes;
    berlu_status status;
    int *filled = calloc((size_t)rows, sizeof *filled), left = rows * columns;
    image read = {0}, small = {0};
    resize_scratch scratch = {0};
    if (!filled)
        TRY_DONE(berlu_fail_memory((size_t)rows * sizeof *filled, "a contact sheet"));
    TRY_DONE(image_reserve(out, columns * (cell + GAP) + GAP, rows * (cell + GAP) + GAP));
    memset(out->pixels, 255, (size_t)out->width * (size_t)out->height * 3);
    for (size_t i = 0; i < info->images[split] && left > 0; i++) {
        int label = data_label(source, split, i);
        if (label >= rows || filled[label] == columns)
            continue;
        status = data_read(source, split, i, NULL, &read);
        if (status == BERLU_ERR_INPUT) {
            TRY_DONE(data_report_bad(source, split, i));
            continue;
        }
        TRY_DONE(status);
        TRY_DONE(cell_fill(out, GAP + filled[label]++ * (cell + GAP), GAP + label * (cell + GAP), cell, &read, &small,
                           &scratch));
        left--;
    }
done:
    image_free(&read);
    image_free(&small);
    resize_scratch_free(&scratch);
    free(filled);
    return status;
}
