/* settings.h - which function, model and data a cell is. SPDX-License-Identifier: MIT */
#ifndef REPORT_SETTINGS_H
#define REPORT_SETTINGS_H

#include "report/view.h"

/* Fills model, data, family, act, eps, epochs, classes, differs and command of a cell whose `of` is
 * set. Only lack of memory fails: unknown values are "" or NaN. */
berlu_status settings_read(view_cell *c, arena *memory);

/* The settings in which the cells of a group differ, in the order of their files:
 * "act, init_std_fc1". "" where the activation alone differs, which every label names. */
berlu_status settings_factors(const char **found, const view_study *s, size_t group, arena *memory);

#endif
