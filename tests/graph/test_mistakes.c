/* test_mistakes.c - what does not fit is refused with a sentence that names it.
 * SPDX-License-Identifier: MIT
 *
 * One row per sentence of the builder, of the shape rules and of the engine that a caller can bring
 * about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/cases.h"
#include "graph/op.h"

#define SIZES(...)                                                                                                     \
    (int64_t[])                                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static tensor param(graph *g, const char *name, int rank, const int64_t *size)
{
    return build_param(g, name, INIT_ZERO, 0, rank, size);
}

/* Four patches of 48 numbers: [2, 2, 48]. */
static tensor patches(graph *g)
{
    return build_unfold(g, build_image(g, 3, 8, 8), (unfold_spec){.kernel = 4, .stride = 4});
}

static tensor words(graph *g)
{
    return build_reshape(g, patches(g), 2, SIZES(4, 48));
}

/* ---- the builder ----------------------------------------------------------------------------- */

static void two_images(graph *g)
{
    build_image(g, 3, 8, 8), build_image(g, 3, 8, 8);
}
static void no_size(graph *g)
{
    build_image(g, 3, 0, 8);
}
static void many_dimensions(graph *g)
{
    param(g, "deep", 9, SIZES(1, 1, 1, 1, 1, 1, 1, 1, 1));
}
static void same_name(graph *g)
{
    param(g, "cls_token", 1, SIZES(4)), param(g, "cls_token", 1, SIZES(4));
}
static void no_activation(graph *g)
{
    build_act(g, patches(g), NULL, 0, "blocks.0.mlp.act");
}
static void rank_of_a_view(graph *g)
{
    build_reshape(g, patches(g), 0, SIZES(1));
}
static void certain_drop(graph *g)
{
    build_dropout(g, patches(g), 1.0f);
}
static void no_answer(graph *g)
{
    build_output(g, TENSOR_NONE, TENSOR_NONE);
}
static void two_answers(graph *g)
{
    tensor x = build_mean(g, patches(g));
    build_output(g, x, TENSOR_NONE), build_output(g, x, TENSOR_NONE);
}
static void input_missing(graph *g)
{
    build_add(g, patches(g), TENSOR_NONE);
}

enum { NO_HANDLE = 12345 }; /* of no tensor */
static void bad_optional_input(graph *g)
{
    build_linear(g, patches(g), param(g, "w", 2, SIZES(5, 48)), NO_HANDLE);
}
static void bad_negative_input(graph *g)
{
    build_attention(g, patches(g), -2, 3);
}
static void layer_of_nothing(graph *g)
{
    layer_linear(g, TENSOR_NONE, 5, WITH_BIAS, "fc1");
}
static void norm_of_a_stranger(graph *g)
{
    layer_norm(g, NO_HANDLE, 1e-6f, "norm");
}
static void strange_answer(graph *g)
{
    build_output(g, NO_HANDLE, TENSOR_NONE);
}
static void no_dimensions(graph *g)
{
    param(g, "scalar", 0, SIZES(1));
}
/* Sizes whose product does not fit in 64 bits are refused one by one, before anybody multiplies
 * them. */
static void sizes_beyond_all_numbers(graph *g)
{
    build_reshape(g, patches(g), 4, SIZES(INT64_C(1) << 32, INT64_C(1) << 32, 3, 64));
}

/* ---- shape rules ----------------------------------------------------------------------------- */

