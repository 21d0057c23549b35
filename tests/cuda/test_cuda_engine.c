/* test_cuda_engine.c - the engine on a GPU against the double-precision reference, the CPU, and
 * itself. SPDX-License-Identifier: MIT
 *
 * Bounds: compare.h. Without a GPU the program says so and exits with 77. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/compare.h"
#include "cuda/cuda.h"
#include "data/draws_check.h"
#include "models/fill.h"
#include "models/models.h"
#include "models/weights.h"
#include "support/folder.h"

enum { SKIPPED = 77, IMAGES = 6, STEPS = 20 };

static device *open_with(const char *precision, const char *residual, const char *algorithms)
{
    device *d = NULL;
    device_options o = {.precision = precision, .residual = residual, .algorithms = algorithms};
    if (cuda_backend()->open(&d, cuda_backend(), &o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return d;
}

static void ok(berlu_status status)
{
    if (status != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static void step_run(prepared *p)
{
    ok(engine_forward(p->e, &p->step));
    ok(engine_backward(p->e));
}

/* ---- every op -------------------------------------------------------------------------------- */

static void cases_compare(const char *precision, const char *residual, const bounds *within)
{
    device *d = open_with(precision, residual, "first");
    for (int i = 0; i < graph_case_count; i++) {
        const graph_case *c = &graph_cases[i];
        prepared got = case_prepare_on(c, cuda_backend(), d, 1), want = case_prepare(c, cpu_f64_backend(), 1);
        step_run(&want);
        for (int run = 0; run < 3; run++) { /* launched, captured, replayed */
            step_run(&got);
            double a = engine_loss(got.e), b = engine_loss(want.e);
            if (!(fabs(a - b) <= within->loss * (1 + fabs(b))))
                fail_msg("%s, %s: loss %.9g, reference %.9g", c->name, precision, a, b);
            arrays_compare(c->name, ARRAY_GRADIENT, &got, &want, within->own, within->share);
        }
        ok(engine_update(got.e));
        case_free(&got);
        case_free(&want);
    }
    cuda_backend()->close(d);
}

static void every_case_in_f32_equals_the_reference(void **state)
{
    (void)state;
    cases_compare("f32", NULL, &within_f32);
}

static void every_case_in_tf32_equals_the_reference(void **state)
{
    (void)state;
    cases_compare("tf32", NULL, &within_tf32);
}

static void every_case_in_bf16_equals_the_reference(void **state)
{
    (void)state;
    cases_compare("bf16", "bf16", &within_bf16);
}

static void every_case_in_bf16_with_an_f32_stream_equals_the_reference(void **state)
{
    (void)state;
    cases_compare("bf16", "f32", &within_bf16);
}

static void an_update_in_f32_equals_the_references(void **state)
{
    (void)state;
    device *d = open_with("f32", NULL, "first");
    for (int i = 0; i < graph_case_count; i++) {
        graph_case c = graph_cases[i];
        c.options.ema = 1;
        c.options.optimizer = i % 2 ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
        c.options.nesterov = i % 4 == 1;
        c.options.accumulate = i % 3 == 0 ? 7 : 1;
        prepared got = case_prepare_on(&c, cuda_backend(), d, 1), want = case_prepare(&c, cpu_f64_backend(), 1);
        prepared *both[] = {&got, &want};
        for (int k = 0; k < 2; k++) {
            both[k]->step.eps = 1e-3, both[k]->step.beta1 = 0.9, both[k]->step.beta2 = 0.999; /* no division by noise */
            both[k]->step.momentum = 0.9, both[k]->step.ema_decay = 0.5;
            for (uint32_t update = 1; update <= 3; update++) {
                both[k]->step.count = update;
                both[k]->step.micro_batches = (uint32_t)c.options.accumulate;
                for (int micro = 0; micro < c.options.accumulate; micro++) {
                    both[k]->step.micro_batch = (uint32_t)micro;
                    step_run(both[k]);
                }
                ok(engine_update(both[k]->e));
            }
        }
        double a = engine_grad_norm(got.e), b = engine_grad_norm(want.e);
        if (!(fabs(a - b) <= 1e-4 * b))
            fail_msg("%s: norm %.9g, reference %.9g", c.name, a, b);
        arrays_compare(c.name, ARRAY_WEIGHT, &got, &want, 1e-4, 1e-6);
        arrays_compare(c.name, ARRAY_EMA, &got, &want, 1e-4, 1e-6);
        case_free(&got);
        case_free(&want);
    }
    cuda_backend()->close(d);
}

