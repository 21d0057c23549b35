/* fuzz_jpeg.c - any bytes as a JPEG. SPDX-License-Identifier: MIT */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return image_any_bytes(bytes, size, image_decode_jpeg);
}
