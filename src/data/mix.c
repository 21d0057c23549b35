/* mix.c - mixup and cutmix by timm's rules, with draws by counter. SPDX-License-Identifier: MIT
 *
 * Row i is mixed with row n-1-i, so a group is processed in place pair by pair: both rows of a pair
 * are read before either is written. Beta(a, a) for a <= 1 comes from Johnk's method, whose tries
 * are further draws of the same counter; for a > 1 from two gamma draws by Marsaglia and Tsang's
 * method. */
#include "data/mix.h"

#include <assert.h>
#include <math.h>

#include "data/draws.h"

/* With a small alpha both powers are often too small for a double; their ratio is then taken from
 * the logarithms. */
static double beta_johnk(draws *d, double a)
{
    for (;;) {
        double u = draws_uniform(d, 0, 1), v = draws_uniform(d, 0, 1), x = pow(u, 1 / a), y = pow(v, 1 / a);
        if (x + y > 0 && x + y <= 1)
            return x / (x + y);
        if (x + y == 0 && u > 0 && v > 0)
            return 1 / (1 + exp((log(v) - log(u)) / a));
    }
}

static double gamma_draw(draws *d, double a)
{
    double k = a - 1.0 / 3, c = 1 / sqrt(9 * k);
    for (;;) {
        double x = draws_normal(d), v = 1 + c * x, u = draws_uniform(d, 0, 1);
        v = v * v * v;
        if (v > 0 && log(u) < 0.5 * x * x + k - k * v + k * log(v))
            return k * v;
    }
}

static double beta_draw(draws *d, double a)
{
    if (a == 1)
        return draws_uniform(d, 0, 1);
    if (a < 1)
        return beta_johnk(d, a);
    double x = gamma_draw(d, a), y = gamma_draw(d, a);
    return x / (x + y);
}

static int clamp(int v, int high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

static void box_draw(mix_draw *m, draws *d, int height, int width)
{
    double r = sqrt(1 - m->lam);
    int h = (int)(height * r), w = (int)(width * r);
    int y = draws_below(d, height), x = draws_below(d, width);
    m->top = clamp(y - h / 2, height);
    m->bottom = clamp(y + (h + 1) / 2, height);
    m->left = clamp(x - w / 2, width);
    m->right = clamp(x + (w + 1) / 2, width);
    m->lam = 1 - (double)(m->bottom - m->top) * (m->right - m->left) / ((double)height * width);
}

mix_draw mix_draw_for(const mix_options *m, uint64_t seed, uint32_t epoch, uint64_t group, int height, int width)
{
    mix_draw out = {.lam = 1};
    draws d = draws_for(seed, PURPOSE_MIX, epoch, group);
    if (!mix_is_on(m) || !draws_chance(&d, m->probability))
        return out;
    int coin = draws_chance(&d, m->switch_to_cutmix);
    out.cut = m->cutmix > 0 && (m->mixup <= 0 || coin);
    out.lam = beta_draw(&d, out.cut ? m->cutmix : m->mixup);
    if (out.cut)
        box_draw(&out, &d, height, width);
    return out;
}

static void pair_blend(float *a, float *b, size_t n, float lam)
{
    float rest = 1 - lam;
    for (size_t i = 0; i < n; i++) {
        float x = a[i], y = b[i];
        a[i] = lam * x + rest * y;
        b[i] = lam * y + rest * x;
    }
}

static void pair_swap(float *a, float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

void mix_images(const mix_draw *d, float *images, size_t rows, int channels, int height, int width)
{
    size_t plane = (size_t)height * (size_t)width, floats = (size_t)channels * plane;
    assert(d->lam >= 0 && d->lam <= 1);
    if (d->lam == 1)
        return;
    for (size_t i = 0; i < rows / 2; i++) { /* the middle row of an odd group is its own partner */
        float *a = images + i * floats, *b = images + (rows - 1 - i) * floats;
        if (!d->cut) {
            pair_blend(a, b, floats, (float)d->lam);
            continue;
        }
        for (int c = 0; c < channels; c++)
            for (int y = d->top; y < d->bottom; y++) {
                size_t at = (size_t)c * plane + (size_t)y * (size_t)width + (size_t)d->left;
                pair_swap(a + at, b + at, (size_t)(d->right - d->left));
            }
    }
}

/* The targets of a row: of its class, of its partner's, of every other. */
typedef struct mix_row {
    float target, other, base;
} mix_row;

static mix_row row_of(const mix_draw *d, double smoothing, int same, size_t classes)
{
    double off = smoothing / (double)classes, on = 1 - smoothing + off;
    return (mix_row){.target = (float)(d->lam * on + (1 - d->lam) * (same ? on : off)),
                     .other = (float)(d->lam * off + (1 - d->lam) * on),
                     .base = (float)off};
}

void mix_targets(const mix_draw *d, double smoothing, const int32_t *labels, float *targets, size_t rows,
                 size_t classes)
{
    for (size_t i = 0; i < rows; i++) {
        float *t = targets + i * classes;
        size_t own = (size_t)labels[i], other = (size_t)labels[rows - 1 - i];
        mix_row r = row_of(d, smoothing, own == other, classes);
        for (size_t k = 0; k < classes; k++)
            t[k] = r.base;
        t[other] = r.other;
        t[own] = r.target;
    }
}

static image_mix mix_kind(const mix_draw *d)
{
    return d->lam == 1 ? IMAGE_ALONE : d->cut ? IMAGE_CUT : IMAGE_BLENDED;
}

void mix_draws(const mix_draw *d, double smoothing, image_draw *batch, size_t first, size_t rows, size_t classes)
{
    for (size_t i = 0; i < rows; i++) {
        image_draw *own = &batch[first + i];
        size_t partner = first + rows - 1 - i;
        mix_row r = row_of(d, smoothing, own->label == batch[partner].label, classes);
        own->target = r.target, own->other = r.other, own->base = r.base;
        own->partner = (int32_t)partner;
        own->mix = (uint8_t)mix_kind(d);
        own->share = (float)d->lam, own->rest = 1 - own->share;
        own->cut = (image_box){(int16_t)d->top, (int16_t)d->left, (int16_t)d->bottom, (int16_t)d->right};
    }
}
