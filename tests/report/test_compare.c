/* test_compare.c - runs side by side: which settings differ, what a cell is, what its curve holds.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../train/runs.h"
#include "report/compare.h"
#include "support/fail.h"

enum { RUNS = 4 };
static char place[RUNS][FOLDER_PATH];
static const char *paths[RUNS];

/* Two seeds of relu, one of gelu evaluated every second epoch, and one of relu that was stopped. */
static int runs_make(void **state)
{
    static const char *const extra[RUNS][6] = {{"act=relu", "synthetic_images=16", NULL},
                                               {"act=relu", "synthetic_images=16", "seed=1", NULL},
                                               {"act=gelu", "synthetic_images=16", "eval_every=2", NULL},
                                               {"act=relu", "synthetic_images=16", "seed=2", NULL}};
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        char name[32];
        snprintf(name, sizeof name, "compare_%d", i);
        paths[i] = run_place(place[i], name);
        train_settings s;
        stopper stop = {.phase = i == 3 ? "train" : NULL, .at = 3}; /* the second epoch's first update */
        tiny_settings(&s, paths[i], extra[i]);
        berlu_status status = run_with(&s, 0, &stop, NULL);
        recipe_free(&s);
        if (status != (i == 3 ? BERLU_ERR_STOPPED : BERLU_OK))
            return -1;
    }
    return 0;
}

