/* test_safetensors.c - what the reader takes and refuses, what the writer's bytes are.
 * SPDX-License-Identifier: MIT
 *
 * Bad files are made from a header text and a number of data bytes; each row of `bad` says which
 * word the error must hold, so a file refused for the wrong reason fails too. Allocation and write
 * failures are in test_safetensors_fail.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "io/safetensors.h"

#define PATH "test_safetensors.tmp"

/* A file in memory: the length, the header as given, `data` bytes that count up. */
static unsigned char *file_make(const char *header, size_t header_size, size_t data, size_t *size)
{
    *size = 8 + header_size + data;
    unsigned char *bytes = malloc(*size);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)header_size >> (8 * i));
    memcpy(bytes + 8, header, header_size);
    for (size_t i = 0; i < data; i++)
        bytes[8 + header_size + i] = (unsigned char)i;
    return bytes;
}

static berlu_status parse(safetensors **out, const char *header, size_t data, unsigned char **bytes)
{
    size_t size;
    *bytes = file_make(header, strlen(header), data, &size);
    return safetensors_parse(out, *bytes, size, "x.safetensors");
}

static void refuse(const char *header, size_t header_size, size_t data, const char *word)
{
    size_t size;
    unsigned char *bytes = file_make(header, header_size, data, &size);
    safetensors *file = (safetensors *)bytes; /* must stay untouched */
    if (safetensors_parse(&file, bytes, size, "x.safetensors") != BERLU_ERR_INPUT)
        fail_msg("taken: %.80s", header);
    assert_ptr_equal(file, bytes);
    if (!strstr(berlu_last_error(), word) || !strstr(berlu_last_error(), "x.safetensors"))
        fail_msg("'%s' does not speak of '%s' (%.80s)", berlu_last_error(), word, header);
    free(bytes);
}

#define E(dtype, shape, begin, end)                                                                                    \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

