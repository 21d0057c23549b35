/* test_analyze.c - the analyses against closed forms in 30 digits, and what they must find by
 * themselves. SPDX-License-Identifier: MIT
 *
 * tests/golden/analyze.tsv is made by tools/golden_analyze.py. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/card.h"
#include "analyze/expect.h"

enum { FIELDS = 8 };

typedef struct row {
    char *field[FIELDS];
    size_t count;
} row;

static FILE *golden_open(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/analyze.tsv", getenv("BERLU_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

/* The next line of this kind; 0 at the end. */
static int golden_next(FILE *file, const char *kind, char line[1024], row *r)
{
    while (fgets(line, 1024, file)) {
        char *rest = NULL;
        r->count = 0;
        for (char *f = strtok_r(line, "\t\n", &rest); f && r->count < FIELDS; f = strtok_r(NULL, "\t\n", &rest))
            r->field[r->count++] = f;
        if (r->count && strcmp(r->field[0], kind) == 0)
            return 1;
    }
    return 0;
}

static double number(const row *r, size_t i)
{
    assert_true(i < r->count);
    return strtod(r->field[i], NULL);
}

static berlu_act *act_of(const char *words)
{
    berlu_act *act;
    if (berlu_act_make(&act, words) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return act;
}

static void near(const row *r, double got, double want, double relative, double absolute)
{
    if (!(fabs(got - want) <= relative * fabs(want) + absolute))
        fail_msg("%s %s %s: %.17g instead of %.17g", r->field[0], r->field[1], r->field[2], got, want);
}

static void the_largest_slope_is_found_without_knowing_it(void **state)
{
    (void)state;
    char line[1024];
    row r;
    size_t rows = 0;
    FILE *file = golden_open();
    for (; golden_next(file, "lipschitz", line, &r); rows++) {
        berlu_act *act = act_of(r.field[1]);
        lipschitz l;
        lipschitz_find(&l, act);
        near(&r, l.constant, number(&r, 2), DBL_EPSILON, 0);
        near(&r, l.at, number(&r, 3), DBL_EPSILON, 0);
        near(&r, l.found, number(&r, 2), 1e-12, 0);
        /* Around 0 the slopes are 1 - x^2 or 1/4 - x^2/16: equal to rounding as far as 4e-8. */
        near(&r, l.found_at, number(&r, 3), 1e-12, number(&r, 3) == 0 ? 4e-8 : 0);
        near(&r, l.curvature, number(&r, 4), 1e-12, 0);
        berlu_act_free(act);
    }
    fclose(file);
    assert_int_equal(rows, 7);
}

/* softplus comes as near to its constant as doubles can tell; the slope of relu2 grows with the
 * range that is searched. */
static void a_constant_that_no_slope_attains_is_a_supremum(void **state)
{
    (void)state;
    char line[1024];
    row r;
    size_t rows = 0;
    FILE *file = golden_open();
    for (; golden_next(file, "supremum", line, &r); rows++) {
        berlu_act *act = act_of(r.field[1]);
        lipschitz l;
        lipschitz_find(&l, act);
        double constant = strcmp(r.field[2], "+inf") == 0 ? INFINITY : number(&r, 2);
        assert_true(l.constant == constant && l.at == INFINITY && l.found <= constant);
        if (isinf(constant))
            assert_true(l.found == 2 * l.found_at && l.found_at > 10);
        else
            near(&r, l.found, constant, 1e-12, 0);
        near(&r, l.curvature, number(&r, 3), 1e-12, 0);
        berlu_act_free(act);
    }
    fclose(file);
    assert_int_equal(rows, 2);
}

/* For every activation, with parameters on both sides of 1 too. The kinks' slopes are approached
 * to some units of the last place. */
static void found_and_stated_constants_agree_for_every_activation(void **state)
{
    (void)state;
    static const char *const more[] = {"berlu:alpha=1.5",
                                       "berlu:alpha=-2,eps=0.25,degree=6",
                                       "prelu:alpha=-3",
                                       "elu:alpha=2",
                                       "celu:alpha=0.25",
                                       "gelu:scale=8",
                                       "mish:scale=-2",
                                       "berlu:eps=1e-15",
                                       "smooth(kinks=-3,0,3; slopes=0,1.5,-0.5,1; eps=0.001,0.5,1e-9; degree=4)"};
    for (size_t i = 0; berlu_act_builtin(i) || i < 100; i++) {
        size_t builtins = 0;
        while (berlu_act_builtin(builtins))
            builtins++;
        if (i >= builtins + COUNT(more))
            break;
        berlu_act *act = act_of(i < builtins ? berlu_act_builtin(i) : more[i - builtins]);
        lipschitz l;
        lipschitz_find(&l, act);
        if (!(fabs(l.found - l.constant) <= 1e-12 * l.constant))
            fail_msg("%s: %.17g found, %.17g stated", berlu_act_spec(act), l.found, l.constant);
        assert_true(fabs(berlu_act_at(act, l.found_at, NULL).slope) == l.found);
        berlu_act_free(act);
    }
}

static void the_papers_figures_are_judged(void **state)
{
    (void)state;
    static const struct {
        const char *act;
        double paper;
        const char *verdict;
    } want[] = {{"berlu", 1, "right"}, {"gelu", 1.084, "wrong"}, {"silu", 1.1, "right"}, {"mish", 1.089, "right"}};
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_string_equal(lipschitz_paper_act(i), want[i].act);
        berlu_act *act = act_of(want[i].act);
        lipschitz l;
        lipschitz_find(&l, act);
        assert_true(l.paper == want[i].paper);
        assert_string_equal(l.verdict, want[i].verdict);
        berlu_act_free(act);
    }
    assert_null(lipschitz_paper_act(COUNT(want)));
    berlu_act *other = act_of("berlu:alpha=2"); /* not the function that the figure is about */
    lipschitz l;
    lipschitz_find(&l, other);
    assert_true(isnan(l.paper) && !l.verdict && l.found == 2);
    berlu_act_free(other);
}

