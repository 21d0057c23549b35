/* threads.h - loops over blocks with OpenMP, and sums that do not depend on the schedule.
 * SPDX-License-Identifier: MIT
 *
 * The caller cuts its work into blocks whose number depends on the problem alone; the number of
 * threads only decides the assignment. Sums are stored per block and joined by a fixed binary tree
 * over block indices, so the number of threads never changes a bit. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include <stddef.h>

/* The number of threads that 0 stands for: the cores this process may use (affinity and
 * OMP_NUM_THREADS respected); 1 in a process that was forked from one with threads (threads.c). */
int threads_default(void);

/* The largest useful number: four per core. */
int threads_most(void);

/* The number of threads for an engine or a loop that requests `asked`: 0 is the default; never more
 * than threads_most(), and 1 in such a child. It makes a system call, so call it once per engine
 * and not once per run. */
int threads_granted(int asked);

/* Calls body(context, block) once for each block in [0, blocks) on up to `threads` threads (0: the
 * default; never more than 64 or four per core, whichever is larger; 1 in a child as above). Blocks
 * are assigned in contiguous ranges. `body` must not fail: it writes its outcome into memory of its
 * own block. */
void threads_for(int threads, size_t blocks, void (*body)(void *context, size_t block), void *context);

/* The sum of `count` doubles by the fixed tree: a range is split at the largest power of two below
 * its count. */
double tree_sum(const double *values, size_t count);

/* out[c] = the sum of column c of a matrix of floats by the same tree over its rows, in double; row
 * r begins at values + r * stride. */
void tree_sum_columns(float *out, const float *values, size_t rows, size_t stride, size_t columns);

#endif
