/* page_verdicts.c - the results on the page: verdicts, tables beside the paper's, contrasts.
 * SPDX-License-Identifier: MIT
 *
 * Called by page.c. A verdict is a badge with the numbers it follows from; the tables are those of
 * tables.h, with the paper's values beside ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page.h"

static void badge(text *out, const char *word)
{
    static const struct {
        const char *word, *look;
    } looks[] = {{"held", "good"}, {"better", "good"},    {"not held", "no"},
                 {"worse", "no"},  {"undecided", "open"}, {"no difference", "open"}};
    const char *look = "";
    for (size_t i = 0; i < COUNT(looks); i++)
        if (strcmp(looks[i].word, word) == 0)
            look = looks[i].look;
    text_add(out, "<span class=\"v%s%s\">%s</span>", *look ? " " : "", look, word);
}

static void number(text *out, double value, const char *format)
{
    text_string(out, "<td class=\"n\">");
    if (isfinite(value))
        text_add(out, format, value);
    text_string(out, "</td>");
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void contrast_verdict(text *out, const judged *j, int paper)
{
    text_string(out, "<tr><td class=\"words\">");
    html_text(out, j->of->name);
    text_string(out, "<span class=\"rule\">");
    text words = {0};
    contrast_words(&words, j->study->of, j->of);
    html_text(out, words.data ? words.data : "");
    out->failed |= words.failed;
    text_free(&words);
    text_string(out, "</span></td><td>");
    badge(out, verdict_direction_name(j->verdict.direction));
    if (j->verdict.partial && j->n)
        text_add(out, "<span class=\"rule\">%s</span>", j->verdict.why);
    text_string(out, "</td>");
    number(out, j->n ? j->stats.judged.value : NAN, "%.2f");
    text_string(out, "<td class=\"n\">");
    if (isfinite(j->stats.low))
        text_add(out, "%.2f to %.2f", j->stats.low, j->stats.high);
    text_string(out, "</td>");
    if (paper) {
        number(out, j->of->paper, "%.2f");
        text_add(out, "<td>%s</td>", verdict_size_name(j->verdict.size));
    }
    text_add(out, "<td class=\"n\">%zu of %zu</td></tr>\n", j->n, j->registered);
}

static void contrast_verdicts(text *out, const judgements *all)
{
    if (!all->count) {
        text_string(out, "<p>No contrast is registered, so nothing is judged.</p>\n");
        return;
    }
    int paper = 0; /* it has a difference for one of them */
    for (size_t i = 0; i < all->count; i++)
        paper |= !isnan(all->items[i].of->paper);
    text_string(out,
                "<div class=\"scroll\"><table id=\"verdicts-contrasts\">\n<caption>Registered contrasts</caption>\n"
                "<thead><tr><th>contrast</th><th>verdict</th><th class=\"n\">difference</th>"
                "<th class=\"n\">95 %</th>");
    text_string(out, paper ? "<th class=\"n\">paper</th><th>paper's size</th>" : "");
    text_string(out, "<th class=\"n\">seeds</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < all->count; i++)
        contrast_verdict(out, &all->items[i], paper);
    text_string(out, "</tbody></table></div>\n");
}

static void hypotheses_write(text *out, const judgements *all)
{
    if (!all->hypothesis_count)
        return;
    text_string(out, "<div class=\"scroll\"><table id=\"hypotheses\">\n<caption>Hypotheses: each holds only if all its "
                     "predictions do</caption>\n<thead><tr><th>hypothesis</th><th>verdict</th>"
                     "<th class=\"n\">predictions that hold</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < all->hypothesis_count; i++) {
        const hypothesis *h = &all->hypotheses[i];
        text_string(out, "<tr><td class=\"words\">");
        html_text(out, h->study->hypothesis);
        text_string(out, "<span class=\"rule\">study ");
        html_text(out, h->study->of->name);
        text_string(out, ", registered ");
        html_text(out, h->study->of->registered);
        text_string(out, "</span></td><td>");
        badge(out, verdict_direction_name(h->verdict.direction));
        if (h->verdict.partial)
            text_add(out, "<span class=\"rule\">%s</span>", h->verdict.why);
        text_add(out, "</td><td class=\"n\">%zu of %zu</td></tr>\n", h->held, h->predictions);
    }
    text_string(out, "</tbody></table></div>\n");
}

