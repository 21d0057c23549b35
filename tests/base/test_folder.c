/* test_folder.c - folders with parents, renames, links. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support/fail.h"
#include "support/folder.h"

static char folder[FOLDER_PATH], path[FOLDER_PATH], other[FOLDER_PATH];

static int set_up(void **state)
{
    (void)state;
    folder_fresh(folder, "base_folder");
    return 0;
}

static void parents_are_made_and_what_exists_is_fine(void **state)
{
    (void)state;
    folder_path(path, folder, "a/b/c/");
    assert_int_equal(folder_make(path), BERLU_OK);
    assert_true(folder_exists(path));
    assert_int_equal(folder_make(path), BERLU_OK);
    assert_int_equal(folder_make("."), BERLU_OK);
    assert_int_equal(folder_make("/"), BERLU_OK);
}

static void a_file_in_the_way_is_reported(void **state)
{
    (void)state;
    folder_path(path, folder, "file");
    folder_path(other, folder, "file/below");
    assert_int_equal(file_write_atomic(path, "x", 1), BERLU_OK);
    assert_int_equal(folder_make(other), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), path));
    assert_int_equal(folder_make(""), BERLU_ERR_IO);
}

static void making_a_folder_survives_failures(void **state)
{
    (void)state;
    berlu_status status;
    folder_path(path, folder, "d/e");
    for (int n = 1;
         fail_after(FAIL_ALLOC | FAIL_MKDIR | FAIL_OPEN | FAIL_SYNC, n), status = folder_make(path), fail_hit(); n++) {
        assert_true(status == BERLU_ERR_IO || status == BERLU_ERR_MEMORY);
        folder_path(other, folder, "d");
        assert_int_equal(folder_remove(other), BERLU_OK);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(folder_exists(path));
}

static void a_folder_goes_with_all_it_holds_but_not_what_links_point_to(void **state)
{
    (void)state;
    char kept[FOLDER_PATH];
    folder_path(kept, folder, "kept");
    assert_int_equal(file_write_atomic(kept, "x", 1), BERLU_OK);
    assert_int_equal(folder_make(folder_path(path, folder, "tree/deep/er")), BERLU_OK);
    assert_int_equal(file_write_atomic(folder_path(path, folder, "tree/deep/file"), "x", 1), BERLU_OK);
    assert_int_equal(link_replace_in(NULL, kept, folder_path(path, folder, "tree/link")), BERLU_OK);
    folder_path(path, folder, "tree");
    assert_int_equal(folder_remove(path), BERLU_OK);
    assert_false(folder_exists(path));
    assert_true(file_exists(kept));
    assert_int_equal(folder_remove(path), BERLU_OK); /* a missing one is fine */
}

static void a_link_is_replaced_or_stays_as_it_was(void **state)
{
    (void)state;
    char target[64];
    berlu_status status;
    folder_path(path, folder, "last");
    assert_int_equal(link_replace_in(NULL, "step-1", path), BERLU_OK);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_RENAME, n), status = link_replace_in(NULL, "step-2", path), fail_hit();
         n++) {
        assert_true(status == BERLU_ERR_IO || status == BERLU_ERR_MEMORY);
        ssize_t length = readlink(path, target, sizeof target);
        assert_int_equal(length, 6);
        assert_memory_equal(target, "step-1", 6);
    }
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(readlink(path, target, sizeof target), 6);
    assert_memory_equal(target, "step-2", 6);
}

static void a_rename_names_both_paths_when_it_fails(void **state)
{
    (void)state;
    folder_path(path, folder, "from");
    folder_path(other, folder, "to");
    assert_int_equal(path_rename(path, other), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), path));
    assert_non_null(strstr(berlu_last_error(), other));
    assert_int_equal(folder_make(path), BERLU_OK);
    assert_int_equal(path_rename(path, other), BERLU_OK);
    assert_true(folder_exists(other) && !folder_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parents_are_made_and_what_exists_is_fine, set_up),
        cmocka_unit_test_setup(a_file_in_the_way_is_reported, set_up),
        cmocka_unit_test_setup(making_a_folder_survives_failures, set_up),
        cmocka_unit_test_setup(a_folder_goes_with_all_it_holds_but_not_what_links_point_to, set_up),
        cmocka_unit_test_setup(a_link_is_replaced_or_stays_as_it_was, set_up),
        cmocka_unit_test_setup(a_rename_names_both_paths_when_it_fails, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
