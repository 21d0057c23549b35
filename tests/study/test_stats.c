/* test_stats.c - the statistics against SciPy and mpmath, and what their definitions promise.
 * SPDX-License-Identifier: MIT
 *
 * tests/golden/stats.tsv holds data and expected values (tools/golden_stats.py). Distributions
 * come from 40 digits and must hold to tail_bound(); SciPy's statistics carry its own rounding,
 * a few units of 1e-12 of the largest operand. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"
#include "base/status.h"
#include "simd/normal.h"
#include "study/stats.h"

/* -- the golden file -- */

enum { FIELDS = 24, NAMED = 16, VALUES = 16, RUNS = 8, BYTES = 32 };

typedef struct named {
    char name[16];
    double values[VALUES];
    uint8_t bits[RUNS][BYTES];
    const uint8_t *runs[RUNS];
    size_t count, images;
} named;

typedef struct golden {
    named data[NAMED];
    size_t count, checked;
} golden;

typedef struct row {
    char *field[FIELDS];
    size_t count;
} row;

static double number(const row *r, size_t i)
{
    char *end;
    assert_true(i < r->count);
    double value = strtod(r->field[i], &end);
    assert_true(end != r->field[i] && *end == '\0');
    return value;
}

static named *find(golden *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->data[i].name, name) == 0)
            return &g->data[i];
    fail_msg("no data '%s'", name);
    return NULL;
}

static stats_sample sample(golden *g, const char *name)
{
    named *n = find(g, name);
    return (stats_sample){n->values, n->count};
}

static stats_images images(golden *g, const char *name)
{
    named *n = find(g, name);
    return (stats_images){n->runs, n->count, n->images};
}

static void add_data(golden *g, const row *r)
{
    assert_true(g->count < NAMED && strlen(r->field[1]) < sizeof g->data[0].name);
    named *n = &g->data[g->count++];
    strcpy(n->name, r->field[1]);
    n->count = r->count - 2;
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(r->field[0], "sample") == 0) {
            n->values[i] = number(r, i + 2);
            continue;
        }
        n->images = strlen(r->field[i + 2]);
        n->runs[i] = n->bits[i];
        assert_true(n->images <= 8 * BYTES && i < RUNS);
        for (size_t k = 0; k < n->images; k++)
            n->bits[i][k / 8] |= (uint8_t)((r->field[i + 2][k] == '1') << k % 8);
    }
}

static void check(const row *r, double got, double want, double relative, double scale)
{
    if (!(fabs(got - want) <= relative * fmax(fabs(want), scale)))
        fail_msg("%s %s %s: %.17g instead of %.17g", r->field[0], r->field[1], r->count > 2 ? r->field[2] : "", got,
                 want);
}

/* -- one function per kind of line -- */

/* A tail is the exponential of a sum of terms as large as its own logarithm, each rounded, times
 * a short continued fraction. */
static double tail_bound(double p)
{
    return 2 * DBL_EPSILON * (10 + fabs(log(fmax(fabs(p), DBL_MIN))));
}

static void distribution(golden *g, const row *r)
{
    (void)g;
    double x = number(r, 1), y = number(r, 2), z = r->count > 4 ? number(r, 3) : 0;
    const char *kind = r->field[0];
    double got = strcmp(kind, "t_sides") == 0      ? stats_t_sides(y, x)
                 : strcmp(kind, "t_cdf") == 0      ? stats_t_cdf(y, x)
                 : strcmp(kind, "t_quantile") == 0 ? stats_t_quantile(y, x)
                 : strcmp(kind, "f_upper") == 0    ? stats_f_upper(z, x, y)
                 : strcmp(kind, "beta") == 0       ? stats_beta(x, 1 - x, y, z)
                 : strcmp(kind, "power") == 0      ? stats_t_power(x, y, z)
                                                   : stats_detectable((stats_estimate){0, 1, x}, y, 0.8);
    double want = number(r, r->count - 1);
    check(r, got, want, tail_bound(want), 0);
}

