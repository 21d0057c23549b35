/* packed_format.h - the bytes of a packed set. SPDX-License-Identifier: MIT
 *
 * Layout of format 2, numbers little-endian (docs/formats.md documents it for other programs):
 *
 *     header      magic "BERLUPK2", u64 side, classes, train, test, bytes of names; zeros to 4096
 *     images      side * side * 3 bytes each, train then test
 *     sums        u32 per image: CRC32C of its number (u64, over both splits) and its bytes
 *     labels      u32 per image; bit 31 marks one that was broken
 *     names       mean and std (six doubles), kind, class order, each class name; texts end in NUL
 *     checksum    u32, CRC32C of header, sums, labels and names
 *
 * The number inside a sum detects a misplaced image as well as a wrong byte. Format 1 (berlu 0.1.0)
 * has no sums, and its checksum covers the 48 used bytes of the header; it is read and never
 * written. cache.c writes, packed.c reads. */
#ifndef DATA_PACKED_FORMAT_H
#define DATA_PACKED_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/crc32c.h"

enum { PACKED_FORMAT = 2, PACKED_HEADER = 4096, PACKED_SIDE_MAX = 4096 };
#define PACKED_MAGIC  "BERLUPK" /* the digit of the format follows */
#define PACKED_BROKEN ((uint32_t)1 << 31)

typedef struct packed_header {
    char magic[8];
    uint64_t side, classes, train, test, names;
} packed_header;
_Static_assert(sizeof(packed_header) == 48, "the header is written as it lies in memory");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packed sets are little-endian; this machine needs conversions here"
#endif

static inline size_t packed_image_bytes(const packed_header *h)
{
    return (size_t)(h->side * h->side * 3);
}

static inline uint32_t packed_image_sum(uint64_t number, const void *pixels, size_t bytes)
{
    return crc32c(crc32c(0, &number, sizeof number), pixels, bytes);
}

#endif
