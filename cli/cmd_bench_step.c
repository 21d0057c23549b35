/* cmd_bench_step.c - `berlu bench step` and `berlu bench memory`. SPDX-License-Identifier: MIT
 *
 * One row per model, activation, policy and mode. bench/bench_step.c measures; bench/step_torch.py
 * interleaves the same step in PyTorch with ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench_step.h"
#include "commands.h"
#include "model_args.h"
#include "output.h"

static const option_row step_rows[] = {
    {"model", OPTION_STRINGS, "MODEL", .flags = OPTION_ARGUMENT, .help = "networks (default vit_tiny_cifar)"},
    MODEL_ROWS,
    DEVICE_ROWS,
    {"batch", OPTION_INT, "N", .standard = "32", .least = 1, .most = 65536, .help = "images per step"},
    {"keep", OPTION_CHOICE, .standard = "input", .choices = "input|both|output|all", .help = "kept for the backward"},
    {"mode", OPTION_CHOICE, .standard = "train", .choices = "train|infer|both",
     .help = "whole steps, or forward alone"},
    {"recompute-attention", OPTION_FLAG,
     .help = "recompute attention's output in the backward: less memory, more time"},
    {"steps", OPTION_INT, "N", .standard = "5", .least = 1, .most = 4000, .help = "at least so many"},
    {"seconds", OPTION_FLOAT, "S", .standard = "3", .least = 0, .most = 3600, .help = "and at least so long"},
    {"turns", OPTION_FLAG,
     .help =
         "print ready, then measure and print a row as JSON for each line of standard input, beside other programs"},
    {"cpu-time", OPTION_FLAG,
     .help = "processor time instead of the clock; for one thread on a machine others use too"},
    {"profile", OPTION_OPTIONAL, .choices = "op|shape", .help = "time by op, or by op and shape, on stderr"},
    {"peak-gb", OPTION_FLOAT, "GB/S", .standard = "0", .least = 0, .most = 1e9,
     .help = "memory speed of the device: --profile=shape then tells the share of the floor"},
    {"peak-gflop", OPTION_FLOAT, "GFLOP/S", .standard = "0", .least = 0, .most = 1e9,
     .help = "its speed of products, for the same column"},
    {0}};

typedef struct bench_run {
    const options *o;
    output *out;
    int memory;      /* bench memory: one step, other columns */
    const char *act; /* as given, several joined by commas; NULL: the network has none */
} bench_run;

static void row_json(const bench_run *r, const bench_step *b)
{
    output *out = r->out;
    output_object(out, NULL);
    output_string(out, "model", b->model);
    output_string(out, "act", b->act);
    output_int(out, "batch", b->options.batch);
    output_string(out, "dtype", b->options.opening.precision);
    output_string(out, "device", b->options.backend->name);
    output_string(out, "machine", b->machine);
    output_string(out, "keep", engine_keep_name(b->options.keep));
    output_string(out, "mode", b->options.mode == ENGINE_TRAIN ? "train" : "infer");
    if (!r->memory) {
        output_real(out, "images_per_s", b->images_per_s);
        output_real(out, "forward_ms", b->forward_ms);
        output_real(out, "backward_ms", b->backward_ms);
        output_real(out, "update_ms", b->update_ms);
    } else {
        output_int(out, "parameters_bytes", (int64_t)b->memory.parameters);
        output_int(out, "gradients_bytes", (int64_t)b->memory.gradients);
        output_int(out, "moments_bytes", (int64_t)b->memory.moments);
        output_int(out, "arena_bytes", (int64_t)b->memory.arena);
        output_int(out, "workspace_bytes", (int64_t)b->memory.workspace);
        output_int(out, "kept_bytes", (int64_t)b->memory.kept);
        output_int(out, "kept_bytes_per_image", (int64_t)b->memory.kept / b->options.batch);
    }
    output_int(out, "peak_bytes", (int64_t)b->peak_bytes);
    output_int(out, "planned_bytes", (int64_t)b->memory.total);
    output_end(out);
}

static void row_print(const bench_run *r, const bench_step *b)
{
    const double mib = 1024.0 * 1024.0;
    printf("%-24s %-12s batch %-4d %-6s %-5s ", b->model, b->act ? b->act : "-", b->options.batch,
           engine_keep_name(b->options.keep), b->options.mode == ENGINE_TRAIN ? "train" : "infer");
    if (r->memory)
        printf("kept %9.1f MiB (%7.0f KiB an image)  arena %9.1f  workspace %6.1f  ", (double)b->memory.kept / mib,
               (double)b->memory.kept / 1024 / b->options.batch, (double)b->memory.arena / mib,
               (double)b->memory.workspace / mib);
    else
        printf("%8.1f images/s  forward %8.2f ms  backward %8.2f  update %6.2f  ", b->images_per_s, b->forward_ms,
               b->backward_ms, b->update_ms);
    printf("planned %8.1f MiB  peak %8.1f\n", (double)b->memory.total / mib, (double)b->peak_bytes / mib);
}

/* Of --turns: prints the row of the last measurement and waits for a line, of any length. */
static berlu_status turn_next(bench_step *b, int *more)
{
    const bench_run *r = b->user;
    if (b->measured) {
        bench_run row = *r;
        output out = {0};
        row.out = &out;
        output_start(&out);
        output_array(&out, "rows");
        row_json(&row, b);
        TRY(output_print(&out));
    } else {
        puts("ready");
    }
    TRY(output_flush());
    int c, length = 0;
    while ((c = getchar()) != EOF && c != '\n')
        length = 1;
    *more = c == '\n' || length;
    return BERLU_OK;
}

