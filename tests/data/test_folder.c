/* test_folder.c - folders of images: order of classes and files, splits, odd files.
 * SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include <unistd.h>

#include "data/folder_scan.h"
#include "data/loader.h"
#include "support.h"

static void natural_order_compares_runs_of_digits_as_numbers(void **state)
{
    (void)state;
    static const char *const sorted[] = {"1", "2",  "10",  "a",  "a1",   "a2b", "a10",
                                         "B", "b1", "n01", "n2", "n10x", "n10y"};
    for (size_t i = 0; i < COUNT(sorted); i++)
        for (size_t j = 0; j < COUNT(sorted); j++) {
            int order = order_natural(sorted[i], sorted[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    assert_int_equal(order_natural("N1", "n01"), 0); /* equal keys, as in Python */
}

static void classes_are_numbered_as_torchvision_or_timm_do(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_order");
    png_set(folder, "train", "n10", 1, 4, 4);
    png_set(folder, "train", "n2", 1, 4, 4);
    png_set(folder, "train", "N1", 1, 4, 4);
    png_set(folder, "train", "a", 1, 4, 4);
    assert_ok(data_open(&s, folder, NULL));
    static const char *const by_code[] = {"N1", "a", "n10", "n2"}, *const by_nature[] = {"a", "N1", "n2", "n10"};
    for (int k = 0; k < 4; k++)
        assert_string_equal(data_describe(s)->class_names[k], by_code[k]);
    assert_string_equal(data_describe(s)->class_order, "torchvision");
    data_close(s);
    assert_ok(data_open(&s, folder, &(data_options){.class_order = "timm"}));
    for (int k = 0; k < 4; k++)
        assert_string_equal(data_describe(s)->class_names[k], by_nature[k]);
    assert_string_equal(data_describe(s)->class_order, "timm");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(data_label(s, DATA_TRAIN, i), i);
    data_close(s);
    assert_refused(data_open(&s, folder, &(data_options){.class_order = "mine"}), BERLU_ERR_ARG, "mine");
}

static void test_classes_are_matched_by_name(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_match");
    png_set(folder, "train", "a", 1, 4, 4);
    png_set(folder, "train", "b", 1, 4, 4);
    png_set(folder, "train", "c", 2, 4, 4);
    png_set(folder, "val", "c", 3, 4, 4); /* a and b have none */
    assert_ok(data_open(&s, folder, NULL));
    assert_int_equal(data_describe(s)->images[DATA_TEST], 3);
    assert_int_equal(data_label(s, DATA_TEST, 0), 2);
    data_close(s);
    png_set(folder, "val", "z", 1, 4, 4);
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "class 'z'");
}

static void a_root_without_splits_is_a_training_set(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], name[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_plain");
    png_set(folder, ".", "cats", 2, 5, 3);
    png_set(folder, ".", "dogs", 3, 5, 3);
    assert_ok(data_open(&s, folder, NULL));
    assert_int_equal(data_describe(s)->images[DATA_TRAIN], 5);
    assert_int_equal(data_describe(s)->images[DATA_TEST], 0);
    data_name(s, DATA_TRAIN, 4, name, sizeof name);
    assert_non_null(strstr(name, "dogs/2.png"));
    data_close(s);
}

static void empty_classes_loose_images_and_empty_folders_are_errors(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_empty");
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "no images");
    png_set(folder, "train", "a", 1, 4, 4);
    assert_ok(folder_make(folder_path(path, folder, "train/b")));
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "train/b: a class without images");
    assert_ok(folder_remove(path));
    assert_ok(file_write_atomic(folder_path(path, folder, "train/loose.jpg"), "x", 1));
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "loose.jpg");
    assert_refused(data_open(&s, "/no/such/place", NULL), BERLU_ERR_INPUT, "/no/such/place");
    assert_refused(data_open(&s, "folder:/no/such/place", NULL), BERLU_ERR_INPUT, "no such folder");
}

