/* confusion.c - see confusion.h. SPDX-License-Identifier: MIT
 *
 * The plot shows shares of a row, so that classes of different sizes can be compared: the darker a
 * cell, the larger the share of the label's images predicted so. Colours are those of io/svg.c,
 * including its dark mode. */
#include "confusion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/svg.h"

void confusion_add(confusion *c, const float *logits, size_t classes, size_t label)
{
    size_t best = 0;
    if (!c->counts && !c->failed) {
        c->counts = calloc(classes * classes, sizeof *c->counts);
        c->classes = classes;
        c->failed = !c->counts;
    }
    if (c->failed || label >= classes)
        return;
    for (size_t i = 1; i < classes; i++)
        if (logits[i] > logits[best])
            best = i;
    c->counts[label * classes + best]++;
}

void confusion_free(confusion *c)
{
    free(c->counts);
    *c = (confusion){0};
}

/* One class: its images, the correct predictions, and the most frequent wrong prediction. */
typedef struct class_row {
    uint64_t images, right, most;
    size_t wrong;
} class_row;

static class_row row_of(const confusion *c, size_t label)
{
    class_row row = {0};
    for (size_t i = 0; i < c->classes; i++) {
        uint64_t count = c->counts[label * c->classes + i];
        row.images += count;
        if (i == label) {
            row.right = count;
        } else if (count > row.most) {
            row.most = count;
            row.wrong = i;
        }
    }
    return row;
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100 * (double)part / (double)all : (double)NAN;
}

void confusion_print(const confusion *c, const char *const *names)
{
    printf("%-24s %8s %7s  %s\n", "class", "images", "top1", "most often taken for");
    for (size_t label = 0; label < c->classes; label++) {
        class_row row = row_of(c, label);
        printf("%-24.24s %8llu %7.2f", names[label], (unsigned long long)row.images, percent(row.right, row.images));
        if (row.most)
            printf("  %.24s (%.1f %%)", names[row.wrong], percent(row.most, row.images));
        putchar('\n');
    }
}

void confusion_json(const confusion *c, const char *const *names, output *o)
{
    output_array(o, "per_class");
    for (size_t label = 0; label < c->classes; label++) {
        class_row row = row_of(c, label);
        output_object(o, NULL);
        output_string(o, "name", names[label]);
        output_int(o, "images", (int64_t)row.images);
        output_real(o, "top1", percent(row.right, row.images));
        output_array(o, "answers");
        for (size_t i = 0; i < c->classes; i++)
            output_int(o, NULL, (int64_t)c->counts[label * c->classes + i]);
        output_end(o);
        output_end(o);
    }
    output_end(o);
}

/* ---- the plot -------------------------------------------------------------------------------- */

enum { MARGIN = 130, HEAD = 88, NAMES_MOST = 100, NUMBERS_MOST = 20 };
enum { NAME_MOST = 18 };                                    /* characters that fit into the margin */
static const double faintest = 0.04, faintest_alone = 0.12; /* a cell with its number, and one without */

/* Cells too small for a number say it when the mouse rests on them. Ends the element. */
static void cell_title_write(text *out, const confusion *c, const char *const *names, size_t label, size_t answer,
                             double share)
{
    if (c->classes <= NUMBERS_MOST || c->classes > NAMES_MOST) {
        text_string(out, "/>\n");
        return;
    }
    text_string(out, "><title>");
    html_text(out, names[label]);
    text_string(out, " as ");
    html_text(out, names[answer]);
    text_add(out, ": %.0f %%</title></rect>\n", share);
}

/* Rows are labels, columns predictions; the diagonal is correct. */
static void cells_write(text *out, const confusion *c, const char *const *names, double side)
{
    int numbers = c->classes <= NUMBERS_MOST;
    for (size_t label = 0; label < c->classes; label++) {
        uint64_t images = row_of(c, label).images;
        for (size_t i = 0; i < c->classes; i++) {
            double share = percent(c->counts[label * c->classes + i], images) / 100;
            double x = MARGIN + (double)i * side, y = HEAD + (double)label * side;
            if (!(share > 0))
                continue;
            text_add(
                out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" fill-opacity=\"%.3f\"", x,
                y, side, side, i == label ? "#2f9e5b" : "#d1495b", fmax(numbers ? faintest : faintest_alone, share));
            cell_title_write(out, c, names, label, i, 100 * share);
            if (numbers)
                text_add(out,
                         "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"middle\" class=\"ink\" "
                         "fill=\"#22262e\">%.0f</text>\n",
                         x + side / 2, y + side / 2 + 4, 100 * share);
        }
    }
}

static void names_write(text *out, const confusion *c, const char *const *names, double side)
{
    for (size_t i = 0; c->classes <= NAMES_MOST && i < c->classes; i++) {
        double middle = ((double)i + 0.5) * side + 4;
        int size = c->classes <= NUMBERS_MOST ? 12 : 10;
        text_add(out, "<text x=\"%d\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"end\" class=\"soft\" fill=\"#5b616b\">",
                 MARGIN - 8, HEAD + middle, size);
        svg_words_cut(out, names[i], NAME_MOST);
        text_add(out,
                 "</text>\n<text transform=\"translate(%.1f %.1f) rotate(90)\" font-size=\"%d\" class=\"soft\" "
                 "fill=\"#5b616b\">",
                 MARGIN + middle - 8, HEAD + (double)c->classes * side + 8, size);
        svg_words_cut(out, names[i], NAME_MOST);
        text_string(out, "</text>\n");
    }
}

berlu_status confusion_save(const confusion *c, const char *const *names, const char *title, const char *subtitle,
                            const char *path)
{
    text out = {0};
    double side = c->classes <= NUMBERS_MOST ? 36 : c->classes <= 100 ? 14 : 600.0 / (double)c->classes;
    double width = MARGIN + (double)c->classes * side + 24, height = HEAD + (double)c->classes * side + MARGIN;
    text_add(&out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
             "font-family=\"system-ui, sans-serif\">\n<style>@media (prefers-color-scheme: dark) { .ground { fill: "
             "#14171c } "
             ".ink { fill: #e8eaed } .soft { fill: #aab0ba } .axis { stroke: #6b727d } }</style>\n"
             "<rect class=\"ground\" width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
             "<text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\" class=\"ink\" fill=\"#22262e\">",
             width, height, width, height);
    html_text(&out, title);
    text_string(&out, "</text>\n<text x=\"16\" y=\"46\" font-size=\"12\" class=\"soft\" fill=\"#5b616b\">");
    html_text(&out, subtitle);
    text_string(&out, "</text>\n<text x=\"16\" y=\"66\" font-size=\"12\" class=\"soft\" fill=\"#5b616b\">"
                      "rows: the right class; columns: the answer; percent of the row</text>\n");
    cells_write(&out, c, names, side);
    names_write(&out, c, names, side);
    text_add(&out,
             "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" class=\"axis\" "
             "stroke=\"#c9ced6\"/>\n</svg>\n",
             MARGIN, HEAD, (double)c->classes * side, (double)c->classes * side);
    berlu_status status = file_write_text(NULL, path, &out);
    text_free(&out);
    return status;
}
