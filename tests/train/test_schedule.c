/* test_schedule.c - every schedule meets the numbers of its source. SPDX-License-Identifier: MIT
 *
 * The expected rates were printed by timm's scheduler and by the DeiT and ConvNeXt scripts' own
 * rules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/schedule.h"

static void assert_rate(const schedule *s, uint64_t update, double want, double relative)
{
    double got = schedule_rate(s, update);
    if (fabs(got - want) > relative * fabs(want))
        fail_msg("update %llu: %.17g, not %.17g", (unsigned long long)update, got, want);
}

/* 50,000 images in batches of 1024: 48 updates an epoch, 4800 in all, 240 of warm-up. */
static const schedule paper = {.kind = SCHEDULE_COSINE_STEP,
                               .peak = 1e-3,
                               .start = 1e-6,
                               .floor = 1e-5,
                               .epochs = 100,
                               .warmup = 5,
                               .updates = 48};

static void the_papers_schedule_meets_its_reference(void **state)
{
    (void)state;
    assert_rate(&paper, 0, 1e-6, 1e-15);
    assert_rate(&paper, 1, 5.1625e-06, 1e-15);
    assert_rate(&paper, 239, 0.0009958375, 1e-15);
    assert_rate(&paper, 240, 1e-3, 1e-15);
    assert_rate(&paper, 2520, 0.000505, 1e-15);
    assert_rate(&paper, 4799, 1.000011747e-05, 1e-9);
}

static void the_papers_schedule_rises_to_its_peak_once_and_falls(void **state)
{
    (void)state;
    for (uint64_t s = 1; s < 4800; s++) {
        double before = schedule_rate(&paper, s - 1), now = schedule_rate(&paper, s);
        assert_true(s <= 240 ? now > before : now < before);
    }
}

/* warmup_prefix is off: the cosine is not shifted, and the peak itself is never used. */
static void timms_warm_up_covers_the_head_of_the_cosine(void **state)
{
    (void)state;
    schedule s = {.kind = SCHEDULE_TIMM_EPOCH,
                  .peak = 1e-3,
                  .start = 1e-6,
                  .floor = 1e-5,
                  .epochs = 100,
                  .warmup = 5,
                  .updates = 7};
    assert_rate(&s, 4 * 7, 8.002e-4, 1e-15);
    assert_rate(&s, 4 * 7 + 6, 8.002e-4, 1e-15);
    assert_rate(&s, 5 * 7, 9.93906e-4, 1e-6);
    assert_rate(&s, 100 * 7, 1e-5, 0);
    s.kind = SCHEDULE_TIMM_UPDATE;
    assert_rate(&s, 0, 1e-6, 0);
    assert_rate(&s, 35, 9.93906e-4, 1e-6); /* update 5 n of 100 n is epoch 5 of 100 */
}

static void deits_first_rate_is_used_for_two_epochs(void **state)
{
    (void)state;
    schedule s = {
        .kind = SCHEDULE_DEIT, .peak = 1e-3, .start = 1e-6, .floor = 1e-5, .epochs = 300, .warmup = 5, .updates = 3};
    const double want[] = {1e-6, 1e-6, 2.008e-4, 4.006e-4, 6.004e-4, 8.002e-4};
    for (size_t e = 0; e < COUNT(want); e++)
        assert_rate(&s, 3 * e + 2, want[e], 1e-15);
    assert_rate(&s, 3 * 6, 9.99322e-4, 1e-6);
    assert_rate(&s, 3 * 299, 1.01086e-5, 1e-5);
}

static void convnexts_first_rate_is_zero_and_its_peak_comes_twice(void **state)
{
    (void)state;
    schedule s = {
        .kind = SCHEDULE_CONVNEXT, .peak = 4e-3, .start = 0, .floor = 1e-6, .epochs = 300, .warmup = 20, .updates = 12};
    assert_rate(&s, 0, 0, 0);
    assert_rate(&s, 1, 4e-3 / 239, 1e-15);
    assert_rate(&s, 239, 4e-3, 1e-15);
    assert_rate(&s, 240, 4e-3, 1e-15);
    assert_true(schedule_rate(&s, 241) < 4e-3);
    assert_true(schedule_rate(&s, 3599) > 1e-6);
}

static void convnexts_warm_up_of_one_update_is_zero(void **state)
{
    (void)state;
    schedule s = {.kind = SCHEDULE_CONVNEXT, .peak = 1, .epochs = 4, .warmup = 1, .updates = 1};
    assert_rate(&s, 0, 0, 0);
    assert_rate(&s, 1, 1, 0);
}

static void linear_step_and_constant_do_what_they_say(void **state)
{
    (void)state;
    schedule s = {.kind = SCHEDULE_LINEAR, .peak = 1, .start = 0, .floor = 0, .epochs = 5, .warmup = 1, .updates = 10};
    assert_rate(&s, 5, 0.5, 1e-15);
    assert_rate(&s, 10, 1, 0);
    assert_rate(&s, 30, 0.5, 1e-15);
    assert_rate(&s, 60, 0, 0);
    s.kind = SCHEDULE_STEP, s.warmup = 0, s.step_every = 2, s.step_factor = 0.1;
    assert_rate(&s, 19, 1, 0);
    assert_rate(&s, 20, 0.1, 1e-15);
    assert_rate(&s, 45, 0.01, 1e-15);
    s.kind = SCHEDULE_CONSTANT;
    assert_rate(&s, 49, 1, 0);
}

static void what_has_no_meaning_is_refused(void **state)
{
    (void)state;
    schedule s = paper;
    assert_int_equal(schedule_check(&s), BERLU_OK);
    s.warmup = 100;
    assert_int_equal(schedule_check(&s), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "warm-up of 100 epochs"));
    s = paper, s.updates = 0;
    assert_int_equal(schedule_check(&s), BERLU_ERR_ARG);
    s = paper, s.peak = -1;
    assert_int_equal(schedule_check(&s), BERLU_ERR_ARG);
    s = paper, s.peak = NAN;
    assert_int_equal(schedule_check(&s), BERLU_ERR_ARG);
    s = paper, s.kind = SCHEDULE_STEP;
    assert_int_equal(schedule_check(&s), BERLU_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_papers_schedule_meets_its_reference),
        cmocka_unit_test(the_papers_schedule_rises_to_its_peak_once_and_falls),
        cmocka_unit_test(timms_warm_up_covers_the_head_of_the_cosine),
        cmocka_unit_test(deits_first_rate_is_used_for_two_epochs),
        cmocka_unit_test(convnexts_first_rate_is_zero_and_its_peak_comes_twice),
        cmocka_unit_test(convnexts_warm_up_of_one_update_is_zero),
        cmocka_unit_test(linear_step_and_constant_do_what_they_say),
        cmocka_unit_test(what_has_no_meaning_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
