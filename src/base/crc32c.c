/* crc32c.c - the checksum, by the processor's own instruction where there is one.
 * SPDX-License-Identifier: MIT
 *
 * Packed sets check every image they read, so the checksum must keep pace with memory: SSE 4.2 and
 * the CRC extension of ARMv8 take eight bytes per instruction. The portable version is a table of
 * sixteen words (one per value of four bits, polynomial 0x1EDC6F41 reflected), short enough to
 * check by eye against the defining recurrence; the test does that for every entry and compares
 * both versions. */
#include "base/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_8      (uint32_t) _mm_crc32_u64
#define CRC_1      _mm_crc32_u8
static int crc_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}
#elif defined(__aarch64__) && defined(__linux__) && !defined(__clang__) /* whose header asks for -march */
#include <arm_acle.h>
#include <sys/auxv.h>
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_8      __crc32cd
#define CRC_1      __crc32cb
static int crc_instruction(void)
{
    return (getauxval(AT_HWCAP) >> 7 & 1) != 0; /* HWCAP_CRC32 */
}
#endif

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t count)
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

#ifdef CRC_TARGET
CRC_TARGET static uint32_t crc32c_instruction(uint32_t crc, const unsigned char *at, size_t count)
{
    crc = ~crc;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = CRC_8(crc, word);
    }
    for (; count; at++, count--)
        crc = CRC_1(crc, *at);
    return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return crc_instruction() ? crc32c_instruction(crc, bytes, count) : crc32c_portable(crc, bytes, count);
}
#else
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return crc32c_portable(crc, bytes, count);
}
#endif
