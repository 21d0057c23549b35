/* cmd_summary.c - berlu summary: layers, parameters, multiply-adds and memory of a model.
 * SPDX-License-Identifier: MIT
 *
 * Everything is read from the graph and from its plans: the memory printed is the memory that
 * training allocates. A layer is a node of the graph that has parameters or multiplies (attention),
 * or an activation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "graph/op.h"
#include "model_args.h"
#include "models/weights.h"
#include "output.h"

/* ---- layers ---------------------------------------------------------------------------------- */

typedef struct layer {
    char name[96];
    const char *op;
    const tensor_info *result;
    int64_t parameters;
    double macs;
} layer;

/* "blocks.0.norm1.weight" belongs to the layer "blocks.0.norm1"; a name without the tail is
 * unchanged. */
static void name_from(char out[96], const char *parameter, const char *tail)
{
    size_t length = strlen(parameter), cut = strlen(tail);
    if (length > cut && strcmp(parameter + length - cut, tail) == 0)
        length -= cut;
    snprintf(out, 96, "%.*s", (int)length, parameter);
}

/* Attention has no parameters; the linear that feeds it gives its name: "blocks.0.attn.qkv" ->
 * "blocks.0.attn". */
static void name_from_source(char out[96], const graph *g, tensor t)
{
    int producer = graph_tensor(g, t)->producer;
    const node *n = producer >= 0 ? graph_node(g, producer) : NULL;
    snprintf(out, 96, "-");
    if (!n || n->in[1] == TENSOR_NONE || graph_tensor(g, n->in[1])->parameter < 0)
        return;
    name_from(out, graph_tensor(g, n->in[1])->name, ".weight");
    char *dot = strrchr(out, '.');
    if (dot)
        *dot = '\0';
}

/* Returns 0 for nodes that are no layer: views, additions. */
static int layer_read(layer *out, const graph *g, const node *n)
{
    const op_rule *rule = &op_rules[n->op];
    *out = (layer){.op = rule->name, .result = graph_tensor(g, n->out[0]), .macs = rule->macs ? rule->macs(g, n) : 0};
    for (int i = 0; i < NODE_INPUTS; i++) {
        const tensor_info *p = n->in[i] == TENSOR_NONE ? NULL : graph_tensor(g, n->in[i]);
        if (!p || p->parameter < 0)
            continue;
        if (!out->name[0])
            name_from(out->name, p->name, ".weight");
        out->parameters += tensor_elements(p);
    }
    if (n->attr.act && n->op == OP_ACT)
        snprintf(out->name, sizeof out->name, "%s", graph_site_at(g, n->attr.site)->name);
    else if (!out->name[0] && out->macs > 0)
        name_from_source(out->name, g, n->in[0]);
    return out->name[0] != '\0';
}

static const char *shape_text(char out[64], const tensor_info *t)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < t->rank && used < 50; i++)
        used += (size_t)snprintf(out + used, 64 - used, "%s%lld", i ? "x" : "", (long long)t->size[i]);
    return out;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { KEEPS = KEEP_OUTPUT + 1 };
typedef struct memory {
    int batch;
    int possible[KEEPS]; /* `output` requires an activation whose derivative is a function of its output */
    char reason[160];    /* why it is not possible */
    engine_memory training[KEEPS], inference;
    double act_share[KEEPS]; /* share of activation sites in the saved bytes */
} memory;

/* `share` (may be NULL): of activation sites in the saved bytes. */
static berlu_status plan_measure(engine_memory *out, double *share, const model *m, engine_mode mode, engine_keep keep,
                                 int batch)
{
    const engine_options how = {
        .backend = cpu_backend(), .mode = mode, .batch = batch, .keep = keep, .loss = LOSS_CROSS_ENTROPY};
    TRY(engine_plan_memory(out, m->graph, &how));
    if (share && out->kept)
        *share = (double)(sizeof(float) * out->site_values * (keep == KEEP_BOTH ? 2 : 1)) / (double)out->kept;
    return BERLU_OK;
}

static int64_t site_values(const graph *g)
{
    int64_t values = 0;
    for (int i = 0; i < graph_site_count(g); i++)
        values += graph_site_at(g, i)->values;
    return values;
}

