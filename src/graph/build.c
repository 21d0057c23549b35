/* build.c - the builder: one function per operation a model names. SPDX-License-Identifier: MIT
 *
 * Each fills a node and hands it to graph_add(), which asks the op's row for shapes; nothing is
 * checked twice. The few checks here concern the model's names, not an op. Read on: op_NAME.c for
 * the shape rules. */
#include <string.h>

#include "graph/graph_internal.h"

static tensor add1(graph *g, op_id op, int inputs, const tensor *in)
{
    node n = node_make(op, inputs, in);
    return graph_add(g, &n);
}

tensor build_image(graph *g, int channels, int height, int width)
{
    if (graph_failed(g))
        return TENSOR_NONE;
    if (g->image != TENSOR_NONE) {
        graph_fail(g, BERLU_ERR_ARG, "a graph has one image");
        return TENSOR_NONE;
    }
    g->image = graph_feed(g, "image", 1, 3, (int64_t[]){channels, height, width});
    return g->image;
}

tensor build_linear(graph *g, tensor x, tensor weight, tensor bias)
{
    return add1(g, OP_LINEAR, 3, (tensor[]){x, weight, bias});
}

tensor build_norm(graph *g, tensor x, tensor weight, tensor bias, float eps)
{
    node n = node_make(OP_NORM, 3, (tensor[]){x, weight, bias});
    n.attr.eps = eps;
    return graph_add(g, &n);
}

tensor build_attention(graph *g, tensor qkv, tensor v, int heads)
{
    node n = node_make(OP_ATTENTION, 2, (tensor[]){qkv, v});
    n.attr.heads = heads;
    return graph_add(g, &n);
}

/* The learned parameters of a site as parameters of the model. Decay 0: they are
 * one-dimensional. */
static void site_params(graph *g, node *n, int64_t channels, const char *name)
{
    const berlu_act *act = n->attr.act;
    for (size_t i = 0; i < berlu_act_param_count(act); i++) {
        berlu_act_param_info info;
        if (berlu_act_param(act, i, &info) != BERLU_OK || !info.learned)
            continue;
        if (n->attr.act_params == ACT_PARAMS) {
            graph_fail(g, BERLU_ERR_UNSUPPORTED, "%s: more than %d learned parameters", name, ACT_PARAMS);
            return;
        }
        tensor p = build_param(g, graph_name(g, "%s.%s", name, info.name), init_constant(info.value), 0, 1, &channels);
        if (p == TENSOR_NONE)
            return;
        g->tensors[p].activation = 1;
        g->tensors[p].low = (float)info.low; /* the update keeps eps in its range */
        n->in[1 + n->attr.act_params] = p;
        n->attr.act_param[n->attr.act_params++] = (int)i;
    }
}

tensor build_act(graph *g, tensor x, const berlu_act *act, int per_channel, const char *name)
{
    if (graph_failed(g))
        return TENSOR_NONE;
    if (!act || !graph_has(g, x)) {
        graph_fail(g, BERLU_ERR_ARG, "%s: %s", name, act ? "no input" : "no activation");
        return TENSOR_NONE;
    }
    node n = node_make(OP_ACT, 1, &x);
    n.attr.act = act;
    n.attr.site = g->site_count;
    int64_t channels = tensor_channels(&g->tensors[x]);
    site_params(g, &n, per_channel ? channels : 1, name);
    tensor y = graph_add(g, &n);
    if (y == TENSOR_NONE)
        return y;
    graph_site site = {.name = graph_name(g, "%s", name),
                       .act = act,
                       .channels = channels,
                       .values = tensor_elements(&g->tensors[x]),
                       .x = x,
                       .y = y,
                       .per_channel = per_channel};
    g->tensors[y].name = site.name;
    return graph_site_add(g, &site) < 0 ? TENSOR_NONE : y;
}

tensor build_unfold(graph *g, tensor image, unfold_spec spec)
{
    node n = node_make(OP_UNFOLD, 1, &image);
    n.attr.unfold = spec;
    n.attr.planar = image == g->image;
    return graph_add(g, &n);
}

tensor build_depthwise(graph *g, tensor x, tensor weight, tensor bias)
{
    return add1(g, OP_DEPTHWISE, 3, (tensor[]){x, weight, bias});
}

tensor build_tokens(graph *g, tensor x, tensor cls, tensor dist, tensor pos)
{
    return add1(g, OP_TOKENS, 4, (tensor[]){x, pos, cls, dist});
}

