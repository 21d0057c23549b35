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

double tree_sum(const double *values, size_t count)
{
    if (count == 0)
        return 0;
    if (count == 1)
        return values[0];
    size_t half = 1;
    while (half * 2 < count)
        half *= 2;
    return tree_sum(values, half) + tree_sum(values + half, count - half);
}
