/* op.h - what an op is: its row of rules, a node that uses it, and the call a backend gets. SPDX-License-Identifier: MIT
 *
 * An op is one row of op_rules[] (graph/ops.c): name, shape rule, gradient rule, flags. Passes ask the row and so need not know
 * a new op; by name they know only what they make or look for themselves: differentiate.c adds gradients with add, narrow.c
 * moves select, fuse.c looks for its patterns, engine_build.c adds the losses. A backend is one const table of kernels, one
 * per op; a kernel gets an op_call in which everything is resolved: pointers, sizes, attributes. Nothing in a call changes
 * between steps but the memory it points to.
 *
 * Read on: docs/add-an-op.md; graph/op_linear.c for a row with all its parts; cpu/linear.c for its kernel. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

/* One line per op. Forward ops first, then what only a backward or a pass makes. */
typedef enum op_id {
    OP_LINEAR,
    OP_NORM,
    OP_ATTENTION,
    OP_ACT,
    OP_UNFOLD,
    OP_DEPTHWISE,
    OP_TOKENS,
    OP_PIXEL_POS,
    OP_RESHAPE,
    OP_ADD,
    OP_ADD_TOKENS,
    OP_SCALE,
    OP_MEAN,
    OP_SELECT,
    OP_AVERAGE,
    OP_DROPOUT,
    OP_DROP_PATH,
    OP_CROSS_ENTROPY,
    OP_DISTILL,
    /* gradients */
    OP_LINEAR_DX,
    OP_LINEAR_DW,
    OP_NORM_GRAD,
    OP_ATTENTION_GRAD,
    OP_ACT_GRAD,
    OP_ACT_GRAD_OUT,
    OP_FOLD,
    OP_DEPTHWISE_DX,
    OP_DEPTHWISE_DW,
    OP_TOKENS_GRAD,
    OP_PIXEL_POS_GRAD,
    OP_TAKE_TOKENS,
    OP_SCALE_GRAD,
    OP_MEAN_GRAD,
    OP_SELECT_GRAD,
    OP_HALF,
    OP_CROSS_ENTROPY_GRAD,
    OP_DISTILL_GRAD,
    /* fused by passes/fuse.c where a backend has the kernel */
    OP_LINEAR_ACT,
    OP_LINEAR_DX_ACT,
    /* over whole arrays of parameters */
    OP_ACCUMULATE,
    OP_GRAD_NORM,
    OP_ADAMW,
    OP_SGD,
    OP_EMA,
    OP_COUNT
} op_id;

enum { NODE_INPUTS = 8, NODE_OUTPUTS = 5, ACT_PARAMS = 2 };

/* What an activation site keeps between forward and backward; names: "input" "both" "output". */
typedef enum engine_keep { KEEP_INPUT, KEEP_BOTH, KEEP_OUTPUT } engine_keep;
/* HARD: argmax of the teacher. SOFT: tau^2 KL / (B K) (DeiT); SOFT_BATCHMEAN: tau^2 KL / B (timm's task). */
typedef enum engine_distill { DISTILL_NONE, DISTILL_HARD, DISTILL_SOFT, DISTILL_SOFT_BATCHMEAN } engine_distill;

/* All settings any op has, flat, so that a node prints and copies without knowing its op. */
typedef struct op_attr {
    float eps;                 /* norm */
    float rate;                /* dropout, drop path */
    int heads;                 /* attention */
    int groups;                /* drop path: groups per image */
    int skip;                  /* add_tokens, take_tokens, select: index of the first token */
    int site;                  /* act: index of the site; dropout, drop path: number of the random op */
    int planar;                /* unfold, fold: the image is [C, H, W], not [H, W, C] */
    unfold_spec unfold;        /* unfold, fold */
    const berlu_act *act;      /* act, its gradients, and what is fused with it */
    int act_param[ACT_PARAMS]; /* which parameter of the activation each learned tensor is */
    int act_params;            /* how many are learned */
    int from_output;           /* fused act: the gradient is made from y, not from x */
    int raw;                   /* fused act: what is kept is x without the bias of the layer before */
    int soft;                  /* cross entropy: the targets are rows of probabilities */
    int distill;               /* distill: which kind; cross entropy: another loss stands beside this one */
    int rank;                  /* reshape */
    int64_t size[TENSOR_RANK];
    tensor like[NODE_OUTPUTS]; /* gradients: whose shape output i has; TENSOR_NONE: that output is not wanted */
} op_attr;

