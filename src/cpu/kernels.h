/* kernels.h - the fast kernels, for the table in cpu.c. SPDX-License-Identifier: MIT
 *
 * One per op, named cpu_ and the op, with its workspace in bytes where it needs one. Ops without a
 * kernel here run by the reference (ref_*.c). */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include "engine/backend.h"

/* Members of row-blocked groups (group.c): the same kernels for some rows; those with sums over
 * rows have a finish. */
void cpu_linear_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_linear_dw_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_linear_dw_finish(const op_call *c);
void cpu_linear_act_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_linear_dx_act_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_linear_dx_act_finish(const op_call *c);
void cpu_norm_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_norm_grad_rows(const op_call *c, int64_t begin, int64_t rows);
void cpu_norm_grad_finish(const op_call *c);
void cpu_attention_rows(const op_call *c, int64_t begin, int64_t rows);
size_t cpu_library(const op_call *c);
int cpu_groupable(op_id op);
/* Marks row-blocked groups of nodes (group.c). */
void cpu_group_mark(graph *g, int64_t group_rows, int batch);

/* Programs (run.c). */
berlu_status cpu_prepare(device *d, program **out, const op_call *calls, int count, const program_options *o);
berlu_status cpu_run(program *p);
void cpu_program_free(program *p);
void cpu_seconds(program *p, double *per_call, int reset);

void cpu_unfold(const op_call *c);
void cpu_linear(const op_call *c);
size_t cpu_linear_workspace(const op_call *c);
void cpu_linear_dx(const op_call *c);
void cpu_linear_dw(const op_call *c);
size_t cpu_linear_dw_workspace(const op_call *c);
void cpu_linear_act(const op_call *c);
size_t cpu_linear_act_workspace(const op_call *c);
void cpu_linear_dx_act(const op_call *c);
size_t cpu_linear_dx_act_workspace(const op_call *c);
void cpu_act(const op_call *c);
void cpu_act_grad(const op_call *c);
size_t cpu_act_workspace(const op_call *c);
void cpu_norm(const op_call *c);
void cpu_norm_grad(const op_call *c);
size_t cpu_norm_grad_workspace(const op_call *c);
void cpu_attention(const op_call *c);
void cpu_attention_grad(const op_call *c);
size_t cpu_attention_workspace(const op_call *c);
void cpu_depthwise(const op_call *c);
void cpu_depthwise_dx(const op_call *c);
void cpu_depthwise_dw(const op_call *c);
size_t cpu_depthwise_workspace(const op_call *c);
void cpu_add(const op_call *c);
void cpu_scale(const op_call *c);
void cpu_scale_grad(const op_call *c);
size_t cpu_scale_grad_workspace(const op_call *c);
void cpu_grad_norm(const op_call *c);
size_t cpu_grad_norm_workspace(const op_call *c);
void cpu_adamw(const op_call *c);

#endif
