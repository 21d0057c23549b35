/* report.c - see report.h. SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/verdict.h"
#include "study/stats.h"

#define MARGIN 0.5 /* points within which two functions count as equal */

static const char *const cell_columns[] = {"study", "cell", "n",         "failed", "waiting", "mean", "sd",
                                           "low",   "high", "images_sd", "best",   "loss",    "top5", "images_per_s"};
static const char *const contrast_columns[] = {
    "study",      "name",       "a",           "b",       "n",          "mean_a",      "sd_a",       "mean_b",
    "sd_b",       "difference", "low",         "high",    "p",          "p_holm",      "test",       "p_equal",
    "p_flip",     "paired_low", "paired_high", "r",       "images_low", "images_high", "detectable", "paper",
    "registered", "failed_a",   "failed_b",    "verdict", "size"};
static const char *const run_columns[] = {"study", "cell", "seed",   "key",     "state",  "top1",
                                          "top5",  "loss", "device", "version", "commit", "message"};

/* ---- samples ---- */

typedef struct sample {
    double *values;
    int64_t *seeds;
    const uint8_t **bits;
    size_t count, failed, waiting, images;
} sample;

static int is_done(const store_result *r)
{
    return strcmp(r->state, "done") == 0 && !isnan(r->top1);
}

static sample sample_of(arena *memory, const store_cell *c)
{
    sample s = {.values = ARENA_ARRAY(memory, double, c->count + 1),
                .seeds = ARENA_ARRAY(memory, int64_t, c->count + 1),
                .bits = ARENA_ARRAY(memory, const uint8_t *, c->count + 1),
                .images = SIZE_MAX};
    for (size_t i = 0; s.values && s.seeds && s.bits && i < c->count; i++) {
        const store_result *r = &c->runs[i];
        s.failed += strcmp(r->state, "failed") == 0;
        s.waiting += !is_done(r) && strcmp(r->state, "failed") != 0;
        if (!is_done(r))
            continue;
        s.values[s.count] = r->top1;
        s.seeds[s.count] = r->seed;
        s.bits[s.count++] = r->correct;
        s.images = !r->correct ? 0 : r->correct_bytes * 8 < s.images ? r->correct_bytes * 8 : s.images;
    }
    return s;
}

static stats_sample values_of(const sample *s)
{
    return (stats_sample){s->values, s->count};
}

static stats_images images_of(const sample *s)
{
    return (stats_images){s->bits, s->count && s->images && s->images != SIZE_MAX ? s->count : 0, s->images};
}

/* ---- cells ---- */

static double mean_over(const store_cell *c, size_t offset)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        double v = *(const double *)((const char *)&c->runs[i] + offset);
        if (is_done(&c->runs[i]) && !isnan(v))
            sum += v, n++;
    }
    return n ? sum / (double)n : NAN;
}

static void cell_row(table *t, const store_study *s, const store_cell *c, const sample *of)
{
    stats_sample v = values_of(of);
    stats_interval i = stats_range(stats_of_mean(v), 0.95);
    table_word(t, s->name);
    table_word(t, c->label);
    table_number(t, (double)of->count, 0);
    table_number(t, (double)of->failed, 0);
    table_number(t, (double)of->waiting, 0);
    table_number(t, stats_mean(v), 2);
    table_number(t, stats_deviation(v), 2);
    table_number(t, i.low, 2);
    table_number(t, i.high, 2);
    table_number(t, stats_images_deviation(images_of(of)), 2);
    table_number(t, mean_over(c, offsetof(store_result, best_top1)), 2);
    table_number(t, mean_over(c, offsetof(store_result, loss)), 4);
    table_number(t, mean_over(c, offsetof(store_result, top5)), 2);
    table_number(t, mean_over(c, offsetof(store_result, images_per_s)), 0);
}

/* ---- contrasts ---- */

/* Values of both samples at the seeds they share come first, in the same order. */
static size_t pairs_first(sample *a, sample *b)
{
    size_t pairs = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = pairs; k < b->count; k++) {
            if (a->seeds[i] != b->seeds[k])
                continue;
            double x = a->values[i], y = b->values[k];
            int64_t m = a->seeds[i], n = b->seeds[k];
            a->values[i] = a->values[pairs], a->seeds[i] = a->seeds[pairs];
            b->values[k] = b->values[pairs], b->seeds[k] = b->seeds[pairs];
            a->values[pairs] = x, a->seeds[pairs] = m;
            b->values[pairs] = y, b->seeds[pairs] = n;
            pairs++;
            break;
        }
    return pairs;
}

typedef struct judged {
    const store_study *s;
    const store_contrast *c;
    stats_contrast of;
    stats_interval images;
    sample a, b;
    double p_holm;
} judged;

