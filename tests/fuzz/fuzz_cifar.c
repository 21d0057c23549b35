/* fuzz_cifar.c - any bytes as the two files of a CIFAR-100 of a few records.
 * SPDX-License-Identifier: MIT
 *
 * The first byte says after how many half records the bytes are cut in two. A set that is taken
 * must have every label in range, as many images of each class as expected, and every image
 * readable. */
#include "data/cifar_layout.h"
#include "data/source.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128];
    static const unsigned char coarse_of[] = {1, 0};
    cifar_layout l = cifar100_layout;
    l.classes = l.coarse_classes = 2;
    l.coarse_of = coarse_of;
    l.records[0] = l.records[1] = 2;
    size_t half = size ? 1 + (size_t)bytes[0] * 1537 : 0; /* half records */
    half = half < size ? half : size;
    scratch_write(scratch_path(path, "train.bin"), bytes + (size ? 1 : 0), half ? half - 1 : 0);
    scratch_write(scratch_path(path, "test.bin"), bytes + half, size - half);
    const data_options o = {0};
    data_source s = {.kind = &data_cifar100};
    pthread_mutex_init(&s.lock, NULL);
    image out = {0};
    if (cifar_open_layout(&s, scratch_folder(), &o, &l) == BERLU_OK)
        for (size_t i = 0; i < 2; i++)
            if (data_read(&s, DATA_TRAIN, i, NULL, &out) != BERLU_OK || data_label(&s, DATA_TRAIN, i) > 1 ||
                data_label(&s, DATA_TRAIN, 0) == data_label(&s, DATA_TRAIN, 1))
                abort();
    data_cifar100.close(&s);
    arena_free(&s.memory);
    image_free(&out);
    return 0;
}
