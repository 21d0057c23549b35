/* weights.c - moves work from rows into weights. SPDX-License-Identifier: MIT
 *
 *     scale(linear(x, W, b), gamma)    -> linear(x, W', b'), W', b' = scale_weight(W, gamma, b)
 *     linear(unfold(image, tile), W, b) -> reshape(linear(unfold(image), W', b')),
 *                                         W', b' = spread_weight(W, b)
 *     attention(linear(x, A), linear(x, B)) -> attention(linear(x, W')), W' = join_weight(A, B)
 *
 * Rows are as many as the batch has; weights are few. (1) As a node of its own LayerScale reads and
 * writes all rows, each way, and keeps its input for the backward. In the weights it costs a pass
 * over them; the sum with the residual then follows the product directly, so its epilogue can take
 * it (fuse.c), and nothing is kept. (2) TNT cuts a 7 x 7 window at every pixel of a 4 x 4 tile:
 * rows of 147 numbers, most of them zeros, sixteen for each tile. All windows of a tile together
 * are one layer over its 48 pixels: a third of the multiply-adds and a fiftieth of the memory. It
 * applies where the tile is no wider than the window; a wider one would multiply more zeros. (3) q,
 * k and v of one input, from two layers without bias, are one product, which reads x once; so are
 * their gradients.
 *
 * The pass runs before differentiate, so gradients of W' reach the parameters by the rules of
 * graph/op_weights.c. Values change in their last bits, so a backend asks for it
 * (backend.fold_weights); the CPU's, whose runs are recorded bit for bit, do not. Applies only
 * where nothing else reads the tensor that disappears. */
#include <stdlib.h>

#include "passes/passes.h"

/* New nodes are appended, where their tensors get declared, and take their places at the end. */
typedef struct place {
    int first, count; /* of the appended nodes that come before this node */
    int gone;         /* and the node itself is left out */
} place;

typedef struct weights_pass {
    graph *g;
    int *uses;
    place *places; /* per node of the beginning */
    node *sorted;
} weights_pass;

/* The producer of t if it is such an op and nothing else reads t; -1 else. */
static int only_reader_of(const weights_pass *p, tensor t, op_id op)
{
    int producer = p->uses[t] == 1 ? graph_tensor(p->g, t)->producer : -1;
    return producer >= 0 && graph_node(p->g, producer)->op == op && !p->places[producer].gone ? producer : -1;
}

static berlu_status scale_fold(weights_pass *p, int index)
{
    graph *g = p->g;
    const node scale = *graph_node(g, index);
    int layer = scale.op == OP_SCALE ? only_reader_of(p, scale.in[0], OP_LINEAR) : -1;
    if (layer < 0)
        return BERLU_OK;
    const node *before = graph_node(g, layer);
    node weight = node_make(OP_SCALE_WEIGHT, 3, (tensor[]){before->in[1], scale.in[1], before->in[2]});
    p->places[layer] = (place){.first = graph_node_count(g), .count = 1};
    p->places[index].gone = 1;
    TRY(graph_add(g, &weight) == TENSOR_NONE ? graph_status(g) : BERLU_OK);
    weight = *graph_last(g);
    node *edited = graph_node_edit(g, layer);
    edited->in[1] = weight.out[0];
    edited->in[2] = weight.out[1];
    graph_replace(g, scale.out[0], edited->out[0]);
    return BERLU_OK;
}

static int tile_fits(const op_attr *a)
{
    return a->planar && a->unfold.tile && !a->unfold.leak && a->unfold.tile <= a->unfold.kernel;
}

