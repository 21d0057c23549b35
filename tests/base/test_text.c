/* test_text.c - growing texts, numbers that read back to the same bits, typing errors.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/text.h"
#include "support/fail.h"

static void texts_grow_and_hold_any_bytes(void **state)
{
    (void)state;
    text t = {0};
    for (int i = 0; i < 1000; i++)
        text_add(&t, "%d,", i);
    text_bytes(&t, "\0x", 2);
    text_string(&t, "end");
    assert_int_equal(text_status(&t), BERLU_OK);
    assert_int_equal(t.length, 10 * 2 + 90 * 3 + 900 * 4 + 2 + 3);
    assert_memory_equal(t.data, "0,1,2,", 6);
    assert_memory_equal(t.data + t.length - 5, "\0xend", 6);
    text_free(&t);
}

static void a_failed_text_stays_failed_and_says_so(void **state)
{
    (void)state;
    text t = {0};
    int n;
    for (n = 1;; n++) {
        fail_after(FAIL_ALLOC, n);
        for (int i = 0; i < 100; i++)
            text_add(&t, "line %d\n", i);
        if (!fail_hit())
            break;
        size_t length = t.length;
        text_string(&t, "more");
        assert_int_equal(t.length, length);
        assert_int_equal(text_status(&t), BERLU_ERR_MEMORY);
        text_free(&t);
    }
    assert_int_equal(text_status(&t), BERLU_OK);
    assert_true(n > 2);
    text_free(&t);
}

static double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_f64(double value)
{
    char out[NUMBER_TEXT];
    double back;
    assert_true(number_parse(number_text(out, value), &back));
    assert_memory_equal(&back, &value, sizeof value);
}

static void doubles_read_back_to_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        philox_words w = philox_draw(1, PURPOSE_TEST, 0, i, 0);
        double value = f64_from_bits((uint64_t)w.w[0] << 32 | w.w[1]);
        if (isfinite(value))
            check_f64(value);
    }
    const double special[] = {0.0, -0.0, 0x1p-1074, -0x1p-1074, DBL_MIN, DBL_MAX, -DBL_MAX, 0.1, 1.0 / 3, 1e22, 1e23};
    for (size_t i = 0; i < COUNT(special); i++)
        check_f64(special[i]);
    assert_memory_equal(&(double){INFINITY}, &(double){strtod("inf", NULL)}, 8);
}

static void floats_read_back_to_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint32_t bits =
            philox_draw(2, PURPOSE_TEST, 0, i, 0).w[0] & (i % 16 ? 0xffffffff : 0x807fffff); /* subnormals too */
        float value, back;
        char out[NUMBER_TEXT];
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        back = strtof(number_text_f32(out, value), NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
}

