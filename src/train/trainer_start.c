/* trainer_start.c - starts a run in a new folder, or resumes it from its newest intact checkpoint.
 * SPDX-License-Identifier: MIT
 *
 * A resume reads and compares everything (settings, data, engine) before it writes anything: a run
 * that cannot be resumed is left as it was. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/cpu.h"
#include "train/trainer_internal.h"

/* Two settings need more than a comparison of values: more epochs prolong the run
 * (trainer_prolong.c), and initial weights no longer apply. */
static berlu_status resume_check(train_settings *asked, train_settings *saved)
{
    const setting *epochs = recipe_find("epochs"), *init = recipe_find("init");
    unsigned char *given = &asked->given[epochs - train_settings_table];
    if (*given == GIVEN && asked->epochs > saved->epochs)
        *given = 0, saved->epochs = asked->epochs;
    if (asked->given[init - train_settings_table] == GIVEN && strcmp(asked->init, saved->init) != 0)
        return berlu_fail(BERLU_ERR_ARG, "init: a resumed run goes on with its own weights; leave --init out");
    return BERLU_OK;
}

berlu_status trainer_resume_settings(train_settings *out, const train_settings *wanted)
{
    train_settings saved, shallow = *wanted, *asked = &shallow;
    text differing = {0}, value = {0};
    berlu_status status;
    TRY(run_settings(&saved, NULL, asked->run));
    TRY_DONE(resume_check(asked, &saved));
    if (recipe_differences(asked, &saved, &differing) > 0)
        TRY_DONE(berlu_fail(BERLU_ERR_ARG,
                            "%s: the run was started with other settings: %s; leave them out, or start a new run",
                            asked->run, differing.data ? differing.data : "?"));
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (!setting_may_differ(row) || (asked->given[i] != GIVEN && strcmp(row->key, "run") != 0))
            continue;
        recipe_value(asked, row, 0, &value);
        TRY_DONE(text_status(&value));
        TRY_DONE(recipe_fill(&saved, row, value.data ? value.data : ""));
        text_free(&value);
    }
    if (recipe_given(asked, "algorithms")) /* the command line overrides the record */
        saved.algorithms_record = NULL;
    *out = saved;
done:
    text_free(&differing);
    text_free(&value);
    if (status != BERLU_OK)
        recipe_free(&saved);
    return status;
}

/* ---- the record of the run ------------------------------------------------------------------- */

static const char *isa_name(void)
{
    cpu_isa isa;
    return cpu_isa_pick(&isa) == BERLU_OK ? cpu_isa_name(isa) : "unknown";
}

/* The GEMM algorithms that the device has chosen; empty where it has no choice. */
static berlu_status choices_now(const trainer *t, text *out)
{
    const backend *b = engine_backend(t->train);
    return b->choices ? b->choices(engine_device(t->train), out) : BERLU_OK;
}

static berlu_status engine_now(const trainer *t, run_engine *out)
{
    run_engine e;
    text choices = {0};
    berlu_status status = choices_now(t, &choices);
    snprintf(e.version, sizeof e.version, "%s", berlu_version());
    snprintf(e.products, sizeof e.products, "%s", cpu_blas_name());
    snprintf(e.instructions, sizeof e.instructions, "%s", isa_name());
    snprintf(e.device, sizeof e.device, "cpu");
    if (t->settings.device != RECIPE_CPU) /* device name and library: results depend on both */
        engine_backend(t->train)->describe(engine_device(t->train), e.device, sizeof e.device);
    if (status == BERLU_OK && choices.length) { /* chosen by measured time, so they vary between processes */
        char hash[SETTINGS_HASH];
        snprintf(e.device + strlen(e.device), sizeof e.device - strlen(e.device), ", algorithms %.12s",
                 settings_hash(hash, choices.data));
    }
    text_free(&choices);
    *out = e;
    return status;
}

