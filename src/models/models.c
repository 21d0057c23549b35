/* models.c - the table of models, and the way from a name and options to a graph.
 * SPDX-License-Identifier: MIT
 *
 * A row is a model_config as timm's constructor of that name would have it. The CIFAR presets are
 * this project's choice for 32 x 32 images: patch 4 (an 8 x 8 grid), TNT's pixel convolution at
 * stride 1 (16 pixels per patch, as at 224), ConvNeXt with a 1 x 1 stem (maps 32, 16, 8, 4). The
 * micro models are for tests and demonstrations. To add a model of a known family add a row; a new
 * family is a file beside vit.c (docs/add-a-model.md). */
#include "models/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/act_text.h"
#include "models/family.h"
#include "models/timm.h"

/* clang-format off */
#define VIT(NAME, IMAGE, PATCH, CLASSES, WIDTH, DEPTH, HEADS, ...)                                                     \
    {.name = NAME, .family = &family_vit, .image_size = IMAGE, .patch = PATCH, .classes = CLASSES, .width = {WIDTH},   \
     .depth = {DEPTH}, .heads = HEADS, __VA_ARGS__}
#define TNT(NAME, IMAGE, PATCH, STRIDE, CLASSES, WIDTH, INNER, DEPTH, ...)                                             \
    {.name = NAME, .family = &family_tnt, .image_size = IMAGE, .patch = PATCH, .stride = STRIDE, .classes = CLASSES,   \
     .width = {WIDTH}, .inner_width = INNER, .depth = {DEPTH}, .heads = 6, .inner_heads = 4, __VA_ARGS__}
#define CONVNEXT(NAME, IMAGE, STEM, CLASSES, WIDTH, D0, D1, D2, D3, ...)                                               \
    {.name = NAME, .family = &family_convnext, .image_size = IMAGE, .stem = STEM, .classes = CLASSES,                  \
     .width = {WIDTH, 2 * WIDTH, 4 * WIDTH, 8 * WIDTH}, .depth = {D0, D1, D2, D3}, __VA_ARGS__}

static const model_config table[] = {
    /* name                      image patch classes width depth heads */
    VIT("vit_tiny",                     224,  16,  1000,   192,  12,   3),
    VIT("vit_small",                    224,  16,  1000,   384,  12,   6),
    VIT("vit_base",                     224,  16,  1000,   768,  12,  12),
    VIT("deit_tiny",                    224,  16,  1000,   192,  12,   3),
    VIT("deit_small",                   224,  16,  1000,   384,  12,   6),
    VIT("deit_tiny_distilled",          224,  16,  1000,   192,  12,   3, .distilled = 1),
    VIT("deit_small_distilled",         224,  16,  1000,   384,  12,   6, .distilled = 1),
    VIT("vit_tiny_cifar",                32,   4,    10,   192,  12,   3),
    VIT("deit_tiny_cifar",               32,   4,    10,   192,  12,   3),
    VIT("deit_tiny_distilled_cifar",     32,   4,    10,   192,  12,   3, .distilled = 1),
    VIT("vit_micro",                     32,   4,    10,    64,   4,   2),
    VIT("deit_micro",                    32,   4,    10,    64,   4,   2, .distilled = 1),
    /* name           image patch stride classes width inner depth */
    TNT("tnt_s",             224,  16,    4,   1000,   384,  24,   12),
    TNT("tnt_s_legacy",      224,  16,    4,   1000,   384,  24,   12, .legacy = 1),
    TNT("tnt_s_cifar",        32,   4,    1,     10,   384,  24,   12),
    TNT("tnt_micro",          32,   4,    1,     10,    48,  12,    2),
    /* name               image stem classes width  depths */
    CONVNEXT("convnext_atto",         224,  4,  1000,   40,  2, 2, 6, 2),
    CONVNEXT("convnext_femto",        224,  4,  1000,   48,  2, 2, 6, 2),
    CONVNEXT("convnext_pico",         224,  4,  1000,   64,  2, 2, 6, 2),
    CONVNEXT("convnext_nano",         224,  4,  1000,   80,  2, 2, 8, 2),
    CONVNEXT("convnext_tiny",         224,  4,  1000,   96,  3, 3, 9, 3, .linear_mlp = 1),
    CONVNEXT("convnext_atto_cifar",    32,  1,    10,   40,  2, 2, 6, 2),
    CONVNEXT("convnext_femto_cifar",   32,  1,    10,   48,  2, 2, 6, 2),
    CONVNEXT("convnext_pico_cifar",    32,  1,    10,   64,  2, 2, 6, 2),
    CONVNEXT("convnext_nano_cifar",    32,  1,    10,   80,  2, 2, 8, 2),
    CONVNEXT("convnext_tiny_cifar",    32,  1,    10,   96,  3, 3, 9, 3, .linear_mlp = 1),
    CONVNEXT("convnext_micro",         32,  1,    10,   16,  1, 1, 2, 1),
    {.name = "linear", .family = &family_linear, .image_size = 32, .classes = 10},
};
/* clang-format on */

