/* test_weights.c - initial weights, and weights from and to files. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "models/models.h"
#include "models/weights.h"

#define PATH "test_weights.safetensors.tmp"

static void open_model(model **m, engine **e, const char *name, const char *act)
{
    *m = NULL, *e = NULL;
    const model_options what = {.acts = &act, .act_count = 1};
    const engine_options how = {.backend = cpu_backend(), .batch = 1};
    if (model_create(m, name, &what) != BERLU_OK || engine_create(e, (*m)->graph, &how) != BERLU_OK)
        fail_msg("%s: %s", name, berlu_last_error());
}

static void close_model(model *m, engine *e)
{
    engine_free(e);
    model_free(m);
}

/* All weights one after the other; free() them. */
static float *weights_of(engine *e, size_t *count)
{
    const graph *g = engine_graph(e);
    *count = 0;
    for (int i = 0; i < graph_param_count(g); i++)
        *count += (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
    float *all = malloc(*count * sizeof *all), *next = all;
    assert_non_null(all);
    for (int i = 0; i < graph_param_count(g); i++) {
        assert_int_equal(engine_get(e, ARRAY_WEIGHT, i, next), BERLU_OK);
        next += tensor_elements(graph_tensor(g, graph_param(g, i)));
    }
    return all;
}

/* ---- initial weights ------------------------------------------------------------------------- */

typedef struct moments {
    double mean, deviation, least, most;
} moments;

static moments moments_of(param_init init, size_t count, uint64_t seed, uint32_t parameter)
{
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    init_draw(values, count, init, seed, parameter);
    moments m = {.least = INFINITY, .most = -INFINITY};
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        m.mean += (double)values[i] / (double)count;
        squares += (double)values[i] * (double)values[i] / (double)count;
        m.least = fmin(m.least, (double)values[i]);
        m.most = fmax(m.most, (double)values[i]);
    }
    m.deviation = sqrt(squares - m.mean * m.mean);
    free(values);
    return m;
}

/* With n = 2^18 draws the mean's deviation is sigma / 512 and the deviation's own is sigma / 724:
 * five of each. */
static void drawn_weights_have_the_mean_and_deviation_of_their_code(void **state)
{
    (void)state;
    const size_t n = 1 << 18;
    moments tn02 = moments_of(INIT_TN02, n, 1, 0), n1e6 = moments_of(INIT_N1E6, n, 1, 1);
    assert_true(fabs(tn02.mean) < 5 * 0.02 / 512 && fabs(tn02.deviation - 0.02) < 5 * 0.02 / 724);
    assert_true(tn02.most > 0.08 && tn02.least < -0.08 && tn02.most < 0.13 && tn02.least > -0.13); /* 4 to 6.5 sigma */
    assert_true(fabs(n1e6.mean) < 5e-6 / 512 && fabs(n1e6.deviation - 1e-6) < 5e-6 / 724);
    moments uniform = moments_of(init_fan_in(48), n, 1, 2);
    double bound = 1 / sqrt(48);
    assert_true(uniform.most <= bound * (1 + 1e-7) && uniform.least >= -bound * (1 + 1e-7));
    assert_true(uniform.most > 0.9999 * bound && uniform.least < -0.9999 * bound);
    assert_true(fabs(uniform.deviation - bound / sqrt(3)) < 5 * bound / 724);
    moments c = moments_of(init_constant(1e-6), 10, 1, 3);
    assert_true(c.least == (double)1e-6f && c.most == (double)1e-6f);
}

static void codes_tell_how_weights_start(void **state)
{
    (void)state;
    char code[INIT_CODE];
    assert_string_equal(init_code(code, INIT_TN02), "tn02");
    assert_string_equal(init_code(code, INIT_N1E6), "n1e-6");
    assert_string_equal(init_code(code, (param_init){INIT_NORMAL, 0.5}), "n0.5");
    assert_string_equal(init_code(code, init_fan_in(48)), "uf48");
    assert_string_equal(init_code(code, init_constant(1e-6)), "c1e-6");
    assert_string_equal(init_code(code, init_constant(0.25)), "c0.25");
}

static void a_wide_normal_is_drawn_again_outside_of_two(void **state)
{
    (void)state;
    moments wide = moments_of((param_init){INIT_NORMAL, 1.0}, 1 << 18, 7, 0);
    assert_true(wide.most <= 2 && wide.least >= -2);
    assert_true(wide.most > 1.999 && wide.least < -1.999);
    /* the deviation of a normal cut at two sigma */
    assert_true(fabs(wide.deviation - 0.87962566) < 5 * 0.88 / 724);
}

