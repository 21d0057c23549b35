/* graph.h - a network as data: tensors, nodes, and the builder a model calls.
 * SPDX-License-Identifier: MIT
 *
 * A model builds its graph once, for one image and without a mode; an engine (engine/engine.h)
 * copies it, adds loss and gradients, and plans it for a batch size and for training or inference.
 * So one graph serves every plan, and a model's source reads like the paper: each build_ function
 * is one operation, each layer_ function is an operation with its parameters.
 *
 * Shapes are those of ONE image. A tensor with `batched` set has the batch as a silent first
 * dimension: tokens are [T, D], feature maps [H, W, C] (channels last), logits [K], TNT's pixels
 * [n, m, d]. Parameters are not batched and have the shape they have in a state dict. Everything
 * row-major.
 *
 * Errors are sticky: the first one is kept, every later call does nothing and returns TENSOR_NONE,
 * and graph_status() reports it at the end. A builder therefore never checks in between.
 *
 * Read on: graph/op.h (the rules of an op), op_NAME.c (shape and gradient rules), passes/
 * (rewrites). */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <stdint.h>

#include <berlu/act.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct graph graph;
typedef int tensor; /* a handle: index into the graph's tensors */
enum { TENSOR_NONE = -1, TENSOR_RANK = 4 };

/* The purpose of a tensor; a backend gives each role a dtype. */
typedef enum tensor_role {
    ROLE_WEIGHT,    /* a parameter */
    ROLE_GRADIENT,  /* of a parameter */
    ROLE_RESIDUAL,  /* the residual stream */
    ROLE_BRANCH,    /* everything computed inside a block */
    ROLE_STATISTIC, /* mean and 1/sigma, log-sums, partial sums */
    ROLE_LOSS,      /* logits, losses and targets */
    ROLE_COUNT
} tensor_role;

/* The type of a tensor's elements; the pass `precision` sets it from the role. */
typedef enum tensor_dtype { DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_I32, DTYPE_U8, DTYPE_COUNT } tensor_dtype;

/* Initialisation of a parameter. `value` is the constant, the standard deviation, or the fan-in. */
typedef enum init_kind {
    INIT_CONSTANT, /* value */
    INIT_NORMAL,   /* mean 0, deviation `value`, redrawn outside [-2, 2] */
    INIT_FAN_IN    /* uniform in +-1/sqrt(value) */
} init_kind;
typedef struct param_init {
    init_kind kind;
    double value;
} param_init;

extern const param_init INIT_ZERO, INIT_ONE, INIT_TN02, INIT_N1E6; /* the codes zero, one, tn02, n1e-6 */
param_init init_constant(double value);                            /* c1e-6 and the like */
param_init init_fan_in(int64_t inputs);                            /* ufN */

typedef struct tensor_info {
    const char *name; /* of the state dict, or made from its node */
    int rank, batched;
    int64_t size[TENSOR_RANK]; /* of one image, without the batch */
    tensor_role role;
    tensor_dtype dtype;
    int producer;    /* node that writes it, -1 for parameters and inputs */
    int feed;        /* the engine fills it: image, labels, targets */
    int parameter;   /* index in state-dict order, -1 if it is none */
    int decay;       /* parameter: weight decay applies */
    int activation;  /* parameter: belongs to an activation (own learning rate, no decay, constraint) */
    float low, high; /* parameter: bounds kept by the update; infinite where there is none */
    param_init init;
    tensor view_of;   /* shares that tensor's memory; TENSOR_NONE for most */
    tensor shadow_of; /* copy of that parameter in the branch's dtype, which the update writes; TENSOR_NONE for most */
    tensor gradient_of; /* it is that parameter's whole gradient, in the gradients' arena; TENSOR_NONE for most */
} tensor_info;

/* ---- making and reading a graph -------------------------------------------------------------- */

berlu_status graph_create(graph **out);
berlu_status graph_clone(graph **out, const graph *g);
void graph_free(graph *g);                 /* NULL is allowed */
berlu_status graph_status(const graph *g); /* the first error of any build_ call, its text set again */
int graph_failed(const graph *g);

