/* cmd_demo.c - berlu demo: trains a small ViT with four activations and two seeds; a table and a
 * plot. SPDX-License-Identifier: MIT
 *
 * A user can do the same with `berlu train`; the lines it prints show how. It needs no file and no
 * input. It always trains from the beginning: its own earlier runs, relu-0 and so on, are
 * removed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "commands.h"
#include "io/csv.h"
#include "io/svg.h"
#include "output.h"
#include "progress.h"
#include "train/run_folder.h"
#include "train/trainer.h"

enum { SEEDS = 2, EPOCHS_MOST = 1000, SETTINGS = 13 };

static const option_row rows[] = {
    {"out", OPTION_STRING, "DIR", .standard = "demo-run", .help = "where the runs, table and plot go"},
    {"epochs", OPTION_INT, "N", .standard = "8", .least = 1, .most = EPOCHS_MOST, .help = "passes over the images"},
    {"images", OPTION_INT, "N", .standard = "2560", .least = 128, .most = 1000000, .help = "synthetic training images"},
    {0}};

static const char *const acts[] = {"relu", "gelu", "prelu", "berlu"};

/* The result of one activation. */
typedef struct outcome {
    double top1[SEEDS], images_per_s, planned;
    double epoch[EPOCHS_MOST], curve[EPOCHS_MOST]; /* test accuracy by epoch, mean over seeds */
    size_t epochs;
} outcome;

typedef struct demo {
    progress bar;
    uint64_t before, each; /* images of the runs that are done; of one run */
    const char *act;
    int seed;
} demo;

static void tick(void *context, const train_progress *p)
{
    demo *d = context;
    d->each = p->all;
    if (d->bar.total == 0)
        d->bar.total = p->all * COUNT(acts) * SEEDS;
    progress_note(&d->bar, "%s seed %d, epoch %llu/%llu, loss %.3f", d->act, d->seed, (unsigned long long)p->epoch,
                  (unsigned long long)p->epochs, p->loss);
    progress_step(&d->bar, d->before + p->images);
}

/* The settings of one run as keys and texts: for the trainer, and for the line that shows them. */
typedef struct recipe_list {
    struct {
        const char *key, *value;
    } rows[SETTINGS];
    char seed[16], epochs[24], images[24], warmup[32];
} recipe_list;

static void list_make(recipe_list *l, const char *run, const char *act, int seed, const options *o)
{
    snprintf(l->seed, sizeof l->seed, "%d", seed);
    snprintf(l->epochs, sizeof l->epochs, "%lld", (long long)options_int(o, "epochs"));
    snprintf(l->warmup, sizeof l->warmup, "%g", (double)options_int(o, "epochs") / 8);
    snprintf(l->images, sizeof l->images, "%lld", (long long)options_int(o, "images"));
    /* With the usual init_std of 0.02 some seeds spend all epochs of so short a run on a
     * plateau. */
    const char *const list[SETTINGS][2] = {{"model", "vit_micro"},
                                           {"patch", "8"},
                                           {"data", "synthetic"},
                                           {"synthetic_images", l->images},
                                           {"act", act},
                                           {"seed", l->seed},
                                           {"epochs", l->epochs},
                                           {"warmup", l->warmup},
                                           {"batch", "32"},
                                           {"eval_batch", "128"},
                                           {"lr", "1e-3"},
                                           {"init_std", "0.05"},
                                           {"run", run}};
    for (size_t i = 0; i < SETTINGS; i++)
        l->rows[i].key = list[i][0], l->rows[i].value = list[i][1];
}

static void command_print(FILE *file, const options *o)
{
    recipe_list l;
    list_make(&l, "DIR", "berlu", 0, o);
    fprintf(file, "  berlu train");
    for (size_t i = 0; i < SETTINGS; i++)
        fprintf(file, " --%s %s", recipe_find(l.rows[i].key)->option, l.rows[i].value);
    fprintf(file, "\n");
}

static berlu_status settings_make(train_settings *s, const char *run, const demo *d, const options *o)
{
    recipe_list l;
    list_make(&l, run, d->act, d->seed, o);
    recipe_init(s);
    for (size_t i = 0; i < SETTINGS; i++)
        TRY(recipe_set(s, l.rows[i].key, l.rows[i].value));
    return recipe_resolve(s);
}

/* Removes a folder only if it is a run that no other process trains; trainer_start() refuses the
 * rest. */
static berlu_status earlier_remove(const char *run)
{
    run_folder folder;
    int there;
    if (!run_exists(run))
        return BERLU_OK;
    berlu_status status = run_take(&folder, run, &(run_taking){.resume = 1}, &there);
    if (status != BERLU_OK)
        return status;
    status = folder_remove(run);
    run_close(&folder);
    return status;
}

static berlu_status run_train(demo *d, const char *run, const options *o, train_result *result)
{
    train_settings s;
    trainer *t = NULL;
    train_hooks hooks = {.progress = tick, .context = d};
    berlu_status status;
    TRY_DONE(settings_make(&s, run, d, o));
    TRY_DONE(earlier_remove(run));
    TRY_DONE(trainer_open(&t, &s, &hooks));
    TRY_DONE(trainer_start(t, 0));
    status = trainer_run(t, result);
done:
    trainer_close(t);
    recipe_free(&s);
    return status;
}

