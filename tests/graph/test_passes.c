/* test_passes.c - what passes do to a network changes its memory and its calls, not its answer. SPDX-License-Identifier: MIT
 *
 * Every network of the cases. Training with rates of 0 is the measure for inference: there random ops are nodes that run and
 * change nothing, so whatever simplify mends in the graph when it takes them out must give the same answer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "cpu/simd_kernels.h"
#include "engine/engine_internal.h"
#include "graph/cases.h"

/* An engine of another kind over the parameters and the batch of p. */
static engine *engine_beside(prepared *p, engine_options o)
{
    engine *e = NULL;
    o.batch = p->e->options.batch;
    o.backend = p->e->backend;
    o.share = p->e;
    o.threads = 1;
    o.no_update = 1;
    assert_int_equal(engine_create(&e, p->g, &o), BERLU_OK);
    int64_t pixels = tensor_elements(graph_tensor(p->g, graph_image(p->g)));
    memcpy(engine_input(e), engine_input(p->e), (size_t)(pixels * o.batch) * sizeof(float));
    return e;
}

static void rates_clear(graph *g)
{
    for (int i = 0; i < graph_node_count(g); i++)
        graph_node_edit(g, i)->attr.rate = 0;
}

static void answers_compare(const graph_case *c, const backend *machine, const float *expected, double bound)
{
    prepared p = case_prepare(c, machine, 1);
    engine *e = engine_beside(&p, (engine_options){.mode = ENGINE_INFER});
    assert_int_equal(engine_forward(e, &p.step), BERLU_OK);
    for (int64_t i = 0; i < e->classes * e->options.batch; i++)
        if (!(fabs((double)engine_logits(e)[i] - (double)expected[i]) <= bound * (1 + fabs((double)expected[i]))))
            fail_msg("%s on %s: logit %d is %.9g, in training without draws %.9g", c->name, machine->name, (int)i,
                     (double)engine_logits(e)[i], (double)expected[i]);
    engine_free(e);
    case_free(&p);
}

/* Bound in f32: that of test_kernels.c. The referee's answers are compared as floats, so they may differ in their last bit. */
static void inference_answers_as_training_does_without_draws(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        const graph_case *c = &graph_cases[i];
        prepared p = case_prepare(c, cpu_f64_backend(), 1);
        rates_clear(p.g);
        engine *still = engine_beside(&p, c->options);
        assert_int_equal(engine_forward(still, &p.step), BERLU_OK);
        const float *expected = engine_logits(still);
        answers_compare(c, cpu_f64_backend(), expected, 2e-7);
        for (int k = 0; cpu_backend_at(k); k++) {
            cpu_isa isa;
            const char *name = ((const simd_kernels *)cpu_backend_at(k)->data)->isa;
            if (cpu_isa_parse(&isa, name) == BERLU_OK && cpu_has(isa))
                answers_compare(c, cpu_backend_at(k), expected, 2e-5);
        }
        engine_free(still);
        case_free(&p);
    }
}

static void inference_runs_no_random_op(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_backend(), 1);
        engine *e = engine_beside(&p, (engine_options){.mode = ENGINE_INFER});
        for (int k = 0; k < graph_node_count(e->g); k++)
            assert_false(op_rules[graph_node(e->g, k)->op].flags & RULE_RANDOM);
        engine_free(e);
        case_free(&p);
    }
}

/* A result may lie where one input lay, if the op's row says so and the node reads that memory through no other input. */
static void node_check(const engine *e, const char *name, const node *n)
{
    unsigned allowed = e->backend->ops[n->op].in_place;
    for (int j = 0; j < NODE_OUTPUTS; j++) {
        const char *out = n->out[j] == TENSOR_NONE ? NULL : engine_data(e, n->out[j]);
        int shared = 0, legal = 0;
        for (int k = 0; out && k < NODE_INPUTS; k++)
            if (n->in[k] != TENSOR_NONE && engine_data(e, n->in[k]) == out) {
                shared++;
                legal += j == 0 && (allowed >> k & 1);
            }
        if (shared && (shared != 1 || !legal))
            fail_msg("%s: %s writes where it still reads", name, op_rules[n->op].name);
    }
}

