/* test_cuda_graphs.c - what CUDA's rows of the op table and its flags make of a network.
 * SPDX-License-Identifier: MIT
 *
 * Passes that save a pass over rows leave nodes out or join them; here the graph of an engine is
 * counted, over a GPU made of malloc (stub.h). That the results are right: test_cuda_host.c, and
 * tests/graph for the passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/machine.h"
#include "engine/engine_internal.h"
#include "models/models.h"

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_graphs");
    return 0;
}

/* In a ViT only the patches and the head, whose dy no kernel of a block makes, sum columns in
 * linear_dw, and what the backward recomputes comes out of the gradient that reads the same
 * tensor. */
static void a_transformer_reads_no_gradient_for_its_bias_alone(void **state)
{
    (void)state;
    const char *act = "gelu";
    for (int keep = KEEP_INPUT; keep <= KEEP_BOTH; keep++) {
        model *m = NULL;
        engine *e = NULL;
        assert_int_equal(model_create(&m, "vit_micro", &(model_options){.acts = &act, .act_count = 1}), BERLU_OK);
        engine_options o = {.backend = cuda_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY};
        o.keep = (engine_keep)keep;
        assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
        int biases = 0, again = 0, weights = 0;
        for (int i = 0; i < graph_node_count(e->g); i++) {
            const node *n = graph_node(e->g, i);
            weights += n->op == OP_LINEAR_DW;
            biases += n->op == OP_LINEAR_DW && n->out[1] != TENSOR_NONE;
            again += n->backward && (n->op == OP_NORM || n->op == OP_ACT);
        }
        assert_true(weights == 18 && biases == 2 && again == 0);
        engine_free(e);
        model_free(m);
    }
    nothing_is_left();
}

/* Around an f32 stream no product converts a matrix first: gradients of the stream come in bf16
 * from the kernel that made them, so what rows.c asks of a fused slope holds there too. */
static void an_f32_stream_is_converted_by_no_product(void **state)
{
    (void)state;
    const char *act = "gelu";
    model *m = NULL;
    engine *e = NULL;
    int products = 0, fused = 0;
    assert_int_equal(model_create(&m, "vit_micro", &(model_options){.acts = &act, .act_count = 1}), BERLU_OK);
    engine_options o = {.backend = cuda_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY};
    o.keep = KEEP_BOTH;
    o.opening = (device_options){.precision = "bf16", .residual = "f32"};
    assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
    for (int i = 0; i < graph_node_count(e->g); i++) {
        const node *n = graph_node(e->g, i);
        int product = n->op == OP_LINEAR || n->op == OP_LINEAR_ACT || n->op == OP_LINEAR_DX ||
                      n->op == OP_LINEAR_DX_ACT || n->op == OP_LINEAR_DW;
        if (!product)
            continue;
        tensor_dtype a = graph_tensor(e->g, n->in[0])->dtype, b = graph_tensor(e->g, n->in[1])->dtype;
        assert_true(a == DTYPE_BF16 && b == DTYPE_BF16);
        products++;
        fused += n->op == OP_LINEAR_DX_ACT;
    }
    assert_true(products == 53 && fused == 4);
    engine_free(e);
    model_free(m);
    nothing_is_left();
}

/* LayerScale is in the weights: no pass over rows for it, and gradients of weights with a factor on
 * the stream of those they are computed from. */
