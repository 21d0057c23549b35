/* side.h - the calls of a program that run on the second stream. SPDX-License-Identifier: MIT
 *
 * In a capture, calls are launched in their order; those that `has` names go to the second stream
 * after an event of the first (fork), and a later call of the first waits (join) for those whose
 * memory it touches. Used by run.c alone. */
#ifndef CUDA_SIDE_H
#define CUDA_SIDE_H

#include "cuda/device.h"

typedef struct cuda_side cuda_side;
berlu_status cuda_side_make(cuda_side **out, cuda_device *d, const op_call *calls, int count); /* NULL: none of them */
/* Device memory that it will take for them, with what the device then opens for the second
 * stream. */
size_t cuda_side_bytes(const cuda_device *d, const op_call *calls, int count);
void cuda_side_free(cuda_side *s); /* NULL is allowed */

void cuda_side_begin(cuda_side *s); /* of a capture */
int cuda_side_has(const cuda_side *s, int call);
berlu_status cuda_side_launch(cuda_side *s, int call);
/* Before this call of the first stream, or with NULL at the end. */
berlu_status cuda_side_join(cuda_side *s, const op_call *c);

#endif
