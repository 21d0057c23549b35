/* real.h - the type of number that a plain kernel works on. SPDX-License-Identifier: MIT
 *
 * Every plain_*.c is compiled twice: with double it is the referee (cpu_f64_backend), with float it is what the fast backend
 * uses for ops that are not worth more, and what its vector kernels are tested against. Sums are in double in both. */
#ifndef CPU_REAL_H
#define CPU_REAL_H

#include "graph/op.h"

#ifdef REAL_F64
typedef double real;
#define PLAIN(name) ref_f64_##name
#else
typedef float real;
#define PLAIN(name) ref_f32_##name
#endif

extern const op_entry PLAIN(ops)[OP_COUNT];

void PLAIN(linear)(const op_call *c);
void PLAIN(linear_dx)(const op_call *c);
void PLAIN(linear_dw)(const op_call *c);
void PLAIN(norm)(const op_call *c);
void PLAIN(norm_grad)(const op_call *c);
void PLAIN(attention)(const op_call *c);
void PLAIN(attention_grad)(const op_call *c);
size_t PLAIN(attention_workspace)(const op_call *c);
void PLAIN(act)(const op_call *c);
void PLAIN(act_grad)(const op_call *c);
void PLAIN(act_grad_out)(const op_call *c);
void PLAIN(unfold)(const op_call *c);
void PLAIN(fold)(const op_call *c);
void PLAIN(depthwise)(const op_call *c);
void PLAIN(depthwise_dx)(const op_call *c);
void PLAIN(depthwise_dw)(const op_call *c);
void PLAIN(tokens)(const op_call *c);
void PLAIN(tokens_grad)(const op_call *c);
void PLAIN(pixel_pos)(const op_call *c);
void PLAIN(pixel_pos_grad)(const op_call *c);
void PLAIN(add_tokens)(const op_call *c);
void PLAIN(take_tokens)(const op_call *c);
void PLAIN(select)(const op_call *c);
void PLAIN(select_grad)(const op_call *c);
void PLAIN(add)(const op_call *c);
void PLAIN(average)(const op_call *c);
void PLAIN(half)(const op_call *c);
void PLAIN(scale)(const op_call *c);
void PLAIN(scale_grad)(const op_call *c);
void PLAIN(mean)(const op_call *c);
void PLAIN(mean_grad)(const op_call *c);
void PLAIN(dropout)(const op_call *c);
void PLAIN(drop_path)(const op_call *c);
void PLAIN(cross_entropy)(const op_call *c);
void PLAIN(cross_entropy_grad)(const op_call *c);
void PLAIN(distill)(const op_call *c);
void PLAIN(distill_grad)(const op_call *c);
void PLAIN(accumulate)(const op_call *c);
void PLAIN(grad_norm)(const op_call *c);
void PLAIN(adamw)(const op_call *c);
void PLAIN(sgd)(const op_call *c);
void PLAIN(ema)(const op_call *c);

#endif
