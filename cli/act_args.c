/* act_args.c - see act_args.h. SPDX-License-Identifier: MIT */
#include "act_args.h"

berlu_isa act_isa_of(cpu_isa isa)
{
    static const berlu_isa isas[CPU_ISA_COUNT] = {[CPU_SCALAR] = BERLU_ISA_SCALAR,
                                                  [CPU_AVX2] = BERLU_ISA_AVX2,
                                                  [CPU_AVX512] = BERLU_ISA_AVX512,
                                                  [CPU_NEON] = BERLU_ISA_NEON};
    return isa == CPU_BEST ? BERLU_ISA_BEST : isas[isa];
}
