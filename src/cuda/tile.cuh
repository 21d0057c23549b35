/* tile.cuh - products of small bf16 tiles in shared memory by tensor cores, for attention.
 * SPDX-License-Identifier: MIT
 *
 * A tile in shared memory has rows of W channels, W + 8 elements apart: an odd number of 16-byte
 * chunks, so that ldmatrix meets every bank once. A warp computes F strips of 16 rows. Its
 * accumulators lie as mma leaves them: of the 16 x 8 block n a lane holds rows lane / 4 (elements
 * 0, 1) and lane / 4 + 8 (elements 2, 3), columns 8 n + 2 (lane % 4) and the next. Rounded to pairs
 * of bf16 that is exactly how mma takes its first operand, so a product can feed the next one from
 * registers. An odd number of blocks in the inner dimension ends in an m16n8k8.
 *
 *   tile_rows        acc += A B^T A rows x W in memory, B rows x W in memory: q k^T, dy v^T
 *   tile_packed      acc += P B P in registers, B rows x W in memory: p v, ds k
 *   tile_transposed  acc += P^T B P in memory (queries x keys), B rows x W in memory: p^T dy, ds^T
 *                    q
 *
 * Read on: attention_chip.cuh, attention_stream.cuh. */
#ifndef CUDA_TILE_CUH
#define CUDA_TILE_CUH

#include "cuda/prim.cuh"

#ifndef CUDA_EMULATED
/* Four 8 x 8 matrices of bf16; row r of matrix m is at the address in shared memory that lane 8 m +
 * r has. */
template <bool TRANS> DEVICE void matrix_load_at(uint32_t *out, uint32_t row)
{
    if constexpr (TRANS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(row)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(row)
                     : "memory");
}

/* The same for COUNT matrices, by pointers. */
template <int COUNT, bool TRANS> DEVICE void matrix_load(uint32_t *out, const uint16_t *row)
{
    static_assert(COUNT == 2 || COUNT == 4, "what ldmatrix is used for");
    uint32_t at = shared_address(row);
    if constexpr (COUNT == 4)
        matrix_load_at<TRANS>(out, at);
    else if constexpr (TRANS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1])
                     : "r"(at)
                     : "memory");
}

DEVICE void mma16(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEVICE void mma8(float *d, uint32_t a0, uint32_t a1, uint32_t b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
}
#endif

template <int W> struct tile {
    static_assert(W % 16 == 0, "mma takes 16 channels at a time");
    static constexpr int PITCH = W + 8;
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Starts the copy of `rows` rows of W channels; rows from `valid` on become zero. THREADS: those of
 * the block where they are known, for the loop to be unrolled. */
template <int W, int THREADS = 0>
DEVICE void tile_fetch(uint16_t *to, const uint16_t *from, int64_t stride, int rows, int valid)
{
    int step = THREADS ? THREADS : (int)blockDim.x;
#pragma unroll
    for (int i0 = 0; i0 < rows * (W / 8); i0 += step) {
        int i = i0 + (int)threadIdx.x, r = i / (W / 8), c = i % (W / 8) * 8;
        if (r < rows)
            copy_async<16>(to + r * tile<W>::PITCH + c, from + (r < valid ? r : 0) * stride + c, r < valid);
    }
}

/* Writes the packed accumulators of a strip to rows row0.. of a tile; rows from `rows` on do not
 * exist. */
template <int N> DEVICE void strip_stage(uint16_t *to, int pitch, const uint32_t (*p)[2], int row0, int rows)
{
    int lane = threadIdx.x % 32, row = row0 + lane / 4, column = 2 * (lane % 4);
#pragma unroll
    for (int n = 0; n < N; n++) {
        if (row < rows)
            *(uint32_t *)(to + row * pitch + n * 8 + column) = p[n][0];
        if (row + 8 < rows)
            *(uint32_t *)(to + (row + 8) * pitch + n * 8 + column) = p[n][1];
    }
}

/* Writes rows row0.. (16 of them, below `rows`) of a staged tile to memory, 16 bytes a lane. */
template <int W> DEVICE void strip_store(uint16_t *to, int64_t stride, const uint16_t *from, int row0, int rows)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = lane; i < 16 * (W / 8); i += 32) {
        int r = row0 + i / (W / 8), c = i % (W / 8) * 8;
        if (r < rows)
            *(uint4 *)(to + r * stride + c) = *(const uint4 *)(from + r * tile<W>::PITCH + c);
    }
}

template <int N> DEVICE void strip_pack(uint32_t (*p)[2], const float (*acc)[4], float first, float second)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        p[n][0] = bf16_pair(acc[n][0] * first, acc[n][1] * first);
        p[n][1] = bf16_pair(acc[n][2] * second, acc[n][3] * second);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Rows row0 .. row0 + 16 F of A; those past `last` repeat it (their results are never used). B has
 * 8 N rows. */
