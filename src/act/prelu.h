/* prelu.h - see leaky.h. SPDX-License-Identifier: MIT */
#ifndef ACT_PRELU_H
#define ACT_PRELU_H

#include "act/leaky.h"

#endif
