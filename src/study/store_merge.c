/* store_merge.c - joining the finished runs of several stores, and slimming a store.
 * SPDX-License-Identifier: MIT
 *
 * store_merge() attaches the other database and copies the rows of keys that are missing here; two
 * results of one key must agree. store_slim() thins the metrics of long runs and keeps the hash of
 * the whole file, so that a run can still be verified. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/sha256.h"
#include "io/csv.h"
#include "study/store_internal.h"

/* Fails with the first name that a query finds; `message` has %s for the path and for the name. */
static berlu_status none_check(store *s, const char *path, const char *sql, const char *message)
{
    sqlite3_stmt *q;
    berlu_status status = BERLU_OK;
    TRY(store_prepare(s, &q, sql));
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        status = berlu_fail(BERLU_ERR_INPUT, message, path, (const char *)sqlite3_column_text(q, 0));
    berlu_status ended = store_read_end(s, q, rc);
    return status == BERLU_OK ? ended : status;
}

/* Two results of one key must have equal metrics; else one of them is wrong and a report could not
 * tell which. Runs of one cell and seed must be one run: made with other settings (--set, another
 * file) they would count as seeds of their own. Costs of a cell must be of the same settings. */
static berlu_status conflicts_check(store *s, const char *path)
{
    TRY(none_check(s, path,
                   "SELECT a.run FROM main.final a JOIN other.final b ON a.run = b.run"
                   " WHERE a.top1 IS NOT b.top1 OR a.loss IS NOT b.loss LIMIT 1",
                   "%s: run %s has another result here; neither is taken"));
    TRY(none_check(s, path,
                   "SELECT a.key FROM main.run a JOIN other.run b ON a.key = b.key WHERE a.state IS NOT b.state"
                   " AND a.state IN ('done','failed') AND b.state IN ('done','failed') LIMIT 1",
                   "%s: run %s failed in one store and has a result in the other; neither is taken"));
    TRY(none_check(s, path,
                   "SELECT o.cell || ', seed ' || o.seed || ' of ' || o.study FROM other.member o"
                   " JOIN other.run r ON r.key = o.run AND r.state IN ('done','failed')"
                   " JOIN main.member m ON m.study = o.study AND m.cell = o.cell AND m.seed = o.seed"
                   " GROUP BY o.study, o.cell, o.run HAVING sum(m.run = o.run) = 0 LIMIT 1",
                   "%s: %s was run with other settings than are registered here (--set, or another file); nothing is "
                   "taken, keep it in a folder of its own"));
    if (!store_has_table(s, "other", "cost"))
        return BERLU_OK;
    return none_check(s, path,
                      "SELECT a.label FROM main.cell a JOIN other.cell b ON a.study = b.study AND a.label = b.label"
                      " WHERE a.settings IS NOT b.settings"
                      " AND EXISTS(SELECT 1 FROM main.cost c WHERE c.study = a.study AND c.cell = a.label)"
                      " AND EXISTS(SELECT 1 FROM other.cost c WHERE c.study = a.study AND c.cell = a.label) LIMIT 1",
                      "%s: the costs of %s were measured with other settings here; none is taken");
}

/* Tables that stores of earlier versions lack. */
static berlu_status additions_merge(store *into)
{
    static const char *const tables[] = {"hash", "cost", "imported", "equivalence", "landscape"};
    for (size_t i = 0; i < COUNT(tables); i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO main.%s SELECT * FROM other.%s", tables[i], tables[i]);
        if (store_has_table(into, "other", tables[i]))
            TRY(store_exec(into, sql));
    }
    return BERLU_OK;
}

#define SAME         "o.study = m.study AND o.name = m.name AND o.a = m.a AND o.b = m.b"
#define OF_MAIN      "SELECT expect, \"limit\", minus_a, minus_b FROM main.prediction o WHERE " SAME
#define OF_OTHER     "SELECT expect, \"limit\", minus_a, minus_b FROM other.prediction o WHERE " SAME
#define EARLIER(row) "UPDATE main." row " AS m SET registered = o.registered FROM other." row " AS o WHERE "

/* What both stores registered alike was registered when the first of them did, in whatever order
 * they are merged. Begun on two machines, a study has two times. */
