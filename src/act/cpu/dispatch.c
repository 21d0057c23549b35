/* dispatch.c - the instruction set of an activation, and its constants there.
 * SPDX-License-Identifier: MIT
 *
 * Both are decided once, when the activation is made: querying the processor is slow on virtual
 * machines, preparing constants takes as long as a thousand elements, and the library keeps no
 * state of its own between calls. */
#include "act/act_internal.h"
#include "base/arena.h"
#include "base/cpu.h"

static const cpu_isa cpu_of[ISA_COUNT] = {
    [BERLU_ISA_SCALAR] = CPU_SCALAR,
    [BERLU_ISA_AVX2] = CPU_AVX2,
    [BERLU_ISA_AVX512] = CPU_AVX512,
    [BERLU_ISA_NEON] = CPU_NEON,
};

berlu_status kernels_choose(berlu_act *act, const act_row *row)
{
    cpu_isa pick;
    berlu_status status = cpu_isa_pick(&pick);
    act->place = (size_t)(row - act_row_at(0));
    if (status != BERLU_OK)
        return status;
    for (int isa = BERLU_ISA_SCALAR; isa < ISA_COUNT; isa++)
        if (row->kernels[isa] && cpu_has(cpu_of[isa])) {
            act->kernels[isa] = row->kernels[isa];
            if (cpu_of[isa] == pick)
                act->kernels[BERLU_ISA_BEST] = row->kernels[isa];
        }
    cpu_caches caches = cpu_caches_read();
    act->stream = stream_rule_for(&caches);
    if (!act->kernels[BERLU_ISA_BEST]) /* the build has fewer instruction sets than the machine */
        act->kernels[BERLU_ISA_BEST] = act->kernels[BERLU_ISA_SCALAR];
    return BERLU_OK;
}

/* One slot per instruction set, each aligned to 64. */
berlu_status kernels_prepare(berlu_act *act)
{
    size_t bytes = 0;
    for (int isa = BERLU_ISA_SCALAR; isa < ISA_COUNT; isa++)
        bytes += act->kernels[isa] ? (act->kernels[isa]->consts_bytes + 63) / 64 * 64 : 0;
    char *slot = act->consts_space = memory_aligned(bytes, "the constants of an activation");
    if (!slot)
        return BERLU_ERR_MEMORY;
    act_job job = {.shape = &act->shape, .scale = act->scale, .center = act->center};
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        job.param[p] = &act->params[p];
    for (int isa = BERLU_ISA_SCALAR; isa < ISA_COUNT; isa++) {
        const act_kernels *k = act->kernels[isa];
        if (!k)
            continue;
        job.consts = act->consts[isa] = slot;
        k->prepare(&job);
        slot += (k->consts_bytes + 63) / 64 * 64;
        if (k == act->kernels[BERLU_ISA_BEST])
            act->consts[BERLU_ISA_BEST] = act->consts[isa];
    }
    return BERLU_OK;
}

berlu_isa berlu_act_isa(const berlu_act *act)
{
    for (int isa = BERLU_ISA_SCALAR; act && isa < ISA_COUNT; isa++)
        if (act->kernels[isa] && act->kernels[isa] == act->kernels[BERLU_ISA_BEST])
            return (berlu_isa)isa;
    return BERLU_ISA_SCALAR;
}

int berlu_act_can_run(const berlu_act *act, berlu_isa isa)
{
    return act && (unsigned)isa < ISA_COUNT && act->kernels[isa] != NULL;
}

const char *berlu_isa_name(berlu_isa isa)
{
    if (isa == BERLU_ISA_BEST)
        return "best";
    return (unsigned)isa < ISA_COUNT ? cpu_isa_name(cpu_of[isa]) : NULL;
}
