/* test_cuda_products.c - every product algorithm that training chooses gives the same bits twice.
 * SPDX-License-Identifier: MIT
 *
 * A library may split a product over its depth and add the parts in the order in which they are
 * done; a choice by timing would then lose the promise of equal bytes. So the products of a step
 * are recorded, and each recorded algorithm multiplies fresh matrices twice, into memory that held
 * something else. Without a GPU the program says so and exits with 77; over the GPU made of malloc
 * (PRODUCTS_STUBBED) it tests itself. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/gemm.h"
#include "engine/engine.h"
#include "models/models.h"
#include "models/weights.h"
#include "support/folder.h"
#ifdef PRODUCTS_STUBBED
#include "cuda/stub.h"
#endif

enum { SKIPPED = 77, BLOCK = 1 << 20, SETS = 2 };

typedef struct workload {
    const char *model, *precision, *residual;
    int batch;
} workload;

static const workload workloads[] = {
#ifdef PRODUCTS_STUBBED
    {"vit_micro", "bf16", "bf16", 2},
    {"tnt_micro", "f32", NULL, 2},
#else
    {"vit_tiny_cifar", "bf16", "bf16", 1024}, {"vit_tiny_cifar", "bf16", "f32", 256},
    {"vit_tiny_cifar", "tf32", NULL, 256},    {"vit_tiny", "bf16", "bf16", 64},
    {"tnt_s_cifar", "bf16", "bf16", 128},     {"convnext_tiny_cifar", "bf16", "bf16", 128},
    {"convnext_micro", "f32", NULL, 37},
#endif
};

static void ok(berlu_status status)
{
    if (status != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static device *open_with(const workload *w, const char *algorithms)
{
    device *d = NULL;
    device_options o = {.precision = w->precision, .residual = w->residual, .algorithms = algorithms};
    ok(cuda_backend()->open(&d, cuda_backend(), &o));
    return d;
}

/* The choices of one step. */
static text choices_of(const workload *w)
{
    device *d = open_with(w, "new");
    model *m = NULL;
    engine *e = NULL;
    text out = {0};
    engine_options o = {.backend = cuda_backend(), .device = d, .mode = ENGINE_TRAIN, .loss = LOSS_CROSS_ENTROPY};
    o.batch = w->batch;
    ok(model_create(&m, w->model, NULL));
    ok(engine_create(&e, m->graph, &o));
    ok(weights_init(e, 7, NULL));
    ok(engine_step_run(e, &(engine_step){.seed = 3, .count = 1, .lr = 5e-4}));
    ok(cuda_algorithms_text(d, &out));
    engine_free(e);
    model_free(m);
    cuda_backend()->close(d);
    return out;
}

/* A line of the record as a product without addresses; 0 for the heading. */
static int product_read(gemm_call *g, char shape[128], const char *line)
{
    char a, b, in[8], out[8];
    if (sscanf(line, "%*[^|]|%*[^|]|%127[^|]", shape) != 1)
        return 0;
    *g = (gemm_call){0};
    if (sscanf(shape, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 " %c%c %7[^>]>%7s", &g->columns, &g->rows, &g->depth, &a, &b,
               in, out) != 7)
        fail_msg("'%s' is no shape", shape);
    g->b_by_depth = a == 'n';
    g->a_by_depth = b == 't';
    g->in_bf16 = strcmp(in, "bf16") == 0;
    g->out_bf16 = strcmp(out, "bf16") == 0;
    g->bias = strstr(shape, " bias") ? shape : NULL; /* placed later */
    g->residual = strstr(shape, " add") ? shape : NULL;
    return 1;
}