static berlu_status registrations_merge(store *into)
{
    TRY(store_exec(into, EARLIER("study") "o.name = m.name AND o.sha256 = m.sha256 AND o.registered < m.registered"));
    if (store_has_table(into, "other", "equivalence"))
        TRY(store_exec(into, EARLIER("equivalence") SAME " AND o.source = m.source AND o.margin = m.margin"
                                                         " AND o.registered < m.registered"));
    if (!store_has_table(into, "other", "prediction"))
        return BERLU_OK;
    return store_exec(into, EARLIER("contrast") SAME " AND o.registered < m.registered"
                                                     " AND NOT EXISTS(" OF_MAIN " EXCEPT " OF_OTHER ")"
                                                     " AND NOT EXISTS(" OF_OTHER " EXCEPT " OF_MAIN ")");
}

/* Before the contrasts: a contrast that this store has keeps what it predicts here. */
static berlu_status predictions_merge(store *into)
{
    if (!store_has_table(into, "other", "prediction"))
        return BERLU_OK;
    return store_exec(into, "INSERT OR IGNORE INTO main.prediction SELECT * FROM other.prediction o WHERE NOT EXISTS("
                            "SELECT 1 FROM main.contrast m WHERE m.study = o.study AND m.name = o.name AND m.a = o.a"
                            " AND m.b = o.b)");
}

/* Within a transaction: all rows that the other store has and this one lacks. */
static berlu_status rows_merge(store *into, size_t *added)
{
    TRY(registrations_merge(into));
    TRY(predictions_merge(into));
    TRY(store_exec(into,
                   "INSERT OR IGNORE INTO main.study SELECT * FROM other.study;"
                   "INSERT OR IGNORE INTO main.cell SELECT * FROM other.cell;"
                   "INSERT OR IGNORE INTO main.contrast SELECT * FROM other.contrast;"
                   "INSERT OR IGNORE INTO main.member SELECT * FROM other.member o WHERE NOT EXISTS(SELECT 1"
                   " FROM main.member m WHERE m.study = o.study AND m.cell = o.cell AND m.seed = o.seed"
                   " AND m.run <> o.run);"
                   "INSERT OR REPLACE INTO main.run SELECT * FROM other.run o WHERE o.state IN ('done','failed')"
                   " AND NOT EXISTS(SELECT 1 FROM main.run m WHERE m.key = o.key AND m.state IN ('done','failed'));"));
    *added = (size_t)sqlite3_changes(into->db);
    TRY(store_exec(into, "INSERT OR IGNORE INTO main.epoch SELECT * FROM other.epoch;"
                         "INSERT OR IGNORE INTO main.final SELECT * FROM other.final;"
                         "INSERT INTO main.event SELECT * FROM other.event EXCEPT SELECT * FROM main.event;"));
    return additions_merge(into);
}

berlu_status store_merge(store *into, const char *path, size_t *added)
{
    sqlite3_stmt *q;
    store *check;
    *added = 0;
    TRY(store_open_read(&check, path));
    /* Once attached, an error could be that of either file. */
    berlu_status status =
        none_check(check, path, "SELECT quick_check FROM pragma_quick_check(1) WHERE quick_check <> 'ok'",
                   "%s: damaged, so nothing of it is taken");
    store_close(check);
    TRY(status);
    if (sqlite3_db_filename(into->db, "other")) /* an earlier merge lacked the memory to detach it */
        TRY(store_exec(into, "DETACH DATABASE other"));
    TRY(store_prepare(into, &q, "ATTACH DATABASE ? AS other"));
    store_bind_text(q, 1, path);
    TRY(store_step(into, q));
    TRY_DONE(conflicts_check(into, path));
    TRY_DONE(store_exec(into, "BEGIN IMMEDIATE"));
    status = store_commit(into, rows_merge(into, added));
done:
    sqlite3_exec(into->db, "DETACH DATABASE other", NULL, NULL, NULL);
    return status;
}

/* ---- slim ------------------------------------------------------------------------------------ */

enum { METRICS_BYTES = 64 << 20 };

typedef struct packed_metrics {
    char key[STUDY_KEY];
    char *bytes; /* metrics.csv, NUL-terminated */
    size_t count;
} packed_metrics;

static berlu_status metrics_inflate(packed_metrics *out, sqlite3_stmt *q)
{
    uLongf count = (uLongf)sqlite3_column_int64(q, 2);
    const char *key = (const char *)sqlite3_column_text(q, 0);
    if (!key || strlen(key) != STUDY_KEY - 1 || count > METRICS_BYTES)
        return berlu_fail(BERLU_ERR_INPUT, "run %.64s: metrics of %lu bytes are damaged", key ? key : "?", count);
    snprintf(out->key, sizeof out->key, "%s", key);
    out->bytes = malloc(count + 1);
    if (!out->bytes)
        return berlu_fail_memory(count, "metrics.csv");
    out->count = count;
    if (uncompress((Bytef *)out->bytes, &count, sqlite3_column_blob(q, 1), (uLong)sqlite3_column_bytes(q, 1)) != Z_OK ||
        count != out->count)
        return berlu_fail(BERLU_ERR_INPUT, "run %s: its metrics are damaged", out->key);
    out->bytes[count] = 0;
    return BERLU_OK;
}

