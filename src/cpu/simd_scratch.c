/* simd_scratch.c - sizes of the scratch of SIMD kernels. SPDX-License-Identifier: MIT */
#include "cpu/simd_kernels.h"

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
