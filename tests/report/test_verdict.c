/* test_verdict.c - the paper's tables as data, and the rules that turn contrasts into verdicts.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "report/paper.h"
#include "report/verdict.h"

static void there_are_twenty_claims_in_order_each_with_a_rule(void **state)
{
    (void)state;
    static const char *const comparisons[] = {"C7", "C8", "C9", "C10", "C20"};
    size_t found = 0;
    for (size_t i = 0; i < 20; i++) {
        char id[8];
        const paper_claim *c = paper_claim_at(i);
        snprintf(id, sizeof id, "C%zu", i + 1);
        assert_non_null(c);
        assert_string_equal(c->id, id);
        assert_true(*c->claim && *c->paper && *c->rule);
        if (c->kind == CLAIM_COMPARISON)
            assert_string_equal(c->id, comparisons[found++]);
    }
    assert_int_equal(found, COUNT(comparisons));
    assert_null(paper_claim_at(20));
}

/* The printed averages are an independent check of every row: they must be the means of the rows
 * to the last printed digit, in value and in deviation. A rounded mean of rounded numbers is off
 * by at most 0.05 + 0.05. */
static void the_papers_averages_fit_its_rows(void **state)
{
    (void)state;
    size_t averages = 0, rows = 0;
    for (; paper_row_at(rows); rows++) {
        const paper_row *average = paper_row_at(rows);
        if (strcmp(average->model, "average") != 0)
            continue;
        double mean = 0, deviation = 0, count = 0;
        for (size_t i = 0; paper_row_at(i); i++) {
            const paper_row *r = paper_row_at(i);
            if (strcmp(r->data, average->data) == 0 && strcmp(r->act, average->act) == 0 &&
                strcmp(r->model, "average") != 0 && strcmp(r->model, "convnext") != 0) {
                mean += r->mean;
                deviation += r->deviation;
                count++;
            }
        }
        if (!(fabs(mean / count - average->mean) <= 0.1 + 1e-9 &&
              fabs(deviation / count - average->deviation) <= 0.1 + 1e-9))
            fail_msg("%s %s: %g +- %g, printed %g +- %g", average->data, average->act, mean / count, deviation / count,
                     average->mean, average->deviation);
        averages++;
    }
    assert_int_equal(averages, 21);
    assert_int_equal(rows, 7 * (4 + 4 + 3 + 3));
    assert_true(fabs(paper_difference("cifar10", "vit", "berlu", "gelu") - 8.1) < 1e-9);
    assert_true(fabs(paper_difference("cifar100", "average", "berlu", "prelu") - 3.2) < 1e-9);
    assert_true(isnan(paper_difference("cifar10", "vit", "berlu", "relu"))); /* which the paper left out */
    assert_true(paper_cost_at(0)->forward == 59.2 && paper_cost_at(6)->memory == 10.58 && !paper_cost_at(7));
}

static stats_contrast contrast(double value, double error, double df)
{
    stats_contrast c = {.judged = {value, error, df}};
    stats_interval wide = stats_range(c.judged, 0.95), narrow = stats_range(c.judged, 0.90);
    c.low = wide.low, c.high = wide.high, c.low90 = narrow.low, c.high90 = narrow.high;
    c.p = stats_p(c.judged);
    return c;
}

static verdict judge(const stats_contrast *c, double p_holm, double paper)
{
    return verdict_of_contrast(
        &(verdict_input){.contrast = c, .p_holm = p_holm, .margin = 0.5, .paper = paper, .n = 10, .registered = 10});
}

static void the_first_direction_that_applies_is_the_verdict(void **state)
{
    (void)state;
    stats_contrast up = contrast(3, 0.3, 60), down = contrast(-3, 0.3, 60), flat = contrast(0.1, 0.1, 60),
                   open = contrast(0.4, 0.4, 60), tiny = contrast(0.3, 0.05, 60);
    assert_int_equal(judge(&up, up.p, NAN).direction, VERDICT_BETTER);
    assert_int_equal(judge(&down, down.p, NAN).direction, VERDICT_WORSE);
    assert_int_equal(judge(&flat, 1, NAN).direction, VERDICT_NO_DIFFERENCE);
    assert_int_equal(judge(&open, 1, NAN).direction, VERDICT_UNDECIDED);
    assert_int_equal(judge(&tiny, tiny.p, NAN).direction, VERDICT_BETTER); /* significant, though inside the margin */
    assert_int_equal(judge(&up, 0.2, NAN).direction, VERDICT_UNDECIDED);   /* Holm's p decides, not the plain one */
    assert_int_equal(judge(&up, NAN, NAN).direction, VERDICT_UNDECIDED);
    assert_int_equal(judge(&up, up.p, NAN).size, VERDICT_NO_SIZE);
    assert_int_equal(judge(&up, up.p, 3.4).size, VERDICT_INSIDE);
    assert_int_equal(judge(&up, up.p, 8.1).size, VERDICT_OUTSIDE);
}

