/* test_cache.c - the packed form of a set, made folders, the built-in set.
 * SPDX-License-Identifier: MIT */
#include "data/cache.h"
#include "data/make.h"
#include "support.h"

static void a_packed_set_gives_the_same_images_labels_and_names(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *from, *packed;
    image a = {0}, b = {0};
    folder_fresh(folder, "cache");
    folder_path(path, folder, "set.pack");
    assert_ok(data_open(&from, "synthetic", &(data_options){.images = 200, .seed = 3}));
    assert_ok(cache_write(from, path, 32, 2, NULL, NULL));
    assert_ok(data_open(&packed, path, NULL)); /* recognised by its first bytes */
    const data_info *f = data_describe(from), *p = data_describe(packed);
    assert_string_equal(p->kind, "packed");
    assert_memory_equal(f->mean, p->mean, sizeof f->mean);
    assert_int_equal(f->classes, p->classes);
    for (size_t k = 0; k < f->classes; k++)
        assert_string_equal(f->class_names[k], p->class_names[k]);
    for (int s = 0; s < DATA_SPLITS; s++) {
        assert_int_equal(f->images[s], p->images[s]);
        for (size_t i = 0; i < f->images[s]; i++) {
            assert_ok(data_read(from, (data_split)s, i, NULL, &a));
            assert_ok(data_read(packed, (data_split)s, i, NULL, &b));
            assert_memory_equal(a.pixels, b.pixels, 3072);
            assert_int_equal(data_label(from, (data_split)s, i), data_label(packed, (data_split)s, i));
        }
    }
    image_free(&a);
    image_free(&b);
    data_close(from);
    data_close(packed);
}

static void an_image_broken_when_packed_stays_broken(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *from, *packed;
    image a = {0};
    folder_fresh(folder, "cache_broken");
    png_set(folder, "train", "a", 3, 20, 30);
    assert_ok(file_write_atomic(folder_path(path, folder, "train/a/1.png"), "?", 1));
    folder_path(path, folder, "set.pack");
    assert_ok(data_open(&from, folder, NULL));
    assert_refused(cache_write(from, path, 16, 1, NULL, NULL), BERLU_ERR_INPUT, "train/a/1.png");
    assert_int_equal(file_exists(path), 0);
    data_close(from);
    assert_ok(data_open(&from, folder, &(data_options){.max_bad_given = 1, .max_bad = 1}));
    assert_ok(cache_write(from, path, 16, 1, NULL, NULL));
    assert_ok(data_open(&packed, path, NULL));
    assert_ok(data_read(packed, DATA_TRAIN, 0, NULL, &a));
    assert_int_equal(a.width, 16);
    assert_refused(data_read(packed, DATA_TRAIN, 1, NULL, &a), BERLU_ERR_INPUT, "broken when it was packed");
    image_free(&a);
    data_close(from);
    data_close(packed);
}

/* Without fsync: hundreds of small files are written below. */
static void bytes_put(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

/* Every byte matters: changing any of them, or the length, is noticed, on opening or when the image
 * is read. */
static void damage_of_any_byte_is_noticed(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], bad[FOLDER_PATH], kind[FOLDER_PATH + 8], *bytes;
    size_t size;
    data_source *from, *packed = NULL;
    data_verification found;
    folder_fresh(folder, "cache_damaged");
    folder_path(path, folder, "set.pack");
    snprintf(kind, sizeof kind, "packed:%s", folder_path(bad, folder, "bad.pack"));
    assert_ok(data_open(&from, "synthetic", &(data_options){.images = 20}));
    assert_ok(cache_write(from, path, 4, 1, NULL, NULL));
    data_close(from);
    assert_ok(file_read_all(&bytes, &size, path, 1 << 20));
    size_t images = 4096, tail = images + 24 * 48;
    for (size_t at = 0; at < size; at += at < 64 || at >= tail ? 1 : at < images ? 101 : 7) {
        bytes[at] ^= 0x10;
        bytes_put(bad, bytes, size);
        bytes[at] ^= 0x10;
        if (at < images || at >= tail) {
            assert_int_equal(data_open(&packed, kind, NULL), BERLU_ERR_INPUT);
            continue;
        }
        size_t number = (at - images) / 48;
        data_split split = number < 20 ? DATA_TRAIN : DATA_TEST;
        image out = {0};
        assert_ok(data_open(&packed, kind, NULL));
        assert_refused(data_read(packed, split, number < 20 ? number : number - 20, NULL, &out), BERLU_ERR_IO,
                       "checksum");
        assert_int_equal(data_bad_count(packed), 0); /* not a broken image that --max-bad could allow */
        assert_ok(data_verify(packed, 1, NULL, NULL, &found));
        assert_int_equal(found.images, 24);
        assert_int_equal(found.damaged, 1);
        image_free(&out);
        data_close(packed);
        packed = NULL;
    }
    for (size_t cut = 0; cut < size; cut += cut < 100 ? 1 : 97) {
        bytes_put(bad, bytes, cut);
        assert_int_equal(data_open(&packed, kind, NULL), BERLU_ERR_INPUT);
    }
    assert_null(packed);
    free(bytes);
}

