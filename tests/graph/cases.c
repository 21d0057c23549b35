/* cases.c - see cases.h. SPDX-License-Identifier: MIT */
#include "graph/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"

enum { SIDE = 8, PATCH = 4, TOKENS = 4, WIDTH = 6, CLASSES = 5 };

static tensor param(graph *g, const char *name, int rank, const int64_t *size)
{
    return build_param(g, name, INIT_TN02, 1, rank, size);
}

/* image -> patches -> linear: [2, 2, width] */
static tensor stem(graph *g, int64_t width)
{
    tensor x = build_unfold(g, build_image(g, 3, SIDE, SIDE), (unfold_spec){.kernel = PATCH, .stride = PATCH});
    tensor w = param(g, "stem.weight", 4, (int64_t[]){width, 3, PATCH, PATCH});
    return build_linear(g, x, w, param(g, "stem.bias", 1, &width));
}

static tensor words(graph *g, int64_t width)
{
    return build_reshape(g, stem(g, width), 2, (int64_t[]){TOKENS, width});
}

static void head(graph *g, tensor x)
{
    build_output(g, layer_linear(g, x, CLASSES, WITH_BIAS, "head"), TENSOR_NONE);
}

static void pooled_head(graph *g, tensor x)
{
    head(g, build_mean(g, x));
}

static void case_act(graph *g, const berlu_act *act)
{
    tensor x = build_act(g, layer_linear(g, words(g, WIDTH), 7, WITH_BIAS, "fc1"), act, 0, "act");
    pooled_head(g, layer_linear(g, x, WIDTH, WITH_BIAS, "fc2"));
}

static void case_act_channel(graph *g, const berlu_act *act)
{
    tensor x = build_act(g, layer_linear(g, words(g, WIDTH), 7, WITH_BIAS, "fc1"), act, 1, "act");
    pooled_head(g, layer_linear(g, x, WIDTH, NO_BIAS, "fc2"));
}

static void case_act_dropout(graph *g, const berlu_act *act)
{
    tensor x = build_act(g, layer_linear(g, words(g, WIDTH), 7, WITH_BIAS, "fc1"), act, 0, "act");
    x = build_dropout(g, x, 0.3f);
    pooled_head(g, layer_linear(g, x, WIDTH, WITH_BIAS, "fc2"));
}

static void case_act_after_norm(graph *g, const berlu_act *act)
{
    tensor x = build_act(g, layer_norm(g, words(g, WIDTH), 1e-5f, "norm"), act, 0, "act");
    pooled_head(g, layer_linear(g, x, WIDTH, WITH_BIAS, "fc"));
}

static void case_norm_residual(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = words(g, WIDTH);
    x = build_add(g, x, layer_linear(g, layer_norm(g, x, 1e-6f, "norm1"), WIDTH, WITH_BIAS, "fc1"));
    x = build_add(g, x, layer_linear(g, layer_norm(g, x, 1e-6f, "norm2"), WIDTH, NO_BIAS, "fc2"));
    pooled_head(g, x);
}

static void case_attention(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = words(g, WIDTH);
    tensor a = build_attention(g, layer_linear(g, x, 3 * WIDTH, WITH_BIAS, "qkv"), TENSOR_NONE, 2);
    pooled_head(g, build_add(g, x, layer_linear(g, a, WIDTH, WITH_BIAS, "proj")));
}

/* 13 x 13 tokens: more than one block of queries. */
static void case_attention_many(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t width = 4;
    tensor x = build_unfold(g, build_image(g, 3, 13, 13), (unfold_spec){.kernel = 1, .stride = 1});
    x = build_linear(g, x, param(g, "stem.weight", 4, (int64_t[]){width, 3, 1, 1}), param(g, "stem.bias", 1, &width));
    x = build_reshape(g, x, 2, (int64_t[]){169, width});
    tensor a = build_attention(g, layer_linear(g, x, 3 * width, WITH_BIAS, "qkv"), TENSOR_NONE, 2);
    pooled_head(g, build_add(g, x, layer_linear(g, a, width, WITH_BIAS, "proj")));
}

