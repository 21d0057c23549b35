/* status.h - the internal half of <berlu/status.h>: reporting a failure.
 * SPDX-License-Identifier: MIT
 *
 * One line does both halves: `return berlu_fail(BERLU_ERR_INPUT, "%s: no tensor '%s'", path,
 * name);` keeps the message for this thread and returns the code. A message begins with its subject
 * (a path, an option, a tensor), says what is wrong and, where there is one, the remedy. Callers
 * forward a failure unchanged (TRY); they add to it only with berlu_fail_in(), which puts a place
 * in front of the existing message. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stddef.h>

#include <berlu/status.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Forwards a failure: returns the status of the call unless it is BERLU_OK. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        berlu_status try_status = (call);                                                                              \
        if (try_status != BERLU_OK)                                                                                    \
            return try_status;                                                                                         \
    } while (0)

/* The same where something is owned: keeps the status in the local `status` and jumps to the label
 * `done`, after which the function frees and returns. */
#define TRY_DONE(call)                                                                                                 \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != BERLU_OK)                                                                                        \
            goto done;                                                                                                 \
    } while (0)

BERLU_API berlu_status berlu_fail(berlu_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prepends a place, "place: old message", and returns `status` itself, so that
 * `return berlu_fail_in(status, path);` reads well. */
berlu_status berlu_fail_in(berlu_status status, const char *place);

/* A failure with its message, kept while cleanup or another thread's work overwrites the thread's
 * own: failure_keep(&f, status) copies it, failure_report(&f) reports it again, here or on another
 * thread, and returns the status. */
enum { FAILURE_MESSAGE = 1024 };
typedef struct kept_failure {
    berlu_status status;
    char message[FAILURE_MESSAGE];
} kept_failure;
void failure_keep(kept_failure *out, berlu_status status);
berlu_status failure_report(const kept_failure *f);

/* Reports a failed allocation of `bytes` for `what` ("the arena of vit_tiny"). */
berlu_status berlu_fail_memory(size_t bytes, const char *what);

void log_line(const berlu_log *log, berlu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
