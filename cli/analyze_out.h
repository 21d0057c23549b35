/* analyze_out.h - output shared by the commands of `berlu analyze`.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_ANALYZE_OUT_H
#define CLI_ANALYZE_OUT_H

#include "options.h"
#include "output.h"

/* A number that may be unknown (NaN): null in JSON, "-" in a table. */
void real_or_null(output *out, const char *key, double value);
const char *number_or_dash(char out[NUMBER_TEXT], double value); /* every digit */
const char *digits_or_dash(char out[NUMBER_TEXT], int digits, double value);

/* Closes `rows`: prints the JSON, or discards it where a table was printed instead. */
berlu_status rows_end(output *out, int json);

/* `analyze lipschitz RUN` (cmd_analyze_lipschitz.c). */
berlu_status analyze_lipschitz_run(const options *o, const char *run);

#endif
