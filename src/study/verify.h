/* verify.h - repeats finished runs and compares the results. SPDX-License-Identifier: MIT
 *
 * A run is repeated in FOLDER/verify/runs/KEY with its recorded algorithms (algorithms.h), and the
 * SHA-256 of its weights, metrics.csv and correct.bin are compared with those of the first time.
 * Where the same program ran on the same device with the same library, only equal hashes pass.
 * Elsewhere bits may differ ("not comparable bit for bit"), and the metric is tested instead: one
 * more value of the cell lies inside its 95 % prediction interval 19 times of 20. */
#ifndef STUDY_VERIFY_H
#define STUDY_VERIFY_H

#include "study/run_hash.h"
#include "study/stats.h"
#include "study/store.h"

typedef enum verify_verdict {
    VERIFY_EQUAL,     /* every hash known of both */
    VERIFY_INSIDE,    /* not comparable bit for bit; the metric fits */
    VERIFY_OUTSIDE,   /* not comparable bit for bit; the metric does not fit */
    VERIFY_DIFFERENT, /* comparable, and another result */
    VERIFY_UNKNOWN,   /* nothing to compare with: no hash, or fewer than two runs in the cell */
    VERIFY_CUT,       /* the repetition did not finish */
    VERIFY_VERDICTS
} verify_verdict;
extern const char *const verify_verdict_names[VERIFY_VERDICTS];
int verify_passes(verify_verdict v); /* equal, inside; unknown is neither passed nor failed */

typedef struct verify_row {
    size_t run; /* in the study's entries */
    run_hash then, now;
    double metric_then, metric_now;
    stats_interval range; /* prediction interval of the cell */
    text why;             /* why bits are not comparable; empty: they are */
    verify_verdict verdict;
} verify_row;

/* Marks every finished run, one byte per entry; returns how many. */
size_t verify_finished(unsigned char *marked, const study_entries *runs);

/* Keeps the marks of runs whose bits a repetition can be held to: made by this version and commit,
 * and on a GPU with recorded algorithms. Whether the device is the same shows when the repetition
 * ran. `stores`, ended by NULL, have what runs without a folder were; `count` is how many are
 * left. */
berlu_status verify_comparable(unsigned char *marked, size_t *count, const study *s, const study_entries *runs,
                               store *const *stores, const char *commit);

/* Draws `count` different marked runs, or all if there are fewer; returns how many. */
size_t verify_pick(size_t *out, size_t count, const study_entries *runs, const unsigned char *marked, uint64_t seed);

/* Entries for repeating them, with folders in FOLDER/verify, which is emptied first. */
berlu_status verify_prepare(study_entries *out, const study_entries *runs, const size_t *picked, size_t count,
                            const char *folder);

/* Judges one repetition: `again` is the repeated entry, `stores` as above. Free row->why. */
berlu_status verify_compare(verify_row *row, const study *s, const study_entries *runs, size_t run,
                            const study_entry *again, store *const *stores);

/* Reads the first results from a store, for runs without a folder here; all empty where it has
 * none. */
typedef struct store_origin {
    int found;
    run_hash hash;
    char device[192], version[32], commit[64];
} store_origin;
berlu_status store_read_origin(store *s, const char *key, store_origin *out);

#endif
