/* decode_png.c - PNG to RGB through libspng. SPDX-License-Identifier: MIT
 *
 * libspng checks the structure (chunk lengths, checksums, palette indices, inflate output) and
 * converts every legal combination of depth and colour; for RGB8 it drops alpha, ignores tRNS and
 * gamma and keeps the high byte of 16 bits, which is what Pillow's convert("RGB") gives. One
 * difference is intended: Pillow clips 16-bit grey at 255, which turns such images white; here they
 * keep their high byte like all others. */
#include <spng.h>
#include <stdlib.h>

#include "data/image.h"

/* Metadata is not used; this only bounds what libspng may inflate before the pixels. */
enum { CHUNK_LIMIT = 4 << 20, CHUNK_CACHE_LIMIT = 16 << 20 };

static berlu_status png_fail(int code)
{
    if (code == SPNG_EMEM)
        return berlu_fail_memory(0, "decoding a PNG");
    return berlu_fail(BERLU_ERR_INPUT, "broken PNG: %s", spng_strerror(code));
}

static berlu_status png_pixels(spng_ctx *png, image *out, const void *bytes, size_t size, const image_request *request)
{
    struct spng_ihdr header;
    int code = spng_set_png_buffer(png, bytes, size);
    if (code == 0)
        code = spng_get_ihdr(png, &header);
    if (code != 0)
        return png_fail(code);
    TRY(image_check_size(header.width, header.height));
    TRY(image_check_bytes((uint64_t)header.width * header.height * 3, request));
    TRY(image_reserve(out, (int)header.width, (int)header.height));
    code = spng_decode_image(png, out->pixels, (size_t)header.width * header.height * 3, SPNG_FMT_RGB8, 0);
    if (code != 0)
        return png_fail(code);
    image_part part = image_ask(request, out->width, out->height);
    image_crop_in_place(out, part);
    return BERLU_OK;
}

berlu_status image_decode_png(image *out, const void *bytes, size_t size, const image_request *request)
{
    spng_ctx *png = spng_ctx_new(0);
    if (!png)
        return berlu_fail_memory(0, "decoding a PNG");
    spng_set_image_limits(png, IMAGE_SIDE_LIMIT, IMAGE_SIDE_LIMIT);
    spng_set_chunk_limits(png, CHUNK_LIMIT, CHUNK_CACHE_LIMIT);
    spng_set_crc_action(png, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
    berlu_status status = png_pixels(png, out, bytes, size, request);
    spng_ctx_free(png);
    return status;
}
