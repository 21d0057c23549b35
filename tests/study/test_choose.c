/* test_choose.c - the second stage of a study: which cells are chosen, and that its file reads back
 * as what was chosen. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/choose.h"
#include "study/store_internal.h"
#include "support/fail.h"

enum { FUNCTIONS = 2, RATES = 3, CELLS = FUNCTIONS * RATES, SEEDS = 2 };

/* The %s: a line of its own for other settings of the file. */
static const char source[] = "study: first\n"
                             "%s"
                             "base: {model: vit_micro, data: synthetic, synthetic_images: 640, holdout: 64}\n"
                             "axes: {act: [gelu, \"berlu:eps=0.5\"], lr: [1e-4, 1e-3, 1e-2]}\n"
                             "seeds: 2\n"
                             "choose:\n"
                             "  study: second\n"
                             "  about: \"a \\\"quoted\\\" word, a \\\\ and: more\"\n"
                             "  axis: lr\n"
                             "  base: {holdout: 0}\n"
                             "  seeds: [5, 6, 7]\n"
                             "  contrasts:\n"
                             "    - {name: \"a: b\", a: {act: gelu}, b: {act: \"berlu:eps=0.5\"}, paper: -0.125}\n"
                             "    - {name: d, a: {act: gelu}, b: {act: \"berlu:eps=0.5\"}, minus: {a: {act: "
                             "\"berlu:eps=0.5\"}, b: {act: gelu}},\n"
                             "       expect: greater, than: 0.1}\n";

typedef struct fixture {
    char yaml[2048];
    study s;
    store_result runs[CELLS][SEEDS];
    char settings[CELLS][512];
    store_cell cells[CELLS];
    store_study stored;
} fixture;

