/* json_parse.c - see json_parse.h. SPDX-License-Identifier: MIT */
#include "io/json_parse.h"

#include <errno.h>

berlu_status json_parse(json_t **out, const char *bytes, size_t count, const char *path, json_error_t *error)
{
    json_error_t own;
    if (!error)
        error = &own;
    /* jansson reports a failed allocation as a broken text, or leaves bytes of a string out; only
     * the allocator's errno tells. */
    errno = 0;
    *out = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, error);
    if (errno == ENOMEM) {
        json_decref(*out);
        *out = NULL;
        return berlu_fail_memory(count, path);
    }
    if (*out)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "%s:%d: %s", path, error->line, error->text);
}
