/* columns.cu - sums over rows: gradients of biases, of LayerScale, of position tables.
 * SPDX-License-Identifier: MIT
 *
 * Two stages, no atomics. First a block takes a chunk of rows and 64 columns; a thread adds its
 * share of the rows in float, the threads of a column are added in double by a fixed tree, and the
 * chunk's sum is stored. Then the chunks of a column are added in double, again in a fixed order,
 * for many sums in one launch (ends.c). How rows are cut depends on the shape alone, so the bits do
 * too. */
#include "cuda/prim.cuh"

namespace
{

constexpr int LANES = 16;             /* threads side by side; each has 4 columns, or one where they do not divide */
constexpr int DEEP = THREADS / LANES; /* threads below each other */

struct chunks {
    int64_t rows, count; /* of a chunk; how many */
};

/* About 64 rows a thread, fewer where that would leave the GPU empty; never more than 1024
 * chunks. */
chunks chunks_of(int64_t rows)
{
    int64_t each = 64 * DEEP;
    while (each > 4 * DEEP && (rows + each - 1) / each < 128)
        each /= 2;
    while ((rows + each - 1) / each > 1024)
        each *= 2;
    return chunks{each, rows > 0 ? (rows + each - 1) / each : 1};
}

struct matrix {
    array a, b, dx;
    const float *gamma;
    int64_t first, rows, columns, stride;
};

template <int WIDE, int PRODUCT>
__global__ void __launch_bounds__(THREADS) partial_sums(matrix m, float *part, int64_t rows_each, int across)
{
    __shared__ double below[DEEP][LANES * WIDE + 1];
    int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
    int64_t chunk = blockIdx.x / across, begin = chunk * rows_each;
    int64_t column = ((int64_t)(blockIdx.x % across) * LANES + lane) * WIDE;
    int64_t end = begin + rows_each < m.rows ? begin + rows_each : m.rows;
    float sum[WIDE] = {};
    if (column < m.columns)
#pragma unroll 4
        for (int64_t r = begin + deep; r < end; r += DEEP) {
            int64_t at = m.first + r * m.stride + column;
            float a[WIDE], b[WIDE], d[WIDE];
            get<WIDE>(a, m.a, at);
            if (PRODUCT)
                get<WIDE>(b, m.b, at);
            for (int j = 0; j < WIDE; j++) {
                sum[j] = PRODUCT ? fmaf(a[j], b[j], sum[j]) : sum[j] + a[j];
                d[j] = PRODUCT && m.gamma ? a[j] * m.gamma[column + j] : 0;
            }
            if (PRODUCT && m.dx.data)
                put<WIDE>(m.dx, at, d);
        }
    for (int j = 0; j < WIDE; j++)
        below[deep][lane * WIDE + j] = sum[j];
    __syncthreads();
    for (int step = DEEP / 2; step > 0; step /= 2) {
        for (int j = 0; deep < step && j < WIDE; j++)
            below[deep][lane * WIDE + j] += below[deep + step][lane * WIDE + j];
        __syncthreads();
    }
    for (int j = 0; deep == 0 && j < WIDE; j++)
        if (column + j < m.columns)
            part[chunk * m.columns + column + j] = (float)below[0][lane * WIDE + j];
}

constexpr int JOIN_COLUMNS = 32, JOIN_DEEP = 32;

struct join_list {
    int count, first[ENDS_MOST]; /* the block with which an end begins */
    cuda_end end[ENDS_MOST];
};

/* A block has 32 columns of one end and 32 threads below each other. */
__global__ void __launch_bounds__(JOIN_COLUMNS *JOIN_DEEP) join(const __grid_constant__ join_list list)
{
    __shared__ double below[JOIN_DEEP][JOIN_COLUMNS + 1];
    int lane = threadIdx.x % JOIN_COLUMNS, deep = threadIdx.x / JOIN_COLUMNS, which = 0;
    while (which + 1 < list.count && list.first[which + 1] <= (int)blockIdx.x)
        which++;
    const cuda_end &e = list.end[which];
    int64_t column = (int64_t)((int)blockIdx.x - list.first[which]) * JOIN_COLUMNS + lane;
    double sum = 0;
    if (column < e.columns)
#pragma unroll 4
        for (int64_t p = deep; p < e.parts; p += JOIN_DEEP)
            sum += e.part[p * e.stride + column];
    below[deep][lane] = sum;
    __syncthreads();
    for (int step = JOIN_DEEP / 2; step > 0; step /= 2) {
        if (deep < step)
            below[deep][lane] += below[deep + step][lane];
        __syncthreads();
    }
    if (deep == 0 && column < e.columns)
        e.to[e.inner ? column % e.inner * (e.columns / e.inner) + column / e.inner : column] = (float)below[0][lane];
}

template <int WIDE> void launch(const op_call *c, const matrix &m, float *part, const chunks &k)
{
    int across = (int)((m.columns + LANES * WIDE - 1) / (LANES * WIDE));
    cudaStream_t s = (cudaStream_t)cuda_device_of(c)->stream;
    kernel_launch(s, m.b.data ? partial_sums<WIDE, 1> : partial_sums<WIDE, 0>, k.count * across, THREADS, 0, m, part,
                  k.rows, across);
    cuda_launched(c);
}

} // namespace

extern "C" {

size_t cuda_columns_workspace(int64_t rows, int64_t columns)
{
    return (size_t)(chunks_of(rows).count * columns) * sizeof(float);
}

void cuda_ends_launch(cuda_device *d, const cuda_end *ends, int count)
{
    join_list list = {};
    int64_t blocks = 0;
    list.count = count;
    for (int i = 0; i < count; i++) {
        list.first[i] = (int)blocks;
        list.end[i] = ends[i];
        blocks += (ends[i].columns + JOIN_COLUMNS - 1) / JOIN_COLUMNS;
    }
    kernel_launch((cudaStream_t)d->stream, join, blocks, JOIN_COLUMNS * JOIN_DEEP, 0, list);
}

void cuda_columns_join(const op_call *c, float *to, const float *part, int64_t parts, int64_t columns, int64_t inner)
{
    cuda_end end = {part, to, parts, columns, columns, inner};
    cuda_end_add(c, &end);
}

void cuda_columns(const op_call *c, const column_sums *s, void *workspace)
{
    matrix m = {array_of(s->a),
                s->b ? array_of(s->b) : array{},
                s->dx ? array_of(s->dx) : array{},
                s->gamma,
                s->first,
                s->rows,
                s->columns,
                s->stride};
    chunks k = chunks_of(s->rows);
    if (!s->columns)
        return;
    if (s->columns % 4 == 0 && s->stride % 4 == 0 && s->first % 4 == 0)
        launch<4>(c, m, (float *)workspace, k);
    else
        launch<1>(c, m, (float *)workspace, k);
    cuda_columns_join(c, s->to, (const float *)workspace, k.count, s->columns, s->inner);
}

/* dx = dy * gamma, dgamma = column sums of dy * x. dx may lie where dy does: a thread reads its
 * elements first. */
void cuda_scale_grad(const op_call *c)
{
    column_sums s = {};
    s.a = &c->in[0];
    s.b = &c->in[1];
    s.rows = c->in[0].rows;
    s.columns = s.stride = c->in[0].channels;
    s.to = (float *)c->out[1].data;
    s.gamma = (const float *)c->in[2].data;
    s.dx = &c->out[0];
    cuda_columns(c, &s, c->workspace);
}

size_t cuda_scale_grad_workspace(const op_call *c)
{
    return cuda_columns_workspace(c->in[0].rows, c->in[0].channels);
}
}
