/* study_screen.h - a study's progress for people. SPDX-License-Identifier: MIT */
#ifndef CLI_STUDY_SCREEN_H
#define CLI_STUDY_SCREEN_H

#include "study/scheduler.h"

typedef struct study_screen {
    int terminal, quiet;
    int lines; /* drawn before, to be drawn over */
    double shown;
} study_screen;

/* A tick of the scheduler; `context` is a study_screen. A terminal is redrawn in place: a line per
 * run in progress, the counts, the means so far. Elsewhere there is a line of counts every half
 * minute. A view without slots is one from outside (`study status --watch`): it shows what the lock
 * files say. */
void study_show(void *context, const study_view *v);

#endif
