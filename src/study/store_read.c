/* store_read.c - reads the index of a study into structs, for reports. SPDX-License-Identifier: MIT
 *
 * store_read() takes the studies, and for each its cells with their runs and its contrasts; texts
 * and blobs are copied, so the store may be closed before they are used. metrics.csv stays packed
 * until store_metrics() is called. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "study/store_internal.h"

static const unsigned char *blob_at(arena *memory, sqlite3_stmt *q, int column, size_t *bytes)
{
    size_t size = (size_t)sqlite3_column_bytes(q, column);
    const void *blob = sqlite3_column_blob(q, column);
    unsigned char *copy = size && blob ? arena_alloc(memory, size, 1) : NULL;
    if (copy)
        memcpy(copy, blob, size);
    *bytes = copy ? size : 0;
    return copy;
}

/* Returns 0 without memory for its texts and blobs. */
static int result_fill(store_result *r, arena *memory, sqlite3_stmt *q)
{
    *r = (store_result){.key = store_text_at(memory, q, 0),
                        .state = store_text_at(memory, q, 1),
                        .error = store_text_at(memory, q, 2),
                        .seed = sqlite3_column_int64(q, 3),
                        .top1 = store_real_at(q, 4),
                        .top5 = store_real_at(q, 5),
                        .loss = store_real_at(q, 6),
                        .best_top1 = store_real_at(q, 7),
                        .train_loss = store_real_at(q, 8),
                        .images_per_s = store_real_at(q, 9),
                        .seconds = store_real_at(q, 10),
                        .device = store_text_at(memory, q, 12),
                        .version = store_text_at(memory, q, 13),
                        .commit = store_text_at(memory, q, 14),
                        .settings = store_text_at(memory, q, 15),
                        .host = store_text_at(memory, q, 16),
                        .data = store_text_at(memory, q, 17),
                        .began = store_text_at(memory, q, 20),
                        .metrics_bytes = (size_t)sqlite3_column_int64(q, 19)};
    r->correct = blob_at(memory, q, 11, &r->correct_bytes);
    r->metrics = blob_at(memory, q, 18, &r->metrics_packed);
    return (r->correct || !sqlite3_column_bytes(q, 11)) && (r->metrics || !sqlite3_column_bytes(q, 18));
}

static berlu_status epochs_read(store *s, store_result *r, arena *memory)
{
    sqlite3_stmt *q;
    size_t most;
    int rc = SQLITE_DONE;
    berlu_status status = store_count(s, &most, "SELECT count(*) FROM epoch WHERE run=?", r->key, NULL);
    if (status != BERLU_OK)
        return status;
    r->epochs = ARENA_ARRAY(memory, store_epoch, most + 1);
    if (!r->epochs)
        return BERLU_ERR_MEMORY;
    status =
        store_prepare(s, &q, "SELECT epoch, train_loss, test_loss, test_top1 FROM epoch WHERE run=? ORDER BY epoch");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, r->key);
    while (r->epoch_count < most && (rc = sqlite3_step(q)) == SQLITE_ROW)
        r->epochs[r->epoch_count++] =
            (store_epoch){store_real_at(q, 0), store_real_at(q, 1), store_real_at(q, 2), store_real_at(q, 3)};
    return store_read_end(s, q, rc);
}

/* A run whose first folder was lost has begun before its record says: events stay. */
#define FIRST_EVENTS "(SELECT run, min(time) AS first FROM event GROUP BY run)"
#define BEGAN        "min(coalesce(r.began, e.first), coalesce(e.first, r.began))"

static berlu_status runs_read(store *s, const char *name, store_cell *cell, arena *memory)
{
    static const char members[] = "SELECT count(*) FROM member WHERE study=? AND cell=?";
    static const char sql[] =
        "SELECT m.run, coalesce(r.state,'waiting'), r.error, m.seed, f.top1, f.top5, f.loss, f.best_top1, f.train_loss,"
        " f.images_per_s, r.seconds, f.correct, r.device, r.version, r.\"commit\", r.settings,"
        " r.host, r.data, f.metrics, f.metrics_bytes, " BEGAN
        " FROM member m LEFT JOIN run r ON r.key = m.run LEFT JOIN final f ON f.run = m.run"
        " LEFT JOIN " FIRST_EVENTS " e ON e.run = m.run"
        " WHERE m.study=? AND m.cell=? ORDER BY m.seed";
    sqlite3_stmt *q;
    size_t most;
    int rc = SQLITE_DONE;
    TRY(store_count(s, &most, members, name, cell->label));
    cell->runs = ARENA_ARRAY(memory, store_result, most + 1);
    if (!cell->runs)
        return BERLU_ERR_MEMORY;
    TRY(store_prepare(s, &q, sql));
    store_bind_text(q, 1, name);
    store_bind_text(q, 2, cell->label);
    berlu_status status = BERLU_OK;
    while (status == BERLU_OK && cell->count < most && (rc = sqlite3_step(q)) == SQLITE_ROW)
        if (!result_fill(&cell->runs[cell->count++], memory, q))
            status = berlu_fail_memory(0, "a run of a store");
    berlu_status ended = store_read_end(s, q, rc);
    TRY(status == BERLU_OK ? ended : status);
    for (size_t i = 0; i < cell->count; i++)
        TRY(epochs_read(s, &cell->runs[i], memory));
    return BERLU_OK;
}

