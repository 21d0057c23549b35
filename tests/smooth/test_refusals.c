/* test_refusals.c - bad input is refused with a message that names it, and nothing is made.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <berlu/smooth.h>

static void check_refused(const berlu_smooth_spec *spec, const char *words)
{
    berlu_smooth *f = (berlu_smooth *)&f;
    assert_int_equal(berlu_smooth_make(&f, spec), BERLU_ERR_ARG);
    assert_null(f);
    if (!strstr(berlu_last_error(), words))
        fail_msg("'%s' not in '%s'", words, berlu_last_error());
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    double kinks[] = {0, 1}, slopes[] = {0, 1, 0}, eps[] = {0.1};
    const berlu_smooth_spec good = {2, kinks, slopes, 0, 0, eps, 1, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make(&f, &good), BERLU_OK);
    berlu_smooth_free(f);

    berlu_smooth_spec spec = good;
    const int degrees[] = {-1, 0, 1, 17, 1000};
    for (size_t i = 0; i < 5; i++) {
        spec.degree = degrees[i];
        check_refused(&spec, "it must be 2 to 16");
    }
    spec = good;
    const double bad_eps[] = {0, -0.0, -0.1, NAN, INFINITY, 0x1p-61, 0x1p61, 5e-324};
    for (size_t i = 0; i < 8; i++) {
        eps[0] = bad_eps[i];
        check_refused(&spec, "it must be in [2^-60, 2^60]");
        double good_eps[] = {0.1};
        spec.eps = good_eps;
        spec.eps_right = eps;
        check_refused(&spec, "eps_right");
        spec = good;
    }
    eps[0] = 0.1;
    slopes[1] = NAN;
    check_refused(&good, "slope 2 is nan");
    slopes[1] = INFINITY;
    check_refused(&good, "slope 2 is inf");
    slopes[1] = 1;
    kinks[1] = -INFINITY;
    check_refused(&good, "kink 2 is -inf");
    kinks[1] = 0;
    check_refused(&good, "must increase");
    kinks[1] = -1;
    check_refused(&good, "-1 comes after 0");
    kinks[1] = 1;
    spec.at_y = NAN;
    check_refused(&spec, "at is 0=nan");
    spec = good;
    spec.form = (berlu_smooth_form)7;
    check_refused(&spec, "no form 7");
    spec = good;
    spec.form = BERLU_SMOOTH_COLLINEAR;
    check_refused(&spec, "needs an odd one");
}

static void counts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    double kinks[] = {0, 1, 2}, slopes[] = {0, 1, 0, 1}, eps[] = {0.1, 0.1};
    berlu_smooth_spec spec = {3, kinks, slopes, 0, 0, eps, 2, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    check_refused(&spec, "eps: 2 given; give one, or one per kink: 3");
    spec.kink_count = (size_t)-1;
    check_refused(&spec, "at most 4096");
}

static void transitions_that_overlap_are_refused_with_the_eps_that_fits(void **state)
{
    (void)state;
    double kinks[] = {0, 1}, slopes[] = {0, 1, 0}, eps[] = {0.6, 0.5}, right[] = {0.6, 0.1};
    berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, eps, 2, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    check_refused(&spec, "0.6 + 0.5 is more than their distance 1; eps = 0.5 would fit");
    eps[0] = 0.1;
    spec.eps_right = right;
    check_refused(&spec, "overlap");
    kinks[0] = 1e9;
    kinks[1] = 2e9;
    eps[0] = eps[1] = 1e-12;
    spec.eps_right = NULL;
    check_refused(&spec, "lost beside the kink");
}

static void values_beyond_double_are_refused(void **state)
{
    (void)state;
    double kinks[] = {1e300}, slopes[] = {1e300, 0}, eps[] = {0x1p60};
    berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, eps, 1, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    check_refused(&spec, "lost beside");
    kinks[0] = 1e17;
    check_refused(&spec, "exceed the range of double");
    slopes[0] = -0.9e308, slopes[1] = 0.8e308, kinks[0] = 0, eps[0] = 1.5; /* the jump times eps alone */
    check_refused(&spec, "exceed the range of double");
    slopes[0] = 1.7e308, slopes[1] = -1.7e308;
    check_refused(&spec, "exceed the range of double");
}

