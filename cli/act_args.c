/* act_args.c - see act_args.h. SPDX-License-Identifier: MIT */
#include "act_args.h"

#include <string.h>

#include "io/smooth_yaml.h"

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

berlu_status act_from_text(berlu_act **out, const char *text)
{
    if (!ends_in(text, ".yaml") && !ends_in(text, ".yml"))
        return berlu_act_make(out, text);
    char name[SMOOTH_NAME];
    berlu_smooth *f = NULL;
    berlu_status status = smooth_yaml_read(&f, name, text);
    if (status == BERLU_OK)
        status = berlu_act_make_smooth(out, *name ? name : "smooth", f);
    berlu_smooth_free(f);
    return status;
}

berlu_isa act_isa_of(cpu_isa isa)
{
    static const berlu_isa isas[CPU_ISA_COUNT] = {[CPU_SCALAR] = BERLU_ISA_SCALAR,
                                                  [CPU_AVX2] = BERLU_ISA_AVX2,
                                                  [CPU_AVX512] = BERLU_ISA_AVX512,
                                                  [CPU_NEON] = BERLU_ISA_NEON};
    return isa == CPU_BEST ? BERLU_ISA_BEST : isas[isa];
}
