/* act/cuda/fused_call.h - activations of fused layers, for the engine. SPDX-License-Identifier: MIT
 *
 * Like berlu_act_cuda_run(), for bf16 forward and backward calls whose elements may be estimates
 * (fused.cu). No header of CUDA is needed here. */
#ifndef ACT_CUDA_FUSED_CALL_H
#define ACT_CUDA_FUSED_CALL_H

#include <stdint.h>

#include <berlu/act.h>

#include "act/cuda/fused_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is there a kernel? bf16, whole vectors of channels, pointers on 16 bytes, parameters of the
 * layer, no bias. */
int act_cuda_fused_takes(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
/* Both only where it takes the call, which the caller has checked: pointers are device memory. */
size_t act_cuda_fused_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
berlu_status act_cuda_fused(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream);

/* The same in parts, for kernels that compute the product themselves (src/cuda/rows.c): the
 * activation's row in list.h, the job of a call, the addresses of its sums from `base` on (which
 * may be 0 for counting; returns the bytes), and joining them. A column has `row_blocks` partial
 * sums, a parameter `tiles`. */
size_t act_cuda_fused_row(const berlu_act *act);
fused_job act_cuda_fused_job(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
size_t act_cuda_fused_place(fused_job *job, const berlu_act *act, const berlu_act_call *call, size_t row_blocks,
                            size_t tiles, uintptr_t base);
berlu_status act_cuda_fused_join(const fused_job *job, const berlu_act *act, const berlu_act_call *call,
                                 size_t row_blocks, size_t tiles, void *stream);

#ifdef __cplusplus
}
#endif
#endif