static void one_sample(golden *g, const row *r)
{
    stats_sample s = sample(g, r->field[1]);
    const char *kind = r->field[0];
    double want = number(r, 2);
    if (strcmp(kind, "mean") == 0)
        check(r, stats_mean(s), want, 1e-15, 0);
    else if (strcmp(kind, "deviation") == 0)
        check(r, stats_deviation(s), want, 1e-13, 0);
    else {
        stats_interval got =
            strcmp(kind, "interval") == 0 ? stats_range(stats_of_mean(s), 0.95) : stats_prediction(s, 0.95);
        check(r, got.low, want, 1e-13, 0);
        check(r, got.high, number(r, 3), 1e-13, 0);
    }
}

static void two_samples(golden *g, const row *r)
{
    stats_sample a = sample(g, r->field[1]), b = sample(g, r->field[2]), both[] = {a, b};
    const char *kind = r->field[0];
    if (strcmp(kind, "welch") == 0) {
        stats_estimate e = stats_welch(a, b);
        check(r, e.value, number(r, 3), 1e-13, 100);
        check(r, e.error, number(r, 4), 1e-12, 0);
        check(r, e.df, number(r, 5), 1e-12, 0);
        check(r, stats_p(e), number(r, 6), 1e-11, 0); /* of a power of the statistic, up to the degrees of freedom */
    } else if (strcmp(kind, "pooled_two") == 0) {
        check(r, stats_p(stats_pooled(a, b, both, 2)), number(r, 3), 1e-11, 0);
    } else if (strcmp(kind, "paired") == 0) {
        stats_estimate e = stats_paired(a, b);
        stats_interval range = stats_range(e, 0.95);
        check(r, e.value, number(r, 3), 1e-13, 100);
        check(r, range.low, number(r, 4), 1e-13, 100);
        check(r, range.high, number(r, 5), 1e-13, 100);
        check(r, stats_p(e), number(r, 6), 1e-11, 0);
    } else {
        check(r, stats_correlation(a, b), number(r, 3), 1e-12, 0);
    }
}

static void pooled(golden *g, const row *r)
{
    stats_sample cells[] = {sample(g, "gelu"), sample(g, "berlu"), sample(g, "relu"), sample(g, "silu")};
    stats_estimate e = stats_pooled(sample(g, r->field[1]), sample(g, r->field[2]), cells, COUNT(cells));
    stats_interval range = stats_range(e, 0.95);
    check(r, e.value, number(r, 3), 1e-13, 100);
    check(r, e.error, number(r, 4), 1e-12, 0);
    check(r, e.df, number(r, 5), 0, 0);
    check(r, range.low, number(r, 6), 1e-13, 100);
    check(r, range.high, number(r, 7), 1e-13, 100);
    check(r, stats_p(e), number(r, 8), 1e-11, 0);
}

