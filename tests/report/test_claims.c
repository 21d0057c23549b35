/* test_claims.c - verdicts about the paper's claims from runs whose numbers are known.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/file.h"
#include "judged.h"
#include "report/report.h"
#include "support/folder.h"

static void theory_needs_no_runs_and_runs_alone_test_the_rest(void **state)
{
    (void)state;
    static const char *const theory[] = {"held", "held", "held", "held", "not held", "not held"};
    store_contents contents;
    report r;
    judge(&r, &contents, &(synthetic){0});
    for (int i = 1; i <= 6; i++)
        is(&r, i, theory[i - 1]);
    for (int i = 7; i <= 20; i++) {
        is(&r, i, "not tested");
        assert_true(*claim(&r, i)->why);
    }
    assert_non_null(strstr(claim(&r, 5)->figures, "gelu 1.128904 (paper 1.084: wrong)"));
    assert_string_equal(claim(&r, 5)->size, "outside");
    assert_true(claim(&r, 4)->partial); /* no trained alpha */
    done(&r, &contents);
}

/* Every rival beaten by a lot in the one model that was run shows nothing of the others; one rival
 * that is not beaten refutes. */
static void a_comparison_is_better_only_against_every_rival(void **state)
{
    (void)state;
    synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 77, 0}, {"elu", 66, 0}, {"prelu", 70, 0},
                              {"celu", 66, 0},  {"silu", 68, 0}, {"mish", 69, 0}};
    synthetic s = {.cells = cells, .cell_count = 7, .seeds = 5, .epochs = 2, .spread = 0.2};
    store_contents contents;
    report r;
    judge(&r, &contents, &s);
    is(&r, 7, "undecided");
    assert_true(claim(&r, 7)->partial);                 /* DeiT and TNT were not run */
    assert_string_equal(claim(&r, 7)->size, "outside"); /* gelu: 1 point, the paper's 8.1 */
    assert_int_equal(claim(&r, 7)->n, 5);
    assert_string_equal(claim(&r, 7)->studies, "made");
    is(&r, 20, "undecided");
    assert_string_equal(claim(&r, 20)->why, "one model alone was run");
    is(&r, 8, "not tested");
    done(&r, &contents);
    cells[3].mean = 79; /* one rival ahead */
    judge(&r, &contents, &s);
    is(&r, 7, "worse");
    is(&r, 20, "worse");
    done(&r, &contents);
    cells[3].mean = 77.99; /* one that is not distinguishable */
    judge(&r, &contents, &s);
    is(&r, 7, "no difference");
    done(&r, &contents);
    cells[3].mean = 70, cells[1].failed = 1; /* a seed is missing: shown, not judged */
    judge(&r, &contents, &s);
    is(&r, 7, "undecided");
    done(&r, &contents);
}

/* C20 asks for the models that were run, C7 for three: TNT beside ViT, then DeiT beside both. */
static void a_claim_about_models_is_better_in_all_that_were_run(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 77, 0}, {"elu", 66, 0}, {"prelu", 70, 0},
                                           {"celu", 66, 0},  {"silu", 68, 0}, {"mish", 69, 0}};
    static const char *const settings[] = {
        "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":100}",
        "{\"model\":\"tnt_s_cifar\",\"data\":\"cifar10\",\"epochs\":100}",
        "{\"model\":\"deit_tiny_distilled_cifar\",\"data\":\"cifar10\",\"epochs\":100}"};
    static const char *const names[] = {"vit", "tnt", "deit"};
    synthetic s = {.cells = cells, .cell_count = COUNT(cells), .seeds = 5, .epochs = 2, .spread = 0.2};
    store_contents each[COUNT(settings)];
    store_study all[COUNT(settings)];
    report r;
    for (size_t m = 0; m < COUNT(settings); m++) {
        synthetic_make(&each[m], &s);
        for (size_t c = 0; c < COUNT(cells); c++)
            for (size_t i = 0; i < s.seeds; i++)
                each[m].studies[0].cells[c].runs[i].settings = settings[m];
        all[m] = each[m].studies[0];
        all[m].name = names[m];
        store_contents joined = {.studies = all, .count = m + 1};
        assert_int_equal(report_make(&r, &joined), BERLU_OK);
        is(&r, 20, m ? "better" : "undecided");
        is(&r, 7, m == 2 ? "better" : "undecided");
        assert_int_equal(claim(&r, 20)->partial, !m);
        assert_int_equal(claim(&r, 7)->partial, m != 2);
        report_free(&r);
    }
    for (size_t m = 0; m < COUNT(settings); m++)
        store_contents_free(&each[m]);
}

