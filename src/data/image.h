/* image.h - a picture in memory, and pictures out of JPEG and PNG bytes. SPDX-License-Identifier: MIT
 *
 * Inside this room a picture is always 8-bit RGB, three bytes a pixel, rows from the top without gaps. Whatever the file
 * holds is brought to that form by the rules Pillow's convert("RGB") follows (grey repeated, alpha dropped, palette looked
 * up, CMYK multiplied out, the high byte of 16 bits); EXIF orientation is ignored, as torchvision and timm do.
 *
 * A decoder learns the size of a picture before it decodes, so the caller is asked in between which part it wants: a
 * random resized crop of a large JPEG is then decoded at 1/2, 1/4 or 1/8 scale, and rows below it are never converted.
 * Read on: decode_jpeg.c, decode_png.c, resize.h. */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { IMAGE_SIDE_LIMIT = 65535, IMAGE_FILE_LIMIT = 256 << 20, IMAGE_SLACK = 64 };
#define IMAGE_PIXEL_LIMIT ((size_t)89478485) /* where Pillow warns of a decompression bomb */

/* A buffer that keeps its memory from picture to picture. {0} is empty. */
typedef struct image {
    uint8_t *pixels; /* width * height * 3 bytes */
    int width, height;
    size_t room; /* bytes held; IMAGE_SLACK more than the pixels, so that a vector load may run over the end */
} image;

/* Makes room for width x height; the content is undefined. Grows only. */
berlu_status image_reserve(image *i, int width, int height);
void image_free(image *i);

/* Which part of a width x height picture is wanted, in its full-size pixels. `least` > 0 allows a scaled decoding as long
 * as both sides of the part stay at least `least` pixels (or full size); 0 asks for the exact pixels. */
typedef struct image_part {
    int left, top, width, height;
    int least;
} image_part;
typedef struct image_file { /* the bytes of a file, kept from picture to picture; {0} is empty */
    unsigned char *bytes;
    size_t room;
} image_file;
berlu_status image_file_reserve(image_file *file, size_t bytes, const char *path); /* grows only */
typedef struct image_request {
    void (*choose)(void *context, int width, int height, image_part *part); /* NULL: all of it, exactly */
    void *context;
    image_file *file;  /* where to read a file into; NULL: memory for this call alone */
    size_t byte_limit; /* of memory for one decoded picture; 0: IMAGE_PIXEL_LIMIT pixels */
} image_request;

/* Calls choose (or takes the whole) and checks the answer. For readers of pictures. */
image_part image_ask(const image_request *request, int width, int height);

/* Copies a part of a picture in memory. */
berlu_status image_copy_part(image *out, const uint8_t *pixels, int width, image_part part);

/* Moves a part of a picture to the front of its own buffer. */
void image_crop_in_place(image *i, image_part part);

/* Decodes by magic bytes, never by name. BERLU_ERR_INPUT with the reason (without a path: the caller has it) when the bytes
 * are no JPEG or PNG, broken, cut short or too large. `out` may keep undefined content then. */
berlu_status image_decode(image *out, const void *bytes, size_t size, const image_request *request);
berlu_status image_decode_jpeg(image *out, const void *bytes, size_t size, const image_request *request);
berlu_status image_decode_png(image *out, const void *bytes, size_t size, const image_request *request);

/* Shared by the decoders. The first refuses sizes beyond the limits above, in 64-bit arithmetic, before anything is
 * allocated; the second refuses what the request's own limit does not allow. */
berlu_status image_check_size(uint64_t width, uint64_t height);
berlu_status image_check_bytes(uint64_t bytes, const image_request *request);

#endif
