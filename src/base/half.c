/* half.c - see half.h. SPDX-License-Identifier: MIT
 *
 * Rounding to nearest even by integers: adding "half an ulp minus one, plus the last kept bit"
 * carries into the kept bits exactly when the value lies above the tie, or on it with an odd last
 * bit. A carry out of the significand steps the exponent, which is what rounding up to the next
 * power of two (or to infinity) means. */
#include "base/half.h"

#include <string.h>

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bits / 2^shift, to nearest even. */
static uint32_t shift_round(uint32_t bits, unsigned shift)
{
    return (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
}

float bf16_to_f32(uint16_t bits)
{
    return f32_from_bits((uint32_t)bits << 16);
}

uint16_t bf16_from_f32(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* the quiet bit: a payload in the low half must not become infinity */
    return (uint16_t)shift_round(bits, 16);
}

float f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (magnitude > 0x7c00)
        return f32_from_bits(sign | 0x7fc00000 | magnitude << 13);
    if (magnitude == 0x7c00)
        return f32_from_bits(sign | 0x7f800000);
    if (magnitude >= 0x400)
        return f32_from_bits(sign | (magnitude + (112u << 10)) << 13); /* exponent bias 15 becomes 127 */
    float small = (float)magnitude * 0x1p-24f;                         /* subnormal or zero: exact */
    return f32_from_bits(sign | f32_bits(small));
}

uint16_t f16_from_f32(float value)
{
    uint32_t bits = f32_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t exponent = magnitude >> 23;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520, halfway between the largest f16 and 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 113) /* 2^-14 and above: normal */
        return (uint16_t)(sign | shift_round(magnitude - (112u << 23), 13));
    if (exponent < 102) /* below 2^-25, half the least subnormal */
        return (uint16_t)sign;
    uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | shift_round(significand, 126 - exponent)); /* in units of 2^-24 */
}