static void warning_count(void *context, berlu_log_level level, const char *line)
{
    int *named = context;
    assert_int_equal(level, BERLU_LOG_WARNING);
    named[strstr(line, ".png: ") == NULL]++;
}

static void many_broken_images_are_told_by_their_number(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], name[32];
    int lines[2] = {0}; /* with a file's name, and without */
    size_t told = 0;
    image none = {0};
    data_source *s;
    folder_fresh(folder, "folder_broken");
    png_set(folder, ".", "a", 1, 4, 4);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "a/broken%02d.png", i);
        assert_ok(file_write_atomic(folder_path(path, folder, name), "x", 1));
    }
    assert_ok(data_open(&s, folder, &(data_options){.max_bad_given = 1, .max_bad = 30}));
    for (size_t i = 0; i < 31; i++) {
        if (data_read(s, DATA_TRAIN, i, NULL, &none) != BERLU_OK)
            assert_ok(data_report_bad(s, DATA_TRAIN, i));
        data_bad_warn(s, &told, &(berlu_log){.write = warning_count, .context = lines});
    }
    assert_int_equal(told, 30);
    assert_int_equal(lines[0], 20);
    assert_int_equal(lines[1], 10);
    image_free(&none);
    data_close(s);
}

/* A few hundred bytes that would become gigabytes: one image is broken, not the run. */
static void an_image_too_long_and_narrow_to_be_resized_is_a_broken_one(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    loader *l;
    const loader_batch *b;
    folder_fresh(folder, "folder_narrow");
    png_set(folder, "train", "a", 1, 65535, 1);
    png_set(folder, "train", "b", 1, 1, 65535);
    png_set(folder, "train", "c", 1, 100, 1);
    loader_options o = {.batch = 3, .workers = 1, .augment = {.crop = CROP_EVAL, .image_size = 48}};
    assert_ok(data_open(&s, folder, &(data_options){.max_bad_given = 1, .max_bad = 2}));
    assert_ok(loader_open(&l, s, &o));
    assert_ok(loader_start(l, 0, 0));
    assert_ok(loader_next(l, &b));
    assert_int_equal(b->count, 1);
    assert_int_equal(data_bad_count(s), 2);
    assert_non_null(strstr(data_bad_message(s, 0), "a/0.png: 65535 x 1 pixels are too long and narrow"));
    loader_close(l);
    data_close(s);
}

static void an_archive_of_images_is_to_be_unpacked(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], kind[FOLDER_PATH + 8];
    data_source *s;
    assert_ok(file_write_atomic(folder_path(path, folder_fresh(folder, "folder_archive"), "set.zip"), "PK", 2));
    assert_refused(data_open(&s, path, NULL), BERLU_ERR_INPUT, "unpack any other archive");
    snprintf(kind, sizeof kind, "folder:%s", path);
    assert_refused(data_open(&s, kind, NULL), BERLU_ERR_INPUT, "unpack an archive");
}

/* Every kind of link that leads back, into the class, the split, the set and above it, and two that
 * lead nowhere. */