static judged contrast_judge(arena *memory, const store_study *s, const store_contrast *c, const sample *all,
                             size_t registered)
{
    judged j = {.s = s, .c = c, .a = sample_of(memory, &s->cells[c->a]), .b = sample_of(memory, &s->cells[c->b])};
    stats_sample *cells = ARENA_ARRAY(memory, stats_sample, s->cell_count + 1);
    for (size_t i = 0; cells && i < s->cell_count; i++)
        cells[i] = values_of(&all[i]);
    stats_estimate crossed;
    stats_images x = images_of(&j.a), y = images_of(&j.b);
    size_t pairs = pairs_first(&j.a, &j.b);
    j.of = stats_contrast_make(&(stats_contrast_input){.a = values_of(&j.a),
                                                       .b = values_of(&j.b),
                                                       .cells = cells,
                                                       .count = cells ? s->cell_count : 0,
                                                       .pairs = pairs,
                                                       .contrasts = registered,
                                                       .margin = MARGIN});
    crossed = stats_crossed(x, y, j.of.judged);
    j.images = stats_range(crossed, 0.95);
    return j;
}

/* By the rules of verdict.h; a cell has as many members as seeds were registered. */
static verdict verdict_of(const judged *j)
{
    size_t of_a = j->s->cells[j->c->a].count, of_b = j->s->cells[j->c->b].count;
    int tested = j->a.count && j->b.count;
    return verdict_of_contrast(&(verdict_input){.contrast = tested ? &j->of : NULL,
                                                .p_holm = j->p_holm,
                                                .margin = MARGIN,
                                                .paper = j->c->paper,
                                                .n = j->a.count < j->b.count ? j->a.count : j->b.count,
                                                .registered = of_a < of_b ? of_a : of_b});
}

static void contrast_row(table *t, const judged *j)
{
    const double p[] = {j->of.p, j->p_holm};
    table_word(t, j->s->name);
    table_word(t, j->c->name);
    table_word(t, j->s->cells[j->c->a].label);
    table_word(t, j->s->cells[j->c->b].label);
    table_number(t, (double)(j->a.count < j->b.count ? j->a.count : j->b.count), 0);
    table_number(t, j->of.mean_a, 2);
    table_number(t, j->of.sd_a, 2);
    table_number(t, j->of.mean_b, 2);
    table_number(t, j->of.sd_b, 2);
    table_number(t, j->of.judged.value, 2);
    table_number(t, j->of.low, 2);
    table_number(t, j->of.high, 2);
    for (size_t i = 0; i < COUNT(p); i++)
        table_number(t, p[i], 4);
    table_word(t, stats_test_name(j->of.test));
    table_number(t, j->of.p_equal, 4);
    table_number(t, j->of.p_flip, 4);
    table_number(t, j->of.paired_low, 2);
    table_number(t, j->of.paired_high, 2);
    table_number(t, j->of.r, 2);
    table_number(t, j->images.low, 2);
    table_number(t, j->images.high, 2);
    table_number(t, j->of.detectable, 2);
    table_number(t, j->c->paper, 2);
    table_word(t, j->c->current ? j->c->registered : "earlier file");
    table_number(t, (double)j->a.failed, 0);
    table_number(t, (double)j->b.failed, 0);
    verdict v = verdict_of(j);
    char text_of[64];
    snprintf(text_of, sizeof text_of, "%s%s", verdict_direction_name(v.direction),
             v.partial && v.direction != VERDICT_NOT_TESTED ? " (partial)" : "");
    table_word(t, text_of);
    table_word(t, verdict_size_name(v.size));
}

static size_t contrasts_count(const store_contents *from)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++)
        count += from->studies[i].contrast_count;
    return count;
}

/* Holm runs over one list: all contrasts of the report. */
static berlu_status contrasts_fill(report *r, const store_contents *from)
{
    size_t most = contrasts_count(from), n = 0;
    judged *all = calloc(most + 1, sizeof *all);
    double *p = calloc(2 * most + 1, sizeof *p);
    if (!all || !p) {
        free(all);
        free(p);
        return berlu_fail_memory(most * sizeof *all, "contrasts");
    }
    for (size_t i = 0; i < from->count; i++) {
        const store_study *s = &from->studies[i];
        sample *cells = ARENA_ARRAY(&r->memory, sample, s->cell_count + 1);
        for (size_t c = 0; cells && c < s->cell_count; c++)
            cells[c] = sample_of(&r->memory, &s->cells[c]);
        for (size_t c = 0; cells && c < s->contrast_count; c++)
            all[n++] = contrast_judge(&r->memory, s, &s->contrasts[c], cells, most);
    }
    for (size_t i = 0; i < n; i++)
        p[i] = all[i].of.p;
    stats_holm(p + most, p, n);
    for (size_t i = 0; i < n; i++) {
        all[i].p_holm = p[most + i];
        contrast_row(&r->contrasts, &all[i]);
    }
    free(all);
    free(p);
    return BERLU_OK;
}

