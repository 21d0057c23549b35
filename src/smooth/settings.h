/* settings.h - a smoothed function by keys and values in text. SPDX-License-Identifier: MIT
 *
 * The text form, the options of `berlu smooth` and YAML files have the same keys with the same
 * values; each of them sets keys here and makes the function at the end, so that all report a
 * mistake in the same way. */
#ifndef SMOOTH_SETTINGS_H
#define SMOOTH_SETTINGS_H

#include <berlu/smooth.h>

typedef struct number_list {
    double *items;
    size_t count;
    int given;
} number_list;

typedef struct smooth_settings {
    number_list kinks, slopes, eps, eps_right;
    double at_x, at_y;
    int degree;
    berlu_smooth_form form;
    unsigned seen; /* a bit per key, to refuse a key that comes twice */
} smooth_settings;

void settings_start(smooth_settings *s); /* at 0=0, eps 0.01, degree 2 */
void settings_free(smooth_settings *s);

/* kinks, slopes, eps, eps_right: numbers with commas. at: x=y. degree: a whole number. form:
 * bernstein or collinear. */
berlu_status settings_set(smooth_settings *s, const char *key, const char *value);

/* Checks the mistakes that only text can contain (the number of slopes), then calls
 * berlu_smooth_make(). */
berlu_status settings_make(const smooth_settings *s, berlu_smooth **out);

#endif
