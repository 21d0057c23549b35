/* test_models.c - every model has timm's parameters: names, shapes, order, decay, start, counts.
 * SPDX-License-Identifier: MIT
 *
 * The digests are CRC32C of one line per parameter, "name TAB 192x3x4x4 TAB count TAB decay TAB
 * init NEWLINE", as read from the models that timm 1.0.30 makes; counts and MACs are spelled out so
 * that a difference says more than "digest". What the models compute is tested in
 * test_known_answers.c and test_golden.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "graph/op.h"
#include "models/models.h"
#include "models/timm.h"
#include "models/weights.h"

typedef struct expected {
    const char *name;
    int64_t parameters;
    int tensors;
    int64_t no_decay;
    uint32_t digest;
    double macs;
    int sites;
    int64_t site_values;
} expected;

static const expected timm[] = {
    {"vit_tiny", 5717416, 152, 69544, 0xf6680f7c, 1253683200., 12, 1815552},
    {"vit_small", 22050664, 152, 138088, 0x165ea4bb, 4598882304., 12, 3631104},
    {"vit_base", 86567656, 152, 275176, 0x8386e3ac, 17563828224., 12, 7262208},
    {"deit_tiny", 5717416, 152, 69544, 0xf6680f7c, 1253683200., 12, 1815552},
    {"deit_small", 22050664, 152, 138088, 0x165ea4bb, 4598882304., 12, 3631104},
    {"deit_tiny_distilled", 5910800, 155, 70928, 0x3e7b5c79, 1261003776., 12, 1824768},
    {"deit_small_distilled", 22436432, 155, 139856, 0x02a9a460, 4624140288., 12, 3649536},
    {"tnt_s", 23768584, 363, 147520, 0xb354e8ed, 5216875008., 24, 7243776},
    {"tnt_s_legacy", 23755336, 351, 134272, 0xe78661cc, 5216875008., 24, 7243776},
    {"convnext_atto", 3695520, 128, 19440, 0x8684eb15, 547332480., 12, 2383360},
    {"convnext_femto", 5217784, 128, 23128, 0xfb221ad3, 779629824., 12, 2860032},
    {"convnext_pico", 9045672, 128, 30504, 0xdfcf6533, 1367055360., 12, 3813376},
    {"convnext_nano", 15593560, 146, 43640, 0x5b97ea8e, 2445528320., 14, 5268480},
    {"convnext_tiny", 28589128, 182, 65128, 0xf3c616e6, 4455531264., 18, 8580096},
    {"vit_tiny_cifar", 5362762, 152, 43210, 0xe88eb92c, 365107584., 12, 599040},
    {"deit_tiny_cifar", 5362762, 152, 43210, 0xe88eb92c, 365107584., 12, 599040},
    {"deit_tiny_distilled_cifar", 5365076, 155, 43604, 0xa3fa7f85, 371021568., 12, 608256},
    {"tnt_s_cifar", 23336746, 363, 95842, 0x32c9affa, 1639797504., 24, 2377728},
    {"convnext_atto_cifar", 3375930, 128, 18450, 0xffd748ff, 176776320., 12, 778240},
    {"convnext_femto_cifar", 4834474, 128, 22138, 0x18aeb43d, 252239616., 12, 933888},
    {"convnext_pico_cifar", 8534922, 128, 29514, 0xea5cf413, 443274240., 12, 1245184},
    {"convnext_nano_cifar", 14955370, 146, 42650, 0xb1bcb76a, 794650880., 14, 1720320},
    {"convnext_tiny_cifar", 27823498, 182, 64138, 0x177d6967, 1450200576., 18, 2801664},
};

static model *create(const char *name, const model_options *options)
{
    model *m = NULL;
    if (model_create(&m, name, options) != BERLU_OK)
        fail_msg("%s: %s", name, berlu_last_error());
    return m;
}

/* Counts all parameters, and those without decay; the lines for the digest go into `lines`. */
static void count(const graph *g, int64_t *all, int64_t *no_decay, text *lines)
{
    *all = *no_decay = 0;
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = graph_tensor(g, graph_param(g, i));
        char code[INIT_CODE];
        *all += tensor_elements(p);
        *no_decay += p->decay ? 0 : tensor_elements(p);
        text_add(lines, "%s\t", p->name);
        for (int d = 0; d < p->rank; d++)
            text_add(lines, "%s%lld", d ? "x" : "", (long long)p->size[d]);
        text_add(lines, "\t%lld\t%d\t%s\n", (long long)tensor_elements(p), p->decay, init_code(code, p->init));
    }
    assert_int_equal(text_status(lines), BERLU_OK);
}

