/* folder.h - an empty folder of its own for a test. SPDX-License-Identifier: MIT
 *
 * Lives under the build folder (BERLU_BUILD_DIR), not under /tmp, so that rename and fsync meet a
 * real file system. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

enum { FOLDER_PATH = 512 };

/* Makes the folder for `name` (unique per test program) empty and writes its path to `out`. */
static inline const char *folder_fresh(char out[FOLDER_PATH], const char *name)
{
    const char *build = getenv("BERLU_BUILD_DIR");
    snprintf(out, FOLDER_PATH, "%s/test-data/%s", build ? build : "/tmp", name);
    if (folder_remove(out) != BERLU_OK || folder_make(out) != BERLU_OK) {
        fprintf(stderr, "%s\n", berlu_last_error());
        abort();
    }
    return out;
}

/* `folder`/`name` in `out`. */
static inline const char *folder_path(char out[FOLDER_PATH], const char *folder, const char *name)
{
    if (snprintf(out, FOLDER_PATH, "%s/%s", folder, name) >= FOLDER_PATH)
        abort();
    return out;
}

#endif
