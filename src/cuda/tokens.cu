/* tokens.cu - ops along the token dimension, and means over positions. SPDX-License-Identifier: MIT
 *
 * Forward ops are gathers: a thread finds where its output elements come from. Gradients of tables
 * that all images share are sums over images, hence column sums of a matrix with one row per image
 * (columns.cu). */
#include "cuda/prim.cuh"

namespace
{

template <int WIDE, class F> __global__ void __launch_bounds__(THREADS) fill(F f, array y, int64_t count)
{
    for (int64_t i = thread_index() * WIDE; i < count; i += thread_count() * WIDE) {
        float v[WIDE];
        f.template make<WIDE>(i, v);
        put<WIDE>(y, i, v);
    }
}

/* Four elements a thread where they never lie in two rows. */
template <class F> void run(const op_call *c, const op_operand *out, F f)
{
    int64_t count = operand_count(out);
    if (!count)
        return;
    bool wide = out->channels % 4 == 0 && array_aligned(array_of(out));
    for (int i = 0; i < NODE_INPUTS; i++)
        wide = wide && array_aligned(array_of(&c->in[i]));
    cuda_stream s = cuda_device_of(c)->stream;
    if (wide)
        kernel_launch(s, fill<4, F>, blocks_for(count / 4), THREADS, 0, f, array_of(out), count);
    else
        kernel_launch(s, fill<1, F>, blocks_for(count), THREADS, 0, f, array_of(out), count);
    cuda_launched(c);
}

/* Index i of [images, tokens, channels], taken apart. */
struct position {
    int64_t image, token, channel;
    __device__ position(int64_t i, int64_t tokens, int64_t channels)
    {
        int64_t row = quotient(i, channels);
        channel = i - row * channels;
        image = quotient(row, tokens);
        token = row - image * tokens;
    }
};

struct tokens {
    array x, pos, first, second; /* first: the token in front of all; second: the next one */
    int64_t channels, all, front;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, all, channels);
        float table[WIDE];
        get<WIDE>(table, pos, p.token * channels + p.channel);
        if (p.token >= front)
            get<WIDE>(y, x, (p.image * (all - front) + p.token - front) * channels + p.channel);
        else
            get<WIDE>(y, p.token == 0 && first.data ? first : second, p.channel);
        for (int j = 0; j < WIDE; j++)
            y[j] += table[j];
    }
};

/* Tokens [skip, skip + kept) of every image. */
struct part {
    array x;
    int64_t channels, all, kept, skip;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, kept, channels);
        get<WIDE>(y, x, (p.image * all + skip + p.token) * channels + p.channel);
    }
};

struct pixel_pos {
    array x, pos; /* pos is (1, d, q, q): channel first */
    int64_t channels, pixels;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, pixels, channels);
        get<WIDE>(y, x, i);
        for (int j = 0; j < WIDE; j++)
            y[j] += load(pos, (p.channel + j) * pixels + p.token);
    }
};

struct add_tokens {
    array x, branch;
    int64_t channels, all, skip;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, all, channels);
        float more[WIDE] = {};
        if (p.token >= skip)
            get<WIDE>(more, branch, (p.image * (all - skip) + p.token - skip) * channels + p.channel);
        get<WIDE>(y, x, i);
        for (int j = 0; j < WIDE; j++)
            y[j] += more[j];
    }
};

struct select_grad {
    array dy;
    int64_t channels, all, token;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, all, channels);
        for (int j = 0; j < WIDE; j++)
            y[j] = 0;
        if (p.token == token)
            get<WIDE>(y, dy, p.image * channels + p.channel);
    }
};

struct mean {
    array x;
    int64_t channels, positions;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        int64_t image = quotient(i, channels), channel = i - image * channels;
        double sum[WIDE] = {};
#pragma unroll 4
        for (int64_t r = 0; r < positions; r++) {
            float v[WIDE];
            get<WIDE>(v, x, (image * positions + r) * channels + channel);
            for (int j = 0; j < WIDE; j++)
                sum[j] += v[j];
        }
        for (int j = 0; j < WIDE; j++)
            y[j] = (float)(sum[j] / (double)positions);
    }
};

struct mean_grad {
    array dy;
    int64_t channels, positions;
    template <int WIDE> __device__ void make(int64_t i, float *y) const
    {
        position p(i, positions, channels);
        get<WIDE>(y, dy, p.image * channels + p.channel);
        for (int j = 0; j < WIDE; j++)
            y[j] /= (float)positions;
    }
};

