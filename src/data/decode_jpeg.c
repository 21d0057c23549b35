/* decode_jpeg.c - JPEG to RGB through libjpeg-turbo, whole or a part, at full size or scaled.
 * SPDX-License-Identifier: MIT
 *
 * At full size the result is Pillow's: accurate integer DCT, smooth chroma upsampling, four
 * components always taken as inverted (Adobe's way), multiplied out by Pillow's formula. With
 * `least` set, the DCT itself is scaled by 1/2, 1/4 or 1/8 while the part stays large enough; that
 * is another (good) antialiasing than Pillow's, so only training uses it.
 *
 * Rows below the part are still entropy-decoded, so whether a file counts as broken does not depend
 * on the random crop. libjpeg reports truncated or damaged data as a warning and paints the rest
 * grey; here those warnings are errors. libjpeg's errors leave by longjmp to the one setjmp
 * below. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "data/image.h"

enum { SCANS_LIMIT = 500, DIRECT_MARGIN = 384 };

typedef struct jpeg_job {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    const image_request *request;
    berlu_status status;
    int scans_allowed;
} jpeg_job;

static void job_fail(jpeg_job *job, berlu_status status)
{
    job->status = status;
    longjmp(job->leave, 1);
}

static void on_error(j_common_ptr lib)
{
    jpeg_job *job = lib->client_data;
    char message[JMSG_LENGTH_MAX];
    if (lib->err->msg_code == JERR_OUT_OF_MEMORY)
        job_fail(job, berlu_fail_memory(0, "decoding a JPEG"));
    lib->err->format_message(lib, message);
    job_fail(job, berlu_fail(BERLU_ERR_INPUT, "broken JPEG: %s", message));
}

/* level < 0 is a warning: the data is damaged, and libjpeg would continue with a guess. */
static void on_message(j_common_ptr lib, int level)
{
    int code = lib->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        on_error(lib);
}

/* A progressive file may repeat scans without end; this is called at least once a scan. */
static void on_progress(j_common_ptr lib)
{
    jpeg_job *job = lib->client_data;
    if (job->lib.input_scan_number > job->scans_allowed)
        job_fail(job, berlu_fail(BERLU_ERR_INPUT, "broken JPEG: more than %d scans", job->scans_allowed));
}

static void job_require(jpeg_job *job, berlu_status status)
{
    if (status != BERLU_OK)
        job_fail(job, status);
}

static void job_check(jpeg_job *job)
{
    const struct jpeg_decompress_struct *lib = &job->lib;
    job_require(job, image_check_size(lib->image_width, lib->image_height));
    if (lib->num_components != 1 && lib->num_components != 3 && lib->num_components != 4)
        job_fail(job, berlu_fail(BERLU_ERR_INPUT, "a JPEG with %d components is not supported", lib->num_components));
    if (lib->arith_code)
        job_fail(job, berlu_fail(BERLU_ERR_INPUT, "a JPEG with arithmetic coding is not supported"));
    size_t pixels = (size_t)lib->image_width * lib->image_height;
    if (jpeg_has_multiple_scans(&job->lib)) /* then all coefficients are kept, two bytes each */
        job_require(job, image_check_bytes(pixels * 2 * (size_t)lib->num_components, job->request));
    size_t work = 16 * IMAGE_PIXEL_LIMIT / pixels; /* a full set of scans at the largest size */
    job->scans_allowed = work < 16 ? 16 : work > SCANS_LIMIT ? SCANS_LIMIT : (int)work;
}

/* The smallest of 8/8, 4/8, 2/8, 1/8 that leaves the part large enough. */
static unsigned scale_for(const image_part *part)
{
    unsigned eighths = 8;
    while (part->least > 0 && eighths > 1 && (unsigned)part->width * (eighths / 2) >= (unsigned)part->least * 8 &&
           (unsigned)part->height * (eighths / 2) >= (unsigned)part->least * 8)
        eighths /= 2;
    return eighths;
}

static image_part part_scaled(image_part part, unsigned eighths, const struct jpeg_decompress_struct *lib)
{
    int num = (int)eighths;
    int left = part.left * num / 8, top = part.top * num / 8;
    int right = ((part.left + part.width) * num + 7) / 8, bottom = ((part.top + part.height) * num + 7) / 8;
    right = right < (int)lib->output_width ? right : (int)lib->output_width;
    bottom = bottom < (int)lib->output_height ? bottom : (int)lib->output_height;
    return (image_part){left, top, right - left, bottom - top, 0};
}

/* a * b / 255, rounded, the way Pillow writes it. */
static int multiply_255(int a, int b)
{
    int t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

static void row_from_cmyk(uint8_t *rgb, const uint8_t *raw, int width)
{
    for (int x = 0; x < width; x++, raw += 4, rgb += 3)
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)(raw[3] - multiply_255(255 - raw[c], raw[3]));
}

static void rows_skip(jpeg_job *job, JSAMPARRAY row, JDIMENSION until)
{
    while (job->lib.output_scanline < until)
        if (jpeg_skip_scanlines(&job->lib, until - job->lib.output_scanline) == 0)
            jpeg_read_scanlines(&job->lib, row, 1);
}

