/* estimate.c - plans each kind of cell, and times a short training of it.
 * SPDX-License-Identifier: MIT
 *
 * Memory comes from the engine's plan without an engine (study_estimate_make); time from a trainer
 * that runs for a moment (epoch_measure), once per class of cells with the same sizes. */
#include "study/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/network.h"
#include "train/trainer.h"

enum { CLASSES = 10 }; /* when neither settings nor data specify it */

static int64_t parameters_of(const model *m)
{
    int64_t count = 0;
    for (int i = 0; i < graph_param_count(m->graph); i++)
        count += tensor_elements(graph_tensor(m->graph, graph_param(m->graph, i)));
    return count;
}

static berlu_status cell_estimate(study_estimate *out, const study *s, size_t cell)
{
    train_settings settings;
    model *m = NULL;
    engine_memory memory;
    TRY(study_run_settings(s, &(study_run){.cell = cell}, &settings));
    berlu_status status = network_create(&m, &settings, settings.classes > 0 ? (size_t)settings.classes : CLASSES);
    if (status == BERLU_OK) {
        int64_t parameters = parameters_of(m);
        engine_options o = {.mode = ENGINE_TRAIN,
                            .batch = (int)settings.batch,
                            .keep = (engine_keep)settings.keep,
                            .threads = (int)settings.threads,
                            .loss = LOSS_CROSS_ENTROPY};
        out->parameters = parameters > out->parameters ? parameters : out->parameters;
        if (network_device(&o, &settings) == BERLU_OK && engine_plan_memory(&memory, m->graph, &o) == BERLU_OK)
            out->bytes = memory.total > out->bytes ? memory.total : out->bytes;
    }
    model_free(m);
    recipe_free(&settings);
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
}

berlu_status study_estimate_make(study_estimate *out, const study *s)
{
    *out = (study_estimate){0};
    for (size_t c = 0; c < s->cell_count; c++)
        if (!c || !study_same_size(&s->cells[c - 1], &s->cells[c]))
            TRY(cell_estimate(out, s, c));
    return BERLU_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Cells of one size, represented by the first of them. */
typedef struct size_class {
    size_t cell;
    double epoch_seconds; /* sum over the finished runs, then the mean; 0: unknown */
    size_t finished, left;
} size_class;

typedef struct size_classes {
    size_class *items;
    size_t count, *of; /* `of` by cell */
    double *epochs;    /* by cell; NaN: its settings do not resolve */
} size_classes;

static void classes_free(size_classes *k)
{
    free(k->items);
    free(k->of);
    free(k->epochs);
}

static berlu_status classes_make(size_classes *out, const study *s)
{
    *out = (size_classes){.items = calloc(s->cell_count + 1, sizeof *out->items),
                          .of = calloc(s->cell_count + 1, sizeof *out->of),
                          .epochs = calloc(s->cell_count + 1, sizeof *out->epochs)};
    if (!out->items || !out->of || !out->epochs) {
        classes_free(out);
        return berlu_fail_memory(s->cell_count * sizeof *out->items, "an estimate");
    }
    for (size_t c = 0; c < s->cell_count; c++) {
        train_settings settings;
        size_t i = 0;
        while (i < out->count && !study_same_size(&s->cells[out->items[i].cell], &s->cells[c]))
            i++;
        if (i == out->count)
            out->items[out->count++].cell = c;
        out->of[c] = i;
        out->epochs[c] = NAN;
        if (study_run_settings(s, &(study_run){.cell = c}, &settings) == BERLU_OK) {
            out->epochs[c] = (double)settings.epochs;
            recipe_free(&settings);
        }
    }
    return BERLU_OK;
}

/* Measures seconds per epoch by training briefly; 0 where that is impossible here. */
static double epoch_measure(const study *s, size_t cell, int threads, double seconds)
{
    train_settings settings;
    train_estimate e = {0};
    trainer *t = NULL;
    if (study_run_settings(s, &(study_run){.cell = cell}, &settings) != BERLU_OK)
        return 0;
    settings.threads = threads ? threads : settings.threads;
    if (trainer_open(&t, &settings, NULL) != BERLU_OK || trainer_measure(t, seconds, &e) != BERLU_OK)
        e.seconds = 0;
    trainer_close(t);
    double epochs = (double)settings.epochs;
    recipe_free(&settings);
    return epochs > 0 ? e.seconds / epochs : 0;
}

static int is_left(const study_entries *runs, size_t i)
{
    const study_entry *r = &runs->items[i];
    return r->same_as == i && (r->state == STUDY_WAITING || r->state == STUDY_CUT);
}

static void speeds_find(study_time *out, size_classes *k, const study *s, int threads, double budget)
{
    size_t missing = 0;
    for (size_t i = 0; i < k->count; i++)
        missing += k->items[i].left && !k->items[i].finished;
    for (size_t i = 0; i < k->count; i++) {
        size_class *c = &k->items[i];
        if (c->finished)
            c->epoch_seconds /= (double)c->finished;
        else if (c->left)
            c->epoch_seconds = epoch_measure(s, c->cell, threads, budget / (double)missing);
        out->measured |= c->left && !c->finished && c->epoch_seconds > 0;
    }
}

berlu_status study_time_make(study_time *out, const study *s, const study_entries *runs, int threads, double budget)
{
    size_classes k;
    *out = (study_time){0};
    TRY(classes_make(&k, s));
    for (size_t i = 0; i < runs->count; i++) {
        const study_entry *r = &runs->items[i];
        size_class *c = &k.items[k.of[r->cell]];
        c->left += (size_t)is_left(runs, i);
        if (r->state == STUDY_DONE && r->seconds > 0 && k.epochs[r->cell] > 0)
            c->epoch_seconds += r->seconds / k.epochs[r->cell], c->finished++;
    }
    speeds_find(out, &k, s, threads, budget);
    for (size_t i = 0; i < runs->count; i++) {
        size_t cell = runs->items[i].cell;
        double seconds = k.items[k.of[cell]].epoch_seconds * k.epochs[cell];
        if (!is_left(runs, i))
            continue;
        out->unknown += !(seconds > 0);
        out->seconds += seconds > 0 ? seconds : 0;
        out->seconds_run = seconds > out->seconds_run ? seconds : out->seconds_run;
    }
    classes_free(&k);
    return BERLU_OK;
}
