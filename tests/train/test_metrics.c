/* test_metrics.c - accuracy, loss and the row of metrics.csv. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/csv.h"
#include "train/metrics.h"

static void equal_logits_are_ranked_by_number_as_argmax_does(void **state)
{
    (void)state;
    float zero[10] = {0};
    for (size_t label = 0; label < 10; label++)
        assert_int_equal(rank_of(zero, 10, label), label);
    float some[4] = {1, 3, 3, 2};
    assert_int_equal(rank_of(some, 4, 1), 0);
    assert_int_equal(rank_of(some, 4, 2), 1);
    assert_int_equal(rank_of(some, 4, 3), 2);
    assert_int_equal(rank_of(some, 4, 0), 3);
}

static void a_row_with_a_nan_is_always_wrong(void **state)
{
    (void)state;
    float three[3] = {9, NAN, 1};
    score s = {0};
    score_add(&s, three, 3, 0);
    assert_int_equal(s.images, 1);
    assert_int_equal(s.top1 + s.top5, 0);
}

static void top5_of_fewer_classes_is_all_of_them(void **state)
{
    (void)state;
    float three[3] = {9, 5, 1};
    score s = {0};
    score_add(&s, three, 3, 2);
    assert_true(score_top1(&s) == 0 && score_top5(&s) == 100);
    assert_true(isnan(score_top1(&(score){0})) && isnan(score_loss(&(score){0})));
}

static void cross_entropy_meets_its_reference_and_does_not_overflow(void **state)
{
    (void)state;
    float z[3] = {2, 0, -1}, big[2] = {1000, 0};
    double want = log(exp(2) + 1 + exp(-1)) - 2;
    assert_true(fabs(cross_entropy(z, 3, 0) - want) < 1e-15);
    assert_true(cross_entropy(big, 2, 1) == 1000);
    /* label smoothing 0.1 of the same logits, from its published value: (1 - s) nll + s
     * mean(nll) */
    double mean = (cross_entropy(z, 3, 0) + cross_entropy(z, 3, 1) + cross_entropy(z, 3, 2)) / 3;
    assert_true(fabs(0.9 * want + 0.1 * mean - 0.3365126862229524) < 1e-15);
}

static void the_row_has_the_columns_everybody_relies_on(void **state)
{
    (void)state;
    const char *sites[] = {"a.act", "b.act"};
    double figures[2 * SITE_METRICS];
    for (size_t i = 0; i < COUNT(figures); i++)
        figures[i] = i == SITE_EPS ? NAN : (double)i / 7;
    metrics_row row = {.epoch = 3,
                       .step = 144,
                       .lr = 0.1,
                       .train_loss = 1.5,
                       .test_top1 = 12.5,
                       .grad_norm = 2,
                       .lipschitz = 1,
                       .ema_top1 = 13};
    text t = {0};
    metrics_form form = {.sites = sites, .count = 2, .ema = 1};
    metrics_names(&t, &form);
    metrics_line(&t, &form, &row, figures);
    const char *start =
        "epoch,step,lr,train_loss,train_top1,test_loss,test_top1,test_top5,grad_norm,alpha.a.act,eps.a.act,"
        "left.a.act,inside.a.act,right.a.act,dead.a.act,grad.a.act,mean.a.act,var.a.act,alpha.b.act,";
    assert_memory_equal(t.data, start, strlen(start));
    csv_table table;
    assert_int_equal(csv_parse(&table, t.data, t.length, "metrics.csv"), BERLU_OK);
    assert_int_equal(table.columns, 9 + 2 * SITE_METRICS + 1 + 3);
    assert_true(csv_number(&table, 0, csv_column(&table, "lr")) == 0.1);
    assert_true(csv_number(&table, 0, csv_column(&table, "var.b.act")) == figures[SITE_METRICS + SITE_VAR]);
    assert_true(csv_number(&table, 0, csv_column(&table, "y_var.a.act")) == figures[SITE_Y_VAR]);
    assert_true(isnan(csv_number(&table, 0, csv_column(&table, "eps.a.act"))));
    assert_string_equal(csv_cell(&table, 0, csv_column(&table, "eps.a.act")), "");
    assert_true(csv_number(&table, 0, csv_column(&table, "ema_top1")) == 13);
    assert_true(csv_number(&table, 0, csv_column(&table, "nonlinear.b.act")) == figures[SITE_METRICS + SITE_NONLINEAR]);
    csv_free(&table);
    text_free(&t);
    form.old = 1; /* a file that 0.1.0 began */
    t = (text){0};
    metrics_names(&t, &form);
    metrics_line(&t, &form, &row, figures);
    assert_int_equal(csv_parse(&table, t.data, t.length, "metrics.csv"), BERLU_OK);
    assert_int_equal(table.columns, 9 + 2 * 12 + 1 + 3);
    assert_int_equal(csv_column(&table, "nonlinear.a.act"), -1);
    assert_true(csv_number(&table, 0, csv_column(&table, "lipschitz.b.act")) == figures[SITE_METRICS + SITE_LIPSCHITZ]);
    csv_free(&table);
    text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_are_ranked_by_number_as_argmax_does),
        cmocka_unit_test(a_row_with_a_nan_is_always_wrong),
        cmocka_unit_test(top5_of_fewer_classes_is_all_of_them),
        cmocka_unit_test(cross_entropy_meets_its_reference_and_does_not_overflow),
        cmocka_unit_test(the_row_has_the_columns_everybody_relies_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
