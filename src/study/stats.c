/* stats.c - samples, contrasts between them, and the tests of a report.
 * SPDX-License-Identifier: MIT
 *
 * A contrast is judged by the deviation pooled over all comparable cells: the deviation of three
 * values alone is a poor estimate, and a paired test would discard half of the degrees of freedom.
 * Pairs are not used: how much seeds have in common is not known beforehand (docs/results:
 * correlations of 0.2 to 0.8), and without them the interval is too wide rather than too narrow.
 * Where Levene's test rejects equal deviations at 0.01, Welch's test replaces it. Begin with
 * stats_contrast_make(). */
#include <assert.h>
#include <math.h>

#include "study/stats.h"

double stats_mean(stats_sample s)
{
    double sum = 0, rest = 0; /* compensated: equal values have exactly their mean's deviation, 0 */
    for (size_t i = 0; i < s.count; i++) {
        double add = s.values[i] - rest, next = sum + add;
        rest = (next - sum) - add;
        sum = next;
    }
    return s.count ? sum / (double)s.count : NAN;
}

/* The sum of squares around the mean, corrected for the rounding of the mean. */
static double squares(stats_sample s)
{
    double mean = stats_mean(s), sum = 0, drift = 0;
    for (size_t i = 0; i < s.count; i++) {
        double off = s.values[i] - mean;
        sum += off * off;
        drift += off;
    }
    return s.count ? fmax(0, sum - drift * drift / (double)s.count) : 0;
}

double stats_deviation(stats_sample s)
{
    return s.count > 1 ? sqrt(squares(s) / (double)(s.count - 1)) : NAN;
}

stats_estimate stats_of_mean(stats_sample s)
{
    if (s.count < 2)
        return (stats_estimate){stats_mean(s), NAN, NAN};
    double n = (double)s.count;
    return (stats_estimate){stats_mean(s), stats_deviation(s) / sqrt(n), n - 1};
}

stats_estimate stats_welch(stats_sample a, stats_sample b)
{
    stats_estimate ea = stats_of_mean(a), eb = stats_of_mean(b);
    double va = ea.error * ea.error, vb = eb.error * eb.error, sum = va + vb;
    double df = sum > 0 ? sum * sum / (va * va / ea.df + vb * vb / eb.df) : ea.df + eb.df;
    return (stats_estimate){ea.value - eb.value, sqrt(sum), df};
}

double stats_pooled_deviation(const stats_sample *cells, size_t count, double *df)
{
    double sum = 0, freedom = 0;
    for (size_t i = 0; i < count; i++)
        if (cells[i].count > 1) {
            sum += squares(cells[i]);
            freedom += (double)(cells[i].count - 1);
        }
    *df = freedom > 0 ? freedom : NAN;
    return freedom > 0 ? sqrt(sum / freedom) : NAN;
}

stats_estimate stats_pooled(stats_sample a, stats_sample b, const stats_sample *cells, size_t count)
{
    double df, deviation = stats_pooled_deviation(cells, count, &df);
    double error = deviation * sqrt(1 / (double)a.count + 1 / (double)b.count);
    return (stats_estimate){stats_mean(a) - stats_mean(b), a.count && b.count ? error : NAN, df};
}

stats_estimate stats_paired(stats_sample a, stats_sample b)
{
    assert(a.count == b.count);
    double n = (double)a.count, mean = stats_mean(a) - stats_mean(b), sum = 0, drift = 0;
    if (a.count < 2)
        return (stats_estimate){mean, NAN, NAN};
    for (size_t i = 0; i < a.count; i++) {
        double off = a.values[i] - b.values[i] - mean;
        sum += off * off;
        drift += off;
    }
    double variance = fmax(0, sum - drift * drift / n) / (n - 1);
    return (stats_estimate){mean, sqrt(variance / n), n - 1};
}

stats_estimate stats_combined(const stats_summary *samples, const double *weights, size_t count)
{
    double value = 0, variance = 0, spread = 0;
    for (size_t i = 0; i < count; i++) {
        const stats_summary *s = &samples[i];
        double part = s->n >= 2 ? weights[i] * weights[i] * s->deviation * s->deviation / s->n : NAN;
        value += weights[i] * s->mean;
        variance += part;
        spread += part * part / (s->n - 1);
    }
    double freedom = spread > 0 ? variance * variance / spread : 1; /* unused without any error */
    return (stats_estimate){value, sqrt(variance), isnan(variance) ? NAN : freedom};
}

/* The t of a shifted estimate; without any error 0 stays 0 and all else is infinite. */
static double t_value(double value, double error)
{
    return error == 0 ? (value == 0 ? 0 : copysign(INFINITY, value)) : value / error;
}

stats_interval stats_range(stats_estimate e, double level)
{
    double half = e.error == 0 ? 0 : -stats_t_quantile((1 - level) / 2, e.df) * e.error;
    return (stats_interval){e.value - half, e.value + half};
}

double stats_p(stats_estimate e)
{
    return stats_t_sides(t_value(e.value, e.error), e.df);
}

