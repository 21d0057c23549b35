/* smooth_emit.h - exports a smoothed function as source text. SPDX-License-Identifier: MIT */
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

/* Prints it. `prefix` precedes the names in C and Python. yaml and spec exist for piecewise linear
 * functions only: BERLU_ERR_UNSUPPORTED for others. */
berlu_status smooth_emit_print(const berlu_smooth *f, smooth_emit kind, const char *prefix, const char *name);

#endif
