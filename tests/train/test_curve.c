/* test_curve.c - the first 20 training steps of ViT-Tiny/4 equal PyTorch's.
 * SPDX-License-Identifier: MIT
 *
 * tools/golden_curve.py made the curve with timm and torch.optim.AdamW and describes batches and
 * settings. 1e-3 relative is asked of every loss; rounding alone (float64 against float32 in
 * PyTorch) moves it by 1e-5. */
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "io/csv.h"
#include "models/fill.h"
#include "models/models.h"
#include "models/weights.h"
#include "train/schedule.h"

enum { BATCH = 4, STEPS = 20, SIDE = 32, VALUES = BATCH * 3 * SIDE * SIDE };

static void alphas_set(engine *e, float alpha)
{
    const graph *g = engine_graph(e);
    for (int p = 0; p < graph_param_count(g); p++)
        if (graph_tensor(g, graph_param(g, p))->activation)
            assert_int_equal(engine_set(e, ARRAY_WEIGHT, p, &alpha), BERLU_OK);
}

static void batch_set(engine *e, const float *images, int step)
{
    memcpy(engine_input(e), images + (size_t)step * VALUES, VALUES * sizeof *images);
    for (int i = 0; i < BATCH; i++)
        engine_labels(e)[i] = (step * BATCH + i) * 7 % 10;
}

static void curve_equals(const char *act, const char *loss_column, const char *norm_column)
{
    char path[1024];
    const char *source = getenv("BERLU_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/golden/curve_vit_tiny_cifar.csv", source ? source : ".");
    csv_table golden;
    assert_int_equal(csv_read(&golden, path), BERLU_OK);
    assert_int_equal(golden.rows, STEPS);
    model *m;
    engine *e;
    float *images = malloc(STEPS * VALUES * sizeof *images);
    fill_input(images, STEPS * VALUES);
    assert_int_equal(model_create(&m, "vit_tiny_cifar", &(model_options){.acts = &act, .act_count = 1}), BERLU_OK);
    engine_options o = {
        .backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = BATCH, .threads = 1, .loss = LOSS_CROSS_ENTROPY};
    assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
    assert_int_equal(weights_fill(e), BERLU_OK);
    alphas_set(e, 0.01f);
    schedule rates = {.kind = SCHEDULE_COSINE_STEP,
                      .peak = 1e-3,
                      .start = 1e-6,
                      .floor = 1e-5,
                      .epochs = STEPS,
                      .warmup = 5,
                      .updates = 1};
    for (int step = 0; step < STEPS; step++) {
        engine_step s = {.lr = schedule_rate(&rates, (uint64_t)step),
                         .weight_decay = 0.05,
                         .clip = 1,
                         .step = (uint32_t)step,
                         .count = (uint32_t)step + 1};
        assert_true(s.lr == csv_number(&golden, (size_t)step, csv_column(&golden, "lr")));
        batch_set(e, images, step);
        assert_int_equal(engine_forward(e, &s), BERLU_OK);
        assert_int_equal(engine_backward(e), BERLU_OK);
        assert_int_equal(engine_update(e), BERLU_OK);
        double loss = csv_number(&golden, (size_t)step, csv_column(&golden, loss_column));
        double norm = csv_number(&golden, (size_t)step, csv_column(&golden, norm_column));
        if (!(fabs(engine_loss(e) - loss) <= 1e-3 * loss) || !(fabs(engine_grad_norm(e) - norm) <= 1e-2 * norm))
            fail_msg("%s, step %d: loss %.9g, PyTorch %.9g; norm %.9g, PyTorch %.9g", act, step, engine_loss(e), loss,
                     engine_grad_norm(e), norm);
    }
    engine_free(e);
    model_free(m);
    free(images);
    csv_free(&golden);
}

static void the_curve_with_gelu_equals_pytorchs(void **state)
{
    (void)state;
    curve_equals("gelu", "loss_gelu", "norm_gelu");
}

static void the_curve_with_berlu_and_its_learned_alpha_equals_pytorchs(void **state)
{
    (void)state;
    curve_equals("berlu", "loss_berlu", "norm_berlu");
}

int main(void)
{
    omp_set_num_threads(1); /* tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_with_gelu_equals_pytorchs),
        cmocka_unit_test(the_curve_with_berlu_and_its_learned_alpha_equals_pytorchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
