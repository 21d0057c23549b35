/* checkpoint.h - a run's state on disk, whole or not there. SPDX-License-Identifier: MIT
 *
 * A checkpoint is a folder RUN/checkpoints/step-00001234 with model.safetensors (the weights),
 * ema.safetensors (their average, if one is kept), state.safetensors (the optimizer's moments and
 * the counters below) and their checksums. It is made under a temporary name, every file and the
 * folder are fsynced, and then it is renamed, so a folder with a step's name is whole however the
 * process ended. One of the same step is set aside first and comes back if the new one did not
 * arrive. The two newest and the best stay; older ones are renamed away before they are deleted.
 * The links `last` and `best` are for people.
 *
 * Nothing in a checkpoint depends on time or on how often the run was interrupted: same run,
 * same bytes. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/text.h"
#include "engine/engine.h"
#include "io/safetensors.h"

enum { CHECKPOINT_PATH = 4096 };

/* The format that is written. 0 is that of 0.1.0: no record of the settings, no sum over the
 * rows of metrics.csv, and the file of checksums may be missing. docs/formats.md has them all. */
enum { CHECKPOINT_FORMAT = 1 };

/* Key in the metadata of model.safetensors: the activations as --act takes them, a line per
 * site, one line for all. */
#define CHECKPOINT_ACTIVATION "activation"

/* All that a run is besides its settings and its arrays. */
typedef struct train_state {
    uint64_t updates;       /* made so far */
    uint64_t epoch;         /* the one under way, from 0 */
    uint64_t batches;       /* of that epoch that are done */
    uint64_t images;        /* of that epoch whose loss is in loss_sum */
    uint64_t norms;         /* of that epoch that are in norm_sum */
    uint64_t metrics_bytes; /* of metrics.csv that belong to this state */
    uint64_t metrics_sum;   /* CRC-32C of those bytes */
    uint64_t best_updates;  /* where the best test accuracy was seen; 0: nowhere yet */
    double loss_sum, norm_sum;
    double best_top1;
    double
        *site_metrics; /* of the activation sites, from the last update of the epoch under way (diagnose.h); owned by */
    size_t site_metric_count; /* whoever made the state */
} train_state;

/* Where a trainer keeps its checkpoints. All that is written is written relative to the run's
 * folder, held open. */
typedef struct checkpoint_store {
    const folder_handle *run;
    const berlu_log *log; /* may be NULL */
    const st_text *facts; /* for the metadata of the weights (network_describe()), `fact_count` of them */
    size_t fact_count;
    const char *settings; /* canonical text (settings_hash.h); NULL: none is recorded */
    int told;             /* that an old folder could not be removed */
} checkpoint_store;

/* Writes a checkpoint and settles the others. On failure what was there before is untouched and
 * no half folder is left under a step's name. */
berlu_status checkpoint_save(checkpoint_store *store, engine *e, const train_state *s);

/* The path of the newest whole checkpoint, with `ema` one that has the average too; "" if there
 * is none. One that is not whole is told to the log and passed over; if all are such, that is
 * BERLU_ERR_INPUT. */
berlu_status checkpoint_newest(const char *run, int ema, char path[CHECKPOINT_PATH], const berlu_log *log);

int checkpoint_has_average(const char *folder);

/* Whether all files are there, can be read and hold the bytes that were written. */
berlu_status checkpoint_check(const char *folder, int ema);

/* What a checkpoint says about itself: its format, and from 1 on the canonical text of the run's
 * settings. */
typedef struct checkpoint_facts {
    int format;
    text settings;
} checkpoint_facts;
berlu_status checkpoint_facts_read(checkpoint_facts *out, const char *folder); /* text_free(&out->settings) */

/* Whether the checkpoint of step `best` is whole; if it is not, it is set aside as
 * damaged-step-... and the link `best` is removed, with a warning. */
void checkpoint_best_check(checkpoint_store *store, uint64_t best, int ema);

/* Before a run is taken up: a checkpoint that a death left set aside, while a newer one of the
 * same step was to take its place, gets its name back. Only for the process that trains. */
berlu_status checkpoint_recover(checkpoint_store *store);

/* Reads it into the engine and the state. Everything is checked against the engine first: a
 * checkpoint of another model is BERLU_ERR_INPUT and names the first tensor that does not fit. */
berlu_status checkpoint_load(const char *path, engine *e, train_state *s);

/* What follows a save, and is done again when a run is taken up because a death may have come in
 * between: both links, and the end of leftovers and of all checkpoints but the two newest and
 * the best. A folder that cannot be removed is reported once and tried again the next time. */
berlu_status checkpoint_settle(checkpoint_store *store, uint64_t last, uint64_t best);

#endif