/* Restricts the decoder to the part. Chroma is upsampled from its neighbours, so the decoder gets
 * one block more on every side: its guess at its own edge is discarded, and the part equals a crop
 * of the whole. Afterwards `part` is relative to the corner of the restricted image, of which
 * `above` rows are still to be dropped. */
static void job_narrow(jpeg_job *job, image_part *part, JDIMENSION *above)
{
    struct jpeg_decompress_struct *lib = &job->lib;
    JDIMENSION block_x = (JDIMENSION)(lib->max_h_samp_factor * lib->min_DCT_scaled_size);
    JDIMENSION block_y = (JDIMENSION)(lib->max_v_samp_factor * lib->min_DCT_scaled_size);
    JDIMENSION left = (JDIMENSION)part->left > block_x ? (JDIMENSION)part->left - block_x : 0;
    JDIMENSION right = (JDIMENSION)(part->left + part->width) + block_x, width;
    right = right < lib->output_width ? right : lib->output_width;
    width = right - left;
    if (width < lib->output_width) {
        jpeg_crop_scanline(lib, &left, &width); /* moves left down to the edge of a block */
        part->left -= (int)left;
    }
    JDIMENSION skip = (JDIMENSION)part->top / block_y;
    *above = (JDIMENSION)part->top;
    if (skip > 2)
        *above -= jpeg_skip_scanlines(lib, (skip - 2) * block_y);
}

/* Decodes a row of the part through `row`, which is wide enough for the decoder's output. */
static void row_copy(jpeg_job *job, uint8_t *to, JSAMPARRAY row, image_part part)
{
    jpeg_read_scanlines(&job->lib, row, 1);
    const uint8_t *from = row[0] + (size_t)part.left * (size_t)job->lib.output_components;
    if (job->lib.output_components == 4)
        row_from_cmyk(to, from, part.width);
    else
        memcpy(to, from, (size_t)part.width * 3);
}

/* Decodes a row of the part in place, between the row before and the row after it in the same
 * image. The decoder's output left of the part overwrites the end of the row before, which is
 * restored; right of it the next row follows. */
static void row_direct(jpeg_job *job, uint8_t *to, image_part part)
{
    uint8_t kept[DIRECT_MARGIN];
    size_t margin = (size_t)part.left * 3;
    JSAMPROW place = to - margin;
    memcpy(kept, place, margin);
    jpeg_read_scanlines(&job->lib, &place, 1);
    memcpy(place, kept, margin);
}

static void job_rows(jpeg_job *job, image *out, image_part part)
{
    struct jpeg_decompress_struct *lib = &job->lib;
    JDIMENSION above;
    job_require(job, image_check_bytes((uint64_t)part.width * (uint64_t)part.height * 3, job->request));
    job_require(job, image_reserve(out, part.width, part.height));
    job_narrow(job, &part, &above);
    JSAMPARRAY row = lib->mem->alloc_sarray((j_common_ptr)lib, JPOOL_IMAGE,
                                            lib->output_width * (JDIMENSION)lib->output_components, 1);
    for (; above > 0; above--)
        jpeg_read_scanlines(lib, row, 1);
    int right = (int)lib->output_width - part.left - part.width;
    int direct =
        lib->output_components == 3 && part.left * 3 <= DIRECT_MARGIN && part.left <= part.width && right <= part.width;
    for (int y = 0; y < part.height; y++) {
        uint8_t *to = out->pixels + (size_t)y * (size_t)part.width * 3;
        if (direct && y > 0 && y + 1 < part.height)
            row_direct(job, to, part);
        else
            row_copy(job, to, row, part);
    }
    rows_skip(job, row, lib->output_height);
}

static void job_run(jpeg_job *job, image *out, const void *bytes, size_t size)
{
    struct jpeg_decompress_struct *lib = &job->lib;
    jpeg_create_decompress(lib);
    lib->client_data = job;
    lib->progress = &job->progress;
    jpeg_mem_src(lib, bytes, (unsigned long)size);
    jpeg_read_header(lib, TRUE);
    job_check(job);
    image_part part = image_ask(job->request, (int)lib->image_width, (int)lib->image_height);
    unsigned eighths = scale_for(&part);
    lib->scale_num = eighths;
    lib->scale_denom = 8;
    lib->dct_method = JDCT_ISLOW;
    lib->do_fancy_upsampling = TRUE;
    lib->out_color_space = lib->num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(lib);
    job_rows(job, out, part_scaled(part, eighths, lib));
    jpeg_finish_decompress(lib);
}

/* The job lives with the caller: a local of the function that calls setjmp would be indeterminate
 * after the jump. */
static void job_guard(jpeg_job *job, image *out, const void *bytes, size_t size)
{
    if (setjmp(job->leave) == 0)
        job_run(job, out, bytes, size);
}

berlu_status image_decode_jpeg(image *out, const void *bytes, size_t size, const image_request *request)
{
    jpeg_job job = {.request = request, .status = BERLU_OK, .scans_allowed = SCANS_LIMIT};
    job.lib.err = jpeg_std_error(&job.errors);
    job.errors.error_exit = on_error;
    job.errors.emit_message = on_message;
    job.progress.progress_monitor = on_progress;
    job.lib.client_data = &job;
    job_guard(&job, out, bytes, size);
    jpeg_destroy_decompress(&job.lib);
    return job.status;
}
