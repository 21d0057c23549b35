/* test_pictures.c - how settings become crops and a normalisation. SPDX-License-Identifier: MIT */
#include <math.h>

#include "io/png.h"
#include "runs.h"
#include "train/eval_run.h"
#include "train/pictures.h"

static void with(train_settings *s, const char *const *extra)
{
    tiny_settings(s, "nowhere", extra);
}

static void training_pictures_take_jitter_and_interpolation(void **state)
{
    (void)state;
    train_settings s;
    augment_options o;
    with(&s, (const char *const[]){"augment=crop-flip", "jitter=0.4", "hue=0.1", "interpolation=random", NULL});
    assert_int_equal(pictures_train(&o, &s, 64), BERLU_OK);
    assert_true(o.crop == CROP_RESIZED && o.flip && o.brightness == 0.4 && o.contrast == 0.4 && o.saturation == 0.4);
    assert_true(o.hue == 0.1 && o.filter_random);
    assert_int_equal(pictures_eval(&o, &s, 64), BERLU_OK);
    assert_true(o.filter == RESIZE_BICUBIC && !o.filter_random && o.brightness == 0 && !o.flip);
    recipe_free(&s);
    with(&s, (const char *const[]){"interpolation=bilinear", NULL});
    assert_int_equal(pictures_eval(&o, &s, 64), BERLU_OK);
    assert_int_equal(o.filter, RESIZE_BILINEAR);
    recipe_free(&s);
}

static void convnext_evaluates_whole_pictures_from_384_on(void **state)
{
    (void)state;
    train_settings s;
    augment_options o;
    with(&s, (const char *const[]){"recipe=convnext", "batch=8", NULL});
    assert_int_equal(pictures_eval(&o, &s, 383), BERLU_OK);
    assert_int_equal(o.crop, CROP_EVAL);
    assert_int_equal(pictures_eval(&o, &s, 384), BERLU_OK);
    assert_int_equal(o.crop, CROP_SQUASH);
    recipe_free(&s);
    with(&s, (const char *const[]){"recipe=convnext", "batch=8", "eval_crop=center", "crop_pct=0.9", NULL});
    assert_int_equal(pictures_eval(&o, &s, 384), BERLU_OK);
    assert_true(o.crop == CROP_EVAL && o.crop_pct == 0.9);
    recipe_free(&s);
    with(&s, (const char *const[]){"eval_crop=squash", NULL});
    assert_int_equal(pictures_eval(&o, &s, 32), BERLU_OK);
    assert_int_equal(o.crop, CROP_SQUASH);
    recipe_free(&s);
}

/* Two classes of pictures with one colour each: mean and deviation can be told in the head. */
static const char *two_colours(char out[FOLDER_PATH])
{
    static const char *const places[] = {"train/a", "train/b", "val/a", "val/b"};
    uint8_t rgb[16 * 16 * 3];
    folder_fresh(out, "two-colours");
    for (size_t p = 0; p < COUNT(places); p++) {
        char path[2 * FOLDER_PATH];
        snprintf(path, sizeof path, "%s/%s", out, places[p]);
        assert_int_equal(folder_make(path), BERLU_OK);
        for (size_t i = 0; i < sizeof rgb; i++)
            rgb[i] = (uint8_t)(p % 2 ? 51 * (1 + i % 3) : 0); /* 0.2, 0.4, 0.6 or black */
        for (int n = 0; n < 8; n++) {
            snprintf(path, sizeof path, "%s/%s/%d.png", out, places[p], n);
            assert_int_equal(png_write(path, rgb, 16, 16), BERLU_OK);
        }
    }
    return out;
}

static void a_folders_own_mean_is_measured_once_and_kept_with_the_run(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH], line[FOLDER_PATH + 16];
    train_settings s;
    two_colours(folder);
    snprintf(line, sizeof line, "data=%s", folder);
    run_whole(run_place(run, "own-mean"), (const char *const[]){line, "synthetic_images=", "epochs=1", NULL});
    assert_int_equal(run_settings(&s, run), BERLU_OK);
    assert_string_equal(s.mean, "0.1,0.2,0.3");
    assert_string_equal(s.std, "0.1,0.2,0.3");
    recipe_free(&s);
    score before, after;
    eval_request request = {.run = run, .which = "last", .batch = 4};
    assert_int_equal(eval_run(&request, &before), BERLU_OK);
    char path[2 * FOLDER_PATH]; /* another training picture changes nothing for this run */
    uint8_t white[16 * 16 * 3];
    memset(white, 255, sizeof white);
    snprintf(path, sizeof path, "%s/train/a/white.png", folder);
    assert_int_equal(png_write(path, white, 16, 16), BERLU_OK);
    assert_int_equal(eval_run(&request, &after), BERLU_OK);
    assert_true(score_loss(&before) == score_loss(&after));
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
        cmocka_unit_test(training_pictures_take_jitter_and_interpolation),
        cmocka_unit_test(convnext_evaluates_whole_pictures_from_384_on),
        cmocka_unit_test(a_folders_own_mean_is_measured_once_and_kept_with_the_run),
        cmocka_unit_test(mean_and_deviation_are_taken_as_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
