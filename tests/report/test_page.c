/* test_page.c - the page and the files of a report: order, numbers, addresses, size, failures,
 * memory. SPDX-License-Identifier: MIT */
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

#include "io/csv.h"
#include "report/page.h"
#include "report/report.h"
#include "support/fail.h"
#include "support/folder.h"
#include "synthetic.h"

static const synthetic_cell seven[] = {{"berlu", 78, 0}, {"gelu", 70, 0}, {"elu", 66, 0}, {"prelu", 77.9, 1},
                                       {"celu", 66, 0},  {"silu", 68, 0}, {"mish", 69, 0}};
static const synthetic paper_like = {
    .cells = seven, .cell_count = 7, .seeds = 5, .sites = 3, .epochs = 12, .spread = 0.4};

static void written(char folder[FOLDER_PATH], const char *name, const synthetic *s)
{
    store_contents contents;
    report r;
    folder_fresh(folder, name);
    synthetic_make(&contents, s);
    if (report_make(&r, &contents) != BERLU_OK ||
        report_write(&r, &contents, folder, REPORT_HTML | REPORT_MARKDOWN | REPORT_CSV | REPORT_LATEX | REPORT_SVG) !=
            BERLU_OK)
        fail_msg("%s", berlu_last_error());
    report_free(&r);
    store_contents_free(&contents);
}

