/* judged.h - a report of a synthetic store, and the claims that it judges. SPDX-License-Identifier: MIT */
#ifndef TESTS_REPORT_JUDGED_H
#define TESTS_REPORT_JUDGED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"
#include "synthetic.h"

static inline void judge(report *r, store_contents *contents, const synthetic *s)
{
    synthetic_make(contents, s);
    if (report_make(r, contents) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static inline void done(report *r, store_contents *contents)
{
    report_free(r);
    store_contents_free(contents);
}

static inline const claim_result *claim(const report *r, int number)
{
    const claim_result *c = &r->claims[number - 1];
    char id[16];
    snprintf(id, sizeof id, "C%d", number);
    assert_string_equal(c->of->id, id);
    return c;
}

static inline void is(const report *r, int number, const char *direction)
{
    const claim_result *c = claim(r, number);
    if (strcmp(c->direction, direction) != 0)
        fail_msg("C%d: %s, not %s (%s)", number, c->direction, direction, c->figures);
}

#endif