tensor build_pixel_pos(graph *g, tensor x, tensor pos)
{
    return add1(g, OP_PIXEL_POS, 2, (tensor[]){x, pos});
}

tensor build_reshape(graph *g, tensor x, int rank, const int64_t *size)
{
    if (graph_sizes_check(g, "reshape", rank, size) != BERLU_OK)
        return TENSOR_NONE;
    node n = node_make(OP_RESHAPE, 1, &x);
    n.attr.rank = rank;
    memcpy(n.attr.size, size, (size_t)rank * sizeof *size);
    return graph_add(g, &n);
}

tensor build_add(graph *g, tensor x, tensor branch)
{
    return add1(g, OP_ADD, 2, (tensor[]){x, branch});
}

tensor build_add_tokens(graph *g, tensor x, tensor branch, int skip)
{
    node n = node_make(OP_ADD_TOKENS, 2, (tensor[]){x, branch});
    n.attr.skip = skip;
    return graph_add(g, &n);
}

tensor build_scale(graph *g, tensor x, tensor gamma)
{
    return add1(g, OP_SCALE, 2, (tensor[]){x, gamma});
}

tensor build_mean(graph *g, tensor x)
{
    return add1(g, OP_MEAN, 1, &x);
}

tensor build_select(graph *g, tensor x, int token)
{
    node n = node_make(OP_SELECT, 1, &x);
    n.attr.skip = token;
    return graph_add(g, &n);
}

tensor build_average(graph *g, tensor a, tensor b)
{
    return add1(g, OP_AVERAGE, 2, (tensor[]){a, b});
}

static tensor random_add(graph *g, op_id op, tensor x, float rate, int groups)
{
    if (!(rate >= 0.0f && rate < 1.0f)) {
        graph_fail(g, BERLU_ERR_ARG, "%s: rate %g; from 0 to below 1 is possible", op_rules[op].name, (double)rate);
        return TENSOR_NONE;
    }
    if (rate == 0.0f)
        return x;
    node n = node_make(op, 1, &x);
    n.attr.rate = rate;
    n.attr.groups = groups;
    n.attr.site = g->random_count++;
    return graph_add(g, &n);
}

tensor build_dropout(graph *g, tensor x, float rate)
{
    return random_add(g, OP_DROPOUT, x, rate, 1);
}

tensor build_drop_path(graph *g, tensor x, float rate, int groups)
{
    return random_add(g, OP_DROP_PATH, x, rate, groups);
}

void build_output(graph *g, tensor head, tensor dist)
{
    if (graph_failed(g))
        return;
    if (!graph_has(g, head) || g->answer != TENSOR_NONE) {
        graph_fail(g, BERLU_ERR_ARG, "a graph has one answer, declared once, from an existing tensor");
        return;
    }
    g->head[0] = head;
    g->head[1] = dist;
    g->answer = dist == TENSOR_NONE ? head : build_average(g, head, dist);
}

/* ---- layers ---------------------------------------------------------------------------------- */

tensor layer_linear(graph *g, tensor x, int64_t outputs, int bias, const char *name)
{
    if (graph_failed(g) || !graph_has(g, x))
        return build_linear(g, x, TENSOR_NONE, TENSOR_NONE); /* says what is missing */
    int64_t inputs = tensor_channels(&g->tensors[x]);
    tensor w = build_param(g, graph_name(g, "%s.weight", name), INIT_TN02, 1, 2, (int64_t[]){outputs, inputs});
    tensor b = bias ? build_param(g, graph_name(g, "%s.bias", name), INIT_ZERO, 0, 1, &outputs) : TENSOR_NONE;
    tensor y = build_linear(g, x, w, b);
    if (y != TENSOR_NONE)
        g->tensors[y].name = graph_name(g, "%s", name);
    return y;
}

tensor layer_norm(graph *g, tensor x, float eps, const char *name)
{
    if (graph_failed(g) || !graph_has(g, x))
        return build_norm(g, x, TENSOR_NONE, TENSOR_NONE, eps); /* says what is missing */
    int64_t channels = tensor_channels(&g->tensors[x]);
    tensor w = build_param(g, graph_name(g, "%s.weight", name), INIT_ONE, 0, 1, &channels);
    tensor b = build_param(g, graph_name(g, "%s.bias", name), INIT_ZERO, 0, 1, &channels);
    tensor y = build_norm(g, x, w, b, eps);
    if (y != TENSOR_NONE)
        g->tensors[y].name = graph_name(g, "%s", name);
    return y;
}
