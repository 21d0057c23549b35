/* study_open.h - what the verbs of `berlu study` share: opening a study, its place, its answer.
 * SPDX-License-Identifier: MIT
 *
 * Every verb takes the study's file, or the folder it lives in: runs/NAME unless --dir says
 * otherwise. The folders of the runs are the truth (study/runs.h), study.db is an index made from
 * them (study/store.h), and the report reads the index. */
#ifndef CLI_STUDY_OPEN_H
#define CLI_STUDY_OPEN_H

#include "commands.h"
#include "study/store.h"

#define KNOWN_ROW                                                                                                      \
    {                                                                                                                  \
        "known", OPTION_STRINGS, "STORE", .help = "does not run again what this store (study.db or its folder) holds"  \
    }

#define STUDY_ROWS                                                                                                     \
    {"file", OPTION_STRING, "FILE|DIR", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,                                    \
     .help = "the study: a YAML file, or the folder it lives in"},                                                     \
        {"dir", OPTION_STRING, "DIR", .help = "where the study lives (default runs/NAME)"},                            \
    {                                                                                                                  \
        "set", OPTION_STRINGS, "KEY=VALUE", .help = "a setting for all runs, over the file's"                          \
    }

/* A study, its place and its runs. */
typedef struct study_opened {
    study s;
    study_entries runs;
    char folder[STUDY_PATH];
    const char **set; /* NULL-terminated */
    char *yaml;
} study_opened;

void study_opened_free(study_opened *x);
berlu_status study_open(study_opened *x, const options *o); /* reads the file; STUDY_ROWS */

/* BERLU_ERR_INPUT with all of these lines; a long list is printed first. */
berlu_status study_problems(const char *file, const text *problems);
berlu_status study_runs_find(study_opened *x,
                             const options *o); /* runs, and which of them stores elsewhere hold; KNOWN_ROW */
berlu_status study_open_runs(study_opened *x, const options *o); /* both */

void study_counts(const study_entries *r, size_t counts[STUDY_STATES]);
berlu_status study_answer(const options *o, const study_opened *x, double seconds, int slots); /* a line, or JSON */

/* The same for a study of kind cost, from its store. */
berlu_status study_cost_answer(const options *o, const study_opened *x, double seconds);

/* Brings the index up to date with the folders. A reader's call (`may_lose` 0) leaves an index
 * alone, with a note, whose finished runs are others than the file's. */
berlu_status study_index_make(const study_opened *x, int may_lose);

/* BERLU_ERR_BUSY: the scheduler `holder` works in this folder. */
berlu_status study_busy(const char *folder, const run_record *holder);

/* The folder of a study must exist where its results are asked for. */
berlu_status study_place_check(const char *folder, const char *name);

/* The store that FILE or DIR means. That of a file is brought up to date first; a folder's is read
 * as it is. */
berlu_status study_store_find(char path[STUDY_PATH], const char *from);

berlu_status program_path(char out[STUDY_PATH]); /* this program's own: workers are the same program */

#endif
