/* test_svg.c - plots are well-formed, hold what was given, and refuse what cannot be drawn.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/svg.h"
#include "io/svg_internal.h"
#include "support/fail.h"

static size_t occurrences(const char *where, const char *what)
{
    size_t count = 0;
    for (const char *at = where; (at = strstr(at, what)); at++)
        count++;
    return count;
}

/* Every tag that opens closes, in order; no bare '&' or '<'. Enough of XML for what svg.c
 * writes. */
static void check_well_formed(const char *xml)
{
    char open[32][16];
    size_t depth = 0;
    for (const char *c = xml; *c; c++) {
        if (*c == '&')
            assert_true(strncmp(c, "&lt;", 4) == 0 || strncmp(c, "&gt;", 4) == 0 || strncmp(c, "&amp;", 5) == 0 ||
                        strncmp(c, "&quot;", 6) == 0);
        if (*c != '<')
            continue;
        const char *end = strchr(c, '>');
        assert_non_null(end);
        size_t length = strcspn(c + 1, " />\n");
        if (c[1] == '/') {
            length = strcspn(c + 2, ">");
            assert_true(depth > 0 && strlen(open[depth - 1]) == length);
            assert_memory_equal(open[--depth], c + 2, length);
        } else if (end[-1] != '/') {
            assert_true(depth < 32 && length < 16);
            memcpy(open[depth], c + 1, length);
            open[depth++][length] = '\0';
        }
        c = end;
    }
    assert_int_equal(depth, 0);
}

static char *write(const svg_figure *figure)
{
    text out = {0};
    if (svg_write(&out, figure) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    check_well_formed(out.data);
    assert_null(strstr(out.data, "nan"));
    assert_null(strstr(out.data, "inf"));
    return out.data;
}

static void every_mark_is_drawn_and_named(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3}, y[] = {1, 4, NAN, -2}, high[] = {2, 5, 3, -1};
    svg_series series[] = {{.label = "line & <curve>", .x = x, .y = y, .count = 4},
                           {.label = "dash", .x = x, .y = y, .count = 4, .mark = SVG_DASHED, .color = 9},
                           {.label = "dots", .x = x, .y = y, .count = 4, .mark = SVG_POINTS, .color = 2},
                           {.label = "corners", .x = x, .y = y, .count = 4, .mark = SVG_POLYGON, .color = 3},
                           {.label = "joins", .x = x, .count = 4, .mark = SVG_VERTICALS, .color = SVG_GREY},
                           {.label = "spread", .x = x, .y = y, .y2 = high, .count = 4, .mark = SVG_BAND, .color = 1},
                           {.x = x, .y = y, .count = 4, .color = 4}};
    svg_plot plots[] = {{"first \"plot\"", {.title = "x"}, {.title = "y"}, series, 7}, {"second", {0}, {0}, series, 7}};
    svg_figure figure = {.title = "a <title>", .subtitle = "and more", .plots = plots, .count = 2, .columns = 2};
    char *svg = write(&figure);
    assert_int_equal(occurrences(svg, "line &amp; &lt;curve&gt;"), 2);
    assert_int_equal(occurrences(svg, "spread</text>"), 2);
    assert_int_equal(occurrences(svg, "<circle"),
                     2 * (3 + 3 + 2)); /* three of four points are finite, twice; two swatches */
    assert_non_null(strstr(svg, "first &quot;plot&quot;"));
    free(svg);
}

/* The top of the frame of plot `index`: frames are the rectangles without a fill. */
static double frame_top(const char *svg, int index)
{
    double y = NAN;
    for (const char *at = svg; index >= 0 && (at = strstr(at, "<rect x=")); at++)
        if (strstr(at, "fill=\"none\"") && strstr(at, "fill=\"none\"") < strchr(at, '>')) {
            assert_int_equal(sscanf(at, "<rect x=\"%*f\" y=\"%lf\"", &y), 1);
            index--;
        }
    return index < 0 ? y : NAN;
}

