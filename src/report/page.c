/* page.c - the page: its head, its sections in a fixed order, its links.
 * SPDX-License-Identifier: MIT
 *
 * page_write() is the list of sections. page_verdicts.c writes those of the results, plots.h the
 * plots; runs, files and machines follow here. */
#include "report/page.h"

#include <string.h>

#include "report/plots.h"

static void section(text *out, const char *id, const char *title)
{
    text_add(out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

static void section_end(text *out)
{
    text_string(out, "</section>\n");
}

/* ---- sections that are figures, or one line where there is no data --------------------------- */

typedef berlu_status (*plot_function)(figures *, const evidence *);

typedef struct plot_section {
    const char *id, *title, *about, *without;
    plot_function draw;
    int grid;
} plot_section;

static const plot_section before_contrasts = {"contrasts", NULL, NULL, "No contrast has runs on both sides yet.",
                                              plot_forest, 0};

static const plot_section plots[] = {
    {"dots", "All runs", "Every finished run after its last epoch, over its cell.", "No run is finished yet.",
     plot_dots, 1},
    {"learning", "Learning curves",
     "Mean over the finished runs of a cell. Bands: from three runs on the 95 % t interval of the mean, below three "
     "the "
     "lowest and the highest run.",
     "No epochs are stored.", plot_learning, 1},
    {"widths", "Accuracy by the width of the transition",
     "Cells that differ in BerLU's eps alone; whiskers are 95 % t intervals. The paper's points are those its text "
     "gives.",
     "No two cells differ in BerLU's eps alone.", plot_widths, 1},
    {"nonlinear", "Accuracy by measured nonlinearity",
     "Hypothesis H: what counts is the share of an activation's output that no straight line explains, 1 \u2212 "
     "R\u00b2, "
     "at the pre-activations that a start gives; not smoothness. Every run is a dot: accuracy of its last epoch over "
     "1 \u2212 R\u00b2 at the moment above each plot. A plot is not a test; study hypothesis has the predictions.",
     "The store holds no measurement of 1 \u2212 R\u00b2, or of one cell only.", plot_nonlinear, 1},
    {"sites", "Slope, occupancy and dead units by layer and epoch",
     "Means over the finished runs of a cell. A unit is dead when its slope is below 1/1000 for every input seen.",
     "The store holds no measurements by layer.", plot_sites, 0},
    {"cost", "Cost of a step",
     "Difference to the first cell, round by round, with 95 % intervals. The bands, forward and backward, are what the "
     "first cell measured twice differs by (A/A): differences inside of them are noise.",
     "No study of kind cost is in this report.", plot_cost, 1},
};

/* Names the study whose plots show the cells that another one shares with it. */
static void shared_write(text *out, const view *v)
{
    for (size_t i = 0; i < v->count; i++)
        for (size_t g = 0; g < v->studies[i].group_count; g++) {
            const view_study *s = &v->studies[i];
            if (!s->within[g])
                continue;
            text_string(out, "<p class=\"soft\">Cells of ");
            html_text(out, s->of->name);
            text_string(out, " are cells of ");
            html_text(out, s->within[g]->of->name);
            text_string(out, " with the same runs: the plots of this page show them there.</p>\n");
        }
}

static berlu_status plot_section_write(text *out, const plot_section *s, const evidence *e)
{
    text drawn = {0};
    figures to = {.page = &drawn};
    berlu_status status = s->draw(&to, e);
    if (status == BERLU_OK)
        status = text_status(&drawn);
    if (s->title)
        section(out, s->id, s->title);
    if (status == BERLU_OK && to.shown) {
        if (s->about)
            text_add(out, "<p class=\"soft\">%s</p>\n", s->about);
        if (s->draw == plot_dots)
            shared_write(out, e->v);
        text_string(out, s->grid ? "<div class=\"grid\">\n" : "");
        text_bytes(out, drawn.data, drawn.length);
        text_string(out, s->grid ? "</div>\n" : "");
    } else {
        text_add(out, "<p>%s</p>\n", s->without);
    }
    if (s->title)
        section_end(out);
    text_free(&drawn);
    return status;
}

berlu_status page_figures_write(const evidence *e, const char *folder)
{
    for (size_t i = 0; i <= COUNT(plots); i++) {
        const plot_section *s = i ? &plots[i - 1] : &before_contrasts;
        figures to = {.folder = folder, .name = s->id};
        TRY(s->draw(&to, e));
    }
    return BERLU_OK;
}

/* ---- runs, files, machines ------------------------------------------------------------------- */

static void runs_write(text *out, const page_parts *p)
{
    static const char *const columns[] = {"study", "cell", "seed",    "state",  "top1",
                                          "loss",  "key",  "message", "command"};
    section(out, "runs", "Every run, and how to repeat it");
    table_html_part(&p->tables->runs, out,
                    &(table_part){.id = "runs-table",
                                  .caption = "A run is known by the hash of its settings and data (key)",
                                  .columns = columns,
                                  .column_count = COUNT(columns)});
    section_end(out);
}

/* Lists contrasts that changed, or were registered after the first run of their study. */
static void registered_write(text *out, const store_study *s)
{
    size_t changed = 0;
    for (size_t c = 0; c < s->contrast_count; c++) {
        const store_contrast *k = &s->contrasts[c];
        int late = *s->first_run && strcmp(k->registered, s->first_run) > 0;
        if (k->current && !late)
            continue;
        text_string(out, changed++ ? "" : "<ul>\n");
        text_string(out, "<li>");
        html_text(out, k->name);
        text_string(out, " (");
        text words = {0};
        contrast_words(&words, s, k);
        html_text(out, words.data ? words.data : "");
        out->failed |= words.failed;
        text_free(&words);
        text_string(out, k->current ? ") was registered after the first run: "
                                    : ") stood in an earlier file and is kept here, registered ");
        html_text(out, k->registered);
        size_t runs, begun = contrast_begun(s, k, &runs);
        if (k->current)
            text_add(out, "; %zu of its %zu runs had begun", begun, runs);
        text_string(out, "</li>\n");
    }
    text_string(out, changed             ? "</ul>\n"
                     : s->contrast_count ? "<p>All contrasts were registered before the first run, and none was "
                                           "changed since.</p>\n"
                                         : "<p>No contrasts are registered.</p>\n");
}

static void files_write(text *out, const page_parts *p)
{
    section(out, "files", "Study files");
    for (size_t i = 0; i < p->e->v->count; i++) {
        const store_study *s = p->e->v->studies[i].of;
        text_string(out, "<h3>");
        html_text(out, s->name);
        text_string(out, "</h3>\n<p>SHA-256 <code>");
        html_text(out, s->sha256);
        text_string(out, "</code>, registered ");
        html_text(out, s->registered);
        if (!p->e->v->studies[i].cost) {
            text_string(out, ", first run ");
            html_text(out, *s->first_run ? s->first_run : "not yet");
        }
        text_string(out, ".</p>\n");
        registered_write(out, s);
        text_string(out, "<pre>");
        html_text(out, s->yaml);
        text_string(out, "</pre>\n");
    }
    section_end(out);
}

static void machines_write(text *out, const page_parts *p)
{
    section(out, "machines", "Versions, data, machines");
    if (table_rows(&p->tables->machines))
        table_html(&p->tables->machines, out);
    else
        text_string(out, "<p>No run has begun.</p>\n");
    text mixed = {0};
    out->failed |= view_mixed(&mixed, p->e->v) != BERLU_OK;
    if (mixed.length) {
        text_string(out, "<p>Cells whose runs come from several commits, and how many: ");
        html_text(out, mixed.data);
        text_string(out, ". The table of runs (<code>runs.csv</code>) has the commit of each.</p>\n");
    }
    text_free(&mixed);
    text_add(out, "<p class=\"soft\">Page by berlu %s.%s</p>\n", berlu_version(),
             p->of_paper ? "" : " No run of it bears on a claim of the BerLU paper; claims.json lists them.");
    section_end(out);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void head_write(text *out, const page_parts *p)
{
    const view *v = p->e->v;
    size_t done = 0, failed = 0;
    for (size_t i = 0; i < v->run_count; i++) {
        done += strcmp(v->runs[i].run->state, "done") == 0;
        failed += strcmp(v->runs[i].run->state, "failed") == 0;
    }
    text_string(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\" /><meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\" /><title>berlu: ");
    for (size_t i = 0; i < v->count; i++) {
        text_string(out, i ? ", " : "");
        html_text(out, v->studies[i].of->name);
    }
    text_add(out, "</title>\n<style>\n%s</style></head>\n<body><h1>", page_css);
    for (size_t i = 0; i < v->count; i++) {
        text_string(out, i ? ", " : "");
        html_text(out, v->studies[i].of->name);
    }
    text_string(out, "</h1>\n");
    if (*p->first_line) {
        text_string(out, "<p class=\"lead\">");
        html_text(out, p->first_line);
        text_string(out, "</p>\n");
    }
    text_add(out, "<p>%zu of %zu runs are done%s; %zu failed.</p>\n", done, v->run_count,
             done + failed < v->run_count ? ", so what follows is partial" : "", failed);
}

static void links_write(text *out)
{
    static const char *const links[][2] = {{"verdicts", "Verdicts"},
                                           {"tables", "Tables"},
                                           {"contrasts-section", "Contrasts"},
                                           {"dots", "Runs"},
                                           {"learning", "Curves"},
                                           {"widths", "Widths"},
                                           {"nonlinear", "Nonlinearity"},
                                           {"sites", "Layers"},
                                           {"cost", "Cost"},
                                           {"runs", "Every run"},
                                           {"files", "Files"},
                                           {"machines", "Machines"}};
    text_string(out, "<nav>");
    for (size_t i = 0; i < COUNT(links); i++)
        text_add(out, "<a href=\"#%s\">%s</a> ", links[i][0], links[i][1]);
    text_string(out, "</nav>\n");
}

berlu_status page_write(text *out, const page_parts *p)
{
    head_write(out, p);
    links_write(out);
    section(out, "verdicts", "Verdicts");
    verdicts_write(out, p);
    section_end(out);
    section(out, "tables", p->of_paper ? "Tables, beside the paper's where it has them" : "Tables");
    beside_write(out, p);
    section_end(out);
    section(out, "contrasts-section", "Contrasts");
    berlu_status status = plot_section_write(out, &before_contrasts, p->e);
    contrasts_write(out, p);
    section_end(out);
    for (size_t i = 0; i < COUNT(plots) && status == BERLU_OK; i++)
        status = plot_section_write(out, &plots[i], p->e);
    runs_write(out, p);
    files_write(out, p);
    machines_write(out, p);
    text_add(out, "<script>\n%s</script></body></html>\n", page_script);
    return status == BERLU_OK ? text_status(out) : status;
}