static void only_the_registered_number_of_seeds_is_judged(void **state)
{
    (void)state;
    stats_contrast up = contrast(3, 0.3, 60);
    verdict_input in = {.contrast = &up, .p_holm = up.p, .margin = 0.5, .paper = 3, .n = 7, .registered = 10};
    verdict fewer = verdict_of_contrast(&in);
    assert_true(fewer.partial && fewer.direction == VERDICT_UNDECIDED && fewer.size == VERDICT_INSIDE);
    assert_string_equal(fewer.why, "fewer seeds than registered");
    in.n = 12;
    verdict more = verdict_of_contrast(&in);
    assert_true(more.partial && more.direction == VERDICT_UNDECIDED);
    in.n = 0;
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_NOT_TESTED);
    in = (verdict_input){
        .contrast = &up, .p_holm = up.p, .margin = 0.5, .paper = NAN, .n = 10, .registered = 10, .differs = 1};
    verdict other = verdict_of_contrast(&in);
    assert_true(other.partial && other.direction == VERDICT_BETTER);
    in.contrast = NULL;
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_NOT_TESTED);
    assert_string_equal(verdict_direction_name(VERDICT_NO_DIFFERENCE), "no difference");
    assert_string_equal(verdict_size_name(VERDICT_OUTSIDE), "outside");
}

static void a_claim_holds_only_against_each_of_its_rivals(void **state)
{
    (void)state;
    enum {
        NOT = VERDICT_NOT_TESTED,
        UP = VERDICT_BETTER,
        DOWN = VERDICT_WORSE,
        SAME = VERDICT_NO_DIFFERENCE,
        OPEN = VERDICT_UNDECIDED
    };
    static const struct {
        int rivals[3], want;
        int partial;
    } cases[] = {{{UP, UP, UP}, UP, 0},       {{UP, UP, SAME}, SAME, 0},     {{UP, SAME, OPEN}, OPEN, 0},
                 {{UP, OPEN, DOWN}, DOWN, 0}, {{SAME, SAME, SAME}, SAME, 0}, {{UP, NOT, UP}, OPEN, 1},
                 {{NOT, SAME, UP}, SAME, 1},  {{NOT, UP, DOWN}, DOWN, 1},    {{NOT, NOT, NOT}, NOT, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        verdict rivals[3];
        for (int k = 0; k < 3; k++)
            rivals[k] = (verdict){.direction = (verdict_direction)cases[i].rivals[k], .why = ""};
        verdict v = verdict_of_claim(rivals, 3);
        assert_int_equal(v.direction, cases[i].want);
        assert_int_equal(v.partial, cases[i].partial);
    }
    verdict sizes[] = {{VERDICT_BETTER, VERDICT_INSIDE, 0, ""},
                       {VERDICT_BETTER, VERDICT_OUTSIDE, 1, "fewer seeds than registered"}};
    verdict v = verdict_of_claim(sizes, 2);
    assert_true(v.size == VERDICT_OUTSIDE && v.partial);
    assert_string_equal(v.why, "fewer seeds than registered");
    assert_int_equal(verdict_of_claim(sizes, 1).size, VERDICT_INSIDE);
    assert_int_equal(verdict_of_claim(NULL, 0).direction, VERDICT_NOT_TESTED);
}

static void a_prediction_holds_or_not_by_its_own_tests(void **state)
{
    (void)state;
    stats_contrast any = {.judged = {0.1, 0.1, 18}, .low = -0.1, .high = 0.3};
    verdict_input in = {.contrast = &any, /* p against 0 would say "better": it is not asked */
                        .p_holm = 0.001,
                        .paper = NAN,
                        .n = 5,
                        .registered = 5,
                        .expected = {STATS_WITHIN, 0.5},
                        .p_held = 0.04,
                        .p_not_held = 1};
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_HELD);
    in.p_held = 0.06;
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_UNDECIDED);
    in.p_held = 1, in.p_not_held = 0.04;
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_NOT_HELD);
    in.p_held = in.p_not_held = NAN;
    assert_int_equal(verdict_of_contrast(&in).direction, VERDICT_UNDECIDED);
    in.p_held = 0.001, in.missing = 1; /* the larger side lacks a registered run */
    verdict v = verdict_of_contrast(&in);
    assert_true(v.direction == VERDICT_UNDECIDED && v.partial);
    assert_string_equal(v.why, "fewer seeds than registered");
}

static void a_hypothesis_holds_only_if_every_prediction_does(void **state)
{
    (void)state;
    enum { NOT = VERDICT_NOT_TESTED, OPEN = VERDICT_UNDECIDED, YES = VERDICT_HELD, NO = VERDICT_NOT_HELD };
    static const struct {
        int predictions[3], want, partial;
    } cases[] = {{{YES, YES, YES}, YES, 0}, {{YES, YES, OPEN}, OPEN, 0}, {{YES, NO, OPEN}, NO, 0},
                 {{NOT, NOT, NOT}, NOT, 0}, {{YES, YES, NOT}, OPEN, 1},  {{NOT, NO, YES}, NO, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        verdict each[3];
        for (int k = 0; k < 3; k++)
            each[k] = (verdict){.direction = (verdict_direction)cases[i].predictions[k], .why = ""};
        verdict v = verdict_of_hypothesis(each, 3);
        assert_int_equal(v.direction, cases[i].want);
        assert_int_equal(v.partial, cases[i].partial);
    }
    assert_int_equal(verdict_of_hypothesis(NULL, 0).direction, VERDICT_NOT_TESTED);
    assert_string_equal(verdict_direction_name(VERDICT_NOT_HELD), "not held");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_twenty_claims_in_order_each_with_a_rule),
        cmocka_unit_test(the_papers_averages_fit_its_rows),
        cmocka_unit_test(the_first_direction_that_applies_is_the_verdict),
        cmocka_unit_test(only_the_registered_number_of_seeds_is_judged),
        cmocka_unit_test(a_claim_holds_only_against_each_of_its_rivals),
        cmocka_unit_test(a_prediction_holds_or_not_by_its_own_tests),
        cmocka_unit_test(a_hypothesis_holds_only_if_every_prediction_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