/* A name that lives as long as the graph: graph_name(g, "blocks.%d.norm1", i). Never NULL. */
const char *graph_name(graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

const tensor_info *graph_tensor(const graph *g, tensor t); /* t must be valid */
int graph_tensor_count(const graph *g);
int graph_param_count(const graph *g);
tensor graph_param(const graph *g, int index);       /* in state-dict order */
tensor graph_find(const graph *g, const char *name); /* a parameter by name; TENSOR_NONE if there is none */
int64_t tensor_elements(const tensor_info *t);       /* of one image */
int64_t tensor_channels(const tensor_info *t);       /* the last size */
tensor graph_image(const graph *g);                  /* the input */
tensor graph_logits(const graph *g);                 /* the output: for two heads, their mean */
int graph_heads(const graph *g, tensor heads[2]);    /* 1 or 2 heads before the mean */
double graph_macs(const graph *g);                   /* multiply-adds of one image: products and convolutions */
int graph_site_count(const graph *g);                /* activation sites */

/* One activation site, as the model declared it. */
typedef struct graph_site {
    const char *name; /* "blocks.0.mlp.act" */
    const berlu_act *act;
    int64_t channels, values; /* per image: width, and elements that pass through */
    tensor x, y;
    int per_channel;
} graph_site;
const graph_site *graph_site_at(const graph *g, int index);

/* ---- parameters ------------------------------------------------------------------------------ */

/* A parameter; the order of these calls is the order of the state dict. `decay` is the model's
 * choice (timm's rule: ndim > 1, not a bias, not on the model's list). The name is copied. */
tensor build_param(graph *g, const char *name, param_init init, int decay, int rank, const int64_t *size);

/* ---- operations: each returns its result ----------------------------------------------------- */

tensor build_image(graph *g, int channels, int height, int width); /* the input, NCHW, once per graph */

/* x[..., K] W^T + b. weight (N, K) or (N, C, ky, kx) with C ky kx = K; bias (N) or TENSOR_NONE. */
tensor build_linear(graph *g, tensor x, tensor weight, tensor bias);

/* Layer norm over the last dimension, biased variance, eps inside the root. */
tensor build_norm(graph *g, tensor x, tensor weight, tensor bias, float eps);

/* softmax(q k^T / sqrt(D / heads)) v among the tokens (last dimension but one). Either qkv[..., 3D]
 * with v TENSOR_NONE, or qk[..., 2D] and v[..., D]. Head-major channels. */
tensor build_attention(graph *g, tensor qkv, tensor v, int heads);

/* The activation site `name`. Learned parameters of `act` become parameters name.alpha, name.eps
 * ... of shape [1], or [C] with per_channel, so call it at their position in the state dict: after
 * fc1, before fc2's parameters. `act` is borrowed and must outlive the graph, its copies and its
 * engines. */
tensor build_act(graph *g, tensor x, const berlu_act *act, int per_channel, const char *name);

/* Cuts windows out of an image and lays each out as a row (channel, ky, kx), ready for
 * build_linear: a convolution. From NCHW (the image): result [windows, C k k]; from [H, W, C]:
 * result [H/k, W/k, C k k], where only kernel = stride and no padding is allowed (rows and columns
 * that do not fill a window are cut). */
typedef struct unfold_spec {
    int kernel, stride, padding;
    int tile; /* 0: windows row-major over the whole image. p: the image is cut into p x p tiles, row-major, and the
                    * result is [tiles, windows of a tile, C k k] */
    int leak; /* with tile: 0 pads zeros at every tile's edge (TNT), 1 only at the image's edge (TNT legacy) */
} unfold_spec;
tensor build_unfold(graph *g, tensor image, unfold_spec spec);

/* Depthwise convolution of [H, W, C], stride 1, zero padding k/2. weight (C, 1, k, k), k odd; bias
 * (C). */
tensor build_depthwise(graph *g, tensor x, tensor weight, tensor bias);

/* Prepends tokens (1,1,D) to x[n, D] and adds pos (1, n + tokens, D). dist may be TENSOR_NONE. */
tensor build_tokens(graph *g, tensor x, tensor cls, tensor dist, tensor pos);

/* x[..., m, d] + pos (1, d, q, q), q q = m, the same for every group. */
tensor build_pixel_pos(graph *g, tensor x, tensor pos);

tensor build_reshape(graph *g, tensor x, int rank, const int64_t *size); /* a view */
tensor build_add(graph *g, tensor x, tensor branch);                     /* same shapes; x is the residual stream */
tensor build_add_tokens(graph *g, tensor x, tensor branch, int skip);    /* x[skip:, :] += branch; x[T, D] */
tensor build_scale(graph *g, tensor x, tensor gamma);                    /* LayerScale: x * gamma[C] */
tensor build_mean(graph *g, tensor x);                                   /* mean over all positions: [C] */
tensor build_select(graph *g, tensor x, int token);                      /* x[T, D] -> [D] */
tensor build_average(graph *g, tensor a, tensor b);                      /* (a + b) / 2 */

/* Random in training, identity in inference; a rate of 0 adds no node. drop_path drops whole
 * groups: `groups` per image, 1 for tokens and maps, n for TNT's pixels. */
tensor build_dropout(graph *g, tensor x, float rate);
tensor build_drop_path(graph *g, tensor x, float rate, int groups);

/* Declares the output. Two heads (distilled): the output is their mean; dist TENSOR_NONE for one
 * head. */
void build_output(graph *g, tensor head, tensor dist);

/* ---- layers: an operation with its own parameters -------------------------------------------- */

enum { NO_BIAS = 0, WITH_BIAS = 1 };
tensor layer_linear(graph *g, tensor x, int64_t outputs, int bias,
                    const char *name);                              /* name.weight tn02, name.bias 0 */
tensor layer_norm(graph *g, tensor x, float eps, const char *name); /* name.weight 1, name.bias 0 */

#endif
