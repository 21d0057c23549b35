/* simd_pick.c - picks the table of SIMD kernels for this CPU; sizes of its scratch.
 * SPDX-License-Identifier: MIT */
#include "base/cpu.h"
#include "base/status.h"
#include "cpu/simd_kernels.h"

typedef struct choice {
    cpu_isa isa;
    const simd_kernels *table;
} choice;

const simd_kernels *simd_kernels_pick(void)
{
    static const choice choices[] = {
#if defined(__x86_64__)
        {CPU_AVX512, &simd_kernels_avx512},
        {CPU_AVX2, &simd_kernels_avx2},
#elif defined(__aarch64__)
        {CPU_NEON, &simd_kernels_neon},
#endif
    };
    cpu_isa wanted;
    if (cpu_isa_pick(&wanted) == BERLU_OK)
        for (size_t i = 0; i < COUNT(choices); i++)
            if (choices[i].isa == wanted)
                return choices[i].table;
    return &simd_kernels_scalar;
}

int64_t simd_heads_work(const simd_heads *h, int64_t width)
{
    int64_t groups = (h->width + 7) / 8; /* of channels: simd_heads.c */
    return (5 * (h->tokens * h->width + 8) + 2 * h->tokens * h->tokens + h->tokens * groups * 8) * width;
}

int64_t simd_depthwise_work(const simd_map *m, int64_t width)
{
    int64_t border = m->kernel / 2 * 2;
    return ((m->height + border) * (m->width + border) + m->height * m->width + m->kernel * m->kernel) * width;
}
