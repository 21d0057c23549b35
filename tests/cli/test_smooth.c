/* test_smooth.c - `berlu smooth` as people and programs meet it. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "support/command_json.h"
#include "support/folder.h"

static double real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        return strcmp(json_string_value(value), "inf") == 0 ? INFINITY : -INFINITY;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* Evaluates a piece from its JSON, in the form asked for. */
static double piece_value(const json_t *piece, double x, const char *form)
{
    const json_t *list = json_object_get(piece, form);
    size_t n = json_array_size(list);
    double from = real(piece, "from"), to = real(piece, "to"), b[32];
    for (size_t i = 0; i < n; i++)
        b[i] = json_real_value(json_array_get(list, i));
    if (strcmp(form, "monomial") == 0) {
        double c = isfinite(from) && isfinite(to) ? x - (from + to) / 2 : x, sum = 0;
        while (n-- > 0)
            sum = sum * c + b[n];
        return sum;
    }
    double t = (x - from) / (to - from);
    for (size_t level = n - 1; level > 0; level--)
        for (size_t i = 0; i < level; i++)
            b[i] = (1 - t) * b[i] + t * b[i + 1];
    return b[0];
}

/* Both forms agree on every bounded piece, neighbours meet, and the line is covered from -inf to
 * inf. */
static void check_pieces(const json_t *root)
{
    const json_t *pieces = json_object_get(root, "pieces");
    double end = -INFINITY, value = NAN;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        double from = real(piece, "from"), to = real(piece, "to");
        assert_true(from == end);
        end = to;
        int bounded = isfinite(from) && isfinite(to);
        assert_int_equal(json_is_array(json_object_get(piece, "bernstein")), bounded);
        if (i > 0)
            assert_true(fabs(piece_value(piece, from, "monomial") - value) <= 1e-12);
        if (bounded)
            for (int k = 0; k <= 16; k++) {
                double x = from + (to - from) * k / 16;
                assert_true(fabs(piece_value(piece, x, "monomial") - piece_value(piece, x, "bernstein")) <= 1e-12);
            }
        value = piece_value(piece, to, "monomial");
    }
    assert_true(end == INFINITY);
}

static void json_holds_pieces_order_constant_and_gap(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "--kinks", "-3,3", "--slopes", "0,1,0", "--eps", "1,0.5", "--degree", "7", "--at", "1=2",
                "--json", NULL);
    json_t *root = json_of(&r);
    assert_true(json_is_string(json_object_get(root, "berlu")));
    assert_int_equal(json_integer_value(json_object_get(root, "contact_order")), 3);
    assert_true(real(root, "lipschitz") == 1 && fabs(real(root, "max_gap") - 5.0 / 32) <= 1e-15);
    assert_int_equal(json_array_size(json_object_get(root, "pieces")), 5);
    check_pieces(root);
    json_t *last = json_array_get(json_object_get(root, "pieces"), 4);
    assert_true(piece_value(last, 100, "monomial") == 4); /* 2 at 1, slope 1 up to 3, then level */
    json_decref(root);
}

static void defaults_are_the_fixed_ones(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "0.01,1", "--json", NULL);
    json_t *root = json_of(&r), *middle = json_array_get(json_object_get(root, "pieces"), 1);
    assert_true(real(middle, "from") == -0.01 && real(middle, "to") == 0.01);
    const json_t *b = json_object_get(middle, "bernstein");
    assert_int_equal(json_array_size(b), 3);
    assert_true(json_real_value(json_array_get(b, 0)) == -0.01 * 0.01); /* BerLU: -alpha eps, 0, eps */
    assert_true(json_real_value(json_array_get(b, 1)) == 0 && json_real_value(json_array_get(b, 2)) == 0.01);
    json_decref(root);
}

static void every_name_of_the_catalogue_works_and_emit_json_is_json(void **state)
{
    (void)state;
    static const char *const names[] = {"relu",         "leaky_relu", "prelu",       "relu6",     "hard_tanh",
                                        "hard_sigmoid", "abs",        "soft_shrink", "hard_swish"};
    for (size_t i = 0; i < COUNT(names); i++) {
        command_result r;
        command_run(&r, "smooth", names[i], "--eps", "0.25", "--degree", "4", "--emit", "json", NULL);
        json_t *root = json_of(&r);
        assert_int_equal(json_integer_value(json_object_get(root, "contact_order")), 2);
        assert_string_equal(json_string_value(json_object_get(root, "name")), names[i]);
        check_pieces(root);
        json_decref(root);
    }
    command_result r;
    command_run(&r, "smooth", "elu", "--alpha", "2", "--eps", "0.5", "--degree", "5", "--json", NULL);
    json_t *root = json_of(&r), *first = json_array_get(json_object_get(root, "pieces"), 0);
    assert_true(json_is_null(json_object_get(first, "monomial")) && real(first, "exp_scale") == 2);
    assert_true(fabs(real(root, "lipschitz") - 1.45557) <= 1e-5);
    json_decref(root);
}

