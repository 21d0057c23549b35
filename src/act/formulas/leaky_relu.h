/* leaky_relu.h - see leaky.h. SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_LEAKY_RELU_H
#define ACT_FORMULAS_LEAKY_RELU_H

#include "act/formulas/leaky.h"

#endif