static void a_legend_that_plots_share_leaves_their_frames_aligned(void **state)
{
    (void)state;
    double x[] = {0, 1};
    svg_series named = {.label = "curve", .x = x, .y = x, .count = 2}, bare = {.x = x, .y = x, .count = 2};
    svg_plot shared[] = {{"a", {0}, {0}, &named, 1}, {"b", {0}, {0}, &bare, 1}};
    svg_plot own[] = {{"a", {0}, {0}, &bare, 1}, {"b", {0}, {0}, &named, 1}};
    char *svg = write(&(svg_figure){.plots = shared, .count = 2, .columns = 2});
    assert_int_equal(occurrences(svg, "curve</text>"), 1);
    assert_true(frame_top(svg, 0) == frame_top(svg, 1));
    free(svg);
    svg = write(&(svg_figure){.plots = own, .count = 2, .columns = 2}); /* the second's alone: it stays there */
    assert_int_equal(occurrences(svg, "curve</text>"), 1);
    assert_true(frame_top(svg, 0) < frame_top(svg, 1));
    free(svg);
}

static void a_gap_lifts_the_pen(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3, 4}, y[] = {0, 1, INFINITY, 1, 0};
    svg_series series = {.label = "s", .x = x, .y = y, .count = 5, .width = 2};
    svg_plot plot = {"p", {0}, {0}, &series, 1};
    svg_figure figure = {.plots = &plot, .count = 1};
    char *svg = write(&figure), *path = strstr(svg, "stroke-linejoin");
    assert_non_null(path);
    path[strcspn(path, ">")] = '\0';
    assert_int_equal(occurrences(strstr(path, " d="), "M"), 2);
    free(svg);
}

static void axes_are_those_asked_for(void **state)
{
    (void)state;
    double x[] = {1e-6, 1, 1e6, -1}, y[] = {1, 10, 1000, 5};
    svg_series series = {.x = x, .y = y, .count = 4};
    svg_plot plot = {"log", {.title = "n", .log = 1}, {.title = "t", .low = 1, .high = 1000, .log = 1}, &series, 1};
    svg_scale scale;
    assert_int_equal(svg_scale_make(&scale, &plot, 0), BERLU_OK);
    assert_true(scale.low == -6 && scale.high == 6); /* what is not positive does not count */
    assert_true(svg_scale_map(&scale, 1) == 0.5 && isnan(svg_scale_map(&scale, 0)) && isnan(svg_scale_map(&scale, -1)));
    svg_ticks ticks;
    svg_ticks_make(&ticks, &scale, 5);
    assert_int_equal(ticks.count, 5);
    assert_int_equal(ticks.exponent[1] - ticks.exponent[0], 3);
    assert_int_equal(svg_scale_make(&scale, &plot, 1), BERLU_OK);
    assert_true(fabs(svg_scale_map(&scale, 1000) - 1) < 1e-15);
    svg_figure figure = {.plots = &plot, .count = 1};
    free(write(&figure));
}

static void ticks_are_round_and_cover_the_axis(void **state)
{
    (void)state;
    for (double span = 1e-9; span < 1e12; span *= 1.7)
        for (double low = -3; low <= 3; low += 0.7) {
            svg_scale scale = {.low = low * span, .high = (low + 1) * span};
            svg_ticks ticks;
            svg_ticks_make(&ticks, &scale, 8);
            assert_true(ticks.count >= 2 && ticks.count <= 9);
            for (size_t i = 0; i < ticks.count; i++) {
                double at = svg_scale_map(&scale, ticks.value[i]);
                assert_true(at > -1e-6 && at < 1 + 1e-6);
                assert_false(ticks.value[i] == 0 && signbit(ticks.value[i]));
            }
            double step = ticks.value[1] - ticks.value[0], lead = step / pow(10, floor(log10(step) + 1e-9));
            assert_true(fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 || fabs(lead - 5) < 1e-6);
        }
}

static void a_narrow_logarithmic_axis_has_three_numbers_or_more(void **state)
{
    (void)state;
    for (double low = -3; low < 3; low += 0.037)
        for (double span = 0.02; span < 4; span *= 1.3) {
            svg_scale scale = {.low = low, .high = low + span, .log = 1};
            svg_ticks ticks;
            svg_ticks_make(&ticks, &scale, 8);
            assert_true(ticks.count >= (span > 2 ? 2 : 3));
            for (size_t i = 0; i < ticks.count; i++) {
                double at = svg_scale_map(&scale, ticks.value[i]);
                assert_true(at > -1e-6 && at < 1 + 1e-6);
            }
        }
}

