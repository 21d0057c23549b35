/* test_lists.c - berlu models, recipes and act list: for people at 80 columns, for programs as
 * JSON. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "support/command_json.h"

static void assert_fits_80_columns(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > 80)
            fail_msg("%zu columns: %.*s", length, (int)length, text);
        assert_true(length == 0 || text[length - 1] != ' ');
        text += length + (text[length] == '\n');
    }
}

static json_t *json_from(const char *first, const char *second, const char *third)
{
    command_result r;
    char *words[] = {"berlu", (char *)first, "--json", (char *)second, (char *)third, NULL};
    if (strcmp(first, "act") == 0) {
        words[2] = (char *)second;
        words[3] = "--json";
    }
    command_run_with(&r, words, 0, NULL);
    return json_of(&r);
}

static json_t *named(const json_t *list, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row) if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) return row;
    fail_msg("no row '%s'", name);
    return NULL;
}

static void the_lists_fit_a_terminal(void **state)
{
    (void)state;
    static const char *const lists[][3] = {
        {"models"}, {"recipes"}, {"act", "list"}, {"act", "list", "berlu:alpha=2,eps=0.3,learn=alpha+eps"}};
    for (size_t i = 0; i < COUNT(lists); i++) {
        command_result r;
        command_run(&r, lists[i][0], lists[i][1], lists[i][2], NULL);
        assert_int_equal(r.code, 0);
        assert_string_equal(r.err, "");
        assert_true(strlen(r.out) > 80);
        assert_fits_80_columns(r.out);
        command_free(&r);
    }
}

/* Parameters and multiply-adds are those that summary counts. */
static void models_agree_with_their_summaries(void **state)
{
    (void)state;
    json_t *root = json_from("models", NULL, NULL), *models = json_object_get(root, "models");
    static const char *const some[] = {"vit_micro", "tnt_micro", "convnext_micro", "vit_tiny", "linear"};
    for (size_t i = 0; i < COUNT(some); i++) {
        json_t *row = named(models, some[i]), *summary = json_from("summary", some[i], NULL);
        static const char *const keys[] = {"params", "macs", "image_size", "classes"};
        for (size_t k = 0; k < COUNT(keys); k++)
            assert_true(json_equal(json_object_get(row, keys[k]), json_object_get(summary, keys[k])));
        json_decref(summary);
    }
    assert_string_equal(json_string_value(json_object_get(named(models, "vit_tiny"), "timm")), "vit_tiny_patch16_224");
    assert_true(json_is_null(json_object_get(named(models, "linear"), "patch")));
    json_decref(root);
}

static void a_model_answers_to_timms_name(void **state)
{
    (void)state;
    json_t *ours = json_from("summary", "deit_tiny", NULL),
           *timms = json_from("summary", "deit_tiny_patch16_224", NULL);
    assert_true(json_equal(ours, timms));
    json_decref(ours);
    json_decref(timms);
}

/* The defaults of a training are those that the list shows. */
static void recipes_show_what_a_training_would_use(void **state)
{
    (void)state;
    json_t *root = json_from("recipes", NULL, NULL), *recipes = json_object_get(root, "recipes");
    assert_true(json_array_size(recipes) >= 4);
    size_t i;
    json_t *row;
    json_array_foreach(recipes, i, row)
    {
        command_result r;
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *settings = json_object_get(row, "settings");
        char want[64];
        assert_true(strlen(json_string_value(json_object_get(row, "about"))) > 0);
        command_run(&r, "help", "train", "--recipe", name, NULL);
        assert_int_equal(r.code, 0);
        snprintf(want, sizeof want, "(default: %lld)",
                 (long long)json_integer_value(json_object_get(settings, "batch")));
        assert_non_null(strstr(strstr(r.out, "\n  --batch N"), want));
        command_free(&r);
    }
    json_decref(root);
}

static void an_activation_is_listed_with_its_parameters(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "act", "list", "berlu:alpha=2", "gelu", "--json", NULL);
    json_t *root = json_of(&r), *list = json_object_get(root, "activations");
    assert_int_equal(json_array_size(list), 2);
    json_t *berlu = named(list, "berlu");
    assert_true(json_real_value(json_object_get(berlu, "lipschitz")) == 2);
    assert_non_null(strstr(json_string_value(json_object_get(berlu, "spec")), "alpha=2"));
    json_decref(root);
    command_run(&r, "act", "list", "gelu", "nope", NULL);
    assert_int_equal(r.code, 2);
    assert_string_equal(r.out, "");
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lists_fit_a_terminal),
        cmocka_unit_test(models_agree_with_their_summaries),
        cmocka_unit_test(a_model_answers_to_timms_name),
        cmocka_unit_test(recipes_show_what_a_training_would_use),
        cmocka_unit_test(an_activation_is_listed_with_its_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
