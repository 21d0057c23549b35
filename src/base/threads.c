/* threads.c - see threads.h. SPDX-License-Identifier: MIT
 *
 * OpenMP runs the blocks, also under the thread sanitizer, where LLVM's runtime reports its
 * barriers to the sanitizer.
 *
 * fork() copies one thread. libgomp's thread pool is gone in the child and libgomp does not know
 * it: the next parallel region waits forever. So a child of a process that had threads computes on
 * one. One atomic word records this; with the message of the last error it is all the state the
 * library has. Where the C library cannot tell whether there were threads, assume that there
 * were. */
#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define ONE_THREAD __libc_single_threaded
#endif
#endif
#ifndef ONE_THREAD
#define ONE_THREAD 0
#endif

enum { WHOLE, FORKS, FORKED }; /* an ordinary process; one with threads that forks; the child of such a process */
static atomic_int origin;

static void fork_begin(void)
{
    int whole = WHOLE;
    if (!ONE_THREAD) /* checked in the parent: the child has only one thread */
        atomic_compare_exchange_strong(&origin, &whole, FORKS);
}

static void child_begin(void)
{
    int forks = FORKS;
    atomic_compare_exchange_strong(&origin, &forks, FORKED);
}

static int alone(void)
{
    return atomic_load_explicit(&origin, memory_order_relaxed) == FORKED;
}

/* Registered when the library is loaded, not when it first computes: another user of libgomp may
 * have started the pool. If memory for the handler is missing, fork() is unprotected as before. */
__attribute__((constructor)) static void fork_watch(void)
{
    (void)pthread_atfork(fork_begin, NULL, child_begin);
}

int threads_default(void)
{
    int threads = alone() ? 1 : omp_get_max_threads();
    return threads > 0 ? threads : 1;
}

int threads_most(void)
{
    return 4 * omp_get_num_procs();
}

int threads_granted(int asked)
{
    int threads = asked > 0 ? asked : threads_default(), most = alone() ? 1 : threads_most();
    return threads < most ? threads : most;
}

enum { ALWAYS = 64 }; /* threads allowed without a look at the number of cores */

/* Limits the number of threads, because OpenMP ends the process when it cannot create one. Querying
 * the cores is a system call that takes as long as a thousand elements, so it happens only where it
 * decides. */
static int threads_limited(int threads)
{
    if (alone())
        return 1;
    if (threads <= ALWAYS)
        return threads;
    int most = threads_most() > ALWAYS ? threads_most() : ALWAYS;
    return threads < most ? threads : most;
}

static void blocks_run(int threads, size_t blocks, void (*body)(void *, size_t), void *context)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < blocks; i++)
        body(context, i);
}

void threads_for(int threads, size_t blocks, void (*body)(void *context, size_t block), void *context)
{
    if (threads <= 0)
        threads = threads_default();
    if ((size_t)threads > blocks)
        threads = (int)blocks;
    threads = threads_limited(threads);
    if (threads > 1) {
        blocks_run(threads, blocks, body, context);
        return;
    }
    for (size_t i = 0; i < blocks; i++)
        body(context, i);
}

/* The left part of a range: the largest power of two below its count. */
static size_t tree_left(size_t count)
{
    size_t left = 1;
    while (left * 2 < count)
        left *= 2;
    return left;
}

double tree_sum(const double *values, size_t count)
{
    if (count < 2)
        return count ? values[0] : 0;
    size_t left = tree_left(count);
    return tree_sum(values, left) + tree_sum(values + left, count - left);
}

/* Columns are summed in stripes, so that the tree is traversed once per stripe and the additions of
 * its columns are independent. The recursion is as deep as the logarithm of the number of rows. */
enum { STRIPE = 64 };

static void stripe_sum(double *out, const float *values, size_t rows, size_t stride, size_t width)
{
    if (rows == 1) {
        for (size_t c = 0; c < width; c++)
            out[c] = (double)values[c];
        return;
    }
    size_t left = tree_left(rows);
    double right[STRIPE];
    stripe_sum(out, values, left, stride, width);
    stripe_sum(right, values + left * stride, rows - left, stride, width);
    for (size_t c = 0; c < width; c++)
        out[c] += right[c];
}

void tree_sum_columns(float *out, const float *values, size_t rows, size_t stride, size_t columns)
{
    for (size_t c = 0; c < columns; c += STRIPE) {
        size_t width = columns - c < STRIPE ? columns - c : STRIPE;
        double sum[STRIPE] = {0};
        if (rows > 0)
            stripe_sum(sum, values + c, rows, stride, width);
        for (size_t i = 0; i < width; i++)
            out[c + i] = (float)sum[i];
    }
}
