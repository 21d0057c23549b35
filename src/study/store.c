/* store.c - writing the index of a study. SPDX-License-Identifier: MIT
 *
 * Every public function is one transaction. SQL stands beside the values it binds; nothing is put together from texts.
 * Read on: store_read.c for the way back. */
#include "study/store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "io/csv.h"
#include "study/store_internal.h"

static const char schema[] =
    "CREATE TABLE study(name TEXT PRIMARY KEY, yaml TEXT, sha256 TEXT, registered TEXT);"
    "CREATE TABLE contrast(study TEXT, name TEXT, a TEXT, b TEXT, expect TEXT, paper REAL, registered TEXT,"
    " current INTEGER, PRIMARY KEY(study, name, a, b));"
    "CREATE TABLE cell(study TEXT, label TEXT, settings TEXT, place INTEGER, PRIMARY KEY(study, label));"
    "CREATE TABLE run(key TEXT PRIMARY KEY, settings TEXT, seed INTEGER, state TEXT, attempts INTEGER, host TEXT,"
    " device TEXT, version TEXT, \"commit\" TEXT, data TEXT, seconds REAL, error TEXT, began TEXT);"
    "CREATE TABLE member(study TEXT, cell TEXT, run TEXT, seed INTEGER, PRIMARY KEY(study, cell, run));"
    "CREATE TABLE epoch(run TEXT, epoch INTEGER, step INTEGER, lr REAL, train_loss REAL, train_top1 REAL, test_loss "
    "REAL,"
    " test_top1 REAL, test_top5 REAL, grad_norm REAL, PRIMARY KEY(run, epoch)) WITHOUT ROWID;"
    "CREATE TABLE final(run TEXT PRIMARY KEY, top1 REAL, top5 REAL, loss REAL, best_top1 REAL, train_loss REAL,"
    " images_per_s REAL, peak_bytes INTEGER, correct BLOB, metrics BLOB, metrics_bytes INTEGER);"
    "CREATE TABLE event(time TEXT, run TEXT, what TEXT);";

berlu_status store_fail(const store *s, const char *what)
{
    int full = sqlite3_errcode(s->db) == SQLITE_FULL || sqlite3_errcode(s->db) == SQLITE_IOERR;
    return berlu_fail(full ? BERLU_ERR_IO : BERLU_ERR_INPUT, "%s: %s: %s", s->path, what, sqlite3_errmsg(s->db));
}

berlu_status store_exec(store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? BERLU_OK : store_fail(s, "writing");
}

berlu_status store_prepare(store *s, sqlite3_stmt **out, const char *sql)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK ? BERLU_OK : store_fail(s, "preparing");
}

