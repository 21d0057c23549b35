/* ref_linear.c - the reference of products and of the unfolding around them, by definition.
 * SPDX-License-Identifier: MIT
 *
 * Linear layers with their gradients, then unfold and its reverse: windows of an image as rows of a
 * matrix, so that a convolution is a product. window_box() clips a window at the border. */
#include "cpu/real.h"

void REF(linear)(const op_call *c)
{
    const real *x = c->in[0].data, *w = c->in[1].data, *b = c->in[2].data, *residual = c->in[3].data;
    real *y = c->out[0].data;
    int64_t outputs = c->out[0].channels, inputs = c->in[0].channels;
    for (int64_t r = 0; r < c->out[0].rows; r++)
        for (int64_t n = 0; n < outputs; n++) {
            double sum = b ? b[n] : 0;
            for (int64_t k = 0; k < inputs; k++)
                sum += (double)x[r * inputs + k] * w[n * inputs + k];
            y[r * outputs + n] = (real)(sum + (residual ? residual[r * outputs + n] : 0));
        }
}

void REF(linear_dx)(const op_call *c)
{
    const real *dy = c->in[0].data, *w = c->in[1].data, *residual = c->in[2].data;
    real *dx = c->out[0].data;
    int64_t outputs = c->in[0].channels, inputs = c->out[0].channels;
    for (int64_t r = 0; r < c->out[0].rows; r++)
        for (int64_t k = 0; k < inputs; k++) {
            double sum = 0;
            for (int64_t n = 0; n < outputs; n++)
                sum += (double)dy[r * outputs + n] * w[n * inputs + k];
            dx[r * inputs + k] = (real)(sum + (residual ? residual[r * inputs + k] : 0));
        }
}

void REF(linear_dw)(const op_call *c)
{
    const real *dy = c->in[0].data, *x = c->in[1].data;
    real *dw = c->out[0].data, *db = c->out[1].data;
    int64_t rows = c->in[0].rows, outputs = c->in[0].channels, inputs = c->in[1].channels;
    for (int64_t n = 0; n < outputs; n++) {
        for (int64_t k = 0; k < inputs; k++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++)
                sum += (double)dy[r * outputs + n] * x[r * inputs + k];
            dw[n * inputs + k] = (real)sum;
        }
        double sum = 0;
        for (int64_t r = 0; db && r < rows; r++)
            sum += dy[r * outputs + n];
        if (db)
            db[n] = (real)sum;
    }
}

/* ---- a window at every place of a tile ------------------------------------------------------- */

typedef struct spread {
    int64_t outputs, channels, kernel, tile, side, stride, padding;
} spread;

static spread spread_make(const op_operand *weight, const op_attr *a)
{
    const unfold_spec *s = &a->unfold;
    return (spread){.outputs = weight->info->size[0],
                    .channels = weight->info->size[1],
                    .kernel = s->kernel,
                    .tile = s->tile,
                    .side = (s->tile + 2 * s->padding - s->kernel) / s->stride + 1,
                    .stride = s->stride,
                    .padding = s->padding};
}

/* The element of (N, C, k, k) that lies on pixel `at` of (S N, C, p, p); -1: none does. */
static int64_t spread_source(const spread *s, int64_t at)
{
    int64_t x = at % s->tile, y = at / s->tile % s->tile, c = at / (s->tile * s->tile) % s->channels;
    int64_t row = at / (s->tile * s->tile * s->channels), n = row % s->outputs, place = row / s->outputs;
    int64_t ky = y - place / s->side * s->stride + s->padding, kx = x - place % s->side * s->stride + s->padding;
    int inside = ky >= 0 && ky < s->kernel && kx >= 0 && kx < s->kernel;
    return inside ? ((n * s->channels + c) * s->kernel + ky) * s->kernel + kx : -1;
}

void REF(spread_weight)(const op_call *c)
{
    const real *w = c->in[0].data, *b = c->in[1].data;
    real *to = c->out[0].data, *bias = c->out[1].data;
    spread s = spread_make(&c->in[0], c->attr);
    for (int64_t i = 0; i < c->out[0].rows * c->out[0].channels; i++) {
        int64_t from = spread_source(&s, i);
        to[i] = from < 0 ? 0 : w[from];
    }
    for (int64_t i = 0; b && i < s.side * s.side * s.outputs; i++)
        bias[i] = b[i % s.outputs];
}

