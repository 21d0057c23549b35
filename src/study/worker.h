/* worker.h - one process of a study: its command line, its pipes, its reports.
 * SPDX-License-Identifier: MIT
 *
 * Two kinds: `berlu train --resume --json-lines` starts a run or resumes it from its checkpoint,
 * `berlu analyze landscape --save` measures the weights of a finished one before --slim deletes
 * them. Which run is next, and the meaning of its end, is up to the scheduler (scheduler.c). */
#ifndef STUDY_WORKER_H
#define STUDY_WORKER_H

#include "study/scheduler.h"

/* Bytes of a pipe that do not make a whole line yet. */
typedef struct line_pipe {
    int fd; /* -1: closed */
    size_t used;
    char bytes[4096];
} line_pipe;

typedef struct worker_pipes {
    line_pipe out, err;
    int device; /* GPU; -1: any */
} worker_pipes;

/* Command lines, NULL-terminated, in `memory`; NULL without memory. */
char **worker_train(arena *memory, const study_schedule *how, const study *s, const study_entry *run);
char **worker_landscape(arena *memory, const study_schedule *how, const study *s, const study_entry *run);

berlu_status worker_spawn(study_worker *w, worker_pipes *p, char *const *words);

/* Takes in what the pipes hold; 0 when both have ended. */
int worker_read(study_worker *w, worker_pipes *p);

/* Reaps the process and closes its pipes; the code is that of waitpid(). */
int worker_reap(study_worker *w, worker_pipes *p);

#endif