/* Heads of 11 channels: more than the kernel for few tokens moves at once. */
static void case_attention_wide(graph *g, const berlu_act *act)
{
    (void)act;
    tensor qkv = layer_linear(g, words(g, WIDTH), 3 * 22, WITH_BIAS, "qkv");
    pooled_head(g, layer_linear(g, build_attention(g, qkv, TENSOR_NONE, 2), WIDTH, WITH_BIAS, "proj"));
}

/* 529 rows an image, a few numbers each: several blocks in every product, and weight gradients cut
 * along the batch. */
static void case_long_rows(graph *g, const berlu_act *act)
{
    int64_t width = 5;
    tensor x = build_unfold(g, build_image(g, 3, 23, 23), (unfold_spec){.kernel = 1, .stride = 1});
    x = build_linear(g, x, param(g, "stem.weight", 4, (int64_t[]){width, 3, 1, 1}), param(g, "stem.bias", 1, &width));
    x = build_act(g, layer_linear(g, x, 7, WITH_BIAS, "fc1"), act, 0, "act");
    pooled_head(g, layer_linear(g, x, width, NO_BIAS, "fc2"));
}

/* Wider than a chain takes: products that turn their weight first, its outputs no multiple of a
 * strip, over several blocks. */
static void case_wide_rows(graph *g, const berlu_act *act)
{
    int64_t width = 5;
    tensor x = build_unfold(g, build_image(g, 3, 9, 9), (unfold_spec){.kernel = 1, .stride = 1});
    x = build_linear(g, x, param(g, "stem.weight", 4, (int64_t[]){width, 3, 1, 1}), param(g, "stem.bias", 1, &width));
    x = build_act(g, layer_linear(g, x, 133, WITH_BIAS, "fc1"), act, 0, "act");
    pooled_head(g, layer_linear(g, x, width, WITH_BIAS, "fc2"));
}

/* 588 rows, and layers of 544 inputs, an even number of cache lines: products of the backward copy
 * their weight to rows further apart, before a slope and without one. */
static void case_wide_inputs(graph *g, const berlu_act *act)
{
    int64_t width = 5;
    tensor x = build_unfold(g, build_image(g, 3, 14, 14), (unfold_spec){.kernel = 1, .stride = 1});
    x = build_linear(g, x, param(g, "stem.weight", 4, (int64_t[]){width, 3, 1, 1}), param(g, "stem.bias", 1, &width));
    x = build_act(g, layer_linear(g, x, 544, WITH_BIAS, "fc1"), act, 0, "act");
    x = layer_linear(g, layer_linear(g, x, width, WITH_BIAS, "fc2"), 544, WITH_BIAS, "fc3");
    pooled_head(g, layer_linear(g, x, width, NO_BIAS, "fc4"));
}

static void case_attention_apart(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = layer_norm(g, words(g, WIDTH), 1e-5f, "norm");
    tensor qk = layer_linear(g, x, 2 * WIDTH, NO_BIAS, "qk"), v = layer_linear(g, x, WIDTH, NO_BIAS, "v");
    pooled_head(g, layer_linear(g, build_attention(g, qk, v, 3), WIDTH, WITH_BIAS, "proj"));
}

static void case_tokens(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t one[] = {1, 1, WIDTH}, all[] = {1, TOKENS + 2, WIDTH};
    tensor cls = param(g, "cls_token", 3, one), pos = param(g, "pos_embed", 3, all),
           dist = param(g, "dist_token", 3, one);
    tensor x = layer_norm(g, build_tokens(g, stem(g, WIDTH), cls, dist, pos), 1e-6f, "norm");
    tensor a = build_attention(g, layer_linear(g, x, 3 * WIDTH, WITH_BIAS, "qkv"), TENSOR_NONE, 1);
    tensor first = layer_linear(g, build_select(g, a, 0), CLASSES, WITH_BIAS, "head");
    build_output(g, first, layer_linear(g, build_select(g, a, 1), CLASSES, WITH_BIAS, "head_dist"));
}

