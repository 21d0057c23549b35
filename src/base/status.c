/* status.c - the message of the last failure, one per thread. SPDX-License-Identifier: MIT
 *
 * The text lives in thread-local memory of fixed size, so reporting a failure never allocates: it
 * works when memory has run out. A message that is too long is truncated, never refused. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE = FAILURE_MESSAGE };
static _Thread_local char last_error[MESSAGE];

const char *berlu_last_error(void)
{
    return last_error;
}

const char *berlu_version(void)
{
    return BERLU_VERSION;
}

const char *berlu_status_name(berlu_status status)
{
    static const char *const names[] = {
        [BERLU_OK] = "ok",
        [BERLU_ERR_ARG] = "bad argument",
        [BERLU_ERR_INPUT] = "bad input",
        [BERLU_ERR_MEMORY] = "out of memory",
        [BERLU_ERR_IO] = "input or output failed",
        [BERLU_ERR_DEVICE] = "device failed",
        [BERLU_ERR_UNSUPPORTED] = "not supported here",
        [BERLU_ERR_NUMERIC] = "not a finite number",
        [BERLU_ERR_STOPPED] = "stopped",
        [BERLU_ERR_BUSY] = "busy",
    };
    _Static_assert(COUNT(names) == BERLU_ERR_BUSY + 1, "a status has no name");
    return (unsigned)status < COUNT(names) ? names[status] : "unknown status";
}

berlu_status berlu_fail(berlu_status status, const char *format, ...)
{
    char fresh[MESSAGE]; /* an argument may be the old message itself */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    memcpy(last_error, length < 0 ? "" : fresh, length < 0 ? 1 : strlen(fresh) + 1);
    return status;
}

berlu_status berlu_fail_in(berlu_status status, const char *place)
{
    return status == BERLU_OK ? status : berlu_fail(status, "%s: %s", place, last_error);
}

void failure_keep(kept_failure *out, berlu_status status)
{
    out->status = status;
    memcpy(out->message, status == BERLU_OK ? "" : last_error, status == BERLU_OK ? 1 : strlen(last_error) + 1);
}

berlu_status failure_report(const kept_failure *f)
{
    return f->status == BERLU_OK ? BERLU_OK : berlu_fail(f->status, "%s", f->message);
}

berlu_status berlu_fail_memory(size_t bytes, const char *what)
{
    if ((double)bytes >= 0x1p30)
        return berlu_fail(BERLU_ERR_MEMORY, "%s: no memory for %.1f GiB", what, (double)bytes / 0x1p30);
    return berlu_fail(BERLU_ERR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
}

void log_line(const berlu_log *log, berlu_log_level level, const char *format, ...)
{
    if (!log || !log->write)
        return;
    char line[MESSAGE];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length >= 0)
        log->write(log->context, level, line);
}