/* A wider model or another data set is not the paper's. */
static void other_data_say_nothing_unless_the_study_names_the_claim(void **state)
{
    (void)state;
    synthetic_cell cells[] = {{"berlu", 60, 0}, {"berlu:eps=10", 30, 0}};
    synthetic s = {.cells = cells, .cell_count = 2, .seeds = 4, .epochs = 2, .spread = 1};
    store_contents contents;
    report r;
    for (int named = 0; named < 2; named++) {
        s.yaml = named ? "study: made\nclaims: [C13]\n" : "study: made\n";
        synthetic_make(&contents, &s);
        for (size_t c = 0; c < 2; c++)
            for (size_t i = 0; i < 4; i++)
                contents.studies[0].cells[c].runs[i].settings =
                    "{\"model\":\"vit_micro\",\"data\":\"synthetic\",\"epochs\":8}";
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        is(&r, 13, named ? "held" : "not tested");
        if (named) {
            assert_true(claim(&r, 13)->partial);
            assert_string_equal(claim(&r, 13)->why, "not the paper's data");
        }
        done(&r, &contents);
    }
}

/* Crop and flip, another rate: the same names, but not the paper's cells. */
static void other_settings_are_not_the_papers_cells(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}};
    synthetic s = {.cells = cells, .cell_count = 2, .seeds = 4, .epochs = 2, .spread = 0.2};
    store_contents contents;
    report r;
    synthetic_make(&contents, &s);
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < 4; i++)
            contents.studies[0].cells[c].runs[i].settings = "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\","
                                                            "\"epochs\":100,\"lr\":0.001,\"augment\":\"crop-flip\"}";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_string_equal(r.v.studies[0].cells[0].differs, "augment crop-flip is not the paper's");
    assert_true(r.v.studies[0].cells[0].own_recipe);
    is(&r, 7, "not tested");
    done(&r, &contents);
    synthetic_make(&contents, &s); /* one side alone, as when each function runs at its own rate */
    for (size_t i = 0; i < 4; i++)
        contents.studies[0].cells[1].runs[i].settings = "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\","
                                                        "\"epochs\":100,\"lr\":0.00025,\"act\":[\"gelu\"]}";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_string_equal(r.v.studies[0].cells[1].differs, "lr 0.00025 is not the paper's");
    is(&r, 7, "not tested");
    done(&r, &contents);
    judge(&r, &contents, &s);
    assert_string_equal(r.v.studies[0].cells[0].differs, "");
    is(&r, 7, "undecided");
    assert_int_equal(claim(&r, 7)->n, 4);
    done(&r, &contents);
}

/* A study that names the claim but has more seeds under other settings comes second. */
static void the_papers_settings_come_before_more_seeds(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}},
                                others[] = {{"berlu", 60, 0}, {"gelu", 70, 0}};
    synthetic s = {.cells = cells, .cell_count = 2, .seeds = 4, .epochs = 2, .spread = 0.2}, more = s;
    store_contents first, second;
    report r;
    more.cells = others, more.seeds = 8, more.yaml = "study: more\nclaims: [C7]\n";
    synthetic_make(&first, &s);
    synthetic_make(&second, &more);
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < 8; i++)
            second.studies[0].cells[c].runs[i].settings =
                c ? "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":100,\"augment\":\"crop-flip\","
                    "\"act\":[\"gelu\"]}"
                  : "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":100,\"augment\":\"crop-flip\","
                    "\"act\":[\"berlu\"]}";
    for (int order = 0; order < 2; order++) {
        store_study both[] = {order ? second.studies[0] : first.studies[0],
                              order ? first.studies[0] : second.studies[0]};
        both[order ? 0 : 1].name = "more";
        store_contents joined = {.studies = both, .count = 2};
        assert_int_equal(report_make(&r, &joined), BERLU_OK);
        is(&r, 7, "undecided"); /* by the other study it would be worse */
        assert_int_equal(claim(&r, 7)->n, 4);
        report_free(&r);
    }
    store_contents_free(&first);
    store_contents_free(&second);
}