static void no_node_writes_where_it_still_reads(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_backend(), 1);
        engine *infer = engine_beside(&p, (engine_options){.mode = ENGINE_INFER});
        const engine *both[] = {p.e, infer};
        for (int m = 0; m < 2; m++)
            for (int k = 0; k < graph_node_count(both[m]->g); k++)
                if (!(op_rules[graph_node(both[m]->g, k)->op].flags & RULE_VIEW))
                    node_check(both[m], graph_cases[i].name, graph_node(both[m]->g, k));
        engine_free(infer);
        case_free(&p);
    }
}

/* x as the referee computes it, or the honest answer that it is gone: where the activation ran in place, y lies there. */
static void a_site_tells_its_input_or_that_it_is_gone(void **state)
{
    (void)state;
    const backend *const machines[] = {cpu_backend(), cpu_f64_backend()};
    graph_case c = graph_cases[0];
    for (int i = 0; i < graph_case_count; i++)
        if (strcmp(graph_cases[i].name, "berlu, output kept") == 0)
            c = graph_cases[i];
    assert_int_equal(c.options.keep, KEEP_OUTPUT);
    float expected[7], got[7];
    for (size_t m = 0; m < COUNT(machines); m++)
        for (int keep = KEEP_INPUT; keep <= KEEP_OUTPUT; keep++) {
            c.options.keep = (engine_keep)keep;
            prepared p = case_prepare(&c, machines[m], 1);
            assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
            berlu_status status = engine_site_read(p.e, 0, 5, 1, got);
            assert_int_equal(status, keep == KEEP_OUTPUT ? BERLU_ERR_UNSUPPORTED : BERLU_OK);
            for (int k = 0; k < 7 && status == BERLU_OK; k++) {
                expected[k] = m == 0 && keep == KEEP_INPUT ? got[k] : expected[k];
                assert_true(fabsf(got[k] - expected[k]) < 1e-5f);
            }
            case_free(&p);
        }
}

/* The node whose y a gradient of attention reads: the one that wrote its log-sums or, where y is recomputed, that took
 * them. */
static void output_check(const graph *g, const node *grad, int recomputed)
{
    const node *maker = graph_node(g, graph_tensor(g, grad->in[4])->producer);
    assert_int_equal(maker->op, OP_ATTENTION);
    assert_int_equal(maker->out[0], grad->in[4]);
    assert_int_equal(maker->backward ? maker->in[2] : maker->out[1], grad->in[3]);
    assert_true(recomputed || !maker->backward);
}

static void attention_grad_reads_y_where_the_backend_asks_for_it(void **state)
{
    (void)state;
    op_entry ops[OP_COUNT];
    memcpy(ops, cpu_f64_backend()->ops, sizeof ops);
    backend asking = *cpu_f64_backend();
    asking.ops = ops;
    int found = 0, backward = 0;
    for (int i = 0; i < 3 * graph_case_count; i++) {
        graph_case c = graph_cases[i / 3];
        c.options.recompute_attention = i % 3 == 1;
        ops[OP_ATTENTION_GRAD].output = i % 3 == 2 ? 1000 : 1;
        prepared p = case_prepare(&c, &asking, 1);
        for (int k = 0; k < graph_node_count(p.e->g); k++) {
            const node *n = graph_node(p.e->g, k);
            if (n->op != OP_ATTENTION_GRAD)
                continue;
            assert_int_equal(n->in[4] != TENSOR_NONE, i % 3 < 2);
            if (i % 3 == 2)
                continue;
            output_check(p.e->g, n, i % 3);
            found++;
            backward += graph_node(p.e->g, graph_tensor(p.e->g, n->in[4])->producer)->backward;
        }
        case_free(&p);
    }
    assert_true(found > 0 && backward > 0); /* some case recomputes it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inference_answers_as_training_does_without_draws),
        cmocka_unit_test(inference_runs_no_random_op),
        cmocka_unit_test(no_node_writes_where_it_still_reads),
        cmocka_unit_test(a_site_tells_its_input_or_that_it_is_gone),
        cmocka_unit_test(attention_grad_reads_y_where_the_backend_asks_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