static void empty_and_constant_series_have_an_axis_too(void **state)
{
    (void)state;
    double x[] = {2, 2}, y[] = {7, 7}, none[] = {NAN};
    svg_series series[] = {{.label = "constant", .x = x, .y = y, .count = 2},
                           {.label = "nothing", .x = none, .y = none, .count = 1, .mark = SVG_POINTS, .color = 1}};
    svg_plot plots[] = {{"a", {0}, {0}, &series[0], 1}, {"b", {0}, {0}, &series[1], 1}, {NULL, {0}, {0}, NULL, 0}};
    svg_figure figure = {.plots = plots, .count = 3, .width = 50, .height = 50}; /* also: hardly any space */
    free(write(&figure));
    figure = (svg_figure){0};
    free(write(&figure));
    double zero[] = {0, 0};
    svg_series flat = {.x = y, .y = zero, .count = 2};
    svg_plot share = {"share", {0}, {0}, &flat, 1};
    char *svg = write(&(svg_figure){.plots = &share, .count = 1});
    assert_null(strstr(svg, ">\u22121")); /* no negative shares on the axis */
    free(svg);
    double nearly[] = {0.3, 0.3 + 1e-11}; /* a constant with rounding errors is one */
    svg_series noise = {.x = y, .y = nearly, .count = 2};
    svg_plot slope = {"slope", {0}, {0}, &noise, 1};
    svg = write(&(svg_figure){.plots = &slope, .count = 1});
    assert_null(strstr(svg, ">0.30000"));
    free(svg);
}

/* The number behind the n-th occurrence of `key="`, as in x="12.5". */
static double attribute(const char *where, const char *key, size_t n)
{
    char words[32];
    snprintf(words, sizeof words, " %s=\"", key);
    for (const char *at = where; (at = strstr(at, words)); at++)
        if (n-- == 0)
            return strtod(at + strlen(words), NULL);
    fail_msg("no attribute %s", key);
    return NAN;
}

static const char *const functions[] = {"relu", "gelu", "a function with a long name", "berlu"};

static void bars_stand_side_by_side_on_zero_with_their_whiskers(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3}, a[] = {4, 2, NAN, -1}, b[] = {1, 2, 3, 4}, low[] = {3, 1, 2, 3}, high[] = {5, 3, 4, 5};
    svg_series series[] = {{.label = "forward", .x = x, .y = a, .count = 4, .mark = SVG_BARS},
                           {.x = x, .y = low, .y2 = high, .count = 4, .mark = SVG_ERRORS},
                           {.label = "backward", .x = x, .y = b, .count = 4, .mark = SVG_BARS, .color = 1}};
    svg_plot plot = {"cost", {.names = functions, .name_count = 4}, {0}, series, 3};
    svg_figure figure = {.plots = &plot, .count = 1};
    double width, left = svg_bar_place(&plot, 0, &width), right = svg_bar_place(&plot, 2, &width);
    assert_true(fabs(right - left - width) < 1e-12 && fabs(left + right) < 1e-12); /* touching, around the middle */
    char *svg = write(&figure), *bars = strstr(svg, "<g fill=\"#2b7bba\" fill-opacity");
    assert_non_null(bars);
    assert_int_equal(occurrences(svg, "<rect x="), 3 + 4 + 2 + 1); /* finite bars, swatches, the frame */
    assert_int_equal(occurrences(svg, "a function with a long name</text>"), 1);
    /* 4 is twice as high as 2 and both end where -1 begins: at zero */
    double high_bar = attribute(bars, "height", 0), half = attribute(bars, "height", 1), base = attribute(bars, "y", 2);
    assert_true(fabs(high_bar - 2 * half) < 0.02);
    assert_true(fabs(attribute(bars, "y", 0) + high_bar - base) < 0.02);
    char *whisker = strstr(svg, "class=\"line\"");
    assert_non_null(whisker);
    double at = strtod(strstr(whisker, " d=\"M") + 5, NULL) + 4,
           bar = attribute(bars, "x", 0) + attribute(bars, "width", 0) / 2;
    assert_true(fabs(at - bar) < 0.02); /* over the middle of its bar */
    free(svg);
}

static void categories_run_from_top_to_bottom(void **state)
{
    (void)state;
    double y[] = {0, 1, 2, 3}, middle[] = {1, 0, -1, 0.5}, low[] = {0.5, -1, -2, 0}, high[] = {1.5, 1, 0, 1};
    svg_series series[] = {{.x = low, .x2 = high, .y = y, .count = 4, .mark = SVG_INTERVALS},
                           {.x = middle, .y = y, .count = 4, .mark = SVG_POINTS}};
    svg_plot plot = {"forest", {.title = "difference, points"}, {.names = functions, .name_count = 4}, series, 2};
    svg_figure figure = {.plots = &plot, .count = 1, .width = SVG_SMALL_WIDTH, .height = SVG_SMALL_HEIGHT};
    svg_scale scale;
    assert_int_equal(svg_scale_make(&scale, &plot, 1), BERLU_OK);
    assert_true(svg_scale_map(&scale, 0) == 0.875 && svg_scale_map(&scale, 3) == 0.125);
    assert_int_equal(svg_scale_make(&scale, &plot, 0), BERLU_OK);
    assert_true(scale.low < -2 && scale.low > -2.5 && scale.high > 1.5 &&
                scale.high < 2); /* whole intervals, with a margin */
    char *svg = write(&figure);
    assert_true(attribute(svg, "cy", 0) < attribute(svg, "cy", 1) && attribute(svg, "cy", 2) < attribute(svg, "cy", 3));
    assert_non_null(strstr(svg, "width=\"320\""));
    free(svg);
}

