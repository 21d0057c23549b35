/* test_passes.c - what passes do to a network changes its memory and its calls, not its answer.
 * SPDX-License-Identifier: MIT
 *
 * Every network of the cases. Training with rates of 0 is the measure for inference: there random
 * ops are nodes that run and change nothing, so whatever simplify mends in the graph when it takes
 * them out must give the same answer. */
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

/* Bound in f32: that of test_kernels.c. The reference's outputs are compared as floats, so they may
 * differ in their last bit. */
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

/* A result may lie where one input lay, if the op's row says so and the node reads that memory
 * through no other input. */
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

/* x as the reference computes it, or the error that it is gone: where the activation ran in
 * place, y lies there. */
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

/* The node whose y a gradient of attention reads: the one that wrote its log-sums or, where y is
 * recomputed, that took them. */
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

/* The node that computes dx for the layer of a weight gradient; -1: nobody wants it. */
static int dx_of(const graph *g, const node *dw)
{
    for (int i = 0; i < graph_node_count(g); i++) {
        const node *n = graph_node(g, i);
        if (n->op == OP_LINEAR_DX && n->in[0] == dw->in[0] && n->in[1] == dw->attr.like[0])
            return i;
    }
    return -1;
}

/* dx is then in the cache when the next op reads it. */
static void a_weight_gradient_precedes_dx_unless_its_input_is_recomputed(void **state)
{
    (void)state;
    int saved = 0, recomputed = 0;
    for (int i = 0; i < 2 * graph_case_count; i++) {
        graph_case c = graph_cases[i / 2];
        c.options.keep = i % 2 ? KEEP_BOTH : KEEP_INPUT;
        prepared p = case_prepare(&c, cpu_f64_backend(), 1);
        for (int k = 0; k < graph_node_count(p.e->g); k++) {
            const node *n = graph_node(p.e->g, k);
            int dx = n->op == OP_LINEAR_DW ? dx_of(p.e->g, n) : -1;
            if (dx < 0)
                continue;
            int producer = graph_tensor(p.e->g, n->in[1])->producer;
            int again = producer >= 0 && graph_node(p.e->g, producer)->backward;
            assert_true(again ? k > dx : k < dx);
            recomputed += again;
            saved += !again;
        }
        case_free(&p);
    }
    assert_true(saved > 0 && recomputed > 0);
}

static int op_count(const graph *g, op_id op)
{
    int count = 0;
    for (int i = 0; i < graph_node_count(g); i++)
        count += graph_node(g, i)->op == op;
    return count;
}

/* ---- a layer with its residual, and the norm behind it --------------------------------------- */

/* Both reference kernels, one after the other. */
static void linear_norm_run(const op_call *c)
{
    op_call linear = *c, norm = *c;
    linear.op = OP_LINEAR;
    norm.op = OP_NORM;
    norm.in[0] = c->out[0], norm.in[1] = c->in[4], norm.in[2] = c->in[5];
    norm.out[0] = c->out[1], norm.out[1] = c->out[2];
    linear.in[4] = linear.in[5] = linear.out[1] = linear.out[2] = (op_operand){0};
    norm.in[3] = norm.in[4] = norm.in[5] = norm.out[2] = (op_operand){0};
    cpu_f64_backend()->ops[OP_LINEAR].run(&linear);
    cpu_f64_backend()->ops[OP_NORM].run(&norm);
}

static void step_run(prepared *p)
{
    assert_int_equal(engine_forward(p->e, &p->step), BERLU_OK);
    assert_int_equal(engine_backward(p->e), BERLU_OK);
}

static void gradients_are_equal(const graph_case *c, prepared *got, prepared *want)
{
    for (int i = 0; i < graph_param_count(got->g); i++) {
        const tensor_info *t = graph_tensor(got->g, graph_param(got->g, i));
        size_t bytes = (size_t)tensor_elements(t) * sizeof(double);
        double *a = malloc(bytes), *b = malloc(bytes);
        assert_int_equal(engine_get_f64(got->e, ARRAY_GRADIENT, i, a), BERLU_OK);
        assert_int_equal(engine_get_f64(want->e, ARRAY_GRADIENT, i, b), BERLU_OK);
        if (memcmp(a, b, bytes) != 0)
            fail_msg("%s: another gradient of %s", c->name, t->name);
        free(a);
        free(b);
    }
}

