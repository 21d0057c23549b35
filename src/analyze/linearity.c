/* linearity.c - see linearity.h. SPDX-License-Identifier: MIT */
#include "analyze/linearity.h"

#include <math.h>

#include "analyze/expect.h"

void linearity_find(linearity *out, const berlu_act *act, const double *scales, size_t count)
{
    subject s = subject_of(act, PARAMS_AS_WRITTEN);
    for (size_t i = 0; i < count; i++) {
        breaks b;
        moments m;
        breaks_find(&b, &s, EXPECT_REACH * scales[i]);
        moments_find(&m, &s, &b, scales[i]);
        out[i] = (linearity){scales[i], m.value, sqrt(m.variance), m.slope, m.nonlinear};
    }
}
