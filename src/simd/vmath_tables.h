/* vmath_tables.h - coefficients; read simd/vmath.h. SPDX-License-Identifier: MIT
 *
 * Made by tools/coefficients/make_tables.py. */
#ifndef SIMD_VMATH_TABLES_H
#define SIMD_VMATH_TABLES_H

#include "simd/vec.h"

/* (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, for the least error relative to e^r */
V_TABLE float v_exp_terms[5] = {0.49999994f, 0.166665211f, 0.0416682661f, 0.00836867746f, 0.00138207339f};

/* (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, for the least error relative to e^r - 1 */
V_TABLE float v_expm1_terms[5] = {0.49999997f, 0.166665465f, 0.0416674353f, 0.00836626161f, 0.00138706574f};

/* (2^r - 1) / r on |r| <= 1/2, for the least error relative to 2^r */
V_TABLE float v_exp2_terms[6] = {0.693147182f,   0.240226477f,   0.0555035956f,
                                 0.00961850304f, 0.00133909972f, 0.00015327803f};

/* (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, |s| <= 3 - 2 sqrt 2 */
V_TABLE float v_log_terms[4] = {0.666666627f, 0.400009692f, 0.284991801f, 0.242678493f};

#endif
