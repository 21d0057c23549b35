/* run_lock.h - the file RUN/lock: which process trains in a run, and its progress.
 * SPDX-License-Identifier: MIT
 *
 * One process at a time trains in a run folder. It holds an open-file-description lock
 * (F_OFD_SETLK) on the file `lock`, which the kernel releases however the process ends. The file is
 * opened for reading and writing, and flock() is not used, because on NFS flock() of a folder is
 * local to one machine: trainers on two machines would both succeed.
 *
 * The locked file also holds the record below, one line of JSON. Programs decide by it and not by
 * the existence of other files, because NFS caches names: right after locking, run.json may still
 * appear to be missing. A record `running` without a lock belongs to a process that was killed. */
#ifndef TRAIN_RUN_LOCK_H
#define TRAIN_RUN_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/file.h"

typedef enum run_state { RUN_WAITING, RUN_RUNNING, RUN_STOPPED, RUN_DONE, RUN_FAILED, RUN_STATES } run_state;
extern const char *const run_state_names[RUN_STATES];

typedef struct run_record {
    run_state state;  /* waiting: locked, not training yet; stopped: can be resumed; failed: not finite, final */
    uint64_t attempt; /* number of starts and resumes; 0: there is no run yet */
    uint64_t step;    /* of the newest checkpoint */
    char host[65];
    int64_t process;
} run_record;

typedef struct run_lock {
    int fd; /* -1: not held */
    run_record record;
} run_lock;

/* Takes the lock, waiting up to `wait` seconds, and reads the record; a damaged one reads as none.
 * Once `*stop` is non-zero the wait ends with BERLU_ERR_STOPPED. BERLU_ERR_BUSY names the holder; a
 * lock that fails for another reason (a file system without locks) is BERLU_ERR_IO. */
berlu_status run_lock_take(run_lock *out, const folder_handle *run, double wait, const atomic_int *stop);
void run_lock_drop(run_lock *lock);

/* 1 if the locked file still has the name `lock`; 0 if no file has; -1 if another file has, which
 * another process may have locked. */
int run_lock_named(const run_lock *lock, const folder_handle *run);

/* Writes lock->record, with this host and process, in place, and fsyncs it. */
berlu_status run_lock_write(run_lock *lock, const folder_handle *run);

/* Reads the record of a run and whether its lock is held, without taking it. A run without the file
 * (berlu 0.1.0) has an empty record. */
berlu_status run_record_read(run_record *out, int *held, const char *run);

#endif
