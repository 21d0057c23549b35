/* landscape_file.c - writes and reads landscape.json. SPDX-License-Identifier: MIT
 *
 * One table (numbers) holds the keys, their order and which of them are required, so that writer
 * and reader cannot differ. Read landscape_save(), landscape_load(). */
#include "analyze/landscape_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { BYTES_MOST = 1 << 16, PATH = 4096 };

/* The numbers of the file, in the order they are written in. */
static const struct {
    const char *key;
    size_t offset;
    int required;
} numbers[] = {{"loss", offsetof(landscape_summary, loss), 1},
               {"gradient", offsetof(landscape_summary, gradient), 1},
               {"sharpness", offsetof(landscape_summary, sharpness), 1},
               {"eigenvalue", offsetof(landscape_summary, eigenvalue), 0},
               {"error", offsetof(landscape_summary, error), 0}};

static double *number_of(landscape_summary *s, size_t i)
{
    return (double *)((char *)s + numbers[i].offset);
}

static berlu_status path_make(char path[PATH], const char *folder)
{
    return snprintf(path, PATH, "%s/%s", folder, LANDSCAPE_FILE) < PATH
               ? BERLU_OK
               : berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
}

berlu_status landscape_save(const char *folder, const landscape_summary *s)
{
    char path[PATH];
    text json = {0};
    landscape_summary copy = *s;
    TRY(path_make(path, folder));
    text_add(&json, "{\"berlu\": \"%s\"", berlu_version());
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (isfinite(*number_of(&copy, i))) /* JSON has no NaN: unknown values are left out */
            text_add(&json, ", \"%s\": %.17g", numbers[i].key, *number_of(&copy, i));
    text_add(&json, ", \"how\": \"%s\"}\n", s->how);
    berlu_status status = file_write_text(NULL, path, &json);
    text_free(&json);
    return status;
}

static berlu_status summary_parse(landscape_summary *out, const json_t *root, const char *path)
{
    const char *how = json_string_value(json_object_get(root, "how"));
    if (!how || strlen(how) >= sizeof out->how)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no landscape: 'how' is missing", path);
    snprintf(out->how, sizeof out->how, "%s", how);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const json_t *value = json_object_get(root, numbers[i].key);
        *number_of(out, i) = json_is_number(value) ? json_number_value(value) : NAN;
        if (numbers[i].required && !isfinite(*number_of(out, i)))
            return berlu_fail(BERLU_ERR_INPUT, "%s: no landscape: '%s' is missing", path, numbers[i].key);
    }
    return BERLU_OK;
}

berlu_status landscape_load(landscape_summary *out, const char *folder)
{
    char path[PATH], *bytes;
    size_t count;
    TRY(path_make(path, folder));
    TRY(file_read_all(&bytes, &count, path, BYTES_MOST));
    json_error_t error;
    json_t *root = json_loadb(bytes, count, 0, &error);
    berlu_status status =
        root ? summary_parse(out, root, path) : berlu_fail(BERLU_ERR_INPUT, "%s:%d: %s", path, error.line, error.text);
    json_decref(root);
    free(bytes);
    return status;
}
