/* build.c - from a model's graph to a flat list of calls. SPDX-License-Identifier: MIT
 *
 * engine_rewrite() adds the losses of the options and runs the passes; engine_resolve() lowers
 * every node to an op_call with final pointers and appends the update's calls;
 * engine_take_scratch() allocates the kernels' workspace. Read on: memory.c for allocation, run.c
 * for execution. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "engine/engine_internal.h"
#include "passes/passes.h"

/* ---- losses and passes ----------------------------------------------------------------------- */

static tensor feed_declare(engine *e, feed_id which, const char *name, tensor_dtype dtype, int64_t width)
{
    tensor t = e->feed[which].t = graph_feed(e->g, name, 1, 1, &width);
    if (t != TENSOR_NONE)
        graph_tensor_edit(e->g, t)->dtype = dtype;
    return t;
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
    tensor target = soft ? feed_declare(e, FEED_TARGETS, "targets", DTYPE_F32, e->classes)
                         : feed_declare(e, FEED_LABELS, "labels", DTYPE_I32, 1);
    node loss = node_make(OP_CROSS_ENTROPY, 2, (tensor[]){logits, target});
    loss.attr.soft = soft;
    loss.attr.distill = o->distill;
    graph_add(e->g, &loss);
    if (!o->distill)
        return;
    tensor teacher = feed_declare(e, FEED_TEACHER, "teacher", DTYPE_F32, e->classes);
    node second = node_make(OP_DISTILL, 2, (tensor[]){heads[1], teacher});
    second.attr.distill = o->distill;
    graph_add(e->g, &second);
}

static const engine_bound *bound_find(const engine *e, const char *parameter)
{
    for (int i = 0; i < e->options.bound_count; i++)
        if (strcmp(e->options.bounds[i].parameter, parameter) == 0)
            return &e->options.bounds[i];
    return NULL;
}

/* Policy `output` needs the derivative from y at every site, as y is stored, and a learned slope
 * that stays away from zero. */
static berlu_status sites_check(const engine *e)
{
    const engine_bound *bound = bound_find(e, "alpha");
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
        if (site->act->definition->from_output_f32 && e->dtype[ROLE_BRANCH] != DTYPE_F32)
            return berlu_fail(BERLU_ERR_ARG,
                              "%s: keep=output is not possible with %s in bf16, which rounds an output whose slope "
                              "is small to one whose slope is 0; use input or both",
                              site->name, berlu_act_name(site->act));
        if (info.learned && !(bound && bound->low >= 0.001f))
            return berlu_fail(BERLU_ERR_ARG,
                              "%s: keep=output with a learned alpha needs it kept at 0.001 or above "
                              "(--act-constraint alpha:0.001:)",
                              site->name);
    }
    return BERLU_OK;
}

