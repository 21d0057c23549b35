/* lacks.c - checks each cell against this machine, before anything runs.
 * SPDX-License-Identifier: MIT
 *
 * study_lacks() makes a line per problem, with the place in the study's file. cell_check() repeats
 * the checks of training that need the data; memory_check() compares the plan with what the device
 * has. */
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

/* The place of the setting `key` where the file has it, else of the cell; 0 as a line is --set. */
static void problem(finder *f, const study_cell *cell, const char *key, size_t length, const char *message)
{
    char line[1024];
    int at_line = cell->line, at_column = cell->column;
    for (size_t i = 0; i < cell->settings.count; i++) {
        const study_setting *s = &cell->settings.items[i];
        if (strlen(s->key) == length && strncmp(s->key, key, length) == 0 && s->line > 0)
            at_line = s->line, at_column = s->column;
    }
    snprintf(line, sizeof line, "%s:%d:%d: %.600s\n", f->file, at_line, at_column, message);
    if (!f->problems->data || !strstr(f->problems->data, line)) /* a mistake of base is one of every cell */
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
        problem(f, cell, "device", strlen("device"), berlu_last_error());
        return;
    }
    if (settings->device != RECIPE_CPU) /* the worker checks its GPU: a context in this process would use its memory */
        return;
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (engine_plan_memory(&needs, m->graph, &o) != BERLU_OK || !(there > 0) || (double)needs.total <= there)
        return;
    snprintf(message, sizeof message, "a step needs %.1f GiB and this machine has %.1f; a smaller batch would do",
             (double)needs.total / 0x1p30, there / 0x1p30);
    problem(f, cell, "batch", strlen("batch"), message);
}

static berlu_status size_check(finder *f, size_t at)
{
    enum { CLASSES = 10 }; /* when the settings do not specify it */
    train_settings settings;
    model *m = NULL;
    TRY(study_run_settings(f->s, &(study_run){.cell = at}, &settings));
    berlu_status status = network_create(&m, &settings, settings.classes > 0 ? (size_t)settings.classes : CLASSES);
    if (status == BERLU_OK)
        memory_check(f, &f->s->cells[at], &settings, m);
    model_free(m);
    recipe_free(&settings);
    return status;
}

/* Checks what training would refuse once it has seen the data. */
static berlu_status cell_check(finder *f, size_t at, study_data *seen)
{
    const study_cell *cell = &f->s->cells[at];
    train_settings settings;
    data_source *source = NULL;
    text canonical = {0};
    char message[1024];
    size_t classes;
    berlu_status status = study_cell_canonical(&canonical, f->s, &(study_run){.cell = at}, seen, "teacher");
    text_free(&canonical);
    if (status == BERLU_OK)
        return BERLU_OK;
    snprintf(message, sizeof message, "%s", berlu_last_error());
    TRY(study_run_settings(f->s, &(study_run){.cell = at}, &settings));
    if (network_data(&source, &classes, &settings, NULL) != BERLU_OK)
        problem(f, cell, "data", strlen("data"), berlu_last_error());
    else if (status != BERLU_ERR_MEMORY) /* size_check() explains it */
        problem(f, cell, message, strcspn(message, ":"), message);
    data_close(source);
    recipe_free(&settings);
    return BERLU_OK;
}

berlu_status study_lacks(const study *s, const char *file, int data, text *problems)
{
    finder f = {s, file, problems};
    study_data seen = {0};
    berlu_status status;
    for (size_t c = 0; c < s->cell_count; c++) {
        if (data)
            TRY_DONE(cell_check(&f, c, &seen));
        if (!c || !study_same_size(&s->cells[c - 1], &s->cells[c]))
            TRY_DONE(size_check(&f, c));
    }
    status = text_status(problems);
done:
    study_data_close(&seen);
    return status;
}