static void layer_scale_costs_no_pass_over_rows(void **state)
{
    (void)state;
    for (int stream = -1; stream <= 1; stream += 2) {
        model *m = NULL;
        engine *e = NULL;
        device *d = open_with((device_options){.algorithms = "first", .precision = "bf16", .second_stream = stream});
        assert_int_equal(model_create(&m, "convnext_micro", NULL), BERLU_OK);
        engine_options o = {.backend = cuda_backend(), .device = d, .mode = ENGINE_TRAIN, .batch = 2};
        o.loss = LOSS_CROSS_ENTROPY;
        assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
        int passes = 0, weights = 0, gradients = 0, residuals = 0;
        for (int i = 0; i < graph_node_count(e->g); i++) {
            const node *n = graph_node(e->g, i);
            passes += n->op == OP_SCALE || n->op == OP_SCALE_GRAD || n->op == OP_ADD;
            weights += n->op == OP_SCALE_WEIGHT;
            gradients += n->op == OP_SCALE_WEIGHT_GRAD;
            residuals += n->op == OP_LINEAR && n->in[3] != TENSOR_NONE;
            if (n->op == OP_SCALE_WEIGHT)
                assert_true(graph_tensor(e->g, n->out[0])->dtype == DTYPE_BF16 &&
                            graph_tensor(e->g, n->in[0])->dtype == DTYPE_F32);
            if (n->op == OP_SCALE_WEIGHT_GRAD)
                assert_int_equal(graph_tensor(e->g, n->in[0])->dtype, DTYPE_F32);
        }
        assert_int_equal(passes, 0);
        assert_true(weights > 0 && weights == gradients && weights == residuals);
        engine_free(e);
        model_free(m);
        cuda_backend()->close(d);
    }
    nothing_is_left();
}

/* The gradient of a patch as a row meets that of its pixels in the norm's kernel, through the view
 * between them. */
static void gradients_of_two_streams_meet_without_a_pass(void **state)
{
    (void)state;
    model *m = NULL;
    engine *e = NULL;
    assert_int_equal(model_create(&m, "tnt_micro", NULL), BERLU_OK);
    engine_options o = {.backend = cuda_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY};
    assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
    int sums = 0, norms = 0;
    for (int i = 0; i < graph_node_count(e->g); i++) {
        const node *n = graph_node(e->g, i);
        sums += n->op == OP_ADD;
        norms +=
            n->op == OP_NORM_GRAD && n->in[4] != TENSOR_NONE && graph_tensor(e->g, n->in[4])->view_of != TENSOR_NONE;
    }
    assert_int_equal(sums, 0);
    assert_true(norms > 0);
    engine_free(e);
    model_free(m);
    nothing_is_left();
}

static int op_count(const graph *g, op_id op)
{
    int count = 0;
    for (int i = 0; i < graph_node_count(g); i++)
        count += graph_node(g, i)->op == op;
    return count;
}

/* In ViT-Tiny the projection of every block takes in the norm behind it, unless its path may be
 * dropped; other layers and widths stay as they are. */
static void a_projection_of_192_channels_takes_in_the_norm_behind_it(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double drop_path;
        int joined;
    } wanted[] = {{"vit_tiny_cifar", 0, 12}, {"vit_tiny_cifar", 0.1, 1}, {"vit_micro", 0, 0}};
    for (size_t i = 0; i < 2 * COUNT(wanted); i++) {
        model *m = NULL;
        engine *e = NULL;
        model_options options = {.drop_path = wanted[i / 2].drop_path};
        if (model_create(&m, wanted[i / 2].model, &options) != BERLU_OK)
            fail_msg("%s", berlu_last_error());
        engine_options o = {.backend = cuda_backend(), .mode = ENGINE_TRAIN, .batch = 2, .loss = LOSS_CROSS_ENTROPY};
        o.opening = (device_options){.precision = "bf16", .residual = i % 2 ? "f32" : "bf16"};
        assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
        assert_int_equal(op_count(e->g, OP_LINEAR_NORM), wanted[i / 2].joined);
        for (int k = 0; k < graph_node_count(e->g); k++) {
            const node *n = graph_node(e->g, k);
            if (n->op != OP_LINEAR_NORM)
                continue;
            assert_int_equal(graph_tensor(e->g, n->out[0])->dtype, i % 2 ? DTYPE_F32 : DTYPE_BF16);
            if (graph_tensor(e->g, n->in[3])->rank == 2) /* the last block's one token is a branch */
                assert_int_equal(graph_tensor(e->g, n->in[3])->dtype, i % 2 ? DTYPE_F32 : DTYPE_BF16);
            assert_int_equal(graph_tensor(e->g, n->in[1])->dtype, DTYPE_BF16);
            assert_int_equal(graph_tensor(e->g, n->in[2])->dtype, DTYPE_BF16);
            assert_int_equal(graph_tensor(e->g, n->in[4])->dtype, DTYPE_F32);
            assert_int_equal(graph_tensor(e->g, n->out[1])->dtype, DTYPE_BF16);
            assert_int_equal(graph_tensor(e->g, n->out[2])->dtype, DTYPE_F32);
        }
        engine_free(e);
        model_free(m);
    }
    nothing_is_left();
}