/* The same kernels in the same order: equal bits, in training with every policy and in
 * inference. */
static void a_norm_joined_with_the_layer_before_it_changes_no_bit(void **state)
{
    (void)state;
    op_entry ops[OP_COUNT];
    memcpy(ops, cpu_f64_backend()->ops, sizeof ops);
    ops[OP_LINEAR_NORM] = (op_entry){.run = linear_norm_run, .in_place = 8};
    backend joining = *cpu_f64_backend();
    joining.ops = ops;
    int joined = 0;
    for (int i = 0; i < 2 * graph_case_count; i++) {
        graph_case c = graph_cases[i / 2];
        if (c.options.keep != KEEP_OUTPUT)
            c.options.keep = i % 2 ? KEEP_BOTH : KEEP_INPUT;
        prepared got = case_prepare(&c, &joining, 1), want = case_prepare(&c, cpu_f64_backend(), 1);
        step_run(&got);
        step_run(&want);
        gradients_are_equal(&c, &got, &want);
        engine *a = engine_beside(&got, (engine_options){.mode = ENGINE_INFER});
        engine *b = engine_beside(&want, (engine_options){.mode = ENGINE_INFER});
        assert_int_equal(engine_forward(a, &got.step), BERLU_OK);
        assert_int_equal(engine_forward(b, &want.step), BERLU_OK);
        assert_memory_equal(engine_logits(a), engine_logits(b),
                            (size_t)(a->classes * a->options.batch) * sizeof(float));
        int pairs = op_count(got.e->g, OP_LINEAR_NORM);
        joined += pairs;
        assert_int_equal(pairs + op_count(got.e->g, OP_LINEAR), op_count(want.e->g, OP_LINEAR));
        assert_int_equal(pairs + op_count(got.e->g, OP_NORM), op_count(want.e->g, OP_NORM));
        assert_true(op_count(a->g, OP_LINEAR_NORM) >= pairs); /* without draws more residuals follow a layer */
        engine_free(a);
        engine_free(b);
        case_free(&got);
        case_free(&want);
    }
    assert_true(joined > 0);
    ops[OP_LINEAR_NORM].width = 1000; /* of no case */
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], &joining, 1);
        assert_int_equal(op_count(p.e->g, OP_LINEAR_NORM), 0);
        case_free(&p);
    }
}

/* ---- both layers of an MLP ------------------------------------------------------------------- */

/* The reference kernels, one after the other; h in memory of its own. */
static void linear_act_run(const op_call *c)
{
    const op_entry *ops = cpu_f64_backend()->ops;
    op_call linear = *c, act = *c;
    linear.op = OP_LINEAR;
    act.op = OP_ACT;
    linear.in[3] = linear.in[4] = linear.out[1] = (op_operand){0};
    linear.out[0] = c->out[1].info ? c->out[1] : c->out[0];
    act.in[0] = linear.out[0], act.in[1] = c->in[3], act.in[2] = c->in[4];
    act.in[3] = act.in[4] = act.out[1] = (op_operand){0};
    ops[OP_LINEAR].run(&linear);
    ops[OP_ACT].run(&act);
}