static void claim_row(text *out, const claim_result *c)
{
    text_add(out, "<tr><td>%s</td><td class=\"words\">", c->of->id);
    html_text(out, c->of->claim);
    text_string(out, "<span class=\"rule\">Rule: ");
    html_text(out, c->of->rule);
    text_string(out, "</span></td><td>");
    badge(out, c->direction);
    if (*c->why) {
        text_add(out, "<span class=\"rule\">%s", c->partial ? "partial: " : "");
        html_text(out, c->why);
        text_string(out, "</span>");
    }
    text_add(out, "</td><td data-head=\"size\">%s</td><td class=\"words\" data-head=\"ours\">", c->size);
    html_text(out, c->figures);
    if (*c->studies) {
        text_string(out, "<span class=\"rule\">");
        html_text(out, c->studies);
        text_string(out, "</span>");
    }
    text_string(out, "</td><td class=\"wrap\" data-head=\"paper\">");
    html_text(out, c->of->paper);
    text_string(out, "</td><td class=\"n\" data-head=\"n\">");
    if (c->n)
        text_add(out, "%zu", c->n);
    text_string(out, "</td></tr>\n");
}

static void claim_table(text *out, const page_parts *p, const char *id, const char *caption, int tested)
{
    text_add(out,
             "<div class=\"scroll\"><table class=\"cards\" "
             "id=\"%s\">\n<caption>%s</caption>\n<thead><tr><th></th><th>claim</th>"
             "<th>direction</th><th>size</th><th>ours</th><th>paper</th><th class=\"n\">n</th></tr></thead>\n<tbody>\n",
             id, caption);
    for (size_t i = 0; i < CLAIMS; i++)
        if (tested == (strcmp(p->claims[i].direction, "not tested") != 0))
            claim_row(out, &p->claims[i]);
    text_string(out, "</tbody></table></div>\n");
}

static void claims_write(text *out, const page_parts *p)
{
    size_t open = 0;
    for (size_t i = 0; i < CLAIMS; i++)
        open += strcmp(p->claims[i].direction, "not tested") == 0;
    if (open < CLAIMS)
        claim_table(out, p, "claims", "Claims of the paper, each by its rule", 1);
    if (open) {
        text_add(out, "<details><summary>%zu claims of the paper are not tested here</summary>\n", open);
        claim_table(out, p, "claims-open", "Not tested, with the rule that would judge them", 0);
        text_string(out, "</details>\n");
    }
}

/* First of all verdicts: the others are about an engine that gives what another gives. */
static void equivalence_write(text *out, const page_parts *p)
{
    static const char *const columns[] = {"study",      "source", "name",   "verdict",
                                          "difference", "low90",  "high90", "margin"};
    static const char *const heads[] = {"study",      "source",    "cells", "verdict",
                                        "difference", "90 % from", "to",    "margin"};
    if (p->equivalence)
        table_html_part(p->equivalence, out,
                        &(table_part){.id = "equivalence",
                                      .caption = "Ours minus another program's: equivalent when the 90 % interval lies "
                                                 "inside the margin",
                                      .columns = columns,
                                      .heads = heads,
                                      .column_count = COUNT(columns)});
}

void verdicts_write(text *out, const page_parts *p)
{
    equivalence_write(out, p);
    hypotheses_write(out, p->e->judged);
    contrast_verdicts(out, p->e->judged);
    text_string(out,
                "<p class=\"soft\">A contrast is <em>better</em> or <em>worse</em> when Holm's p over all contrasts "
                "of this report is below 0.05, <em>no difference</em> when its 90 % interval lies within the margin, "
                "else <em>undecided</em>; only the registered number of seeds is judged. A prediction is "
                "<em>held</em> when one-sided tests at its limit show it (p below 0.05), <em>not held</em> when they "
                "show the contrary (Holm's p over the predictions of its hypothesis), else <em>undecided</em>.");
    if (p->of_paper)
        text_string(out, " <em>Size</em> says whether the paper's difference lies inside our 95 % interval.");
    text_string(out, "</p>\n");
    if (p->of_paper)
        claims_write(out, p);
}

/* ---- tables beside the paper's --------------------------------------------------------------- */

static int has_paper(const table *t, size_t first, size_t rows)
{
    enum { PAPER = 10 };
    for (size_t i = first; i < first + rows; i++)
        if (!isnan(t->cells[i * t->column_count + PAPER].value))
            return 1;
    return 0;
}