static void text_file_and_options_name_the_same_function(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    const char *yaml = "name: clip\nkinks: [-1, 1]\nslopes: [0, 1, 0]\neps: 0.5\ndegree: 4\n";
    folder_path(path, folder_fresh(folder, "cli_smooth"), "clip.yaml");
    assert_int_equal(file_write_atomic(path, yaml, strlen(yaml)), BERLU_OK);
    command_result file, words, option;
    command_run(&file, "smooth", path, "--json", NULL);
    command_run(&words, "smooth", "smooth(kinks=-1,1; slopes=0,1,0; eps=0.5; degree=4)", "--json", NULL);
    command_run(&option, "smooth", "--kinks=-1,1", "--slopes=0,1,0", "--eps=0.5", "--degree=4", "--json", NULL);
    json_t *a = json_of(&file), *b = json_of(&words), *c = json_of(&option);
    assert_string_equal(json_string_value(json_object_get(a, "name")), "clip");
    assert_true(json_equal(json_object_get(a, "pieces"), json_object_get(b, "pieces")));
    assert_true(json_equal(b, c));
    json_decref(a), json_decref(b), json_decref(c);
    command_free(&file), command_free(&words), command_free(&option);
}

static void a_plot_is_written_whole(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *svg;
    size_t size;
    folder_path(path, folder_fresh(folder, "cli_smooth_svg"), "relu6.svg");
    command_result r;
    command_run(&r, "smooth", "relu6", "--eps", "0.1", "--svg", path, NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "contact order       1"));
    command_free(&r);
    assert_int_equal(file_read_all(&svg, &size, path, 1 << 22), BERLU_OK);
    assert_true(strncmp(svg, "<svg", 4) == 0 && strcmp(svg + size - 7, "</svg>\n") == 0);
    assert_non_null(strstr(svg, "control points"));
    assert_non_null(strstr(svg, "relu6 smoothed, eps 0.1, degree 2"));
    free(svg);
    command_run(&r, "smooth", "relu6", "--svg", "/nowhere/at/all.svg", NULL);
    assert_int_equal(r.code, 1);
    command_free(&r);
}

static void a_function_that_does_not_bend_is_told_in_words(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *svg;
    size_t size;
    folder_path(path, folder_fresh(folder, "cli_smooth_line"), "line.svg");
    command_result r;
    command_run(&r, "smooth", "--slopes", "2", "--svg", path, NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "any (there is no kink)"));
    command_free(&r);
    assert_int_equal(file_read_all(&svg, &size, path, 1 << 22), BERLU_OK);
    assert_non_null(strstr(svg, "all derivatives continuous, Lipschitz constant 2"));
    free(svg);
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "1,1", NULL);
    assert_non_null(strstr(r.out, "any (no kink bends the function)"));
    command_free(&r);
    command_run(&r, "smooth", "--kinks", "0,1", "--slopes", "1,1,2", "--json", NULL);
    json_t *root = json_of(&r), *joins = json_object_get(root, "transitions");
    assert_true(real(root, "contact_order") == 1 && real(json_array_get(joins, 0), "contact_left") == INFINITY);
    json_decref(root);
}

static void source_is_printed_alone(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "abs", "--emit", "c", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "double smooth_abs(double x)"));
    assert_non_null(strstr(r.out, "double smooth_abs_slope(double x)"));
    command_free(&r);
}

static void refused(const char *words, const char *const *arguments)
{
    command_result r;
    command_run(&r, "smooth", arguments[0], arguments[1], arguments[2], arguments[3], NULL);
    assert_int_equal(r.code, 2);
    assert_string_equal(r.out, "");
    if (strncmp(r.err, "berlu: smooth: ", 15) != 0 || !strstr(r.err, words) || strchr(r.err, '\n')[1])
        fail_msg("'%s' not in '%s'", words, r.err);
    command_free(&r);
}

static void bad_input_is_refused_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *words, *arguments[4];
    } cases[] = {
        {"slopes are missing", {"--kinks", "0", "--eps", "1"}},
        {"slopes: 2 given, 3 needed", {"--kinks", "0,1", "--slopes", "0,1"}},
        {"must increase", {"--kinks", "1,0", "--slopes", "0,1,0"}},
        {"kinks: 'x' is no number", {"--kinks", "x", "--slopes", "0,1"}},
        {"kink 1 is nan", {"--kinks", "nan", "--slopes", "0,1"}},
        {"did you mean 'relu'", {"rel", "--eps", "1", NULL}},
        {"eps = 3 would fit", {"relu6", "--eps", "3.5", NULL}},
        {"eps is 0", {"relu", "--eps", "0", NULL}},
        {"eps is inf", {"relu", "--eps", "inf", NULL}},
        {"'0.1,0.2' is not one number", {"relu", "--eps", "0.1,0.2", NULL}},
        {"2 to 16", {"relu", "--degree", "17", NULL}},
        {"whole number", {"relu", "--degree", "2.5", NULL}},
        {"relu has no parameter", {"relu", "--alpha", "1", NULL}},
        {"--lambda does not go with elu", {"elu", "--lambda", "1", NULL}},
        {"--kinks does not go with a function of the catalogue", {"relu", "--kinks", "1", NULL}},
        {"--eps does not go with a text", {"smooth(slopes=1)", "--eps", "1", NULL}},
        {"name the file alone", {"f.yaml:scale=2", NULL, NULL, NULL}},
        {"no/such.yaml", {"no/such.yaml", NULL, NULL, NULL}},
        {"--json does not go with --emit c", {"relu", "--json", "--emit", "c"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refused(cases[i].words, cases[i].arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_pieces_order_constant_and_gap),
        cmocka_unit_test(defaults_are_the_fixed_ones),
        cmocka_unit_test(every_name_of_the_catalogue_works_and_emit_json_is_json),
        cmocka_unit_test(text_file_and_options_name_the_same_function),
        cmocka_unit_test(a_plot_is_written_whole),
        cmocka_unit_test(a_function_that_does_not_bend_is_told_in_words),
        cmocka_unit_test(source_is_printed_alone),
        cmocka_unit_test(bad_input_is_refused_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
