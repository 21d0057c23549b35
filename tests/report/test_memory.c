/* test_memory.c - a report that finds no memory or no disk says so, at every request of its arenas
 * and every call that writes. SPDX-License-Identifier: MIT
 *
 * The store holds what makes every table and plot: a ladder of widths, sites, failed runs, which
 * images were classified correctly, costs, another program's results, contrasts that came late. */
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

#include "base/file.h"
#include "report/files.h"
#include "report/page.h"
#include "report/report.h"
#include "support/fail.h"
#include "support/folder.h"
#include "synthetic.h"

static const synthetic_cell cells[] = {{"berlu", 70, 0},       {"gelu", 69, 1},          {"elu", 69, 0},
                                       {"celu", 68, 0},        {"berlu:eps=0.1", 68, 0}, {"berlu:eps=1", 60, 0},
                                       {"berlu:eps=10", 30, 0}};
enum { IMAGES = 40 };

typedef struct fixture {
    store_contents contents;
    arena memory;
    table cost, equivalence;
    report_more more;
} fixture;

/* Which of IMAGES images each run classifies correctly. */
static void images_put(store_contents *contents)
{
    for (size_t c = 0; c < contents->studies[0].cell_count; c++)
        for (size_t r = 0; r < contents->studies[0].cells[c].count; r++) {
            store_result *run = &contents->studies[0].cells[c].runs[r];
            unsigned char *bits = arena_alloc(&contents->memory, IMAGES / 8, 1);
            for (size_t i = 0; i < IMAGES / 8; i++)
                bits[i] = (unsigned char)(0xb5 * (c + 1) + 31 * r + i);
            run->correct = bits;
            run->correct_bytes = IMAGES / 8;
        }
}

static table cost_put(arena *memory)
{
    static const char *const columns[] = {"study",           "machine",      "cell",         "keep",
                                          "rounds",          "forward_ms",   "backward_ms",  "peak_bytes",
                                          "forward_percent", "forward_low",  "forward_high", "backward_percent",
                                          "backward_low",    "backward_high"};
    static const char *const names[] = {"gelu", "gelu (again)", "berlu", "prelu"};
    table t = table_make(memory, "cost", "cost", columns, COUNT(columns));
    for (size_t i = 0; i < COUNT(names); i++) {
        table_word(&t, "priced");
        table_word(&t, "a machine");
        table_word(&t, names[i]);
        table_word(&t, "input");
        for (size_t c = 4; c < COUNT(columns); c++)
            table_number(&t, c < 8 ? 10.0 * (double)c : (double)i + (c % 3 == 0 ? -1 : c % 3 == 1), 2);
    }
    return t;
}

static table equivalence_put(arena *memory)
{
    static const char *const columns[] = {"study", "source", "name",   "difference",
                                          "low90", "high90", "margin", "verdict"};
    table t = table_make(memory, "equivalence", "t", columns, COUNT(columns));
    for (int i = 0; i < 2; i++) {
        table_word(&t, "made");
        table_word(&t, "torch");
        table_word(&t, i ? "gelu" : "berlu");
        table_number(&t, 1.5 * i, 3);
        table_number(&t, 1.5 * i - 0.4, 3);
        table_number(&t, 1.5 * i + 0.4, 3);
        table_number(&t, 0.5, 2);
        table_word(&t, i ? "not shown" : "equivalent");
    }
    return t;
}

static int make(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    synthetic_make(&f->contents, &(synthetic){.cells = cells,
                                              .cell_count = COUNT(cells),
                                              .seeds = 3,
                                              .sites = 2,
                                              .epochs = 3,
                                              .spread = 1,
                                              .yaml = "study: made\nabout: chosen after pilot runs\nmargin: 0.7\n"
                                                      "hypothesis: it is so\n"});
    images_put(&f->contents);
    f->contents.studies[0].contrasts[0].registered = "2026-01-03T00:00:00Z"; /* after the first run */
    f->contents.studies[0].contrasts[1].current = 0;
    store_contrast *last = &f->contents.studies[0].contrasts[f->contents.studies[0].contrast_count - 1];
    last->expected = (stats_expected){STATS_ABOVE, 1};
    last->second = 1, last->minus_a = 0, last->minus_b = 1;
    f->cost = cost_put(&f->memory);
    f->equivalence = equivalence_put(&f->memory);
    f->more = (report_more){.cost = &f->cost, .equivalence = &f->equivalence};
    *state = f;
    return 0;
}

