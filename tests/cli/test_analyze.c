/* test_analyze.c - `berlu analyze` as people and programs meet it. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include <berlu/act.h>

#include "support/command_json.h"
#include "support/folder.h"

static double real(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    if (!json_is_number(value))
        fail_msg("'%s' is not a number", key);
    return json_number_value(value);
}

static const char *string(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static void lipschitz_compares_the_paper_first_and_then_everything(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "lipschitz", "--json", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    static const char *const first[] = {"berlu", "gelu", "silu", "mish"}, *const verdicts[] = {"right", "wrong",
                                                                                               "right", "right"};
    size_t builtins = 0;
    while (berlu_act_builtin(builtins))
        builtins++;
    assert_int_equal(json_array_size(rows), builtins);
    for (size_t i = 0; i < builtins; i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(string(row, "act"), "relu2") == 0) /* its slope has no bound, and JSON no infinity */
            assert_false(json_is_number(json_object_get(row, "lipschitz")));
        else
            assert_true(fabs(real(row, "found") - real(row, "lipschitz")) <= 1e-12 * real(row, "lipschitz"));
        if (i < 4) {
            assert_string_equal(string(row, "act"), first[i]);
            assert_string_equal(string(row, "verdict"), verdicts[i]);
        } else {
            assert_true(json_is_null(json_object_get(row, "paper")) && json_is_null(json_object_get(row, "verdict")));
        }
    }
    const json_t *gelu = json_array_get(rows, 1);
    assert_true(real(gelu, "lipschitz") == 1.1289041451851547 && real(gelu, "at") == sqrt(2) &&
                real(gelu, "paper") == 1.084);
    json_decref(root);
}

static void depth_says_where_there_is_no_edge_and_shows_the_centred_function(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "depth", "berlu:eps=0.5", "gelu", "--layers", "10", "--simulate", "64", "--json", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 3);
    static const char *const names[] = {"berlu:eps=0.5", "berlu:eps=0.5,center=1", "gelu"}, *const edges[] = {"none",
                                                                                                              "exists",
                                                                                                              "exists"};
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i), *curve = json_object_get(row, "curve");
        assert_string_equal(string(row, "act"), names[i]);
        assert_string_equal(string(row, "edge"), edges[i]);
        assert_int_equal(json_array_size(curve), 6); /* 1, 2, 3, 5, 7, 10 */
        const json_t *last = json_array_get(curve, 5);
        assert_int_equal(json_integer_value(json_object_get(last, "layer")), 10);
        assert_true(real(last, "gap") > 0 && real(last, "gap") < 0.5 && real(last, "simulated") > 0);
    }
    json_decref(root);
    command_run(&r, "analyze", "depth", "berlu", "--layers", "2", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "no edge of chaos"));
    command_free(&r);
}

static void linearity_has_a_row_for_each_activation_and_scale(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "linearity", "gelu", "relu", "--scales", "0.1", "1", "--json", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 4);
    assert_string_equal(string(json_array_get(rows, 1), "act"), "gelu");
    assert_true(real(json_array_get(rows, 1), "scale") == 1 &&
                fabs(real(json_array_get(rows, 1), "nonlinear") - 0.27671) < 5e-6);
    assert_true(fabs(real(json_array_get(rows, 2), "nonlinear") - 0.26653) < 5e-6);
    json_decref(root);
}

static void card_takes_a_function_of_ones_own(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "card", "smooth(kinks=-1,1; slopes=0.1,1,0.1; eps=0.5)", "--no-speed", "--json", NULL);
    json_t *root = json_of(&r), *row = json_array_get(json_object_get(root, "rows"), 0);
    assert_true(real(row, "lipschitz") == 1 && real(row, "max_curvature") > 0);
    assert_int_equal(json_array_size(json_object_get(row, "linearity")), 5);
    assert_null(json_object_get(row, "forward_ratio"));
    json_decref(root);
    command_run(&r, "analyze", "card", "silu", "--n", "4Ki", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "x copy"));
    command_free(&r);
}