static void null_pointers_are_refused_everywhere(void **state)
{
    (void)state;
    double kinks[] = {0}, slopes[] = {0, 1}, eps[] = {0.1}, x;
    berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, eps, 1, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth_curves curves = {1, kinks, NULL, eps, 1, 2};
    berlu_smooth *const something = (berlu_smooth *)&spec, *f;
    berlu_transition t;
    berlu_piece p;
    char *text;
    assert_int_equal(berlu_smooth_make(NULL, &spec), BERLU_ERR_ARG);
    f = something;
    assert_int_equal(berlu_smooth_make(&f, NULL), BERLU_ERR_ARG);
    assert_null(f);
    spec.kinks = NULL;
    check_refused(&spec, "kinks is NULL");
    spec.kinks = kinks, spec.slopes = NULL;
    check_refused(&spec, "slopes is NULL");
    spec.slopes = slopes, spec.eps = NULL;
    check_refused(&spec, "eps is NULL");
    assert_int_equal(berlu_smooth_make_curves(NULL, &curves), BERLU_ERR_ARG);
    f = something;
    assert_int_equal(berlu_smooth_make_curves(&f, NULL), BERLU_ERR_ARG);
    assert_null(f);
    assert_int_equal(berlu_smooth_make_curves(&f, &curves), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_named(NULL, "relu", NULL, 1, 2), BERLU_ERR_ARG);
    f = something;
    assert_int_equal(berlu_smooth_named(&f, NULL, NULL, 1, 2), BERLU_ERR_ARG);
    assert_null(f);
    f = something;
    assert_int_equal(berlu_smooth_parse(&f, NULL), BERLU_ERR_ARG);
    assert_null(f);
    assert_int_equal(berlu_smooth_parse(NULL, "smooth(slopes=1)"), BERLU_ERR_ARG);
    f = something;
    assert_int_equal(berlu_smooth_clone(&f, NULL), BERLU_ERR_ARG);
    assert_null(f);
    assert_true(isnan(berlu_smooth_value(NULL, 0)) && isnan(berlu_smooth_slope(NULL, 0)));
    assert_true(isnan(berlu_smooth_curvature(NULL, 0)) && isnan(berlu_smooth_casteljau(NULL, 0)));
    assert_true(isnan(berlu_smooth_kinked(NULL, 0)) && isnan(berlu_smooth_lipschitz(NULL)));
    assert_true(isnan(berlu_smooth_max_gap(NULL)));
    assert_non_null(strstr(berlu_last_error(), "berlu_smooth_max_gap() was given NULL"));
    assert_int_equal(berlu_smooth_contact_order(NULL), -1);
    assert_int_equal(berlu_smooth_degree(NULL) + berlu_smooth_monotone(NULL), 0);
    assert_int_equal(berlu_smooth_kink_count(NULL) + berlu_smooth_piece_count(NULL), 0);
    assert_int_equal(berlu_smooth_gradient(NULL, 0, &x, &x, &x), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_inverse(NULL, 0, &x), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_transition(NULL, 0, &t), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_piece(NULL, 0, &p), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_source(NULL, "f", &text), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_named(&f, "relu", NULL, 1, 2), BERLU_OK);
    assert_int_equal(berlu_smooth_clone(NULL, f), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_inverse(f, 0, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_transition(f, 0, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_transition(f, 1, &t), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_piece(f, 0, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_source(f, NULL, &text), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_source(f, "f", NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_source(f, "2f", &text), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_source(f, "f-g", &text), BERLU_ERR_ARG);
    text = (char *)&text;
    assert_int_equal(berlu_smooth_source(f, "", &text), BERLU_ERR_ARG);
    assert_null(text);
    berlu_smooth_free(f);
    berlu_smooth_free(NULL);
}

static void unknown_names_and_parameters_are_refused_with_a_hint(void **state)
{
    (void)state;
    berlu_smooth *f;
    double one = 1, minus = -1, nan = NAN;
    assert_int_equal(berlu_smooth_named(&f, "leaky_rely", NULL, 0.1, 2), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "did you mean 'leaky_relu'?"));
    assert_int_equal(berlu_smooth_named(&f, "qqqqqqqqq", NULL, 0.1, 2), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "it has relu, leaky_relu"));
    assert_int_equal(berlu_smooth_named(&f, "relu", &one, 0.1, 2), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "relu has no parameter"));
    assert_int_equal(berlu_smooth_named(&f, "elu", &nan, 0.1, 2), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_named(&f, "soft_shrink", &minus, 0.1, 2), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_named(&f, "elu", NULL, 0.1, 6), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "degrees 2 to 5"));
    assert_int_equal(berlu_smooth_named(&f, "relu6", NULL, 4, 2), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "relu6: "));
    assert_non_null(strstr(berlu_last_error(), "eps = 3 would fit"));
}

