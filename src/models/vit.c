/* vit.c - the Vision Transformer (Dosovitskiy et al. 2020) and DeiT (Touvron et al. 2020).
 * SPDX-License-Identifier: MIT
 *
 * An image is cut into patches; each becomes a token by a linear map; a class token goes in front,
 * positions are added; blocks of attention and perceptron follow, each after a norm; the head
 * reads the class token's last state. DeiT is the same network. Its distilled form adds a second
 * token that learns from a teacher, with a head of its own. */
#include "models/family.h"

static const float NORM_EPS = 1e-6f;

static int vit_sites(const model_config *m)
{
    return m->depth[0];
}

static berlu_status vit_check(const model_config *m)
{
    if (m->image_size % m->patch)
        return berlu_fail(BERLU_ERR_ARG, "%s: --image-size %d is not a multiple of --patch %d", m->name, m->image_size,
                          m->patch);
    return BERLU_OK;
}

/* Multi-head self-attention. q, k and v are one product of three times the width. */
static tensor attention(model_builder *b, tensor x, const char *name)
{
    graph *g = b->g;
    int width = b->m->width[0];
    tensor qkv = layer_linear(g, x, 3 * width, WITH_BIAS, graph_name(g, "%s.qkv", name));
    tensor mixed = build_attention(g, qkv, TENSOR_NONE, b->m->heads);
    return layer_linear(g, mixed, width, WITH_BIAS, graph_name(g, "%s.proj", name));
}

static tensor block(model_builder *b, tensor x, int i)
{
    graph *g = b->g;
    int depth = b->m->depth[0];
    tensor y = layer_norm(g, x, NORM_EPS, graph_name(g, "blocks.%d.norm1", i));
    x = residual(b, x, attention(b, y, graph_name(g, "blocks.%d.attn", i)), i, depth, 1);
    y = layer_norm(g, x, NORM_EPS, graph_name(g, "blocks.%d.norm2", i));
    return residual(b, x, layer_mlp(b, y, graph_name(g, "blocks.%d.mlp", i)), i, depth, 1);
}

static void vit_build(model_builder *b)
{
    const model_config *m = b->m;
    graph *g = b->g;
    int side = m->image_size / m->patch, inputs = 3 * m->patch * m->patch;
    const int64_t token[] = {1, 1, m->width[0]};
    const int64_t positions[] = {1, side * side + 1 + m->distilled, m->width[0]};

    /* The order of the state dict: dist_token comes after pos_embed although its token stands
     * before the patches. */
    tensor cls = build_param(g, "cls_token", INIT_N1E6, 0, 3, token);
    tensor pos = build_param(g, "pos_embed", INIT_TN02, 0, 3, positions);
    tensor dist = m->distilled ? build_param(g, "dist_token", INIT_TN02, 0, 3, token) : TENSOR_NONE;

    tensor x = build_image(g, 3, m->image_size, m->image_size);
    x = build_unfold(g, x, (unfold_spec){.kernel = m->patch, .stride = m->patch});
    x = layer_conv(g, x, m->width[0], 3, m->patch, init_fan_in(inputs), init_fan_in(inputs), "patch_embed.proj");
    x = build_tokens(g, x, cls, dist, pos);
    for (int i = 0; i < m->depth[0]; i++)
        x = block(b, x, i);
    x = layer_norm(g, x, NORM_EPS, "norm");

    tensor head = layer_linear(g, build_select(g, x, 0), m->classes, WITH_BIAS, "head");
    tensor head_dist = TENSOR_NONE;
    if (m->distilled)
        head_dist = layer_linear(g, build_select(g, x, 1), m->classes, WITH_BIAS, "head_dist");
    build_output(g, head, head_dist);
}

const model_family family_vit = {"ViT", HAS_PATCH, vit_sites, vit_check, vit_build};
