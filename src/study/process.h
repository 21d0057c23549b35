/* process.h - child processes of a study: this program with another command line.
 * SPDX-License-Identifier: MIT
 *
 * A child has default signals, ends together with its parent however that ends (PR_SET_PDEATHSIG
 * sends SIGTERM, so it saves), and writes into pipes. */
#ifndef STUDY_PROCESS_H
#define STUDY_PROCESS_H

#include <stdatomic.h>

#include "base/text.h"

typedef struct study_process {
    long id;
    int out, err; /* reading ends of its output, non-blocking */
} study_process;

/* `words` is NULL-terminated and begins with a path. `device` >= 0 is the one GPU it sees. */
berlu_status study_process_start(study_process *p, char *const *words, int device);

/* Runs a process to its end and collects up to 1 MiB of each output. When *stop becomes non-zero it
 * is sent a SIGTERM, and the status is BERLU_ERR_STOPPED, as when another's SIGINT, SIGTERM or
 * SIGHUP ends it. An exit code other than 0 is BERLU_ERR_INPUT for 2 and BERLU_ERR_IO else, with
 * the last line of its stderr. */
berlu_status study_process_run(char *const *words, int device, const atomic_int *stop, text *out, text *err);

#endif
