/* peers_sleef.h - activations over SLEEF's 1-ULP functions; peers.c includes it once per vector
 * width. SPDX-License-Identifier: MIT
 *
 * The including file defines the vector type `wide`, WIDE_LANES, WIDE_FN (how a function begins),
 * and by name an operation, a function of SLEEF, a loop and a compare-select. */
extern wide WIDE_SLEEF(erff)(wide), WIDE_SLEEF(expf)(wide), WIDE_SLEEF(expm1f)(wide);

WIDE_FN void WIDE_LOOP(sleef_gelu)(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), e = WIDE_SLEEF(erff)(WIDE_OP(mul)(a, WIDE_OP(set1)(0.70710678f)));
        wide half = WIDE_OP(mul)(a, WIDE_OP(set1)(0.5f));
        WIDE_OP(storeu)(out + i, WIDE_OP(fmadd)(half, e, half));
    }
}

WIDE_FN void WIDE_LOOP(sleef_gelu_back)(float *out, const float *in, const float *g, size_t size)
{
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), half = WIDE_OP(set1)(0.5f);
        wide e = WIDE_SLEEF(erff)(WIDE_OP(mul)(a, WIDE_OP(set1)(0.70710678f)));
        wide bell = WIDE_SLEEF(expf)(WIDE_OP(mul)(WIDE_OP(mul)(a, a), WIDE_OP(set1)(-0.5f)));
        wide line = WIDE_OP(fmadd)(half, e, half);
        wide slope = WIDE_OP(fmadd)(WIDE_OP(mul)(a, WIDE_OP(set1)(0.39894228f)), bell, line);
        WIDE_OP(storeu)(out + i, WIDE_OP(mul)(WIDE_OP(loadu)(g + i), slope));
    }
}

WIDE_FN void WIDE_LOOP(sleef_silu)(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), e = WIDE_SLEEF(expf)(WIDE_OP(sub)(WIDE_OP(setzero)(), a));
        WIDE_OP(storeu)(out + i, WIDE_OP(div)(a, WIDE_OP(add)(e, WIDE_OP(set1)(1))));
    }
}

WIDE_FN void WIDE_LOOP(sleef_silu_back)(float *out, const float *in, const float *g, size_t size)
{
    wide one = WIDE_OP(set1)(1);
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), e = WIDE_SLEEF(expf)(WIDE_OP(sub)(WIDE_OP(setzero)(), a));
        wide s = WIDE_OP(div)(one, WIDE_OP(add)(e, one));
        wide slope = WIDE_OP(mul)(s, WIDE_OP(fmadd)(a, WIDE_OP(sub)(one, s), one));
        WIDE_OP(storeu)(out + i, WIDE_OP(mul)(WIDE_OP(loadu)(g + i), slope));
    }
}

WIDE_FN void WIDE_LOOP(sleef_mish)(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), two = WIDE_OP(set1)(2);
        wide e = WIDE_SLEEF(expf)(WIDE_OP(min)(a, WIDE_OP(set1)(30))), w = WIDE_OP(mul)(e, WIDE_OP(add)(e, two));
        WIDE_OP(storeu)(out + i, WIDE_OP(div)(WIDE_OP(mul)(a, w), WIDE_OP(add)(w, two)));
    }
}

WIDE_FN void WIDE_LOOP(sleef_elu)(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += WIDE_LANES) {
        wide a = WIDE_OP(loadu)(in + i), zero = WIDE_OP(setzero)();
        wide e = WIDE_SLEEF(expm1f)(WIDE_OP(min)(a, zero));
        WIDE_OP(storeu)(out + i, WIDE_LESS(a, zero, e, a));
    }
}

static void WIDE_LOOP(add_sleef)(void)
{
    add("SLEEF", "gelu", 0, loop_run)->loop = WIDE_LOOP(sleef_gelu);
    add("SLEEF", "gelu", 1, loop_run)->loop = WIDE_LOOP(sleef_gelu_back);
    add("SLEEF", "silu", 0, loop_run)->loop = WIDE_LOOP(sleef_silu);
    add("SLEEF", "silu", 1, loop_run)->loop = WIDE_LOOP(sleef_silu_back);
    add("SLEEF", "mish", 0, loop_run)->loop = WIDE_LOOP(sleef_mish);
    add("SLEEF", "elu", 0, loop_run)->loop = WIDE_LOOP(sleef_elu);
}

#undef WIDE_FN
#undef WIDE_LANES
#undef WIDE_OP
#undef WIDE_SLEEF
#undef WIDE_LOOP
#undef WIDE_LESS
#undef wide
