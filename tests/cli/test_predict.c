/* test_predict.c - berlu predict and the fine print of berlu eval. SPDX-License-Identifier: MIT
 *
 * A run is trained on a folder of PNG files. Evaluation and prediction read the same images by
 * different code, so their results must be equal, image by image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command_json.h"
#include "support/folder.h"

enum { CLASSES = 10 };

static void must(const char *first, ...)
{
    char *words[32] = {"berlu", (char *)first};
    va_list args;
    va_start(args, first);
    for (size_t i = 2; i < 31 && (words[i] = va_arg(args, char *)); i++)
        ;
    va_end(args);
    command_result r;
    command_run_with(&r, words, 0, NULL);
    if (r.code != 0)
        fail_msg("%s: exit %d, %s", first, r.code, r.err);
    command_free(&r);
}

static int run_make(void **state)
{
    static char folder[FOLDER_PATH];
    (void)state;
    if (chdir(folder_fresh(folder, "cli_predict")) != 0)
        return -1;
    must("data", "make", "synthetic", "--out", "set", "--images", "200", NULL);
    must("train", "--model", "linear", "--data", "set", "--recipe", "plain", "--epochs", "2", "--batch", "20", "--run",
         "run", "--quiet", NULL);
    return 0;
}

static json_t *json_from(const char *command, const char *option)
{
    command_result r;
    command_run(&r, command, "run", "--json", option, NULL);
    return json_of(&r);
}

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void an_evaluation_says_what_it_is_of(void **state)
{
    (void)state;
    json_t *root = json_from("eval", NULL);
    assert_string_equal(json_string_value(json_object_get(root, "run")), "run");
    assert_string_equal(json_string_value(json_object_get(root, "model")), "linear");
    assert_string_equal(json_string_value(json_object_get(root, "data")), "set");
    assert_true(json_is_string(json_object_get(root, "act")));
    assert_int_equal(number(root, "step"), 20);
    assert_null(json_object_get(root, "per_class"));
    json_decref(root);
}

static void classes_add_up_to_the_whole(void **state)
{
    (void)state;
    json_t *plain = json_from("eval", NULL), *root = json_from("eval", "--per-class");
    const json_t *rows = json_object_get(root, "per_class");
    assert_int_equal(json_array_size(rows), CLASSES);
    assert_true(json_equal(json_object_get(root, "top1"), json_object_get(plain, "top1")));
    assert_true(json_equal(json_object_get(root, "loss"), json_object_get(plain, "loss")));
    int64_t images = 0, right = 0;
    for (size_t k = 0; k < CLASSES; k++) {
        const json_t *row = json_array_get(rows, k), *answers = json_object_get(row, "answers");
        images += number(row, "images");
        right += json_integer_value(json_array_get(answers, k));
    }
    assert_int_equal(images, number(root, "images"));
    assert_true(100 * (double)right / (double)images == json_real_value(json_object_get(root, "top1")));
    json_decref(plain);
    json_decref(root);
}

/* Which class, by its number, has this name. */
static size_t class_named(const json_t *rows, const char *name)
{
    for (size_t k = 0; k < CLASSES; k++)
        if (strcmp(json_string_value(json_object_get(json_array_get(rows, k), "name")), name) == 0)
            return k;
    fail_msg("no class '%s'", name);
    return 0;
}

/* Files of one class of the test split: counts of their predictions equal the row of the matrix. */
static void predictions_are_the_answers_of_the_evaluation(void **state)
{
    (void)state;
    json_t *root = json_from("eval", "--per-class");
    const json_t *rows = json_object_get(root, "per_class");
    for (size_t label = 0; label < CLASSES; label += 3) {
        char place[256], files[64][320], *words[72] = {"berlu", "predict", "run", "--json"};
        size_t count = 0;
        snprintf(place, sizeof place, "set/val/%.200s",
                 json_string_value(json_object_get(json_array_get(rows, label), "name")));
        DIR *folder = opendir(place);
        assert_non_null(folder);
        for (const struct dirent *entry; (entry = readdir(folder)) && count < 64;)
            if (entry->d_name[0] != '.') {
                snprintf(files[count], sizeof files[count], "%.250s/%.60s", place, entry->d_name);
                words[4 + count] = files[count];
                count++;
            }
        closedir(folder);
        command_result r;
        command_run_with(&r, words, 0, NULL);
        json_t *said = json_of(&r);
        const json_t *each = json_object_get(said, "rows");
        assert_int_equal(json_array_size(each), count);
        int64_t answers[CLASSES] = {0};
        for (size_t i = 0; i < count; i++) {
            const json_t *row = json_array_get(each, i), *shares = json_object_get(row, "probabilities");
            assert_string_equal(json_string_value(json_object_get(row, "file")), files[i]);
            assert_int_equal(json_array_size(shares), 5);
            double before = 1, sum = 0;
            for (size_t k = 0; k < 5; k++) {
                double share = json_real_value(json_array_get(shares, k));
                assert_true(share >= 0 && share <= before);
                before = share;
                sum += share;
            }
            assert_true(sum <= 1 + 1e-12);
            answers[class_named(rows, json_string_value(json_array_get(json_object_get(row, "classes"), 0)))]++;
        }
        const json_t *want = json_object_get(json_array_get(rows, label), "answers");
        for (size_t k = 0; k < CLASSES; k++)
            assert_int_equal(answers[k], json_integer_value(json_array_get(want, k)));
        json_decref(said);
    }
    json_decref(root);
}

