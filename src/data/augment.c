/* augment.c - crops, flip, jitter and erasing: the draws of one sample, and their effect on pixels.
 * SPDX-License-Identifier: MIT
 *
 * Rules and distributions follow timm and the DeiT script. Each step has its own random stream, so
 * disabling one does not change the draws of the others. RandAugment is in randaugment.c, pixel
 * operations in pixels.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/augment_plan.h"
#include "data/pixels.h"

const char *const augment_names[] = {"none", "crop-flip", "deit", "convnext", NULL};

berlu_status augment_preset(augment_options *out, const char *name, int image_size)
{
    augment_options o = {.image_size = image_size, .magnitude = 9, .magnitude_std = 0.5};
    int strong = strcmp(name, "deit") == 0 || strcmp(name, "convnext") == 0;
    if (strcmp(name, "none") != 0) {
        if (!strong && strcmp(name, "crop-flip") != 0)
            return berlu_fail(BERLU_ERR_ARG, "augment '%s': none, crop-flip, deit or convnext", name);
        o.crop = image_size <= 32 ? CROP_PAD : CROP_RESIZED;
        o.flip = 1;
        o.randaugment = strong ? 2 : 0;
        o.erase = strong ? 0.25 : 0;
    }
    *out = o;
    return BERLU_OK;
}

static berlu_status options_check(const augment_options *o)
{
    if (o->image_size < 1 || o->image_size > 4096)
        return berlu_fail(BERLU_ERR_ARG, "image size %d; 1 to 4096", o->image_size);
    if (!(o->crop_pct == 0 || (o->crop_pct >= 0.05 && o->crop_pct <= 1)))
        return berlu_fail(BERLU_ERR_ARG, "crop_pct: %g is neither 0 nor in 0.05 to 1", o->crop_pct);
    if (o->pad < 0 || o->pad > o->image_size)
        return berlu_fail(BERLU_ERR_ARG, "pad %d is not in 0 to the image size", o->pad);
    if (!(o->scale_low >= 0 && o->scale_low <= o->scale_high && o->scale_high <= 1))
        return berlu_fail(BERLU_ERR_ARG, "scale %g to %g of a random crop must lie in (0, 1]", o->scale_low,
                          o->scale_high);
    int jitter_bad = !(o->brightness >= 0 && o->contrast >= 0 && o->saturation >= 0 && o->hue >= 0 && o->hue <= 0.5);
    if (jitter_bad || !(o->erase >= 0 && o->erase <= 1) || o->randaugment < 0 || o->randaugment > 16)
        return berlu_fail(
            BERLU_ERR_ARG,
            "colour jitter must be >= 0 (hue <= 0.5), erase a probability, randaugment 0 to 16 operations");
    return BERLU_OK;
}

double augment_crop_pct(const data_info *info, int image_size)
{
    int square = info->width > 0 && info->width == info->height;
    return square || image_size <= 32 ? 1.0 : 0.875;
}

berlu_status augment_prepare(augment_plan *out, const augment_options *o, const data_info *info, const double mean[3],
                             const double std[3], uint64_t seed)
{
    TRY(options_check(o));
    augment_plan p = {.o = *o, .seed = seed};
    if (p.o.crop_pct == 0)
        p.o.crop_pct = augment_crop_pct(info, o->image_size);
    if (p.o.pad == 0)
        p.o.pad = (o->image_size + 7) / 8;
    if (p.o.scale_high == 0)
        p.o.scale_low = 0.08, p.o.scale_high = 1;
    TRY(levels_make(&p.levels, mean, std));
    for (int c = 0; c < 3; c++)
        p.fill[c] = (uint8_t)fmin(255, fmax(0, rint(255 * mean[c])));
    *out = p;
    return BERLU_OK;
}

void augment_scratch_free(augment_scratch *w)
{
    image_free(&w->current);
    image_free(&w->spare);
    resize_scratch_free(&w->resize);
    free(w->file.bytes);
    *w = (augment_scratch){0};
}

/* ---- crops ----------------------------------------------------------------------------------- */

