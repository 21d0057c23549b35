/* graph.c - the store behind graph.h: growing arrays of tensors and nodes, sticky errors.
 * SPDX-License-Identifier: MIT
 *
 * Handles are indices, so a graph can be copied by copying three arrays; names live in an arena of
 * their own and are copied too. Nodes are in the order of their addition, which is a topological
 * order. Read on: build.c (one function per op), read.c (queries), graph/ops.c (the rules
 * graph_add() asks). */
#include "graph/graph_internal.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const param_init INIT_ZERO = {INIT_CONSTANT, 0.0}, INIT_ONE = {INIT_CONSTANT, 1.0};
const param_init INIT_TN02 = {INIT_NORMAL, 0.02}, INIT_N1E6 = {INIT_NORMAL, 1e-6};

param_init init_constant(double value)
{
    return (param_init){INIT_CONSTANT, value};
}

param_init init_fan_in(int64_t inputs)
{
    return (param_init){INIT_FAN_IN, (double)inputs};
}

berlu_status graph_create(graph **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return berlu_fail_memory(sizeof **out, "a graph");
    (*out)->image = (*out)->answer = (*out)->head[0] = (*out)->head[1] = TENSOR_NONE;
    return BERLU_OK;
}

void graph_free(graph *g)
{
    if (!g)
        return;
    free(g->tensors);
    free(g->nodes);
    free(g->params);
    free(g->sites);
    arena_free(&g->names);
    free(g);
}

/* Ensures capacity for one more element; doubles. */
static int array_grow(void **array, int *capacity, int count, size_t size)
{
    if (count < *capacity)
        return 1;
    int more = *capacity ? *capacity * 2 : 64;
    void *larger = realloc(*array, (size_t)more * size);
    if (!larger)
        return 0;
    *array = larger;
    *capacity = more;
    return 1;
}

berlu_status graph_fail(graph *g, berlu_status status, const char *format, ...)
{
    if (g->error != BERLU_OK)
        return g->error;
    va_list args;
    va_start(args, format);
    vsnprintf(g->message, sizeof g->message, format, args);
    va_end(args);
    g->error = status;
    return berlu_fail(status, "%s", g->message);
}

int graph_failed(const graph *g)
{
    return g->error != BERLU_OK;
}

berlu_status graph_status(const graph *g)
{
    return g->error == BERLU_OK ? BERLU_OK : berlu_fail(g->error, "%s", g->message);
}

const char *graph_name(graph *g, const char *format, ...)
{
    char buffer[256];
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    const char *name = arena_strdup(&g->names, buffer);
    if (name)
        return name;
    graph_fail(g, BERLU_ERR_MEMORY, "a graph's names: out of memory");
    return "";
}

/* ---- adding ---------------------------------------------------------------------------------- */

static tensor tensor_add(graph *g, const tensor_info *info)
{
    if (graph_failed(g))
        return TENSOR_NONE;
    if (!array_grow((void **)&g->tensors, &g->tensor_capacity, g->tensor_count, sizeof *g->tensors)) {
        graph_fail(g, BERLU_ERR_MEMORY, "a graph of %d tensors: out of memory", g->tensor_count);
        return TENSOR_NONE;
    }
    g->tensors[g->tensor_count] = *info;
    return g->tensor_count++;
}

berlu_status graph_sizes_check(graph *g, const char *name, int rank, const int64_t *size)
{
    int64_t product = 1;
    if (rank < 1 || rank > TENSOR_RANK)
        return graph_fail(g, BERLU_ERR_ARG, "%s: rank %d; 1 to %d is possible", name, rank, TENSOR_RANK);
    for (int i = 0; i < rank; i++)
        if (size[i] < 1 || __builtin_mul_overflow(product, size[i], &product) || product > INT64_C(1) << 40)
            return graph_fail(g, BERLU_ERR_ARG, "%s: size %lld of dimension %d is not possible", name,
                              (long long)size[i], i);
    return BERLU_OK;
}

static tensor_info info_blank(const char *name, tensor_role role, int batched, int rank, const int64_t *size)
{
    tensor_info info = {.name = name,
                        .rank = rank,
                        .batched = batched,
                        .role = role,
                        .producer = -1,
                        .parameter = -1,
                        .low = -INFINITY,
                        .high = INFINITY,
                        .shadow_of = TENSOR_NONE,
                        .view_of = TENSOR_NONE,
                        .gradient_of = TENSOR_NONE};
    memcpy(info.size, size, (size_t)rank * sizeof *size);
    return info;
}

tensor graph_declare(graph *g, tensor_role role, int batched, int rank, const int64_t *size)
{
    if (graph_failed(g) || graph_sizes_check(g, "a result", rank, size) != BERLU_OK)
        return TENSOR_NONE;
    tensor_info info = info_blank("", role, batched, rank, size);
    return tensor_add(g, &info);
}