static void a_loss_that_is_not_finite_freezes_every_weight(void **state)
{
    (void)state;
    device *d = open_with("f32", NULL, "first");
    graph_case c = graph_cases[0];
    c.options.ema = 1;
    prepared p = case_prepare_on(&c, cuda_backend(), d, 1), q = case_prepare_on(&c, cuda_backend(), d, 1);
    engine_input(p.e)[0] = NAN;
    for (int i = 0; i < 3; i++) {
        step_run(&p);
        ok(engine_update(p.e));
        ok(engine_step_end(p.e));
        engine_input(p.e)[0] = 0; /* a sound batch later changes nothing any more */
    }
    step_result r;
    int there = 0;
    ok(engine_poll(p.e, &r, &there, 1));
    assert_true(there && r.fault && isnan(r.loss_part[0]));
    arrays_compare("weights", ARRAY_WEIGHT, &p, &q, 0, 0);
    arrays_compare("average", ARRAY_EMA, &p, &q, 0, 0);
    while (there)
        ok(engine_poll(p.e, &r, &there, 1));
    case_free(&p);
    case_free(&q);
    cuda_backend()->close(d);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct run {
    model *m;
    engine *e;
    float *images;
} run;

/* A batch of `images` images, `times` times. */
static run run_make_batch(const char *name, const backend *b, device *d, const model_options *m, int images, int times)
{
    run r = {0};
    ok(model_create(&r.m, name, m));
    engine_options o = {.backend = b, .device = d, .mode = ENGINE_TRAIN, .loss = LOSS_CROSS_ENTROPY};
    o.batch = images * times;
    ok(engine_create(&r.e, r.m->graph, &o));
    ok(weights_init(r.e, 7, NULL));
    size_t count = (size_t)tensor_elements(graph_tensor(r.m->graph, graph_image(r.m->graph))) * (size_t)images;
    r.images = malloc(count * sizeof *r.images);
    assert_non_null(r.images);
    fill_input(r.images, count);
    for (int i = 0; i < times; i++)
        memcpy(engine_input(r.e) + (size_t)i * count, r.images, count * sizeof *r.images);
    for (int i = 0; i < images * times; i++)
        engine_labels(r.e)[i] = i % images * 3 % 10;
    return r;
}

static run run_make(const char *name, const backend *b, device *d, const char *act)
{
    return run_make_batch(name, b, d, &(model_options){.acts = &act, .act_count = 1, .drop_path = 0.1}, IMAGES, 1);
}

static void run_free(run *r)
{
    engine_free(r->e);
    model_free(r->m);
    free(r->images);
}

static double run_step(run *r, uint32_t step)
{
    engine_step s = {.seed = 3, .step = step, .count = step + 1, .lr = 5e-4, .weight_decay = 0.05, .clip = 1};
    s.smoothing = 0.1;
    ok(engine_forward(r->e, &s));
    double loss = engine_loss(r->e);
    ok(engine_backward(r->e));
    ok(engine_update(r->e));
    return loss;
}

static const char *const micro[] = {"vit_micro", "deit_micro", "tnt_micro", "convnext_micro"};

static void twenty_steps_of_each_micro_model_follow_the_cpu(void **state)
{
    (void)state;
    device *d = open_with("f32", NULL, "first");
    for (size_t i = 0; i < COUNT(micro); i++) {
        run gpu = run_make(micro[i], cuda_backend(), d, "berlu"),
            cpu = run_make(micro[i], cpu_backend(), NULL, "berlu");
        for (uint32_t step = 0; step < STEPS; step++) {
            double a = run_step(&gpu, step), b = run_step(&cpu, step);
            if (!(fabs(a - b) <= 1e-4 * (1 + fabs(b))))
                fail_msg("%s, step %u: loss %.9g, on the CPU %.9g", micro[i], step, a, b);
        }
        run_free(&gpu);
        run_free(&cpu);
    }
    cuda_backend()->close(d);
}

static void weights_get(run *r, float **out, size_t *count)
{
    const graph *g = engine_graph(r->e);
    *count = 0;
    for (int i = 0; i < graph_param_count(g); i++)
        *count += (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
    float *at = *out = malloc(*count * sizeof **out);
    assert_non_null(at);
    for (int i = 0; i < graph_param_count(g); i++) {
        ok(engine_get(r->e, ARRAY_WEIGHT, i, at));
        at += tensor_elements(graph_tensor(g, graph_param(g, i)));
    }
}

/* The first run measures algorithms and writes them down, the second reads them: also split
 * products give equal bytes. */
static void the_same_run_twice_gives_equal_bytes(void **state)
{
    (void)state;
    static const char *const precisions[] = {"f32", "tf32", "bf16"};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    folder_path(path, folder_fresh(folder, "cuda_engine"), "algorithms.txt");
    for (size_t i = 0; i < COUNT(micro) * COUNT(precisions); i++) {
        const char *name = micro[i / COUNT(precisions)], *precision = precisions[i % COUNT(precisions)];
        float *weights[2];
        size_t count[2];
        for (int k = 0; k < 2; k++) {
            device *d = open_with(precision, NULL, path);
            run r = run_make(name, cuda_backend(), d, i % 2 ? "gelu" : "berlu");
            for (uint32_t step = 0; step < 6; step++)
                run_step(&r, step);
            weights_get(&r, &weights[k], &count[k]);
            run_free(&r);
            cuda_backend()->close(d);
        }
        if (memcmp(weights[0], weights[1], count[0] * sizeof(float)) != 0)
            fail_msg("%s in %s: the weights of two runs differ", name, precision);
        free(weights[0]);
        free(weights[1]);
    }
}

static void batches_from_draws_equal_the_loaders(void **state)
{
    (void)state;
    device *d = open_with("bf16", NULL, "first");
    draws_check(cuda_backend(), d, 0);
    cuda_backend()->close(d);
}

/* One graph for forward, backward and update changes weights as three lists do. */
static void a_whole_step_equals_its_three_parts(void **state)
{
    (void)state;
    device *d = open_with("bf16", NULL, "first");
    for (size_t i = 0; i < COUNT(micro); i++) {
        float *weights[2];
        size_t count[2];
        for (int whole = 0; whole < 2; whole++) {
            run r = run_make(micro[i], cuda_backend(), d, "berlu");
            for (uint32_t step = 0; step < 6; step++) {
                engine_step s = {.seed = 3, .step = step, .count = step + 1, .lr = 5e-4 * (1 + step), .clip = 1};
                ok(whole ? engine_step_run(r.e, &s) : engine_forward(r.e, &s));
                ok(whole ? BERLU_OK : engine_backward(r.e));
                ok(whole ? BERLU_OK : engine_update(r.e));
            }
            weights_get(&r, &weights[whole], &count[whole]);
            run_free(&r);
        }
        assert_memory_equal(weights[0], weights[1], count[0] * sizeof(float));
        free(weights[0]);
        free(weights[1]);
    }
    cuda_backend()->close(d);
}

/* Weight gradients beside the rest of the backward: the same kernels, so the same bits. */
static void two_streams_give_the_bytes_of_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(micro); i++) {
        float *weights[2];
        size_t count[2];
        for (int k = 0; k < 2; k++) {
            device *d = NULL;
            ok(cuda_backend()->open(
                &d, cuda_backend(),
                &(device_options){.precision = "bf16", .algorithms = "first", .second_stream = k ? 1 : -1}));
            run r = run_make(micro[i], cuda_backend(), d, "berlu");
            for (uint32_t step = 0; step < 30; step++) {
                engine_step s = {.seed = 3, .step = step, .count = step + 1, .lr = 5e-4, .clip = 1};
                ok(engine_step_run(r.e, &s));
            }
            weights_get(&r, &weights[k], &count[k]);
            run_free(&r);
            cuda_backend()->close(d);
        }
        if (memcmp(weights[0], weights[1], count[0] * sizeof(float)) != 0)
            fail_msg("%s: the weights differ", micro[i]);
        free(weights[0]);
        free(weights[1]);
    }
}