int64_t tokens_of(const op_call *c, const op_operand *o)
{
    return o->rows / c->batch;
}

} // namespace

extern "C" {

void cuda_tokens(const op_call *c)
{
    int64_t all = tokens_of(c, &c->out[0]);
    run(c, &c->out[0],
        tokens{array_of(&c->in[0]), array_of(&c->in[1]), array_of(&c->in[2]), array_of(&c->in[3]), c->out[0].channels,
               all, all - tokens_of(c, &c->in[0])});
}

/* Sums over the images of the rows of `count` tokens from `token` on. Partial sums may be added
 * later (ends.c), so each sum takes a part of the workspace for itself; returns what follows it. */
static char *image_sums(const op_call *c, char *workspace, const op_operand *to, int64_t token, int64_t count)
{
    int64_t channels = c->in[0].channels;
    column_sums s = {};
    if (!to->data)
        return workspace;
    s.a = &c->in[0];
    s.first = token * channels;
    s.rows = c->batch;
    s.columns = count * channels;
    s.stride = tokens_of(c, &c->in[0]) * channels;
    s.to = (float *)to->data;
    cuda_columns(c, &s, workspace);
    return workspace + cuda_columns_workspace(c->batch, s.columns);
}

void cuda_tokens_grad(const op_call *c)
{
    const op_operand *dx = &c->out[0], *dpos = &c->out[1], *dcls = &c->out[2], *ddist = &c->out[3];
    int64_t all = tokens_of(c, &c->in[0]), front = (dcls->data != nullptr) + (ddist->data != nullptr);
    char *workspace = image_sums(c, (char *)c->workspace, dpos, 0, all);
    workspace = image_sums(c, workspace, dcls, 0, 1);
    image_sums(c, workspace, ddist, front - 1, 1);
    if (dx->data)
        run(c, dx, part{array_of(&c->in[0]), c->in[0].channels, all, all - front, front});
}

size_t cuda_tokens_grad_workspace(const op_call *c)
{
    int64_t token = c->in[0].channels, all = operand_count(&c->in[0]) / c->batch;
    return cuda_columns_workspace(c->batch, all) + 2 * cuda_columns_workspace(c->batch, token);
}

static int64_t pixels_of(const op_call *c)
{
    const tensor_info *info = c->in[0].info;
    return info->size[info->rank - 2];
}

void cuda_pixel_pos(const op_call *c)
{
    run(c, &c->out[0], pixel_pos{array_of(&c->in[0]), array_of(&c->in[1]), c->in[0].channels, pixels_of(c)});
}

/* One row per group of pixels; the table has channels first, so the sums are written transposed. */
void cuda_pixel_pos_grad(const op_call *c)
{
    column_sums s = {};
    s.a = &c->in[0];
    s.rows = c->in[0].rows / pixels_of(c);
    s.columns = s.stride = pixels_of(c) * c->in[0].channels;
    s.inner = c->in[0].channels;
    s.to = (float *)c->out[0].data;
    cuda_columns(c, &s, c->workspace);
}

size_t cuda_pixel_pos_grad_workspace(const op_call *c)
{
    return cuda_columns_workspace(c->in[0].rows / pixels_of(c), pixels_of(c) * c->in[0].channels);
}

void cuda_add_tokens(const op_call *c)
{
    run(c, &c->out[0],
        add_tokens{array_of(&c->in[0]), array_of(&c->in[1]), c->out[0].channels, tokens_of(c, &c->out[0]),
                   c->attr->skip});
}

void cuda_take_tokens(const op_call *c)
{
    int64_t all = tokens_of(c, &c->in[0]);
    run(c, &c->out[0], part{array_of(&c->in[0]), c->in[0].channels, all, all - c->attr->skip, c->attr->skip});
}

void cuda_select(const op_call *c)
{
    run(c, &c->out[0], part{array_of(&c->in[0]), c->in[0].channels, tokens_of(c, &c->in[0]), 1, c->attr->skip});
}

void cuda_select_grad(const op_call *c)
{
    run(c, &c->out[0], select_grad{array_of(&c->in[0]), c->in[0].channels, tokens_of(c, &c->out[0]), c->attr->skip});
}

void cuda_mean(const op_call *c)
{
    run(c, &c->out[0], mean{array_of(&c->in[0]), c->in[0].channels, tokens_of(c, &c->in[0])});
}

void cuda_mean_grad(const op_call *c)
{
    run(c, &c->out[0], mean_grad{array_of(&c->in[0]), c->out[0].channels, tokens_of(c, &c->out[0])});
}
}
