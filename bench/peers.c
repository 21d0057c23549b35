/* peers.c - berlu's activations beside oneDNN, SLEEF and XNNPACK, interleaved in one process.
 * SPDX-License-Identifier: MIT
 *
 *     bench_peers [N [ROUNDS]]    one thread, f32, x uniform in +-3 and in +-12, where the rare
 *                                 paths run
 *
 * Every library that the build found takes part. Each round runs every subject once, in an order
 * that rotates; it prints medians, and our time over the best peer's. SLEEF has no activations, so
 * its loops are written as a careful programmer would over its 1-ULP functions. Peers that are less
 * accurate than we are take part all the same. */
#include <berlu/berlu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"

#ifdef PEERS_DNNL
#include <dnnl.h>
#include <omp.h>
#endif
#ifdef PEERS_XNNPACK
#include <xnnpack.h>
#endif

enum { SUBJECTS = 96, ROUNDS_MOST = 501 };

typedef struct subject {
    const char *who, *act;
    int backward;
    void (*run)(struct subject *s);
    berlu_act *own;
    void (*loop)(float *y, const float *x, const float *dy, size_t n);
#ifdef PEERS_DNNL
    dnnl_primitive_t primitive;
#endif
#ifdef PEERS_XNNPACK
    xnn_operator_t operation;
#endif
    double times[ROUNDS_MOST], median;
} subject;

static subject subjects[SUBJECTS];
static size_t count, n;
static float *x, *dy, *y;

static subject *add(const char *who, const char *act, int backward, void (*run)(subject *))
{
    subject *s = &subjects[count++];
    *s = (subject){.who = who, .act = act, .backward = backward, .run = run};
    return s;
}

/* ---- berlu ----------------------------------------------------------------------------------- */

static const char *const names[] = {"relu",      "leaky_relu", "hard_swish", "elu",  "gelu",
                                    "gelu_tanh", "silu",       "mish",       "berlu"};

static void own_run(subject *s)
{
    berlu_act_call call = {.hint = BERLU_HINT_REUSE, .rows = n, .channels = 1, .x = x, .y = y};
    if (s->backward) {
        call.y = NULL;
        call.dy = dy;
        call.dx = y;
    }
    berlu_act_run(s->own, s->backward ? BERLU_ACT_BACKWARD : BERLU_ACT_FORWARD, &call,
                  &(berlu_exec){BERLU_ISA_BEST, 1});
}

static void add_own(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int back = 0; back < 2; back++)
            berlu_act_make(&add("berlu", names[i], back, own_run)->own, names[i]);
}

/* ---- oneDNN ---------------------------------------------------------------------------------- */

#ifdef PEERS_DNNL
static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_memory_t x_memory, dy_memory, y_memory;

static void dnnl_run(subject *s)
{
    dnnl_exec_arg_t forward[] = {{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_DST, y_memory}};
    dnnl_exec_arg_t back[] = {{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_DIFF_DST, dy_memory}, {DNNL_ARG_DIFF_SRC, y_memory}};
    dnnl_primitive_execute(s->primitive, stream, s->backward ? 3 : 2, s->backward ? back : forward);
    dnnl_stream_wait(stream);
}

static void add_dnnl_one(const char *act, dnnl_alg_kind_t kind, float alpha, dnnl_memory_desc_t *md)
{
    for (int back = 0; back < 2; back++) {
        dnnl_eltwise_desc_t d;
        dnnl_primitive_desc_t first, second;
        dnnl_eltwise_forward_desc_init(&d, back ? dnnl_forward_training : dnnl_forward_inference, kind, md, alpha, 0);
        if (dnnl_primitive_desc_create(&first, &d, NULL, engine, NULL) != dnnl_success)
            continue;
        second = first;
        if (back) {
            dnnl_eltwise_backward_desc_init(&d, kind, md, md, alpha, 0);
            if (dnnl_primitive_desc_create(&second, &d, NULL, engine, first) != dnnl_success)
                continue;
        }
        dnnl_primitive_create(&add("oneDNN", act, back, dnnl_run)->primitive, second);
    }
}

