/* trainer_init.c - initial weights from a file (--init). SPDX-License-Identifier: MIT
 *
 * Results depend on the file's content and not on its path, so its SHA-256 becomes the setting
 * init_sha256, part of the settings' hash and of run.json. All weights are drawn first and those of
 * the file overwrite them: tensors that the file lacks (a head for these classes, parameters of
 * another activation) keep their drawn values.
 *
 * A run that has a checkpoint no longer needs the file. Only trainer_begin() finds out whether it
 * has one, so a missing or changed file is recorded here and reported by init_missing(). */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/sha256.h"
#include "models/weights.h"
#include "train/trainer_internal.h"

static berlu_status path_find(trainer *t)
{
    const char *name = t->settings.init;
    if (run_exists(name))
        return network_weights(t->init_path, sizeof t->init_path, name, "last", "model.safetensors", t->hooks.log);
    if (folder_exists(name))
        return berlu_fail(BERLU_ERR_INPUT, "init: %s holds no run; give a file of weights or the folder of a run",
                          name);
    if (snprintf(t->init_path, sizeof t->init_path, "%s", name) >= (int)sizeof t->init_path)
        return berlu_fail(BERLU_ERR_ARG, "init: the path is too long");
    return BERLU_OK;
}

static berlu_status hash_find(trainer *t)
{
    const char *recorded = t->settings.init_sha256;
    TRY(path_find(t));
    TRY(sha256_file(t->init_hash, t->init_path));
    if (*recorded && strcmp(recorded, t->init_hash) != 0)
        return berlu_fail(BERLU_ERR_INPUT, "init: %s is another file: its SHA-256 is %.12s..., not %.12s...",
                          t->init_path, t->init_hash, recorded);
    return BERLU_OK;
}

berlu_status init_settle(trainer *t)
{
    train_settings *s = &t->settings;
    if (!*s->init)
        return BERLU_OK;
    berlu_status status = hash_find(t);
    if (status == BERLU_OK) {
        s->init_sha256 = t->init_hash;
        return BERLU_OK;
    }
    if (!*s->init_sha256 || status == BERLU_ERR_MEMORY)
        return status;
    snprintf(t->init_problem, sizeof t->init_problem, "%s", berlu_last_error());
    return BERLU_OK;
}

berlu_status init_missing(const trainer *t)
{
    return *t->init_problem ? berlu_fail(BERLU_ERR_INPUT, "%s", t->init_problem) : BERLU_OK;
}

/* Notes the activation that the file names where it differs from the run's. */
static void activation_note(const trainer *t, const safetensors *file, text *note)
{
    const char *there = safetensors_metadata(file, CHECKPOINT_ACTIVATION);
    if (!there || t->settings.acts == 0)
        return;
    size_t length = strcspn(there, "\n");
    const char *here = t->settings.act[0];
    if (strlen(here) != length || strncmp(here, there, length) != 0)
        text_add(note, ", trained with %.*s", (int)length, there);
}

static void note_make(trainer *t, const weights_begun *b, const safetensors *file)
{
    text note = {0};
    text_add(&note, "%s: %d of %d tensors taken", t->init_path, b->taken, graph_param_count(engine_graph(t->train)));
    if (b->new_head && b->classes)
        text_add(&note, ", a new head (%d classes, the file has %llu)", t->classes, (unsigned long long)b->classes);
    else if (b->new_head)
        text_add(&note, ", a new head (%d classes, the file has none)", t->classes);
    if (b->own_acts)
        text_add(&note, ", %d activation parameters at their start", b->own_acts);
    if (b->unused_acts)
        text_add(&note, ", %d of the file's activation parameters unused", b->unused_acts);
    activation_note(t, file, &note);
    snprintf(t->init_note, sizeof t->init_note, "%s", note.data ? note.data : "");
    text_free(&note);
}

/* init_std and init_std_fc1 apply to drawn weights; refuses them where the file overwrites all. */
static berlu_status idle_check(const trainer *t, const weights_begun *b)
{
    const char *const keys[] = {"init_std", "init_std_fc1"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (recipe_given(&t->settings, keys[i]) && (i == 1 || !b->new_head))
            return berlu_fail(BERLU_ERR_ARG,
                              "%s: has no effect because init gives these weights; leave one of them out", keys[i]);
    return BERLU_OK;
}

berlu_status init_load(trainer *t)
{
    safetensors *file = NULL;
    weights_begun begun;
    if (*t->init_problem)
        return BERLU_OK;
    berlu_status status;
    TRY_DONE(safetensors_open(&file, t->init_path));
    TRY_DONE(weights_begin(t->train, file, &begun));
    TRY_DONE(idle_check(t, &begun));
    note_make(t, &begun, file);
done:
    safetensors_close(file);
    return status;
}