/* ViT-Tiny in 32 x 32 with what decides about its MLPs. */
typedef struct network {
    const char *act, *precision;
    int batch, minor;
    double drop_path;
} network;

/* Its graph after all passes; the engine owns it. */
static engine *rewritten(model **m, const network *n, engine_mode mode, engine_keep keep, const char *residual)
{
    engine *e = NULL;
    model_options options = {.acts = &n->act, .act_count = 1, .drop_path = n->drop_path};
    engine_options o = {.backend = cuda_backend(), .mode = mode, .batch = n->batch, .keep = keep};
    o.loss = mode == ENGINE_TRAIN ? LOSS_CROSS_ENTROPY : LOSS_NONE;
    o.opening = (device_options){.precision = n->precision, .residual = residual};
    stub.minor = n->minor;
    stub.processors = 132;
    if (model_create(m, "vit_tiny_cifar", &options) != BERLU_OK || engine_begin(&e, (*m)->graph, &o) != BERLU_OK ||
        engine_rewrite(e, PASS_PLAN) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return e;
}

static const network networks[] = {{"gelu", "bf16", 256, 0, 0},        {"berlu", "bf16", 256, 0, 0},
                                   {"gelu", "bf16", 252, 0, 0},        {"gelu", "bf16", 256, 1, 0},
                                   {"gelu", "f32", 256, 0, 0},         {"gelu", "bf16", 256, 0, 0.1},
                                   {"gelu:scale=2", "bf16", 256, 0, 0}};

/* In inference every MLP of ViT-Tiny with rows enough is one node with the norm behind it; of the
 * last block only one token is left, whose rows are few. In training, where the backward reads
 * hidden activations, all of them stay three nodes. */
static void an_mlp_of_192_channels_is_one_node_in_inference(void **state)
{
    (void)state;
    static const int wanted[COUNT(networks)] = {11, 11, 0, 0, 0, 11, 0};
    for (size_t i = 0; i < 6 * COUNT(networks); i++) {
        model *m = NULL;
        int mode = (int)(i % 3), wide = i % 6 >= 3; /* keep input, keep both, inference */
        engine *e = rewritten(&m, &networks[i / 6], mode < 2 ? ENGINE_TRAIN : ENGINE_INFER,
                              mode == 1 ? KEEP_BOTH : KEEP_INPUT, wide ? "f32" : NULL);
        int joined = mode == 2 ? wanted[i / 6] : 0;
        assert_int_equal(op_count(e->g, OP_MLP), joined);
        assert_int_equal(op_count(e->g, OP_LINEAR_ACT), 12 - joined);
        for (int k = 0; k < graph_node_count(e->g); k++) {
            const node *n = graph_node(e->g, k);
            if (n->op != OP_MLP)
                continue;
            assert_true(n->out[1] != TENSOR_NONE && n->in[6] != TENSOR_NONE);
            assert_int_equal(graph_tensor(e->g, n->out[0])->dtype, wide ? DTYPE_F32 : DTYPE_BF16);
            for (int j = 0; j < 6; j++)
                assert_int_equal(graph_tensor(e->g, n->in[j])->dtype, j == 3 && wide ? DTYPE_F32 : DTYPE_BF16);
            assert_int_equal(graph_tensor(e->g, n->in[6])->dtype, DTYPE_F32);
        }
        engine_free(e);
        model_free(m);
    }
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_transformer_reads_no_gradient_for_its_bias_alone, machine_new),
        cmocka_unit_test_setup(an_f32_stream_is_converted_by_no_product, machine_new),
        cmocka_unit_test_setup(layer_scale_costs_no_pass_over_rows, machine_new),
        cmocka_unit_test_setup(gradients_of_two_streams_meet_without_a_pass, machine_new),
        cmocka_unit_test_setup(a_projection_of_192_channels_takes_in_the_norm_behind_it, machine_new),
        cmocka_unit_test_setup(an_mlp_of_192_channels_is_one_node_in_inference, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
