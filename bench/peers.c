/* peers.c - berlu's activations beside oneDNN, SLEEF and XNNPACK, interleaved in one process.
 * SPDX-License-Identifier: MIT
 *
 *     bench_peers [N [ROUNDS [least|median [ACT...]]]]    one thread, f32, x uniform in +-3 and
 *                                                         in +-12, where the rare paths run
 *
 * Every library that the build found takes part. Each round runs every subject once, in an order
 * that rotates; it prints medians, and our time over the best peer's. `least` prints the fastest
 * round instead: on a machine where other programs run, medians measure the scheduler. SLEEF has no
 * activations, so its loops (peers_sleef.h) are written as a careful programmer would over its
 * 1-ULP functions. Peers that are less accurate than we are take part all the same. BerLU's peers
 * are a copy and, for its backward with the gradient of alpha, an add (yardstick.h).
 *
 * BERLU_ISA=avx2 limits us and SLEEF, DNNL_MAX_CPU_ISA=AVX2 oneDNN; nothing limits XNNPACK. */
#include <berlu/berlu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "bench/yardstick.h"

#ifdef PEERS_DNNL
#include <dnnl.h>
#include <omp.h>
#endif
#ifdef PEERS_XNNPACK
#include <xnnpack.h>
#endif

enum { SUBJECTS = 96, ROUNDS_MOST = 501 };

typedef struct subject {
    const char *library, *act;
    int backward;
    void (*run)(struct subject *s);
    berlu_act *own;
    void (*loop)(float *y, const float *x, const float *dy, size_t n);
    const yardstick *stick;
#ifdef PEERS_DNNL
    dnnl_primitive_t primitive;
#endif
#ifdef PEERS_XNNPACK
    xnn_operator_t operation;
#endif
    double times[ROUNDS_MOST], time; /* of each round in s; of an element in ns */
} subject;

static subject subjects[SUBJECTS];
static size_t count, n;
static int least;
static float *x, *dy, *y;
static void *workspace; /* for the sums of BerLU's gradient */
static size_t workspace_bytes;

static subject *add(const char *library, const char *act, int backward, void (*run)(subject *))
{
    subject *s = &subjects[count++];
    *s = (subject){.library = library, .act = act, .backward = backward, .run = run};
    return s;
}

/* ---- berlu ----------------------------------------------------------------------------------- */

static const char *const names[] = {"relu",      "leaky_relu", "hard_swish", "elu",  "gelu",
                                    "gelu_tanh", "silu",       "mish",       "berlu"};