static void catalogue_holds_the_functions_it_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double x, y;
    } points[] = {{"relu", 2, 2},          {"relu", -2, 0},          {"leaky_relu", -2, -0.02}, {"prelu", -2, -0.5},
                  {"relu6", 7, 6},         {"relu6", 3, 3},          {"hard_tanh", 2, 1},       {"hard_tanh", -2, -1},
                  {"hard_sigmoid", 4, 1},  {"hard_sigmoid", 0, 0.5}, {"hard_sigmoid", -4, 0},   {"abs", -2, 2},
                  {"soft_shrink", 2, 1.5}, {"soft_shrink", 0, 0},    {"soft_shrink", -2, -1.5}, {"hard_swish", 4, 4},
                  {"hard_swish", -4, 0}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_named(&f, points[i].name, NULL, 0.1, 2), BERLU_OK);
        assert_true(fabs(berlu_smooth_value(f, points[i].x) - points[i].y) <= 4 * 0x1p-53);
        berlu_smooth_free(f);
    }
    assert_null(berlu_smooth_name(10));
}

static void texts_are_read_in_any_order_and_spacing(void **state)
{
    (void)state;
    static const char *const same[] = {
        "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1; degree=4)",
        "  smooth ( degree = 4 ; eps = 0.1,0.1 ; slopes = 0 , 1 , 0 ; kinks = -3 , 3 ; ) ",
        "smooth(kinks=-0x1.8p1,3e0;slopes=0,1,0;eps=1e-1;degree=4;at=0=0;form=bernstein)",
        "smooth(kinks=-3,3;slopes=0,1,0;eps=.1;eps_right=.1;degree=4)",
    };
    for (size_t i = 0; i < 4; i++) {
        berlu_smooth *f;
        if (berlu_smooth_parse(&f, same[i]) != BERLU_OK)
            fail_msg("%s", berlu_last_error());
        assert_int_equal(berlu_smooth_degree(f), 4);
        assert_int_equal(berlu_smooth_kink_count(f), 2);
        assert_true(berlu_smooth_value(f, 5) == 3 && berlu_smooth_value(f, 1.25) == 1.25);
        berlu_smooth_free(f);
    }
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_parse(&f, "smooth(kinks=0; slopes=0.5,1)"), BERLU_OK);
    berlu_transition t;
    assert_int_equal(berlu_smooth_transition(f, 0, &t), BERLU_OK);
    assert_true(t.eps_left == 0.01 && t.degree == 2 && t.y == 0);
    berlu_smooth_free(f);
    assert_int_equal(berlu_smooth_parse(&f, "smooth(slopes=2; at=1=5)"), BERLU_OK);
    assert_true(berlu_smooth_value(f, 2) == 7);
    berlu_smooth_free(f);
    assert_int_equal(berlu_smooth_parse(&f, "smooth(kinks=0;slopes=0,1;eps=1;eps_right=1.5;degree=5;form=collinear)"),
                     BERLU_OK);
    assert_int_equal(berlu_smooth_contact_order(f), 2);
    berlu_smooth_free(f);
}

static void malformed_texts_are_refused_by_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "not of the form smooth("},
        {"smooth", "not of the form smooth("},
        {"smooth(", "not of the form smooth("},
        {"smooth()", "slopes are missing"},
        {"smooth)(", "not of the form smooth("},
        {"relu", "'relu' is not of the form"},
        {"smooth(kinks)", "'kinks' is not of the form key=value"},
        {"smooth(;slopes=1)", "not of the form key=value"},
        {"smooth(kink=0; slopes=0,1)", "did you mean 'kinks'?"},
        {"smooth(colour=red; slopes=0,1)", "unknown key 'colour'"},
        {"smooth(kinks=0; kinks=1; slopes=0,1)", "kinks is given twice"},
        {"smooth(kinks=0,1; slopes=0,1)", "slopes: 2 given, 3 needed"},
        {"smooth(kinks=0; slopes=1)", "slopes: 1 given, 2 needed"},
        {"smooth(kinks=0; slopes=0,)", "slopes: a number is missing"},
        {"smooth(kinks=zero; slopes=0,1)", "kinks: 'zero' is no number"},
        {"smooth(kinks=0 1; slopes=0,1)", "kinks: '0 1' is no number"},
        {"smooth(kinks=nan; slopes=0,1)", "kink 1 is nan"},
        {"smooth(kinks=0; slopes=0,inf)", "slope 2 is inf"},
        {"smooth(kinks=0; slopes=0,1; degree=2.5)", "degree is '2.5'"},
        {"smooth(kinks=0; slopes=0,1; degree=99999999999)", "whole number from 2 to 16"},
        {"smooth(kinks=0; slopes=0,1; degree=nan)", "whole number from 2 to 16"},
        {"smooth(kinks=0; slopes=0,1; at=3)", "at: '3' is not of the form x=y"},
        {"smooth(kinks=0; slopes=0,1; at=3=)", "at: a number is missing"},
        {"smooth(kinks=0; slopes=0,1; at=0=inf)", "at is 0=inf"},
        {"smooth(kinks=0; slopes=0,1; form=cubic)", "bernstein or collinear"},
        {"smooth(kinks=0; slopes=0,1; eps=-1)", "eps is -1"},
        {"smooth(kinks=0,9; slopes=0,1,0; eps=1,1; eps_right=1)", "give as many of both"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        berlu_smooth *f = (berlu_smooth *)&f;
        assert_int_equal(berlu_smooth_parse(&f, cases[i].text), BERLU_ERR_ARG);
        assert_null(f);
        if (!strstr(berlu_last_error(), cases[i].words))
            fail_msg("'%s' not in '%s'", cases[i].words, berlu_last_error());
    }
    size_t size = (1 << 20) + 2;
    char *large = calloc(1, size);
    assert_non_null(large);
    memset(large, ',', size - 1);
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_parse(&f, large), BERLU_ERR_ARG);
    memcpy(large, "smooth(kinks=", 13);
    memcpy(large + 9000, ")", 2);
    assert_int_equal(berlu_smooth_parse(&f, large), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "at most 4096 kinks"));
    free(large);
}