static berlu_status windows_spread(weights_pass *p, int index)
{
    graph *g = p->g;
    const node layer = *graph_node(g, index);
    int cut = layer.op == OP_LINEAR ? only_reader_of(p, layer.in[0], OP_UNFOLD) : -1;
    if (cut < 0 || !tile_fits(&graph_node(g, cut)->attr))
        return BERLU_OK;
    const tensor_info y = *graph_tensor(g, layer.out[0]);
    const op_attr attr = graph_node(g, cut)->attr;
    node tiles = node_make(OP_UNFOLD, 1, graph_node(g, cut)->in);
    tiles.attr.planar = attr.planar;
    tiles.attr.unfold = (unfold_spec){.kernel = attr.unfold.tile, .stride = attr.unfold.tile};
    p->places[index] = (place){.first = graph_node_count(g), .count = 4, .gone = 1};
    p->places[cut].gone = 1;
    tensor rows = graph_add(g, &tiles);
    node spread = node_make(OP_SPREAD_WEIGHT, 2, (tensor[]){layer.in[1], layer.in[2]});
    spread.attr.unfold = attr.unfold;
    tensor weight = graph_add(g, &spread);
    TRY(graph_status(g));
    tensor results = build_linear(g, rows, weight, graph_last(g)->out[1]);
    tensor places = build_reshape(g, results, y.rank, y.size);
    TRY(graph_status(g));
    graph_replace(g, layer.out[0], places);
    return BERLU_OK;
}

static berlu_status layers_join(weights_pass *p, int index)
{
    graph *g = p->g;
    const node attention = *graph_node(g, index);
    int both = attention.op == OP_ATTENTION && attention.in[1] != TENSOR_NONE;
    int first = both ? only_reader_of(p, attention.in[0], OP_LINEAR) : -1;
    int second = both ? only_reader_of(p, attention.in[1], OP_LINEAR) : -1;
    if (first < 0 || second < 0)
        return BERLU_OK;
    const node a = *graph_node(g, first), b = *graph_node(g, second);
    if (a.in[0] != b.in[0] || a.in[2] != TENSOR_NONE || b.in[2] != TENSOR_NONE)
        return BERLU_OK;
    p->places[first] = (place){.first = graph_node_count(g), .count = 2, .gone = 1};
    p->places[second].gone = 1;
    node join = node_make(OP_JOIN_WEIGHT, 2, (tensor[]){a.in[1], b.in[1]});
    tensor weight = graph_add(g, &join);
    tensor rows = build_linear(g, a.in[0], weight, TENSOR_NONE);
    TRY(graph_status(g));
    node *edited = graph_node_edit(g, index);
    edited->in[0] = rows;
    edited->in[1] = TENSOR_NONE;
    return BERLU_OK;
}

/* The first `count` nodes in order, each after those that were appended for its place. */
static void nodes_order(weights_pass *p, int count)
{
    int at = 0;
    for (int i = 0; i < count; i++) {
        const place *here = &p->places[i];
        for (int k = 0; k < here->count; k++)
            p->sorted[at++] = *graph_node(p->g, here->first + k);
        if (!here->gone)
            p->sorted[at++] = *graph_node(p->g, i);
    }
    graph_set_nodes(p->g, p->sorted, at);
}

berlu_status graph_weights(graph *g)
{
    int count = graph_node_count(g);
    weights_pass p = {.g = g, .uses = graph_uses(g), .places = calloc((size_t)count + 1, sizeof *p.places)};
    berlu_status status = BERLU_OK;
    if (!p.uses || !p.places)
        status = berlu_fail_memory((size_t)count * sizeof *p.places, "moving work into weights");
    for (int i = 0; i < count && status == BERLU_OK; i++) {
        status = windows_spread(&p, i);
        if (status == BERLU_OK)
            status = scale_fold(&p, i);
        if (status == BERLU_OK)
            status = layers_join(&p, i);
    }
    if (status == BERLU_OK && !(p.sorted = calloc((size_t)graph_node_count(g) + 1, sizeof *p.sorted)))
        status = berlu_fail_memory((size_t)count * sizeof *p.sorted, "moving work into weights");
    if (status == BERLU_OK)
        nodes_order(&p, count);
    free(p.uses);
    free(p.places);
    free(p.sorted);
    return status;
}
