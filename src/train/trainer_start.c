/* trainer_start.c - where a run begins: a new folder, or the newest whole checkpoint of an old one.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/cpu.h"
#include "train/trainer_internal.h"

berlu_status trainer_resume_settings(train_settings *out, const train_settings *asked)
{
    train_settings saved;
    text differing = {0};
    berlu_status status = run_settings(&saved, asked->run);
    if (status != BERLU_OK)
        return status;
    if (recipe_differences(asked, &saved, &differing) > 0)
        status = berlu_fail(BERLU_ERR_ARG,
                            "%s: the run was started with other settings: %s; leave them out, or start a new run",
                            asked->run, differing.data ? differing.data : "?");
    for (size_t i = 0; status == BERLU_OK && i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        text value = {0};
        if (!row->free || (!asked->given[i] && strcmp(row->key, "run") != 0))
            continue;
        recipe_value(asked, row, 0, &value);
        status = text_status(&value);
        if (status == BERLU_OK)
            status = recipe_fill(&saved, row, value.data ? value.data : "");
        text_free(&value);
    }
    text_free(&differing);
    if (status != BERLU_OK) {
        recipe_free(&saved);
        return status;
    }
    *out = saved;
    return BERLU_OK;
}

static berlu_status checkpoint_take(trainer *t, int *found)
{
    char path[CHECKPOINT_PATH];
    berlu_status status = checkpoint_recover(&t->store);
    if (status == BERLU_OK)
        status = checkpoint_newest(t->run.path, engine_has(t->train, ARRAY_EMA), path, &t->run.log);
    *found = status == BERLU_OK && *path;
    if (!*found)
        return status;
    status = checkpoint_load(path, t->train, &t->state);
    if (status != BERLU_OK)
        return status;
    if (t->state.epoch > (uint64_t)t->settings.epochs || t->state.batches > t->epoch_batches)
        return berlu_fail(BERLU_ERR_INPUT, "%s: counts more than this run has; it belongs to another run", path);
    t->saved_updates = t->state.updates;
    t->saved_batches = t->state.batches;
    log_line(&t->run.log, BERLU_LOG_INFO, "resumed from %s", path);
    return checkpoint_settle(&t->store, t->state.updates, t->state.best_updates);
}

static const char *isa_name(void)
{
    cpu_isa isa;
    return cpu_isa_pick(&isa) == BERLU_OK ? cpu_isa_name(isa) : "unknown";
}

berlu_status trainer_start(trainer *t, int resume)
{
    return trainer_begin(t, &(train_start){.resume = resume});
}

berlu_status trainer_begin(trainer *t, const train_start *how)
{
    int found = 0, there = 0;
    const char *folder = t->settings.run;
    if (!folder || !*folder)
        return berlu_fail(BERLU_ERR_ARG, "run: say where to keep the run, --run DIR");
    char extra[256];
    snprintf(extra, sizeof extra, "\"engine\": {\"products\": \"%.80s\", \"instructions\": \"%s\"}", cpu_blas_name(),
             isa_name());
    run_taking taking = {.resume = how->resume, .wait = how->wait, .stop = t->hooks.stop, .echo = t->hooks.log};
    berlu_status status = run_take(&t->run, folder, &taking, &there);
    if (status != BERLU_OK)
        return status;
    t->store = (checkpoint_store){.run = &t->run.folder, .log = &t->run.log};
    t->run.lock.record.attempt++;
    status = run_mark(&t->run, RUN_WAITING, t->run.lock.record.step);
    if (status == BERLU_OK && !there)
        status = run_begin(&t->run, &t->settings, extra);
    if (status == BERLU_OK && there)
        status = checkpoint_take(t, &found);
    if (status == BERLU_OK && there && !found)
        log_line(&t->run.log, BERLU_LOG_INFO, "no checkpoint yet: the run starts from the beginning");
    return status == BERLU_OK ? report_start(t, !found) : status;
}
