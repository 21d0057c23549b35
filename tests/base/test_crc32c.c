/* test_crc32c.c - published results and the defining recurrence. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/philox.h"

/* One bit at a time, straight from the polynomial. */
static uint32_t by_definition(const unsigned char *bytes, size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

static void the_published_answers_come_out(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x8a9136aa); /* RFC 3720 B.4 */
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
}

static void every_byte_and_any_split_follow_the_definition(void **state)
{
    (void)state;
    unsigned char bytes[256];
    for (unsigned i = 0; i < 256; i++) {
        unsigned char byte = (unsigned char)i;
        assert_int_equal(crc32c(0, &byte, 1), by_definition(&byte, 1));
        assert_int_equal(crc32c_portable(0, &byte, 1), by_definition(&byte, 1));
        bytes[i] = (unsigned char)philox_draw(1, PURPOSE_TEST, 0, i, 0).w[0];
    }
    for (size_t split = 0; split <= sizeof bytes; split++) {
        assert_int_equal(crc32c(crc32c(0, bytes, split), bytes + split, sizeof bytes - split),
                         by_definition(bytes, sizeof bytes));
        assert_int_equal(crc32c(0, bytes + split, sizeof bytes - split),
                         crc32c_portable(0, bytes + split, sizeof bytes - split)); /* any alignment and length */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_answers_come_out),
        cmocka_unit_test(every_byte_and_any_split_follow_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
