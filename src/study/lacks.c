/* lacks.c - see lacks.h. SPDX-License-Identifier: MIT */
#include "study/lacks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "study/runs.h"
#include "train/network.h"

typedef struct finder {
    const study *s;
    const char *file;
    text *problems;
} finder;

/* A problem of a cell, at the setting `key` where the file has it; the same line is added once. */
static void problem(finder *f, const study_cell *cell, const char *key, const char *message)
{
    char line[1024];
    int at_line = cell->line, at_column = cell->column;
    for (size_t i = 0; i < cell->settings.count; i++)
        if (strcmp(cell->settings.items[i].key, key) == 0 && cell->settings.items[i].line > 0) /* 0: --set */
            at_line = cell->settings.items[i].line, at_column = cell->settings.items[i].column;
    snprintf(line, sizeof line, "%s:%d:%d: %s: %.600s\n", f->file, at_line, at_column, cell->label, message);
    if (!f->problems->data || !strstr(f->problems->data, line))
        text_string(f->problems, line);
}

static void memory_check(finder *f, const study_cell *cell, const train_settings *settings, const model *m)
{
    char message[160];
    engine_memory needs;
    engine_options o = {.mode = ENGINE_TRAIN,
                        .batch = (int)settings->batch,
                        .keep = (engine_keep)settings->keep,
                        .threads = (int)settings->threads,
                        .loss = LOSS_CROSS_ENTROPY};
    if (network_device(&o, settings) != BERLU_OK) {
        problem(f, cell, "device", berlu_last_error());
        return;
    }
    if (settings->device != RECIPE_CPU) /* a GPU is asked by its worker: a context here would take its memory */
        return;
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (engine_plan_memory(&needs, m->graph, &o) != BERLU_OK || !(there > 0) || (double)needs.total <= there)
        return;
    snprintf(message, sizeof message, "a step needs %.1f GiB and this machine has %.1f; a smaller batch would do",
             (double)needs.total / 0x1p30, there / 0x1p30);
    problem(f, cell, "batch", message);
}

static berlu_status cell_check(finder *f, size_t at, int data)
{
    enum { CLASSES = 10 }; /* where neither settings nor data say */
    const study_cell *cell = &f->s->cells[at];
    train_settings settings;
    data_source *source = NULL;
    model *m = NULL;
    size_t classes = 0;
    TRY(study_run_settings(f->s, &(study_run){.cell = at}, &settings));
    if (data && network_data(&source, &classes, &settings, NULL) != BERLU_OK)
        problem(f, cell, "data", berlu_last_error());
    classes = classes ? classes : settings.classes > 0 ? (size_t)settings.classes : CLASSES;
    berlu_status status = network_create(&m, &settings, classes);
    if (status == BERLU_OK)
        memory_check(f, cell, &settings, m);
    model_free(m);
    data_close(source);
    recipe_free(&settings);
    return status;
}

berlu_status study_lacks(const study *s, const char *file, int data, text *problems)
{
    finder f = {s, file, problems};
    for (size_t c = 0; c < s->cell_count; c++)
        if (!c || !study_same_size(&s->cells[c - 1], &s->cells[c]))
            TRY(cell_check(&f, c, data));
    return text_status(problems);
}
