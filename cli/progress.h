/* progress.h - progress of long commands, on stderr. SPDX-License-Identifier: MIT
 *
 * A terminal gets a bar that is redrawn and never wider than the window, in colour unless NO_COLOR
 * is set; a file, a pipe or CI gets an occasional line. Nothing is shown in the first second, so
 * quick commands stay silent. progress_step() is cheap enough to be called for every item. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

#include "base/status.h"

typedef struct progress {
    const char *what, *unit; /* "train", "images" */
    uint64_t done, total;    /* total 0: unknown */
    uint64_t began, shown;   /* clock_ns() */
    int terminal, quiet, drawn;
    double rate;    /* units per second to show; 0: the mean since the start. The time left always uses the mean. */
    char note[128]; /* end of the line, "epoch 1/3, loss 1.234"; a narrow terminal shows its first items only */
} progress;

void progress_start(progress *p, const char *what, const char *unit, uint64_t total, int quiet);
void progress_step(progress *p, uint64_t done); /* `done` in total */
int progress_due(const progress *p);            /* whether the next step draws: only then a note is needed */
void progress_note(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_clear(progress *p);  /* removes the bar, to print a line; the next step redraws it */
void progress_finish(progress *p); /* prints the last line with the total time, if anything was shown */

/* berlu_log.write of commands that print warnings only; the context is a progress or NULL. */
void warning_show(void *context, berlu_log_level level, const char *line);

/* Whether text on `fd` may be coloured: a terminal that is not dumb, and no NO_COLOR in the
 * environment. */
int terminal_colours(int fd);

#endif
