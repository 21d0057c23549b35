/* run_json.h - run.json, the record of a run. SPDX-License-Identifier: MIT
 *
 * Written once, before anything else of the run. `settings` holds the resolved settings, without
 * those that have no effect: `--config RUN/run.json` repeats the run from them. Settings that
 * change no result (threads, workers, paths, host) are under `hardware`. docs/formats.md lists all
 * keys; format 0 is that of 0.1.0, which has no key `format`. */
#ifndef TRAIN_RUN_JSON_H
#define TRAIN_RUN_JSON_H

#include "base/arena.h"
#include "train/recipe.h"
#include "train/settings_hash.h"

enum { RUN_FORMAT = 1 };

/* Software and hardware that the last bits of results depend on. */
typedef struct run_engine {
    char version[32];      /* of berlu */
    char products[96];     /* the BLAS library */
    char instructions[32]; /* instruction set */
    char device[160];      /* "cpu", or the GPU, its library and the hash of the GEMM algorithms in use */
} run_engine;

/* The content of run.json. Strings are the caller's; NULL or "" omits a key. */
typedef struct run_about {
    const train_settings *settings;
    const unsigned char *leave_out; /* rows without effect; may be NULL */
    const char *settings_hash, *data_hash;
    const char *data_kind;
    size_t train_images, test_images, classes; /* in use; 0: left out */
    const char *const *class_names;            /* `classes` of them; NULL: left out */
    const char *const *command;                /* words; NULL-terminated */
    const char *commit;                        /* of the program's source */
    const char *algorithms;                    /* GEMM algorithms in use, lines; NULL: none are chosen */
    const char *data_on;                       /* "host" or "device" */
    const char *history;                       /* JSON list of records before this one, oldest first */
    run_engine engine;
} run_about;
void run_json_write(const run_about *about, text *out);

/* Facts read back besides the settings. Format 0 has few of them. */
typedef struct run_facts {
    int format;
    char settings_hash[SETTINGS_HASH], data_hash[SETTINGS_HASH];
    run_engine engine;
} run_facts;

/* Parses settings (from the key "settings") and facts, either of which may be NULL; `path` is for
 * messages. */
berlu_status run_json_parse(train_settings *settings, run_facts *facts, const char *bytes, size_t count,
                            const char *path);
berlu_status run_json_read(train_settings *settings, run_facts *facts, const char *path);

/* The whole document; json_decref() it. */
berlu_status run_json_load(json_t **out, const char *path);

/* The names of the classes that the run was trained on; NULL where the record has none. */
berlu_status run_json_classes(const char ***names, size_t *count, arena *memory, const char *path);

/* Whether `history` of that run.json has a record with this settings hash. */
int run_json_knew(const char *path, const char *settings_hash);

/* Appends to `out` what differs, "instructions (avx2 then, scalar now)"; returns the number of
 * differences. Unknown facts equal any. */
size_t run_engine_differences(const run_engine *then, const run_engine *now, text *out);

#endif
