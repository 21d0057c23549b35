/* status.h - the inside of <berlu/status.h>: how the library's own code reports a failure. SPDX-License-Identifier: MIT
 *
 * One line does both halves: `return berlu_fail(BERLU_ERR_INPUT, "%s: no tensor '%s'", path, name);` keeps the sentence
 * for this thread and returns the code. Sentences begin with what they are about (a path, an option, a tensor), say what
 * is wrong and, where there is one, what to do. Callers pass a failure on unchanged; they add to it only with
 * berlu_fail_in(), which puts a place in front of the sentence that is already there. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stddef.h>

#include <berlu/status.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

BERLU_API berlu_status berlu_fail(berlu_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "place: old sentence"; returns `status` itself, so `return berlu_fail_in(status, path);` reads well. */
berlu_status berlu_fail_in(berlu_status status, const char *place);

/* The sentence for a failed allocation of `bytes` for `what` ("the arena of vit_tiny"). */
berlu_status berlu_fail_memory(size_t bytes, const char *what);

void log_line(const berlu_log *log, berlu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