/* Numbers in [-1, 1) of the given dtype, other ones for every call. */
static void *matrix_make(device *d, int64_t count, int bf16)
{
    static uint32_t draw = 1;
    size_t bytes = (size_t)count * (bf16 ? 2 : 4);
    void *memory = NULL;
    assert_int_equal(cuda_backend()->alloc(d, &memory, MEMORY_DEVICE, bytes, "a matrix"), BERLU_OK);
    unsigned char *device_memory = memory, *block = malloc(BLOCK);
    assert_non_null(block);
    for (size_t i = 0; i < BLOCK / (bf16 ? 2 : 4); i++) {
        draw = draw * 1664525u + 1013904223u;
        float v = (float)(draw >> 8) * 0x1p-23f - 1;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (bf16)
            ((uint16_t *)block)[i] = (uint16_t)(bits >> 16);
        else
            ((uint32_t *)block)[i] = bits;
    }
    for (size_t at = 0; at < bytes; at += BLOCK)
        ok(cuda_backend()->upload(d, device_memory + at, block, bytes - at < BLOCK ? bytes - at : BLOCK));
    free(block);
    return device_memory;
}

/* Multiplies into memory full of `poison`. */
static unsigned char *product_take(device *d, gemm_call g, size_t bytes, int poison)
{
    unsigned char *result = malloc(bytes);
    assert_non_null(result);
    memset(result, poison, bytes);
    ok(cuda_backend()->upload(d, g.y, result, bytes));
    op_call c = {.op = OP_LINEAR, .device = d, .batch = 1};
    assert_int_equal(cuda_gemm(&c, &g), 1);
    ok(cuda_backend()->download(d, result, g.y, bytes));
    return result;
}

static void product_repeats(device *d, gemm_call g, const char *shape)
{
    size_t bytes = (size_t)(g.rows * g.columns) * (g.out_bf16 ? 2 : 4);
    for (int set = 0; set < SETS; set++) {
        void *a = matrix_make(d, g.rows * g.depth, g.in_bf16), *b = matrix_make(d, g.columns * g.depth, g.in_bf16);
        void *bias = g.bias ? matrix_make(d, g.columns, g.out_bf16) : NULL;
        void *residual = g.residual ? matrix_make(d, g.rows * g.columns, g.out_bf16) : NULL;
        gemm_call placed = g;
        placed.a = a, placed.b = b, placed.bias = bias, placed.residual = residual;
        assert_int_equal(cuda_backend()->alloc(d, &placed.y, MEMORY_DEVICE, bytes, "a product"), BERLU_OK);
        unsigned char *first = product_take(d, placed, bytes, 0x5a), *second = product_take(d, placed, bytes, 0xff);
        for (size_t i = 0; i < bytes; i++)
            if (first[i] != second[i])
                fail_msg("%s: byte %zu of %zu is %02x, and %02x the second time", shape, i, bytes, first[i], second[i]);
        free(first);
        free(second);
        void *const all[] = {a, b, bias, residual, placed.y};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            cuda_backend()->release(d, MEMORY_DEVICE, all[i]);
    }
}

static void every_chosen_algorithm_gives_the_same_bits_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        const workload *w = &workloads[i];
        text record = choices_of(w);
        device *d = open_with(w, record.data);
        int products = 0;
        for (const char *line = record.data; line && *line; line = strchr(line, '\n'), line += line != NULL) {
            char shape[128];
            gemm_call g;
            if (!product_read(&g, shape, line))
                continue;
            product_repeats(d, g, shape);
            products++;
        }
        assert_true(products > 3);
        text again = {0};
        ok(cuda_algorithms_text(d, &again)); /* what multiplied is what was recorded, and nothing else */
        assert_string_equal(again.data, record.data);
        text_free(&again);
        text_free(&record);
        cuda_backend()->close(d);
    }
}

int main(void)
{
    char folder[FOLDER_PATH];
    device *d = NULL;
#ifdef PRODUCTS_STUBBED
    stub_reset();
#endif
    setenv("XDG_CACHE_HOME", folder_fresh(folder, "cuda_products"), 1); /* new choices are written there */
    if (cuda_backend()->open(&d, cuda_backend(), &(device_options){.algorithms = "first"}) != BERLU_OK) {
        fprintf(stderr, "skipped: %s\n", berlu_last_error());
        return SKIPPED;
    }
    cuda_backend()->close(d);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_chosen_algorithm_gives_the_same_bits_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
