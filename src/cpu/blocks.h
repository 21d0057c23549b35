/* blocks.h - how the fast kernels divide their work into blocks. SPDX-License-Identifier: MIT
 *
 * Blocks depend on the size of the problem alone; scheduling only assigns them to threads. Sums
 * over rows are computed per block in f32, in order, and added over blocks by a fixed tree in
 * double, so no bit depends on the number of threads. */
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include <stdint.h>

#include <omp.h>

#include "base/threads.h"
#include "cpu/device.h"
#include "cpu/gemm.h"

enum { SUM_ROWS = 64 }; /* rows of a block whose columns are summed */

typedef struct blocks {
    int64_t count, size, rows; /* the last block may be shorter */
} blocks;

static inline blocks blocks_of(int64_t rows, int64_t size)
{
    return (blocks){(rows + size - 1) / size, size, rows};
}

/* Rows that a group (group.c) runs together, and their largest width. Blocks of short rows divide
 * it. */
enum { GROUP_ROWS = 1024, GROUP_WIDTH = 128 };

static inline int rows_are_short(int64_t inputs, int64_t outputs)
{
    return inputs <= GROUP_WIDTH && outputs <= GROUP_WIDTH;
}

/* Row blocks of a product with this many inputs and outputs a row. Work stealing (work.h) wants
 * about 26 blocks, so that the last one does not matter; an even number, before their rows are
 * rounded up to the library's eight. At most 320 rows, so that a block of 768 floats a row stays in
 * an L2 of 1 MiB while bias and activation pass over it; within that, more rows for a larger
 * weight, which every block reads again. Many short rows: half a group. */
static inline blocks blocks_for_product(int64_t rows, int64_t inputs, int64_t outputs)
{
    enum { WANTED = 26, MOST = 320, WEIGHT = 2048, KERNEL = 8 }; /* WEIGHT: its elements per row */
    if (rows >= 4 * GROUP_ROWS && rows_are_short(inputs, outputs))
        return blocks_of(rows, GROUP_ROWS / 2);
    int64_t size = rows / WANTED > inputs * outputs / WEIGHT ? rows / WANTED : inputs * outputs / WEIGHT;
    size = size < GEMM_LEAST ? GEMM_LEAST : size > MOST ? MOST : size;
    int64_t count = (rows + size - 1) / size;
    count += count % 2;
    size = (rows + count - 1) / count;
    return blocks_of(rows, (size + KERNEL - 1) / KERNEL * KERNEL);
}

static inline int64_t block_begin(const blocks *b, int64_t i)
{
    return i * b->size;
}

static inline int64_t block_rows(const blocks *b, int64_t i)
{
    return b->rows - i * b->size < b->size ? b->rows - i * b->size : b->size;
}

/* The end of the blocks that hold these rows of a group. */
static inline int64_t blocks_end(const blocks *b, int64_t begin, int64_t rows)
{
    return (begin + rows + b->size - 1) / b->size;
}

/* The blocks of a product from in[0] to out[0]. */
static inline blocks blocks_of_call(const op_call *c)
{
    return blocks_for_product(c->out[0].rows, c->in[0].channels, c->out[0].channels);
}

static inline const simd_kernels *simd_of(const op_call *c)
{
    return c->device->simd;
}

static inline size_t align_64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

#endif
