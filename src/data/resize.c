/* resize.c - Pillow's antialiased resize: two passes, integer coefficients, bytes in between.
 * SPDX-License-Identifier: MIT
 *
 * Each output pixel of an axis is a weighted sum of neighbouring input pixels; the filter is
 * stretched by the reduction factor, which prevents aliasing. Weights become integers of 22
 * fractional bits; sums are exact in 32 bits, the horizontal result is rounded to bytes before the
 * vertical pass. All of that follows Pillow, so that our images are equal to the last bit. The
 * loops here are the reference; resize_avx2.c and resize_vnni.c compute the same sums faster. */
#include "data/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "data/resize_pass.h"

static double filter_bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double filter_bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

/* The weights of one output pixel, normalised and rounded half away from zero. */
static void axis_weigh(resize_axis *axis, int out, int in, double scale, resize_filter filter, double *weights)
{
    double support = (filter == RESIZE_BICUBIC ? 2.0 : 1.0), stretch = scale > 1.0 ? scale : 1.0;
    double (*f)(double) = filter == RESIZE_BICUBIC ? filter_bicubic : filter_bilinear;
    double centre = (out + 0.5) * scale, inverse = 1.0 / stretch, sum = 0;
    support *= stretch;
    int low = (int)(centre - support + 0.5), high = (int)(centre + support + 0.5);
    low = low < 0 ? 0 : low;
    high = high > in ? in : high;
    for (int j = low; j < high; j++)
        sum += weights[j - low] = f((j - centre + 0.5) * inverse);
    int32_t *k = axis->weights + (size_t)out * (size_t)axis->taps;
    for (int j = 0; j < high - low; j++) {
        double w = (sum != 0.0 ? weights[j] / sum : weights[j]) * (1 << RESIZE_BITS);
        k[j] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
    memset(k + (high - low), 0, (size_t)(axis->taps - (high - low)) * sizeof *k);
    axis->low[out] = low;
    axis->count[out] = high - low;
}

static int axis_taps(int in, int out, resize_filter filter)
{
    double scale = (double)in / out, stretch = scale > 1.0 ? scale : 1.0;
    return (int)ceil((filter == RESIZE_BICUBIC ? 2.0 : 1.0) * stretch) * 2 + 1;
}

static void axis_fill(resize_axis *axis, int in, int out, resize_filter filter, double *weights)
{
    for (int i = 0; i < out; i++)
        axis_weigh(axis, i, in, (double)in / out, filter, weights);
}

static uint8_t to_byte(int32_t sum)
{
    sum >>= RESIZE_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void row_across(uint8_t *out, const uint8_t *in, const resize_axis *axis)
{
    for (int x = 0; x < axis->out; x++) {
        const int32_t *k = axis->weights + (size_t)x * (size_t)axis->taps;
        const uint8_t *p = in + (size_t)axis->low[x] * 3;
        int32_t r = 1 << (RESIZE_BITS - 1), g = r, b = r;
        for (int j = 0; j < axis->count[x]; j++, p += 3) {
            r += k[j] * p[0];
            g += k[j] * p[1];
            b += k[j] * p[2];
        }
        out[3 * x] = to_byte(r);
        out[3 * x + 1] = to_byte(g);
        out[3 * x + 2] = to_byte(b);
    }
}

void resize_tail_down(uint8_t *out, const uint8_t *in, size_t bytes, size_t from, const int32_t *k, int count)
{
    for (size_t x = from; x < bytes; x++) {
        int32_t sum = 1 << (RESIZE_BITS - 1);
        for (int j = 0; j < count; j++)
            sum += k[j] * in[(size_t)j * bytes + x];
        out[x] = to_byte(sum);
    }
}

static void row_down(uint8_t *out, const uint8_t *in, size_t bytes, const int32_t *k, int count)
{
    resize_tail_down(out, in, bytes, 0, k, count);
}

static void rows_across(uint8_t *out, const uint8_t *in, size_t in_row, int rows, const resize_axis *axis)
{
    for (int y = 0; y < rows; y++)
        row_across(out + (size_t)y * (size_t)axis->out * 3, in + (size_t)y * in_row, axis);
}

const resize_passes resize_passes_plain = {NULL, rows_across, row_down};

static const resize_passes *passes_pick(void)
{
#if defined(__x86_64__)
    cpu_isa isa;
    berlu_status status = cpu_isa_pick(&isa);
    if (status == BERLU_OK && isa == CPU_AVX512 && __builtin_cpu_supports("avx512vnni"))
        return &resize_passes_vnni;
    if (status == BERLU_OK && (isa == CPU_AVX2 || isa == CPU_AVX512))
        return &resize_passes_avx2;
#endif
    return &resize_passes_plain;
}

void resize_scratch_free(resize_scratch *s)
{
    free(s->memory);
    *s = (resize_scratch){0};
}

enum { PACKED_ALIGN = 64 };

/* One block for both axes and the image in between; it is kept for the next call. */
typedef struct resize_plan {
    resize_axis across, down;
    double *weights;
    uint8_t *between;
} resize_plan;

static berlu_status plan_place(resize_plan *plan, const image *in, int width, int height, resize_filter filter,
                               resize_scratch *s)
{
    resize_axis *a = &plan->across, *d = &plan->down;
    a->in = in->width, a->out = width, a->taps = axis_taps(in->width, width, filter);
    d->in = in->height, d->out = height, d->taps = axis_taps(in->height, height, filter);
    size_t most = (size_t)(a->taps > d->taps ? a->taps : d->taps);
    size_t ints = (size_t)width * (size_t)(a->taps + 2) + (size_t)height * (size_t)(d->taps + 2);
    a->groups = (a->taps + 3) / 4;
    size_t packed = (size_t)(width + 3) * (size_t)a->groups * 32;
    size_t between = (size_t)width * 3 * (size_t)in->height;
    size_t need = most * sizeof(double) + ints * sizeof(int32_t) + packed * sizeof(int16_t) + between + PACKED_ALIGN;
    if (need > s->capacity) {
        void *grown = realloc(s->memory, need);
        if (!grown)
            return berlu_fail_memory(need, "resizing an image");
        s->memory = grown;
        s->capacity = need;
    }
    plan->weights = s->memory;
    int32_t *at = (int32_t *)(plan->weights + most);
    a->weights = at, at += (size_t)width * (size_t)a->taps;
    d->weights = at, at += (size_t)height * (size_t)d->taps;
    a->low = at, at += width;
    a->count = at, at += width;
    d->low = at, at += height;
    d->count = at, at += height;
    a->packed = (int16_t *)(((uintptr_t)at + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN);
    plan->between = (uint8_t *)(a->packed + packed);
    return BERLU_OK;
}

/* Only the rows that the vertical pass will read are computed. */
static const uint8_t *pass_across(resize_plan *plan, const image *in, int width, int first, int last,
                                  const resize_passes *passes)
{
    size_t row = (size_t)in->width * 3;
    if (in->width == width)
        return in->pixels + (size_t)first * row;
    if (passes->prepare)
        passes->prepare(&plan->across);
    passes->across(plan->between, in->pixels + (size_t)first * row, row, last - first, &plan->across);
    return plan->between;
}

berlu_status image_resize_by(image *out, const image *in, int width, int height, resize_filter filter,
                             resize_scratch *s, const resize_passes *passes)
{
    if (width <= 0 || height <= 0 || in->width <= 0 || in->height <= 0)
        return berlu_fail(BERLU_ERR_ARG, "an image of %d x %d cannot be resized to %d x %d", in->width, in->height,
                          width, height);
    if (width == in->width && height == in->height)
        return image_copy_part(out, in->pixels, in->width, (image_part){0, 0, width, height, 0});
    resize_plan plan;
    TRY(image_reserve(out, width, height));
    TRY(plan_place(&plan, in, width, height, filter, s));
    axis_fill(&plan.across, in->width, width, filter, plan.weights);
    axis_fill(&plan.down, in->height, height, filter, plan.weights);
    int same = height == in->height;
    int first = same ? 0 : plan.down.low[0];
    int last = same ? height : plan.down.low[height - 1] + plan.down.count[height - 1];
    const uint8_t *rows = pass_across(&plan, in, width, first, last, passes);
    size_t row = (size_t)width * 3;
    if (same) {
        memcpy(out->pixels, rows, row * (size_t)height);
        return BERLU_OK;
    }
    for (int y = 0; y < height; y++)
        passes->down(out->pixels + (size_t)y * row, rows + (size_t)(plan.down.low[y] - first) * row, row,
                     plan.down.weights + (size_t)y * (size_t)plan.down.taps, plan.down.count[y]);
    return BERLU_OK;
}

berlu_status image_resize(image *out, const image *in, int width, int height, resize_filter filter, resize_scratch *s)
{
    if (!s->passes)
        s->passes = passes_pick();
    return image_resize_by(out, in, width, height, filter, s, s->passes);
}
