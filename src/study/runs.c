/* runs.c - expands a study into runs, finds their keys, reads their state and results.
 * SPDX-License-Identifier: MIT
 *
 * runs.h says what identifies a run. study_entries_make() resolves each cell once and hashes it per
 * seed (entry_identify); study_entry_look() reads the folder of one run. */
#include "study/runs.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/landscape_file.h"
#include "base/file.h"
#include "base/median.h"
#include "io/csv.h"
#include "train/settings_hash.h"

const char *const study_state_names[STUDY_STATES] = {"waiting", "running", "done", "cut", "failed"};

void study_entries_free(study_entries *r)
{
    free(r->items);
    *r = (study_entries){0};
}

int study_setting_is_learning(const char *key)
{
    static const char *const keys[] = {"act",          "act_params", "act_lr", "act_decay",    "lr",     "min_lr",
                                       "weight_decay", "init_std",   "warmup", "init_std_fc1", "epochs", NULL};
    for (size_t i = 0; keys[i]; i++)
        if (strcmp(keys[i], key) == 0)
            return 1;
    return 0;
}

int study_same_size(const study_cell *a, const study_cell *b)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->settings.count && study_setting_is_learning(a->settings.items[i].key))
            i++;
        while (k < b->settings.count && study_setting_is_learning(b->settings.items[k].key))
            k++;
        if (i == a->settings.count || k == b->settings.count)
            return i == a->settings.count && k == b->settings.count;
        const study_setting *x = &a->settings.items[i], *y = &b->settings.items[k];
        if (strcmp(x->key, y->key) != 0 || x->count != 1 || y->count != 1 || strcmp(x->values[0], y->values[0]) != 0)
            return 0;
    }
}

/* Closes the data unless these settings mean the same. */
static berlu_status data_reuse(study_data *m, const train_settings *s)
{
    text now = {0};
    for (size_t i = 0; i < train_settings_count; i++)
        if (!study_setting_is_learning(train_settings_table[i].key)) {
            recipe_values(s, &train_settings_table[i], &now);
            text_string(&now, "\n");
        }
    berlu_status status = text_status(&now);
    if (status != BERLU_OK || !m->settings.data || strcmp(m->settings.data, now.data) != 0)
        train_data_close(&m->data);
    text_free(&m->settings);
    m->settings = now;
    return status;
}

berlu_status study_cell_canonical(text *out, const study *s, const study_run *run, study_data *m,
                                  const char *teacher_key)
{
    train_settings settings;
    TRY(study_run_settings(s, run, &settings));
    berlu_status status = data_reuse(m, &settings);
    if (status == BERLU_OK)
        status = train_canonical(out, &settings, &m->data, teacher_key);
    recipe_free(&settings);
    return status;
}

void study_data_close(study_data *m)
{
    text_free(&m->settings);
    train_data_close(&m->data);
}

static berlu_status entry_identify(study_entry *e, const char *canonical, const char *folder)
{
    static const char key[] = "\nseed=";
    char hash[SETTINGS_HASH];
    text own = {0};
    const char *line = strstr(canonical, key), *rest = line ? line + sizeof key - 1 : NULL;
    assert(line); /* a seed is never left out */
    text_bytes(&own, canonical, (size_t)(rest - canonical));
    text_add(&own, "%lld%s", (long long)e->seed, rest + strcspn(rest, "\n"));
    berlu_status status = text_status(&own);
    if (status == BERLU_OK)
        snprintf(e->key, sizeof e->key, "%.16s", settings_hash(hash, own.data));
    text_free(&own);
    TRY(status);
    if (snprintf(e->path, sizeof e->path, "%s/runs/%s", folder, e->key) >= (int)sizeof e->path)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    return BERLU_OK;
}

berlu_status study_entries_make(study_entries *out, const study *s, const char *folder)
{
    study_entries r = {.items = calloc(s->run_count + 1, sizeof *r.items)};
    text *canonical = calloc(s->cell_count + 1, sizeof *canonical);
    study_data seen = {0};
    berlu_status status;
    if (!r.items || !canonical)
        TRY_DONE(berlu_fail_memory(s->run_count * sizeof *r.items, "the runs of a study"));
    for (size_t k = 0; k < s->run_count; k++) {
        study_entry *entry = &r.items[r.count];
        *entry = (study_entry){.cell = s->runs[k].cell, .seed = s->runs[k].seed, .same_as = r.count};
        int student = s->teacher_cell != STUDY_NO_CELL && entry->cell != s->teacher_cell; /* the teacher is run 0 */
        if (!canonical[entry->cell].data) { /* the runs of a cell differ in the line of the seed alone */
            status =
                study_cell_canonical(&canonical[entry->cell], s, &s->runs[k], &seen, student ? r.items[0].key : NULL);
            if (status != BERLU_OK)
                TRY_DONE(berlu_fail_in(status, s->cells[entry->cell].label));
        }
        TRY_DONE(entry_identify(entry, canonical[entry->cell].data, folder));
        if (student)
            memcpy(entry->teacher, r.items[0].path, sizeof entry->teacher);
        for (size_t i = 0; i < r.count && entry->same_as == r.count; i++)
            if (strcmp(r.items[i].key, entry->key) == 0)
                entry->same_as = i;
        r.count++;
    }
    for (size_t i = 0; i < r.count; i++)
        TRY_DONE(study_entry_look(&r.items[i]));
    *out = r;
    r = (study_entries){0}; /* the caller's now */
    status = BERLU_OK;
done:
    for (size_t c = 0; canonical && c < s->cell_count; c++)
        text_free(&canonical[c]);
    free(canonical);
    study_data_close(&seen);
    study_entries_free(&r);
    return status;
}

