/* image.c - image buffers, limits, and the choice of a decoder. SPDX-License-Identifier: MIT
 *
 * Files lie about their type (ImageNet holds a PNG named .JPEG), so the first bytes decide. Limits
 * are checked from the header before allocation: a file of a hundred bytes may claim four billion
 * pixels. */
#include "data/image.h"

#include <stdlib.h>
#include <string.h>

berlu_status image_reserve(image *i, int width, int height)
{
    size_t need = (size_t)width * (size_t)height * 3 + IMAGE_SLACK;
    if (need > i->capacity) {
        uint8_t *grown = realloc(i->pixels, need);
        if (!grown)
            return berlu_fail_memory(need, "a decoded image");
        i->pixels = grown;
        i->capacity = need;
    }
    i->width = width;
    i->height = height;
    return BERLU_OK;
}

void image_free(image *i)
{
    free(i->pixels);
    *i = (image){0};
}

berlu_status image_file_reserve(image_file *file, size_t bytes, const char *path)
{
    if (bytes <= file->capacity)
        return BERLU_OK;
    unsigned char *grown = realloc(file->bytes, bytes);
    if (!grown)
        return berlu_fail_memory(bytes, path);
    file->bytes = grown;
    file->capacity = bytes;
    return BERLU_OK;
}

image_part image_ask(const image_request *request, int width, int height)
{
    image_part part = {0, 0, width, height, 0};
    if (request && request->choose) {
        request->choose(request->context, width, height, &part);
        int inside = part.left >= 0 && part.top >= 0 && part.width > 0 && part.height > 0 &&
                     part.left <= width - part.width && part.top <= height - part.height;
        if (!inside) /* an internal error, never the file's: take the whole rather than read out of bounds */
            part = (image_part){0, 0, width, height, 0};
    }
    return part;
}

berlu_status image_copy_part(image *out, const uint8_t *pixels, int width, image_part part)
{
    TRY(image_reserve(out, part.width, part.height));
    const uint8_t *from = pixels + ((size_t)part.top * (size_t)width + (size_t)part.left) * 3;
    size_t row = (size_t)part.width * 3;
    if (part.width == width) {
        memcpy(out->pixels, from, row * (size_t)part.height);
        return BERLU_OK;
    }
    for (int y = 0; y < part.height; y++)
        memcpy(out->pixels + (size_t)y * row, from + (size_t)y * (size_t)width * 3, row);
    return BERLU_OK;
}

void image_crop_in_place(image *i, image_part part)
{
    size_t from_row = (size_t)i->width * 3, to_row = (size_t)part.width * 3;
    const uint8_t *from = i->pixels + (size_t)part.top * from_row + (size_t)part.left * 3;
    for (int y = 0; y < part.height; y++)
        memmove(i->pixels + (size_t)y * to_row, from + (size_t)y * from_row, to_row);
    i->width = part.width;
    i->height = part.height;
}

berlu_status image_check_size(uint64_t width, uint64_t height)
{
    if (width == 0 || height == 0)
        return berlu_fail(BERLU_ERR_INPUT, "the image has no pixels");
    if (width <= IMAGE_SIDE_LIMIT && height <= IMAGE_SIDE_LIMIT && width * height <= IMAGE_PIXEL_LIMIT)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "%llu x %llu pixels are over the limit of %zu (%d a side)",
                      (unsigned long long)width, (unsigned long long)height, IMAGE_PIXEL_LIMIT, IMAGE_SIDE_LIMIT);
}

berlu_status image_check_bytes(uint64_t bytes, const image_request *request)
{
    if (!request || !request->byte_limit || bytes <= request->byte_limit)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "decoding needs %llu bytes, the memory budget allows %zu; give the loader more",
                      (unsigned long long)bytes, request->byte_limit);
}

berlu_status image_decode(image *out, const void *bytes, size_t size, const image_request *request)
{
    static const unsigned char png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const unsigned char jpeg[3] = {0xff, 0xd8, 0xff};
    if (size == 0)
        return berlu_fail(BERLU_ERR_INPUT, "the file is empty");
    if (size > IMAGE_FILE_LIMIT)
        return berlu_fail(BERLU_ERR_INPUT, "a file of %zu bytes is over the limit of %d", size, IMAGE_FILE_LIMIT);
    if (size >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return image_decode_jpeg(out, bytes, size, request);
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return image_decode_png(out, bytes, size, request);
    return berlu_fail(BERLU_ERR_INPUT, "neither a JPEG nor a PNG");
}