static void each_broken_header_is_refused_and_the_error_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *word;
    } bad[] = {
        {" {}", 0, "begin"},
        {"[]", 0, "begin"},
        {"{} x", 0, "header byte"},
        {"{", 0, "header byte"},
        {"{\"a\":" E("F32", "1", 0, 4) ",}", 4, "header byte"},
        {"{\"a\":1}", 0, "'a'"},
        {"{\"a\":{}}", 0, "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4, "more"},
        {"{\"a\":" E("f32", "1", 0, 4) "}", 4, "'f32'"},
        {"{\"a\":" E("F8_E5M2", "1", 0, 1) "}", 1, "F8_E5M2"},
        {"{\"a\":" E("BOOL", "1", 0, 1) "}", 1, "BOOL"},
        {"{\"a\":" E("F32", "-1", 0, 4) "}", 4, "signed"},
        {"{\"a\":" E("F32", "-0", 0, 0) "}", 0, "signed"},
        {"{\"a\":" E("F32", "1.0", 0, 4) "}", 4, "dimension 0"},
        {"{\"a\":" E("F32", "1e0", 0, 4) "}", 4, "dimension 0"},
        {"{\"a\":" E("F32", "\"1\"", 0, 4) "}", 4, "dimension 0"},
        {"{\"a\":" E("F32", "01", 0, 4) "}", 4, "header byte"},
        {"{\"a\":" E("F32", "99999999999999999999", 0, 4) "}", 4, "header byte"},
        {"{\"a\":" E("F32", "4294967296,4294967296,4294967296", 0, 4) "}", 4, "too large"},
        {"{\"a\":" E("F64", "4611686018427387904", 0, 4) "}", 4, "too large"},
        {"{\"a\":" E("F32", "1,1,1,1,1,1,1,1,1", 0, 4) "}", 4, "dimensions"},
        {"{\"a\":" E("F32", "2", 0, 4) "}", 4, "needs 8"},
        {"{\"a\":" E("F32", "1", 4, 0) "}", 4, "before it begins"},
        {"{\"a\":" E("F32", "2", 0, 8) "}", 4, "cut short"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "two whole numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":4}}", 4, "two whole numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0.0,4]}}", 4, "two whole numbers"},
        {"{\"a\":" E("F32", "1", 4, 8) "}", 8, "belong to no tensor"},
        {"{\"a\":" E("F32", "1", 0, 4) "}", 8, "at the end"},
        {"{}", 1, "at the end"},
        {"{\"a\":" E("F32", "1", 0, 4) ",\"b\":" E("F32", "1", 8, 12) "}", 12, "'b'"},
        {"{\"a\":" E("F32", "2", 0, 8) ",\"b\":" E("F32", "1", 4, 8) "}", 8, "overlaps"},
        {"{\"a\":" E("F32", "1", 0, 4) ",\"b\":" E("F32", "1", 0, 4) "}", 4, "overlaps"},
        {"{\"a\":" E("F32", "1", 0, 4) ",\"a\":" E("F32", "1", 4, 8) "}", 8, "duplicate"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate"},
        {"{\"\":" E("F32", "1", 0, 4) "}", 4, "without a name"},
        {"{\"a\\nb\":" E("F32", "1", 0, 4) "}", 4, "control"},
        {"{\"a\\u0000b\":" E("F32", "1", 0, 4) "}", 4, "header byte"},
        {"{\"\xff\":" E("F32", "1", 0, 4) "}", 4, "header byte"},
        {"{\"\\ud800\":" E("F32", "1", 0, 4) "}", 4, "header byte"},
        {"{\"__metadata__\":null}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "not a text"},
        {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "not a text"},
        {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "duplicate"},
        {"{\"a\":[[[[[1]]]]]}", 0, "nested"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        refuse(bad[i].header, strlen(bad[i].header), bad[i].data, bad[i].word);
    refuse("{}\0", 3, 0, "header byte");
}

static void a_length_that_lies_is_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[12];
        size_t size;
        const char *word;
    } bad[] = {
        {{0}, 0, "too few"},
        {{2, 0, 0, 0, 0, 0, 0}, 7, "too few"},
        {{0}, 8, "empty"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "cut short"},
        {{1, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'}, 10, "allowed"}, /* 100,000,001 */
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'}, 10, "allowed"},
    };
    safetensors *file = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(safetensors_parse(&file, bad[i].bytes, bad[i].size, "x"), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), bad[i].word));
    }
}

static void a_name_of_more_than_1024_bytes_is_refused(void **state)
{
    (void)state;
    char header[1200] = "{\"";
    memset(header + 2, 'n', 1025);
    strcpy(header + 1027, "\":" E("F32", "1", 0, 4) "}");
    refuse(header, strlen(header), 4, "1025 bytes");
}

/* `count` times `part` between an opening and a closing: refused for its number before anything is
 * built from it. */
static void many_refuse(const char *open, const char *part, size_t count, const char *close)
{
    size_t size = strlen(part), at = strlen(open);
    char *header = malloc(at + count * size + strlen(close) + 1);
    assert_non_null(header);
    memcpy(header, open, at);
    for (size_t i = 0; i < count; i++, at += size)
        memcpy(header + at, part, size);
    memcpy(header + at, close, strlen(close) + 1);
    refuse(header, strlen(header), 0, "more than 100000 tensors");
    free(header);
}

static void a_header_of_too_many_parts_is_refused_before_it_is_parsed(void **state)
{
    (void)state;
    many_refuse("{\"a\":[", "0,", 1500000, "0]}");
    many_refuse("{", "\"a\":{},", 100002, "\"a\":{}}");
}

