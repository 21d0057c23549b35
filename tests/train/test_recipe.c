/* test_recipe.c - settings: presets, what was given wins, conflicts are named, nothing changes on
 * the way through a file. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/constraint.h"
#include "train/recipe.h"

static void basics(train_settings *s)
{
    recipe_init(s);
    assert_int_equal(recipe_set(s, "model", "vit_micro"), BERLU_OK);
    assert_int_equal(recipe_set(s, "data", "synthetic"), BERLU_OK);
    assert_int_equal(recipe_set(s, "act", "berlu"), BERLU_OK);
}

static void with_recipe(train_settings *s, const char *name)
{
    basics(s);
    assert_int_equal(recipe_set(s, "recipe", name), BERLU_OK);
    assert_int_equal(recipe_resolve(s), BERLU_OK);
}

/* The words of the command line, in a file and by name. */
static void a_setting_takes_the_words_of_the_command_line(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        int64_t expected;
    } good[] = {{"batch", "1Ki", 1024}, {"batch", "64", 64},      {"batch", "1e3", 1000},
                {"nesterov", "on", 1},  {"seed", "2Mi", 1 << 21}, {"train_images", "1Gi", 1 << 30}};
    for (size_t i = 0; i < COUNT(good); i++) {
        train_settings s;
        yaml_tree tree;
        char file[64];
        const setting *row = recipe_find(good[i].key);
        snprintf(file, sizeof file, "%s: %s\n", good[i].key, good[i].value);
        recipe_init(&s);
        assert_int_equal(yaml_tree_parse(&tree, file, strlen(file), "c.yaml"), BERLU_OK);
        assert_int_equal(recipe_set_yaml(&s, &tree, tree.root), BERLU_OK);
        assert_int_equal(*(int64_t *)((char *)&s + row->offset), good[i].expected);
        yaml_tree_free(&tree);
        recipe_free(&s);
    }
    static const char *const bad[] = {"1K", "1ki", "64 Ki", "1.5Ki", "9Gi9", " 8", "1.5", ""};
    for (size_t i = 0; i < COUNT(bad); i++) {
        train_settings s;
        recipe_init(&s);
        assert_int_equal(recipe_set(&s, "batch", bad[i]), BERLU_ERR_ARG);
        recipe_free(&s);
    }
}

static void the_papers_preset_is_what_the_paper_states(void **state)
{
    (void)state;
    train_settings s;
    with_recipe(&s, "paper");
    assert_int_equal(s.optimizer, RECIPE_ADAMW);
    assert_true(s.weight_decay == 0.05 && s.clip == 1.0 && s.beta1 == 0.9 && s.beta2 == 0.999 && s.adam_eps == 1e-8);
    assert_true(s.epochs == 100 && s.batch == 1024 && s.lr == 1e-3 && s.warmup == 5 && s.warmup_lr == 1e-6);
    assert_true(s.min_lr == 1e-5 && s.schedule == SCHEDULE_COSINE_STEP);
    assert_true(s.smoothing == 0 && s.mixup == 0 && s.cutmix == 0 && s.drop_path == 0 && s.ema == 0 && s.augment == 0);
    assert_true(s.act_lr == 1 && s.act_decay == 0 && s.act_params == 0 && s.decay_all == 0);
    recipe_free(&s);
}

static void the_other_presets_are_the_official_scripts(void **state)
{
    (void)state;
    train_settings s;
    with_recipe(&s, "deit");
    assert_true(s.epochs == 300 && s.schedule == SCHEDULE_DEIT && s.lr == 1e-3 && s.clip == 0 && s.mixup == 0.8);
    assert_true(s.cutmix == 1 && s.smoothing == 0.1 && s.repeats == 3 && s.ema == 0.99996 && s.drop_path == 0.1);
    assert_int_equal(s.normalize, RECIPE_IMAGENET);
    recipe_free(&s);
    with_recipe(&s, "convnext");
    assert_true(s.batch == 4096 && s.lr == 4e-3 && s.warmup == 20 && s.warmup_lr == 0 && s.min_lr == 1e-6);
    assert_true(s.ema == 0.9999 && s.schedule == SCHEDULE_CONVNEXT);
    recipe_free(&s);
    basics(&s); /* its script does not scale the rate with the batch */
    recipe_set(&s, "recipe", "convnext");
    recipe_set(&s, "batch", "128");
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(s.lr == 4e-3);
    recipe_free(&s);
    with_recipe(&s, "plain");
    assert_true(s.batch == 128 && s.lr == 1e-3 && s.weight_decay == 0.01 && s.schedule == SCHEDULE_CONSTANT);
    recipe_free(&s);
}

