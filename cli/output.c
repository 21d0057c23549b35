/* output.c - see output.h. SPDX-License-Identifier: MIT */
#include "output.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* errno of the first write to standard output that failed. stdio only remembers that one did. */
static int lost;

static void string_add(text *t, const char *string)
{
    const char *broken = string + utf8_span(string);
    text_string(t, "\"");
    for (const char *s = string; *s; s++) {
        if (s == broken) {
            text_string(t, "\\ufffd");
            broken = s + 1 + utf8_span(s + 1);
        } else if (*s == '"' || *s == '\\')
            text_add(t, "\\%c", *s);
        else if (*s == '\n')
            text_string(t, "\\n");
        else if (*s == '\t')
            text_string(t, "\\t");
        else if ((unsigned char)*s < 0x20)
            text_add(t, "\\u%04x", *s);
        else
            text_bytes(t, s, 1);
    }
    text_string(t, "\"");
}

/* Writes the comma and the key before the next value. */
static void value_begin(output *out, const char *key)
{
    assert(out->depth > 0 && (key != NULL) == (out->closer[out->depth - 1] == '}'));
    if (!out->empty[out->depth - 1])
        text_string(&out->json, ", ");
    out->empty[out->depth - 1] = 0;
    if (key) {
        string_add(&out->json, key);
        text_string(&out->json, ": ");
    }
}

static void level_open(output *out, char opener, char closer)
{
    assert(out->depth < OUTPUT_DEPTH);
    text_bytes(&out->json, &opener, 1);
    out->closer[out->depth] = closer;
    out->empty[out->depth++] = 1;
}

void output_start(output *out)
{
    *out = (output){0};
    level_open(out, '{', '}');
    output_string(out, "berlu", berlu_version());
}

void output_object(output *out, const char *key)
{
    value_begin(out, key);
    level_open(out, '{', '}');
}

void output_array(output *out, const char *key)
{
    value_begin(out, key);
    level_open(out, '[', ']');
}

void output_end(output *out)
{
    assert(out->depth > 0);
    text_bytes(&out->json, &out->closer[--out->depth], 1);
}

/* Adds ".0" to a number that looks like an integer, so that -0.0 keeps its sign in every reader. */
static void number_add(text *t, const char *number)
{
    if (strpbrk(number, "ni")) {
        string_add(t, number);
        return;
    }
    text_string(t, number);
    if (!strpbrk(number, ".e"))
        text_string(t, ".0");
}

void output_real(output *out, const char *key, double value)
{
    char number[NUMBER_TEXT];
    value_begin(out, key);
    number_add(&out->json, number_text(number, value));
}

void output_reals(output *out, const char *key, const double *values, size_t count)
{
    output_array(out, key);
    for (size_t i = 0; i < count; i++)
        output_real(out, NULL, values[i]);
    output_end(out);
}

void output_int(output *out, const char *key, int64_t value)
{
    value_begin(out, key);
    text_add(&out->json, "%lld", (long long)value);
}

void output_bool(output *out, const char *key, int value)
{
    value_begin(out, key);
    text_string(&out->json, value ? "true" : "false");
}

void output_null(output *out, const char *key)
{
    value_begin(out, key);
    text_string(&out->json, "null");
}

void output_string(output *out, const char *key, const char *value)
{
    if (!value) {
        output_null(out, key);
        return;
    }
    value_begin(out, key);
    string_add(&out->json, value);
}

berlu_status output_close(output *out)
{
    while (out->depth)
        output_end(out);
    text_string(&out->json, "\n");
    return text_status(&out->json);
}

berlu_status output_flush(void)
{
    if (fflush(stdout) != 0 && !lost)
        lost = errno;
    if (!lost && ferror(stdout))
        lost = errno; /* by printf(), just now */
    return lost ? berlu_fail(BERLU_ERR_IO, "standard output: %s", strerror(lost)) : BERLU_OK;
}

berlu_status output_print(output *out)
{
    berlu_status status = output_close(out);
    if (status == BERLU_OK && fwrite(out->json.data, 1, out->json.length, stdout) != out->json.length) {
        lost = lost ? lost : errno;
        status = output_flush();
    }
    text_free(&out->json);
    return status;
}
