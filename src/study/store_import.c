/* store_import.c - the tables `imported` and `equivalence` of a store. SPDX-License-Identifier: MIT
 *
 * Importing a source again replaces its rows of these studies (source_clear), in one transaction.
 * The registered equivalences are written by store_study.c and read here. */
#include <math.h>
#include <string.h>

#include "study/import.h"
#include "study/store_internal.h"

static berlu_status source_clear(store *s, const import_row *r)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q, "DELETE FROM imported WHERE study=? AND source=?"));
    store_bind_text(q, 1, r->study);
    store_bind_text(q, 2, r->source);
    return store_step(s, q);
}

static berlu_status row_put(store *s, const import_row *r)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q, "INSERT INTO imported VALUES(?,?,?,?,?,?,?)"));
    store_bind_text(q, 1, r->study);
    store_bind_text(q, 2, r->source);
    store_bind_text(q, 3, r->cell);
    sqlite3_bind_int64(q, 4, r->seed);
    sqlite3_bind_int64(q, 5, r->n);
    store_bind_real(q, 6, r->mean);
    store_bind_real(q, 7, r->sd);
    return store_step(s, q);
}

berlu_status store_put_import(store *s, const import_rows *rows)
{
    berlu_status status = BERLU_OK;
    TRY(store_exec(s, "BEGIN IMMEDIATE"));
    for (size_t i = 0; i < rows->count; i++) { /* sorted: a source of a study is one range */
        const import_row *r = &rows->items[i];
        if (!i || strcmp(r->study, r[-1].study) != 0 || strcmp(r->source, r[-1].source) != 0)
            TRY_DONE(source_clear(s, r));
        TRY_DONE(row_put(s, r));
    }
done:
    return store_commit(s, status);
}

berlu_status store_read_import(store *s, import_rows *out)
{
    sqlite3_stmt *q = NULL;
    size_t most;
    int rc = SQLITE_DONE;
    *out = (import_rows){0};
    if (!store_has_table(s, "main", "imported"))
        return BERLU_OK;
    TRY(store_count(s, &most, "SELECT count(*) FROM imported", NULL, NULL));
    out->items = ARENA_ARRAY(&out->memory, import_row, most + 1);
    if (!out->items)
        return BERLU_ERR_MEMORY;
    berlu_status status = store_prepare(s, &q, "SELECT * FROM imported ORDER BY study, source, cell, seed");
    while (status == BERLU_OK && out->count < most && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        import_row *r = &out->items[out->count++];
        *r = (import_row){.study = store_text_at(&out->memory, q, 0),
                          .source = store_text_at(&out->memory, q, 1),
                          .cell = store_text_at(&out->memory, q, 2),
                          .seed = sqlite3_column_int64(q, 3),
                          .n = sqlite3_column_int64(q, 4),
                          .mean = store_real_at(q, 5),
                          .sd = store_real_at(q, 6)};
        if (!r->study || !r->source || !r->cell)
            status = BERLU_ERR_MEMORY;
    }
    berlu_status ended = store_read_end(s, q, rc);
    status = status == BERLU_OK ? ended : status;
    if (status != BERLU_OK)
        import_free(out);
    return status;
}

berlu_status store_read_equals(store *s, arena *memory, store_equal **out, size_t *count)
{
    sqlite3_stmt *q = NULL;
    size_t most;
    int rc = SQLITE_DONE;
    *out = NULL;
    *count = 0;
    if (!store_has_table(s, "main", "equivalence"))
        return BERLU_OK;
    TRY(store_count(s, &most, "SELECT count(*) FROM equivalence", NULL, NULL));
    *out = ARENA_ARRAY(memory, store_equal, most + 1);
    if (!*out)
        return BERLU_ERR_MEMORY;
    berlu_status status = store_prepare(s, &q, "SELECT * FROM equivalence ORDER BY rowid");
    while (status == BERLU_OK && *count < most && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        store_equal *e = &(*out)[(*count)++];
        *e = (store_equal){.study = store_text_at(memory, q, 0),
                           .source = store_text_at(memory, q, 1),
                           .name = store_text_at(memory, q, 2),
                           .a = store_text_at(memory, q, 3),
                           .b = store_text_at(memory, q, 4),
                           .margin = store_real_at(q, 5),
                           .registered = store_text_at(memory, q, 6),
                           .current = sqlite3_column_int(q, 7)};
        if (!e->study || !e->source || !e->name || !e->a || !e->b || !e->registered)
            status = BERLU_ERR_MEMORY;
    }
    berlu_status ended = store_read_end(s, q, rc);
    return status == BERLU_OK ? ended : status;
}
