/* test_act.c - `berlu act` as people and programs meet it. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <berlu/act.h>

#include "support/command_json.h"
#include "support/folder.h"

static void act_list_names_every_activation_in_order(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "act", "list", "--json", NULL);
    json_t *root = json_of(&r), *list = json_object_get(root, "activations");
    size_t count = 0;
    for (; berlu_act_builtin(count); count++) {
        const json_t *row = json_array_get(list, count);
        assert_string_equal(json_string_value(json_object_get(row, "name")), berlu_act_builtin(count));
        assert_true(json_string_length(json_object_get(row, "about")) > 0);
    }
    assert_int_equal(json_array_size(list), count);
    json_decref(root);
    command_run(&r, "act", "list", NULL);
    assert_non_null(strstr(r.out, "x tanh(log(1 + exp(x)))"));
    command_free(&r);
}

static void points_are_those_of_the_library(void **state)
{
    (void)state;
    static const double x[] = {-0.1, 0, 0.05, 3};
    command_result r;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.2,eps=0.1"), BERLU_OK);
    command_run(&r, "act", "eval", "berlu:alpha=0.2,eps=0.1", "--x", "-0.1", "0", "0.05", "3", "--json", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        berlu_act_point at = berlu_act_at(act, x[i], NULL);
        assert_true(json_number_value(json_object_get(row, "x")) == x[i]);
        assert_true(json_number_value(json_object_get(row, "y")) == at.value);
        assert_true(json_number_value(json_object_get(row, "dy")) == at.slope);
        assert_true(json_number_value(json_object_get(row, "d2y")) == at.second);
        assert_true(json_number_value(json_object_get(row, "d_alpha")) == at.param[0]);
        assert_true(json_number_value(json_object_get(row, "d_eps")) == at.param[1]);
    }
    json_decref(root);
    berlu_act_free(act);
}

/* Every question on every instruction set of this machine, against a call of the library. */
static void files_go_through_the_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        berlu_act_op op;
    } asked[] = {{"y", BERLU_ACT_FORWARD},
                 {"dy", BERLU_ACT_SLOPE},
                 {"d2y", BERLU_ACT_SECOND},
                 {"d_alpha", BERLU_ACT_PARAM_SLOPE}};
    enum { N = 1001 };
    float x[N], want[N], got[N];
    char folder[FOLDER_PATH], in[FOLDER_PATH], out[FOLDER_PATH];
    folder_fresh(folder, "cli_act_files");
    folder_path(in, folder, "x.f32");
    folder_path(out, folder, "y.f32");
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) / 100;
    FILE *file = fopen(in, "wb");
    assert_true(file && fwrite(x, sizeof x, 1, file) == 1 && fclose(file) == 0);
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:eps=0.5"), BERLU_OK);
    for (size_t i = 0; i < COUNT(asked) * (BERLU_ISA_NEON + 1); i++) {
        size_t k = i % COUNT(asked);
        berlu_isa isa = (berlu_isa)(i / COUNT(asked));
        if (!berlu_act_can_run(act, isa))
            continue;
        command_result r;
        assert_true(remove(out) == 0 || i == 0);
        command_run(&r, "act", "eval", "berlu:eps=0.5", "--in", in, "--out", out, "--what", asked[k].what, "--isa",
                    berlu_isa_name(isa), NULL);
        if (r.code)
            fail_msg("%s", r.err);
        command_free(&r);
        file = fopen(out, "rb");
        assert_true(file && fread(got, sizeof got, 1, file) == 1 && fgetc(file) == EOF && fclose(file) == 0);
        berlu_act_call call = {.dtype = BERLU_F32, .rows = N, .channels = 1, .x = x, .y = want};
        assert_int_equal(berlu_act_run(act, asked[k].op, &call, NULL), BERLU_OK);
        assert_memory_equal(got, want, sizeof want);
    }
    berlu_act_free(act);
}

static void a_plot_has_all_names(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    static char text[1 << 20];
    command_result r;
    folder_path(path, folder_fresh(folder, "cli_act_plot"), "act.svg");
    command_run(&r, "act", "plot", "relu", "gelu", "berlu:eps=0.5", "--svg", path, NULL);
    assert_int_equal(r.code, 0);
    command_free(&r);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(size > 1000 && strncmp(text, "<svg", 4) == 0 && strstr(text, "</svg>"));
    assert_true(strstr(text, ">relu<") && strstr(text, ">gelu<") && strstr(text, ">berlu:eps=0.5<"));
}

