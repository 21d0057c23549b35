/* report.c - the steps of a report, and the files it writes. SPDX-License-Identifier: MIT
 *
 * report_make_with() reads the stores, makes views, contrasts, claims and tables in this order
 * (report.h names the layers); report_write() writes CSV, Markdown, LaTeX and the page. */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "report/page.h"

/* ---- making ---------------------------------------------------------------------------------- */

static berlu_status sites_all(report *r)
{
    r->sites = ARENA_ARRAY(&r->memory, cell_sites *, r->v.count + 1);
    if (!r->sites)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < r->v.count; i++) {
        const view_study *s = &r->v.studies[i];
        r->sites[i] = ARENA_ARRAY(&r->memory, cell_sites, s->cell_count + 1);
        if (!r->sites[i])
            return BERLU_ERR_MEMORY;
        for (size_t c = 0; c < s->cell_count; c++)
            TRY(sites_read(&r->sites[i][c], &s->cells[c], s->metric, &r->memory));
    }
    return BERLU_OK;
}

/* "" unless an interval of ours minus another program's lies beyond its margin: that takes
 * precedence over all results. */
static const char *differences_line(report *r)
{
    const table *t = r->more.equivalence;
    const char *line = "";
    for (size_t i = 0; t && i < table_rows(t) && line; i++) {
        double low = table_number_at(t, i, "low90"), high = table_number_at(t, i, "high90"),
               margin = table_number_at(t, i, "margin");
        if (low > margin || high < -margin)
            line = arena_printf(&r->memory, "%s%sOur results differ from those of %s: %s by %.2f [%.2f, %.2f].", line,
                                *line ? " " : "", table_word_at(t, i, "source"), table_word_at(t, i, "name"),
                                table_number_at(t, i, "difference"), low, high);
    }
    return line;
}

/* Joins the descriptions of the studies. A reader of one line must learn that contrasts were chosen
 * after pilot runs on the test set, so studies that mention them come first. */
static berlu_status first_line_make(report *r)
{
    const char *line = differences_line(r);
    for (int pilots = 1; pilots >= 0; pilots--)
        for (size_t i = 0; i < r->v.count && line; i++)
            if (r->v.studies[i].pilots == pilots && *r->v.studies[i].about) {
                const char *about = r->v.studies[i].about;
                size_t length = strlen(about);
                const char *name = r->v.count > 1 ? r->v.studies[i].of->name : "";
                line = arena_printf(&r->memory, "%s%s%s%s%s%s", line, *line ? " " : "", name, *name ? ": " : "", about,
                                    strchr(".!?", about[length - 1]) ? "" : ".");
            }
    r->first_line = line;
    return line ? BERLU_OK : BERLU_ERR_MEMORY;
}

static evidence evidence_of(report *r)
{
    return (evidence){.v = &r->v, .judged = &r->judged, .sites = r->sites, .cost = r->more.cost, .memory = &r->memory};
}

static const table *table_with_rows(const table *t)
{
    return t && table_rows(t) ? t : NULL;
}

berlu_status report_make_with(report *out, const store_contents *from, const report_more *more)
{
    *out = (report){.more = {table_with_rows(more->cost), table_with_rows(more->equivalence)}};
    berlu_status status;
    TRY_DONE(view_make(&out->v, from));
    TRY_DONE(contrasts_judge(&out->judged, &out->v, &out->memory));
    TRY_DONE(sites_all(out));
    TRY_DONE(first_line_make(out));
    evidence e = evidence_of(out);
    TRY_DONE(claims_judge(out->claims, &e));
    out->of_paper = claims_concern(out->claims, &e);
    status = tables_make(&out->tables, &e, out->claims);
done:
    if (status != BERLU_OK)
        report_free(out);
    return status;
}

berlu_status report_make(report *out, const store_contents *from)
{
    return report_make_with(out, from, &(report_more){0});
}

