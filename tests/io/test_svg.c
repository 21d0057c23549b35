/* test_svg.c - plots are well-formed, hold what was given, and refuse what cannot be drawn. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/svg.h"
#include "support/fail.h"

static size_t occurrences(const char *where, const char *what)
{
    size_t count = 0;
    for (const char *at = where; (at = strstr(at, what)); at++)
        count++;
    return count;
}

/* Every tag that opens closes, in order; no bare '&' or '<'. Enough of XML for what svg.c writes. */
static void check_well_formed(const char *xml)
{
    char open[32][16];
    size_t depth = 0;
    for (const char *c = xml; *c; c++) {
        if (*c == '&')
            assert_true(strncmp(c, "&lt;", 4) == 0 || strncmp(c, "&amp;", 5) == 0 || strncmp(c, "&quot;", 6) == 0);
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
    svg_series series[] = {{"line & <curve>", x, y, NULL, 4, SVG_LINE, 0, 0},
                           {"dash", x, y, NULL, 4, SVG_DASHED, 9, 0},
                           {"dots", x, y, NULL, 4, SVG_POINTS, 2, 0},
                           {"corners", x, y, NULL, 4, SVG_POLYGON, 3, 0},
                           {"joins", x, NULL, NULL, 4, SVG_VERTICALS, SVG_GREY, 0},
                           {"spread", x, y, high, 4, SVG_BAND, 1, 0},
                           {NULL, x, y, NULL, 4, SVG_LINE, 4, 0}};
    svg_plot plots[] = {{"first \"plot\"", {"x", 0, 0, 0}, {"y", 0, 0, 0}, series, 7}, {"second", {0}, {0}, series, 7}};
    svg_figure figure = {.title = "a <title>", .subtitle = "and more", .plots = plots, .count = 2, .columns = 2};
    char *svg = write(&figure);
    assert_int_equal(occurrences(svg, "line &amp; &lt;curve>"), 2);
    assert_int_equal(occurrences(svg, "spread</text>"), 2);
    assert_int_equal(occurrences(svg, "<circle"),
                     2 * (3 + 3 + 2)); /* three of four points are finite, twice; two swatches */
    assert_non_null(strstr(svg, "first &quot;plot&quot;"));
    free(svg);
}

static void a_gap_lifts_the_pen(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3, 4}, y[] = {0, 1, INFINITY, 1, 0};
    svg_series series = {"s", x, y, NULL, 5, SVG_LINE, 0, 2};
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
    svg_series series = {NULL, x, y, NULL, 4, SVG_LINE, 0, 0};
    svg_plot plot = {"log", {"n", 0, 0, 1}, {"t", 1, 1000, 1}, &series, 1};
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
            svg_scale scale = {low * span, (low + 1) * span, 0};
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

static void empty_and_constant_series_have_an_axis_too(void **state)
{
    (void)state;
    double x[] = {2, 2}, y[] = {7, 7}, none[] = {NAN};
    svg_series series[] = {{"constant", x, y, NULL, 2, SVG_LINE, 0, 0},
                           {"nothing", none, none, NULL, 1, SVG_POINTS, 1, 0}};
    svg_plot plots[] = {{"a", {0}, {0}, &series[0], 1}, {"b", {0}, {0}, &series[1], 1}, {NULL, {0}, {0}, NULL, 0}};
    svg_figure figure = {.plots = plots, .count = 3, .width = 50, .height = 50}; /* also: hardly any room */
    free(write(&figure));
    figure = (svg_figure){0};
    free(write(&figure));
}

static void axes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const svg_axis bad[] = {
        {"a", 2, 1, 0}, {"b", 0, INFINITY, 0}, {"c", NAN, 1, 0}, {"d", 0, 10, 1}, {"e", -1, 10, 1}};
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
    svg_series series = {"s", x, y, NULL, 2, SVG_LINE, 0, 0};
    svg_plot plot = {"p", {0}, {0}, &series, 1};
    svg_figure figure = {.plots = &plot, .count = 1};
    text out = {0};
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = svg_write(&out, &figure), fail_hit(); n++) {
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
        cmocka_unit_test(a_gap_lifts_the_pen),
        cmocka_unit_test(axes_are_those_asked_for),
        cmocka_unit_test(ticks_are_round_and_cover_the_axis),
        cmocka_unit_test(empty_and_constant_series_have_an_axis_too),
        cmocka_unit_test(axes_that_cannot_be_are_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