static berlu_status cells_read(store *s, store_study *t, arena *memory)
{
    sqlite3_stmt *q;
    size_t most;
    int rc = SQLITE_DONE;
    TRY(store_count(s, &most, "SELECT count(*) FROM cell WHERE study=?", t->name, NULL));
    t->cells = ARENA_ARRAY(memory, store_cell, most + 1);
    if (!t->cells)
        return BERLU_ERR_MEMORY;
    TRY(store_prepare(s, &q, "SELECT label, settings FROM cell WHERE study=? ORDER BY place"));
    store_bind_text(q, 1, t->name);
    while (t->cell_count < most && (rc = sqlite3_step(q)) == SQLITE_ROW)
        t->cells[t->cell_count++] =
            (store_cell){.label = store_text_at(memory, q, 0), .settings = store_text_at(memory, q, 1)};
    TRY(store_read_end(s, q, rc));
    for (size_t c = 0; c < t->cell_count; c++)
        TRY(runs_read(s, t->name, &t->cells[c], memory));
    return BERLU_OK;
}

static size_t cell_index(const store_study *t, const char *label)
{
    for (size_t c = 0; c < t->cell_count; c++)
        if (label && t->cells[c].label && strcmp(t->cells[c].label, label) == 0)
            return c;
    return t->cell_count;
}

static stats_expected expected_of(const char *expect, double limit)
{
    static const struct {
        const char *word;
        stats_expects what;
    } words[] = {{"equal", STATS_WITHIN}, {"less", STATS_BELOW}, {"greater", STATS_ABOVE}};
    for (size_t i = 0; expect && isfinite(limit) && i < COUNT(words); i++)
        if (strcmp(words[i].word, expect) == 0)
            return (stats_expected){words[i].what, limit};
    return (stats_expected){0};
}

/* Returns 0 where one of its cells is gone, as with a contrast of an earlier file: there is nothing
 * to compare. */
static int contrast_fill(store_contrast *c, const store_study *t, arena *memory, sqlite3_stmt *q, int *failed)
{
    const char *labels[4], *expect = store_text_at(memory, q, 7);
    size_t cells[4];
    for (int i = 0; i < 4; i++) {
        labels[i] = store_text_at(memory, q, i < 2 ? 1 + i : 7 + i);
        cells[i] = cell_index(t, labels[i]);
        *failed |= !labels[i];
    }
    *failed |= !expect;
    if (*failed)
        return 0;
    *c = (store_contrast){.name = store_text_at(memory, q, 0),
                          .a = cells[0],
                          .b = cells[1],
                          .expect = store_text_at(memory, q, 3),
                          .paper = store_real_at(q, 4),
                          .current = sqlite3_column_int(q, 5),
                          .registered = store_text_at(memory, q, 6),
                          .expected = expected_of(expect, store_real_at(q, 8)),
                          .second = *labels[2] || *labels[3],
                          .minus_a = cells[2],
                          .minus_b = cells[3]};
    for (int i = 0; i < (c->second ? 4 : 2); i++)
        if (cells[i] == t->cell_count)
            return 0;
    return 1;
}

static berlu_status contrasts_read(store *s, store_study *t, arena *memory)
{
    static const char plain[] = "SELECT name, a, b, expect, paper, current, registered, '', NULL, '', ''"
                                " FROM contrast WHERE study=? ORDER BY rowid";
    static const char more[] = "SELECT c.name, c.a, c.b, c.expect, c.paper, c.current, c.registered, p.expect,"
                               " p.\"limit\", p.minus_a, p.minus_b FROM contrast c LEFT JOIN prediction p ON"
                               " p.study = c.study AND p.name = c.name AND p.a = c.a AND p.b = c.b"
                               " WHERE c.study=? ORDER BY c.rowid";
    sqlite3_stmt *q;
    size_t most;
    int rc = SQLITE_DONE, failed = 0;
    TRY(store_count(s, &most, "SELECT count(*) FROM contrast WHERE study=?", t->name, NULL));
    t->contrasts = ARENA_ARRAY(memory, store_contrast, most + 1);
    if (!t->contrasts)
        return BERLU_ERR_MEMORY;
    TRY(store_prepare(s, &q, store_has_table(s, "main", "prediction") ? more : plain));
    store_bind_text(q, 1, t->name);
    while (!failed && t->contrast_count < most && (rc = sqlite3_step(q)) == SQLITE_ROW)
        t->contrast_count += (size_t)contrast_fill(&t->contrasts[t->contrast_count], t, memory, q, &failed);
    berlu_status ended = store_read_end(s, q, rc);
    return failed ? berlu_fail_memory(0, "a contrast of a store") : ended;
}

