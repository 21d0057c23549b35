/* test_data_fail.c - no memory, no disk: every call of a data set has its turn to fail.
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <sys/resource.h>

#include "data/archive.h"
#include "data/cache.h"
#include "data/files.h"
#include "data/loader.h"
#include "data/make.h"
#include "support.h"
#include "support/fail.h"

static int entries_in(const char *folder)
{
    DIR *d = opendir(folder);
    int count = -2;
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

static void small_folder(char folder[FOLDER_PATH], const char *name)
{
    folder_fresh(folder, name);
    png_set(folder, "train", "a", 4, 20, 12);
    png_set(folder, "train", "b", 4, 12, 20);
    png_set(folder, "val", "a", 2, 9, 9);
}

static void opening_any_kind_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], pack[FOLDER_PATH];
    small_folder(folder, "fail_open");
    folder_path(pack, folder, "set.pack");
    data_source *s = NULL;
    assert_ok(data_open(&s, folder, NULL));
    assert_ok(cache_write(s, pack, 8, 1, NULL, NULL));
    data_close(s);
    const char *texts[] = {folder, pack, "synthetic"};
    const data_options o = {.images = 10, .image_size = 16, .threads = 1};
    for (size_t t = 0; t < COUNT(texts); t++) {
        berlu_status status;
        int n = 1;
        for (s = NULL; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = data_open(&s, texts[t], &o), fail_hit(); n++) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            assert_null(s);
        }
        assert_ok(status);
        assert_true(n > 2);
        data_close(s);
    }
}

static void a_folder_that_cannot_be_listed_is_no_smaller_set(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s = NULL;
    berlu_status status;
    int n = 1;
    small_folder(folder, "fail_list");
    for (; fail_after(FAIL_READ, n), status = data_open(&s, folder, NULL), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_INPUT);
    assert_ok(status);
    assert_true(n > 20); /* entries of the class folders are listed twice */
    data_close(s);
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    status = data_open(&s, folder, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, BERLU_ERR_IO); /* no fault of the folder */
}

static void a_limit_of_open_files_breaks_no_image(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], first[FOLDER_PATH];
    small_folder(folder, "fail_many");
    const char *paths[] = {folder_path(first, folder, "train/a/0.png")};
    data_source *s = NULL, *files = NULL;
    image out = {0};
    assert_ok(data_open(&s, folder, NULL));
    fail_after(FAIL_MANY, 1);
    assert_int_equal(data_read(s, DATA_TRAIN, 0, NULL, &out), BERLU_ERR_IO);
    assert_true(fail_hit());
    assert_non_null(strstr(berlu_last_error(), "train/a/0.png: cannot be read: "));
    fail_after(FAIL_MANY, 1);
    assert_int_equal(data_open_files(&files, paths, 1, data_describe(s)), BERLU_ERR_IO);
    assert_true(fail_hit());
    image_free(&out);
    data_close(s);
}

static void opening_files_survives_each_failing_call(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], first[FOLDER_PATH], second[FOLDER_PATH];
    small_folder(folder, "fail_files");
    const char *paths[] = {folder_path(first, folder, "train/a/0.png"), folder_path(second, folder, "val/a/1.png")};
    data_source *like = NULL, *s = NULL;
    assert_ok(data_open(&like, folder, NULL));
    for (int kinds = FAIL_ALLOC; kinds <= FAIL_READ; kinds *= 2) {
        berlu_status status;
        int n = 1;
        for (; fail_after(kinds, n), status = data_open_files(&s, paths, 2, data_describe(like)), fail_hit(); n++) {
            assert_int_equal(status, kinds == FAIL_ALLOC ? BERLU_ERR_MEMORY : BERLU_ERR_INPUT);
            assert_null(s);
        }
        assert_ok(status);
        assert_true(n > 2);
        assert_int_equal(data_describe(s)->images[DATA_TEST], 2);
        assert_int_equal(data_describe(s)->classes, 2);
        data_close(s);
        s = NULL;
    }
    data_close(like);
}

static void opening_a_folder_survives_each_failing_file_call(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    cifar_layout l = tiny_layout(&cifar10_layout, 10);
    tiny_write(&l, folder_fresh(folder, "fail_cifar"));
    for (int kinds = FAIL_OPEN; kinds <= FAIL_READ; kinds *= 2) {
        berlu_status status;
        for (int n = 1; fail_after(kinds, n), status = cifar_verify(&l, folder), fail_hit(); n++)
            assert_int_equal(status, BERLU_ERR_INPUT);
        assert_ok(status);
    }
}

/* One epoch with one worker, so that the order of calls is the same each time. */
static berlu_status epoch_run(data_source *s)
{
    loader *l = NULL;
    const loader_batch *b = NULL;
    loader_options o = {.batch = 4, .shuffle = 1, .drop_last = 1, .workers = 1, .mix = {.mixup = 1, .probability = 1}};
    berlu_status status = augment_preset(&o.augment, "deit", 16);
    if (status == BERLU_OK)
        status = loader_open(&l, s, &o);
    if (status == BERLU_OK)
        status = loader_start(l, 0, 0);
    while (status == BERLU_OK && (status = loader_next(l, &b)) == BERLU_OK && b)
        ;
    loader_close(l);
    return status;
}

static void loading_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    berlu_status status;
    int n = 1;
    small_folder(folder, "fail_load");
    assert_ok(data_open(&s, folder, NULL));
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = epoch_run(s), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_ok(status);
    assert_true(n > 5);
    assert_int_equal(data_bad_count(s), 0); /* lack of memory is not a broken file */
    data_close(s);
}

