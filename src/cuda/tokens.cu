/* tokens.cu - ops along the token dimension, and means over positions. SPDX-License-Identifier: MIT
 *
 * Forward ops are gathers: a thread finds where its output element comes from. Gradients of tables that all images share are
 * sums over images, hence column sums of a matrix with one row per image (columns.cu). */
#include "cuda/storage.cuh"

namespace
{

template <class F> __global__ void __launch_bounds__(THREADS) fill(F f, array y, int64_t count)
{
    for (int64_t i = thread_index(); i < count; i += thread_count())
        store(y, i, f(i));
}

template <class F> void run(const op_call *c, const op_operand *out, F f)
{
    int64_t count = operand_count(out);
    if (!count)
        return;
    fill<<<blocks_for(count), THREADS, 0, cuda_device_of(c)->stream>>>(f, array_of(out), count);
    cuda_launched(c);
}

/* Index i of [images, tokens, channels], taken apart. */
struct place {
    int64_t image, token, channel;
    __device__ place(int64_t i, int64_t tokens, int64_t channels)
    {
        int64_t row = quotient(i, channels);
        channel = i - row * channels;
        image = quotient(row, tokens);
        token = row - image * tokens;
    }
};

struct tokens {
    array x, pos, first, second; /* first: the token in front of all; second: the one behind it */
    int64_t channels, all, front;
    __device__ float operator()(int64_t i) const
    {
        place p(i, all, channels);
        float table = load(pos, p.token * channels + p.channel);
        if (p.token >= front)
            return load(x, (p.image * (all - front) + p.token - front) * channels + p.channel) + table;
        return load(p.token == 0 && first.data ? first : second, p.channel) + table;
    }
};

/* Tokens [skip, skip + kept) of every image. */
struct part {
    array x;
    int64_t channels, all, kept, skip;
    __device__ float operator()(int64_t i) const
    {
        place p(i, kept, channels);
        return load(x, (p.image * all + skip + p.token) * channels + p.channel);
    }
};

struct pixel_pos {
    array x, pos; /* pos is (1, d, q, q): channel first */
    int64_t channels, pixels;
    __device__ float operator()(int64_t i) const
    {
        place p(i, pixels, channels);
        return load(x, i) + load(pos, p.channel * pixels + p.token);
    }
};

struct add_tokens {
    array x, branch;
    int64_t channels, all, skip;
    __device__ float operator()(int64_t i) const
    {
        place p(i, all, channels);
        float more =
            p.token < skip ? 0.0f : load(branch, (p.image * (all - skip) + p.token - skip) * channels + p.channel);
        return load(x, i) + more;
    }
};

struct select_grad {
    array dy;
    int64_t channels, all, token;
    __device__ float operator()(int64_t i) const
    {
        place p(i, all, channels);
        return p.token == token ? load(dy, p.image * channels + p.channel) : 0.0f;
    }
};

struct mean {
    array x;
    int64_t channels, places;
    __device__ float operator()(int64_t i) const
    {
        int64_t image = quotient(i, channels), channel = i - image * channels;
        double sum = 0;
#pragma unroll 4
        for (int64_t r = 0; r < places; r++)
            sum += load(x, (image * places + r) * channels + channel);
        return (float)(sum / (double)places);
    }
};

struct mean_grad {
    array dy;
    int64_t channels, places;
    __device__ float operator()(int64_t i) const
    {
        place p(i, places, channels);
        return load(dy, p.image * channels + p.channel) / (float)places;
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

/* Sums over the images of the rows of `count` tokens from `token` on. */
static void image_sums(const op_call *c, const op_operand *to, int64_t token, int64_t count)
{
    int64_t channels = c->in[0].channels;
    column_sums s = {};
    s.a = &c->in[0];
    s.first = token * channels;
    s.rows = c->batch;
    s.columns = count * channels;
    s.stride = tokens_of(c, &c->in[0]) * channels;
    s.to = (float *)to->data;
    cuda_columns(c, &s, c->workspace);
}

void cuda_tokens_grad(const op_call *c)
{
    const op_operand *dx = &c->out[0], *dpos = &c->out[1], *dcls = &c->out[2], *ddist = &c->out[3];
    int64_t all = tokens_of(c, &c->in[0]), front = (dcls->data != nullptr) + (ddist->data != nullptr);
    if (dpos->data)
        image_sums(c, dpos, 0, all);
    if (dcls->data)
        image_sums(c, dcls, 0, 1);
    if (ddist->data)
        image_sums(c, ddist, front - 1, 1);
    if (dx->data)
        run(c, dx, part{array_of(&c->in[0]), c->in[0].channels, all, all - front, front});
}

size_t cuda_tokens_grad_workspace(const op_call *c)
{
    return cuda_columns_workspace(c->batch, operand_count(&c->in[0]) / c->batch);
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