static void what_the_format_allows_is_taken(void **state)
{
    (void)state;
    safetensors *file = NULL;
    unsigned char *bytes;
    /* any order, odd addresses, scalars, empty tensors, escapes, blanks behind */
    const char *header = "{\"w\":" E("F32", "", 3, 7) ",\"\\u0062\\ud83d\\ude00\":" E("U8", "3", 0, 3) ",\"e\":" E(
        "I64", "2,0", 3, 3) ", \"__metadata__\" : {\"format\":\"pt\"}} \t\r\n";
    assert_int_equal(parse(&file, header, 7, &bytes), BERLU_OK);
    assert_int_equal(safetensors_count(file), 3);
    assert_string_equal(safetensors_at(file, 0)->name, "b\xf0\x9f\x98\x80");
    assert_string_equal(safetensors_metadata(file, "format"), "pt");
    assert_null(safetensors_metadata(file, "none"));
    assert_null(safetensors_find(file, "none"));
    const st_tensor *w = safetensors_find(file, "w"), *e = safetensors_find(file, "e");
    assert_int_equal(w->rank, 0);
    assert_int_equal(w->count, 1);
    assert_int_equal(e->count, 0);
    float value;
    const unsigned char four[] = {3, 4, 5, 6};
    assert_int_equal(st_read_f32(w, &value), BERLU_OK);
    assert_memory_equal(&value, four, 4);
    safetensors_close(file);
    free(bytes);
    assert_int_equal(parse(&file, "{}", 0, &bytes), BERLU_OK);
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_find(file, "w"));
    safetensors_close(file);
    free(bytes);
}

static void values_are_widened_exactly_and_wrong_kinds_are_named(void **state)
{
    (void)state;
    static const double f64[] = {1.5, -0x1p-30};
    static const uint16_t bf16[] = {0x3fc0, 0xff80}, f16[] = {0x3e00, 0x0001};
    static const int32_t i32[] = {-7, 8};
    static const uint8_t u8[] = {200, 0};
    const st_tensor tensors[] = {
        {"bf16", ST_BF16, 1, {2}, bf16, 0, 0, NULL, 0}, {"f16", ST_F16, 1, {2}, f16, 0, 0, NULL, 0},
        {"f64", ST_F64, 1, {2}, f64, 0, 0, NULL, 0},    {"i32", ST_I32, 1, {2}, i32, 0, 0, NULL, 0},
        {"u8", ST_U8, 1, {2}, u8, 0, 0, NULL, 0},
    };
    static const float want[][2] = {{1.5f, -1.0f / 0.0f}, {1.5f, 0x1p-24f}, {1.5f, -0x1p-30f}};
    safetensors *file = NULL;
    assert_int_equal(safetensors_write(PATH, tensors, COUNT(tensors), NULL, 0), BERLU_OK);
    assert_int_equal(safetensors_open(&file, PATH), BERLU_OK);
    float got[2];
    int64_t whole[2];
    for (size_t i = 0; i < COUNT(want); i++) {
        const st_tensor *t = safetensors_find(file, tensors[i].name);
        assert_int_equal(st_read_f32(t, got), BERLU_OK);
        assert_memory_equal(got, want[i], sizeof got);
        assert_int_equal(st_read_i64(t, whole), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), t->name));
    }
    assert_int_equal(st_read_i64(safetensors_find(file, "i32"), whole), BERLU_OK);
    assert_true(whole[0] == -7 && whole[1] == 8);
    assert_int_equal(st_read_i64(safetensors_find(file, "u8"), whole), BERLU_OK);
    assert_true(whole[0] == 200 && whole[1] == 0);
    assert_int_equal(st_read_f32(safetensors_find(file, "u8"), got), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "'u8'"));
    safetensors_close(file);
    unlink(PATH);
}

/* The bytes below were written by the reference writer (safetensors 0.8.0, torch) for the same
 * tensors. */
