/* text.h - a text that grows. SPDX-License-Identifier: MIT
 *
 * A failed allocation is remembered and makes every later call a no-op, so a writer appends freely
 * and checks once, at the end, with text_status(). */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct text {
    char *data; /* always ends in NUL once anything was added; NULL before */
    size_t length, capacity;
    int failed;
} text; /* {0} is an empty text */

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_bytes(text *t, const void *bytes, size_t count);
void text_string(text *t, const char *string);
void text_free(text *t);
berlu_status text_status(const text *t); /* BERLU_ERR_MEMORY when anything above failed */

/* The shortest decimal that reads back to the same bits (strtod for a double, strtof for a float);
 * "nan", "inf", "-inf". */
enum { NUMBER_TEXT = 40 };
const char *number_text(char out[NUMBER_TEXT], double value);
const char *number_text_f32(char out[NUMBER_TEXT], float value);

/* Reads a whole text as a number: no trailing characters, no empty text. Accepts hexadecimal
 * floats, "inf", "nan". */
int number_parse(const char *text, double *out);

/* A whole number below 2^63 as 12, 1e4, 64Ki, 4Mi or 1Gi; 0: it is none. The command line and
 * settings files read numbers and flags by the same functions. */
int count_parse(const char *text, int64_t *out);

/* false, true, no, yes, off, on, 0, 1; 0: it is none of them. */
int flag_parse(const char *text, int64_t *out);

/* A correction for a word that is no number: "; write 0.001" for 0,001, "; write 4Mi (4194304) or
 * 4000000" for 4M, "" where there is nothing to say. */
enum { NUMBER_ADVICE = 96 };
const char *number_advice(char out[NUMBER_ADVICE], const char *word);

/* Whether a word is a plain name: an ASCII letter, then ASCII letters, digits and '_', in every
 * locale. */
int name_is_identifier(const char *word);

/* The number of bytes of a text before the first invalid UTF-8 sequence; its length if all are
 * valid. */
size_t utf8_span(const char *string);

/* Adds words, which may hold any bytes, to a page or a plot: & < > " as entities, what is no UTF-8
 * as U+FFFD, without the control characters that XML forbids. */
void html_text(text *out, const char *words);

/* The entry of `names` (NULL-terminated) nearest to `word` by edit distance, whatever the case, if
 * it is near enough to be a typing error; else the only one that continues it or that it continues
 * (optim, optimizer; cuda:0, cuda), else NULL. */
const char *nearest_name(const char *word, const char *const *names);

#endif
