/* test_claims_cost.c - verdicts about times and memory of a step, from measurements that are known.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "judged.h"
#include "support/folder.h"

typedef struct cost_line {
    const char *cell;
    double forward, backward, bytes, planned; /* planned 0: not known */
    const char *keep;                         /* NULL: input */
} cost_line;

static const char *const cost_columns[] = {"study",
                                           "machine",
                                           "cell",
                                           "keep",
                                           "rounds",
                                           "forward_ms",
                                           "backward_ms",
                                           "peak_bytes",
                                           "planned_bytes",
                                           "forward_percent",
                                           "forward_low",
                                           "forward_high",
                                           "backward_percent",
                                           "backward_low",
                                           "backward_high"};

/* Percents with intervals of one percent to both sides; the second measurement of gelu is the
 * noise. */
static table cost_table(arena *memory, const cost_line *lines, size_t count)
{
    table t = table_make(memory, "cost", "cost", cost_columns, COUNT(cost_columns));
    for (size_t i = 0; i < count; i++) {
        table_word(&t, "priced");
        table_word(&t, "a machine");
        table_word(&t, lines[i].cell);
        table_word(&t, lines[i].keep ? lines[i].keep : "input");
        table_number(&t, 7, 0);
        table_number(&t, 50, 1);
        table_number(&t, 100, 1);
        table_number(&t, lines[i].bytes, 0);
        table_number(&t, lines[i].planned > 0 ? lines[i].planned : NAN, 0);
        for (int k = 0; k < 2; k++)
            for (int side = 0; side < 3; side++)
                table_number(&t, (k ? lines[i].backward : lines[i].forward) + (side == 1 ? -1 : side == 2), 2);
    }
    assert_int_equal(table_status(&t), BERLU_OK);
    return t;
}

