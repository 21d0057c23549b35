/* randaugment.c - RandAugment as timm's "rand-m9-mstd0.5-inc1". SPDX-License-Identifier: MIT
 *
 * Two operations are drawn from fifteen, with replacement; each is applied with probability one
 * half, at a level drawn from a normal distribution around the magnitude, clipped to [0, 10].
 * "inc1" means that a higher level is always a stronger effect. The table has a row per operation:
 * its name and the map from level to argument. */
#include <math.h>

#include "data/augment_plan.h"
#include "data/pixels.h"

const char *const randaugment_names[RANDAUGMENT_OPS] = {
    "AutoContrast",
    "Equalize",
    "Invert",
    "Rotate",
    "PosterizeIncreasing",
    "SolarizeIncreasing",
    "SolarizeAdd",
    "ColorIncreasing",
    "ContrastIncreasing",
    "BrightnessIncreasing",
    "SharpnessIncreasing",
    "ShearX",
    "ShearY",
    "TranslateXRel",
    "TranslateYRel",
};

typedef struct op_call {
    const augment_plan *plan;
    image *current, *spare;
    resize_filter filter;
    double level, sign;
} op_call;

static berlu_status affine_apply(op_call *o, affine m)
{
    TRY(pixels_affine(o->spare, o->current, m, o->filter, o->plan->fill));
    image kept = *o->current;
    *o->current = *o->spare;
    *o->spare = kept;
    return BERLU_OK;
}

/* The factor of an enhancement: 1 +- 0.09 per level, at least 0.1. */
static float enhancement(const op_call *o)
{
    return (float)fmax(0.1, 1.0 + o->sign * (o->level / 10 * 0.9));
}

static berlu_status op_autocontrast(op_call *o)
{
    pixels_autocontrast(o->current);
    return BERLU_OK;
}
static berlu_status op_equalize(op_call *o)
{
    pixels_equalize(o->current);
    return BERLU_OK;
}
static berlu_status op_invert(op_call *o)
{
    pixels_invert(o->current);
    return BERLU_OK;
}
static berlu_status op_rotate(op_call *o)
{
    return affine_apply(o, affine_rotation(o->sign * (o->level / 10 * 30), o->current->width, o->current->height));
}
static berlu_status op_posterize(op_call *o)
{
    pixels_posterize(o->current, 4 - (int)(o->level / 10 * 4));
    return BERLU_OK;
}
static berlu_status op_solarize(op_call *o)
{
    int level = (int)(o->level / 10 * 256);
    pixels_solarize(o->current, 256 - (level < 256 ? level : 256));
    return BERLU_OK;
}
static berlu_status op_solarize_add(op_call *o)
{
    int add = (int)(o->level / 10 * 110);
    pixels_solarize_add(o->current, add < 128 ? add : 128);
    return BERLU_OK;
}
static berlu_status op_color(op_call *o)
{
    pixels_saturation(o->current, enhancement(o));
    return BERLU_OK;
}
static berlu_status op_contrast(op_call *o)
{
    pixels_contrast(o->current, enhancement(o));
    return BERLU_OK;
}
static berlu_status op_brightness(op_call *o)
{
    pixels_brightness(o->current, enhancement(o));
    return BERLU_OK;
}
static berlu_status op_sharpness(op_call *o)
{
    return pixels_sharpness(o->current, enhancement(o), o->spare);
}
static berlu_status op_shear_x(op_call *o)
{
    return affine_apply(o, (affine){1, o->sign * (o->level / 10 * 0.3), 0, 0, 1, 0});
}
static berlu_status op_shear_y(op_call *o)
{
    return affine_apply(o, (affine){1, 0, 0, o->sign * (o->level / 10 * 0.3), 1, 0});
}
static berlu_status op_translate_x(op_call *o)
{
    return affine_apply(o, (affine){1, 0, o->sign * (o->level / 10 * 0.45) * o->current->width, 0, 1, 0});
}
static berlu_status op_translate_y(op_call *o)
{
    return affine_apply(o, (affine){1, 0, 0, 0, 1, o->sign * (o->level / 10 * 0.45) * o->current->height});
}

static berlu_status (*const ops[RANDAUGMENT_OPS])(op_call *) = {
    op_autocontrast, op_equalize,   op_invert,    op_rotate,  op_posterize, op_solarize,    op_solarize_add, op_color,
    op_contrast,     op_brightness, op_sharpness, op_shear_x, op_shear_y,   op_translate_x, op_translate_y,
};

berlu_status randaugment_op(int op, double level, int negative, const augment_plan *plan, resize_filter filter,
                            image *current, image *spare)
{
    op_call call = {plan, current, spare, filter, level, negative ? -1 : 1};
    return ops[op](&call);
}

berlu_status randaugment_apply(const augment_plan *plan, draws *d, image *current, image *spare)
{
    const augment_options *o = &plan->o;
    int chosen[16];
    for (int i = 0; i < o->randaugment; i++)
        chosen[i] = draws_below(d, RANDAUGMENT_OPS);
    for (int i = 0; i < o->randaugment; i++) {
        if (!draws_chance(d, 0.5))
            continue;
        double level = o->magnitude + o->magnitude_std * draws_normal(d);
        int negative = draws_chance(d, 0.5), coin = draws_chance(d, 0.5);
        resize_filter filter = o->filter_random && coin ? RESIZE_BILINEAR : o->filter;
        level = level < 0 ? 0 : level > 10 ? 10 : level;
        TRY(randaugment_op(chosen[i], level, negative, plan, filter, current, spare));
    }
    return BERLU_OK;
}
