/* store_study.c - a study, its cells, members and contrasts, as rows. SPDX-License-Identifier: MIT
 *
 * store_put_study() registers the file. Its cells and members are replaced; contrasts and
 * equivalences that it no longer has stay, marked as not current, and those it still has keep the
 * time of their first registration, unless they predict something else now. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/store_internal.h"

void store_settings_text(text *out, const study_settings *v)
{
    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < v->items[i].count; k++)
            text_add(out, "%s=%s\n", v->items[i].key, v->items[i].values[k]);
}

static berlu_status cell_put(store *s, const study *from, size_t c)
{
    sqlite3_stmt *q;
    text settings = {0};
    berlu_status status = store_prepare(s, &q, "INSERT OR REPLACE INTO cell VALUES(?,?,?,?)");
    if (status != BERLU_OK)
        return status;
    store_settings_text(&settings, &from->cells[c].settings);
    if ((status = text_status(&settings)) != BERLU_OK) {
        sqlite3_finalize(q);
        text_free(&settings);
        return status;
    }
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, from->cells[c].label);
    store_bind_text(q, 3, settings.data);
    sqlite3_bind_int64(q, 4, (int64_t)c);
    status = store_step(s, q);
    text_free(&settings);
    return status;
}

static void pair_bind(sqlite3_stmt *q, const study *from, const study_pair *pair)
{
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, pair->name);
    store_bind_text(q, 3, from->cells[pair->a].label);
    store_bind_text(q, 4, from->cells[pair->b].label);
}

/* What a contrast predicts and subtracts, as the columns of its row have it. */
static void prediction_bind(sqlite3_stmt *q, const study *from, const study_pair *pair)
{
    const study_contrast *c = &from->contrasts[pair->contrast];
    pair_bind(q, from, pair);
    store_bind_text(q, 5, c->expected.what ? c->expect : "");
    store_bind_real(q, 6, c->expected.what ? c->expected.limit : NAN);
    store_bind_text(q, 7, pair->minus_a == STUDY_NO_CELL ? "" : from->cells[pair->minus_a].label);
    store_bind_text(q, 8, pair->minus_b == STUDY_NO_CELL ? "" : from->cells[pair->minus_b].label);
}

static int has_prediction(const study *from, const study_pair *pair)
{
    return from->contrasts[pair->contrast].expected.what || pair->minus_a != STUDY_NO_CELL;
}

/* Stores or removes the row; `same` tells whether it was there like this before. */
static berlu_status prediction_put(store *s, const study *from, const study_pair *pair, int *same)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q,
                      "SELECT count(*), coalesce(sum(expect = ?5 AND \"limit\" IS ?6 AND minus_a = ?7"
                      " AND minus_b = ?8), 0) FROM prediction WHERE study=?1 AND name=?2 AND a=?3 AND b=?4"));
    prediction_bind(q, from, pair);
    int rc = sqlite3_step(q), wanted = has_prediction(from, pair);
    *same = rc == SQLITE_ROW && (wanted ? sqlite3_column_int(q, 1) == 1 : sqlite3_column_int(q, 0) == 0);
    TRY(store_read_end(s, q, rc));
    if (*same)
        return BERLU_OK;
    if (wanted) {
        TRY(store_prepare(s, &q, "INSERT OR REPLACE INTO prediction VALUES(?,?,?,?,?,?,?,?)"));
        prediction_bind(q, from, pair);
    } else {
        TRY(store_prepare(s, &q, "DELETE FROM prediction WHERE study=? AND name=? AND a=? AND b=?"));
        pair_bind(q, from, pair);
    }
    return store_step(s, q);
}

/* A new contrast is registered now; a known one that predicts what it did retains its time. */
static berlu_status pair_put(store *s, const study *from, const study_pair *pair, const char *now)
{
    sqlite3_stmt *q;
    int same;
    const study_contrast *c = &from->contrasts[pair->contrast];
    TRY(prediction_put(s, from, pair, &same));
    TRY(store_prepare(s, &q,
                      "INSERT INTO contrast VALUES(?,?,?,?,?,?,?,1) ON CONFLICT DO UPDATE SET current=1,"
                      " expect=excluded.expect, paper=excluded.paper,"
                      " registered = CASE WHEN ?8 THEN registered ELSE excluded.registered END"));
    pair_bind(q, from, pair);
    store_bind_text(q, 5, c->expect);
    store_bind_real(q, 6, c->paper);
    store_bind_text(q, 7, now);
    sqlite3_bind_int(q, 8, same);
    return store_step(s, q);
}