static void numbers_are_as_short_as_can_be(void **state)
{
    (void)state;
    char out[NUMBER_TEXT];
    assert_string_equal(number_text(out, 0.1), "0.1");
    assert_string_equal(number_text(out, 100), "100");
    assert_string_equal(number_text(out, 0x1p-1074), "5e-324");
    assert_string_equal(number_text(out, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(number_text(out, -0.0), "-0");
    assert_string_equal(number_text_f32(out, 0.1f), "0.1");
    assert_string_equal(number_text_f32(out, 0x1p-149f), "1e-45");
    assert_string_equal(number_text(out, NAN), "nan");
    assert_string_equal(number_text(out, -NAN), "nan");
    assert_string_equal(number_text(out, INFINITY), "inf");
    assert_string_equal(number_text_f32(out, -INFINITY), "-inf");
}

static void a_host_locale_with_commas_changes_nothing(void **state)
{
    (void)state;
    char out[NUMBER_TEXT];
    double value;
    const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
    size_t i = 0;
    while (i < COUNT(commas) && !setlocale(LC_ALL, commas[i]))
        i++;
    if (i == COUNT(commas))
        skip(); /* none is installed here */
    assert_string_equal(number_text(out, 0.5), "0.5");
    assert_string_equal(number_text_f32(out, 0.5f), "0.5");
    assert_true(number_parse("0.25", &value));
    assert_true(value == 0.25);
    setlocale(LC_ALL, "C");
}

static void only_a_whole_number_is_a_number(void **state)
{
    (void)state;
    double value = 7;
    const char *const bad[] = {"", " 1", "1 ", "1x", "--1", "0,5", "x", "1e", "\n1"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(number_parse(bad[i], &value));
    assert_true(value == 7);
    assert_true(number_parse("0x1.8p1", &value) && value == 3);
    assert_true(number_parse("-inf", &value) && value == -INFINITY);
    assert_true(number_parse("nan", &value) && isnan(value));
    assert_true(number_parse("1e400", &value) && value == INFINITY);
}

static void a_slip_finds_its_name_and_another_word_none(void **state)
{
    (void)state;
    static const char *const names[] = {"gelu", "gelu_tanh", "berlu", "relu", "hard_swish", "threads", NULL};
    assert_string_equal(nearest_name("brelu", names), "berlu");
    assert_string_equal(nearest_name("gleu", names), "gelu");
    assert_string_equal(nearest_name("hard-swish", names), "hard_swish");
    assert_string_equal(nearest_name("thread", names), "threads");
    assert_string_equal(nearest_name("relu", names), "relu");
    assert_string_equal(nearest_name("GELU", names), "gelu");
    assert_string_equal(nearest_name("Threads", names), "threads");
    assert_string_equal(nearest_name("hard", names), "hard_swish"); /* one name continues it, */
    assert_null(nearest_name("gel", (const char *const[]){"gelu_tanh", "gelu_quick", NULL})); /* two do */
    assert_string_equal(nearest_name("relu:0.1", names), "relu");
    assert_null(nearest_name("relu_of_some_kind", names));
    assert_null(nearest_name("convnext", names));
    assert_null(nearest_name("", names));
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = 0;
    assert_null(nearest_name(word, names));
    assert_null(nearest_name("x", (const char *const[]){word, NULL}));
}

static void a_plain_name_is_ascii_letters_digits_and_underscores(void **state)
{
    (void)state;
    static const char *const plain[] = {"a", "Z", "soft_clip", "x9_", "relu6"};
    static const char *const other[] = {"", "_a", "6a", "a b", "a-b", "a:b", "a\n", "\xe4", "a\xe4", "a\xc3\xa4"};
    for (size_t i = 0; i < COUNT(plain); i++)
        assert_true(name_is_identifier(plain[i]));
    for (size_t i = 0; i < COUNT(other); i++)
        assert_false(name_is_identifier(other[i]));
}

static void text_that_is_not_utf8_is_found_at_its_first_wrong_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t span;
    } cases[] = {{"", 0},
                 {"plain/path", 10},
                 {"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80", 11},
                 {"a\xff", 1},
                 {"ab\x80", 2},           /* a continuation without a beginning */
                 {"ab\xe2\x82", 2},       /* cut short */
                 {"\xc0\xaf", 0},         /* longer than it need be */
                 {"\xe0\x80\x80", 0},     /* likewise */
                 {"x\xed\xa0\x80", 1},    /* a surrogate */
                 {"\xed\x9f\xbf", 3},     /* the last before them */
                 {"\xf4\x8f\xbf\xbf", 4}, /* U+10FFFF */
                 {"\xf4\x90\x80\x80", 0},
                 {"\xf8\x88\x80\x80\x80", 0}};
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(utf8_span(cases[i].text), cases[i].span);
}

static void any_bytes_become_words_of_a_page(void **state)
{
    (void)state;
    text page = {0};
    html_text(&page, "a<b> & \"c\"\x1b\n\xc3\xbc|\xff\xc3|\xed\xa0\x80|\xe2\x82");
    assert_string_equal(page.data,
                        "a&lt;b&gt; &amp; &quot;c&quot;\n\xc3\xbc|\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD");
    text_free(&page);
}

static void a_word_that_is_no_number_is_answered_with_what_was_meant(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"0,001", "; write 0.001"},
        {"1,5e-3", "; write 1.5e-3"},
        {"4M", "; write 4Mi (4194304) or 4000000"},
        {"16kb", "; write 16Ki (16384) or 16000"},
        {"1G", "; write 1Gi (1073741824) or 1000000000"},
        {"", ""},
        {",", ""},
        {"k", ""},
        {"4Mx", ""},
        {"many", ""},
        {"1234567k", ""},
        {"1,000,000", ""},
        {"99999999999999999999999999999,9", ""},
    };
    char advice[NUMBER_ADVICE];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(number_advice(advice, pairs[i][0]), pairs[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_that_is_no_number_is_answered_with_what_was_meant),
        cmocka_unit_test(texts_grow_and_hold_any_bytes),
        cmocka_unit_test(a_failed_text_stays_failed_and_says_so),
        cmocka_unit_test(doubles_read_back_to_the_same_bits),
        cmocka_unit_test(floats_read_back_to_the_same_bits),
        cmocka_unit_test(numbers_are_as_short_as_can_be),
        cmocka_unit_test(a_host_locale_with_commas_changes_nothing),
        cmocka_unit_test(only_a_whole_number_is_a_number),
        cmocka_unit_test(a_plain_name_is_ascii_letters_digits_and_underscores),
        cmocka_unit_test(text_that_is_not_utf8_is_found_at_its_first_wrong_byte),
        cmocka_unit_test(any_bytes_become_words_of_a_page),
        cmocka_unit_test(a_slip_finds_its_name_and_another_word_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
