/* linear_act.c - a product and the activation after or before it. SPDX-License-Identifier: MIT
 *
 * One launch where rows.c has a kernel that is faster; two otherwise: the product runs as linear.c
 * runs it, bias in its epilogue, and the activation follows in one pass. Forward, that saves
 * nothing over two nodes; backward it does: the pass that multiplies by the slope has du in
 * registers, so it also gives the bias gradient of the layer before (one read of du less) and
 * recomputes the activation's output (one read of u less). u is kept with its bias: adding it while
 * reading would force the activation to iterate by columns. */
#include <assert.h>

#include "cuda/kernels.h"
#include "cuda/rows.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Two launches need `bytes`; so does one, where it takes over. */
static size_t either(const op_call *c, size_t bytes)
{
    return cuda_rows_takes(c) ? larger(bytes, cuda_rows_workspace(c)) : bytes;
}

/* ---- forward --------------------------------------------------------------------------------- */

static op_call forward_product(const op_call *c)
{
    op_call product = *c;
    product.op = OP_LINEAR;
    product.in[3] = product.in[4] = product.out[1] = (op_operand){0};
    if (c->out[1].info) /* else y itself, which the activation overwrites */
        product.out[0] = c->out[1];
    return product;
}

static op_call forward_site(const op_call *c)
{
    op_call site = *c;
    site.op = OP_ACT;
    site.in[0] = c->out[1].info ? c->out[1] : c->out[0];
    site.in[1] = c->in[3];
    site.in[2] = c->in[4];
    site.in[3] = site.in[4] = site.out[1] = (op_operand){0};
    return site;
}

size_t cuda_linear_act_workspace(const op_call *c)
{
    op_call product = forward_product(c), site = forward_site(c);
    return either(c, larger(cuda_linear_workspace(&product), cuda_act_site_workspace(&site, 1)));
}

void cuda_linear_act(const op_call *c)
{
    op_call product = forward_product(c), site = forward_site(c);
    assert(!c->attr->raw);
    if (cuda_rows_takes(c)) {
        cuda_rows(c);
        return;
    }
    cuda_linear(&product);
    cuda_act_site(&site, 1);
}

/* ---- backward -------------------------------------------------------------------------------- */

static op_call backward_product(const op_call *c)
{
    op_call product = *c;
    product.op = OP_LINEAR_DX;
    for (int i = 2; i < NODE_INPUTS; i++)
        product.in[i] = (op_operand){0};
    for (int i = 1; i < NODE_OUTPUTS; i++)
        product.out[i] = (op_operand){0};
    return product;
}

/* In place: the slope multiplies what the product left in du. */
static op_call backward_site(const op_call *c)
{
    op_call site = *c;
    site.op = c->attr->from_output ? OP_ACT_GRAD_OUT : OP_ACT_GRAD;
    site.in[0] = c->out[0];
    site.in[1] = c->in[2];
    site.in[2] = c->in[4];
    site.in[3] = c->in[5];
    site.in[4] = site.in[5] = (op_operand){0};
    site.out[1] = c->out[2];
    site.out[2] = c->out[3];
    site.out[3] = c->out[1];
    return site;
}

size_t cuda_linear_dx_act_workspace(const op_call *c)
{
    op_call product = backward_product(c), site = backward_site(c);
    return either(c, larger(cuda_linear_workspace(&product), cuda_act_site_workspace(&site, 1)));
}

void cuda_linear_dx_act(const op_call *c)
{
    op_call product = backward_product(c), site = backward_site(c);
    assert(!c->attr->raw);
    if (cuda_rows_takes(c)) {
        cuda_rows(c);
        return;
    }
    cuda_linear_dx(&product);
    cuda_act_site(&site, 1);
}