static void add_dnnl(void)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {(dnnl_dim_t)n};
    omp_set_num_threads(1);
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_f32, dnnl_a);
    dnnl_memory_create(&x_memory, &md, engine, x);
    dnnl_memory_create(&dy_memory, &md, engine, dy);
    dnnl_memory_create(&y_memory, &md, engine, y);
    add_dnnl_one("relu", dnnl_eltwise_relu, 0, &md);
    add_dnnl_one("leaky_relu", dnnl_eltwise_relu, 0.01f, &md);
    add_dnnl_one("hard_swish", dnnl_eltwise_hardswish, 0, &md);
    add_dnnl_one("elu", dnnl_eltwise_elu, 1, &md);
    add_dnnl_one("gelu", dnnl_eltwise_gelu_erf, 0, &md);
    add_dnnl_one("gelu_tanh", dnnl_eltwise_gelu_tanh, 0, &md);
    add_dnnl_one("silu", dnnl_eltwise_swish, 1, &md);
    add_dnnl_one("mish", dnnl_eltwise_mish, 0, &md);
}
#endif

/* ---- SLEEF ----------------------------------------------------------------------------------- */

#if defined(PEERS_SLEEF) && defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx512f")))
typedef __m512 wide;
extern wide Sleef_erff16_u10avx512f(wide), Sleef_expf16_u10avx512f(wide), Sleef_expm1f16_u10avx512f(wide);

static void loop_run(subject *s)
{
    s->loop(y, x, dy, n / 16 * 16);
}

WIDE static void sleef_gelu(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), e = Sleef_erff16_u10avx512f(_mm512_mul_ps(a, _mm512_set1_ps(0.70710678f)));
        wide half = _mm512_mul_ps(a, _mm512_set1_ps(0.5f));
        _mm512_storeu_ps(out + i, _mm512_fmadd_ps(half, e, half));
    }
}

WIDE static void sleef_gelu_back(float *out, const float *in, const float *g, size_t size)
{
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), half = _mm512_set1_ps(0.5f);
        wide e = Sleef_erff16_u10avx512f(_mm512_mul_ps(a, _mm512_set1_ps(0.70710678f)));
        wide bell = Sleef_expf16_u10avx512f(_mm512_mul_ps(_mm512_mul_ps(a, a), _mm512_set1_ps(-0.5f)));
        wide slope =
            _mm512_fmadd_ps(_mm512_mul_ps(a, _mm512_set1_ps(0.39894228f)), bell, _mm512_fmadd_ps(half, e, half));
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(g + i), slope));
    }
}

WIDE static void sleef_silu(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), e = Sleef_expf16_u10avx512f(_mm512_sub_ps(_mm512_setzero_ps(), a));
        _mm512_storeu_ps(out + i, _mm512_div_ps(a, _mm512_add_ps(e, _mm512_set1_ps(1))));
    }
}

WIDE static void sleef_silu_back(float *out, const float *in, const float *g, size_t size)
{
    wide one = _mm512_set1_ps(1);
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), e = Sleef_expf16_u10avx512f(_mm512_sub_ps(_mm512_setzero_ps(), a));
        wide s = _mm512_div_ps(one, _mm512_add_ps(e, one));
        wide slope = _mm512_mul_ps(s, _mm512_fmadd_ps(a, _mm512_sub_ps(one, s), one));
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(g + i), slope));
    }
}

WIDE static void sleef_mish(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), two = _mm512_set1_ps(2);
        wide e = Sleef_expf16_u10avx512f(_mm512_min_ps(a, _mm512_set1_ps(30))),
             w = _mm512_mul_ps(e, _mm512_add_ps(e, two));
        _mm512_storeu_ps(out + i, _mm512_div_ps(_mm512_mul_ps(a, w), _mm512_add_ps(w, two)));
    }
}

WIDE static void sleef_elu(float *out, const float *in, const float *g, size_t size)
{
    (void)g;
    for (size_t i = 0; i < size; i += 16) {
        wide a = _mm512_loadu_ps(in + i), zero = _mm512_setzero_ps();
        wide e = Sleef_expm1f16_u10avx512f(_mm512_min_ps(a, zero));
        _mm512_storeu_ps(out + i, _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(a, zero, _CMP_LT_OQ), e));
    }
}

