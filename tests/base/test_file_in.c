/* test_file_in.c - files that change while they are open are read, or refused with a message.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_in.h"
#include "support/fail.h"
#include "support/folder.h"

static const char text[] = "0123456789";

static const char *file_make(char path[FOLDER_PATH], const char *folder)
{
    char root[FOLDER_PATH];
    folder_path(path, folder_fresh(root, folder), "f");
    assert_int_equal(file_write_atomic(path, text, 10), BERLU_OK);
    return path;
}

static void any_part_of_a_file_is_read_and_nothing_behind_its_end(void **state)
{
    (void)state;
    char path[FOLDER_PATH], bytes[16] = "";
    file_in f;
    assert_int_equal(file_in_open(&f, file_make(path, "file_in_part")), BERLU_OK);
    assert_int_equal(f.size, 10);
    assert_int_equal(file_in_read(&f, 3, bytes, 4), BERLU_OK);
    assert_memory_equal(bytes, "3456", 4);
    assert_int_equal(file_in_read(&f, 10, bytes, 0), BERLU_OK);
    assert_int_equal(file_in_read(&f, 7, bytes, 4), BERLU_ERR_INPUT);
    file_in_close(&f);
    file_in_close(&f);
    unsigned char *all;
    size_t size;
    assert_int_equal(file_in_all(&all, &size, path), BERLU_OK);
    assert_int_equal(size, 10);
    assert_string_equal((char *)all, text);
    free(all);
}

static void a_file_that_was_cut_says_so_and_one_that_was_removed_stays(void **state)
{
    (void)state;
    char path[FOLDER_PATH], bytes[10];
    file_in f;
    assert_int_equal(file_in_open(&f, file_make(path, "file_in_cut")), BERLU_OK);
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(file_in_read(&f, 0, bytes, 4), BERLU_OK);
    assert_int_equal(file_in_read(&f, 2, bytes, 4), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "ends at byte 4; it had 10 bytes when it was opened"));
    file_in_close(&f);
    assert_int_equal(file_in_open(&f, file_make(path, "file_in_cut")), BERLU_OK);
    assert_int_equal(file_write_atomic(path, "another", 7), BERLU_OK); /* replaced by a rename */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(file_in_read(&f, 0, bytes, 10), BERLU_OK);
    assert_memory_equal(bytes, text, 10);
    file_in_close(&f);
}

static void what_is_no_file_is_refused_and_every_failing_call_is_noticed(void **state)
{
    (void)state;
    char path[FOLDER_PATH], folder[FOLDER_PATH];
    unsigned char *all = NULL;
    size_t size;
    berlu_status status;
    file_in f;
    assert_int_equal(file_in_open(&f, folder_fresh(folder, "file_in_none")), BERLU_ERR_INPUT);
    assert_int_equal(file_in_open(&f, "/no/such"), BERLU_ERR_INPUT);
    file_make(path, "file_in_fail");
    for (int n = 1; fail_after(FAIL_OPEN | FAIL_READ, n), status = file_in_all(&all, &size, path), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), path));
    }
    assert_int_equal(status, BERLU_OK);
    free(all);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = file_in_all(&all, &size, path), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_part_of_a_file_is_read_and_nothing_behind_its_end),
        cmocka_unit_test(a_file_that_was_cut_says_so_and_one_that_was_removed_stays),
        cmocka_unit_test(what_is_no_file_is_refused_and_every_failing_call_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
