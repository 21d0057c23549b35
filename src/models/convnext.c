/* convnext.c - ConvNeXt (Liu et al. 2022). SPDX-License-Identifier: MIT
 *
 * A convolutional network in a transformer's shape: a stem that cuts patches, four stages of
 * blocks, between them a norm and a 2x2 convolution that halves the map. A block is a 7x7 depthwise
 * convolution, a norm over channels, a perceptron at every position, and LayerScale. Maps are [H,
 * W, C], so the perceptron's 1x1 convolutions are products.
 *
 * timm stores those weights as (N, K, 1, 1) in the small models and as (N, K) in tiny; the bytes
 * are the same. timm also gives stage 0 a downsampling of its own when the stem's stride is 2; so
 * do we. */
#include "models/family.h"

static const float NORM_EPS = 1e-6f;
enum { STAGES = 4, DEPTHWISE_KERNEL = 7 };

static int block_count(const model_config *m)
{
    int blocks = 0;
    for (int s = 0; s < STAGES; s++)
        blocks += m->depth[s];
    return blocks;
}

static int stage_halves(const model_config *m, int stage)
{
    return stage > 0 || m->stem == 2;
}

static berlu_status convnext_check(const model_config *m)
{
    if (m->stem != 1 && m->stem != 2 && m->stem != 4)
        return berlu_fail(BERLU_ERR_ARG, "%s: --stem %d is not 1, 2 or 4", m->name, m->stem);
    if (m->image_size % m->stem)
        return berlu_fail(BERLU_ERR_ARG, "%s: --image-size %d is not a multiple of --stem %d", m->name, m->image_size,
                          m->stem);
    int side = m->image_size / m->stem;
    for (int s = 0; s < STAGES; s++)
        side /= stage_halves(m, s) ? 2 : 1;
    if (side == 0)
        return berlu_fail(BERLU_ERR_ARG,
                          "%s: --image-size %d is too small for --stem %d: nothing is left of the last map", m->name,
                          m->image_size, m->stem);
    return BERLU_OK;
}

/* Halves the map: rows of 2 x 2 positions through one product. An odd last row or column is cut, as
 * a convolution does. */
static tensor downsample(model_builder *b, tensor x, int from, int to, const char *name)
{
    graph *g = b->g;
    x = layer_norm(g, x, NORM_EPS, graph_name(g, "%s.0", name));
    x = build_unfold(g, x, (unfold_spec){.kernel = 2, .stride = 2});
    return layer_conv(g, x, to, from, 2, INIT_TN02, INIT_ZERO, graph_name(g, "%s.1", name));
}

static tensor depthwise(model_builder *b, tensor x, int width, const char *name)
{
    graph *g = b->g;
    const int64_t kernel[] = {width, 1, DEPTHWISE_KERNEL, DEPTHWISE_KERNEL}, channels[] = {width};
    tensor weight = build_param(g, graph_name(g, "%s.weight", name), INIT_TN02, 1, 4, kernel);
    tensor bias = build_param(g, graph_name(g, "%s.bias", name), INIT_ZERO, 0, 1, channels);
    return build_depthwise(g, x, weight, bias);
}

static tensor pointwise(model_builder *b, tensor x, int from, int to, const char *name)
{
    if (b->m->linear_mlp)
        return layer_linear(b->g, x, to, WITH_BIAS, name);
    return layer_conv(b->g, x, to, from, 1, INIT_TN02, INIT_ZERO, name);
}

static tensor block(model_builder *b, tensor x, int width, int index, const char *name)
{
    graph *g = b->g;
    const int64_t channels[] = {width};
    tensor gamma = build_param(g, graph_name(g, "%s.gamma", name), init_constant(1e-6), 0, 1, channels);
    tensor y = depthwise(b, x, width, graph_name(g, "%s.conv_dw", name));
    y = layer_norm(g, y, NORM_EPS, graph_name(g, "%s.norm", name));
    y = pointwise(b, y, width, 4 * width, graph_name(g, "%s.mlp.fc1", name));
    y = site_act(b, y, graph_name(g, "%s.mlp.act", name));
    y = pointwise(b, y, 4 * width, width, graph_name(g, "%s.mlp.fc2", name));
    return residual(b, x, build_scale(g, y, gamma), index, block_count(b->m), 1);
}

static void convnext_build(model_builder *b)
{
    const model_config *m = b->m;
    graph *g = b->g;
    int side = m->image_size / m->stem, width = m->width[0], index = 0;
    tensor x = build_image(g, 3, m->image_size, m->image_size);
    x = build_unfold(g, x, (unfold_spec){.kernel = m->stem, .stride = m->stem});
    x = layer_conv(g, x, width, 3, m->stem, INIT_TN02, INIT_ZERO, "stem.0");
    x = build_reshape(g, x, 3, (int64_t[]){side, side, width});
    x = layer_norm(g, x, NORM_EPS, "stem.1");

    for (int s = 0; s < STAGES; s++) {
        if (stage_halves(m, s))
            x = downsample(b, x, width, m->width[s], graph_name(g, "stages.%d.downsample", s));
        width = m->width[s];
        for (int j = 0; j < m->depth[s]; j++)
            x = block(b, x, width, index++, graph_name(g, "stages.%d.blocks.%d", s, j));
    }
    x = layer_norm(g, build_mean(g, x), NORM_EPS, "head.norm");
    build_output(g, layer_linear(g, x, m->classes, WITH_BIAS, "head.fc"), TENSOR_NONE);
}

const model_family family_convnext = {"ConvNeXt", HAS_STEM, block_count, convnext_check, convnext_build};