/* A run is carried to another machine without its set; run.json names the classes. */
static void a_prediction_needs_no_set(void **state)
{
    (void)state;
    command_result here, away;
    command_run(&here, "predict", "run", "set/val/cross-dots/000001.png", "--json", NULL);
    assert_int_equal(here.code, 0);
    assert_int_equal(rename("set/val", "val") | rename("set", "elsewhere") | mkdir("set", 0777), 0);
    assert_int_equal(rename("val", "set/val"), 0);
    command_run(&away, "predict", "run", "set/val/cross-dots/000001.png", "--json", NULL);
    assert_int_equal(rename("set/val", "elsewhere/val") | rmdir("set") | rename("elsewhere", "set"), 0);
    assert_string_equal(away.err, "");
    assert_string_equal(away.out, here.out);
    command_free(&here);
    command_free(&away);
}

static void a_broken_image_is_left_out_by_name(void **state)
{
    (void)state;
    static const char broken[] = "set/train/cross-dots/broken.png";
    static const char warning[] = "warning: left out: set/train/cross-dots/broken.png: neither a JPEG nor a PNG\n";
    command_result r;
    char *log = NULL;
    assert_int_equal(file_write_atomic(broken, "no image", 8), BERLU_OK);
    command_run(&r, "train", "--model", "linear", "--data", "set", "--recipe", "plain", "--epochs", "2", "--batch",
                "20", "--max-bad", "1", "--run", "run-broken", "--quiet", NULL);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.err, warning); /* once */
    assert_int_equal(file_read_all(&log, NULL, "run-broken/log.txt", 1 << 20), BERLU_OK);
    assert_non_null(strstr(log, warning));
    free(log);
    command_free(&r);
    command_run(&r, "eval", "run-broken", "--split", "train", "--json", NULL);
    assert_string_equal(r.err, warning);
    assert_non_null(strstr(r.out, "\"images\": 200,"));
    command_free(&r);
    assert_int_equal(unlink(broken), 0);
}

/* timm prepares images as the evaluations of the run do. */
static void an_export_tells_how_images_are_resized(void **state)
{
    (void)state;
    char *config = NULL;
    must("train", "--model", "vit_micro", "--act", "relu", "--image-size", "24", "--patch", "8", "--data", "set",
         "--recipe", "plain", "--epochs", "1", "--batch", "20", "--interpolation", "bilinear", "--eval-crop", "squash",
         "--run", "run-squash", "--quiet", NULL);
    must("export", "timm", "run-squash", "timm-squash", NULL);
    assert_int_equal(file_read_all(&config, NULL, "timm-squash/config.json", 1 << 20), BERLU_OK);
    assert_non_null(strstr(config, "\"interpolation\": \"bilinear\", \"crop_pct\": 1, \"crop_mode\": \"squash\""));
    free(config);
}

static void the_matrix_is_drawn(void **state)
{
    (void)state;
    char *svg = NULL;
    size_t size = 0;
    must("eval", "run", "--confusion", "matrix.svg", NULL);
    assert_int_equal(file_read_all(&svg, &size, "matrix.svg", 1 << 20), BERLU_OK);
    assert_true(strncmp(svg, "<svg ", 5) == 0 && strstr(svg, "</svg>"));
    assert_non_null(strstr(svg, "linear: top1 "));
    free(svg);
}

static void what_is_no_image_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"nosuch.png", "nosuch.png: "}, {"run/run.json", "neither a JPEG nor a PNG"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_result r;
        command_run(&r, "predict", "run", bad[i][0], NULL);
        assert_int_equal(r.code, 2);
        assert_string_equal(r.out, "");
        assert_non_null(strstr(r.err, bad[i][1]));
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evaluation_says_what_it_is_of),
        cmocka_unit_test(classes_add_up_to_the_whole),
        cmocka_unit_test(predictions_are_the_answers_of_the_evaluation),
        cmocka_unit_test(a_prediction_needs_no_set),
        cmocka_unit_test(a_broken_image_is_left_out_by_name),
        cmocka_unit_test(an_export_tells_how_images_are_resized),
        cmocka_unit_test(the_matrix_is_drawn),
        cmocka_unit_test(what_is_no_image_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, run_make, NULL);
}
