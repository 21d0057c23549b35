/* check.c - compares every kernel of every activation with the scalar one, then times it.
 * SPDX-License-Identifier: MIT
 *
 *     check [--bench] [--quick] [--isa NAME] [ACTIVATION...]
 *           quick: fewer lengths, one thread, for an emulator
 *
 * In the manner of dav1d's checkasm: one loop over activations, ops, dtypes, instruction sets and
 * shapes. The reference is scalar, on one thread, with ordinary stores and no array shared; every
 * other instruction set, hint, number of threads and in-place variant must equal it to the bit (NaN
 * as a class), whole buffers with their guards included. Properties that do not follow from a
 * shape's size are drawn independently, so that all pairs occur. The last line is a hash of all
 * results: it must be the same on every machine, so the NEON build is compared with it. No test
 * library, so that the program also runs alone under an emulator. Read check_act() first. */
#include <berlu/berlu.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "act/inputs.h"

enum { MOST = 1 << 19, GUARD = 64, LONGEST = 200, CHANNELS = 600 };

static const char *const op_names[] = {"forward", "backward", "backward_from_output", "slope", "second", "param_slope"};
enum { OPS = 6 };

/* All buffers a call can write, with guards around the elements. */
typedef struct outputs {
    _Alignas(64) unsigned char y[MOST * 4 + 2 * GUARD], dx[MOST * 4 + 2 * GUARD];
    float grad[BERLU_ACT_PARAMS][CHANNELS + 2], dbias[CHANNELS + 2];
} outputs;

static _Alignas(64) unsigned char x_buffer[MOST * 4 + 2 * GUARD], tame_buffer[MOST * 4 + 2 * GUARD],
    near_buffer[MOST * 4 + 2 * GUARD];
static _Alignas(64) unsigned char dy_buffer[MOST * 4 + 2 * GUARD];
static outputs want, got;
static unsigned char workspace[64 << 20];
static float values[BERLU_ACT_PARAMS][CHANNELS], bias_values[CHANNELS];
static uint64_t hash = 14695981039346656037ull;
static size_t calls;
static int quick;

/* The memory of an output: its own, or that of an input. The input of backward_from_output counts
 * as x. */
typedef enum place { OWN, ON_X, ON_DY } place;

typedef struct shape {
    size_t rows, channels;
    size_t offset, apart; /* in elements: offsets of the arrays in their buffers, see at() */
    int bias, dbias, with_y, param_index;
    int grads;  /* gradients of the first `grads` parameters */
    int params; /* 0: the activation's own, 1: one per channel, 2: one of the call */
    int tame;   /* x is finite: one NaN would make every sum NaN; 2: within 3 of zero, so that groups take fast paths */
    berlu_hint hint;
    place y_on, dx_on;
} shape;

enum { X, Y, DY, DX };

/* Offset of array number `array`: behind the guard, at an element of the first cache line that
 * differs from array to array. */
static size_t at(const shape *s, size_t array, size_t size)
{
    return GUARD + (s->offset + array * s->apart) * size % 64;
}

static uint32_t draw_state;
static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (draw_state >> 8) % below;
}

static int same_f32(const void *a, const void *b)
{
    float u, v;
    memcpy(&u, a, 4);
    memcpy(&v, b, 4);
    return memcmp(a, b, 4) == 0 || (isnan(u) && isnan(v));
}

static int same_floats(const float *a, const float *b) /* CHANNELS and a guard on both sides */
{
    if (memcmp(a, b, (CHANNELS + 2) * sizeof *a) == 0)
        return 1;
    for (size_t i = 0; i < CHANNELS + 2; i++)
        if (!same_f32(a + i, b + i))
            return 0;
    return 1;
}

static int nan16(uint16_t bits, berlu_dtype dtype)
{
    return dtype == BERLU_BF16 ? (bits & 0x7fff) > 0x7f80 : (bits & 0x7fff) > 0x7c00;
}

static int same_element(const void *a, const void *b, berlu_dtype dtype)
{
    uint16_t u, v;
    if (dtype == BERLU_F32)
        return same_f32(a, b);
    memcpy(&u, a, 2);
    memcpy(&v, b, 2);
    return u == v || (nan16(u, dtype) && nan16(v, dtype));
}