static int drop(void **state)
{
    fixture *f = *state;
    store_contents_free(&f->contents);
    arena_free(&f->memory);
    free(f);
    return 0;
}

static void samples_and_contrasts_without_memory_say_so(void **state)
{
    fixture *f = *state;
    view v;
    judgements all;
    arena memory = {0};
    cell_sites sites;
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ARENA, n), status = view_make(&v, &f->contents), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(v.studies);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 100);
    for (n = 1; fail_after(FAIL_ARENA, n), status = contrasts_judge(&all, &v, &memory), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    const view_study *s = &v.studies[0];
    for (n = 1; fail_after(FAIL_ARENA | FAIL_ALLOC, n), status = sites_read(&sites, &s->cells[0], s->metric, &memory),
        fail_hit();
         n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    arena_free(&memory);
    view_free(&v);
}

/* The claims of the theory (C1 to C6) take most of a report's time: they are judged once here. */
static void claims_and_tables_without_memory_say_so(void **state)
{
    fixture *f = *state;
    report r;
    claim_result claims[CLAIMS];
    report_tables tables;
    arena memory = {0};
    berlu_status status;
    int n = 1;
    assert_int_equal(report_make_with(&r, &f->contents, &f->more), BERLU_OK);
    const evidence e = {.v = &r.v, .judged = &r.judged, .sites = r.sites, .cost = r.more.cost, .memory = &memory};
    berlu_status (*const judges[])(claim_result[CLAIMS], const evidence *) = {claims_widths, claims_runs, claims_cost};
    for (size_t i = 0; i < COUNT(judges); i++) {
        memcpy(claims, r.claims, sizeof claims);
        for (n = 1; fail_after(FAIL_ARENA, n), status = judges[i](claims, &e), fail_hit(); n++) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            memcpy(claims, r.claims, sizeof claims);
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(n > 1);
    }
    for (n = 1; fail_after(FAIL_ARENA, n), status = tables_make(&tables, &e, r.claims), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 20);
    arena_free(&memory);
    report_free(&r);
}

/* Every 23rd request of the whole: whatever came before it is given back. */
static void a_report_without_memory_leaves_nothing(void **state)
{
    fixture *f = *state;
    report r;
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ARENA, n), status = report_make_with(&r, &f->contents, &f->more), fail_hit(); n += 23) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(r.v.studies);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 500);
    report_free(&r);
}

/* A file that stands there is the whole one; one that could not be made is not there. */
static void every_request_of_the_page_may_fail(void **state)
{
    fixture *f = *state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    report r;
    berlu_status status;
    int n = 1;
    folder_fresh(folder, "report_page_memory");
    folder_path(path, folder, "index.html");
    assert_int_equal(report_make_with(&r, &f->contents, &f->more), BERLU_OK);
    for (; fail_after(FAIL_ARENA, n), status = report_write(&r, &f->contents, folder, REPORT_HTML), fail_hit(); n++) {
        if (status != BERLU_ERR_MEMORY)
            fail_msg("request %d: status %d", n, status);
        assert_false(file_exists(path));
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 100);
    assert_true(file_exists(path));
    report_free(&r);
}

/* Four formats and claims.json: whatever call fails, what is there afterwards is whole, and the
 * next attempt goes through. */
static void every_call_that_writes_a_report_may_fail(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"index.html", "report.md", "report.tex", "contrasts.csv", "claims.json"};
    const unsigned all = REPORT_HTML | REPORT_MARKDOWN | REPORT_CSV | REPORT_LATEX;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *whole[COUNT(names)], *found;
    report r;
    berlu_status status;
    int n = 1;
    assert_int_equal(report_make_with(&r, &f->contents, &f->more), BERLU_OK);
    folder_fresh(folder, "report_whole");
    assert_int_equal(report_write(&r, &f->contents, folder, all), BERLU_OK);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(file_read_all(&whole[i], NULL, folder_path(path, folder, names[i]), 64 << 20), BERLU_OK);
    folder_fresh(folder, "report_cut");
    for (; fail_after(FAIL_FILE | FAIL_SHORT, n), status = report_write(&r, &f->contents, folder, all), fail_hit();
         n++) {
        int done = status == BERLU_OK; /* the close of a folder that was read or synced may fail */
        if (!done)
            assert_int_equal(status, BERLU_ERR_IO);
        for (size_t i = 0; i < COUNT(names); i++)
            if (done || file_exists(folder_path(path, folder, names[i]))) {
                folder_path(path, folder, names[i]);
                assert_int_equal(file_read_all(&found, NULL, path, 64 << 20), BERLU_OK);
                assert_string_equal(found, whole[i]);
                free(found);
            }
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 5 * 11);
    for (size_t i = 0; i < COUNT(names); i++)
        free(whole[i]);
    report_free(&r);
}

