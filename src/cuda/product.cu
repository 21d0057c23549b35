/* product.cu - what is left of a linear layer where cuBLASLt does not do it.
 * SPDX-License-Identifier: MIT
 *
 * rows_finish() adds a bias or residual that the library's epilogue did not take (its dtype differs
 * from the output's). product_plain() is a whole product by tiles of 32 x 32 in shared memory: for
 * shapes to which the library offers nothing, which are small ones. The depth is added in order, so
 * the bits depend on the shape alone. */
#include "cuda/storage.cuh"

namespace
{

constexpr int TILE = 32, EACH = TILE * TILE / THREADS; /* elements of a tile that one thread has */

struct operands {
    array a, b, bias, residual, y;
    int64_t rows, columns, depth, a_row, a_depth, b_row, b_depth;
};

/* A tile of rows `row0 ..` and depths `depth0 ..`; lanes run along the dimension that is contiguous
 * in memory. */
__device__ void tile_load(float tile[TILE][TILE + 1], const array &m, int64_t row0, int64_t rows, int64_t depth0,
                          int64_t depth, int64_t row_stride, int64_t depth_stride)
{
    int lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
    bool along = depth_stride == 1;
    for (int e = 0; e < EACH; e++) {
        int other = line + e * (THREADS / TILE), r = along ? other : lane, d = along ? lane : other;
        bool inside = row0 + r < rows && depth0 + d < depth;
        tile[r][d] = inside ? load(m, (row0 + r) * row_stride + (depth0 + d) * depth_stride) : 0.0f;
    }
}

__global__ void __launch_bounds__(THREADS) product(operands p)
{
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    int64_t row0 = (int64_t)blockIdx.x * TILE, column0 = (int64_t)blockIdx.y * TILE;
    int lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
    float sum[EACH] = {};
    for (int64_t depth0 = 0; depth0 < p.depth; depth0 += TILE) {
        tile_load(a, p.a, row0, p.rows, depth0, p.depth, p.a_row, p.a_depth);
        tile_load(b, p.b, column0, p.columns, depth0, p.depth, p.b_row, p.b_depth);
        __syncthreads();
        for (int d = 0; d < TILE; d++)
            for (int e = 0; e < EACH; e++)
                sum[e] = __fmaf_rn(a[line + e * (THREADS / TILE)][d], b[lane][d], sum[e]);
        __syncthreads();
    }
    int64_t column = column0 + lane;
    for (int e = 0; e < EACH; e++) {
        int64_t row = row0 + line + e * (THREADS / TILE), at = row * p.columns + column;
        if (row >= p.rows || column >= p.columns)
            continue;
        float y = sum[e] + (p.bias.data ? load(p.bias, column) : 0.0f);
        store(p.y, at, y + (p.residual.data ? load(p.residual, at) : 0.0f));
    }
}

__global__ void __launch_bounds__(THREADS) finish(array y, array bias, array residual, int64_t columns, int64_t count)
{
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        float x = load(y, i) + (bias.data ? load(bias, i - quotient(i, columns) * columns) : 0.0f);
        store(y, i, x + (residual.data ? load(residual, i) : 0.0f));
    }
}

} // namespace

extern "C" {

void cuda_rows_finish(const op_call *c, const op_operand *y, const op_operand *bias, const op_operand *residual,
                      int64_t rows, int64_t columns)
{
    int64_t count = rows * columns;
    finish<<<blocks_for(count), THREADS, 0, cuda_device_of(c)->stream>>>(
        array_of(y), bias ? array_of(bias) : array{}, residual ? array_of(residual) : array{}, columns, count);
    cuda_launched(c);
}

void cuda_product_plain(const op_call *c, const plain_product *p)
{
    dim3 grid((unsigned)((p->rows + TILE - 1) / TILE), (unsigned)((p->columns + TILE - 1) / TILE));
    operands o = {array_of(&p->a), array_of(&p->b), array_of(&p->bias), array_of(&p->residual),
                  array_of(&p->y), p->rows,         p->columns,         p->depth,
                  p->a_row,        p->a_depth,      p->b_row,           p->b_depth};
    product<<<grid, THREADS, 0, cuda_device_of(c)->stream>>>(o);
    cuda_launched(c);
}
}
