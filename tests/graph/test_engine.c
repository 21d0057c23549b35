/* test_engine.c - the engine as a whole: a network learns, plans hold, updates are torch's.
 * Mistakes: test_mistakes.c. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_internal.h"
#include "engine/graph_print.h"
#include "engine/plan.h"
#include "graph/cases.h"
#include "passes/passes.h"

/* A ViT of two blocks, width 16, with everything a real one has. */
static void small_vit(graph *g, const berlu_act *act, float drop)
{
    int64_t width = 16, one[] = {1, 1, 16}, all[] = {1, 5, 16};
    tensor cls = build_param(g, "cls_token", INIT_N1E6, 0, 3, one),
           pos = build_param(g, "pos_embed", INIT_TN02, 0, 3, all);
    tensor x = build_unfold(g, build_image(g, 3, 8, 8), (unfold_spec){.kernel = 4, .stride = 4});
    tensor w = build_param(g, "patch.weight", init_fan_in(48), 1, 4, (int64_t[]){width, 3, 4, 4});
    x = build_tokens(g, build_linear(g, x, w, build_param(g, "patch.bias", init_fan_in(48), 0, 1, &width)), cls,
                     TENSOR_NONE, pos);
    for (int i = 0; i < 2; i++) {
        tensor h = layer_norm(g, x, 1e-6f, graph_name(g, "blocks.%d.norm1", i));
        h = build_attention(g, layer_linear(g, h, 3 * width, WITH_BIAS, graph_name(g, "blocks.%d.qkv", i)), TENSOR_NONE,
                            2);
        h = layer_linear(g, h, width, WITH_BIAS, graph_name(g, "blocks.%d.proj", i));
        x = build_add(g, x, build_drop_path(g, h, drop, 1));
        h = layer_norm(g, x, 1e-6f, graph_name(g, "blocks.%d.norm2", i));
        h = layer_linear(g, h, 4 * width, WITH_BIAS, graph_name(g, "blocks.%d.fc1", i));
        h = build_act(g, h, act, 0, graph_name(g, "blocks.%d.act", i));
        h = layer_linear(g, h, width, WITH_BIAS, graph_name(g, "blocks.%d.fc2", i));
        x = build_add(g, x, build_drop_path(g, h, drop, 1));
    }
    x = build_select(g, layer_norm(g, x, 1e-6f, "norm"), 0);
    build_output(g, layer_linear(g, x, 4, WITH_BIAS, "head"), TENSOR_NONE);
}

static void vit_still(graph *g, const berlu_act *act)
{
    small_vit(g, act, 0);
}

static void vit_random(graph *g, const berlu_act *act)
{
    small_vit(g, act, 0.2f);
}

static const graph_case vit = {
    "small vit", vit_still, "berlu", {.mode = ENGINE_TRAIN, .batch = 8, .loss = LOSS_CROSS_ENTROPY}};

static void train_some(prepared *p, int steps, double *first, double *last)
{
    p->step.smoothing = 0;
    for (int i = 0; i < steps; i++) {
        p->step.step = (uint32_t)i;
        p->step.count = (uint32_t)i + 1;
        assert_int_equal(engine_forward(p->e, &p->step), BERLU_OK);
        *(i ? last : first) = engine_loss(p->e);
        assert_int_equal(engine_backward(p->e), BERLU_OK);
        assert_int_equal(engine_update(p->e), BERLU_OK);
    }
}

static void a_small_network_learns_a_batch_by_heart(void **state)
{
    (void)state;
    for (int optimizer = OPTIMIZER_ADAMW; optimizer <= OPTIMIZER_SGD; optimizer++) {
        graph_case c = vit;
        double first = 0, last = 0;
        c.options.optimizer = (engine_optimizer)optimizer;
        prepared p = case_prepare(&c, cpu_backend(), 2);
        p.step.lr = optimizer == OPTIMIZER_SGD ? 0.01 : 5e-3; /* from 0.05 on the loss jumps, in f64 too */
        p.step.momentum = 0.9;
        train_some(&p, 120, &first, &last);
        assert_true(first > 1.0 && last < 0.1);
        case_free(&p);
    }
}

static void training_in_f32_follows_the_reference(void **state)
{
    (void)state;
    graph_case c = vit;
    c.build = vit_random; /* the draws are the same on both */
    double first[2] = {0}, last[2] = {0};
    prepared fast = case_prepare(&c, cpu_backend(), 2), reference = case_prepare(&c, cpu_f64_backend(), 1);
    train_some(&fast, 10, &first[0], &last[0]);
    train_some(&reference, 10, &first[1], &last[1]);
    assert_true(fabs(first[0] - first[1]) < 1e-5 && fabs(last[0] - last[1]) < 1e-3 * (1 + fabs(last[1])));
    case_free(&fast);
    case_free(&reference);
}

