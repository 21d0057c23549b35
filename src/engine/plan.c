/* plan.c - gives every tensor of a graph its range of one block of memory.
 * SPDX-License-Identifier: MIT
 *
 * The lifetime of a tensor runs from the node that writes it to the last that reads it. Three
 * steps: (1) views share the memory of their source; (2) an output reuses the memory of an input
 * whose lifetime ends there, where the backend's entry of the op allows it; (3) the others are
 * placed, largest first, at the lowest offset that is free during their whole lifetime. A
 * row-blocked group (cpu/group.c) runs its first node for some rows after its last for others, so
 * lifetimes of its tensors extend over the group. Largest-first is not optimal: no plan can beat
 * the largest sum of tensors that live at once, and tests/graph/test_engine.c asserts for its small
 * networks, bare and as training steps, that the arena is at most a quarter over it, and that no
 * two living tensors overlap.
 *
 * Outputs live to the end, so that a caller can read them after any call. Parameters, gradients and
 * feeds have areas of their own: they outlive a step. Gradients lie in the order in which the
 * backward finishes them, so that a range of that area is complete before the rest (buckets for
 * several devices). Read plan_lifetimes(), plan_share(), then arena_place(). */
#include "engine/plan.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/dtype.h"

/* No two arena tensors whose lifetimes meet overlap, and all lie within the arena. `placed` is
 * sorted by offset, so only those that begin before the end of a range are compared with it. */
static void arena_check(const plan *p, const tensor *placed, int count, uint64_t alignment)
{
    for (int i = 0; i < count; i++) {
        const plan_place *a = &p->places[placed[i]];
        assert(a->offset % alignment == 0 && a->offset + a->bytes <= p->bytes[AREA_ARENA]);
        assert(a->first >= 0 && a->first <= a->last);
        for (int j = i + 1; j < count && p->places[placed[j]].offset < a->offset + a->bytes; j++)
            assert(p->places[placed[j]].last < a->first || p->places[placed[j]].first > a->last);
    }
}

static uint64_t align_up(uint64_t bytes, uint64_t alignment)
{
    assert(alignment && !(alignment & (alignment - 1)));
    return (bytes + alignment - 1) / alignment * alignment;
}

void plan_free(plan *p)
{
    free(p->places);
    *p = (plan){0};
}

static tensor root_of(const plan *p, tensor t)
{
    while (p->places[t].root != t)
        t = p->places[t].root;
    return t;
}

static plan_area area_of(const tensor_info *info)
{
    if (info->parameter >= 0)
        return AREA_WEIGHT;
    if (info->gradient_of != TENSOR_NONE)
        return AREA_GRADIENT;
    if (info->shadow_of != TENSOR_NONE)
        return AREA_SHADOW;
    return info->feed ? AREA_FEED : AREA_ARENA;
}

static berlu_status places_size(plan *p, const graph *g, const backend *b, int batch)
{
    for (int t = 0; t < p->count; t++) {
        const tensor_info *info = graph_tensor(g, t);
        plan_place *place = &p->places[t];
        uint64_t count = (uint64_t)tensor_elements(info) * (uint64_t)(info->batched ? batch : 1), bytes;
        if (__builtin_mul_overflow(count, (uint64_t)dtype_bytes(info->dtype), &bytes) || bytes > UINT64_C(1) << 46)
            return berlu_fail(BERLU_ERR_ARG, "tensor '%s' with batch %d would need more than 64 TiB", info->name,
                              batch);
        place->bytes = align_up(bytes, b->alignment);
        place->area = area_of(info);
        place->first = place->last = -1;
        place->root = info->view_of == TENSOR_NONE ? t : info->view_of;
    }
    return BERLU_OK;
}

static void lifetime_extend(plan *p, tensor t, int at)
{
    plan_place *place = &p->places[root_of(p, t)];
    if (place->first < 0 || at < place->first)
        place->first = at;
    if (at > place->last)
        place->last = at;
}

