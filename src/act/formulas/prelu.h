/* prelu.h - see leaky.h. SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_PRELU_H
#define ACT_FORMULAS_PRELU_H

#include "act/formulas/leaky.h"

#endif