static berlu_status json_begin(trainer *t, const train_start *how)
{
    text history = {0}, choices = {0};
    const data_info *info = data_describe(t->data);
    berlu_status status;
    if (t->shorter)
        TRY_DONE(prolong_history(t, &history));
    run_about about = {.settings = &t->settings,
                       .leave_out = t->leave_out,
                       .settings_hash = t->settings_hash,
                       .data_hash = t->data_hash,
                       .data_kind = info->kind,
                       .train_images = t->train_images,
                       .test_images = loader_images(t->test),
                       .classes = info->classes,
                       .class_names = info->class_names,
                       .command = how->command,
                       .commit = how->commit,
                       .data_on = t->set ? "device" : "host",
                       .history = history.data};
    TRY_DONE(engine_now(t, &about.engine));
    TRY_DONE(choices_now(t, &choices));
    about.algorithms = choices.length ? choices.data : NULL;
    TRY_DONE(run_begin(&t->run, &about));
done:
    text_free(&choices);
    text_free(&history);
    return status;
}

/* Bit-equal results are guaranteed for the same machine and libraries only; warns of any other. */
static berlu_status engine_compare(trainer *t, const run_facts *facts, int strict)
{
    text differing = {0};
    run_engine now;
    berlu_status status = engine_now(t, &now);
    if (status == BERLU_OK && run_engine_differences(&facts->engine, &now, &differing) > 0) {
        const char *list = differing.data ? differing.data : "?";
        if (strict)
            status =
                berlu_fail(BERLU_ERR_ARG, "%s: the run was begun with something else: %s; leave --strict out to go on",
                           t->run.path, list);
        else
            log_line(&t->run.log, BERLU_LOG_WARNING,
                     "the run was begun with something else: %s; its numbers may differ from here on", list);
    }
    text_free(&differing);
    return status;
}

/* `there` is the canonical text in the checkpoint `what`. */
static berlu_status settings_compare(trainer *t, const char *there, const char *what)
{
    text differing = {0}, then = {0};
    char path[RUN_PATH + 16], hash[SETTINGS_HASH];
    berlu_status status = prolong_text(t, &then);
    snprintf(path, sizeof path, "%s/run.json", t->run.path);
    if (status != BERLU_OK || strcmp(then.data, there) == 0 || run_json_knew(path, settings_hash(hash, there))) {
        text_free(&then);
        return status;
    }
    size_t count = settings_text_differences(then.data, there, &differing);
    text_free(&then);
    if (count == 0) { /* they differ in the device only: engine_compare() reports it */
        text_free(&differing);
        return BERLU_OK;
    }
    status = berlu_fail(BERLU_ERR_INPUT,
                        "%s: its settings or data are not those of %s: %s; put run.json and the data back as "
                        "they were, or start a new run",
                        t->run.path, what, differing.data ? differing.data : "?");
    text_free(&differing);
    return status;
}

static berlu_status json_compare(trainer *t, int strict)
{
    run_facts facts;
    train_settings begun;
    TRY(run_settings(&begun, &facts, t->run.path));
    int moved = begun.device != t->settings.device || begun.precision != t->settings.precision ||
                begun.residual != t->settings.residual;
    recipe_free(&begun);
    if (*facts.data_hash && strcmp(facts.data_hash, t->data_hash) != 0)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: %s is not the set that the run was begun with; put it back as it was, or "
                          "start a new run",
                          t->run.path, t->settings.data);
    if (*facts.settings_hash && strcmp(facts.settings_hash, t->settings_hash) != 0 && t->resumed_format < 1 &&
        !t->shorter && !moved) /* a checkpoint names the setting instead */
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: the settings in run.json are not those it was written with; put it back as it was, or "
                          "start a new run",
                          t->run.path);
    return engine_compare(t, &facts, strict);
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

/* Compares the settings of a checkpoint with ours, before anything is loaded from it. */
static berlu_status facts_compare(trainer *t, const char *path)
{
    checkpoint_facts facts;
    berlu_status status = BERLU_OK;
    TRY(checkpoint_facts_read(&facts, path));
    t->resumed_format = facts.format;
    if (facts.format == 0)
        log_line(&t->run.log, BERLU_LOG_WARNING,
                 "%s is of berlu 0.1.0, which kept no record of its settings: run.json and metrics.csv are taken as "
                 "they are",
                 path);
    else
        status = settings_compare(t, facts.settings.data ? facts.settings.data : "", path);
    text_free(&facts.settings);
    return status;
}