static void plan_lifetimes(plan *p, const graph *g)
{
    int nodes = graph_node_count(g);
    for (int i = 0; i < nodes; i++) {
        const node *n = graph_node(g, i);
        for (int j = 0; j < NODE_INPUTS; j++)
            if (n->in[j] != TENSOR_NONE)
                lifetime_extend(p, n->in[j], i);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            if (n->out[j] != TENSOR_NONE)
                lifetime_extend(p, n->out[j], i);
    }
    tensor outputs[3];
    graph_heads(g, outputs);
    outputs[2] = graph_logits(g);
    for (int i = 0; i < 3; i++)
        if (outputs[i] != TENSOR_NONE && p->places[root_of(p, outputs[i])].first >= 0)
            lifetime_extend(p, outputs[i], nodes);
}

/* Inputs of calls that may run beside later ones. */
static void plan_linger(plan *p, const graph *g, const backend *b, const device *d, int batch)
{
    int nodes = graph_node_count(g);
    for (int i = 0; i < nodes && b->linger; i++) {
        const node *n = graph_node(g, i);
        if (n->in[0] == TENSOR_NONE)
            continue;
        const tensor_info *info = graph_tensor(g, n->in[0]);
        int more = b->linger(d, n->op, tensor_elements(info) / tensor_channels(info) * (info->batched ? batch : 1));
        for (int j = 0; j < NODE_INPUTS && more; j++)
            if (n->in[j] != TENSOR_NONE)
                lifetime_extend(p, n->in[j], i + more < nodes ? i + more : nodes - 1);
    }
}

/* Output 0 of node i may reuse the memory of an input whose lifetime ends here. */
static void plan_share(plan *p, const graph *g, const op_entry *ops)
{
    for (int i = 0; i < graph_node_count(g); i++) {
        const node *n = graph_node(g, i);
        unsigned allowed = ops[n->op].in_place;
        tensor out = n->out[0] == TENSOR_NONE ? TENSOR_NONE : root_of(p, n->out[0]);
        if (!allowed || out == TENSOR_NONE || p->places[out].area != AREA_ARENA || p->places[out].first != i)
            continue;
        for (int j = NODE_INPUTS - 1; j >= 0; j--) {
            if (!(allowed >> j & 1) || n->in[j] == TENSOR_NONE)
                continue;
            plan_place *in = &p->places[root_of(p, n->in[j])];
            int again = 0; /* memory that is also read through another input must not be overwritten */
            for (int k = 0; k < NODE_INPUTS; k++)
                again += n->in[k] != TENSOR_NONE && root_of(p, n->in[k]) == root_of(p, n->in[j]);
            if (in->area != AREA_ARENA || in->last != i || in->bytes != p->places[out].bytes || again != 1 ||
                graph_tensor(g, n->in[j])->dtype != graph_tensor(g, n->out[0])->dtype)
                continue;
            in->last = p->places[out].last;
            p->places[out].root = root_of(p, n->in[j]);
            break;
        }
    }
}

/* After sharing: an output may still overwrite an input, because the nodes of a row run in
 * order. */
static void plan_groups(plan *p, const graph *g)
{
    int first = 0, count = graph_node_count(g);
    for (int i = 0; i < count; i++) {
        const node *n = graph_node(g, i);
        if (!n->group || graph_node(g, first)->group != n->group)
            first = i;
        int last = i;
        while (n->group && last + 1 < count && graph_node(g, last + 1)->group == n->group)
            last++;
        for (int j = 0; j < NODE_INPUTS && n->group; j++)
            if (n->in[j] != TENSOR_NONE)
                lifetime_extend(p, n->in[j], last);
        for (int j = 0; j < NODE_OUTPUTS && n->group; j++)
            if (n->out[j] != TENSOR_NONE) {
                lifetime_extend(p, n->out[j], first);
                lifetime_extend(p, n->out[j], last);
            }
    }
}

static int by_size(const void *a, const void *b, void *context)
{
    const plan *p = context;
    const plan_place *x = &p->places[*(const tensor *)a], *y = &p->places[*(const tensor *)b];
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return *(const tensor *)a - *(const tensor *)b;
}

/* The lowest offset at which `place` overlaps none of the `count` placed ranges of the same
 * lifetime; those are sorted by offset, so one pass finds the first gap. */
static uint64_t gap_find(const plan *p, const tensor *placed, int count, const plan_place *place)
{
    uint64_t offset = 0;
    for (int i = 0; i < count; i++) {
        const plan_place *other = &p->places[placed[i]];
        if (other->last < place->first || other->first > place->last)
            continue;
        if (offset + place->bytes <= other->offset)
            break;
        if (other->offset + other->bytes > offset)
            offset = other->offset + other->bytes;
    }
    return offset;
}