static void wrong_width(graph *g)
{
    build_linear(g, patches(g), param(g, "blocks.3.fc1.weight", 2, SIZES(5, 47)), TENSOR_NONE);
}
static void wrong_bias(graph *g)
{
    build_linear(g, patches(g), param(g, "w", 2, SIZES(5, 48)), param(g, "fc1.bias", 1, SIZES(6)));
}
static void norm_without_weight(graph *g)
{
    build_norm(g, patches(g), TENSOR_NONE, TENSOR_NONE, 1e-6f);
}
static void wrong_norm(graph *g)
{
    build_norm(g, patches(g), param(g, "norm.weight", 1, SIZES(47)), param(g, "norm.bias", 1, SIZES(48)), 1e-6f);
}
static void wrong_heads(graph *g)
{
    build_attention(g, patches(g), TENSOR_NONE, 5);
}
static void wrong_v(graph *g)
{
    tensor x = words(g);
    build_attention(g, x, layer_linear(g, x, 23, NO_BIAS, "v"), 3);
}
static void wide_window(graph *g)
{
    build_unfold(g, build_image(g, 3, 8, 8), (unfold_spec){.kernel = 9, .stride = 1});
}
static void wrong_patch(graph *g)
{
    build_unfold(g, build_image(g, 3, 30, 30), (unfold_spec){.kernel = 7, .stride = 1, .padding = 3, .tile = 4});
}
static void leaking_stride(graph *g)
{
    build_unfold(g, build_image(g, 3, 8, 8), (unfold_spec){7, 3, 3, 4, 1});
}
static void windows_that_overlap(graph *g)
{
    build_unfold(g, patches(g), (unfold_spec){.kernel = 2, .stride = 1});
}
static void no_image(graph *g)
{
    build_unfold(g, words(g), (unfold_spec){.kernel = 2, .stride = 2});
}
static void even_kernel(graph *g)
{
    build_depthwise(g, patches(g), param(g, "dw.weight", 4, SIZES(48, 1, 4, 4)), param(g, "dw.bias", 1, SIZES(48)));
}
static void wrong_token(graph *g)
{
    build_tokens(g, patches(g), param(g, "cls_token", 3, SIZES(1, 1, 47)), TENSOR_NONE, param(g, "p", 1, SIZES(5)));
}
static void wrong_position(graph *g)
{
    tensor cls = param(g, "cls_token", 3, SIZES(1, 1, 48));
    build_tokens(g, patches(g), cls, TENSOR_NONE, param(g, "pos_embed", 3, SIZES(1, 4, 48)));
}
static void wrong_pixel_pos(graph *g)
{
    build_pixel_pos(g, words(g), param(g, "pixel_pos", 4, SIZES(1, 48, 3, 3)));
}
static void wrong_news(graph *g)
{
    tensor x = words(g);
    build_add_tokens(g, x, x, 1);
}
static void no_such_token(graph *g)
{
    build_select(g, words(g), 4);
}
static void other_shape(graph *g)
{
    tensor x = patches(g);
    build_add(g, x, build_reshape(g, x, 2, SIZES(4, 48)));
}
static void other_count(graph *g)
{
    build_reshape(g, patches(g), 2, SIZES(4, 47));
}
static void wrong_scale(graph *g)
{
    build_scale(g, patches(g), param(g, "gamma", 1, SIZES(5)));
}
static void wrong_groups(graph *g)
{
    build_drop_path(g, patches(g), 0.5f, 5);
}
static void loss_of_a_map(graph *g)
{
    node n = node_make(OP_CROSS_ENTROPY, 2, (tensor[]){words(g), graph_feed(g, "labels", 1, 1, SIZES(1))});
    graph_add(g, &n);
}
static void targets_of_another_width(graph *g)
{
    tensor logits = build_mean(g, words(g));
    node n = node_make(OP_CROSS_ENTROPY, 2, (tensor[]){logits, graph_feed(g, "targets", 1, 1, SIZES(5))});
    n.attr.soft = 1;
    graph_add(g, &n);
}