static void bad_questions_get_one_line_and_exit_2(void **state)
{
    (void)state;
    static const char *const bad[][8] = {
        {"act", "eval", "berluu", "--x", "1"},
        {"act", "eval", "berlu:eps=-1", "--x", "1"},
        {"act", "eval", "berlu:degree=17", "--x", "1"},
        {"act", "eval", "gelu"},
        {"act", "eval", "gelu", "--x", "1", "--what", "dy"},
        {"act", "eval", "gelu", "--x", "1", "--dtype", "f16"},
        {"act", "eval", "gelu", "--x", "1", "--isa", "scalar"},
        {"act", "eval", "gelu", "--x", "1", "--threads", "3"},
        {"act", "eval", "gelu", "--in", "nowhere.f32"},
        {"act", "eval", "gelu", "--in", "nowhere.f32", "--out", "never"},
        {"act", "plot", "gelu"},
        {"bench", "act", "--device", "cuda", "--threads", "2"},
        {"bench", "act", "--device", "cuda", "--seconds", "1"},
        {"bench", "act", "--device", "cuda", "--explain"},
        {"bench", "act", "--explain", "--json"},
        {"bench", "act", "--n", "0"},
        {"bench", "act", "--act", "nothing", "--n", "16"},
        {"act", "plot", "nothing", "--svg", "never.svg"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_result r;
        command_run(&r, bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4], bad[i][5], bad[i][6], bad[i][7], NULL);
        if (r.code != 2 || !*r.err || strchr(r.err, '\n') != r.err + strlen(r.err) - 1 || *r.out)
            fail_msg("case %zu: exit %d, said '%s' and '%s'", i, r.code, r.err, r.out);
        command_free(&r);
    }
    assert_true(access("never", F_OK) != 0 && access("never.svg", F_OK) != 0);
}

/* Checks that each row names what was timed; times themselves are not checked. */
static void a_bench_row_tells_what_was_timed(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "bench", "act", "--act", "berlu", "--n", "1000", "--dtype", "all", "--seconds", "0.01", "--threads",
                "1", "--isa", "scalar", "--json", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows"), *row;
    size_t i;
    assert_int_equal(json_array_size(rows), 9); /* three ops, three dtypes */
    json_array_foreach(rows, i, row)
    {
        assert_string_equal(json_string_value(json_object_get(row, "act")), "berlu");
        assert_string_equal(json_string_value(json_object_get(row, "isa")), "scalar");
        assert_int_equal(json_integer_value(json_object_get(row, "n")), 1000);
        assert_int_equal(json_integer_value(json_object_get(row, "threads")), 1);
        assert_true(json_number_value(json_object_get(row, "median_ns")) > 0);
        assert_true(json_number_value(json_object_get(row, "ratio")) > 0);
        assert_non_null(json_object_get(row, "yardstick"));
        assert_string_equal(json_string_value(json_object_get(row, "hint")), "reuse");
        assert_true(json_number_value(json_object_get(row, "range")) == 3);
        json_t *wide = json_array_get(json_object_get(row, "other_ranges"), 0);
        assert_true(json_number_value(json_object_get(wide, "range")) == 12);
        assert_true(json_number_value(json_object_get(wide, "ratio")) > 0);
    }
    json_decref(root);
}

static void a_bench_explains_its_kind_of_stores(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "bench", "act", "--act", "relu", "--op", "forward", "--n", "1000", "--seconds", "0.01", "--threads",
                "2", "--range", "3", "--explain", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "MiB read and written on 1 thread: "));
    assert_non_null(strstr(r.out, "MiB read and written on 2 threads: "));
    assert_non_null(strstr(r.out, "    does not stream: 0.007629 MiB read and written on 1 thread\n"));
    command_free(&r);
}

static char *plotted(const char *path, const char *act)
{
    command_result r;
    char *svg;
    size_t size;
    command_run(&r, "act", "plot", "--svg", path, act, NULL);
    assert_int_equal(r.code, 0);
    command_free(&r);
    assert_int_equal(file_read_all(&svg, &size, path, 1 << 24), BERLU_OK);
    return svg;
}

/* 22 curves in one plot would be unreadable; at a larger scale a knee of 0.01 looks like a
 * corner. */
static void plots_show_each_function_and_its_knee(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *svg;
    folder_path(path, folder_fresh(folder, "act-plot"), "f.svg");
    svg = plotted(path, NULL);
    for (size_t i = 0; berlu_act_builtin(i); i++) {
        char title[64];
        snprintf(title, sizeof title, ">%s</text>", berlu_act_builtin(i));
        assert_non_null(strstr(svg, title));
    }
    free(svg);
    svg = plotted(path, "berlu");
    assert_non_null(strstr(svg, ">0.04</text>"));
    free(svg);
    svg = plotted(path, "gelu");
    assert_non_null(strstr(svg, ">4</text>"));
    free(svg);
}

static void a_narrow_knee_does_not_flatten_the_other_curves(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "act", "plot", "gelu", "berlu", "--svg", "-", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "cut off: the highest value is 49.5"));
    assert_null(strstr(r.out, ">50</text>"));
    command_free(&r);
    command_run(&r, "act", "plot", "gelu", "tanh", "relu", "--svg", "-", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, ">gelu, tanh, relu</text>"));
    assert_null(strstr(r.out, "cut off"));
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(act_list_names_every_activation_in_order),
        cmocka_unit_test(points_are_those_of_the_library),
        cmocka_unit_test(files_go_through_the_kernels),
        cmocka_unit_test(a_plot_has_all_names),
        cmocka_unit_test(bad_questions_get_one_line_and_exit_2),
        cmocka_unit_test(a_bench_row_tells_what_was_timed),
        cmocka_unit_test(a_bench_explains_its_kind_of_stores),
        cmocka_unit_test(plots_show_each_function_and_its_knee),
        cmocka_unit_test(a_narrow_knee_does_not_flatten_the_other_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
