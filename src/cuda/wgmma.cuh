/* wgmma.cuh - products of whole warpgroups by Hopper's tensor cores, and what orders them. SPDX-License-Identifier: MIT
 *
 * Four warps together multiply 64 rows of A by 96 rows of B, both bf16 in shared memory, 16 channels
 * at a time, into f32 registers: D = A B^T. The instruction runs beside the threads that issued it:
 *
 *     product_begin();
 *     product_64x96(acc, a, b, 0); ... product_64x96(acc, a, b, 1);
 *     product_end();      what is between may use other registers than acc
 *     product_wait(acc);  acc is complete
 *
 * Operands lie as blocks of 64 channels: a row is 128 bytes, and its eight chunks of 16 bytes are
 * permuted by the row, chunk c at c ^ (row % 8), so that eight rows meet every bank once. A block
 * begins at a multiple of 1024 bytes. Of an accumulator a thread has what mma leaves it (tile.cuh);
 * warp w of four has rows 16 w on.
 *
 * Shared memory that threads have written reaches the tensor cores after a shared_publish() of the
 * writers and a barrier. All this needs code for sm_90a; tests/cuda/emulate.cuh has it for the host.
 * Read on: rows_kernel.cuh. */
#ifndef CUDA_WGMMA_CUH
#define CUDA_WGMMA_CUH

#include "cuda/prim.cuh"

constexpr int BLOCK_CHANNELS = 64, BLOCK_ROW_BYTES = 128;

/* Bytes from the start of a block to a chunk of a row. */
DEVICE int block_chunk(int row, int chunk)
{
    return row * BLOCK_ROW_BYTES + ((chunk ^ (row & 7)) << 4);
}

/* The instruction's name for a block, or for the block from channel 16 i on (add 2 i): address, 1024
 * bytes from eight rows to the next eight, chunks permuted within 128 bytes. */
DEVICE uint64_t block_descriptor(const void *block)
{
    uint64_t stride = 8 * BLOCK_ROW_BYTES / 16, permuted = 1;
    return (shared_address(block) & 0x3ffff) >> 4 | (uint64_t)1 << 16 | stride << 32 | permuted << 62;
}

#ifndef CUDA_EMULATED

DEVICE void shared_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Waits for `threads` threads of the block, those that call with this id (1 to 15). */
DEVICE void barrier_wait(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

DEVICE void product_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void product_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* The second half keeps the compiler from using an accumulator before it. */
DEVICE void product_wait(float (*d)[4])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int n = 0; n < 12; n++)
        asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])::"memory");
}

/* d = a b^T, or added to d. */
DEVICE void product_64x96(float (*d)[4], uint64_t a, uint64_t b, int add)
{
#define FOUR(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %50, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
                 "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, "
                 "%48, %49, add, 1, 1, 0, 0;\n"
                 "}\n"
                 : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10),
                   FOUR(11)
                 : "l"(a), "l"(b), "r"(add));
#undef FOUR
}

#endif

#endif