/* A study that is whole does not hide why another one leaves the verdict partial, or its fewer runs. */
static void what_two_studies_measured_is_partial_for_the_reason_of_either(void **state)
{
    (void)state;
    static const synthetic_cell some[] = {{"berlu", 78, 1}, {"relu", 70, 2}},
                                all[] = {{"berlu", 60, 0}, {"relu", 70, 0}};
    synthetic s = {.cells = some, .cell_count = 2, .seeds = 4, .epochs = 2, .sites = 2, .spread = 0.2, .start = 1},
              whole = s;
    store_contents first, second;
    report r;
    whole.cells = all;
    synthetic_make(&first, &s);
    synthetic_make(&second, &whole);
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < 4; i++)
            second.studies[0].cells[c].runs[i].key = c ? "own" : "other";
    for (int order = 0; order < 2; order++) {
        store_study both[] = {order ? second.studies[0] : first.studies[0],
                              order ? first.studies[0] : second.studies[0]};
        both[order ? 0 : 1].name = "whole";
        store_contents joined = {.studies = both, .count = 2};
        assert_int_equal(report_make(&r, &joined), BERLU_OK);
        assert_true(claim(&r, 17)->partial);
        assert_string_equal(claim(&r, 17)->why, "fewer seeds than registered");
        assert_int_equal(claim(&r, 17)->n, 2);
        assert_true(claim(&r, 19)->partial);
        assert_string_equal(claim(&r, 19)->why, "fewer seeds than registered");
        assert_int_equal(claim(&r, 19)->n, 3 + 4);
        report_free(&r);
    }
    store_contents_free(&first);
    store_contents_free(&second);
}

/* Cells pool their deviation by model, data and epochs; a cell without runs splits or joins no
 * others. */
static void groups_are_cells_of_one_model_data_and_length(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}, {"relu", 70, 0}, {"elu", 60, 0}};
    synthetic s = {.cells = cells, .cell_count = 4, .seeds = 2, .epochs = 2, .spread = 0.2};
    store_contents contents;
    report r;
    synthetic_make(&contents, &s);
    contents.studies[0].cells[0].count = 0; /* not run: its epochs are not known */
    for (size_t i = 0; i < 2; i++)
        contents.studies[0].cells[2].runs[i].settings =
            "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":50}";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    const view_study *v = &r.v.studies[0];
    assert_int_equal(v->group_count, 2);
    assert_int_equal(v->cells[1].group, v->cells[3].group);
    assert_int_not_equal(v->cells[1].group, v->cells[2].group);
    assert_int_equal(v->cells[0].group, v->cells[1].group);
    assert_string_equal(v->cells[2].differs, "50 epochs, the paper's are 100");
    done(&r, &contents);
}

/* A slim store keeps some epochs; with a whole run beside it only those are averaged. */
static void a_slim_run_sets_the_epochs_of_its_cell(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}};
    synthetic s = {.cells = cells, .cell_count = 1, .seeds = 2, .sites = 2, .epochs = 12, .spread = 0.2}, slim = s;
    store_contents contents;
    report r;
    synthetic_make(&contents, &s);
    slim.epochs = 3;
    synthetic_metrics(&contents.studies[0].cells[0].runs[1], &slim, &contents.memory);
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    const cell_sites *sites = &r.sites[0][0];
    assert_int_equal(sites->sites, 2);
    assert_int_equal(sites->epochs, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(sites->epoch[i] == (double)(i + 1));
        assert_true(sites->count[SITE_LEFT][i] == 2);
    }
    done(&r, &contents);
}

/* Where a width trains badly its runs scatter, and one deviation for all would hide what the others
 * show: as for contrasts each pair has its own then. */
static void a_width_that_scatters_does_not_blur_the_others(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {
        {"berlu:eps=1e-2", 78, 0}, {"berlu:eps=1e-4", 77, 0}, {"berlu:eps=1e-3", 77, 0},
        {"berlu:eps=0.1", 77, 0},  {"berlu:eps=0.2", 75, 0},  {"berlu:eps=0.5", 72, 0},
        {"berlu:eps=1", 70, 0},    {"berlu:eps=5", 60, 0},    {"berlu:eps=10", 50.5, 0}};
    synthetic s = {.cells = cells, .cell_count = 9, .seeds = 3, .epochs = 2, .spread = 0.2};
    store_contents contents;
    report r;
    synthetic_make(&contents, &s);
    store_result *runs = contents.studies[0].cells[8].runs;
    runs[0].top1 = 40.5, runs[2].top1 = 60.5;
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    is(&r, 12, "held");
    done(&r, &contents);
}

