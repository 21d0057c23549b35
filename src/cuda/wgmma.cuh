/* wgmma.cuh - products of whole warpgroups by Hopper's tensor cores, and what orders them.
 * SPDX-License-Identifier: MIT
 *
 * Four warps together multiply 64 rows of A by N rows of B, both bf16 in shared memory, 16 channels
 * at a time, into f32 registers: D = A B^T. A may also be in registers (product_held). The
 * instruction runs beside the threads that issued it:
 *
 *     product_begin();
 *     product<N>(acc, a, b, 0); ... product<N>(acc, a, b, 1);
 *     product_end();                what is between may use other registers than acc
 *     product_wait<N, LEFT>(acc);   all but the last LEFT products are complete, acc's among them
 *
 * Operands lie as blocks of 64 channels: a row is 128 bytes, and its eight chunks of 16 bytes are
 * permuted by the row, chunk c at c ^ (row % 8), so that eight rows meet every bank once. A block
 * begins at a multiple of 1024 bytes. Of an accumulator a thread has what mma leaves it (tile.cuh);
 * warp w of four has rows 16 w on. Held in registers, A lies as mma takes it: two neighbouring
 * blocks of eight columns of an accumulator, rounded to pairs, are 16 channels (held_word).
 *
 * Shared memory that threads have written reaches the tensor cores after a shared_publish() of the
 * writers and a barrier. All this needs code for sm_90a; tests/cuda/emulate.cuh has it for the
 * host. Read on: rows_kernel.cuh. */
#ifndef CUDA_WGMMA_CUH
#define CUDA_WGMMA_CUH

#include "cuda/prim.cuh"

constexpr int BLOCK_CHANNELS = 64, BLOCK_ROW_BYTES = 128;

/* Bytes from the start of a block to a chunk of a row. */
DEVICE int block_chunk(int row, int chunk)
{
    return row * BLOCK_ROW_BYTES + ((chunk ^ (row & 7)) << 4);
}

/* A block as an operand, the low word of the instruction's descriptor: the address in units of 16
 * bytes, so that + 2 is 16 channels on. The high word is the same for all: 1024 bytes from eight
 * rows to the next eight, chunks permuted within 128 bytes. */
constexpr uint32_t OPERAND_HIGH = 8 * BLOCK_ROW_BYTES / 16 | 1u << 30;

DEVICE uint32_t block_operand(const void *block)
{
    return (shared_address(block) & 0x3ffff) >> 4 | 1u << 16;
}

/* The word of A held in registers that has the pair of columns of block n, in row (below 0) or
 * row + 8 (1) of a thread; four words are 16 channels. */
DEVICE int held_word(int n, int below)
{
    return n / 2 * 4 + n % 2 * 2 + below;
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
template <int N, int LEFT> DEVICE void product_wait(float (*d)[4])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#pragma unroll
    for (int n = 0; n < N / 8; n++)
        asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])::"memory");
}

#define FOUR(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])

/* d = a b^T, or added to d. */
template <int N> DEVICE void product(float (*d)[4], uint32_t a, uint32_t b, int add)
{
    static_assert(N == 16 || N == 32 || N == 64, "what is used");
    if constexpr (N == 16)
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     ".reg .b64 a, b;\n"
                     "setp.ne.b32 add, %10, 0;\n"
                     "mov.b64 a, {%8, %11};\n"
                     "mov.b64 b, {%9, %11};\n"
                     "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                     "{%0,%1,%2,%3,%4,%5,%6,%7}, a, b, add, 1, 1, 0, 0;\n"
                     "}\n"
                     : FOUR(0), FOUR(1)
                     : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH));
    else if constexpr (N == 32)
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     ".reg .b64 a, b;\n"
                     "setp.ne.b32 add, %18, 0;\n"
                     "mov.b64 a, {%16, %19};\n"
                     "mov.b64 b, {%17, %19};\n"
                     "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                     "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, a, b, add, 1, 1, 0, 0;\n"
                     "}\n"
                     : FOUR(0), FOUR(1), FOUR(2), FOUR(3)
                     : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH));
    else
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     ".reg .b64 a, b;\n"
                     "setp.ne.b32 add, %34, 0;\n"
                     "mov.b64 a, {%32, %35};\n"
                     "mov.b64 b, {%33, %35};\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                     "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                     "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, a, b, add, 1, 1, 0, 0;\n"
                     "}\n"
                     : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)
                     : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH));
}

#define FOURS(n) FOUR(n), FOUR(n + 1), FOUR(n + 2), FOUR(n + 3), FOUR(n + 4), FOUR(n + 5)

/* The same for 192 rows of B, with A in registers. These are read until the product is complete:
 * product_hold() after the wait keeps them. */
DEVICE void product_held(float (*d)[4], const uint32_t *a, uint32_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 ".reg .b64 b;\n"
                 "setp.ne.b32 add, %101, 0;\n"
                 "mov.b64 b, {%100, %102};\n"
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
                 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
                 "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95}, "
                 "{%96,%97,%98,%99}, b, add, 1, 1, 0;\n"
                 "}\n"
                 : FOURS(0), FOURS(6), FOURS(12), FOURS(18)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add), "n"(OPERAND_HIGH));
}

template <int WORDS> DEVICE void product_hold(uint32_t *a)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        asm volatile("" : "+r"(a[i])::"memory");
}

#undef FOURS
#undef FOUR

/* A number that is the same in all threads of a warp, said so that the compiler knows it: operands
 * must be in uniform registers, and a move into these costs as much as the arithmetic of an
 * element. */
DEVICE int warp_uniform(int v)
{
    return __shfl_sync(0xffffffffu, v, 0);
}

#endif

#endif