typedef struct node {
    op_id op;
    tensor in[NODE_INPUTS]; /* TENSOR_NONE where an optional input is missing */
    tensor out[NODE_OUTPUTS];
    op_attr attr;
    int backward; /* 1: made by differentiate */
    int group;    /* number of the group it belongs to (engine/group.c), from 1 on; 0: it runs alone */
} node;

node node_make(op_id op, int inputs, const tensor *in); /* everything else absent or zero */

/* ---- the row ----------------------------------------------------------------------------------------------------- */

typedef struct grad_pass grad_pass; /* graph/differentiate.c */

/* Checks inputs and attributes and declares the outputs (graph_declare). Fails with a text that names the tensor. */
typedef berlu_status (*op_shape)(graph *g, node *n);
/* Adds the nodes that carry the gradient of n's outputs to its inputs. Computes nothing. */
typedef berlu_status (*op_gradient)(grad_pass *p, const node *n);
typedef double (*op_macs)(const graph *g, const node *n);

typedef struct op_rule {
    const char *name;
    int inputs; /* how many must be there; further ones are optional */
    op_shape shape;
    op_gradient gradient; /* NULL: nothing flows through */
    op_macs macs;         /* NULL: none worth counting */
    unsigned in_place;    /* bit i: output 0 may overwrite input i if nobody reads it later */
    int residual;         /* > 0: an input that is added to output 0, so that an add behind it can be taken in */
    int statistic;        /* > 0: an input that takes output 1 back when the op is made again */
    unsigned flags;
} op_rule;
enum {
    RULE_RECOMPUTE = 1, /* output 0 is cheap: the backward makes it again instead of keeping it */
    RULE_RANDOM = 2,    /* identity outside training */
    RULE_LOSS = 4,      /* gradients begin here */
    RULE_ROWS = 16,     /* a row of output 0 depends on that row of the inputs and on parameters alone */
    RULE_VIEW = 8       /* output 0 is input 0's memory; there is no kernel */
};
extern const op_rule op_rules[OP_COUNT];

/* For shape rules and passes. */
int graph_node_count(const graph *g);
const node *graph_node(const graph *g, int index);
node *graph_node_edit(graph *g, int index);
tensor_info *graph_tensor_edit(graph *g, tensor t);
/* Appends a node: copies it, runs its shape rule, names its outputs. Returns output 0 or TENSOR_NONE (sticky error). */
tensor graph_add(graph *g, const node *n);
const node *graph_last(const graph *g); /* the node graph_add() just made: for its other outputs */
void graph_set_nodes(graph *g, const node *nodes, int count); /* at most as many as there were; producers follow */
/* Whatever names `from` names `to` from now on: inputs, views, sites, heads, the answer. Returns how many
 * changed. */
