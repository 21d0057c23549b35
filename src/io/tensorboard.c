/* tensorboard.c - see tensorboard.h. SPDX-License-Identifier: MIT
 *
 * Field numbers are those of event.proto and summary.proto: Event {1 wall_time, 2 step, 3
 * file_version, 5 summary}, Summary {1 value}, Value {1 tag, 2 simple_value, 5 histo},
 * HistogramProto {1 min .. 5 sum_squares, 6 limits, 7 counts}. */
#include "io/tensorboard.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "io/protobuf.h"

enum { BUCKETS = 30, NAME_ROOM = 100 }; /* an archive of runs has no space for longer names (tar.h) */

struct tb_writer {
    const folder_handle *in;
    char name[NAME_ROOM];
    text pending;
};

/* Checksums are masked, so that a checksum of data that holds checksums stays a good one. */
static uint32_t crc_masked(const void *bytes, size_t count)
{
    uint32_t crc = crc32c(0, bytes, count);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void record_put(text *out, text *event)
{
    unsigned char head[12], tail[4];
    le64_put(head, event->length);
    le32_put(head + 8, crc_masked(head, 8));
    le32_put(tail, crc_masked(event->data, event->length));
    out->failed |= event->failed;
    text_bytes(out, head, sizeof head);
    text_bytes(out, event->data, event->length);
    text_bytes(out, tail, sizeof tail);
    text_free(event);
}

/* Wraps a Summary.Value into Summary, Event and record. Step 0 is the default and is not
 * written. */
static void value_put(text *out, double wall, int64_t step, text *value)
{
    text event = {0}, summary = {0};
    pb_message(&summary, 1, value);
    pb_double(&event, 1, wall);
    if (step != 0)
        pb_varint(&event, 2, (uint64_t)step);
    pb_message(&event, 5, &summary);
    record_put(out, &event);
}

void tb_record_version(text *out, double wall)
{
    text event = {0};
    pb_double(&event, 1, wall);
    pb_string(&event, 3, "brain.Event:2");
    record_put(out, &event);
}

void tb_record_scalar(text *out, double wall, int64_t step, const char *tag, float value)
{
    text message = {0};
    pb_string(&message, 1, tag);
    pb_float(&message, 2, value);
    value_put(out, wall, step, &message);
}

void tb_record_histogram(text *out, double wall, int64_t step, const char *tag, const tb_histogram *h)
{
    if (h->buckets == 0 || !(h->count > 0))
        return;
    text histo = {0}, message = {0};
    pb_double(&histo, 1, h->min);
    pb_double(&histo, 2, h->max);
    pb_double(&histo, 3, h->count);
    pb_double(&histo, 4, h->sum);
    pb_double(&histo, 5, h->sum_squares);
    pb_doubles(&histo, 6, h->limits, h->buckets);
    pb_doubles(&histo, 7, h->counts, h->buckets);
    pb_string(&message, 1, tag);
    pb_message(&message, 5, &histo);
    value_put(out, wall, step, &message);
}

static void host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0 || !*out)
        snprintf(out, size, "host");
    out[size - 1] = 0;
    for (char *c = out; *c; c++)
        if (*c == '/' || *c == '.')
            *c = '_';
}

berlu_status tb_open(tb_writer **out, const folder_handle *in, double wall)
{
    char host[HOST_NAME_MAX + 1];
    host_name(host, sizeof host);
    tb_writer *w = calloc(1, sizeof *w);
    if (!w)
        return berlu_fail_memory(sizeof *w, "a TensorBoard file");
    w->in = in;
    for (int serial = 0; serial < 1000; serial++) { /* a resumed run may start within the same second */
        snprintf(w->name, sizeof w->name, "events.out.tfevents.%010lld.%.40s.%ld.%d", (long long)wall, host,
                 (long)getpid(), serial);
        if (!file_exists_in(in, w->name))
            break;
    }
    tb_record_version(&w->pending, wall);
    berlu_status status = tb_flush(w);
    if (status != BERLU_OK) {
        tb_close(w);
        return status;
    }
    *out = w;
    return BERLU_OK;
}

void tb_scalar(tb_writer *w, double wall, int64_t step, const char *tag, float value)
{
    tb_record_scalar(&w->pending, wall, step, tag, value);
}

/* Values are processed FEW at a time. Values that are not finite have no position on the axis and
 * are removed here, so that the loops below need no check. */
enum { FEW = 256, LANES = 8 };

static const float *finite_few(float buffer[FEW], const float *values, size_t *count)
{
    unsigned odd = 0;
    size_t kept = 0;
#pragma omp simd reduction(| : odd)
    for (size_t i = 0; i < *count; i++)
        odd |= !(fabsf(values[i]) <= FLT_MAX);
    if (!odd)
        return values;
    for (size_t i = 0; i < *count; i++)
        if (isfinite(values[i]))
            buffer[kept++] = values[i];
    *count = kept;
    return buffer;
}

