/* known.c - marks runs whose results another store has. SPDX-License-Identifier: MIT
 *
 * One query per run by its key. A teacher is the exception: a store has no weights, so one that
 * students still need is trained here. */
#include "study/known.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "study/pack.h"
#include "study/store_internal.h"

/* A run that failed has no results: its columns are NULL. */
static void entry_fill(study_entry *e, sqlite3_stmt *q)
{
    e->state = sqlite3_column_int(q, 7) ? STUDY_DONE : STUDY_FAILED;
    e->known = 1;
    e->last = (metrics_row){.test_top1 = store_real_at(q, 0),
                            .test_top5 = store_real_at(q, 1),
                            .test_loss = store_real_at(q, 2),
                            .train_loss = store_real_at(q, 4)};
    e->best_top1 = store_real_at(q, 3);
    e->images_per_s = store_real_at(q, 5);
    e->seconds = store_real_at(q, 6);
}

static berlu_status entries_fill(study_entries *runs, store *s, int cut_too)
{
    sqlite3_stmt *q;
    berlu_status status = store_prepare(
        s, &q,
        "SELECT f.top1, f.top5, f.loss, f.best_top1, f.train_loss, f.images_per_s, r.seconds, r.state = 'done'"
        " FROM run r LEFT JOIN final f ON f.run = r.key"
        " WHERE r.key = ? AND (r.state = 'failed' OR r.state = 'done' AND f.run IS NOT NULL)");
    for (size_t i = 0; i < runs->count && status == BERLU_OK; i++) {
        study_entry *e = &runs->items[i];
        if (e->state != STUDY_WAITING && !(cut_too && (e->state == STUDY_CUT || e->state == STUDY_FAILED)))
            continue;
        store_bind_text(q, 1, e->key);
        int rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && (e->state != STUDY_FAILED || sqlite3_column_int(q, 7)))
            entry_fill(e, q);
        else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            status = store_fail(s, "reading");
        sqlite3_reset(q);
    }
    if (q)
        sqlite3_finalize(q);
    return status;
}

/* A store holds no weights: a teacher that students still need is trained here. */
static berlu_status teacher_recall(study_entries *runs)
{
    int needed = 0;
    for (size_t i = 1; i < runs->count; i++)
        needed |= *runs->items[i].teacher && runs->items[i].state != STUDY_DONE;
    if (!needed || !runs->items[0].known || runs->items[0].state != STUDY_DONE)
        return BERLU_OK;
    runs->items[0].known = 0;
    return study_entry_look(&runs->items[0]);
}

berlu_status study_known_open(store **out, const char *path)
{
    char inside[STUDY_PATH];
    *out = NULL;
    if (folder_exists(path)) {
        if (snprintf(inside, sizeof inside, "%s/study.db", path) >= (int)sizeof inside)
            return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", path);
        path = inside;
    }
    if (study_is_pack(path))
        return berlu_fail(BERLU_ERR_INPUT, "%s: is a pack; `berlu study merge %s --out DIR`, and name that folder",
                          path, path);
    return store_open_read(out, path);
}

berlu_status study_known_take(study_entries *runs, const char *path)
{
    store *s;
    TRY(study_known_open(&s, path));
    berlu_status status = entries_fill(runs, s, 1);
    store_close(s);
    TRY(status);
    return teacher_recall(runs);
}

berlu_status study_known_here(study_entries *runs, const char *folder)
{
    char path[STUDY_PATH + 16];
    store *s;
    snprintf(path, sizeof path, "%s/study.db", folder);
    berlu_status status = file_exists(path) ? store_open_read(&s, path) : BERLU_ERR_INPUT;
    if (status != BERLU_OK)
        return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
    status = entries_fill(runs, s, 0);
    store_close(s);
    TRY(status);
    return teacher_recall(runs);
}