static void every_model_has_timms_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(timm); i++) {
        const expected *want = &timm[i];
        model *m = create(want->name, NULL);
        int64_t all, no_decay;
        text lines = {0};
        count(m->graph, &all, &no_decay, &lines);
        assert_int_equal(all, want->parameters);
        assert_int_equal(graph_param_count(m->graph), want->tensors);
        assert_int_equal(no_decay, want->no_decay);
        if (crc32c(0, lines.data, lines.length) != want->digest)
            fail_msg("%s: digest %08x, not %08x:\n%s", want->name, crc32c(0, lines.data, lines.length), want->digest,
                     lines.data);
        text_free(&lines);
        model_free(m);
    }
}

static void every_model_has_timms_multiply_adds_and_sites(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(timm); i++) {
        model *m = create(timm[i].name, NULL);
        int64_t values = 0;
        for (int s = 0; s < graph_site_count(m->graph); s++)
            values += graph_site_at(m->graph, s)->values;
        if (graph_macs(m->graph) != timm[i].macs)
            fail_msg("%s: %.0f multiply-adds, not %.0f", timm[i].name, graph_macs(m->graph), timm[i].macs);
        assert_int_equal(graph_site_count(m->graph), timm[i].sites);
        assert_int_equal(values, timm[i].site_values);
        model_free(m);
    }
}

static int64_t parameters_of(const char *name, const model_options *options)
{
    model *m = create(name, options);
    int64_t all, no_decay;
    text lines = {0};
    count(m->graph, &all, &no_decay, &lines);
    text_free(&lines);
    model_free(m);
    return all;
}

static void micro_models_and_options_have_timms_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        model_options options;
        int64_t parameters;
    } rows[] = {
        {"vit_micro", {0}, 208074},
        {"deit_micro", {0}, 208852},
        {"tnt_micro", {0}, 94810},
        {"convnext_micro", {0}, 269578},
        {"vit_tiny_cifar", {.classes = 100}, 5380132},
        {"deit_tiny_distilled_cifar", {.classes = 100}, 5399816},
        {"tnt_s_cifar", {.classes = 100}, 23371396},
        {"convnext_tiny_cifar", {.classes = 100}, 27892708},
        {"vit_tiny", {.classes = 10}, 5526346},
        {"tnt_s", {.classes = 10}, 23387434},
        {"tnt_s_cifar", {.stride = 2}, 21891274},
        {"tnt_s_cifar", {.stride = 4}, 21529906},
        {"tnt_s_legacy", {.image_size = 32, .patch = 4, .stride = 1, .classes = 10}, 23323498},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(parameters_of(rows[i].name, &rows[i].options), rows[i].parameters);
}

static void learned_activation_parameters_stand_between_fc1_and_fc2_and_do_not_decay(void **state)
{
    (void)state;
    static const char *const models[] = {"vit_micro", "tnt_micro", "convnext_micro"};
    const char *acts[] = {"berlu:learn=alpha+eps"};
    for (size_t k = 0; k < COUNT(models); k++)
        for (int per_channel = 0; per_channel < 2; per_channel++) {
            model *m = create(models[k], &(model_options){.acts = acts, .act_count = 1, .per_channel = per_channel});
            int found = 0;
            for (int i = 0; i < graph_param_count(m->graph); i++) {
                const tensor_info *p = graph_tensor(m->graph, graph_param(m->graph, i));
                const char *act = strstr(p->name, ".act.alpha");
                if (!act)
                    continue;
                const tensor_info *bias = graph_tensor(m->graph, graph_param(m->graph, i - 1));
                const tensor_info *eps = graph_tensor(m->graph, graph_param(m->graph, i + 1));
                const tensor_info *fc2 = graph_tensor(m->graph, graph_param(m->graph, i + 2));
                assert_string_equal(bias->name + (act - p->name), ".fc1.bias");
                assert_string_equal(eps->name + (act - p->name), ".act.eps");
                assert_string_equal(fc2->name + (act - p->name), ".fc2.weight");
                assert_false(p->decay || eps->decay);
                assert_true(p->activation && eps->activation);
                assert_int_equal(p->rank, 1);
                assert_int_equal(p->size[0], per_channel ? bias->size[0] : 1);
                found++;
            }
            assert_int_equal(found, graph_site_count(m->graph));
            model_free(m);
        }
}

