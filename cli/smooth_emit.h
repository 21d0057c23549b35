/* smooth_emit.h - a smoothed function as a text that other programs read. SPDX-License-Identifier: MIT */
#ifndef CLI_SMOOTH_EMIT_H
#define CLI_SMOOTH_EMIT_H

#include <berlu/smooth.h>

#define SMOOTH_EMIT_CHOICES "c|c-f32|python|latex|json|yaml|spec"
typedef enum smooth_emit {
    EMIT_C,
    EMIT_C_F32,
    EMIT_PYTHON,
    EMIT_LATEX,
    EMIT_JSON, /* cmd_smooth.c writes it */
    EMIT_YAML,
    EMIT_SPEC
} smooth_emit;

/* Prints it. `prefix` stands in front of the names of C and Python. yaml and spec are for functions of lines alone:
 * BERLU_ERR_UNSUPPORTED for the others. */
berlu_status smooth_emit_print(const berlu_smooth *f, smooth_emit kind, const char *prefix, const char *name);

#endif
