/* norm_store.h - stores the norm of all gradients and the clip factor; shared by all CPU kernels.
 * SPDX-License-Identifier: MIT */
#ifndef CPU_NORM_STORE_H
#define CPU_NORM_STORE_H

#include <math.h>

#include "engine/backend.h"

/* As torch's clip_grad_norm_: the factor is clip / (norm + 1e-6), at most 1. A norm that is not
 * finite stops all updates. */
static inline void norm_store(const op_call *c, double norm)
{
    double factor = c->step->clip / (norm + 1e-6);
    c->result->grad_norm = norm;
    c->result->clip_factor = c->step->clip > 0 && !(factor > 1) ? factor : 1;
    c->result->fault |= !isfinite(norm);
}

#endif
