/* test_accuracy.c - the kernels hold the bounds that the header states.
 * SPDX-License-Identifier: MIT
 *
 * The first reference is the library's own double version; where a result comes near its bound, and
 * at regular intervals anyway, multiple precision decides (reference.h), and the double version
 * must agree with it. The bounds are read from the activation, none is written here but the
 * absolute one near zeros of derivatives. All floats are tried by `make test-exhaustive`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "act/inputs.h"
#include "act/reference.h"
#include "base/half.h"

enum { COUNT_F32 = 1 << 16 };

static float x[COUNT_F32], y[COUNT_F32];
static _Alignas(64) uint16_t x16[65536], y16[65536];

static int run(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, void *out, const void *in, size_t n)
{
    berlu_act_call call = {.dtype = dtype, .rows = n, .channels = 1, .x = in, .y = out};
    return berlu_act_run(act, op, &call, NULL) == BERLU_OK;
}

static int is_knee(const berlu_act *act)
{
    return strcmp(berlu_act_name(act), "berlu") == 0 || strcmp(berlu_act_name(act), "smelu") == 0;
}

/* The unit of a value's error: its own ULP; for a knee, which crosses zero, that of the larger of
 * line and bump. */
static double value_unit(const berlu_act *act, double at, double value)
{
    if (!is_knee(act))
        return value;
    berlu_act_param_info info;
    berlu_act_param(act, 0, &info);
    double alpha = strcmp(berlu_act_name(act), "smelu") == 0 ? 0 : (double)(float)info.value,
           line = at < 0 ? alpha * at : at;
    return fmax(fabs(line), fabs(value - line));
}

static void fail_at(const berlu_act *act, const char *what, float at, float got, double want, double ulps)
{
    fail_msg("%s %s(%a = %.9g) = %.9g instead of %.17g: %.3f ULP", berlu_act_spec(act), what, (double)at, (double)at,
             (double)got, want, ulps);
}

/* Results that are not normal numbers may lose digits, but at most one unit of the subnormals. */
static double bound_at(double bound, double want)
{
    return fabs(want) < 0x1p-126 ? fmax(bound, 1) : bound;
}

/* The double version and multiple precision are both right to many more digits than f32 has; one
 * that is far off is a failure, not a reason to skip. `absolute` is for zeros of the function,
 * 2^-170 for numbers below those of f32. */
static void expect_agreement(const berlu_act *act, const char *what, float at, double by_double, double exact,
                             double absolute)
{
    if (!(fabs(by_double - exact) <= 0x1p-40 * fabs(exact) + absolute + 0x1p-170))
        fail_msg("%s %s(%a): double gives %.17g, multiple precision %.17g", berlu_act_spec(act), what, (double)at,
                 by_double, exact);
}

static int is_plain(const char *spec)
{
    return !strstr(spec, "scale=") && !strstr(spec, "center=");
}

static void values_hold_their_bound_on_all_strata(void **state)
{
    (void)state;
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        double worst = 0, bound = berlu_act_ulp(act);
        float worst_at = 0;
        inputs_fill(x, COUNT_F32, BERLU_F32, act, (uint32_t)s + 1);
        assert_true(run(act, BERLU_ACT_FORWARD, BERLU_F32, y, x, COUNT_F32));
        for (size_t i = 0; i < COUNT_F32 && is_plain(inputs_spec(s)); i++) {
            double want = inputs_at(act, (double)x[i]).value;
            if (!isfinite(x[i]) || fabs(want) > 0x1.fffffefp127)
                continue; /* test_special.c */
            double unit = value_unit(act, (double)x[i], want), ulps = reference_ulps(y[i], want, unit);
            double exact;
            if ((ulps > 0.9 * bound || i % 509 == 0) && reference_value(act, (double)x[i], &exact)) {
                expect_agreement(act, "f", x[i], want, exact, 0x1p-50 * fabs(unit));
                ulps = reference_ulps(y[i], exact, unit);
            }
            if (ulps > worst) {
                worst = ulps;
                worst_at = x[i];
            }
            if (ulps > bound_at(bound, unit))
                fail_at(act, "f", x[i], y[i], want, ulps);
        }
        print_message("%-42s f  %5.3f of %g ULP at %.9g\n", inputs_spec(s), worst, bound, (double)worst_at);
        berlu_act_free(act);
    }
}