static char *slurp(const char *folder, const char *name)
{
    char path[FOLDER_PATH], *content;
    size_t size;
    if (file_read_all(&content, &size, folder_path(path, folder, name), 64 << 20) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return content;
}

static void sections_stand_in_their_order(void **state)
{
    (void)state;
    static const char *const order[] = {
        "verdicts", "tables", "contrasts-section", "dots", "learning", "widths", "nonlinear", "sites", "cost",
        "runs",     "files",  "machines"};
    char folder[FOLDER_PATH], mark[64];
    written(folder, "report_order", &paper_like);
    char *page = slurp(folder, "index.html"), *at = page;
    for (size_t i = 0; i < COUNT(order); i++) {
        snprintf(mark, sizeof mark, "<section id=\"%s\">", order[i]);
        char *found = strstr(at, mark);
        if (!found)
            fail_msg("%s is missing or out of order", order[i]);
        at = found + 1;
    }
    assert_null(strstr(at, "<section")); /* and there are no others */
    assert_true(strstr(page, "<svg") > strstr(page, "contrasts-section"));
    assert_non_null(strstr(page, "No two cells differ in BerLU's eps alone."));
    free(page);
}

static size_t occurrences(const char *in, const char *what)
{
    size_t n = 0;
    for (; (in = strstr(in, what)); in++)
        n++;
    return n;
}

/* A file's curves are those of the page. What the page says above a row of figures or below a grid
 * of plots is the heading of the file, which moves its curves down. */
static void every_figure_of_the_page_is_a_file(void **state)
{
    (void)state;
    static const char *const sections[] = {"contrasts", "dots", "learning", "widths", "nonlinear", "sites", "cost"};
    char folder[FOLDER_PATH], name[64];
    size_t files = 0;
    written(folder, "report_figures", &paper_like);
    char *page = slurp(folder, "index.html");
    for (size_t i = 0; i < COUNT(sections); i++)
        for (size_t n = 1;; n++, files++) {
            char path[FOLDER_PATH];
            snprintf(name, sizeof name, n == 1 ? "%s.svg" : "%s-%zu.svg", sections[i], n);
            if (!file_exists(folder_path(path, folder, name)))
                break;
            char *file = slurp(folder, name), *curve = strstr(file, "<path"), *end = curve ? strstr(curve, "/>") : NULL;
            assert_non_null(strstr(file, "xmlns=\"http://www.w3.org/2000/svg\""));
            if (strcmp(sections[i], "sites") == 0 || strcmp(sections[i], "nonlinear") == 0) {
                char *heading = strstr(file, ">made: ");
                assert_non_null(heading);
                heading[strcspn(heading, "<")] = 0;
                assert_non_null(strstr(page, heading));
            } else if (end) {
                *end = 0;
                assert_non_null(strstr(page, curve));
            }
            free(file);
        }
    assert_int_equal(files, occurrences(page, "<figure"));
    assert_true(files > 5);
    free(page);
}

/* The difference of the page and of every file is that of the numbers put in. */
static void page_and_files_carry_the_numbers_of_the_csv(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], words[96];
    written(folder, "report_numbers", &paper_like);
    char *page = slurp(folder, "index.html"), *md = slurp(folder, "report.md"), *tex = slurp(folder, "report.tex");
    csv_table t;
    assert_int_equal(csv_read(&t, folder_path(path, folder, "contrasts.csv")), BERLU_OK);
    assert_int_equal(t.rows, 2 * 6);
    for (size_t i = 0; i < t.rows; i += 2) {
        double difference = csv_number(&t, i, csv_column(&t, "difference"));
        assert_true(fabs(difference - (78 - seven[1 + i / 2].mean)) < 1e-12);
        static const char *const columns[] = {"difference", "low", "high", "detectable"};
        for (size_t c = 0; c < COUNT(columns); c++) {
            double value = csv_number(&t, i, csv_column(&t, columns[c]));
            snprintf(words, sizeof words, "<td class=\"n\">%.2f</td>", value);
            assert_non_null(strstr(page, words));
            snprintf(words, sizeof words, "| %.2f ", value);
            assert_non_null(strstr(md, words));
            snprintf(words, sizeof words, "& %.2f ", value);
            assert_non_null(strstr(tex, words));
        }
    }
    csv_free(&t);
    assert_int_equal(csv_read(&t, folder_path(path, folder, "beside.csv")), BERLU_OK);
    assert_true(csv_number(&t, 0, csv_column(&t, "paper")) == 78.5);
    assert_true(fabs(csv_number(&t, 0, csv_column(&t, "minus_paper")) + 0.5) < 1e-12);
    assert_string_equal(csv_cell(&t, 0, csv_column(&t, "standing")), "best");
    assert_string_equal(csv_cell(&t, 1, csv_column(&t, "standing")), "");                    /* eight points below */
    assert_string_equal(csv_cell(&t, 3, csv_column(&t, "standing")), "not distinguishable"); /* 0.1 below */
    csv_free(&t);
    /* elu and celu have the same values: equal seeds differ by 0, elu's seeds 0 2 4 and celu's 1 3
     * by their deviations. */
    assert_int_equal(csv_read(&t, folder_path(path, folder, "aa.csv")), BERLU_OK);
    assert_int_equal(t.rows, 2);
    assert_true(csv_number(&t, 0, csv_column(&t, "difference")) == 0 && csv_number(&t, 0, csv_column(&t, "n")) == 5);
    assert_true(fabs(csv_number(&t, 1, csv_column(&t, "difference"))) < 1e-12); /* both halves lie around 66 */
    assert_true(csv_number(&t, 1, csv_column(&t, "n")) == 2 && csv_number(&t, 1, csv_column(&t, "low")) < 0);
    assert_non_null(strstr(md, "**78.00**"));
    assert_non_null(strstr(tex, "\\textit{77.90}"));
    csv_free(&t);
    free(page);
    free(md);
    free(tex);
}

/* elu and celu have the same values; of five pairs one is right about other images. */
static void pairs_of_one_function_are_counted_where_all_answers_are_the_same(void **state)
{
    (void)state;
    static unsigned char answers[5] = {1, 2, 4, 8, 16}, other = 3;
    store_contents contents;
    report r;
    csv_table t;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    folder_fresh(folder, "report_pairs");
    synthetic_make(&contents, &paper_like);
    for (size_t c = 0; c < contents.studies[0].cell_count; c++)
        for (size_t i = 0; i < contents.studies[0].cells[c].count; i++) {
            store_result *run = &contents.studies[0].cells[c].runs[i];
            run->correct = strcmp(seven[c].act, "celu") == 0 && i == 2 ? &other : &answers[i];
            run->correct_bytes = 1;
        }
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_int_equal(report_write(&r, &contents, folder, REPORT_CSV), BERLU_OK);
    assert_int_equal(csv_read(&t, folder_path(path, folder, "aa.csv")), BERLU_OK);
    assert_true(csv_number(&t, 0, csv_column(&t, "identical")) == 4);
    assert_string_equal(csv_cell(&t, 1, csv_column(&t, "identical")), "");
    csv_free(&t);
    report_free(&r);
    store_contents_free(&contents);
}

