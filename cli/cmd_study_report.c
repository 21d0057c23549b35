/* cmd_study_report.c - `berlu study report`: tables and a page from the stores of studies.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "report/cost.h"
#include "report/equivalence.h"
#include "report/report.h"
#include "study_open.h"

static const option_row report_rows[] = {
    {"from", OPTION_STRINGS, "FILE|DIR", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "studies: their files, or folders that hold a study.db"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder to write into"},
    {"format", OPTION_STRING, "LIST", .standard = "html,md,csv",
     .help = "of html, md, csv, latex, svg (each plot as a file)"},
    {0}};

static berlu_status formats_parse(unsigned *out, const char *list)
{
    static const char *const names[] = {"html", "md", "csv", "latex", "svg"};
    *out = 0;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < COUNT(names) && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0))
            i++;
        if (i == COUNT(names))
            return berlu_fail(BERLU_ERR_ARG, "--format %s: html, md, csv, latex and svg are possible", list);
        *out |= 1u << i;
        at += length + (at[length] == ',');
    }
    return *out ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "--format: none given");
}

static berlu_status contents_of(store_contents *out, report_cost *cost, report_equivalence *equal, const char *from)
{
    char path[STUDY_PATH];
    store *s = NULL;
    berlu_status status;
    TRY_DONE(study_store_find(path, from));
    TRY_DONE(store_open_read(&s, path));
    TRY_DONE(store_read(s, out));
    TRY_DONE(report_cost_add(cost, s));
    status = report_equivalence_add(equal, s, out);
done:
    store_close(s);
    return status;
}

/* A study counts once: its contrasts would share Holm's correction with themselves. */
static berlu_status repeats_refuse(const store_contents *whole)
{
    for (size_t i = 1; i < whole->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(whole->studies[i].name, whole->studies[k].name) == 0 && *whole->studies[i].sha256 &&
                strcmp(whole->studies[i].sha256, whole->studies[k].sha256) == 0)
                return berlu_fail(BERLU_ERR_ARG,
                                  "study %s is given twice; once is enough (`study merge` joins its runs of several "
                                  "stores)",
                                  whole->studies[i].name);
    return BERLU_OK;
}

/* The numbers of runs and of finished runs, and the verdicts; claims.json has the rest. */
static berlu_status result_print(const options *o, const report *r, size_t studies)
{
    size_t done = 0, failed = 0;
    for (size_t i = 0; i < r->v.run_count; i++) {
        done += strcmp(r->v.runs[i].run->state, "done") == 0;
        failed += strcmp(r->v.runs[i].run->state, "failed") == 0;
    }
    if (!options_json(o)) {
        printf("%zu %s, %zu of %zu runs done%s: %s%s\n", studies, studies == 1 ? "study" : "studies", done,
               r->v.run_count, failed ? ", some failed" : "", options_string(o, "out"),
               strstr(options_string(o, "format"), "html") ? "/index.html" : "");
        return BERLU_OK;
    }
    output out;
    output_start(&out);
    output_string(&out, "out", options_string(o, "out"));
    output_int(&out, "studies", (int64_t)studies);
    output_int(&out, "runs", (int64_t)r->v.run_count);
    output_int(&out, "done", (int64_t)done);
    output_int(&out, "failed", (int64_t)failed);
    output_array(&out, "claims");
    for (size_t i = 0; i < CLAIMS; i++) {
        output_object(&out, NULL);
        output_string(&out, "id", r->claims[i].of->id);
        output_string(&out, "direction", r->claims[i].direction);
        output_string(&out, "size", r->claims[i].size);
        output_bool(&out, "partial", r->claims[i].partial);
        output_end(&out);
    }
    output_end(&out);
    output_array(&out, "hypotheses");
    for (size_t i = 0; i < r->judged.hypothesis_count; i++) {
        const hypothesis *h = &r->judged.hypotheses[i];
        output_object(&out, NULL);
        output_string(&out, "study", h->study->of->name);
        output_string(&out, "direction", verdict_direction_name(h->verdict.direction));
        output_bool(&out, "partial", h->verdict.partial);
        output_end(&out);
    }
    output_end(&out);
    return output_print(&out);
}

static berlu_status report_study(options *o)
{
    size_t count = options_count(o, "from"), studies = 0;
    unsigned formats = 0;
    store_contents *all = calloc(count + 1, sizeof *all);
    store_study *joined = NULL;
    report r = {0};
    report_cost cost;
    report_cost_start(&cost);
    report_equivalence equal;
    report_equivalence_start(&equal);
    store_contents whole = {0};
    berlu_status status = BERLU_OK;
    TRY_DONE(all ? formats_parse(&formats, options_string(o, "format")) : berlu_fail_memory(count, "studies"));
    for (size_t i = 0; i < count; i++) {
        TRY_DONE(contents_of(&all[i], &cost, &equal, options_strings(o, "from")[i]));
        studies += all[i].count;
    }
    joined = whole.studies = calloc(studies + 1, sizeof *joined);
    TRY_DONE(joined ? BERLU_OK : berlu_fail_memory(studies * sizeof *joined, "studies"));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < all[i].count; k++)
            joined[whole.count++] = all[i].studies[k];
    TRY_DONE(repeats_refuse(&whole));
    TRY_DONE(report_make_with(&r, &whole, &(report_more){.cost = &cost.table, .equivalence = &equal.table}));
    TRY_DONE(report_write(&r, &whole, options_string(o, "out"), formats));
    TRY_DONE(report_cost_write(&cost, options_string(o, "out"), formats));
    TRY_DONE(report_equivalence_write(&equal, options_string(o, "out"), formats));
    status = result_print(o, &r, studies);
done:
    report_free(&r);
    report_cost_free(&cost);
    report_equivalence_free(&equal);
    for (size_t i = 0; all && i < count; i++)
        store_contents_free(&all[i]);
    free(joined);
    free(all);
    return status;
}

const command cmd_study_report = {"study report", "tables and a page of the results of studies",
                                  "Verdicts about the paper's claims, cells with means, deviations and intervals, the "
                                  "registered contrasts with Holm's p "
                                  "over all of them, and every run.\n\n"
                                  "    berlu study report studies/quick.yaml --out report\n"
                                  "    berlu study report docs/results --out page --format html,latex",
                                  report_rows, report_study};