static void links_in_a_circle_are_skipped_and_counted(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    static const struct {
        const char *to, *at;
    } links[] = {{".", "train/a/self"},         {"..", "train/a/up"},          {"../..", "train/a/set"},
                 {"../../..", "train/a/above"}, {"/", "train/a/everything"},   {".", "train/class"},
                 {"knot", "train/a/knot"},      {"../a/none", "val/a/no.png"}, {"a", "train/b"}};
    data_source *s;
    folder_fresh(folder, "folder_circle");
    png_set(folder, "train", "a", 3, 4, 4);
    png_set(folder, "val", "a", 2, 4, 4);
    for (size_t i = 0; i < COUNT(links); i++)
        assert_int_equal(symlink(links[i].to, folder_path(path, folder, links[i].at)), 0);
    assert_ok(data_open(&s, folder, NULL));
    assert_int_equal(data_describe(s)->classes, 2); /* b is a link to a: no circle, as others read it too */
    assert_int_equal(data_describe(s)->images[DATA_TRAIN], 6);
    assert_int_equal(data_describe(s)->images[DATA_TEST], 2);
    assert_int_equal(data_bad_count(s), 8 + 6); /* the six inside a are met again through b */
    for (size_t i = 0; i < 8; i++) {
        size_t found = 0;
        for (size_t k = 0; k < data_bad_count(s); k++)
            found += strstr(data_bad_message(s, k), folder_path(path, folder, links[i].at)) != NULL;
        assert_int_equal(found, 1);
    }
    /* they do not use up what --max-bad allows: none here, so the first broken file is one too
     * many */
    assert_ok(file_write_atomic(folder_path(path, folder, "train/a/0.png"), "?", 1));
    image out = {0};
    assert_int_equal(data_read(s, DATA_TRAIN, 0, NULL, &out), BERLU_ERR_INPUT);
    assert_refused(data_report_bad(s, DATA_TRAIN, 0), BERLU_ERR_INPUT, "broken file number 1, --max-bad allows 0");
    image_free(&out);
    data_close(s);
    assert_ok(data_open(&s, folder, &(data_options){.class_order = "timm"}));
    data_close(s);
    folder_remove(folder);
}

static void an_unreadable_folder_is_named(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_locked");
    png_set(folder, "train", "a", 1, 4, 4);
    png_set(folder, "train", "locked", 1, 4, 4);
    chmod(folder_path(path, folder, "train/locked"), 0);
    if (geteuid() != 0)
        assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "train/locked");
    chmod(path, 0755);
    if (geteuid() == 0)
        skip(); /* root reads everything */
}

static void a_flat_val_folder_takes_its_classes_from_a_text(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], labels[FOLDER_PATH];
    static const char text_of_labels[] = "2.png b\n0.png b\r\n\n1.png,a\n";
    data_source *s;
    folder_fresh(folder, "folder_flat");
    png_set(folder, "train", "a", 1, 4, 4);
    png_set(folder, "train", "b", 1, 4, 4);
    png_set(folder, "val", ".", 3, 4, 4);
    assert_refused(data_open(&s, folder, NULL), BERLU_ERR_INPUT, "--val-labels");
    folder_path(labels, folder, "labels.txt");
    assert_ok(file_write_atomic(labels, text_of_labels, sizeof text_of_labels - 1));
    assert_ok(data_open(&s, folder, &(data_options){.val_labels = labels}));
    assert_int_equal(data_label(s, DATA_TEST, 0), 1);
    assert_int_equal(data_label(s, DATA_TEST, 1), 0);
    assert_int_equal(data_label(s, DATA_TEST, 2), 1);
    data_close(s);
    assert_ok(file_write_atomic(labels, "0.png\n", 6));
    assert_refused(data_open(&s, folder, &(data_options){.val_labels = labels}), BERLU_ERR_INPUT, "FILENAME CLASS");
    assert_ok(file_write_atomic(labels, "0.png b\n1.png q\n2.png a\n", 24));
    assert_refused(data_open(&s, folder, &(data_options){.val_labels = labels}), BERLU_ERR_INPUT, "'q'");
    assert_ok(file_write_atomic(labels, "0.png b\n", 8));
    assert_refused(data_open(&s, folder, &(data_options){.val_labels = labels}), BERLU_ERR_INPUT,
                   "no line for '1.png'");
    (void)path;
}

/* The bytes decide: a PNG by the name of x.JPEG is a PNG. */
static void a_file_is_what_its_bytes_say(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH];
    data_source *s;
    image decoded = {0};
    folder_fresh(folder, "folder_magic");
    png_set(folder, "train", "a", 1, 6, 4);
    assert_int_equal(rename(folder_path(from, folder, "train/a/0.png"), folder_path(to, folder, "train/a/0.JPEG")), 0);
    assert_ok(data_open(&s, folder, NULL));
    assert_ok(data_read(s, DATA_TRAIN, 0, NULL, &decoded));
    assert_int_equal(decoded.width, 6);
    image_free(&decoded);
    data_close(s);
}