static void runs_that_differ_in_the_seed_are_one_cell(void **state)
{
    (void)state;
    compare c;
    if (compare_read(&c, paths, RUNS) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_true(c.runs == RUNS && c.cells == 2 && c.keys == 2);
    assert_string_equal(c.key[0].key, "act");
    assert_string_equal(c.key[1].key, "eval_every");
    assert_string_equal(c.key[0].values[1], "gelu");
    assert_string_equal(c.key[1].values[1], "2");
    assert_string_equal(c.cell[0].label, "act relu, eval_every 1");
    assert_true(c.cell[0].count == 3 && c.cell[1].count == 1);
    assert_true(c.run[3].cell == 0 && c.run[3].seed == 2 && !c.run[3].complete && c.run[0].complete);
    double sum = 0;
    for (int i = 0; i < RUNS; i++)
        sum += i == 2 ? 0 : c.run[i].top1;
    assert_true(fabs(c.cell[0].mean - sum / 3) < 1e-12);
    assert_true(c.run[0].top1 == metric(paths[0], 2, "test_top1"));
    assert_true(c.run[2].top1 == metric(paths[2], 2, "test_top1"));  /* evaluated after epochs 2 and 3 */
    assert_true(isnan(c.cell[1].deviation) && isnan(c.cell[1].low)); /* one run has no interval */
    compare_free(&c);
}

static void one_setting_that_differs_names_the_cells(void **state)
{
    (void)state;
    compare c;
    assert_int_equal(compare_read(&c, paths, 2), BERLU_OK);
    assert_true(c.keys == 0 && c.cells == 1);
    assert_string_equal(c.cell[0].label, "all runs");
    compare_free(&c);
    assert_int_equal(compare_read(&c, paths, 1), BERLU_OK);
    assert_true(c.cells == 1 && c.cell[0].mean == c.run[0].top1);
    compare_free(&c);
}

static void a_seed_that_comes_twice_is_counted_once(void **state)
{
    (void)state;
    compare c;
    compare_curve curve;
    char again[FOLDER_PATH];
    const char *both[] = {paths[0], run_place(again, "compare_again"), paths[1]};
    run_whole(again, (const char *const[]){"act=relu", "synthetic_images=16", NULL});
    assert_int_equal(compare_read(&c, both, 2), BERLU_OK);
    assert_true(c.runs == 2 && c.cells == 1 && c.cell[0].count == 1);
    assert_string_equal(c.run[1].repeats, paths[0]);
    assert_true(c.cell[0].mean == c.run[0].top1 && isnan(c.cell[0].low));
    assert_int_equal(compare_column(&curve, &c, 0, "test_loss"), BERLU_OK);
    assert_true(curve.mean[0] == metric(paths[0], 0, "test_loss"));
    compare_free(&c);
    assert_int_equal(compare_read(&c, both, 3), BERLU_OK);
    assert_true(c.cell[0].count == 2 && !c.run[2].repeats);
    compare_free(&c);
}

static void a_curve_holds_the_epochs_that_all_runs_have(void **state)
{
    (void)state;
    compare c;
    compare_curve curve;
    assert_int_equal(compare_read(&c, paths, RUNS), BERLU_OK);
    assert_int_equal(compare_column(&curve, &c, 0, "test_top1"), BERLU_OK);
    assert_int_equal(curve.count, 1); /* the stopped run has finished one epoch */
    assert_int_equal(compare_column(&curve, &c, 1, "test_top1"), BERLU_OK);
    assert_true(curve.count == 2 && curve.epoch[0] == 2 && curve.epoch[1] == 3);
    assert_true(curve.mean[1] == c.run[2].top1 && curve.least[1] == curve.most[1]);
    compare_free(&c);
    assert_int_equal(compare_read(&c, paths, 2), BERLU_OK);
    assert_int_equal(compare_column(&curve, &c, 0, "train_loss"), BERLU_OK);
    assert_int_equal(curve.count, 3);
    for (size_t i = 0; i < 3; i++) {
        double a = metric(paths[0], i, "train_loss"), b = metric(paths[1], i, "train_loss");
        assert_true(curve.mean[i] == (a + b) / 2 && curve.least[i] == fmin(a, b) && curve.most[i] == fmax(a, b));
    }
    assert_int_equal(compare_column(&curve, &c, 0, "no such column"), BERLU_OK);
    assert_int_equal(curve.count, 0);
    compare_free(&c);
}

static void old_runs_are_compared_and_what_is_no_run_is_named(void **state)
{
    (void)state;
    compare c;
    char old[2][FOLDER_PATH];
    for (int i = 0; i < 2; i++)
        snprintf(old[i], sizeof old[i], "%s/tests/golden/runs/0.1.0/%s", getenv("BERLU_SOURCE_DIR"),
                 i ? "tnt" : "linear");
    char other[FOLDER_PATH + 8];
    snprintf(other, sizeof other, "%s/../run", paths[0]);
    const char *both[] = {old[0], old[1]}, *missing[] = {paths[0], "no/such/run"}, *twice[] = {paths[0], other};
    assert_int_equal(compare_read(&c, twice, 2), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "twice"));
    if (compare_read(&c, both, 2) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_true(c.cells == 2 && c.keys > 0 && strcmp(c.key[0].key, "model") == 0);
    compare_free(&c);
    assert_int_equal(compare_read(&c, missing, 2), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "no/such/run"));
}

/* Reading and drawing, every allocation failing once. */
static void a_comparison_that_finds_no_memory_says_so(void **state)
{
    (void)state;
    compare c;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    berlu_status status;
    int n = 1;
    folder_path(path, folder_fresh(folder, "compare_plot"), "c.svg");
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = compare_read(&c, paths, 2), fail_hit(); n++)
        if (status == BERLU_OK) /* jansson's own failures are those of a file that cannot be read */
            fail_msg("allocation %d was not noticed", n);
    assert_true(status == BERLU_OK && n > 50);
    for (n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = compare_draw(&c, path), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_false(file_exists(path));
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(file_exists(path));
    compare_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_differ_in_the_seed_are_one_cell),
        cmocka_unit_test(one_setting_that_differs_names_the_cells),
        cmocka_unit_test(a_seed_that_comes_twice_is_counted_once),
        cmocka_unit_test(a_curve_holds_the_epochs_that_all_runs_have),
        cmocka_unit_test(old_runs_are_compared_and_what_is_no_run_is_named),
        cmocka_unit_test(a_comparison_that_finds_no_memory_says_so),
    };
    return cmocka_run_group_tests(tests, runs_make, NULL);
}
