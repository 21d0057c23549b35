/* crc32c.c - the checksum, four bits at a time. SPDX-License-Identifier: MIT
 *
 * Records are small and few, so a table of sixteen words (one per value of four bits, polynomial
 * 0x1EDC6F41 reflected) is fast enough and short enough to check by eye against the defining
 * recurrence; the test does that for every entry. */
#include "base/crc32c.h"

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    static const uint32_t step[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ step[crc & 15];
        crc = crc >> 4 ^ step[crc & 15];
    }
    return ~crc;
}
