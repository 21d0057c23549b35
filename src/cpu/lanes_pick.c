/* lanes_pick.c - which table of lanes this machine uses, and how much scratch it needs. SPDX-License-Identifier: MIT */
#include "base/cpu.h"
#include "base/status.h"
#include "cpu/lanes.h"

typedef struct choice {
    cpu_isa isa;
    const lanes *table;
} choice;

const lanes *lanes_pick(void)
{
    static const choice choices[] = {
#if defined(__x86_64__)
        {CPU_AVX512, &lanes_avx512_table},
        {CPU_AVX2, &lanes_avx2_table},
#elif defined(__aarch64__)
        {CPU_NEON, &lanes_neon_table},
#endif
    };
    cpu_isa wanted;
    if (cpu_isa_pick(&wanted) == BERLU_OK)
        for (size_t i = 0; i < COUNT(choices); i++)
            if (choices[i].isa == wanted)
                return choices[i].table;
    return &lanes_scalar_table;
}

int64_t lanes_heads_work(const lanes_heads *h, int64_t width)
{
    int64_t groups = (h->width + 7) / 8; /* of channels: lanes_heads.c */
    return (5 * (h->tokens * h->width + 8) + 2 * h->tokens * h->tokens + h->tokens * groups * 8) * width;
}

int64_t lanes_depthwise_work(const lanes_map *m, int64_t width)
{
    int64_t border = m->kernel / 2 * 2;
    return ((m->height + border) * (m->width + border) + m->height * m->width + m->kernel * m->kernel) * width;
}