static const struct {
    void (*build)(graph *g);
    const char *says;
} mistakes[] = {
    {two_images, "a graph has one image"},
    {no_size, "image: size 0 of dimension 1"},
    {many_dimensions, "deep: rank 9"},
    {same_name, "'cls_token' exists already"},
    {no_activation, "blocks.0.mlp.act: no activation"},
    {rank_of_a_view, "reshape: rank 0"},
    {certain_drop, "dropout: rate 1"},
    {no_answer, "one answer"},
    {two_answers, "one answer"},
    {input_missing, "add: input 1 is missing"},
    {bad_optional_input, "linear: input 2 is no tensor of this graph"},
    {bad_negative_input, "attention: input 1 is no tensor of this graph"},
    {layer_of_nothing, "linear: input 0 is missing"},
    {norm_of_a_stranger, "norm: input 0 is no tensor of this graph"},
    {strange_answer, "from an existing tensor"},
    {no_dimensions, "scalar: rank 0; 1 to 4 is possible"},
    {sizes_beyond_all_numbers, "reshape: size 4294967296 of dimension 1"},
    {wrong_width, "weight 'blocks.3.fc1.weight' [5, 47] does not fit"},
    {wrong_bias, "'fc1.bias' [6] should have 5 numbers"},
    {norm_without_weight, "norm: input 1 is missing"},
    {wrong_norm, "'norm.weight' [47] should have 48 numbers"},
    {wrong_heads, "3 parts of 5 heads"},
    {wrong_v, "attention: v 'v' [4, 23] does not fit"},
    {wide_window, "a window of 9"},
    {wrong_patch, "not a multiple of the patch size 4"},
    {leaking_stride, "stride 3 does not divide the patch size 4"},
    {windows_that_overlap, "only windows side by side"},
    {no_image, "is not an image"},
    {even_kernel, "'dw.weight' [48, 1, 4, 4] does not fit the map"},
    {wrong_token, "'cls_token' [1, 1, 47] should have 48 numbers"},
    {wrong_position, "'pos_embed' [1, 4, 48] should hold 5 tokens"},
    {wrong_pixel_pos, "'pixel_pos' [1, 48, 3, 3] does not fit"},
    {wrong_news, "behind the first 1 tokens"},
    {no_such_token, "has no token 4"},
    {other_shape, "differ in shape"},
    {other_count, "has 192 numbers, the new shape 188"},
    {wrong_scale, "'gamma' [5] should have 48 numbers"},
    {wrong_groups, "does not divide into 5 groups"},
    {loss_of_a_map, "are not logits"},
    {targets_of_another_width, "'targets' [5] does not fit logits"},
};

static void shapes_that_do_not_fit_name_the_tensor(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        graph *g = NULL;
        assert_int_equal(graph_create(&g), BERLU_OK);
        mistakes[i].build(g);
        if (graph_status(g) == BERLU_OK)
            fail_msg("taken, though it should say '%s'", mistakes[i].says);
        if (!strstr(berlu_last_error(), mistakes[i].says))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), mistakes[i].says);
        graph_free(g);
    }
}

/* ---- the engine ------------------------------------------------------------------------------ */

static void small(graph *g, const berlu_act *act)
{
    tensor x = build_act(g, layer_linear(g, words(g), 7, WITH_BIAS, "fc1"), act, 0, "blocks.0.act");
    build_output(g, layer_linear(g, build_mean(g, x), 4, WITH_BIAS, "head"), TENSOR_NONE);
}

static const graph_case plain = {
    "small", small, "berlu", {.mode = ENGINE_TRAIN, .batch = 8, .loss = LOSS_CROSS_ENTROPY}};
static const graph_case answering = {"small, answering", small, "gelu", {.batch = 2, .no_update = 1}};

static void expect(berlu_status status, berlu_status want, const char *says)
{
    if (status != want || !strstr(berlu_last_error(), says))
        fail_msg("status %d, '%s': not '%s'", status, status == BERLU_OK ? "" : berlu_last_error(), says);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    prepared gelu = case_prepare(&answering, cpu_backend(), 1), berlu = case_prepare(&plain, cpu_backend(), 1);
    prepared reference = case_prepare(&plain, cpu_f64_backend(), 1);
    const engine_options o = {.backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY};
    engine_options bad[] = {o, o, o, o, o, o, o, o};
    bad[0].batch = 0;
    bad[1].loss = LOSS_NONE;
    bad[2].distill = DISTILL_HARD;
    bad[3].keep = KEEP_OUTPUT; /* GELU is not monotone */
    bad[4].backend = NULL;
    bad[5].share = reference.e;
    bad[6].share = berlu.e; /* it has an alpha */
    bad[7].batch = (1 << 20) + 1;
    static const char *const parts[] = {"batch 0",    "loss",        "two heads",        "blocks.0.act: keep=output",
                                        "no backend", "one backend", "other parameters", "batch 1048577"};
    engine *e = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        expect(engine_create(&e, gelu.g, &bad[i]), BERLU_ERR_ARG, parts[i]);
        assert_null(e);
    }
    bad[3].keep = KEEP_OUTPUT; /* alpha is learned and nothing keeps it above zero */
    expect(engine_create(&e, berlu.g, &bad[3]), BERLU_ERR_ARG, "0.001");
    case_free(&reference);
    case_free(&berlu);
    case_free(&gelu);
}