double stats_p_equivalent(stats_estimate e, double margin)
{
    double above = stats_t_cdf(t_value(e.value - margin, e.error), e.df);
    double below = stats_t_cdf(t_value(-margin - e.value, e.error), e.df);
    return isnan(above) || isnan(below) ? NAN : fmax(above, below);
}

/* P(T <= (value - limit) / error): small where the value lies below the limit. */
static double lower_tail(double value, double limit, stats_estimate e)
{
    return stats_t_cdf(t_value(value - limit, e.error), e.df);
}

double stats_p_wrong(stats_estimate e, stats_expected x)
{
    switch (x.what) {
    case STATS_WITHIN:
        return stats_p_equivalent(e, x.limit);
    case STATS_BELOW:
        return lower_tail(e.value, x.limit, e);
    case STATS_ABOVE:
        return lower_tail(-e.value, -x.limit, e);
    case STATS_NOTHING:
        break;
    }
    return NAN;
}

double stats_p_right(stats_estimate e, stats_expected x)
{
    switch (x.what) {
    case STATS_WITHIN: { /* both tails of a true value at the limit: the size of the test is exact there */
        double p = lower_tail(-fabs(e.value), -x.limit, e) + lower_tail(-fabs(e.value), x.limit, e);
        return p > 1 ? 1 : p;
    }
    case STATS_BELOW:
        return stats_p_wrong(e, (stats_expected){STATS_ABOVE, x.limit});
    case STATS_ABOVE:
        return stats_p_wrong(e, (stats_expected){STATS_BELOW, x.limit});
    case STATS_NOTHING:
        break;
    }
    return NAN;
}

double stats_detectable(stats_estimate e, double alpha, double power)
{
    if (isnan(e.error) || !(e.df > 0) || !(alpha > 0 && alpha < power && power < 1))
        return NAN;
    double low = 0, high = 1;
    while (stats_t_power(high, e.df, alpha) < power)
        low = high, high *= 2;
    for (int step = 0; step < 200 && nextafter(low, high) < high; step++) { /* power rises with the shift */
        double middle = low + (high - low) / 2;
        if (stats_t_power(middle, e.df, alpha) < power)
            low = middle;
        else
            high = middle;
    }
    return high * e.error;
}

stats_interval stats_prediction(stats_sample s, double level)
{
    stats_estimate e = stats_of_mean(s);
    e.error *= sqrt((double)s.count + 1); /* s / sqrt(n) becomes s sqrt(1 + 1/n) */
    return stats_range(e, level);
}

/* The k-th smallest value by counting: samples are short, and nothing has to be copied. */
static double ranked(stats_sample s, size_t k)
{
    for (size_t i = 0; i < s.count; i++) {
        size_t below = 0, equal = 0;
        for (size_t j = 0; j < s.count; j++) {
            below += s.values[j] < s.values[i];
            equal += s.values[j] == s.values[i];
        }
        if (below <= k && k < below + equal)
            return s.values[i];
    }
    return NAN;
}

/* As base/median.h, of values that may not be moved. */
static double sample_median(stats_sample s)
{
    return (ranked(s, (s.count - 1) / 2) + ranked(s, s.count / 2)) / 2;
}

/* The mean distance of a sample's values from `centre`, and their sum of squares around that
 * mean. */
static double distances(stats_sample s, double centre, double *around)
{
    double mean = 0;
    for (size_t i = 0; i < s.count; i++)
        mean += fabs(s.values[i] - centre) / (double)s.count;
    *around = 0;
    for (size_t i = 0; i < s.count; i++) {
        double off = fabs(s.values[i] - centre) - mean;
        *around += off * off;
    }
    return mean;
}

double stats_levene(const stats_sample *cells, size_t count)
{
    enum { LEAST = 3 };
    double groups = 0, total = 0, mean = 0, within = 0, between = 0, around;
    for (size_t i = 0; i < count; i++)
        if (cells[i].count >= LEAST) {
            groups++;
            total += (double)cells[i].count;
            mean += distances(cells[i], sample_median(cells[i]), &around) * (double)cells[i].count;
            within += around;
        }
    if (groups < 2)
        return NAN;
    mean /= total;
    for (size_t i = 0; i < count; i++)
        if (cells[i].count >= LEAST) {
            double off = distances(cells[i], sample_median(cells[i]), &around) - mean;
            between += off * off * (double)cells[i].count;
        }
    if (within == 0)
        return between == 0 ? 1 : 0;
    return stats_f_upper(between / (groups - 1) / (within / (total - groups)), groups - 1, total - groups);
}

double stats_correlation(stats_sample a, stats_sample b)
{
    assert(a.count == b.count);
    double mean_a = stats_mean(a), mean_b = stats_mean(b), product = 0, norm = sqrt(squares(a)) * sqrt(squares(b));
    for (size_t i = 0; i < a.count; i++)
        product += (a.values[i] - mean_a) * (b.values[i] - mean_b);
    return norm > 0 ? fmax(-1, fmin(1, product / norm)) : NAN;
}