static void levene(golden *g, const row *r)
{
    stats_sample cells[8];
    size_t count = 0;
    char *rest = NULL;
    double want = number(r, 2);
    for (char *name = strtok_r(r->field[1], ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        cells[count++] = sample(g, name);
    check(r, stats_levene(cells, count), want, 1e-11, 0);
}

static void sign_flip(golden *g, const row *r)
{
    (void)g;
    double difference[VALUES], zero[VALUES] = {0};
    size_t n = r->count - 2;
    for (size_t i = 0; i < n; i++)
        difference[i] = number(r, i + 1);
    check(r, stats_sign_flip((stats_sample){difference, n}, (stats_sample){zero, n}), number(r, r->count - 1), 0, 0);
}

static void holm(golden *g, const row *r)
{
    (void)g;
    double p[VALUES] = {0}, got[VALUES];
    size_t n = (r->count - 1) / 2;
    for (size_t i = 0; i < n; i++)
        p[i] = number(r, i + 1);
    stats_holm(got, p, n);
    for (size_t i = 0; i < n; i++)
        check(r, got[i], number(r, n + i + 1), 1e-15, 0);
}

static void equivalence(golden *g, const row *r)
{
    (void)g;
    stats_estimate e = {number(r, 1), number(r, 2), number(r, 3)};
    double margin = number(r, 4), p = stats_p_equivalent(e, margin);
    check(r, p, number(r, 5), 1e-12, 0);
    stats_interval range = stats_range(e, 0.90);
    assert_int_equal(p<0.05, range.low> - margin && range.high < margin);
}

static void per_image(golden *g, const row *r)
{
    if (strcmp(r->field[0], "images_deviation") == 0) {
        check(r, stats_images_deviation(images(g, r->field[1])), number(r, 2), 1e-13, 0);
        return;
    }
    stats_estimate seeds = {0, number(r, 3), number(r, 4)};
    stats_estimate e = stats_crossed(images(g, r->field[1]), images(g, r->field[2]), seeds);
    check(r, e.value, number(r, 5), 1e-12, 0);
    check(r, e.error, number(r, 6), 1e-12, 0);
    check(r, e.df, number(r, 7), 1e-12, 0);
}

static const struct {
    const char *kind;
    void (*check)(golden *, const row *);
    size_t least; /* lines of this kind that the file has at least, so that an empty file fails */
} kinds[] = {
    {"t_sides", distribution, 50},
    {"t_cdf", distribution, 50},
    {"t_quantile", distribution, 50},
    {"f_upper", distribution, 20},
    {"beta", distribution, 20},
    {"power", distribution, 20},
    {"detectable", distribution, 8},
    {"mean", one_sample, 5},
    {"deviation", one_sample, 5},
    {"interval", one_sample, 5},
    {"prediction", one_sample, 5},
    {"welch", two_samples, 3},
    {"pooled_two", two_samples, 3},
    {"paired", two_samples, 2},
    {"correlation", two_samples, 2},
    {"pooled", pooled, 6},
    {"levene", levene, 4},
    {"sign_flip", sign_flip, 15},
    {"holm", holm, 12},
    {"equivalence", equivalence, 4},
    {"images_deviation", per_image, 6},
    {"crossed", per_image, 3},
};

static void every_statistic_agrees_with_scipy(void **state)
{
    (void)state;
    char path[4096], line[8192];
    snprintf(path, sizeof path, "%s/tests/golden/stats.tsv", getenv("BERLU_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    golden g = {0};
    size_t seen[COUNT(kinds)] = {0};
    while (fgets(line, sizeof line, file)) {
        row r = {0};
        char *rest = NULL;
        for (char *f = strtok_r(line, "\t\n", &rest); f; f = strtok_r(NULL, "\t\n", &rest)) {
            assert_true(r.count < FIELDS);
            r.field[r.count++] = f;
        }
        if (!r.count || *r.field[0] == '#')
            continue;
        if (strcmp(r.field[0], "sample") == 0 || strcmp(r.field[0], "bits") == 0) {
            add_data(&g, &r);
            continue;
        }
        size_t k = 0;
        while (k < COUNT(kinds) && strcmp(kinds[k].kind, r.field[0]) != 0)
            k++;
        assert_true(k < COUNT(kinds));
        kinds[k].check(&g, &r);
        seen[k]++;
    }
    fclose(file);
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (seen[k] < kinds[k].least)
            fail_msg("%zu lines of %s", seen[k], kinds[k].kind);
}

/* -- coverage -- */

static double normal(uint32_t epoch, uint64_t index, uint32_t draw)
{
    return normal_of_word(philox_draw(29, PURPOSE_TEST, epoch, index, draw).w[0]);
}

/* 40,000 samples: the share has a deviation of 0.0011, so 0.95 +- 0.01 is nine of them. */
static void t_intervals_cover_what_they_promise(void **state)
{
    (void)state;
    enum { TRIALS = 40000 };
    static const size_t sizes[] = {3, 5, 10};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        size_t hits = 0;
        for (size_t trial = 0; trial < TRIALS; trial++) {
            double values[10];
            for (size_t i = 0; i < sizes[k]; i++)
                values[i] = 70 + 0.4 * normal((uint32_t)k, trial, (uint32_t)i);
            stats_interval range = stats_range(stats_of_mean((stats_sample){values, sizes[k]}), 0.95);
            hits += range.low <= 70 && 70 <= range.high;
        }
        double share = (double)hits / TRIALS;
        if (!(fabs(share - 0.95) <= 0.01))
            fail_msg("%zu values: %.4f", sizes[k], share);
    }
}

/* Seeds and images drawn anew in every trial: arms with an effect per seed, a difficulty per
 * image and one that differs between the arms. Only the crossed interval covers the difference
 * over all images; that over seeds alone must fall short, or the second interval would be
 * superfluous. */
static void the_crossed_interval_covers_new_seeds_and_new_images(void **state)
{
    (void)state;
    enum { TRIALS = 3000, SEEDS = 4, IMAGES = 200 };
    size_t crossed = 0, alone = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        uint8_t bits[2][SEEDS][IMAGES / 8] = {0};
        const uint8_t *runs[2][SEEDS];
        double top1[2][SEEDS] = {0};
        for (uint32_t arm = 0; arm < 2; arm++)
            for (uint32_t seed = 0; seed < SEEDS; seed++) {
                double effect = 0.05 * normal(100, trial, arm * SEEDS + seed);
                runs[arm][seed] = bits[arm][seed];
                for (uint32_t i = 0; i < IMAGES; i++) {
                    double hard = normal(101, trial, i) + 1.5 * normal(102 + arm, trial, i);
                    double own = normal(110 + arm * SEEDS + seed, trial, i);
                    int right = 0.5 + effect + hard + own > 0;
                    bits[arm][seed][i / 8] |= (uint8_t)(right << i % 8);
                    top1[arm][seed] += 100.0 * right / IMAGES;
                }
            }
        stats_sample a = {top1[0], SEEDS}, b = {top1[1], SEEDS}, both[] = {a, b};
        stats_estimate seeds = stats_pooled(a, b, both, 2);
        stats_images ia = {runs[0], SEEDS, IMAGES}, ib = {runs[1], SEEDS, IMAGES};
        stats_interval over_seeds = stats_range(seeds, 0.95),
                       over_both = stats_range(stats_crossed(ia, ib, seeds), 0.95);
        alone += over_seeds.low <= 0 && 0 <= over_seeds.high; /* the arms are alike: the true difference is 0 */
        crossed += over_both.low <= 0 && 0 <= over_both.high;
    }
    double share = (double)crossed / TRIALS; /* a deviation of 0.004 */
    if (!(fabs(share - 0.95) <= 0.02))
        fail_msg("crossed: %.4f", share);
    assert_true((double)alone / TRIALS < 0.90);
}

/* -- the rules of a contrast -- */

static void a_contrast_is_judged_by_the_pooled_deviation_unless_levene_objects(void **state)
{
    (void)state;
    double a[] = {78.5, 78.2, 78.8, 78.4, 79.0}, b[] = {70.3, 70.6, 70.2, 70.9, 70.4},
           c[] = {68.1, 68.4, 67.9, 68.5, 68.2}, wild[] = {40, 71, 55, 90, 12};
    stats_sample calm[] = {{a, 5}, {b, 5}, {c, 5}}, mixed[] = {{a, 5}, {b, 5}, {c, 5}, {wild, 5}};
    stats_contrast_input in = {
        .a = calm[0], .b = calm[1], .cells = calm, .count = 3, .pairs = 5, .contrasts = 5, .margin = 0.5};
    stats_contrast judged = stats_contrast_make(&in);
    assert_int_equal(judged.test, STATS_POOLED);
    assert_true(judged.judged.df == 12 && judged.p < 1e-6 && judged.low > 7 && judged.high < 9);
    assert_true(judged.p_equal > 0.99 && judged.p_flip == 2.0 / 32);
    in.cells = mixed, in.count = 4;
    judged = stats_contrast_make(&in);
    assert_true(judged.levene < 0.01);
    assert_int_equal(judged.test, STATS_WELCH);
    assert_string_equal(stats_test_name(judged.test), "welch");
    assert_true(judged.judged.df < 8 && judged.judged.df > 4);
}

/* Figures by exact fractions, the tail by numerical integration of the density, outside of this
 * program. */
static void a_difference_of_differences_has_the_error_of_four_cells(void **state)
{
    (void)state;
    double a[] = {73.1, 73.6, 72.9, 73.4, 73.0}, b[] = {72.0, 72.4, 71.7, 72.2, 71.9, 72.1},
           c[] = {74.2, 74.0, 74.5, 73.9, 74.1}, d[] = {74.1, 73.8, 74.4, 74.0, 74.3, 73.9},
           wild[] = {40, 71, 55, 90, 12};
    stats_sample cells[] = {{a, 5}, {b, 6}, {c, 5}, {d, 6}, {wild, 5}};
    stats_contrast_input in = {
        .a = cells[0], .b = cells[1], .minus = cells + 2, .cells = cells, .count = 4, .expected = {STATS_ABOVE, 0.7}};
    stats_contrast of = stats_contrast_make(&in);
    assert_int_equal(of.test, STATS_POOLED);
    assert_true(fabs(of.judged.value - 1.0933333333333333) < 1e-12);
    assert_true(fabs(of.judged.error - 0.21316544319574762) < 1e-12 && of.judged.df == 18);
    assert_true(fabs(of.p_wrong - 0.04076287812002466) < 1e-9 && fabs(of.p_right - 0.9592371218799753) < 1e-9);
    assert_true(of.low90 > 0.7 && of.p < 1e-3);
    assert_true(isnan(of.paired_low) && isnan(of.p_flip)); /* a hole, not a pair of two of the four */
    in.expected = (stats_expected){STATS_WITHIN, 0.7};
    of = stats_contrast_make(&in);
    assert_true(fabs(of.p_right - 0.040762937528815435) < 1e-9 && of.p_wrong > 0.9);
    in.count = 5; /* a cell of another deviation: one for each */
    of = stats_contrast_make(&in);
    assert_int_equal(of.test, STATS_WELCH);
    assert_true(fabs(of.judged.error - 0.21535500406950792) < 1e-12 && fabs(of.judged.df - 15.852786705052939) < 1e-9);
    stats_sample curved[] = {cells[1], cells[2]}, same[] = {cells[0], cells[1]};
    in.count = 4;
    in.minus = curved; /* (a - b) - (b - c): b counts twice, its variance four times */
    of = stats_contrast_make(&in);
    double df, deviation = stats_pooled_deviation(cells, 4, &df);
    assert_true(fabs(of.judged.error - deviation * sqrt(1.0 / 5 + 4.0 / 6 + 1.0 / 5)) < 1e-12);
    assert_true(fabs(of.judged.value - (stats_mean(cells[0]) - 2 * stats_mean(cells[1]) + stats_mean(cells[2]))) <
                1e-12);
    in.minus = same; /* nothing is left to be tested */
    of = stats_contrast_make(&in);
    assert_true(isnan(of.judged.value) && isnan(of.p_wrong) && isnan(of.p_right));
    stats_sample lacking[] = {{c, 5}, {d, 0}};
    in.minus = lacking;
    of = stats_contrast_make(&in);
    assert_true(isnan(of.judged.value) && isnan(of.p_wrong) && isnan(of.p_right));
}

/* "Held" is the 90 % interval on one side of the limit; "not held" of "within" is it beyond. */
static void predictions_agree_with_intervals_and_contradict_each_other(void **state)
{
    (void)state;
    for (double value = -3; value <= 3; value += 0.01) {
        stats_estimate e = {value, 0.2, 18};
        stats_interval at = stats_range(e, 0.90);
        stats_expected above = {STATS_ABOVE, 1}, below = {STATS_BELOW, 1}, within = {STATS_WITHIN, 0.5};
        assert_int_equal(stats_p_wrong(e, above) < 0.05, at.low > 1);
        assert_int_equal(stats_p_right(e, above) < 0.05, at.high < 1);
        assert_int_equal(stats_p_wrong(e, below) < 0.05, at.high < 1);
        assert_true(fabs(stats_p_wrong(e, above) + stats_p_right(e, above) - 1) < 1e-12);
        assert_true(stats_p_wrong(e, within) == stats_p_equivalent(e, 0.5));
        assert_false(stats_p_wrong(e, within) < 0.05 && stats_p_right(e, within) < 0.05);
        assert_true(!(stats_p_right(e, within) < 0.05) || at.low > 0.5 || at.high < -0.5);
        assert_true(fabs(stats_p_right(e, (stats_expected){STATS_WITHIN, 0}) - stats_p(e)) < 1e-12);
    }
    assert_true(isnan(stats_p_wrong((stats_estimate){1, 1, 9}, (stats_expected){0})));
    assert_true(isnan(stats_p_right((stats_estimate){1, 1, 9}, (stats_expected){0})));
}

/* The sizes that the design of a study rests on: seven cells, deviation 0.3 to 0.5, the first
 * Holm step of five contrasts. */
static void the_detectable_difference_falls_with_the_seeds(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        double sd = wide ? 0.5 : 0.3;
        double three = stats_detectable((stats_estimate){0, sd * sqrt(2.0 / 3), 7 * 2}, 0.01, 0.8);
        double ten = stats_detectable((stats_estimate){0, sd * sqrt(2.0 / 10), 7 * 9}, 0.01, 0.8);
        assert_true(three > (wide ? 1.4 : 0.85) && three < (wide ? 1.65 : 1.0));
        assert_true(ten > (wide ? 0.75 : 0.45) && ten < (wide ? 0.85 : 0.5));
    }
}

static void what_cannot_be_computed_is_not_a_number(void **state)
{
    (void)state;
    double one[] = {5}, same[] = {3, 3, 3}, other[] = {3, 3, 3}, pair[] = {1, 2};
    stats_sample none = {NULL, 0}, single = {one, 1}, flat = {same, 3}, two = {pair, 2};
    assert_true(isnan(stats_mean(none)) && isnan(stats_deviation(single)) && isnan(stats_p(stats_of_mean(single))));
    assert_true(isnan(stats_range(stats_of_mean(single), 0.95).low) && isnan(stats_prediction(single, 0.95).high));
    assert_true(isnan(stats_correlation(flat, flat)) && isnan(stats_sign_flip(none, none)));
    assert_true(isnan(stats_p(stats_welch(single, flat))) && isnan(stats_p(stats_pooled(single, none, &flat, 1))));
    assert_true(isnan(stats_t_quantile(0.5, 0)) && isnan(stats_t_quantile(-0.1, 3)) && isnan(stats_t_sides(1, -1)));
    assert_true(isnan(stats_detectable(stats_of_mean(single), 0.05, 0.8)));
    stats_sample twos[] = {two, two}; /* equal distances from the median by construction: no evidence */
    assert_true(isnan(stats_levene(twos, 2)));
    /* Constants: no spread, so an interval of no width; equal means are equal, others differ
     * beyond doubt. */
    stats_sample flats[] = {flat, {other, 3}};
    stats_estimate equal = stats_pooled(flats[0], flats[1], flats, 2);
    assert_true(stats_p(equal) == 1 && stats_range(equal, 0.95).high == 0 && stats_levene(flats, 2) == 1);
    other[0] = other[1] = other[2] = 4;
    assert_true(stats_p(stats_pooled(flats[0], flats[1], flats, 2)) == 0);
    assert_true(stats_sign_flip(flats[0], flats[0]) == 1);
}

static void holm_keeps_holes_and_counts_them(void **state)
{
    (void)state;
    double p[] = {0.01, NAN, 0.04}, out[3];
    stats_holm(out, p, 3);
    assert_true(fabs(out[0] - 0.03) < 1e-15 && isnan(out[1]) && fabs(out[2] - 0.08) < 1e-15);
}

static void quantiles_invert_the_distribution(void **state)
{
    (void)state;
    for (double df = 1; df < 1e5; df *= 2.3)
        for (double p = 1e-14; p < 0.5; p *= 1.7) {
            double t = stats_t_quantile(p, df), back = stats_t_cdf(t, df);
            if (!(fabs(back - p) <= 10 * tail_bound(p) * p)) /* d log p / d log t reaches 60 here */
                fail_msg("df %g p %g: %g back %g", df, p, t, back);
            assert_true(stats_t_quantile(1 - p, df) >= 0);
        }
    assert_true(isinf(stats_t_quantile(0, 5)) && stats_t_quantile(0.5, 5) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_statistic_agrees_with_scipy),
        cmocka_unit_test(quantiles_invert_the_distribution),
        cmocka_unit_test(t_intervals_cover_what_they_promise),
        cmocka_unit_test(the_crossed_interval_covers_new_seeds_and_new_images),
        cmocka_unit_test(a_contrast_is_judged_by_the_pooled_deviation_unless_levene_objects),
        cmocka_unit_test(a_difference_of_differences_has_the_error_of_four_cells),
        cmocka_unit_test(predictions_agree_with_intervals_and_contradict_each_other),
        cmocka_unit_test(the_detectable_difference_falls_with_the_seeds),
        cmocka_unit_test(what_cannot_be_computed_is_not_a_number),
        cmocka_unit_test(holm_keeps_holes_and_counts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
