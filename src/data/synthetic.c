/* synthetic.c - the built-in set as a data source: nothing to download, any size, by seed.
 * SPDX-License-Identifier: MIT
 *
 * Label i belongs to image i mod classes, so every split is balanced. Sets that fit into a quarter
 * of a gigabyte are drawn once, in parallel, when opened (10,000 images of 32 x 32 take well under
 * a second); larger ones are drawn on demand, by synthetic_draw.c. */
#include "data/synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "data/source.h"

enum { DRAW_BLOCK = 64 };
static const size_t kept_limit = (size_t)256 << 20;

typedef struct synthetic_state {
    uint64_t seed;
    int size;
    uint8_t *kept[DATA_SPLITS]; /* all images, or NULL */
} synthetic_state;

static int synthetic_label(const data_source *s, data_split split, size_t index)
{
    (void)split;
    return (int)(index % s->info.classes);
}

static size_t image_bytes(const synthetic_state *y)
{
    return (size_t)y->size * (size_t)y->size * 3;
}

static berlu_status synthetic_read(data_source *s, data_split split, size_t index, const image_request *request,
                                   image *out)
{
    const synthetic_state *y = s->state;
    image_part part = image_ask(request, y->size, y->size);
    if (y->kept[split])
        return image_copy_part(out, y->kept[split] + index * image_bytes(y), y->size, part);
    TRY(image_reserve(out, y->size, y->size));
    synthetic_draw(out->pixels, y->size, s->info.classes, y->seed, (int)split, index);
    image_crop_in_place(out, part);
    return BERLU_OK;
}

typedef struct draw_job {
    const data_source *source;
    data_split split;
} draw_job;

static void draw_block(void *context, size_t block)
{
    const draw_job *job = context;
    const synthetic_state *y = job->source->state;
    const data_info *info = &job->source->info;
    size_t end =
        (block + 1) * DRAW_BLOCK < info->images[job->split] ? (block + 1) * DRAW_BLOCK : info->images[job->split];
    for (size_t i = block * DRAW_BLOCK; i < end; i++)
        synthetic_draw(y->kept[job->split] + i * image_bytes(y), y->size, info->classes, y->seed, (int)job->split, i);
}

static berlu_status draw_all(data_source *s, int threads)
{
    synthetic_state *y = s->state;
    size_t total = (s->info.images[DATA_TRAIN] + s->info.images[DATA_TEST]) * image_bytes(y);
    if (total > kept_limit)
        return BERLU_OK;
    for (int split = 0; split < DATA_SPLITS; split++) {
        size_t bytes = s->info.images[split] * image_bytes(y);
        y->kept[split] = malloc(bytes);
        if (!y->kept[split])
            return berlu_fail_memory(bytes, "the synthetic set");
        draw_job job = {s, (data_split)split};
        threads_for(threads, (s->info.images[split] + DRAW_BLOCK - 1) / DRAW_BLOCK, draw_block, &job);
    }
    return BERLU_OK;
}

static berlu_status names_make(data_source *s)
{
    const char **names = ARENA_ARRAY(&s->memory, const char *, s->info.classes);
    if (!names)
        return BERLU_ERR_MEMORY;
    for (size_t k = 0; k < s->info.classes; k++) {
        char name[64];
        names[k] = arena_strdup(&s->memory, synthetic_class(s->info.classes, k, name, sizeof name));
        if (!names[k])
            return BERLU_ERR_MEMORY;
    }
    s->info.class_names = names;
    return BERLU_OK;
}

static berlu_status synthetic_open(data_source *s, const char *path, const data_options *o)
{
    static const double mean[3] = {0.50, 0.50, 0.50},
                        std[3] = {0.26, 0.26, 0.26}; /* measured over seed 0, to two digits */
    size_t classes = o->classes ? o->classes : 10, images = o->images ? o->images : 10000;
    int size = o->image_size ? o->image_size : 32;
    if (*path)
        return berlu_fail(BERLU_ERR_ARG, "synthetic:%s: the built-in set has no path", path);
    if (classes != 10 && classes != 100)
        return berlu_fail(BERLU_ERR_ARG, "synthetic: %zu classes; 10 or 100", classes);
    if (size < SYNTHETIC_SIDE_LEAST || size > SYNTHETIC_SIDE_MOST)
        return berlu_fail(BERLU_ERR_ARG, "synthetic: image size %d; %d to %d", size, SYNTHETIC_SIDE_LEAST,
                          SYNTHETIC_SIDE_MOST);
    if (images < classes || images > (size_t)1 << 32)
        return berlu_fail(BERLU_ERR_ARG, "synthetic: %zu images for %zu classes; at least one of each, at most 2^32",
                          images, classes);
    synthetic_state *y = s->state = calloc(1, sizeof *y);
    if (!y)
        return berlu_fail_memory(sizeof *y, "the synthetic set");
    y->seed = o->seed;
    y->size = size;
    s->info.images[DATA_TRAIN] = images;
    s->info.images[DATA_TEST] = (images + 4) / 5;
    s->info.classes = classes;
    s->info.width = s->info.height = size;
    memcpy(s->info.mean, mean, sizeof mean);
    memcpy(s->info.std, std, sizeof std);
    s->info.published = 1;
    TRY(names_make(s));
    return draw_all(s, o->threads);
}

static void synthetic_close(data_source *s)
{
    synthetic_state *y = s->state;
    for (int i = 0; y && i < DATA_SPLITS; i++)
        free(y->kept[i]);
    free(y);
}

const data_kind data_synthetic = {
    .name = "synthetic",
    .help = "the built-in set of textured shapes",
    .open = synthetic_open,
    .label = synthetic_label,
    .read = synthetic_read,
    .close = synthetic_close,
};
