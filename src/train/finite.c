/* finite.c - see finite.h. SPDX-License-Identifier: MIT */
#include "train/finite.h"

#include <math.h>
#include <stdlib.h>

berlu_status finite_look(engine *e, engine_array array, not_finite *out)
{
    const graph *g = engine_graph(e);
    *out = (not_finite){0};
    for (int p = 0; p < graph_param_count(g) && !out->bad; p++) {
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        size_t count = (size_t)tensor_elements(info);
        const float *values = engine_host(e, array, p);
        float *copy = values ? NULL : malloc((count + 1) * sizeof *copy);
        if (!values && !copy)
            return berlu_fail_memory(count * sizeof *copy, info->name);
        berlu_status status = values ? BERLU_OK : engine_get(e, array, p, copy);
        for (size_t i = 0; status == BERLU_OK && i < count; i++)
            out->bad += !isfinite((values ? values : copy)[i]);
        free(copy);
        if (status != BERLU_OK)
            return status;
        out->count = count;
        out->name = out->bad ? info->name : NULL;
    }
    return BERLU_OK;
}
