/* onnx.c - see onnx.h. SPDX-License-Identifier: MIT */
#include "models/onnx.h"

#include <stdio.h>

#include "graph/op.h"

/* BerLU of degree 2m as a function of x, alpha and eps, by the formula that stands in a graph
 * otherwise. */
static void function_add(text *functions, int m)
{
    char name[32] = "BerLU";
    onnx_body body = {.function = 1};
    if (m > 1)
        snprintf(name, sizeof name, "BerLU%d", 2 * m);
    onnx_name(&body, onnx_berlu(&body, "x", "alpha", "eps", m), "y");
    onnx_function(functions, name, ONNX_IN("x", "alpha", "eps"), "y", &body);
    onnx_free(&body);
}

static berlu_status file_write(const char *path, onnx_emitter *e, const onnx_options *options)
{
    const tensor_info *image = graph_tensor(e->g, graph_image(e->g)), *logits = graph_tensor(e->g, graph_logits(e->g));
    text functions = {0};
    onnx_name(&e->body, e->names[graph_logits(e->g)], "logits");
    for (int m = 1; e->degrees >> m; m++)
        if (e->degrees >> m & 1)
            function_add(&functions, m);
    onnx_model file = {.body = &e->body,
                       .input = {"image", image->size, image->rank},
                       .output = {"logits", logits->size, logits->rank},
                       .functions = &functions,
                       .metadata = options->metadata,
                       .texts = options->texts};
    berlu_status status = onnx_write(path, &file);
    text_free(&functions);
    return status;
}

berlu_status model_write_onnx(const char *path, const model *m, engine *weights, const onnx_options *options)
{
    onnx_emitter e = {.g = m->graph, .e = weights, .functions = options->functions};
    berlu_status status;
    e.names = ARENA_ARRAY(&e.body.memory, const char *, (size_t)graph_tensor_count(e.g));
    TRY_DONE(e.names ? BERLU_OK : BERLU_ERR_MEMORY);
    e.names[graph_image(e.g)] = "image";
    for (int i = 0; i < graph_node_count(e.g); i++)
        TRY_DONE(onnx_emit(&e, graph_node(e.g, i)));
    status = file_write(path, &e, options);
done:
    onnx_free(&e.body);
    return status;
}
