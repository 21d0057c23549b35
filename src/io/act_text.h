/* act_text.h - an activation from what people write: a text, or a YAML file of a smoothed function. SPDX-License-Identifier: MIT */
#ifndef IO_ACT_TEXT_H
#define IO_ACT_TEXT_H

#include <berlu/act.h>

/* `text` is NAME[:key=value,...], smooth(...), or a path that ends in .yaml or .yml. */
berlu_status act_from_text(berlu_act **out, const char *text);

#endif