void beside_write(text *out, const page_parts *p)
{
    static const char *const columns[] = {"cell", "n",        "failed", "mean",  "sd",       "low",
                                          "high", "standing", "p_best", "paper", "paper_sd", "minus_paper"};
    const char *heads[] = {"activation", "n", "failed",  "mean",  "sd",     "95 % from",
                           "to",         "",  "p, Holm", "paper", "\u00b1", "ours \u2212 paper"};
    const table *t = &p->tables->beside;
    size_t row = 0, number_of = 0;
    for (size_t i = 0; i < p->e->v->count; i++) {
        const view_study *s = &p->e->v->studies[i];
        for (size_t g = 0; g < s->group_count; g++) {
            size_t rows = 0;
            const view_cell *first = NULL;
            for (size_t c = 0; c < s->cell_count; c++)
                if (s->cells[c].group == g) {
                    first = first ? first : &s->cells[c];
                    rows++;
                }
            char id[32];
            snprintf(id, sizeof id, "beside-%zu", ++number_of);
            heads[0] = *s->factors[g] ? s->factors[g] : "activation";
            char words[512];
            snprintf(words, sizeof words, "%s%s%s%s%s", s->of->name, *first->model ? ": " : "", first->model,
                     *first->data ? " on " : "", first->judged_on);
            table_html_part(t, out,
                            &(table_part){.id = id,
                                          .caption = words,
                                          .columns = columns,
                                          .heads = heads,
                                          .column_count = has_paper(t, row, rows) ? COUNT(columns) : COUNT(columns) - 3,
                                          .first = row,
                                          .rows = rows});
            row += rows;
        }
    }
    if (!row)
        text_string(out, "<p>There are no cells.</p>\n");
    text_string(
        out,
        "<p class=\"soft\">Accuracy of the last epoch in percent (or the study's metric); failed runs are counted, not "
        "averaged. Bold: the best mean; bold grey: not distinguishable from it (difference of means, pooled or "
        "Welch as for contrasts, Holm over the table, p at least 0.05; the best was picked after the fact, so this is "
        "no "
        "registered test).</p>\n");
    if (table_rows(&p->tables->aa)) {
        table_html(&p->tables->aa, out);
        text_string(out,
                    "<p class=\"soft\">With disjoint seeds the two differ as any two runs do, so intervals should hold "
                    "0. With equal seeds they differ by rounding at most; identical: pairs that are right about the "
                    "same test images.</p>\n");
    }
    text_string(out, "<details><summary>More of each cell: test-image deviation, best epoch, loss, speed</summary>\n");
    table_html_part(&p->tables->cells, out,
                    &(table_part){.id = "cells",
                                  .caption = "best: chosen on the images that judge; "
                                             "images_sd: the deviation that "
                                             "independent errors on the test "
                                             "images alone would give"});
    text_string(out, "</details>\n");
}

/* ---- contrasts ------------------------------------------------------------------------------- */

void contrasts_write(text *out, const page_parts *p)
{
    static const char *const all[] = {"name",       "a",    "b",          "failures", "n",
                                      "difference", "low",  "high",       "p_holm",   "verdict",
                                      "paper",      "size", "detectable", "failed_a", "failed_b"};
    static const char *const all_heads[] = {"contrast",   "a",         "b",          "failed runs", "n",
                                            "a \u2212 b", "95 % from", "to",         "p, Holm",     "verdict",
                                            "paper",      "size",      "detectable", "failed a",    "failed b"};
    const char *columns[COUNT(all)], *heads[COUNT(all)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (p->of_paper || (strcmp(all[i], "paper") != 0 && strcmp(all[i], "size") != 0)) {
            columns[count] = all[i];
            heads[count++] = all_heads[i];
        }
    const table *t = &p->tables->contrasts;
    if (!table_rows(t))
        return;
    table_html_part(t, out,
                    &(table_part){.id = "contrasts",
                                  .caption = "The second line of each contrast counts failed runs as chance",
                                  .columns = columns,
                                  .heads = heads,
                                  .column_count = count});
    text_string(out,
                "<p class=\"soft\"><em>detectable</em> is the difference that this test would have found with 80 % "
                "power at the first Holm step.</p>\n"
                "<details class=\"screen\"><summary>All columns: paired view, sign flips, per-image interval, "
                "Levene</summary>\n");
    table_html_part(t, out, &(table_part){.id = "contrasts-all", .caption = "as in contrasts.csv"});
    text_string(out, "</details>\n");
}
