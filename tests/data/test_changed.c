/* test_changed.c - packs, weights and data sets that others change while they are open.
 * SPDX-License-Identifier: MIT
 *
 * Each is truncated, overwritten in place, replaced by a rename, removed and made read-only under
 * an open reader. What was opened stays readable where the system keeps it (rename, remove,
 * read-only); where bytes are gone or other ones, one message says so. Nothing ends in SIGBUS:
 * reading from a mapping did. */
#include <sys/stat.h>
#include <unistd.h>

#include "data/cache.h"
#include "data/loader.h"
#include "io/safetensors.h"
#include "support.h"

enum { IMAGES = 60, SIDE = 16, HEADER = 4096 };

static data_source *pack_fresh(char path[FOLDER_PATH], const char *name, uint64_t seed)
{
    char folder[FOLDER_PATH];
    data_source *from, *s = NULL;
    folder_path(path, folder_fresh(folder, name), "set.pack");
    assert_ok(data_open(&from, "synthetic", &(data_options){.images = IMAGES, .image_size = SIDE, .seed = seed}));
    assert_ok(cache_write(from, path, SIDE, 1, NULL, NULL));
    data_close(from);
    assert_ok(data_open(&s, path, NULL));
    return s;
}

/* All images of the training split, or the first failure. */
static berlu_status read_all(data_source *s)
{
    image out = {0};
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < data_describe(s)->images[DATA_TRAIN] && status == BERLU_OK; i++)
        status = data_read(s, DATA_TRAIN, i, NULL, &out);
    image_free(&out);
    return status;
}

/* An epoch through the loader's workers, as training reads. */
static berlu_status load_all(data_source *s)
{
    loader *l = NULL;
    const loader_batch *b = NULL;
    loader_options o = {.batch = 10, .shuffle = 1, .workers = 2};
    berlu_status status = augment_preset(&o.augment, "crop-flip", 8);
    if (status == BERLU_OK)
        status = loader_open(&l, s, &o);
    if (status == BERLU_OK)
        status = loader_start(l, 0, 0);
    while (status == BERLU_OK && (status = loader_next(l, &b)) == BERLU_OK && b)
        ;
    loader_close(l);
    return status;
}

static void file_copy_over(const char *from, const char *to) /* into the same file, as cp does */
{
    char *bytes;
    size_t size;
    assert_ok(file_read_all(&bytes, &size, from, 1 << 24));
    FILE *f = fopen(to, "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
    free(bytes);
}

static void a_pack_that_is_cut_ends_in_one_message(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    for (int workers = 0; workers < 2; workers++) {
        data_source *s = pack_fresh(path, "changed_cut", 1);
        assert_ok(workers ? load_all(s) : read_all(s));
        assert_int_equal(truncate(path, HEADER + SIDE * SIDE * 3 * 7), 0);
        assert_refused(workers ? load_all(s) : read_all(s), BERLU_ERR_IO, "has been cut since");
        assert_int_equal(data_bad_count(s), 0);
        assert_int_equal(truncate(path, 0), 0);
        assert_refused(workers ? load_all(s) : read_all(s), BERLU_ERR_IO, "set.pack");
        data_close(s);
    }
}

static void a_pack_that_is_overwritten_is_noticed(void **state)
{
    (void)state;
    char path[FOLDER_PATH], other[FOLDER_PATH];
    data_source *s = pack_fresh(path, "changed_over", 1), *t = pack_fresh(other, "changed_other", 2);
    file_copy_over(other, path);
    assert_refused(read_all(s), BERLU_ERR_IO, "checksum");
    assert_refused(load_all(s), BERLU_ERR_IO, "checksum");
    data_close(s);
    data_close(t);
}

static void a_pack_that_is_replaced_removed_or_read_only_stays_readable(void **state)
{
    (void)state;
    char path[FOLDER_PATH], other[FOLDER_PATH];
    data_source *s = pack_fresh(path, "changed_gone", 1), *t = pack_fresh(other, "changed_gone_other", 2);
    image before = {0}, after = {0};
    assert_ok(data_read(s, DATA_TRAIN, 5, NULL, &before));
    assert_int_equal(chmod(path, 0400), 0);
    assert_ok(read_all(s));
    assert_int_equal(rename(other, path), 0);
    assert_ok(data_read(s, DATA_TRAIN, 5, NULL, &after)); /* still the set that was opened */
    assert_memory_equal(before.pixels, after.pixels, SIDE * SIDE * 3);
    assert_int_equal(unlink(path), 0);
    assert_ok(read_all(s));
    assert_ok(load_all(s));
    image_free(&before);
    image_free(&after);
    data_close(s);
    data_close(t);
}

static data_source *cifar_fresh(char folder[FOLDER_PATH], cifar_layout *l, const char *name)
{
    static const data_options none;
    *l = tiny_layout(&cifar10_layout, 20);
    tiny_write(l, folder_fresh(folder, name));
    data_source *s = calloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->kind = &data_cifar10;
    s->info.path = "";
    assert_ok(cifar_open_layout(s, folder, &none, l));
    return s;
}

static void a_cifar_file_that_is_cut_or_rewritten_ends_in_one_message(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], zeros[4096] = {0};
    cifar_layout l;
    data_source *s = cifar_fresh(folder, &l, "changed_cifar");
    assert_ok(read_all(s));
    folder_path(path, folder, l.file_names[1]);
    FILE *f = fopen(path, "r+b"); /* zeros over the first records */
    assert_int_equal(fwrite(zeros, 1, sizeof zeros, f), sizeof zeros);
    fclose(f);
    assert_refused(read_all(s), BERLU_ERR_IO, "another label");
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(data_label(s, DATA_TRAIN, 39), 9); /* labels were read on opening */
    image out = {0};
    assert_refused(data_read(s, DATA_TRAIN, 39, NULL, &out), BERLU_ERR_IO, "has been cut since");
    image_free(&out);
    assert_ok(folder_remove(folder));
    assert_ok(data_read(s, DATA_TRAIN, 3, NULL, &out)); /* removed, and still open */
    image_free(&out);
    data_close(s);
}