static void breaks_are_found_where_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *act;
        size_t count;
        double at[4], jump[4];
    } want[] = {{"gelu", 0, {0}, {0}},
                {"mish:scale=64", 0, {0}, {0}},
                {"relu", 1, {0}, {1}},
                {"elu", 1, {0}, {0}},
                {"selu", 1, {0}, {-0.70739835}},
                {"relu6:scale=2", 2, {0, 3}, {1, -1}},
                {"hard_swish", 2, {-3, 3}, {-0.5, -0.5}},
                {"berlu:eps=0.125", 2, {-0.125, 0.125}, {0}},
                {"berlu:eps=0.125,degree=16", 2, {-0.125, 0.125}, {0}},
                {"smooth(kinks=-2,2; slopes=0,1,0; eps=0.25,0.5; degree=8)", 4, {-2.25, -1.75, 1.5, 2.5}, {0}}};
    for (size_t i = 0; i < COUNT(want); i++) {
        berlu_act *act = act_of(want[i].act);
        subject s = subject_of(act, PARAMS_OWN);
        breaks b;
        breaks_find(&b, &s, 20);
        if (b.count != want[i].count)
            fail_msg("%s: %zu breaks", want[i].act, b.count);
        for (size_t k = 0; k < b.count; k++) {
            assert_true(fabs(b.at[k] - want[i].at[k]) <= 16 * DBL_EPSILON * fabs(want[i].at[k]));
            assert_true(fabs(b.jump[k] - want[i].jump[k]) < 1e-7);
        }
        berlu_act_free(act);
    }
}

static void linearity_has_the_closed_forms_digits(void **state)
{
    (void)state;
    char line[1024];
    row r;
    size_t rows = 0;
    FILE *file = golden_open();
    for (; golden_next(file, "linearity", line, &r); rows++) {
        berlu_act *act = act_of(r.field[1]);
        double scale = number(&r, 2);
        linearity l;
        linearity_find(&l, act, &scale, 1);
        near(&r, l.nonlinear, number(&r, 3), 1e-11, 1e-17); /* absolute: what lies beyond nine deviations */
        berlu_act_free(act);
    }
    fclose(file);
    assert_int_equal(rows, 31 * 5);
}

static double gap_at(const depth *d, int layer, double *q)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->curve[i].layer == layer) {
            *q = d->curve[i].q;
            return d->curve[i].gap;
        }
    fail_msg("no layer %d", layer);
    return NAN;
}

/* A thousand layers take seconds; functions whose path through the code others cover stop at
 * 100. */