/* RandomResizedCrop: ten tries for an area and an aspect ratio that fit, else the largest central
 * crop of an allowed ratio. */
image_part crop_random(draws *d, int width, int height, double scale_low, double scale_high)
{
    const double shape_low = 3.0 / 4, shape_high = 4.0 / 3;
    for (int attempt = 0; attempt < 10; attempt++) {
        double area = draws_uniform(d, scale_low, scale_high) * width * height;
        double shape = exp(draws_uniform(d, log(shape_low), log(shape_high)));
        int w = (int)rint(sqrt(area * shape)), h = (int)rint(sqrt(area / shape));
        if (w >= 1 && h >= 1 && w <= width && h <= height) {
            int top = draws_below(d, height - h + 1), left = draws_below(d, width - w + 1);
            return (image_part){left, top, w, h, 0};
        }
    }
    double shape = (double)width / height;
    int w = width, h = height;
    if (shape < shape_low)
        h = (int)rint(w / shape_low);
    else if (shape > shape_high)
        w = (int)rint(h * shape_high);
    return (image_part){(width - w) / 2, (height - h) / 2, w, h, 0};
}

static void swap(augment_scratch *w)
{
    image kept = w->current;
    w->current = w->spare;
    w->spare = kept;
}

static berlu_status resize_to(augment_scratch *w, int width, int height, resize_filter filter)
{
    if (w->current.width == width && w->current.height == height)
        return BERLU_OK;
    TRY(image_resize(&w->spare, &w->current, width, height, filter, &w->resize));
    swap(w);
    return BERLU_OK;
}

/* out(x, y) = in(x + left, y + top), zero outside; side x side. */
static berlu_status window(augment_scratch *w, int left, int top, int side)
{
    const image *in = &w->current;
    if (left == 0 && top == 0 && in->width == side && in->height == side)
        return BERLU_OK;
    TRY(image_reserve(&w->spare, side, side));
    int from = left < 0 ? -left : 0, to = in->width - left < side ? in->width - left : side;
    size_t row = (size_t)side * 3;
    for (int y = 0; y < side; y++) {
        uint8_t *line = w->spare.pixels + (size_t)y * row;
        if (y + top < 0 || y + top >= in->height || to <= from) {
            memset(line, 0, row);
            continue;
        }
        memset(line, 0, (size_t)from * 3);
        memcpy(line + from * 3, in->pixels + ((size_t)(y + top) * (size_t)in->width + (size_t)(left + from)) * 3,
               (size_t)(to - from) * 3);
        memset(line + to * 3, 0, (size_t)(side - to) * 3);
    }
    swap(w);
    return BERLU_OK;
}

/* Resizes the short edge to `side` / crop_pct and crops the centre; ties round to even, as in
 * Python. An image of few bytes may be so long and narrow that resized it would take gigabytes. */
static berlu_status crop_centre(const augment_options *o, double crop_pct, resize_filter filter, augment_scratch *w)
{
    int side = o->image_size, edge = (int)floor(side / crop_pct);
    int width = w->current.width, height = w->current.height;
    double ratio = width < height ? (double)height / width : (double)width / height;
    if (ratio * edge * edge > IMAGE_PIXEL_LIMIT)
        return berlu_fail(BERLU_ERR_INPUT, "%d x %d pixels are too long and narrow to be resized to %d", width, height,
                          edge);
    if (width <= height)
        height = (int)((double)edge * height / width), width = edge;
    else
        width = (int)((double)edge * width / height), height = edge;
    TRY(resize_to(w, width, height, filter));
    return window(w, (int)rint((width - side) / 2.0), (int)rint((height - side) / 2.0), side);
}

