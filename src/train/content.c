/* content.c - see content.h. SPDX-License-Identifier: MIT */
#include "train/content.h"

#include <string.h>

static void number_add(sha256 *h, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    sha256_add(h, bytes, sizeof bytes);
}

static void labels_add(sha256 *h, const data_source *data, data_split split, size_t images)
{
    for (size_t i = 0; i < images; i++)
        number_add(h, (uint64_t)data_label(data, split, i));
}

/* An unreadable image is hashed as such; the loader reports it when it is needed. */
static berlu_status pixels_add(sha256 *h, data_source *data, data_split split, size_t images)
{
    image decoded = {0};
    size_t some = images < CONTENT_IMAGES ? images : CONTENT_IMAGES;
    berlu_status status = BERLU_OK;
    for (size_t k = 0; status == BERLU_OK && k < some; k++) {
        size_t index = images / some * k + images % some * k / some;
        status = data_read(data, split, index, &(image_request){0}, &decoded);
        number_add(h, index);
        number_add(h, status == BERLU_OK ? (uint64_t)decoded.width : 0);
        if (status == BERLU_OK)
            sha256_add(h, decoded.pixels, (size_t)decoded.width * (size_t)decoded.height * 3);
        if (status == BERLU_ERR_INPUT)
            status = BERLU_OK;
    }
    image_free(&decoded);
    return status;
}

berlu_status content_of_data(char out[SHA256_TEXT], data_source *data)
{
    const data_info *info = data_describe(data);
    sha256 h;
    sha256_start(&h);
    number_add(&h, info->classes);
    for (size_t c = 0; c < info->classes; c++)
        sha256_add(&h, info->class_names[c], strlen(info->class_names[c]) + 1);
    for (int split = 0; split < DATA_SPLITS; split++) {
        number_add(&h, info->images[split]);
        labels_add(&h, data, (data_split)split, info->images[split]);
        berlu_status status = pixels_add(&h, data, (data_split)split, info->images[split]);
        if (status != BERLU_OK)
            return status;
    }
    sha256_finish(&h, out);
    return BERLU_OK;
}