/* TNT in small: two streams that meet. */
static void case_streams(graph *g, int leak)
{
    int64_t pos_size[] = {1, 3, 2, 2}, one[] = {1, 1, WIDTH}, all[] = {1, TOKENS + 1, WIDTH}, width = 3;
    tensor cls = param(g, "cls_token", 3, one), patch_pos = param(g, "patch_pos", 3, all);
    tensor pixel_pos = param(g, "pixel_pos", 4, pos_size);
    tensor rows = build_unfold(g, build_image(g, 3, SIDE, SIDE), (unfold_spec){7, 2, 3, PATCH, leak});
    tensor w = param(g, "pixel.weight", 4, (int64_t[]){width, 3, 7, 7});
    tensor pixels = build_pixel_pos(g, build_linear(g, rows, w, param(g, "pixel.bias", 1, &width)), pixel_pos);
    tensor flat = build_reshape(g, pixels, 2, (int64_t[]){TOKENS, 4 * width});
    tensor x = build_tokens(g, layer_linear(g, layer_norm(g, flat, 1e-5f, "norm1"), WIDTH, WITH_BIAS, "proj"), cls,
                            TENSOR_NONE, patch_pos);
    tensor inner = layer_linear(g, layer_norm(g, pixels, 1e-5f, "norm_in"), 3 * width, NO_BIAS, "inner");
    pixels = build_add(g, pixels, build_drop_path(g, build_attention(g, inner, TENSOR_NONE, 1), 0.25f, TOKENS));
    flat = build_reshape(g, pixels, 2, (int64_t[]){TOKENS, 4 * width});
    x = build_add_tokens(g, x, layer_linear(g, flat, WIDTH, NO_BIAS, "proj2"), 1);
    head(g, build_select(g, layer_norm(g, x, 1e-5f, "norm"), 0));
}

static void case_tnt(graph *g, const berlu_act *act)
{
    (void)act;
    case_streams(g, 0);
}

static void case_tnt_legacy(graph *g, const berlu_act *act)
{
    (void)act;
    case_streams(g, 1);
}

/* ConvNeXt in small: stem 1x1, a block, a downsampling that cuts a row and a column (7 -> 3), a
 * block. */
static tensor convnext_block(graph *g, tensor x, int64_t width, int kernel, const berlu_act *act, const char *name)
{
    tensor gamma = param(g, graph_name(g, "%s.gamma", name), 1, &width);
    tensor w = param(g, graph_name(g, "%s.dw.weight", name), 4, (int64_t[]){width, 1, kernel, kernel});
    tensor y = build_depthwise(g, x, w, param(g, graph_name(g, "%s.dw.bias", name), 1, &width));
    y = layer_norm(g, y, 1e-6f, graph_name(g, "%s.norm", name));
    y = build_act(g, layer_linear(g, y, 2 * width, WITH_BIAS, graph_name(g, "%s.fc1", name)), act, 0,
                  graph_name(g, "%s.act", name));
    y = build_scale(g, layer_linear(g, y, width, WITH_BIAS, graph_name(g, "%s.fc2", name)), gamma);
    return build_add(g, x, build_drop_path(g, y, kernel == 7 ? 0.0f : 0.4f, 1));
}

static void case_convnext(graph *g, const berlu_act *act)
{
    int64_t width = 5, wide = 7;
    tensor x = build_unfold(g, build_image(g, 3, 7, 7), (unfold_spec){.kernel = 1, .stride = 1});
    x = build_linear(g, x, param(g, "stem.weight", 4, (int64_t[]){width, 3, 1, 1}), param(g, "stem.bias", 1, &width));
    x = convnext_block(g, layer_norm(g, x, 1e-6f, "stem.norm"), width, 7, act, "block0");
    x = build_unfold(g, layer_norm(g, x, 1e-6f, "down.norm"), (unfold_spec){.kernel = 2, .stride = 2});
    x = build_linear(g, x, param(g, "down.weight", 4, (int64_t[]){wide, width, 2, 2}), param(g, "down.bias", 1, &wide));
    x = convnext_block(g, x, wide, 3, act, "block1");
    head(g, layer_norm(g, build_mean(g, x), 1e-6f, "head.norm"));
}

/* LayerScale of a layer without bias, of a layer that shares its weight and of one whose output is
 * read elsewhere too; one factor serves two of them. */