/* The whole buffer: guards byte by byte, elements by value where their bytes differ. */
static int same_buffer(const unsigned char *a, const unsigned char *b, size_t from, size_t n, berlu_dtype dtype)
{
    size_t size = berlu_dtype_size(dtype), end = from + n * size;
    if (memcmp(a, b, end + GUARD) == 0)
        return 1;
    if (memcmp(a, b, from) || memcmp(a + end, b + end, GUARD))
        return 0;
    for (size_t i = from; i < end; i += size)
        if (!same_element(a + i, b + i, dtype))
            return 0;
    return 1;
}

static void hash_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 1099511628211ull;
}

static void hash_elements(const unsigned char *p, size_t n, berlu_dtype dtype)
{
    static const unsigned char nan[4] = {0xff, 0xff, 0xff, 0xff};
    size_t size = berlu_dtype_size(dtype);
    for (size_t i = 0; i < n * size; i += size) {
        uint16_t half;
        float single = 0;
        memcpy(&half, p + i, 2);
        if (size == 4)
            memcpy(&single, p + i, 4);
        hash_bytes(size == 4 ? isnan(single) ? nan : p + i : nan16(half, dtype) ? nan : p + i, size);
    }
}

static int fail(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_exec exec, const shape *s,
                const char *what)
{
    static const char *const hints[] = {"auto", "reuse", "stream"}, *const places[] = {"its own", "x's", "dy's"};
    fprintf(
        stderr,
        "%s %s %s %s: %s differs (threads %d, %zu x %zu, hint %s, offset %zu apart %zu, y in %s place, dx in %s, bias "
        "%d dbias %d params %d grads %d y %d)\n",
        berlu_act_spec(act), op_names[op], berlu_dtype_name(dtype), berlu_isa_name(exec.isa), what, exec.threads,
        s->rows, s->channels, hints[s->hint], s->offset, s->apart, places[s->y_on], places[s->dx_on], s->bias, s->dbias,
        s->params, s->grads, s->with_y);
    return 1;
}

/* Copies an input into the memory of an output. */
static void *share(unsigned char *to, const unsigned char *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return to;
}

/* Sets the arrays of a call. The y that backward_from_output reads is called x here. */
static void set_arrays(berlu_act_call *call, outputs *out, berlu_act_op op, const shape *s)
{
    size_t size = berlu_dtype_size(call->dtype), bytes = s->rows * s->channels * size;
    unsigned char *y = out->y + at(s, Y, size), *dx = out->dx + at(s, DX, size);
    const unsigned char *x = (s->tame == 2 ? near_buffer
                              : s->tame    ? tame_buffer
                                           : x_buffer) +
                             at(s, X, size),
                        *dy = dy_buffer + at(s, DY, size);
    call->x = s->y_on == ON_X ? share(y, x, bytes) : s->dx_on == ON_X ? share(dx, x, bytes) : x;
    call->dy = s->y_on == ON_DY ? share(y, dy, bytes) : s->dx_on == ON_DY ? share(dx, dy, bytes) : dy;
    call->dx = dx;
    call->y = op != BERLU_ACT_BACKWARD || s->with_y ? y : NULL;
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        share(y, x, bytes);
        call->y = s->dx_on == ON_X ? dx : y;
        call->x = NULL;
    }
}

/* One call into `out`; every byte of `out` that the call must not touch keeps its pattern. */
static berlu_status run(outputs *out, const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_exec exec,
                        const shape *s)
{
    size_t touched = 3 * GUARD + s->rows * s->channels * berlu_dtype_size(dtype);
    memset(out->y, 0x5a, touched);
    memset(out->dx, 0x5a, touched);
    memset(out->grad, 0x5a, sizeof out->grad);
    memset(out->dbias, 0x5a, sizeof out->dbias);
    berlu_act_call call = {.dtype = dtype, .rows = s->rows, .channels = s->channels, .hint = s->hint};
    set_arrays(&call, out, op, s);
    call.bias = s->bias ? bias_values : NULL;
    call.dbias = s->dbias ? out->dbias + 1 : NULL;
    call.param_index = s->param_index;
    for (size_t p = 0; p < berlu_act_param_count(act); p++) {
        call.param[p].value = s->params ? values[p] : NULL;
        call.param[p].stride = s->params == 1;
        call.param[p].grad = (int)p < s->grads ? out->grad[p] + 1 : NULL;
    }
    call.workspace = workspace + 3; /* any alignment will do */
    call.workspace_bytes = berlu_act_workspace(act, op, &call);
    calls++;
    return berlu_act_run(act, op, &call, &exec);
}

