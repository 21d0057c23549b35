/* png.c - RGB bytes to a PNG file through libspng. SPDX-License-Identifier: MIT
 *
 * The encoder writes into memory and the file is written by base/file.h, so that a full disk leaves
 * no partial file. */
#include "io/png.h"

#include <spng.h>
#include <stdlib.h>

#include "base/file.h"

static berlu_status encode(spng_ctx *png, void **out, size_t *size, const uint8_t *rgb, int width, int height)
{
    struct spng_ihdr header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    int code = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    if (code == 0)
        code = spng_set_ihdr(png, &header);
    if (code == 0)
        code = spng_encode_image(png, rgb, (size_t)width * (size_t)height * 3, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (code == 0)
        *out = spng_get_png_buffer(png, size, &code);
    if (code == SPNG_EMEM)
        return berlu_fail_memory((size_t)width * (size_t)height * 3, "a PNG");
    return code == 0 && *out
               ? BERLU_OK
               : berlu_fail(BERLU_ERR_ARG, "a PNG of %d x %d pixels: %s", width, height, spng_strerror(code));
}

berlu_status png_encode(void **out, size_t *size, const uint8_t *rgb, int width, int height)
{
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!png)
        return berlu_fail_memory(0, "a PNG");
    *out = NULL;
    berlu_status status = encode(png, out, size, rgb, width, height);
    spng_ctx_free(png);
    return status;
}

berlu_status png_write(const char *path, const uint8_t *rgb, int width, int height)
{
    void *bytes;
    size_t size;
    berlu_status status = png_encode(&bytes, &size, rgb, width, height);
    if (status != BERLU_OK)
        return berlu_fail_in(status, path);
    status = file_write_atomic(path, bytes, size);
    free(bytes);
    return status;
}