static void arena_place(plan *p, tensor *order, int count, tensor *placed)
{
    for (int i = 0; i < count; i++) {
        plan_place *place = &p->places[order[i]];
        place->offset = gap_find(p, placed, i, place);
        if (place->offset + place->bytes > p->bytes[AREA_ARENA])
            p->bytes[AREA_ARENA] = place->offset + place->bytes;
        int at = i;
        for (; at > 0 && p->places[placed[at - 1]].offset > place->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = order[i];
        if (place->first < p->boundary && place->last >= p->boundary)
            p->kept += place->bytes;
    }
}

static void area_append(plan *p, tensor t)
{
    plan_place *place = &p->places[t];
    place->offset = p->bytes[place->area];
    p->bytes[place->area] += place->bytes;
}

/* A copy has the index of its weight among the weights: the same in every engine that shares
 * them. */
static void shadow_place(plan *p, const graph *g, tensor t)
{
    tensor weight = graph_tensor(g, t)->shadow_of;
    uint64_t from = dtype_bytes(graph_tensor(g, weight)->dtype), to = dtype_bytes(graph_tensor(g, t)->dtype);
    p->places[t].offset = p->places[weight].offset / from * to;
    p->bytes[AREA_SHADOW] = p->bytes[AREA_WEIGHT] / from * to;
}

/* Areas other than the arena: weights in state-dict order, gradients as the backward finishes them,
 * feeds as declared. */
static void areas_fill(plan *p, const graph *g)
{
    for (int i = 0; i < graph_param_count(g); i++)
        area_append(p, graph_param(g, i));
    for (int i = 0; i < graph_node_count(g); i++)
        for (int j = 0; j < NODE_OUTPUTS; j++) {
            tensor t = graph_node(g, i)->out[j];
            if (t != TENSOR_NONE && p->places[t].area == AREA_GRADIENT)
                area_append(p, t);
        }
    for (int t = 0; t < p->count; t++) {
        if (p->places[t].area == AREA_FEED)
            area_append(p, t);
        else if (p->places[t].area == AREA_SHADOW)
            shadow_place(p, g, t);
    }
}

static int boundary_find(const graph *g)
{
    for (int i = 0; i < graph_node_count(g); i++)
        if (graph_node(g, i)->backward)
            return i;
    return graph_node_count(g);
}

berlu_status plan_make(plan *out, const graph *g, const backend *b, const device *d, int batch)
{
    plan p = {.count = graph_tensor_count(g), .boundary = boundary_find(g)};
    tensor *order = NULL, *placed = NULL;
    p.places = calloc((size_t)p.count + 1, sizeof *p.places);
    order = calloc((size_t)p.count + 1, sizeof *order);
    placed = calloc((size_t)p.count + 1, sizeof *placed);
    berlu_status status = BERLU_OK;
    if (!p.places || !order || !placed) {
        status = berlu_fail_memory((size_t)p.count * sizeof *p.places, "a plan");
        goto done;
    }
    TRY_DONE(places_size(&p, g, b, batch));
    plan_lifetimes(&p, g);
    plan_linger(&p, g, b, d, batch);
    plan_share(&p, g, b->ops);
    plan_groups(&p, g);
    int count = 0;
    for (int t = 0; t < p.count; t++) {
        if (p.places[t].area == AREA_ARENA && p.places[t].root == t && p.places[t].first < 0)
            p.places[t].area = AREA_NONE;
        if (p.places[t].area == AREA_ARENA && p.places[t].root == t)
            order[count++] = t;
    }
    qsort_r(order, (size_t)count, sizeof *order, by_size, &p);
    arena_place(&p, order, count, placed);
    arena_check(&p, placed, count, b->alignment);
    areas_fill(&p, g);
    for (int t = 0; t < p.count; t++) { /* views and in-place outputs: the range of their root */
        plan_place *root = &p.places[root_of(&p, t)];
        p.places[t].area = root->area;
        p.places[t].offset = root->offset;
    }
    *out = p;
    p = (plan){0};
done:
    free(order);
    free(placed);
    plan_free(&p);
    return status;
}