static int compare(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_exec exec, const shape *s)
{
    size_t size = berlu_dtype_size(dtype), n = s->rows * s->channels;
    if (run(&got, act, op, dtype, exec, s) != BERLU_OK)
        return fail(act, op, dtype, exec, s, berlu_last_error());
    if (!same_buffer(want.y, got.y, at(s, Y, size), n, dtype))
        return fail(act, op, dtype, exec, s, "y");
    if (!same_buffer(want.dx, got.dx, at(s, DX, size), n, dtype))
        return fail(act, op, dtype, exec, s, "dx");
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        if (!same_floats(want.grad[p], got.grad[p]))
            return fail(act, op, dtype, exec, s, "a parameter's gradient");
    if (!same_floats(want.dbias, got.dbias))
        return fail(act, op, dtype, exec, s, "dbias");
    return 0;
}

/* Runs the reference, then every other instruction set, and several threads if requested. */
static int check_shape(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only, const shape *s,
                       int many)
{
    static const int counts[] = {2, 3, 8};
    berlu_exec exec = {BERLU_ISA_SCALAR, 1};
    size_t n = s->rows * s->channels, size = berlu_dtype_size(dtype);
    shape plain = *s;
    plain.hint = BERLU_HINT_REUSE;
    plain.y_on = plain.dx_on = OWN;
    if (run(&want, act, op, dtype, exec, &plain) != BERLU_OK)
        return fail(act, op, dtype, exec, &plain, berlu_last_error());
    if (!only && n < 4096 && compare(act, op, dtype, exec, s)) /* scalar itself; it is slow */
        return 1;
    hash_elements(want.y + at(s, Y, size), s->with_y || op != BERLU_ACT_BACKWARD ? n : 0, dtype);
    hash_elements(want.dx + at(s, DX, size), op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? n : 0,
                  dtype);
    for (int p = 0; s->grads && p < BERLU_ACT_PARAMS; p++)
        hash_elements((unsigned char *)want.grad[p], s->params == 1 ? s->channels + 2 : 3, BERLU_F32);
    if (s->dbias)
        hash_elements((unsigned char *)want.dbias, s->channels + 2, BERLU_F32);
    for (int isa = BERLU_ISA_AVX2; isa <= BERLU_ISA_NEON; isa++) {
        if (!berlu_act_can_run(act, (berlu_isa)isa) || (only && (int)only != isa))
            continue;
        exec = (berlu_exec){(berlu_isa)isa, 1};
        if (compare(act, op, dtype, exec, s))
            return 1;
        for (size_t t = 0; many && t < sizeof counts / sizeof *counts; t++) {
            exec.threads = counts[t];
            if (compare(act, op, dtype, exec, s))
                return 1;
        }
    }
    return 0;
}

static int is_backward(berlu_act_op op)
{
    return op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
}

/* Draws hint, offsets, in-place variants that act.h allows, and the kind of parameters. */
static void vary(shape *s, const berlu_act *act, berlu_act_op op)
{
    static const place pairs[][2] = {{OWN, ON_X},  {OWN, ON_DY},  {ON_X, OWN},
                                     {ON_DY, OWN}, {ON_X, ON_DY}, {ON_DY, ON_X}};
    s->offset = draw(2) ? draw(32) : 0;
    s->apart = draw(2) * 5;
    s->hint = (berlu_hint)draw(3);
    s->tame = (s->grads || s->dbias) && draw(4);
    s->param_index = op == BERLU_ACT_PARAM_SLOPE ? (int)draw((uint32_t)berlu_act_param_count(act)) : 0;
    if (op == BERLU_ACT_BACKWARD && s->with_y && draw(2)) {
        const place *pair = pairs[draw(sizeof pairs / sizeof *pairs)];
        s->y_on = pair[0];
        s->dx_on = pair[1];
    } else if (is_backward(op) && !s->with_y) {
        s->dx_on = (place)draw(3);
    } else if (!is_backward(op)) {
        s->y_on = (place)draw(2);
    }
}

/* The number of gradients of an op; kernels have separate loops for one. */
static int grads_of(const berlu_act *act, berlu_act_op op)
{
    return is_backward(op) ? (int)berlu_act_param_count(act) : 0;
}

