/* evaluate.c - see evaluate.h. SPDX-License-Identifier: MIT */
#include "train/evaluate.h"

static berlu_status batch_score(engine *e, const loader_batch *b, score *s)
{
    engine_borrow_input(e, b->images);
    berlu_status status = engine_forward(e, &(engine_step){0});
    if (status != BERLU_OK)
        return status;
    const tensor_info *answer = graph_tensor(engine_graph(e), graph_logits(engine_graph(e)));
    size_t classes = (size_t)tensor_channels(answer);
    const float *logits = engine_logits(e);
    if (!logits)
        return BERLU_ERR_DEVICE;
    for (size_t i = 0; i < b->count; i++)
        score_add(s, logits + i * classes, classes, (size_t)b->labels[i]);
    return BERLU_OK;
}

berlu_status evaluate(engine *e, loader *l, score *out, const atomic_int *stop,
                      void (*tick)(void *context, uint64_t images), void *context)
{
    const loader_batch *b;
    *out = (score){0};
    berlu_status status = loader_start(l, 0, 0);
    while (status == BERLU_OK && (status = loader_next(l, &b)) == BERLU_OK && b) {
        if (stop && *stop)
            return berlu_fail(BERLU_ERR_STOPPED, "stopped during an evaluation");
        status = batch_score(e, b, out);
        if (tick)
            tick(context, out->images);
    }
    return status;
}