static void the_real_jpegs_open_and_decode(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    data_source *s;
    data_statistics m;
    if (!real_data(path, "images/cifar10_jpeg"))
        skip();
    assert_ok(data_open(&s, path, NULL));
    assert_int_equal(data_describe(s)->classes, 10);
    assert_int_equal(data_describe(s)->images[DATA_TRAIN], 200);
    assert_int_equal(data_describe(s)->images[DATA_TEST], 200);
    assert_ok(data_measure(s, DATA_TRAIN, 0, 0, 2, &m));
    assert_int_equal(m.images, 200);
    assert_int_equal(data_bad_count(s), 0);
    data_close(s);
}

/* What a set does not know is refused instead of silently left out. */
static void options_that_a_set_does_not_know_are_refused(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_options");
    png_set(folder, "train", "a", 1, 4, 4);
    assert_refused(data_open(&s, folder, &(data_options){.labels = "coarse"}), BERLU_ERR_ARG, "no coarse labels");
    assert_refused(data_open(&s, folder, &(data_options){.sha256 = "00"}), BERLU_ERR_ARG, "no archive");
    assert_refused(data_open(&s, "synthetic", &(data_options){.labels = "coarse"}), BERLU_ERR_ARG, "labels: synthetic");
    assert_refused(data_open(&s, "synthetic", &(data_options){.class_order = "timm"}), BERLU_ERR_ARG, "class-order");
    assert_refused(data_open(&s, "synthetic", &(data_options){.val_labels = "x"}), BERLU_ERR_ARG, "val-labels");
    assert_refused(data_open(&s, "synthetic", &(data_options){.max_bad_given = 1}), BERLU_ERR_ARG, "max-bad");
    assert_ok(data_open(&s, folder, &(data_options){.labels = "fine", .class_order = "torchvision"}));
    assert_false(data_describe(s)->published);
    data_close(s);
}

static void classes_named_as_imagenets_have_imagenets_mean(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    folder_fresh(folder, "folder_wnids");
    png_set(folder, "train", "n01440764", 1, 4, 4);
    png_set(folder, "train", "n15075141", 1, 4, 4);
    assert_ok(data_open(&s, folder, NULL));
    assert_true(data_describe(s)->published && data_describe(s)->mean[0] == 0.485);
    data_close(s);
    png_set(folder, "train", "n1507514", 1, 4, 4);
    assert_ok(data_open(&s, folder, NULL));
    assert_false(data_describe(s)->published);
    data_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_order_compares_runs_of_digits_as_numbers),
        cmocka_unit_test(classes_are_numbered_as_torchvision_or_timm_do),
        cmocka_unit_test(test_classes_are_matched_by_name),
        cmocka_unit_test(a_root_without_splits_is_a_training_set),
        cmocka_unit_test(empty_classes_loose_images_and_empty_folders_are_errors),
        cmocka_unit_test(many_broken_images_are_told_by_their_number),
        cmocka_unit_test(an_image_too_long_and_narrow_to_be_resized_is_a_broken_one),
        cmocka_unit_test(an_archive_of_images_is_to_be_unpacked),
        cmocka_unit_test(links_in_a_circle_are_skipped_and_counted),
        cmocka_unit_test(an_unreadable_folder_is_named),
        cmocka_unit_test(a_flat_val_folder_takes_its_classes_from_a_text),
        cmocka_unit_test(a_file_is_what_its_bytes_say),
        cmocka_unit_test(the_real_jpegs_open_and_decode),
        cmocka_unit_test(options_that_a_set_does_not_know_are_refused),
        cmocka_unit_test(classes_named_as_imagenets_have_imagenets_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