static berlu_status crop_apply(const augment_plan *plan, const sample_draw *draw, augment_scratch *w)
{
    const augment_options *o = &plan->o;
    resize_filter filter = draw->filter;
    switch (o->crop) {
    case CROP_RESIZED:
    case CROP_SQUASH:
        return resize_to(w, o->image_size, o->image_size, filter);
    case CROP_EVAL:
        return crop_centre(o, o->crop_pct, filter, w);
    case CROP_PAD:
        break;
    }
    TRY(crop_centre(o, 1.0, filter, w));
    return window(w, draw->left, draw->top, o->image_size);
}

/* ---- colour jitter --------------------------------------------------------------------------- */

static float jitter_factor(draws *d, double range)
{
    return (float)draws_uniform(d, range < 1 ? 1 - range : 0, 1 + range);
}

void jitter_apply(const augment_options *o, draws *d, image *current)
{
    int order[4] = {0, 1, 2, 3};
    for (int i = 3; i > 0; i--) {
        int j = draws_below(d, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    float brightness = jitter_factor(d, o->brightness), contrast = jitter_factor(d, o->contrast);
    float saturation = jitter_factor(d, o->saturation);
    double hue = draws_uniform(d, -o->hue, o->hue);
    for (int i = 0; i < 4; i++) {
        if (order[i] == 0 && o->brightness > 0)
            pixels_brightness(current, brightness);
        if (order[i] == 1 && o->contrast > 0)
            pixels_contrast(current, contrast);
        if (order[i] == 2 && o->saturation > 0)
            pixels_saturation(current, saturation);
        if (order[i] == 3 && o->hue > 0)
            pixels_hue(current, hue);
    }
}

/* ---- random erasing, on normalised numbers --------------------------------------------------- */

erase_box erase_draw(draws *d, double probability, int height, int width)
{
    const erase_box none = {0, 0, 0, 0};
    if (!draws_chance(d, probability))
        return none;
    for (int attempt = 0; attempt < 10; attempt++) {
        double area = draws_uniform(d, 0.02, 1.0 / 3) * height * width;
        double shape = exp(draws_uniform(d, log(0.3), log(1 / 0.3)));
        int h = (int)rint(sqrt(area * shape)), w = (int)rint(sqrt(area / shape));
        if (h < height && w < width && h > 0 && w > 0) {
            int top = draws_below(d, height - h + 1), left = draws_below(d, width - w + 1);
            return (erase_box){top, left, h, w};
        }
    }
    return none;
}

void erase_fill(draws *d, erase_box box, float *planes, int height, int width)
{
    for (int c = 0; c < 3; c++)
        for (int y = box.top; y < box.top + box.height; y++) {
            float *row = planes + ((size_t)c * (size_t)height + (size_t)y) * (size_t)width;
            for (int x = box.left; x < box.left + box.width; x++)
                row[x] = (float)draws_normal(d);
        }
}

/* ---- one sample ------------------------------------------------------------------------------ */

static void crop_draw(const augment_plan *plan, draws *d, int width, int height, sample_draw *out)
{
    const augment_options *o = &plan->o;
    out->part = (image_part){.width = width, .height = height};
    if (o->crop == CROP_RESIZED) {
        out->part = crop_random(d, width, height, o->scale_low, o->scale_high);
        out->part.least = o->image_size;
    }
    out->filter = o->filter_random && draws_chance(d, 0.5) ? RESIZE_BILINEAR : o->filter;
    if (o->crop == CROP_PAD) {
        out->top = draws_below(d, 2 * o->pad + 1) - o->pad;
        out->left = draws_below(d, 2 * o->pad + 1) - o->pad;
    }
}

sample_draw augment_draw(const augment_plan *plan, int width, int height, uint32_t epoch, uint64_t sample)
{
    const augment_options *o = &plan->o;
    draws crop = draws_for(plan->seed, PURPOSE_CROP, epoch, sample);
    draws erase = draws_for(plan->seed, PURPOSE_ERASE, epoch, sample);
    sample_draw out = {.flip = o->flip && philox_draw(plan->seed, PURPOSE_FLIP, epoch, sample, 0).w[0] >> 31};
    crop_draw(plan, &crop, width, height, &out);
    if (o->erase > 0)
        out.erase = erase_draw(&erase, o->erase, o->image_size, o->image_size);
    out.erase_words = draws_taken(&erase);
    return out;
}

static int has_jitter(const augment_options *o)
{
    return o->brightness > 0 || o->contrast > 0 || o->saturation > 0 || o->hue > 0;
}

int augment_only_moves(const augment_plan *plan, const data_info *info)
{
    const augment_options *o = &plan->o;
    int same = info->width == o->image_size && info->height == o->image_size;
    int whole = o->crop == CROP_PAD || o->crop == CROP_SQUASH || (o->crop == CROP_EVAL && o->crop_pct == 1);
    return same && whole && o->randaugment == 0 && !has_jitter(o);
}

static berlu_status colours_apply(const augment_plan *plan, uint32_t epoch, uint64_t sample, augment_scratch *w)
{
    const augment_options *o = &plan->o;
    draws d = draws_for(plan->seed, PURPOSE_AUGMENT, epoch, sample);
    if (o->randaugment > 0)
        return randaugment_apply(plan, &d, &w->current, &w->spare);
    if (has_jitter(o))
        jitter_apply(o, &d, &w->current);
    return BERLU_OK;
}

/* Mirrors late, while normalising, where possible: colour jitter commutes with it, RandAugment's
 * rotations and shifts do not. */
berlu_status augment_apply(const augment_plan *plan, const sample_draw *draw, uint32_t epoch, uint64_t sample,
                           float *out, augment_scratch *w)
{
    int mirror = draw->flip, side = plan->o.image_size;
    TRY(crop_apply(plan, draw, w));
    if (mirror && plan->o.randaugment > 0) {
        pixels_flip(&w->current);
        mirror = 0;
    }
    TRY(colours_apply(plan, epoch, sample, w));
    levels_apply(&plan->levels, out, &w->current, mirror);
    if (draw->erase.height > 0) {
        draws d = draws_for(plan->seed, PURPOSE_ERASE, epoch, sample);
        draws_go(&d, draw->erase_words);
        erase_fill(&d, draw->erase, out, side, side);
    }
    return BERLU_OK;
}

/* What is wrong with an image names it. */
static berlu_status named(berlu_status status, const data_source *source, data_split split, size_t index)
{
    char name[4096];
    if (status == BERLU_ERR_INPUT)
        berlu_fail_in(status, data_name(source, split, index, name, sizeof name));
    return status;
}

/* A sample is drawn once a reader knows the size of the image, before it decodes the pixels. */
typedef struct draw_job {
    const augment_plan *plan;
    uint32_t epoch;
    uint64_t sample;
    sample_draw draw;
} draw_job;

static void draw_choose(void *context, int width, int height, image_part *part)
{
    draw_job *job = context;
    job->draw = augment_draw(job->plan, width, height, job->epoch, job->sample);
    *part = job->draw.part;
}

static berlu_status sample_read(draw_job *job, data_source *source, data_split split, size_t index, augment_scratch *w)
{
    image_request request = {draw_choose, job, &w->file, w->byte_limit};
    return data_read(source, split, index, &request, &w->current);
}

berlu_status augment_image(const augment_plan *plan, data_source *source, data_split split, size_t index,
                           uint32_t epoch, uint64_t sample, augment_scratch *w)
{
    draw_job job = {.plan = plan, .epoch = epoch, .sample = sample};
    TRY(sample_read(&job, source, split, index, w));
    TRY(named(crop_apply(plan, &job.draw, w), source, split, index));
    if (job.draw.flip)
        pixels_flip(&w->current);
    return colours_apply(plan, epoch, sample, w);
}

berlu_status augment_sample(const augment_plan *plan, data_source *source, data_split split, size_t index,
                            uint32_t epoch, uint64_t sample, float *out, augment_scratch *w)
{
    draw_job job = {.plan = plan, .epoch = epoch, .sample = sample};
    TRY(sample_read(&job, source, split, index, w));
    return named(augment_apply(plan, &job.draw, epoch, sample, out, w), source, split, index);
}