static int is_long(const char *act)
{
    return !strstr(act, "eps=1") && !strstr(act, "eps=0.1") && strcmp(act, "prelu") != 0;
}

/* A step has a relative error of some 1e-14, and a thousand of them at most their sum: 1e-11. */
static void correlations_by_depth_have_the_exact_maps_digits(void **state)
{
    (void)state;
    char line[1024], before[64] = "";
    row r;
    depth d = {0};
    size_t rows = 0;
    FILE *file = golden_open();
    for (; golden_next(file, "depth", line, &r); rows++) {
        if (strcmp(before, r.field[1]) != 0) {
            berlu_act *act = act_of(r.field[1]);
            const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = is_long(r.field[1]) ? 1000 : 100};
            assert_int_equal(depth_find(&d, act, &settings), BERLU_OK);
            berlu_act_free(act);
            snprintf(before, sizeof before, "%s", r.field[1]);
        }
        if ((int)number(&r, 2) > 100 && !is_long(r.field[1]))
            continue;
        double q = NAN, gap = gap_at(&d, (int)number(&r, 2), &q), want = number(&r, 3);
        near(&r, gap, want, 1e-11, 0);
        near(&r, q, number(&r, 4), 1e-11, 0);
    }
    fclose(file);
    assert_int_equal(rows, 4 * (4 + 6));
}

static void edges_of_chaos_are_where_the_closed_forms_say(void **state)
{
    (void)state;
    char line[1024];
    row r;
    size_t rows = 0;
    FILE *file = golden_open();
    for (; golden_next(file, "edge", line, &r); rows++) {
        berlu_act *act = act_of(r.field[1]);
        const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = 1};
        depth d;
        assert_int_equal(depth_find(&d, act, &settings), BERLU_OK);
        assert_true(d.edge && fabs(d.chi - 1) < 1e-14);
        near(&r, d.sw2, number(&r, 2), 1e-13, 0);
        near(&r, d.sb2, number(&r, 3), 1e-13, 1e-13);
        near(&r, d.beta_q, number(&r, 4), 1e-12, 0);
        near(&r, d.coefficient, number(&r, 5), 1e-12, 0);
        assert_int_equal(d.exponent, number(&r, 4) == 0 ? 2 : 1);
        berlu_act_free(act);
    }
    fclose(file);
    assert_int_equal(rows, 7);
}

/* A theorem for every alpha other than 1, every width and every degree; and its repair by
 * subtracting f(0). */
static void berlu_has_no_edge_of_chaos_until_it_is_centred(void **state)
{
    (void)state;
    static const char *const published[] = {"berlu",           "berlu:eps=1", "berlu:eps=10", "berlu:eps=0.5,degree=8",
                                            "berlu:alpha=0.5", "smelu"};
    for (size_t i = 0; i < COUNT(published); i++)
        for (double q = 0.1; q < 11; q *= 10) {
            const depth_settings settings = {.q = q, .c0 = 0.5, .layers = 1};
            berlu_act *act = act_of(published[i]), *centred;
            depth d;
            assert_int_equal(depth_find(&d, act, &settings), BERLU_OK);
            assert_true(!d.edge && d.exponent == 0 && d.chi < 1 && d.sb2 == 0 && isnan(d.coefficient));
            assert_int_equal(act_centred(&centred, act), BERLU_OK);
            assert_non_null(centred);
            assert_int_equal(depth_find(&d, centred, &settings), BERLU_OK);
            assert_true(d.edge && d.sb2 > 0 && d.exponent == 1);
            berlu_act_free(act);
            act = centred;
            assert_int_equal(act_centred(&centred, act), BERLU_OK);
            assert_null(centred);
            berlu_act_free(act);
        }
}

/* l* = 9 pi^2 / (2 kappa^2) / beta_q, the depth where the smooth law takes over from that of
 * leaky relu. */
static void the_crossover_is_the_quotient_of_the_two_laws(void **state)
{
    (void)state;
    const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = 1};
    berlu_act *act = act_of("berlu"), *line = act_of("leaky_relu"), *smooth = act_of("gelu");
    depth d, kinked, none;
    assert_int_equal(depth_find(&d, act, &settings), BERLU_OK);
    assert_int_equal(depth_find(&kinked, line, &settings), BERLU_OK);
    assert_int_equal(depth_find(&none, smooth, &settings), BERLU_OK);
    assert_true(fabs(d.crossover / (kinked.coefficient / d.beta_q) - 1) < 1e-12);
    assert_true(isnan(kinked.crossover) && isnan(none.crossover));
    berlu_act_free(act), berlu_act_free(line), berlu_act_free(smooth);
}