const char *model_name(size_t i)
{
    return i < COUNT(table) ? table[i].name : NULL;
}

/* ---- Names and options ----------------------------------------------------------------------- */

static berlu_status row_find(const model_config **out, const char *name)
{
    const char *names[COUNT(table) + 1] = {NULL};
    name = model_canonical(name);
    for (size_t i = 0; i < COUNT(table); i++) {
        names[i] = table[i].name;
        if (strcmp(name, table[i].name) == 0) {
            *out = &table[i];
            return BERLU_OK;
        }
    }
    const char *near = nearest_name(name, names);
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "unknown model '%.60s'; did you mean '%s'?", name, near);
    return berlu_fail(BERLU_ERR_ARG,
                      "unknown model '%.60s'; `berlu models` lists the vit_, deit_, tnt_ and convnext_ models, such as "
                      "'vit_tiny_cifar'",
                      name);
}

/* Sets one integer option: 0 keeps the model's value; `known` tells whether the family has it. */
static berlu_status option_put(const model_config *m, int *place, int value, int most, int known, const char *option)
{
    if (value == 0)
        return BERLU_OK;
    if (!known)
        return berlu_fail(BERLU_ERR_ARG, "%s: a %s has no %s", m->name, m->family->name, option);
    if (value < 0 || value > most)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s %d is not between 1 and %d", m->name, option, value, most);
    *place = value;
    return BERLU_OK;
}

/* Larger than any sensible network; keeps products of sizes far inside 64 bits. */
enum { IMAGE_MOST = 4096, CLASSES_MOST = 1000000 };

