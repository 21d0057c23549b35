/* run_json.h - run.json, the record a run begins with. SPDX-License-Identifier: MIT
 *
 * Written once, before anything else of the run. `settings` holds what the run uses, every
 * default replaced by its value, nothing without effect: `--config RUN/run.json` repeats the run
 * from it. What changes no number (threads, workers, paths, host) stands under `hardware`.
 * docs/formats.md has all keys; version 0 is that of 0.1.0, which has no `format`. */
#ifndef TRAIN_RUN_JSON_H
#define TRAIN_RUN_JSON_H

#include "train/recipe.h"
#include "train/settings_hash.h"

enum { RUN_FORMAT = 1 };

/* What computes: another one may give other bits. */
typedef struct run_engine {
    char version[32];      /* of berlu */
    char products[96];     /* the library of matrix products */
    char instructions[32]; /* instruction set */
    char device[160];      /* "cpu", or the GPU, its library and the hash of the product algorithms in use */
} run_engine;

/* All that run.json holds. Texts belong to the caller; NULL or "" leaves a key out. */
typedef struct run_about {
    const train_settings *settings;
    const unsigned char *leave_out; /* rows without effect; may be NULL */
    const char *settings_hash, *data_hash;
    const char *data_kind;
    size_t train_images, test_images, classes; /* in use; 0: left out */
    const char *const *command;                /* words; NULL-terminated */
    const char *commit;                        /* of the program's source */
    const char *algorithms;                    /* product algorithms in use, lines; NULL: none are chosen */
    const char *data_on;                       /* "host" or "device" */
    const char *history;                       /* JSON list of records before this one, oldest first */
    run_engine engine;
} run_about;
void run_json_write(const run_about *about, text *out);

/* What is read back besides the settings. Format 0 leaves most of it empty. */
typedef struct run_facts {
    int format;
    char settings_hash[SETTINGS_HASH], data_hash[SETTINGS_HASH];
    run_engine engine;
} run_facts;

/* Settings (from run.json's "settings") and facts from the bytes of such a file; `path` is for
 * messages. Either may be NULL. */
berlu_status run_json_parse(train_settings *settings, run_facts *facts, const char *bytes, size_t count,
                            const char *path);
berlu_status run_json_read(train_settings *settings, run_facts *facts, const char *path);

/* Whether `history` of that run.json has a record with this settings hash. */
int run_json_knew(const char *path, const char *settings_hash);

/* Names into `out` what differs, "instructions (avx2 then, scalar now)"; returns how many. What
 * is unknown does not. */
size_t run_engine_differences(const run_engine *then, const run_engine *now, text *out);

#endif
