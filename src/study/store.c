/* store.c - opening and closing the index of a study. SPDX-License-Identifier: MIT
 *
 * Every public function of the store is one transaction. SQL is next to the values it binds; none
 * is built by joining strings. Read on: store_study.c and store_run.c write, store_merge.c joins
 * stores, store_read.c reads for reports. */
#include "study/store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/file_in.h"
#include "study/store_internal.h"

/* Tables added later. A store without them is valid; opening it for writing adds them. */
static const char additions[] =
    "CREATE TABLE IF NOT EXISTS hash(run TEXT PRIMARY KEY, weights TEXT, metrics TEXT, correct TEXT);"
    "CREATE TABLE IF NOT EXISTS cost(study TEXT, machine TEXT, cell TEXT, keep TEXT, again INTEGER, round INTEGER,"
    " forward_ms REAL, backward_ms REAL, update_ms REAL, images_per_s REAL, kept_bytes REAL, planned_bytes REAL,"
    " peak_bytes REAL, time TEXT, PRIMARY KEY(study, machine, cell, keep, again, round));"
    "CREATE TABLE IF NOT EXISTS imported(study TEXT, source TEXT, cell TEXT, seed INTEGER, n INTEGER, mean REAL,"
    " sd REAL, PRIMARY KEY(study, source, cell, seed));"
    "CREATE TABLE IF NOT EXISTS equivalence(study TEXT, source TEXT, name TEXT, a TEXT, b TEXT, margin REAL,"
    " registered TEXT, current INTEGER, PRIMARY KEY(study, source, name));"
    "CREATE TABLE IF NOT EXISTS landscape(run TEXT PRIMARY KEY, how TEXT, loss REAL, gradient REAL, sharpness REAL,"
    " eigenvalue REAL, error REAL);"
    "CREATE TABLE IF NOT EXISTS prediction(study TEXT, name TEXT, a TEXT, b TEXT, expect TEXT, \"limit\" REAL,"
    " minus_a TEXT, minus_b TEXT, PRIMARY KEY(study, name, a, b));";

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
    int code = sqlite3_errcode(s->db) & 0xff;
    berlu_status status = code == SQLITE_NOMEM                          ? BERLU_ERR_MEMORY
                          : code == SQLITE_FULL || code == SQLITE_IOERR ? BERLU_ERR_IO
                                                                        : BERLU_ERR_INPUT;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return berlu_fail(BERLU_ERR_BUSY, "%s: %s: another process is at work in this store; try again later", s->path,
                          what);
    return berlu_fail(status, "%s: %s: %s", s->path, what, sqlite3_errmsg(s->db));
}

berlu_status store_exec(store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? BERLU_OK : store_fail(s, "writing");
}

berlu_status store_prepare(store *s, sqlite3_stmt **out, const char *sql)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK ? BERLU_OK : store_fail(s, "preparing");
}

