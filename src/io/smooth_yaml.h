/* smooth_yaml.h - a smoothed function from a YAML file. SPDX-License-Identifier: MIT
 *
 *     name: soft_step
 *     kinks: [-3, 3]
 *     slopes: [0, 1, 0]
 *     eps: 0.1          # or one per kink
 *     degree: 4
 *     at: 0=0           # or [0, 0]
 *
 * The keys are those of the text form (<berlu/smooth.h>, berlu_smooth_parse()), and `name`, which
 * it is registered under. */
#ifndef IO_SMOOTH_YAML_H
#define IO_SMOOTH_YAML_H

#include <berlu/smooth.h>

#include "io/yaml.h"

enum { SMOOTH_NAME = 64 };

/* Length of the path of such a file at the start of a text; 0: there is none. A path ends in .yaml
 * or .yml or has a '/' in it; keys of an activation may follow (f.yaml:scale=2). */
size_t smooth_yaml_path(const char *words);

/* `name` gets the key of that name, or "" when there is none. A mistake is reported with its line
 * (BERLU_ERR_INPUT). */
berlu_status smooth_yaml_read(berlu_smooth **out, char name[SMOOTH_NAME], const char *path);
berlu_status smooth_yaml_take(berlu_smooth **out, char name[SMOOTH_NAME], const yaml_tree *tree);

#endif