/* Runs that are missing do not make seeds equal that are not, or disjoint that are the same. */
static void noise_is_that_of_the_seeds_that_were_run(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"elu", 66, 0}, {"celu", 66, 0}};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    store_contents contents;
    report r;
    csv_table t;
    folder_fresh(folder, "report_noise");
    synthetic_make(&contents, &(synthetic){.cells = cells, .cell_count = 2, .seeds = 5, .epochs = 2, .spread = 0.4});
    contents.studies[0].cells[0].runs[0].state = "waiting"; /* elu has seeds 1 2 3 4, celu 0 2 3 */
    contents.studies[0].cells[1].runs[1].state = contents.studies[0].cells[1].runs[4].state = "waiting";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_int_equal(report_write(&r, &contents, folder, REPORT_CSV), BERLU_OK);
    assert_int_equal(csv_read(&t, folder_path(path, folder, "aa.csv")), BERLU_OK);
    assert_int_equal(t.rows, 2);
    assert_true(csv_number(&t, 0, csv_column(&t, "difference")) == 0 && csv_number(&t, 0, csv_column(&t, "n")) == 2);
    const store_result *elu = contents.studies[0].cells[0].runs, *celu = contents.studies[0].cells[1].runs;
    double disjoint = (elu[2].top1 + elu[4].top1) / 2 - celu[3].top1;
    assert_true(fabs(csv_number(&t, 1, csv_column(&t, "difference")) - disjoint) < 1e-12);
    assert_true(csv_number(&t, 1, csv_column(&t, "n")) == 1);
    csv_free(&t);
    report_free(&r);
    store_contents_free(&contents);
}

/* A test needs two runs of something: without it nothing is said to be as good as the best. */
static void cells_of_one_run_are_not_compared(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    csv_table t;
    written(folder, "report_one_run",
            &(synthetic){.cells = seven, .cell_count = 3, .seeds = 1, .sites = 1, .epochs = 2, .spread = 0.4});
    assert_int_equal(csv_read(&t, folder_path(path, folder, "beside.csv")), BERLU_OK);
    assert_int_equal(t.rows, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(csv_cell(&t, i, csv_column(&t, "standing")), i ? "" : "best");
    csv_free(&t);
}

/* Held-out training images are not the test set: no table and no plot lets one take them for it. */
static void held_out_images_are_named_where_they_judge(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"relu", 60, 0}, {"gelu", 55, 0}};
    char folder[FOLDER_PATH];
    store_contents contents;
    report r;
    folder_fresh(folder, "report_held");
    synthetic_make(&contents, &(synthetic){.cells = cells, .cell_count = 2, .seeds = 2, .epochs = 2, .spread = 0.4});
    for (size_t c = 0; c < 2; c++)
        contents.studies[0].cells[c].runs[0].settings =
            "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":100,\"holdout\":5000}";
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML | REPORT_CSV), BERLU_OK);
    char *page = slurp(folder, "index.html"), *beside = slurp(folder, "beside.csv");
    assert_non_null(strstr(page, "<caption>made: vit_tiny_cifar on held-out cifar10<"));
    assert_non_null(strstr(page, ">made: vit_tiny_cifar on held-out cifar10, 100 epochs<"));
    assert_non_null(strstr(beside, "made,held-out cifar10,vit_tiny_cifar,relu,2,"));
    free(page);
    free(beside);
    report_free(&r);
    store_contents_free(&contents);
}