/* ---- runs ---- */

static void run_row(table *t, const store_study *s, const store_cell *c, const store_result *r)
{
    table_word(t, s->name);
    table_word(t, c->label);
    table_number(t, (double)r->seed, 0);
    table_word(t, r->key);
    table_word(t, r->state);
    table_number(t, r->top1, 2);
    table_number(t, r->top5, 2);
    table_number(t, r->loss, 4);
    table_word(t, r->device);
    table_word(t, r->version);
    table_word(t, r->commit);
    table_word(t, r->error);
}

berlu_status report_make(report *out, const store_contents *from)
{
    *out = (report){0};
    arena *m = &out->memory;
    out->cells = table_make(m, "cells", "Accuracy of the last epoch by cell", cell_columns, COUNT(cell_columns));
    out->contrasts = table_make(m, "contrasts", "Registered contrasts, a minus b in points", contrast_columns,
                                COUNT(contrast_columns));
    out->runs = table_make(m, "runs", "All runs", run_columns, COUNT(run_columns));
    for (size_t i = 0; i < from->count; i++)
        for (size_t c = 0; c < from->studies[i].cell_count; c++) {
            const store_cell *cell = &from->studies[i].cells[c];
            sample s = sample_of(m, cell);
            cell_row(&out->cells, &from->studies[i], cell, &s);
            for (size_t k = 0; k < cell->count; k++)
                run_row(&out->runs, &from->studies[i], cell, &cell->runs[k]);
        }
    berlu_status status = contrasts_fill(out, from);
    if (status == BERLU_OK)
        status = table_status(&out->cells);
    if (status == BERLU_OK)
        status = table_status(&out->contrasts);
    if (status == BERLU_OK)
        status = table_status(&out->runs);
    if (status != BERLU_OK)
        report_free(out);
    return status;
}

void report_free(report *r)
{
    arena_free(&r->memory);
    *r = (report){0};
}

/* ---- files ---- */

static berlu_status text_save(const char *folder, const char *name, text *content)
{
    char path[STUDY_PATH];
    berlu_status status = text_status(content);
    if (status == BERLU_OK && snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        status = berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    if (status == BERLU_OK)
        status = file_write_atomic(path, content->data ? content->data : "", content->length);
    text_free(content);
    *content = (text){0};
    return status;
}

static void studies_html(const store_contents *from, text *out)
{
    for (size_t i = 0; i < from->count; i++) {
        const store_study *s = &from->studies[i];
        text_string(out, "<details><summary>Study file: ");
        html_text(out, s->name);
        text_string(out, "</summary><p>SHA-256 ");
        html_text(out, s->sha256);
        text_string(out, ", registered ");
        html_text(out, s->registered);
        text_string(out, ", first run ");
        html_text(out, *s->first_run ? s->first_run : "none yet");
        text_string(out, "</p><pre>");
        html_text(out, s->yaml);
        text_string(out, "</pre></details>\n");
    }
}

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\" />"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" /><title>berlu: report</title>\n<style>\n"
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:76em;padding:0 "
    "1em}\n"
    "table{border-collapse:collapse;margin:1.5em "
    "0;display:block;overflow-x:auto}caption{text-align:left;font-weight:600}\n"
    "th,td{padding:.2em .6em;border-bottom:1px solid #8884;text-align:left;white-space:nowrap}.n{text-align:right}\n"
    "pre{overflow-x:auto}</style></head>\n<body><h1>Report</h1>\n";

berlu_status report_write(const report *r, const store_contents *from, const char *folder, unsigned formats)
{
    const table *const tables[] = {&r->contrasts, &r->cells, &r->runs};
    text page = {0};
    berlu_status status = folder_make(folder);
    for (size_t i = 0; i < COUNT(tables) && status == BERLU_OK && (formats & REPORT_CSV); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.csv", tables[i]->name);
        table_csv(tables[i], &page);
        status = text_save(folder, name, &page);
    }
    if (status == BERLU_OK && (formats & REPORT_MARKDOWN)) {
        for (size_t i = 0; i < COUNT(tables); i++)
            table_markdown(tables[i], &page);
        status = text_save(folder, "report.md", &page);
    }
    if (status == BERLU_OK && (formats & REPORT_LATEX)) {
        for (size_t i = 0; i < COUNT(tables); i++)
            table_latex(tables[i], &page);
        status = text_save(folder, "report.tex", &page);
    }
    if (status == BERLU_OK && (formats & REPORT_HTML)) {
        text_string(&page, page_head);
        for (size_t i = 0; i < COUNT(tables); i++)
            table_html(tables[i], &page);
        studies_html(from, &page);
        text_string(&page, "</body></html>\n");
        status = text_save(folder, "index.html", &page);
    }
    return status;
}