static void widths_are_judged_by_their_rules(void **state)
{
    (void)state;
    synthetic_cell cells[] = {{"berlu:eps=1e-2", 78, 0}, {"berlu:eps=1e-4", 77, 0}, {"berlu:eps=1e-3", 77, 0},
                              {"berlu:eps=0.1", 77, 0},  {"berlu:eps=0.2", 75, 0},  {"berlu:eps=0.5", 72, 0},
                              {"berlu:eps=1", 70, 0},    {"berlu:eps=5", 60, 0},    {"berlu:eps=10", 50.5, 0}};
    synthetic s = {.cells = cells, .cell_count = 9, .seeds = 3, .epochs = 2, .spread = 0.2};
    store_contents contents;
    report r;
    judge(&r, &contents, &s);
    is(&r, 11, "held");
    is(&r, 12, "held");
    is(&r, 13, "held");
    assert_false(claim(&r, 11)->partial || claim(&r, 12)->partial || claim(&r, 13)->partial);
    assert_string_equal(claim(&r, 13)->size, "inside");
    done(&r, &contents);
    cells[1].mean = 80, cells[7].mean = 71, cells[8].mean = 40; /* a better width; a rise between 1 and 5 */
    judge(&r, &contents, &s);
    is(&r, 11, "not held");
    is(&r, 12, "not held"); /* 80 minus 77 */
    is(&r, 13, "not held");
    assert_string_equal(claim(&r, 13)->size, "outside");
    done(&r, &contents);
    cells[1].mean = 77, cells[7].mean = 60;
    cells[5].mean = 75.05; /* above that of 0.2, within noise */
    judge(&r, &contents, &s);
    is(&r, 13, "undecided");
    done(&r, &contents);
    cells[5].mean = 72;
    synthetic_make(&contents, &s); /* one run of one width is missing: nothing is decided */
    contents.studies[0].cells[6].runs[2].state = "waiting";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    for (int number = 11; number <= 13; number++) {
        is(&r, number, "undecided");
        assert_true(claim(&r, number)->partial);
        assert_string_equal(claim(&r, number)->why, "fewer seeds than registered");
    }
    done(&r, &contents);
    synthetic_cell few[] = {{"berlu:eps=1e-2", 78, 0}, {"berlu:eps=0.65", 79, 0}, {"berlu:eps=1", 70, 0}};
    judge(&r, &contents, &(synthetic){.cells = few, .cell_count = 3, .seeds = 3, .epochs = 2, .spread = 0.2});
    is(&r, 11, "not tested"); /* two of the nine are no curve */
    done(&r, &contents);
    s.spread = 6; /* too noisy to say */
    cells[1].mean = 78.5, cells[7].mean = 60;
    judge(&r, &contents, &s);
    is(&r, 11, "undecided");
    is(&r, 12, "undecided");
    done(&r, &contents);
}

/* ---- landscapes ------------------------------------------------------------------------------ */

/* Every finished run of a cell gets a landscape around these figures, a hundredth apart. */
static void landscapes_put(store_contents *c, size_t cell, double sharpness, double eigenvalue, double error)
{
    store_cell *of = &c->studies[0].cells[cell];
    for (size_t i = 0; i < of->count; i++) {
        landscape_summary *l = ARENA_NEW(&c->memory, landscape_summary);
        double factor = 1 + 0.01 * (double)i;
        *l = (landscape_summary){1, 0.1, sharpness * factor, eigenvalue * factor, error, "256 training images"};
        of->runs[i].landscape = l;
    }
}

static void flatness_is_judged_by_sharpness_and_eigenvalues_together(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"relu", 77, 0}, {"leaky_relu", 77, 0}, {"prelu", 77, 0}};
    static const struct {
        double sharpness, eigenvalue, error; /* of berlu and each error; rivals have 1 and 20 */
        const char *direction;
    } cases[] = {{0.5, 10, 0, "held"},
                 {0.5, 10, 6, "undecided"}, /* the errors of the eigenvalues reach each other */
                 {1, 10, 0, "undecided"},   /* no flatter by one of the two */
                 {0.5, 40, 0, "not held"},
                 {0.5, 40, 11, "undecided"}};
    synthetic s = {.cells = cells, .cell_count = 4, .seeds = 4, .epochs = 2, .spread = 0.2};
    for (size_t i = 0; i < COUNT(cases); i++) {
        store_contents contents;
        report r;
        synthetic_make(&contents, &s);
        landscapes_put(&contents, 0, cases[i].sharpness, cases[i].eigenvalue, cases[i].error);
        for (size_t c = 1; c < 4; c++)
            landscapes_put(&contents, c, 1, 20, cases[i].error);
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        is(&r, 18, cases[i].direction);
        assert_false(claim(&r, 18)->partial);
        assert_int_equal(claim(&r, 18)->n, 4);
        done(&r, &contents);
    }
}