void report_free(report *r)
{
    view_free(&r->v);
    arena_free(&r->memory);
    *r = (report){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

static berlu_status text_save(const char *folder, const char *name, text *content)
{
    char path[STUDY_PATH];
    berlu_status status = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path
                              ? file_write_text(NULL, path, content)
                              : berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    text_free(content);
    return status;
}

static berlu_status csv_save(const report *r, const char *folder)
{
    const table *all[TABLES];
    text content = {0};
    tables_list(&r->tables, all);
    for (size_t i = 0; i < TABLES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.csv", all[i]->name);
        table_csv(all[i], &content);
        TRY(text_save(folder, name, &content));
    }
    return BERLU_OK;
}

/* Words in lines of at most 120 columns (bytes), and an empty line. */
static void prose_add(text *out, const char *words)
{
    enum { WIDTH = 120 };
    size_t column = 0;
    while (*words) {
        size_t length = strcspn(words, " ");
        if (column && column + 1 + length > WIDTH)
            text_string(out, "\n"), column = 0;
        if (column)
            text_string(out, " "), column++;
        text_bytes(out, words, length);
        column += length;
        words += length + strspn(words + length, " ");
    }
    text_string(out, "\n\n");
}

static berlu_status mixed_add(text *out, const view *v)
{
    text mixed = {0}, words = {0};
    berlu_status status;
    TRY_DONE(view_mixed(&mixed, v));
    if (!mixed.length)
        goto done;
    text_add(&words, "Cells whose runs come from several commits, and how many: %s. runs.csv has the commit of each.",
             mixed.data);
    TRY_DONE(text_status(&words));
    prose_add(out, words.data);
done:
    text_free(&mixed);
    text_free(&words);
    return status;
}

/* Writes the tables that people read, one after the other. */
static berlu_status tables_write(text *out, const report *r, void (*form)(const table *, text *))
{
    const table *all[TABLES];
    table own[TABLES];
    size_t count = TABLES;
    tables_list(&r->tables, all);
    if (!r->of_paper)
        TRY(tables_own(&r->tables, own, &count));
    for (size_t i = 0; i < count; i++)
        form(r->of_paper ? all[i] : &own[i], out);
    return BERLU_OK;
}

static berlu_status markdown_save(const report *r, const char *folder)
{
    text content = {0};
    if (*r->first_line)
        prose_add(&content, r->first_line);
    berlu_status status;
    TRY_DONE(mixed_add(&content, &r->v));
    TRY_DONE(tables_write(&content, r, table_markdown));
    return text_save(folder, "report.md", &content);
done:
    text_free(&content);
    return status;
}

static berlu_status latex_save(const report *r, const char *folder)
{
    text content = {0};
    if (*r->first_line)
        text_add(&content, "%% %s\n", r->first_line);
    berlu_status status = tables_write(&content, r, table_latex);
    if (status == BERLU_OK)
        return text_save(folder, "report.tex", &content);
    text_free(&content);
    return status;
}

static berlu_status figures_save(const report *r, const char *folder)
{
    report held = *r; /* plots allocate from an arena that ends with them */
    held.memory = (arena){0};
    evidence e = evidence_of(&held);
    berlu_status status = page_figures_write(&e, folder);
    arena_free(&held.memory);
    return status;
}

static berlu_status page_save(const report *r, const char *folder)
{
    report held = *r;
    text content = {0};
    held.memory = (arena){0};
    evidence e = evidence_of(&held);
    berlu_status status = page_write(&content, &(page_parts){.e = &e,
                                                             .claims = r->claims,
                                                             .of_paper = r->of_paper,
                                                             .tables = &r->tables,
                                                             .equivalence = r->more.equivalence,
                                                             .first_line = r->first_line});
    arena_free(&held.memory);
    if (status != BERLU_OK) {
        text_free(&content);
        return status;
    }
    return text_save(folder, "index.html", &content);
}

berlu_status report_write(const report *r, const store_contents *from, const char *folder, unsigned formats)
{
    (void)from; /* the report points into it */
    text json = {0};
    TRY(folder_make(folder));
    if (formats & REPORT_CSV)
        TRY(csv_save(r, folder));
    if (formats & REPORT_MARKDOWN)
        TRY(markdown_save(r, folder));
    if (formats & REPORT_LATEX)
        TRY(latex_save(r, folder));
    if (formats & REPORT_SVG)
        TRY(figures_save(r, folder));
    if (formats & REPORT_HTML)
        TRY(page_save(r, folder));
    (void)claims_json(&json, r->claims, &r->judged, r->first_line);
    return text_save(folder, "claims.json", &json);
}
