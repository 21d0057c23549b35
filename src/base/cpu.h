/* cpu.h - which instruction sets this machine has, and which one to use.
 * SPDX-License-Identifier: MIT */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum cpu_isa { CPU_SCALAR, CPU_AVX2, CPU_AVX512, CPU_NEON, CPU_ISA_COUNT, CPU_BEST = -1 } cpu_isa;
/* AVX2 means AVX2, FMA and F16C; AVX512 means F, DQ, BW and VL; both with operating-system
 * support. */

const char *cpu_isa_name(cpu_isa isa);                      /* "scalar", "avx2", "avx512", "neon" */
berlu_status cpu_isa_parse(cpu_isa *out, const char *name); /* also "best"; names the choices on failure */
int cpu_has(cpu_isa isa);

/* Picks the best usable instruction set. The environment's BERLU_ISA, when it names a usable one,
 * comes first; an unknown or unusable name is an error, so that nobody measures another instruction
 * set than the requested one. */
berlu_status cpu_isa_pick(cpu_isa *out);

/* The data caches that a core sees; 0 where the machine does not say. l3_threads is the number of
 * hardware threads that share one L3: a server with several of them gives a thread only its own.
 * Queries the processor, which is slow on virtual machines. */
typedef struct cpu_caches {
    size_t l2, l3;
    unsigned l3_threads;
} cpu_caches;

cpu_caches cpu_caches_read(void);

/* Adds one cache as x86 processors describe it: the registers of leaf 4 (Intel) or 0x8000001d
 * (AMD). False at the end of the list. */
int cpu_cache_add(cpu_caches *c, uint32_t eax, uint32_t ebx, uint32_t ecx);

const char *cpu_model(char *out, size_t size); /* the processor's own name for people; "unknown" where there is none */

#endif
