/* test_groups.c - calls that run some rows at a time give the bits of calls that run one after the
 * other. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "cpu/kernels.h"
#include "cpu/simd_kernels.h"
#include "engine/engine_internal.h"
#include "graph/cases.h"

enum { BATCH = 240, GROUPS = 9, TOKENS = 4, WIDTH = 20, STEPS = 2 }; /* 8640 rows: eight times 1024, and a rest */

/* A transformer among few short rows, as TNT's pixels: every op that can be a link, forward and
 * backward. */
static void pixels(graph *g, const berlu_act *act)
{
    int64_t width = WIDTH;
    tensor x = build_unfold(g, build_image(g, 3, 12, 12), (unfold_spec){.kernel = 2, .stride = 2});
    tensor w = build_param(g, "pixel.weight", init_fan_in(12), 1, 4, (int64_t[]){width, 3, 2, 2});
    x = build_linear(g, x, w, build_param(g, "pixel.bias", init_fan_in(12), 0, 1, &width));
    x = build_reshape(g, x, 3, (int64_t[]){GROUPS, TOKENS, WIDTH});
    for (int i = 0; i < 2; i++) {
        tensor y = layer_norm(g, x, 1e-5f, graph_name(g, "blocks.%d.norm1", i));
        y = build_attention(g, layer_linear(g, y, 3 * width, NO_BIAS, graph_name(g, "blocks.%d.qkv", i)), TENSOR_NONE,
                            2);
        x = build_add(g, x, layer_linear(g, y, width, WITH_BIAS, graph_name(g, "blocks.%d.proj", i)));
        y = layer_norm(g, x, 1e-5f, graph_name(g, "blocks.%d.norm2", i));
        y = layer_linear(g, y, 3 * width, WITH_BIAS, graph_name(g, "blocks.%d.fc1", i));
        y = build_act(g, y, act, 0, graph_name(g, "blocks.%d.act", i));
        x = build_add(g, x, layer_linear(g, y, width, WITH_BIAS, graph_name(g, "blocks.%d.fc2", i)));
    }
    x = build_mean(g, build_reshape(g, x, 2, (int64_t[]){GROUPS * TOKENS, WIDTH}));
    build_output(g, layer_linear(g, x, 4, WITH_BIAS, "head"), TENSOR_NONE);
}

static const graph_case many_rows = {
    "pixels", pixels, "berlu", {.mode = ENGINE_TRAIN, .batch = BATCH, .loss = LOSS_CROSS_ENTROPY}};

static prepared trained(const graph_case *c, const backend *machine, int threads)
{
    prepared p = case_prepare(c, machine, threads);
    p.step.lr = 1e-3;
    p.step.clip = 1;
    for (uint32_t i = 0; i < STEPS; i++) {
        p.step.count = i + 1;
        assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
        assert_int_equal(engine_backward(p.e), BERLU_OK);
        assert_int_equal(engine_update(p.e), BERLU_OK);
    }
    return p;
}

static void assert_same_bits(const prepared *a, const prepared *b)
{
    assert_memory_equal(engine_logits(a->e), engine_logits(b->e), BATCH * 4 * sizeof(float));
    assert_true(engine_grad_norm(a->e) == engine_grad_norm(b->e));
    const graph *g = engine_graph(a->e);
    for (int i = 0; i < graph_param_count(g); i++) {
        size_t count = (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
        float *x = malloc(2 * count * sizeof *x), *y = x + count;
        assert_int_equal(engine_get(a->e, ARRAY_WEIGHT, i, x), BERLU_OK);
        assert_int_equal(engine_get(b->e, ARRAY_WEIGHT, i, y), BERLU_OK);
        assert_memory_equal(x, y, count * sizeof *x);
        free(x);
    }
}

static int longest_chain(const engine *e, int from, int to)
{
    int most = 0;
    for (int i = from; i < to; i++)
        most = e->calls[i].group > most ? e->calls[i].group : most;
    return most;
}

static int can_run(const backend *machine)
{
    cpu_isa isa;
    return cpu_isa_parse(&isa, ((const simd_kernels *)machine->data)->isa) == BERLU_OK && cpu_has(isa);
}

/* On every instruction set of this machine, with either policy, on one to three threads. */
static void chains_change_no_bit(void **state)
{
    (void)state;
    for (int i = 0; cpu_backend_at(i); i++) {
        if (!can_run(cpu_backend_at(i)))
            continue;
        backend apart = *cpu_backend_at(i);
        graph_case c = many_rows;
        c.options.keep = i % 2 ? KEEP_BOTH : KEEP_INPUT;
        apart.group = NULL;
        prepared plain = trained(&c, &apart, 2);
        assert_int_equal(longest_chain(plain.e, 0, plain.e->call_count), 0);
        for (int threads = 1; threads <= 3; threads += 2) {
            prepared chained = trained(&c, cpu_backend_at(i), threads);
            assert_same_bits(&chained, &plain);
            case_free(&chained);
        }
        case_free(&plain);
    }
}

/* Two blocks of the forward, from the first norm to the last sum; of the backward each. */
static void a_transformer_among_short_rows_is_one_chain(void **state)
{
    (void)state;
    prepared p = case_prepare(&many_rows, cpu_backend(), 2);
    assert_true(longest_chain(p.e, 0, p.e->backward_begin) >= 2 * 7);
    assert_true(longest_chain(p.e, p.e->backward_begin, p.e->call_count) >= 2 * 10);
    case_free(&p);
}

static void group_1022(graph *g, int batch) /* not a multiple of four tokens */
{
    cpu_group_mark(g, 1022, batch);
}

/* Few rows are left to all threads at once; so are groups that a group's rows would cut. */
static void few_rows_and_cut_groups_make_no_chain(void **state)
{
    (void)state;
    graph_case c = many_rows;
    c.options.batch = 8;
    prepared few = case_prepare(&c, cpu_backend(), 2);
    assert_int_equal(longest_chain(few.e, 0, few.e->call_count), 0);
    case_free(&few);
    backend odd = *cpu_backend();
    odd.group = group_1022;
    prepared cut = case_prepare(&many_rows, &odd, 2);
    for (int i = 0; i < cut.e->call_count; i++)
        for (int k = 0; k < cut.e->calls[i].group; k++)
            assert_true(cut.e->calls[i + k].op != OP_ATTENTION && cut.e->calls[i + k].op != OP_ATTENTION_GRAD);
    case_free(&cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_change_no_bit),
        cmocka_unit_test(a_transformer_among_short_rows_is_one_chain),
        cmocka_unit_test(few_rows_and_cut_groups_make_no_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