/* The training engine and an engine that shares its parameters answer alike when nothing is
 * random. */
static void evaluation_shares_the_parameters_of_training(void **state)
{
    (void)state;
    prepared p = case_prepare(&vit, cpu_backend(), 2);
    engine *eval = NULL;
    engine_options o = {.backend = cpu_backend(), .batch = 3, .share = p.e, .loss = LOSS_CROSS_ENTROPY};
    assert_int_equal(engine_create(&eval, p.g, &o), BERLU_OK);
    memcpy(engine_input(eval), engine_input(p.e), 3 * 3 * 8 * 8 * sizeof(float));
    engine_labels(eval)[0] = engine_labels(eval)[1] = 0;
    engine_labels(eval)[2] = -1; /* a padded image counts nowhere */
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_forward(eval, &(engine_step){0}), BERLU_OK);
    for (int i = 0; i < 12; i++)
        assert_true(fabsf(engine_logits(eval)[i] - engine_logits(p.e)[i]) < 1e-5f);
    double loss = 0;
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += exp(engine_logits(eval)[4 * i + k]);
        loss += (log(sum) - engine_logits(eval)[4 * i]) / 2;
    }
    assert_true(fabs(engine_loss(eval) - loss) < 1e-6);
    assert_true(engine_memory_use(eval).arena < engine_memory_use(p.e).arena / 2);
    engine_free(eval);
    case_free(&p);
}

/* The images lie at an odd place of the caller's, and the engine's own buffer holds something else.
 * Returns whether that makes a difference to the loss: some of the small networks hardly look at
 * their image. */
static int lent_images_check(const graph_case *c, const backend *machine)
{
    prepared p = case_prepare(c, machine, 1);
    const graph *g = engine_graph(p.e);
    size_t images = (size_t)tensor_elements(graph_tensor(g, graph_image(g))) * (size_t)p.e->options.batch;
    float *place = malloc((images + 1) * sizeof *place);
    memcpy(place + 1, engine_input(p.e), images * sizeof *place);
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_backward(p.e), BERLU_OK);
    engine_compute_grad_norm(p.e);
    double loss = engine_loss(p.e), norm = engine_grad_norm(p.e);
    for (size_t i = 0; i < images; i++)
        engine_input(p.e)[i] = 0.25f;
    engine_borrow_input(p.e, place + 1);
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_backward(p.e), BERLU_OK);
    engine_compute_grad_norm(p.e);
    assert_true(engine_loss(p.e) == loss && engine_grad_norm(p.e) == norm);
    engine_borrow_input(p.e, NULL);
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    int differs = engine_loss(p.e) != loss;
    free(place);
    case_free(&p);
    return differs;
}

static void images_can_be_read_where_the_caller_has_them(void **state)
{
    (void)state;
    const backend *const machines[] = {cpu_backend(), cpu_f64_backend()};
    for (size_t m = 0; m < COUNT(machines); m++) {
        for (int c = 0; c < graph_case_count; c++)
            lent_images_check(&graph_cases[c], machines[m]);
        assert_true(lent_images_check(&vit, machines[m]));
    }
}

/* ---- updates: vectors computed with torch.optim in float64 ----------------------------------- */

static void one_parameter(graph *g, const berlu_act *act)
{
    (void)act;
    int64_t three = 3;
    tensor x = build_unfold(g, build_image(g, 1, 1, 1), (unfold_spec){.kernel = 1, .stride = 1});
    tensor w = build_param(g, "w", INIT_ZERO, 1, 2, (int64_t[]){three, 1});
    build_output(g, build_reshape(g, build_linear(g, x, w, TENSOR_NONE), 1, &three), TENSOR_NONE);
}

static void updates_compare(const backend *machine, const graph_case *c, engine_step step, const double *start,
                            const double (*gradients)[3], const double (*expected)[3], int count, double bound)
{
    prepared p = case_prepare(c, machine, 2);
    assert_int_equal(engine_set_f64(p.e, ARRAY_WEIGHT, 0, start), BERLU_OK);
    for (int i = 0; i < count; i++) {
        double got[3];
        step.count = (uint32_t)i + 1;
        assert_int_equal(engine_forward(p.e, &step), BERLU_OK);
        assert_int_equal(engine_set_f64(p.e, ARRAY_GRADIENT, 0, gradients[i]), BERLU_OK);
        assert_int_equal(engine_update(p.e), BERLU_OK);
        assert_int_equal(engine_get_f64(p.e, ARRAY_WEIGHT, 0, got), BERLU_OK);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(got[k] - expected[i][k]) <= bound);
    }
    case_free(&p);
}