static void names_of_a_registry_are_found_and_kept_apart(void **state)
{
    (void)state;
    berlu_registry *r;
    berlu_smooth *f, *g;
    assert_int_equal(berlu_registry_make(&r), BERLU_OK);
    assert_null(berlu_registry_name(r, 0));
    assert_int_equal(berlu_smooth_named(&f, "relu6", NULL, 0.5, 4), BERLU_OK);
    assert_int_equal(berlu_smooth_named(&g, "abs", NULL, 0.5, 4), BERLU_OK);
    assert_int_equal(berlu_registry_add(r, "soft6", f), BERLU_OK);
    assert_int_equal(berlu_registry_add(r, "my_abs", g), BERLU_OK);
    berlu_smooth_free(f); /* the registry has its own copy */
    assert_int_equal(berlu_registry_add(r, "soft6", g), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "'soft6' is taken"));
    berlu_smooth_free(g);
    assert_true(berlu_smooth_value(berlu_registry_find(r, "soft6"), 9) == 6);
    assert_true(berlu_smooth_value(berlu_registry_find(r, "my_abs"), -9) == 9);
    assert_null(berlu_registry_find(r, "soft"));
    assert_string_equal(berlu_registry_name(r, 0), "soft6");
    assert_string_equal(berlu_registry_name(r, 1), "my_abs");
    assert_null(berlu_registry_name(r, 2));

    const berlu_smooth *known = berlu_registry_find(r, "soft6");
    char long_name[80];
    memset(long_name, 'a', sizeof long_name);
    long_name[64] = '\0';
    const char *const bad[] = {"", "6a", "a-b", "a b", "_a", "a:b", "\xc3\xa4", long_name};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(berlu_registry_add(r, bad[i], known), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "is no name"));
    }
    const char *const taken[] = {"relu", "berlu", "hard_swish", "smooth"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(berlu_registry_add(r, taken[i], known), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), i < 3 ? "is a built-in activation" : "is a reserved word"));
    }
    long_name[63] = '\0';
    assert_int_equal(berlu_registry_add(r, long_name, known), BERLU_OK);
    assert_int_equal(berlu_registry_add(NULL, "a", known), BERLU_ERR_ARG);
    assert_int_equal(berlu_registry_add(r, NULL, known), BERLU_ERR_ARG);
    assert_int_equal(berlu_registry_add(r, "a", NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_registry_make(NULL), BERLU_ERR_ARG);
    assert_null(berlu_registry_find(NULL, "a"));
    assert_null(berlu_registry_find(r, NULL));
    assert_null(berlu_registry_name(NULL, 0));
    berlu_registry_free(r);
    berlu_registry_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(counts_that_do_not_fit_are_refused),
        cmocka_unit_test(transitions_that_overlap_are_refused_with_the_eps_that_fits),
        cmocka_unit_test(values_beyond_double_are_refused),
        cmocka_unit_test(null_pointers_are_refused_everywhere),
        cmocka_unit_test(unknown_names_and_parameters_are_refused_with_a_hint),
        cmocka_unit_test(catalogue_holds_the_functions_it_names),
        cmocka_unit_test(texts_are_read_in_any_order_and_spacing),
        cmocka_unit_test(malformed_texts_are_refused_by_what_is_wrong),
        cmocka_unit_test(names_of_a_registry_are_found_and_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
