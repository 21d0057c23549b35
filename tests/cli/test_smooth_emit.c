/* test_smooth_emit.c - what `berlu smooth` writes for others is the function that the library
 * computes. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include <berlu/berlu.h>

#include "support/command_json.h"
#include "support/folder.h"

enum { POINTS = 401 };

typedef struct sample {
    const char *words[10]; /* of the command line */
    const char *text;      /* the same function, or NULL: of the catalogue by name, parameter, eps, degree */
    const char *name;
    double parameter, eps;
    int degree;
} sample;
static const sample samples[] = {
    {{"leaky_relu", "--alpha", "0.1", "--eps", "0.5", "--degree", "2"}, NULL, "leaky_relu", 0.1, 0.5, 2},
    {{"relu6", "--eps", "1", "--degree", "16"}, NULL, "relu6", NAN, 1, 16},
    {{"hard_swish", "--eps", "0.5", "--degree", "4"}, NULL, "hard_swish", NAN, 0.5, 4},
    {{"elu", "--alpha", "2", "--eps", "0.5"}, NULL, "elu", 2, 0.5, 2},
    {{"--points", "-2:0.5,0:1,1:0", "--eps", "0.25", "--eps-right", "0.5", "--degree", "5"},
     "smooth(kinks=0; slopes=0.25,-1; at=-2=0.5; eps=0.25; eps_right=0.5; degree=5)",
     NULL,
     0,
     0,
     0},
};

static berlu_smooth *function_of(const sample *s)
{
    berlu_smooth *f;
    berlu_status status =
        s->text ? berlu_smooth_parse(&f, s->text)
                : berlu_smooth_named(&f, s->name, isnan(s->parameter) ? NULL : &s->parameter, s->eps, s->degree);
    assert_int_equal(status, BERLU_OK);
    return f;
}

/* The text of --emit KIND --name shape, written to a file in `folder`. */
static void emit(char path[FOLDER_PATH], const char *folder, const sample *s, const char *kind, const char *file)
{
    command_result r;
    char *words[32] = {"berlu", "smooth"};
    size_t n = 2;
    for (size_t i = 0; i < COUNT(s->words) && s->words[i]; i++)
        words[n++] = (char *)s->words[i];
    words[n++] = "--emit", words[n++] = (char *)kind;
    words[n++] = "--name", words[n++] = "shape";
    command_run_with(&r, words, 0, NULL);
    if (r.code != 0)
        fail_msg("%s", r.err);
    folder_path(path, folder, file);
    assert_int_equal(file_write_atomic(path, r.out, strlen(r.out)), BERLU_OK);
    command_free(&r);
}

static double point(int i)
{
    return -8 + 16.0 * i / (POINTS - 1) + 1e-3 * (i % 7);
}

static void write_text(const char *path, const char *words)
{
    assert_int_equal(file_write_atomic(path, words, strlen(words)), BERLU_OK);
}

/* Runs a shell command that prints two numbers per point, and holds them against the library's. */
static void compare(const char *command, const sample *s, double ulp)
{
    berlu_smooth *f = function_of(s);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    for (int i = 0; i < POINTS; i++) {
        double value, slope, x = ulp > 1e-10 ? (double)(float)point(i) : point(i);
        if (fscanf(pipe, "%lf %lf", &value, &slope) != 2)
            fail_msg("%s printed fewer than %d lines", command, POINTS);
        /* numbers up to 16 enter, and a line or control values of degree 16 have some dozens of
         * operations; slopes are divided by widths of down to 1/2 */
        assert_true(fabs(value - berlu_smooth_value(f, x)) <= 64 * 16 * ulp);
        assert_true(fabs(slope - berlu_smooth_slope(f, x)) <= 64 * 16 * ulp);
    }
    assert_int_equal(pclose(pipe), 0);
    berlu_smooth_free(f);
}

static void emitted_c_is_the_function_in_double_and_in_float(void **state)
{
    (void)state;
    static const char *const kinds[] = {"c", "c-f32"};
    char folder[FOLDER_PATH], source[FOLDER_PATH], main_c[FOLDER_PATH], program[FOLDER_PATH];
    folder_fresh(folder, "emit-c");
    for (size_t i = 0; i < COUNT(samples) * COUNT(kinds); i++) {
        const sample *s = &samples[i / COUNT(kinds)];
        const char *kind = kinds[i % COUNT(kinds)], *type = i % COUNT(kinds) ? "float" : "double";
        char words[512], line[4 * FOLDER_PATH];
        emit(source, folder, s, kind, "shape.h");
        folder_path(main_c, folder, "main.c");
        snprintf(words, sizeof words,
                 "#include <stdio.h>\n#include \"shape.h\"\nint main(void)\n{\n    for (int i = 0; i < %d; i++) {\n"
                 "        %s x = (%s)(-8 + 16.0 * i / %d + 1e-3 * (i %% 7));\n"
                 "        printf(\"%%.17g %%.17g\\n\", (double)shape(x), (double)shape_slope(x));\n    }\n    return "
                 "0;\n}\n",
                 POINTS, type, type, POINTS - 1);
        write_text(main_c, words);
        folder_path(program, folder, "program");
        snprintf(line, sizeof line,
                 "cc -std=c99 -pedantic -Wall -Wextra -Wmissing-prototypes -Wdouble-promotion -Werror -O1 "
                 "-ffp-contract=off -o '%s' '%s' -lm && '%s'",
                 program, main_c, program);
        compare(line, s, i % COUNT(kinds) ? (double)FLT_EPSILON : DBL_EPSILON);
    }
}