static void updates_are_those_of_torch(void **state)
{
    (void)state;
    static const double adam_start[3] = {1, -2, 0.5}, sgd_start[3] = {1, -2, 0};
    static const double adam_gradients[3][3] = {{.1, -.2, 0}, {.3, .4, 1e-9}, {-.5, 0, 2}};
    static const double adam_expected[3][3] = {{0.9989500001, -1.99890000005, 0.499975},
                                               {0.997982271522051, -1.99916615856546, 0.499900846318839},
                                               {0.998093286707377, -1.99934919933405, 0.499237037682366}};
    static const double sgd_gradients[2][3] = {{.1, -.2, 0}, {.3, .4, 0}};
    static const double sgd_expected[2][3] = {{0.9791, -1.9582, 0}, {0.91132971, -2.01265942, 0}};
    graph_case c = {
        "one parameter", one_parameter, NULL, {.mode = ENGINE_TRAIN, .batch = 1, .loss = LOSS_CROSS_ENTROPY}};
    engine_step adam = {.lr = 1e-3, .weight_decay = 0.05}, sgd = {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    updates_compare(cpu_f64_backend(), &c, adam, adam_start, adam_gradients, adam_expected, 3, 1e-13);
    updates_compare(cpu_backend(), &c, adam, adam_start, adam_gradients, adam_expected, 3, 1e-6);
    c.options.optimizer = OPTIMIZER_SGD;
    c.options.nesterov = 1;
    updates_compare(cpu_f64_backend(), &c, sgd, sgd_start, sgd_gradients, sgd_expected, 2, 1e-12);
    updates_compare(cpu_backend(), &c, sgd, sgd_start, sgd_gradients, sgd_expected, 2, 1e-6);
}

static void clipping_multiplies_by_the_norm_over_the_bound(void **state)
{
    (void)state;
    graph_case c = {"one parameter",
                    one_parameter,
                    NULL,
                    {.mode = ENGINE_TRAIN, .batch = 1, .loss = LOSS_CROSS_ENTROPY, .optimizer = OPTIMIZER_SGD}};
    prepared p = case_prepare(&c, cpu_backend(), 1);
    double gradient[3] = {3, 0, 4}, zero[3] = {0}, got[3];
    assert_int_equal(engine_set_f64(p.e, ARRAY_WEIGHT, 0, zero), BERLU_OK);
    assert_int_equal(engine_forward(p.e, &(engine_step){.lr = 1, .clip = 1}), BERLU_OK);
    assert_int_equal(engine_set_f64(p.e, ARRAY_GRADIENT, 0, gradient), BERLU_OK);
    assert_int_equal(engine_update(p.e), BERLU_OK);
    assert_int_equal(engine_get_f64(p.e, ARRAY_WEIGHT, 0, got), BERLU_OK);
    assert_true(engine_grad_norm(p.e) == 5.0);
    assert_true(fabs(got[0] + 3 / (5 + 1e-6)) < 1e-6 && fabs(got[2] + 4 / (5 + 1e-6)) < 1e-6);
    case_free(&p);
}

/* The activation's parameter `at` after one update without a gradient: what decay alone does to
 * it. */
static double decayed(const backend *machine, engine_optimizer optimizer, engine_step step, int at)
{
    graph_case c = vit;
    c.options.optimizer = optimizer;
    prepared p = case_prepare(&c, machine, 2);
    double one = 1, zero = 0, got = 0;
    assert_int_equal(engine_set_f64(p.e, ARRAY_WEIGHT, at, &one), BERLU_OK);
    assert_int_equal(engine_forward(p.e, &step), BERLU_OK);
    assert_int_equal(engine_backward(p.e), BERLU_OK);
    assert_int_equal(engine_set_f64(p.e, ARRAY_GRADIENT, at, &zero), BERLU_OK);
    assert_int_equal(engine_update(p.e), BERLU_OK);
    assert_int_equal(engine_get_f64(p.e, ARRAY_WEIGHT, at, &got), BERLU_OK);
    case_free(&p);
    return got;
}

static int first_alpha(void)
{
    prepared p = case_prepare(&vit, cpu_backend(), 1);
    int at = 0;
    while (strcmp(graph_tensor(p.g, graph_param(p.g, at))->name, "blocks.0.act.alpha") != 0)
        assert_true(++at < graph_param_count(p.g));
    case_free(&p);
    return at;
}

static void decay_of_everything_reaches_alpha_unless_it_has_its_own(void **state)
{
    (void)state;
    const backend *machines[] = {cpu_backend(), cpu_f64_backend()};
    engine_step step = {.lr = 0.1, .weight_decay = 0.5, .count = 1}, all = step, own = step;
    int at = first_alpha();
    all.decay_all = 1;
    own.decay_all = 1;
    own.act_decay = 0.25;
    for (int m = 0; m < 2; m++)
        for (int o = OPTIMIZER_ADAMW; o <= OPTIMIZER_SGD; o++) {
            assert_true(decayed(machines[m], (engine_optimizer)o, step, at) == 1);
            assert_true(fabs(decayed(machines[m], (engine_optimizer)o, all, at) - 0.95) < 1e-6);
            assert_true(fabs(decayed(machines[m], (engine_optimizer)o, own, at) - 0.975) < 1e-6);
        }
}

/* A gradient of a thousand on a frozen alpha must not shrink the steps of everybody else. */
static void frozen_parameters_count_nowhere_in_the_norm(void **state)
{
    (void)state;
    const backend *machines[] = {cpu_backend(), cpu_f64_backend()};
    int at = first_alpha();
    for (int m = 0; m < 2; m++) {
        double norm[2], thousand = 1000;
        for (int frozen = 0; frozen < 2; frozen++) {
            prepared p = case_prepare(&vit, machines[m], 2);
            p.step.act_frozen = frozen;
            assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
            assert_int_equal(engine_backward(p.e), BERLU_OK);
            assert_int_equal(engine_set_f64(p.e, ARRAY_GRADIENT, at, &thousand), BERLU_OK);
            assert_int_equal(engine_update(p.e), BERLU_OK);
            norm[frozen] = engine_grad_norm(p.e);
            case_free(&p);
        }
        assert_true(norm[0] >= 1000 && norm[1] > 0 && norm[1] < 100);
    }
}

/* Two half batches with loss_scale 1/2 give the gradients of the whole one. */
static void accumulated_micro_batches_equal_one_batch(void **state)
{
    (void)state;
    graph_case half = vit;
    half.options.batch = 4;
    half.options.accumulate = 2;
    prepared whole = case_prepare(&vit, cpu_f64_backend(), 1), parts = case_prepare(&half, cpu_f64_backend(), 1);
    assert_int_equal(engine_forward(whole.e, &whole.step), BERLU_OK);
    assert_int_equal(engine_backward(whole.e), BERLU_OK);
    parts.step.loss_scale = 0.5;
    parts.step.micro_batches = 2;
    for (int i = 0; i < 2; i++) {
        parts.step.micro_batch = (uint32_t)i;
        memcpy(engine_input(parts.e), engine_input(whole.e) + i * 4 * 192, 4 * 192 * sizeof(float));
        memcpy(engine_labels(parts.e), engine_labels(whole.e) + i * 4, 4 * sizeof(int32_t));
        assert_int_equal(engine_forward(parts.e, &parts.step), BERLU_OK);
        assert_int_equal(engine_backward(parts.e), BERLU_OK);
    }
    for (int i = 0; i < graph_param_count(whole.g); i++) {
        int64_t count = tensor_elements(graph_tensor(whole.g, graph_param(whole.g, i)));
        double a[4096], b[4096];
        assert_true(count <= 4096);
        assert_int_equal(engine_get_f64(whole.e, ARRAY_GRADIENT, i, a), BERLU_OK);
        assert_int_equal(engine_get_f64(parts.e, ARRAY_GRADIENT, i, b), BERLU_OK);
        for (int64_t k = 0; k < count; k++)
            assert_true(fabs(a[k] - b[k]) < 1e-12);
    }
    case_free(&whole);
    case_free(&parts);
}

static void the_average_of_the_weights_follows_its_rule(void **state)
{
    (void)state;
    graph_case c = vit;
    c.options.ema = 1;
    prepared p = case_prepare(&c, cpu_backend(), 1);
    float before[16], after[16], average[16];
    engine_sync_ema(p.e);
    int last = graph_param_count(p.g) - 1; /* head.bias */
    p.step.ema_decay = 0.75;
    assert_int_equal(engine_get(p.e, ARRAY_EMA, last, before), BERLU_OK);
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_backward(p.e), BERLU_OK);
    assert_int_equal(engine_update(p.e), BERLU_OK);
    assert_int_equal(engine_get(p.e, ARRAY_WEIGHT, last, after), BERLU_OK);
    assert_int_equal(engine_get(p.e, ARRAY_EMA, last, average), BERLU_OK);
    for (int i = 0; i < 4; i++)
        assert_true(before[i] != after[i] && fabsf(average[i] - (0.75f * before[i] + 0.25f * after[i])) < 1e-6f);
    engine_swap_ema(p.e);
    assert_int_equal(engine_get(p.e, ARRAY_WEIGHT, last, before), BERLU_OK);
    assert_memory_equal(before, average, 4 * sizeof(float));
    case_free(&p);
}