/* Two images that changed places have all their bytes, and are noticed all the same. */
static void an_image_at_the_place_of_another_is_noticed(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *bytes;
    size_t size, image_bytes = 16 * 16 * 3;
    data_source *s;
    data_verification found;
    folder_path(path, folder_fresh(folder, "cache_swapped"), "set.pack");
    assert_ok(data_open(&s, "synthetic", &(data_options){.images = 20}));
    assert_ok(cache_write(s, path, 16, 1, NULL, NULL));
    data_close(s);
    assert_ok(file_read_all(&bytes, &size, path, 1 << 20));
    for (size_t i = 0; i < image_bytes; i++) {
        char byte = bytes[4096 + i];
        bytes[4096 + i] = bytes[4096 + 3 * image_bytes + i];
        bytes[4096 + 3 * image_bytes + i] = byte;
    }
    bytes_put(path, bytes, size);
    free(bytes);
    assert_ok(data_open(&s, path, NULL));
    assert_ok(data_verify(s, 1, NULL, NULL, &found));
    assert_int_equal(found.damaged, 2);
    assert_non_null(strstr(found.message, "train image 0"));
    data_close(s);
}

static void a_later_format_is_named(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], bytes[5000] = "BERLUPK3";
    data_source *s = NULL;
    folder_path(path, folder_fresh(folder, "cache_later"), "set.pack");
    bytes_put(path, bytes, sizeof bytes);
    assert_refused(data_open(&s, path, NULL), BERLU_ERR_INPUT, "format '3'; this berlu reads 1 to 2");
    bytes[7] = '\n';
    bytes_put(path, bytes, sizeof bytes);
    assert_refused(data_open(&s, path, NULL), BERLU_ERR_INPUT, "format '?'");
}

static void log_count(void *context, berlu_log_level level, const char *line)
{
    *(int *)context += level == BERLU_LOG_WARNING && strstr(line, "without checksums") != NULL;
}

static data_source *golden_open(const char *name, int *warnings)
{
    char path[FOLDER_PATH];
    const char *root = getenv("BERLU_SOURCE_DIR");
    data_source *s = NULL;
    const berlu_log log = {.write = log_count, .context = warnings};
    snprintf(path, sizeof path, "%s/tests/golden/%s", root ? root : ".", name);
    assert_ok(data_open(&s, path, &(data_options){.max_bad_given = 1, .max_bad = 1, .log = &log}));
    return s;
}

/* tools/golden_packs.sh made them: format 1 by berlu 0.1.0, format 2 from it. They stay readable
 * for ever. */
static void packs_of_earlier_versions_are_read_and_said_to_be_unchecked(void **state)
{
    (void)state;
    int warnings[2] = {0, 0};
    data_source *one = golden_open("pack_0.1.0.pack", &warnings[0]), *two = golden_open("pack_2.pack", &warnings[1]);
    data_verification found;
    image a = {0}, b = {0};
    assert_int_equal(warnings[0], 1);
    assert_int_equal(warnings[1], 0);
    assert_true(data_describe(one)->unchecked);
    assert_false(data_describe(two)->unchecked);
    for (int s = 0; s < DATA_SPLITS; s++) {
        assert_int_equal(data_describe(one)->images[s], s == DATA_TRAIN ? 10 : 2);
        assert_int_equal(data_describe(two)->images[s], s == DATA_TRAIN ? 10 : 2);
        for (size_t i = 0; i < data_describe(one)->images[s]; i++) {
            assert_int_equal(data_label(one, (data_split)s, i), (int)i);
            assert_int_equal(data_label(two, (data_split)s, i), (int)i);
            berlu_status status = data_read(one, (data_split)s, i, NULL, &a);
            assert_int_equal(status, s == DATA_TRAIN && i == 2 ? BERLU_ERR_INPUT : BERLU_OK);
            assert_int_equal(status, data_read(two, (data_split)s, i, NULL, &b));
            if (status == BERLU_OK)
                assert_memory_equal(a.pixels, b.pixels, 16 * 16 * 3);
        }
    }
    assert_string_equal(data_describe(one)->class_names[2], "cross-level");
    assert_ok(data_verify(two, 1, NULL, NULL, &found));
    assert_int_equal(found.damaged, 0);
    assert_int_equal(data_bad_count(two), 1);
    image_free(&a);
    image_free(&b);
    data_close(one);
    data_close(two);
}

