/* berlu/status.h - results of calls and error messages. SPDX-License-Identifier: MIT
 *
 * A call that can fail returns a berlu_status. BERLU_OK is 0; any other value is the kind of
 * failure, and berlu_last_error() holds a message for people that names the file, key, tensor or
 * value. The library never prints, never exits and never aborts; that message, one per thread, is
 * its only state. */
#ifndef BERLU_STATUS_H
#define BERLU_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BERLU_API __attribute__((visibility("default")))
#else
#define BERLU_API
#endif

/** The result of a call. The numbers are fixed; new ones are added at the end. */
typedef enum berlu_status {
    BERLU_OK = 0,              /* done */
    BERLU_ERR_ARG = 1,         /* an argument, option or name is wrong; nothing was done */
    BERLU_ERR_INPUT = 2,       /* something to be read is missing, unreadable, malformed or does not fit */
    BERLU_ERR_MEMORY = 3,      /* an allocation failed */
    BERLU_ERR_IO = 4,          /* writing, syncing, renaming or the network failed */
    BERLU_ERR_DEVICE = 5,      /* the GPU, its driver or a launch failed, or there is none */
    BERLU_ERR_UNSUPPORTED = 6, /* a valid request that this build or this machine cannot serve */
    BERLU_ERR_NUMERIC = 7,     /* a value that must be finite is not */
    BERLU_ERR_STOPPED = 8,     /* a signal asked to stop; what was under way is saved */
    BERLU_ERR_BUSY = 9         /* another process is at work there; trying again later may succeed */
} berlu_status;

/** The message of the last failure on the calling thread; "" when there was none. Valid until the
 *  next failure on this thread. A success does not clear it. Never NULL. */
BERLU_API const char *berlu_last_error(void);

/** A short name of a status ("bad argument", "out of memory", ...). Never NULL, also for unknown
 *  numbers. */
BERLU_API const char *berlu_status_name(berlu_status status);

/** The version of the library that is running, "0.1.0". */
BERLU_API const char *berlu_version(void);

/** Receiver of the progress messages of longer calls. A NULL berlu_log, or a NULL write, means
 *  silence. `text` is one line without its newline, valid only during the call; `write` may be
 *  called from any thread that called the library. */
typedef enum berlu_log_level { BERLU_LOG_DEBUG = 0, BERLU_LOG_INFO = 1, BERLU_LOG_WARNING = 2 } berlu_log_level;
typedef struct berlu_log {
    void (*write)(void *context, berlu_log_level level, const char *text);
    void *context;
} berlu_log;

#ifdef __cplusplus
}
#endif
#endif