tensor graph_declare_like(graph *g, tensor_role role, tensor like)
{
    if (graph_failed(g))
        return TENSOR_NONE;
    tensor_info copy = g->tensors[like];
    return graph_declare(g, role, copy.batched, copy.rank, copy.size);
}

tensor graph_feed(graph *g, const char *name, int batched, int rank, const int64_t *size)
{
    if (graph_failed(g) || graph_sizes_check(g, name, rank, size) != BERLU_OK)
        return TENSOR_NONE;
    tensor_info info = info_blank(graph_name(g, "%s", name), ROLE_LOSS, batched, rank, size);
    info.feed = 1;
    return tensor_add(g, &info);
}

tensor build_param(graph *g, const char *name, param_init init, int decay, int rank, const int64_t *size)
{
    if (graph_failed(g) || graph_sizes_check(g, name, rank, size) != BERLU_OK)
        return TENSOR_NONE;
    if (graph_find(g, name) != TENSOR_NONE) {
        graph_fail(g, BERLU_ERR_ARG, "parameter '%s' exists already; names are unique in a model", name);
        return TENSOR_NONE;
    }
    if (!array_grow((void **)&g->params, &g->param_capacity, g->param_count, sizeof *g->params)) {
        graph_fail(g, BERLU_ERR_MEMORY, "a graph of %d parameters: out of memory", g->param_count);
        return TENSOR_NONE;
    }
    tensor_info info = info_blank(graph_name(g, "%s", name), ROLE_WEIGHT, 0, rank, size);
    info.parameter = g->param_count;
    info.decay = decay;
    info.init = init;
    tensor t = tensor_add(g, &info);
    if (t != TENSOR_NONE)
        g->params[g->param_count++] = t;
    return t;
}

/* Names an output by its node's op and number, for prints and errors. */
static void outputs_name(graph *g, const node *n, int index)
{
    for (int i = 0; i < NODE_OUTPUTS; i++) {
        if (n->out[i] == TENSOR_NONE)
            continue;
        tensor_info *info = &g->tensors[n->out[i]];
        info->producer = index;
        if (!info->name || !info->name[0])
            info->name = graph_name(g, i ? "%s.%d:%d" : "%s.%d", op_rules[n->op].name, index, i);
    }
}

tensor graph_add(graph *g, const node *n)
{
    if (graph_failed(g))
        return TENSOR_NONE;
    const op_rule *rule = &op_rules[n->op];
    for (int i = 0; i < NODE_INPUTS; i++) {
        int absent = n->in[i] == TENSOR_NONE;
        if (graph_has(g, n->in[i]) || (absent && i >= rule->inputs))
            continue;
        graph_fail(g, BERLU_ERR_ARG, absent ? "%s: input %d is missing" : "%s: input %d is no tensor of this graph",
                   rule->name, i);
        return TENSOR_NONE;
    }
    if (!array_grow((void **)&g->nodes, &g->node_capacity, g->node_count, sizeof *g->nodes)) {
        graph_fail(g, BERLU_ERR_MEMORY, "a graph of %d nodes: out of memory", g->node_count);
        return TENSOR_NONE;
    }
    node copy = *n;
    for (int i = 0; i < NODE_OUTPUTS; i++)
        copy.out[i] = TENSOR_NONE;
    if (rule->shape(g, &copy) != BERLU_OK || graph_failed(g)) {
        graph_fail(g, BERLU_ERR_ARG, "%s: the shapes do not fit", rule->name);
        return TENSOR_NONE;
    }
    g->nodes[g->node_count] = copy;
    outputs_name(g, &copy, g->node_count++);
    return copy.out[0];
}

void graph_set_nodes(graph *g, const node *nodes, int count)
{
    assert(count >= 0 && count <= g->node_count);
    memmove(g->nodes, nodes, (size_t)count * sizeof *nodes);
    g->node_count = count;
    for (int i = 0; i < g->tensor_count; i++)
        g->tensors[i].producer = -1;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < NODE_OUTPUTS; j++)
            if (g->nodes[i].out[j] != TENSOR_NONE)
                g->tensors[g->nodes[i].out[j]].producer = i;
}