/* Not copied: a copy without memory would bind NULL and be written as such. */
void store_bind_text(sqlite3_stmt *q, int at, const char *value)
{
    if (value)
        sqlite3_bind_text(q, at, value, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(q, at);
}

void store_bind_real(sqlite3_stmt *q, int at, double value) /* NaN is stored as NULL: unknown */
{
    if (isnan(value))
        sqlite3_bind_null(q, at);
    else
        sqlite3_bind_double(q, at, value);
}

const char *store_text_at(arena *memory, sqlite3_stmt *q, int column)
{
    int absent = sqlite3_column_type(q, column) == SQLITE_NULL;
    const char *value = (const char *)sqlite3_column_text(q, column);
    return absent ? "" : value ? arena_strdup(memory, value) : NULL;
}

double store_real_at(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL ? NAN : sqlite3_column_double(q, column);
}

berlu_status store_step(store *s, sqlite3_stmt *q)
{
    int rc = sqlite3_step(q);
    sqlite3_finalize(q);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? BERLU_OK : store_fail(s, "writing");
}

berlu_status store_read_end(store *s, sqlite3_stmt *q, int rc)
{
    berlu_status status = rc == SQLITE_DONE || rc == SQLITE_ROW ? BERLU_OK : store_fail(s, "reading");
    sqlite3_finalize(q);
    return status;
}

berlu_status store_count(store *s, size_t *out, const char *sql, const char *first, const char *second)
{
    sqlite3_stmt *q;
    *out = 0;
    berlu_status status = store_prepare(s, &q, sql);
    if (status != BERLU_OK)
        return status;
    if (first)
        store_bind_text(q, 1, first);
    if (second)
        store_bind_text(q, 2, second);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        *out = (size_t)sqlite3_column_int64(q, 0);
    return store_read_end(s, q, rc);
}

berlu_status store_commit(store *s, berlu_status status)
{
    if (status == BERLU_OK)
        status = store_exec(s, "COMMIT");
    if (status != BERLU_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Network file systems, where readers and the writer share no memory. */
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
    if (!s)
        return berlu_fail_memory(sizeof *s, "a store");
    if (snprintf(s->path, sizeof s->path, "%s", path) >= (int)sizeof s->path) {
        free(s);
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", path);
    }
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        berlu_status status = store_fail(s, "opening");
        sqlite3_close(s->db);
        free(s);
        return status;
    }
    sqlite3_busy_timeout(s->db, 10000);
    sqlite3_exec(s->db, "PRAGMA trusted_schema = OFF", NULL, NULL, NULL); /* a foreign file may hold anything */
    *out = s;
    return BERLU_OK;
}

int store_has_table(store *s, const char *schema_name, const char *name)
{
    sqlite3_stmt *q;
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT 1 FROM %s.sqlite_master WHERE type = 'table' AND name = ?", schema_name);
    int found = -1;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK) {
        store_bind_text(q, 1, name);
        int rc = sqlite3_step(q);
        found = rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -1;
    }
    sqlite3_finalize(q);
    return found;
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

/* Tables, not views of these names: a view could be an endless query. */
static int is_ours(store *s)
{
    static const char *const tables[] = {"study", "contrast", "cell", "run", "member", "epoch", "final", "event"};
    if (pragma_int(s, "PRAGMA application_id") != STORE_APPLICATION ||
        pragma_int(s, "PRAGMA user_version") != STORE_VERSION)
        return 0;
    for (size_t i = 0; i < COUNT(tables); i++)
        if (store_has_table(s, "main", tables[i]) != 1)
            return 0;
    return pragma_int(s, "SELECT count(*) FROM run") >= 0;
}

/* Whether SQLite's last answer is one, and not want of memory, of a disk or of a lock. */
static int is_answered(const store *s)
{
    static const int answers[] = {SQLITE_OK, SQLITE_ROW, SQLITE_DONE, SQLITE_ERROR, SQLITE_NOTADB, SQLITE_CORRUPT};
    int code = sqlite3_errcode(s->db) & 0xff;
    for (size_t i = 0; i < COUNT(answers); i++)
        if (code == answers[i])
            return 1;
    return 0;
}

/* Tells a file that is no store of ours (BERLU_ERR_INPUT) from one of a newer program and from a
 * question that could not be asked: neither of these is set aside. */
static berlu_status ours_check(store *s)
{
    if (is_ours(s))
        return BERLU_OK;
    if (is_answered(s)) {
        int newer = pragma_int(s, "PRAGMA application_id") == STORE_APPLICATION &&
                    pragma_int(s, "PRAGMA user_version") > STORE_VERSION;
        if (newer)
            return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: a store of a newer berlu; this one reads format %d", s->path,
                              STORE_VERSION);
        if (is_answered(s))
            return berlu_fail(BERLU_ERR_INPUT, "%s: not a store of berlu studies, or of another version", s->path);
    }
    berlu_status status = store_fail(s, "reading");
    return status == BERLU_ERR_INPUT ? berlu_fail(BERLU_ERR_IO, "%s: reading: %s", s->path, sqlite3_errmsg(s->db))
                                     : status;
}

/* A file that a process has just made, or was killed making: nobody's, and nothing to keep. */
static int is_empty(store *s)
{
    return pragma_int(s, "SELECT count(*) FROM sqlite_master") == 0;
}