/* Forward and backward; the loss, and all gradients one behind the other. */
static double gradients_get(run *r, float **out, size_t *count)
{
    const graph *g = engine_graph(r->e);
    engine_step s = {.seed = 3, .count = 1, .lr = 5e-4};
    ok(engine_forward(r->e, &s));
    double loss = engine_loss(r->e);
    ok(engine_backward(r->e));
    weights_get(r, out, count); /* for its memory */
    float *at = *out;
    for (int i = 0; i < graph_param_count(g); i++) {
        ok(engine_get(r->e, ARRAY_GRADIENT, i, at));
        at += tensor_elements(graph_tensor(g, graph_param(g, i)));
    }
    return loss;
}

static void gradients_compare(const run *r, const float *got, const float *want, const bounds *within)
{
    const graph *g = engine_graph(r->e);
    double largest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0, at = 0, count; i < graph_param_count(g); i++, at += count) {
            const tensor_info *t = graph_tensor(g, graph_param(g, (int)i));
            double size = 0, off = 0;
            count = tensor_elements(t);
            for (int64_t k = at; k < at + count; k++) {
                size += (double)want[k] * want[k];
                off += ((double)got[k] - want[k]) * ((double)got[k] - want[k]);
            }
            largest = fmax(largest, sqrt(size));
            if (pass == 1 && !(sqrt(off) <= within->own * sqrt(size) + within->share * largest))
                fail_msg("%s is off by %g of %g (largest %g)", t->name, sqrt(off), sqrt(size), largest);
        }
}

