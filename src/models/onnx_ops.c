/* onnx_ops.c - every forward op of the graph in standard operators of ONNX.
 * SPDX-License-Identifier: MIT
 *
 * A batched tensor of shape [...] is [batch, ...] in the file; -1 stands for the batch in every
 * reshape. Windows (unfold) are not materialised: together with the linear layer after them they
 * are a convolution. Maps are channels last here and channels first in ONNX, so convolutions stand
 * between two transpositions, which runtimes remove. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "models/onnx.h"

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

static const tensor_info *info_at(const onnx_emitter *e, tensor t)
{
    return graph_tensor(e->g, t);
}

static const char *two(onnx_emitter *e, const char *op, const char *x, const char *y)
{
    return onnx_op(&e->body, op, ONNX_IN(x, y), NULL);
}

static const char *transposed(onnx_emitter *e, const char *x, const int64_t *order, size_t rank)
{
    return onnx_op(&e->body, "Transpose", ONNX_IN(x),
                   ONNX_ATTR({.name = "perm", .kind = ONNX_INTS, .ints = order, .count = rank}));
}

static const char *reshaped(onnx_emitter *e, const char *x, const int64_t *sizes, size_t rank)
{
    return two(e, "Reshape", x, onnx_integers(&e->body, sizes, rank));
}

/* [batch, size...] */
static const char *reshaped_like(onnx_emitter *e, const char *x, tensor t)
{
    const tensor_info *info = info_at(e, t);
    int64_t sizes[TENSOR_RANK + 1] = {-1};
    memcpy(sizes + 1, info->size, (size_t)info->rank * sizeof *sizes);
    return reshaped(e, x, sizes, (size_t)info->rank + 1);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static const float *values_at(const onnx_emitter *e, tensor t)
{
    return engine_host(e->e, ARRAY_WEIGHT, info_at(e, t)->parameter);
}

/* A parameter as it stands in the state dict, under its name; a tensor used twice is written
 * once. */
static const char *parameter(onnx_emitter *e, tensor t)
{
    const tensor_info *info = info_at(e, t);
    if (!e->names[t])
        e->names[t] = onnx_tensor(&e->body, info->name, values_at(e, t), info->size, info->rank);
    return e->names[t];
}

/* The same seen as a matrix and transposed, [columns, rows]: what MatMul takes. */
static const char *parameter_transposed(onnx_emitter *e, tensor t, int64_t rows)
{
    const float *from = values_at(e, t);
    int64_t columns = tensor_elements(info_at(e, t)) / rows;
    const char *name = arena_printf(&e->body.memory, "%s.transposed", info_at(e, t)->name);
    float *to = memory_aligned((size_t)(rows * columns) * sizeof *to, info_at(e, t)->name);
    if (!name || !to) {
        e->body.nodes.failed = 1;
        free(to);
        return "";
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
    onnx_tensor(&e->body, name, to, SIZES(columns, rows), 2);
    free(to);
    return name;
}

/* ---- products and convolutions --------------------------------------------------------------- */

static const char *convolved(onnx_emitter *e, const char *x, const node *n, int stride, int padding, int groups)
{
    const int64_t strides[] = {stride, stride}, pads[] = {padding, padding, padding, padding};
    const char *weight = parameter(e, n->in[1]), *bias = n->in[2] == TENSOR_NONE ? NULL : parameter(e, n->in[2]);
    return onnx_op(&e->body, "Conv", ONNX_IN(x, weight, bias),
                   ONNX_ATTR({.name = "strides", .kind = ONNX_INTS, .ints = strides, .count = 2},
                             {.name = "pads", .kind = ONNX_INTS, .ints = pads, .count = 4},
                             {.name = "group", .kind = ONNX_INT, .i = groups}));
}

/* TNT's windows: each tile padded by itself, or the whole image, and the result laid out tile by
 * tile. */
static const char *tiles_convolved(onnx_emitter *e, const node *n, const node *u)
{
    const tensor_info *image = info_at(e, u->in[0]), *out = info_at(e, n->out[0]);
    const unfold_spec *s = &u->attr.unfold;
    int64_t p = s->tile, down = image->size[1] / p, across = image->size[2] / p, colours = image->size[0];
    int64_t pixels = out->size[1], width = out->size[2], side = (int64_t)llround(sqrt((double)pixels));
    const char *x = e->names[u->in[0]];
    if (s->leak) {
        x = convolved(e, x, n, s->stride, s->padding, 1);
        x = reshaped(e, x, SIZES(-1, width, down, side, across, side), 6);
        return reshaped_like(e, transposed(e, x, SIZES(0, 2, 4, 3, 5, 1), 6), n->out[0]);
    }
    x = transposed(e, reshaped(e, x, SIZES(-1, colours, down, p, across, p), 6), SIZES(0, 2, 4, 1, 3, 5), 6);
    x = convolved(e, reshaped(e, x, SIZES(-1, colours, p, p), 4), n, s->stride, s->padding, 1);
    return transposed(e, reshaped(e, x, SIZES(-1, down * across, width, pixels), 4), SIZES(0, 1, 3, 2), 4);
}

static berlu_status emit_unfold(onnx_emitter *e, const node *n)
{
    (void)e, (void)n; /* by the layer after it */
    return BERLU_OK;
}

static berlu_status emit_linear(onnx_emitter *e, const node *n)
{
    int made_by = info_at(e, n->in[0])->producer;
    const node *u = made_by >= 0 ? graph_node(e->g, made_by) : NULL;
    const char *y, *x = e->names[n->in[0]];
    if (u && u->op == OP_UNFOLD && u->attr.unfold.tile) {
        y = tiles_convolved(e, n, u);
    } else if (u && u->op == OP_UNFOLD) {
        x = u->attr.planar ? e->names[u->in[0]] : transposed(e, e->names[u->in[0]], SIZES(0, 3, 1, 2), 4);
        x = convolved(e, x, n, u->attr.unfold.stride, u->attr.unfold.padding, 1);
        y = transposed(e, x, SIZES(0, 2, 3, 1), 4);
    } else {
        y = two(e, "MatMul", x, parameter_transposed(e, n->in[1], tensor_channels(info_at(e, n->out[0]))));
        if (n->in[2] != TENSOR_NONE)
            y = two(e, "Add", y, parameter(e, n->in[2]));
    }
    e->names[n->out[0]] = y;
    return BERLU_OK;
}

static berlu_status emit_depthwise(onnx_emitter *e, const node *n)
{
    const tensor_info *weight = info_at(e, n->in[1]);
    const char *x = transposed(e, e->names[n->in[0]], SIZES(0, 3, 1, 2), 4);
    x = convolved(e, x, n, 1, (int)weight->size[2] / 2, (int)weight->size[0]);
    e->names[n->out[0]] = transposed(e, x, SIZES(0, 2, 3, 1), 4);
    return BERLU_OK;
}

static berlu_status emit_norm(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = onnx_op(&e->body, "LayerNormalization",
                                  ONNX_IN(e->names[n->in[0]], parameter(e, n->in[1]), parameter(e, n->in[2])),
                                  ONNX_ATTR({.name = "axis", .kind = ONNX_INT, .i = -1},
                                            {.name = "epsilon", .kind = ONNX_FLOAT, .f = n->attr.eps}));
    return BERLU_OK;
}

/* ---- attention ------------------------------------------------------------------------------- */

static const char *taken(onnx_emitter *e, const char *x, int64_t index, int64_t axis)
{
    /* A list of one index keeps the axis; Reshape or a sum of the caller's drops it. */
    return onnx_op(&e->body, "Gather", ONNX_IN(x, onnx_integers(&e->body, &index, 1)),
                   ONNX_ATTR({.name = "axis", .kind = ONNX_INT, .i = axis}));
}

/* q, k or v out of x[..., T, parts D]: [groups, heads, T, d], or with `flip` [groups, heads, d, T].
 * Every dimension in front of the tokens is a group: the batch, and TNT's patches. */
static const char *heads_of(onnx_emitter *e, const char *x, int64_t tokens, int64_t heads, int64_t width, int64_t parts,
                            int64_t part, int flip)
{
    x = reshaped(e, x, SIZES(-1, tokens, parts, heads, width), 5);
    x = reshaped(e, taken(e, x, part, 2), SIZES(-1, tokens, heads, width), 4);
    return transposed(e, x, flip ? SIZES(0, 2, 3, 1) : SIZES(0, 2, 1, 3), 4);
}

static berlu_status emit_attention(onnx_emitter *e, const node *n)
{
    const tensor_info *out = info_at(e, n->out[0]);
    int64_t tokens = out->size[out->rank - 2], heads = n->attr.heads, width = tensor_channels(out) / heads;
    int joined = n->in[1] == TENSOR_NONE, parts = joined ? 3 : 2;
    const char *x = e->names[n->in[0]];
    const char *q = heads_of(e, x, tokens, heads, width, parts, 0, 0);
    const char *k = heads_of(e, x, tokens, heads, width, parts, 1, 1);
    const char *v = joined ? heads_of(e, x, tokens, heads, width, 3, 2, 0)
                           : heads_of(e, e->names[n->in[1]], tokens, heads, width, 1, 0, 0);
    q = two(e, "Mul", q, onnx_scalar(&e->body, 1 / sqrt((double)width)));
    const char *share = onnx_op(&e->body, "Softmax", ONNX_IN(two(e, "MatMul", q, k)),
                                ONNX_ATTR({.name = "axis", .kind = ONNX_INT, .i = -1}));
    const char *mixed = transposed(e, two(e, "MatMul", share, v), SIZES(0, 2, 1, 3), 4);
    e->names[n->out[0]] = reshaped_like(e, mixed, n->out[0]);
    return BERLU_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A token (1, 1, D) for every image of the batch that x has. */
static const char *token_for(onnx_emitter *e, tensor token, const char *x, int64_t width)
{
    const char *batch =
        onnx_op(&e->body, "Shape", ONNX_IN(x),
                ONNX_ATTR({.name = "start", .kind = ONNX_INT, .i = 0}, {.name = "end", .kind = ONNX_INT, .i = 1}));
    const char *sizes = onnx_op(&e->body, "Concat", ONNX_IN(batch, onnx_integers(&e->body, SIZES(1, width), 2)),
                                ONNX_ATTR({.name = "axis", .kind = ONNX_INT, .i = 0}));
    return two(e, "Expand", parameter(e, token), sizes);
}

static berlu_status emit_tokens(onnx_emitter *e, const node *n)
{
    const tensor_info *out = info_at(e, n->out[0]);
    int64_t width = out->size[1], extra = (n->in[2] != TENSOR_NONE) + (n->in[3] != TENSOR_NONE);
    const char *x = reshaped(e, e->names[n->in[0]], SIZES(-1, out->size[0] - extra, width), 3), *list[4] = {0};
    int count = 0;
    for (int i = 2; i < 4; i++)
        if (n->in[i] != TENSOR_NONE)
            list[count++] = token_for(e, n->in[i], x, width);
    list[count] = x;
    if (count)
        x = onnx_op(&e->body, "Concat", list, ONNX_ATTR({.name = "axis", .kind = ONNX_INT, .i = 1}));
    e->names[n->out[0]] = two(e, "Add", x, parameter(e, n->in[1]));
    return BERLU_OK;
}

/* The table (1, d, q, q) is added as [q q, d]. */
static berlu_status emit_pixel_pos(onnx_emitter *e, const node *n)
{
    int64_t width = tensor_channels(info_at(e, n->in[0]));
    e->names[n->out[0]] = two(e, "Add", e->names[n->in[0]], parameter_transposed(e, n->in[1], width));
    return BERLU_OK;
}

/* Zeros for the first tokens, so that the branch is as long as x. */
static berlu_status emit_add_tokens(onnx_emitter *e, const node *n)
{
    const tensor_info *x = info_at(e, n->in[0]);
    const char *branch = reshaped(e, e->names[n->in[1]], SIZES(-1, x->size[0] - n->attr.skip, x->size[1]), 3);
    branch = two(e, "Pad", branch, onnx_integers(&e->body, SIZES(0, n->attr.skip, 0, 0, 0, 0), 6));
    e->names[n->out[0]] = two(e, "Add", e->names[n->in[0]], branch);
    return BERLU_OK;
}

static berlu_status emit_select(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = reshaped_like(e, taken(e, e->names[n->in[0]], n->attr.skip, 1), n->out[0]);
    return BERLU_OK;
}

/* ---- the small ones -------------------------------------------------------------------------- */

static berlu_status emit_reshape(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = reshaped_like(e, e->names[n->in[0]], n->out[0]);
    return BERLU_OK;
}

static berlu_status emit_add(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = two(e, "Add", e->names[n->in[0]], e->names[n->in[1]]);
    return BERLU_OK;
}

static berlu_status emit_scale(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = two(e, "Mul", e->names[n->in[0]], parameter(e, n->in[1]));
    return BERLU_OK;
}

static berlu_status emit_mean(onnx_emitter *e, const node *n)
{
    static const int64_t axes[] = {1, 2, 3};
    const tensor_info *x = info_at(e, n->in[0]);
    e->names[n->out[0]] =
        onnx_op(&e->body, "ReduceMean", ONNX_IN(e->names[n->in[0]]),
                ONNX_ATTR({.name = "axes", .kind = ONNX_INTS, .ints = axes, .count = (size_t)x->rank - 1},
                          {.name = "keepdims", .kind = ONNX_INT, .i = 0}));
    return BERLU_OK;
}

static berlu_status emit_average(onnx_emitter *e, const node *n)
{
    const char *sum = two(e, "Add", e->names[n->in[0]], e->names[n->in[1]]);
    e->names[n->out[0]] = two(e, "Mul", sum, onnx_scalar(&e->body, 0.5));
    return BERLU_OK;
}

static berlu_status emit_nothing(onnx_emitter *e, const node *n)
{
    e->names[n->out[0]] = e->names[n->in[0]]; /* random ops are the identity outside of training */
    return BERLU_OK;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* BerLU as a node of its function; NULL where the activation is something else. */
static const char *berlu_call(onnx_emitter *e, const berlu_act *act, const char *x, const char *const *params)
{
    const char *spec = berlu_act_spec(act);
    if (!e->functions || strcmp(berlu_act_name(act), "berlu") != 0 || strstr(spec, "scale=") || strstr(spec, "center="))
        return NULL;
    int m = onnx_half_degree(act);
    const char *name = m == 1 ? "BerLU" : arena_printf(&e->body.memory, "BerLU%d", 2 * m);
    e->degrees |= 1u << m;
    e->body.nodes.failed |= !name;
    return name ? onnx_call(&e->body, name, ONNX_IN(x, params[0], params[1])) : "";
}

static berlu_status emit_act(onnx_emitter *e, const node *n)
{
    const berlu_act *act = n->attr.act;
    const char *params[BERLU_ACT_PARAMS + 1] = {0}, *x = e->names[n->in[0]];
    for (int i = 0; i < n->attr.act_params; i++)
        params[n->attr.act_param[i]] = parameter(e, n->in[1 + i]);
    for (size_t i = 0; i < berlu_act_param_count(act); i++) {
        berlu_act_param_info info;
        if (!params[i] && berlu_act_param(act, i, &info) == BERLU_OK)
            params[i] = onnx_scalar(&e->body, info.value);
    }
    const char *y = berlu_call(e, act, x, params);
    if (!y)
        y = onnx_act(&e->body, act, x, params);
    e->names[n->out[0]] = y;
    return y ? BERLU_OK : BERLU_ERR_UNSUPPORTED;
}

static berlu_status (*const emitters[OP_COUNT])(onnx_emitter *e, const node *n) = {
    [OP_LINEAR] = emit_linear,
    [OP_NORM] = emit_norm,
    [OP_ATTENTION] = emit_attention,
    [OP_ACT] = emit_act,
    [OP_UNFOLD] = emit_unfold,
    [OP_DEPTHWISE] = emit_depthwise,
    [OP_TOKENS] = emit_tokens,
    [OP_PIXEL_POS] = emit_pixel_pos,
    [OP_RESHAPE] = emit_reshape,
    [OP_ADD] = emit_add,
    [OP_ADD_TOKENS] = emit_add_tokens,
    [OP_SCALE] = emit_scale,
    [OP_MEAN] = emit_mean,
    [OP_SELECT] = emit_select,
    [OP_AVERAGE] = emit_average,
    [OP_DROPOUT] = emit_nothing,
    [OP_DROP_PATH] = emit_nothing,
};

berlu_status onnx_emit(onnx_emitter *e, const node *n)
{
    if (!emitters[n->op])
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "the op %s has no form in ONNX", op_rules[n->op].name);
    return emitters[n->op](e, n);
}
