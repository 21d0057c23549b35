/* lipschitz.h - the largest slope and the largest curvature of an activation, by search.
 * SPDX-License-Identifier: MIT
 *
 * The library states a Lipschitz constant for every activation; this search does not know it.
 * It looks at the reference in double on both sides of every break and at every zero of the
 * curvature between, so `found` is the constant to rounding where a slope attains it. */
#ifndef ANALYZE_LIPSCHITZ_H
#define ANALYZE_LIPSCHITZ_H

#include <berlu/act.h>

typedef struct lipschitz {
    double constant, at;    /* what the library states, and where theory puts it (else where it was found) */
    double found, found_at; /* the largest |slope| seen, and an x where */
    double curvature;       /* the largest |f''| seen; kinks do not count */
    double paper;           /* the paper's figure, NaN where it gives none */
    const char *verdict;    /* "right", "wrong" (the paper's figure, to a unit of its last digit), or NULL */
} lipschitz;

void lipschitz_find(lipschitz *out, const berlu_act *act);

/* The activations that the paper compares, in its order; NULL after the last. */
const char *lipschitz_paper_act(size_t index);

#endif
