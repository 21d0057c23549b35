/* fuzz_packed.c - any bytes as a packed set; all of a set that opens is read. SPDX-License-Identifier: MIT */
#include "data/data.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128], text[160];
    data_source *s = NULL;
    image out = {0};
    scratch_write(scratch_path(path, "set.pack"), bytes, size);
    snprintf(text, sizeof text, "packed:%s", path);
    if (data_open(&s, text, NULL) == BERLU_OK) {
        const data_info *info = data_describe(s);
        for (int split = 0; split < DATA_SPLITS; split++)
            for (size_t i = 0; i < info->images[split]; i++)
                if ((size_t)data_label(s, (data_split)split, i) >= info->classes)
                    abort();
                else
                    (void)data_read(s, (data_split)split, i, NULL, &out);
    }
    image_free(&out);
    data_close(s);
    unlink(path);
    return 0;
}
