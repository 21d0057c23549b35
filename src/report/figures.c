/* figures.c - see figures.h. SPDX-License-Identifier: MIT */
#include "report/figures.h"

#include <stdio.h>

#include "report/table.h"
#include "study/runs.h"

static berlu_status page_put(text *page, svg_figure *figure, const char *look, const char *caption)
{
    figure->inside_page = 1;
    text_add(page, *look ? "<figure class=\"%s\">" : "<figure>%s", look);
    TRY(svg_write(page, figure));
    if (caption) {
        text_string(page, "<figcaption>");
        html_text(page, caption);
        text_string(page, "</figcaption>");
    }
    text_string(page, "</figure>\n");
    return BERLU_OK;
}

/* NAME.svg, NAME-2.svg, ... A caption stays with the page: it wraps, a line of SVG does not. */
static berlu_status file_put(const figures *to, svg_figure *figure)
{
    char path[STUDY_PATH], number[24] = "";
    if (to->shown)
        snprintf(number, sizeof number, "-%zu", to->shown + 1);
    if (snprintf(path, sizeof path, "%s/%s%s.svg", to->folder, to->name, number) >= (int)sizeof path)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", to->folder);
    figure->subtitle = to->heading;
    return svg_save(path, figure);
}

static berlu_status put(figures *to, svg_figure *figure, const char *look, const char *caption)
{
    TRY(to->page ? page_put(to->page, figure, look, caption) : file_put(to, figure));
    to->shown++;
    return BERLU_OK;
}

berlu_status figure_write(figures *to, const svg_plot *plot, int width, int height, const char *caption)
{
    svg_figure figure = {.plots = plot, .count = 1, .width = width, .height = height};
    return put(to, &figure, width == SVG_SMALL_WIDTH ? "small" : "", caption);
}

berlu_status figures_write(figures *to, const svg_plot *plots, size_t count, int columns, const char *caption)
{
    svg_figure figure = {.plots = plots, .count = count, .columns = columns, .width = 440};
    return put(to, &figure, "wide", caption);
}