static void row_thin(text *out, const csv_table *t, size_t row)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *cell = csv_cell(t, row, (int)c);
        char digits[32];
        double value;
        if (strchr(t->names[c], '.') && number_parse(cell, &value)) {
            snprintf(digits, sizeof digits, "%.6g", value);
            cell = digits;
        }
        csv_text(out, cell);
    }
    csv_end(out);
}

static berlu_status metrics_thin(text *out, const packed_metrics *m)
{
    csv_table t;
    berlu_status status = csv_parse(&t, m->bytes, m->count, "metrics.csv");
    if (status != BERLU_OK)
        return berlu_fail_in(status, m->key);
    int epoch = csv_column(&t, "epoch"), started = t.rows && csv_number(&t, 0, epoch) == 0; /* the row of start.csv */
    for (size_t c = 0; c < t.columns; c++)
        csv_text(out, t.names[c]);
    csv_end(out);
    for (size_t i = 0; i < t.rows; i++)
        if (i == 0 || (i == 1 && started) || i + 1 == t.rows ||
            (epoch >= 0 && (long long)csv_number(&t, i, epoch) % 10 == 0))
            row_thin(out, &t, i);
    csv_free(&t);
    return text_status(out);
}

/* Stores the hash of the whole file unless there is one. */
static berlu_status metrics_hash_store(store *s, const packed_metrics *m)
{
    sqlite3_stmt *q;
    sha256 hash;
    char digits[SHA256_TEXT];
    sha256_start(&hash);
    sha256_add(&hash, m->bytes, m->count);
    TRY(store_prepare(s, &q, "INSERT OR IGNORE INTO hash(run, metrics) VALUES(?,?)"));
    store_bind_text(q, 1, m->key);
    store_bind_text(q, 2, sha256_finish(&hash, digits));
    return store_step(s, q);
}

static berlu_status metrics_replace(store *s, const char *key, const text *thin)
{
    sqlite3_stmt *q;
    uLongf packed = compressBound(thin->length);
    Bytef *bytes = malloc(packed);
    if (!bytes || compress2(bytes, &packed, (const Bytef *)thin->data, thin->length, 9) != Z_OK) {
        free(bytes);
        return berlu_fail_memory(thin->length, "metrics.csv");
    }
    berlu_status status;
    TRY_DONE(store_prepare(s, &q, "UPDATE final SET metrics=?, metrics_bytes=? WHERE run=?"));
    sqlite3_bind_blob64(q, 1, bytes, packed, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, (int64_t)thin->length);
    store_bind_text(q, 3, key);
    status = store_step(s, q);
done:
    free(bytes);
    return status;
}

static berlu_status run_slim(store *s, sqlite3_stmt *q)
{
    packed_metrics m = {0};
    text thin = {0};
    berlu_status status;
    TRY_DONE(metrics_inflate(&m, q));
    if (!m.count)
        goto done;
    TRY_DONE(metrics_hash_store(s, &m));
    TRY_DONE(metrics_thin(&thin, &m));
    if (thin.length < m.count)
        status = metrics_replace(s, m.key, &thin);
done:
    free(m.bytes);
    text_free(&thin);
    return status;
}

berlu_status store_slim(store *s)
{
    sqlite3_stmt *q = NULL;
    int rc = SQLITE_DONE;
    TRY(store_exec(s, "BEGIN IMMEDIATE; CREATE TEMP TABLE thick AS SELECT run FROM final"));
    berlu_status status =
        store_prepare(s, &q, "SELECT t.run, f.metrics, f.metrics_bytes FROM thick t JOIN final f ON f.run = t.run");
    while (status == BERLU_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        status = run_slim(s, q);
    if (status == BERLU_OK && rc != SQLITE_DONE)
        status = store_fail(s, "reading");
    sqlite3_finalize(q);
    if (status == BERLU_OK)
        status = store_exec(s, "DROP TABLE thick");
    TRY(store_commit(s, status));
    return store_exec(s, "VACUUM");
}
