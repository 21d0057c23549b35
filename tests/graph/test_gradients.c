/* test_gradients.c - every op's gradient, in double, against central differences of the loss.
 * SPDX-License-Identifier: MIT
 *
 * With h = 1e-5 the difference quotient is off by h^2 / 6 times a third derivative (order 1 to 100
 * here) and by rounding of the loss, 1e-16 / h: together below 1e-8. The bound below is 1e-7
 * absolute and relative. A kink within h of a value would break it; the values are fixed, and none
 * is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/cases.h"

static double loss_with(prepared *p, int parameter, double *values, int64_t at, double value)
{
    double before = values[at];
    values[at] = value;
    assert_int_equal(engine_set_f64(p->e, ARRAY_WEIGHT, parameter, values), BERLU_OK);
    assert_int_equal(engine_forward(p->e, &p->step), BERLU_OK);
    values[at] = before;
    assert_int_equal(engine_set_f64(p->e, ARRAY_WEIGHT, parameter, values), BERLU_OK);
    return engine_loss(p->e);
}

static void parameter_check(const graph_case *c, prepared *p, int parameter)
{
    const double h = 1e-5;
    const tensor_info *t = graph_tensor(p->g, graph_param(p->g, parameter));
    int64_t count = tensor_elements(t), step = count / 12 + 1;
    double *values = malloc((size_t)count * sizeof *values), *gradient = malloc((size_t)count * sizeof *gradient);
    assert_int_equal(engine_get_f64(p->e, ARRAY_WEIGHT, parameter, values), BERLU_OK);
    assert_int_equal(engine_get_f64(p->e, ARRAY_GRADIENT, parameter, gradient), BERLU_OK);
    for (int64_t i = 0; i < count; i += step) {
        double up = loss_with(p, parameter, values, i, values[i] + h),
               down = loss_with(p, parameter, values, i, values[i] - h);
        double expected = (up - down) / (2 * h);
        if (!(fabs(gradient[i] - expected) <= 1e-7 * (1 + fabs(expected))))
            fail_msg("%s: %s[%lld]: gradient %.12g, difference quotient %.12g", c->name, t->name, (long long)i,
                     gradient[i], expected);
    }
    free(values);
    free(gradient);
}

static void every_gradient_equals_its_difference_quotient(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_f64_backend(), 1);
        assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
        assert_int_equal(engine_backward(p.e), BERLU_OK);
        for (int k = 0; k < graph_param_count(p.g); k++)
            parameter_check(&graph_cases[i], &p, k);
        case_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_gradient_equals_its_difference_quotient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
