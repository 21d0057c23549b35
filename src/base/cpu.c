/* cpu.c - see cpu.h. SPDX-License-Identifier: MIT
 *
 * The compiler's __builtin_cpu_supports() also checks that the operating system saves the wide
 * registers. F16C is not in every compiler's list, so that one bit is read directly; the check of
 * AVX2 covers the operating system for it.
 *
 * CPUID is read without <cpuid.h>: clang's macros exchange rbx with a register that clang 14 also
 * gives to another result when it compiles for size, and rbx is lost. */
#include "base/cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
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
typedef struct cpu_words {
    uint32_t a, b, c, d;
} cpu_words;

/* Not inlined: in a function with a frame pointer in rbx it would lose that. */
static __attribute__((noinline)) cpu_words cpuid(uint32_t leaf, uint32_t index)
{
    cpu_words w;
    __asm__ volatile("cpuid" : "=a"(w.a), "=b"(w.b), "=c"(w.c), "=d"(w.d) : "0"(leaf), "2"(index));
    return w;
}

/* False where the processor has no such leaf. */
static int cpuid_read(cpu_words *out, uint32_t leaf, uint32_t index)
{
    if (cpuid(leaf & 0x80000000u, 0).a < leaf)
        return 0;
    *out = cpuid(leaf, index);
    return 1;
}

static int has_f16c(void)
{
    cpu_words w;
    return cpuid_read(&w, 1, 0) && (w.c >> 29 & 1);
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
static cpu_caches caches_of_leaf(uint32_t leaf)
{
    cpu_caches c = {0};
    cpu_words w;
    for (uint32_t i = 0; i < 8 && cpuid_read(&w, leaf, i); i++)
        if (!cpu_cache_add(&c, w.a, w.b, w.c))
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
    cpu_words words;
    for (uint32_t i = 0; i < 3 && cpuid_read(&words, 0x80000002u + i, 0); i++)
        memcpy(name + 16 * i, &words, sizeof words);
#endif
    const char *start = name + strspn(name, " ");
    snprintf(out, size, "%s", *start ? start : "unknown");
    return out;
}
