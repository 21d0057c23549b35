/* store.h - the index of a study: one SQLite file, DIR/study.db. SPDX-License-Identifier: MIT
 *
 * Run folders are authoritative; the store holds what reports need of them and can be rebuilt from
 * them at any time. It has one writer, the scheduler: workers never open it, so no run waits for a
 * locked database or fails because of one. On a local disk readers never block (WAL); on a network
 * file system, where two WAL clients lost committed rows, it uses a rollback journal. A change of
 * state is one transaction, synced. After a clean end the one file holds everything.
 *
 * A store can outlive its folders: it holds all of a finished run but its weights (last row, all
 * epochs, the deflated metrics.csv, one bit per test image), so it can be copied and merged. */
#ifndef STUDY_STORE_H
#define STUDY_STORE_H

#include "analyze/landscape_file.h"
#include "study/runs.h"

typedef struct store store;

enum { STORE_APPLICATION = 0x4265724c, STORE_VERSION = 1 }; /* "BerL" */

/* Opens or creates DIR/study.db for writing; a foreign or damaged file is renamed, with a message
 * in `notes`, and a new store created. */
berlu_status store_open(store **out, const char *folder, text *notes);
berlu_status store_open_read(store **out, const char *path); /* a file; read only */
int store_is_database(const char *path);                     /* by its first bytes */
berlu_status store_close(store *s);                          /* NULL is allowed */

/* The study, its cells, members and contrasts. What was registered earlier and has changed stays,
 * with its time. */
berlu_status store_put_study(store *s, const study *from, const char *yaml, const study_entries *runs);

/* How many finished runs of the study store_put_study() would take out of it. */
berlu_status store_count_lost(store *s, const study *from, const study_entries *runs, size_t *lost);
/* A run as its folder describes it; `error` is the last message of its process, or NULL. */
berlu_status store_put_run(store *s, const study_entry *run, const char *error);
/* Whether the store is up to date with a run; finished runs never change. */
int store_is_current(store *s, const study_entry *run);
berlu_status store_event(store *s, const char *key, const char *what);

/* Adds all finished and failed runs of another store that this one lacks. One key with two
 * different results is an error that names it. */
berlu_status store_merge(store *into, const char *path, size_t *added);

/* Reduces the per-site columns of every metrics.csv to epochs 0 and 1, the last and every tenth,
 * six digits each; the table `epoch` retains all epochs of the other columns, and the hashes are
 * still those of the whole file. At most 20 kB a run remain. */
berlu_status store_slim(store *s);

/* A consistent copy of a store that may be in use, as one file that must not exist yet. */
berlu_status store_copy(const char *path, const char *to);

/* ---- reading, for reports -------------------------------------------------------------------- */

/* One evaluated or trained epoch; NaN where it was not measured. */
typedef struct store_epoch {
    double epoch, train_loss, test_loss, test_top1;
} store_epoch;

typedef struct store_result {
    const char *key, *state, *error;
    int64_t seed;
    double top1, top5, loss, best_top1, train_loss, images_per_s, seconds;
    const unsigned char *correct; /* one bit per test image; NULL where there is none */
    size_t correct_bytes;
    const char *device, *version, *commit, *settings;
    const char *host, *data;      /* the data's hash */
    const char *began;            /* when it was started; "" where that is not known */
    const unsigned char *metrics; /* metrics.csv after the row of start.csv, deflated; NULL: none */
    size_t metrics_packed, metrics_bytes;
    store_epoch *epochs;
    size_t epoch_count;
    const landscape_summary *landscape; /* NULL: not measured */
} store_result;

typedef struct store_cell {
    const char *label;
    const char *settings; /* as written, "key=value" lines */
    store_result *runs;
    size_t count;
} store_cell;

typedef struct store_contrast {
    const char *name, *expect;
    size_t a, b; /* cells */
    double paper;
    int current; /* 0: from an earlier version of the file */
    const char *registered;
    stats_expected expected; /* a prediction, or nothing */
    int second;              /* a second difference is subtracted: */
    size_t minus_a, minus_b; /* of these cells */
} store_contrast;

typedef struct store_study {
    const char *name, *yaml, *sha256, *registered, *first_run; /* times; first_run is "" before the first run */
    store_cell *cells;
    size_t cell_count;
    store_contrast *contrasts;
    size_t contrast_count;
} store_study;

typedef struct store_contents {
    store_study *studies;
    size_t count;
    arena memory;
} store_contents;
berlu_status store_read(store *s, store_contents *out);
void store_contents_free(store_contents *c);

/* The text of a run's metrics.csv, to be freed; NULL where the store has none. */
berlu_status store_metrics(char **out, const store_result *r);

#endif
