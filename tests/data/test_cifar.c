/* test_cifar.c - the binary version of CIFAR, from a folder and from an archive.
 * SPDX-License-Identifier: MIT */
#include <archive.h>
#include <archive_entry.h>
#include <math.h>

#include "data/sha256.h"
#include "support.h"

/* A source over a layout of the test's own. */
static data_source *open_tiny(const cifar_layout *l, const char *path, const data_options *o, berlu_status *status)
{
    const data_options none = {0};
    data_source *s = calloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->kind = l->label_bytes == 2 ? &data_cifar100 : &data_cifar10;
    s->info.path = "";
    *status = cifar_open_layout(s, path, o ? o : &none, l);
    if (*status == BERLU_OK)
        return s;
    data_close(s);
    return NULL;
}

static void check_pixels(data_source *s, data_split split, size_t index, size_t record)
{
    image decoded = {0};
    assert_ok(data_read(s, split, index, NULL, &decoded));
    assert_int_equal(decoded.width, 32);
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(decoded.pixels[(y * 32 + x) * 3 + c], tiny_pixel(record, c, y, x));
    image_free(&decoded);
}

static void records_become_rgb_images_in_the_order_of_the_files(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    berlu_status status;
    cifar_layout l = tiny_layout(&cifar10_layout, 20);
    tiny_write(&l, folder_fresh(folder, "cifar"));
    data_source *s = open_tiny(&l, folder, NULL, &status);
    assert_non_null(s);
    assert_int_equal(s->info.images[DATA_TRAIN], 100);
    assert_int_equal(s->info.images[DATA_TEST], 20);
    assert_int_equal(data_label(s, DATA_TRAIN, 47), 7);
    check_pixels(s, DATA_TRAIN, 0, 0);
    check_pixels(s, DATA_TRAIN, 47, 47);
    check_pixels(s, DATA_TEST, 3, 103);
    data_close(s);
}

static void a_set_without_a_path_is_found_below_the_variables_folder(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], inner[FOLDER_PATH], found[FOLDER_PATH];
    cifar_layout l = tiny_layout(&cifar10_layout, 20);
    tiny_write(&l, folder_fresh(folder, "cifar-find"));
    setenv("BERLU_DATA", folder, 1);
    assert_ok(data_find(&data_cifar10, found, sizeof found));
    assert_string_equal(found, folder);
    tiny_write(&l, folder_fresh(inner, "cifar-find/cifar10"));
    assert_ok(data_find(&data_cifar10, found, sizeof found));
    assert_string_equal(found, inner);
    assert_int_equal(data_find(&data_cifar100, found, sizeof found), BERLU_ERR_INPUT);
    assert_int_equal(data_find(&data_cifar10, found, 4), BERLU_ERR_INPUT); /* too short */
    unsetenv("BERLU_DATA");
}

static void cifar100_labels_are_fine_or_coarse_as_asked(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    berlu_status status;
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    tiny_write(&l, folder_fresh(folder, "cifar100"));
    data_source *fine = open_tiny(&l, folder, NULL, &status);
    data_source *coarse = open_tiny(&l, folder, &(data_options){.labels = "coarse"}, &status);
    assert_non_null(fine);
    assert_non_null(coarse);
    assert_int_equal(fine->info.classes, 100);
    assert_int_equal(coarse->info.classes, 20);
    assert_int_equal(data_label(fine, DATA_TRAIN, 4), 4);   /* beaver */
    assert_int_equal(data_label(coarse, DATA_TRAIN, 4), 0); /* an aquatic mammal */
    assert_string_equal(coarse->info.class_names[data_label(coarse, DATA_TRAIN, 8)], "vehicles_1"); /* bicycle */
    check_pixels(fine, DATA_TEST, 5, 105);
    data_close(fine);
    data_close(coarse);
    assert_null(open_tiny(&l, folder, &(data_options){.labels = "both"}, &status));
    assert_int_equal(status, BERLU_ERR_ARG);
}

/* Changes one byte of a file and opens the set again. */
static berlu_status open_changed(const cifar_layout *l, const char *folder, const char *name, size_t at,
                                 unsigned char value)
{
    char path[FOLDER_PATH], *bytes;
    size_t size;
    berlu_status status;
    folder_path(path, folder, name);
    assert_ok(file_read_all(&bytes, &size, path, 1 << 24));
    unsigned char kept = (unsigned char)bytes[at];
    bytes[at] = (char)value;
    assert_ok(file_write_atomic(path, bytes, size));
    data_close(open_tiny(l, folder, NULL, &status));
    bytes[at] = (char)kept;
    assert_ok(file_write_atomic(path, bytes, size));
    free(bytes);
    return status;
}