static void what_was_given_wins_over_file_and_preset(void **state)
{
    (void)state;
    train_settings s;
    yaml_tree tree;
    const char *source = "batch: 64\nlr: 0.5\nact: [relu, gelu]\nrecipe: deit\n";
    basics(&s);
    assert_int_equal(recipe_set(&s, "lr", "0.25"), BERLU_OK);
    assert_int_equal(yaml_tree_parse(&tree, source, strlen(source), "f.yaml"), BERLU_OK);
    assert_int_equal(recipe_set_yaml(&s, &tree, tree.root), BERLU_OK);
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(s.lr == 0.25 && s.batch == 64 && s.clip == 0);
    assert_int_equal(s.acts, 1);
    assert_string_equal(s.act[0], "berlu");
    yaml_tree_free(&tree);
    recipe_free(&s);
}

static void the_rate_follows_the_images_of_an_update(void **state)
{
    (void)state;
    train_settings s;
    basics(&s);
    recipe_set(&s, "batch", "128");
    recipe_set(&s, "accumulate", "4");
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(s.lr == 5e-4);
    recipe_free(&s);
}

static void a_run_shorter_than_the_presets_warm_up_keeps_its_share(void **state)
{
    (void)state;
    train_settings s;
    basics(&s);
    recipe_set(&s, "epochs", "2");
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(fabs(s.warmup - 0.1) < 1e-15);
    recipe_free(&s);
    basics(&s);
    recipe_set(&s, "epochs", "10");
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(s.warmup == 5);
    recipe_free(&s);
}

static void conflicts_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *also, *with, *says;
    } bad[] = {
        {"momentum", "0.5", NULL, NULL, "momentum: has no effect because optimizer is adamw"},
        {"beta1", "0.5", "optimizer", "sgd", "beta1: has no effect because optimizer is sgd"},
        {"step_every", "3", NULL, NULL, "schedule is not step"},
        {"teacher", "x", NULL, NULL, "distill is none"},
        {"lr", "0", NULL, NULL, "lr: with 0 nothing is learned"},
        {"min_lr", "0.1", "lr", "0.01", "min_lr: 0.1 is above lr, 0.01"},
        {"min_lr", "0", "schedule", "constant", "min_lr: has no effect because schedule is constant"},
        {"distill", "hard", NULL, NULL, "needs a teacher"},
        {"mixup", "0.8", "batch", "33", "must be even"},
        {"mix_group", "10", "mixup", "0.8", "divide the batch of 1024"},
        {"act_lr", "2", "act_freeze", "1", "act_freeze is set"},
        {"augment", "deit", "overfit_batch", "1", "overfit_batch fixes it"},
        {"synthetic_images", "5", "data", "cifar10:x", "data is not synthetic"},
        {"act_constraint", "gamma:0:1", NULL, NULL, "'gamma'"},
        {"teacher_act", "gelu", NULL, NULL, "teacher_act: has no effect because distill is none"},
        {"jitter", "0.4", "augment", "deit", "jitter: has no effect because RandAugment"},
        {"hue", "0.1", "augment", "convnext", "hue: has no effect because RandAugment"},
        {"crop_pct", "0.9", "eval_crop", "squash", "eval_crop is squash"},
        {"warmup_lr", "1e-5", "warmup", "0", "warmup is 0"},
        {"decay_all", "1", "weight_decay", "0", "weight_decay is 0"},
        {"mean", "0.5,0.5,0.5", NULL, NULL, "std: mean and std belong together"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        train_settings s;
        basics(&s);
        assert_int_equal(recipe_set(&s, bad[i].key, bad[i].value), BERLU_OK);
        if (bad[i].also)
            assert_int_equal(recipe_set(&s, bad[i].also, bad[i].with), BERLU_OK);
        assert_int_equal(recipe_resolve(&s), BERLU_ERR_ARG);
        if (!strstr(berlu_last_error(), bad[i].says))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i].says);
        recipe_free(&s);
    }
}

static void nesterov_needs_a_momentum(void **state)
{
    (void)state;
    static const char *const list[][2] = {{"model", "vit_micro"}, {"data", "synthetic"}, {"act", "relu"},
                                          {"optimizer", "sgd"},   {"nesterov", "1"},     {"momentum", "0"}};
    train_settings s;
    recipe_init(&s);
    for (size_t i = 0; i < COUNT(list); i++)
        assert_int_equal(recipe_set(&s, list[i][0], list[i][1]), BERLU_OK);
    assert_int_equal(recipe_resolve(&s), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "nesterov: has no effect because momentum is 0"));
    recipe_free(&s);
}

