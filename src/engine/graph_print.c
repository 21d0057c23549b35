/* graph_print.c - prints a graph after any pass. SPDX-License-Identifier: MIT
 *
 * Text, one line per node: number, op, outputs with shape and memory, inputs. In a memory range,
 * "arena+4096 12..97" means bytes from 4096 on, with a lifetime from node 12 to node 97: a range
 * across the backward's first node is saved for it. The dot form draws the same:
 * `berlu summary MODEL --graph=dot --after fuse | dot -Tsvg`. */
#include "engine/graph_print.h"

static const char *const area_names[AREA_COUNT] = {"nowhere", "arena", "weights", "gradients", "feed", "shadow"};

static void shape_print(text *out, const tensor_info *t)
{
    text_string(out, t->batched ? "[B" : "[");
    for (int i = 0; i < t->rank; i++)
        text_add(out, "%s%lld", i || t->batched ? ", " : "", (long long)t->size[i]);
    text_string(out, "]");
}

static void place_print(text *out, const plan *p, tensor t)
{
    const plan_place *place = &p->places[t];
    text_add(out, " %s+%llu", area_names[place->area], (unsigned long long)place->offset);
    if (place->area == AREA_ARENA)
        text_add(out, " %d..%d", p->places[place->root].first, p->places[place->root].last);
}

static void node_print(text *out, const graph *g, const plan *p, int index)
{
    const node *n = graph_node(g, index);
    text_add(out, "%4d %s", index, op_rules[n->op].name);
    if (n->attr.act)
        text_add(out, "(%s)", berlu_act_name(n->attr.act));
    const char *between = " -> ";
    for (int i = 0; i < NODE_OUTPUTS; i++) {
        if (n->out[i] == TENSOR_NONE)
            continue;
        text_add(out, "%s%s ", between, graph_tensor(g, n->out[i])->name);
        shape_print(out, graph_tensor(g, n->out[i]));
        if (p)
            place_print(out, p, n->out[i]);
        between = "; ";
    }
    between = "  from ";
    for (int i = 0; i < NODE_INPUTS; i++) {
        if (n->in[i] == TENSOR_NONE)
            continue;
        text_add(out, "%s%s", between, graph_tensor(g, n->in[i])->name);
        between = ", ";
    }
    if (n->group)
        text_add(out, "  group %d", n->group);
    text_string(out, "\n");
}

static void text_print(text *out, const graph *g, const plan *p)
{
    for (int i = 0; i < graph_node_count(g); i++) {
        if (graph_node(g, i)->backward && (i == 0 || !graph_node(g, i - 1)->backward))
            text_string(out, "---- backward\n");
        node_print(out, g, p, i);
    }
    if (!p)
        return;
    for (int i = 1; i < AREA_COUNT; i++)
        text_add(out, "%s: %llu bytes\n", area_names[i], (unsigned long long)p->bytes[i]);
    text_add(out, "kept from forward to backward: %llu bytes\n", (unsigned long long)p->kept);
}

/* One arrow from each node that this one reads; tensors saved for the backward are grey. */
static void arrows_print(text *out, const graph *g, int index)
{
    const node *n = graph_node(g, index);
    for (int j = 0; j < NODE_INPUTS; j++) {
        int producer = n->in[j] == TENSOR_NONE ? -1 : graph_tensor(g, n->in[j])->producer, again = 0;
        for (int k = 0; k < j; k++)
            again |= n->in[k] != TENSOR_NONE && graph_tensor(g, n->in[k])->producer == producer;
        if (producer < 0 || again)
            continue;
        int kept = n->backward && !graph_node(g, producer)->backward;
        text_add(out, "  n%d -> n%d%s;\n", producer, index, kept ? " [color=\"#a0a0a0\"]" : "");
    }
}

/* Parameters and feeds are not drawn: a real model would be nothing but arrows. The backward is
 * tinted. */
static void dot_print(text *out, const graph *g, const plan *p)
{
    text_string(out, "digraph berlu {\n  rankdir=TB; node [shape=box, fontname=\"sans\", fontsize=10];\n");
    for (int i = 0; i < graph_node_count(g); i++) {
        const node *n = graph_node(g, i);
        text_add(out, "  n%d [label=\"%s", i, op_rules[n->op].name);
        if (n->attr.act)
            text_add(out, " %s", berlu_act_name(n->attr.act));
        if (n->group)
            text_add(out, " (group %d)", n->group);
        if (n->out[0] != TENSOR_NONE) {
            text_add(out, "\\n%s ", graph_tensor(g, n->out[0])->name);
            shape_print(out, graph_tensor(g, n->out[0]));
            if (p) {
                text_string(out, "\\n");
                place_print(out, p, n->out[0]);
            }
        }
        text_add(out, "\"%s];\n", n->backward ? ", style=filled, fillcolor=\"#eef2ff\"" : "");
        arrows_print(out, g, i);
    }
    text_string(out, "}\n");
}

berlu_status graph_print(text *out, const graph *g, const plan *p, int dot)
{
    if (dot)
        dot_print(out, g, p);
    else
        text_print(out, g, p);
    return text_status(out);
}