static void parameters_and_seeds_do_not_share_draws(void **state)
{
    (void)state;
    float a[64], b[64], c[64], again[64];
    init_draw(a, 64, INIT_TN02, 1, 0);
    init_draw(b, 64, INIT_TN02, 1, 1);
    init_draw(c, 64, INIT_TN02, 2, 0);
    init_draw(again, 64, INIT_TN02, 1, 0);
    assert_memory_equal(a, again, sizeof a);
    for (int i = 0; i < 64; i++)
        assert_true(a[i] != b[i] && a[i] != c[i] && b[i] != c[i]);
}

static void a_fresh_model_starts_as_its_codes_say_and_options_change_the_deviation(void **state)
{
    (void)state;
    model *m;
    engine *e;
    open_model(&m, &e, "convnext_micro", "berlu:alpha=0.125");
    assert_int_equal(weights_init(e, 3, &(init_options){.std = 0.1, .std_fc1 = 0.5}), BERLU_OK);
    for (int i = 0; i < graph_param_count(m->graph); i++) {
        const tensor_info *p = graph_tensor(m->graph, graph_param(m->graph, i));
        size_t count = (size_t)tensor_elements(p);
        float values[40000];
        char code[INIT_CODE];
        if (count > COUNT(values))
            continue;
        assert_int_equal(engine_get(e, ARRAY_WEIGHT, i, values), BERLU_OK);
        double squares = 0;
        for (size_t k = 0; k < count; k++)
            squares += (double)values[k] * (double)values[k] / (double)count;
        double want = strstr(p->name, "fc1.weight")                   ? 0.5
                      : strcmp(init_code(code, p->init), "tn02") == 0 ? 0.1
                      : strstr(p->name, "act.alpha")                  ? 0.125
                                                                      : (double)(float)p->init.value;
        assert_true(fabs(sqrt(squares) - want) <= 0.15 * want);
    }
    close_model(m, e);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Every tensor that both models have, by name; returns how many of `b` have no partner. */
static int weights_compare(engine *a, engine *b)
{
    const graph *ga = engine_graph(a), *gb = engine_graph(b);
    static float x[1 << 18], y[1 << 18];
    int alone = 0;
    for (int j = 0, i; j < graph_param_count(gb); j++) {
        const tensor_info *p = graph_tensor(gb, graph_param(gb, j));
        size_t count = (size_t)tensor_elements(p);
        for (i = 0; i < graph_param_count(ga); i++)
            if (strcmp(graph_tensor(ga, graph_param(ga, i))->name, p->name) == 0)
                break;
        alone += i == graph_param_count(ga);
        if (i == graph_param_count(ga))
            continue;
        assert_true(count <= COUNT(x));
        assert_int_equal(engine_get(a, ARRAY_WEIGHT, i, x), BERLU_OK);
        assert_int_equal(engine_get(b, ARRAY_WEIGHT, j, y), BERLU_OK);
        assert_memory_equal(x, y, count * sizeof *x);
    }
    return alone;
}

static void models_of_one_seed_start_from_the_same_weights_whatever_their_activation(void **state)
{
    (void)state;
    static const char *const acts[] = {"berlu", "prelu"};
    model *relu, *other;
    engine *plain, *learned;
    open_model(&relu, &plain, "vit_micro", "relu");
    assert_int_equal(weights_init(plain, 3, NULL), BERLU_OK);
    for (size_t k = 0; k < COUNT(acts); k++) {
        open_model(&other, &learned, "vit_micro", acts[k]);
        assert_int_equal(weights_init(learned, 3, NULL), BERLU_OK);
        int alone = weights_compare(plain, learned);
        assert_true(alone > 0);
        assert_int_equal(alone, graph_param_count(other->graph) - graph_param_count(relu->graph));
        close_model(other, learned);
    }
    close_model(relu, plain);
}

static void what_was_saved_loads_again_to_the_bit(void **state)
{
    (void)state;
    model *m;
    engine *e;
    open_model(&m, &e, "tnt_micro", "berlu:learn=alpha+eps");
    assert_int_equal(weights_init(e, 5, NULL), BERLU_OK);
    size_t count;
    float *before = weights_of(e, &count);
    assert_int_equal(weights_save_in(e, ARRAY_WEIGHT, NULL, PATH, &(st_text){"note", "a test"}, 1), BERLU_OK);
    assert_int_equal(weights_fill(e), BERLU_OK);
    assert_int_equal(weights_load_path(e, PATH), BERLU_OK);
    float *after = weights_of(e, &count);
    assert_memory_equal(before, after, count * sizeof *before);
    safetensors *file;
    assert_int_equal(safetensors_open(&file, PATH), BERLU_OK);
    assert_string_equal(safetensors_metadata(file, "format"), "pt");
    assert_string_equal(safetensors_metadata(file, "note"), "a test");
    safetensors_close(file);
    free(before);
    free(after);
    close_model(m, e);
    unlink(PATH);
}

/* The tensors of a saved model, to be bent. */
typedef struct bent {
    safetensors *file;
    st_tensor tensors[512];
    size_t count;
} bent;

static void bend(bent *b, const char *name, const char *act)
{
    model *m;
    engine *e;
    open_model(&m, &e, name, act);
    assert_int_equal(weights_fill(e), BERLU_OK);
    assert_int_equal(weights_save_in(e, ARRAY_WEIGHT, NULL, PATH, NULL, 0), BERLU_OK);
    close_model(m, e);
    assert_int_equal(safetensors_open(&b->file, PATH), BERLU_OK);
    b->count = safetensors_count(b->file);
    for (size_t i = 0; i < b->count; i++)
        b->tensors[i] = *safetensors_at(b->file, i);
}

static st_tensor *bent_find(bent *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->tensors[i].name, name) == 0)
            return &b->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Saves the bent tensors and loads them into a fresh model, whose weights must not change when that
 * fails. */