static void case_factors(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t width = WIDTH;
    tensor x = words(g, WIDTH), w = param(g, "fc.weight", 2, (int64_t[]){WIDTH, WIDTH});
    tensor gamma = param(g, "gamma", 1, &width), second = param(g, "second", 1, &width);
    x = build_add(g, x, build_scale(g, build_linear(g, x, w, TENSOR_NONE), gamma));
    tensor u = layer_linear(g, x, WIDTH, WITH_BIAS, "fc2");
    x = build_add(g, layer_norm(g, u, 1e-5f, "norm1"), build_scale(g, u, gamma));
    tensor n = layer_norm(g, x, 1e-5f, "norm3"); /* whose gradient recomputes it for the layer's weights */
    x = build_add(g, x, build_scale(g, build_linear(g, n, w, param(g, "fc.bias", 1, &width)), second));
    head(g, build_select(g, layer_norm(g, x, 1e-5f, "norm2"), 1));
}

/* ---- where passes have to look twice --------------------------------------------------------- */

/* What goes into the activation is read before the activation reads it. */
static void case_layer_read_before_act(graph *g, const berlu_act *act)
{
    tensor u = layer_linear(g, words(g, WIDTH), 7, WITH_BIAS, "fc1");
    tensor n = layer_norm(g, u, 1e-6f, "norm");
    tensor y = build_act(g, u, act, 0, "act");
    pooled_head(g, build_add(g, layer_linear(g, y, 7, WITH_BIAS, "fc2"), n));
}

/* Two norms with one weight: their gradients meet in a sum that stands before the one of their
 * input, which x's mean brings. */
static void case_norm_shared(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t width = WIDTH;
    tensor x = words(g, WIDTH), m = layer_linear(g, build_mean(g, x), WIDTH, WITH_BIAS, "fc1");
    tensor w = param(g, "norm.weight", 1, &width), b = param(g, "norm.bias", 1, &width);
    tensor y = build_norm(g, x, w, b, 1e-5f);
    y = build_norm(g, layer_linear(g, y, WIDTH, WITH_BIAS, "fc2"), w, b, 1e-5f);
    head(g, build_add(g, m, build_mean(g, layer_linear(g, y, WIDTH, WITH_BIAS, "fc3"))));
}

/* The residual is the layer's own input. */
static void case_layer_and_its_input(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = words(g, 37);
    pooled_head(g, build_add(g, x, layer_linear(g, x, 37, WITH_BIAS, "fc")));
}

/* MLPs with a residual: a norm behind the first alone. Two layers read the activations of the third,
 * and another layer what goes into those of the last. */
static void case_mlps(graph *g, const berlu_act *act)
{
    tensor x = words(g, WIDTH), h;
    h = build_act(g, layer_linear(g, layer_norm(g, x, 1e-6f, "norm1"), 9, WITH_BIAS, "fc1"), act, 0, "act1");
    x = build_add(g, x, layer_linear(g, h, WIDTH, WITH_BIAS, "fc2"));
    h = build_act(g, layer_linear(g, layer_norm(g, x, 1e-6f, "norm2"), 10, NO_BIAS, "fc3"), act, 0, "act2");
    x = build_add(g, x, layer_linear(g, h, WIDTH, NO_BIAS, "fc4"));
    h = build_act(g, layer_linear(g, x, 11, WITH_BIAS, "fc5"), act, 0, "act3");
    x = build_add(g, x, layer_linear(g, h, WIDTH, WITH_BIAS, "fc6"));
    x = build_add(g, x, layer_linear(g, h, WIDTH, WITH_BIAS, "fc7"));
    tensor u = layer_linear(g, x, 12, WITH_BIAS, "fc8");
    x = build_add(g, x, layer_linear(g, build_act(g, u, act, 0, "act4"), WIDTH, WITH_BIAS, "fc9"));
    x = build_add(g, x, layer_linear(g, u, WIDTH, WITH_BIAS, "fc10"));
    pooled_head(g, x);
}

static void case_answer_selected(graph *g, const berlu_act *act)
{
    (void)act;
    build_output(g, build_select(g, layer_linear(g, words(g, WIDTH), CLASSES, WITH_BIAS, "head"), 2), TENSOR_NONE);
}