void store_bind_text(sqlite3_stmt *q, int at, const char *value)
{
    if (value)
        sqlite3_bind_text(q, at, value, -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(q, at);
}

static void bind_real(sqlite3_stmt *q, int at, double value) /* a NaN is NULL: not known */
{
    if (isnan(value))
        sqlite3_bind_null(q, at);
    else
        sqlite3_bind_double(q, at, value);
}

static berlu_status step_done(store *s, sqlite3_stmt *q)
{
    int rc = sqlite3_step(q);
    sqlite3_finalize(q);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? BERLU_OK : store_fail(s, "writing");
}

static berlu_status commit(store *s, berlu_status status)
{
    if (status == BERLU_OK)
        status = store_exec(s, "COMMIT");
    if (status != BERLU_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- opening ---- */

/* File systems of other machines: there a reader's shared memory is not the writer's. */
static int is_remote(const char *folder)
{
    static const long remote[] = {0x6969 /* NFS */, 0xff534d42 /* CIFS */,   0xfe534d42 /* SMB2 */,
                                  0x517b /* SMB */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
                                  0x65735546 /* FUSE */};
    struct statfs info;
    if (statfs(folder, &info) != 0)
        return 0;
    for (size_t i = 0; i < COUNT(remote); i++)
        if ((uint32_t)info.f_type == (uint32_t)remote[i])
            return 1;
    return 0;
}

static berlu_status database_open(store **out, const char *path, int flags)
{
    store *s = calloc(1, sizeof *s);
    if (!s || snprintf(s->path, sizeof s->path, "%s", path) >= (int)sizeof s->path) {
        free(s);
        return berlu_fail_memory(sizeof *s, "a store");
    }
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        berlu_status status = store_fail(s, "opening");
        sqlite3_close(s->db);
        free(s);
        return status;
    }
    sqlite3_busy_timeout(s->db, 10000);
    *out = s;
    return BERLU_OK;
}

static int pragma_int(store *s, const char *sql)
{
    sqlite3_stmt *q;
    int value = -1;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        value = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return value;
}

static int is_ours(store *s)
{
    return pragma_int(s, "PRAGMA application_id") == STORE_APPLICATION &&
           pragma_int(s, "PRAGMA user_version") == STORE_VERSION && pragma_int(s, "SELECT count(*) FROM run") >= 0;
}

static berlu_status schema_make(store *s)
{
    char sql[96];
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION, STORE_VERSION);
    berlu_status status = store_exec(s, sql);
    return status == BERLU_OK ? store_exec(s, schema) : status;
}

static berlu_status set_aside(const char *path, text *notes)
{
    char aside[STUDY_PATH + 16];
    snprintf(aside, sizeof aside, "%s.old", path);
    for (int n = 2; file_exists(aside) && n < 1000; n++) /* runs whose folders are gone may stand in it */
        snprintf(aside, sizeof aside, "%s.old-%d", path, n);
    text_add(notes, "%s is no store of this program, or damaged: set aside as %s and made anew\n", path, aside);
    return path_rename(path, aside);
}

berlu_status store_open(store **out, const char *folder, text *notes)
{
    char path[STUDY_PATH];
    if (snprintf(path, sizeof path, "%s/study.db", folder) >= (int)sizeof path)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    berlu_status status = folder_make(folder);
    int there = file_exists(path), flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    store *s = NULL;
    if (status == BERLU_OK)
        status = database_open(&s, path, flags);
    if (status == BERLU_OK && there && !is_ours(s)) {
        store_close(s);
        s = NULL;
        there = 0;
        status = set_aside(path, notes);
        if (status == BERLU_OK)
            status = database_open(&s, path, flags);
    }
    if (status != BERLU_OK)
        return status;
    int remote = is_remote(folder);
    if (remote)
        text_add(notes, "%s lies on a network file system: no write-ahead log there\n", path);
    status = store_exec(s, remote ? "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL"
                                  : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    if (status == BERLU_OK && !there)
        status = schema_make(s);
    if (status != BERLU_OK) {
        store_close(s);
        return status;
    }
    s->writes = 1;
    *out = s;
    return BERLU_OK;
}

berlu_status store_open_read(store **out, const char *path)
{
    if (!file_exists(path))
        return berlu_fail(BERLU_ERR_INPUT, "%s: there is no such store", path);
    berlu_status status = database_open(out, path, SQLITE_OPEN_READONLY);
    if (status == BERLU_OK && !is_ours(*out)) {
        store_close(*out);
        return berlu_fail(BERLU_ERR_INPUT, "%s: not a store of berlu studies, or of another version", path);
    }
    return status;
}

berlu_status store_close(store *s)
{
    if (!s)
        return BERLU_OK;
    berlu_status status = BERLU_OK;
    if (s->writes) /* so that the one file is all */
        status = store_exec(s, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
    sqlite3_close(s->db);
    free(s);
    return status;
}

/* ---- studies ---- */

static const char *now_text(char out[32])
{
    time_t now = (time_t)clock_wall_seconds();
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

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
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, from->cells[c].label);
    store_bind_text(q, 3, settings.data);
    sqlite3_bind_int64(q, 4, (int64_t)c);
    status = step_done(s, q);
    text_free(&settings);
    return status;
}

/* A contrast that is new gets the time; one that is known keeps its own. */
static berlu_status pair_put(store *s, const study *from, const study_pair *pair, const char *now)
{
    sqlite3_stmt *q;
    berlu_status status =
        store_prepare(s, &q,
                      "INSERT INTO contrast VALUES(?,?,?,?,?,?,?,1) ON CONFLICT DO UPDATE SET current=1,"
                      " expect=excluded.expect, paper=excluded.paper");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, from->name);
    const study_contrast *c = &from->contrasts[pair->contrast];
    store_bind_text(q, 2, pair->name);
    store_bind_text(q, 3, from->cells[pair->a].label);
    store_bind_text(q, 4, from->cells[pair->b].label);
    store_bind_text(q, 5, c->expect < 0 ? "less" : c->expect > 0 ? "greater" : "");
    bind_real(q, 6, c->paper);
    store_bind_text(q, 7, now);
    return step_done(s, q);
}

static berlu_status member_put(store *s, const study *from, const study_entry *run)
{
    sqlite3_stmt *q;
    berlu_status status = store_prepare(s, &q, "INSERT OR REPLACE INTO member VALUES(?,?,?,?)");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, from->cells[run->cell].label);
    store_bind_text(q, 3, run->key);
    sqlite3_bind_int64(q, 4, run->seed);
    return step_done(s, q);
}