/* A study of one's own: its data is not the paper's, and no contrast has a difference of the paper. */
static void written_own(char folder[FOLDER_PATH], const char *name)
{
    static const synthetic_cell cells[] = {
        {"relu", 60, 0},
        {"gelu", 55, 0},
        {"smooth(kinks=-1,0,1.5; slopes=0,0.25,1,0.2; eps=0.3,0.2,0.1; degree=4)", 61, 1}};
    store_contents contents;
    report r;
    folder_fresh(folder, name);
    synthetic_make(&contents,
                   &(synthetic){.cells = cells, .cell_count = 3, .seeds = 4, .sites = 1, .epochs = 2, .spread = 0.4});
    store_study *s = contents.studies;
    for (size_t i = 0; i < s->contrast_count; i++)
        s->contrasts[i].paper = NAN;
    for (size_t c = 0; c < s->cell_count; c++)
        for (size_t i = 0; i < s->cells[c].count; i++)
            s->cells[c].runs[i].settings = arena_printf(
                &contents.memory,
                "{\"model\":\"vit_micro\",\"data\":\"synthetic\",\"epochs\":2,\"classes\":10,\"act\":[\"%s\"]}",
                cells[c].act);
    if (report_make(&r, &contents) != BERLU_OK ||
        report_write(&r, &contents, folder, REPORT_HTML | REPORT_MARKDOWN | REPORT_CSV | REPORT_LATEX) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    report_free(&r);
    store_contents_free(&contents);
}

static void a_study_of_ones_own_begins_with_its_own_verdicts(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    csv_table t;
    written_own(folder, "report_own");
    char *page = slurp(folder, "index.html"), *md = slurp(folder, "report.md"), *tex = slurp(folder, "report.tex");
    static const char begins[] = "### Registered contrasts";
    assert_memory_equal(md, begins, sizeof begins - 1);
    assert_true(strstr(md, "### Accuracy of the last epoch") > md);
    assert_null(strstr(md, "Bernstein"));
    assert_null(strstr(md, "C12")); /* a claim */
    assert_null(strstr(tex, "C12"));
    assert_null(strstr(md, "| paper")); /* no column, and no table, without a value */
    assert_null(strstr(md, "Noise"));
    assert_null(strstr(page, "id=\"claims"));
    assert_null(strstr(page, "paper's"));
    char *verdicts = strstr(page, "<section id=\"verdicts\">"), *first = strstr(verdicts, "<table id=\"");
    assert_memory_equal(first, "<table id=\"verdicts-contrasts\"", strlen("<table id=\"verdicts-contrasts\""));
    /* The files of the claims stay as they are promised. */
    assert_int_equal(csv_read(&t, folder_path(path, folder, "claims.csv")), BERLU_OK);
    assert_int_equal(t.rows, CLAIMS);
    csv_free(&t);
    json_t *root = json_load_file(folder_path(path, folder, "claims.json"), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "claims")), CLAIMS);
    json_decref(root);
    free(page);
    free(md);
    free(tex);
    /* And those of the paper begin with the claims, as before. */
    written(folder, "report_paper", &paper_like);
    md = slurp(folder, "report.md");
    static const char claims[] = "### The paper's claims";
    assert_memory_equal(md, claims, sizeof claims - 1);
    free(md);
}

/* In the plot of all runs the label of a cell is whole, in two lines or with its middle left out; in tables it wraps. */
static void long_labels_can_be_read(void **state)
{
    (void)state;
    static const char label[] = "smooth(kinks=-1,0,1.5; slopes=0,0.25,1,0.2; eps=0.3,0.2,0.1; degree=4)";
    char folder[FOLDER_PATH], words[128];
    written_own(folder, "report_labels");
    char *page = slurp(folder, "index.html"), *dots = strstr(page, "<section id=\"dots\">");
    snprintf(words, sizeof words, "<title>%s (1 failed)</title>smooth(kinks=-1,0,1.5; ", label);
    char *name = strstr(dots, words);
    assert_true(name && name < strstr(dots, "</section>"));
    assert_true(strstr(name, "degree=4) (1 failed)</tspan>") < strstr(dots, "</section>"));
    snprintf(words, sizeof words, "<td class=\"wrap\">%s</td>", label);
    char *row = strstr(strstr(page, "<section id=\"runs\">"), words);
    assert_non_null(row);
    free(page);
}

/* Labels are values: "gelu, 0.1". One line of settings differs, one is missing in a cell, one is the
 * same for all, one is the beginning of another's name. */