static berlu_status checkpoint_resume(trainer *t, int *found)
{
    char path[CHECKPOINT_PATH];
    TRY(checkpoint_recover(&t->store));
    TRY(checkpoint_newest(t->run.path, engine_has(t->train, ARRAY_EMA), path, &t->run.log));
    *found = *path != 0;
    if (!*found)
        return BERLU_OK;
    TRY(facts_compare(t, path));
    TRY(checkpoint_load(path, t->train, &t->state));
    if (t->state.epoch > (uint64_t)t->settings.epochs || t->state.batches > t->epoch_batches)
        return berlu_fail(BERLU_ERR_INPUT, "%s: counts more than this run has; it belongs to another run", path);
    t->saved_updates = t->state.updates;
    t->saved_batches = t->state.batches;
    return BERLU_OK;
}

/* Repairs links, leftovers and the best checkpoint, once every comparison has passed. */
static berlu_status checkpoint_tidy(trainer *t)
{
    if (t->state.best_updates != t->state.updates)
        checkpoint_best_check(&t->store, t->state.best_updates, engine_has(t->train, ARRAY_EMA));
    log_line(&t->run.log, BERLU_LOG_INFO, "resumed from step %llu", (unsigned long long)t->state.updates);
    return checkpoint_settle(&t->store, t->state.updates, t->state.best_updates);
}

berlu_status trainer_start(trainer *t, int resume)
{
    return trainer_begin(t, &(train_start){.resume = resume});
}

static berlu_status run_continue(trainer *t, const train_start *how, int *found)
{
    TRY(prolong_check(t));
    TRY(checkpoint_resume(t, found));
    TRY(json_compare(t, how->strict));
    if (*found)
        TRY(report_check(t));
    if (!*found)
        log_line(&t->run.log, BERLU_LOG_INFO, "no checkpoint yet: the run starts from the beginning");
    return BERLU_OK;
}

/* Older versions began such runs, and these go on. */
static berlu_status accumulate_check(const trainer *t)
{
    uint64_t passes = (uint64_t)t->settings.accumulate;
    if (passes <= t->epoch_batches)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG,
                      "accumulate: %llu passes of %lld images are more than an epoch has, %llu; make it smaller",
                      (unsigned long long)passes, (long long)t->settings.batch, (unsigned long long)t->epoch_batches);
}

berlu_status trainer_new_check(const trainer *t)
{
    TRY(init_missing(t));
    return accumulate_check(t);
}

berlu_status trainer_begin(trainer *t, const train_start *how)
{
    int found = 0, there = 0;
    const char *folder = t->settings.run;
    assert(!how->resume || !how->record_steps);
    if (!folder || !*folder)
        return berlu_fail(BERLU_ERR_ARG, "run: say where to keep the run, --run DIR");
    if (!how->resume)
        TRY(trainer_new_check(t)); /* before there is a folder */
    run_taking taking = {.resume = how->resume, .wait = how->wait, .stop = t->hooks.stop, .echo = t->hooks.log};
    TRY(run_take(&t->run, folder, &taking, &there));
    network_describe(&t->facts, &t->model->config, t->settings.mean, t->settings.std);
    t->store = (checkpoint_store){.run = &t->run.folder,
                                  .log = &t->run.log,
                                  .facts = t->facts.list,
                                  .fact_count = t->facts.count,
                                  .settings = t->settings_text.data};
    if (there)
        TRY(run_continue(t, how, &found)); /* writes nothing but the log */
    if (!found)
        TRY(trainer_new_check(t));
    t->run.lock.record.attempt++;
    TRY(run_mark(&t->run, RUN_WAITING, found ? t->state.updates : 0));
    if (!there || t->shorter)
        TRY(json_begin(t, how));
    if (t->shorter)
        prolong_warn(t);
    TRY(report_start(t, !found));
    if (how->record_steps)
        TRY(steps_begin(t));
    return found ? checkpoint_tidy(t) : BERLU_OK;
}