static berlu_status study_row_put(store *s, const study *from, const char *yaml, const char *now)
{
    sqlite3_stmt *q;
    sha256 hash;
    char digits[SHA256_TEXT];
    sha256_start(&hash);
    sha256_add(&hash, yaml, strlen(yaml));
    berlu_status status = store_prepare(s, &q,
                                        "INSERT INTO study VALUES(?,?,?,?) ON CONFLICT DO UPDATE SET"
                                        " registered = CASE WHEN sha256 = excluded.sha256 THEN registered"
                                        " ELSE excluded.registered END, yaml=excluded.yaml, sha256=excluded.sha256");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, from->name);
    store_bind_text(q, 2, yaml);
    store_bind_text(q, 3, sha256_finish(&hash, digits));
    store_bind_text(q, 4, now);
    return step_done(s, q);
}

static berlu_status old_clear(store *s, const char *name)
{
    static const char *const each[] = {"DELETE FROM cell WHERE study=?", "DELETE FROM member WHERE study=?",
                                       "UPDATE contrast SET current=0 WHERE study=?"};
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < COUNT(each) && status == BERLU_OK; i++) {
        sqlite3_stmt *q;
        status = store_prepare(s, &q, each[i]);
        if (status == BERLU_OK) {
            store_bind_text(q, 1, name);
            status = step_done(s, q);
        }
    }
    return status;
}

berlu_status store_put_study(store *s, const study *from, const char *yaml, const study_entries *runs)
{
    char now[32];
    berlu_status status = store_exec(s, "BEGIN IMMEDIATE");
    if (status != BERLU_OK)
        return status;
    status = study_row_put(s, from, yaml, now_text(now));
    if (status == BERLU_OK)
        status = old_clear(s, from->name);
    for (size_t c = 0; c < from->cell_count && status == BERLU_OK; c++)
        status = cell_put(s, from, c);
    for (size_t c = 0; c < from->pair_count && status == BERLU_OK; c++)
        status = pair_put(s, from, &from->pairs[c], now);
    for (size_t r = 0; r < runs->count && status == BERLU_OK; r++)
        status = member_put(s, from, &runs->items[r]);
    return commit(s, status);
}

/* ---- runs ---- */

typedef struct run_files {
    char *json, *metrics, *correct;
    size_t json_bytes, metrics_bytes, correct_bytes;
} run_files;

static void files_free(run_files *f)
{
    free(f->json);
    free(f->metrics);
    free(f->correct);
}