void graph_check(const graph *g)
{
    for (int i = 0; i < g->node_count; i++) {
        const node *n = &g->nodes[i];
        assert(n->op >= 0 && n->op < OP_COUNT);
        for (int j = 0; j < NODE_INPUTS; j++) {
            assert(n->in[j] != TENSOR_NONE || j >= op_rules[n->op].inputs);
            assert(n->in[j] == TENSOR_NONE || (graph_has(g, n->in[j]) && g->tensors[n->in[j]].producer < i));
        }
        for (int j = 0; j < NODE_OUTPUTS; j++)
            assert(n->out[j] == TENSOR_NONE || (graph_has(g, n->out[j]) && g->tensors[n->out[j]].producer == i));
    }
    for (int i = 0; i < g->param_count; i++)
        assert(g->tensors[g->params[i]].parameter == i && g->tensors[g->params[i]].producer < 0);
}

static int tensor_swap(tensor *t, tensor from, tensor to)
{
    int changes = *t == from && from != to;
    if (changes)
        *t = to;
    return changes;
}

int graph_replace(graph *g, tensor from, tensor to)
{
    assert(graph_has(g, from) && graph_has(g, to));
    int changed = tensor_swap(&g->answer, from, to);
    for (int i = 0; i < 2; i++)
        changed += tensor_swap(&g->head[i], from, to);
    for (int i = 0; i < g->node_count; i++)
        for (int j = 0; j < NODE_INPUTS; j++)
            changed += tensor_swap(&g->nodes[i].in[j], from, to);
    for (int i = 0; i < g->site_count; i++)
        changed += tensor_swap(&g->sites[i].x, from, to) + tensor_swap(&g->sites[i].y, from, to);
    for (int i = 0; i < g->tensor_count; i++) { /* a view follows its source, so one pass reaches all */
        tensor_info *info = &g->tensors[i];
        changed += tensor_swap(&info->view_of, from, to);
        if (info->view_of != TENSOR_NONE)
            info->role = g->tensors[info->view_of].role; /* the same memory has one role */
    }
    return changed;
}

node node_make(op_id op, int inputs, const tensor *in)
{
    node n = {.op = op};
    for (int i = 0; i < NODE_INPUTS; i++)
        n.in[i] = i < inputs ? in[i] : TENSOR_NONE;
    for (int i = 0; i < NODE_OUTPUTS; i++)
        n.out[i] = n.attr.like[i] = TENSOR_NONE;
    return n;
}

int graph_site_add(graph *g, const graph_site *site)
{
    if (!array_grow((void **)&g->sites, &g->site_capacity, g->site_count, sizeof *g->sites)) {
        graph_fail(g, BERLU_ERR_MEMORY, "a graph of %d activation sites: out of memory", g->site_count);
        return -1;
    }
    g->sites[g->site_count] = *site;
    return g->site_count++;
}

void graph_site_move(graph *g, int site, tensor old_x, tensor x, tensor y)
{
    graph_site *s = &g->sites[site];
    if (s->x != old_x)
        return;
    s->values = tensor_elements(&g->tensors[x]);
    s->x = x;
    s->y = y;
}

/* ---- copying --------------------------------------------------------------------------------- */

static void *array_copy(const void *from, int count, size_t size, int *ok)
{
    void *to = malloc((size_t)(count ? count : 1) * size);
    if (to && count)
        memcpy(to, from, (size_t)count * size);
    *ok = *ok && to;
    return to;
}

berlu_status graph_clone(graph **out, const graph *g)
{
    *out = NULL;
    if (graph_failed(g))
        return graph_status(g);
    graph *copy = calloc(1, sizeof *copy);
    if (!copy)
        return berlu_fail_memory(sizeof *copy, "a copy of a graph");
    int ok = 1;
    *copy = *g;
    copy->names = (arena){0};
    copy->tensors = array_copy(g->tensors, g->tensor_count, sizeof *g->tensors, &ok);
    copy->nodes = array_copy(g->nodes, g->node_count, sizeof *g->nodes, &ok);
    copy->params = array_copy(g->params, g->param_count, sizeof *g->params, &ok);
    copy->sites = array_copy(g->sites, g->site_count, sizeof *g->sites, &ok);
    copy->tensor_capacity = g->tensor_count ? g->tensor_count : 1;
    copy->node_capacity = g->node_count ? g->node_count : 1;
    copy->param_capacity = g->param_count ? g->param_count : 1;
    copy->site_capacity = g->site_count ? g->site_count : 1;
    for (int i = 0; ok && i < g->tensor_count; i++)
        ok = (copy->tensors[i].name = arena_strdup(&copy->names, g->tensors[i].name)) != NULL;
    for (int i = 0; ok && i < g->site_count; i++)
        ok = (copy->sites[i].name = arena_strdup(&copy->names, g->sites[i].name)) != NULL;
    if (!ok) {
        graph_free(copy);
        return berlu_fail_memory((size_t)g->tensor_count * sizeof *g->tensors, "a copy of a graph");
    }
    *out = copy;
    return BERLU_OK;
}
