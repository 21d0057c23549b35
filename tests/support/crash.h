/* crash.h - what a disk holds after a power cut, for tests of everything that must survive one.
 * SPDX-License-Identifier: MIT
 *
 * A kill leaves what was written; a power cut leaves what was synced, and of the rest any part in
 * any order. This layer stands on fail.c (berlu_test(... WRAP)): it watches fsync() and rename,
 * remembers for every file below a folder the bytes that its last fsync saw and for every folder
 * the names that its last fsync saw and all states since, and at the n-th of these calls the disk
 * stops: everything fails from there on. crash_write() then builds the tree that a disk may show
 * after the cut:
 *
 *     for (int n = 1; crash_start(run, n), thing(run), crash_stop(); n++)
 *         for (int mode = 0; mode < CRASH_MODES; mode++) {
 *             crash_write(after, mode, seed);
 *             ... what is in `after` must be good enough ...
 *         }
 *
 * Names of one folder change in the order of the calls, as every journaling file system keeps
 * them, and a rename is one change; different folders and the contents of files know nothing of
 * each other. fsync() itself is not passed on to the system, so such tests are fast. One folder
 * at a time, one thread. */
#ifndef TESTS_SUPPORT_CRASH_H
#define TESTS_SUPPORT_CRASH_H

#include <stdint.h>

enum {
    CRASH_DROP,    /* all that was not synced is lost */
    CRASH_NAMES,   /* names as they are, contents as they were synced: a rename that overtook the data */
    CRASH_BYTES,   /* contents as they are, names as they were synced */
    CRASH_NOTHING, /* all as it is: a kill at this moment */
    CRASH_ANY,     /* each folder at a random state since its sync, each file at a random mixture */
    CRASH_MODES
};

void crash_start(const char *root, int n); /* the disk stops before the n-th fsync or rename; 0: never */
void crash_settle(void);                   /* all that is there now is on the disk: what an earlier process left */
int crash_stop(void);                      /* whether it did; the disk works again */
void crash_write(const char *to, int mode, uint64_t seed);
void crash_free(void);

#endif