static void tables_and_plots_name_the_settings_that_differ(void **state)
{
    (void)state;
    static const char *const settings[] = {"act=berlu\nlr=1\nlr_min=2\nepochs=3\n", "act=gelu\nlr=1\nlr_min=4\n",
                                           "act=berlu\nlr=1\nlr_min=4\nepochs=3\n"};
    static const synthetic_cell cells[] = {{"berlu", 70, 0}, {"gelu", 69, 0}, {"elu", 69, 0}};
    const synthetic s = {.cells = cells, .cell_count = COUNT(cells), .seeds = 2, .epochs = 2, .spread = 1};
    for (int by_act = 0; by_act < 2; by_act++) {
        store_contents contents;
        report r;
        char folder[FOLDER_PATH];
        folder_fresh(folder, "report_factors");
        synthetic_make(&contents, &s);
        for (size_t c = 0; c < COUNT(cells) && !by_act; c++)
            contents.studies[0].cells[c].settings = settings[c];
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        assert_string_equal(r.v.studies[0].factors[0], by_act ? "" : "act, lr_min, epochs");
        assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML), BERLU_OK);
        char *page = slurp(folder, "index.html");
        assert_int_equal(strstr(page, ">activation</th>") != NULL, by_act);
        assert_int_equal(strstr(page, ">act, lr_min, epochs</th>") != NULL, !by_act);
        assert_int_equal(strstr(page, "100 epochs, by act, lr_min, epochs<") != NULL, !by_act);
        free(page);
        report_free(&r);
        store_contents_free(&contents);
    }
}

/* Markup can fetch by src, href, url() and @import only; text may name addresses. */
static void no_address_stands_outside_of_text(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    synthetic s = paper_like;
    s.yaml = "study: made\nabout: see https://example.org/a?b=1&c=<d>, chosen after pilot runs\nmargin: 0.7\n";
    written(folder, "report_address", &s);
    char *page = slurp(folder, "index.html");
    assert_non_null(strstr(page, "https://example.org/a?b=1&amp;c=&lt;d&gt;"));
    assert_null(strstr(page, "url("));
    assert_null(strstr(page, "@import"));
    for (char *tag = strchr(page, '<'); tag; tag = strchr(tag, '<')) {
        char *end = strchr(tag, '>'), *link = strstr(tag, "href=\"");
        assert_non_null(end);
        *end = 0;
        if (strstr(tag, "//") || strstr(tag, "src=") || strstr(tag, "<link") || strstr(tag, "<iframe") ||
            (link && link < end && link[6] != '#'))
            fail_msg("a tag that asks for something: %.200s", tag);
        tag = end + 1;
    }
    free(page);
}

/* The first line is what the study says of itself, in every form. */
static void a_choice_after_pilot_runs_is_the_first_line(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    synthetic s = paper_like;
    s.yaml = "study: made\nabout: contrasts chosen after 31 pilot runs\nmargin: 0.7\n";
    written(folder, "report_first", &s);
    char *page = slurp(folder, "index.html"), *md = slurp(folder, "report.md"), *json = slurp(folder, "claims.json");
    const char *line = "contrasts chosen after 31 pilot runs.";
    assert_true(strncmp(md, line, strlen(line)) == 0);
    char *first = strstr(page, "</h1>\n<p class=\"lead\">");
    assert_non_null(first);
    assert_true(strncmp(first + strlen("</h1>\n<p class=\"lead\">"), line, strlen(line)) == 0);
    json_t *root = json_loads(json, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "first")), line);
    assert_non_null(strstr(page, "within \u00b10.7")); /* the file's margin, not the default */
    json_decref(root);
    free(page);
    free(md);
    free(json);
}

