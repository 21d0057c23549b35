/* engine_build.c - from a model's graph to a flat list of calls. SPDX-License-Identifier: MIT
 *
 * engine_rewrite() adds the losses the options ask for and runs the passes; engine_allocate() takes all memory the plan
 * names; engine_resolve() turns every node into an op_call whose pointers are final, engine_take_scratch() adds what kernels
 * need for themselves. Read on: engine.c, which runs them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"
#include "passes/passes.h"

/* ---- losses and passes ---- */

static tensor feed_declare(engine *e, int which, const char *name, int64_t width)
{
    return e->feed[which].t = graph_feed(e->g, name, 1, 1, &width);
}

static void losses_add(engine *e)
{
    const engine_options *o = &e->options;
    tensor heads[2];
    graph_heads(e->g, heads);
    if (o->loss == LOSS_NONE)
        return;
    int soft = o->loss == LOSS_SOFT_TARGET;
    tensor logits = o->distill ? heads[0] : graph_logits(e->g);
    tensor truth = soft ? feed_declare(e, FEED_TARGETS, "targets", e->classes)
                        : (e->label_feed = graph_feed(e->g, "labels", 1, 1, (int64_t[]){1}));
    node loss = node_make(OP_CROSS_ENTROPY, 2, (tensor[]){logits, truth});
    loss.attr.soft = soft;
    loss.attr.distill = o->distill;
    graph_add(e->g, &loss);
    if (!o->distill)
        return;
    node second = node_make(OP_DISTILL, 2, (tensor[]){heads[1], feed_declare(e, FEED_TEACHER, "teacher", e->classes)});
    second.attr.distill = o->distill;
    graph_add(e->g, &second);
}

/* Policy `output` needs the slope from y at every site, and a learned slope that stays away from zero. */
static berlu_status sites_check(engine *e)
{
    for (int i = 0; i < graph_site_count(e->g); i++) {
        const graph_site *site = graph_site_at(e->g, i);
        int alpha = berlu_act_param_find(site->act, "alpha");
        berlu_act_param_info info = {0};
        if (alpha >= 0)
            berlu_act_param(site->act, (size_t)alpha, &info);
        if (!berlu_act_has_from_output(site->act))
            return berlu_fail(BERLU_ERR_ARG,
                              "%s: keep=output is not possible with %s, whose slope does not follow from its "
                              "output; use input or both",
                              site->name, berlu_act_name(site->act));
        if (info.learned && !(e->options.act_least >= 0.001))
            return berlu_fail(BERLU_ERR_ARG,
                              "%s: keep=output with a learned alpha needs it kept at 0.001 or above "
                              "(act_least, --act-constraint)",
                              site->name);
    }
    return BERLU_OK;
}

static void constraints_set(engine *e)
{
    for (int i = 0; i < graph_param_count(e->g); i++) {
        tensor_info *info = graph_tensor_edit(e->g, graph_param(e->g, i));
        const char *dot = strrchr(info->name, '.');
        if (info->activation && dot && strcmp(dot, ".alpha") == 0 && e->options.act_least > 0)
            info->least = (float)e->options.act_least;
    }
}

static berlu_status pass_slice(engine *e)
{
    return graph_slice(e->g);
}

static berlu_status pass_loss(engine *e)
{
    losses_add(e);
    return graph_status(e->g);
}

static berlu_status pass_prune_early(engine *e)
{
    return graph_prune(e->g, e->options.mode == ENGINE_TRAIN);
}

static berlu_status pass_differentiate(engine *e)
{
    berlu_status status = BERLU_OK;
    if (e->options.mode != ENGINE_TRAIN)
        return status;
    if (e->options.keep == KEEP_OUTPUT)
        status = sites_check(e);
    if (status != BERLU_OK)
        return status;
    constraints_set(e);
    return graph_differentiate(e->g, e->options.keep, e->options.recompute_attention);
}

static berlu_status pass_fuse(engine *e)
{
    return e->backend->ops[OP_LINEAR_ACT].run ? graph_fuse(e->g, e->backend->ops) : BERLU_OK;
}

static berlu_status pass_prune(engine *e)
{
    return graph_prune(e->g, 1);
}

static berlu_status pass_group(engine *e)
{
    graph_group(e->g, e->backend, e->options.batch);
    return BERLU_OK;
}