/* Intersects the activation's bounds with the caller's. */
static void bounds_set(engine *e)
{
    for (int i = 0; i < graph_param_count(e->g); i++) {
        tensor_info *info = graph_tensor_edit(e->g, graph_param(e->g, i));
        const char *dot = strrchr(info->name, '.');
        const engine_bound *bound = info->activation && dot ? bound_find(e, dot + 1) : NULL;
        if (bound) {
            info->low = bound->low > info->low ? bound->low : info->low;
            info->high = bound->high < info->high ? bound->high : info->high;
        }
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

static berlu_status pass_weights(engine *e)
{
    return e->backend->fold_weights ? graph_weights(e->g) : BERLU_OK;
}

static berlu_status pass_differentiate(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN)
        return BERLU_OK;
    if (e->options.keep == KEEP_OUTPUT)
        TRY(sites_check(e));
    bounds_set(e);
    return graph_differentiate(e->g, e->options.keep, e->options.recompute_attention);
}

/* An operand as the backend sees it, without its address. */
static op_operand operand_sized(const engine *e, tensor t, tensor_dtype dtype)
{
    op_operand operand = {.info = graph_tensor(e->g, t), .dtype = dtype};
    operand.channels = tensor_channels(operand.info);
    operand.rows = tensor_elements(operand.info) / operand.channels * (operand.info->batched ? e->options.batch : 1);
    return operand;
}

/* That of a node which may be made. */
static op_operand operand_expected(const engine *e, tensor t, const op_entry *entry, int slot)
{
    return t == TENSOR_NONE ? (op_operand){0} : operand_sized(e, t, graph_dtype_of(e->g, t, entry, slot, e->dtype));
}

/* Of fuse_question: would the backend's kernel take this node? */
static int node_taken(const void *context, const node *n)
{
    const engine *e = context;
    const op_entry *entry = &e->backend->ops[n->op];
    op_call call = {.op = n->op, .attr = &n->attr, .device = e->device, .batch = e->options.batch};
    for (int j = 0; j < NODE_INPUTS; j++)
        call.in[j] = operand_expected(e, n->in[j], entry, j);
    for (int j = 0; j < NODE_OUTPUTS; j++)
        call.out[j] = operand_expected(e, n->out[j], entry, -1);
    return !entry->takes || entry->takes(&call);
}

static berlu_status pass_fuse(engine *e)
{
    return graph_fuse(e->g, e->backend->ops, &(fuse_question){node_taken, e});
}

static berlu_status pass_prune(engine *e)
{
    return graph_prune(e->g, 1);
}

static berlu_status pass_precision(engine *e)
{
    return graph_precision(e->g, e->backend->ops, e->dtype);
}

static berlu_status pass_group(engine *e)
{
    if (e->backend->group)
        e->backend->group(e->g, e->options.batch);
    return BERLU_OK;
}

berlu_status engine_rewrite(engine *e, engine_pass last)
{
    static berlu_status (*const passes[])(engine *) = {
        [PASS_SLICE] = pass_slice,
        [PASS_LOSS] = pass_loss,
        [PASS_PRUNE_EARLY] = pass_prune_early,
        [PASS_WEIGHTS] = pass_weights,
        [PASS_DIFFERENTIATE] = pass_differentiate,
        [PASS_FUSE] = pass_fuse,
        [PASS_PRUNE] = pass_prune,
        [PASS_PRECISION] = pass_precision,
        [PASS_GROUP] = pass_group,
    };
    for (size_t i = PASS_SLICE; i < COUNT(passes) && i <= (size_t)last; i++) {
        TRY(passes[i](e));
        graph_check(e->g);
    }
    return BERLU_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

op_operand engine_operand(const engine *e, tensor t)
{
    if (t == TENSOR_NONE)
        return (op_operand){0};
    op_operand operand = operand_sized(e, t, graph_tensor(e->g, t)->dtype);
    operand.data = engine_data(e, t);
    size_t aligned = operand.info->shadow_of == TENSOR_NONE ? e->backend->alignment : e->backend->alignment / 2;
    assert((uintptr_t)operand.data % aligned == 0); /* a bf16 copy lies at half of its weight's offset */
    (void)aligned;
    return operand;
}

static op_call call_make(engine *e, op_id op)
{
    return (op_call){.op = op,
                     .step = e->step,
                     .result = e->result,
                     .device = e->device,
                     .batch = e->options.batch,
                     .threads = e->options.threads,
                     .params = &e->table};
}

static size_t workspace_of(const engine *e, const op_call *call)
{
    op_workspace ask = e->backend->ops[call->op].workspace;
    size_t alignment = e->backend->alignment;
    return ask ? (ask(call) + alignment - 1) / alignment * alignment : 0;
}

/* Consecutive calls reuse the workspace, at once or after a round of the backend's ring; members of
 * a group run together, so theirs is disjoint. */
static void workspace_place(engine *e, char *base)
{
    size_t offset = 0;
    for (int i = 0, members = 0; i < engine_calls_end(e); i++, members--) {
        op_call *call = &e->calls[i];
        size_t bytes = workspace_of(e, call);
        if (members <= 0) {
            offset = offset + bytes <= e->backend->workspace_ring ? offset : 0;
            members = call->group;
        }
        if (base)
            call->workspace = base + offset;
        offset += bytes;
        if (offset > e->workspace_bytes)
            e->workspace_bytes = offset;
    }
}

/* Calls, and the threads' products within a group, run one after the other: the largest counts. */
static void library_ask(engine *e, const op_call *call)
{
    size_t bytes = e->backend->library ? e->backend->library(call) : 0;
    if (bytes > e->library_bytes)
        e->library_bytes = bytes;
}

enum { UPDATE_CALLS = 5, FRONT_CALLS = 1 }; /* accumulate, grad_norm, optimizer, ema, shadow; images */

static berlu_status nodes_resolve(engine *e)
{
    int count = graph_node_count(e->g), group = 0;
    op_call *all = calloc((size_t)count + FRONT_CALLS + UPDATE_CALLS, sizeof *all);
    if (!all)
        return berlu_fail_memory((size_t)count * sizeof *e->calls, "a list of calls");
    e->calls = all + FRONT_CALLS;
    e->calls[IMAGES_CALL] = call_make(e, OP_IMAGES);
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
            call.in[j] = engine_operand(e, n->in[j]);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            call.out[j] = engine_operand(e, n->out[j]);
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
    assert(e->call_count <= count && e->backward_begin <= e->call_count);
    return BERLU_OK;
}

static int is_image(const engine *e, const op_operand *operand)
{
    return operand->data && operand->data == e->feed[FEED_IMAGE].host;
}

/* Finds where kernels read the images themselves and not an uploaded copy, so that a batch can be
 * borrowed. */
static berlu_status image_uses_find(engine *e)
{
    int count = 0;
    if (e->feed[FEED_IMAGE].staged)
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

/* Offsets of each parameter, its gradient and its copy. A parameter without a gradient does not
 * change. */
static berlu_status spans_make(engine *e)
{
    int params = graph_param_count(e->g);
    e->spans = calloc((size_t)params + 1, sizeof *e->spans);
    if (!e->spans)
        return berlu_fail_memory((size_t)params * sizeof *e->spans, "a list of parameters");
    for (int i = 0; i < params; i++)
        e->spans[i].gradient = e->spans[i].shadow = -1;
    for (int t = 0; t < graph_tensor_count(e->g); t++) {
        const tensor_info *info = graph_tensor(e->g, t);
        int64_t at = (int64_t)(e->plan.places[t].offset / dtype_bytes(info->dtype));
        if (info->gradient_of != TENSOR_NONE)
            e->spans[graph_tensor(e->g, info->gradient_of)->parameter].gradient = at;
        if (info->shadow_of != TENSOR_NONE)
            e->spans[graph_tensor(e->g, info->shadow_of)->parameter].shadow = at;
    }
    for (int i = 0; i < params; i++) {
        const tensor_info *info = graph_tensor(e->g, graph_param(e->g, i));
        e->spans[i].offset = (int64_t)(e->plan.places[graph_param(e->g, i)].offset / dtype_bytes(info->dtype));
        e->spans[i].count = tensor_elements(info);
        e->spans[i].decay = info->decay;
        e->spans[i].activation = info->activation;
        e->spans[i].low = info->low;
        e->spans[i].high = info->high;
        assert((uint64_t)(e->spans[i].offset + e->spans[i].count) * dtype_bytes(info->dtype) <=
               e->plan.bytes[AREA_WEIGHT]);
        assert(e->spans[i].low <= e->spans[i].high);
    }
    return BERLU_OK;
}

static void table_fill(engine *e)
{
    param_store *s = e->store;
    e->table = (param_table){.spans = e->spans,
                             .count = graph_param_count(e->g),
                             .total = (int64_t)(e->plan.bytes[AREA_GRADIENT] / dtype_bytes(e->dtype[ROLE_GRADIENT])),
                             .weight = s->array[ARRAY_WEIGHT],
                             .gradient = s->array[ARRAY_GRADIENT],
                             .partial_sums = e->partial_sums,
                             .moment1 = s->array[ARRAY_MOMENT1],
                             .moment2 = s->array[ARRAY_MOMENT2],
                             .ema = s->array[ARRAY_EMA],
                             .shadow = s->shadow,
                             .nesterov = e->options.nesterov};
}

static void list_add(engine *e, program_id id, int *at, op_id op)
{
    e->calls[(*at)++] = call_make(e, op);
    e->count[id]++;
}

/* The lists of calls: the backward ends with the sum over micro-batches; the update and the refresh
 * of copies follow. */
static void lists_make(engine *e)
{
    const engine_options *o = &e->options;
    int train = o->mode == ENGINE_TRAIN, at = e->call_count;
    e->count[PROGRAM_FORWARD] = e->first[PROGRAM_BACKWARD] = e->backward_begin;
    e->count[PROGRAM_BACKWARD] = e->call_count - e->backward_begin;
    if (train && o->accumulate > 1)
        list_add(e, PROGRAM_BACKWARD, &at, OP_ACCUMULATE);
    e->first[PROGRAM_UPDATE] = e->first[PROGRAM_NORM] = at;
    if (train)
        list_add(e, PROGRAM_UPDATE, &at, OP_GRAD_NORM);
    e->count[PROGRAM_NORM] = e->count[PROGRAM_UPDATE];
    if (train && !o->no_update)
        list_add(e, PROGRAM_UPDATE, &at, o->optimizer == OPTIMIZER_SGD ? OP_SGD : OP_ADAMW);
    if (train && o->ema)
        list_add(e, PROGRAM_UPDATE, &at, OP_EMA);
    e->first[PROGRAM_SHADOW] = at;
    if (e->plan.bytes[AREA_SHADOW])
        list_add(e, PROGRAM_SHADOW, &at, OP_SHADOW);
    assert(at <= e->call_count + UPDATE_CALLS);
    e->first[PROGRAM_IMAGES] = e->first[PROGRAM_IMAGES_STEP] = IMAGES_CALL;
    e->count[PROGRAM_IMAGES] = 1;
    e->count[PROGRAM_STEP] = e->first[PROGRAM_UPDATE] + e->count[PROGRAM_UPDATE];
    e->count[PROGRAM_IMAGES_STEP] = e->count[PROGRAM_STEP] + 1;
}

berlu_status engine_resolve(engine *e)
{
    TRY(nodes_resolve(e));
    TRY(image_uses_find(e));
    TRY(spans_make(e));
    table_fill(e);
    lists_make(e);
    workspace_place(e, NULL);
    if (e->backend->prepared && !e->options.profile)
        e->prepared_bytes = e->backend->prepared(e->device, e->calls, e->count[PROGRAM_STEP]);
    return BERLU_OK;
}

berlu_status engine_take_scratch(engine *e)
{
    TRY(engine_device_take(e, &e->workspace, e->workspace_bytes, "the kernels' scratch"));
    workspace_place(e, e->workspace);
    return BERLU_OK;
}