static void the_usual_end_of_the_schedule_is_never_above_its_peak(void **state)
{
    (void)state;
    static const char *const list[][2] = {
        {"model", "vit_micro"}, {"data", "synthetic"}, {"act", "relu"}, {"batch", "4"}};
    train_settings s;
    recipe_init(&s);
    for (size_t i = 0; i < COUNT(list); i++)
        assert_int_equal(recipe_set(&s, list[i][0], list[i][1]), BERLU_OK);
    assert_int_equal(recipe_resolve(&s), BERLU_OK);
    assert_true(s.lr == 1e-3 * 4 / 1024 && s.min_lr == s.lr);
    recipe_free(&s);
}

static void wrong_values_are_refused_with_what_is_allowed(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"epochs", "0", "epochs: 0 lies outside 1 to"},     {"epochs", "1.5", "not a whole number"},
        {"lr", "fast", "'fast' is not a number"},           {"lr", "nan", "lr: nan lies outside"},
        {"schedule", "cosine", "is none of cosine-step, "}, {"weight-decai", "1", "did you mean weight_decay?"},
        {"nesterov", "perhaps", "neither true nor false"},  {"batch", "-4", "lies outside"},
        {"device", "tpu", "'tpu' is none of cpu, cuda"},    {"smoothing", "1", "lies outside"},
        {"min_lr", "auto", "'auto' is not a number"},       {"batch", "12x", "'12x' is not a number"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        train_settings s;
        recipe_init(&s);
        assert_int_equal(recipe_set(&s, bad[i][0], bad[i][1]), BERLU_ERR_ARG);
        if (!strstr(berlu_last_error(), bad[i][2]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i][2]);
        recipe_free(&s);
    }
}

static void a_wrong_line_of_a_file_is_named(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"a: 1\n", "f.yaml:1:4: a: there is no such setting"},
        {"batch: 8\nlr: [1, 2]\n", "f.yaml:2:5: lr takes one value"},
        {"batch:\n  x: 1\n", "f.yaml:2:3: batch takes one"},
        {"batch: many\n", "f.yaml:1:8: batch: 'many'"},
        {"- 1\n", "f.yaml:1:1: settings are written as KEY"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        train_settings s;
        yaml_tree tree;
        recipe_init(&s);
        assert_int_equal(yaml_tree_parse(&tree, bad[i][0], strlen(bad[i][0]), "f.yaml"), BERLU_OK);
        assert_int_equal(recipe_set_yaml(&s, &tree, tree.root), BERLU_ERR_INPUT);
        if (!strstr(berlu_last_error(), bad[i][1]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i][1]);
        yaml_tree_free(&tree);
        recipe_free(&s);
    }
}

static void settings_survive_json_unchanged(void **state)
{
    (void)state;
    for (size_t r = 0; recipe_names[r]; r++) {
        train_settings s, back;
        text differences = {0};
        basics(&s);
        recipe_set(&s, "recipe", recipe_names[r]);
        recipe_set(&s, "act", "gelu");
        recipe_set(&s, "lr", "0.1");
        assert_int_equal(recipe_resolve(&s), BERLU_OK);
        text dump = {0};
        recipe_json(&s, NULL, &dump);
        json_t *again = json_loads(dump.data, 0, NULL);
        recipe_init(&back);
        assert_int_equal(recipe_from_json(&back, again, "run.json"), BERLU_OK);
        memset(back.given, GIVEN, sizeof back.given);
        assert_int_equal(recipe_differences(&back, &s, &differences), 0);
        assert_string_equal(back.recipe, recipe_names[r]);
        assert_true(back.lr == 0.1 && back.acts == 2);
        json_decref(again);
        text_free(&dump);
        recipe_free(&s);
        recipe_free(&back);
    }
}

static void a_resume_with_other_settings_names_the_keys(void **state)
{
    (void)state;
    train_settings saved, asked;
    text out = {0};
    basics(&saved);
    assert_int_equal(recipe_resolve(&saved), BERLU_OK);
    recipe_init(&asked);
    recipe_set(&asked, "lr", "0.5");
    recipe_set(&asked, "batch", "1024");
    recipe_set(&asked, "threads", "7"); /* changes no number of a run */
    recipe_set(&asked, "act", "relu");
    assert_int_equal(recipe_differences(&asked, &saved, &out), 2);
    assert_string_equal(out.data, "act (berlu, not relu), lr (0.001, not 0.5)");
    text_free(&out);
    recipe_free(&saved);
    recipe_free(&asked);
}