/* 256 images have rows enough for the kernels that take a layer with what is behind it (rows.c,
 * linear_norm.c), 64 have not. Four times the same 64 images have the mean loss of these, and its
 * gradients. */
static void a_batch_of_many_rows_gives_the_gradients_of_few(void **state)
{
    (void)state;
    const char *act = "berlu";
    const model_options options = {.acts = &act, .act_count = 1};
    for (int wide = 0; wide < 2; wide++) {
        device *d = open_with("bf16", wide ? "f32" : "bf16", "first");
        run few = run_make_batch("vit_tiny_cifar", cuda_backend(), d, &options, 64, 1);
        run many = run_make_batch("vit_tiny_cifar", cuda_backend(), d, &options, 64, 4);
        float *want, *got[3];
        size_t count;
        double b = gradients_get(&few, &want, &count);
        for (int i = 0; i < 3; i++) { /* launched, captured, replayed */
            double a = gradients_get(&many, &got[i], &count);
            if (!(fabs(a - b) <= within_bf16.loss * (1 + fabs(b))))
                fail_msg("loss %.9g of 256 images, %.9g of the 64 among them", a, b);
            assert_memory_equal(got[i], got[0], count * sizeof(float));
        }
        gradients_compare(&many, got[0], want, &within_bf16);
        for (int i = 0; i < 3; i++)
            free(got[i]);
        free(want);
        run_free(&few);
        run_free(&many);
        cuda_backend()->close(d);
    }
}

/* An engine for inference with the weights of `r`; its answers to the same images, `times` times. */
static engine *answers_get(const run *r, device *d, int images, int times, const float **answers)
{
    engine *e = NULL;
    engine_options o = {.backend = cuda_backend(), .device = d, .mode = ENGINE_INFER, .share = r->e};
    o.batch = images * times;
    ok(engine_create(&e, r->m->graph, &o));
    size_t count = (size_t)tensor_elements(graph_tensor(r->m->graph, graph_image(r->m->graph))) * (size_t)images;
    for (int i = 0; i < times; i++)
        memcpy(engine_input(e) + (size_t)i * count, r->images, count * sizeof *r->images);
    ok(engine_forward(e, &(engine_step){0}));
    *answers = engine_logits(e);
    assert_non_null(*answers);
    return e;
}

/* Likewise in inference, where 256 images have rows enough for an MLP as one kernel too (mlp.c). */
static void a_batch_of_many_rows_gives_the_answers_of_few(void **state)
{
    (void)state;
    static const char *const acts[] = {"berlu", "gelu"};
    for (int i = 0; i < 4; i++) {
        device *d = open_with("bf16", i % 2 ? "f32" : "bf16", "first");
        const model_options options = {.acts = &acts[i / 2], .act_count = 1};
        run weights = run_make_batch("vit_tiny_cifar", cuda_backend(), d, &options, 64, 1);
        const float *want, *got;
        engine *few = answers_get(&weights, d, 64, 1, &want), *many = answers_get(&weights, d, 64, 4, &got);
        size_t count = 64 * (size_t)tensor_channels(graph_tensor(weights.m->graph, graph_logits(weights.m->graph)));
        for (int k = 0; k < 4; k++) {
            double off = 0, size = 0;
            for (size_t j = 0; j < count; j++) {
                off += pow(got[k * count + j] - want[j], 2);
                size += pow(want[j], 2);
            }
            if (!(size > 0 && sqrt(off) <= within_bf16.own * sqrt(size)))
                fail_msg("%s: answers of 256 images are off by %g of %g", acts[i / 2], sqrt(off), sqrt(size));
        }
        engine_free(few);
        engine_free(many);
        run_free(&weights);
        cuda_backend()->close(d);
    }
}

