/* berlu/act_cuda.h - the activations on NVIDIA GPUs. SPDX-License-Identifier: MIT
 *
 * The same functions, the same call and, element by element, the same bits as on the CPU. Link
 * libberlu_cuda beside libberlu; it also loads on machines without a GPU and reports that there is
 * none.
 *
 *     float *x, *y;                                     // device memory, n floats each
 *     berlu_act_call call = {0};
 *     call.rows = 1, call.channels = n, call.x = x, call.y = y;
 *     if (berlu_act_cuda_run(act, BERLU_ACT_FORWARD, &call, stream) != BERLU_OK)
 *         fprintf(stderr, "%s\n", berlu_last_error());
 *
 * Differences from berlu_act_run(): every pointer of the call is device memory (or managed, or
 * pinned) of the current device; the work is enqueued on `stream` and the call returns at once.
 * Nothing is allocated and nothing waits, so a call can be captured into a CUDA graph, and a replay
 * reads the parameters anew. Gradient sums are deterministic, whatever the stream, and within a few
 * rounding errors of the CPU's (their order is another); values and dx are equal to the bit. */
#ifndef BERLU_ACT_CUDA_H
#define BERLU_ACT_CUDA_H

#include <berlu/act.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The number of GPUs this process can use. 0: none; berlu_last_error() holds CUDA's reason. */
BERLU_API int berlu_cuda_count(void);

/** "NVIDIA H200, compute capability 9.0, 139.8 GiB" for people. Returns BERLU_ERR_DEVICE when there
 *  is no such GPU. */
BERLU_API berlu_status berlu_cuda_describe(int device, char *out, size_t size);

/** Bytes of device workspace that a call needs: 0 unless it requests gradient sums. Depends on op,
 *  dtype, rows, channels, strides, on the requested gradients and on the alignment of the pointers.
 *  0 with an error message when the call is wrong (then berlu_act_cuda_run() fails too). */
BERLU_API size_t berlu_act_cuda_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);

/** Enqueues a call on `stream` (a cudaStream_t; NULL: the default stream). `hint` is ignored.
 *
 *  BERLU_ACT_BACKWARD_FROM_OUTPUT does not read the parameters beforehand: keep alpha positive (see
 *  berlu_act_has_from_output() in act.h).
 *
 *  Returns BERLU_ERR_ARG for every call that berlu_act_run() refuses, for host memory where device
 *  memory is needed (the message names the pointer) and for an element that does not lie on a
 *  multiple of its size; BERLU_ERR_DEVICE, with CUDA's own message, when there is no GPU or the
 *  launch failed. After a failed call the next one works. */
BERLU_API berlu_status berlu_act_cuda_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call,
                                          void *stream);

#ifdef __cplusplus
}
#endif
#endif
