/* test_smooth_yaml.c - a smoothed function from a YAML file. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "io/act_text.h"
#include "io/smooth_yaml.h"
#include "support/fail.h"
#include "support/folder.h"

static berlu_status take(berlu_smooth **f, char name[SMOOTH_NAME], const char *yaml)
{
    yaml_tree tree;
    *f = NULL;
    berlu_status status = yaml_tree_parse(&tree, yaml, strlen(yaml), "f.yaml");
    if (status != BERLU_OK)
        return status;
    status = smooth_yaml_take(f, name, &tree);
    yaml_tree_free(&tree);
    return status;
}

static void lists_and_texts_mean_the_same(void **state)
{
    (void)state;
    static const char *const same[] = {
        "name: clip\nkinks: [-3, 3]\nslopes: [0, 1, 0]\neps: 0.5\ndegree: 4\nat: 0=0\n",
        "name: clip\nkinks: -3,3\nslopes: 0, 1, 0\neps: [0.5, 0.5]\ndegree: 4\nat: [0, 0]\n",
        "degree: 4\nname: 'clip'\nslopes:\n  - 0\n  - 1\n  - 0\nkinks:\n  - -3\n  - 3\neps: 5e-1\n",
    };
    for (size_t i = 0; i < COUNT(same); i++) {
        berlu_smooth *f;
        char name[SMOOTH_NAME];
        if (take(&f, name, same[i]) != BERLU_OK)
            fail_msg("%s", berlu_last_error());
        assert_string_equal(name, "clip");
        assert_int_equal(berlu_smooth_degree(f), 4);
        assert_true(berlu_smooth_value(f, 9) == 3 && berlu_smooth_value(f, -9) == -3);
        berlu_smooth_free(f);
    }
    berlu_smooth *f;
    char name[SMOOTH_NAME];
    assert_int_equal(take(&f, name, "kinks: 0\nslopes: [0, 1]\n"), BERLU_OK);
    assert_string_equal(name, "");
    berlu_smooth_free(f);
}

static void mistakes_are_told_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *words;
    } cases[] = {
        {"kinks: [0]\nslops: [0, 1]\n", "f.yaml:2:8: unknown key 'slops'; did you mean 'slopes'?"},
        {"kinks: [0]\nslopes: [0, one]\n", "f.yaml:2:9: slopes: 'one' is no number"},
        {"kinks: [[0]]\nslopes: [0, 1]\n", "kinks must be a list of numbers"},
        {"kinks: {a: 0}\nslopes: [0, 1]\n", "kinks must be a number or a list"},
        {"kinks: [0, 1]\nslopes: [0, 1]\n", "f.yaml: slopes: 2 given, 3 needed"},
        {"kinks: []\nslopes: [0, 1]\n", "kinks: a number is missing"},
        {"name: [a]\nkinks: [0]\nslopes: [0, 1]\n", "name must be a word"},
        {"name: a b\nkinks: [0]\nslopes: [0, 1]\n", "f.yaml:1:7: name must be a word"},
        {"name: ''\nkinks: [0]\nslopes: [0, 1]\n", "name must be a word"},
        {"- 1\n- 2\n", "expected keys and values"},
        {"", "slopes are missing"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        berlu_smooth *f;
        char name[SMOOTH_NAME];
        assert_int_equal(take(&f, name, cases[i].yaml), BERLU_ERR_INPUT);
        assert_null(f);
        if (!strstr(berlu_last_error(), cases[i].words))
            fail_msg("'%s' not in '%s'", cases[i].words, berlu_last_error());
    }
}

static void a_file_is_read_and_a_missing_one_is_named(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], name[SMOOTH_NAME];
    const char *yaml = "name: bend\nkinks: [1]\nslopes: [0, 2]\n";
    berlu_smooth *f;
    folder_path(path, folder_fresh(folder, "smooth_yaml"), "bend.yaml");
    assert_int_equal(smooth_yaml_read(&f, name, path), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "bend.yaml"));
    assert_int_equal(file_write_atomic(path, yaml, strlen(yaml)), BERLU_OK);
    assert_int_equal(smooth_yaml_read(&f, name, path), BERLU_OK);
    assert_string_equal(name, "bend");
    assert_true(berlu_smooth_value(f, 2) == 2);
    berlu_smooth_free(f);
}

static void a_path_ends_in_yaml_or_has_a_slash_and_keys_may_follow(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t length;
    } cases[] = {
        {"f.yaml", 6},
        {"f.yml", 5},
        {"./f", 3},
        {"a/b:c", 5},
        {"a:b=c.yaml", 10},
        {"f.yaml:eps=1", 6},
        {"./f:eps=1", 3},
        {"f.yml:a=1,b=2", 5},
        {"f.yaml:eps=1/2", 6},

        {"", 0},
        {"relu", 0},
        {".yaml", 0},
        {"berlu:alpha=1", 0},
        {"berlu:alpha=1/2", 0},
        {"f:a.yaml=1", 0},
        {"f.json", 0},
        {"smooth(slopes=1/2)", 0},
        {"smooth(slopes=1):scale=2", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (smooth_yaml_path(cases[i].words) != cases[i].length)
            fail_msg("'%s': %zu", cases[i].words, smooth_yaml_path(cases[i].words));
}

static void activation_of(berlu_act **act, const char *folder, const char *words)
{
    char path[FOLDER_PATH];
    if (act_from_text(act, folder_path(path, folder, words)) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static void a_file_is_an_activation_with_keys_and_the_one_rule_for_names(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    const char *named = "name: bend\nkinks: [1]\nslopes: [0, 2]\n", *nameless = "kinks: [1]\nslopes: [0, 2]\n",
               *taken = "name: relu\nkinks: [1]\nslopes: [0, 2]\n";
    berlu_act *act;
    folder_fresh(folder, "act_text");
    assert_int_equal(file_write_atomic(folder_path(path, folder, "noext"), named, strlen(named)), BERLU_OK);
    assert_int_equal(file_write_atomic(folder_path(path, folder, "f.yml"), nameless, strlen(nameless)), BERLU_OK);
    activation_of(&act, folder, "noext");
    assert_string_equal(berlu_act_name(act), "bend");
    assert_true(berlu_act_at(act, 3, NULL).value == 4);
    berlu_act_free(act);
    activation_of(&act, folder, "f.yml:scale=2");
    assert_string_equal(berlu_act_name(act), "smoothed");
    assert_true(berlu_act_at(act, 3, NULL).value == 5); /* f(6) / 2 */
    berlu_act_free(act);
    assert_int_equal(act_from_text(&act, folder_path(path, folder, "f.yml:colour=2")), BERLU_ERR_ARG);
    assert_null(act);
    assert_non_null(strstr(berlu_last_error(), "f.yml: smoothed: unknown key 'colour'"));
    assert_int_equal(file_write_atomic(folder_path(path, folder, "relu.yaml"), taken, strlen(taken)), BERLU_OK);
    assert_int_equal(act_from_text(&act, path), BERLU_ERR_ARG);
    assert_null(act);
    assert_non_null(strstr(berlu_last_error(), "relu.yaml: 'relu' is a built-in activation"));
    assert_int_equal(act_from_text(&act, "no/such"), BERLU_ERR_INPUT);
    assert_null(act);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    berlu_smooth *f;
    char name[SMOOTH_NAME];
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC, n),
             status = take(&f, name, "kinks: [-1, 1]\nslopes: [0, 1, 0]\neps: [0.1, 0.2]\n"), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(f);
    }
    assert_int_equal(status, BERLU_OK);
    berlu_smooth_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_texts_mean_the_same),
        cmocka_unit_test(mistakes_are_told_with_their_line),
        cmocka_unit_test(a_file_is_read_and_a_missing_one_is_named),
        cmocka_unit_test(a_path_ends_in_yaml_or_has_a_slash_and_keys_may_follow),
        cmocka_unit_test(a_file_is_an_activation_with_keys_and_the_one_rule_for_names),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