static berlu_status first_run_read(store *s, store_study *t, arena *memory)
{
    sqlite3_stmt *q;
    t->first_run = "";
    berlu_status status = store_prepare(s, &q,
                                        "SELECT min(" BEGAN ") FROM member m LEFT JOIN run r ON r.key = m.run"
                                        " LEFT JOIN " FIRST_EVENTS " e ON e.run = m.run WHERE m.study=?");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, t->name);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        t->first_run = store_text_at(memory, q, 0);
    return store_read_end(s, q, rc);
}

/* Checks the copied texts at once: a NULL among them is an allocation that failed. */
static int texts_whole(const store_contents *c)
{
    int whole = 1;
    for (size_t i = 0; i < c->count; i++) {
        const store_study *t = &c->studies[i];
        whole &= t->name && t->yaml && t->sha256 && t->registered && t->first_run;
        for (size_t k = 0; k < t->contrast_count; k++)
            whole &= t->contrasts[k].name && t->contrasts[k].expect && t->contrasts[k].registered;
        for (size_t k = 0; k < t->cell_count; k++) {
            whole &= t->cells[k].label && t->cells[k].settings;
            for (size_t r = 0; r < t->cells[k].count; r++) {
                const store_result *x = &t->cells[k].runs[r];
                whole &= x->key && x->state && x->error && x->device && x->version && x->commit && x->settings &&
                         x->host && x->data && x->began;
            }
        }
    }
    return whole;
}

berlu_status store_read(store *s, store_contents *out)
{
    sqlite3_stmt *q;
    size_t most = 0;
    int rc = SQLITE_DONE;
    *out = (store_contents){0};
    berlu_status status;
    TRY_DONE(store_count(s, &most, "SELECT count(*) FROM study", NULL, NULL));
    if (!(out->studies = ARENA_ARRAY(&out->memory, store_study, most + 1)))
        TRY_DONE(BERLU_ERR_MEMORY);
    TRY_DONE(store_prepare(s, &q, "SELECT name, yaml, sha256, registered FROM study ORDER BY rowid"));
    while (out->count < most && (rc = sqlite3_step(q)) == SQLITE_ROW)
        out->studies[out->count++] = (store_study){.name = store_text_at(&out->memory, q, 0),
                                                   .yaml = store_text_at(&out->memory, q, 1),
                                                   .sha256 = store_text_at(&out->memory, q, 2),
                                                   .registered = store_text_at(&out->memory, q, 3)};
    TRY_DONE(store_read_end(s, q, rc));
    for (size_t i = 0; i < out->count; i++) {
        store_study *t = &out->studies[i];
        TRY_DONE(first_run_read(s, t, &out->memory));
        TRY_DONE(cells_read(s, t, &out->memory));
        TRY_DONE(contrasts_read(s, t, &out->memory));
    }
    TRY_DONE(store_read_landscapes(s, out));
    if (!texts_whole(out))
        status = berlu_fail_memory(0, "a store");
done:
    if (status != BERLU_OK)
        store_contents_free(out);
    return status;
}

void store_contents_free(store_contents *c)
{
    arena_free(&c->memory);
    *c = (store_contents){0};
}

berlu_status store_metrics(char **out, const store_result *r)
{
    enum { MOST = 64 << 20 }; /* what store_put_run() takes */
    *out = NULL;
    if (!r->metrics || !r->metrics_bytes || r->metrics_bytes > MOST)
        return BERLU_OK;
    uLongf bytes = r->metrics_bytes;
    char *content = malloc(bytes + 1);
    if (!content)
        return berlu_fail_memory(bytes, "metrics.csv");
    if (uncompress((Bytef *)content, &bytes, r->metrics, r->metrics_packed) != Z_OK) {
        free(content);
        return berlu_fail(BERLU_ERR_INPUT, "run %s: its metrics.csv in the store is damaged", r->key);
    }
    content[bytes] = 0;
    *out = content;
    return BERLU_OK;
}