static void own_run(subject *s)
{
    float grad;
    int berlu = strcmp(s->act, "berlu") == 0; /* its peers, copy and add, choose their stores too */
    berlu_act_call call = {.rows = n, .channels = 1, .x = x, .y = y};
    call.hint = berlu ? BERLU_HINT_AUTO : BERLU_HINT_REUSE;
    if (s->backward) {
        call.y = NULL;
        call.dy = dy;
        call.dx = y;
        call.workspace = workspace;
        call.workspace_bytes = workspace_bytes;
        call.param[0].grad = berlu ? &grad : NULL;
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

/* ---- Copy and add, beside BerLU -------------------------------------------------------------- */

static void stick_run(subject *s)
{
    yardstick_run(s->stick, 1, y, x, dy, n / 64 * 64);
}

static void add_yardsticks(void)
{
    const char *limit = getenv("BERLU_ISA");
    int narrow = limit && strcmp(limit, "avx2") == 0;
    for (size_t i = 0; yardstick_at(i); i++)
        if (!narrow || yardstick_at(i)->isa != CPU_AVX512)
            add(yardstick_at(i)->name, "berlu", yardstick_at(i)->kind == YARDSTICK_ADD, stick_run)->stick =
                yardstick_at(i);
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

static void loop_run(subject *s)
{
    s->loop(y, x, dy, n / 16 * 16);
}

/* The loops with 512-bit vectors, then with 256-bit ones. */
#define WIDE_FN                  __attribute__((target("avx512f"))) static
#define WIDE_LANES               16
#define WIDE_OP(name)            _mm512_##name##_ps
#define WIDE_SLEEF(f)            Sleef_##f##16_u10avx512f
#define WIDE_LOOP(name)          name##_avx512
#define WIDE_LESS(a, b, yes, no) _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes)
#define wide                     __m512
#include "peers_sleef.h"
#define WIDE_FN                  __attribute__((target("avx2,fma"))) static
#define WIDE_LANES               8
#define WIDE_OP(name)            _mm256_##name##_ps
#define WIDE_SLEEF(f)            Sleef_##f##8_u10avx2
#define WIDE_LOOP(name)          name##_avx2
#define WIDE_LESS(a, b, yes, no) _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ))
#define wide                     __m256
#include "peers_sleef.h"

static void add_sleef(void)
{
    const char *limit = getenv("BERLU_ISA");
    if (limit && strcmp(limit, "avx2") == 0 && __builtin_cpu_supports("avx2"))
        add_sleef_avx2();
    else if (__builtin_cpu_supports("avx512f"))
        add_sleef_avx512();
    else if (__builtin_cpu_supports("avx2"))
        add_sleef_avx2();
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

static double minimum(double *v, size_t size)
{
    double low = v[0];
    for (size_t i = 1; i < size; i++)
        low = fmin(low, v[i]);
    return low;
}

static void rounds_run(int rounds)
{
    int repeats = least || n >= 1 << 20 ? 1 : (int)((1 << 20) / n) + 1; /* a short one ends before it is interrupted */
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
        subjects[i].time = (least ? minimum : median)(subjects[i].times, (size_t)rounds) / (double)n * 1e9;
}

static void report(double range)
{
    printf("\nx in +-%g, %zu elements, one thread: ns per element (%s)\n", range, n, least ? "least" : "median");
    for (size_t a = 0; a < sizeof names / sizeof *names; a++)
        for (int back = 0; back < 2; back++) {
            double own = 0, best = INFINITY;
            int found = 0;
            for (size_t i = 0; i < count; i++)
                found |= strcmp(subjects[i].act, names[a]) == 0;
            if (!found)
                continue;
            printf("%-11s %-8s", names[a], back ? "backward" : "forward");
            for (size_t i = 0; i < count; i++) {
                subject *s = &subjects[i];
                if (strcmp(s->act, names[a]) || s->backward != back)
                    continue;
                printf("  %s %.4f", s->library, s->time);
                if (s->own)
                    own = s->time;
                else
                    best = fmin(best, s->time);
            }
            printf(isfinite(best) ? "  -> %.2f of the best peer\n" : "\n", own / best);
        }
}

static void keep_named(char **acts, int named)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int found = named == 0;
        for (int a = 0; a < named; a++)
            found |= strcmp(subjects[i].act, acts[a]) == 0;
        if (found)
            subjects[kept++] = subjects[i];
    }
    count = kept;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 51;
    least = argc > 3 && strcmp(argv[3], "least") == 0;
    n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 18;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
    x = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    dy = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    y = aligned_alloc(64, (n * 4 + 127) / 64 * 64);
    if (!n || !x || !dy || !y)
        return fputs("bench_peers: N is 0 or too large\n", stderr), 1;
    workspace_bytes = n / 256 + 4096; /* a double for each block of 4096, and alignment */
    workspace = malloc(workspace_bytes);
    if (!workspace)
        return fputs("bench_peers: no memory\n", stderr), 1;
    add_own();
    add_yardsticks();
#ifdef PEERS_DNNL
    add_dnnl();
#endif
#if defined(PEERS_SLEEF) && defined(__x86_64__)
    add_sleef();
#endif
#ifdef PEERS_XNNPACK
    add_xnnpack();
#endif
    keep_named(argv + 4, argc > 4 ? argc - 4 : 0);
    for (int wide = 0; wide < 2; wide++) {
        float range = wide ? 12 : 3;
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
