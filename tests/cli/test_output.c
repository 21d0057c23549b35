/* test_output.c - valid JSON, with numbers that read back to the same bits.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "output.h"
#include "support/fail.h"

/* Closes `out` and reads it with an independent reader. */
static json_t *read_back(output *out)
{
    assert_int_equal(output_close(out), BERLU_OK);
    json_error_t error;
    json_t *root = json_loadb(out->json.data, out->json.length, 0, &error);
    text_free(&out->json);
    if (!root)
        fail_msg("%s", error.text);
    return root;
}

static void the_version_comes_first(void **state)
{
    (void)state;
    output out;
    output_start(&out);
    assert_int_equal(strncmp(out.json.data, "{\"berlu\": \"", 11), 0);
    json_t *root = read_back(&out);
    assert_string_equal(json_string_value(json_object_get(root, "berlu")), berlu_version());
    json_decref(root);
}

static void levels_nest_and_are_closed_for_the_forgetful(void **state)
{
    (void)state;
    output out;
    output_start(&out);
    output_array(&out, "rows");
    for (int i = 0; i < 3; i++) {
        output_object(&out, NULL);
        output_int(&out, "i", i - 1);
        output_array(&out, "empty");
        output_end(&out);
        output_end(&out);
    }
    output_bool(&out, NULL, 1);
    output_string(&out, NULL, NULL);
    json_t *root = read_back(&out), *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 5);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "i")), -1);
    assert_true(json_is_true(json_array_get(rows, 3)));
    assert_true(json_is_null(json_array_get(rows, 4)));
    json_decref(root);
}

static void reals_keep_their_bits_and_stay_reals(void **state)
{
    (void)state;
    enum { COUNT_OF = 20000 };
    static double values[COUNT_OF] = {0.0, -0.0, 1, -1, 0.1, 1e20, 1e22, 0x1p-1074, DBL_MIN, DBL_MAX, -DBL_MAX, 1e300};
    for (uint64_t i = 12; i < COUNT_OF; i++) {
        philox_words w = philox_draw(5, PURPOSE_TEST, 0, i, 0);
        uint64_t bits = (uint64_t)w.w[0] << 32 | w.w[1];
        memcpy(&values[i], &bits, sizeof bits);
        if (!isfinite(values[i]))
            values[i] = 0.5;
    }
    output out;
    output_start(&out);
    output_reals(&out, "values", values, COUNT_OF);
    json_t *root = read_back(&out), *list = json_object_get(root, "values");
    for (size_t i = 0; i < COUNT_OF; i++) {
        assert_true(json_is_real(json_array_get(list, i)));
        double got = json_real_value(json_array_get(list, i));
        assert_memory_equal(&got, &values[i], sizeof got);
    }
    json_decref(root);
}

static void what_is_not_finite_is_a_string(void **state)
{
    (void)state;
    output out;
    output_start(&out);
    output_reals(&out, "v", (double[]){NAN, INFINITY, -INFINITY}, 3);
    assert_non_null(strstr(out.json.data, "[\"nan\", \"inf\", \"-inf\"]"));
    text_free(&out.json);
}

static void any_bytes_make_a_valid_string(void **state)
{
    (void)state;
    output out;
    output_start(&out);
    output_string(&out, "plain", "quote \" slash \\ line\n tab\t bell\a \xc3\xbc \xe2\x82\xac \xf0\x9f\x99\x82");
    output_string(&out, "broken",
                  "a\xff"
                  "b\xc3"
                  "c\xed\xa0\x80"
                  "d\xc0\x80"
                  "e\xf4\x90\x80\x80"
                  "f\xe2\x82");
    for (int byte = 1; byte < 256; byte++) {
        char key[8], word[3] = {(char)byte, 'x', 0};
        snprintf(key, sizeof key, "%d", byte);
        output_string(&out, key, word);
    }
    json_t *root = read_back(&out);
    assert_string_equal(json_string_value(json_object_get(root, "plain")),
                        "quote \" slash \\ line\n tab\t bell\a \xc3\xbc \xe2\x82\xac \xf0\x9f\x99\x82");
    assert_non_null(strstr(json_string_value(json_object_get(root, "broken")), "\xef\xbf\xbd"
                                                                               "b"));
    assert_string_equal(json_string_value(json_object_get(root, "65")), "Ax");
    json_decref(root);
}

static void lack_of_memory_is_told_at_the_end(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        output out;
        fail_after(FAIL_ALLOC, n);
        output_start(&out);
        for (int i = 0; i < 100; i++)
            output_int(&out, "key", i);
        berlu_status status = output_close(&out);
        text_free(&out.json);
        if (!fail_hit()) {
            assert_int_equal(status, BERLU_OK);
            break;
        }
        assert_int_equal(status, BERLU_ERR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_comes_first),
        cmocka_unit_test(levels_nest_and_are_closed_for_the_forgetful),
        cmocka_unit_test(reals_keep_their_bits_and_stay_reals),
        cmocka_unit_test(what_is_not_finite_is_a_string),
        cmocka_unit_test(any_bytes_make_a_valid_string),
        cmocka_unit_test(lack_of_memory_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