/* The writer's bytes are pinned: whoever changes the format gives it a number. */
static void packing_the_pack_of_0_1_0_again_gives_todays_bytes(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], golden[FOLDER_PATH], *made, *kept;
    size_t made_size, kept_size;
    int warnings = 0;
    data_source *s = golden_open("pack_0.1.0.pack", &warnings);
    const char *root = getenv("BERLU_SOURCE_DIR");
    folder_path(path, folder_fresh(folder, "cache_golden"), "set.pack");
    assert_ok(cache_write(s, path, 16, 2, NULL, NULL));
    data_close(s);
    snprintf(golden, sizeof golden, "%s/tests/golden/pack_2.pack", root ? root : ".");
    assert_ok(file_read_all(&made, &made_size, path, 1 << 20));
    assert_ok(file_read_all(&kept, &kept_size, golden, 1 << 20));
    assert_int_equal(made_size, kept_size);
    assert_memory_equal(made, kept, kept_size);
    free(made);
    free(kept);
}

static void a_made_folder_reads_back_as_the_set_it_came_from(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], target[FOLDER_PATH];
    data_source *from, *back;
    image a = {0}, b = {0};
    size_t place[100] = {0};
    folder_fresh(folder, "make");
    folder_path(target, folder, "shapes");
    assert_ok(data_open(&from, "synthetic", &(data_options){.images = 200, .classes = 100, .image_size = 24}));
    assert_ok(make_folder(from, target, 2, NULL, NULL));
    assert_ok(data_open(&back, target, NULL));
    assert_int_equal(data_describe(back)->images[DATA_TRAIN], 200);
    assert_int_equal(data_describe(back)->images[DATA_TEST], 40);
    for (int k = 0; k < 100; k++) /* the same numbers for the same classes */
        assert_string_equal(data_describe(from)->class_names[k], data_describe(back)->class_names[k]);
    for (size_t i = 0; i < 200; i++) {
        size_t k = i % 100, at = k * 2 + place[k]++; /* sorted by class, then number */
        assert_ok(data_read(from, DATA_TRAIN, i, NULL, &a));
        assert_ok(data_read(back, DATA_TRAIN, at, NULL, &b));
        assert_memory_equal(a.pixels, b.pixels, 24 * 24 * 3);
    }
    assert_refused(make_folder(from, target, 2, NULL, NULL), BERLU_ERR_ARG, "already there");
    image_free(&a);
    image_free(&b);
    data_close(from);
    data_close(back);
}

static void the_built_in_set_is_a_function_of_its_seed(void **state)
{
    (void)state;
    data_source *a, *b, *c;
    image one = {0}, two = {0}, three = {0};
    size_t same = 0;
    assert_ok(data_open(&a, "synthetic", &(data_options){.images = 100, .seed = 1, .threads = 1}));
    assert_ok(
        data_open(&b, "synthetic", &(data_options){.images = 5000, .seed = 1, .threads = 3})); /* more of the same */
    assert_ok(data_open(&c, "synthetic", &(data_options){.images = 100, .seed = 2}));
    for (size_t i = 0; i < 100; i++) {
        assert_ok(data_read(a, DATA_TRAIN, i, NULL, &one));
        assert_ok(data_read(b, DATA_TRAIN, i, NULL, &two));
        assert_ok(data_read(c, DATA_TRAIN, i, NULL, &three));
        assert_memory_equal(one.pixels, two.pixels, 3072);
        same += memcmp(one.pixels, three.pixels, 3072) == 0;
    }
    assert_int_equal(same, 0);
    image_free(&one);
    image_free(&two);
    image_free(&three);
    data_close(a);
    data_close(b);
    data_close(c);
    assert_refused(data_open(&a, "synthetic", &(data_options){.classes = 7}), BERLU_ERR_ARG, "10 or 100");
    assert_refused(data_open(&a, "synthetic", &(data_options){.image_size = 8}), BERLU_ERR_ARG, "image size 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packed_set_gives_the_same_images_labels_and_names),
        cmocka_unit_test(an_image_broken_when_packed_stays_broken),
        cmocka_unit_test(damage_of_any_byte_is_noticed),
        cmocka_unit_test(an_image_at_the_place_of_another_is_noticed),
        cmocka_unit_test(a_later_format_is_named),
        cmocka_unit_test(packs_of_earlier_versions_are_read_and_said_to_be_unchecked),
        cmocka_unit_test(packing_the_pack_of_0_1_0_again_gives_todays_bytes),
        cmocka_unit_test(a_made_folder_reads_back_as_the_set_it_came_from),
        cmocka_unit_test(the_built_in_set_is_a_function_of_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