static berlu_status case_run(const bench_run *r, const model *m, const char *name, engine_keep keep, engine_mode mode)
{
    const options *o = r->o;
    text profile = {0};
    bench_step b = {.model = name,
                    .act = r->act,
                    .steps = r->memory ? 1 : (int)options_int(o, "steps"),
                    .seconds = r->memory ? 0 : options_float(o, "seconds"),
                    .memory_only = r->memory,
                    .cpu_time = options_flag(o, "cpu-time"),
                    .next = options_flag(o, "turns") ? turn_next : NULL,
                    .user = r,
                    .profile = {.by = options_choice(o, "profile") == 1 ? PROFILE_BY_SHAPE : PROFILE_BY_OP,
                                .bytes_per_s = 1e9 * options_float(o, "peak-gb"),
                                .flops_per_s = 1e9 * options_float(o, "peak-gflop")}};
    b.options = (engine_options){.mode = mode,
                                 .batch = (int)options_int(o, "batch"),
                                 .keep = keep,
                                 .threads = options_threads(o),
                                 .loss = LOSS_CROSS_ENTROPY,
                                 .recompute_attention = options_flag(o, "recompute-attention"),
                                 .bounds = &(engine_bound){"alpha", 0.001f, INFINITY},
                                 .bound_count = keep == KEEP_OUTPUT,
                                 .profile = options_given(o, "profile")};
    berlu_status status;
    TRY_DONE(device_from_options(&b.options, o));
    TRY_DONE(bench_step_run(&b, m, &profile));
    if (!b.next)
        (options_json(o) ? row_json : row_print)(r, &b);
    if (profile.data)
        fputs(profile.data, stderr);
done:
    text_free(&profile);
    return status;
}

/* Under `all` a policy that the activation does not support is skipped with a note; given by name
 * it is an error. */
static berlu_status keep_reported(const bench_run *r, berlu_status status)
{
    if (status != BERLU_ERR_ARG && status != BERLU_ERR_UNSUPPORTED)
        return status;
    fprintf(stderr, "berlu: bench %s: left out: %s\n", r->memory ? "memory" : "step", berlu_last_error());
    return BERLU_OK;
}

static berlu_status model_cases(const bench_run *r, const model *m, const char *name)
{
    enum { ALL = KEEP_OUTPUT + 1 };
    int keep = options_choice(r->o, "keep"), mode = options_choice(r->o, "mode");
    for (int k = KEEP_INPUT; k <= KEEP_OUTPUT; k++) {
        if (mode == 1 || (keep != ALL && keep != k))
            continue;
        berlu_status status = case_run(r, m, name, (engine_keep)k, ENGINE_TRAIN);
        TRY(keep == ALL && k == KEEP_OUTPUT ? keep_reported(r, status) : status);
    }
    return mode != 0 ? case_run(r, m, name, KEEP_INPUT, ENGINE_INFER) : BERLU_OK;
}

/* The activations of --act; gelu by default, if the network has a site. */
static berlu_status acts_join(text *out, const options *o, const model *m)
{
    for (size_t i = 0; i < options_count(o, "act"); i++)
        text_add(out, "%s%s", i ? "," : "", options_strings(o, "act")[i]);
    if (options_count(o, "act") == 0 && graph_site_count(m->graph) > 0)
        text_string(out, "gelu");
    return text_status(out);
}

static berlu_status model_run(const bench_run *r, const char *name)
{
    model *m = NULL;
    text acts = {0};
    bench_run with = *r;
    berlu_status status;
    TRY_DONE(model_from_options(&m, r->o, name));
    TRY_DONE(acts_join(&acts, r->o, m));
    with.act = acts.length ? acts.data : NULL;
    TRY_DONE(model_cases(&with, m, name));
done:
    text_free(&acts);
    model_free(m);
    return status;
}

static berlu_status run(options *o, int memory)
{
    output out;
    bench_run r = {.o = o, .out = &out, .memory = memory};
    size_t models = options_count(o, "model");
    berlu_status status = BERLU_OK;
    output_start(&out);
    output_array(&out, "rows");
    for (size_t i = 0; i < (models ? models : 1) && status == BERLU_OK; i++)
        status = model_run(&r, models ? options_strings(o, "model")[i] : "vit_tiny_cifar");
    if (status != BERLU_OK || !options_json(o) || options_flag(o, "turns")) {
        text_free(&out.json);
        return status;
    }
    output_end(&out);
    return output_print(&out);
}

static berlu_status bench_step_command(options *o)
{
    return run(o, 0);
}

static berlu_status bench_memory_command(options *o)
{
    return run(o, 1);
}

const command cmd_bench_step = {
    "bench step", "how fast networks train and infer",
    "Medians of whole training steps (forward, backward, clipping, AdamW) on random images.\n"
    "\n"
    "  berlu bench step vit_tiny_cifar --batch 32\n"
    "  berlu bench step convnext_atto_cifar tnt_s_cifar --batch 16 --act berlu --json\n"
    "  berlu bench step --profile=shape",
    step_rows, bench_step_command};

const command cmd_bench_memory = {
    "bench memory", "how much memory training and inference take",
    "What is planned, what of it is kept from forward to backward, and what was measured; for networks of 15 MiB and "
    "more\n"
    "both agree within 2 %. Under --keep all a policy that the activation cannot is left out and told.\n"
    "\n"
    "  berlu bench memory vit_tiny_cifar --keep all --act berlu",
    step_rows, bench_memory_command};