double stats_sign_flip(stats_sample a, stats_sample b)
{
    assert(a.count == b.count);
    if (!a.count || a.count > STATS_FLIPS)
        return NAN;
    double sum = 0, scale = 0;
    for (size_t i = 0; i < a.count; i++) {
        sum += a.values[i] - b.values[i];
        scale += fabs(a.values[i] - b.values[i]);
    }
    if (isnan(sum))
        return NAN;
    double bound = fabs(sum) - 1e-12 * scale; /* sums that differ by rounding alone are equal */
    uint32_t patterns = 1u << a.count, far = 0;
    for (uint32_t signs = 0; signs < patterns; signs++) {
        double flipped = 0;
        for (size_t i = 0; i < a.count; i++) {
            double difference = a.values[i] - b.values[i];
            flipped += signs >> i & 1 ? -difference : difference;
        }
        far += fabs(flipped) >= bound;
    }
    return (double)far / patterns;
}

/* Sorted, the k-th smallest of m is multiplied by m - k + 1, and adjusted values never fall
 * along the order: each is the largest product among the p values not above its own. */
static double holm_of(const double *p, size_t count, double own)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (p[i] <= own) {
            size_t smaller = 0;
            for (size_t j = 0; j < count; j++)
                smaller += p[j] < p[i];
            most = fmax(most, (double)(count - smaller) * p[i]);
        }
    return fmin(1, most);
}

void stats_holm(double *restrict out, const double *restrict p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = isnan(p[i]) ? NAN : holm_of(p, count, p[i]);
}

const char *stats_test_name(stats_test test)
{
    return test == STATS_WELCH ? "welch" : "pooled";
}

/* (a - b) - (c - d), with one deviation pooled over the cells or with one for each sample. A sample
 * that stands at several places, as b = c of (a - b) - (b - d), has the sum of their weights. */
static stats_estimate second_difference(const stats_contrast_input *in, stats_test test)
{
    static const double signs[] = {1, -1, -1, 1};
    const stats_sample all[] = {in->a, in->b, in->minus[0], in->minus[1]};
    stats_sample samples[4];
    stats_summary each[4];
    double weights[4], df, deviation = stats_pooled_deviation(in->cells, in->count, &df), inverse = 0, value = 0;
    size_t count = 0;
    for (int i = 0; i < 4; i++) {
        size_t k = 0;
        while (k < count && samples[k].values != all[i].values)
            k++;
        weights[k] = (k < count ? weights[k] : 0) + signs[i];
        samples[k] = all[i];
        count += k == count;
    }
    for (size_t k = 0; k < count; k++) {
        each[k] = (stats_summary){(double)samples[k].count, stats_mean(samples[k]), stats_deviation(samples[k])};
        value += weights[k] * each[k].mean;
        inverse += weights[k] * weights[k] / each[k].n;
    }
    if (!(inverse > 0)) /* everything cancels, or a sample is empty */
        return (stats_estimate){NAN, NAN, NAN};
    if (test == STATS_WELCH)
        return stats_combined(each, weights, count);
    return (stats_estimate){value, isnan(value) ? NAN : deviation * sqrt(inverse), df};
}

static stats_test test_of(double levene)
{
    return levene < 0.01 ? STATS_WELCH : STATS_POOLED; /* a NaN keeps the pooled one */
}

stats_estimate stats_difference(stats_sample a, stats_sample b, const stats_sample *cells, size_t count)
{
    return test_of(stats_levene(cells, count)) == STATS_WELCH ? stats_welch(a, b) : stats_pooled(a, b, cells, count);
}

stats_contrast stats_contrast_make(const stats_contrast_input *in)
{
    stats_contrast c = {.mean_a = stats_mean(in->a), .mean_b = stats_mean(in->b)};
    c.sd_a = stats_deviation(in->a);
    c.sd_b = stats_deviation(in->b);
    c.levene = stats_levene(in->cells, in->count);
    c.test = test_of(c.levene);
    c.judged = in->minus ? second_difference(in, c.test) : stats_difference(in->a, in->b, in->cells, in->count);
    stats_interval wide = stats_range(c.judged, 0.95), narrow = stats_range(c.judged, 0.90);
    c.low = wide.low, c.high = wide.high;
    c.low90 = narrow.low, c.high90 = narrow.high;
    c.p = stats_p(c.judged);
    c.p_equal = stats_p_equivalent(c.judged, in->margin);
    c.p_wrong = stats_p_wrong(c.judged, in->expected);
    c.p_right = stats_p_right(c.judged, in->expected);
    double level = in->expected.what ? 2 * 0.05 : 0.05 / (double)(in->contrasts ? in->contrasts : 1);
    c.detectable = stats_detectable(c.judged, level, 0.8); /* twice the level: one side of it */

    assert(in->pairs <= in->a.count && in->pairs <= in->b.count);
    stats_sample a = {in->a.values, in->pairs}, b = {in->b.values, in->pairs};
    stats_interval paired = stats_range(stats_paired(a, b), 0.95);
    c.paired_low = paired.low, c.paired_high = paired.high;
    c.r = in->pairs ? stats_correlation(a, b) : NAN;
    c.p_flip = stats_sign_flip(a, b);
    return c;
}