/* Independent lanes, added at the end: a vector of dependency chains instead of one. */
typedef struct lane_stats {
    float low[LANES], high[LANES];
    double sum[LANES], squares[LANES];
} lane_stats;

static inline void lane_add(lane_stats *s, size_t k, float v)
{
    s->low[k] = v < s->low[k] ? v : s->low[k];
    s->high[k] = v > s->high[k] ? v : s->high[k];
    s->sum[k] += v;
    s->squares[k] += (double)v * v;
}

static void lanes_add(lane_stats *to, const float *values, size_t count)
{
    lane_stats s = *to;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
#pragma omp simd
        for (size_t k = 0; k < LANES; k++)
            lane_add(&s, k, values[i + k]);
    }
    for (size_t i = whole; i < count; i++)
        lane_add(&s, i - whole, values[i]);
    *to = s;
}

static void stats_of(tb_histogram *h, const float *values, size_t count)
{
    lane_stats s = {0};
    float buffer[FEW];
    for (int k = 0; k < LANES; k++)
        s.low[k] = INFINITY, s.high[k] = -INFINITY;
    for (size_t i = 0; i < count; i += FEW) {
        size_t few = count - i < FEW ? count - i : FEW;
        const float *finite = finite_few(buffer, values + i, &few);
        lanes_add(&s, finite, few);
        h->count += (double)few;
    }
    h->min = s.low[0], h->max = s.high[0];
    for (int k = 0; k < LANES; k++) {
        h->min = s.low[k] < h->min ? s.low[k] : h->min;
        h->max = s.high[k] > h->max ? s.high[k] : h->max;
        h->sum += s.sum[k], h->sum_squares += s.squares[k];
    }
}

/* First the buckets of FEW values, a vector at a time, then the counting. */
static void buckets_count(double counts[BUCKETS], size_t buckets, const tb_histogram *h, double per_width,
                          const float *values, size_t count)
{
    enum { TABLES = 4, SLOTS = 32 }; /* several tables: equal neighbours do not depend on each other */
    _Static_assert((int)SLOTS >= (int)BUCKETS, "a power of two, so that a place is found by a shift");
    uint32_t found[TABLES][SLOTS] = {{0}};
    float buffer[FEW];
    int place[FEW];
    assert(buckets > 0 && buckets <= BUCKETS);
    double min = h->min, last = (double)(buckets - 1);
    for (size_t i = 0; i < count; i += FEW) {
        size_t few = count - i < FEW ? count - i : FEW;
        const float *finite = finite_few(buffer, values + i, &few);
#pragma omp simd
        for (size_t k = 0; k < few; k++) {
            double at = (finite[k] - min) * per_width;
            place[k] = (int)(at < last ? at : last);
        }
        for (size_t k = 0; k < few; k++)
            found[k % TABLES][place[k]]++;
    }
    for (int k = 0; k < TABLES; k++)
        for (size_t b = 0; b < buckets; b++)
            counts[b] += found[k][b];
}

/* Equal buckets from the least to the greatest value. One value alone gets one bucket around
 * itself. */
void tb_values(tb_writer *w, double wall, int64_t step, const char *tag, const float *values, size_t count)
{
    double limits[BUCKETS], counts[BUCKETS] = {0};
    tb_histogram h = {.limits = limits, .counts = counts, .buckets = BUCKETS};
    stats_of(&h, values, count);
    if (!(h.count > 0))
        return;
    double width = (h.max - h.min) / BUCKETS;
    for (int i = 0; i < BUCKETS; i++)
        limits[i] = h.min + width * (i + 1);
    if (!(width > 0)) {
        h.buckets = 1;
        limits[0] = nextafter(h.max, INFINITY);
    }
    buckets_count(counts, h.buckets, &h, width > 0 ? 1 / width : 0, values, count);
    limits[h.buckets - 1] = nextafter(h.max, INFINITY); /* the greatest value lies below the last limit */
    tb_record_histogram(&w->pending, wall, step, tag, &h);
}

berlu_status tb_flush(tb_writer *w)
{
    berlu_status status;
    TRY_DONE(text_status(&w->pending));
    if (w->pending.length > 0)
        status = file_append_in(w->in, w->name, w->pending.data, w->pending.length, 0);
done:
    text_free(&w->pending);
    return status;
}

void tb_close(tb_writer *w)
{
    if (!w)
        return;
    text_free(&w->pending);
    free(w);
}

const char *tb_name(const tb_writer *w)
{
    return w->name;
}