static void a_graph_without_an_answer_makes_no_engine(void **state)
{
    (void)state;
    graph *g = NULL;
    engine *e = NULL;
    const engine_options o = {.backend = cpu_backend(), .batch = 1};
    assert_int_equal(graph_create(&g), BERLU_OK);
    words(g);
    expect(engine_create(&e, g, &o), BERLU_ERR_ARG, "no image or no output");
    wrong_width(g); /* a second image: the graph is broken now, and says so first */
    expect(engine_create(&e, g, &o), BERLU_ERR_ARG, "a graph has one image");
    graph_free(g);
}

static void sharing_needs_the_same_names(void **state)
{
    (void)state;
    prepared p = case_prepare(&answering, cpu_backend(), 1);
    graph *g = NULL;
    engine *e = NULL;
    assert_int_equal(graph_create(&g), BERLU_OK);
    tensor x = build_act(g, layer_linear(g, words(g), 7, WITH_BIAS, "fc2"), p.act, 0, "blocks.0.act");
    build_output(g, layer_linear(g, build_mean(g, x), 4, WITH_BIAS, "head"), TENSOR_NONE);
    expect(engine_create(&e, g, &(engine_options){.backend = cpu_backend(), .batch = 1, .share = p.e}), BERLU_ERR_ARG,
           "parameter 0 is 'fc2.weight' here and 'fc1.weight'");
    graph_free(g);
    case_free(&p);
}

static void an_engine_made_for_answering_refuses_to_learn(void **state)
{
    (void)state;
    prepared p = case_prepare(&answering, cpu_backend(), 1);
    float values[512];
    text lines = {0};
    expect(engine_backward(p.e), BERLU_ERR_ARG, "no backward");
    expect(engine_update(p.e), BERLU_ERR_ARG, "without an optimizer");
    expect(engine_compute_grad_norm(p.e), BERLU_ERR_ARG, "no gradients");
    expect(engine_get(p.e, ARRAY_GRADIENT, 0, values), BERLU_ERR_ARG, "of parameter 0");
    expect(engine_get(p.e, ARRAY_WEIGHT, 99, values), BERLU_ERR_ARG, "of parameter 99");
    expect(engine_site_read(p.e, 0, 0, 1, values), BERLU_ERR_UNSUPPORTED, "blocks.0.act: this plan does not hold");
    expect(engine_site_read(p.e, 1, 0, 1, values), BERLU_ERR_ARG, "no activation site 1");
    expect(engine_profile_text(p.e, &(engine_profile){0}, &lines), BERLU_ERR_ARG, "without a profile");
    text_free(&lines);
    case_free(&p);
}

static void rows_of_a_site_that_are_not_there_are_refused(void **state)
{
    (void)state;
    prepared p = case_prepare(&plain, cpu_backend(), 1);
    float values[64];
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    expect(engine_site_read(p.e, 0, 31, 2, values), BERLU_ERR_ARG, "blocks.0.act: rows 31 to 33 are not there");
    assert_int_equal(engine_site_read(p.e, 0, 31, 1, values), BERLU_OK);
    case_free(&p);
}

static void a_label_outside_the_classes_is_refused(void **state)
{
    (void)state;
    prepared p = case_prepare(&plain, cpu_backend(), 1);
    engine_labels(p.e)[5] = 4;
    expect(engine_forward(p.e, &p.step), BERLU_ERR_INPUT, "label 4 of image 5");
    case_free(&p);
}

static void a_batch_beyond_all_memory_names_the_tensor(void **state)
{
    (void)state;
    graph *g = NULL;
    engine *e = NULL;
    assert_int_equal(graph_create(&g), BERLU_OK);
    tensor x = build_unfold(g, build_image(g, 3, 8192, 8192), (unfold_spec){.kernel = 4, .stride = 4});
    build_output(g, layer_linear(g, build_mean(g, x), 4, WITH_BIAS, "head"), TENSOR_NONE);
    expect(engine_create(&e, g, &(engine_options){.backend = cpu_backend(), .batch = 1 << 20}), BERLU_ERR_ARG,
           "tensor 'image' with batch 1048576 would need more than 64 TiB");
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_that_do_not_fit_name_the_tensor),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(a_graph_without_an_answer_makes_no_engine),
        cmocka_unit_test(sharing_needs_the_same_names),
        cmocka_unit_test(an_engine_made_for_answering_refuses_to_learn),
        cmocka_unit_test(rows_of_a_site_that_are_not_there_are_refused),
        cmocka_unit_test(a_label_outside_the_classes_is_refused),
        cmocka_unit_test(a_batch_beyond_all_memory_names_the_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