static void emitted_python_is_the_function(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], line[2 * FOLDER_PATH + 256];
    folder_fresh(folder, "emit-python");
    for (size_t i = 0; i < COUNT(samples); i++) {
        emit(path, folder, &samples[i], "python", "shape.py");
        snprintf(line, sizeof line,
                 "cd '%s' && python3 -c 'from shape import *\nfor i in range(%d):\n"
                 "    x = -8 + 16.0 * i / %d + 1e-3 * (i %% 7)\n    print(repr(shape(x)), repr(shape_slope(x)))'",
                 folder, POINTS, POINTS - 1);
        compare(line, &samples[i], DBL_EPSILON);
    }
}

static json_t *pieces_of(const char *function)
{
    command_result r;
    command_run(&r, "smooth", function, "--json", NULL);
    json_t *root = json_of(&r);
    json_t *pieces = json_incref(json_object_get(root, "pieces"));
    json_decref(root);
    return pieces;
}

static void yaml_and_spec_give_the_same_function_again(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    folder_fresh(folder, "emit-own");
    const char *const functions[] = {
        "smooth(kinks=-3,3; slopes=0,0.1,0; at=1=0.3; eps=0.1,0.7; degree=4)",
        "smooth(kinks=0.3; slopes=0.1,1; eps=0.5; eps_right=0.3; degree=5; form=collinear)",
        "smooth(kinks=0.3; slopes=0.1,1; eps=0.5; eps_right=0.3; degree=5)", "smooth(slopes=2; at=1=1)"};
    for (size_t i = 0; i < COUNT(functions); i++) {
        command_result spec;
        sample s = {.words = {functions[i]}};
        command_run(&spec, "smooth", functions[i], "--emit", "spec", NULL);
        assert_int_equal(spec.code, 0);
        spec.out[strcspn(spec.out, "\n")] = 0;
        emit(path, folder, &s, "yaml", "shape.yaml");
        json_t *first = pieces_of(functions[i]), *second = pieces_of(spec.out), *third = pieces_of(path);
        assert_true(json_equal(first, second) && json_equal(first, third));
        json_decref(first), json_decref(second), json_decref(third);
        berlu_act *act = NULL;
        if (i == 0) /* --emit spec is for this call, which takes centred kinks alone */
            assert_int_equal(berlu_act_make(&act, spec.out), BERLU_OK);
        berlu_act_free(act);
        command_free(&spec);
    }
}

static void latex_has_a_case_per_piece(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "leaky_relu", "--eps", "0.5", "--degree", "4", "--emit", "latex", "--name", "my_f", NULL);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "\\mathrm{my\\_f}(x) = \\begin{cases}\n"
                               "  0.01\\,x & x < -0.5 \\\\\n"
                               "  -0.495\\,x^{4} + 0.7425\\,x^{2} + 0.505\\,x + 0.0928125 & -0.5 \\le x \\le 0.5 \\\\\n"
                               "  x & 0.5 < x\n\\end{cases}\n");
    command_free(&r);
}

/* Every function of the catalogue, and random ones: nothing that is promised is violated. */
static void every_guarantee_holds_for_many_functions(void **state)
{
    (void)state;
    static const char *const names[] = {"relu",         "leaky_relu", "prelu",       "relu6",      "hard_tanh",
                                        "hard_sigmoid", "abs",        "soft_shrink", "hard_swish", "elu"};
    static const char *const degrees[] = {"2", "3", "4", "8", "15", "16"};
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t d = 0; d < (i < 8 ? COUNT(degrees) : 3); d++) {
            command_result r;
            command_run(&r, "smooth", "check", names[i], "--eps", "0.25", "--degree", degrees[d], "--json", NULL);
            json_t *root = json_of(&r);
            assert_true(json_is_true(json_object_get(root, "all")));
            assert_true(json_array_size(json_object_get(root, "checks")) >= 8);
            json_decref(root);
        }
    srand(1);
    for (int i = 0; i < 20; i++) {
        char words[200];
        double a = rand() % 100 / 10.0 - 5, gap = 1 + rand() % 50 / 10.0;
        snprintf(words, sizeof words,
                 "smooth(kinks=%g,%g; slopes=%g,%g,%g; at=%g=%g; eps=0.3,0.4; eps_right=%s; degree=%d)", a, a + gap,
                 rand() % 100 / 10.0 - 5, rand() % 100 / 10.0 - 5, rand() % 100 / 10.0 - 5, rand() % 9 - 4.0,
                 rand() % 9 - 4.0, i % 2 ? "0.3,0.4" : "0.5,0.2", 2 + rand() % 15);
        command_result r;
        command_run(&r, "smooth", "check", words, NULL);
        if (r.code != 0)
            fail_msg("%s:\n%s%s", words, r.out, r.err);
        command_free(&r);
    }
}