/* What was not measured, or in another way, decides nothing. */
static void flatness_needs_every_registered_run_measured_alike(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"relu", 77, 0}};
    synthetic s = {.cells = cells, .cell_count = 2, .seeds = 4, .epochs = 2, .spread = 0.2};
    static const char *const why[] = {"not all of relu, leaky_relu and prelu",
                                      "not every registered run has a landscape",
                                      "landscapes were measured in different ways"};
    landscape_summary another = {1, 0.1, 1, 20, 0, "1000 training images"};
    for (int damage = 0; damage < 4; damage++) {
        store_contents contents;
        report r;
        synthetic_make(&contents, &s);
        landscapes_put(&contents, 0, 0.5, 10, 0);
        if (damage < 3)
            landscapes_put(&contents, 1, 1, 20, 0);
        if (damage == 1)
            contents.studies[0].cells[1].runs[3].landscape = NULL;
        if (damage == 2)
            contents.studies[0].cells[1].runs[3].landscape = &another;
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        is(&r, 18, damage == 0 ? "held" : damage == 3 ? "not tested" : "undecided");
        assert_int_equal(claim(&r, 18)->partial, damage < 3);
        if (damage < 3)
            assert_string_equal(claim(&r, 18)->why, why[damage]);
        done(&r, &contents);
    }
}

/* Nothing else counts before our results are those of the other program. */
static void a_difference_to_another_program_is_the_first_line(void **state)
{
    (void)state;
    static const char *const columns[] = {"study", "source", "name",   "difference",
                                          "low90", "high90", "margin", "verdict"};
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}};
    synthetic s = {.cells = cells,
                   .cell_count = 2,
                   .seeds = 3,
                   .epochs = 2,
                   .spread = 0.3,
                   .yaml = "study: made\nabout: chosen after pilot runs\n"};
    for (int differs = 0; differs < 2; differs++) {
        arena memory = {0};
        store_contents contents;
        report r;
        table t = table_make(&memory, "equivalence", "t", columns, COUNT(columns));
        table_word(&t, "made");
        table_word(&t, "torch");
        table_word(&t, "gelu");
        table_number(&t, differs ? 1.5 : 0.1, 3);
        table_number(&t, differs ? 1.1 : -0.1, 3);
        table_number(&t, differs ? 1.9 : 0.3, 3);
        table_number(&t, 0.5, 2);
        table_word(&t, differs ? "not shown" : "equivalent");
        synthetic_make(&contents, &s);
        assert_int_equal(report_make_with(&r, &contents, &(report_more){.equivalence = &t}), BERLU_OK);
        assert_string_equal(r.first_line, differs
                                              ? "Our results differ from those of torch: gelu by 1.50 [1.10, 1.90]. "
                                                "chosen after pilot runs."
                                              : "chosen after pilot runs.");
        char folder[FOLDER_PATH], path[FOLDER_PATH], *page;
        size_t size;
        folder_fresh(folder, "report_equivalent");
        assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML), BERLU_OK);
        assert_int_equal(file_read_all(&page, &size, folder_path(path, folder, "index.html"), 8 << 20), BERLU_OK);
        char *first = strstr(page, "<table id=\"equivalence\"");
        assert_true(first && first < strstr(page, "<table id=\"verdicts-contrasts\""));
        free(page);
        done(&r, &contents);
        arena_free(&memory);
    }
}