static berlu_status bent_load(bent *b, const char *name, const char *act)
{
    model *m;
    engine *e;
    open_model(&m, &e, name, act);
    assert_int_equal(weights_init(e, 9, NULL), BERLU_OK);
    size_t count;
    float *before = weights_of(e, &count);
    assert_int_equal(safetensors_write(PATH, b->tensors, b->count, NULL, 0), BERLU_OK);
    berlu_status status = weights_load_path(e, PATH);
    float *after = weights_of(e, &count);
    if (status == BERLU_OK)
        assert_memory_not_equal(before, after, count * sizeof *before);
    else
        assert_memory_equal(before, after, count * sizeof *before);
    free(before);
    free(after);
    close_model(m, e);
    safetensors_close(b->file);
    unlink(PATH);
    return status;
}

static void expect_refusal(berlu_status status, const char *word)
{
    assert_int_equal(status, BERLU_ERR_INPUT);
    if (!strstr(berlu_last_error(), word) || !strstr(berlu_last_error(), PATH))
        fail_msg("'%s' does not say '%s'", berlu_last_error(), word);
}

static void files_that_do_not_fit_are_refused_by_the_tensors_name_and_change_nothing(void **state)
{
    (void)state;
    bent b;
    bend(&b, "vit_micro", "gelu");
    *bent_find(&b, "norm.bias") = b.tensors[--b.count];
    expect_refusal(bent_load(&b, "vit_micro", "gelu"), "'norm.bias' [64] is missing");

    bend(&b, "vit_micro", "gelu");
    static const float one = 1;
    b.tensors[b.count++] = (st_tensor){.name = "blocks.9.norm1.bias", .dtype = ST_F32, .rank = 0, .data = &one};
    expect_refusal(bent_load(&b, "vit_micro", "gelu"), "'blocks.9.norm1.bias' belongs to no parameter");

    bend(&b, "vit_micro", "gelu");
    st_tensor *t = bent_find(&b, "head.weight");
    t->shape[0] = 64, t->shape[1] = 10;
    expect_refusal(bent_load(&b, "vit_micro", "gelu"), "'head.weight' is [64, 10], the model wants [10, 64]");

    bend(&b, "vit_micro", "gelu");
    bent_find(&b, "head.weight")->dtype = ST_I32;
    expect_refusal(bent_load(&b, "vit_micro", "gelu"), "'head.weight' holds I32");

    bend(&b, "vit_micro", "gelu");
    expect_refusal(bent_load(&b, "vit_micro", "berlu"), "'blocks.0.mlp.act.alpha' [1] is missing");

    bend(&b, "vit_micro", "berlu");
    expect_refusal(bent_load(&b, "vit_micro", "gelu"), "'blocks.0.mlp.act.alpha' belongs to no parameter");
}

