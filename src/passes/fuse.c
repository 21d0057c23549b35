/* fuse.c - fewer, larger calls: ten patterns, each a peephole over the list of nodes.
 * SPDX-License-Identifier: MIT
 *
 *     add(r, op(...))                     -> op(..., r)
 *     add(r, reshape(op(...)))            -> reshape(op(..., reshape(r)))
 *     act(linear(x))                      -> linear_act(x)
 *     act_grad(linear_dx(dz), u), act(u)  -> linear_dx_act(dz, u)
 *     column sums of du                   -> a further output of linear_dx_act
 *     linear_dw(op(...)), its db          -> a further output of op
 *     norm(x, statistics), norm_grad(x)   -> norm_grad, with the recomputed y as an output
 *     y of attention, attention_grad      -> attention_grad(..., y)
 *     norm(linear(x, r))                  -> linear_norm(x, r), with the sum as an output
 *     norm(linear(linear_act(x), r))      -> mlp(x, r), with the sum as an output
 *
 * (1) Where the backend's entry says that the kernel absorbs a residual, the sum is computed while
 * the output of op is in registers: the residual of a block in the forward, gradients that meet in
 * the backward; through a view where the entry says so (op_entry.through). (2) Bias and activation
 * read the product's rows from the cache. (3) The same in the backward: the derivative, and the
 * output recomputed for the next layer's weights, in one pass. (4) So linear_dw before it computes
 * no bias gradient, and u can be saved without its bias (attr.raw) where the entry allows it. (5)
 * Column sums are added while the elements are in registers, without another read of dy. (6) x is
 * read once; the linear_dw that reads y moves after norm_grad, and with it what reads its results.
 * (7) The kernel gets sums over keys from y, which the weight gradient before it reads anyway. (8)
 * A kernel that has whole rows in registers normalizes the sum without another read of it. (9) In
 * inference the hidden activations of an MLP, its widest tensors, stay on the chip; the norm is
 * optional. Few shapes and devices have such a kernel, so the backend is asked before
 * (op_entry.takes).
 *
 * A pattern applies only where nothing else reads the tensor that disappears. Values never change:
 * the f64 backend offers no fused op, runs the same graph unfused, and tests compare the two. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

typedef struct fuse_pass {
    graph *g;
    const op_entry *ops;
    const fuse_question *question;
    int *uses;
    char *dead;  /* per node */
    char *moves; /* per node: of norm_again_join() */
} fuse_pass;

static node *producer_of(fuse_pass *f, tensor t)
{
    int index = t == TENSOR_NONE ? -1 : graph_tensor(f->g, t)->producer;
    return index < 0 || f->dead[index] ? NULL : graph_node_edit(f->g, index);
}

/* Moves what node `from` computes to the place of node `to`. */
static void node_move(fuse_pass *f, int from, int to, const node *n)
{
    assert(from != to && !f->dead[to]);
    *graph_node_edit(f->g, to) = *n;
    f->dead[from] = 1;
    for (int j = 0; j < NODE_OUTPUTS; j++)
        if (n->out[j] != TENSOR_NONE)
            graph_tensor_edit(f->g, n->out[j])->producer = to;
}

/* Does a node strictly between the two read a further output of n? */
static int others_read(fuse_pass *f, const node *n, int from, int to)
{
    for (int i = from + 1; i < to; i++)
        for (int j = 0; j < NODE_INPUTS && !f->dead[i]; j++)
            for (int k = 1; k < NODE_OUTPUTS; k++)
                if (n->out[k] != TENSOR_NONE && graph_node(f->g, i)->in[j] == n->out[k])
                    return 1;
    return 0;
}

static void add_take_in(fuse_pass *f, int index)
{
    const node sum = *graph_node(f->g, index);
    if (sum.op != OP_ADD || sum.in[0] == sum.in[1])
        return;
    for (int side = 1; side >= 0; side--) {
        tensor part = sum.in[side];
        node *maker = producer_of(f, part);
        int slot = maker ? f->ops[maker->op].absorbs : 0;
        int from = maker ? graph_tensor(f->g, part)->producer : 0;
        if (!slot || maker->in[slot] != TENSOR_NONE || maker->out[0] != part || f->uses[part] != 1 ||
            others_read(f, maker, from, index))
            continue;
        node joined = *maker;
        joined.in[slot] = sum.in[1 - side];
        joined.out[0] = sum.out[0];
        node_move(f, from, index, &joined);
        return;
    }
}

