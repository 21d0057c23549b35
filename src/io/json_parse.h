/* json_parse.h - jansson's parser with our statuses. SPDX-License-Identifier: MIT */
#ifndef IO_JSON_PARSE_H
#define IO_JSON_PARSE_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* Reads a JSON text without doubled keys; json_decref() it. BERLU_ERR_INPUT says "PATH:LINE: what",
 * with all that jansson knows in `error` (NULL: not wanted); BERLU_ERR_MEMORY: there was none to
 * read it with, which says nothing about the text. *out is NULL after a failure. */
berlu_status json_parse(json_t **out, const char *bytes, size_t count, const char *path, json_error_t *error);

#endif