/* Plot, constant, curvature, depth, linearity, error bound, speed over copy: also for a file. */
static void a_card_of_a_file_is_complete(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], svg[FOLDER_PATH];
    folder_path(path, folder_fresh(folder, "cli_card"), "mine.yaml");
    folder_path(svg, folder, "card.svg");
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("name: mine\nkinks: [-1, 1]\nslopes: [0.1, 1, 0.1]\neps: 0.5\n", file) >= 0);
    fclose(file);
    command_result r;
    command_run(&r, "analyze", "card", path, "--json", "--n", "4Ki", "--svg", svg, NULL);
    json_t *root = json_of(&r), *row = json_array_get(json_object_get(root, "rows"), 0);
    assert_true(real(row, "lipschitz") == 1 && fabs(real(row, "max_curvature") - 0.9) < 1e-6);
    assert_string_equal(string(json_object_get(row, "depth"), "edge"), "exists");
    assert_true(real(row, "forward_ratio") > 0 && real(row, "backward_ratio") > 0);
    /* |y|, S, c and J are at most 1.7, 1, 7 and 0.9 */
    assert_true(real(row, "error") > 0 && real(row, "error") <= (4 * (1.7 + 7) + 12 * 0.9 * 0.5) * 0x1p-24);
    assert_true(real(row, "slope_error") > 0 && real(row, "slope_error") <= (12 + 2 * 0.9 * 7 / 0.5) * 0x1p-24);
    json_decref(root);
    assert_int_equal(access(svg, F_OK), 0);
}

static void every_analysis_draws(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    folder_fresh(folder, "cli_analyze");
    static const char *const calls[][4] = {{"lipschitz", "gelu", "--json", NULL},
                                           {"depth", "relu", "--layers", "3"},
                                           {"linearity", "mish", "--json", NULL},
                                           {"card", "elu", "--no-speed", NULL}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        command_result r;
        folder_path(path, folder, calls[i][0]);
        command_run(&r, "analyze", calls[i][0], calls[i][1], "--svg", path, calls[i][2], calls[i][3], NULL);
        if (r.code != 0)
            fail_msg("%s: %s", calls[i][0], r.err);
        command_free(&r);
        FILE *file = fopen(path, "r");
        char head[5] = "";
        assert_true(file && fread(head, 1, 4, file) == 4);
        assert_string_equal(head, "<svg");
        fclose(file);
    }
}

static void bad_input_is_one_line_and_exit_2(void **state)
{
    (void)state;
    static const char *const calls[][4] = {{"depth", "gelo", NULL, NULL},
                                           {"depth", "relu", "--q", "0"},
                                           {"depth", "relu", "--c0", "1.5"},
                                           {"linearity", "relu", "--scales", "-1"},
                                           {"lipschitz", "berlu:eps=0", NULL, NULL},
                                           {"card", NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        command_result r;
        command_run(&r, "analyze", calls[i][0], calls[i][1], calls[i][2], calls[i][3], NULL);
        if (r.code != 2 || strncmp(r.err, "berlu: analyze ", 15) != 0 ||
            strchr(r.err, '\n') != r.err + strlen(r.err) - 1)
            fail_msg("%s: exit %d, %s", calls[i][0], r.code, r.err);
        assert_string_equal(r.out, "");
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lipschitz_compares_the_paper_first_and_then_everything),
        cmocka_unit_test(depth_says_where_there_is_no_edge_and_shows_the_centred_function),
        cmocka_unit_test(linearity_has_a_row_for_each_activation_and_scale),
        cmocka_unit_test(card_takes_a_function_of_ones_own),
        cmocka_unit_test(a_card_of_a_file_is_complete),
        cmocka_unit_test(every_analysis_draws),
        cmocka_unit_test(bad_input_is_one_line_and_exit_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