static void every_row_has_a_default_of_its_kind_and_a_help(void **state)
{
    (void)state;
    train_settings s;
    recipe_init(&s);
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        assert_true(strlen(row->help) > 0);
        assert_ptr_equal(recipe_find(row->key), row);
        assert_int_equal(recipe_fill(&s, row, row->value), BERLU_OK);
    }
    assert_ptr_equal(recipe_find("weight-decay"), recipe_find("weight_decay"));
    assert_null(recipe_find("weight"));
    recipe_free(&s);
}

static void constraints_read_in_every_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        double low, high, eps_low;
    } good[] = {{"none", -INFINITY, INFINITY, 0x1p-60}, {"alpha>=0", 0, INFINITY, 0x1p-60},
                {"|alpha|<=1", -1, 1, 0x1p-60},         {"alpha:-0.5:2", -0.5, 2, 0x1p-60},
                {"alpha::2", -INFINITY, 2, 0x1p-60},    {"alpha:0:,eps>=0.001", 0, INFINITY, 0.001},
                {"alpha>=0,alpha<=1", 0, 1, 0x1p-60}};
    for (size_t i = 0; i < COUNT(good); i++) {
        constraint c;
        assert_int_equal(constraint_parse(&c, good[i].rule), BERLU_OK);
        assert_true(c.alpha.low == good[i].low && c.alpha.high == good[i].high && c.eps.low == good[i].eps_low);
    }
    const char *bad[] = {"",         "alpha",      "alpha:1:0",         "alpha>=",   "|alpha|<=-1",
                         "alpha>=x", "alpha:nan:", "alpha>=2,alpha<=1", "none,none", "gamma>=0",
                         "alpha>=0,"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        constraint c;
        if (constraint_parse(&c, bad[i]) != BERLU_ERR_ARG)
            fail_msg("'%s' was taken", bad[i]);
    }
}

/* The float nearest to 0.7 lies below it, the one nearest to 0.89999999 above it. */
static void bounds_are_floats_inside_the_interval(void **state)
{
    (void)state;
    constraint c;
    engine_bound bounds[3];
    assert_int_equal(constraint_parse(&c, "alpha:0.7:0.89999999"), BERLU_OK);
    assert_int_equal(constraint_bounds(&c, bounds), 2); /* eps has the range of its definition */
    assert_string_equal(bounds[0].parameter, "alpha");
    assert_true(bounds[0].low >= 0.7 && bounds[0].low < 0.7000001);
    assert_true(bounds[0].high <= 0.89999999 && bounds[0].high > 0.8999998);
    assert_string_equal(bounds[1].parameter, "eps");
    assert_true(bounds[1].low == 0x1p-60f);
}

/* Evaluation on a GPU takes more images at a time, unless somebody says how many. */
static void the_batch_of_an_evaluation_follows_the_device(void **state)
{
    (void)state;
    static const char *const asked[][3] = {{"cpu", NULL, "100"}, {"cuda", NULL, "1024"}, {"cuda", "200", "200"}};
    for (size_t i = 0; i < COUNT(asked); i++) {
        train_settings s;
        text value = {0};
        basics(&s);
        assert_int_equal(recipe_set(&s, "device", asked[i][0]), BERLU_OK);
        if (asked[i][1])
            assert_int_equal(recipe_set(&s, "eval_batch", asked[i][1]), BERLU_OK);
        assert_int_equal(recipe_resolve(&s), BERLU_OK);
        recipe_value(&s, recipe_find("eval_batch"), 0, &value);
        assert_string_equal(value.data, asked[i][2]);
        text_free(&value);
        recipe_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_takes_the_words_of_the_command_line),
        cmocka_unit_test(the_papers_preset_is_what_the_paper_states),
        cmocka_unit_test(the_other_presets_are_the_official_scripts),
        cmocka_unit_test(what_was_given_wins_over_file_and_preset),
        cmocka_unit_test(the_rate_follows_the_images_of_an_update),
        cmocka_unit_test(a_run_shorter_than_the_presets_warm_up_keeps_its_share),
        cmocka_unit_test(the_batch_of_an_evaluation_follows_the_device),
        cmocka_unit_test(conflicts_are_refused_by_name),
        cmocka_unit_test(nesterov_needs_a_momentum),
        cmocka_unit_test(the_usual_end_of_the_schedule_is_never_above_its_peak),
        cmocka_unit_test(wrong_values_are_refused_with_what_is_allowed),
        cmocka_unit_test(a_wrong_line_of_a_file_is_named),
        cmocka_unit_test(settings_survive_json_unchanged),
        cmocka_unit_test(a_resume_with_other_settings_names_the_keys),
        cmocka_unit_test(every_row_has_a_default_of_its_kind_and_a_help),
        cmocka_unit_test(constraints_read_in_every_spelling),
        cmocka_unit_test(bounds_are_floats_inside_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
