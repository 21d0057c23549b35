/* test_stream.c - the rule of non-temporal stores on machines of several kinds.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "act/act_internal.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static size_t limit(cpu_caches c, int threads)
{
    stream_rule rule = stream_rule_for(&c);
    assert_non_null(rule.cause);
    return stream_limit(&rule, 0, threads);
}

/* 512 KiB, and 32 MiB for sixteen hardware threads. */
static const cpu_caches zen3 = {512 * KIB, 32 * MIB, 16};

static void beside_a_small_l2_the_l3_decides(void **state)
{
    (void)state;
    assert_true(limit(zen3, 1) > 2 * 4 * 3 * MIB); /* forward over 3 Mi floats stays in the L3, */
    assert_true(limit(zen3, 1) < 2 * 4 * 4 * MIB); /* over 4 Mi it does not */
    assert_int_equal(limit(zen3, 16), limit(zen3, 1));
    cpu_caches laptop = zen3;
    laptop.l3 = 8 * MIB;
    assert_int_equal(limit(laptop, 1) * 4, limit(zen3, 1));
}

/* Two reads for each write: streaming costs nothing there, and strangers use the L3 too. */
static void a_backward_streams_before_the_l3_is_full(void **state)
{
    (void)state;
    cpu_caches server = {2 * MIB, 105 * MIB, 112};
    stream_rule shared = stream_rule_for(&zen3), own = stream_rule_for(&server);
    for (int threads = 1; threads <= 64; threads *= 4) {
        size_t forward = stream_limit(&shared, 0, threads), backward = stream_limit(&shared, 1, threads);
        assert_true(backward < forward && backward > forward / 2);
        assert_int_equal(stream_limit(&own, 1, threads), stream_limit(&own, 0, threads));
    }
}

static void a_team_that_spans_several_l3s_has_all_of_them(void **state)
{
    (void)state;
    assert_int_equal(limit(zen3, 17), 2 * limit(zen3, 1));
    assert_int_equal(limit(zen3, 64), 4 * limit(zen3, 1));
    cpu_caches unknown = zen3;
    unknown.l3_threads = 0;
    assert_int_equal(limit(unknown, 64), limit(zen3, 1));
}

static void a_large_l2_decides_by_itself_and_belongs_to_one_thread(void **state)
{
    (void)state;
    cpu_caches server = {2 * MIB, 105 * MIB, 112};
    assert_true(limit(server, 1) > 2 * MIB);
    assert_true(limit(server, 1) < 3 * MIB);
    assert_int_equal(limit(server, 64), 64 * limit(server, 1));
}

static void a_machine_without_an_l3_or_without_a_word_has_a_limit_too(void **state)
{
    (void)state;
    cpu_caches small = {MIB, 0, 0}, silent = {0, 0, 0};
    assert_true(limit(small, 1) > MIB);
    assert_int_equal(limit(small, 8), 8 * limit(small, 1));
    assert_true(limit(silent, 1) > 0);
    assert_int_equal(limit(silent, 8), limit(silent, 1));
}

static void prefetches_reach_ahead_in_the_l2_and_where_the_processor_needs_help(void **state)
{
    (void)state;
    cpu_caches server = {2 * MIB, 105 * MIB, 112}, silent = {0, 0, 0};
    stream_rule rules[] = {stream_rule_for(&zen3), stream_rule_for(&server), stream_rule_for(&silent)};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int threads = 1; threads <= 64; threads *= 4) {
            assert_true(stream_ahead(&rules[i], 128 * KIB * (size_t)threads, threads) > 0);
            assert_int_equal(stream_ahead(&rules[i], 64 * MIB * (size_t)threads, threads) > 0, rules[i].interleave);
        }
    assert_false(rules[0].interleave);
    assert_true(rules[1].interleave && rules[2].interleave);
}

/* Streams from the limit on, whatever the threads: the same sum of bytes as in the rule. */
static void a_call_streams_beyond_the_limit_and_not_before(void **state)
{
    (void)state;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    act->stream = stream_rule_for(&zen3);
    for (int threads = 1; threads <= 64; threads *= 2) {
        size_t most = stream_limit(&act->stream, 0, threads) / (2 * sizeof(float));
        berlu_act_call call = {.rows = most, .channels = 1, .x = (void *)64, .y = (void *)128};
        assert_false(call_streams(act, BERLU_ACT_FORWARD, &call, threads));
        call.rows = most + 1;
        assert_true(call_streams(act, BERLU_ACT_FORWARD, &call, threads));
        call.y = (void *)64; /* in place */
        assert_false(call_streams(act, BERLU_ACT_FORWARD, &call, threads));
        most = stream_limit(&act->stream, 1, threads) / (3 * sizeof(float));
        berlu_act_call back = {.rows = most, .channels = 1, .x = (void *)64, .dy = (void *)128, .dx = (void *)192};
        assert_false(call_streams(act, BERLU_ACT_BACKWARD, &back, threads));
        back.rows = most + 1;
        assert_true(call_streams(act, BERLU_ACT_BACKWARD, &back, threads));
    }
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_a_small_l2_the_l3_decides),
        cmocka_unit_test(a_backward_streams_before_the_l3_is_full),
        cmocka_unit_test(a_team_that_spans_several_l3s_has_all_of_them),
        cmocka_unit_test(a_large_l2_decides_by_itself_and_belongs_to_one_thread),
        cmocka_unit_test(a_machine_without_an_l3_or_without_a_word_has_a_limit_too),
        cmocka_unit_test(prefetches_reach_ahead_in_the_l2_and_where_the_processor_needs_help),
        cmocka_unit_test(a_call_streams_beyond_the_limit_and_not_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