/* The same without pixels: a set that a device keeps, and the draws of its batches. */
static berlu_status draws_run(data_source *s, uint8_t *pixels)
{
    loader *l = NULL;
    const loader_batch *b;
    loader_options o = {.batch = 4, .shuffle = 1, .drop_last = 1, .draws = 1};
    berlu_status status = augment_preset(&o.augment, "crop-flip", 32);
    if (status == BERLU_OK)
        status = data_bytes(s, DATA_TRAIN, 0, 10, 1, pixels);
    if (status == BERLU_OK)
        status = loader_open(&l, s, &o);
    if (status == BERLU_OK)
        status = loader_start(l, 0, 0);
    while (status == BERLU_OK && (status = loader_next(l, &b)) == BERLU_OK && b)
        ;
    loader_close(l);
    return status;
}

static void drawing_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    static uint8_t pixels[10 * 3 * 32 * 32];
    data_source *s;
    berlu_status status;
    int n = 1;
    assert_ok(data_open(&s, "synthetic", &(data_options){.images = 10, .threads = 1}));
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = draws_run(s, pixels), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_ok(status);
    assert_true(n > 4);
    data_close(s);
}

static void measuring_and_sheets_survive_the_failure_of_each_allocation(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    berlu_status status;
    data_statistics m;
    image sheet = {0};
    small_folder(folder, "fail_measure");
    assert_ok(data_open(&s, folder, NULL));
    for (int n = 1;
         fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = data_measure(s, DATA_TRAIN, 0, 0, 1, &m), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_ok(status);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = data_contact_sheet(s, 2, 2, 8, &sheet), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        image_free(&sheet);
    }
    assert_ok(status);
    image_free(&sheet);
    data_verification found;
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = data_verify(s, 1, NULL, NULL, &found), fail_hit();
         n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_ok(status);
    assert_int_equal(found.images, 10);
    data_close(s);
}

static void a_packed_set_survives_each_failing_read(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], pack[FOLDER_PATH];
    data_source *from, *s = NULL;
    berlu_status status;
    folder_path(pack, folder_fresh(folder, "fail_pack_read"), "set.pack");
    assert_ok(data_open(&from, "synthetic", &(data_options){.images = 10, .image_size = 16, .threads = 1}));
    assert_ok(cache_write(from, pack, 16, 1, NULL, NULL));
    data_close(from);
    for (int n = 1; fail_after(FAIL_OPEN | FAIL_READ, n), status = data_open(&s, pack, NULL), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_INPUT);
        assert_null(s);
    }
    assert_ok(status);
    for (int n = 1; fail_after(FAIL_READ, n), status = epoch_run(s), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_IO);
    assert_ok(status);
    assert_int_equal(data_bad_count(s), 0); /* a disk that fails is not a broken image */
    data_close(s);
}

static void a_full_disk_leaves_no_packed_file_or_a_whole_one(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], out[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s;
    static const int kinds[] = {FAIL_ALLOC, FAIL_OPEN, FAIL_WRITE, FAIL_SHORT, FAIL_SYNC, FAIL_RENAME, FAIL_CLOSE};
    folder_fresh(out, "fail_pack");
    folder_path(path, out, "set.pack");
    small_folder(folder, "fail_pack_from");
    assert_ok(data_open(&s, "synthetic", &(data_options){.images = 10, .image_size = 16, .threads = 1}));
    for (size_t k = 0; k < COUNT(kinds); k++) {
        berlu_status status;
        for (int n = 1; fail_after(kinds[k], n), status = cache_write(s, path, 16, 1, NULL, NULL), fail_hit(); n++) {
            int left =
                entries_in(out); /* syncing the folder comes after the rename: then the file is there, and whole */
            data_source *whole = NULL;
            assert_true((left == 0 && status != BERLU_OK) || (left == 1 && data_open(&whole, path, NULL) == BERLU_OK));
            data_close(whole);
            remove(path);
        }
        assert_ok(status);
        remove(path);
    }
    data_close(s);
}

static void a_full_disk_leaves_no_made_folder(void **state)
{
    (void)state;
    char out[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s;
    static const int kinds[] = {FAIL_ALLOC, FAIL_WRITE, FAIL_SHORT, FAIL_RENAME, FAIL_MKDIR};
    folder_fresh(out, "fail_make");
    folder_path(path, out, "shapes");
    assert_ok(data_open(&s, "synthetic", &(data_options){.images = 10, .image_size = 16, .threads = 1}));
    for (size_t k = 0; k < COUNT(kinds); k++) {
        berlu_status status;
        for (int n = 1; fail_after(kinds[k], n), status = make_folder(s, path, 1, NULL, NULL), fail_hit(); n++) {
            assert_int_not_equal(status, BERLU_OK);
            assert_int_equal(entries_in(out), 0);
        }
        assert_ok(status);
        assert_ok(folder_remove(path));
    }
    data_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_any_kind_survives_the_failure_of_each_allocation),
        cmocka_unit_test(a_folder_that_cannot_be_listed_is_no_smaller_set),
        cmocka_unit_test(a_limit_of_open_files_breaks_no_image),
        cmocka_unit_test(opening_files_survives_each_failing_call),
        cmocka_unit_test(opening_a_folder_survives_each_failing_file_call),
        cmocka_unit_test(loading_survives_the_failure_of_each_allocation),
        cmocka_unit_test(drawing_survives_the_failure_of_each_allocation),
        cmocka_unit_test(measuring_and_sheets_survive_the_failure_of_each_allocation),
        cmocka_unit_test(a_packed_set_survives_each_failing_read),
        cmocka_unit_test(a_full_disk_leaves_no_packed_file_or_a_whole_one),
        cmocka_unit_test(a_full_disk_leaves_no_made_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
