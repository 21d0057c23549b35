/* command_json.h - what a command printed with --json. SPDX-License-Identifier: MIT
 *
 * Behind <cmocka.h>: a command that failed, or text that is not JSON, fails the test with its
 * words. */
#ifndef TESTS_SUPPORT_COMMAND_JSON_H
#define TESTS_SUPPORT_COMMAND_JSON_H

#include <jansson.h>

#include "support/command.h"

/* Frees the result. */
static inline json_t *json_of(command_result *r)
{
    json_error_t error;
    if (r->code != 0)
        fail_msg("exit %d: %s", r->code, r->err);
    json_t *root = json_loads(r->out, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("%s", error.text);
    command_free(r);
    return root;
}

#endif
