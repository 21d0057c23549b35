/* op.h - ops: the rules of each, a node that uses it, and a backend's entry for it.
 * SPDX-License-Identifier: MIT
 *
 * An op is one line of ops.inc: name, shape rule, gradient rule, flags. Passes consult the rules
 * and so need not know a new op; by name they know only what they create or match: differentiate.c
 * adds gradients with add, slice.c moves select, fuse.c and weights.c look for their patterns,
 * engine/build.c adds the losses. A backend has an entry of its own for every op: the kernel and
 * its abilities (overwrite an input, absorb a residual, read a copy of the weights in another
 * dtype, return column sums of its output).
 *
 * Read on: docs/add-an-op.md; graph/op_linear.c for an op with all its parts; engine/backend.h for
 * the call a kernel gets. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

/* The one list of ops is ops.inc; forward ops first, then those that only differentiation or a pass
 * creates. */
typedef enum op_id {
#define OP(ID, ...) OP_##ID,
#include "graph/ops.inc"
#undef OP
    OP_COUNT
} op_id;

enum { NODE_INPUTS = 10, NODE_OUTPUTS = 6, ACT_PARAMS = 2 };

/* The tensor that an activation site saves for the backward; names: "input" "both" "output". With
 * both, the outputs of other cheap ops (RULE_RECOMPUTE) are saved too. */
typedef enum engine_keep { KEEP_INPUT, KEEP_BOTH, KEEP_OUTPUT } engine_keep;
/* HARD: argmax of the teacher. SOFT: tau^2 KL / (B K), as DeiT. */
typedef enum engine_distill { DISTILL_NONE, DISTILL_HARD, DISTILL_SOFT } engine_distill;

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
    int from_output;           /* fused act: the gradient is computed from y, not from x */
    int raw;                   /* fused act: x is saved without the bias of the layer before */
    int soft;                  /* cross entropy: the targets are rows of probabilities */
    int distill;               /* distill: which kind; cross entropy: this is one of two losses */
    int rank;                  /* reshape */
    int64_t size[TENSOR_RANK];
    tensor like[NODE_OUTPUTS]; /* gradients: whose shape output i has; TENSOR_NONE: that output is not wanted */
} op_attr;

typedef struct node {
    op_id op;
    tensor in[NODE_INPUTS]; /* TENSOR_NONE where an optional input is missing */
    tensor out[NODE_OUTPUTS];
    op_attr attr;
    int backward; /* 1: added by differentiate */
    int group;    /* number of its row-blocked group (cpu/group.c), from 1 on; 0: none */
} node;

node node_make(op_id op, int inputs, const tensor *in); /* everything else absent or zero */

/* ---- the row --------------------------------------------------------------------------------- */

typedef struct grad_pass grad_pass; /* graph/differentiate.c */

/* Checks inputs and attributes and declares the outputs (graph_declare). Fails with a text that
 * names the tensor. */
typedef berlu_status (*op_shape)(graph *g, node *n);
/* Adds the nodes that carry the gradient of n's outputs to its inputs. Computes nothing. */
typedef berlu_status (*op_gradient)(grad_pass *p, const node *n);
typedef double (*op_macs)(const graph *g, const node *n);

typedef struct op_rule {
    const char *name;
    int inputs; /* required inputs; further ones are optional */
    op_shape shape;
    op_gradient gradient; /* NULL: nothing flows through */
    op_macs macs;         /* NULL: none worth counting */
    int statistic;        /* > 0: an input that takes output 1 back when the op is recomputed */
    unsigned flags;
} op_rule;
enum {
    RULE_RECOMPUTE = 1, /* output 0 is cheap: the backward recomputes it unless `keep` is both */
    RULE_RANDOM = 2,    /* identity outside training */
    RULE_LOSS = 4,      /* gradients begin here */
    RULE_VIEW = 8,      /* output 0 is input 0's memory; there is no kernel */
    RULE_ROWS = 16,     /* a row of output 0 depends on that row of the inputs and on parameters alone */
    RULE_FUSED = 32,    /* created by passes/fuse.c where a backend offers a kernel */
    RULE_UPDATE = 64    /* operates on whole arrays of parameters; part of no graph */
};
extern const op_rule op_rules[OP_COUNT];

/* For shape rules and passes. */
int graph_node_count(const graph *g);
const node *graph_node(const graph *g, int index);
node *graph_node_edit(graph *g, int index);
tensor_info *graph_tensor_edit(graph *g, tensor t);
/* Appends a node: copies it, runs its shape rule, names its outputs. Returns output 0 or
 * TENSOR_NONE (sticky error). */
