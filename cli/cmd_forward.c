/* cmd_forward.c - one pass of a model over a batch from a file, to compare implementations.
 * SPDX-License-Identifier: MIT
 *
 * Input comes from files (or from the known-answer fill) and output goes to a file, so any other
 * program can be compared; tools/parity.py does so with timm. Evaluation mode: no drop path, and a
 * distilled model outputs the mean of its heads, also with --grads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "io/safetensors.h"
#include "model_args.h"
#include "models/fill.h"
#include "models/weights.h"
#include "output.h"
#include "train/network.h"

/* The images and labels of one pass. */
typedef struct batch {
    int images, labelled;
    float *input;
    int64_t *labels;
} batch;

static void batch_free(batch *b)
{
    free(b->input);
    free(b->labels);
}

static berlu_status batch_allocate(batch *b, const model_config *m)
{
    size_t values = (size_t)b->images * 3 * (size_t)m->image_size * (size_t)m->image_size;
    b->input = memory_aligned(values * sizeof *b->input, "the batch");
    b->labels = memory_aligned((size_t)b->images * sizeof *b->labels, "the labels");
    return b->input && b->labels ? BERLU_OK : BERLU_ERR_MEMORY;
}

static berlu_status batch_fill(batch *b, const model_config *m)
{
    b->images = COUNT(fill_labels);
    b->labelled = 1;
    TRY(batch_allocate(b, m));
    fill_input(b->input, (size_t)b->images * 3 * (size_t)m->image_size * (size_t)m->image_size);
    for (int i = 0; i < b->images; i++)
        b->labels[i] = fill_labels[i];
    return BERLU_OK;
}

/* Requires the shape N x 3 x side x side, N >= 1. */
static berlu_status input_check(const st_tensor *t, const char *path, const model_config *m)
{
    char shape[ST_SHAPE_TEXT];
    uint64_t side = (uint64_t)m->image_size;
    if (!t)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor 'input' is missing", path);
    if (t->rank != 4 || t->shape[0] < 1 || t->shape[0] > 1 << 20 || t->shape[1] != 3 || t->shape[2] != side ||
        t->shape[3] != side)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor 'input' is %s, %s wants [N, 3, %d, %d] (--image-size)", path,
                          st_shape_text(shape, t->shape, t->rank), m->name, m->image_size, m->image_size);
    return BERLU_OK;
}

static berlu_status labels_read(batch *b, const st_tensor *t, const char *path, const model_config *m)
{
    char shape[ST_SHAPE_TEXT];
    if (!t)
        return BERLU_OK;
    if (t->rank != 1 || t->shape[0] != (uint64_t)b->images)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor 'labels' is %s, not [%d]", path,
                          st_shape_text(shape, t->shape, t->rank), b->images);
    TRY(berlu_fail_in(st_read_i64(t, b->labels), path));
    for (int i = 0; i < b->images; i++)
        if (b->labels[i] < 0 || b->labels[i] >= m->classes)
            return berlu_fail(BERLU_ERR_INPUT, "%s: label %lld of image %d is not in 0 to %d", path,
                              (long long)b->labels[i], i, m->classes - 1);
    b->labelled = 1;
    return BERLU_OK;
}

static berlu_status batch_read(batch *b, const char *path, const model_config *m)
{
    if (strcmp(path, "fill") == 0)
        return batch_fill(b, m);
    safetensors *file = NULL;
    berlu_status status;
    TRY(safetensors_open(&file, path));
    const st_tensor *input = safetensors_find(file, "input");
    TRY_DONE(input_check(input, path, m));
    b->images = (int)input->shape[0];
    TRY_DONE(batch_allocate(b, m));
    TRY_DONE(berlu_fail_in(st_read_f32(input, b->input), path));
    TRY_DONE(labels_read(b, safetensors_find(file, "labels"), path, m));
done:
    safetensors_close(file);
    return status;
}

static berlu_status engine_make(engine **out, const model *m, const batch *b, int grads, const options *o)
{
    engine_options how = {
        .mode = grads ? ENGINE_TRAIN : ENGINE_INFER,
        .batch = b->images,
        .threads = options_threads(o),
        .loss = b->labelled ? LOSS_CROSS_ENTROPY : LOSS_NONE,
        .no_update = 1,
    };
    TRY(device_from_options(&how, o));
    return engine_create(out, m->graph, &how);
}

static berlu_status pass(engine *e, const model *m, const batch *b, int grads)
{
    size_t values = (size_t)b->images * 3 * (size_t)m->config.image_size * (size_t)m->config.image_size;
    memcpy(engine_input(e), b->input, values * sizeof *b->input);
    for (int i = 0; b->labelled && i < b->images; i++)
        engine_labels(e)[i] = (int32_t)b->labels[i];
    TRY(engine_forward(e, &(engine_step){0}));
    return grads ? engine_backward(e) : BERLU_OK;
}

/* A gradient, in place where device memory is host memory, else copied; NULL after a failure. */
static const float *values_of(engine *e, int parameter, arena *copies)
{
    const graph *g = engine_graph(e);
    const float *host = engine_host(e, ARRAY_GRADIENT, parameter);
    if (host)
        return host;
    float *copy = ARENA_ARRAY(copies, float, (size_t)tensor_elements(graph_tensor(g, graph_param(g, parameter))));
    return copy && engine_get(e, ARRAY_GRADIENT, parameter, copy) == BERLU_OK ? copy : NULL;
}