/* The same for equivalences to another program; another margin is a new registration. */
static berlu_status equal_put(store *s, const study *from, const study_equal *e, const char *now)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q,
                      "INSERT INTO equivalence VALUES(?,?,?,?,?,?,?,1) ON CONFLICT DO UPDATE SET current=1,"
                      " registered = CASE WHEN margin = excluded.margin THEN registered ELSE excluded.registered END,"
                      " margin = excluded.margin"));
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, from->equivalence.source);
    store_bind_text(q, 3, e->name);
    store_bind_text(q, 4, from->cells[e->a].label);
    store_bind_text(q, 5, e->b == STUDY_NO_CELL ? "" : from->cells[e->b].label);
    store_bind_real(q, 6, e->margin);
    store_bind_text(q, 7, now);
    return store_step(s, q);
}

static berlu_status member_put(store *s, const study *from, const study_entry *run)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q, "INSERT OR REPLACE INTO member VALUES(?,?,?,?)"));
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, from->cells[run->cell].label);
    store_bind_text(q, 3, run->key);
    sqlite3_bind_int64(q, 4, run->seed);
    return store_step(s, q);
}

static berlu_status study_row_put(store *s, const study *from, const char *yaml, const char *now)
{
    sqlite3_stmt *q;
    sha256 hash;
    char digits[SHA256_TEXT];
    sha256_start(&hash);
    sha256_add(&hash, yaml, strlen(yaml));
    TRY(store_prepare(s, &q,
                      "INSERT INTO study VALUES(?,?,?,?) ON CONFLICT DO UPDATE SET"
                      " registered = CASE WHEN sha256 = excluded.sha256 THEN registered"
                      " ELSE excluded.registered END, yaml=excluded.yaml, sha256=excluded.sha256"));
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, yaml);
    store_bind_text(q, 3, sha256_finish(&hash, digits));
    store_bind_text(q, 4, now);
    return store_step(s, q);
}

static berlu_status old_clear(store *s, const char *name)
{
    static const char *const each[] = {"DELETE FROM cell WHERE study=?", "DELETE FROM member WHERE study=?",
                                       "UPDATE contrast SET current=0 WHERE study=?",
                                       "UPDATE equivalence SET current=0 WHERE study=?"};
    for (size_t i = 0; i < COUNT(each); i++) {
        sqlite3_stmt *q;
        TRY(store_prepare(s, &q, each[i]));
        store_bind_text(q, 1, name);
        TRY(store_step(s, q));
    }
    return BERLU_OK;
}

berlu_status store_put_study(store *s, const study *from, const char *yaml, const study_entries *runs)
{
    char now[32];
    TRY(store_exec(s, "BEGIN IMMEDIATE"));
    berlu_status status;
    TRY_DONE(study_row_put(s, from, yaml, store_now(now)));
    TRY_DONE(old_clear(s, from->name));
    for (size_t c = 0; c < from->cell_count; c++)
        TRY_DONE(cell_put(s, from, c));
    for (size_t c = 0; c < from->pair_count; c++)
        TRY_DONE(pair_put(s, from, &from->pairs[c], now));
    for (size_t c = 0; c < from->equal_count; c++)
        TRY_DONE(equal_put(s, from, &from->equals[c], now));
    for (size_t r = 0; r < runs->count; r++)
        TRY_DONE(member_put(s, from, &runs->items[r]));
done:
    return store_commit(s, status);
}

berlu_status store_count_lost(store *s, const study *from, const study_entries *runs, size_t *lost)
{
    sqlite3_stmt *q;
    int rc;
    *lost = 0;
    TRY(store_prepare(s, &q,
                      "SELECT DISTINCT m.run FROM member m JOIN run r ON r.key = m.run"
                      " WHERE m.study=? AND r.state IN ('done','failed')"));
    store_bind_text(q, 1, from->name);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(q, 0);
        size_t i = 0;
        while (i < runs->count && key && strcmp(runs->items[i].key, key) != 0)
            i++;
        *lost += i == runs->count;
    }
    return store_read_end(s, q, rc);
}
