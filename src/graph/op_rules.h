/* op_rules.h - the shape and gradient rules of every op, for the table in ops.c.
 * SPDX-License-Identifier: MIT
 *
 * A rule's file defines the op; a kernel's file (cpu/NAME.c) computes it. Inputs are numbered in
 * the order in which the head of each file lists them. */
#ifndef GRAPH_OP_RULES_H
#define GRAPH_OP_RULES_H

#include "graph/op.h"

berlu_status linear_shape(graph *g, node *n);
berlu_status linear_gradient(grad_pass *p, const node *n);
double linear_macs(const graph *g, const node *n);
berlu_status linear_act_shape(graph *g, node *n);
berlu_status linear_norm_shape(graph *g, node *n);
double mlp_macs(const graph *g, const node *n);

berlu_status norm_shape(graph *g, node *n);
berlu_status norm_gradient(grad_pass *p, const node *n);

berlu_status attention_shape(graph *g, node *n);
berlu_status attention_gradient(grad_pass *p, const node *n);
double attention_macs(const graph *g, const node *n);

berlu_status act_shape(graph *g, node *n);
berlu_status act_gradient(grad_pass *p, const node *n);

berlu_status unfold_shape(graph *g, node *n);
berlu_status unfold_gradient(grad_pass *p, const node *n);

berlu_status depthwise_shape(graph *g, node *n);
berlu_status depthwise_gradient(grad_pass *p, const node *n);
double depthwise_macs(const graph *g, const node *n);

berlu_status tokens_shape(graph *g, node *n);
berlu_status tokens_gradient(grad_pass *p, const node *n);
berlu_status pixel_pos_shape(graph *g, node *n);
berlu_status pixel_pos_gradient(grad_pass *p, const node *n);
berlu_status add_tokens_shape(graph *g, node *n);
berlu_status add_tokens_gradient(grad_pass *p, const node *n);
berlu_status select_shape(graph *g, node *n);
berlu_status select_gradient(grad_pass *p, const node *n);

berlu_status reshape_shape(graph *g, node *n);
berlu_status reshape_gradient(grad_pass *p, const node *n);
berlu_status add_shape(graph *g, node *n);
berlu_status add_gradient(grad_pass *p, const node *n);
berlu_status average_shape(graph *g, node *n);
berlu_status average_gradient(grad_pass *p, const node *n);
berlu_status scale_shape(graph *g, node *n);
berlu_status scale_gradient(grad_pass *p, const node *n);
berlu_status scale_weight_shape(graph *g, node *n);
berlu_status scale_weight_gradient(grad_pass *p, const node *n);
berlu_status spread_weight_shape(graph *g, node *n);
berlu_status spread_weight_gradient(grad_pass *p, const node *n);
berlu_status join_weight_shape(graph *g, node *n);
berlu_status join_weight_gradient(grad_pass *p, const node *n);
berlu_status mean_shape(graph *g, node *n);
berlu_status mean_gradient(grad_pass *p, const node *n);

berlu_status random_shape(graph *g, node *n);
berlu_status random_gradient(grad_pass *p, const node *n);

berlu_status cross_entropy_shape(graph *g, node *n);
berlu_status cross_entropy_gradient(grad_pass *p, const node *n);
berlu_status distill_shape(graph *g, node *n);
berlu_status distill_gradient(grad_pass *p, const node *n);

/* For most gradients: output i has the shape of attr.like[i]; its role follows from that tensor. */
berlu_status like_shape(graph *g, node *n);
/* Ops over whole arrays or data sets have no tensors of a graph. */
berlu_status update_shape(graph *g, node *n);

/* Helpers of the rules. */
static inline const tensor_info *info_of(const graph *g, tensor t)
{
    return graph_tensor(g, t);
}
static inline int64_t rows_of(const graph *g, tensor t) /* of one image */
{
    const tensor_info *info = graph_tensor(g, t);
    return tensor_elements(info) / tensor_channels(info);
}
/* A one-dimensional parameter of `count` elements, or none where `optional`. */
berlu_status vector_check(graph *g, const char *op, tensor t, int64_t count, int optional);

#endif