static int check_lengths(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only, int variant)
{
    int grads = grads_of(act, op);
    size_t step = quick || (variant && dtype != BERLU_F32) ? 7 : 1; /* variants share loops */
    for (size_t n = 0; n <= LONGEST; n += step) {
        shape s = {.rows = n, .channels = 1, .grads = n % 2 ? grads : 0};
        if (s.grads && draw(2))
            s.grads = 1;
        s.with_y = op == BERLU_ACT_BACKWARD && n % 3 == 0;
        vary(&s, act, op);
        if (check_shape(act, op, dtype, only, &s, 0))
            return 1;
    }
    return 0;
}

static int check_rows(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only, int variant)
{
    static const size_t sizes[][2] = {{0, 5},    {0, 0},   {3, 7},   {5, 16},   {65, 33},
                                      {130, 64}, {200, 5}, {3, 600}, {129, 31}, {70, 200}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 8; kind += variant && dtype != BERLU_F32 ? 3 : 1) {
            shape s = {.rows = sizes[i][0], .channels = sizes[i][1], .bias = kind & 1};
            s.params = berlu_act_param_count(act) == 0 ? 0 : kind & 2 ? 1 : (int)draw(2) * 2;
            s.dbias = is_backward(op) && (kind & 4);
            s.grads = kind == 5 ? 0 : grads_of(act, op);
            if (kind == 4 && s.grads)
                s.grads = 1;
            s.with_y = op == BERLU_ACT_BACKWARD && (kind & 4);
            vary(&s, act, op);
            if (s.channels == 200)
                s.tame = 2;
            if (check_shape(act, op, dtype, only, &s, 0))
                return 1;
        }
    return 0;
}

/* A unit of four blocks, which are interleaved where they are streamed, a single block and a rest.
 * From the beginning of a cache line with all sums, with one; from elsewhere with all, with one,
 * with none. Only the flat traversal has blocks. */
static int check_blocks(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only, int variant)
{
    enum { ALL = BERLU_ACT_PARAMS };
    static const struct {
        int elsewhere, grads;
    } cases[] = {{0, ALL}, {0, 1}, {1, ALL}, {1, 1}, {1, 0}};
    int few = quick || (variant && dtype != BERLU_F32), all = grads_of(act, op);
    for (int i = few ? 2 : 0; i < (few ? 4 : 5); i++) {
        int grads = cases[i].grads;
        if (grads == 1 && all <= 1)
            continue; /* same as the case before */
        shape s = {.rows = 5 * 4096 + 77, .channels = 1, .tame = 1, .hint = BERLU_HINT_STREAM};
        s.offset = cases[i].elsewhere ? 1 + draw(15) : 0; /* 0 and 16 begin a line of f32 */
        s.apart = grads ? 0 : 5;
        s.grads = grads < all ? grads : all;
        if (check_shape(act, op, dtype, only, &s, 0))
            return 1;
        s.hint = BERLU_HINT_REUSE;
        if (check_shape(act, op, dtype, only, &s, 0))
            return 1;
    }
    return 0;
}

static int can(const berlu_act *act, berlu_act_op op, berlu_dtype dtype)
{
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        return berlu_act_has_from_output(act) &&
               (dtype == BERLU_F32 || !inputs_from_f32_output_only(berlu_act_name(act)));
    return op != BERLU_ACT_PARAM_SLOPE || berlu_act_param_count(act) > 0;
}

static int check_threads(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only)
{
    int params = berlu_act_param_count(act) > 0;
    shape flat = {.rows = MOST - 77, .channels = 1, .tame = 1, .grads = grads_of(act, op)}; /* hint: auto */
    shape wide = {.rows = 1111, .channels = 300, .tame = 1, .bias = 1, .dbias = is_backward(op), .grads = flat.grads};
    shape odd = flat;
    odd.rows = 5 * 32768 + 77;
    odd.grads = flat.grads > 0; /* the first alone */
    odd.offset = 3;
    odd.hint = BERLU_HINT_STREAM;
    wide.params = dtype == BERLU_F32 ? 0 : params;
    if (dtype == BERLU_F32 &&
        (check_shape(act, op, dtype, only, &flat, 1) || check_shape(act, op, dtype, only, &odd, 1)))
        return 1;
    return check_shape(act, op, dtype, only, &wide, 1);
}

static void fill_params(const berlu_act *act)
{
    for (size_t p = 0; p < berlu_act_param_count(act); p++) {
        berlu_act_param_info info;
        berlu_act_param(act, p, &info);
        for (size_t c = 0; c < CHANNELS; c++)
            values[p][c] = (float)info.value * (0.25f + (float)(c % 17) * 0.125f);
    }
    for (size_t c = 0; c < CHANNELS; c++)
        bias_values[c] = (float)((int)(c * 37 % 101) - 50) * 0.01f;
}

