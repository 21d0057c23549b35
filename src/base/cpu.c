/* cpu.c - see cpu.h. SPDX-License-Identifier: MIT
 *
 * The compiler's __builtin_cpu_supports() also checks that the operating system saves the wide
 * registers. F16C is not in every compiler's list, so that one bit is read directly; the check of
 * AVX2 covers the operating system for it. */
#include "base/cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define CPU_X86 1
#endif

static const char *const isa_names[CPU_ISA_COUNT] = {
    [CPU_SCALAR] = "scalar", [CPU_AVX2] = "avx2", [CPU_AVX512] = "avx512", [CPU_NEON] = "neon"};

const char *cpu_isa_name(cpu_isa isa)
{
    if (isa == CPU_BEST)
        return "best";
    return (unsigned)isa < CPU_ISA_COUNT ? isa_names[isa] : "unknown";
}

berlu_status cpu_isa_parse(cpu_isa *out, const char *name)
{
    for (int isa = CPU_BEST; isa < CPU_ISA_COUNT; isa++)
        if (strcmp(name, cpu_isa_name((cpu_isa)isa)) == 0) {
            *out = (cpu_isa)isa;
            return BERLU_OK;
        }
    return berlu_fail(BERLU_ERR_ARG, "isa '%s' is not one of best, scalar, avx2, avx512, neon", name);
}

#ifdef CPU_X86
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

int cpu_has(cpu_isa isa)
{
    switch (isa) {
    case CPU_SCALAR:
        return 1;
#ifdef CPU_X86
    case CPU_AVX2:
        return has_avx2();
    case CPU_AVX512:
        return has_avx512();
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return 1;
#endif
    default:
        return 0;
    }
}

static cpu_isa best_isa(void)
{
    static const cpu_isa best_first[] = {CPU_AVX512, CPU_AVX2, CPU_NEON};
    for (size_t i = 0; i < COUNT(best_first); i++)
        if (cpu_has(best_first[i]))
            return best_first[i];
    return CPU_SCALAR;
}

berlu_status cpu_isa_pick(cpu_isa *out)
{
    const char *asked = getenv("BERLU_ISA");
    cpu_isa isa = CPU_BEST;
    if (asked && *asked) {
        berlu_status status = cpu_isa_parse(&isa, asked);
        if (status != BERLU_OK)
            return berlu_fail_in(status, "environment variable BERLU_ISA");
        if (isa != CPU_BEST && !cpu_has(isa))
            return berlu_fail(BERLU_ERR_UNSUPPORTED, "environment variable BERLU_ISA: this processor has no %s", asked);
    }
    *out = isa == CPU_BEST ? best_isa() : isa;
    return BERLU_OK;
}

int cpu_cache_add(cpu_caches *c, uint32_t eax, uint32_t ebx, uint32_t ecx)
{
    enum { NONE = 0, CODE = 2 };
    unsigned kind = eax & 31, level = eax >> 5 & 7;
    if (kind == NONE)
        return 0;
    size_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 1023) + 1, line = (ebx & 4095) + 1, sets = (size_t)ecx + 1;
    if (kind != CODE && level == 2)
        c->l2 = ways * partitions * line * sets;
    if (kind != CODE && level == 3) {
        c->l3 = ways * partitions * line * sets;
        c->l3_threads = (eax >> 14 & 4095) + 1;
    }
    return 1;
}

#ifdef CPU_X86
static cpu_caches caches_of_leaf(unsigned leaf)
{
    cpu_caches c = {0};
    uint32_t a, b, ecx, d;
    for (unsigned i = 0; i < 8 && __get_cpuid_count(leaf, i, &a, &b, &ecx, &d); i++)
        if (!cpu_cache_add(&c, a, b, ecx))
            break;
    return c;
}
#endif

/* The C library comes second: on AMD servers its L3 is the sum of all that the processor has. */
cpu_caches cpu_caches_read(void)
{
    cpu_caches c = {0};
#ifdef CPU_X86
    c = caches_of_leaf(4);
    if (!c.l2)
        c = caches_of_leaf(0x8000001du);
#endif
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
    if (!c.l2) {
        long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
        c = (cpu_caches){.l2 = l2 > 0 ? (size_t)l2 : 0, .l3 = l3 > 0 ? (size_t)l3 : 0};
    }
#endif
    return c;
}

const char *cpu_model(char *out, size_t size)
{
    char name[49] = "";
#ifdef CPU_X86
    for (unsigned leaf = 0; leaf < 3; leaf++) {
        uint32_t words[4];
        if (!__get_cpuid(0x80000002u + leaf, &words[0], &words[1], &words[2], &words[3]))
            break;
        memcpy(name + 16 * leaf, words, sizeof words);
    }
#endif
    const char *start = name + strspn(name, " ");
    snprintf(out, size, "%s", *start ? start : "unknown");
    return out;
}
