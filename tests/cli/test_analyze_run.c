/* test_analyze_run.c - the analyses of a run as people and programs meet them.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command_json.h"
#include "support/folder.h"

static char *const training[] = {"berlu",
                                 "train",
                                 "--model",
                                 "vit_micro",
                                 "--image-size",
                                 "16",
                                 "--patch",
                                 "8",
                                 "--data",
                                 "synthetic",
                                 "--recipe",
                                 "plain",
                                 "--epochs",
                                 "2",
                                 "--batch",
                                 "8",
                                 "--run",
                                 "run",
                                 "--quiet",
                                 "--act",
                                 "berlu",
                                 "--synthetic-images",
                                 "64",
                                 "--threads",
                                 "1",
                                 "--eval-batch",
                                 "8",
                                 NULL};

static int run_make(void **state)
{
    static char folder[FOLDER_PATH];
    command_result r;
    (void)state;
    if (chdir(folder_fresh(folder, "cli_analyze_run")) != 0)
        return -1;
    command_run_with(&r, training, 0, NULL);
    if (r.code != 0)
        print_error("%s", r.err);
    int code = r.code;
    command_free(&r);
    return code;
}

static double real(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    if (!json_is_number(value))
        fail_msg("'%s' is not a number", key);
    return json_number_value(value);
}

static void lipschitz_of_a_run_has_a_row_a_site(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "lipschitz", "run", "--json", "--svg", "l.svg", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_true(real(row, "bound") == real(row, "fc1") * real(row, "lipschitz") * real(row, "fc2"));
        assert_true(real(row, "eps") > 0 && fabs(real(row, "alpha")) < 1);
    }
    assert_true(json_is_null(json_object_get(root, "attention")) && json_is_null(json_object_get(root, "norm")));
    json_decref(root);
    command_run(&r, "analyze", "lipschitz", "run", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "attention and layer norms have no Lipschitz constant"));
    command_free(&r);
}

static void regions_show_the_start_and_the_last_epoch(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "regions", "run", "--json", "--svg", "r.svg", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 3 * 4); /* epochs 0, 1 and the last */
    for (size_t i = 0; i < 12; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_int_equal(json_integer_value(json_object_get(row, "epoch")), i / 4);
        assert_true(fabs(real(row, "left") + real(row, "inside") + real(row, "right") - 1) < 1e-12);
        assert_true(real(row, "scale") > 0 && real(row, "nonlinear") > 0 && real(row, "dead") >= 0);
    }
    json_decref(root);
    command_run(&r, "analyze", "regions", "run", "--epochs", "0", "--json", NULL);
    root = json_of(&r);
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 4);
    json_decref(root);
}

static void a_spectrum_has_both_states_of_a_run_and_one_of_a_model(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "analyze", "spectrum", "run", "--json", "--images", "16", "--svg", "s.svg", "--threads", "1", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 2 * 18);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 18), "state")), "trained");
    const json_t *head = json_array_get(rows, 35);
    assert_int_equal(json_array_size(json_object_get(head, "singular")), 10);
    assert_true(json_number_value(json_array_get(json_object_get(head, "singular"), 0)) == real(head, "largest"));
    double start = real(json_array_get(rows, 5), "largest");
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "start"), "sites")), 4);
    json_decref(root);
    command_run(&r, "analyze", "spectrum", "vit_micro", "--image-size", "16", "--patch", "8", "--act", "gelu",
                "--images", "16", "--json", "--threads", "1", NULL);
    root = json_of(&r);
    rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 18);
    assert_true(real(json_array_get(rows, 5), "largest") == start); /* weights do not depend on the activation */
    json_decref(root);
}

static void a_landscape_is_the_runs_loss_in_the_middle(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "eval", "run", "--json", NULL);
    json_t *evaluation = json_of(&r);
    command_run(&r, "analyze", "landscape", "run", "--split", "test", "--json", "--points", "3", "--grid", "3",
                "--eigenvalues", "1", "--steps", "3", "--svg", "p.svg", "--threads", "1", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 2 * 3 + 9);
    assert_true(fabs(real(root, "loss") - real(evaluation, "loss")) <= 1e-6 * real(root, "loss"));
    assert_true(real(json_array_get(rows, 1), "loss") == real(root, "loss") && real(json_array_get(rows, 1), "a") == 0);
    const json_t *largest = json_array_get(json_object_get(root, "eigenvalues"), 0);
    assert_true(real(largest, "error") >= 0 && isfinite(real(largest, "value")) && real(root, "sharpness") > 0);
    json_decref(root);
    json_decref(evaluation);
}

