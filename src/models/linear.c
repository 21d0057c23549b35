/* linear.c - one linear map from pixels to classes. SPDX-License-Identifier: MIT
 *
 * The baseline of a data set: its accuracy needs no network at all. It has no activation and no
 * other options than the image's size and the number of classes. Initialised like torch's
 * Linear. */
#include "models/family.h"

static int linear_sites(const model_config *m)
{
    (void)m;
    return 0;
}

static berlu_status linear_check(const model_config *m)
{
    (void)m;
    return BERLU_OK;
}

/* The whole image is one patch. */
static void linear_build(model_builder *b)
{
    const model_config *m = b->m;
    graph *g = b->g;
    int side = m->image_size, inputs = 3 * side * side;
    tensor x = build_image(g, 3, side, side);
    x = build_unfold(g, x, (unfold_spec){.kernel = side, .stride = side});
    x = layer_conv(g, x, m->classes, 3, side, init_fan_in(inputs), init_fan_in(inputs), "head");
    build_output(g, build_reshape(g, x, 1, (int64_t[]){m->classes}), TENSOR_NONE);
}

const model_family family_linear = {"linear classifier", 0, linear_sites, linear_check, linear_build};
