/* scratch.h - a folder in memory for readers that want files. SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Made once per process; removed by the clean-up of /dev/shm, since a fuzzer may end at any
 * point. */
static inline const char *scratch_folder(void)
{
    static char folder[64];
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/berlu-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(folder))
            abort();
    }
    return folder;
}

static inline const char *scratch_path(char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s", scratch_folder(), name);
    return out;
}

static inline void scratch_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(bytes, 1, size, f) != size))
        abort();
    fclose(f);
}

#endif
