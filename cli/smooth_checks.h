/* smooth_checks.h - the guarantees of docs/math.md, evaluated for one function.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_SMOOTH_CHECKS_H
#define CLI_SMOOTH_CHECKS_H

#include <stddef.h>

#include "smooth/smooth.h"

enum { SMOOTH_CHECKS = 16 };

typedef struct check_row {
    const char *name, *section;
    int promised, holds;
    double expected, found;
} check_row;

typedef struct smooth_checks {
    const berlu_smooth *f;
    check_row rows[SMOOTH_CHECKS];
    size_t count;
    int centred, monotone_slopes; /* all kinks at the centre; every slope between its neighbours by construction */
    double height, steep;         /* largest |value| and |slope| of the transitions: the units of rounding errors */
} smooth_checks;

void smooth_checks_make(smooth_checks *c, const berlu_smooth *f);

#endif