/* Writes logits, loss and gradients into one file. */
static berlu_status results_write(engine *e, const model *m, const batch *b, int grads, const char *path)
{
    const graph *g = engine_graph(e);
    size_t count = grads ? (size_t)graph_param_count(g) : 0;
    arena copies = {0};
    berlu_status status;
    st_tensor *tensors = calloc(count + 2, sizeof *tensors);
    if (!tensors)
        return berlu_fail_memory((count + 2) * sizeof *tensors, path);
    for (size_t i = 0; i < count; i++) {
        const tensor_info *p = graph_tensor(g, graph_param(g, (int)i));
        tensors[i] = (st_tensor){.name = p->name, .dtype = ST_F32, .rank = p->rank};
        tensors[i].data = values_of(e, (int)i, &copies);
        TRY_DONE(tensors[i].data ? BERLU_OK : BERLU_ERR_MEMORY);
        for (int d = 0; d < p->rank; d++)
            tensors[i].shape[d] = (uint64_t)p->size[d];
    }
    float loss = (float)engine_loss(e);
    tensors[count++] = (st_tensor){.name = "logits",
                                   .dtype = ST_F32,
                                   .rank = 2,
                                   .shape = {(uint64_t)b->images, (uint64_t)m->config.classes},
                                   .data = engine_logits(e)};
    if (b->labelled)
        tensors[count++] = (st_tensor){.name = "loss", .dtype = ST_F32, .rank = 0, .data = &loss};
    status = safetensors_write(path, tensors, count, &(st_text){"format", "pt"}, 1);
done:
    arena_free(&copies);
    free(tensors);
    return status;
}

static berlu_status results_print(const options *o, engine *e, const batch *b)
{
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "model", options_string(o, "model"));
        output_int(&out, "images", b->images);
        if (b->labelled)
            output_real(&out, "loss", engine_loss(e));
        else
            output_null(&out, "loss");
        return output_print(&out);
    }
    char number[NUMBER_TEXT];
    if (b->labelled)
        printf("%d images, loss %s\n", b->images, number_text(number, engine_loss(e)));
    else
        printf("%d images, no labels\n", b->images);
    return BERLU_OK;
}

/* The network of the options; activation and sizes that they leave out are those that the file of
 * weights names, as for `berlu eval`. */
static berlu_status network_make(model **out, const options *o)
{
    const char *weights = options_string(o, "weights");
    model_options wanted = model_options_of(o);
    train_settings s;
    berlu_status status;
    recipe_init(&s);
    if (strcmp(weights, "fill") != 0) {
        TRY_DONE(network_sizes(&s, weights));
        TRY_DONE(network_acts(&s, weights, &(int){0}));
    }
    if (wanted.act_count == 0) {
        wanted.acts = s.act;
        wanted.act_count = (int)s.acts;
    }
    wanted.image_size = wanted.image_size ? wanted.image_size : (int)s.image_size;
    wanted.patch = wanted.patch ? wanted.patch : (int)s.patch;
    wanted.stride = wanted.stride ? wanted.stride : (int)s.stride;
    wanted.stem = wanted.stem ? wanted.stem : (int)s.stem;
    wanted.drop_path = 0; /* nothing is random */
    status = model_create(out, options_string(o, "model"), &wanted);
done:
    recipe_free(&s);
    return status;
}

static berlu_status forward(options *o)
{
    const char *weights = options_string(o, "weights");
    int grads = options_flag(o, "grads");
    model *m = NULL;
    engine *e = NULL;
    batch b = {0};
    berlu_status status;
    TRY_DONE(network_make(&m, o));
    TRY_DONE(batch_read(&b, options_string(o, "batch"), &m->config));
    if (grads && !b.labelled)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: --grads needs a tensor 'labels'", options_string(o, "batch")));
    TRY_DONE(engine_make(&e, m, &b, grads, o));
    TRY_DONE(strcmp(weights, "fill") == 0 ? weights_fill(e) : weights_load_path(e, weights));
    TRY_DONE(pass(e, m, &b, grads));
    TRY_DONE(results_write(e, m, &b, grads, options_string(o, "out")));
    TRY_DONE(results_print(o, e, &b));
done:
    batch_free(&b);
    engine_free(e);
    model_free(m);
    return status;
}

static const option_row rows[] = {
    {"model", OPTION_STRING, "MODEL", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "which network; `berlu models` lists them"},
    {"weights", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "safetensors of all parameters, or fill"},
    {"batch", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "safetensors with input and labels, or fill"},
    {"out", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "safetensors to write"},
    {"grads", OPTION_FLAG, .help = "also the loss's gradient of every parameter"},
    DEVICE_ROWS,
    MODEL_ROWS,
    {0}};

const command cmd_forward = {
    "forward", "one pass of a model over a batch, from file to file",
    "Reads `input` (N x 3 x H x W, already normalised) and, where there are any, `labels` from a safetensors file and\n"
    "writes `logits`; with labels `loss` (cross entropy, mean); with --grads every parameter's gradient under its "
    "name.\n"
    "`fill` in place of a file is the known-answer fill: a function of names alone, to compare with other programs.\n"
    "Nothing is random: drop path is off. A distilled model answers with the mean of its heads. Sizes and activation\n"
    "that are not given are those that the file of weights names, else the model's own and gelu.\n\n"
    "  berlu forward vit_tiny --weights vit_tiny.safetensors --batch batch.safetensors --out answer.safetensors\n"
    "  berlu forward tnt_s_cifar --weights fill --batch fill --out answer.safetensors --grads",
    rows, forward};
