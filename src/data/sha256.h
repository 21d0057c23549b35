/* sha256.h - SHA-256 of bytes as they come (FIPS 180-4). SPDX-License-Identifier: MIT */
#ifndef DATA_SHA256_H
#define DATA_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { SHA256_TEXT = 65 };

typedef struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} sha256;

void sha256_start(sha256 *s);
void sha256_add(sha256 *s, const void *bytes, size_t count);
const char *sha256_finish(sha256 *s, char out[SHA256_TEXT]); /* lower-case hexadecimal */
berlu_status sha256_file(char out[SHA256_TEXT], const char *path);

#endif
