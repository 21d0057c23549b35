/* celu_tables.h - coefficients; read act/formulas/celu.h. SPDX-License-Identifier: MIT
 *
 * Made by tools/coefficients/make_tables.py. */
#ifndef ACT_FORMULAS_CELU_TABLES_H
#define ACT_FORMULAS_CELU_TABLES_H

#include "simd/vec.h"

/* (e^z - 1 - z e^z) / z^2, |z| <= 1.25 */
V_TABLE float celu_alpha_terms[9] = {-0.5f,           -0.333333313f,   -0.125000075f,    -0.033333648f,
                                     -0.00694416789f, -0.00118958496f, -0.000173870547f, -2.28873814e-05f,
                                     -2.44326839e-06f};

#endif