static void case_answers_selected(graph *g, const berlu_act *act)
{
    (void)act;
    tensor a = layer_linear(g, words(g, WIDTH), WIDTH, WITH_BIAS, "fc");
    tensor first = layer_linear(g, a, CLASSES, WITH_BIAS, "head"), second = layer_norm(g, first, 1e-5f, "norm");
    build_output(g, build_select(g, first, 0), build_select(g, second, 3));
}

/* One token under another shape: the view follows when the selection moves. */
static void case_token_reshaped(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t classes = CLASSES;
    tensor x = layer_norm(g, layer_linear(g, words(g, WIDTH), WIDTH, WITH_BIAS, "fc"), 1e-5f, "norm");
    x = build_reshape(g, build_select(g, x, 1), 2, (int64_t[]){1, WIDTH});
    x = build_reshape(g, layer_linear(g, x, CLASSES, WITH_BIAS, "head"), 1, &classes);
    build_output(g, x, TENSOR_NONE);
}

static void case_answer_dropped(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = layer_linear(g, build_mean(g, words(g, WIDTH)), CLASSES, WITH_BIAS, "head");
    build_output(g, build_dropout(g, x, 0.4f), TENSOR_NONE);
}

static void case_dropped_reshaped(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = build_reshape(g, build_dropout(g, stem(g, WIDTH), 0.4f), 2, (int64_t[]){TOKENS, WIDTH});
    x = build_reshape(g, x, 3, (int64_t[]){2, 2, WIDTH});
    pooled_head(g, layer_norm(g, x, 1e-5f, "norm"));
}

/* Every token is a group of its own: a selection must not pass, for the draw belongs to the token's
 * place. */
static void case_token_of_groups(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = layer_linear(g, words(g, WIDTH), WIDTH, WITH_BIAS, "fc");
    head(g, build_select(g, build_drop_path(g, x, 0.25f, TOKENS), 1));
}

static void case_token_behind_groups(graph *g, const berlu_act *act)
{
    (void)act;
    tensor x = layer_linear(g, words(g, WIDTH), WIDTH, WITH_BIAS, "fc");
    head(g, build_select(g, layer_norm(g, build_drop_path(g, x, 0.25f, TOKENS), 1e-5f, "norm"), 1));
}

#define TRAIN      .mode = ENGINE_TRAIN, .batch = 3
#define PLAIN_LOSS TRAIN, .loss = LOSS_CROSS_ENTROPY
static const engine_bound alpha_bound = {"alpha", 0.001f, INFINITY};