static void compare_has_a_row_a_run_and_what_differs(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "compare", "run", "--json", "--svg", "c.svg", NULL);
    json_t *root = json_of(&r), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 1);
    assert_int_equal(json_array_size(json_object_get(root, "differs")), 0);
    assert_true(real(json_array_get(rows, 0), "top1") ==
                real(json_array_get(json_object_get(root, "cells"), 0), "top1"));
    assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "complete")));
    json_decref(root);
    command_run(&r, "compare", "run", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "95 % interval"));
    command_free(&r);
    command_run(&r, "compare", "run", "nowhere", NULL);
    assert_int_equal(r.code, 2);
    command_free(&r);
}

/* Another user's run: what is to be written there is refused before the work, not after it. */
static void a_place_that_cannot_be_written_is_found_at_once(void **state)
{
    (void)state;
    const char *const calls[][6] = {{"landscape", "run", "--save", "--grid", "0", NULL},
                                    {"landscape", "run", "--svg", "locked/x.svg", "--images", "4096"}};
    const char *const says[] = {"option --save: run cannot be written: ", "option --svg: locked/ cannot be written: "};
    int root = geteuid() == 0;
    (void)mkdir("locked", 0555);
    assert_int_equal(chmod("run", 0555), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        command_result r;
        const char *const *w = calls[i];
        command_run(&r, "analyze", w[0], w[1], w[2], w[3], w[4], w[5], NULL);
        if (r.code == 127 || strstr(r.err, "cannot be read")) { /* nor may that user come here */
            command_free(&r);
            break;
        }
        if (r.code != 1 || !strstr(r.err, says[i]) || strstr(r.err, "passes") || *r.out)
            fail_msg("%s: exit %d: %s", w[2], r.code, r.err);
        command_free(&r);
    }
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod("run", 0755), 0);
}

static void every_plot_is_there(void **state)
{
    (void)state;
    static const char *const plots[] = {"l.svg", "r.svg", "s.svg", "p.svg", "c.svg"};
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        FILE *file = fopen(plots[i], "r");
        char head[5] = "";
        assert_true(file && fread(head, 1, 4, file) == 4);
        assert_string_equal(head, "<svg");
        fclose(file);
    }
}

static void bad_input_is_one_line_and_exit_2(void **state)
{
    (void)state;
    static const struct {
        const char *words[5], *says;
    } calls[] = {{{"lipschitz", "run", "gelu"}, "one run alone"},
                 {{"regions", "nowhere"}, "no such folder"},
                 {{"regions", "loop"}, "loop: cannot be read: "}, /* nobody knows what is in there */
                 {{"regions", "run", "--epochs", "77"}, "recorded none"},
                 {{"spectrum", "run", "--act", "gelu"}, "--act"},
                 {{"spectrum", "vit_micro", "--patch", "7"}, "multiple"},
                 {{"landscape", "run", "--points", "4"}, "even"},
                 {{"landscape", "run", "--directions", "1"}, "plane"},
                 {{"landscape", "run", "--steps", "1"}, "eigenvalues"},
                 {{"landscape", "vit_micro"}, "model"}};
    (void)unlink("loop");
    assert_int_equal(symlink("loop", "loop"), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        command_result r;
        const char *const *w = calls[i].words;
        command_run(&r, "analyze", w[0], w[1], w[2], w[3], w[4], NULL);
        if (r.code != 2 || !strstr(r.err, calls[i].says) || strchr(r.err, '\n') != r.err + strlen(r.err) - 1)
            fail_msg("%s %s: exit %d, %s", w[0], w[1], r.code, r.err);
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lipschitz_of_a_run_has_a_row_a_site),
        cmocka_unit_test(regions_show_the_start_and_the_last_epoch),
        cmocka_unit_test(a_spectrum_has_both_states_of_a_run_and_one_of_a_model),
        cmocka_unit_test(a_landscape_is_the_runs_loss_in_the_middle),
        cmocka_unit_test(compare_has_a_row_a_run_and_what_differs),
        cmocka_unit_test(a_place_that_cannot_be_written_is_found_at_once),
        cmocka_unit_test(every_plot_is_there),
        cmocka_unit_test(bad_input_is_one_line_and_exit_2),
    };
    return cmocka_run_group_tests(tests, run_make, NULL);
}
