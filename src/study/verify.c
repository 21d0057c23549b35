/* verify.c - chooses runs, compares hashes and settings of both times, judges.
 * SPDX-License-Identifier: MIT
 *
 * verify.h has the rule. verify_pick() draws the sample by seed, verify_prepare() makes its entries
 * under FOLDER/verify, verify_compare() reads both results; judge() is the table of verdicts. */
#include "study/verify.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/philox.h"
#include "study/algorithms.h"
#include "study/store_internal.h"
#include "train/run_json.h"

const char *const verify_verdict_names[VERIFY_VERDICTS] = {"equal bits", "inside",  "outside",
                                                           "different",  "unknown", "cut"};

int verify_passes(verify_verdict v)
{
    return v == VERIFY_EQUAL || v == VERIFY_INSIDE || v == VERIFY_UNKNOWN;
}

/* ---- choosing -------------------------------------------------------------------------------- */

size_t verify_finished(unsigned char *marked, const study_entries *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        marked[i] = runs->items[i].same_as == i && runs->items[i].state == STUDY_DONE;
        count += marked[i];
    }
    return count;
}

size_t verify_pick(size_t *out, size_t count, const study_entries *runs, const unsigned char *marked, uint64_t seed)
{
    size_t left = 0, taken = 0;
    for (size_t i = 0; i < runs->count; i++)
        left += marked[i];
    count = count < left ? count : left;
    /* Selection sampling: each marked run is taken with the share that is still wanted of those
     * that are left. */
    for (size_t i = 0; i < runs->count && taken < count; i++) {
        if (!marked[i])
            continue;
        uint32_t draw = philox_draw(seed, PURPOSE_ANALYZE, 0, i, 0).w[0];
        if ((uint64_t)draw * left >> 32 < count - taken)
            out[taken++] = i;
        left--;
    }
    return taken;
}

berlu_status verify_prepare(study_entries *out, const study_entries *runs, const size_t *picked, size_t count,
                            const char *folder)
{
    char place[STUDY_PATH];
    *out = (study_entries){.items = calloc(count + 1, sizeof *out->items), .count = count};
    if (!out->items)
        return berlu_fail_memory(count * sizeof *out->items, "runs");
    berlu_status status;
    if (snprintf(place, sizeof place, "%s/verify", folder) >= (int)sizeof place - 64)
        TRY_DONE(berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder));
    TRY_DONE(folder_remove(place));
    for (size_t i = 0; i < count; i++) {
        study_entry *e = &out->items[i];
        *e = runs->items[picked[i]];
        study_algorithms_recall(place, e->key, e->path);
        e->same_as = i;
        e->state = STUDY_WAITING;
        e->known = 0;
        e->record = (run_record){0};
        snprintf(e->path, sizeof e->path, "%.4000s/runs/%.16s", place, e->key);
    }
done:
    if (status != BERLU_OK)
        study_entries_free(out);
    return status;
}

/* ---- what was there -------------------------------------------------------------------------- */

static void blob_hash(char out[SHA256_TEXT], const void *bytes, size_t count)
{
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, bytes, count);
    sha256_finish(&h, out);
}

/* Stores from before the table `hash` hold the whole metrics.csv. */
static berlu_status metrics_hash(char out[SHA256_TEXT], sqlite3_stmt *q, int blob, int bytes)
{
    enum { MOST = 64 << 20 };
    uLongf count = (uLongf)sqlite3_column_int64(q, bytes);
    if (sqlite3_column_type(q, blob) != SQLITE_BLOB || count > MOST)
        return BERLU_OK;
    Bytef *whole = malloc(count + 1);
    if (!whole)
        return berlu_fail_memory(count, "metrics.csv");
    if (uncompress(whole, &count, sqlite3_column_blob(q, blob), (uLong)sqlite3_column_bytes(q, blob)) == Z_OK)
        blob_hash(out, whole, count);
    free(whole);
    return BERLU_OK;
}

static void word_take(char *out, size_t size, sqlite3_stmt *q, int column)
{
    const char *word = (const char *)sqlite3_column_text(q, column);
    snprintf(out, size, "%s", word ? word : "");
}

berlu_status store_read_origin(store *s, const char *key, store_origin *out)
{
    sqlite3_stmt *q;
    int hashes = store_has_table(s, "main", "hash");
    *out = (store_origin){0};
    berlu_status status = store_prepare(
        s, &q,
        hashes ? "SELECT r.device, r.version, r.\"commit\", f.correct, f.metrics, f.metrics_bytes, h.weights, h.metrics"
                 " FROM run r JOIN final f ON f.run = r.key LEFT JOIN hash h ON h.run = r.key WHERE r.key = ?"
               : "SELECT r.device, r.version, r.\"commit\", f.correct, f.metrics, f.metrics_bytes, NULL, NULL"
                 " FROM run r JOIN final f ON f.run = r.key WHERE r.key = ?");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, key);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        out->found = 1;
        word_take(out->device, sizeof out->device, q, 0);
        word_take(out->version, sizeof out->version, q, 1);
        word_take(out->commit, sizeof out->commit, q, 2);
        if (sqlite3_column_bytes(q, 3))
            blob_hash(out->hash.correct, sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3));
        word_take(out->hash.weights, sizeof out->hash.weights, q, 6);
        word_take(out->hash.metrics, sizeof out->hash.metrics, q, 7);
        if (!*out->hash.metrics)
            status = metrics_hash(out->hash.metrics, q, 4, 5);
    } else if (rc != SQLITE_DONE)
        status = store_fail(s, "reading");
    sqlite3_finalize(q);
    return status;
}

