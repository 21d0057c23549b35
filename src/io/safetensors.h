/* safetensors.h - files of named tensors: weights, checkpoints, batches.
 * SPDX-License-Identifier: MIT
 *
 * A file is 8 bytes of header length, a JSON object (name -> dtype, shape, data_offsets;
 * `__metadata__` holds texts) and the data. The reader loads the header and trusts nothing: every
 * rule of the format is checked before the first tensor is returned, so every entry of a
 * `safetensors` is valid without further checks. Values stay in the file until st_read_*() fetches
 * them, so weights take no memory beside their destination, and a file that is truncated meanwhile
 * yields a status (a mapped one would end the process). The reader is stricter than the reference
 * reader where that one guesses (duplicate names, unknown keys, leading blanks). The writer's bytes
 * are those of the reference writer, and the file is written atomically (base/file.h).
 *
 * Failures are BERLU_ERR_INPUT (reading), BERLU_ERR_ARG (an invalid list for the writer) or
 * BERLU_ERR_IO, and name the path and the tensor. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

/* In the order of the reference writer: the file holds larger types first. */
typedef enum st_dtype { ST_I64, ST_F64, ST_F32, ST_I32, ST_BF16, ST_F16, ST_U8, ST_DTYPE_COUNT } st_dtype;

enum { ST_RANK_MAX = 8, ST_NAME_MAX = 1024, ST_TENSORS_MAX = 100000, ST_HEADER_MAX = 100000000 };

const char *st_dtype_name(st_dtype dtype); /* "F32" */
size_t st_dtype_size(st_dtype dtype);      /* bytes of one value */

/* One tensor. Of an opened file `data` is NULL and the values come by st_read_*(); of parsed bytes,
 * and for the writer, it points to them and may lie at any address. */
typedef struct st_tensor {
    const char *name;
    st_dtype dtype;
    int rank;                    /* 0: a scalar, one value */
    uint64_t shape[ST_RANK_MAX]; /* row-major, last index fastest; a dimension may be 0 */
    const void *data;
    size_t count, bytes;        /* values; count * size of the dtype */
    const struct file_in *file; /* where the values are when data is NULL */
    uint64_t offset;            /* their first byte in the file, or after the header of parsed bytes */
} st_tensor;

typedef struct st_text {
    const char *key, *value;
} st_text;

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct safetensors safetensors;
berlu_status safetensors_open(safetensors **out, const char *path);
/* The same over bytes that the caller keeps alive; `path` is for the error texts. */
berlu_status safetensors_parse(safetensors **out, const void *bytes, size_t size, const char *path);
void safetensors_close(safetensors *file); /* NULL is allowed; frees the entries too */

size_t safetensors_count(const safetensors *file);
const st_tensor *safetensors_at(const safetensors *file, size_t i);           /* sorted by name */
const st_tensor *safetensors_find(const safetensors *file, const char *name); /* NULL: no such tensor */
const char *safetensors_metadata(const safetensors *file, const char *key);   /* NULL: no such key */
const char *safetensors_path(const safetensors *file);

/* Values as f32: F32 and narrower types exactly, F64 rounded. As i64: I64, I32, U8. Any other
 * pairing fails and names the tensor, as does a file that can no longer be read. `out` holds
 * t->count values. */
berlu_status st_read_f32(const st_tensor *t, float *out);
berlu_status st_read_f64(const st_tensor *t, double *out); /* from the floating types */
berlu_status st_read_i64(const st_tensor *t, int64_t *out);

/* "[2, 3, 32, 32]", for error texts. Returns out. */
enum { ST_SHAPE_TEXT = 8 * 22 + 4 };
const char *st_shape_text(char out[ST_SHAPE_TEXT], const uint64_t *shape, int rank);

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes the tensors (in any order; the file is sorted as the reference does) and the metadata
 * (kept in the order given; may be NULL with 0). The `count` and `bytes` fields are not read: they
 * follow from the shape. An entry of another open file is copied from there. */
berlu_status safetensors_write(const char *path, const st_tensor *tensors, size_t count, const st_text *metadata,
                               size_t texts);
berlu_status safetensors_write_in(const folder_handle *in, const char *name, const st_tensor *tensors, size_t count,
                                  const st_text *metadata, size_t texts);

#endif