/* What does not fit beside an axis: in two lines where a row is high enough, else without its middle and with the whole as
 * a title. No character of UTF-8 is cut in two. */
static void long_names_are_wrapped_or_lose_their_middle(void **state)
{
    (void)state;
    static const char *const names[] = {
        "relu", "smooth(kinks=0,1; slopes=0,1,0.2; eps=0.3)",
        "\u03b1 smooth(kinks=-1,0,1.5; slopes=0,0.25,1,0.2; eps=0.3,0.2,0.1; degree=4) \u03b1\u03b1\u03b1"};
    static const double x[] = {1, 2, 3}, y[] = {0, 1, 2};
    svg_series dots = {.label = names[2], .x = x, .y = y, .count = 3, .mark = SVG_POINTS};
    svg_plot plot = {.title = "t", .y = {.names = names, .name_count = 3}, .series = &dots, .count = 1};
    svg_figure figure = {.plots = &plot, .count = 1};
    char *tall = write(&figure);
    assert_non_null(strstr(tall, ">smooth(kinks=0,1; slopes=0,1,0.2; <tspan"));
    assert_non_null(strstr(tall, ">eps=0.3)</tspan>"));
    assert_null(strstr(tall, "<title>smooth(kinks=0,1")); /* it is whole */
    assert_non_null(strstr(tall, "degree=4) \u03b1\u03b1\u03b1</tspan>"));
    free(tall);
    figure.height = 90; /* rows of a line */
    char *flat = write(&figure);
    assert_null(strstr(flat, "<tspan"));
    assert_non_null(strstr(flat, "<title>smooth(kinks=0,1; slopes=0,1,0.2; eps=0.3)</title>smooth(kinks=0,1; "));
    assert_non_null(strstr(flat, "\u2026"));
    assert_non_null(strstr(flat, "eps=0.3)</text>"));
    assert_int_equal(utf8_span(flat), strlen(flat));
    assert_non_null(strstr(flat, "</title>\u03b1 smooth("));
    assert_true(occurrences(flat, "\u2026") >= 2);
    free(flat);
}

static void stacks_add_up(void **state)
{
    (void)state;
    double x[] = {0, 1, 2}, left[] = {0.5, 0.25, 0}, inside[] = {0.25, NAN, 0.5}, right[] = {0.25, 0.75, 0.5};
    svg_series series[] = {{.label = "left", .x = x, .y = left, .count = 3, .mark = SVG_STACK},
                           {.label = "inside", .x = x, .y = inside, .count = 3, .mark = SVG_STACK, .color = 1},
                           {.label = "right", .x = x, .y = right, .count = 3, .mark = SVG_STACK, .color = 2}};
    svg_plot plot = {"occupancy", {.title = "epoch"}, {0}, series, 3};
    svg_figure figure = {.plots = &plot, .count = 1};
    for (size_t i = 0; i < 3; i++)
        assert_true(svg_stacked(&plot, 2, i) == 1 && svg_stacked(&plot, 0, i) == left[i]);
    svg_scale scale;
    assert_int_equal(svg_scale_make(&scale, &plot, 1), BERLU_OK);
    assert_true(scale.low == 0 && scale.high > 1 && scale.high < 1.2);
    char *svg = write(&figure), *second = strstr(svg, "fill=\"#e07b1a\" fill-opacity=\"0.7\" stroke=\"none\"");
    assert_non_null(second);
    second[strcspn(second, ">")] = '\0';
    assert_int_equal(occurrences(second, "L"), 5); /* six corners: there and back */
    free(svg);
}

