/* test_image_options.c - how settings become crops and a normalisation.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "io/png.h"
#include "runs.h"
#include "train/eval_run.h"
#include "train/image_options.h"

static void with(train_settings *s, const char *const *extra)
{
    tiny_settings(s, "nowhere", extra);
}

static void training_images_take_jitter_and_interpolation(void **state)
{
    (void)state;
    train_settings s;
    augment_options o;
    with(&s, (const char *const[]){"augment=crop-flip", "jitter=0.4", "hue=0.1", "interpolation=random", NULL});
    assert_int_equal(image_options_train(&o, &s, 64), BERLU_OK);
    assert_true(o.crop == CROP_RESIZED && o.flip && o.brightness == 0.4 && o.contrast == 0.4 && o.saturation == 0.4);
    assert_true(o.hue == 0.1 && o.filter_random);
    assert_int_equal(image_options_eval(&o, &s, 64), BERLU_OK);
    assert_true(o.filter == RESIZE_BICUBIC && !o.filter_random && o.brightness == 0 && !o.flip);
    recipe_free(&s);
    with(&s, (const char *const[]){"interpolation=bilinear", NULL});
    assert_int_equal(image_options_eval(&o, &s, 64), BERLU_OK);
    assert_int_equal(o.filter, RESIZE_BILINEAR);
    recipe_free(&s);
}

static void convnext_evaluates_whole_images_from_384_on(void **state)
{
    (void)state;
    train_settings s;
    augment_options o;
    with(&s, (const char *const[]){"recipe=convnext", "batch=8", NULL});
    assert_int_equal(image_options_eval(&o, &s, 383), BERLU_OK);
    assert_int_equal(o.crop, CROP_EVAL);
    assert_int_equal(image_options_eval(&o, &s, 384), BERLU_OK);
    assert_int_equal(o.crop, CROP_SQUASH);
    recipe_free(&s);
    with(&s, (const char *const[]){"recipe=convnext", "batch=8", "eval_crop=center", "crop_pct=0.9", NULL});
    assert_int_equal(image_options_eval(&o, &s, 384), BERLU_OK);
    assert_true(o.crop == CROP_EVAL && o.crop_pct == 0.9);
    recipe_free(&s);
    with(&s, (const char *const[]){"eval_crop=squash", NULL});
    assert_int_equal(image_options_eval(&o, &s, 32), BERLU_OK);
    assert_int_equal(o.crop, CROP_SQUASH);
    recipe_free(&s);
}

/* Classes of images with one colour each, black and 0.2, 0.4, 0.6 in turn: mean and deviation can be told in the head.
 * `classes` ends with NULL. */
static const char *colours(char out[FOLDER_PATH], const char *name, const char *const *classes)
{
    uint8_t rgb[16 * 16 * 3];
    folder_fresh(out, name);
    for (size_t p = 0; classes[p / 2]; p++) {
        char place[2 * FOLDER_PATH], path[3 * FOLDER_PATH];
        snprintf(place, sizeof place, "%s/%s/%s", out, p % 2 ? "val" : "train", classes[p / 2]);
        assert_int_equal(folder_make(place), BERLU_OK);
        for (size_t i = 0; i < sizeof rgb; i++)
            rgb[i] = (uint8_t)(p / 2 % 2 ? 51 * (1 + i % 3) : 0);
        for (int n = 0; n < 8; n++) {
            snprintf(path, sizeof path, "%s/%d.png", place, n);
            assert_int_equal(png_write(path, rgb, 16, 16), BERLU_OK);
        }
    }
    return out;
}

static const char *two_colours(char out[FOLDER_PATH])
{
    return colours(out, "two-colours", (const char *const[]){"a", "b", NULL});
}

static void a_folders_own_mean_is_measured_once_and_kept_with_the_run(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH], line[FOLDER_PATH + 16];
    train_settings s;
    two_colours(folder);
    snprintf(line, sizeof line, "data=%s", folder);
    run_whole(run_place(run, "own-mean"), (const char *const[]){line, "synthetic_images=", "epochs=1", NULL});
    assert_int_equal(run_settings(&s, NULL, run), BERLU_OK);
    assert_string_equal(s.mean, "0.1,0.2,0.3");
    assert_string_equal(s.std, "0.1,0.2,0.3");
    recipe_free(&s);
    score before, after;
    eval_request request = {.run = run, .which = "last", .batch = 4};
    assert_int_equal(eval_run(&request, &before), BERLU_OK);
    char path[2 * FOLDER_PATH]; /* another training image changes nothing for this run */
    uint8_t white[16 * 16 * 3];
    memset(white, 255, sizeof white);
    snprintf(path, sizeof path, "%s/train/a/white.png", folder);
    assert_int_equal(png_write(path, white, 16, 16), BERLU_OK);
    assert_int_equal(eval_run(&request, &after), BERLU_OK);
    assert_true(score_loss(&before) == score_loss(&after));
}