static berlu_status memory_measure(memory *out, const model *m, int batch)
{
    *out = (memory){.batch = batch};
    berlu_status status = plan_measure(&out->inference, NULL, m, ENGINE_INFER, KEEP_INPUT, batch);
    for (int keep = 0; status == BERLU_OK && keep < KEEPS; keep++) {
        status = plan_measure(&out->training[keep], &out->act_share[keep], m, ENGINE_TRAIN, (engine_keep)keep, batch);
        out->possible[keep] = status == BERLU_OK;
        if (keep == KEEP_OUTPUT && (status == BERLU_ERR_UNSUPPORTED || status == BERLU_ERR_ARG)) {
            snprintf(out->reason, sizeof out->reason, "%s", berlu_last_error());
            status = BERLU_OK; /* not possible with this activation; print the others */
        }
    }
    return status;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* 5362762 -> "5,362,762" */
static const char *grouped(char out[32], double value)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.0f", value), used = 0;
    for (int i = 0; i < length && used < 30; i++) {
        if (i && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static void layers_print(const graph *g)
{
    char shape[64], parameters[32], macs[32];
    double all = 0;
    layer row;
    printf("%-34s %-10s %16s %14s %18s\n", "layer", "op", "output", "parameters", "multiply-adds");
    for (int i = 0; i < graph_node_count(g); i++)
        if (layer_read(&row, g, graph_node(g, i))) {
            all += (double)row.parameters;
            printf("%-34s %-10s %16s %14s %18s\n", row.name, row.op, shape_text(shape, row.result),
                   grouped(parameters, (double)row.parameters), grouped(macs, row.macs));
        }
    printf("%-34s %-10s %16s %14s %18s\n\n", "all", "", "", grouped(parameters, all), grouped(macs, graph_macs(g)));
}

static void memory_print(const model *m, const memory *use)
{
    char values[32];
    printf("%s, %d sites, %s values an image\n\n",
           m->act_count == 1 ? berlu_act_spec(m->acts[0]) : "activations by site", graph_site_count(m->graph),
           grouped(values, (double)site_values(m->graph)));
    printf("memory in MiB, batch %-8d %10s %10s %14s %22s\n", use->batch, "kept", "arena", "all of it",
           "activation functions");
    for (int keep = 0; keep < KEEPS; keep++) {
        const engine_memory *t = &use->training[keep];
        if (use->possible[keep])
            printf("training, keep = %-12s %10.1f %10.1f %14.1f %20.0f %%\n", engine_keep_name((engine_keep)keep),
                   (double)t->kept / 0x1p20, (double)t->arena / 0x1p20, (double)t->total / 0x1p20,
                   100 * use->act_share[keep]);
        else
            printf("training, keep = %-12s %10s  (%s)\n", engine_keep_name((engine_keep)keep), "-", use->reason);
    }
    printf("inference %19s %10s %10.1f %14.1f\n", "", "", (double)use->inference.arena / 0x1p20,
           (double)use->inference.total / 0x1p20);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void tensors_write(output *out, const graph *g)
{
    char code[INIT_CODE];
    output_array(out, "tensors");
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = graph_tensor(g, graph_param(g, i));
        output_object(out, NULL);
        output_string(out, "name", p->name);
        output_array(out, "shape");
        for (int d = 0; d < p->rank; d++)
            output_int(out, NULL, p->size[d]);
        output_end(out);
        output_bool(out, "decay", p->decay);
        output_string(out, "init", init_code(code, p->init));
        output_end(out);
    }
    output_end(out);
}

static void layers_write(output *out, const graph *g)
{
    layer row;
    output_array(out, "layers");
    for (int i = 0; i < graph_node_count(g); i++)
        if (layer_read(&row, g, graph_node(g, i))) {
            output_object(out, NULL);
            output_string(out, "name", row.name);
            output_string(out, "op", row.op);
            output_array(out, "output");
            for (int d = 0; d < row.result->rank; d++)
                output_int(out, NULL, row.result->size[d]);
            output_end(out);
            output_int(out, "params", row.parameters);
            output_int(out, "macs", (int64_t)row.macs);
            output_end(out);
        }
    output_end(out);
}

static void sites_write(output *out, const graph *g)
{
    output_array(out, "sites");
    for (int i = 0; i < graph_site_count(g); i++) {
        const graph_site *site = graph_site_at(g, i);
        output_object(out, NULL);
        output_string(out, "name", site->name);
        output_string(out, "act", berlu_act_spec(site->act));
        output_int(out, "channels", site->channels);
        output_int(out, "values", site->values);
        output_end(out);
    }
    output_end(out);
}

/* memory.training.KEEP: bytes saved from forward to backward; memory.inference.KEEP: the arena,
 * equal for all. `planned` has the complete plan, `act_share` the share of the activation
 * functions. */
static void memory_write(output *out, const memory *use)
{
    static const char *const groups[] = {"training", "inference", "planned", "act_share"};
    output_object(out, "memory");
    output_int(out, "batch", use->batch);
    for (size_t k = 0; k < COUNT(groups); k++) {
        output_object(out, groups[k]);
        for (int keep = 0; keep < KEEPS; keep++) {
            const char *name = engine_keep_name((engine_keep)keep);
            const engine_memory *t = &use->training[keep];
            if (k == 1)
                output_int(out, name, (int64_t)use->inference.arena);
            else if (!use->possible[keep])
                output_null(out, name);
            else if (k == 3)
                output_real(out, name, use->act_share[keep]);
            else
                output_int(out, name, (int64_t)(k == 0 ? t->kept : t->total));
        }
        output_end(out);
    }
    output_end(out);
}

static berlu_status summary_json(const model *m, const memory *use)
{
    output out;
    int64_t parameters = 0;
    for (int i = 0; i < graph_param_count(m->graph); i++)
        parameters += tensor_elements(graph_tensor(m->graph, graph_param(m->graph, i)));
    output_start(&out);
    output_string(&out, "model", m->config.name);
    output_int(&out, "image_size", m->config.image_size);
    output_int(&out, "classes", m->config.classes);
    output_int(&out, "params", parameters);
    output_int(&out, "macs", (int64_t)graph_macs(m->graph));
    tensors_write(&out, m->graph);
    layers_write(&out, m->graph);
    sites_write(&out, m->graph);
    memory_write(&out, use);
    return output_print(&out);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Prints the model's graph, or the graph of a training step after the pass --after. */
static berlu_status graph_show(const options *o, const model *m)
{
    text lines = {0};
    const engine_options how = {.backend = cpu_backend(),
                                .mode = ENGINE_TRAIN,
                                .batch = (int)options_int(o, "batch"),
                                .loss = LOSS_CROSS_ENTROPY};
    berlu_status status = engine_pass_print(m->graph, &how, (engine_pass)options_choice(o, "after"), &lines,
                                            options_choice(o, "graph") == 1);
    if (status == BERLU_OK)
        fwrite(lines.data, 1, lines.length, stdout);
    text_free(&lines);
    return status;
}

static berlu_status summary(options *o)
{
    model *m = NULL;
    memory use;
    berlu_status status = model_from_options(&m, o, options_string(o, "model"));
    if (status != BERLU_OK)
        return status;
    if ((options_given(o, "graph") || options_given(o, "after")) && options_json(o)) {
        status = berlu_fail(BERLU_ERR_ARG, "option --%s: shows text or dot; leave --json out",
                            options_given(o, "graph") ? "graph" : "after");
        goto done;
    }
    if (options_given(o, "graph") || options_given(o, "after")) {
        status = graph_show(o, m);
        goto done;
    }
    status = memory_measure(&use, m, (int)options_int(o, "batch"));
    if (status != BERLU_OK)
        goto done;
    if (options_json(o)) {
        status = summary_json(m, &use);
        goto done;
    }
    printf("%s: %d x %d images, %d classes\n\n", m->config.name, m->config.image_size, m->config.image_size,
           m->config.classes);
    layers_print(m->graph);
    memory_print(m, &use);
done:
    model_free(m);
    return status;
}

static const option_row rows[] = {
    {"model", OPTION_STRING, "MODEL", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "which network; `berlu models` lists them"},
    {"graph", OPTION_OPTIONAL, .choices = "text|dot", .help = "print the graph instead, as text or for Graphviz"},
    {"after", OPTION_CHOICE, .standard = "none", /* in the order of engine_pass */
     .choices = "none|slice|loss|prune-early|weights|differentiate|fuse|prune|precision|group|plan",
     .help = "print the graph that this pass makes for a training step; plan tells every tensor's place"},
    {"batch", OPTION_INT, "N", .standard = "1", .least = 1, .most = 4096, .help = "images the memory is planned for"},
    MODEL_ROWS,
    {0}};

const command cmd_summary = {
    "summary", "layers, parameters, multiply-adds and memory of a model",
    "Lists the layers with their outputs for one image, parameters and multiply-adds (products and convolutions, "
    "those\n"
    "of attention included), then the memory that training and inference take: `kept` is alive from forward to "
    "backward,\n"
    "`arena` is all there is between input and answer. --keep of `berlu train` chooses among the three lines.\n\n"
    "  berlu summary vit_tiny_cifar\n"
    "  berlu summary convnext_tiny --act berlu --batch 32\n"
    "  berlu summary vit_micro --graph --after differentiate\n"
    "  berlu summary vit_micro --graph=dot --after fuse | dot -Tsvg > vit_micro.svg",
    rows, summary};
