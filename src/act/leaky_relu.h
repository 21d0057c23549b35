/* leaky_relu.h - see leaky.h. SPDX-License-Identifier: MIT */
#ifndef ACT_LEAKY_RELU_H
#define ACT_LEAKY_RELU_H

#include "act/leaky.h"

#endif