berlu_status engine_rewrite(engine *e, engine_pass last)
{
    static berlu_status (*const passes[])(engine *) = {
        [PASS_SLICE] = pass_slice,
        [PASS_LOSS] = pass_loss,
        [PASS_PRUNE_EARLY] = pass_prune_early,
        [PASS_DIFFERENTIATE] = pass_differentiate,
        [PASS_FUSE] = pass_fuse,
        [PASS_PRUNE] = pass_prune,
        [PASS_GROUP] = pass_group,
    };
    berlu_status status = BERLU_OK;
    for (size_t i = PASS_SLICE; status == BERLU_OK && i < COUNT(passes) && i <= (size_t)last; i++)
        status = passes[i](e);
    return status;
}

/* ---- memory ---- */

void *engine_memory_take(engine *e, size_t bytes, const char *what)
{
    void *memory = e->backend->memory(bytes ? bytes : 64, what);
    if (memory)
        e->allocated += bytes;
    return memory;
}

static berlu_status store_take(engine *e, engine_array array, uint64_t bytes, const char *what)
{
    if (e->store->array[array])
        return BERLU_OK;
    e->store->array[array] = engine_memory_take(e, bytes, what);
    return e->store->array[array] ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* The arrays of the store that this mode needs. An engine that shares brings what the first one lacks. */
static berlu_status store_fill(engine *e)
{
    const engine_options *o = &e->options;
    uint64_t weights = e->plan.bytes[AREA_WEIGHT], gradients = e->plan.bytes[AREA_GRADIENT];
    e->store->bytes = weights;
    berlu_status status = store_take(e, ARRAY_WEIGHT, weights, "the parameters");
    if (status != BERLU_OK || o->mode != ENGINE_TRAIN)
        return status;
    status = store_take(e, ARRAY_GRADIENT, gradients, "the gradients");
    if (status == BERLU_OK && o->accumulate && !e->store->sum &&
        !(e->store->sum = engine_memory_take(e, gradients, "the sum of gradients")))
        status = BERLU_ERR_MEMORY;
    if (status == BERLU_OK && !o->no_update)
        status = store_take(e, ARRAY_MOMENT1, weights, "the first moments");
    if (status == BERLU_OK && !o->no_update && o->optimizer == OPTIMIZER_ADAMW)
        status = store_take(e, ARRAY_MOMENT2, weights, "the second moments");
    if (status == BERLU_OK && o->ema)
        status = store_take(e, ARRAY_EMA, weights, "the average of the weights");
    return status;
}

static berlu_status feeds_allocate(engine *e)
{
    for (int i = 0; i < FEED_COUNT; i++) {
        engine_feed *feed = &e->feed[i];
        if (feed->t == TENSOR_NONE)
            continue;
        size_t count = (size_t)tensor_elements(graph_tensor(e->g, feed->t)) * (size_t)e->options.batch;
        if (e->backend->host_f32) {
            feed->host = engine_data(e, feed->t);
            continue;
        }
        feed->host = feed->memory = memory_aligned(count * sizeof(float), "a batch");
        if (!feed->host)
            return BERLU_ERR_MEMORY;
        memset(feed->host, 0, count * sizeof(float));
        e->allocated += count * sizeof(float);
    }
    return BERLU_OK;
}

static berlu_status host_allocate(engine *e)
{
    size_t labels = (size_t)e->options.batch * sizeof *e->labels;
    size_t logits = (size_t)e->options.batch * (size_t)e->classes * sizeof *e->logits;
    e->labels = calloc(1, labels);
    if (!e->labels)
        return berlu_fail_memory(labels, "the labels of a batch");
    if (!e->backend->host_f32 && !(e->logits = calloc(1, logits)))
        return berlu_fail_memory(logits, "the logits of a batch");
    e->allocated += labels + (e->logits ? logits : 0);
    return feeds_allocate(e);
}

berlu_status engine_allocate(engine *e)
{
    berlu_status status = store_fill(e);
    if (status != BERLU_OK)
        return status;
    e->area[AREA_WEIGHT] = e->store->array[ARRAY_WEIGHT];
    e->area[AREA_GRADIENT] = e->store->array[ARRAY_GRADIENT];
    e->area[AREA_ARENA] = engine_memory_take(e, e->plan.bytes[AREA_ARENA], "the activations");
    if (!e->area[AREA_ARENA])
        return BERLU_ERR_MEMORY;
    e->area[AREA_FEED] = engine_memory_take(e, e->plan.bytes[AREA_FEED], "the input");
    if (!e->area[AREA_FEED])
        return BERLU_ERR_MEMORY;
    e->step = engine_memory_take(e, sizeof *e->step, "the values of a step");
    return e->step ? host_allocate(e) : BERLU_ERR_MEMORY;
}

void *engine_data(const engine *e, tensor t)
{
    const plan_place *place = &e->plan.places[t];
    if (t == e->label_feed)
        return e->labels;
    if (place->area == AREA_NONE || !e->area[place->area])
        return NULL;
    return (char *)e->area[place->area] + place->offset;
}

/* ---- calls ---- */

static op_operand operand_make(const engine *e, tensor t)
{
    op_operand operand = {0};
    if (t == TENSOR_NONE)
        return operand;
    operand.info = graph_tensor(e->g, t);
    operand.channels = tensor_channels(operand.info);
    operand.rows = tensor_elements(operand.info) / operand.channels * (operand.info->batched ? e->options.batch : 1);
    operand.data = engine_data(e, t);
    return operand;
}

static op_call call_make(engine *e, op_id op)
{
    return (op_call){.op = op,
                     .step = e->step,
                     .batch = e->options.batch,
                     .threads = e->options.threads,
                     .params = &e->table,
                     .data = e->backend->data};
}

static size_t workspace_of(const engine *e, const op_call *call)
{
    op_workspace ask = e->backend->ops[call->op].workspace;
    return ask ? (ask(call) + 63) / 64 * 64 : 0;
}

/* Calls use the workspace one after the other, members of a group at the same time: those lie side by side. */
static void workspace_place(engine *e, char *base)
{
    size_t offset = 0;
    for (int i = 0, members = 0; i < e->call_count; i++, members--) {
        op_call *call = &e->calls[i];
        if (members <= 0) {
            offset = 0;
            members = call->group;
        }
        size_t bytes = workspace_of(e, call);
        if (base)
            call->workspace = base + offset;
        offset += bytes;
        if (offset > e->workspace_bytes)
            e->workspace_bytes = offset;
    }
}

/* Calls follow each other, and so do the threads' products within a group: the largest counts. */
static void library_ask(engine *e, const op_call *call)
{
    size_t bytes = e->backend->library ? e->backend->library(call) : 0;
    if (bytes > e->library_bytes)
        e->library_bytes = bytes;
}

static berlu_status nodes_resolve(engine *e)
{
    int count = graph_node_count(e->g), group = 0;
    e->calls = calloc((size_t)count + 1, sizeof *e->calls);
    if (!e->calls)
        return berlu_fail_memory((size_t)count * sizeof *e->calls, "a list of calls");
    e->backward_begin = -1;
    for (int i = 0; i < count; i++) {
        const node *n = graph_node(e->g, i);
        if (n->backward && e->backward_begin < 0)
            e->backward_begin = e->call_count;
        if (op_rules[n->op].flags & RULE_VIEW)
            continue;
        if (!e->backend->ops[n->op].run)
            return berlu_fail(BERLU_ERR_UNSUPPORTED, "the backend '%s' has no kernel for %s", e->backend->name,
                              op_rules[n->op].name);
        op_call call = call_make(e, n->op);
        call.attr = &n->attr;
        for (int j = 0; j < NODE_INPUTS; j++)
            call.in[j] = operand_make(e, n->in[j]);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            call.out[j] = operand_make(e, n->out[j]);
        if (n->group && (i == 0 || graph_node(e->g, i - 1)->group != n->group))
            group = e->call_count;
        if (n->group)
            e->calls[group].group++;
        call.group = e->calls[e->call_count].group; /* 1 where a group begins here, else 0 */
        e->calls[e->call_count++] = call;
        library_ask(e, &call);
    }
    if (e->backward_begin < 0)
        e->backward_begin = e->call_count;
    return BERLU_OK;
}

static int is_image(const engine *e, const op_operand *operand)
{
    return operand->data && operand->data == e->feed[FEED_IMAGE].host;
}

/* So that a batch can be borrowed: where kernels reach the images themselves, and not a copy. */
static berlu_status image_uses_find(engine *e)
{
    int count = 0;
    if (!e->backend->host_f32)
        return BERLU_OK;
    for (int i = 0; i < e->call_count; i++)
        for (int j = 0; j < NODE_INPUTS; j++)
            count += is_image(e, &e->calls[i].in[j]);
    e->image_uses = calloc((size_t)count + 1, sizeof *e->image_uses);
    if (!e->image_uses)
        return berlu_fail_memory((size_t)count * sizeof *e->image_uses, "a list of operands");
    for (int i = 0; i < e->call_count; i++)
        for (int j = 0; j < NODE_INPUTS; j++)
            if (is_image(e, &e->calls[i].in[j]))
                e->image_uses[e->image_use_count++] = &e->calls[i].in[j];
    return BERLU_OK;
}

/* Where each parameter and its gradient lie. A parameter without a gradient is left out: it does not change. */
static berlu_status spans_make(engine *e)
{
    int params = graph_param_count(e->g);
    int64_t weight = (int64_t)e->backend->bytes_of(ROLE_WEIGHT),
            gradient = (int64_t)e->backend->bytes_of(ROLE_GRADIENT);
    e->spans = calloc((size_t)params + 1, sizeof *e->spans);
    if (!e->spans)
        return berlu_fail_memory((size_t)params * sizeof *e->spans, "a list of parameters");
    for (int i = 0; i < params; i++)
        e->spans[i].gradient = -1;
    for (int t = 0; t < graph_tensor_count(e->g); t++) {
        tensor param = graph_tensor(e->g, t)->gradient_of;
        if (param != TENSOR_NONE)
            e->spans[graph_tensor(e->g, param)->parameter].gradient = (int64_t)e->plan.places[t].offset / gradient;
    }
    for (int i = 0; i < params; i++) {
        const tensor_info *info = graph_tensor(e->g, graph_param(e->g, i));
        e->spans[i].offset = (int64_t)e->plan.places[graph_param(e->g, i)].offset / weight;
        e->spans[i].count = tensor_elements(info);
        e->spans[i].decay = info->decay;
        e->spans[i].activation = info->activation;
        e->spans[i].least = info->least;
    }
    return BERLU_OK;
}

static void table_fill(engine *e)
{
    param_store *s = e->store;
    e->table = (param_table){.spans = e->spans,
                             .count = graph_param_count(e->g),
                             .weight = s->array[ARRAY_WEIGHT],
                             .gradient = s->array[ARRAY_GRADIENT],
                             .sum = e->options.accumulate ? s->sum : NULL,
                             .moment1 = s->array[ARRAY_MOMENT1],
                             .moment2 = s->array[ARRAY_MOMENT2],
                             .ema = s->array[ARRAY_EMA],
                             .nesterov = e->options.nesterov};
    e->table.total = (int64_t)(e->plan.bytes[AREA_GRADIENT] / e->backend->bytes_of(ROLE_GRADIENT));
}

berlu_status engine_resolve(engine *e)
{
    berlu_status status = nodes_resolve(e);
    if (status == BERLU_OK)
        status = image_uses_find(e);
    if (status == BERLU_OK)
        status = spans_make(e);
    if (status != BERLU_OK)
        return status;
    table_fill(e);
    e->update = call_make(e, OP_GRAD_NORM);
    if (e->options.mode == ENGINE_TRAIN)
        for (int op = OP_ACCUMULATE; op <= OP_EMA; op++) {
            e->update.op = (op_id)op;
            size_t bytes = workspace_of(e, &e->update);
            if (bytes > e->workspace_bytes)
                e->workspace_bytes = bytes;
        }
    workspace_place(e, NULL);
    return BERLU_OK;
}

berlu_status engine_take_scratch(engine *e)
{
    e->workspace = engine_memory_take(e, e->workspace_bytes, "the kernels' scratch");
    if (!e->workspace)
        return BERLU_ERR_MEMORY;
    workspace_place(e, e->workspace);
    e->update.workspace = e->workspace;
    if (e->options.profile && !(e->seconds = calloc((size_t)e->call_count + OP_COUNT, sizeof *e->seconds)))
        return berlu_fail_memory((size_t)e->call_count * sizeof *e->seconds, "a profile");
    return BERLU_OK;
}