/* Adds the run's curve and last accuracy. */
static berlu_status curve_add(outcome *out, const char *run, int seed)
{
    char path[RUN_PATH];
    csv_table t;
    snprintf(path, sizeof path, "%.*s/metrics.csv", RUN_PATH - 16, run);
    TRY(csv_read(&t, path));
    out->epochs = t.rows < EPOCHS_MOST ? t.rows : EPOCHS_MOST;
    for (size_t e = 0; e < out->epochs; e++) {
        out->epoch[e] = (double)e + 1;
        out->curve[e] += csv_number(&t, e, csv_column(&t, "test_top1")) / SEEDS;
    }
    out->top1[seed] = out->epochs ? csv_number(&t, out->epochs - 1, csv_column(&t, "test_top1")) : NAN;
    csv_free(&t);
    return BERLU_OK;
}

static berlu_status one_train(demo *d, const char *folder, const options *o, outcome *out)
{
    char run[RUN_PATH];
    train_result result;
    snprintf(run, sizeof run, "%.3000s/%s-%d", folder, d->act, d->seed);
    TRY(run_train(d, run, o, &result));
    TRY(curve_add(out, run, d->seed));
    d->before += d->each;
    out->images_per_s = fmax(out->images_per_s, result.speed.images_per_s);
    out->planned = (double)result.planned_bytes;
    return BERLU_OK;
}

static berlu_status plot_save(const char *folder, const outcome *all)
{
    char path[RUN_PATH];
    svg_series series[COUNT(acts)];
    for (size_t i = 0; i < COUNT(acts); i++)
        series[i] = (svg_series){
            .label = acts[i], .x = all[i].epoch, .y = all[i].curve, .count = all[i].epochs, .color = (int)i};
    svg_plot plot = {.title = "test accuracy, mean of two seeds", .x = {.title = "epoch"}, .y = {.title = "top-1, %"}};
    plot.series = series;
    plot.count = COUNT(acts);
    svg_figure figure = {.title = "vit_micro (patch 8) on the synthetic set", .plots = &plot, .count = 1};
    snprintf(path, sizeof path, "%.4000s/curves.svg", folder);
    return svg_save(path, &figure);
}

static void table_print(FILE *file, const outcome *all)
{
    fprintf(file, "\n%-10s %16s %10s %14s\n", "activation", "test top-1, %", "images/s", "planned MiB");
    for (size_t i = 0; i < COUNT(acts); i++) {
        double mean = (all[i].top1[0] + all[i].top1[1]) / 2;
        double deviation = fabs(all[i].top1[0] - all[i].top1[1]) / sqrt(2.0); /* n - 1 = 1 */
        fprintf(file, "%-10s %8.2f ± %5.2f %10.0f %14.1f\n", acts[i], mean, deviation, all[i].images_per_s,
                all[i].planned / 0x1p20);
    }
}

static berlu_status json_print(const outcome *all)
{
    output out;
    output_start(&out);
    output_array(&out, "rows");
    for (size_t i = 0; i < COUNT(acts); i++) {
        output_object(&out, NULL);
        output_string(&out, "act", acts[i]);
        output_reals(&out, "test_top1", all[i].top1, SEEDS);
        output_real(&out, "images_per_s", all[i].images_per_s);
        output_int(&out, "planned_bytes", (int64_t)all[i].planned);
        output_end(&out);
    }
    output_end(&out);
    return output_print(&out);
}

/* Seed by seed, so that every activation is trained at two moments of a machine that others may
 * use: the faster of the two is shown. */
static berlu_status all_train(const options *o, const char *folder, outcome *all)
{
    demo d = {0};
    berlu_status status = BERLU_OK;
    progress_start(&d.bar, "demo", "images", 0, 0);
    for (d.seed = 0; d.seed < SEEDS; d.seed++)
        for (size_t i = 0; status == BERLU_OK && i < COUNT(acts); i++) {
            d.act = acts[i];
            status = one_train(&d, folder, o, &all[i]);
        }
    progress_finish(&d.bar);
    TRY(status);
    return plot_save(folder, all);
}

static berlu_status demo_run(options *o)
{
    const char *folder = options_string(o, "out");
    double began = clock_seconds();
    outcome *all = calloc(COUNT(acts), sizeof *all);
    if (!all)
        return berlu_fail_memory(COUNT(acts) * sizeof *all, "the curves");
    fprintf(stderr,
            "vit_micro on %lld synthetic images, %d activations, %d seeds, %lld epochs. One of these runs by hand:\n",
            (long long)options_int(o, "images"), (int)COUNT(acts), SEEDS, (long long)options_int(o, "epochs"));
    command_print(stderr, o);
    berlu_status status;
    TRY_DONE(all_train(o, folder, all));
    table_print(stderr, all);
    fprintf(stderr, "\n%.0f s; the curves are in %s/curves.svg, all numbers in %s/*/metrics.csv\n",
            clock_seconds() - began, folder, folder);
    if (options_json(o))
        status = json_print(all);
done:
    free(all);
    return status;
}

const command cmd_demo = {
    "demo", "train a small ViT with four activations and compare them",
    "Takes a minute or two on two cores, downloads nothing. Differences of a point or two between\n"
    "activations mean nothing with two seeds and a synthetic set; it shows how a comparison is made.",
    rows, demo_run};
