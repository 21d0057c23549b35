/* store_cost.c - the table `cost` of a store. SPDX-License-Identifier: MIT
 *
 * A row is one measurement of one cell at one policy in one round. Rows name the machine, and a
 * store takes those of one machine only; a cell, known by its label, keeps the settings that it was
 * measured with. */
#include <math.h>
#include <string.h>

#include "study/cost.h"
#include "study/store_internal.h"

/* Refuses rows of another machine: a report would compare them as if they were from one. */
static berlu_status machine_check(store *s, const char *name, const char *machine)
{
    sqlite3_stmt *q;
    berlu_status status = store_prepare(s, &q, "SELECT machine FROM cost WHERE study=? AND machine IS NOT ? LIMIT 1");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, name);
    store_bind_text(q, 2, machine);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: %s was measured on '%s' and this is '%s'; give another --dir",
                            s->path, name, (const char *)sqlite3_column_text(q, 0), machine);
    else if (rc != SQLITE_DONE)
        status = store_fail(s, "reading");
    sqlite3_finalize(q);
    return status;
}

static berlu_status cell_check(store *s, const study *from, const study_cell *cell)
{
    sqlite3_stmt *q = NULL;
    text settings = {0};
    berlu_status status;
    store_settings_text(&settings, &cell->settings);
    TRY_DONE(text_status(&settings));
    TRY_DONE(store_prepare(s, &q,
                           "SELECT 1 FROM cell c WHERE study=?1 AND label=?2 AND settings IS NOT ?3 AND EXISTS"
                           "(SELECT 1 FROM cost WHERE study=?1 AND cell=?2)"));
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, cell->label);
    store_bind_text(q, 3, settings.data);
    int rc = sqlite3_step(q);
    status = store_read_end(s, q, rc);
    if (rc == SQLITE_ROW)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: %s was measured with other settings; give another --dir", s->path,
                            cell->label);
done:
    text_free(&settings);
    return status;
}

berlu_status store_check_cost(store *s, const study *from)
{
    for (size_t c = 0; c < from->cell_count; c++)
        TRY(cell_check(s, from, &from->cells[c]));
    return BERLU_OK;
}

static berlu_status row_put(store *s, const char *name, const cost_row *r)
{
    sqlite3_stmt *q;
    char now[32];
    TRY(store_prepare(s, &q, "INSERT OR REPLACE INTO cost VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    const char *const words[] = {name, r->machine, r->cell, r->keep};
    const double numbers[] = {r->forward_ms, r->backward_ms,   r->update_ms, r->images_per_s,
                              r->kept_bytes, r->planned_bytes, r->peak_bytes};
    for (size_t i = 0; i < COUNT(words); i++)
        store_bind_text(q, (int)i + 1, words[i]);
    sqlite3_bind_int(q, 5, r->again);
    sqlite3_bind_int(q, 6, r->round);
    for (size_t i = 0; i < COUNT(numbers); i++)
        store_bind_real(q, (int)i + 7, numbers[i]);
    store_bind_text(q, 14, store_now(now));
    return store_step(s, q);
}

berlu_status store_count_cost(store *s, size_t *out)
{
    *out = 0;
    if (!store_has_table(s, "main", "cost"))
        return BERLU_OK;
    return store_count(s, out, "SELECT count(*) FROM (SELECT DISTINCT study, machine, cell, again, round FROM cost)",
                       NULL, NULL);
}

berlu_status store_put_cost(store *s, const char *name, const cost_row *rows, size_t count)
{
    berlu_status status = BERLU_OK;
    TRY(store_exec(s, "BEGIN IMMEDIATE"));
    for (size_t i = 0; i < count; i++) {
        TRY_DONE(machine_check(s, name, rows[i].machine));
        TRY_DONE(row_put(s, name, &rows[i]));
    }
done:
    return store_commit(s, status);
}

static int row_take(store_cost *out, arena *memory, sqlite3_stmt *q)
{
    *out = (store_cost){.study = store_text_at(memory, q, 0),
                        .row = {.machine = store_text_at(memory, q, 1),
                                .cell = store_text_at(memory, q, 2),
                                .keep = store_text_at(memory, q, 3),
                                .again = sqlite3_column_int(q, 4),
                                .round = sqlite3_column_int(q, 5),
                                .forward_ms = store_real_at(q, 6),
                                .backward_ms = store_real_at(q, 7),
                                .update_ms = store_real_at(q, 8),
                                .images_per_s = store_real_at(q, 9),
                                .kept_bytes = store_real_at(q, 10),
                                .planned_bytes = store_real_at(q, 11),
                                .peak_bytes = store_real_at(q, 12)}};
    return out->study && out->row.machine && out->row.cell && out->row.keep;
}

berlu_status store_read_cost(store *s, arena *memory, store_cost **out, size_t *count)
{
    sqlite3_stmt *q;
    size_t most;
    int rc = SQLITE_DONE;
    *out = NULL;
    *count = 0;
    if (!store_has_table(s, "main", "cost"))
        return BERLU_OK;
    TRY(store_count(s, &most, "SELECT count(*) FROM cost", NULL, NULL));
    *out = ARENA_ARRAY(memory, store_cost, most + 1);
    if (!*out)
        return BERLU_ERR_MEMORY;
    TRY(store_prepare(s, &q,
                      "SELECT c.* FROM cost c LEFT JOIN cell x ON x.study = c.study AND x.label = c.cell"
                      " ORDER BY c.study, c.machine, x.place, c.cell, c.again, c.keep, c.round"));
    berlu_status status = BERLU_OK;
    while (*count < most && status == BERLU_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        if (!row_take(&(*out)[(*count)++], memory, q))
            status = BERLU_ERR_MEMORY;
    berlu_status ended = store_read_end(s, q, rc);
    return status == BERLU_OK ? ended : status;
}
