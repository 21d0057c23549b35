/* limits.h - the narrowest and the widest transition. SPDX-License-Identifier: MIT
 *
 * Half widths (eps, and SmeLU's beta) outside of this range are refused in specs, settings and
 * constraints: the formulas divide by them and square the quotient, in f32. Values that a call
 * passes are not checked (act.h). */
#ifndef SMOOTH_LIMITS_H
#define SMOOTH_LIMITS_H

#define EPS_MIN 0x1p-60
#define EPS_MAX 0x1p60

#endif