static void mlp_run(const op_call *c)
{
    op_call first = *c, second = *c;
    op_operand hidden = c->in[0];
    hidden.channels = c->in[1].rows;
    void *scratch = malloc((size_t)(hidden.rows * hidden.channels) * sizeof(double));
    hidden.data = scratch;
    for (int i = 2; i < NODE_INPUTS; i++)
        first.in[i] = second.in[i] = (op_operand){0};
    for (int i = 0; i < NODE_OUTPUTS; i++)
        first.out[i] = second.out[i] = (op_operand){0};
    first.op = OP_LINEAR_ACT;
    first.in[2] = c->in[4], first.in[3] = c->in[8], first.in[4] = c->in[9];
    first.out[0] = second.in[0] = hidden, second.in[1] = c->in[2], second.in[2] = c->in[5], second.in[3] = c->in[3];
    second.out[0] = c->out[0];
    linear_act_run(&first);
    if (c->out[1].info) {
        second.op = OP_LINEAR_NORM;
        second.in[4] = c->in[6], second.in[5] = c->in[7];
        second.out[1] = c->out[1], second.out[2] = c->out[2];
        linear_norm_run(&second);
    } else {
        second.op = OP_LINEAR;
        cpu_f64_backend()->ops[OP_LINEAR].run(&second);
    }
    free(scratch);
}

static int mlp_refused(const op_call *c)
{
    assert_true(c->in[0].info && c->out[0].info && !c->in[0].data && c->in[0].rows == c->out[0].rows);
    assert_true(c->in[1].dtype == DTYPE_F64 && c->device && c->attr->act);
    return 0;
}

/* Counts, and those with a norm. */
static int mlps_count(const graph *g, int *with_norm)
{
    int count = 0;
    for (int i = 0; i < graph_node_count(g); i++) {
        const node *n = graph_node(g, i);
        if (n->op != OP_MLP)
            continue;
        count++;
        *with_norm += n->out[1] != TENSOR_NONE;
        assert_int_equal(n->out[1] != TENSOR_NONE, n->in[6] != TENSOR_NONE);
    }
    return count;
}

/* In inference; the backward reads hidden activations, so a graph that has one keeps its nodes. */
static void an_mlp_in_one_node_changes_no_bit(void **state)
{
    (void)state;
    op_entry ops[OP_COUNT], apart[OP_COUNT];
    memcpy(ops, cpu_f64_backend()->ops, sizeof ops);
    ops[OP_LINEAR_ACT] = (op_entry){.run = linear_act_run};
    memcpy(apart, ops, sizeof ops);
    ops[OP_MLP] = (op_entry){.run = mlp_run, .in_place = 8};
    backend joining = *cpu_f64_backend(), plain = joining;
    joining.ops = ops;
    plain.ops = apart;
    int joined = 0, with_norm = 0;
    for (int i = 0; i < 2 * graph_case_count; i++) {
        graph_case c = graph_cases[i / 2];
        if (c.options.keep != KEEP_OUTPUT)
            c.options.keep = i % 2 ? KEEP_BOTH : KEEP_INPUT;
        prepared got = case_prepare(&c, &joining, 1), want = case_prepare(&c, &plain, 1);
        assert_int_equal(op_count(got.e->g, OP_MLP), 0);
        engine *a = engine_beside(&got, (engine_options){.mode = ENGINE_INFER});
        engine *b = engine_beside(&want, (engine_options){.mode = ENGINE_INFER});
        assert_int_equal(engine_forward(a, &got.step), BERLU_OK);
        assert_int_equal(engine_forward(b, &want.step), BERLU_OK);
        assert_memory_equal(engine_logits(a), engine_logits(b),
                            (size_t)(a->classes * a->options.batch) * sizeof(float));
        int norms = 0, pairs = mlps_count(a->g, &norms);
        joined += pairs;
        with_norm += norms;
        assert_int_equal(pairs + op_count(a->g, OP_LINEAR), op_count(b->g, OP_LINEAR));
        assert_int_equal(pairs + op_count(a->g, OP_LINEAR_ACT), op_count(b->g, OP_LINEAR_ACT));
        assert_int_equal(norms + op_count(a->g, OP_NORM), op_count(b->g, OP_NORM));
        assert_true(a->plan.bytes[AREA_ARENA] <= b->plan.bytes[AREA_ARENA]);
        if (strncmp(c.name, "layers in pairs", 15) == 0) /* nobody else reads u or h of the first two */
            assert_true(pairs == 2 && norms == 1 && op_count(a->g, OP_LINEAR_ACT) == 2);
        engine_free(a);
        engine_free(b);
        case_free(&got);
        case_free(&want);
    }
    assert_true(joined > 0 && with_norm > 0 && with_norm < joined);
    ops[OP_MLP].takes = mlp_refused;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], &joining, 1);
        engine *e = engine_beside(&p, (engine_options){.mode = ENGINE_INFER});
        assert_int_equal(op_count(e->g, OP_MLP), 0);
        engine_free(e);
        case_free(&p);
    }
}

