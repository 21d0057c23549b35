/* inputs.h - the tested activations, and their inputs. SPDX-License-Identifier: MIT
 *
 * The inputs come in strata: specials, both sides of every kink and join, the neighbourhood of 0,
 * the transition, ordinary sizes, the tails, and any bit pattern. */
#ifndef TESTS_ACT_INPUTS_H
#define TESTS_ACT_INPUTS_H

#include <berlu/act.h>
#include <stdint.h>

/* Every built-in by its name, then variants that take other paths, smooth(...) among them. NULL
 * after the last. */
const char *inputs_spec(size_t index);
int inputs_named(const char *spec, const char *name); /* "berlu:eps=2" by "berlu", "smooth(...)" by "smooth" */

/* An input of the strata for this activation; `draw` counts up. */
float inputs_number(const berlu_act *act, uint32_t seed, uint32_t draw);

void inputs_fill(void *out, size_t n, berlu_dtype dtype, const berlu_act *act, uint32_t seed); /* all strata */
void inputs_tame(void *out, size_t n, berlu_dtype dtype, const berlu_act *act, uint32_t seed); /* |x| < 64, no NaN */
void inputs_finite(void *out, size_t n, const berlu_act *act, uint32_t seed);                  /* the same in f32 */
void inputs_plain(void *out, size_t n, berlu_dtype dtype, uint32_t seed);                      /* uniform in ±3 */

/* The function of the kernels in double: berlu_act_at() with the parameters rounded to f32, as
 * kernels have them. */
berlu_act_point inputs_at(const berlu_act *act, double x);

/* Whether the slope of this activation comes from f32 outputs alone: 16 bits of a saturated output
 * have lost it. */
int inputs_from_f32_output_only(const char *name);

#endif
