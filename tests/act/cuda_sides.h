/* cuda_sides.h - the same call on the CPU and on a GPU, and the comparison of the results.
 * SPDX-License-Identifier: MIT
 *
 * Every function ends the running test when CUDA or the library refuses. */
#ifndef TESTS_ACT_CUDA_SIDES_H
#define TESTS_ACT_CUDA_SIDES_H

#include <stddef.h>

#include <berlu/act_cuda.h>

enum { MOST = (1 << 21) + 77, CHANNELS_MOST = 4096 }; /* elements of an array, channels of a call */

/* Arrays of MOST elements and of CHANNELS_MOST elements, in the memory of one side. */
typedef struct side {
    char *x, *y, *dy, *dx;
    float *bias, *dbias, *param[2], *grad[2];
    char *space;
    size_t space_bytes;
} side;

typedef struct both {
    side host, device;
    size_t bytes; /* of each array */
} both;

/* The call to make. */
typedef struct plan {
    berlu_dtype dtype;
    size_t rows, channels, shift; /* elements that all arrays are shifted by: alignment */
    int bias, dbias, per_channel, with_y, param_index;
    int grads; /* gradients of the first `grads` parameters */
} plan;

int both_make(void **state); /* for cmocka_run_group_tests() */
int both_free(void **state);

void both_fill_params(both *b, size_t channels);               /* parameters and bias, on both sides */
void both_fill_moderate(both *b, berlu_dtype dtype, size_t n); /* x and dy that make sums comparable, on the host */
void fill_gradient(void *out, berlu_dtype dtype, size_t n);    /* uniform in +-1 */
berlu_act_call side_call(const side *s, const plan *p, berlu_act_op op, const berlu_act *act);

/* Runs it on both: values and dx must have the same bits, sums be within their bound. */
void both_compare(both *b, const char *spec, berlu_act_op op, const plan *p);

void *device_alloc(size_t bytes);
void to_device(void *device, const void *host, size_t bytes);
void to_host(void *host, const void *device, size_t bytes);
berlu_act *act_make(const char *spec);
void must(berlu_status status);

#endif
