/* test_demo.c - berlu demo: its numbers are those of its runs, and the next time gives them again.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/file.h"
#include "io/csv.h"
#include "support/command_json.h"
#include "support/folder.h"

static json_t *demo(const char *folder)
{
    command_result r;
    command_run(&r, "demo", "--out", folder, "--epochs", "1", "--images", "128", "--json", NULL);
    if (r.code != 0)
        fail_msg("%s", r.err);
    json_t *root = json_loads(r.out, 0, NULL);
    assert_non_null(root);
    assert_non_null(strstr(r.err, "berlu train --model vit_micro"));
    command_free(&r);
    return root;
}

static void the_rows_are_the_runs_and_come_again(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH + 64];
    folder_fresh(folder, "demo");
    json_t *first = demo(folder), *again = demo(folder), *row;
    size_t i;
    json_array_foreach(json_object_get(first, "rows"), i, row)
    {
        const json_t *other = json_array_get(json_object_get(again, "rows"), i);
        const json_t *top1 = json_object_get(row, "test_top1"), *same = json_object_get(other, "test_top1");
        assert_true(json_equal(top1, same));
        for (size_t seed = 0; seed < 2; seed++) {
            csv_table t;
            snprintf(path, sizeof path, "%s/%s-%zu/metrics.csv", folder, json_string_value(json_object_get(row, "act")),
                     seed);
            assert_int_equal(csv_read(&t, path), BERLU_OK);
            assert_true(csv_number(&t, t.rows - 1, csv_column(&t, "test_top1")) ==
                        json_number_value(json_array_get(top1, seed)));
            csv_free(&t);
        }
    }
    assert_int_equal(i, 4);
    assert_true(file_exists(folder_path(path, folder, "curves.svg")));
    json_decref(first);
    json_decref(again);
}

/* What is no run of the demo is not touched. */
static void a_folder_of_another_is_refused(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    command_result r;
    folder_fresh(folder, "demo-foreign");
    assert_int_equal(folder_make(folder_path(path, folder, "relu-0")), BERLU_OK);
    assert_int_equal(file_write_atomic(folder_path(path, folder, "relu-0/thesis.txt"), "x", 1), BERLU_OK);
    command_run(&r, "demo", "--out", folder, "--epochs", "1", "--images", "128", NULL);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "is not empty and holds no run"));
    assert_true(file_exists(path));
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_the_runs_and_come_again),
        cmocka_unit_test(a_folder_of_another_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
