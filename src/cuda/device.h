/* device.h - an open GPU: what outlives a call. SPDX-License-Identifier: MIT
 *
 * Everything runs on one stream, so transfers and programs happen in the order of their calls and a
 * kernel needs no event to wait for another; within a captured program weight gradients may run on
 * a second stream (run.c). A kernel that cannot be launched reports it with cuda_device_fail();
 * run() returns the first such failure. Included by .c and .cu files. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/cuda_api.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "engine/backend.h"

typedef enum cuda_precision { PRECISION_F32, PRECISION_TF32, PRECISION_BF16 } cuda_precision;

enum {
    STAGING_SLOTS = 8,   /* large transfers in flight */
    SMALL_SLOTS = 64,    /* small ones */
    RESULT_SLOTS = 1024, /* step results that nobody has collected yet */
};
#define STAGING_BYTES ((size_t)4 << 20) /* of a large slot */
#define SMALL_BYTES   ((size_t)4 << 10)

/* Pinned buffers through which uploads pass: the caller may reuse its memory as soon as it was
 * copied here. */
typedef struct cuda_staging {
    char *memory;
    size_t slot_bytes;
    int slots, next;
    cuda_event done[SMALL_SLOTS]; /* per slot: the device has read it */
} cuda_staging;

typedef struct cuda_results {
    step_result *slots; /* pinned, a ring */
    cuda_event arrived[RESULT_SLOTS];
    int first, count;
} cuda_results;

/* A parameter table as the device has it (run.c): spans, and the list of pieces that blocks of
 * threads work on. */
typedef struct param_piece {
    int64_t begin, count; /* elements of the span */
    int span;
} param_piece;
enum { PIECE = 4096 }; /* elements of a piece, at most */
typedef struct cuda_params {
    const param_span *spans;   /* device memory */
    const param_piece *pieces; /* device memory; in the order of the spans */
    int piece_count;
} cuda_params;

/* The end of a sum over rows (ends.c): to[j] = sum over `parts` rows of part[p * stride + j], in a
 * fixed order. Where inner > 0 the sums are written transposed: sum p * inner + i goes to
 * i * (columns / inner) + p. */
typedef struct cuda_end {
    const float *part;
    float *to;
    int64_t parts, columns, stride, inner;
} cuda_end;
enum { ENDS_MOST = 64 }; /* of a launch: they are its parameters */
typedef struct cuda_ends {
    cuda_end list[ENDS_MOST];
    int count;
    cuda_stream stream; /* whose ends are collected; NULL: nobody's */
} cuda_ends;

typedef struct gemm_state gemm_state; /* gemm.c: cuBLASLt, its workspace, the chosen algorithms */

typedef struct cuda_device {
    struct device_base base;
    int index;
    gpu_properties gpu;
    cuda_stream stream;
    cuda_precision precision;
    int residual_f32;
    gemm_state *gemm;
    cuda_staging large, small;
    cuda_results results;
    /* The second stream, opened when a program first needs it. While a call is launched there
     * `stream` is it, and lt_workspace its cuBLASLt workspace (NULL: the first stream's). */
    int second_stream; /* device_options.second_stream */
    cuda_stream side;
    void *side_workspace, *lt_workspace;
    cuda_ends ends;
    const cuda_params *params; /* of the call that is being launched, where it has a table */
    berlu_status failed;       /* of the current run: the first failure, and its text */
    char failure[512];
} cuda_device;

static inline cuda_device *cuda_device_at(const device *d)
{
    return (cuda_device *)d;
}
static inline cuda_device *cuda_device_of(const op_call *c)
{
    return (cuda_device *)c->device;
}

/* Keeps the first failure of a run. cuda_launched() checks that CUDA accepted the launches of this
 * call. */
void cuda_device_fail(cuda_device *d, berlu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cuda_launched(const op_call *c);

/* device.c */
berlu_status cuda_open(device **out, const backend *b, const device_options *o);
void cuda_close(device *d);
void cuda_dtypes(const device *d, tensor_dtype of_role[ROLE_COUNT]);
berlu_status cuda_alloc(device *d, void **out, memory_kind kind, size_t bytes, const char *what);
/* The same, not zeroed. */
berlu_status cuda_take(cuda_device *d, void **out, memory_kind kind, size_t bytes, const char *what);
void cuda_release(device *d, memory_kind kind, void *memory);
size_t cuda_free_bytes(device *d);
void cuda_describe(const device *d, char *out, size_t size);
berlu_status cuda_side_open(cuda_device *d, const op_call *like); /* the second stream, for calls like this one */

/* transfer.c */
berlu_status cuda_transfer_open(cuda_device *d);
void cuda_transfer_close(cuda_device *d);
berlu_status cuda_upload(device *d, void *to, const void *from, size_t bytes);
berlu_status cuda_download(device *d, void *to, const void *from, size_t bytes);
berlu_status cuda_copy(device *d, void *to, const void *from, size_t bytes);
berlu_status cuda_result_push(device *d, const step_result *from);
berlu_status cuda_result_pop(device *d, step_result *out, int *there, int wait);

/* run.c */
berlu_status cuda_prepare(device *d, program **out, const op_call *calls, int count, const program_options *o);
size_t cuda_prepared(const device *d, const op_call *calls, int count);
berlu_status cuda_run(program *p);
void cuda_program_free(program *p);
void cuda_seconds(program *p, double *per_call, int reset);
int cuda_linger(const device *d, op_id op, int64_t rows);

/* gemm.c */
berlu_status cuda_gemm_open(cuda_device *d, const char *algorithms);
void cuda_gemm_close(cuda_device *d);
berlu_status cuda_gemm_save(cuda_device *d); /* writes choices that are new since the last call */
void cuda_gemm_describe(const cuda_device *d, char *out, size_t size);
size_t cuda_gemm_library(const op_call *c); /* bytes of cuBLASLt's workspace, for calls that use it */

#ifdef __cplusplus
}
#endif
#endif