static void every_claim_is_in_the_json_with_all_keys(void **state)
{
    (void)state;
    static const char *const keys[] = {"id",      "claim", "paper",   "direction", "size", "rule",
                                       "figures", "n",     "studies", "partial",   "why"};
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    store_contents contents;
    report r;
    judge(&r, &contents, &(synthetic){.cells = cells, .cell_count = 2, .seeds = 3, .epochs = 2, .spread = 0.3});
    folder_fresh(folder, "report_claims");
    assert_int_equal(report_write(&r, &contents, folder, REPORT_CSV),
                     BERLU_OK); /* claims.json comes with every format */
    json_t *root = json_load_file(folder_path(path, folder, "claims.json"), 0, NULL),
           *claims = json_object_get(root, "claims"), *contrasts = json_object_get(root, "contrasts");
    assert_int_equal(json_array_size(claims), 20);
    for (size_t i = 0; i < 20; i++)
        for (size_t k = 0; k < COUNT(keys); k++)
            if (!json_object_get(json_array_get(claims, i), keys[k]))
                fail_msg("C%zu has no %s", i + 1, keys[k]);
    assert_int_equal(json_array_size(contrasts), 1);
    double low = json_number_value(json_object_get(json_array_get(contrasts, 0), "low"));
    assert_true(low == r.judged.items[0].stats.low); /* to the bit */
    json_decref(root);
    done(&r, &contents);
}

/* A second study with the same runs of berlu under another label, and runs of its own. */
static void a_run_of_two_studies_counts_once(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}},
                                others[] = {{"berlu", 78, 0}, {"silu", 70, 0}};
    store_contents first, second;
    report r;
    const synthetic how = {.cells = cells, .cell_count = 2, .seeds = 4, .sites = 3, .epochs = 3, .spread = 0.3};
    synthetic more = how;
    more.cells = others;
    synthetic_make(&first, &how);
    synthetic_make(&second, &more);
    store_study both[] = {first.studies[0], second.studies[0]};
    both[1].name = "other";
    both[1].cells[0].label = "berlu, 0.02";
    store_contents joined = {.studies = both, .count = 2};
    assert_int_equal(report_make(&r, &joined), BERLU_OK);
    assert_int_equal(claim(&r, 4)->n, 4);
    assert_int_equal(claim(&r, 19)->n, 4);
    assert_string_equal(claim(&r, 4)->studies, "made");
    assert_false(claim(&r, 4)->partial);
    report_free(&r);
    both[0].cells[0].runs[3].state = "waiting"; /* now the second has more of them, and the first is not whole */
    both[1].cells[0].runs[3].key = "its own";
    assert_int_equal(report_make(&r, &joined), BERLU_OK);
    assert_int_equal(claim(&r, 4)->n, 4);
    assert_string_equal(claim(&r, 4)->studies, "other");
    both[1].cells[0].runs[2].state = "waiting";
    report_free(&r);
    assert_int_equal(report_make(&r, &joined), BERLU_OK);
    assert_true(claim(&r, 4)->partial); /* neither has all that were registered */
    report_free(&r);
    store_contents_free(&first);
    store_contents_free(&second);
}

/* The mean over the sites rises by 0.001 an epoch in the synthetic runs. */
static void nonlinearity_is_taken_at_the_start_and_after_epochs_1_10_and_the_last(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}};
    static const struct {
        size_t rows;
        int start;
        double since[MOMENTS]; /* epochs after the first row; negative: not there */
        const char *titles[MOMENTS];
    } cases[] = {{14,
                  1,
                  {0, 1, 10, 13},
                  {">at the start, before the first update<", ">after epoch 1<", ">after epoch 10<",
                   ">after the last epoch, 13<"}},
                 {14, 0, {-1, 0, 9, 13}, {NULL, ">after epoch 1<", ">after epoch 10<", ">after the last epoch, 14<"}},
                 {11, 1, {0, 1, -1, 10}, {NULL, NULL, NULL, ">after the last epoch, 10<"}}, /* the tenth is the last */
                 {1, 0, {-1, -1, -1, 0}, {NULL, NULL, NULL, ">after the last epoch, 1<"}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char folder[FOLDER_PATH], path[FOLDER_PATH];
        store_contents contents;
        report r;
        judge(&r, &contents,
              &(synthetic){.cells = cells,
                           .cell_count = 2,
                           .seeds = 3,
                           .sites = 4,
                           .epochs = cases[i].rows,
                           .start = cases[i].start,
                           .spread = 0.3});
        const run_sites *run = &r.sites[0][0].runs[0];
        double base = run->nonlinear[MOMENT_LAST] - 0.001 * (double)(cases[i].rows - 1);
        for (int m = 0; m < MOMENTS; m++) {
            size_t runs;
            double mean = sites_nonlinear(&r.sites[0][0], (moment)m, &runs);
            if (cases[i].since[m] < 0)
                assert_true(isnan(run->nonlinear[m]) && isnan(mean) && runs == 0);
            else
                assert_true(fabs(run->nonlinear[m] - base - 0.001 * cases[i].since[m]) < 1e-12 && runs == 3 &&
                            fabs(mean - run->nonlinear[m]) < 1e-12);
        }
        folder_fresh(folder, "report_moments");
        assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML), BERLU_OK);
        char *page = NULL;
        size_t bytes;
        assert_int_equal(file_read_all(&page, &bytes, folder_path(path, folder, "index.html"), 64 << 20), BERLU_OK);
        for (int m = 0; m < MOMENTS; m++)
            if (cases[i].titles[m] && !strstr(page, cases[i].titles[m]))
                fail_msg("case %zu: no plot %s", i, cases[i].titles[m]);
        if (cases[i].since[0] < 0)
            assert_null(strstr(page, ">at the start, before"));
        free(page);
        done(&r, &contents);
    }
}

