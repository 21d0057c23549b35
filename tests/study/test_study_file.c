/* test_study_file.c - study files: what they expand to, and that every mistake is reported at once,
 * where it is. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/scheduler.h"
#include "support/fail.h"

static void parse(study *s, const char *source)
{
    text problems = {0};
    if (study_parse(s, source, strlen(source), "s.yaml", &problems) != BERLU_OK)
        fail_msg("%s\n%s", berlu_last_error(), problems.data ? problems.data : "");
    assert_null(problems.data);
}

/* The problems of a file as one text; it must have some. */
static char *refused(const char *source)
{
    study s;
    text problems = {0};
    assert_int_equal(study_parse(&s, source, strlen(source), "s.yaml", &problems), BERLU_ERR_INPUT);
    assert_null(s.cells);
    assert_non_null(problems.data);
    return problems.data;
}

static size_t lines(const char *words)
{
    size_t count = 0;
    for (; *words; words++)
        count += *words == '\n';
    return count;
}

static const char *value_of(const study_cell *cell, const char *key)
{
    for (size_t i = 0; i < cell->settings.count; i++)
        if (strcmp(cell->settings.items[i].key, key) == 0)
            return cell->settings.items[i].values[0];
    return NULL;
}

static void the_quick_study_has_24_runs_in_seed_order(void **state)
{
    (void)state;
    char path[4096];
    study s;
    snprintf(path, sizeof path, "%s/studies/quick.yaml", getenv("BERLU_SOURCE_DIR"));
    if (study_read(&s, path, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    static const char *const labels[] = {"relu", "berlu", "berlu:eps=1", "berlu:eps=10", "elu", "celu"};
    assert_string_equal(s.name, "quick");
    assert_int_equal(s.cell_count, 6);
    assert_int_equal(s.run_count, 24);
    for (size_t i = 0; i < 24; i++) {
        assert_int_equal(s.runs[i].cell, i % 6); /* all cells of a seed before the next seed */
        assert_int_equal(s.runs[i].seed, i / 6);
        assert_string_equal(s.cells[i % 6].label, labels[i % 6]);
    }
    assert_int_equal(s.pair_count, 1);
    assert_int_equal(s.pairs[0].a, 3);
    assert_int_equal(s.pairs[0].b, 1);
    assert_string_equal(s.pairs[0].name, "wide");
    assert_string_equal(s.contrasts[0].expect, "less");
    assert_true(isnan(s.contrasts[0].paper) && s.margin == 0.5 && strcmp(s.metric, "top1") == 0 &&
                s.kind == STUDY_TRAIN);
    train_settings run;
    assert_int_equal(study_run_settings(&s, &s.runs[9], &run), BERLU_OK);
    assert_true(run.seed == 1 && run.acts == 1 && strcmp(run.act[0], "berlu:eps=10") == 0 && run.epochs == 8 &&
                run.lr == 1e-3);
    recipe_free(&run);
    study_free(&s);
}

static const char parts[] = "study: p\n"
                            "base: {model: vit_micro, data: synthetic, epochs: 2, batch: 64}\n"
                            "parts:\n"
                            "  - axes:\n"
                            "      act: [relu, gelu]\n"
                            "      how: [{label: plain}, {label: big, init_std: 0.1, batch: 32}]\n"
                            "    seeds: [7, 3, 5]\n"
                            "  - {axes: {act: [silu], how: [{label: plain}]}, seeds: 1}\n"
                            "skip: [{act: relu, how: big}]\n"
                            "contrasts:\n"
                            "  - {name: versus, a: {act: gelu}, b: {act: relu}, paper: -1.5, expect: greater}\n"
                            "  - {name: size, a: {how: big}, b: {how: plain}}\n"
                            "  - {name: across, a: {act: silu}, b: {act: relu}}\n"
                            "claims: [C7, C20]\n"
                            "margin: 0.25\n"
                            "metric: loss\n";

static const char predictions[] =
    "study: h\n"
    "hypothesis: it is so\n"
    "base: {model: vit_micro, data: synthetic}\n"
    "axes: {act: [gelu, relu], init_std: [0.02, 0.1], batch: [8, 16]}\n"
    "seeds: 2\n"
    "margin: 0.25\n"
    "contrasts:\n"
    "  - {name: start, a: {act: gelu, init_std: 0.1}, b: {act: gelu, init_std: 0.02},\n"
    "     minus: {a: {act: relu, init_std: 0.1}, b: {act: relu, init_std: 0.02}}, expect: greater, than: 1.5}\n"
    "  - {name: same, a: {act: gelu}, b: {act: relu}, expect: equal}\n"
    "  - {name: near, a: {act: gelu}, b: {act: relu}, expect: equal, margin: 0.75}\n"
    "  - {name: less, a: {act: gelu}, b: {act: relu}, expect: less, than: -1}\n";

static const char choosing[] = "study: f\n"
                               "base: {model: vit_micro, data: synthetic, synthetic_images: 640, holdout: 64}\n"
                               "axes: {act: [gelu, relu], lr: [1e-4, 1e-3]}\n"
                               "seeds: 2\n"
                               "choose: {study: g, axis: lr, base: {holdout: 0}, seeds: [2, 3],\n"
                               "         contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: less}]}\n";

static void parts_have_their_own_seeds_and_skipped_cells_are_gone(void **state)
{
    (void)state;
    study s;
    parse(&s, parts);
    static const char *const labels[] = {"relu, plain", "gelu, plain", "gelu, big", "silu, plain"};
    assert_int_equal(s.cell_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(s.cells[i].label, labels[i]);
    assert_string_equal(value_of(&s.cells[2], "batch"), "32"); /* an axis wins over base */
    assert_string_equal(value_of(&s.cells[1], "batch"), "64");
    static const struct {
        size_t cell;
        int64_t seed;
    } runs[] = {{0, 7}, {1, 7}, {2, 7}, {3, 0}, {0, 3}, {1, 3}, {2, 3}, {0, 5}, {1, 5}, {2, 5}};
    assert_int_equal(s.run_count, COUNT(runs));
    for (size_t i = 0; i < COUNT(runs); i++)
        assert_true(s.runs[i].cell == runs[i].cell && s.runs[i].seed == runs[i].seed);
    assert_int_equal(s.claim_count, 2);
    assert_true(s.margin == 0.25 && strcmp(s.metric, "loss") == 0);
    study_free(&s);
}

static void a_contrast_that_leaves_an_axis_open_is_made_at_each_value(void **state)
{
    (void)state;
    study s;
    parse(&s, parts);
    static const struct {
        const char *name;
        size_t a, b;
    } pairs[] = {{"versus, plain", 1, 0}, {"size, gelu", 2, 1}, {"across, plain", 3, 0}};
    assert_int_equal(s.pair_count, COUNT(pairs)); /* relu has no big cell: it was skipped */
    for (size_t i = 0; i < COUNT(pairs); i++) {
        assert_string_equal(s.pairs[i].name, pairs[i].name);
        assert_true(s.pairs[i].a == pairs[i].a && s.pairs[i].b == pairs[i].b && s.pairs[i].contrast == i);
    }
    assert_true(s.contrasts[0].paper == -1.5 && strcmp(s.contrasts[0].expect, "greater") == 0);
    study_free(&s);
}

static void a_setting_without_effect_is_dropped_and_reported(void **state)
{
    (void)state;
    study s;
    parse(&s, "study: d\n"
              "base: {model: vit_micro, data: synthetic, act: relu, momentum: 0.8}\n"
              "axes: {optimizer: [sgd, adamw]}\n"
              "seeds: 1\n");
    assert_string_equal(value_of(&s.cells[0], "momentum"), "0.8");
    assert_null(value_of(&s.cells[1], "momentum"));
    assert_int_equal(s.note_count, 1);
    assert_non_null(strstr(s.notes[0], "adamw: momentum: has no effect"));
    study_free(&s);
}

static void a_teacher_is_a_run_of_its_own(void **state)
{
    (void)state;
    study s;
    parse(&s, "study: t\n"
              "base: {model: deit_micro, data: synthetic, synthetic_images: 500, distill: hard,\n"
              "       teacher: {model: vit_micro, act: gelu, recipe: paper}}\n"
              "axes: {act: [relu, berlu]}\n"
              "seeds: 2\n");
    assert_int_equal(s.teacher.count, 5); /* its three, and the data */
    assert_int_equal(s.cell_count, 3);    /* the last cell, and the first run */
    assert_int_equal(s.run_count, 5);
    assert_int_equal(s.teacher_cell, 2);
    assert_string_equal(s.cells[2].label, "teacher");
    assert_int_equal(s.runs[0].cell, 2);
    for (size_t i = 0; i < 2; i++) {
        train_settings run;
        assert_int_equal(study_run_settings(&s, &s.runs[i], &run), BERLU_OK);
        assert_int_equal(run.distill, i ? RECIPE_DISTILL_HARD : RECIPE_DISTILL_NONE);
        recipe_free(&run);
    }
    study_free(&s);
    char *words =
        refused("study: t\n"
                "base: {model: deit_micro, data: synthetic, distill: hard, teacher: {model: vit_micri, act: gelu}}\n"
                "axes: {act: [relu]}\n"
                "seeds: 1\n");
    assert_non_null(strstr(words, "teacher: "));
    free(words);
}

static void one_activation_per_site_is_a_list(void **state)
{
    (void)state;
    study s;
    parse(&s, "study: l\n"
              "base: {model: vit_micro, data: synthetic}\n"
              "axes: {act: [[relu, gelu, relu, gelu], silu]}\n"
              "seeds: 1\n");
    assert_string_equal(s.cells[0].label, "relu + gelu + relu + gelu");
    train_settings run;
    assert_int_equal(study_run_settings(&s, &s.runs[0], &run), BERLU_OK);
    assert_int_equal(run.acts, 4);
    recipe_free(&run);
    study_free(&s);
}

static void all_problems_are_reported_at_once_with_their_places(void **state)
{
    (void)state;
    static const char source[] = "study: not a name\n"                                                         /* 1 */
                                 "base: {model: vit_micro, data: synthetic, epocs: 3, batch: none, seed: 3}\n" /* 2 */
                                 "axes: {act: [relu, relu, gelo], hue: [0.7], hou: [1]}\n"                     /* 3 */
                                 "seeds: [1, 2, 1, x]\n"                                                       /* 4 */
                                 "skip: [{act: elu}]\n"                                                        /* 5 */
                                 "contrasts: [{name: c, a: {act: relu}, b: {act: mish}, expct: less}]\n"       /* 6 */
                                 "margin: 0\n"                                                                 /* 7 */
                                 "metric: accuracy\n"                                                          /* 8 */
                                 "claims: [C7, C21]\n"                                                         /* 9 */
                                 "contrast: []\n";                                                             /* 10 */
    static const char *const want[] = {
        "s.yaml:1:8: study: 'not a name' is no plain name",
        "s.yaml:2:50: there is no setting 'epocs'; did you mean epochs?",
        "s.yaml:2:60: batch: 'none' is not a number",
        "s.yaml:2:72: seed cannot be set here; seeds: says which",
        "s.yaml:3:20: act: 'relu' stands here a second time",
        "s.yaml:3:26: ",
        "s.yaml:3:39: hue: 0.7 lies outside 0 to 0.5",
        "s.yaml:3:50: there is no setting 'hou'; did you mean hue?",
        "s.yaml:4:15: seeds: 1 stands here a second time",
        "s.yaml:4:18: seeds: 'x' is not a number",
        "s.yaml:5:8: skip: no axis act has the value 'elu'",
        "s.yaml:6:42: contrast 'c': b matches no cell",
        "s.yaml:6:62: there is no key of a contrast 'expct'; did you mean expect?",
        "s.yaml:7:9: margin: must be above 0",
        "s.yaml:8:9: metric: 'accuracy' is none of top1, top5, loss",
        "s.yaml:9:14: claims: 'C21' is none of C1 to C20",
        "s.yaml:10:11: there is no key of a study 'contrast'; did you mean contrasts?",
    };
    char *words = refused(source);
    for (size_t i = 0; i < COUNT(want); i++)
        if (!strstr(words, want[i]))
            fail_msg("missing '%s' in\n%s", want[i], words);
    assert_int_equal(lines(words), COUNT(want));         /* and nothing twice */
    for (size_t i = 1, line = 1; i < COUNT(want); i++) { /* in the order of the file */
        size_t next = strtoul(want[i] + 7, NULL, 10);
        assert_true(next >= line && strstr(words, want[i]) > strstr(words, want[i - 1]));
        line = next;
    }
    assert_non_null(strstr(berlu_last_error(), "(and 16 more)"));
    free(words);
}

static void single_mistakes_have_their_message(void **state)
{
    (void)state;
    static const struct {
        const char *source, *message;
    } bad[] = {
        {"", "study: give it a name"},
        {"[1, 2]", "a study: KEY: VALUE is needed here"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\n", "seeds: say how many, or which"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\nseeds: 0\n",
         "seeds: 0 is not a number of seeds"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\nseeds: []\n", "at least one"},
        {"study: x\nbase: {model: vit_micri, data: synthetic, act: relu}\nseeds: 1\n", "vit_micri"},
        {"study: x\nbase: {model: vit_micro, act: relu}\nseeds: 1\n", "data: say what to train on"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu, patch: 5}\nseeds: 1\n", "patch"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu, lr: 1e-3, min_lr: 1}\nseeds: 1\n",
         "min_lr: 1 is above lr"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: []}\nseeds: 1\n", "at least one value"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: [{batch: 3}]}\nseeds: 1\n", "need a label"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\nparts: []\n", "parts: at least one"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\nparts: [{axes: {act: [relu]}}, {axes: {act: "
         "[relu]}}]\nseeds: 1\n",
         "two cells are called 'relu'"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: [relu]}\nparts: [{axes: {act: "
         "[gelu]}}]\nseeds: 1\n",
         "axes beside parts"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: [relu, gelu]}\nseeds: 1\n"
         "contrasts: [{name: c, a: {act: relu}}]\n",
         "needs both sides"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: [relu, gelu], batch: [8, 16]}\nseeds: 1\n"
         "contrasts: [{name: c, a: {act: relu}, b: {batch: 8}}]\n",
         "both sides must name"},
        {"study: x\nbase: {model: vit_micro, data: synthetic}\naxes: {act: [relu]}\nseeds: 1\nskip: [{act: relu}]\n",
         "no cell is left"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\naxes: {seed: [1, 2]}\nseeds: 1\n",
         "seed cannot be set here"},
        {"study: x\nbase: &a {model: vit_micro}\n", "anchors are not allowed"},
        {"study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\nseeds: 1\nkind: speed\n",
         "neither train nor cost"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char *words = refused(bad[i].source);
        if (!strstr(words, bad[i].message))
            fail_msg("missing '%s' in\n%s", bad[i].message, words);
        assert_memory_equal(words, "s.yaml:", 7);
        free(words);
    }
}

static void a_mistake_shared_by_all_cells_is_reported_once(void **state)
{
    (void)state;
    char *words = refused("study: x\n"
                          "base: {model: vit_micri, data: synthetic}\n"
                          "axes: {act: [relu, gelu, silu], batch: [8, 16, 32]}\n"
                          "seeds: 3\n");
    assert_int_equal(lines(words), 1);
    free(words);
}

static void a_grid_without_end_is_refused(void **state)
{
    (void)state;
    text source = {0};
    text_string(&source, "study: x\nbase: {model: vit_micro, data: synthetic, act: relu}\nseeds: 1\naxes:\n");
    static const char *const axes[] = {"epochs", "batch", "accumulate", "workers", "threads"};
    for (size_t i = 0; i < COUNT(axes); i++) {
        text_add(&source, "  %s: [", axes[i]);
        for (int k = 1; k <= 40; k++)
            text_add(&source, "%s%d", k > 1 ? ", " : "", k);
        text_string(&source, "]\n");
    }
    char *words = refused(source.data);
    assert_non_null(strstr(words, "more than 4096 cells"));
    free(words);
    text_free(&source);
}

static void lack_of_memory_is_reported_at_every_allocation(void **state)
{
    (void)state;
    static const char *const sources[] = {parts, predictions, choosing};
    for (size_t i = 0; i < COUNT(sources); i++) {
        berlu_status status;
        study s;
        int n = 1;
        for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n),
               status = study_parse(&s, sources[i], strlen(sources[i]), "s.yaml", NULL), fail_hit();
             n++) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            assert_null(s.cells);
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(n > 20);
        study_free(&s);
    }
}

static void a_prediction_has_its_limit_and_a_second_difference_its_cells(void **state)
{
    (void)state;
    study s;
    parse(&s, predictions);
    static const stats_expected want[] = {
        {STATS_ABOVE, 1.5}, {STATS_WITHIN, 0.25}, {STATS_WITHIN, 0.75}, {STATS_BELOW, -1}};
    for (size_t i = 0; i < COUNT(want); i++)
        assert_true(s.contrasts[i].expected.what == want[i].what && s.contrasts[i].expected.limit == want[i].limit);
    assert_string_equal(s.hypothesis, "it is so");
    assert_int_equal(s.pair_count, 2 + 3 * 4); /* batch is open in the first, start and batch in the others */
    for (size_t i = 0; i < 2; i++) {
        const char *tail = i ? "0.1, 16" : "0.1, 8",
                   *cells[4] = {s.cells[s.pairs[i].a].label, s.cells[s.pairs[i].b].label,
                                s.cells[s.pairs[i].minus_a].label, s.cells[s.pairs[i].minus_b].label};
        assert_non_null(strstr(cells[0], tail));
        assert_memory_equal(cells[0], "gelu, 0.1", 9);
        assert_memory_equal(cells[1], "gelu, 0.02", 10);
        assert_memory_equal(cells[2], "relu, 0.1", 9);
        assert_memory_equal(cells[3], "relu, 0.02", 10);
        for (int k = 1; k < 4; k++) /* the same batch everywhere */
            assert_string_equal(strrchr(cells[k], ' '), strrchr(cells[0], ' '));
    }
    assert_true(s.pairs[2].minus_a == STUDY_NO_CELL && s.pairs[2].minus_b == STUDY_NO_CELL);
    study_free(&s);
}

static void mistakes_of_a_prediction_have_their_places(void **state)
{
    (void)state;
    static const char head[] = "study: h\nbase: {model: vit_micro, data: synthetic}\nseeds: 1\n"
                               "axes: {act: [gelu, relu], batch: [8, 16]}\n";
    static const struct {
        const char *rest, *message;
    } bad[] = {
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: same}]\n",
         "s.yaml:5:63: expect: 'same' is none of less, greater, equal"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, than: 1}]\n",
         "s.yaml:5:61: than: goes with expect: less or greater"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: equal, than: 1}]\n",
         "s.yaml:5:76: than: goes with expect: less or greater"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: less, than: x}]\n",
         "s.yaml:5:75: than: 'x' is not a number"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, margin: 1}]\n",
         "s.yaml:5:63: margin: of a contrast goes with expect: equal"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: equal, margin: -1}]\n",
         "s.yaml:5:78: margin: must be above 0"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, minus: [1]}]\n",
         "s.yaml:5:62: minus: KEY: VALUE is needed here"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, minus: {a: {act: gelu}, c: {act: relu}}}]\n",
         "s.yaml:5:82: there is no key of minus 'c'"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, minus: {a: {act: gelu}}}]\n",
         "s.yaml:5:62: minus needs both sides"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, minus: {a: {act: gelu}, b: {act: silu}}}]\n",
         "s.yaml:5:82: contrast 'c': b of minus matches no cell"},
        {"contrasts: [{name: c, a: {act: gelu}, b: {act: relu}, minus: {a: {batch: 8}, b: {batch: 16}}}]\n",
         "s.yaml:5:66: contrast 'c': all sides must name act"},
        {"hypothesis: x\n", "s.yaml:5:13: hypothesis: it needs contrasts"},
        {"hypothesis: \"\"\ncontrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: equal}]\n",
         "s.yaml:5:13: hypothesis: say it in a sentence"},
        {"hypothesis: x\ncontrasts: [{name: c, a: {act: gelu}, b: {act: relu}, expect: less}]\n",
         "s.yaml:6:13: contrast 'c' predicts nothing"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char source[1024];
        snprintf(source, sizeof source, "%s%s", head, bad[i].rest);
        char *words = refused(source);
        if (!strstr(words, bad[i].message))
            fail_msg("missing '%s' in\n%s", bad[i].message, words);
        free(words);
    }
}

