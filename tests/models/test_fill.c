/* test_fill.c - the known-answer fill against marks that were made by other programs.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/status.h"
#include "models/fill.h"

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within))
        fail_msg("%.15g is not %.15g", got, want);
}

static void the_hash_of_a_name_is_fnv_1a(void **state)
{
    (void)state;
    assert_int_equal(fill_hash(""), 2166136261u);
    assert_int_equal(fill_hash("a"), 0xe40c292cu); /* from the authors' list of test vectors */
    assert_int_equal(fill_hash("foobar"), 0xbf9cf968u);
    assert_int_equal(fill_hash("cls_token"), 0x10388cb9u);
}

static void the_first_units_are_those_of_numpy(void **state)
{
    (void)state;
    static const double cls[] = {-0.84277201, 0.45530558, -0.15524364, 0.14287663};
    static const double input[] = {1.04661584, 0.648109794, 1.68092656, -1.7351613};
    float images[4];
    fill_input(images, 4);
    for (uint32_t i = 0; i < 4; i++) {
        near(fill_unit(fill_hash("cls_token"), i), cls[i], 5e-9);
        near((double)images[i], input[i], 5e-9 + fabs(input[i]) * 1e-9);
    }
}

static void units_lie_in_minus_one_to_one_and_have_24_bits(void **state)
{
    (void)state;
    double least = 1, most = -1, sum = 0;
    for (uint32_t i = 0; i < 1u << 20; i++) {
        double v = fill_unit(12345, i);
        assert_true(v >= -1 && v < 1 && v * 0x1p23 == floor(v * 0x1p23));
        least = v < least ? v : least;
        most = v > most ? v : most;
        sum += v;
    }
    near(least, -1, 1e-4);
    near(most, 1, 1e-4);
    near(sum / 0x1p20, 0, 0.003); /* five sigma of a uniform mean */
}

static double sum_of(const char *name, int rank, const int64_t *size)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)size[i];
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    fill_parameter(values, name, rank, size);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    free(values);
    return sum;
}

static void the_sums_of_two_parameters_are_those_of_numpy(void **state)
{
    (void)state;
    near(sum_of("blocks.0.attn.qkv.weight", 2, (int64_t[]){576, 192}), 0.656211793423, 1e-9);
    near(sum_of("blocks.0.norm1.weight", 1, (int64_t[]){192}), 185.886498272419, 1e-9);
}

/* The largest value tells the rule, since units come close to one. */
static double largest(const char *name, int rank, const int64_t *size)
{
    float values[4096];
    double most = 0;
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)size[i];
    assert_true(count <= COUNT(values));
    fill_parameter(values, name, rank, size);
    for (size_t i = 0; i < count; i++)
        most = fabs((double)values[i]) > most ? fabs((double)values[i]) : most;
    return most;
}

static void each_kind_of_parameter_has_its_own_scale(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
        int64_t size[4];
        double bound;
    } rows[] = {
        {"cls_token", 3, {1, 1, 4096}, 0.02},
        {"pixel_pos", 4, {1, 64, 8, 8}, 0.02},
        {"patch_embed.proj.weight", 4, {64, 4, 4, 4}, 0.02},
        {"pixel_embed.proj.bias", 1, {4096}, 0.02},
        {"stem.0.bias", 1, {4096}, 0.02},
        {"stem.1.bias", 1, {4096}, 0.2},
        {"stages.0.blocks.0.gamma", 1, {4096}, 0.5},
        {"stages.0.blocks.0.norm.weight", 1, {4096}, 1.3},
        {"stages.0.blocks.0.conv_dw.weight", 4, {80, 1, 7, 7}, 0.2474358296526967}, /* sqrt(3 / 49) */
        {"head.weight", 2, {64, 48}, 0.25},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double most = largest(rows[i].name, rows[i].rank, rows[i].size);
        assert_true(most <= rows[i].bound * (1 + 1e-7) && most > 0.99 * rows[i].bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_of_a_name_is_fnv_1a),
        cmocka_unit_test(the_first_units_are_those_of_numpy),
        cmocka_unit_test(units_lie_in_minus_one_to_one_and_have_24_bits),
        cmocka_unit_test(the_sums_of_two_parameters_are_those_of_numpy),
        cmocka_unit_test(each_kind_of_parameter_has_its_own_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
