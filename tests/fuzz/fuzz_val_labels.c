/* fuzz_val_labels.c - any bytes as the text that labels a flat val folder.
 * SPDX-License-Identifier: MIT */
#include "data/data.h"
#include "scratch.h"

static void folder_once(void)
{
    char path[128];
    static int made;
    if (made++)
        return;
    static const char *const folders[] = {"train", "train/a", "train/b", "val"}, *const files[] = {
                                                                                     "train/a/1.png", "train/b/1.png",
                                                                                     "val/1.png", "val/2.png"};
    for (int i = 0; i < 4; i++)
        mkdir(scratch_path(path, folders[i]), 0777);
    for (int i = 0; i < 4; i++)
        scratch_write(scratch_path(path, files[i]), "x", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128], text[160];
    data_source *s = NULL;
    folder_once();
    scratch_write(scratch_path(path, "labels.txt"), bytes, size);
    snprintf(text, sizeof text, "folder:%s", scratch_folder());
    if (data_open(&s, text, &(data_options){.val_labels = path}) == BERLU_OK)
        for (size_t i = 0; i < 2; i++)
            if (data_label(s, DATA_TEST, i) < 0 || data_label(s, DATA_TEST, i) > 1)
                abort();
    data_close(s);
    return 0;
}
