/* cuda_api.h - the CUDA runtime and cuBLASLt as the C files of src/cuda see them.
 * SPDX-License-Identifier: MIT
 *
 * Thin wrappers that return a status and leave CUDA's own words in berlu_last_error(). The host
 * logic above them (memory, programs, choice of algorithms, error paths) therefore compiles without
 * the toolkit: tests/cuda/stub.c implements this header over malloc and a list of recorded
 * launches. The real ones are runtime.c and cublaslt.c. The handle types are CUDA's own, named by
 * their tags, so that .cu files use them without a cast. */
#ifndef CUDA_CUDA_API_H
#define CUDA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUgraphExec_st *cuda_graph;

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct gpu_properties {
    char name[128];
    int major, minor; /* compute capability */
    int processors;   /* multiprocessors */
    size_t memory;    /* bytes */
} gpu_properties;

berlu_status gpu_count(int *out); /* fails where there is no driver, or one older than this build needs */
berlu_status gpu_describe(gpu_properties *out, int index);
berlu_status gpu_use(int index); /* for the calling thread */
berlu_status gpu_memory(size_t *free_bytes);

/* ---- memory, streams, events ----------------------------------------------------------------- */

enum { GPU_MEMORY_PIECE = 2 << 20 }; /* large allocations take whole ones, small ones share one */

berlu_status gpu_alloc(void **out, size_t bytes); /* BERLU_ERR_MEMORY where there is too little; not zeroed */
void gpu_free(void *memory);
berlu_status gpu_host_alloc(void **out, size_t bytes); /* pinned */
void gpu_host_free(void *memory);

berlu_status gpu_stream_create(cuda_stream *out);
void gpu_stream_destroy(cuda_stream s);
berlu_status gpu_stream_wait(cuda_stream s); /* the host waits until it is empty */

typedef enum gpu_direction { GPU_UPLOAD, GPU_DOWNLOAD, GPU_WITHIN } gpu_direction;
berlu_status gpu_copy(void *to, const void *from, size_t bytes, gpu_direction direction, cuda_stream s);
berlu_status gpu_zero(void *memory, size_t bytes, cuda_stream s);

berlu_status gpu_event_create(cuda_event *out, int timed);
void gpu_event_destroy(cuda_event e); /* NULL is allowed, as in all destroy and free functions here */
berlu_status gpu_event_record(cuda_event e, cuda_stream s);
berlu_status gpu_stream_after(cuda_stream s,
                              cuda_event e); /* what follows on the stream waits for it; also in a capture */
berlu_status gpu_event_wait(cuda_event e);   /* the host waits; an event never recorded is over */
berlu_status gpu_event_done(cuda_event e, int *done);
berlu_status gpu_event_seconds(double *out, cuda_event from, cuda_event to); /* both timed, both over */

/* ---- capture --------------------------------------------------------------------------------- */

berlu_status gpu_capture_begin(cuda_stream s);
berlu_status gpu_capture_end(cuda_stream s, cuda_graph *out); /* NULL: what was captured is thrown away */
berlu_status gpu_graph_launch(cuda_graph g, cuda_stream s);
void gpu_graph_free(cuda_graph g);

berlu_status gpu_launch_status(void); /* of the launches since the last call */

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

typedef struct lt_library lt_library;
typedef struct lt_plan lt_plan; /* descriptors of one product */

/* D (m x n) = op(A) op(B) + bias + C in cuBLAS's words: column-major, no gaps between columns; the
 * bias runs along m. */
typedef struct lt_product {
    int64_t m, n, k;
    int transpose_a, transpose_b;
    int in_bf16, out_bf16; /* A and B; C, D and bias. Else f32 */
    int tf32;              /* f32 inputs may be rounded to TF32 */
    int bias, add;         /* epilogue: a bias; C is added */
    int align;             /* all pointers are multiples of so many bytes */
} lt_product;

/* A choice of kernel, tile and split: opaque bytes, the same for the same version of the
 * library. */
enum { LT_ALGORITHM_BYTES = 64 };
typedef struct lt_algorithm {
    unsigned char bytes[LT_ALGORITHM_BYTES];
} lt_algorithm;

typedef struct lt_pointers {
    const void *a, *b, *c, *bias;
    void *d, *workspace;
    size_t workspace_bytes;
} lt_pointers;

berlu_status lt_open(lt_library **out); /* loads the library; fails with what was looked for */
void lt_close(lt_library *lt);
void lt_version(const lt_library *lt, char out[32]); /* "13.1.0" */

berlu_status lt_plan_make(lt_plan **out, lt_library *lt, const lt_product *p);
void lt_plan_free(lt_plan *plan);
/* The heuristic's offers, best guess first, with sums of fixed order; returns their number (0:
 * none). */
int lt_offers(lt_plan *plan, size_t workspace_bytes, lt_algorithm *out, int most);
int lt_accepts(lt_plan *plan, const lt_algorithm *a, size_t workspace_bytes); /* can this library run it? */
berlu_status lt_run(lt_plan *plan, const lt_algorithm *a, const lt_pointers *p, cuda_stream s);

#ifdef __cplusplus
}
#endif
#endif
