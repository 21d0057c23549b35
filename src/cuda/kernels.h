/* kernels.h - the entry points of the CUDA kernels, for the table in cuda.c.
 * SPDX-License-Identifier: MIT
 *
 * One per op, named cuda_ and the op. Each puts its launches on cuda_device_of(call)->stream,
 * allocates nothing and waits for nothing, so that a list of calls can be captured into a graph;
 * the first launch outside a capture may choose algorithms. */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OP(ID, name, ...) void cuda_##name(const op_call *c);
#include "graph/ops.inc"
#undef OP

/* Their workspaces in bytes. linear.c serves all products, act.c all activation sites, loss.cu both
 * losses. */
size_t cuda_linear_workspace(const op_call *c);
size_t cuda_norm_grad_workspace(const op_call *c);
size_t cuda_attention_workspace(const op_call *c);
size_t cuda_attention_grad_workspace(const op_call *c);
size_t cuda_act_workspace(const op_call *c);
size_t cuda_linear_act_workspace(const op_call *c);
size_t cuda_linear_dx_act_workspace(const op_call *c);
size_t cuda_linear_norm_workspace(const op_call *c);
size_t cuda_tokens_grad_workspace(const op_call *c);
size_t cuda_pixel_pos_grad_workspace(const op_call *c);
size_t cuda_depthwise_dw_workspace(const op_call *c);
size_t cuda_scale_grad_workspace(const op_call *c);
size_t cuda_loss_workspace(const op_call *c);
size_t cuda_grad_norm_workspace(const op_call *c);

/* ---- what kernels of several ops share ------------------------------------------------------- */

/* columns.cu: sums over the rows of a matrix, and of products of two. Rows lie `stride` elements
 * apart. Where inner > 0 the sums are written transposed: sum p * inner + i goes to i * (columns /
 * inner) + p. */
typedef struct column_sums {
    const op_operand *a, *b; /* b NULL: sums of a; else of a * b */
    int64_t first;           /* element of a (and b) at which the matrix begins */
    int64_t rows, columns, stride, inner;
    float *to;
    const float *gamma; /* with dx: dx = a * gamma in the same pass; dx may be a */
    const op_operand *dx;
} column_sums;
size_t cuda_columns_workspace(int64_t rows, int64_t columns);
void cuda_columns(const op_call *c, const column_sums *s, void *workspace);
/* The end of a sum whose partial sums lie side by side, `columns` to a row. */
void cuda_columns_join(const op_call *c, float *to, const float *part, int64_t parts, int64_t columns, int64_t inner);
void cuda_ends_launch(cuda_device *d, const cuda_end *ends, int count); /* up to ENDS_MOST, added in double */

/* ends.c: an end of this call, launched with others or at once; nothing where `to` is NULL. A
 * program begins to collect, checks before every call, and finishes. */
void cuda_end_add(const op_call *c, const cuda_end *end);
void cuda_ends_begin(cuda_device *d);
void cuda_ends_before(cuda_device *d, const op_call *c);
void cuda_ends_finish(cuda_device *d);

/* act.c: an activation site. fused: it stands beside a product, so bf16 elements may be estimates
 * instead of the CPU's. */
size_t cuda_act_site_workspace(const op_call *c, int fused);
void cuda_act_site(const op_call *c, int fused);

/* elementwise.cu: the same elements in another dtype. */
void cuda_convert(const op_call *c, void *to, tensor_dtype to_dtype, const void *from, tensor_dtype from_dtype,
                  int64_t count);

/* product.cu: what cuBLASLt does not offer. y += bias and residual; and a product by plain tiles,
 * any dtype and stride: y[r, j] = sum over i of a[r a_row + i a_depth] b[j b_row + i b_depth], +
 * bias[j] + residual[r, j]. */
typedef struct plain_product {
    op_operand a, b, bias, residual, y; /* data and dtype; bias and residual may be missing */
    int64_t rows, columns, depth;
    int64_t a_row, a_depth, b_row, b_depth;
} plain_product;
void cuda_rows_finish(const op_call *c, const op_operand *y, const op_operand *bias, const op_operand *residual,
                      int64_t rows, int64_t columns);
void cuda_product_plain(const op_call *c, const plain_product *p);
int cuda_kernels_usable(void); /* is there code for this GPU in this build? */

static inline int64_t operand_count(const op_operand *o)
{
    return o->rows * o->channels;
}

#ifdef __cplusplus
}
#endif
#endif
