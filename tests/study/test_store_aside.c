/* test_store_aside.c - a store that this program cannot read is kept, however often.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "study/store_internal.h"
#include "support/folder.h"

static void what_is_no_store_is_set_aside_under_a_name_of_its_own(void **state)
{
    (void)state;
    static const char *const junk[] = {"neither a database", "nor this one", "SQLite format 3"};
    static const char *const names[] = {"study.db.old", "study.db.old-2", "study.db.old-3"};
    char folder[FOLDER_PATH], path[FOLDER_PATH], *found;
    folder_fresh(folder, "store-aside");
    for (size_t i = 0; i < COUNT(junk); i++) {
        store *s;
        text notes = {0};
        assert_int_equal(file_write_atomic(folder_path(path, folder, "study.db"), junk[i], strlen(junk[i])), BERLU_OK);
        assert_int_equal(store_open_read(&s, path), BERLU_ERR_INPUT);
        assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
        assert_non_null(strstr(notes.data, names[i]));
        assert_int_equal(store_close(s), BERLU_OK);
        text_free(&notes);
        assert_int_equal(store_open_read(&s, path), BERLU_OK); /* made anew */
        store_close(s);
    }
    for (size_t i = 0; i < COUNT(junk); i++) {
        assert_int_equal(file_read_all(&found, NULL, folder_path(path, folder, names[i]), 100), BERLU_OK);
        assert_string_equal(found, junk[i]);
        free(found);
    }
}

/* One whose making was interrupted has nothing to keep, and may be in the making by another process. */
static void an_empty_file_becomes_the_store(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    store *s;
    text notes = {0};
    folder_fresh(folder, "store-empty");
    assert_int_equal(file_write_atomic(folder_path(path, folder, "study.db"), "", 0), BERLU_OK);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_event(s, "key", "something"), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    assert_null(notes.data);
    assert_false(file_exists(folder_path(path, folder, "study.db.old")));
}

/* A limit of open files, another process's lock: what cannot be looked at is not judged. */
static void a_store_that_cannot_be_opened_stays(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *before, *after;
    size_t size, found;
    store *s = NULL;
    text notes = {0};
    struct rlimit usual, none;
    folder_fresh(folder, "store-stays");
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_event(s, "key", "something to lose"), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    assert_int_equal(file_read_all(&before, &size, folder_path(path, folder, "study.db"), 1 << 20), BERLU_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    int next = dup(0), refused = 0;
    assert_true(next >= 0);
    close(next);
    for (int more = 0; more < 6; more++) {
        none = usual;
        none.rlim_cur = (rlim_t)next + (rlim_t)more;
        s = NULL;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        berlu_status status = store_open(&s, folder, &notes);
        berlu_status closed = store_close(s);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        refused += status != BERLU_OK || closed != BERLU_OK;
        assert_false(file_exists(folder_path(path, folder, "study.db.old")));
    }
    assert_true(refused > 0);
    assert_int_equal(file_read_all(&after, &found, folder_path(path, folder, "study.db"), 1 << 20), BERLU_OK);
    assert_true(found == size && memcmp(before + 100, after + 100, size - 100) == 0); /* the head counts changes */
    free(before);
    free(after);
    text_free(&notes);
}

/* Runs whose folders are gone live in it alone. */
static void a_store_of_a_newer_format_is_refused_and_stays(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    store *s = NULL;
    text notes = {0};
    folder_fresh(folder, "store-newer");
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_exec(s, "PRAGMA user_version = 99"), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "a store of a newer berlu; this one reads format 1"));
    assert_int_equal(store_open_read(&s, folder_path(path, folder, "study.db")), BERLU_ERR_UNSUPPORTED);
    assert_false(file_exists(folder_path(path, folder, "study.db.old")));
    text_free(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_store_is_set_aside_under_a_name_of_its_own),
        cmocka_unit_test(an_empty_file_becomes_the_store),
        cmocka_unit_test(a_store_that_cannot_be_opened_stays),
        cmocka_unit_test(a_store_of_a_newer_format_is_refused_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
