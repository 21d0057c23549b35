/* store_landscape.c - the table `landscape` of a store: how sharp the loss of a run is.
 * SPDX-License-Identifier: MIT
 *
 * The row comes from RUN/landscape.json, which `berlu analyze landscape --save` writes while the
 * weights exist. A damaged file is no reason to refuse the run's other results: it is left out. */
#include <stdio.h>

#include "study/store_internal.h"

berlu_status store_put_landscape(store *s, const study_entry *run)
{
    landscape_summary l;
    sqlite3_stmt *q;
    if (!run->landscape)
        return BERLU_OK;
    berlu_status status = landscape_load(&l, run->path);
    if (status != BERLU_OK)
        return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
    TRY(store_prepare(s, &q, "INSERT OR REPLACE INTO landscape VALUES(?,?,?,?,?,?,?)"));
    const double numbers[] = {l.loss, l.gradient, l.sharpness, l.eigenvalue, l.error};
    store_bind_text(q, 1, run->key);
    store_bind_text(q, 2, l.how);
    for (size_t i = 0; i < COUNT(numbers); i++)
        store_bind_real(q, (int)i + 3, numbers[i]);
    return store_step(s, q);
}

static berlu_status landscape_read(store *s, store_result *r, arena *memory)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q, "SELECT how, loss, gradient, sharpness, eigenvalue, error FROM landscape WHERE run=?"));
    store_bind_text(q, 1, r->key);
    int found = sqlite3_step(q) == SQLITE_ROW;
    landscape_summary *l = found ? ARENA_NEW(memory, landscape_summary) : NULL;
    if (l) {
        const char *how = (const char *)sqlite3_column_text(q, 0);
        *l = (landscape_summary){store_real_at(q, 1), store_real_at(q, 2), store_real_at(q, 3),
                                 store_real_at(q, 4), store_real_at(q, 5), ""};
        snprintf(l->how, sizeof l->how, "%s", how ? how : "");
        r->landscape = l;
    }
    sqlite3_finalize(q);
    return found && !l ? BERLU_ERR_MEMORY : BERLU_OK;
}

berlu_status store_read_landscapes(store *s, store_contents *c)
{
    if (!store_has_table(s, "main", "landscape")) /* a store of an earlier version */
        return BERLU_OK;
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->studies[i].cell_count; k++)
            for (size_t r = 0; r < c->studies[i].cells[k].count; r++)
                TRY(landscape_read(s, &c->studies[i].cells[k].runs[r], &c->memory));
    return BERLU_OK;
}