berlu_status model_configure(model_config *out, const char *name, const model_options *options)
{
    static const model_options none = {0};
    const model_options *o = options ? options : &none;
    const model_config *row = NULL;
    TRY(row_find(&row, name));
    model_config m = *row;
    const struct {
        int *place, value, most, known;
        const char *option;
    } puts[] = {
        {&m.image_size, o->image_size, IMAGE_MOST, 1, "--image-size"},
        {&m.classes, o->classes, CLASSES_MOST, 1, "--classes"},
        {&m.patch, o->patch, IMAGE_MOST, m.family->options & HAS_PATCH, "--patch"},
        {&m.stride, o->stride, IMAGE_MOST, m.family->options & HAS_STRIDE, "--stride"},
        {&m.stem, o->stem, 4, m.family->options & HAS_STEM, "--stem"},
    };
    for (size_t i = 0; i < COUNT(puts); i++)
        TRY(option_put(&m, puts[i].place, puts[i].value, puts[i].most, puts[i].known, puts[i].option));
    if (!(o->drop_path >= 0 && o->drop_path <= MODEL_DROP_PATH_MOST))
        return berlu_fail(BERLU_ERR_ARG, "%s: --drop-path %g is outside 0 to %g", m.name, o->drop_path,
                          MODEL_DROP_PATH_MOST);
    int sites = m.family->sites(&m);
    if (sites == 0 && o->act_count > 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: has no activation; leave --act out", m.name);
    if (o->act_count != 0 && o->act_count != 1 && o->act_count != sites)
        return berlu_fail(BERLU_ERR_ARG,
                          "%s has %d activation sites, --act was given %d times; give it once, or once a site", m.name,
                          sites, o->act_count);
    m.drop_path = (float)o->drop_path;
    m.per_channel = o->per_channel;
    TRY(m.family->check(&m));
    *out = m;
    return BERLU_OK;
}

/* ---- Helpers of the families ----------------------------------------------------------------- */

tensor site_act(model_builder *b, tensor x, const char *name)
{
    int site = b->site++;
    return build_act(b->g, x, b->acts[b->act_count == 1 ? 0 : site], b->m->per_channel, name);
}

tensor layer_mlp(model_builder *b, tensor x, const char *name)
{
    graph *g = b->g;
    int64_t width = graph_failed(g) ? 1 : tensor_channels(graph_tensor(g, x));
    x = layer_linear(g, x, 4 * width, WITH_BIAS, graph_name(g, "%s.fc1", name));
    x = site_act(b, x, graph_name(g, "%s.act", name));
    return layer_linear(g, x, width, WITH_BIAS, graph_name(g, "%s.fc2", name));
}

tensor layer_conv(graph *g, tensor rows, int outputs, int channels, int kernel, param_init weight, param_init bias,
                  const char *name)
{
    const int64_t size[] = {outputs, channels, kernel, kernel};
    tensor w = build_param(g, graph_name(g, "%s.weight", name), weight, 1, 4, size);
    tensor c = build_param(g, graph_name(g, "%s.bias", name), bias, 0, 1, size);
    return build_linear(g, rows, w, c);
}

tensor residual(model_builder *b, tensor x, tensor branch, int i, int blocks, int groups)
{
    float rate = blocks > 1 ? b->m->drop_path * (float)i / (float)(blocks - 1) : 0;
    return build_add(b->g, x, build_drop_path(b->g, branch, rate, groups));
}

/* ---- Making ---------------------------------------------------------------------------------- */

static berlu_status acts_make(model *m, const model_options *options)
{
    static const char *const gelu[] = {"gelu"};
    int given = options && options->act_count;
    int count = given ? options->act_count : 1;
    const char *const *specs = given ? options->acts : gelu;
    m->acts = calloc((size_t)count, sizeof *m->acts);
    if (!m->acts)
        return berlu_fail_memory((size_t)count * sizeof *m->acts, "the activations of a model");
    for (; m->act_count < count; m->act_count++)
        TRY(act_from_text(&m->acts[m->act_count], specs[m->act_count]));
    return BERLU_OK;
}

berlu_status model_create(model **out, const char *name, const model_options *options)
{
    model_config config;
    berlu_status status = model_configure(&config, name, options);
    if (status != BERLU_OK)
        return status;
    model *m = calloc(1, sizeof *m);
    if (!m)
        return berlu_fail_memory(sizeof *m, name);
    m->config = config;
    TRY_DONE(acts_make(m, options));
    TRY_DONE(graph_create(&m->graph));
    model_builder builder = {.g = m->graph, .m = &m->config, .acts = m->acts, .act_count = m->act_count};
    config.family->build(&builder);
    TRY_DONE(graph_status(m->graph));
    *out = m;
    m = NULL;
done:
    model_free(m);
    return status;
}

void model_free(model *m)
{
    if (!m)
        return;
    graph_free(m->graph);
    for (int i = 0; i < m->act_count; i++)
        berlu_act_free(m->acts[i]);
    free(m->acts);
    free(m);
}