static void points_have_titles_and_rings_are_hollow(void **state)
{
    (void)state;
    static const char *const titles[] = {"seed 0 & more", NULL, "seed <2>"};
    double x[] = {0, 1, 2}, y[] = {1, 2, 3};
    svg_series series[] = {
        {.label = "judged", .x = x, .y = y, .count = 3, .mark = SVG_POINTS, .titles = titles},
        {.label = "shown", .x = x, .y = y, .count = 3, .mark = SVG_HOLLOW, .color = 1, .titles = titles},
        {.x = x, .y = y, .count = 3, .mark = SVG_BARS, .color = 2, .titles = titles}};
    svg_plot plot = {NULL, {0}, {0}, series, 3};
    svg_figure figure = {.plots = &plot, .count = 1};
    char *svg = write(&figure);
    assert_int_equal(occurrences(svg, "<title>seed 0 &amp; more</title>"), 3);
    assert_int_equal(occurrences(svg, "<title>seed &lt;2&gt;</title></circle>"), 2);
    assert_int_equal(occurrences(svg, "<title>seed &lt;2&gt;</title></rect>"), 1);
    assert_int_equal(occurrences(svg, "<circle"), 3 + 3 + 2);
    char *rings = strstr(svg, "<g class=\"ground\""); /* filled with the ground, in dark mode too */
    assert_non_null(rings);
    assert_non_null(strstr(rings, "stroke=\"#e07b1a\""));
    free(svg);
}

static void a_figure_inside_a_page_brings_no_address_and_no_style(void **state)
{
    (void)state;
    double x[] = {0, 1}, y[] = {1, 2};
    svg_series series[SVG_SHADES];
    for (int i = 0; i < SVG_SHADES; i++)
        series[i] = (svg_series){.x = x, .y = y, .count = 2, .color = SVG_SHADE + i};
    svg_plot plot = {"plot", {0}, {0}, series, SVG_SHADES};
    svg_figure figure = {.plots = &plot, .count = 1};
    char *alone = write(&figure);
    figure.inside_page = 1;
    char *inside = write(&figure);
    assert_non_null(strstr(alone, "http://"));
    assert_non_null(strstr(alone, "<style>"));
    assert_null(strstr(inside, "http"));
    assert_null(strstr(inside, "<style>"));
    assert_null(strstr(inside, "stroke-dasharray")); /* the shades are told apart by colour alone */
    for (int i = 0; i < SVG_SHADES; i++)             /* each of them once */
        assert_int_equal(occurrences(inside, svg_color(&series[i])), 1);
    free(alone);
    free(inside);
}

static void axes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const svg_axis bad[] = {{.title = "a", .low = 2, .high = 1},
                                   {.title = "b", .high = INFINITY},
                                   {.title = "c", .low = NAN, .high = 1},
                                   {.title = "d", .high = 10, .log = 1},
                                   {.title = "e", .low = -1, .high = 10, .log = 1}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        svg_plot plot = {"broken", bad[i], {0}, NULL, 0};
        svg_figure figure = {.plots = &plot, .count = 1};
        text out = {0};
        assert_int_equal(svg_write(&out, &figure), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "plot 'broken'"));
        text_free(&out);
    }
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    double x[] = {0, 1}, y[] = {0, 1};
    svg_series series = {.label = "s", .x = x, .y = y, .count = 2};
    svg_plot plot = {"p", {0}, {0}, &series, 1};
    svg_figure figure = {.plots = &plot, .count = 1};
    text out = {0};
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = svg_write(&out, &figure), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        text_free(&out);
        out = (text){0};
    }
    assert_int_equal(status, BERLU_OK);
    text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mark_is_drawn_and_named),
        cmocka_unit_test(a_legend_that_plots_share_leaves_their_frames_aligned),
        cmocka_unit_test(a_gap_lifts_the_pen),
        cmocka_unit_test(axes_are_those_asked_for),
        cmocka_unit_test(ticks_are_round_and_cover_the_axis),
        cmocka_unit_test(a_narrow_logarithmic_axis_has_three_numbers_or_more),
        cmocka_unit_test(empty_and_constant_series_have_an_axis_too),
        cmocka_unit_test(bars_stand_side_by_side_on_zero_with_their_whiskers),
        cmocka_unit_test(categories_run_from_top_to_bottom),
        cmocka_unit_test(long_names_are_wrapped_or_lose_their_middle),
        cmocka_unit_test(stacks_add_up),
        cmocka_unit_test(points_have_titles_and_rings_are_hollow),
        cmocka_unit_test(a_figure_inside_a_page_brings_no_address_and_no_style),
        cmocka_unit_test(axes_that_cannot_be_are_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
