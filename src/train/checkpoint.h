/* checkpoint.h - a run's state on disk, complete or absent. SPDX-License-Identifier: MIT
 *
 * A checkpoint is a folder RUN/checkpoints/step-00001234 with model.safetensors (the weights),
 * ema.safetensors (their moving average, if any), state.safetensors (the optimizer's moments and
 * the counters below) and their checksums. It is written under a temporary name, every file and the
 * folder are fsynced, then it is renamed: a folder with a step's name is complete however the
 * process ended. An older one of the same step is set aside first and restored if the new one did
 * not arrive. The two newest and the best are retained; others are renamed before they are deleted.
 * The links `last` and `best` are for people; no program relies on them.
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

/* The format written. Format 0 is that of berlu 0.1.0: no record of the settings, no sum over the
 * rows of metrics.csv, and the checksums may be missing. docs/formats.md describes all formats. */
enum { CHECKPOINT_FORMAT = 1 };

/* Key in the metadata of model.safetensors: the activations in the syntax of --act, one line per
 * site or one for all. */
#define CHECKPOINT_ACTIVATION "activation"

/* The state of a run besides its settings and the engine's arrays. */
typedef struct train_state {
    uint64_t updates;       /* completed */
    uint64_t epoch;         /* the current one, from 0 */
    uint64_t batches;       /* of that epoch, completed */
    uint64_t images;        /* of that epoch whose loss is in loss_sum */
    uint64_t norms;         /* of that epoch, added up in norm_sum */
    uint64_t metrics_bytes; /* of metrics.csv that belong to this state */
    uint64_t metrics_sum;   /* CRC-32C of those bytes */
    uint64_t best_updates;  /* at the best test accuracy; 0: none yet */
    double loss_sum, norm_sum;
    double best_top1;
    double
        *site_metrics; /* of the activation sites, from the last update of the epoch under way (diagnose.h); owned by */
    size_t site_metric_count; /* whoever made the state */
} train_state;

/* Where a trainer writes its checkpoints: relative to the run's folder, which is held open. */
typedef struct checkpoint_store {
    const folder_handle *run;
    const berlu_log *log; /* may be NULL */
    const st_text *facts; /* for the metadata of the weights (network_describe()), `fact_count` of them */
    size_t fact_count;
    const char *settings; /* canonical text (settings_hash.h); NULL: none is recorded */
    int warned;           /* that an old folder could not be removed; once is enough */
} checkpoint_store;

/* Writes a checkpoint, then calls checkpoint_settle(). A failure leaves earlier checkpoints
 * untouched and no incomplete folder under a step's name. */
berlu_status checkpoint_save(checkpoint_store *store, engine *e, const train_state *s);

/* The path of the newest intact checkpoint, with `ema` one that has the average too; "" if there is
 * none. A damaged one is logged and skipped; BERLU_ERR_INPUT if all are damaged. */
berlu_status checkpoint_newest(const char *run, int ema, char path[CHECKPOINT_PATH], const berlu_log *log);

int checkpoint_has_average(const char *folder);

/* Checks that all files exist, are readable and match their checksums. */
berlu_status checkpoint_check(const char *folder, int ema);

/* A checkpoint's format and, from format 1 on, the canonical text of the run's settings. */
typedef struct checkpoint_facts {
    int format;
    text settings;
} checkpoint_facts;
berlu_status checkpoint_facts_read(checkpoint_facts *out, const char *folder); /* text_free(&out->settings) */

/* Sets the checkpoint of step `best` aside as damaged-step-... where it is not intact, and removes
 * the link `best`, with a warning. */
void checkpoint_best_check(checkpoint_store *store, uint64_t best, int ema);

/* Restores the name of a checkpoint that was set aside for a newer one of the same step when the
 * process was killed. Called before a resume, and only by the process that trains. */
berlu_status checkpoint_recover(checkpoint_store *store);

/* Loads it into the engine and the state. All tensors are checked against the engine first: a
 * checkpoint of another model is BERLU_ERR_INPUT, naming the first tensor that does not fit. */
berlu_status checkpoint_load(const char *path, engine *e, train_state *s);

/* Points the link `best` at a checkpoint that the state does not count as the best; the next
 * checkpoint_settle() points it back. */
berlu_status checkpoint_link_best(checkpoint_store *store, uint64_t step);

/* Completes a save: updates both links and removes leftovers and all checkpoints but the two newest
 * and the best. Called again on a resume, because the process may have been killed in between. A
 * folder that cannot be removed is reported once and retried after every save. */
berlu_status checkpoint_settle(checkpoint_store *store, uint64_t last, uint64_t best);

#endif
