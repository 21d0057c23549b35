/* berlu/berlu.h - the whole public interface of libberlu. SPDX-License-Identifier: MIT
 *
 *     status.h   results of calls and error messages
 *     act.h      activations; start there, its head has an example
 *     smooth.h   smoothing of functions with kinks
 *
 * The CUDA half is a library of its own, libberlu_cuda, with its own header: <berlu/act_cuda.h>. */
#ifndef BERLU_BERLU_H
#define BERLU_BERLU_H

#include <berlu/act.h>
#include <berlu/smooth.h>
#include <berlu/status.h>

#endif
