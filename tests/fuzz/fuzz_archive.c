/* fuzz_archive.c - any bytes as an archive that should hold two files. SPDX-License-Identifier:
 * MIT */
#include "data/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char first[64], second[1000];
    const tarball_file wanted[] = {{"a.bin", first, sizeof first}, {"b.bin", second, sizeof second}};
    (void)tarball_read_memory(bytes, size, wanted, 2);
    return 0;
}
