/* tnt.c - Transformer in Transformer (Han et al. 2021). SPDX-License-Identifier: MIT
 *
 * Two streams. Pixels: inside each patch a small transformer works on m = q x q pixel embeddings of
 * inner_width channels. Words: a word per patch, and a class word, as in ViT. In every block the
 * pixels of a patch, laid out as one row, are projected and added to their word; the pixel stream
 * itself ends with the last block. Differences from ViT that are easy to miss: norms have eps 1e-5,
 * attention has one product for q and k and one for v, both without bias, and drop path drops the
 * pixels patch by patch.
 *
 * `legacy` is the form of timm's older weights: the pixel convolution sees across patch edges, the
 * norm before the projection is over a pixel instead of a patch, the projection has a bias, and no
 * norm follows it. */
#include "models/family.h"

static const float NORM_EPS = 1e-5f;
enum { PIXEL_KERNEL = 7, PIXEL_INPUTS = 3 * PIXEL_KERNEL * PIXEL_KERNEL };

static int tnt_sites(const model_config *m)
{
    return 2 * m->depth[0];
}

static berlu_status tnt_check(const model_config *m)
{
    if (m->image_size % m->patch)
        return berlu_fail(BERLU_ERR_ARG, "%s: --image-size %d is not a multiple of --patch %d", m->name, m->image_size,
                          m->patch);
    if (m->stride > m->patch)
        return berlu_fail(BERLU_ERR_ARG, "%s: --stride %d is larger than --patch %d", m->name, m->stride, m->patch);
    if (m->legacy && m->patch % m->stride)
        return berlu_fail(BERLU_ERR_ARG, "%s: --patch %d is not a multiple of --stride %d", m->name, m->patch,
                          m->stride);
    return BERLU_OK;
}

static int patch_count(const model_config *m)
{
    int side = m->image_size / m->patch;
    return side * side;
}

static int pixel_side(const model_config *m)
{
    return (m->patch + m->stride - 1) / m->stride;
}

static tensor attention(model_builder *b, tensor x, int heads, const char *name)
{
    graph *g = b->g;
    int64_t width = graph_failed(g) ? 1 : tensor_channels(graph_tensor(g, x));
    tensor qk = layer_linear(g, x, 2 * width, NO_BIAS, graph_name(g, "%s.qk", name));
    tensor v = layer_linear(g, x, width, NO_BIAS, graph_name(g, "%s.v", name));
    return layer_linear(g, build_attention(g, qk, v, heads), width, WITH_BIAS, graph_name(g, "%s.proj", name));
}

/* The pixels of each patch as one row: [n, m, d] seen as [n, m d]. */
static tensor patch_rows(model_builder *b, tensor pixels)
{
    int64_t side = pixel_side(b->m);
    return build_reshape(b->g, pixels, 2, (int64_t[]){patch_count(b->m), side * side * b->m->inner_width});
}

/* norm, projection, norm: the term that a block adds to the words, and the first words
 * themselves. */
static tensor words_of(model_builder *b, tensor pixels, int bias, const char *prefix)
{
    graph *g = b->g;
    tensor rows = layer_norm(g, patch_rows(b, pixels), NORM_EPS, graph_name(g, "%snorm1_proj", prefix));
    rows = layer_linear(g, rows, b->m->width[0], bias, graph_name(g, "%sproj", prefix));
    return layer_norm(g, rows, NORM_EPS, graph_name(g, "%snorm2_proj", prefix));
}

static tensor words_of_legacy(model_builder *b, tensor pixels, const char *prefix)
{
    graph *g = b->g;
    pixels = layer_norm(g, pixels, NORM_EPS, graph_name(g, "%snorm1_proj", prefix));
    return layer_linear(g, patch_rows(b, pixels), b->m->width[0], WITH_BIAS, graph_name(g, "%sproj", prefix));
}

static void block(model_builder *b, tensor *pixels, tensor *words, int i)
{
    graph *g = b->g;
    const model_config *m = b->m;
    const char *at = graph_name(g, "blocks.%d.", i);
    int depth = m->depth[0], patches = patch_count(m);
    tensor p = *pixels, x = *words;

    tensor y = layer_norm(g, p, NORM_EPS, graph_name(g, "%snorm_in", at));
    p = residual(b, p, attention(b, y, m->inner_heads, graph_name(g, "%sattn_in", at)), i, depth, patches);
    y = layer_norm(g, p, NORM_EPS, graph_name(g, "%snorm_mlp_in", at));
    p = residual(b, p, layer_mlp(b, y, graph_name(g, "%smlp_in", at)), i, depth, patches);

    tensor update = m->legacy ? words_of_legacy(b, p, at) : words_of(b, p, NO_BIAS, at);
    x = build_add_tokens(g, x, update, 1); /* the class word has no pixels; never dropped */

    y = layer_norm(g, x, NORM_EPS, graph_name(g, "%snorm_out", at));
    x = residual(b, x, attention(b, y, m->heads, graph_name(g, "%sattn_out", at)), i, depth, 1);
    y = layer_norm(g, x, NORM_EPS, graph_name(g, "%snorm_mlp", at));
    x = residual(b, x, layer_mlp(b, y, graph_name(g, "%smlp", at)), i, depth, 1);
    *pixels = p, *words = x;
}

static void tnt_build(model_builder *b)
{
    const model_config *m = b->m;
    graph *g = b->g;
    int side = pixel_side(m);
    const int64_t token[] = {1, 1, m->width[0]}, positions[] = {1, patch_count(m) + 1, m->width[0]};
    tensor cls = build_param(g, "cls_token", INIT_TN02, 0, 3, token);
    tensor patch_pos = build_param(g, "patch_pos", INIT_TN02, 0, 3, positions);
    tensor pixel_pos = build_param(g, "pixel_pos", INIT_TN02, 0, 4, (int64_t[]){1, m->inner_width, side, side});

    tensor image = build_image(g, 3, m->image_size, m->image_size);
    const unfold_spec windows = {
        .kernel = PIXEL_KERNEL, .stride = m->stride, .padding = PIXEL_KERNEL / 2, .tile = m->patch, .leak = m->legacy};
    tensor pixels = layer_conv(g, build_unfold(g, image, windows), m->inner_width, 3, PIXEL_KERNEL,
                               init_fan_in(PIXEL_INPUTS), init_fan_in(PIXEL_INPUTS), "pixel_embed.proj");
    pixels = build_pixel_pos(g, pixels, pixel_pos);
    tensor words = build_tokens(g, words_of(b, pixels, WITH_BIAS, ""), cls, TENSOR_NONE, patch_pos);
    for (int i = 0; i < m->depth[0]; i++)
        block(b, &pixels, &words, i);

    words = layer_norm(g, words, NORM_EPS, "norm");
    build_output(g, layer_linear(g, build_select(g, words, 0), m->classes, WITH_BIAS, "head"), TENSOR_NONE);
}

const model_family family_tnt = {"TNT", HAS_PATCH | HAS_STRIDE, tnt_sites, tnt_check, tnt_build};
