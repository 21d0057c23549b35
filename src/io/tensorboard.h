/* tensorboard.h - event files that TensorBoard opens. SPDX-License-Identifier: MIT
 *
 * A file is a sequence of records (length, its checksum, an Event message, its checksum). A reader
 * stops silently at a truncated or wrong record, so records are appended whole, many at a time, and
 * a resumed run begins a new file in the same folder instead of repairing the old one. Scalars and
 * histograms use the oldest form of Summary.Value, which every reader lists. Wall times live here
 * and not in metrics.csv, which is the same for the same run. */
#ifndef IO_TENSORBOARD_H
#define IO_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/text.h"

/* Bucket i holds `counts[i]` values below limits[i] and not below limits[i - 1]. */
typedef struct tb_histogram {
    double min, max, count, sum, sum_squares;
    const double *limits, *counts;
    size_t buckets;
} tb_histogram;

/* The records themselves, appended to a text. An empty histogram is left out, as TensorBoard
 * requires. */
void tb_record_version(text *out, double wall);
void tb_record_scalar(text *out, double wall, int64_t step, const char *tag, float value);
void tb_record_histogram(text *out, double wall, int64_t step, const char *tag, const tb_histogram *h);

/* A file in a folder. Values are collected and appended by tb_flush(). */
typedef struct tb_writer tb_writer;
berlu_status tb_open(tb_writer **out, const folder_handle *in, double wall); /* the handle outlives the writer */
void tb_scalar(tb_writer *w, double wall, int64_t step, const char *tag, float value);
void tb_values(tb_writer *w, double wall, int64_t step, const char *tag, const float *values, size_t count);
berlu_status tb_flush(tb_writer *w);     /* whole records, in one append */
void tb_close(tb_writer *w);             /* without flushing; NULL is allowed */
const char *tb_name(const tb_writer *w); /* of the file, in its folder */

#endif
