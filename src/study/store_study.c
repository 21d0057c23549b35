/* store_study.c - a study, its cells, members and contrasts, as rows. SPDX-License-Identifier: MIT
 *
 * store_put_study() registers the file. Its cells and members are replaced; contrasts and
 * equivalences that it no longer has stay, marked as not current, and those it still has keep the
 * time of their first registration. */
#include <stdio.h>
#include <string.h>

#include "study/store_internal.h"

static void settings_join(text *out, const study_settings *v)
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
    settings_join(&settings, &from->cells[c].settings);
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

/* A new contrast is registered now; a known one retains its time. */
static berlu_status pair_put(store *s, const study *from, const study_pair *pair, const char *now)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q,
                      "INSERT INTO contrast VALUES(?,?,?,?,?,?,?,1) ON CONFLICT DO UPDATE SET current=1,"
                      " expect=excluded.expect, paper=excluded.paper"));
    store_bind_text(q, 1, from->name);
    const study_contrast *c = &from->contrasts[pair->contrast];
    store_bind_text(q, 2, pair->name);
    store_bind_text(q, 3, from->cells[pair->a].label);
    store_bind_text(q, 4, from->cells[pair->b].label);
    store_bind_text(q, 5, c->expect < 0 ? "less" : c->expect > 0 ? "greater" : "");
    store_bind_real(q, 6, c->paper);
    store_bind_text(q, 7, now);
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
