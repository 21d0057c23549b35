/* cuda/fused_call.h - activations of fused layers, for the engine. SPDX-License-Identifier: MIT
 *
 * Like berlu_act_cuda_run(), for bf16 forward and backward calls whose elements may be estimates
 * (fused.cu). No header of CUDA is needed here. */
#ifndef ACT_CUDA_FUSED_CALL_H
#define ACT_CUDA_FUSED_CALL_H

#include <berlu/act.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is there a kernel? bf16, whole vectors of channels, pointers on 16 bytes, parameters of the
 * layer, no bias. */
int act_cuda_fused_takes(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
/* Both only where it takes the call, which the caller has checked: pointers are device memory. */
size_t act_cuda_fused_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);
berlu_status act_cuda_fused(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream);

#ifdef __cplusplus
}
#endif
#endif
