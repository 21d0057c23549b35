/* test_file.c - a file is replaced whole or not at all, whichever call fails.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "support/fail.h"
#include "support/folder.h"

static char folder[FOLDER_PATH], path[FOLDER_PATH];

static int set_up(void **state)
{
    (void)state;
    folder_fresh(folder, "base_file");
    folder_path(path, folder, "file");
    return 0;
}

static int entries(const char *where)
{
    int count = 0;
    DIR *dir = opendir(where);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void assert_content(const char *where, const char *want)
{
    char *data;
    size_t size;
    assert_int_equal(file_read_all(&data, &size, where, 1 << 20), BERLU_OK);
    assert_int_equal(size, strlen(want));
    assert_string_equal(data, want);
    free(data);
}

static void what_is_written_is_read_back_in_pieces_of_any_size(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    unsigned char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    file_out *f;
    assert_int_equal(file_out_open(&f, path), BERLU_OK);
    for (size_t at = 0, piece = 0; at < SIZE; at += piece) {
        piece = (at * 7 + 1) % 90000;
        piece = piece < SIZE - at ? piece : SIZE - at;
        assert_int_equal(file_out_write(f, bytes + at, piece), BERLU_OK);
        assert_false(file_exists(path)); /* not before commit */
        piece += piece == 0;
        if (piece > SIZE - at)
            break;
        if ((at * 7 + 1) % 90000 == 0)
            assert_int_equal(file_out_write(f, bytes + at, 1), BERLU_OK);
    }
    assert_int_equal(file_out_commit(f), BERLU_OK);
    char *found;
    size_t size;
    assert_int_equal(file_read_all(&found, &size, path, SIZE), BERLU_OK);
    assert_int_equal(size, SIZE);
    assert_memory_equal(found, bytes, SIZE);
    free(found);
    free(bytes);
}

static void a_discarded_file_leaves_no_trace(void **state)
{
    (void)state;
    file_out *f;
    assert_int_equal(file_write_atomic(path, "old", 3), BERLU_OK);
    assert_int_equal(file_out_open(&f, path), BERLU_OK);
    assert_int_equal(file_out_write(f, "new", 3), BERLU_OK);
    file_out_discard(f);
    file_out_discard(NULL);
    assert_content(path, "old");
    assert_int_equal(entries(folder), 1);
}

/* Whatever fails, the file holds all of the old or all of the new text, and no temporary file stays
 * behind. */
static void check_atomic(int kinds, size_t size)
{
    char *fresh = malloc(size + 1);
    memset(fresh, 'n', size);
    fresh[size] = 0;
    berlu_status status;
    int n;
    assert_int_equal(file_write_atomic(path, "old", 3), BERLU_OK);
    for (n = 1; fail_after(kinds, n), status = file_write_atomic(path, fresh, size), fail_hit(); n++) {
        int only_folder =
            status == BERLU_ERR_IO && strstr(berlu_last_error(), "sync") && !strstr(berlu_last_error(), path);
        if (status != BERLU_OK && !only_folder) {
            assert_true(status == BERLU_ERR_IO || status == BERLU_ERR_MEMORY);
            assert_non_null(strstr(berlu_last_error(), path));
            assert_content(path, "old");
        } else {
            assert_content(path, fresh);
            assert_int_equal(file_write_atomic(path, "old", 3), BERLU_OK);
        }
        assert_int_equal(entries(folder), 1);
    }
    assert_int_equal(status, BERLU_OK);
    assert_content(path, fresh);
    free(fresh);
}

static void a_failure_at_any_call_leaves_the_old_file_whole(void **state)
{
    (void)state;
    const int kinds[] = {FAIL_ALLOC, FAIL_OPEN,   FAIL_WRITE, FAIL_SHORT,
                         FAIL_SYNC,  FAIL_RENAME, FAIL_CLOSE, FAIL_FILE | FAIL_ALLOC};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        check_atomic(kinds[i], 3);
        check_atomic(kinds[i], 200000);
    }
}

static void a_write_in_two_halves_still_arrives_whole(void **state)
{
    (void)state;
    fail_after(FAIL_SHORT, 1); /* the first write is short and the rest fails: must be reported */
    assert_int_equal(file_write_atomic(path, "0123456789", 10), BERLU_ERR_IO);
    assert_true(fail_hit());
    assert_false(file_exists(path));
}

