/* fuzz_landscape.c - any bytes as the landscape.json of a run. SPDX-License-Identifier: MIT */
#include <math.h>

#include "analyze/landscape_file.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128];
    landscape_summary s, again;
    scratch_write(scratch_path(path, LANDSCAPE_FILE), bytes, size);
    if (landscape_load(&s, scratch_folder()) != BERLU_OK)
        return 0;
    if (!isfinite(s.loss) || !isfinite(s.sharpness) || strlen(s.how) >= sizeof s.how)
        abort();
    if (strpbrk(s.how, "\"\\")) /* our own texts have no quotes: landscape_save() need not escape */
        return 0;
    for (const char *c = s.how; *c; c++)
        if ((unsigned char)*c < 32)
            return 0;
    if (landscape_save(scratch_folder(), &s) != BERLU_OK || landscape_load(&again, scratch_folder()) != BERLU_OK ||
        again.loss != s.loss || again.sharpness != s.sharpness || strcmp(again.how, s.how) != 0)
        abort();
    return 0;
}
