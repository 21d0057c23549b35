/* evaluate.c - see evaluate.h. SPDX-License-Identifier: MIT */
#include "train/evaluate.h"

#include <string.h>

#include "train/network.h"

/* Unreadable images are missing from a batch, so bits are found by its indices. */
static void bit_set(unsigned char *correct, const loader *l, const loader_batch *b, size_t row, uint64_t *position,
                    int right)
{
    while (loader_index_at(l, 0, *position) != b->indices[row])
        ++*position;
    if (right)
        correct[*position / 8] |= (unsigned char)(1u << (*position % 8));
    ++*position;
}

static berlu_status batch_score(engine *e, const loader *l, const loader_batch *b, score *s, unsigned char *correct)
{
    uint64_t position = b->number * b->rows;
    network_feed(e, b);
    TRY(engine_forward(e, &(engine_step){0}));
    const tensor_info *answer = graph_tensor(engine_graph(e), graph_logits(engine_graph(e)));
    size_t classes = (size_t)tensor_channels(answer);
    const float *logits = engine_logits(e);
    if (!logits)
        return BERLU_ERR_DEVICE;
    for (size_t i = 0; i < b->count; i++) {
        uint64_t before = s->top1;
        score_add(s, logits + i * classes, classes, (size_t)b->labels[i]);
        if (correct)
            bit_set(correct, l, b, i, &position, s->top1 > before);
    }
    return BERLU_OK;
}

berlu_status evaluate(engine *e, loader *l, score *out, unsigned char *correct, const atomic_int *stop,
                      void (*tick)(void *context, uint64_t images), void *context)
{
    const loader_batch *b;
    *out = (score){0};
    if (correct)
        memset(correct, 0, (loader_images(l) + 7) / 8);
    TRY(loader_start(l, 0, 0));
    for (;;) {
        TRY(loader_next(l, &b));
        if (!b)
            return BERLU_OK;
        if (stop && *stop)
            return berlu_fail(BERLU_ERR_STOPPED, "stopped during an evaluation");
        TRY(batch_score(e, l, b, out, correct));
        if (tick)
            tick(context, out->images);
    }
}
