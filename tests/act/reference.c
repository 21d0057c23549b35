/* reference.c - see reference.h. SPDX-License-Identifier: MIT
 *
 * Each function is written from its definition, independently of the library. The derivative is a
 * central difference with a step of 2^-250 in 600 bits: exact to far more than a double, and no
 * second set of formulas to get wrong. Where the second derivative jumps (degree 2, eps = 2^-60) it
 * is off by less than 2^-190, far below the subnormals. */
#include "act/reference.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct setting {
    const char *name;
    double param[BERLU_ACT_PARAMS];
    int degree;
} setting;

static setting setting_of(const berlu_act *act)
{
    setting s = {.name = berlu_act_name(act)};
    size_t params = berlu_act_param_count(act);
    for (size_t i = 0; i < params + berlu_act_setting_count(act); i++) {
        berlu_act_param_info info;
        berlu_act_param(act, i, &info);
        if (i < params)
            s.param[i] = (double)(float)info.value; /* as the kernels have it */
        else
            s.degree = (int)info.value;
    }
    return s;
}

double reference_slope_absolute(const berlu_act *act)
{
    static const char *const names[] = {"gelu", "gelu_tanh", "silu", "quick_gelu", "mish", "hard_swish"};
    setting s = setting_of(act);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(s.name, names[i]) == 0)
            return 2;
    return strcmp(s.name, "berlu") == 0 && s.param[0] < 0 ? berlu_act_slope_ulp(act) * berlu_act_lipschitz(act) : 0;
}

double reference_unit(double size)
{
    uint64_t bits;
    double power = fabs(size) > 0x1p-126 ? size : 0x1p-126;
    memcpy(&bits, &power, sizeof bits);
    bits &= (uint64_t)0x7ff << 52;
    memcpy(&power, &bits, sizeof power);
    return power * 0x1p-23;
}

static double clamped(double y)
{
    return y > 0x1p128 ? 0x1p128 : y < -0x1p128 ? -0x1p128 : y;
}

/* Beyond the largest float everything is 2^128, so that infinity is right where the result
 * overflows. */
double reference_ulps(float got, double want, double unit)
{
    if ((double)got == want)
        return 0;
    double most = fabs(unit) < 0x1p127 ? unit : 0x1p127, off = fabs(clamped((double)got) - clamped(want));
    return isnan(off) ? INFINITY : off / reference_unit(most);
}

#ifdef REFERENCE_NO_MPFR /* no function is known here */
int reference_exists(void)
{
    return 0;
}

int reference_value(const berlu_act *act, double x, double *out)
{
    (void)act, (void)x, (void)out;
    return 0;
}

int reference_slope(const berlu_act *act, double x, double *out)
{
    (void)act, (void)x, (void)out;
    return 0;
}
#else
#include <mpfr.h>

enum { BITS = 600, STEP = 250 };

typedef void function(mpfr_t y, mpfr_t x, const setting *s);