/* The view becomes one of r, for op; a second one, in the sum's place, shows op's result as the
 * sum's. r must precede op, so that the three keep their positions. */
static void add_take_through(fuse_pass *f, int index)
{
    const node sum = *graph_node(f->g, index);
    for (int side = 1; side >= 0 && sum.op == OP_ADD; side--) {
        tensor seen = sum.in[side], r = sum.in[1 - side];
        node *view = producer_of(f, seen), *maker = view && view->op == OP_RESHAPE ? producer_of(f, view->in[0]) : NULL;
        int slot = maker && f->ops[maker->op].through ? f->ops[maker->op].absorbs : 0;
        if (!slot || maker->in[slot] != TENSOR_NONE || maker->out[0] != view->in[0] || f->uses[seen] != 1 ||
            f->uses[view->in[0]] != 1)
            continue;
        tensor made = view->in[0];
        int from = graph_tensor(f->g, made)->producer, middle = graph_tensor(f->g, seen)->producer;
        if (graph_tensor(f->g, r)->producer >= from || others_read(f, maker, from, middle))
            continue;
        node joined = *maker, before = *view, behind = *view;
        tensor_info *shown = graph_tensor_edit(f->g, seen), *result = graph_tensor_edit(f->g, sum.out[0]);
        const tensor_info *whole = graph_tensor(f->g, made);
        behind.in[0] = result->view_of = made;
        behind.out[0] = sum.out[0];
        before.in[0] = shown->view_of = r;
        before.attr.rank = shown->rank = whole->rank;
        memcpy(before.attr.size, whole->size, sizeof before.attr.size);
        memcpy(shown->size, whole->size, sizeof shown->size);
        joined.in[slot] = seen;
        *graph_node_edit(f->g, from) = before;
        *graph_node_edit(f->g, middle) = joined;
        *graph_node_edit(f->g, index) = behind;
        shown->producer = from;
        for (int j = 0; j < NODE_OUTPUTS; j++)
            if (joined.out[j] != TENSOR_NONE)
                graph_tensor_edit(f->g, joined.out[j])->producer = middle;
        return;
    }
}

/* The fused node takes the linear's position: others may read u before the activation does. */
static void linear_act_join(fuse_pass *f, int index)
{
    const node act = *graph_node(f->g, index);
    node *linear = act.op == OP_ACT && !act.backward ? producer_of(f, act.in[0]) : NULL;
    if (!linear || linear->op != OP_LINEAR || linear->in[3] != TENSOR_NONE)
        return;
    tensor u = act.in[0];
    node joined =
        node_make(OP_LINEAR_ACT, 5, (tensor[]){linear->in[0], linear->in[1], linear->in[2], act.in[1], act.in[2]});
    joined.attr = act.attr;
    joined.out[0] = act.out[0];
    joined.out[1] = f->uses[u] > 1 ? u : TENSOR_NONE;
    f->uses[u]--;
    node_move(f, index, graph_tensor(f->g, u)->producer, &joined);
}

/* The fused node takes the linear's position: others may read the sum before the norm does, and of
 * its own the norm reads parameters alone. */
static void linear_norm_join(fuse_pass *f, int index)
{
    const node norm = *graph_node(f->g, index);
    node *linear = norm.op == OP_NORM && !norm.backward ? producer_of(f, norm.in[0]) : NULL;
    if (!linear || linear->op != OP_LINEAR || linear->in[3] == TENSOR_NONE)
        return;
    int64_t width = f->ops[OP_LINEAR_NORM].width, inputs = tensor_channels(graph_tensor(f->g, linear->in[0]));
    int64_t outputs = tensor_channels(graph_tensor(f->g, norm.in[0]));
    int place = graph_tensor(f->g, norm.in[0])->producer;
    if ((width && (inputs != width || outputs != width)) || graph_tensor(f->g, norm.in[1])->producer >= place ||
        graph_tensor(f->g, norm.in[2])->producer >= place)
        return;
    node joined =
        node_make(OP_LINEAR_NORM, 6,
                  (tensor[]){linear->in[0], linear->in[1], linear->in[2], linear->in[3], norm.in[1], norm.in[2]});
    joined.attr = norm.attr;
    joined.out[0] = norm.in[0];
    joined.out[1] = norm.out[0];
    joined.out[2] = norm.out[1];
    node_move(f, index, place, &joined);
}

