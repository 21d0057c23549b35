/* fuzz_algorithms.c - any bytes as a file of product algorithms. SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/algorithms.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    algorithm_list list = {0}, again = {0};
    text out = {0};
    int same = 1;
    if (algorithms_parse(&list, (const char *)bytes, size, "fuzz") == BERLU_OK) {
        algorithms_print(&list, &out); /* reads back to the same list */
        same = algorithms_parse(&again, out.data, out.length, "again") == BERLU_OK && again.count == list.count;
        for (int i = 0; i < list.count && same; i++)
            same = strcmp(list.entries[i].shape, again.entries[i].shape) == 0 &&
                   memcmp(&list.entries[i].algorithm, &again.entries[i].algorithm, sizeof(lt_algorithm)) == 0;
    }
    algorithms_free(&list);
    algorithms_free(&again);
    text_free(&out);
    if (!same)
        abort();
    return 0;
}
