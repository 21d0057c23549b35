/* test_memory.c - every allocation of the smoother may fail. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/fail.h"
#include <berlu/smooth.h>

/* Each call once with its first, second, ... allocation failing, until none is left to fail. */
static void making_a_function_reports_lack_of_memory(void **state)
{
    (void)state;
    berlu_smooth *f;
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_smooth_named(&f, "relu", NULL, 0.1, 2), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(f);
    }
    assert_int_equal(status, BERLU_OK);
    berlu_smooth *copy;
    int failures = 0;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_smooth_clone(&copy, f), fail_hit(); n++, failures++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(copy);
    }
    assert_int_equal(failures, 1);
    berlu_smooth_free(copy);
    berlu_smooth_free(f);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_smooth_named(&f, "elu", NULL, 0.1, 2), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(f);
    }
    assert_int_equal(status, BERLU_OK);
    berlu_smooth_free(f);
}

static void reading_a_text_reports_lack_of_memory(void **state)
{
    (void)state;
    const char *text =
        "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1,0.2; eps_right=0.1,0.3; at=0=0; degree=4; form=bernstein)";
    berlu_smooth *f;
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = berlu_smooth_parse(&f, text), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(f);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 12); /* the text, seven values, four lists, the function */
    berlu_smooth_free(f);
}

static void writing_source_reports_lack_of_memory(void **state)
{
    (void)state;
    berlu_smooth *f;
    char *source;
    berlu_status status;
    assert_int_equal(berlu_smooth_named(&f, "hard_swish", NULL, 0.1, 2), BERLU_OK);
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = berlu_smooth_source(f, "f", &source), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(source);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 1);
    free(source);
    berlu_smooth_free(f);
}

static void a_registry_stays_whole_when_memory_runs_out(void **state)
{
    (void)state;
    berlu_registry *r;
    berlu_smooth *f;
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_registry_make(&r), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(r);
    }
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(berlu_smooth_named(&f, "abs", NULL, 0.1, 2), BERLU_OK);
    assert_int_equal(berlu_registry_add(r, "first", f), BERLU_OK);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_registry_add(r, "second", f), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(berlu_registry_find(r, "second"));
        assert_non_null(berlu_registry_find(r, "first"));
        assert_null(berlu_registry_name(r, 1));
    }
    assert_int_equal(status, BERLU_OK);
    assert_non_null(berlu_registry_find(r, "second"));
    berlu_smooth_free(f);
    berlu_registry_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_a_function_reports_lack_of_memory),
        cmocka_unit_test(reading_a_text_reports_lack_of_memory),
        cmocka_unit_test(writing_source_reports_lack_of_memory),
        cmocka_unit_test(a_registry_stays_whole_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