/* values[cell]: the mean of its two runs, which lie around it. */
static void fixture_make(fixture *f, const char *more, const double values[CELLS])
{
    static const char *const keys[] = {"00", "01", "10", "11", "20", "21", "30", "31", "40", "41", "50", "51"};
    snprintf(f->yaml, sizeof f->yaml, source, more);
    if (study_parse(&f->s, f->yaml, strlen(f->yaml), "first.yaml", NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_int_equal(f->s.cell_count, CELLS);
    for (size_t c = 0; c < CELLS; c++) {
        for (size_t i = 0; i < SEEDS; i++) {
            double value = values[c] + (i ? 0.25 : -0.25);
            f->runs[c][i] = (store_result){
                .key = keys[c * SEEDS + i], .state = "done", .seed = (int64_t)i, .top1 = value, .loss = 100 - value};
        }
        text settings = {0};
        store_settings_text(&settings, &f->s.cells[c].settings);
        assert_non_null(settings.data);
        snprintf(f->settings[c], sizeof f->settings[c], "%s", settings.data);
        text_free(&settings);
        f->cells[c] =
            (store_cell){.label = f->s.cells[c].label, .settings = f->settings[c], .runs = f->runs[c], .count = SEEDS};
    }
    f->stored = (store_study){.name = "first", .yaml = f->yaml, .sha256 = "ab", .cells = f->cells, .cell_count = CELLS};
}

static const double plain[CELLS] = {70, 72, 71, 73, 74, 75};

static void the_best_mean_of_each_is_chosen(void **state)
{
    (void)state;
    static const struct {
        double values[CELLS];
        size_t want[FUNCTIONS];
        const char *more;
    } cases[] = {{{70, 72, 71, 73, 74, 75}, {1, 5}, ""},
                 {{70, 70, 70, 70, 70, 70}, {0, 3}, ""},                /* the first of equals */
                 {{70, 72, 71, 73, 74, 75}, {1, 5}, "metric: loss\n"}}; /* the lowest loss */
    for (size_t i = 0; i < COUNT(cases); i++) {
        fixture f;
        study second;
        text out = {0};
        size_t chosen[CELLS], count;
        fixture_make(&f, cases[i].more, cases[i].values);
        assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
        assert_int_equal(count, FUNCTIONS);
        for (size_t k = 0; k < FUNCTIONS; k++)
            assert_int_equal(chosen[k], cases[i].want[k]);
        if (study_parse(&second, out.data, out.length, "second.yaml", NULL) != BERLU_OK)
            fail_msg("%s\n%s", berlu_last_error(), out.data);
        assert_true(second.cell_count == FUNCTIONS && second.run_count == 3 * FUNCTIONS && second.runs[0].seed == 5);
        assert_string_equal(second.about, "a \"quoted\" word, a \\ and: more");
        assert_string_equal(second.metric, f.s.metric);
        assert_string_equal(study_setting_of(&second.cells[0], "holdout"), "0");
        assert_string_equal(second.cells[1].label, "berlu:eps=0.5");
        for (size_t k = 0; k < FUNCTIONS; k++)
            assert_string_equal(study_setting_of(&second.cells[k], "lr"),
                                study_setting_of(&f.s.cells[chosen[k]], "lr"));
        assert_int_equal(second.pair_count, 2);
        assert_true(second.contrasts[0].paper == -0.125 && strcmp(second.contrasts[0].name, "a: b") == 0);
        assert_true(second.contrasts[1].expected.what == STATS_ABOVE && second.contrasts[1].expected.limit == 0.1);
        assert_int_equal(second.pairs[1].minus_a, 1);
        study_free(&second);
        study_free(&f.s);
        text_free(&out);
    }
}

/* 3398 + 3416 images of 5000 are 3407 + 3407, but the sums of their percentages differ by a bit. */
static void equal_means_are_equal_whatever_their_rounding(void **state)
{
    (void)state;
    static const int right[CELLS][SEEDS] = {{3398, 3416}, {3407, 3407}, {3406, 3408},
                                            {3407, 3407}, {3398, 3416}, {3408, 3407}};
    fixture f;
    text out = {0};
    size_t chosen[CELLS], count;
    for (int loss = 0; loss < 2; loss++) {
        fixture_make(&f, loss ? "metric: loss\n" : "", plain);
        for (size_t c = 0; c < CELLS; c++)
            for (size_t i = 0; i < SEEDS; i++)
                f.runs[c][i].top1 = 100.0 * right[c][i] / 5000, f.runs[c][i].loss = -f.runs[c][i].top1;
        assert_true(f.runs[0][0].top1 + f.runs[0][1].top1 < f.runs[1][0].top1 + f.runs[1][1].top1);
        assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
        assert_int_equal(chosen[0], 0);
        assert_int_equal(chosen[1], 5); /* one image more is better */
        study_free(&f.s);
        text_free(&out);
    }
}

static void a_failed_run_rules_its_cell_out_and_a_missing_one_everything(void **state)
{
    (void)state;
    fixture f;
    text out = {0};
    size_t chosen[CELLS], count;
    fixture_make(&f, "", plain);
    f.runs[5][1].state = "failed";
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
    assert_int_equal(chosen[1], 4);
    assert_non_null(strstr(out.data, "74.75  failed"));
    f.runs[3][0].state = f.runs[4][0].state = "failed";
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "every lr of berlu:eps=0.5 has a failed run"));
    f.runs[0][1].state = "cut";
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "1 of 12 runs have no result"));
    f.runs[0][1].state = "done", f.runs[0][1].top1 = NAN;
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_ERR_INPUT);
    f.stored.cell_count = 2;
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_ERR_INPUT);
    f.stored.yaml = "study: first\n";
    assert_int_equal(study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "another file"));
    study_free(&f.s);
    text_free(&out);
}

/* Whatever changes a result changes the file, even where the choice stays. */
static void the_file_follows_the_results(void **state)
{
    (void)state;
    fixture f;
    text first = {0}, same = {0}, other = {0};
    size_t chosen[CELLS], count;
    fixture_make(&f, "", plain);
    assert_int_equal(study_choose(&first, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
    assert_int_equal(study_choose(&same, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
    assert_string_equal(first.data, same.data);
    f.runs[0][0].key = "another run";
    assert_int_equal(study_choose(&other, &f.s, f.yaml, &f.stored, chosen, &count), BERLU_OK);
    assert_string_not_equal(first.data, other.data);
    assert_non_null(strstr(first.data, "# The choice for berlu:eps=0.5 lies at the end of the list"));
    assert_null(strstr(first.data, "# The choice for gelu"));
    study_free(&f.s);
    text_free(&first);
    text_free(&same);
    text_free(&other);
}

static void lack_of_memory_is_reported_at_every_allocation(void **state)
{
    (void)state;
    fixture f;
    size_t chosen[CELLS], count;
    fixture_make(&f, "", plain);
    berlu_status status;
    text out = {0};
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = study_choose(&out, &f.s, f.yaml, &f.stored, chosen, &count), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        text_free(&out);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 3);
    text_free(&out);
    study_free(&f.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_mean_of_each_is_chosen),
        cmocka_unit_test(equal_means_are_equal_whatever_their_rounding),
        cmocka_unit_test(a_failed_run_rules_its_cell_out_and_a_missing_one_everything),
        cmocka_unit_test(the_file_follows_the_results),
        cmocka_unit_test(lack_of_memory_is_reported_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