static void file_take(char **out, size_t *bytes, const study_entry *run, const char *name)
{
    char path[STUDY_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", run->path, name);
    if (!file_exists(path) || file_read_all(out, bytes, path, 64 << 20) != BERLU_OK)
        *out = NULL, *bytes = 0;
}

static const char *json_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static berlu_status run_row_put(store *s, const study_entry *run, const run_files *f, const char *error)
{
    sqlite3_stmt *q;
    json_t *about = f->json ? json_loadb(f->json, f->json_bytes, 0, NULL) : NULL;
    const json_t *engine = json_object_get(about, "engine"), *data = json_object_get(about, "data");
    /* Where the data lay means nothing elsewhere and is no part of the key: its kind is recorded. */
    if (json_text(data, "kind"))
        json_object_set(json_object_get(about, "settings"), "data", json_object_get(data, "kind"));
    char *settings =
        about ? json_dumps(json_object_get(about, "settings"), JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    berlu_status status = store_prepare(s, &q, "INSERT OR REPLACE INTO run VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
    if (status == BERLU_OK) {
        store_bind_text(q, 1, run->key);
        store_bind_text(q, 2, settings);
        sqlite3_bind_int64(q, 3, run->seed);
        store_bind_text(q, 4, study_state_names[run->state]);
        sqlite3_bind_int64(q, 5, (int64_t)run->record.attempt);
        store_bind_text(q, 6, run->record.host);
        store_bind_text(q, 7, json_text(engine, "device"));
        store_bind_text(q, 8, json_text(about, "berlu"));
        store_bind_text(q, 9, json_text(about, "commit"));
        store_bind_text(q, 10, json_text(data, "hash"));
        bind_real(q, 11, run->seconds);
        store_bind_text(q, 12, error);
        store_bind_text(q, 13, json_text(about, "started"));
        status = step_done(s, q);
    }
    free(settings);
    json_decref(about);
    return status;
}

static berlu_status epochs_put(store *s, const study_entry *run, const run_files *f)
{
    static const char *const columns[] = {"epoch",     "step",      "lr",        "train_loss", "train_top1",
                                          "test_loss", "test_top1", "test_top5", "grad_norm"};
    csv_table t;
    sqlite3_stmt *q;
    if (!f->metrics || csv_parse(&t, f->metrics, f->metrics_bytes, "metrics.csv") != BERLU_OK)
        return BERLU_OK;
    berlu_status status = store_prepare(s, &q, "INSERT OR REPLACE INTO epoch VALUES(?,?,?,?,?,?,?,?,?,?)");
    for (size_t i = 0; i < t.rows && status == BERLU_OK; i++) {
        store_bind_text(q, 1, run->key);
        for (size_t c = 0; c < COUNT(columns); c++)
            bind_real(q, (int)c + 2, csv_number(&t, i, csv_column(&t, columns[c])));
        if (sqlite3_step(q) != SQLITE_DONE)
            status = store_fail(s, "writing");
        sqlite3_reset(q);
    }
    if (q)
        sqlite3_finalize(q);
    csv_free(&t);
    return status;
}

static berlu_status final_put(store *s, const study_entry *run, const run_files *f)
{
    sqlite3_stmt *q;
    uLongf packed = compressBound(f->metrics_bytes);
    Bytef *bytes = malloc(packed ? packed : 1);
    if (!bytes ||
        compress2(bytes, &packed, (const Bytef *)(f->metrics ? f->metrics : ""), f->metrics_bytes, 9) != Z_OK) {
        free(bytes);
        return berlu_fail_memory(f->metrics_bytes, "metrics.csv");
    }
    berlu_status status = store_prepare(s, &q, "INSERT OR REPLACE INTO final VALUES(?,?,?,?,?,?,?,?,?,?,?)");
    if (status == BERLU_OK) {
        store_bind_text(q, 1, run->key);
        bind_real(q, 2, run->last.test_top1);
        bind_real(q, 3, run->last.test_top5);
        bind_real(q, 4, run->last.test_loss);
        bind_real(q, 5, run->best_top1);
        bind_real(q, 6, run->last.train_loss);
        bind_real(q, 7, run->images_per_s);
        sqlite3_bind_int64(q, 8, (int64_t)run->peak_bytes);
        if (f->correct)
            sqlite3_bind_blob64(q, 9, f->correct, f->correct_bytes, SQLITE_STATIC);
        sqlite3_bind_blob64(q, 10, bytes, packed, SQLITE_STATIC);
        sqlite3_bind_int64(q, 11, (int64_t)f->metrics_bytes);
        status = step_done(s, q);
    }
    free(bytes);
    return status;
}

berlu_status store_put_run(store *s, const study_entry *run, const char *error)
{
    run_files f = {0};
    file_take(&f.json, &f.json_bytes, run, "run.json");
    if (run->state == STUDY_DONE || run->state == STUDY_FAILED) {
        file_take(&f.metrics, &f.metrics_bytes, run, "metrics.csv");
        file_take(&f.correct, &f.correct_bytes, run, "correct.bin");
    }
    berlu_status status = store_exec(s, "BEGIN IMMEDIATE");
    if (status == BERLU_OK) {
        status = run_row_put(s, run, &f, error);
        if (status == BERLU_OK)
            status = epochs_put(s, run, &f);
        if (status == BERLU_OK && run->state == STUDY_DONE)
            status = final_put(s, run, &f);
        status = commit(s, status);
    }
    files_free(&f);
    return status;
}

berlu_status store_event(store *s, const char *key, const char *what)
{
    char now[32];
    sqlite3_stmt *q;
    berlu_status status = store_prepare(s, &q, "INSERT INTO event VALUES(?,?,?)");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, now_text(now));
    store_bind_text(q, 2, key);
    store_bind_text(q, 3, what);
    return step_done(s, q);
}

/* ---- merging ---- */

/* Two results of one key: the numbers must be the same, else one of them is wrong and a report could not say which. */
static berlu_status conflicts_check(store *s, const char *path)
{
    sqlite3_stmt *q;
    berlu_status status = store_prepare(s, &q,
                                        "SELECT a.run FROM main.final a JOIN other.final b ON a.run = b.run"
                                        " WHERE a.top1 IS NOT b.top1 OR a.loss IS NOT b.loss LIMIT 1");
    if (status != BERLU_OK)
        return status;
    if (sqlite3_step(q) == SQLITE_ROW)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: run %s has another result here; neither is taken", path,
                            (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    return status;
}

berlu_status store_merge(store *into, const char *path, size_t *added)
{
    sqlite3_stmt *q;
    store *check;
    *added = 0;
    berlu_status status = store_open_read(&check, path);
    if (status != BERLU_OK)
        return status;
    store_close(check);
    status = store_prepare(into, &q, "ATTACH DATABASE ? AS other");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, path);
    status = step_done(into, q);
    if (status != BERLU_OK)
        return status;
    status = conflicts_check(into, path);
    if (status == BERLU_OK)
        status = store_exec(into, "BEGIN IMMEDIATE");
    if (status == BERLU_OK) {
        status = store_exec(
            into, "INSERT OR IGNORE INTO main.study SELECT * FROM other.study;"
                  "INSERT OR IGNORE INTO main.cell SELECT * FROM other.cell;"
                  "INSERT OR IGNORE INTO main.contrast SELECT * FROM other.contrast;"
                  "INSERT OR IGNORE INTO main.member SELECT * FROM other.member;"
                  "INSERT OR REPLACE INTO main.run SELECT * FROM other.run o WHERE o.state IN ('done','failed')"
                  " AND NOT EXISTS(SELECT 1 FROM main.run m WHERE m.key = o.key AND m.state IN ('done','failed'));");
        *added = (size_t)sqlite3_changes(into->db);
        if (status == BERLU_OK)
            status = store_exec(into, "INSERT OR IGNORE INTO main.epoch SELECT * FROM other.epoch;"
                                      "INSERT OR IGNORE INTO main.final SELECT * FROM other.final;"
                                      "INSERT INTO main.event SELECT * FROM other.event;");
        status = commit(into, status);
    }
    sqlite3_exec(into->db, "DETACH DATABASE other", NULL, NULL, NULL);
    return status;
}