template <int F, int N, int W>
DEVICE void tile_rows(float (*acc)[N][4], const uint16_t *a, int row0, int last, const uint16_t *b)
{
    constexpr int PITCH = tile<W>::PITCH;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < W; k += 16) {
        uint32_t left[F][4], right[4];
#pragma unroll
        for (int f = 0; f < F; f++) {
            int row = row0 + f * 16 + lane % 16;
            matrix_load<4, false>(left[f], a + (row < last ? row : last) * PITCH + k + lane / 16 * 8);
        }
#pragma unroll
        for (int n = 0; n + 1 < N; n += 2) {
            matrix_load<4, false>(right, b + (n * 8 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 8);
#pragma unroll
            for (int f = 0; f < F; f++) {
                mma16(acc[f][n], left[f], right[0], right[1]);
                mma16(acc[f][n + 1], left[f], right[2], right[3]);
            }
        }
        if constexpr (N % 2) {
            matrix_load<2, false>(right, b + ((N - 1) * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 8);
#pragma unroll
            for (int f = 0; f < F; f++)
                mma16(acc[f][N - 1], left[f], right[0], right[1]);
        }
    }
}

/* The last 8 rows of B, for an odd number of blocks: left[f] are the two registers of m16n8k8's
 * first operand. */
template <int F, int W> DEVICE void tile_half(float (*acc)[W / 8][4], const uint32_t (*left)[2], const uint16_t *b)
{
    int lane = threadIdx.x % 32;
    constexpr int BLOCKS = W % 32 == 0 ? 4 : 2; /* a load */
#pragma unroll
    for (int c = 0; c < W / 8; c += BLOCKS) {
        uint32_t right[BLOCKS];
        matrix_load<BLOCKS, true>(right, b + lane % 8 * tile<W>::PITCH + (c + lane / 8 % BLOCKS) * 8);
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
#pragma unroll
            for (int f = 0; f < F; f++)
                mma8(acc[f][c + i], left[f][0], left[f][1], right[i]);
    }
}

/* 16 rows of B, left[f] the four registers of m16n8k16's first operand. */
template <int F, int W> DEVICE void tile_step(float (*acc)[W / 8][4], const uint32_t (*left)[4], const uint16_t *b)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < W / 8; c += 2) {
        uint32_t right[4];
        matrix_load<4, true>(right, b + lane % 16 * tile<W>::PITCH + (c + lane / 16) * 8);
#pragma unroll
        for (int f = 0; f < F; f++) {
            mma16(acc[f][c], left[f], right[0], right[1]);
            mma16(acc[f][c + 1], left[f], right[2], right[3]);
        }
    }
}

/* The inner dimension is the 8 N columns of P, the rows of B. */
template <int F, int N, int W>
DEVICE void tile_packed(float (*acc)[W / 8][4], const uint32_t (*p)[N][2], const uint16_t *b)
{
#pragma unroll
    for (int n = 0; n + 1 < N; n += 2) {
        uint32_t left[F][4];
#pragma unroll
        for (int f = 0; f < F; f++)
            left[f][0] = p[f][n][0], left[f][1] = p[f][n][1], left[f][2] = p[f][n + 1][0], left[f][3] = p[f][n + 1][1];
        tile_step<F, W>(acc, left, b + n * 8 * tile<W>::PITCH);
    }
    if constexpr (N % 2) {
        uint32_t left[F][2];
#pragma unroll
        for (int f = 0; f < F; f++)
            left[f][0] = p[f][N - 1][0], left[f][1] = p[f][N - 1][1];
        tile_half<F, W>(acc, left, b + (N - 1) * 8 * tile<W>::PITCH);
    }
}

/* The inner dimension is the 8 N rows of P and of B; the rows of the result are columns column0 ..
 * of P, `pitch` apart. */
template <int F, int N, int W>
DEVICE void tile_transposed(float (*acc)[W / 8][4], const uint16_t *p, int pitch, int column0, const uint16_t *b)
{
    int lane = threadIdx.x % 32;
    const uint16_t *column = p + column0 + lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n + 1 < N; n += 2) {
        uint32_t left[F][4];
#pragma unroll
        for (int f = 0; f < F; f++)
            matrix_load<4, true>(left[f], column + f * 16 + (n * 8 + lane / 16 * 8 + lane % 8) * pitch);
        tile_step<F, W>(acc, left, b + n * 8 * tile<W>::PITCH);
    }
    if constexpr (N % 2) {
        uint32_t left[F][2];
#pragma unroll
        for (int f = 0; f < F; f++)
            matrix_load<2, true>(left[f], column + f * 16 + ((N - 1) * 8 + lane % 8) * pitch);
        tile_half<F, W>(acc, left, b + (N - 1) * 8 * tile<W>::PITCH);
    }
}

#endif