/* c_0 = 1 stays; for |x| (leaky with alpha = -1) c and -c have the same image; a line keeps
 * every c. */
static void extreme_correlations_follow_their_symmetries(void **state)
{
    (void)state;
    berlu_act *relu = act_of("relu"), *fold = act_of("leaky_relu:alpha=-1"), *line = act_of("leaky_relu:alpha=1");
    depth a, b;
    double q = NAN;
    for (double c = -1; c <= 1; c += 0.25) {
        const depth_settings plus = {.q = 2, .c0 = c, .layers = 1}, minus = {.q = 2, .c0 = -c, .layers = 1};
        assert_int_equal(depth_find(&a, fold, &plus), BERLU_OK);
        assert_int_equal(depth_find(&b, fold, &minus), BERLU_OK);
        assert_true(fabs(gap_at(&a, 1, &q) - gap_at(&b, 1, &q)) < 1e-14);
        assert_int_equal(depth_find(&a, line, &plus), BERLU_OK);
        assert_true(fabs(gap_at(&a, 1, &q) - (1 - c)) < 1e-14);
        assert_int_equal(depth_find(&a, relu, &plus), BERLU_OK);
        double t = acos(c), want = 1 - (sin(t) + (M_PI - t) * cos(t)) / M_PI;
        assert_true(fabs(gap_at(&a, 1, &q) - want) < 1e-14);
    }
    berlu_act_free(relu), berlu_act_free(fold), berlu_act_free(line);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    berlu_act *act = act_of("berlu:eps=0.5");
    depth_settings one = {.q = 1, .c0 = 0.5, .layers = 5, .threads = 1, .width = 100}, three = one;
    three.threads = 3;
    depth a, b;
    assert_int_equal(depth_find(&a, act, &one), BERLU_OK);
    assert_int_equal(depth_find(&b, act, &three), BERLU_OK);
    for (size_t i = 0; i < a.count; i++)
        assert_true(a.curve[i].gap == b.curve[i].gap && a.curve[i].simulated == b.curve[i].simulated);
    berlu_act_free(act);
}

/* The correlation of a wide layer's two outputs scatters by about 1 / sqrt(width), and over
 * three layers by less than twice that. */
static void a_wide_network_follows_the_theory(void **state)
{
    (void)state;
    enum { WIDTH = 3000 };
    static const char *const acts[] = {"relu", "gelu", "berlu:eps=1"};
    for (size_t i = 0; i < COUNT(acts); i++) {
        berlu_act *act = act_of(acts[i]);
        const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = 3, .width = WIDTH, .seed = 1};
        depth d;
        assert_int_equal(depth_find(&d, act, &settings), BERLU_OK);
        assert_int_equal(d.count, 3);
        for (size_t k = 0; k < d.count; k++)
            if (!(fabs(d.curve[k].simulated - d.curve[k].gap) < 4 / sqrt(WIDTH)))
                fail_msg("%s layer %zu: %g, theory %g", acts[i], k + 1, d.curve[k].simulated, d.curve[k].gap);
        berlu_act_free(act);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_slope_is_found_without_knowing_it),
        cmocka_unit_test(a_constant_that_no_slope_attains_is_a_supremum),
        cmocka_unit_test(found_and_stated_constants_agree_for_every_activation),
        cmocka_unit_test(the_papers_figures_are_judged),
        cmocka_unit_test(breaks_are_found_where_they_are),
        cmocka_unit_test(linearity_has_the_closed_forms_digits),
        cmocka_unit_test(correlations_by_depth_have_the_exact_maps_digits),
        cmocka_unit_test(edges_of_chaos_are_where_the_closed_forms_say),
        cmocka_unit_test(berlu_has_no_edge_of_chaos_until_it_is_centred),
        cmocka_unit_test(the_crossover_is_the_quotient_of_the_two_laws),
        cmocka_unit_test(extreme_correlations_follow_their_symmetries),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(a_wide_network_follows_the_theory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