/* What went into a site is the layer's output, bias included, also where the engine keeps it
 * without. */
static void a_site_can_be_read_after_the_forward(void **state)
{
    (void)state;
    prepared fast = case_prepare(&vit, cpu_backend(), 1), reference = case_prepare(&vit, cpu_f64_backend(), 1);
    assert_int_equal(engine_forward(fast.e, &fast.step), BERLU_OK);
    assert_int_equal(engine_forward(reference.e, &reference.step), BERLU_OK);
    float a[3 * 64], b[3 * 64];
    assert_int_equal(engine_site_rows(fast.e, 0), 8 * 5);
    assert_int_equal(engine_site_rows(fast.e, 1),
                     8); /* behind the last attention only the answer's token is computed */
    assert_int_equal(engine_site_read(fast.e, 0, 37, 3, a), BERLU_OK);
    assert_int_equal(engine_site_read(reference.e, 0, 37, 3, b), BERLU_OK);
    for (int i = 0; i < 3 * 64; i++)
        assert_true(fabsf(a[i] - b[i]) < 1e-4f);
    assert_int_equal(engine_site_read(fast.e, 0, 38, 3, a), BERLU_ERR_ARG);
    case_free(&fast);
    case_free(&reference);
}

/* ---- tables and plans ------------------------------------------------------------------------ */