static void a_linear_layers_weight_loads_into_a_1x1_convolution(void **state)
{
    (void)state;
    bent b;
    bend(&b, "convnext_micro", "gelu");
    int changed = 0;
    for (size_t i = 0; i < b.count; i++)
        if (strstr(b.tensors[i].name, ".mlp.fc") && b.tensors[i].rank == 4)
            b.tensors[i].rank = 2, changed++;
    assert_int_equal(changed, 10);
    assert_int_equal(bent_load(&b, "convnext_micro", "gelu"), BERLU_OK);
}

static void torchs_name_of_a_prelu_slope_is_read_for_prelu_only(void **state)
{
    (void)state;
    static const char *const acts[] = {"prelu", "berlu"};
    for (int k = 0; k < 2; k++) {
        bent b;
        char names[4][64];
        bend(&b, "vit_micro", "prelu");
        for (int i = 0; i < 4; i++) {
            char ours[64];
            snprintf(ours, sizeof ours, "blocks.%d.mlp.act.alpha", i);
            snprintf(names[i], sizeof names[i], "blocks.%d.mlp.act.weight", i);
            bent_find(&b, ours)->name = names[i];
        }
        berlu_status status = bent_load(&b, "vit_micro", acts[k]);
        if (k == 0)
            assert_int_equal(status, BERLU_OK);
        else
            expect_refusal(status, "'blocks.0.mlp.act.alpha'");
    }
}

static void half_precision_files_load(void **state)
{
    (void)state;
    bent b;
    bend(&b, "vit_micro", "gelu");
    static uint16_t half[64];
    for (int i = 0; i < 64; i++)
        half[i] = 0x3c00; /* 1 in f16 */
    st_tensor *t = bent_find(&b, "norm.bias");
    t->dtype = ST_F16;
    t->data = half;
    assert_int_equal(bent_load(&b, "vit_micro", "gelu"), BERLU_OK);
}

/* As torch.nn.DataParallel and torch.compile save them. */
static void a_prefix_in_front_of_every_name_is_told(void **state)
{
    (void)state;
    model *m = NULL;
    engine *e = NULL;
    assert_int_equal(model_create(&m, "linear", NULL), BERLU_OK);
    assert_int_equal(engine_create(&e, m->graph, &(engine_options){.backend = cpu_backend(), .batch = 1}), BERLU_OK);
    const graph *g = engine_graph(e);
    static const char *const prefixes[] = {"module.", "_orig_mod."};
    for (size_t k = 0; k < 2; k++) {
        st_tensor tensors[8] = {0};
        char names[8][64];
        float values[40000] = {0};
        int count = graph_param_count(g);
        assert_true(count <= 8);
        for (int i = 0; i < count; i++) {
            const tensor_info *p = graph_tensor(g, graph_param(g, i));
            snprintf(names[i], sizeof names[i], "%s%s", prefixes[k], p->name);
            assert_true(tensor_elements(p) <= 40000);
            tensors[i] = (st_tensor){.name = names[i], .dtype = ST_F32, .rank = p->rank, .data = values};
            for (int d = 0; d < p->rank; d++)
                tensors[i].shape[d] = (uint64_t)p->size[d];
        }
        assert_int_equal(safetensors_write(PATH, tensors, (size_t)count, NULL, 0), BERLU_OK);
        assert_int_equal(weights_load_path(e, PATH), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), prefixes[k]));
        assert_non_null(strstr(berlu_last_error(), "in front of the names"));
    }
    remove(PATH);
    close_model(m, e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_in_front_of_every_name_is_told),
        cmocka_unit_test(drawn_weights_have_the_mean_and_deviation_of_their_code),
        cmocka_unit_test(codes_tell_how_weights_start),
        cmocka_unit_test(a_wide_normal_is_drawn_again_outside_of_two),
        cmocka_unit_test(parameters_and_seeds_do_not_share_draws),
        cmocka_unit_test(a_fresh_model_starts_as_its_codes_say_and_options_change_the_deviation),
        cmocka_unit_test(models_of_one_seed_start_from_the_same_weights_whatever_their_activation),
        cmocka_unit_test(what_was_saved_loads_again_to_the_bit),
        cmocka_unit_test(files_that_do_not_fit_are_refused_by_the_tensors_name_and_change_nothing),
        cmocka_unit_test(a_linear_layers_weight_loads_into_a_1x1_convolution),
        cmocka_unit_test(torchs_name_of_a_prelu_slope_is_read_for_prelu_only),
        cmocka_unit_test(half_precision_files_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
