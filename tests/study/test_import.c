/* test_import.c - another program's results: what is taken, what is refused, and no allocation that
 * is not checked. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/import.h"
#include "study/stats.h"
#include "support/fail.h"

static const char runs[] = "cell,seed,study,value,source\n"
                           "b,2,s,4,p\nb,1,s,2,p\na,0,s,7.5,p\n";

static void rows_are_sorted_and_make_a_cell(void **state)
{
    (void)state;
    import_rows r;
    assert_int_equal(import_parse(&r, runs, sizeof runs - 1, "f.csv"), BERLU_OK);
    assert_int_equal(r.count, 3);
    assert_string_equal(r.items[0].cell, "a");
    assert_int_equal(r.items[1].seed, 1);
    import_cell b = import_cell_of(&r, "s", "p", "b"), none = import_cell_of(&r, "s", "q", "b");
    assert_true(b.n == 2 && b.mean == 3 && fabs(b.sd - sqrt(2)) < 1e-15);
    assert_true(none.n == 0 && isnan(none.mean));
    import_free(&r);
}

static void a_mean_a_deviation_and_a_number_stand_for_runs(void **state)
{
    (void)state;
    static const char means[] = "study,source,cell,n,mean,sd\ns,p,a,6,72.21,0.29\n";
    import_rows r;
    assert_int_equal(import_parse(&r, means, sizeof means - 1, "f.csv"), BERLU_OK);
    import_cell a = import_cell_of(&r, "s", "p", "a");
    assert_true(a.n == 6 && a.mean == 72.21 && a.sd == 0.29);
    import_free(&r);
}

static void every_mistake_is_refused_with_its_row(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"study,source,cell\ns,p,a\n", "seed and value"},
        {"study,source,seed,value\ns,p,1,2\n", "study, source and cell"},
        {"study,source,cell,seed,value\n", "no rows"},
        {"study,source,cell,seed,value\ns,p,a,1,2\ns,p,,1,2\n", "row 2"},
        {"study,source,cell,seed,value\ns,p,a,1.5,2\n", "seed"},
        {"study,source,cell,seed,value\ns,p,a,-1,2\n", "seed"},
        {"study,source,cell,seed,value\ns,p,a,1,inf\n", "value"},
        {"study,source,cell,seed,value\ns,p,a,1,\n", "value"},
        {"study,source,cell,seed,value\ns,p,a,,2\n", "n:"},
        {"study,source,cell,seed,value\ns,p,a,1,2\ns,p,a,1,2\n", "twice"},
        {"study,source,cell,n,mean,sd\ns,p,a,1,2,0\n", "n:"},
        {"study,source,cell,n,mean,sd\ns,p,a,3,x,0\n", "mean"},
        {"study,source,cell,n,mean,sd\ns,p,a,3,2,-1\n", "sd"},
        {"study,source,cell,n,mean,sd,seed,value\ns,p,a,3,2,1,,\ns,p,a,,,,4,5\n", "counts them twice"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        import_rows r;
        assert_int_equal(import_parse(&r, bad[i][0], strlen(bad[i][0]), "f.csv"), BERLU_ERR_INPUT);
        if (!strstr(berlu_last_error(), bad[i][1]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i][1]);
        assert_null(r.items);
    }
}

static void a_failed_allocation_keeps_nothing(void **state)
{
    (void)state;
    import_rows r;
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = import_parse(&r, runs, sizeof runs - 1, "f.csv"), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(r.items);
    }
    assert_true(n > 2);
    assert_int_equal(status, BERLU_OK);
    import_free(&r);
}

/* Two samples are Welch's test; four add their variances. */
static void combined_means_are_welchs_for_two(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 4, 8}, y[] = {3, 3.5, 5};
    static const double weights[] = {1, -1, -1, 1};
    stats_sample a = {x, 4}, b = {y, 3};
    stats_summary s[] = {{4, stats_mean(a), stats_deviation(a)}, {3, stats_mean(b), stats_deviation(b)}};
    stats_estimate want = stats_welch(a, b), got = stats_combined(s, weights, 2);
    assert_true(fabs(got.value - want.value) < 1e-14 && fabs(got.error - want.error) < 1e-14 &&
                fabs(got.df - want.df) < 1e-12);
    stats_summary four[] = {s[0], s[1], s[0], s[1]};
    stats_estimate twice = stats_combined(four, weights, 4);
    assert_true(fabs(twice.value) < 1e-14 && fabs(twice.error - want.error * sqrt(2)) < 1e-14 &&
                fabs(twice.df - 2 * want.df) < 1e-11);
    s[1].n = 1;
    assert_true(isnan(stats_combined(s, weights, 2).error) && isnan(stats_combined(s, weights, 2).df));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted_and_make_a_cell),
        cmocka_unit_test(a_mean_a_deviation_and_a_number_stand_for_runs),
        cmocka_unit_test(every_mistake_is_refused_with_its_row),
        cmocka_unit_test(a_failed_allocation_keeps_nothing),
        cmocka_unit_test(combined_means_are_welchs_for_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
