/* test_status.c - the message of a failure stays with its thread. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/status.h"

static void a_failure_keeps_its_sentence_and_returns_its_code(void **state)
{
    (void)state;
    assert_int_equal(berlu_fail(BERLU_ERR_INPUT, "%s: no tensor '%s'", "w.safetensors", "head"), BERLU_ERR_INPUT);
    assert_string_equal(berlu_last_error(), "w.safetensors: no tensor 'head'");
}

static void a_place_goes_in_front_and_success_stays_untouched(void **state)
{
    (void)state;
    berlu_fail(BERLU_ERR_ARG, "key 'lr' is not a number");
    assert_int_equal(berlu_fail_in(BERLU_ERR_ARG, "study.yaml:3"), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "study.yaml:3: key 'lr' is not a number");
    assert_int_equal(berlu_fail_in(BERLU_OK, "nowhere"), BERLU_OK);
    assert_string_equal(berlu_last_error(), "study.yaml:3: key 'lr' is not a number");
}

static void a_sentence_may_quote_the_one_before(void **state)
{
    (void)state;
    berlu_fail(BERLU_ERR_IO, "disk full");
    berlu_fail(BERLU_ERR_IO, "checkpoint: %s", berlu_last_error());
    assert_string_equal(berlu_last_error(), "checkpoint: disk full");
}

static void a_sentence_too_long_is_cut_not_refused(void **state)
{
    (void)state;
    char word[5000];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = 0;
    berlu_fail(BERLU_ERR_ARG, "%s", word);
    assert_int_equal(strlen(berlu_last_error()), 1023);
    for (int i = 0; i < 3; i++)
        berlu_fail_in(BERLU_ERR_ARG, "place");
    assert_int_equal(strncmp(berlu_last_error(), "place: place: place: xxx", 24), 0);
}

static void *other_thread(void *found)
{
    strcpy(found, berlu_last_error());
    berlu_fail(BERLU_ERR_MEMORY, "the other thread's");
    return NULL;
}

static void threads_do_not_see_each_other(void **state)
{
    (void)state;
    char found[1024] = "untouched";
    pthread_t thread;
    berlu_fail(BERLU_ERR_ARG, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, found), 0);
    pthread_join(thread, NULL);
    assert_string_equal(found, "");
    assert_string_equal(berlu_last_error(), "mine");
}

static void every_status_has_a_name_and_so_have_unknown_ones(void **state)
{
    (void)state;
    for (int s = BERLU_OK; s <= BERLU_ERR_STOPPED; s++) {
        assert_true(strlen(berlu_status_name((berlu_status)s)) > 0);
        for (int other = BERLU_OK; other < s; other++)
            assert_string_not_equal(berlu_status_name((berlu_status)s), berlu_status_name((berlu_status)other));
    }
    assert_string_equal(berlu_status_name((berlu_status)99), "unknown status");
    assert_string_equal(berlu_status_name((berlu_status)-1), "unknown status");
}

static void keep_line(void *context, berlu_log_level level, const char *line)
{
    strcat(context, level == BERLU_LOG_WARNING ? "warning " : "");
    strcat(context, line);
}

static void log_lines_reach_the_callback_and_silence_is_allowed(void **state)
{
    (void)state;
    char seen[256] = "";
    log_line(&(berlu_log){keep_line, seen}, BERLU_LOG_WARNING, "%d broken files", 3);
    log_line(NULL, BERLU_LOG_INFO, "nobody");
    log_line(&(berlu_log){0}, BERLU_LOG_INFO, "nobody");
    assert_string_equal(seen, "warning 3 broken files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_keeps_its_sentence_and_returns_its_code),
        cmocka_unit_test(a_place_goes_in_front_and_success_stays_untouched),
        cmocka_unit_test(a_sentence_may_quote_the_one_before),
        cmocka_unit_test(a_sentence_too_long_is_cut_not_refused),
        cmocka_unit_test(threads_do_not_see_each_other),
        cmocka_unit_test(every_status_has_a_name_and_so_have_unknown_ones),
        cmocka_unit_test(log_lines_reach_the_callback_and_silence_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