/* The forward's norm of x, where it could be computed at `place`; -1 if there is none. */
static int norm_find(fuse_pass *f, tensor x, int place)
{
    for (int i = place + 1; i < graph_node_count(f->g); i++) {
        const node *n = graph_node(f->g, i);
        if (!f->dead[i] && n->op == OP_NORM && !n->backward && n->in[0] == x &&
            graph_tensor(f->g, n->in[1])->producer < place && graph_tensor(f->g, n->in[2])->producer < place)
            return i;
    }
    return -1;
}

/* Only where nothing else reads the hidden activations: a backward reads u or h of every MLP. The
 * fused node takes the second layer's position, where all it reads is computed. */
static void mlp_join(fuse_pass *f, int index)
{
    const node second = *graph_node(f->g, index);
    tensor h = second.in[0];
    node *first = second.op == OP_LINEAR && second.in[3] != TENSOR_NONE && f->uses[h] == 1 ? producer_of(f, h) : NULL;
    if (!first || first->op != OP_LINEAR_ACT || first->out[0] != h || first->out[1] != TENSOR_NONE)
        return;
    int behind = norm_find(f, second.out[0], index);
    const node none = node_make(OP_NORM, 0, NULL), *norm = behind < 0 ? &none : graph_node(f->g, behind);
    node joined = node_make(OP_MLP, 10,
                            (tensor[]){first->in[0], first->in[1], second.in[1], second.in[3], first->in[2],
                                       second.in[2], norm->in[1], norm->in[2], first->in[3], first->in[4]});
    joined.attr = first->attr;
    joined.attr.eps = norm->attr.eps;
    joined.out[0] = second.out[0];
    joined.out[1] = norm->out[0];
    joined.out[2] = norm->out[1];
    if (f->question && !f->question->takes(f->question->context, &joined))
        return;
    node_move(f, graph_tensor(f->g, h)->producer, index, &joined);
    if (behind >= 0)
        f->dead[behind] = 1;
}

/* The copy of the activation that differentiate added for the next layer's weight gradient, or
 * -1. */
static int remade_find(fuse_pass *f, tensor u)
{
    for (int i = 0; i < graph_node_count(f->g); i++) {
        const node *n = graph_node(f->g, i);
        if (!f->dead[i] && n->op == OP_ACT && n->backward && n->in[0] == u)
            return i;
    }
    return -1;
}

/* linear_dw of the layer before, whose bias gradient is the column sums of du; -1 if there is
 * none. */
static int bias_user_find(fuse_pass *f, tensor du)
{
    for (int i = 0; i < graph_node_count(f->g); i++) {
        const node *n = graph_node(f->g, i);
        if (!f->dead[i] && n->op == OP_LINEAR_DW && n->in[0] == du && n->out[1] != TENSOR_NONE)
            return i;
    }
    return -1;
}

/* u is saved without its bias if the fused nodes are its only readers; the bias gradient moves here
 * too. */
static void bias_take_in(fuse_pass *f, node *joined, tensor u, int readers)
{
    node *before = producer_of(f, joined->attr.from_output ? TENSOR_NONE : u);
    int raw = f->ops[OP_LINEAR_ACT].raw && before && before->op == OP_LINEAR_ACT && before->out[1] == u &&
              before->in[2] != TENSOR_NONE && f->uses[u] == readers;
    int user = bias_user_find(f, joined->out[0]);
    if (user >= 0 && (raw || joined->attr.from_output)) {
        node *dw = graph_node_edit(f->g, user);
        joined->out[4] = dw->out[1];
        joined->attr.like[4] = dw->attr.like[1];
        dw->out[1] = dw->attr.like[1] = TENSOR_NONE;
    }
    if (raw) {
        before->attr.raw = joined->attr.raw = 1;
        joined->in[3] = before->in[2];
    }
}

