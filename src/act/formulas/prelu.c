/* prelu.c - leaky ReLU with a learned alpha. The formula is in leaky.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/leaky_exact.h"

const act_definition act_prelu = {
    .name = "prelu",
    .about = "x for x > 0, else alpha x; alpha is learned",
    .param_count = 1,
    .params = {{.name = "alpha", .initial = 0.25, .low = -INFINITY, .high = INFINITY, .learned = 1}},
    .ulp = 1,
    .slope_ulp = 1,
    .point = leaky_point,
    .lipschitz = leaky_lipschitz,
    .from_output = leaky_from_output,
};