static void a_kink_that_stays_is_warned_of(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "0,1", "--eps", "0.5", "--eps-right", "0.2", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "contact order 0"));
    assert_non_null(strstr(r.err, "--form collinear or --degree 4"));
    command_free(&r);
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "0,1", "--eps", "0.5", "--eps-right", "0.2", "--degree", "4",
                NULL);
    assert_string_equal(r.err, "");
    assert_non_null(strstr(r.out, "contact order       1"));
    assert_non_null(strstr(r.out, "rising, not strictly"));
    command_free(&r);
}

static void plots_show_derivatives_and_overlays(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *svg;
    size_t size;
    folder_path(path, folder_fresh(folder, "smooth-overlay"), "o.svg");
    command_result r;
    command_run(&r, "smooth", "relu", "--eps", "1", "--overlay", "degree=2,4,8", "--svg", path, NULL);
    assert_int_equal(r.code, 0);
    command_free(&r);
    assert_int_equal(file_read_all(&svg, &size, path, 1 << 22), BERLU_OK);
    assert_true(strstr(svg, "degree 2<") && strstr(svg, "degree 8<"));
    assert_non_null(strstr(svg, "given"));
    free(svg);
    const char *const bad[][2] = {
        {"degree=2,x", "'x' is no degree"}, {"alpha=1", "is not eps=V,V"}, {"eps=0", "eps"}, {"degree=17", "2 to 16"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        command_run(&r, "smooth", "relu", "--overlay", bad[i][0], "--svg", path, NULL);
        assert_int_equal(r.code, 2);
        if (!strstr(r.err, bad[i][1]))
            fail_msg("%s", r.err);
        command_free(&r);
    }
}

/* A name that the language takes would make a file that does not compile. */
static void words_of_the_language_are_no_names(void **state)
{
    (void)state;
    const char *const calls[][3] = {{"c", "int", "2"},      {"c-f32", "fabs", "2"}, {"c", "main", "2"},
                                    {"c", "lambda", "0"},   {"python", "def", "2"}, {"python", "math", "2"},
                                    {"python", "int", "0"}, {"yaml", "int", "0"},   {"latex", "def", "0"},
                                    {"c", "exp", "2"},      {"c-f32", "tanh", "2"}, {"c", "fmaf", "2"},
                                    {"c", "f", "0"},        {"python", "abs", "2"}, {"python", "zip", "2"}};
    for (size_t i = 0; i < COUNT(calls); i++) {
        command_result r;
        command_run(&r, "smooth", "relu", "--emit", calls[i][0], "--name", calls[i][1], NULL);
        if (r.code != atoi(calls[i][2]) || (r.code == 2 && (*r.out || !strstr(r.err, "is a word that the code"))))
            fail_msg("%s %s: exit %d, %s", calls[i][0], calls[i][1], r.code, r.err);
        command_free(&r);
    }
}

/* A literal cannot say infinity. */
static void numbers_beyond_float_are_refused_in_float_alone(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "0,1e39", "--emit", "c-f32", NULL);
    assert_int_equal(r.code, 2);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "exceed the range of float"));
    command_free(&r);
    command_run(&r, "smooth", "--kinks", "0", "--slopes", "0,1e39", "--emit", "c", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "1e+39"));
    command_free(&r);
}

static void bad_points_are_refused_in_one_line(void **state)
{
    (void)state;
    const char *const bad[][2] = {{"1", "is not X:Y"},
                                  {"0:0,0:1", "from left to right"},
                                  {"0:0", "two points"},
                                  {"0:a,1:1", "'0:a' is not X:Y"},
                                  {"", "--points is empty: X:Y"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        command_result r;
        command_run(&r, "smooth", "--points", bad[i][0], NULL);
        assert_int_equal(r.code, 2);
        if (!strstr(r.err, bad[i][1]))
            fail_msg("%s", r.err);
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_c_is_the_function_in_double_and_in_float),
        cmocka_unit_test(emitted_python_is_the_function),
        cmocka_unit_test(yaml_and_spec_give_the_same_function_again),
        cmocka_unit_test(latex_has_a_case_per_piece),
        cmocka_unit_test(every_guarantee_holds_for_many_functions),
        cmocka_unit_test(a_kink_that_stays_is_warned_of),
        cmocka_unit_test(plots_show_derivatives_and_overlays),
        cmocka_unit_test(words_of_the_language_are_no_names),
        cmocka_unit_test(numbers_beyond_float_are_refused_in_float_alone),
        cmocka_unit_test(bad_points_are_refused_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