/* From the first store that has it. */
static berlu_status origin_find(store_origin *out, const char *key, store *const *stores)
{
    *out = (store_origin){0};
    for (; *stores && !out->found; stores++)
        TRY(store_read_origin(*stores, key, out));
    return BERLU_OK;
}

/* ---- by which program ------------------------------------------------------------------------ */

/* The program of a run: from its folder, where it has one, or what the store says. */
static void program_read(run_engine *engine, char commit[64], const char *run, const store_origin *origin)
{
    char path[STUDY_PATH + 32];
    run_facts facts = {0};
    snprintf(path, sizeof path, "%.4000s/run.json", run);
    if (file_exists(path) && run_json_read(NULL, &facts, path) == BERLU_OK) {
        json_t *about = json_load_file(path, 0, NULL);
        const char *word = json_string_value(json_object_get(about, "commit"));
        *engine = facts.engine;
        snprintf(commit, 64, "%s", word ? word : "");
        json_decref(about);
        return;
    }
    *engine = (run_engine){0};
    snprintf(engine->version, sizeof engine->version, "%s", origin->version);
    snprintf(engine->device, sizeof engine->device, "%.159s", origin->device);
    snprintf(commit, 64, "%s", origin->commit);
}

berlu_status verify_comparable(unsigned char *marked, size_t *count, const study *s, const study_entries *runs,
                               store *const *stores, const char *commit)
{
    *count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const study_entry *e = &runs->items[i];
        store_origin origin;
        run_engine engine;
        char made[64], machine[STUDY_MACHINE];
        if (!marked[i])
            continue;
        TRY(origin_find(&origin, e->key, stores));
        program_read(&engine, made, e->path, &origin);
        study_algorithms_machine(machine, e->path);
        marked[i] = strcmp(engine.version, berlu_version()) == 0 && strcmp(made, commit) == 0 &&
                    (*machine || !study_algorithms_wanted(&s->cells[e->cell]));
        *count += marked[i];
    }
    return BERLU_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void difference_add(text *out, const char *what, const char *then, const char *now)
{
    if (*then && *now && strcmp(then, now) != 0)
        text_add(out, "%s%s (%s then, %s now)", out->length ? ", " : "", what, then, now);
}

/* Lists the differences between the two times that may change bits. */
static berlu_status differences(text *why, const char *then_run, const char *now_run, const store_origin *origin)
{
    run_engine then, now;
    char commit_then[64], commit_now[64], machine_then[STUDY_MACHINE], machine_now[STUDY_MACHINE];
    program_read(&then, commit_then, then_run, origin);
    program_read(&now, commit_now, now_run, &(store_origin){0});
    run_engine_differences(&then, &now, why);
    study_algorithms_machine(machine_then, then_run);
    study_algorithms_machine(machine_now, now_run);
    difference_add(why, "machine", machine_then, machine_now);
    difference_add(why, "program", commit_then, commit_now);
    if (strncmp(now.device, "cpu", 3) != 0 && !*machine_then)
        text_add(why, "%sproduct algorithms were not recorded", why->length ? ", " : "");
    return text_status(why);
}

/* 1: equal, 0: different, -1: not known of both. */
static int hashes_compare(const run_hash *a, const run_hash *b)
{
    const char *const pairs[][2] = {{a->weights, b->weights}, {a->metrics, b->metrics}, {a->correct, b->correct}};
    int known = 0;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (!*pairs[i][0] || !*pairs[i][1])
            continue;
        known = 1;
        if (strcmp(pairs[i][0], pairs[i][1]) != 0)
            return 0;
    }
    return known ? 1 : -1;
}

static berlu_status cell_range(stats_interval *out, const study *s, const study_entries *runs, size_t cell)
{
    double *values = calloc(runs->count + 1, sizeof *values);
    size_t count = 0;
    if (!values)
        return berlu_fail_memory(runs->count * sizeof *values, "a cell");
    for (size_t i = 0; i < runs->count; i++) {
        double value = study_entry_metric(&runs->items[i], s->metric);
        if (runs->items[i].cell == cell && !isnan(value))
            values[count++] = value;
    }
    *out = stats_prediction((stats_sample){values, count}, 0.95);
    free(values);
    return BERLU_OK;
}

static verify_verdict judge(const verify_row *row, int equal)
{
    if (equal == 1)
        return VERIFY_EQUAL;
    if (equal == 0 && !row->why.length)
        return VERIFY_DIFFERENT;
    if (isnan(row->range.low) || isnan(row->metric_now))
        return VERIFY_UNKNOWN;
    return row->metric_now >= row->range.low && row->metric_now <= row->range.high ? VERIFY_INSIDE : VERIFY_OUTSIDE;
}

berlu_status verify_compare(verify_row *row, const study *s, const study_entries *runs, size_t run,
                            const study_entry *again, store *const *stores)
{
    const study_entry *first = &runs->items[run];
    store_origin origin;
    *row = (verify_row){.run = run,
                        .metric_then = study_entry_metric(first, s->metric),
                        .metric_now = study_entry_metric(again, s->metric),
                        .verdict = VERIFY_CUT};
    if (again->state != STUDY_DONE)
        return BERLU_OK;
    run_hash_read(&row->now, again->path);
    if (!first->known)
        run_hash_read(&row->then, first->path);
    TRY(origin_find(&origin, first->key, stores));
    if (first->known || !*row->then.weights)
        row->then = origin.hash;
    TRY(differences(&row->why, first->path, again->path, &origin));
    TRY(cell_range(&row->range, s, runs, first->cell));
    row->verdict = judge(row, hashes_compare(&row->then, &row->now));
    return BERLU_OK;
}