static void a_loss_in_bf16_falls_as_in_f32(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(micro); i++) {
        double last[2];
        for (int k = 0; k < 2; k++) {
            device *d = open_with(k ? "bf16" : "f32", NULL, "first");
            run r = run_make(micro[i], cuda_backend(), d, "gelu");
            for (uint32_t step = 0; step < STEPS; step++)
                last[k] = run_step(&r, step);
            run_free(&r);
            cuda_backend()->close(d);
        }
        if (!(fabs(last[1] - last[0]) <= 0.05 * last[0])) /* losses near log 10 that fall by some tenths */
            fail_msg("%s: after %d steps the loss is %g in f32 and %g in bf16", micro[i], STEPS, last[0], last[1]);
    }
}

static void the_plan_says_how_much_memory_is_taken(void **state)
{
    (void)state;
    device *d = open_with("bf16", NULL, "first");
    size_t before = cuda_backend()->free_bytes(d);
    model *m = NULL;
    engine *e = NULL;
    ok(model_create(&m, "vit_tiny_cifar", NULL));
    ok(engine_create(
        &e, m->graph,
        &(engine_options){
            .backend = cuda_backend(), .device = d, .mode = ENGINE_TRAIN, .batch = 256, .loss = LOSS_CROSS_ENTROPY}));
    ok(weights_init(e, 7, NULL));
    ok(engine_step_run(e, &(engine_step){.seed = 3, .count = 1, .lr = 5e-4})); /* which opens the second stream */
    double taken = (double)(before - cuda_backend()->free_bytes(d));
    engine_memory plan = engine_memory_use(e);
    double planned = (double)(plan.total - plan.library);    /* the library's workspace came with the device */
    if (!(fabs(taken - planned) <= 0.02 * planned + 0x1p24)) /* CUDA gives memory out in pieces of 2 MiB */
        fail_msg("%.1f MiB are planned, %.1f MiB were taken", planned / 0x1p20, taken / 0x1p20);
    engine_free(e);
    model_free(m);
    cuda_backend()->close(d);
}

int main(int argc, char **argv)
{
    device *d = NULL;
    if (argc > 1) /* one test, or those of a pattern: everything under compute-sanitizer takes hours */
        cmocka_set_test_filter(argv[1]);
    if (cuda_backend()->open(&d, cuda_backend(), &(device_options){.algorithms = "first"}) != BERLU_OK) {
        fprintf(stderr, "skipped: %s\n", berlu_last_error());
        return SKIPPED;
    }
    cuda_backend()->close(d);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_in_f32_equals_the_reference),
        cmocka_unit_test(every_case_in_tf32_equals_the_reference),
        cmocka_unit_test(every_case_in_bf16_equals_the_reference),
        cmocka_unit_test(every_case_in_bf16_with_an_f32_stream_equals_the_reference),
        cmocka_unit_test(an_update_in_f32_equals_the_references),
        cmocka_unit_test(a_loss_that_is_not_finite_freezes_every_weight),
        cmocka_unit_test(twenty_steps_of_each_micro_model_follow_the_cpu),
        cmocka_unit_test(the_same_run_twice_gives_equal_bytes),
        cmocka_unit_test(batches_from_draws_equal_the_loaders),
        cmocka_unit_test(a_whole_step_equals_its_three_parts),
        cmocka_unit_test(two_streams_give_the_bytes_of_one),
        cmocka_unit_test(a_batch_of_many_rows_gives_the_gradients_of_few),
        cmocka_unit_test(a_batch_of_many_rows_gives_the_answers_of_few),
        cmocka_unit_test(a_loss_in_bf16_falls_as_in_f32),
        cmocka_unit_test(the_plan_says_how_much_memory_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
