/* crc32c.h - the Castagnoli checksum of TensorBoard records and packed sets.
 * SPDX-License-Identifier: MIT */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *bytes,
                size_t count); /* start with 0; crc32c(0, "123456789", 9) = 0xE3069283 */

/* The same in plain C, for processors without the instruction and as the reference of the test. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t count);

#endif