static void three_hundred_runs_are_below_three_megabytes(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], names[30][32];
    synthetic_cell cells[30];
    for (size_t i = 0; i < 30; i++) {
        snprintf(names[i], sizeof names[i], "berlu:eps=%g", 0.01 * (double)(i + 1));
        cells[i] = (synthetic_cell){names[i], 70 + (double)(i % 5), i % 9 == 0};
    }
    written(folder, "report_size",
            &(synthetic){.cells = cells, .cell_count = 30, .seeds = 10, .sites = 12, .epochs = 100, .spread = 1});
    char *page = slurp(folder, "index.html"), *csv = slurp(folder, "runs.csv");
    size_t rows = 0;
    for (char *c = csv; *c; c++)
        rows += *c == '\n';
    assert_int_equal(rows, 301);
    assert_true(strlen(page) < 3000000);
    assert_true(strlen(page) > 300000); /* and the plots are there */
    assert_true(strlen(page_script) <= 4096);
    assert_null(strpbrk(page_script, "<&")); /* the page is XML too */
    free(page);
    free(csv);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void failed_runs_are_counted_and_stand_for_chance_in_a_second_line(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 70, 0}, {"gelu", 60, 2}};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    csv_table t;
    written(folder, "report_failed",
            &(synthetic){.cells = cells, .cell_count = 2, .seeds = 5, .sites = 0, .epochs = 3, .spread = 1});
    assert_int_equal(csv_read(&t, folder_path(path, folder, "contrasts.csv")), BERLU_OK);
    assert_int_equal(t.rows, 2);
    assert_string_equal(csv_cell(&t, 0, csv_column(&t, "failures")), "left out");
    assert_string_equal(csv_cell(&t, 1, csv_column(&t, "failures")), "as chance");
    assert_true(csv_number(&t, 0, csv_column(&t, "failed_b")) == 2);
    assert_true(csv_number(&t, 0, csv_column(&t, "n")) == 3 && csv_number(&t, 1, csv_column(&t, "n")) == 5);
    assert_true(fabs(csv_number(&t, 0, csv_column(&t, "difference")) - 10) < 1e-12);
    /* Three runs at 60 and two at 10 % of ten classes. */
    assert_true(fabs(csv_number(&t, 1, csv_column(&t, "difference")) - (70 - (3 * 60 + 2 * 10) / 5.0)) < 1e-12);
    assert_string_equal(csv_cell(&t, 0, csv_column(&t, "verdict")), "undecided (partial)");
    csv_free(&t);
    assert_int_equal(csv_read(&t, folder_path(path, folder, "cells.csv")), BERLU_OK);
    assert_true(csv_number(&t, 1, csv_column(&t, "failed")) == 2);
    csv_free(&t);
    char *page = slurp(folder, "index.html");
    assert_non_null(strstr(page, "3 of 5")); /* seeds of the contrast */
    assert_non_null(strstr(page, "gelu (2 failed)"));
    assert_non_null(strstr(page, "not finite &lt;&amp;&gt; \uFFFD</td>")); /* and its message, made harmless */
    free(page);
}

/* ---- out of memory, bad content -------------------------------------------------------------- */

static void lack_of_memory_is_reported_and_leaves_nothing(void **state)
{
    (void)state;
    static const synthetic_cell cells[] = {{"berlu", 70, 0}, {"relu", 69, 1}};
    store_contents contents;
    report r;
    char folder[FOLDER_PATH];
    berlu_status status;
    int n = 1;
    folder_fresh(folder, "report_memory");
    synthetic_make(&contents,
                   &(synthetic){.cells = cells, .cell_count = 2, .seeds = 2, .sites = 2, .epochs = 3, .spread = 1});
    const landscape_summary flat = {1, 0.1, 0.01, 20, 1, "256 training images"}; /* C18 is judged as well */
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < 2; i++)
            contents.studies[0].cells[c].runs[i].landscape = &flat;
    for (; fail_after(FAIL_ALLOC, n), status = report_make(&r, &contents), fail_hit(); n += 1) {
        if (status != BERLU_ERR_MEMORY)
            fail_msg("allocation %d: status %d", n, status);
        assert_null(r.v.studies);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 20);
    for (n = 1;
         fail_after(FAIL_ALLOC, n), status = report_write(&r, &contents, folder, REPORT_HTML | REPORT_CSV), fail_hit();
         n += 1)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    report_free(&r);
    store_contents_free(&contents);
}

static void a_damaged_metrics_blob_is_an_error_that_names_the_run(void **state)
{
    (void)state;
    store_contents contents;
    report r;
    synthetic_make(&contents, &paper_like);
    store_result *run = &contents.studies[0].cells[0].runs[1];
    run->metrics_packed /= 2;
    assert_int_equal(report_make(&r, &contents), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "berlu1"));
    store_contents_free(&contents);
}

/* A second study with some cells of the first: its runs are the same folders. */
static void share(store_contents *c, size_t cells)
{
    store_study *both = ARENA_ARRAY(&c->memory, store_study, 2);
    both[1] = c->studies[0];
    both[0] = c->studies[0];
    both[0].name = "part";
    both[0].yaml = "study: part\nabout: some of it\n";
    both[0].cell_count = cells;
    both[0].contrast_count = 0;
    c->studies = both;
    c->count = 2;
}

