/* wgmma_rows.cuh - products of warpgroups whose inner dimension is the rows of an operand.
 * SPDX-License-Identifier: MIT
 *
 * In wgmma.cuh the channels of a block are the inner dimension: D = A B^T. Here a block's rows may
 * be it, as p v needs them: D = P B, with 16 rows of B at a time and its 64 channels as the columns
 * of D; and D = A^T B, with 16 rows of A at a time and its 64 channels as the rows of D. The
 * instruction calls that operand "MN-major" and takes it by a flag.
 *
 * The descriptor is the same as before, and this is why. With chunks permuted within 128 bytes the
 * instruction takes an MN-major operand as tiles of 64 channels by 8 of the inner dimension, 128
 * bytes to each of these 8, with two distances: the leading one from a tile to that of the next 64
 * channels, the stride one from a tile to that of the next 8 of the inner dimension. An operand of
 * 64 channels never uses the first. 16 rows are two tiles, and block_chunk() has 8 rows in
 * 8 * 128 bytes: 1024, what OPERAND_HIGH says already. The permutation is by address bits 7 to 9,
 * the row % 8, whichever way the tile is read. So the next 16 rows are ROWS_STEP further. */
#ifndef CUDA_WGMMA_ROWS_CUH
#define CUDA_WGMMA_ROWS_CUH

#include "cuda/wgmma.cuh"

constexpr uint32_t CHANNELS_STEP = 2;                     /* from 16 channels to the next, of an operand */
constexpr uint32_t ROWS_STEP = 16 * BLOCK_ROW_BYTES / 16; /* from 16 rows to the next */

#ifdef CUDA_EMULATED
#include "emulate_rows.cuh"
#else

/* Accumulators that are added to, and those that are only written. The difference matters in a
 * loop: an accumulator that is read before it was written in a turn is kept from the turn
 * before. */
#define ADDED(n)   "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define WRITTEN(n) "=f"(d[n][0]), "=f"(d[n][1]), "=f"(d[n][2]), "=f"(d[n][3])
#define HELD_64(D)                                                                                                     \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 b;\n"                                                                                      \
                 "setp.ne.b32 add, %37, 0;\n"                                                                          \
                 "mov.b64 b, {%36, %38};\n"                                                                            \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                             \
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "                                  \
                 "{%32,%33,%34,%35}, b, add, 1, 1, 1;\n"                                                               \
                 "}\n"                                                                                                 \
                 : D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7)                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add), "n"(OPERAND_HIGH))
#define STORED_16(D)                                                                                                   \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 a, b;\n"                                                                                   \
                 "setp.ne.b32 add, %10, 0;\n"                                                                          \
                 "mov.b64 a, {%8, %11};\n"                                                                             \
                 "mov.b64 b, {%9, %11};\n"                                                                             \
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, "                                                                         \
                 "a, b, add, 1, 1, 0, 0;\n"                                                                            \
                 "}\n"                                                                                                 \
                 : D(0), D(1)                                                                                          \
                 : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH))
#define STORED_32(D)                                                                                                   \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 a, b;\n"                                                                                   \
                 "setp.ne.b32 add, %18, 0;\n"                                                                          \
                 "mov.b64 a, {%16, %19};\n"                                                                            \
                 "mov.b64 b, {%17, %19};\n"                                                                            \
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "                                           \
                 "a, b, add, 1, 1, 0, 0;\n"                                                                            \
                 "}\n"                                                                                                 \
                 : D(0), D(1), D(2), D(3)                                                                              \
                 : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH))
#define STORED_64(D)                                                                                                   \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 a, b;\n"                                                                                   \
                 "setp.ne.b32 add, %34, 0;\n"                                                                          \
                 "mov.b64 a, {%32, %35};\n"                                                                            \
                 "mov.b64 b, {%33, %35};\n"                                                                            \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                             \
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "                                  \
                 "a, b, add, 1, 1, 0, 0;\n"                                                                            \
                 "}\n"                                                                                                 \
                 : D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7)                                                      \
                 : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH))
#define ACROSS_16(D)                                                                                                   \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 a, b;\n"                                                                                   \
                 "setp.ne.b32 add, %10, 0;\n"                                                                          \
                 "mov.b64 a, {%8, %11};\n"                                                                             \
                 "mov.b64 b, {%9, %11};\n"                                                                             \
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, "                                                                         \
                 "a, b, add, 1, 1, 1, 0;\n"                                                                            \
                 "}\n"                                                                                                 \
                 : D(0), D(1)                                                                                          \
                 : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH))
#define ACROSS_64(D)                                                                                                   \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 ".reg .b64 a, b;\n"                                                                                   \
                 "setp.ne.b32 add, %34, 0;\n"                                                                          \
                 "mov.b64 a, {%32, %35};\n"                                                                            \
                 "mov.b64 b, {%33, %35};\n"                                                                            \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                               \
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                             \
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "                                  \
                 "a, b, add, 1, 1, 1, 1;\n"                                                                            \
                 "}\n"                                                                                                 \
                 : D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7)                                                      \
                 : "r"(a), "r"(b), "r"(add), "n"(OPERAND_HIGH))

/* d = a b, with 64 rows of A in registers (product_hold() keeps them), 16 rows of B and their 64
 * channels. ADD: added to d where `add` is not 0; otherwise d is only written. */
template <bool ADD> DEVICE void product_packed(float (*d)[4], const uint32_t *a, uint32_t b, int add)
{
    if constexpr (ADD)
        HELD_64(ADDED);
    else
        HELD_64(WRITTEN);
}

/* The first product of a sum, d = a b^T as product() has it: d is only written. */
template <int N> DEVICE void product_first(float (*d)[4], uint32_t a, uint32_t b)
{
    static_assert(N == 16 || N == 32 || N == 64, "what is used");
    constexpr int add = 0;
    if constexpr (N == 16)
        STORED_16(WRITTEN);
    else if constexpr (N == 32)
        STORED_32(WRITTEN);
    else
        STORED_64(WRITTEN);
}

/* d = a^T b: 16 rows of A, whose 64 channels are the rows of d. N = 64: 16 rows of B; N = 16: 16
 * rows of B, of which 16 channels are the inner dimension (d = a^T b^T). */
template <int N, bool ADD> DEVICE void product_across(float (*d)[4], uint32_t a, uint32_t b, int add)
{
    static_assert(N == 16 || N == 64, "what is used");
    if constexpr (N == 16 && ADD)
        ACROSS_16(ADDED);
    else if constexpr (N == 16)
        ACROSS_16(WRITTEN);
    else if constexpr (N == 64 && ADD)
        ACROSS_64(ADDED);
    else if constexpr (N == 64)
        ACROSS_64(WRITTEN);
}

#undef ADDED
#undef WRITTEN
#undef HELD_64
#undef STORED_16
#undef STORED_32
#undef STORED_64
#undef ACROSS_16
#undef ACROSS_64

#endif

#endif