static void op_rules_have_no_holes(void **state)
{
    (void)state;
    for (int i = 0; i < OP_COUNT; i++) {
        int fused = (op_rules[i].flags & RULE_FUSED) != 0, view = (op_rules[i].flags & RULE_VIEW) != 0;
        assert_non_null(op_rules[i].name);
        assert_non_null(op_rules[i].shape);
        assert_true(view || fused || cpu_backend()->ops[i].run);
        assert_true(view || fused || cpu_f64_backend()->ops[i].run);
    }
}

static void assert_no_overlap(const plan *made)
{
    for (int a = 0; a < made->count; a++)
        for (int b = 0; b < a; b++) {
            const plan_place *x = &made->places[a], *y = &made->places[b];
            if (x->area != AREA_ARENA || y->area != AREA_ARENA || x->root != a || y->root != b || x->first > y->last ||
                y->first > x->last)
                continue;
            assert_true(x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset);
        }
}

/* No plan can do with less than the most that lives at once; ours takes at most a quarter more. */
static void assert_near_the_least(const plan *made, int nodes)
{
    uint64_t most = 0;
    for (int at = 0; at < nodes; at++) {
        uint64_t living = 0;
        for (int t = 0; t < made->count; t++)
            if (made->places[t].area == AREA_ARENA && made->places[t].root == t && made->places[t].first <= at &&
                made->places[t].last >= at)
                living += made->places[t].bytes;
        most = living > most ? living : most;
    }
    assert_true(made->bytes[AREA_ARENA] >= most && made->bytes[AREA_ARENA] <= most + most / 4);
}

/* The bare forward, and the engine's own plan: the whole training step, fused and narrowed. */
static void plans_never_let_two_living_tensors_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_backend(), 1);
        graph *g = NULL;
        plan made = {0};
        assert_int_equal(graph_clone(&g, p.g), BERLU_OK);
        assert_int_equal(graph_prune(g, 1), BERLU_OK);
        assert_int_equal(plan_make(&made, g, cpu_backend(), NULL, 3), BERLU_OK);
        assert_no_overlap(&made);
        assert_no_overlap(&p.e->plan);
        assert_near_the_least(&made, graph_node_count(g));
        assert_near_the_least(&p.e->plan, graph_node_count(p.e->g));
        plan_free(&made);
        graph_free(g);
        case_free(&p);
    }
}

