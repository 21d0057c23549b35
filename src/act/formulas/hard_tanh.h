/* hard_tanh.h - f(x) = min(max(x, -1), 1); see clamp.h. SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_HARD_TANH_H
#define ACT_FORMULAS_HARD_TANH_H

#define CLAMP_LOW  (-1.0f)
#define CLAMP_HIGH 1.0f
#include "act/formulas/clamp.h"

#endif