const graph_case graph_cases[] = {
    {"identity", case_act, "identity", {PLAIN_LOSS}},
    {"relu", case_act, "relu", {PLAIN_LOSS}},
    {"leaky_relu", case_act, "leaky_relu:alpha=0.2", {PLAIN_LOSS}},
    {"prelu", case_act, "prelu", {PLAIN_LOSS}},
    {"relu6", case_act, "relu6", {PLAIN_LOSS}},
    {"hard_tanh", case_act, "hard_tanh", {PLAIN_LOSS}},
    {"hard_sigmoid", case_act, "hard_sigmoid", {PLAIN_LOSS}},
    {"hard_swish", case_act, "hard_swish", {PLAIN_LOSS}},
    {"elu", case_act, "elu:learn=alpha", {PLAIN_LOSS}},
    {"celu", case_act, "celu:alpha=0.7,learn=alpha", {PLAIN_LOSS}},
    {"selu", case_act, "selu", {PLAIN_LOSS}},
    {"gelu", case_act, "gelu", {PLAIN_LOSS}},
    {"gelu_tanh", case_act, "gelu_tanh", {PLAIN_LOSS}},
    {"silu", case_act, "silu", {PLAIN_LOSS}},
    {"quick_gelu", case_act, "quick_gelu", {PLAIN_LOSS}},
    {"softplus", case_act, "softplus", {PLAIN_LOSS}},
    {"sigmoid", case_act, "sigmoid", {PLAIN_LOSS}},
    {"tanh", case_act, "tanh", {PLAIN_LOSS}},
    {"mish", case_act, "mish", {PLAIN_LOSS}},
    {"smelu", case_act, "smelu", {PLAIN_LOSS}},
    {"berlu, alpha and eps learned", case_act, "berlu:alpha=0.1,eps=0.5,learn=alpha+eps", {PLAIN_LOSS}},
    {"berlu per channel", case_act_channel, "berlu:alpha=0.1,eps=0.5,learn=alpha+eps", {PLAIN_LOSS}},
    {"berlu degree 4, both kept", case_act, "berlu:alpha=0.1,eps=0.5,degree=4", {PLAIN_LOSS, .keep = KEEP_BOTH}},
    {"berlu, output kept",
     case_act,
     "berlu:alpha=0.1,eps=0.5",
     {PLAIN_LOSS, .keep = KEEP_OUTPUT, .bounds = &alpha_bound, .bound_count = 1}},
    {"berlu per channel, output kept",
     case_act_channel,
     "berlu:alpha=0.1,eps=0.5",
     {PLAIN_LOSS, .keep = KEEP_OUTPUT, .bounds = &alpha_bound, .bound_count = 1}},
    {"gelu and dropout", case_act_dropout, "gelu", {PLAIN_LOSS}},
    {"prelu behind a norm", case_act_after_norm, "prelu", {PLAIN_LOSS}},
    {"long rows", case_long_rows, "berlu:alpha=0.1,eps=0.5", {PLAIN_LOSS}},
    {"wide rows", case_wide_rows, "berlu:alpha=0.1,eps=0.5", {PLAIN_LOSS}},
    {"wide inputs", case_wide_inputs, "gelu", {PLAIN_LOSS}},
    {"norm and residual", case_norm_residual, NULL, {PLAIN_LOSS}},
    {"attention", case_attention, NULL, {PLAIN_LOSS}},
    {"attention recomputed", case_attention, NULL, {PLAIN_LOSS, .recompute_attention = 1}},
    {"attention among many", case_attention_many, NULL, {PLAIN_LOSS}},
    {"attention among many, recomputed", case_attention_many, NULL, {PLAIN_LOSS, .recompute_attention = 1}},
    {"attention, wide heads", case_attention_wide, NULL, {PLAIN_LOSS}},
    {"attention, v apart", case_attention_apart, NULL, {PLAIN_LOSS}},
    {"two heads, mean", case_tokens, NULL, {PLAIN_LOSS}},
    {"two heads, hard distillation", case_tokens, NULL, {PLAIN_LOSS, .distill = DISTILL_HARD}},
    {"two heads, soft distillation", case_tokens, NULL, {PLAIN_LOSS, .distill = DISTILL_SOFT}},
    {"two heads, soft distillation, soft targets",
     case_tokens,
     NULL,
     {TRAIN, .loss = LOSS_SOFT_TARGET, .distill = DISTILL_SOFT}},
    {"two streams", case_tnt, NULL, {TRAIN, .loss = LOSS_SOFT_TARGET}},
    {"two streams, legacy", case_tnt_legacy, NULL, {PLAIN_LOSS}},
    {"a layer read before its activation", case_layer_read_before_act, "berlu:alpha=0.1,eps=0.5", {PLAIN_LOSS}},
    {"one weight for two norms", case_norm_shared, NULL, {PLAIN_LOSS}},
    {"a layer and its input", case_layer_and_its_input, NULL, {PLAIN_LOSS}},
    {"layers in pairs", case_mlps, "berlu:alpha=0.1,eps=0.5,learn=alpha", {PLAIN_LOSS}},
    {"layers in pairs, output kept",
     case_mlps,
     "berlu:alpha=0.1,eps=0.5",
     {PLAIN_LOSS, .keep = KEEP_OUTPUT, .bounds = &alpha_bound, .bound_count = 1}},
    {"the answer is a token", case_answer_selected, NULL, {PLAIN_LOSS}},
    {"the answers are tokens", case_answers_selected, NULL, {PLAIN_LOSS, .distill = DISTILL_HARD}},
    {"a token under another shape", case_token_reshaped, NULL, {PLAIN_LOSS}},
    {"the answer drops out", case_answer_dropped, NULL, {PLAIN_LOSS}},
    {"dropout under another shape", case_dropped_reshaped, NULL, {PLAIN_LOSS}},
    {"a token of dropped groups", case_token_of_groups, NULL, {PLAIN_LOSS}},
    {"a token behind dropped groups", case_token_behind_groups, NULL, {PLAIN_LOSS}},
    {"factors of layers", case_factors, NULL, {PLAIN_LOSS}},
    {"convolutions", case_convnext, "berlu:alpha=0.1,eps=0.5", {PLAIN_LOSS}},
    {"convolutions, both kept", case_convnext, "gelu", {PLAIN_LOSS, .keep = KEEP_BOTH}},
};
const int graph_case_count = COUNT(graph_cases);

