/* test_store_aside.c - a store that this program cannot read is kept, however often. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "study/store.h"
#include "support/folder.h"

static void what_is_no_store_is_set_aside_under_a_name_of_its_own(void **state)
{
    (void)state;
    static const char *const junk[] = {"neither a database", "nor this one", ""};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_no_store_is_set_aside_under_a_name_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