int graph_replace(graph *g, tensor from, tensor to);
/* The site's input and output are other tensors now. */
void graph_site_move(graph *g, int site, tensor old_x, tensor x, tensor y);
/* Declares an output of the node being added. */
tensor graph_declare(graph *g, tensor_role role, int batched, int rank, const int64_t *size);
tensor graph_declare_like(graph *g, tensor_role role, tensor like);
/* An input that the engine fills: labels, targets, teacher's logits. */
tensor graph_feed(graph *g, const char *name, int batched, int rank, const int64_t *size);
/* Keeps the first error. */
berlu_status graph_fail(graph *g, berlu_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "'blocks.0.mlp.fc1' [65, 192]" for error texts; from a ring of four, so two fit in one sentence. */
const char *graph_say(graph *g, tensor t);

/* For gradient rules (graph/differentiate.c). */
graph *grad_graph(grad_pass *p);
tensor grad_of(grad_pass *p, tensor t);         /* the gradient that arrived at t; TENSOR_NONE if none did */
int grad_wanted(const grad_pass *p, tensor t);  /* does t, or anything before it, learn? */
tensor grad_like(const grad_pass *p, tensor t); /* t if its gradient is wanted, else TENSOR_NONE: for attr.like */
berlu_status grad_give(grad_pass *p, tensor t,
                       tensor d);             /* adds d to the gradient of t; does nothing for TENSOR_NONE */
tensor grad_keep(grad_pass *p, tensor t);     /* t as the backward may read it: itself, or made again */
int grad_from_output(const grad_pass *p);     /* the policy of activation sites is `output` */
tensor grad_add(grad_pass *p, const node *n); /* graph_add() for the backward */
/* Appends the gradients of all parameters that the losses depend on (graph/differentiate.c). */
berlu_status graph_differentiate(graph *g, engine_keep keep, int recompute_attention);

/* ---- the call ---------------------------------------------------------------------------------------------------- */

typedef struct step_values step_values;

typedef struct op_operand {
    void *data;             /* NULL where missing */
    int64_t rows, channels; /* batch included; rows * channels numbers */
    const tensor_info *info;
} op_operand;

typedef struct op_call {
    op_id op;
    op_operand in[NODE_INPUTS], out[NODE_OUTPUTS];
    const op_attr *attr;
    step_values *step; /* in the backend's memory; losses, norm and clip factor are written there */
    void *workspace;   /* as many bytes as the backend asked for, aligned to 64 */
    int batch, threads;
    const struct param_table *params; /* update ops: all arrays */
    const void *data;                 /* the backend's own, backend.data */
    int group; /* so many calls from this one on are a group, which backend.group runs; 0: no group begins here */
} op_call;

typedef void (*op_kernel)(const op_call *call);
typedef size_t (*op_workspace)(
    const op_call *call); /* data pointers are not set, but missing operands have info NULL */

/* Copied from engine_step once per forward, in the form kernels use. */
struct step_values {
    uint64_t seed, first_sample;
    uint32_t step, count;
    double smoothing, distill_alpha, distill_tau, loss_scale;
    double lr, weight_decay, clip, act_lr, act_decay;
    int act_frozen, decay_all;
    double beta1, beta2, eps, momentum, dampening, ema_decay;
    double correction1, correction2; /* 1 - beta^count */
    int sum_begun;                   /* accumulate: add to the sum instead of setting it */
    /* written by kernels */
    double loss_part[2]; /* cross entropy; distillation: means over the counted images */
    double grad_norm, clip_factor;
};

/* Update ops see all parameters at once. Weights, moments and average share offsets; gradients lie in the order the
 * backward finishes them. Offsets are in numbers. */
typedef struct param_span {
    int64_t offset, gradient, count;
    int decay, activation;
    float least;
} param_span;

/* The weight decay of a span: an activation's own, or with decay_all everybody's where it has none of its own. */
static inline double span_decay(const param_span *p, const step_values *s)
{
    if (p->activation && (s->act_decay != 0 || !s->decay_all))
        return s->act_decay;
    return p->decay || s->decay_all ? s->weight_decay : 0;
}

/* Does this step move the span? What it does not move counts nowhere, also not in the norm of the gradients. */
static inline int span_moves(const param_span *p, const step_values *s)
{
    return p->gradient >= 0 && !(p->activation && s->act_frozen);
}

typedef struct param_table {
    const param_span *spans;
    int count;
    int64_t total;                                           /* numbers in an array, gaps included; gaps are zero */
    void *weight, *gradient, *sum, *moment1, *moment2, *ema; /* sum: gradients when accumulating; NULL where absent */
    int nesterov;
} param_table;

typedef struct op_entry {
    op_kernel run;          /* NULL: not offered (fused ops only) */
    op_workspace workspace; /* NULL: none */
} op_entry;

/* A machine. Memory is the backend's own; put and get convert from and to the host's numbers. */
struct backend {
    const char *name;                                /* "cpu", "cpu-f64", "cuda" */
    const op_entry *ops;                             /* OP_COUNT of them */
    size_t (*bytes_of)(tensor_role role);            /* of one number */
    int host_f32;                                    /* its memory is the host's and holds floats: no copies needed */
    void *(*memory)(size_t bytes, const char *what); /* zeroed; NULL with the error text set */
    void (*release)(void *memory);
    void (*put)(void *to, const float *from, size_t count);
    void (*get)(float *to, const void *from, size_t count);
    void (*put_f64)(void *to, const double *from, size_t count);
    void (*get_f64)(double *to, const void *from, size_t count);
    const void *data;                       /* handed to every call */
    size_t (*library)(const op_call *call); /* bytes that libraries take for themselves while it runs; NULL: none */
    /* Chains: calls that are run some rows at a time, one after the other, so that rows stay in a cache (engine/group.c). */
    int (*groupable)(op_id op);                                      /* can this op be in a group? */
    int64_t group_rows;                                              /* rows at a time; 0: there are no groups */
    int64_t group_width;                                             /* numbers of a row, at most */
    void (*group)(const op_call *calls, int count, double *seconds); /* seconds: added per call; NULL: nobody asks */
};
typedef struct backend backend;

#endif