static int check_op(const berlu_act *act, berlu_act_op op, berlu_dtype dtype, berlu_isa only, int variant)
{
    if (check_lengths(act, op, dtype, only, variant) || check_rows(act, op, dtype, only, variant))
        return 1;
    if (op > BERLU_ACT_BACKWARD_FROM_OUTPUT) /* for tables: they share the paths of forward */
        return 0;
    return check_blocks(act, op, dtype, only, variant) ||
           (dtype != BERLU_F16 && !variant && !quick && check_threads(act, op, dtype, only)); /* once per name */
}

static int check_act(const char *spec, berlu_isa only)
{
    berlu_act *act;
    int bad = 0;
    if (berlu_act_make(&act, spec) != BERLU_OK)
        return fprintf(stderr, "%s: %s\n", spec, berlu_last_error()), 1;
    draw_state = 1; /* makes the draws independent of earlier activations */
    fill_params(act);
    for (int dtype = BERLU_F32; dtype <= BERLU_F16; dtype++) {
        inputs_fill(x_buffer, MOST, (berlu_dtype)dtype, act, 1);
        inputs_tame(tame_buffer, MOST, (berlu_dtype)dtype, act, 3);
        inputs_plain(near_buffer, MOST, (berlu_dtype)dtype, 4);
        inputs_plain(dy_buffer, MOST, (berlu_dtype)dtype, 2);
        for (int op = 0; op < OPS && !bad; op++)
            if (can(act, (berlu_act_op)op, (berlu_dtype)dtype))
                bad = check_op(act, (berlu_act_op)op, (berlu_dtype)dtype, only, strchr(spec, ':') != NULL);
    }
    berlu_act_free(act);
    return bad;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bench_act(const char *spec, berlu_isa only)
{
    berlu_act *act;
    if (berlu_act_make(&act, spec) != BERLU_OK)
        return;
    inputs_plain(x_buffer, MOST, BERLU_F32, 5);
    inputs_plain(dy_buffer, MOST, BERLU_F32, 6);
    for (int op = 0; op < OPS; op++)
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
            berlu_exec exec = {(berlu_isa)isa, 1};
            shape s = {.rows = 1 << 16, .channels = 1, .grads = op == 1 && berlu_act_param_count(act) > 0};
            if (!can(act, (berlu_act_op)op, BERLU_F32) || !berlu_act_can_run(act, (berlu_isa)isa) ||
                (only && (int)only != isa))
                continue;
            double best = 1e30;
            for (int round = 0; round < 9; round++) {
                berlu_act_call call = {.rows = s.rows, .channels = 1, .x = x_buffer, .y = got.y, .dy = dy_buffer};
                call.dx = got.dx;
                call.workspace = workspace;
                call.workspace_bytes = sizeof workspace;
                if (op == BERLU_ACT_BACKWARD)
                    call.y = NULL;
                for (size_t p = 0; s.grads && p < berlu_act_param_count(act); p++)
                    call.param[p].grad = got.grad[p];
                double start = now();
                berlu_act_run(act, (berlu_act_op)op, &call, &exec);
                double t = (now() - start) / (double)s.rows;
                best = t < best ? t : best;
            }
            printf("%-40s %-21s %-7s %8.3f ns\n", spec, op_names[op], berlu_isa_name((berlu_isa)isa), best);
        }
    berlu_act_free(act);
}

int main(int argc, char **argv)
{
    int bench = 0, named = 0, bad = 0;
    berlu_isa only = BERLU_ISA_BEST;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            bench = 1;
        } else if (strcmp(argv[i], "--quick") == 0) {
            quick = 1;
        } else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
            i++;
            for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++)
                if (strcmp(argv[i], berlu_isa_name((berlu_isa)isa)) == 0)
                    only = (berlu_isa)isa;
        } else {
            named++;
        }
    }
    for (size_t i = 0; inputs_spec(i) && !bad; i++) {
        int asked = !named;
        for (int a = 1; a < argc; a++)
            asked |= inputs_named(inputs_spec(i), argv[a]);
        if (!asked)
            continue;
        bad = check_act(inputs_spec(i), only);
        if (!bad && bench)
            bench_act(inputs_spec(i), only);
    }
    printf("%zu calls, %s, bits %016" PRIx64 "\n", calls, bad ? "DIFFERENT" : "equal", hash);
    return bad;
}
