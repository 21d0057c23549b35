/* trainer_prolong.c - resumes a run with more epochs than it was started with.
 * SPDX-License-Identifier: MIT
 *
 * The number of epochs is part of a run's identity, so a prolonged run gets another settings hash,
 * and run.json is rewritten with the old record under `history`. A checkpoint written under the old
 * settings is accepted if the hash of its settings is in that history. A learning rate that decays
 * over the run has already decayed: the longer schedule continues from the epoch reached, which
 * differs from a single longer run, and prolong_warn() says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer_internal.h"

berlu_status prolong_text(const trainer *t, text *out)
{
    train_settings s = t->settings; /* shares its texts */
    if (t->shorter)
        s.epochs = t->shorter;
    settings_text(&s, t->leave_out, t->data_hash, t->teacher.hash, out);
    return text_status(out);
}

berlu_status prolong_check(trainer *t)
{
    train_settings saved;
    run_facts facts;
    text then = {0};
    char hash[SETTINGS_HASH];
    TRY(run_settings(&saved, &facts, t->run.path));
    t->shorter = saved.epochs < t->settings.epochs ? saved.epochs : 0;
    recipe_free(&saved);
    if (!t->shorter)
        return BERLU_OK;
    berlu_status status = prolong_text(t, &then);
    if (status == BERLU_OK && strcmp(settings_hash(hash, then.data), facts.settings_hash) != 0)
        status = berlu_fail(BERLU_ERR_INPUT,
                            "%s: only a run whose run.json is as it was written can be prolonged, and this one has "
                            "other settings or data; put them back, or start a new run",
                            t->run.path);
    text_free(&then);
    return status;
}

/* Returns the history with the current record, less its own history, appended. */
static json_t *history_with(json_t *root)
{
    json_t *before = json_object_get(root, "history");
    json_t *list = json_is_array(before) ? json_incref(before) : json_array();
    json_object_del(root, "history");
    if (list && json_array_append(list, root) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

berlu_status prolong_history(const trainer *t, text *out)
{
    char path[RUN_PATH + 16];
    json_t *root;
    snprintf(path, sizeof path, "%s/run.json", t->run.path);
    TRY(run_json_load(&root, path));
    json_t *list = history_with(root);
    char *words = list ? json_dumps(list, JSON_COMPACT) : NULL;
    if (words)
        text_string(out, words);
    free(words);
    json_decref(list);
    json_decref(root);
    return words ? text_status(out) : berlu_fail_memory(0, "run.json");
}

void prolong_warn(const trainer *t)
{
    int same = t->settings.schedule == SCHEDULE_CONSTANT || t->settings.schedule == SCHEDULE_STEP;
    log_line(&t->run.log, BERLU_LOG_WARNING, "prolonged from %lld to %lld epochs: %s", (long long)t->shorter,
             (long long)t->settings.epochs,
             same ? "the schedule does not depend on the length of a run"
                  : "the rate had fallen towards the old end and rises again, so this is not one longer run; "
                    "run.json keeps the old settings under history");
}