static void each_site_gets_its_own_activation_in_order(void **state)
{
    (void)state;
    const char *acts[] = {"relu", "gelu", "silu", "mish"};
    model *m = create("tnt_micro", &(model_options){.acts = acts, .act_count = 4});
    static const char *const names[] = {"blocks.0.mlp_in.act", "blocks.0.mlp.act", "blocks.1.mlp_in.act",
                                        "blocks.1.mlp.act"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(graph_site_at(m->graph, i)->name, names[i]);
        assert_string_equal(berlu_act_name(graph_site_at(m->graph, i)->act), acts[i]);
    }
    model_free(m);
}

static void what_does_not_fit_is_refused_by_the_options_name(void **state)
{
    (void)state;
    const char *acts[] = {"relu", "gelu", "no_such"};
    const struct {
        const char *name;
        model_options options;
        const char *word;
    } rows[] = {
        {"vit_tyni", {0}, "did you mean 'vit_tiny'"},
        {"resnet50", {0}, "unknown model 'resnet50'"},
        {"", {0}, "unknown model ''"},
        {"vit_tiny", {.image_size = 225}, "--image-size 225 is not a multiple of --patch 16"},
        {"vit_tiny", {.patch = 15}, "--patch 15"},
        {"vit_tiny", {.patch = -4}, "--patch -4"},
        {"vit_tiny", {.image_size = 100000}, "--image-size 100000"},
        {"vit_tiny", {.stride = 2}, "no --stride"},
        {"vit_tiny", {.stem = 2}, "no --stem"},
        {"convnext_atto", {.patch = 4}, "no --patch"},
        {"convnext_atto", {.stem = 3}, "--stem 3"},
        {"convnext_atto", {.image_size = 30}, "--stem 4"},
        {"convnext_atto", {.image_size = 28}, "too small"},
        {"tnt_s", {.image_size = 33}, "--image-size 33"},
        {"tnt_s", {.stride = 17}, "--stride 17"},
        {"tnt_s_legacy", {.stride = 3}, "--stride 3"},
        {"vit_tiny", {.classes = -1}, "--classes -1"},
        {"vit_tiny", {.drop_path = 1}, "--drop-path 1"},
        {"vit_tiny", {.drop_path = -0.1}, "--drop-path -0.1"},
        {"vit_tiny", {.acts = acts, .act_count = 3}, "12 activation sites, --act was given 3 times"},
        {"vit_tiny", {.acts = acts + 2, .act_count = 1}, "no_such"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        model *m = NULL;
        if (model_create(&m, rows[i].name, &rows[i].options) != BERLU_ERR_ARG)
            fail_msg("taken: %s, row %zu", rows[i].name, i);
        assert_null(m);
        if (!strstr(berlu_last_error(), rows[i].word))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), rows[i].word);
    }
}

/* Rates rise from 0 in the first block to the model's in the last, over all blocks of all stages; a
 * rate of 0 has no node. ViT draws twice a block, ConvNeXt once, TNT four times, of which two are
 * per patch. */
static void drop_path_rises_linearly_and_drops_pixels_per_patch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int blocks, draws, groups[4];
    } rows[] = {{"vit_micro", 4, 2, {1, 1}}, {"convnext_micro", 5, 1, {1}}, {"tnt_micro", 2, 4, {64, 64, 1, 1}}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        model *m = create(rows[k].name, &(model_options){.drop_path = 0.1});
        int found = 0;
        for (int i = 0; i < graph_node_count(m->graph); i++) {
            const node *n = graph_node(m->graph, i);
            if (n->op != OP_DROP_PATH)
                continue;
            int block = 1 + found / rows[k].draws;
            assert_true(n->attr.rate == 0.1f * (float)block / (float)(rows[k].blocks - 1));
            assert_int_equal(n->attr.groups, rows[k].groups[found % rows[k].draws]);
            found++;
        }
        assert_int_equal(found, (rows[k].blocks - 1) * rows[k].draws);
        model_free(m);
    }
}