static void the_written_bytes_are_the_reference_writers(void **state)
{
    (void)state;
    static const float z[] = {1, 2, 3, 4}, a[] = {-1};
    static const int64_t b[] = {3, 7};
    static const uint8_t u[] = {9};
    const st_tensor tensors[] = {{"u", ST_U8, 1, {1}, u, 0, 0, NULL, 0},
                                 {"z.w", ST_F32, 2, {2, 2}, z, 0, 0, NULL, 0},
                                 {"a.w", ST_F32, 0, {0}, a, 0, 0, NULL, 0},
                                 {"b.i", ST_I64, 1, {2}, b, 0, 0, NULL, 0}};
    const st_text metadata[] = {{"format", "pt"}};
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"b.i\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
        "\"a.w\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
        "\"z.w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[20,36]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[36,37]}}";
    assert_int_equal(safetensors_write(PATH, tensors, COUNT(tensors), metadata, 1), BERLU_OK);
    char *bytes;
    size_t size, padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_int_equal(file_read_all(&bytes, &size, PATH, 1 << 20), BERLU_OK);
    assert_int_equal(size, 8 + padded + 37);
    assert_int_equal((unsigned char)bytes[0] | (unsigned char)bytes[1] << 8, padded);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, b, 16);
    assert_memory_equal(bytes + 8 + padded + 16, a, 4);
    assert_memory_equal(bytes + 8 + padded + 20, z, 16);
    assert_int_equal(bytes[8 + padded + 36], 9);
    free(bytes);
    unlink(PATH);
}

static void a_writers_mistake_is_refused_and_no_file_appears(void **state)
{
    (void)state;
    static const float one[] = {1};
    static const st_tensor bad[][2] = {
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0},
         {"a", ST_U8, 1, {1}, one, 0, 0, NULL, 0}}, /* the same name in two types */
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"", ST_F32, 1, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"b\n", ST_F32, 1, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"\xff", ST_F32, 1, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"__metadata__", ST_F32, 1, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"b", ST_F32, 1, {1}, NULL, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"b", ST_F32, 9, {1}, one, 0, 0, NULL, 0}},
        {{"a", ST_F32, 1, {1}, one, 0, 0, NULL, 0}, {"b", ST_F32, 2, {1ull << 40, 1ull << 40}, one, 0, 0, NULL, 0}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(safetensors_write(PATH, bad[i], 2, NULL, 0), BERLU_ERR_ARG);
        assert_int_equal(access(PATH, F_OK), -1);
    }
}

static void an_empty_file_of_tensors_can_be_written_and_read(void **state)
{
    (void)state;
    safetensors *file = NULL;
    assert_int_equal(safetensors_write(PATH, NULL, 0, NULL, 0), BERLU_OK);
    assert_int_equal(safetensors_open(&file, PATH), BERLU_OK);
    assert_int_equal(safetensors_count(file), 0);
    assert_string_equal(safetensors_path(file), PATH);
    safetensors_close(file);
    unlink(PATH);
}

static void a_file_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    const char *header = "{\"a\":" E("F32", "2", 0, 8) ",\"b\":" E("F32", "1", 8, 12) "}  ";
    size_t size;
    unsigned char *bytes = file_make(header, strlen(header), 12, &size);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *part = malloc(cut + 1); /* exact, so that the sanitizer sees a read past the cut */
        memcpy(part, bytes, cut);
        safetensors *file = NULL;
        assert_int_equal(safetensors_parse(&file, part, cut, "x"), BERLU_ERR_INPUT);
        free(part);
    }
    free(bytes);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    safetensors *file = NULL;
    assert_int_equal(safetensors_open(&file, "no/such.safetensors"), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "no/such.safetensors"));
}

/* What a mapping of an empty file gives; the undefined sanitizer sees arithmetic on NULL. */
static void a_file_of_no_bytes_is_refused(void **state)
{
    (void)state;
    safetensors *file = NULL;
    assert_int_equal(safetensors_parse(&file, NULL, 0, "empty"), BERLU_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_broken_header_is_refused_and_the_error_names_the_place),
        cmocka_unit_test(a_length_that_lies_is_refused),
        cmocka_unit_test(a_name_of_more_than_1024_bytes_is_refused),
        cmocka_unit_test(a_header_of_too_many_parts_is_refused_before_it_is_parsed),
        cmocka_unit_test(what_the_format_allows_is_taken),
        cmocka_unit_test(values_are_widened_exactly_and_wrong_kinds_are_named),
        cmocka_unit_test(the_written_bytes_are_the_reference_writers),
        cmocka_unit_test(a_writers_mistake_is_refused_and_no_file_appears),
        cmocka_unit_test(an_empty_file_of_tensors_can_be_written_and_read),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_file_of_no_bytes_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