typedef struct heard {
    size_t warnings;
    char last[512];
} heard;

static void hear(void *context, berlu_log_level level, const char *line)
{
    heard *h = context;
    h->warnings += level == BERLU_LOG_WARNING;
    snprintf(h->last, sizeof h->last, "%s", line);
}

/* Labels are numbers: another number of classes is refused, the same names in another order too, other names are warned
 * of. */
static void other_data_must_have_the_classes_of_the_run(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], same[FOLDER_PATH], three[FOLDER_PATH], renamed[FOLDER_PATH], run[FOLDER_PATH],
        line[FOLDER_PATH + 16];
    static const char *const timm[][2] = {{"class-order", "timm"}};
    score s;
    heard h = {0};
    berlu_log log = {.write = hear, .context = &h};
    colours(folder, "classes", (const char *const[]){"n2", "n10", NULL});
    colours(same, "classes-same", (const char *const[]){"n10", "n2", NULL});
    colours(three, "classes-three", (const char *const[]){"n10", "n2", "n3", NULL});
    colours(renamed, "classes-renamed", (const char *const[]){"n10", "two", NULL});
    snprintf(line, sizeof line, "data=%s", folder);
    run_whole(run_place(run, "classes-run"), (const char *const[]){line, "synthetic_images=", "epochs=1", NULL});
    eval_request r = {.run = run, .which = "last", .batch = 4, .log = &log};
    assert_int_equal(eval_run(&r, &s), BERLU_OK);
    r.data = same;
    assert_int_equal(eval_run(&r, &s), BERLU_OK);
    assert_int_equal(h.warnings, 0);
    r.data = renamed;
    assert_int_equal(eval_run(&r, &s), BERLU_OK);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.last, "1 of 2 classes of "));
    assert_non_null(strstr(h.last, "(1 is two, not n2)"));
    r.data = three;
    assert_int_equal(eval_run(&r, &s), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "has 3 classes, and "));
    r.data = "synthetic";
    assert_int_equal(eval_run(&r, &s), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "synthetic: has 10 classes, and "));
    r.data = NULL;
    r.settings = timm, r.setting_count = 1;
    assert_int_equal(eval_run(&r, &s), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "in another order (0 is n2, not n10)"));
    assert_int_equal(h.warnings, 1);
}

/* The held images become white files; what is measured must not see them. */
static void a_holdout_is_not_measured(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[4096];
    uint8_t white[16 * 16 * 3];
    data_source *data;
    data_statistics found;
    loader *l;
    const loader_batch *b;
    loader_options o = {.batch = 6, .holdout = 6, .part = PART_HELD};
    memset(white, 255, sizeof white);
    assert_int_equal(data_open(&data, two_colours(folder), NULL), BERLU_OK);
    assert_int_equal(augment_preset(&o.augment, "none", 16), BERLU_OK);
    assert_int_equal(loader_open(&l, data, &o), BERLU_OK);
    assert_int_equal(loader_start(l, 0, 0), BERLU_OK);
    assert_int_equal(loader_next(l, &b), BERLU_OK);
    for (size_t i = 0; i < b->count; i++) {
        data_name(data, DATA_TRAIN, (size_t)b->indices[i], path, sizeof path);
        assert_int_equal(png_write(path, white, 16, 16), BERLU_OK);
    }
    loader_close(l);
    assert_int_equal(data_measure(data, DATA_TRAIN, 0, 6, 2, &found), BERLU_OK);
    assert_int_equal(found.images, 10);
    assert_true(found.mean[0] < 0.25 && found.mean[2] < 0.65); /* 0.2 and 0.6 at most */
    assert_int_equal(data_measure(data, DATA_TRAIN, 0, 0, 2, &found), BERLU_OK);
    assert_true(found.images == 16 && found.mean[0] > 0.3);
    assert_int_equal(data_measure(data, DATA_TRAIN, 0, 16, 2, &found), BERLU_ERR_ARG);
    data_close(data);
}

/* run.json of a run from before `mean` was kept: its own was the published one, and ImageNet's
 * where there was none. */
