/* backend.h - the interface between the engine and a backend: devices, memory, calls, programs.
 * SPDX-License-Identifier: MIT
 *
 * A backend is one const table. It opens devices; a device owns what outlives a call: threads or
 * streams, library handles, tuned algorithms. The engine resolves a graph into op_calls (pointers,
 * sizes, dtypes, attributes; nothing in a call changes between steps but the memory it points to)
 * and hands the backend lists of them once: prepare() compiles a list into a program, run()
 * executes it. The CPU loops over the calls and runs row-blocked groups of them some rows at a
 * time; CUDA captures the launches and replays them. run() may return before the work is done;
 * transfers and programs of one device execute in the order of the calls.
 *
 * The engine never dereferences device memory unless the backend says that it is the host's
 * (`host_memory`): it uploads and downloads bytes, and dtypes are converted on the host
 * (graph/dtype.h). tests/graph/guarded.c is a backend whose memory is protected while the engine
 * runs; the whole of tests/graph passes on it.
 *
 * Read on: cpu/cpu.c and cpu/run.c for the smallest backend, engine/build.c for how calls come
 * about. */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "engine/step.h"
#include "graph/op.h"

typedef struct backend backend;
typedef struct device device;   /* defined by each backend; its first member is struct device_base */
typedef struct program program; /* likewise: a prepared list of calls */

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct op_operand {
    void *data;             /* device memory; NULL where missing */
    int64_t rows, channels; /* batch included; rows * channels elements */
    tensor_dtype dtype;
    const tensor_info *info; /* NULL where missing */
} op_operand;

typedef struct op_call {
    op_id op;
    op_operand in[NODE_INPUTS], out[NODE_OUTPUTS];
    const op_attr *attr;
    const engine_step *step;   /* device memory */
    step_result *result;       /* device memory */
    void *workspace;           /* device memory: op_entry.workspace bytes, aligned as the backend requires */
    const param_table *params; /* update ops: all arrays */
    device *device;
    int batch, threads;
    int group; /* number of calls, from this one on, of a row-blocked group; 0: none begins here */
} op_call;

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct device_options {
    int index;             /* of the GPU */
    int threads;           /* of the CPU; 0: all */
    const char *precision; /* "f32" (default), "tf32", "bf16"; the backend's dtypes() interprets it */
    const char *residual;  /* with bf16: dtype of the residual stream, "bf16" (default) or "f32" */
    /* CUDA: file of chosen GEMM algorithms, "first", "new", the text of choices() of an earlier
     * device, or NULL for the default file. */
    const char *algorithms;
    /* CUDA: weight gradients beside the rest of the backward; 0: where rows are few, 1: always,
     * -1: never. No bit depends on it. */
    int second_stream;
} device_options;

typedef enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_HOST /* the host's, pinned where that makes transfers asynchronous */
} memory_kind;

typedef struct program_options {
    int profile; /* 1: seconds() will be called */
} program_options;

struct backend {
    const char *name;    /* "cpu", "cpu-f64", "cuda" */
    const op_entry *ops; /* OP_COUNT of them */
    size_t alignment;    /* of tensors, in bytes */
    int host_memory;     /* device memory is the host's: callers may fill and read it in place */
    int asynchronous;    /* run() returns before the work is done */
    int fold_weights;    /* what weights can do is moved into them (passes/weights.c); changes last bits */
    /* Workspaces of consecutive calls lie side by side, up to so many bytes, and then begin again:
     * what a call left in its own remains for a while. 0: all begin at the same place. */
    size_t workspace_ring;

    berlu_status (*open)(device **out, const backend *b, const device_options *o);
    void (*close)(device *d); /* NULL is allowed */
    void (*dtypes)(const device *d, tensor_dtype of_role[ROLE_COUNT]);

    berlu_status (*alloc)(device *d, void **out, memory_kind kind, size_t bytes, const char *what); /* zeroed */
    void (*release)(device *d, memory_kind kind, void *memory);                    /* NULL is allowed */
    berlu_status (*upload)(device *d, void *to, const void *from, size_t bytes);   /* `from` may be reused on return */
    berlu_status (*download)(device *d, void *to, const void *from, size_t bytes); /* waits for it */
    berlu_status (*copy)(device *d, void *to, const void *from, size_t bytes);     /* within the device */

    berlu_status (*prepare)(device *d, program **out, const op_call *calls, int count, const program_options *o);
    berlu_status (*run)(program *p);
    void (*program_free)(program *p); /* NULL is allowed */
    void (*seconds)(program *p, double *per_call,
                    int reset); /* profile: adds the seconds of each call since the last reset */

    /* Results of steps in order, without waiting for the device: push() enqueues a copy of the
     * device's step_result, pop() returns the oldest one that has arrived; *there is 0 where none
     * has. With `wait` it waits for one that was pushed. */
    berlu_status (*result_push)(device *d, const step_result *from);
    berlu_status (*result_pop)(device *d, step_result *out, int *there, int wait);

    size_t (*library)(const op_call *call); /* bytes that libraries allocate during a call; NULL: none */
    /* Bytes of device memory that prepare() takes for such a list, at most: tables, and what a
     * second stream needs of its own. From sizes alone, as op_entry.workspace; NULL: none. */
    size_t (*prepared)(const device *d, const op_call *calls, int count);
    void (*group)(graph *g, int batch); /* marks row-blocked groups (node.group); NULL: none */
    /* The number of calls after an op of `rows` rows that must not overwrite its inputs, because
     * the op may run concurrently with them; NULL: 0. */
    int (*linger)(const device *d, op_id op, int64_t rows);
    size_t (*free_bytes)(device *d); /* memory left on the device; NULL, or 0: not known */
    size_t memory_piece;             /* an allocation may take up to so much more than it asked for */
    void (*describe)(const device *d, char *out,
                     size_t size); /* "oneDNN 2.6.3, avx512", "NVIDIA H200, cuBLASLt 13.0" */
    /* The choices made by timing so far (GEMM algorithms), in the syntax of
     * device_options.algorithms; NULL: it makes none. */
    berlu_status (*choices)(const device *d, text *out);
    const void *data; /* the backend's own */
};

/* Common head of every device. */
struct device_base {
    const backend *backend;
};

#endif
