/* fuzz_safetensors.c - any bytes as a file of tensors: taken whole or refused, never more. SPDX-License-Identifier: MIT
 *
 * Every value of a file that was taken is read, so that a range the checks let through becomes a sanitizer report. */
#include <stdlib.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    safetensors *file = NULL;
    if (safetensors_parse(&file, bytes, size, "fuzz") != BERLU_OK)
        return 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const st_tensor *t = safetensors_at(file, i);
        double *values = malloc(t->count * sizeof *values + 8);
        if (values && st_read_f64(t, values) != BERLU_OK)
            (void)st_read_i64(t, (int64_t *)values);
        free(values);
        if (safetensors_find(file, t->name) != t)
            abort();
    }
    safetensors_close(file);
    return 0;
}