void REF(spread_weight_grad)(const op_call *c)
{
    const real *d = c->in[0].data, *dbias = c->in[1].data;
    real *dw = c->out[0].data, *db = c->out[1].data;
    spread s = spread_make(&c->out[0], c->attr);
    int64_t count = c->out[0].rows * c->out[0].channels;
    for (int64_t i = 0; i < count; i++)
        dw[i] = 0;
    for (int64_t i = 0; i < c->in[0].rows * c->in[0].channels; i++) {
        int64_t to = spread_source(&s, i);
        if (to >= 0)
            dw[to] += d[i];
    }
    for (int64_t i = 0; db && i < s.outputs; i++) {
        double sum = 0;
        for (int64_t k = 0; k < s.side * s.side; k++)
            sum += dbias[k * s.outputs + i];
        db[i] = (real)sum;
    }
}

/* ---- unfold and fold ------------------------------------------------------------------------- */

typedef struct window {
    int64_t channels, height, width; /* of the image */
    int64_t tiles_across, side, down, across;
    int64_t rows; /* per image */
    int planar;
    unfold_spec s;
} window;

static window window_make(const tensor_info *image, const tensor_info *rows, const op_attr *a)
{
    window w = {.planar = a->planar, .s = a->unfold, .rows = tensor_elements(rows) / tensor_channels(rows)};
    w.channels = image->size[a->planar ? 0 : 2];
    w.height = image->size[a->planar ? 1 : 0];
    w.width = image->size[a->planar ? 2 : 1];
    w.down = rows->size[0];
    w.across = rows->size[1];
    if (!w.s.tile)
        return w;
    w.tiles_across = w.width / w.s.tile;
    while (w.side * w.side < rows->size[1])
        w.side++;
    return w;
}

/* Top left corner of the window of row r, and the box outside which there are zeros. */
typedef struct box {
    int64_t top, left, y0, y1, x0, x1;
} box;

static box window_box(const window *w, int64_t r)
{
    box b = {.y1 = w->height, .x1 = w->width};
    if (!w->s.tile) {
        b.top = r / w->across * w->s.stride - w->s.padding;
        b.left = r % w->across * w->s.stride - w->s.padding;
        return b;
    }
    int64_t tile = r / (w->side * w->side), at = r % (w->side * w->side);
    int64_t y = tile / w->tiles_across * w->s.tile, x = tile % w->tiles_across * w->s.tile;
    b.top = y + at / w->side * w->s.stride - w->s.padding;
    b.left = x + at % w->side * w->s.stride - w->s.padding;
    if (!w->s.leak)
        b = (box){b.top, b.left, y, y + w->s.tile, x, x + w->s.tile};
    return b;
}

static int64_t pixel_at(const window *w, int64_t channel, int64_t y, int64_t x)
{
    return w->planar ? (channel * w->height + y) * w->width + x : (y * w->width + x) * w->channels + channel;
}

void REF(unfold)(const op_call *c)
{
    window w = window_make(c->in[0].info, c->out[0].info, c->attr);
    int64_t k = w.s.kernel, size = w.channels * w.height * w.width, row = c->out[0].channels;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->out[0].rows; r++) {
        const real *image = (const real *)c->in[0].data + r / w.rows * size;
        real *to = (real *)c->out[0].data + r * row;
        box b = window_box(&w, r % w.rows);
        for (int64_t channel = 0; channel < w.channels; channel++)
            for (int64_t ky = 0; ky < k; ky++)
                for (int64_t kx = 0; kx < k; kx++, to++) {
                    int64_t y = b.top + ky, x = b.left + kx;
                    int inside = y >= b.y0 && y < b.y1 && x >= b.x0 && x < b.x1;
                    *to = inside ? image[pixel_at(&w, channel, y, x)] : 0;
                }
    }
}

/* Windows are disjoint (the shape rule ensures it), so every pixel has one source; those outside
 * all windows get zero. */
void REF(fold)(const op_call *c)
{
    window w = window_make(c->out[0].info, c->in[0].info, c->attr);
    int64_t k = w.s.kernel, size = w.channels * w.height * w.width, row = c->in[0].channels;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < c->batch * w.height; i++) {
        int64_t y = i % w.height;
        real *image = (real *)c->out[0].data + i / w.height * size;
        const real *from = (const real *)c->in[0].data + i / w.height * w.rows * row;
        for (int64_t x = 0; x < w.width; x++)
            for (int64_t channel = 0; channel < w.channels; channel++) {
                int inside = y / k < w.down && x / k < w.across;
                int64_t at = (y / k * w.across + x / k) * row + (channel * k + y % k) * k + x % k;
                image[pixel_at(&w, channel, y, x)] = inside ? from[at] : 0;
            }
    }
}