static void slopes_hold_their_bound_or_the_absolute_one_near_zeros(void **state)
{
    (void)state;
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        double worst = 0, bound = berlu_act_slope_ulp(act);
        double zeros = reference_slope_absolute(act);
        float worst_at = 0;
        inputs_fill(x, COUNT_F32, BERLU_F32, act, (uint32_t)s + 1);
        assert_true(run(act, BERLU_ACT_SLOPE, BERLU_F32, y, x, COUNT_F32));
        for (size_t i = 0; i < COUNT_F32 && is_plain(inputs_spec(s)); i++) {
            if (!isfinite(x[i]))
                continue;
            double want = inputs_at(act, (double)x[i]).slope, ulps = reference_ulps(y[i], want, want), exact;
            if ((ulps > 0.9 * bound || i % 509 == 0) && reference_slope(act, (double)x[i], &exact)) {
                expect_agreement(act, "f'", x[i], want, exact, zeros > 0 ? 0x1p-50 : 0);
                want = exact;
                ulps = reference_ulps(y[i], want, want);
            }
            if (fabsf(x[i]) < 2.5f && ulps > bound && fabs((double)y[i] - want) <= zeros * 0x1p-24)
                continue; /* near a zero of the derivative; all of them lie there, the tails do not */
            if (ulps > worst) {
                worst = ulps;
                worst_at = x[i];
            }
            if (ulps > bound_at(bound, want))
                fail_at(act, "f'", x[i], y[i], want, ulps);
        }
        print_message("%-42s f' %5.3f of %g ULP at %.9g\n", inputs_spec(s), worst, bound, (double)worst_at);
        berlu_act_free(act);
    }
}

/* The bound of act.h for g(x) = (f(k x) - f(0)) / k: k x is rounded, f twice within its bound,
 * difference and quotient. */
static void scaled_and_centred_values_hold_their_absolute_bound(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *plain;
        double k;
        int center;
    } cases[] = {{"berlu:eps=1,center=1", "berlu:eps=1", 1, 1},
                 {"berlu:alpha=0.1,eps=1,scale=3,center=1", "berlu:alpha=0.1,eps=1", 3, 1},
                 {"hard_sigmoid:center=1", "hard_sigmoid", 1, 1},
                 {"silu:scale=0.3", "silu", 0.3f, 0},
                 {"gelu:scale=8", "gelu", 8, 0},
                 {"silu:scale=0x1p40", "silu", 0x1p40, 0},
                 {"tanh:scale=0x1p-110", "tanh", 0x1p-110, 0}, /* most k x are subnormal */
                 {"gelu:scale=-0x1p-130,center=1", "gelu", -0x1p-130, 1}};
    for (size_t s = 0; s < sizeof cases / sizeof *cases; s++) {
        berlu_act *act, *plain;
        double k = cases[s].k, worst = 0;
        assert_int_equal(berlu_act_make(&act, cases[s].spec), BERLU_OK);
        assert_int_equal(berlu_act_make(&plain, cases[s].plain), BERLU_OK);
        double zero = cases[s].center ? inputs_at(plain, 0).value : 0;
        inputs_fill(x, COUNT_F32, BERLU_F32, act, (uint32_t)s + 1);
        assert_true(run(act, BERLU_ACT_FORWARD, BERLU_F32, y, x, COUNT_F32));
        for (size_t i = 0; i < COUNT_F32; i++) {
            double z = k * (double)x[i], want = inputs_at(act, (double)x[i]).value;
            if (!isfinite(x[i]) || fabs(z) > 0x1.fffffefp127)
                continue; /* k x overflows: the limit of f */
            double f = fabs(value_unit(plain, z, inputs_at(plain, z).value)) + fabs(zero);
            double ulp = berlu_act_ulp(plain), steepest = berlu_act_lipschitz(plain);
            double bound = ((2 * ulp + 2) * f + steepest * fabs(z)) * 0x1p-24 / fabs(k);
            bound += (ulp + steepest) * 0x1p-149 / fabs(k) + 0x1p-150;
            worst = fmax(worst, fabs((double)y[i] - want) / bound);
            if (!(fabs((double)y[i] - want) <= bound))
                fail_msg("%s: f(%a) = %.9g instead of %.17g", cases[s].spec, (double)x[i], (double)y[i], want);
        }
        print_message("%-42s f  %5.3f of the absolute bound\n", cases[s].spec, worst);
        berlu_act_free(act);
        berlu_act_free(plain);
    }
}

/* BerLU multiplies up to degree / 2 factors w, each with 5 roundings behind it: 6 per factor and 2
 * around them. */
static double degree_roundings(const berlu_act *act)
{
    berlu_act_param_info info = {.value = 0};
    if (berlu_act_setting_count(act))
        berlu_act_param(act, berlu_act_param_count(act), &info);
    return 3 * info.value + 2;
}

/* Second derivatives and parameter derivatives feed sums and plots: 2^-20 of the largest or of
 * themselves is enough. */