static void things_that_are_no_files_are_not_replaced(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(file_write_atomic("/dev/null", "x", 1), BERLU_OK);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(file_write_atomic(folder, "x", 1), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), "is a folder"));
    char missing[FOLDER_PATH];
    assert_int_equal(file_write_atomic(folder_path(missing, folder, "no/such/file"), "x", 1), BERLU_ERR_IO);
    assert_int_equal(entries(folder), 0);
}

static void a_file_behind_a_descriptor_is_continued_in_place(void **state)
{
    (void)state;
    char name[32], *data = NULL;
    struct stat before, after;
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0 && write(fd, "a", 1) == 1 && fstat(fd, &before) == 0);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(file_write_atomic(name, "b", 1), BERLU_OK);
    close(fd);
    assert_int_equal(file_read_all(&data, NULL, path, 10), BERLU_OK);
    assert_string_equal(data, "ab");
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    free(data);
}

static void reading_says_what_is_wrong(void **state)
{
    (void)state;
    char *data = NULL;
    assert_int_equal(file_read_all(&data, NULL, path, 10), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), path));
    assert_int_equal(file_read_all(&data, NULL, folder, 10), BERLU_ERR_INPUT);
    assert_int_equal(file_write_atomic(path, "0123456789a", 11), BERLU_OK);
    assert_int_equal(file_read_all(&data, NULL, path, 10), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "larger than the 10 bytes"));
    assert_null(data);
    assert_int_equal(file_read_all(&data, NULL, path, 11), BERLU_OK);
    free(data);
}

static void reading_survives_failures_too(void **state)
{
    (void)state;
    char *data = NULL, big[10000];
    size_t size;
    berlu_status status;
    memset(big, 'b', sizeof big);
    assert_int_equal(file_write_atomic(path, big, sizeof big), BERLU_OK);
    const int kinds = FAIL_ALLOC | FAIL_OPEN | FAIL_READ;
    for (int n = 1; fail_after(kinds, n), status = file_read_all(&data, &size, path, 1 << 20), fail_hit(); n++)
        assert_true(status == BERLU_ERR_INPUT || status == BERLU_ERR_MEMORY);
    assert_int_equal(size, sizeof big);
    free(data);
}

static void an_empty_file_is_read_as_nothing(void **state)
{
    (void)state;
    char *data;
    size_t size;
    assert_int_equal(file_write_atomic(path, NULL, 0), BERLU_OK);
    assert_int_equal(file_read_all(&data, &size, path, 10), BERLU_OK);
    assert_string_equal(data, "");
    assert_int_equal(size, 0);
    free(data);
}

static void appended_lines_are_whole_or_taken_back(void **state)
{
    (void)state;
    berlu_status status;
    assert_int_equal(file_append_in(NULL, path, "one\n", 4, 1), BERLU_OK);
    const int kinds = FAIL_OPEN | FAIL_WRITE | FAIL_SYNC;
    for (int n = 1; fail_after(kinds, n), status = file_append_in(NULL, path, "two\n", 4, 1), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_IO);
        assert_content(path, "one\n");
    }
    assert_content(path, "one\ntwo\n");
    fail_after(FAIL_SHORT, 1);
    assert_int_equal(file_append_in(NULL, path, "three\n", 6, 0), BERLU_ERR_IO);
    assert_true(fail_hit());
    assert_content(path, "one\ntwo\n");
    assert_int_equal(file_truncate_in(NULL, path, 4), BERLU_OK);
    assert_content(path, "one\n");
    for (int n = 1; fail_after(FAIL_FILE, n), status = file_truncate_in(NULL, path, 4), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_written_is_read_back_in_pieces_of_any_size, set_up),
        cmocka_unit_test_setup(a_discarded_file_leaves_no_trace, set_up),
        cmocka_unit_test_setup(a_failure_at_any_call_leaves_the_old_file_whole, set_up),
        cmocka_unit_test_setup(a_write_in_two_halves_still_arrives_whole, set_up),
        cmocka_unit_test_setup(things_that_are_no_files_are_not_replaced, set_up),
        cmocka_unit_test_setup(a_file_behind_a_descriptor_is_continued_in_place, set_up),
        cmocka_unit_test_setup(reading_says_what_is_wrong, set_up),
        cmocka_unit_test_setup(reading_survives_failures_too, set_up),
        cmocka_unit_test_setup(an_empty_file_is_read_as_nothing, set_up),
        cmocka_unit_test_setup(appended_lines_are_whole_or_taken_back, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