static void a_cost_must_exceed_the_noise_of_the_first_cell(void **state)
{
    (void)state;
    cost_line lines[] = {{"gelu", 0, 0, 100e6, 0, NULL},  {"gelu (again)", 0.5, 0, 100e6, 0, NULL},
                         {"berlu", -6, 4, 90e6, 0, NULL}, {"prelu", -5, 4, 80e6, 0, NULL},
                         {"silu", 1, 1, 110e6, 0, NULL},  {"elu", 1, 1, 95e6, 0, NULL},
                         {"celu", 1, 1, 95e6, 0, NULL},   {"mish", 1, 1, 95e6, 0, NULL}};
    static const struct {
        double forward, backward, bytes;
        const char *c14, *c15, *c16, *size;
    } cases[] = {
        {-6, 4, 90e6, "held", "held", "held", "inside"},
        {-2, 2, 96e6, "undecided", "undecided", "not held", "outside"}, /* noise 1.5, intervals end at 1 and 3 */
        {0.4, -0.4, 90e6, "not held", "not held", "held", "outside"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena memory = {0};
        store_contents contents;
        report r;
        lines[2].forward = cases[i].forward, lines[2].backward = cases[i].backward, lines[2].bytes = cases[i].bytes;
        table t = cost_table(&memory, lines, COUNT(lines));
        synthetic_make(&contents, &(synthetic){0});
        assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
        is(&r, 14, cases[i].c14);
        is(&r, 15, cases[i].c15);
        is(&r, 16, cases[i].c16);
        assert_string_equal(claim(&r, 14)->size, cases[i].size);
        assert_string_equal(claim(&r, 15)->studies, "priced");
        assert_int_equal(claim(&r, 15)->n, 7);
        assert_int_equal(claim(&r, 16)->n, 1); /* memory is measured once */
        done(&r, &contents);
        arena_free(&memory);
    }
}

static void a_claim_about_costs_is_partial_before_the_last_round(void **state)
{
    (void)state;
    static const cost_line lines[] = {
        {"gelu", 0, 0, 100e6, 0, NULL}, {"gelu (again)", 0.5, 0, 100e6, 0, NULL}, {"berlu", -6, 4, 90e6, 0, NULL}};
    static const struct {
        const char *yaml;
        int partial; /* the table has seven rounds */
    } cases[] = {{"study: priced\nkind: cost\nrounds: 8\n", 1}, {"study: priced\nkind: cost\n", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena memory = {0};
        store_contents contents;
        report r;
        table t = cost_table(&memory, lines, COUNT(lines));
        synthetic_make(&contents, &(synthetic){.yaml = cases[i].yaml});
        contents.studies[0].name = "priced";
        assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
        is(&r, 14, "held");
        assert_int_equal(claim(&r, 14)->partial, cases[i].partial);
        assert_string_equal(claim(&r, 14)->why, cases[i].partial ? "fewer rounds than registered" : "");
        done(&r, &contents);
        arena_free(&memory);
    }
}

/* A process more or less has some pages more or less. */
static void memory_that_is_planned_equal_is_not_less_however_it_was_measured(void **state)
{
    (void)state;
    cost_line lines[] = {{"gelu", 0, 0, 100e6, 95e6, NULL}, {"berlu", 0, 0, 99.9e6, 95e6, NULL}};
    for (int less = 0; less < 2; less++) {
        arena memory = {0};
        store_contents contents;
        report r;
        lines[1].planned = less ? 94e6 : 95e6;
        table t = cost_table(&memory, lines, COUNT(lines));
        synthetic_make(&contents, &(synthetic){0});
        assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
        is(&r, 16, less ? "held" : "not held");
        done(&r, &contents);
        arena_free(&memory);
    }
}

/* GELU cannot be inverted, so it has no row at `output`. */
static void a_rival_without_a_policy_leaves_no_claim_partial(void **state)
{
    (void)state;
    static const char *const rivals[] = {"gelu", "silu", "elu", "celu", "mish", "prelu", "berlu"};
    for (size_t missing = 0; missing < 2; missing++) {
        arena memory = {0};
        store_contents contents;
        report r;
        cost_line lines[COUNT(rivals) + 2];
        size_t count = 0;
        for (size_t i = missing; i < COUNT(rivals); i++)
            lines[count++] = (cost_line){.cell = rivals[i], .bytes = 100e6};
        lines[count++] = (cost_line){.cell = "prelu", .bytes = 80e6, .keep = "output"};
        lines[count++] = (cost_line){.cell = "berlu", .bytes = 90e6, .keep = "output"};
        table t = cost_table(&memory, lines, count);
        synthetic_make(&contents, &(synthetic){0});
        assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
        assert_int_equal(claim(&r, 16)->partial, missing);
        done(&r, &contents);
        arena_free(&memory);
    }
}

static void noise_above_the_papers_difference_decides_nothing(void **state)
{
    (void)state;
    static const cost_line lines[] = {
        {"gelu", 0, 0, 1, 0, NULL}, {"gelu (again)", 30, -30, 1, 0, NULL}, {"berlu", 1, -1, 1, 0, NULL}};
    arena memory = {0};
    store_contents contents;
    report r;
    table t = cost_table(&memory, lines, COUNT(lines));
    synthetic_make(&contents, &(synthetic){0});
    assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
    is(&r, 14, "undecided");
    is(&r, 15, "undecided");
    done(&r, &contents);
    arena_free(&memory);
}

/* The section of the page about costs; the caller frees `*page`. */
static char *cost_section(char **page, const cost_line *lines, size_t count)
{
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    size_t size;
    arena memory = {0};
    store_contents contents;
    report r;
    table t = cost_table(&memory, lines, count);
    synthetic_make(&contents, &(synthetic){0});
    assert_int_equal(report_make_with(&r, &contents, &(report_more){.cost = &t}), BERLU_OK);
    folder_fresh(folder, "report_cost");
    assert_int_equal(report_write(&r, &contents, folder, REPORT_HTML), BERLU_OK);
    assert_int_equal(file_read_all(page, &size, folder_path(path, folder, "index.html"), 1 << 24), BERLU_OK);
    done(&r, &contents);
    arena_free(&memory);
    char *from = strstr(*page, "<section id=\"cost\">"), *to = strstr(*page, "<section id=\"runs\">");
    assert_true(from && to && from < to);
    *to = 0;
    return from;
}

static size_t count_of(const char *word, const char *in)
{
    size_t n = 0;
    for (const char *at = in; (at = strstr(at, word)); at++)
        n++;
    return n;
}

static void the_page_shows_costs_as_bars_and_the_second_measurement_as_bands(void **state)
{
    (void)state;
    static const cost_line lines[] = {
        {"gelu", 0, 0, 100e6, 0, NULL}, {"gelu (again)", 0.5, 0, 100e6, 0, NULL}, {"berlu", -6, 4, 90e6, 0, NULL}};
    char *page, *from = cost_section(&page, lines, COUNT(lines));
    assert_non_null(strstr(from, ">A/A forward</text>"));
    assert_non_null(strstr(from, ">A/A backward</text>"));
    assert_non_null(strstr(from, "time against gelu, %"));
    assert_int_equal(count_of(">berlu</text>", from), 2); /* time and memory */
    assert_int_equal(count_of(">gelu</text>", from), 1);  /* its times are 0 by definition */
    assert_null(strstr(from, "(again)</text>"));
    assert_non_null(strstr(from, "<td class=\"n\">90.0</td><td class=\"n\">55.8</td>")); /* ours, then table III */
    free(page);
}

/* Nothing to see in bars of one height, and no bars where the first cell has no such policy. */
static void the_page_says_what_no_figure_of_costs_can_show(void **state)
{
    (void)state;
    static const cost_line lines[] = {{"gelu", 0, 0, 100e6, 0, NULL},
                                      {"gelu (again)", 0.5, 0, 100e6, 0, NULL},
                                      {"berlu", -6, 4, 100e6, 0, NULL},
                                      {"prelu", NAN, NAN, 80e6, 0, "output"},
                                      {"berlu", NAN, NAN, 90e6, 0, "output"}};
    char *page, *from = cost_section(&page, lines, COUNT(lines));
    assert_int_equal(count_of("<figure", from), 2); /* times of keep input, memory of keep output */
    assert_non_null(strstr(from, "priced, keep input, a machine: peak memory is the same for all 2 cells, 100.0 MB."));
    assert_non_null(strstr(from, "priced, keep output, a machine: no times of gelu to compare with"));
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cost_must_exceed_the_noise_of_the_first_cell),
        cmocka_unit_test(a_claim_about_costs_is_partial_before_the_last_round),
        cmocka_unit_test(a_rival_without_a_policy_leaves_no_claim_partial),
        cmocka_unit_test(memory_that_is_planned_equal_is_not_less_however_it_was_measured),
        cmocka_unit_test(noise_above_the_papers_difference_decides_nothing),
        cmocka_unit_test(the_page_shows_costs_as_bars_and_the_second_measurement_as_bands),
        cmocka_unit_test(the_page_says_what_no_figure_of_costs_can_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