static void second_derivatives_and_parameter_slopes_agree_with_double(void **state)
{
    (void)state;
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        double near = is_plain(inputs_spec(s)) ? 0x1p-20 : 0x1p-16; /* f(k x): k x is rounded, and f amplifies that */
        near = fmax(near, degree_roundings(act) * 0x1p-24);
        inputs_finite(x, COUNT_F32 / 4, act, (uint32_t)s + 1);
        for (int p = -1; p < (int)berlu_act_param_count(act); p++) {
            berlu_act_call call = {.rows = COUNT_F32 / 4, .channels = 1, .x = x, .y = y, .param_index = p};
            assert_int_equal(berlu_act_run(act, p < 0 ? BERLU_ACT_SECOND : BERLU_ACT_PARAM_SLOPE, &call, NULL),
                             BERLU_OK);
            for (size_t i = 0; i < COUNT_F32 / 4; i++) {
                berlu_act_point at = inputs_at(act, (double)x[i]);
                double want = p < 0 ? at.second : at.param[p];
                if (!(fabs((double)y[i] - want) <= near * fmax(fabs(want), 0x1p-3)))
                    fail_at(act, p < 0 ? "f''" : "df/dp", x[i], y[i], want, reference_ulps(y[i], want, want));
            }
        }
        berlu_act_free(act);
    }
}

static double ulps16(uint16_t got, double want, berlu_dtype dtype)
{
    int exponent, digits = dtype == BERLU_BF16 ? 8 : 11, least = dtype == BERLU_BF16 ? -126 : -14;
    double value = (double)(dtype == BERLU_BF16 ? bf16_to_f32(got) : f16_to_f32(got));
    frexp(want, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    return fabs(value - want) / ldexp(1, exponent - digits + 1);
}

static void all_16_bit_inputs_are_within_0_52_ulp(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++)
        x16[i] = (uint16_t)i;
    for (size_t s = 0; berlu_act_builtin(s); s++)
        for (int dtype = BERLU_BF16; dtype <= BERLU_F16; dtype++) {
            berlu_act *act;
            assert_int_equal(berlu_act_make(&act, berlu_act_builtin(s)), BERLU_OK);
            assert_true(run(act, BERLU_ACT_FORWARD, (berlu_dtype)dtype, y16, x16, 65536));
            for (uint32_t i = 0; i < 65536; i++) {
                float at = dtype == BERLU_BF16 ? bf16_to_f32(x16[i]) : f16_to_f32(x16[i]);
                double want = inputs_at(act, (double)at).value;
                double most = dtype == BERLU_BF16 ? 0x1.ffp127 : 65520; /* from here on infinity is right */
                if (!isfinite(at) || fabs(want) >= most || is_knee(act))
                    continue;
                double ulps = ulps16(y16[i], want, (berlu_dtype)dtype);
                if (ulps > 0.52)
                    fail_msg("%s %s: f(%.9g) = 0x%04x, want %.17g: %.4f ULP", berlu_act_spec(act),
                             berlu_dtype_name((berlu_dtype)dtype), (double)at, y16[i], want, ulps);
            }
            berlu_act_free(act);
        }
}

/* Where a knee crosses zero the bound in ULP of the result cannot hold; the f32 result, rounded
 * once, always does. */
static void sixteen_bit_results_are_the_f32_results_rounded_once(void **state)
{
    (void)state;
    for (size_t s = 0; inputs_spec(s); s++)
        for (int dtype = BERLU_BF16; dtype <= BERLU_F16; dtype++) {
            berlu_act *act;
            assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
            for (uint32_t i = 0; i < 65536; i++) {
                x16[i] = (uint16_t)i;
                x[i] = dtype == BERLU_BF16 ? bf16_to_f32(x16[i]) : f16_to_f32(x16[i]);
            }
            for (int op = BERLU_ACT_FORWARD; op <= BERLU_ACT_SLOPE; op += 3) {
                assert_true(run(act, (berlu_act_op)op, (berlu_dtype)dtype, y16, x16, 65536));
                assert_true(run(act, (berlu_act_op)op, BERLU_F32, y, x, 65536));
                for (uint32_t i = 0; i < 65536; i++) {
                    uint16_t want = dtype == BERLU_BF16 ? bf16_from_f32(y[i]) : f16_from_f32(y[i]);
                    if (!isnan(y[i]))
                        assert_int_equal(y16[i], want);
                }
            }
            berlu_act_free(act);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_hold_their_bound_on_all_strata),
        cmocka_unit_test(slopes_hold_their_bound_or_the_absolute_one_near_zeros),
        cmocka_unit_test(scaled_and_centred_values_hold_their_absolute_bound),
        cmocka_unit_test(second_derivatives_and_parameter_slopes_agree_with_double),
        cmocka_unit_test(all_16_bit_inputs_are_within_0_52_ulp),
        cmocka_unit_test(sixteen_bit_results_are_the_f32_results_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
