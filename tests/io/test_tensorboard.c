/* test_tensorboard.c - event files by field and by checksum. SPDX-License-Identifier: MIT
 *
 * The two golden records were checked with TensorBoard's own reader. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/file_in.h"
#include "io/tar.h"
#include "io/tensorboard.h"
#include "support/folder.h"

static void assert_hex(const text *t, const char *hex)
{
    assert_int_equal(t->length * 2, strlen(hex));
    for (size_t i = 0; i < t->length; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)t->data[i]);
        assert_memory_equal(digits, hex + 2 * i, 2);
    }
}

static void the_records_are_those_tensorboard_reads(void **state)
{
    (void)state;
    text t = {0};
    tb_record_version(&t, 1700000000.5);
    assert_hex(&t, "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
    text_free(&t);
    tb_record_scalar(&t, 1700000000.5, 3, "a", 0.5f);
    assert_hex(&t, "1700000000000000e7cef81e0900002040fc54d94110032a0a0a080a0161150000003f30fef817");
    text_free(&t);
}

static uint32_t le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t masked(const void *p, size_t n)
{
    uint32_t crc = crc32c(0, p, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Walks the records of a file; returns how many, all checksums proven. */
static size_t records_in(const unsigned char *data, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        assert_true(at + 16 <= size);
        uint32_t length = le32(data + at);
        assert_int_equal(le32(data + at + 8), masked(data + at, 8));
        assert_true(at + 16 + length <= size);
        assert_int_equal(le32(data + at + 12 + length), masked(data + at + 12, length));
        at += 16 + length;
    }
    return count;
}

static void a_histogram_counts_every_finite_value_once(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_fresh(folder, "tensorboard-histogram");
    folder_handle in;
    tb_writer *w;
    assert_int_equal(folder_hold(&in, folder), BERLU_OK);
    assert_int_equal(tb_open(&w, &in, 1700000000.0), BERLU_OK);
    float values[100];
    for (int i = 0; i < 100; i++)
        values[i] = (float)i - 50;
    values[7] = NAN;
    tb_values(w, 1700000001.0, 5, "hist", values, 100);
    assert_int_equal(tb_flush(w), BERLU_OK);
    unsigned char *bytes = NULL;
    size_t size = 0;
    char path[FOLDER_PATH];
    assert_int_equal(file_in_all(&bytes, &size, folder_path(path, folder, tb_name(w))), BERLU_OK);
    assert_int_equal(records_in(bytes, size), 2);
    double counts[30], total = 0, num; /* the last field: 30 packed doubles, then the record's checksum */
    memcpy(counts, bytes + size - 4 - sizeof counts, sizeof counts);
    for (int i = 0; i < 30; i++)
        total += counts[i];
    assert_true(total == 99);
    const unsigned char key[] = {0x19}; /* field 3, fixed64: num */
    const unsigned char *at = memmem(bytes + 40, size - 40, "hist", 4);
    assert_non_null(at);
    at = memchr(at + 4 + 18, key[0], 4);
    assert_non_null(at);
    memcpy(&num, at + 1, 8);
    assert_true(num == 99);
    free(bytes);
    tb_close(w);
    folder_release(&in);
    assert_int_equal(folder_remove(folder), BERLU_OK);
}

static void nothing_is_written_for_an_empty_histogram(void **state)
{
    (void)state;
    text t = {0};
    tb_record_histogram(&t, 1, 1, "x", &(tb_histogram){0});
    assert_int_equal(t.length, 0);
}

static void a_second_writer_in_the_same_second_takes_another_name(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_fresh(folder, "tensorboard-second");
    folder_handle in;
    tb_writer *one, *two;
    assert_int_equal(folder_hold(&in, folder), BERLU_OK);
    assert_int_equal(tb_open(&one, &in, 1700000000.0), BERLU_OK);
    assert_int_equal(tb_open(&two, &in, 1700000000.0), BERLU_OK);
    assert_string_not_equal(tb_name(one), tb_name(two));
    assert_ptr_equal(strstr(tb_name(one), "events.out.tfevents.1700000000."), tb_name(one));
    tb_close(one);
    tb_close(two);
    folder_release(&in);
    assert_int_equal(folder_remove(folder), BERLU_OK);
}

static const char *host = "host";

int gethostname(char *out, size_t size) /* libc's, so that the machine's name is not the test's */
{
    snprintf(out, size, "%s", host);
    return 0;
}

static void the_longest_host_name_leaves_a_name_that_archives_can_hold(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], longest[HOST_NAME_MAX + 1] = {0};
    folder_fresh(folder, "tensorboard-host");
    folder_handle in;
    tb_writer *w;
    host = memset(longest, 'h', HOST_NAME_MAX);
    assert_int_equal(folder_hold(&in, folder), BERLU_OK);
    assert_int_equal(tb_open(&w, &in, 1700000000.0), BERLU_OK);
    assert_true(strlen(tb_name(w)) < TAR_NAME);
    tb_close(w);
    host = "host";
    folder_release(&in);
    assert_int_equal(folder_remove(folder), BERLU_OK);
}

static void a_folder_that_is_not_there_is_an_error_with_its_name(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_handle in;
    tb_writer *w;
    folder_fresh(folder, "tensorboard-missing");
    assert_int_equal(folder_hold(&in, folder), BERLU_OK);
    assert_int_equal(folder_remove(folder), BERLU_OK);
    assert_int_equal(tb_open(&w, &in, 1), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), "tensorboard-missing"));
    folder_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_records_are_those_tensorboard_reads),
        cmocka_unit_test(a_histogram_counts_every_finite_value_once),
        cmocka_unit_test(nothing_is_written_for_an_empty_histogram),
        cmocka_unit_test(a_second_writer_in_the_same_second_takes_another_name),
        cmocka_unit_test(the_longest_host_name_leaves_a_name_that_archives_can_hold),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error_with_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
