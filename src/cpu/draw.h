/* draw.h - random draws of dropout and drop path, shared by all CPU kernels.
 * SPDX-License-Identifier: MIT
 *
 * The counter is (number of the op, index of the group in the batch of the update, step): any
 * process, thread or backend that computes the same group draws the same number. Four groups share
 * one block of Philox. */
#ifndef CPU_DRAW_H
#define CPU_DRAW_H

#include "base/philox.h"
#include "engine/backend.h"

/* Is group `index` of this op kept in this step? */
static inline int draw_keeps(const engine_step *s, philox_purpose purpose, const op_attr *a, uint64_t index)
{
    philox_words words = philox_draw(s->seed, purpose, s->step, index / 4, (uint32_t)a->site);
    return philox_f32(words.w[index % 4]) >= a->rate;
}

#endif
