/* relu6.h - f(x) = min(max(x, 0), 6); see clamp.h. SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_RELU6_H
#define ACT_FORMULAS_RELU6_H

#define CLAMP_LOW  0.0f
#define CLAMP_HIGH 6.0f
#include "act/formulas/clamp.h"

#endif
