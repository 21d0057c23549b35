/* test_csv.c - tables read back as they were written; a cut row is named.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/csv.h"

static void cells_read_back_as_they_were_written(void **state)
{
    (void)state;
    text t = {0};
    csv_text(&t, "name"), csv_text(&t, "a,b"), csv_text(&t, "x"), csv_end(&t);
    csv_empty(&t), csv_f64(&t, 0.1), csv_f64(&t, 0.25), csv_end(&t);
    csv_text(&t, "say \"hi\",\nyou"), csv_empty(&t), csv_int(&t, -5), csv_end(&t);
    csv_f64(&t, NAN), csv_f64(&t, -INFINITY), csv_text(&t, ""), csv_end(&t);
    assert_int_equal(text_status(&t), BERLU_OK);
    assert_string_equal(t.data, "name,\"a,b\",x\n\"\",0.1,0.25\n\"say \"\"hi\"\",\nyou\",,-5\nnan,-inf,\n");
    csv_table table;
    assert_int_equal(csv_parse(&table, t.data, t.length, "t.csv"), BERLU_OK);
    assert_int_equal(table.columns, 3);
    assert_int_equal(table.rows, 3);
    assert_int_equal(csv_column(&table, "a,b"), 1);
    assert_int_equal(csv_column(&table, "none"), -1);
    assert_string_equal(csv_cell(&table, 1, 0), "say \"hi\",\nyou");
    assert_true(csv_number(&table, 0, 1) == 0.1);
    assert_true(isnan(csv_number(&table, 0, 0)));
    assert_true(csv_number(&table, 2, 1) == -INFINITY);
    assert_true(csv_number(&table, 1, 2) == -5);
    assert_string_equal(csv_cell(&table, 9, 0), "");
    assert_string_equal(csv_cell(&table, 0, -1), "");
    csv_free(&table);
    text_free(&t);
}

static void line_ends_may_be_of_either_kind_and_the_last_may_lack(void **state)
{
    (void)state;
    const char *sources[] = {"a,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2"};
    for (size_t i = 0; i < COUNT(sources); i++) {
        csv_table table;
        assert_int_equal(csv_parse(&table, sources[i], strlen(sources[i]), "t"), BERLU_OK);
        assert_int_equal(table.rows, 1);
        assert_string_equal(csv_cell(&table, 0, 1), "2");
        csv_free(&table);
    }
}

static void a_cut_row_is_named_with_its_line(void **state)
{
    (void)state;
    const struct {
        const char *source, *where;
    } bad[] = {{"a,b\n1,2\n3", "t.csv:3"}, {"a\n\"x", "t.csv:2"}, {"a\n\"x\"y\n", "t.csv:2"},
               {"a\n1\rb\n", "t.csv:2"},   {"a\n1,", "t.csv:2"},  {"", "t.csv"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        csv_table table;
        assert_int_equal(csv_parse(&table, bad[i].source, strlen(bad[i].source), "t.csv"), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), bad[i].where));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_read_back_as_they_were_written),
        cmocka_unit_test(line_ends_may_be_of_either_kind_and_the_last_may_lack),
        cmocka_unit_test(a_cut_row_is_named_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