static void dx_act_join(fuse_pass *f, int index)
{
    const node grad = *graph_node(f->g, index);
    if (grad.op != OP_ACT_GRAD && grad.op != OP_ACT_GRAD_OUT)
        return;
    node *dx = producer_of(f, grad.in[0]);
    if (!dx || dx->op != OP_LINEAR_DX || dx->in[2] != TENSOR_NONE || f->uses[grad.in[0]] != 1)
        return;
    int before = graph_tensor(f->g, grad.in[0])->producer, again = remade_find(f, grad.in[1]), place = before;
    if (graph_tensor(f->g, grad.in[1])->producer > before) { /* u is itself recomputed, and later */
        if (again < 0)
            return;
        place = again;
    }
    node joined = node_make(OP_LINEAR_DX_ACT, 6,
                            (tensor[]){dx->in[0], dx->in[1], grad.in[1], TENSOR_NONE, grad.in[2], grad.in[3]});
    joined.backward = 1;
    joined.attr = grad.attr;
    joined.attr.from_output = grad.op == OP_ACT_GRAD_OUT;
    joined.out[0] = grad.out[0];
    joined.out[1] = again >= 0 ? graph_node(f->g, again)->out[0] : TENSOR_NONE;
    joined.out[2] = grad.out[1];
    joined.out[3] = grad.out[2];
    bias_take_in(f, &joined, grad.in[1], 1 + (again >= 0));
    node_move(f, index, place, &joined);
    f->dead[before] = before != place;
    if (again >= 0)
        f->dead[again] = again != place;
}

/* A layer's bias gradient is the column sums of its dy: request them from the op that computes
 * dy. */
static void sums_move(fuse_pass *f, int index)
{
    node *dw = graph_node_edit(f->g, index);
    node *maker = dw->op == OP_LINEAR_DW && dw->out[1] != TENSOR_NONE ? producer_of(f, dw->in[0]) : NULL;
    int slot = maker ? f->ops[maker->op].sums : 0;
    for (int j = 0; slot && j < slot && slot + j < NODE_OUTPUTS; j++) {
        if (maker->out[j] != dw->in[0] || maker->out[slot + j] != TENSOR_NONE || slot + j == f->ops[maker->op].again ||
            slot + j == f->ops[maker->op].copy)
            continue;
        maker->out[slot + j] = dw->out[1];
        maker->attr.like[slot + j] = dw->attr.like[1];
        graph_tensor_edit(f->g, dw->out[1])->producer = graph_tensor(f->g, dw->in[0])->producer;
        dw->out[1] = dw->attr.like[1] = TENSOR_NONE;
        return;
    }
}

/* norm_grad of the norm that node `index` recomputes; -1 if none follows it. */
static int norm_grad_find(fuse_pass *f, int index)
{
    const node *norm = graph_node(f->g, index);
    for (int i = index + 1; i < graph_node_count(f->g); i++) {
        const node *n = graph_node(f->g, i);
        if (!f->dead[i] && n->op == OP_NORM_GRAD && n->in[1] == norm->in[0] && n->in[2] == norm->in[1] &&
            n->in[3] == norm->in[3])
            return i;
    }
    return -1;
}

static int node_reads(const node *n, tensor t)
{
    for (int j = 0; j < NODE_INPUTS; j++)
        if (n->in[j] == t)
            return 1;
    return 0;
}

/* Moves node `from` after node `to`; those between move up by one. */
static void node_rotate(fuse_pass *f, int from, int to)
{
    assert(from < to);
    node moved = *graph_node(f->g, from);
    char dead = f->dead[from];
    for (int i = from; i <= to; i++) {
        const node *n = i < to ? graph_node(f->g, i + 1) : &moved;
        *graph_node_edit(f->g, i) = *n;
        f->dead[i] = i < to ? f->dead[i + 1] : dead;
        for (int j = 0; j < NODE_OUTPUTS && !f->dead[i]; j++)
            if (n->out[j] != TENSOR_NONE)
                graph_tensor_edit(f->g, n->out[j])->producer = i;
    }
}

/* Marks the nodes between the two that read the norm's output, and those that read a result of such
 * a node. Returns whether all of them may move after norm_grad: weight gradients and what is
 * computed from them. */
static int movers_mark(fuse_pass *f, int index, int grad, tensor y)
{
    for (int i = index + 1; i < grad; i++) {
        const node *n = graph_node(f->g, i);
        f->moves[i] = (char)(!f->dead[i] && node_reads(n, y));
        if (f->moves[i] && n->op != OP_LINEAR_DW)
            return 0;
        for (int j = index + 1; j < i && !f->dead[i]; j++)
            for (int k = 0; k < NODE_OUTPUTS && f->moves[j]; k++)
                if (graph_node(f->g, j)->out[k] != TENSOR_NONE && node_reads(n, graph_node(f->g, j)->out[k]))
                    f->moves[i] = 1;
    }
    return 1;
}

