/* run_lock.h - the file RUN/lock: who trains in a run, and how far it is.
 * SPDX-License-Identifier: MIT
 *
 * One process at a time trains in a run folder. It holds an open-file-description lock
 * (F_OFD_SETLK) on the file `lock`, which the system drops however the process ends. A file opened
 * for reading and writing, and this call, because on NFS flock() of a folder is local to one
 * machine: two trainers on two machines both got it.
 *
 * The locked file also holds the record below, one line of JSON, and programs decide by it and
 * not by looking for other files: NFS caches names, and who just took the lock may still be told
 * that run.json is not there. A record that says `running` while nobody holds the lock belongs
 * to a process that was killed. */
#ifndef TRAIN_RUN_LOCK_H
#define TRAIN_RUN_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/file.h"

typedef enum run_state { RUN_WAITING, RUN_RUNNING, RUN_STOPPED, RUN_DONE, RUN_FAILED, RUN_STATES } run_state;
extern const char *const run_state_names[RUN_STATES];

typedef struct run_record {
    run_state state;  /* waiting: taken, not training yet; stopped: may be resumed; failed: not finite, a result */
    uint64_t attempt; /* how often the run was taken up; 0: there is no run yet */
    uint64_t step;    /* of the newest checkpoint */
    char host[65];
    int64_t process;
} run_record;

typedef struct run_lock {
    int fd; /* -1: not held */
    run_record record;
} run_lock;

/* Takes the lock, waiting up to `wait` seconds, and reads the record; one that is damaged reads
 * as no record. With a stop flag that becomes non-zero the wait ends with BERLU_ERR_STOPPED.
 * BERLU_ERR_BUSY names the holder; a lock that is refused for another reason (a file system
 * without locks) is BERLU_ERR_IO. */
berlu_status run_lock_take(run_lock *out, const folder_handle *run, double wait, const atomic_int *stop);
void run_lock_drop(run_lock *lock);

/* Whether the locked file is still the one called `lock`: 1; 0 where none is; -1 where another one
 * is, which another process may have locked to train here too. */
int run_lock_named(const run_lock *lock, const folder_handle *run);

/* Writes lock->record, with this host and process, in place and to the disk. */
berlu_status run_lock_write(run_lock *lock, const folder_handle *run);

/* The record of a run and whether somebody holds its lock, without taking it. A run without the
 * file (0.1.0 wrote none) has an empty record. */
berlu_status run_record_read(run_record *out, int *held, const char *run);

/* From the bytes of a lock file: 1, or 0 for a damaged one, or -1 without memory to read it; both
 * leave an empty record. */
int run_record_parse(run_record *out, const char *bytes, size_t count);

#endif