static void a_second_stage_is_checked_before_the_first_runs(void **state)
{
    (void)state;
    study s;
    parse(&s, choosing);
    assert_true(strcmp(s.stage.name, "g") == 0 && strcmp(s.stage.axis, "lr") == 0 && s.stage.seed_count == 2 &&
                s.stage.contrast_count == 1 && s.contrast_count == 0);
    study_free(&s);
    static const char head[] = "study: f\nbase: {model: vit_micro, data: synthetic}\nseeds: 2\n";
    static const char two[] = "axes: {act: [gelu, relu], lr: [1e-4, 1e-3]}\n", one[] = "axes: {act: [gelu, relu]}\n";
    static const struct {
        const char *axes, *section, *message;
    } bad[] = {
        {two, "choose: {axis: lr, seeds: [2]}\n", "s.yaml:5:9: choose: a study, an axis and seeds are needed"},
        {two, "choose: [1]\n", "s.yaml:5:9: choose: KEY: VALUE is needed here"},
        {two, "choose: {study: g, axis: lr, seeds: [2], sed: 1}\n", "s.yaml:5:47: there is no key of choose 'sed'"},
        {two, "choose: {study: g, axis: lr, seeds: [2, 1]}\n", "s.yaml:5:9: choose: seed 1 has been used"},
        {two, "choose: {study: g, axis: lr, seeds: 3}\n", "s.yaml:5:9: choose: seed 0 has been used"},
        {two, "choose: {study: f, axis: lr, seeds: [2]}\n", "another name"},
        {two, "choose: {study: g, axis: batch, seeds: [2]}\n", "a study of two axes, one of them 'batch'"},
        {one, "choose: {study: g, axis: act, seeds: [2]}\n", "a study of two axes"},
        {two, "choose: {study: g g, axis: lr, seeds: [2]}\n", "is no plain name"},
        {two, "choose: {study: g, axis: lr, seeds: [2], base: {patch: 5}}\n", "choose: the second study:"},
        {two, "choose: {study: g, axis: lr, seeds: [2], base: {ptch: 5}}\n", "s.yaml:5:55: there is no setting 'ptch'"},
        {two, "choose: {study: g, axis: lr, seeds: [2], contrasts: [{name: c, a: {act: gelu}, b: {act: x}}]}\n",
         "b matches no cell"},
        {two, "choose: {study: g, axis: lr, seeds: [2], contrasts: [{name: c, a: {lr: 1e-4}, b: {lr: 1e-3}}]}\n",
         "a matches no cell"}, /* the rates are no axis any more */
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char source[1024];
        snprintf(source, sizeof source, "%s%s%s", head, bad[i].axes, bad[i].section);
        char *words = refused(source);
        if (!strstr(words, bad[i].message))
            fail_msg("missing '%s' in\n%s", bad[i].message, words);
        free(words);
    }
}