static void gelu(mpfr_t y, mpfr_t x, const setting *s) /* x erfc(-x / sqrt 2) / 2 */
{
    (void)s;
    mpfr_sqrt_ui(y, 2, MPFR_RNDN);
    mpfr_div(y, x, y, MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_erfc(y, y, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
}

static void logistic_times(mpfr_t y, mpfr_t x, mpfr_t z) /* x / (1 + e^-z) */
{
    mpfr_neg(y, z, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_div(y, x, y, MPFR_RNDN);
}

static void silu(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    logistic_times(y, x, x);
}

static void quick_gelu(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_t w;
    mpfr_init2(w, BITS);
    mpfr_set_str(w, "1.702", 10, MPFR_RNDN);
    mpfr_mul(w, w, x, MPFR_RNDN);
    logistic_times(y, x, w);
    mpfr_clear(w);
}

static void sigmoid(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_t one;
    mpfr_init2(one, BITS);
    mpfr_set_ui(one, 1, MPFR_RNDN);
    logistic_times(y, one, x);
    mpfr_clear(one);
}

static void softplus(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_abs(y, x, MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_log1p(y, y, MPFR_RNDN);
    if (mpfr_sgn(x) > 0)
        mpfr_add(y, y, x, MPFR_RNDN);
}

static void hyperbolic(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_tanh(y, x, MPFR_RNDN);
}

static void relu2(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    if (mpfr_sgn(x) < 0)
        mpfr_set_ui(y, 0, MPFR_RNDN);
    else
        mpfr_sqr(y, x, MPFR_RNDN);
}

static void gelu_tanh(mpfr_t y, mpfr_t x, const setting *s) /* tanh(u) = 2 / (1 + e^-2u) - 1 */
{
    (void)s;
    mpfr_t z, c;
    mpfr_inits2(BITS, z, c, (mpfr_ptr)0);
    mpfr_sqr(z, x, MPFR_RNDN);
    mpfr_set_str(c, "0.044715", 10, MPFR_RNDN);
    mpfr_mul(z, z, c, MPFR_RNDN);
    mpfr_add_ui(z, z, 1, MPFR_RNDN);
    mpfr_mul(z, z, x, MPFR_RNDN);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_ui_div(c, 8, c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN); /* 2 sqrt(2 / pi) */
    mpfr_mul(z, z, c, MPFR_RNDN);
    logistic_times(y, x, z);
    mpfr_clears(z, c, (mpfr_ptr)0);
}

static void mish(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_exp(y, x, MPFR_RNDN);
    mpfr_log1p(y, y, MPFR_RNDN);
    mpfr_tanh(y, y, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
}

static void exponential(mpfr_t y, mpfr_t x, double scale, double width) /* x > 0 ? x : scale expm1(x / width) */
{
    if (mpfr_sgn(x) > 0) {
        mpfr_set(y, x, MPFR_RNDN);
        return;
    }
    mpfr_div_d(y, x, width, MPFR_RNDN);
    mpfr_expm1(y, y, MPFR_RNDN);
    mpfr_mul_d(y, y, scale, MPFR_RNDN);
}

static void elu(mpfr_t y, mpfr_t x, const setting *s)
{
    exponential(y, x, s->param[0], 1);
}

static void celu(mpfr_t y, mpfr_t x, const setting *s)
{
    exponential(y, x, s->param[0], s->param[0]);
}

static void selu(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_t c;
    mpfr_init2(c, BITS);
    exponential(y, x, 1, 1);
    mpfr_set_str(c, "1.6732632423543772848170429916717", 10, MPFR_RNDN);
    if (mpfr_sgn(x) <= 0)
        mpfr_mul(y, y, c, MPFR_RNDN);
    mpfr_set_str(c, "1.0507009873554804934193349852946", 10, MPFR_RNDN);
    mpfr_mul(y, y, c, MPFR_RNDN);
    mpfr_clear(c);
}

static void hard_swish(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_add_ui(y, x, 3, MPFR_RNDN);
    if (mpfr_sgn(y) < 0)
        mpfr_set_zero(y, 1);
    if (mpfr_cmp_ui(y, 6) > 0)
        mpfr_set_ui(y, 6, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    mpfr_div_ui(y, y, 6, MPFR_RNDN);
}

static void hard_sigmoid(mpfr_t y, mpfr_t x, const setting *s)
{
    (void)s;
    mpfr_add_ui(y, x, 3, MPFR_RNDN);
    mpfr_div_ui(y, y, 6, MPFR_RNDN);
    if (mpfr_sgn(y) < 0)
        mpfr_set_zero(y, 1);
    if (mpfr_cmp_ui(y, 1) > 0)
        mpfr_set_ui(y, 1, MPFR_RNDN);
}

/* The Bernstein polynomial of the kinked line on [-eps, eps], from its definition, all weights
 * positive. */
static void bernstein(mpfr_t y, mpfr_t x, double alpha, double eps, int n)
{
    mpfr_t t, u, term, part;
    mpfr_inits2(BITS, t, u, term, part, (mpfr_ptr)0);
    mpfr_div_d(t, x, eps, MPFR_RNDN);
    mpfr_add_ui(t, t, 1, MPFR_RNDN);
    mpfr_div_ui(t, t, 2, MPFR_RNDN);
    mpfr_ui_sub(u, 1, t, MPFR_RNDN);
    mpfr_set_zero(y, 1);
    for (int k = 0; k <= n; k++) {
        double node = (2.0 * k - n) / n; /* exact only up to a double: made exact below */
        mpfr_set_ui(term, 1, MPFR_RNDN);
        for (int i = 1; i <= k; i++) {
            mpfr_mul_ui(term, term, (unsigned)(n - k + i), MPFR_RNDN);
            mpfr_div_ui(term, term, (unsigned)i, MPFR_RNDN);
            mpfr_mul(term, term, t, MPFR_RNDN);
        }
        mpfr_pow_ui(part, u, (unsigned)(n - k), MPFR_RNDN);
        mpfr_mul(term, term, part, MPFR_RNDN);
        mpfr_set_si(part, 2 * k - n, MPFR_RNDN);
        mpfr_div_si(part, part, n, MPFR_RNDN);
        mpfr_mul_d(part, part, eps, MPFR_RNDN);
        mpfr_mul_d(part, part, node < 0 ? alpha : 1, MPFR_RNDN);
        mpfr_fma(y, term, part, y, MPFR_RNDN);
    }
    mpfr_clears(t, u, term, part, (mpfr_ptr)0);
}

static void knee(mpfr_t y, mpfr_t x, double alpha, double eps, int degree)
{
    if (mpfr_cmpabs(x, (mpfr_set_d(y, eps, MPFR_RNDN), y)) < 0)
        bernstein(y, x, alpha, eps, degree);
    else
        mpfr_mul_d(y, x, mpfr_sgn(x) < 0 ? alpha : 1, MPFR_RNDN);
}

static void berlu(mpfr_t y, mpfr_t x, const setting *s)
{
    knee(y, x, s->param[0], s->param[1], s->degree);
}

static void smelu(mpfr_t y, mpfr_t x, const setting *s)
{
    knee(y, x, 0, s->param[0], 2);
}

static const struct known {
    const char *name;
    function *f;
} table[] = {{"gelu", gelu},
             {"gelu_tanh", gelu_tanh},
             {"silu", silu},
             {"quick_gelu", quick_gelu},
             {"softplus", softplus},
             {"sigmoid", sigmoid},
             {"tanh", hyperbolic},
             {"relu2", relu2},
             {"mish", mish},
             {"elu", elu},
             {"celu", celu},
             {"selu", selu},
             {"hard_swish", hard_swish},
             {"hard_sigmoid", hard_sigmoid},
             {"berlu", berlu},
             {"smelu", smelu}};

static function *find(const berlu_act *act, setting *s)
{
    *s = setting_of(act);
    if (strstr(berlu_act_spec(act), "scale=") || strstr(berlu_act_spec(act), "center="))
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, s->name) == 0)
            return table[i].f;
    return NULL;
}

int reference_exists(void)
{
    return 1;
}

int reference_value(const berlu_act *act, double x, double *out)
{
    setting s;
    function *f = find(act, &s);
    if (!f)
        return 0;
    mpfr_t a, b;
    mpfr_inits2(BITS, a, b, (mpfr_ptr)0);
    mpfr_set_d(a, x, MPFR_RNDN);
    f(b, a, &s);
    *out = mpfr_get_d(b, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
    return 1;
}

static int is_kink(const char *name, double x)
{
    if (strcmp(name, "elu") == 0 || strcmp(name, "selu") == 0)
        return x == 0;
    return (strcmp(name, "hard_swish") == 0 || strcmp(name, "hard_sigmoid") == 0) && fabs(x) == 3;
}

int reference_slope(const berlu_act *act, double x, double *out)
{
    setting s;
    function *f = find(act, &s);
    if (!f || is_kink(s.name, x))
        return 0;
    mpfr_t a, h, left, right;
    mpfr_inits2(BITS, a, h, left, right, (mpfr_ptr)0);
    mpfr_set_ui_2exp(h, 1, -STEP, MPFR_RNDN);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_sub(a, a, h, MPFR_RNDN);
    f(left, a, &s);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_add(a, a, h, MPFR_RNDN);
    f(right, a, &s);
    mpfr_sub(a, right, left, MPFR_RNDN);
    mpfr_mul_2si(a, a, STEP - 1, MPFR_RNDN);
    *out = mpfr_get_d(a, MPFR_RNDN);
    mpfr_clears(a, h, left, right, (mpfr_ptr)0);
    return 1;
}
#endif
