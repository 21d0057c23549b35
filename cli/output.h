/* output.h - writes JSON as a stream. SPDX-License-Identifier: MIT
 *
 *     output out;
 *     output_start(&out);                       // {"berlu": "0.1.0"
 *     output_array(&out, "rows");
 *     output_object(&out, NULL);                // no key inside an array
 *     output_real(&out, "x", x);
 *     output_end(&out);
 *     output_end(&out);
 *     return output_print(&out);                // }, to stdout; frees it
 *
 * Reals are the shortest text that reads back to the same bits and always look like reals (1.0,
 * -0.0, 1e+20); NaN and infinities are the strings "nan", "inf", "-inf". output_print() reports a
 * lack of memory. jansson is not used here because it cannot write 0.1 as 0.1 exactly, and each of
 * its nodes is an allocation to check. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdint.h>

#include "base/text.h"

enum { OUTPUT_DEPTH = 16 };
typedef struct output {
    text json;
    int depth;
    char closer[OUTPUT_DEPTH]; /* '}' or ']' of each open level */
    char empty[OUTPUT_DEPTH];  /* nothing is written on this level yet */
} output;

void output_start(output *out);
void output_object(output *out, const char *key);
void output_array(output *out, const char *key);
void output_end(output *out); /* closes the innermost */
void output_real(output *out, const char *key, double value);
void output_reals(output *out, const char *key, const double *values, size_t count);
void output_int(output *out, const char *key, int64_t value);
void output_bool(output *out, const char *key, int value);
void output_string(output *out, const char *key, const char *value); /* NULL: null; bytes that are not UTF-8: U+FFFD */
void output_null(output *out, const char *key);

/* Closes all levels; the text is out->json. */
berlu_status output_close(output *out);
/* The same, written to stdout. Frees `out`. */
berlu_status output_print(output *out);
/* Flushes stdout; the reason of the first write that failed since the start, however long ago. */
berlu_status output_flush(void);

#endif
