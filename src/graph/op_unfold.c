/* op_unfold.c - cuts windows out of an image and lays each out as a row (channel, ky, kx).
 * SPDX-License-Identifier: MIT
 *
 *     unfold([C, H, W] (attr.planar) or [H, W, C])  -> rows for a linear layer
 *     fold(gradient of the rows)                    -> gradient of [H, W, C], windows disjoint
 *
 * It serves the patch embedding (k = s = p), ConvNeXt's stem and downsampling (k = s), TNT's pixel
 * convolution on each patch alone (tile = p) and on the whole image (tile = p, leak). The backward
 * recomputes the rows: the image is in memory anyway. */
#include "graph/op_rules.h"

static berlu_status spec_check(graph *g, const node *n, int64_t height, int64_t width)
{
    const unfold_spec *s = &n->attr.unfold;
    int64_t reach = s->tile && !s->leak ? s->tile : (height < width ? height : width);
    if (s->kernel < 1 || s->stride < 1 || s->padding < 0 || reach + 2 * s->padding < s->kernel)
        return graph_fail(g, BERLU_ERR_ARG, "unfold: a window of %d (stride %d, padding %d) does not fit image %s",
                          s->kernel, s->stride, s->padding, graph_say(g, n->in[0]));
    if (s->tile && (height % s->tile || width % s->tile))
        return graph_fail(g, BERLU_ERR_ARG, "unfold: image %s is not a multiple of the patch size %d",
                          graph_say(g, n->in[0]), s->tile);
    if (s->tile && s->leak && s->tile % s->stride)
        return graph_fail(g, BERLU_ERR_ARG, "unfold: stride %d does not divide the patch size %d", s->stride, s->tile);
    if (!n->attr.planar && (s->tile || s->padding || s->kernel != s->stride))
        return graph_fail(g, BERLU_ERR_UNSUPPORTED,
                          "unfold: from a feature map only windows side by side are possible");
    return BERLU_OK;
}

berlu_status unfold_shape(graph *g, node *n)
{
    const tensor_info image = *info_of(g, n->in[0]);
    const unfold_spec *s = &n->attr.unfold;
    if (image.rank != 3)
        return graph_fail(g, BERLU_ERR_ARG, "unfold: %s is not an image", graph_say(g, n->in[0]));
    int planar = n->attr.planar;
    int64_t channels = image.size[planar ? 0 : 2], height = image.size[planar ? 1 : 0],
            width = image.size[planar ? 2 : 1];
    if (spec_check(g, n, height, width) != BERLU_OK)
        return graph_status(g);
    int64_t row = channels * s->kernel * s->kernel;
    if (s->tile) {
        int64_t side = s->leak ? s->tile / s->stride : (s->tile + 2 * s->padding - s->kernel) / s->stride + 1;
        int64_t tiles = (height / s->tile) * (width / s->tile);
        n->out[0] = graph_declare(g, ROLE_BRANCH, 1, 3, (int64_t[]){tiles, side * side, row});
    } else {
        int64_t down = (height + 2 * s->padding - s->kernel) / s->stride + 1;
        int64_t across = (width + 2 * s->padding - s->kernel) / s->stride + 1;
        n->out[0] = graph_declare(g, ROLE_BRANCH, 1, 3, (int64_t[]){down, across, row});
    }
    return graph_status(g);
}

berlu_status unfold_gradient(grad_pass *p, const node *n)
{
    if (!grad_wanted(p, n->in[0]))
        return BERLU_OK;
    node d = node_make(OP_FOLD, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr = n->attr;
    d.attr.like[0] = n->in[0];
    return grad_give(p, n->in[0], grad_add(p, &d));
}