/* timm's special case: a stem of stride 2 gives stage 0 a downsampling too. Maps 16, 8, 4, 2, 1. */
static void a_stem_of_2_halves_in_stage_0_as_well(void **state)
{
    (void)state;
    model *m = create("convnext_micro", &(model_options){.stem = 2});
    tensor weight = graph_find(m->graph, "stages.0.downsample.1.weight");
    assert_int_not_equal(weight, TENSOR_NONE);
    assert_int_equal(graph_tensor(m->graph, weight)->size[0], 16);
    const graph_site *first = graph_site_at(m->graph, 0), *last = graph_site_at(m->graph, 4);
    assert_int_equal(first->values, 8 * 8 * 64);
    assert_int_equal(last->values, 1 * 1 * 512);
    model_free(m);
}

static void a_linear_classifier_is_one_matrix_and_has_no_activation(void **state)
{
    (void)state;
    model *m = create("linear", &(model_options){.image_size = 16, .classes = 7});
    const graph *g = m->graph;
    assert_int_equal(graph_param_count(g), 2);
    assert_int_equal(tensor_elements(graph_tensor(g, graph_param(g, 0))), 7 * 3 * 16 * 16);
    assert_int_equal(tensor_elements(graph_tensor(g, graph_param(g, 1))), 7);
    assert_true(graph_macs(g) == 7 * 3 * 16 * 16);
    assert_int_equal(graph_site_count(g), 0);
    model_free(m);
    const char *const acts[] = {"relu"};
    assert_int_equal(model_create(&m, "linear", &(model_options){.acts = acts, .act_count = 1}), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "--act"));
    assert_int_equal(model_create(&m, "linear", &(model_options){.patch = 4}), BERLU_ERR_ARG);
}

static void every_name_of_the_table_can_be_made_and_is_unique(void **state)
{
    (void)state;
    size_t names = 0;
    for (; model_name(names); names++) {
        for (size_t k = 0; k < names; k++)
            assert_string_not_equal(model_name(k), model_name(names));
        model_free(create(model_name(names), NULL));
    }
    assert_int_equal(names, COUNT(timm) + 5); /* and the micro ones, and linear */
}

static void timms_names_are_accepted_for_every_model_of_timms_own_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof timm / sizeof timm[0]; i++) {
        model_config ours, theirs;
        const char *name = timm_name(timm[i].name);
        assert_int_equal(model_configure(&ours, timm[i].name, NULL), BERLU_OK);
        assert_int_equal(name != NULL, ours.image_size == 224);
        if (!name)
            continue;
        assert_int_equal(model_configure(&theirs, name, NULL), BERLU_OK);
        assert_string_equal(theirs.name, ours.name);
    }
    assert_string_equal(model_canonical("vit_tiny_patch16_224.augreg_in21k"), "vit_tiny");
    assert_string_equal(model_canonical("vit_tiny_patch16_2245"), "vit_tiny_patch16_2245");
    assert_string_equal(model_canonical("vit_micro"), "vit_micro");
    assert_string_equal(model_canonical(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_timms_parameters),
        cmocka_unit_test(every_model_has_timms_multiply_adds_and_sites),
        cmocka_unit_test(micro_models_and_options_have_timms_counts),
        cmocka_unit_test(learned_activation_parameters_stand_between_fc1_and_fc2_and_do_not_decay),
        cmocka_unit_test(each_site_gets_its_own_activation_in_order),
        cmocka_unit_test(what_does_not_fit_is_refused_by_the_options_name),
        cmocka_unit_test(drop_path_rises_linearly_and_drops_pixels_per_patch),
        cmocka_unit_test(a_stem_of_2_halves_in_stage_0_as_well),
        cmocka_unit_test(a_linear_classifier_is_one_matrix_and_has_no_activation),
        cmocka_unit_test(timms_names_are_accepted_for_every_model_of_timms_own_size),
        cmocka_unit_test(every_name_of_the_table_can_be_made_and_is_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