static void cells_that_studies_share_are_drawn_and_counted_once(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_fresh(folder, "report_shared");
    for (int same = 0; same < 2; same++) {
        store_contents contents;
        report r;
        synthetic_make(&contents, &paper_like);
        share(&contents, same ? 2 : 3);
        if (!same) { /* one more seed in the part: another mean, another plot */
            store_cell *cells = ARENA_ARRAY(&contents.memory, store_cell, 3);
            memcpy(cells, contents.studies[1].cells, 3 * sizeof *cells);
            cells[0].count--;
            contents.studies[0].cells = cells;
        }
        assert_int_equal(report_make(&r, &contents), BERLU_OK);
        assert_int_equal(r.v.run_count, 35);
        assert_true((r.v.studies[0].within[0] == &r.v.studies[1]) == same);
        assert_null(r.v.studies[1].within[0]);
        assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML), BERLU_OK);
        char *page = slurp(folder, "index.html");
        assert_non_null(strstr(page, "34 of 35 runs are done; 1 failed."));
        size_t whole = occurrences(page, ">made: vit_tiny_cifar on cifar10, 100 epochs<");
        assert_true(whole >= 5); /* dots, two curves, two clouds */
        assert_int_equal(occurrences(page, ">part: vit_tiny_cifar on cifar10, 100 epochs<"), same ? 0 : whole);
        assert_int_equal(occurrences(page, "<h3>part: "), same ? 0 : 3);
        assert_int_equal(occurrences(page, "Cells of part are cells of made"), same);
        assert_non_null(strstr(page, "<p class=\"lead\">part: some of it.</p>")); /* which study says so */
        free(page);
        report_free(&r);
        store_contents_free(&contents);
    }
}

/* A curve in a plot of its own would be compared with nothing. */
static void nine_cells_are_nine_curves_of_one_plot(void **state)
{
    (void)state;
    synthetic_cell cells[9];
    memcpy(cells, seven, sizeof seven);
    cells[7] = (synthetic_cell){"relu", 74, 0}, cells[8] = (synthetic_cell){"leaky_relu", 75, 0};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    written(folder, "report_nine",
            &(synthetic){.cells = cells, .cell_count = 9, .seeds = 3, .sites = 1, .epochs = 4, .spread = 0.4});
    char *top1 = slurp(folder, "learning.svg");
    for (size_t i = 0; i < COUNT(cells); i++) {
        char label[64];
        snprintf(label, sizeof label, ">%s</text>", cells[i].act);
        assert_non_null(strstr(top1, label));
    }
    assert_true(file_exists(folder_path(path, folder, "learning-2.svg"))); /* the loss */
    assert_false(file_exists(folder_path(path, folder, "learning-3.svg")));
    free(top1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_stand_in_their_order),
        cmocka_unit_test(cells_that_studies_share_are_drawn_and_counted_once),
        cmocka_unit_test(every_figure_of_the_page_is_a_file),
        cmocka_unit_test(nine_cells_are_nine_curves_of_one_plot),
        cmocka_unit_test(page_and_files_carry_the_numbers_of_the_csv),
        cmocka_unit_test(pairs_of_one_function_are_counted_where_all_answers_are_the_same),
        cmocka_unit_test(cells_of_one_run_are_not_compared),
        cmocka_unit_test(noise_is_that_of_the_seeds_that_were_run),
        cmocka_unit_test(held_out_images_are_named_where_they_judge),
        cmocka_unit_test(a_study_of_ones_own_begins_with_its_own_verdicts),
        cmocka_unit_test(long_labels_can_be_read),
        cmocka_unit_test(tables_and_plots_name_the_settings_that_differ),
        cmocka_unit_test(no_address_stands_outside_of_text),
        cmocka_unit_test(a_choice_after_pilot_runs_is_the_first_line),
        cmocka_unit_test(three_hundred_runs_are_below_three_megabytes),
        cmocka_unit_test(failed_runs_are_counted_and_stand_for_chance_in_a_second_line),
        cmocka_unit_test(lack_of_memory_is_reported_and_leaves_nothing),
        cmocka_unit_test(a_damaged_metrics_blob_is_an_error_that_names_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