tensor graph_add(graph *g, const node *n);
const node *graph_last(const graph *g); /* the node of the last graph_add(): for its other outputs */
void graph_set_nodes(graph *g, const node *nodes, int count); /* at most the present number; producers are updated */
/* Asserts the invariants of a graph: inputs exist and are computed before their readers, every
 * output names its node as producer. Every pass ends with it (engine/build.c). */
void graph_check(const graph *g);
/* Replaces every use of `from` by `to`: inputs, views, sites, heads, the output. Returns the number
 * of changes. */
int graph_replace(graph *g, tensor from, tensor to);
/* Sets the input and output of a site. */
void graph_site_move(graph *g, int site, tensor old_x, tensor x, tensor y);
/* Declares an output of the node being added. */
tensor graph_declare(graph *g, tensor_role role, int batched, int rank, const int64_t *size);
tensor graph_declare_like(graph *g, tensor_role role, tensor like);
/* An input that the engine fills: labels, targets, teacher's logits. */
tensor graph_feed(graph *g, const char *name, int batched, int rank, const int64_t *size);
/* Keeps the first error. */
berlu_status graph_fail(graph *g, berlu_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "'blocks.0.mlp.fc1' [65, 192]" for error texts; from a ring of four, so two fit in one
 * message. */
const char *graph_say(graph *g, tensor t);

/* For gradient rules (graph/differentiate.c). */
graph *grad_graph(grad_pass *p);
tensor grad_of(grad_pass *p, tensor t);         /* the gradient of t so far; TENSOR_NONE if there is none */
int grad_wanted(const grad_pass *p, tensor t);  /* is t a parameter, or computed from one? */
tensor grad_like(const grad_pass *p, tensor t); /* t if its gradient is wanted, else TENSOR_NONE: for attr.like */
berlu_status grad_give(grad_pass *p, tensor t,
                       tensor d);             /* adds d to the gradient of t; does nothing for TENSOR_NONE */
tensor grad_keep(grad_pass *p, tensor t);     /* t as the backward may read it: itself, or recomputed */
int grad_saves(const grad_pass *p, tensor t); /* is that t itself? */
int grad_from_output(const grad_pass *p);     /* the policy of activation sites is `output` */
tensor grad_add(grad_pass *p, const node *n); /* graph_add() for the backward */
berlu_status grad_give_outputs(grad_pass *p, const node *n); /* adds n, whose output i is a gradient of attr.like[i] */
/* Appends the gradients of all parameters that the losses depend on (graph/differentiate.c). */
berlu_status graph_differentiate(graph *g, engine_keep keep, int recompute_attention);

/* ---- what a backend offers ------------------------------------------------------------------- */

struct op_call; /* engine/backend.h */
typedef void (*op_kernel)(const struct op_call *call);
typedef size_t (*op_workspace)(const struct op_call *call); /* bytes, from sizes alone: no operand has its data yet */
typedef int (*op_takes)(const struct op_call *call);        /* likewise */

/* A backend's entry of an op. */
typedef struct op_entry {
    op_kernel run; /* NULL: not offered (fused ops only); failures are kept by the device, run() returns them */
    op_workspace workspace; /* NULL: none */
    unsigned in_place;      /* bit i: output 0 may overwrite input i if nobody reads it later */
    int absorbs;            /* > 0: an input that is added to output 0, so that a following add can be absorbed */
    int through;            /* with absorbs: an add after a reshape of output 0 can be absorbed too */
    unsigned shadow;        /* bit i: input i, where it is a parameter, is read from its copy in the branch's dtype */
    unsigned branch;        /* bit i: input i is read in the branch's dtype, and converted first where it has another */
    /* > 0: output sums + j, if requested, gets the column sums of output j: a bias gradient in the
     * same pass */
    int sums;
    int again;  /* norm_grad, > 0: this output, if requested, gets y of the norm recomputed; input 5 is then its bias */
    int copy;   /* > 0: this output, if requested, gets output 0 in the branch's dtype */
    int output; /* attention_grad, > 0: from so many tokens on, input 4 is y of the attention */
    int width;  /* linear_norm, > 0: offered for so many inputs and outputs alone */
    int raw;    /* linear_act: the saved input may lack the bias, which linear_dx_act adds as it reads */
    op_takes takes; /* mlp: whether the kernel runs a call like this; asked before one is made. NULL: any */
} op_entry;

#endif
