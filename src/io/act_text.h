/* act_text.h - an activation from a text, or from a YAML file of a smoothed function.
 * SPDX-License-Identifier: MIT */
#ifndef IO_ACT_TEXT_H
#define IO_ACT_TEXT_H

#include <berlu/act.h>

/* `words` are NAME[:key=value,...], smooth(...)[:key=...] or FILE[:key=...]; io/smooth_yaml.h
 * defines the file. */
berlu_status act_from_text(berlu_act **out, const char *words);

#endif