static void a_run_that_kept_no_mean_sees_images_as_it_did(void **state)
{
    (void)state;
    static const char old[] = "{\"settings\": {\"model\": \"vit_micro\", \"normalize\": \"own\"}}";
    static const char kept[] = "{\"settings\": {\"normalize\": \"own\", \"mean\": \"0.5,0.5,0.5\", "
                               "\"std\": \"0.25,0.25,0.25\"}}";
    char folder[FOLDER_PATH];
    train_settings s;
    normalization n;
    data_source *data;
    assert_int_equal(data_open(&data, two_colours(folder), NULL), BERLU_OK);
    assert_int_equal(run_json_parse(&s, NULL, old, sizeof old - 1, "old"), BERLU_OK);
    assert_int_equal(normalization_find(&n, &s, data), BERLU_OK);
    assert_true(n.mean[0] == 0.485 && n.std[2] == 0.225);
    recipe_free(&s);
    assert_int_equal(run_json_parse(&s, NULL, kept, sizeof kept - 1, "kept"), BERLU_OK);
    assert_int_equal(normalization_find(&n, &s, data), BERLU_OK);
    assert_true(n.mean[0] == 0.5 && s.normalize == RECIPE_OWN);
    recipe_free(&s);
    data_close(data);
}

static void eval_refuses(const eval_request *like, const char *data, const char *const (*settings)[2], size_t count,
                         const char *key)
{
    eval_request r = *like;
    score s;
    r.data = data;
    r.settings = settings;
    r.setting_count = count;
    assert_int_equal(eval_run(&r, &s), BERLU_ERR_ARG);
    if (strncmp(berlu_last_error(), key, strlen(key)) != 0)
        fail_msg("%s", berlu_last_error());
}

static void an_evaluation_refuses_what_has_no_effect(void **state)
{
    (void)state;
    char run[FOLDER_PATH], weights[FOLDER_PATH];
    static const char *const squash[][2] = {{"eval-crop", "squash"}, {"crop-pct", "0.9"}, {"image-size", "32"}};
    static const char *const mean[][2] = {{"normalize", "imagenet"}, {"mean", "0.5,0.5,0.5"}, {"std", "0.2,0.2,0.2"}};
    static const char *const half[][2] = {{"mean", "0.5,0.5,0.5"}};
    run_whole(run_place(run, "eval-idle"), (const char *const[]){"epochs=1", NULL});
    eval_request of_run = {.run = run, .which = "last", .batch = 4};
    eval_refuses(&of_run, NULL, squash, 2, "crop_pct");
    folder_path(weights, run, "checkpoints/last/model.safetensors");
    eval_request of_weights = {.run = "vit_micro", .weights = weights, .batch = 4};
    eval_refuses(&of_weights, "synthetic", mean, 3, "normalize");
    eval_refuses(&of_weights, "synthetic", half, 1, "std");
    eval_refuses(&of_weights, "synthetic", squash, 3, "crop_pct");
}

static void mean_and_deviation_are_taken_as_given(void **state)
{
    (void)state;
    static const char *const bad[] = {"mean=0.5,0.5", "mean=0.5,0.5,0.5,0.5", "mean=a,b,c", "mean=0.5,,0.5",
                                      "mean=2,0,0"};
    data_source *data;
    normalization n;
    train_settings s;
    assert_int_equal(data_open(&data, "synthetic", NULL), BERLU_OK);
    with(&s, (const char *const[]){"mean=0.25,0.5,1", "std=0.125,0.25,0.5", NULL});
    assert_int_equal(normalization_find(&n, &s, data), BERLU_OK);
    assert_true(n.mean[0] == 0.25 && n.mean[2] == 1 && n.std[0] == 0.125 && n.std[2] == 0.5);
    recipe_free(&s);
    for (size_t i = 0; i < COUNT(bad); i++) {
        with(&s, (const char *const[]){bad[i], "std=1,1,1", NULL});
        assert_int_equal(normalization_find(&n, &s, data), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "mean: "));
        recipe_free(&s);
    }
    with(&s, (const char *const[]){"mean=0,0,0", "std=1,0,1", NULL});
    assert_int_equal(normalization_find(&n, &s, data), BERLU_ERR_ARG);
    recipe_free(&s);
    data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_images_take_jitter_and_interpolation),
        cmocka_unit_test(convnext_evaluates_whole_images_from_384_on),
        cmocka_unit_test(a_folders_own_mean_is_measured_once_and_kept_with_the_run),
        cmocka_unit_test(other_data_must_have_the_classes_of_the_run),
        cmocka_unit_test(a_holdout_is_not_measured),
        cmocka_unit_test(a_run_that_kept_no_mean_sees_images_as_it_did),
        cmocka_unit_test(an_evaluation_refuses_what_has_no_effect),
        cmocka_unit_test(mean_and_deviation_are_taken_as_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
