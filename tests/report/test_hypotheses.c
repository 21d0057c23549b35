/* test_hypotheses.c - predictions, hypotheses over them, and what a contrast is judged by.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/file.h"
#include "report/report.h"
#include "support/folder.h"
#include "synthetic.h"

static void done(report *r, store_contents *contents)
{
    report_free(r);
    store_contents_free(contents);
}

static const json_t *object_in(const json_t *root, const char *list, size_t at)
{
    return json_array_get(json_object_get(root, list), at);
}

static const char *word_in(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A study of four cells with six seeds. */
static void four_cells(store_contents *contents, const synthetic_cell *cells, const char *yaml)
{
    synthetic_make(contents,
                   &(synthetic){.cells = cells, .cell_count = 4, .seeds = 6, .epochs = 2, .spread = 0.5, .yaml = yaml});
}

/* Four cells; a prediction about two of them and one about all four. A third one that an earlier
 * file had, or one that was registered when its runs had begun, leaves the hypothesis partial. */
static void a_hypothesis_is_judged_beside_the_claims(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"gelu", 74, 0}, {"elu", 72, 0}, {"berlu", 74.6, 0}, {"relu", 74.5, 0}};
    static const struct {
        double above;
        size_t lost; /* runs of the last cell that wait */
        const char *second, *whole;
        int late, gone;
        const char *why;
    } cases[] = {{1, 0, "held", "held", 0, 0, ""},
                 {1.9, 0, "undecided", "undecided", 0, 0, ""},
                 {3, 0, "not held", "not held", 0, 0, ""},
                 {1, 1, "undecided", "undecided", 0, 0, "fewer seeds than registered"},
                 {1, 0, "held", "held", 1, 0, "a prediction was registered after its runs"},
                 {1, 0, "held", "held", 0, 1, "a prediction of an earlier file is gone"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char folder[FOLDER_PATH], path[FOLDER_PATH];
        store_contents contents;
        report r;
        four_cells(&contents, cells, "study: made\nhypothesis: all of it\n");
        store_study *t = contents.studies;
        t->contrasts[0].expected = (stats_expected){STATS_ABOVE, cases[i].above};
        t->contrasts[0].second = 1, t->contrasts[0].minus_a = 2, t->contrasts[0].minus_b = 3;
        t->contrasts[1].expected = (stats_expected){STATS_WITHIN, 1.5};
        if (cases[i].late)
            t->contrasts[1].registered = "2026-01-03T00:00:00Z"; /* after its runs began */
        t->contrasts[2].expected = (stats_expected){STATS_WITHIN, 0.1};
        t->contrasts[2].current = 0;
        t->contrast_count = 2 + (size_t)cases[i].gone;
        for (size_t k = 0; k < cases[i].lost; k++)
            t->cells[3].runs[5 - k].state = "waiting";
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        assert_int_equal(r.judged.current, 0); /* nothing is in Holm's list */
        const judged *j = &r.judged.items[0];
        assert_true(isnan(j->p_holm) && j->n == 6 - cases[i].lost);
        assert_true(fabs(j->stats.judged.value - (cases[i].lost ? 1.85 : 1.9)) < 1e-9);
        assert_int_equal(r.judged.items[1].verdict.direction, VERDICT_HELD);
        folder_fresh(folder, "report_hypothesis");
        assert_int_equal(report_write(&r, &contents, folder, REPORT_CSV | REPORT_MARKDOWN | REPORT_HTML), BERLU_OK);
        json_t *root = json_load_file(folder_path(path, folder, "claims.json"), 0, NULL);
        const json_t *h = object_in(root, "hypotheses", 0), *second = object_in(root, "contrasts", 0);
        assert_int_equal(json_array_size(json_object_get(root, "claims")), 20);
        assert_int_equal(json_array_size(json_object_get(root, "hypotheses")), 1);
        assert_string_equal(word_in(h, "hypothesis"), "all of it");
        assert_string_equal(word_in(h, "direction"), cases[i].whole);
        assert_int_equal(json_is_true(json_object_get(h, "partial")), *cases[i].why != 0);
        assert_string_equal(word_in(h, "why"), cases[i].why);
        assert_string_equal(word_in(second, "direction"), cases[i].second);
        assert_string_equal(word_in(second, "minus_b"), "relu");
        assert_true(json_number_value(json_object_get(second, "limit")) == cases[i].above);
        json_decref(root);
        char *page = NULL;
        size_t bytes;
        assert_int_equal(file_read_all(&page, &bytes, folder_path(path, folder, "index.html"), 64 << 20), BERLU_OK);
        assert_non_null(strstr(page, "gelu minus elu, less (berlu minus relu), predicted above"));
        assert_non_null(strstr(page, "<table id=\"hypotheses\">"));
        assert_int_equal(strstr(page, "2026-01-03T00:00:00Z; 12 of its 12 runs had begun</li>") != NULL, cases[i].late);
        free(page);
        assert_int_equal(file_read_all(&page, &bytes, folder_path(path, folder, "report.md"), 64 << 20), BERLU_OK);
        assert_non_null(strstr(page, "| made | all of it |"));
        free(page);
        done(&r, &contents);
    }
}

/* Its seeds would move the verdicts of others as they come in. */
static void a_cell_that_lacks_runs_is_not_pooled(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"gelu", 74, 0}, {"elu", 72, 0}, {"berlu", 74.6, 0}};
    for (int lost = 0; lost < 2; lost++) {
        store_contents contents;
        report r;
        synthetic_make(&contents,
                       &(synthetic){.cells = cells, .cell_count = 3, .seeds = 6, .epochs = 2, .spread = 0.5});
        contents.studies->contrast_count = 1; /* of the first two */
        if (lost)
            contents.studies->cells[2].runs[5].state = "waiting";
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        assert_true(r.judged.items[0].stats.judged.df == (lost ? 10 : 15));
        done(&r, &contents);
    }
}

/* One prediction alone is corrected for the others that stand without a hypothesis; those of a
 * hypothesis are not, but what refutes it is. */
static void only_what_may_err_more_often_is_corrected(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 74, 0}, {"gelu", 74.03, 0}, {"elu", 73.98, 0}, {"relu", 74.1, 0}};
    for (int whole = 0; whole < 2; whole++) {
        store_contents contents;
        report r;
        four_cells(&contents, cells, whole ? "study: made\nhypothesis: x\n" : "study: made\n");
        for (size_t k = 0; k < 3; k++)
            contents.studies[0].contrasts[k].expected = (stats_expected){STATS_WITHIN, 0.5};
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        double least = 1, raised = 0;
        for (size_t k = 0; k < 3; k++) {
            const judged *j = &r.judged.items[k];
            raised += j->p_held - j->stats.p_wrong;
            least = fmin(least, j->p_not_held / j->stats.p_right);
            assert_true(j->p_held >= j->stats.p_wrong);
        }
        assert_true(whole ? raised == 0 : raised > 0);
        assert_true(least >= 1);
        assert_int_equal(r.judged.hypothesis_count, whole);
        done(&r, &contents);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hypothesis_is_judged_beside_the_claims),
        cmocka_unit_test(a_cell_that_lacks_runs_is_not_pooled),
        cmocka_unit_test(only_what_may_err_more_often_is_corrected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