/* ---- work of weights instead of rows --------------------------------------------------------- */

static backend folding_backend(void) /* the reference as a backend that wants work in weights */
{
    backend b = *cpu_f64_backend();
    b.fold_weights = 1;
    return b;
}

/* The bound: doubles, and at most some hundred roundings on the way of a gradient. */
static void arrays_equal(const graph_case *c, engine_array array, prepared *got, prepared *want)
{
    for (int i = 0; i < graph_param_count(got->g); i++) {
        const tensor_info *t = graph_tensor(got->g, graph_param(got->g, i));
        int64_t count = tensor_elements(t);
        double *a = malloc((size_t)count * sizeof *a), *b = malloc((size_t)count * sizeof *b), most = 0;
        assert_int_equal(engine_get_f64(got->e, array, i, a), BERLU_OK);
        assert_int_equal(engine_get_f64(want->e, array, i, b), BERLU_OK);
        for (int64_t k = 0; k < count; k++)
            most = fmax(most, fabs(b[k]));
        for (int64_t k = 0; k < count; k++)
            if (!(fabs(a[k] - b[k]) <= 1e-12 * (1 + most)))
                fail_msg("%s: number %d of %s is %.17g, without the pass %.17g", c->name, (int)k, t->name, a[k], b[k]);
        free(a);
        free(b);
    }
}

static void work_in_weights_changes_no_gradient_and_no_answer(void **state)
{
    (void)state;
    const backend folding = folding_backend();
    int moved = 0, spread = 0, joined = 0;
    for (int i = 0; i < graph_case_count; i++) {
        const graph_case *c = &graph_cases[i];
        prepared got = case_prepare(c, &folding, 1), want = case_prepare(c, cpu_f64_backend(), 1);
        prepared *both[] = {&got, &want};
        engine *infer[2];
        for (int k = 0; k < 2; k++) {
            assert_int_equal(engine_forward(both[k]->e, &both[k]->step), BERLU_OK);
            assert_int_equal(engine_backward(both[k]->e), BERLU_OK);
            infer[k] = engine_beside(both[k], (engine_options){.mode = ENGINE_INFER});
            assert_int_equal(engine_forward(infer[k], &both[k]->step), BERLU_OK);
        }
        arrays_equal(c, ARRAY_GRADIENT, &got, &want);
        for (int64_t k = 0; k < infer[0]->classes * infer[0]->options.batch; k++)
            assert_true(fabsf(engine_logits(infer[0])[k] - engine_logits(infer[1])[k]) <=
                        2e-7f * (1 + fabsf(engine_logits(infer[1])[k])));
        assert_int_equal(op_count(want.e->g, OP_SCALE_WEIGHT), 0);
        assert_int_equal(op_count(infer[0]->g, OP_SCALE_WEIGHT), op_count(got.e->g, OP_SCALE_WEIGHT));
        moved += op_count(got.e->g, OP_SCALE_WEIGHT);
        spread += op_count(got.e->g, OP_SPREAD_WEIGHT);
        joined += op_count(got.e->g, OP_JOIN_WEIGHT);
        assert_int_equal(op_count(got.e->g, OP_SPREAD_WEIGHT_GRAD), op_count(got.e->g, OP_SPREAD_WEIGHT));
        engine_free(infer[0]);
        engine_free(infer[1]);
        case_free(&got);
        case_free(&want);
    }
    assert_int_equal(moved, 2 + 2 * 2); /* of three factors, and of two blocks in two cases */
    assert_int_equal(joined, 1);        /* of the one attention with v apart */
    assert_int_equal(spread, 1);        /* of two streams, but not where windows leave their tile */
}

