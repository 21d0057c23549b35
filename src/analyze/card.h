/* card.h - one activation on one page: everything known about it without a network.
 * SPDX-License-Identifier: MIT */
#ifndef ANALYZE_CARD_H
#define ANALYZE_CARD_H

#include "analyze/depth.h"
#include "analyze/linearity.h"
#include "analyze/lipschitz.h"
#include "base/text.h"

enum { CARD_SCALES = 5, CARD_LAYERS = 100, CARD_POINTS = 801, CARD_CURVE = 61, CARD_FLOATS = 1 << 14 };

/* The pre-activation scales of tables: small, that of a layer of 192 inputs started at 0.02, and
 * up. */
extern const double linearity_scales[CARD_SCALES];

typedef struct card {
    lipschitz lipschitz;
    depth depth;   /* of the function itself */
    depth centred; /* of f - f(0), where the function has no edge of chaos */
    int has_centred;
    linearity linearity[CARD_SCALES];
    double ulp, slope_ulp;     /* the bounds of the f32 kernels; INFINITY: an absolute one, see berlu/act.h */
    double error, slope_error; /* largest |f32 - double| of value and derivative at CARD_FLOATS floats in [-8, 8] */
    double zero, least;        /* f(0), and the smallest value in [-8, 8] */
} card;

berlu_status card_make(card *out, const berlu_act *act, int threads);

/* Function, slope, correlation by depth and nonlinearity by scale, as a figure of four plots. */
berlu_status card_plot(const card *c, const berlu_act *act, const char *title, const char *path);

/* The activation f - f(0); *out is NULL where that is the function itself. */
berlu_status act_centred(berlu_act **out, const berlu_act *act);

#endif