static void add_sleef(void)
{
    if (!__builtin_cpu_supports("avx512f"))
        return;
    add("SLEEF", "gelu", 0, loop_run)->loop = sleef_gelu;
    add("SLEEF", "gelu", 1, loop_run)->loop = sleef_gelu_back;
    add("SLEEF", "silu", 0, loop_run)->loop = sleef_silu;
    add("SLEEF", "silu", 1, loop_run)->loop = sleef_silu_back;
    add("SLEEF", "mish", 0, loop_run)->loop = sleef_mish;
    add("SLEEF", "elu", 0, loop_run)->loop = sleef_elu;
}
#endif

/* ---- XNNPACK --------------------------------------------------------------------------------- */

#ifdef PEERS_XNNPACK
static void xnn_run(subject *s)
{
    xnn_run_operator(s->operation, NULL);
}

static void add_xnnpack(void)
{
    size_t channels = 1024, rows = n / channels;
    xnn_operator_t op;
    if (rows == 0 || xnn_initialize(NULL) != xnn_status_success)
        return;
    if (!xnn_create_elu_nc_f32(channels, channels, channels, 1, 0, &op) && !xnn_setup_elu_nc_f32(op, rows, x, y, NULL))
        add("XNNPACK", "elu", 0, xnn_run)->operation = op;
    if (!xnn_create_hardswish_nc_f32(channels, channels, channels, 0, &op) &&
        !xnn_setup_hardswish_nc_f32(op, rows, x, y, NULL))
        add("XNNPACK", "hard_swish", 0, xnn_run)->operation = op;
    if (!xnn_create_leaky_relu_nc_f32(channels, channels, channels, 0.01f, 0, &op) &&
        !xnn_setup_leaky_relu_nc_f32(op, rows, x, y, NULL))
        add("XNNPACK", "leaky_relu", 0, xnn_run)->operation = op;
}
#endif

/* ---- The run --------------------------------------------------------------------------------- */

static void rounds_run(int rounds)
{
    int repeats = n >= 1 << 20 ? 1 : (int)((1 << 20) / n) + 1;
    for (int r = 0; r < rounds; r++)
        for (size_t j = 0; j < count; j++) {
            subject *s = &subjects[(j + (size_t)r) % count];
            s->run(s);
            double start = clock_seconds();
            for (int i = 0; i < repeats; i++)
                s->run(s);
            s->times[r] = (clock_seconds() - start) / repeats;
        }
    for (size_t i = 0; i < count; i++)
        subjects[i].median = median(subjects[i].times, (size_t)rounds) / (double)n * 1e9;
}

static void report(double range)
{
    printf("\nx in +-%g, %zu numbers, one thread: ns per number (median)\n", range, n);
    for (size_t a = 0; a < sizeof names / sizeof *names; a++)
        for (int back = 0; back < 2; back++) {
            double own = 0, best = INFINITY;
            printf("%-11s %-8s", names[a], back ? "backward" : "forward");
            for (size_t i = 0; i < count; i++) {
                subject *s = &subjects[i];
                if (strcmp(s->act, names[a]) || s->backward != back)
                    continue;
                printf("  %s %.4f", s->who, s->median);
                if (s->own)
                    own = s->median;
                else
                    best = fmin(best, s->median);
            }
            printf(isfinite(best) ? "  -> %.2f of the best peer\n" : "\n", own / best);
        }
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 51;
    n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 18;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
    x = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    dy = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    y = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    if (!n || !x || !dy || !y)
        return fputs("bench_peers: N is 0 or too large\n", stderr), 1;
    add_own();
#ifdef PEERS_DNNL
    add_dnnl();
#endif
#if defined(PEERS_SLEEF) && defined(__x86_64__)
    add_sleef();
#endif
#ifdef PEERS_XNNPACK
    add_xnnpack();
#endif
    for (int far = 0; far < 2; far++) {
        float range = far ? 12 : 3;
        for (size_t i = 0; i < n; i++) {
            philox_words r = philox_draw(1, PURPOSE_TEST, 2, i, 0);
            x[i] = (philox_f32(r.w[0]) * 2 - 1) * range;
            dy[i] = philox_f32(r.w[1]) * 2 - 1;
            y[i] = 0;
        }
        rounds_run(rounds);
        report((double)range);
    }
    return 0;
}
