/* berlu/berlu.h - the whole public interface of libberlu. SPDX-License-Identifier: MIT
 *
 * status.h  how calls answer; act.h  activations (start there, its head has an example); smooth.h  how to make functions
 * with kinks smooth. The CUDA half has its own header, <berlu/act_cuda.h>, because it needs CUDA's stream type. */
#ifndef BERLU_BERLU_H
#define BERLU_BERLU_H

#include <berlu/act.h>
#include <berlu/smooth.h>
#include <berlu/status.h>

#endif
