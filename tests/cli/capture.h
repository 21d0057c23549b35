/* capture.h - the standard streams of a command that runs inside the test.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_CLI_CAPTURE_H
#define TESTS_CLI_CAPTURE_H

#include <stdio.h>
#include <unistd.h>

/* Standard output and error of one run, in files without names. */
typedef struct capture {
    int saved_out, saved_err;
    FILE *out, *err;
} capture;

static inline void capture_begin(capture *c)
{
    c->out = tmpfile();
    c->err = tmpfile();
    fflush(stdout);
    fflush(stderr);
    c->saved_out = dup(STDOUT_FILENO);
    c->saved_err = dup(STDERR_FILENO);
    dup2(fileno(c->out), STDOUT_FILENO);
    dup2(fileno(c->err), STDERR_FILENO);
}

/* Puts the streams back; what was written remains in c->out and c->err, for the caller to read and
 * close. */
static inline void capture_restore(capture *c)
{
    fflush(stdout);
    fflush(stderr);
    dup2(c->saved_out, STDOUT_FILENO);
    dup2(c->saved_err, STDERR_FILENO);
    close(c->saved_out);
    close(c->saved_err);
}

#endif
