/* real.h - the element type of a reference kernel. SPDX-License-Identifier: MIT
 *
 * Every ref_*.c is compiled twice: with double it is the reference (cpu_f64_backend), with float it
 * serves the fast backend for ops that are not worth a vector kernel, and tests of its vector
 * kernels. Sums are in double in both. */
#ifndef CPU_REAL_H
#define CPU_REAL_H

#include "engine/backend.h"

#ifdef REAL_F64
typedef double real;
#define REF(name) ref_f64_##name
#else
typedef float real;
#define REF(name) ref_f32_##name
#endif

extern const op_entry REF(ops)[OP_COUNT];

#define OP(ID, name, ...) void REF(name)(const op_call *c);
#include "graph/ops.inc"
#undef OP
size_t REF(attention_workspace)(const op_call *c);

#endif