/* ---- --set ----------------------------------------------------------------------------------- */

static berlu_status cell_set(study *s, study_cell *c, const char *key, const char *value)
{
    study_setting *items = ARENA_ARRAY(&s->memory, study_setting, c->settings.count + 1);
    const char **values = ARENA_ARRAY(&s->memory, const char *, 1);
    if (!items || !values)
        return BERLU_ERR_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < c->settings.count; i++)
        if (strcmp(c->settings.items[i].key, key) != 0)
            items[n++] = c->settings.items[i];
    values[0] = value;
    items[n++] = (study_setting){.key = key, .values = values, .count = 1};
    c->settings = (study_settings){items, n};
    return BERLU_OK;
}

berlu_status study_set(study *s, const char *const *set)
{
    for (; set && *set; set++) {
        const char *equals = strchr(*set, '=');
        char *key = arena_strdup(&s->memory, *set);
        if (!key)
            return BERLU_ERR_MEMORY;
        if (equals)
            key[equals - *set] = 0;
        if (!equals)
            return berlu_fail(BERLU_ERR_ARG, "--set %s: SETTING=VALUE is expected", *set);
        if (!recipe_find(key))
            return berlu_fail(BERLU_ERR_ARG, "--set %s: there is no setting '%s'; berlu train --help lists them", *set,
                              key);
        for (size_t c = 0; c < s->cell_count; c++)
            TRY(cell_set(s, &s->cells[c], key, equals + 1));
    }
    return BERLU_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

static double best_of(const csv_table *t)
{
    double best = NAN;
    int column = csv_column(t, "test_top1");
    for (size_t i = 0; column >= 0 && i < t->rows; i++) {
        double v = csv_number(t, i, column);
        best = !(v <= best) && !isnan(v) ? v : best;
    }
    return best;
}

/* Speed is that of the median epoch, time and memory those of all processes that worked on the run.
 * A run without timing.csv still has its results. */
static void timing_read(study_entry *r)
{
    char path[STUDY_PATH + 16];
    csv_table t;
    r->images_per_s = r->seconds = NAN;
    snprintf(path, sizeof path, "%s/timing.csv", r->path);
    if (!file_exists(path) || csv_read(&t, path) != BERLU_OK)
        return;
    int speed = csv_column(&t, "images_per_s"), seconds = csv_column(&t, "seconds"),
        peak = csv_column(&t, "peak_bytes");
    double *speeds = calloc(t.rows + 1, sizeof *speeds);
    r->seconds = 0;
    for (size_t i = 0; i < t.rows; i++) {
        double bytes = csv_number(&t, i, peak), took = csv_number(&t, i, seconds);
        r->seconds += isnan(took) ? 0 : took;
        r->peak_bytes = bytes > (double)r->peak_bytes ? (uint64_t)bytes : r->peak_bytes;
        if (speeds)
            speeds[i] = csv_number(&t, i, speed);
    }
    if (speeds && t.rows)
        r->images_per_s = median(speeds, t.rows);
    free(speeds);
    csv_free(&t);
}

static berlu_status results_read(study_entry *r)
{
    char path[STUDY_PATH + 16];
    csv_table table;
    snprintf(path, sizeof path, "%s/metrics.csv", r->path);
    TRY(metrics_last(&r->last, path));
    TRY(csv_read(&table, path));
    r->best_top1 = best_of(&table);
    csv_free(&table);
    timing_read(r);
    snprintf(path, sizeof path, "%s/checkpoints", r->path);
    r->weights = folder_exists(path);
    snprintf(path, sizeof path, "%s/" LANDSCAPE_FILE, r->path);
    r->landscape = file_exists(path);
    return BERLU_OK;
}

berlu_status study_entry_look(study_entry *r)
{
    int held = 0;
    r->state = STUDY_WAITING;
    r->best_top1 = r->images_per_s = r->seconds = NAN;
    r->peak_bytes = 0;
    r->weights = r->landscape = 0;
    r->record = (run_record){0};
    if (!folder_exists(r->path))
        return BERLU_OK;
    berlu_status status = BERLU_OK;
    TRY(run_record_read(&r->record, &held, r->path));
    if (held)
        r->state = STUDY_RUNNING;
    else if (r->record.state == RUN_FAILED)
        r->state = STUDY_FAILED;
    else if (r->record.state == RUN_DONE && (status = results_read(r)) == BERLU_OK)
        r->state = STUDY_DONE;
    else if (r->record.attempt > 0)
        r->state = STUDY_CUT;
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK; /* lack of memory is no damage */
}

int study_entry_ready(const study_entries *runs, const study_entry *r)
{
    for (size_t i = 0; *r->teacher && i < runs->count; i++)
        if (strcmp(runs->items[i].path, r->teacher) == 0)
            return runs->items[i].state == STUDY_DONE && !runs->items[i].known;
    return 1;
}

double study_entry_metric(const study_entry *r, const char *metric)
{
    const struct {
        const char *name;
        double value;
    } columns[] = {{"top1", r->last.test_top1}, {"top5", r->last.test_top5}, {"loss", r->last.test_loss}};
    for (size_t i = 0; i < COUNT(columns); i++)
        if (strcmp(columns[i].name, metric) == 0)
            return r->state == STUDY_DONE ? columns[i].value : NAN;
    return NAN;
}
