/* test_safetensors_fail.c - memory and disk that run out under safetensors.
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "support/fail.h"

#define FOLDER "test_safetensors_fail.tmp"
#define PATH   FOLDER "/w.safetensors"

static const float values[] = {1, 2, 3, 4};
static const st_tensor tensors[] = {{"a", ST_F32, 1, {4}, values, 0, 0, NULL, 0},
                                    {"b", ST_F32, 2, {2, 2}, values, 0, 0, NULL, 0}};
static const st_text metadata[] = {{"format", "pt"}};

static berlu_status save(void)
{
    return safetensors_write(PATH, tensors, COUNT(tensors), metadata, 1);
}

static int files_in_folder(void)
{
    int files = 0;
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        files += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(folder);
    return files;
}

static int folder_ready(void **state)
{
    (void)state;
    return folder_make(FOLDER) == BERLU_OK ? 0 : -1;
}

static int folder_gone(void **state)
{
    (void)state;
    return folder_remove(FOLDER) == BERLU_OK ? 0 : -1;
}

static void reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    safetensors *file = NULL;
    berlu_status status = BERLU_OK;
    assert_int_equal(save(), BERLU_OK);
    int n = 1;
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = safetensors_open(&file, PATH), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(file);
    }
    assert_true(n > 2); /* something was there to fail */
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(safetensors_count(file), 2);
    safetensors_close(file);
}

static void reading_survives_every_failed_file_call(void **state)
{
    (void)state;
    safetensors *file = NULL;
    berlu_status status = BERLU_OK;
    assert_int_equal(save(), BERLU_OK);
    for (int n = 1; fail_after(FAIL_OPEN | FAIL_READ, n), status = safetensors_open(&file, PATH), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), PATH));
    }
    assert_int_equal(status, BERLU_OK);
    safetensors_close(file);
}

static void writing_survives_every_failed_allocation(void **state)
{
    (void)state;
    berlu_status status = BERLU_OK;
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = save(), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
}

/* The old file must be readable whatever call fails, and no temporary file may stay. */
static void a_write_that_fails_leaves_the_old_file_and_no_trace(void **state)
{
    (void)state;
    static const int kinds[] = {FAIL_OPEN, FAIL_WRITE, FAIL_SHORT, FAIL_RENAME, FAIL_CLOSE, FAIL_SYNC};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        assert_int_equal(save(), BERLU_OK);
        berlu_status status = BERLU_OK;
        for (int n = 1; fail_after(kinds[k], n), status = save(), fail_hit(); n++) {
            safetensors *file = NULL;
            /* the second close is the folder's, after all is on disk: nothing can be lost there */
            if (kinds[k] != FAIL_CLOSE || n == 1)
                assert_int_equal(status, BERLU_ERR_IO);
            assert_non_null(strstr(berlu_last_error(), FOLDER));
            assert_int_equal(files_in_folder(), 1);
            assert_int_equal(safetensors_open(&file, PATH), BERLU_OK);
            safetensors_close(file);
        }
        assert_int_equal(status, BERLU_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_every_failed_allocation),
        cmocka_unit_test(reading_survives_every_failed_file_call),
        cmocka_unit_test(writing_survives_every_failed_allocation),
        cmocka_unit_test(a_write_that_fails_leaves_the_old_file_and_no_trace),
    };
    return cmocka_run_group_tests(tests, folder_ready, folder_gone);
}
