/* study_screen.h - a study's progress for people. SPDX-License-Identifier: MIT */
#ifndef CLI_STUDY_SCREEN_H
#define CLI_STUDY_SCREEN_H

#include "study/scheduler.h"

typedef struct study_screen {
    int terminal, quiet;
    int lines; /* drawn before, to be drawn over */
    double shown;
} study_screen;

/* A tick of the scheduler; `context` is a study_screen. A terminal is redrawn in place, elsewhere there is a line every half
 * minute. */
void study_show(void *context, const study_view *v);

#endif
