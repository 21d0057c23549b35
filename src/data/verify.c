/* verify.c - reads every image of a set once. SPDX-License-Identifier: MIT
 *
 * Reading is checking: a packed image is compared with its checksum, a file of a folder is decoded
 * to its last row. Single broken files, which max_bad limits, go into the set's list; damage of the
 * set as a whole is counted, and the search goes on, so that one call reports all of it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/threads.h"
#include "data/source.h"

enum { RANGES = 64, STEP = 4096 }; /* threads share a step of images in ranges; progress is reported after each step */

typedef struct range_result {
    size_t damaged;
    berlu_status status; /* the error that ended the range, other than damage */
    char message[512];   /* the first one */
} range_result;

typedef struct verifying {
    data_source *source;
    size_t first, count; /* of the step, as indices over both splits */
    range_result ranges[RANGES];
} verifying;

static void image_check(data_source *s, size_t number, const image_request *request, image *out, range_result *r)
{
    size_t train = s->info.images[DATA_TRAIN];
    data_split split = number < train ? DATA_TRAIN : DATA_TEST;
    size_t index = split == DATA_TRAIN ? number : number - train;
    berlu_status status = data_read(s, split, index, request, out);
    if (status == BERLU_ERR_INPUT)
        status = data_report_bad(s, split, index);
    if (status == BERLU_OK)
        return;
    if (r->damaged == 0)
        snprintf(r->message, sizeof r->message, "%s", berlu_last_error());
    if (status == BERLU_ERR_IO)
        r->damaged++;
    else
        r->status = status;
}

static void range_check(void *context, size_t range)
{
    verifying *v = context;
    range_result *r = &v->ranges[range];
    image out = {0};
    image_file file = {0};
    image_request request = {.file = &file};
    size_t end = v->first + v->count * (range + 1) / RANGES;
    for (size_t i = v->first + v->count * range / RANGES; i < end && r->status == BERLU_OK; i++)
        image_check(v->source, i, &request, &out, r);
    image_free(&out);
    free(file.bytes);
}

/* The first failure in the order of the images; earlier steps come first. */
static berlu_status step_settle(verifying *v, data_verification *out)
{
    for (int i = 0; i < RANGES; i++) {
        range_result *r = &v->ranges[i];
        if (r->damaged && out->damaged == 0)
            snprintf(out->message, sizeof out->message, "%s", r->message);
        out->damaged += r->damaged;
        if (r->status != BERLU_OK)
            return berlu_fail(r->status, "%s", r->message);
    }
    return BERLU_OK;
}

berlu_status data_verify(data_source *source, int threads, void (*progress)(void *context, size_t done, size_t all),
                         void *context, data_verification *out)
{
    size_t all = source->info.images[DATA_TRAIN] + source->info.images[DATA_TEST];
    verifying *v = calloc(1, sizeof *v);
    *out = (data_verification){0};
    if (!v)
        return berlu_fail_memory(sizeof *v, "verifying a set");
    berlu_status status = BERLU_OK;
    for (size_t first = 0; first < all; first += STEP) {
        *v = (verifying){.source = source, .first = first, .count = all - first < STEP ? all - first : STEP};
        threads_for(threads, RANGES, range_check, v);
        TRY_DONE(step_settle(v, out));
        out->images = first + v->count;
        if (progress)
            progress(context, out->images, all);
    }
done:
    free(v);
    return status;
}