/* Sums over micro-batches, optimizer and average see the gradients of the parameters themselves. */
static void work_in_weights_changes_no_update(void **state)
{
    (void)state;
    const backend folding = folding_backend();
    const backend *const machines[] = {&folding, cpu_f64_backend()};
    for (int i = 0; i < graph_case_count; i++) {
        graph_case c = graph_cases[i];
        if (!strstr(c.name, "convolutions") && !strstr(c.name, "factors") && !strstr(c.name, "two streams") &&
            !strstr(c.name, "v apart"))
            continue;
        c.options.ema = 1;
        c.options.accumulate = 3;
        prepared p[2];
        for (int k = 0; k < 2; k++) {
            p[k] = case_prepare(&c, machines[k], 1);
            p[k].step.eps = 1e-3, p[k].step.beta1 = 0.9, p[k].step.beta2 = 0.999; /* no division by noise */
            p[k].step.ema_decay = 0.5;
            p[k].step.micro_batches = 3;
            for (int at = 0; at < 6; at++) {
                p[k].step.count = (uint32_t)(1 + at / 3);
                p[k].step.micro_batch = (uint32_t)(at % 3);
                engine_input(p[k].e)[0] = (float)at;
                assert_int_equal(engine_forward(p[k].e, &p[k].step), BERLU_OK);
                assert_int_equal(engine_backward(p[k].e), BERLU_OK);
                assert_int_equal(at % 3 == 2 ? engine_update(p[k].e) : BERLU_OK, BERLU_OK);
            }
        }
        arrays_equal(&c, ARRAY_WEIGHT, &p[0], &p[1]);
        arrays_equal(&c, ARRAY_EMA, &p[0], &p[1]);
        case_free(&p[0]);
        case_free(&p[1]);
    }
}

/* The sum with the residual follows the product; nobody reads rows for the factor's sake; nothing
 * is kept for it. */
static void a_factor_in_the_weights_leaves_no_pass_over_rows(void **state)
{
    (void)state;
    const backend folding = folding_backend();
    for (int i = 0; i < graph_case_count; i++) {
        if (!strstr(graph_cases[i].name, "convolutions"))
            continue;
        prepared got = case_prepare(&graph_cases[i], &folding, 1),
                 want = case_prepare(&graph_cases[i], cpu_f64_backend(), 1);
        assert_int_equal(op_count(want.e->g, OP_SCALE) + op_count(want.e->g, OP_SCALE_GRAD), 4);
        assert_int_equal(op_count(got.e->g, OP_SCALE) + op_count(got.e->g, OP_SCALE_GRAD), 0);
        assert_int_equal(op_count(got.e->g, OP_SCALE_WEIGHT_GRAD), 2);
        int residuals = 0;
        for (int k = 0; k < graph_node_count(got.e->g); k++)
            residuals += graph_node(got.e->g, k)->op == OP_LINEAR && graph_node(got.e->g, k)->in[3] != TENSOR_NONE;
        assert_int_equal(residuals, 1); /* in the other block the residual is added where a path is dropped */
        case_free(&got);
        case_free(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inference_answers_as_training_does_without_draws),
        cmocka_unit_test(inference_runs_no_random_op),
        cmocka_unit_test(no_node_writes_where_it_still_reads),
        cmocka_unit_test(a_site_tells_its_input_or_that_it_is_gone),
        cmocka_unit_test(attention_grad_reads_y_where_the_backend_asks_for_it),
        cmocka_unit_test(a_weight_gradient_precedes_dx_unless_its_input_is_recomputed),
        cmocka_unit_test(a_norm_joined_with_the_layer_before_it_changes_no_bit),
        cmocka_unit_test(an_mlp_in_one_node_changes_no_bit),
        cmocka_unit_test(work_in_weights_changes_no_gradient_and_no_answer),
        cmocka_unit_test(work_in_weights_changes_no_update),
        cmocka_unit_test(a_factor_in_the_weights_leaves_no_pass_over_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