/* Image and labels, each rounded up to 64 bytes: what a pass left behind takes no memory. */
static void memory_is_planned_for_nothing_that_is_not_used(void **state)
{
    (void)state;
    prepared p = case_prepare(&vit, cpu_backend(), 1);
    engine_memory m = engine_memory_use(p.e);
    assert_int_equal(m.input, 8 * 3 * 8 * 8 * 4 + 64);
    assert_int_equal(m.total, m.parameters + m.gradients + m.moments + m.arena + m.input + m.workspace + m.library);
    uint64_t staged = cpu_backend()->host_memory ? 0 : m.input; /* the caller fills a copy on the host */
    uint64_t ours = m.total - m.library + staged;
    assert_true(m.allocated >= ours && m.allocated < ours + 4096);
    case_free(&p);
}

/* Kernels are asked for their scratch before they have addresses: the answer must be the same. */
static void a_plan_without_an_engine_tells_the_same_memory(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_backend(), 2);
        engine_options options = graph_cases[i].options;
        engine_memory made = engine_memory_use(p.e), planned;
        options.backend = cpu_backend();
        options.threads = 2;
        assert_int_equal(engine_plan_memory(&planned, p.g, &options), BERLU_OK);
        assert_int_equal(planned.allocated, 0);
        planned.allocated = made.allocated;
        assert_memory_equal(&planned, &made, sizeof made);
        case_free(&p);
    }
}

static void a_plan_prints_as_text_and_as_dot(void **state)
{
    (void)state;
    prepared p = case_prepare(&vit, cpu_backend(), 1);
    text plain = {0}, dot = {0};
    assert_int_equal(graph_print(&plain, p.e->g, &p.e->plan, 0), BERLU_OK);
    assert_int_equal(graph_print(&dot, p.e->g, &p.e->plan, 1), BERLU_OK);
    assert_non_null(strstr(plain.data, "linear_dx_act(berlu)"));
    assert_non_null(strstr(plain.data, "---- backward"));
    assert_non_null(strstr(plain.data, "kept from forward to backward"));
    assert_non_null(strstr(dot.data, "digraph"));
    text_free(&plain);
    text_free(&dot);
    case_free(&p);
}

/* Behind the last attention of the small ViT everything runs on one token of five: proj, norm2,
 * fc1, act, fc2, norm. */
static void only_the_rows_the_answer_reads_are_computed(void **state)
{
    (void)state;
    prepared p = case_prepare(&vit, cpu_backend(), 1);
    text plain = {0};
    assert_int_equal(graph_print(&plain, p.e->g, &p.e->plan, 0), BERLU_OK);
    const char *first = strstr(plain.data, " attention -> "), *last = NULL, *end = strstr(plain.data, "---- backward");
    for (const char *at = first; at && at < end; at = strstr(at + 1, " attention -> "))
        last = at;
    assert_true(last && last != first);
    for (const char *line = strchr(last, '\n') + 1; line < end; line = strchr(line, '\n') + 1) {
        const char *wide = strstr(line, "[B, 5, ");
        assert_true(!wide || wide > strchr(line, '\n'));
    }
    text_free(&plain);
    case_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(op_rules_have_no_holes),
        cmocka_unit_test(a_small_network_learns_a_batch_by_heart),
        cmocka_unit_test(training_in_f32_follows_the_reference),
        cmocka_unit_test(evaluation_shares_the_parameters_of_training),
        cmocka_unit_test(images_can_be_read_where_the_caller_has_them),
        cmocka_unit_test(updates_are_those_of_torch),
        cmocka_unit_test(clipping_multiplies_by_the_norm_over_the_bound),
        cmocka_unit_test(decay_of_everything_reaches_alpha_unless_it_has_its_own),
        cmocka_unit_test(frozen_parameters_count_nowhere_in_the_norm),
        cmocka_unit_test(accumulated_micro_batches_equal_one_batch),
        cmocka_unit_test(the_average_of_the_weights_follows_its_rule),
        cmocka_unit_test(a_site_can_be_read_after_the_forward),
        cmocka_unit_test(plans_never_let_two_living_tensors_overlap),
        cmocka_unit_test(memory_is_planned_for_nothing_that_is_not_used),
        cmocka_unit_test(a_plan_without_an_engine_tells_the_same_memory),
        cmocka_unit_test(a_plan_prints_as_text_and_as_dot),
        cmocka_unit_test(only_the_rows_the_answer_reads_are_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