static void norm_again_join(fuse_pass *f, int index)
{
    const node norm = *graph_node(f->g, index);
    int slot = f->ops[OP_NORM_GRAD].again;
    if (norm.op != OP_NORM || !norm.backward || norm.in[3] == TENSOR_NONE)
        return;
    int grad = norm_grad_find(f, index);
    if (grad < 0 || graph_node(f->g, grad)->out[slot] != TENSOR_NONE || node_reads(graph_node(f->g, grad), norm.out[0]))
        return;
    if (!movers_mark(f, index, grad, norm.out[0]))
        return;
    node *joined = graph_node_edit(f->g, grad);
    joined->in[5] = norm.in[2];
    joined->out[slot] = norm.out[0];
    joined->attr.like[slot] = norm.out[0];
    graph_tensor_edit(f->g, norm.out[0])->producer = grad;
    f->dead[index] = 1;
    for (int i = grad - 1; i > index; i--)
        if (f->moves[i])
            node_rotate(f, i, grad--);
}

/* y as the forward computed it or, if the backward recomputes it, as it does. */
static void attention_output_take(fuse_pass *f, int index)
{
    node *grad = graph_node_edit(f->g, index);
    const tensor_info *x = grad->op == OP_ATTENTION_GRAD ? graph_tensor(f->g, grad->in[1]) : NULL;
    if (!x || x->size[x->rank - 2] < f->ops[OP_ATTENTION_GRAD].output)
        return;
    for (int i = 0; i < index; i++) {
        const node *n = graph_node(f->g, i);
        if (!f->dead[i] && n->op == OP_ATTENTION && (n->out[1] == grad->in[3] || n->in[2] == grad->in[3]))
            grad->in[4] = n->out[0];
    }
}

static void dead_drop(fuse_pass *f)
{
    int left = 0;
    for (int i = 0; i < graph_node_count(f->g); i++)
        if (!f->dead[i])
            *graph_node_edit(f->g, left++) = *graph_node(f->g, i);
    graph_set_nodes(f->g, graph_node(f->g, 0), left);
}

berlu_status graph_fuse(graph *g, const op_entry *ops, const fuse_question *question)
{
    int count = graph_node_count(g);
    fuse_pass f = {.g = g, .ops = ops, .question = question, .uses = graph_uses(g)};
    f.dead = calloc((size_t)count + 1, 1);
    berlu_status status = BERLU_OK;
    f.moves = calloc((size_t)count + 1, 1);
    if (!f.uses || !f.dead || !f.moves) {
        status = berlu_fail_memory((size_t)count, "fusing a graph");
        goto done;
    }
    for (int i = 0; i < count; i++)
        if (!f.dead[i])
            add_take_in(&f, i);
    for (int i = 0; i < count; i++)
        if (!f.dead[i])
            add_take_through(&f, i);
    for (int i = 0; i < count && ops[OP_LINEAR_ACT].run; i++)
        if (!f.dead[i])
            linear_act_join(&f, i);
    for (int i = 0; i < count && ops[OP_MLP].run; i++)
        if (!f.dead[i])
            mlp_join(&f, i);
    for (int i = 0; i < count && ops[OP_LINEAR_NORM].run; i++)
        if (!f.dead[i])
            linear_norm_join(&f, i);
    for (int i = 0; i < count && ops[OP_LINEAR_DX_ACT].run; i++)
        if (!f.dead[i])
            dx_act_join(&f, i);
    for (int i = 0; i < count; i++)
        if (!f.dead[i])
            sums_move(&f, i);
    for (int i = 0; i < count && ops[OP_NORM_GRAD].again; i++)
        if (!f.dead[i])
            norm_again_join(&f, i);
    for (int i = 0; i < count && ops[OP_ATTENTION_GRAD].output; i++)
        if (!f.dead[i])
            attention_output_take(&f, i);
    dead_drop(&f);
done:
    free(f.uses);
    free(f.dead);
    free(f.moves);
    return status;
}