/* Every figure is a file of its own, so the study is a small one: two cells, a site, two epochs. */
static void every_call_that_writes_figures_may_fail(void **state)
{
    (void)state;
    static const char *const names[] = {"contrasts.svg", "dots.svg", "learning.svg", "sites.svg"};
    static const unsigned kinds[] = {FAIL_ARENA, FAIL_FILE | FAIL_SHORT};
    store_contents contents;
    char folder[FOLDER_PATH], path[FOLDER_PATH], *whole[COUNT(names)], *found;
    report r;
    berlu_status status;
    synthetic_make(&contents,
                   &(synthetic){.cells = cells, .cell_count = 2, .seeds = 2, .sites = 1, .epochs = 2, .spread = 1});
    assert_int_equal(report_make(&r, &contents), BERLU_OK);
    folder_fresh(folder, "report_figures_whole");
    assert_int_equal(report_write(&r, &contents, folder, REPORT_SVG), BERLU_OK);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(file_read_all(&whole[i], NULL, folder_path(path, folder, names[i]), 1 << 20), BERLU_OK);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        int n = 1;
        folder_fresh(folder, "report_figures_cut");
        for (; fail_after(kinds[k], n), status = report_write(&r, &contents, folder, REPORT_SVG), fail_hit(); n++) {
            int done = status == BERLU_OK; /* the close of a folder that was synced may fail */
            if (!done)
                assert_int_equal(status, kinds[k] == FAIL_ARENA ? BERLU_ERR_MEMORY : BERLU_ERR_IO);
            for (size_t i = 0; i < COUNT(names); i++)
                if (done || file_exists(folder_path(path, folder, names[i]))) {
                    folder_path(path, folder, names[i]);
                    assert_int_equal(file_read_all(&found, NULL, path, 1 << 20), BERLU_OK);
                    assert_string_equal(found, whole[i]);
                    free(found);
                }
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(n > 30);
    }
    for (size_t i = 0; i < COUNT(names); i++)
        free(whole[i]);
    report_free(&r);
    store_contents_free(&contents);
}

static void tables_of_costs_are_written_whole_or_not_at_all(void **state)
{
    fixture *f = *state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], deep[STUDY_PATH + 16];
    berlu_status status;
    folder_fresh(folder, "report_tables");
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_WRITE | FAIL_SYNC | FAIL_RENAME, n),
             status = table_files_write(&f->cost, folder, REPORT_CSV | REPORT_MARKDOWN), fail_hit();
         n++)
        assert_int_not_equal(status, BERLU_OK);
    assert_int_equal(status, BERLU_OK);
    assert_true(file_exists(folder_path(path, folder, "cost.csv")) &&
                file_exists(folder_path(path, folder, "cost.md")));
    memset(deep, 'x', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(table_files_write(&f->cost, deep, REPORT_CSV), BERLU_ERR_ARG);
    table empty = table_make(&f->memory, "empty", "empty", (const char *const[]){"a"}, 1);
    assert_int_equal(table_files_write(&empty, folder, REPORT_CSV | REPORT_MARKDOWN), BERLU_OK);
    assert_false(file_exists(folder_path(path, folder, "empty.csv"))); /* nothing to say, no file */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        CASE(samples_and_contrasts_without_memory_say_so),
        CASE(claims_and_tables_without_memory_say_so),
        CASE(a_report_without_memory_leaves_nothing),
        CASE(every_request_of_the_page_may_fail),
        CASE(every_call_that_writes_a_report_may_fail),
        CASE(tables_of_costs_are_written_whole_or_not_at_all),
        cmocka_unit_test(every_call_that_writes_figures_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
