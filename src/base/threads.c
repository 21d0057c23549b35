/* threads.c - see threads.h. SPDX-License-Identifier: MIT
 *
 * OpenMP does the work, also under the thread sanitizer, where LLVM's runtime tells the sanitizer
 * of its barriers.
 *
 * fork() copies one thread. libgomp's pool of threads is gone in the child and libgomp does not
 * know it: the next parallel region waits for ever. So a child of a process that had threads
 * computes on one. One word says so; with the text of the last error it is all the state the
 * library has. Where the C library cannot tell whether there were threads, there were some. */
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

enum { WHOLE, FORKS, FORKED }; /* a process of its own; one with threads that forks; the child of such a one */
static atomic_int origin;

static void fork_begin(void)
{
    int whole = WHOLE;
    if (!ONE_THREAD) /* asked before: the child has only one */
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

/* When the library is loaded, not when it first computes: the pool may be the work of another
 * user of libgomp. Without memory to remember the handler fork() stays what it was. */
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

enum { ALWAYS = 64 }; /* so many are allowed without asking */

/* OpenMP ends the process when it cannot make a thread, so nobody gets to ask for ten thousand.
 * Asking for the cores is a call of the system, as long as a thousand numbers take: only where
 * it decides. */
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