/* Of a folder each file is opened when it is read: what others did to it makes it one broken image,
 * named and counted. */
static void files_of_a_folder_that_change_are_broken_one_by_one(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "changed_folder");
    png_set(folder, "train", "a", 20, 12, 12);
    assert_ok(data_open(&s, folder, &(data_options){.max_bad_given = 1, .max_bad = 2}));
    assert_int_equal(truncate(folder_path(path, folder, "train/a/3.png"), 40), 0);
    assert_ok(load_all(s));
    assert_int_equal(data_bad_count(s), 1);
    assert_int_equal(unlink(folder_path(path, folder, "train/a/7.png")), 0);
    assert_ok(load_all(s));
    assert_int_equal(data_bad_count(s), 2);
    assert_non_null(strstr(data_bad_message(s, 1), "train/a/7.png"));
    assert_int_equal(chmod(folder, 0500), 0);
    assert_ok(load_all(s));
    assert_int_equal(chmod(folder, 0700), 0);
    char moved[FOLDER_PATH + 8];
    snprintf(moved, sizeof moved, "%s-moved", folder);
    assert_ok(folder_remove(moved));
    assert_int_equal(rename(folder, moved), 0);
    assert_refused(load_all(s), BERLU_ERR_INPUT, "--max-bad allows 2");
    assert_ok(folder_remove(moved));
    data_close(s);
}

static const char *weights_fresh(char path[FOLDER_PATH], const char *name)
{
    char folder[FOLDER_PATH];
    static const float values[4096] = {1, 2, 3};
    const st_tensor tensors[] = {{.name = "a", .dtype = ST_F32, .rank = 1, .shape = {4096}, .data = values},
                                 {.name = "b", .dtype = ST_F64, .rank = 1, .shape = {2048}, .data = values},
                                 {.name = "c", .dtype = ST_I64, .rank = 1, .shape = {2048}, .data = values},
                                 {.name = "d", .dtype = ST_I32, .rank = 1, .shape = {4096}, .data = values}};
    folder_path(path, folder_fresh(folder, name), "w.safetensors");
    assert_ok(safetensors_write(path, tensors, COUNT(tensors), NULL, 0));
    return path;
}

static void weights_that_are_cut_replaced_or_removed_end_in_a_message_or_stay(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    float values[4096];
    double wide[4096];
    safetensors *file;
    assert_ok(safetensors_open(&file, weights_fresh(path, "changed_weights")));
    assert_int_equal(chmod(path, 0), 0); /* who has it open may read on */
    assert_ok(st_read_f32(safetensors_find(file, "a"), values));
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(file_write_atomic(path, "x", 1)); /* replaced by a rename */
    assert_ok(st_read_f32(safetensors_find(file, "a"), values));
    assert_true(values[1] == 2.0f);
    assert_int_equal(unlink(path), 0);
    assert_ok(st_read_f64(safetensors_find(file, "a"), wide));
    safetensors_close(file);
    assert_ok(safetensors_open(&file, weights_fresh(path, "changed_weights")));
    assert_int_equal(truncate(path, 700), 0);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const st_tensor *t = safetensors_at(file, i);
        int whole = t->dtype == ST_I64 || t->dtype == ST_I32;
        assert_refused(whole ? st_read_i64(t, (int64_t *)wide) : st_read_f64(t, wide), BERLU_ERR_INPUT,
                       "has been cut since");
    }
    assert_refused(st_read_f32(safetensors_find(file, "a"), values), BERLU_ERR_INPUT, "w.safetensors");
    const st_tensor copy = *safetensors_find(file, "a"); /* nor does a copy of it appear in part */
    char to[FOLDER_PATH + 8];
    snprintf(to, sizeof to, "%s.copy", path);
    assert_refused(safetensors_write(to, &copy, 1, NULL, 0), BERLU_ERR_INPUT, "has been cut since");
    assert_false(file_exists(to));
    safetensors_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_that_is_cut_ends_in_one_message),
        cmocka_unit_test(a_pack_that_is_overwritten_is_noticed),
        cmocka_unit_test(a_pack_that_is_replaced_removed_or_read_only_stays_readable),
        cmocka_unit_test(a_cifar_file_that_is_cut_or_rewritten_ends_in_one_message),
        cmocka_unit_test(files_of_a_folder_that_change_are_broken_one_by_one),
        cmocka_unit_test(weights_that_are_cut_replaced_or_removed_end_in_a_message_or_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