static void wrong_sizes_labels_and_counts_are_named(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *bytes;
    size_t size;
    berlu_status status;
    cifar_layout l = tiny_layout(&cifar10_layout, 20);
    tiny_write(&l, folder_fresh(folder, "cifar_bad"));
    assert_refused(open_changed(&l, folder, "data_batch_3.bin", 2 * 3073, 10), BERLU_ERR_INPUT, "data_batch_3.bin");
    assert_refused(open_changed(&l, folder, "data_batch_3.bin", 2 * 3073, 10), BERLU_ERR_INPUT, "label 10");
    assert_refused(open_changed(&l, folder, "test_batch.bin", 0, 5), BERLU_ERR_INPUT,
                   "class airplane"); /* one too few */
    assert_ok(open_changed(&l, folder, "test_batch.bin", 0, 0));
    folder_path(path, folder, "data_batch_2.bin");
    assert_ok(file_read_all(&bytes, &size, path, 1 << 24));
    assert_ok(file_write_atomic(path, bytes, size - 1));
    data_close(open_tiny(&l, folder, NULL, &status));
    assert_refused(status, BERLU_ERR_INPUT, "61459 bytes");
    assert_ok(file_write_atomic(path, bytes, 0));
    data_close(open_tiny(&l, folder, NULL, &status));
    assert_refused(status, BERLU_ERR_INPUT, "data_batch_2.bin");
    remove(path);
    data_close(open_tiny(&l, folder, NULL, &status));
    assert_refused(status, BERLU_ERR_INPUT, "missing");
    free(bytes);
}

static void coarse_labels_must_fit_the_fine_ones(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    tiny_write(&l, folder_fresh(folder, "cifar100_bad"));
    assert_refused(open_changed(&l, folder, "train.bin", 0, 7), BERLU_ERR_INPUT, "coarse label 7");
}

static void the_python_version_is_answered_with_what_to_fetch(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s = NULL;
    folder_fresh(folder, "cifar_python");
    assert_ok(file_write_atomic(folder_path(path, folder, "data_batch_1"), "x", 1));
    assert_ok(file_write_atomic(folder_path(path, folder, "batches.meta"), "x", 1));
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "binary version");
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "berlu data get cifar10");
}

static void archive_make(const char *path, const cifar_layout *l)
{
    struct archive *a = archive_write_new();
    archive_write_add_filter_gzip(a);
    archive_write_set_format_ustar(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (size_t f = 0, first = 0; f < l->files; f++) {
        char name[128];
        text bytes = {0};
        tiny_records(&bytes, l, l->records[f], first);
        first += l->records[f];
        struct archive_entry *e = archive_entry_new();
        snprintf(name, sizeof name, "%s/%s", l->folder, l->file_names[f]);
        archive_entry_set_pathname(e, name);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, (la_int64_t)bytes.length);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        archive_write_data(a, bytes.data, bytes.length);
        archive_entry_free(e);
        text_free(&bytes);
    }
    archive_write_close(a);
    archive_write_free(a);
}

static void an_archive_is_read_straight_when_its_hash_is_right(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *bytes, hex[SHA256_TEXT];
    size_t size;
    berlu_status status;
    sha256 hash;
    cifar_layout l = tiny_layout(&cifar10_layout, 20);
    folder_fresh(folder, "cifar_archive");
    archive_make(folder_path(path, folder, l.archive), &l);
    assert_ok(file_read_all(&bytes, &size, path, 1 << 24));
    sha256_start(&hash);
    sha256_add(&hash, bytes, size);
    sha256_finish(&hash, hex);
    data_source *s = open_tiny(&l, path, &(data_options){.sha256 = hex}, &status);
    assert_non_null(s);
    check_pixels(s, DATA_TRAIN, 61, 61);
    check_pixels(s, DATA_TEST, 19, 119);
    data_close(s);
    assert_null(open_tiny(&l, path, NULL, &status)); /* not the published one */
    assert_refused(status, BERLU_ERR_INPUT, hex);
    free(bytes);
}

static void the_hash_is_sha256(void **state)
{
    (void)state;
    char hex[SHA256_TEXT], long_text[1000];
    sha256 s;
    sha256_start(&s);
    assert_string_equal(sha256_finish(&s, hex), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_start(&s);
    sha256_add(&s, "abc", 3);
    assert_string_equal(sha256_finish(&s, hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    memset(long_text, 'a', sizeof long_text);
    sha256_start(&s);
    for (int i = 0, step = 1; i < 1000000; i += step, step = step % 999 + 1) /* a million a, in pieces of all lengths */
        sha256_add(&s, long_text, (size_t)(i + step > 1000000 ? 1000000 - i : step));
    assert_string_equal(sha256_finish(&s, hex), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void the_real_cifar10_opens_and_has_the_published_statistics(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    data_source *s = NULL;
    data_statistics m;
    if (!real_data(path, "cifar-10-batches-bin"))
        skip();
    assert_ok(data_open(&s, path, NULL));
    assert_string_equal(data_describe(s)->kind, "cifar10");
    assert_ok(data_measure(s, DATA_TRAIN, 0, 0, 0, &m));
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(m.mean[c] - cifar10_layout.mean[c]) < 0.5e-4);
        assert_true(fabs(m.std[c] - cifar10_layout.std[c]) < 0.5e-4);
    }
    assert_int_equal(data_label(s, DATA_TRAIN, 0), 6); /* a frog is the first image */
    assert_int_equal(data_label(s, DATA_TEST, 0), 3);
    data_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_become_rgb_images_in_the_order_of_the_files),
        cmocka_unit_test(a_set_without_a_path_is_found_below_the_variables_folder),
        cmocka_unit_test(cifar100_labels_are_fine_or_coarse_as_asked),
        cmocka_unit_test(wrong_sizes_labels_and_counts_are_named),
        cmocka_unit_test(coarse_labels_must_fit_the_fine_ones),
        cmocka_unit_test(the_python_version_is_answered_with_what_to_fetch),
        cmocka_unit_test(an_archive_is_read_straight_when_its_hash_is_right),
        cmocka_unit_test(the_hash_is_sha256),
        cmocka_unit_test(the_real_cifar10_opens_and_has_the_published_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
