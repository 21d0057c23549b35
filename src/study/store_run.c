/* store_run.c - the rows of a run, read from its folder. SPDX-License-Identifier: MIT
 *
 * store_put_run() reads run.json and, once the run is finished, start.csv, metrics.csv and
 * correct.bin, and puts all rows of the key (rows_put). metrics.csv is stored packed, with the
 * hashes of the results. store_is_current() tells whether a finished run is in the index
 * already. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "io/csv.h"
#include "io/json_parse.h"
#include "study/run_hash.h"
#include "study/store_internal.h"

typedef struct run_files {
    char *json, *start, *metrics, *correct, *message;
    size_t json_bytes, start_bytes, metrics_bytes, correct_bytes, message_bytes;
} run_files;

static void files_free(run_files *f)
{
    free(f->json);
    free(f->start);
    free(f->metrics);
    free(f->correct);
    free(f->message);
}

/* Leaves out a file that is missing or unreadable; lack of memory is an error. */
static berlu_status file_take(char **out, size_t *bytes, const study_entry *run, const char *name)
{
    char path[STUDY_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", run->path, name);
    *out = NULL, *bytes = 0;
    berlu_status status = file_exists(path) ? file_read_all(out, bytes, path, 64 << 20) : BERLU_OK;
    if (status != BERLU_OK)
        *out = NULL, *bytes = 0;
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
}

static const char *json_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static berlu_status run_row_put(store *s, const study_entry *run, const run_files *f, const char *error)
{
    sqlite3_stmt *q;
    json_t *about = NULL;
    berlu_status status = f->json ? json_parse(&about, f->json, f->json_bytes, "run.json", NULL) : BERLU_OK;
    if (status == BERLU_ERR_MEMORY)
        return status;
    const json_t *engine = json_object_get(about, "engine"), *data = json_object_get(about, "data");
    /* Where data and algorithms lay means nothing elsewhere and is no part of the key: the data's
     * kind is recorded, and the algorithms' hash is part of the device. */
    json_t *said = json_object_get(about, "settings");
    int lost = said && json_text(data, "kind") && json_object_set(said, "data", json_object_get(data, "kind")) != 0;
    json_object_del(said, "algorithms");
    char *settings = said && !lost ? json_dumps(said, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (said && !settings)
        TRY_DONE(berlu_fail_memory(f->json_bytes, "run.json"));
    TRY_DONE(store_prepare(s, &q, "INSERT OR REPLACE INTO run VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"));
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
    store_bind_real(q, 11, run->seconds);
    store_bind_text(q, 12, error);
    store_bind_text(q, 13, json_text(about, "started"));
    status = store_step(s, q);
done:
    free(settings);
    json_decref(about);
    return status;
}

static berlu_status epochs_put(store *s, const study_entry *run, const run_files *f)
{
    static const char *const columns[] = {"epoch",     "step",      "lr",        "train_loss", "train_top1",
                                          "test_loss", "test_top1", "test_top5", "grad_norm"};
    csv_table t;
    sqlite3_stmt *q = NULL;
    if (!f->metrics)
        return BERLU_OK;
    berlu_status status = csv_parse(&t, f->metrics, f->metrics_bytes, "metrics.csv");
    if (status != BERLU_OK)
        return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
    TRY_DONE(store_prepare(s, &q, "INSERT OR REPLACE INTO epoch VALUES(?,?,?,?,?,?,?,?,?,?)"));
    for (size_t i = 0; i < t.rows; i++) {
        store_bind_text(q, 1, run->key);
        for (size_t c = 0; c < COUNT(columns); c++)
            store_bind_real(q, (int)c + 2, csv_number(&t, i, csv_column(&t, columns[c])));
        if (sqlite3_step(q) != SQLITE_DONE)
            TRY_DONE(store_fail(s, "writing"));
        sqlite3_reset(q);
    }
done:
    sqlite3_finalize(q);
    csv_free(&t);
    return status;
}

/* metrics.csv with the row of start.csv, epoch 0, before its own: the columns are the same. Runs of
 * earlier versions have no start.csv. */
static berlu_status metrics_join(text *out, const run_files *f)
{
    const char *own = f->metrics ? f->metrics : "", *start = f->start ? f->start : "";
    size_t head = strcspn(own, "\n");
    int same = own[head] && strncmp(own, start, head + 1) == 0;
    text_bytes(out, own, same ? head + 1 : 0);
    text_string(out, same ? start + head + 1 : "");
    text_bytes(out, own + (same ? head + 1 : 0), f->metrics_bytes - (same ? head + 1 : 0));
    return text_status(out);
}

static berlu_status metrics_pack(Bytef **out, uLongf *packed, size_t *count, const run_files *f)
{
    text joined = {0};
    berlu_status status;
    *out = NULL;
    TRY_DONE(metrics_join(&joined, f));
    *count = joined.length;
    *packed = compressBound(joined.length);
    *out = malloc(*packed);
    if (!*out || compress2(*out, packed, (const Bytef *)(joined.data ? joined.data : ""), joined.length, 9) != Z_OK)
        status = berlu_fail_memory(joined.length, "metrics.csv");
done:
    if (status != BERLU_OK)
        free(*out);
    text_free(&joined);
    return status;
}

static berlu_status final_put(store *s, const study_entry *run, const run_files *f)
{
    sqlite3_stmt *q;
    uLongf packed;
    Bytef *bytes;
    size_t count;
    TRY(metrics_pack(&bytes, &packed, &count, f));
    berlu_status status;
    TRY_DONE(store_prepare(s, &q, "INSERT OR REPLACE INTO final VALUES(?,?,?,?,?,?,?,?,?,?,?)"));
    store_bind_text(q, 1, run->key);
    store_bind_real(q, 2, run->last.test_top1);
    store_bind_real(q, 3, run->last.test_top5);
    store_bind_real(q, 4, run->last.test_loss);
    store_bind_real(q, 5, run->best_top1);
    store_bind_real(q, 6, run->last.train_loss);
    store_bind_real(q, 7, run->images_per_s);
    sqlite3_bind_int64(q, 8, (int64_t)run->peak_bytes);
    if (f->correct)
        sqlite3_bind_blob64(q, 9, f->correct, f->correct_bytes, SQLITE_STATIC);
    sqlite3_bind_blob64(q, 10, bytes, packed, SQLITE_STATIC);
    sqlite3_bind_int64(q, 11, (int64_t)count);
    status = store_step(s, q);
done:
    free(bytes);
    return status;
}

static berlu_status hash_put(store *s, const study_entry *run)
{
    sqlite3_stmt *q;
    run_hash hash;
    run_hash_read(&hash, run->path);
    TRY(store_prepare(s, &q, "INSERT OR REPLACE INTO hash VALUES(?,?,?,?)"));
    const char *each[] = {run->key, hash.weights, hash.metrics, hash.correct};
    for (size_t i = 0; i < COUNT(each); i++)
        store_bind_text(q, (int)i + 1, *each[i] ? each[i] : NULL);
    return store_step(s, q);
}

static berlu_status rows_put(store *s, const study_entry *run, const run_files *f, const char *error)
{
    TRY(store_exec(s, "BEGIN IMMEDIATE"));
    berlu_status status;
    TRY_DONE(run_row_put(s, run, f, error));
    TRY_DONE(epochs_put(s, run, f));
    if (run->state == STUDY_DONE) {
        TRY_DONE(final_put(s, run, f));
        TRY_DONE(hash_put(s, run));
        TRY_DONE(store_put_landscape(s, run));
    }
done:
    return store_commit(s, status);
}

berlu_status store_put_run(store *s, const study_entry *run, const char *error)
{
    run_files f = {0};
    berlu_status status;
    TRY_DONE(file_take(&f.json, &f.json_bytes, run, "run.json"));
    if (run->state == STUDY_DONE || run->state == STUDY_FAILED) {
        TRY_DONE(file_take(&f.metrics, &f.metrics_bytes, run, "metrics.csv"));
        TRY_DONE(file_take(&f.start, &f.start_bytes, run, "start.csv"));
        TRY_DONE(file_take(&f.correct, &f.correct_bytes, run, "correct.bin"));
    }
    if (run->state != STUDY_DONE && run->state != STUDY_RUNNING && (!error || !*error))
        TRY_DONE(file_take(&f.message, &f.message_bytes, run, "message.txt"));
    status = rows_put(s, run, &f, f.message ? f.message : error);
done:
    files_free(&f);
    return status;
}

int store_is_current(store *s, const study_entry *run)
{
    sqlite3_stmt *q;
    int current = 0;
    if (run->state != STUDY_DONE ||
        store_prepare(s, &q,
                      "SELECT 1 FROM run r JOIN final f ON f.run = r.key JOIN hash h ON h.run = r.key"
                      " LEFT JOIN landscape l ON l.run = r.key"
                      " WHERE r.key = ? AND r.state = 'done' AND r.attempts = ? AND (l.run IS NOT NULL OR NOT ?)") !=
            BERLU_OK)
        return 0;
    store_bind_text(q, 1, run->key);
    sqlite3_bind_int64(q, 2, (int64_t)run->record.attempt);
    sqlite3_bind_int(q, 3, run->landscape);
    current = sqlite3_step(q) == SQLITE_ROW;
    sqlite3_finalize(q);
    return current;
}

berlu_status store_event(store *s, const char *key, const char *what)
{
    char now[32];
    sqlite3_stmt *q;
    TRY(store_prepare(s, &q, "INSERT INTO event VALUES(?,?,?)"));
    store_bind_text(q, 1, store_now(now));
    store_bind_text(q, 2, key);
    store_bind_text(q, 3, what);
    return store_step(s, q);
}