/* In one transaction, so that of several processes the first makes the tables. */
static berlu_status schema_make(store *s)
{
    char sql[96];
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION, STORE_VERSION);
    TRY(store_exec(s, "BEGIN IMMEDIATE"));
    berlu_status status = BERLU_OK;
    if (is_empty(s)) {
        TRY_DONE(store_exec(s, sql));
        TRY_DONE(store_exec(s, schema));
    }
done:
    return store_commit(s, status);
}

static berlu_status set_aside(const char *path, text *notes)
{
    char aside[STUDY_PATH + 16];
    snprintf(aside, sizeof aside, "%s.old", path);
    for (int n = 2; file_exists(aside) && n < 1000; n++) /* it may hold runs whose folders are gone */
        snprintf(aside, sizeof aside, "%s.old-%d", path, n);
    text_add(notes, "%s is no store of this program, or damaged: set aside as %s and made anew\n", path, aside);
    return path_rename(path, aside);
}

berlu_status store_open(store **out, const char *folder, text *notes)
{
    char path[STUDY_PATH];
    if (snprintf(path, sizeof path, "%s/study.db", folder) >= (int)sizeof path)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    TRY(folder_make(folder));
    int there = file_exists(path), flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    store *s = NULL;
    berlu_status status;
    TRY(database_open(&s, path, flags));
    there = there && !is_empty(s);
    if (there && (status = ours_check(s)) != BERLU_OK) {
        store_close(s);
        if (status != BERLU_ERR_INPUT)
            return status;
        there = 0;
        TRY(set_aside(path, notes));
        TRY(database_open(&s, path, flags));
    }
    int remote = is_remote(folder);
    if (remote)
        text_add(notes, "%s lies on a network file system: no write-ahead log there\n", path);
    TRY_DONE(store_exec(s, remote ? "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL"
                                  : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
    if (!there)
        TRY_DONE(schema_make(s));
    TRY_DONE(store_exec(s, additions));
    s->writes = 1;
    *out = s;
    return BERLU_OK;
done:
    store_close(s);
    return status;
}

berlu_status store_open_read(store **out, const char *path)
{
    if (!file_exists(path))
        return berlu_fail(BERLU_ERR_INPUT, "%s: there is no such store", path);
    *out = NULL;
    berlu_status status = database_open(out, path, SQLITE_OPEN_READONLY);
    if (status == BERLU_OK && (status = ours_check(*out)) != BERLU_OK) {
        store_close(*out);
        *out = NULL;
    }
    return status;
}

int store_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* with its NUL */
    char first[sizeof magic];
    file_in in;
    if (file_in_open(&in, path) != BERLU_OK)
        return 0;
    int same = in.size >= sizeof first && file_in_read(&in, 0, first, sizeof first) == BERLU_OK &&
               memcmp(first, magic, sizeof first) == 0;
    file_in_close(&in);
    return same;
}

berlu_status store_close(store *s)
{
    if (!s)
        return BERLU_OK;
    berlu_status status = BERLU_OK;
    /* So that the one file holds everything. Where a reader is connected the log stays beside it:
     * all is written all the same, and the message of an earlier failure is kept. */
    if (s->writes && sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE", NULL, NULL,
                                  NULL) != SQLITE_OK) {
        int code = sqlite3_errcode(s->db) & 0xff;
        status = code == SQLITE_BUSY || code == SQLITE_LOCKED ? BERLU_OK : store_fail(s, "writing");
    }
    sqlite3_close(s->db);
    free(s);
    return status;
}

const char *store_now(char out[32])
{
    time_t now = (time_t)clock_wall_seconds();
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

berlu_status store_copy(const char *path, const char *to)
{
    sqlite3_stmt *q;
    store *s = NULL;
    berlu_status status;
    TRY(store_open_read(&s, path));
    TRY_DONE(store_prepare(s, &q, "VACUUM INTO ?"));
    store_bind_text(q, 1, to);
    status = store_step(s, q);
done:
    store_close(s);
    return status;
}
