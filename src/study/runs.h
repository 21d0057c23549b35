/* runs.h - the runs of a study, by key, and the state of each. SPDX-License-Identifier: MIT
 *
 * A run is identified by the hash of its resolved settings and its data (train/settings_hash.h) and
 * lives in DIR/runs/KEY, an ordinary run folder. So studies share runs, a study may grow, and
 * nothing runs twice. The folders are authoritative: the state of a run is read from its lock file
 * (train/run_lock.h), its results from metrics.csv and correct.bin. Runs are ordered seed by seed,
 * so that a study interrupted anywhere is balanced.
 *
 * A student is identified by its teacher's key and not by the teacher's weights, which do not exist
 * when the study begins; the teacher is the first run, and students wait until it is done. */
#ifndef STUDY_RUNS_H
#define STUDY_RUNS_H

#include "data/sha256.h"
#include "study/study_file.h"
#include "train/metrics.h"
#include "train/run_lock.h"
#include "train/trainer.h"

enum { STUDY_KEY = 17, STUDY_PATH = 4096 }; /* the first 16 digits of the hash name the folder */

typedef enum study_state {
    STUDY_WAITING,
    STUDY_RUNNING,
    STUDY_DONE,
    STUDY_CUT,
    STUDY_FAILED,
    STUDY_STATES
} study_state;
extern const char *const study_state_names[STUDY_STATES];

typedef struct study_entry {
    size_t cell;
    int64_t seed;
    char key[STUDY_KEY];
    char path[STUDY_PATH];
    size_t same_as; /* index of an earlier run with the same key (two cells may be one run); its own index if none */
    char teacher[STUDY_PATH]; /* folder of the run that must be done before this one; "" if none */
    study_state state;
    int known;    /* done or failed in another store, not here (known.h) */
    int given_up; /* by the scheduler: its processes end without progress */
    run_record record;
    metrics_row last;                        /* of a run that is done */
    double best_top1, images_per_s, seconds; /* over all processes that worked on it, from timing.csv */
    uint64_t peak_bytes;
    int weights, landscape; /* of a run that is done: its folder has checkpoints, landscape.json */
} study_entry;

typedef struct study_entries {
    study_entry *items;
    size_t count;
} study_entries;

/* Applies "KEY=VALUE" texts (NULL-terminated, or NULL) over the settings of every cell: --set. */
berlu_status study_set(study *s, const char *const *set);

/* The text whose hash is the key of a run (train_canonical()). `data` holds the data of the call
 * before, or {0}: it is opened again only where the settings may mean another. `teacher_key` stands
 * for the teacher of a student. */
typedef struct study_data {
    text settings; /* that could change it */
    train_data data;
} study_data;
berlu_status study_cell_canonical(text *out, const study *s, const study_run *run, study_data *data,
                                  const char *teacher_key);
void study_data_close(study_data *data);

/* Keys need the data: a missing set is BERLU_ERR_INPUT. `folder` is the study's. */
berlu_status study_entries_make(study_entries *out, const study *s, const char *folder);
void study_entries_free(study_entries *r);

/* Whether a setting is about how a network learns, and not about its images or its shape. */
int study_setting_is_learning(const char *key);

/* Whether two cells differ at most in how they learn: their networks and images are of one size,
 * but for learned activations. */
int study_same_size(const study_cell *a, const study_cell *b);

/* Reads the state of a run from its folder. A damaged folder counts as cut. */
berlu_status study_entry_look(study_entry *r);

/* Whether the teacher of a run is done, or it needs none. */
int study_entry_ready(const study_entries *runs, const study_entry *r);

/* One column of a done run's last row, by the study's metric. NaN where there is none. */
double study_entry_metric(const study_entry *r, const char *metric);

#endif