/* Uniform in [-1, 1) from a name and a place. */
static double value_at(const char *name, uint64_t seed, uint64_t i)
{
    uint64_t hash = 14695981039346656037ull;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
    return 2 * philox_f64(philox_draw(seed ^ hash, PURPOSE_TEST, 0, i, 0).w[0]) - 1;
}

void case_fill(engine *e, uint64_t seed)
{
    const graph *g = engine_graph(e);
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *t = graph_tensor(g, graph_param(g, i));
        int64_t count = tensor_elements(t);
        double scale = t->rank > 1 ? 1.5 / sqrt((double)count / (double)t->size[0]) : 0.5;
        float *values = malloc((size_t)count * sizeof *values);
        for (int64_t j = 0; j < count; j++)
            values[j] = (float)(t->activation ? t->init.value + 0.01 * (double)j /* its own value: ranges differ */
                                              : scale * value_at(t->name, seed, (uint64_t)j) +
                                                    (strstr(t->name, "norm") && strstr(t->name, "weight")));
        assert_int_equal(engine_set(e, ARRAY_WEIGHT, i, values), BERLU_OK);
        free(values);
    }
}

static void batch_fill(engine *e, int batch, int64_t pixels, int64_t classes)
{
    for (int64_t i = 0; i < batch * pixels; i++)
        engine_input(e)[i] = (float)(1.7 * value_at("image", 1, (uint64_t)i));
    for (int i = 0; i < batch; i++) {
        engine_labels(e)[i] = (int)((i * 7 + 1) % classes);
        double sum = 0;
        for (int64_t k = 0; k < classes; k++)
            sum += 1.1 + value_at("target", 2, (uint64_t)(i * classes + k));
        for (int64_t k = 0; k < classes; k++) {
            if (engine_targets(e))
                engine_targets(e)[i * classes + k] =
                    (float)((1.1 + value_at("target", 2, (uint64_t)(i * classes + k))) / sum);
            if (engine_teacher(e))
                engine_teacher(e)[i * classes + k] = (float)(2 * value_at("teacher", 3, (uint64_t)(i * classes + k)));
        }
    }
}

prepared case_prepare(const graph_case *c, const backend *machine, int threads)
{
    return case_prepare_on(c, machine, NULL, threads);
}

prepared case_prepare_on(const graph_case *c, const backend *machine, device *opened, int threads)
{
    prepared p = {.step = {.seed = 11,
                           .step = 5,
                           .smoothing = 0.1,
                           .distill_alpha = 0.3,
                           .distill_tau = 1.5,
                           .lr = 1e-2,
                           .clip = 1,
                           .weight_decay = 0.05,
                           .count = 1}};
    engine_options options = c->options;
    options.backend = machine;
    options.device = opened;
    options.threads = threads;
    assert_int_equal(graph_create(&p.g), BERLU_OK);
    if (c->act)
        assert_int_equal(berlu_act_make(&p.act, c->act), BERLU_OK);
    c->build(p.g, p.act);
    if (graph_status(p.g) != BERLU_OK || engine_create(&p.e, p.g, &options) != BERLU_OK)
        fail_msg("%s: %s", c->name, berlu_last_error());
    case_fill(p.e, 4);
    batch_fill(p.e, options.batch, tensor_elements(graph_tensor(p.g, graph_image(p.g))),
               tensor_elements(graph_tensor(p.g, graph_logits(p.g))));
    return p;
}

void case_free(prepared *p)
{
    engine_free(p->e);
    graph_free(p->g);
    berlu_act_free(p->act);
}