static void runs_of_several_commits_are_noted(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 78, 0}, {"gelu", 70, 0}};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    store_contents contents;
    report r;
    synthetic_make(&contents,
                   &(synthetic){.cells = cells,
                                .cell_count = 2,
                                .seeds = 4,
                                .epochs = 2,
                                .spread = 0.3,
                                .yaml =
                                    "study: made\nabout: a sentence of more than a hundred and twenty columns, which a "
                                    "line of the report cannot hold, so that it has to go on in a second one\n"});
    contents.studies[0].cells[1].runs[1].commit = "def";
    contents.studies[0].cells[1].runs[3].version = "0.0.9";
    contents.studies[0].cells[0].runs[3].commit = "def", contents.studies[0].cells[0].runs[3].state = "cut";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_int_equal(view_commits(&r.v.studies[0].cells[0], "top1"), 1); /* what is not finished counts not */
    assert_int_equal(view_commits(&r.v.studies[0].cells[1], "top1"), 3);
    folder_fresh(folder, "report_commits");
    assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML | REPORT_MARKDOWN), BERLU_OK);
    char *words = NULL;
    size_t bytes;
    assert_int_equal(file_read_all(&words, &bytes, folder_path(path, folder, "report.md"), 64 << 20), BERLU_OK);
    assert_non_null(strstr(words, "Cells whose runs come from several commits, and how many: made: gelu (3)."));
    for (const char *line = words; *line; line += strcspn(line, "\n") + 1) /* prose is wrapped, tables are not */
        assert_true(*line == '|' || strcspn(line, "\n") <= 120);
    free(words);
    assert_int_equal(file_read_all(&words, &bytes, folder_path(path, folder, "index.html"), 64 << 20), BERLU_OK);
    assert_non_null(strstr(words, "several commits, and how many: made: gelu (3)."));
    free(words);
    done(&r, &contents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(theory_needs_no_runs_and_runs_alone_test_the_rest),
        cmocka_unit_test(a_comparison_is_better_only_against_every_rival),
        cmocka_unit_test(a_claim_about_models_is_better_in_all_that_were_run),
        cmocka_unit_test(other_data_say_nothing_unless_the_study_names_the_claim),
        cmocka_unit_test(other_settings_are_not_the_papers_cells),
        cmocka_unit_test(the_papers_settings_come_before_more_seeds),
        cmocka_unit_test(what_two_studies_measured_is_partial_for_the_reason_of_either),
        cmocka_unit_test(groups_are_cells_of_one_model_data_and_length),
        cmocka_unit_test(a_slim_run_sets_the_epochs_of_its_cell),
        cmocka_unit_test(a_width_that_scatters_does_not_blur_the_others),
        cmocka_unit_test(widths_are_judged_by_their_rules),
        cmocka_unit_test(flatness_is_judged_by_sharpness_and_eigenvalues_together),
        cmocka_unit_test(flatness_needs_every_registered_run_measured_alike),
        cmocka_unit_test(a_difference_to_another_program_is_the_first_line),
        cmocka_unit_test(every_claim_is_in_the_json_with_all_keys),
        cmocka_unit_test(a_run_of_two_studies_counts_once),
        cmocka_unit_test(nonlinearity_is_taken_at_the_start_and_after_epochs_1_10_and_the_last),
        cmocka_unit_test(runs_of_several_commits_are_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
