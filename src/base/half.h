/* half.h - bf16 and f16 from and to f32, round to nearest even, by integer operations.
 * SPDX-License-Identifier: MIT
 *
 * The one scalar definition; vector code must give the same bits (NaN stays NaN, quiet, its payload
 * aside). */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>

float bf16_to_f32(uint16_t bits);
uint16_t bf16_from_f32(float value);
float f16_to_f32(uint16_t bits);
uint16_t f16_from_f32(float value); /* |value| >= 65520 gives an infinity; subnormals are kept */

#endif
