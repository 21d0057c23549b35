/* subset.c - chooses a class-balanced subset. SPDX-License-Identifier: MIT
 *
 * Count the images of each class, find the quotas (fill all classes to one level, as with water),
 * then go through the fixed random order and take an image while its class has quota left. */
#include "train/subset.h"

#include <stdlib.h>

#include "data/permute.h"

/* A part of a split as a range of positions in the shuffled order: a holdout is its first N
 * positions (loader_plan.c). */
typedef struct part_range {
    permutation order;
    uint64_t first, count;
} part_range;

static part_range part_of(const data_source *data, data_split split, loader_part part, size_t holdout)
{
    uint64_t all = data_describe(data)->images[split];
    part_range r = {.order = {all, 0, PURPOSE_HOLDOUT, 0}, .first = 0, .count = all};
    if (part == PART_KEPT)
        r.first = holdout, r.count = all - holdout;
    if (part == PART_HELD)
        r.count = holdout;
    return r;
}

/* Chooses the number of images per class, as equal as possible, the first classes getting one more.
 * On entry quota[c] is the number available. */
static void quotas_find(uint64_t *quota, size_t classes, uint64_t wanted)
{
    uint64_t level = 0, left = wanted;
    for (;;) { /* raise the level of all classes that have more images */
        uint64_t open = 0, step = UINT64_MAX;
        for (size_t c = 0; c < classes; c++)
            if (quota[c] > level) {
                open++;
                step = quota[c] - level < step ? quota[c] - level : step;
            }
        if (open == 0 || left < open * step) {
            step = open ? left / open : 0;
            left -= open * step;
            level += step;
            break;
        }
        left -= open * step;
        level += step;
    }
    for (size_t c = 0; c < classes; c++)
        if (quota[c] > level) {
            quota[c] = level + (left > 0);
            left -= left > 0;
        }
}

static int by_index(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

berlu_status subset_choose(uint64_t **out, const data_source *data, data_split split, loader_part part, size_t holdout,
                           size_t wanted, const char *setting)
{
    part_range range = part_of(data, split, part, holdout);
    size_t classes = data_describe(data)->classes, taken = 0;
    if (wanted > range.count)
        return berlu_fail(BERLU_ERR_ARG, "%s: %zu, but there are only %llu; make it smaller or leave it out", setting,
                          wanted, (unsigned long long)range.count);
    uint64_t *quota = calloc(classes + 1, sizeof *quota), *list = malloc((wanted + 1) * sizeof *list);
    if (!quota || !list) {
        free(quota);
        free(list);
        return berlu_fail_memory((wanted + 1) * sizeof *list, setting);
    }
    for (uint64_t i = 0; i < range.count; i++)
        quota[data_label(data, split, permutation_at(&range.order, range.first + i))]++;
    quotas_find(quota, classes, wanted);
    for (uint64_t i = 0; i < range.count && taken < wanted; i++) {
        uint64_t index = permutation_at(&range.order, range.first + i);
        uint64_t *left = &quota[data_label(data, split, index)];
        if (*left > 0)
            list[taken++] = index, (*left)--;
    }
    qsort(list, taken, sizeof *list, by_index);
    free(quota);
    *out = list;
    return BERLU_OK;
}