static void an_equivalence_covers_every_cell_and_names_its_mistakes(void **state)
{
    (void)state;
    study s;
    parse(&s, "study: e\nbase: {data: synthetic, model: vit_micro}\naxes: {act: [gelu, relu, berlu]}\nseeds: 2\n"
              "equivalence: {source: other, differences: [{a: {act: berlu}, b: {act: gelu}, margin: 0.7}]}\n");
    assert_int_equal(s.equal_count, 4);
    assert_true(s.equals[1].a == 1 && s.equals[1].b == STUDY_NO_CELL && s.equals[1].margin == 0.5);
    assert_true(s.equals[3].a == 2 && s.equals[3].b == 0 && s.equals[3].margin == 0.7);
    assert_string_equal(s.equals[3].name, "berlu - gelu");
    study_free(&s);
    char *problems =
        refused("study: e\nbase: {data: synthetic, model: vit_micro}\naxes: {act: [gelu, relu]}\nseeds: 2\n"
                "equivalence: {margin: 0, marginn: 1, differences: [{a: {act: gelu}}, {a: {act: x}, b: {act: "
                "relu}, margin: 1}]}\n");
    assert_non_null(strstr(problems, "name the source"));
    assert_non_null(strstr(problems, "margin: must be above 0"));
    assert_non_null(strstr(problems, "marginn"));
    assert_non_null(strstr(problems, "a difference needs"));
    free(problems);
    problems = refused("study: e\nbase: {data: synthetic, model: vit_micro}\naxes: {act: [gelu, relu]}\nseeds: 2\n"
                       "equivalence: {source: o, differences: [{a: {act: x}, b: {act: relu}, margin: 1}]}\n");
    assert_non_null(strstr(problems, "a matches no cell"));
    free(problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_equivalence_covers_every_cell_and_names_its_mistakes),
        cmocka_unit_test(a_prediction_has_its_limit_and_a_second_difference_its_cells),
        cmocka_unit_test(mistakes_of_a_prediction_have_their_places),
        cmocka_unit_test(a_second_stage_is_checked_before_the_first_runs),
        cmocka_unit_test(the_quick_study_has_24_runs_in_seed_order),
        cmocka_unit_test(parts_have_their_own_seeds_and_skipped_cells_are_gone),
        cmocka_unit_test(a_contrast_that_leaves_an_axis_open_is_made_at_each_value),
        cmocka_unit_test(a_setting_without_effect_is_dropped_and_reported),
        cmocka_unit_test(a_teacher_is_a_run_of_its_own),
        cmocka_unit_test(one_activation_per_site_is_a_list),
        cmocka_unit_test(all_problems_are_reported_at_once_with_their_places),
        cmocka_unit_test(single_mistakes_have_their_message),
        cmocka_unit_test(a_mistake_shared_by_all_cells_is_reported_once),
        cmocka_unit_test(a_grid_without_end_is_refused),
        cmocka_unit_test(lack_of_memory_is_reported_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
