/* threads.c - see threads.h. SPDX-License-Identifier: MIT
 *
 * OpenMP does the work, also under the thread sanitizer, where LLVM's runtime tells the sanitizer of its barriers. */
#include "base/threads.h"

#include <omp.h>

int threads_default(void)
{
    int threads = omp_get_max_threads();
    return threads > 0 ? threads : 1;
}

enum { ALWAYS = 64 }; /* so many are allowed without asking */

/* OpenMP ends the process when it cannot make a thread, so nobody gets to ask for ten thousand. Asking for the cores is a call
 * of the system, as long as a thousand numbers take: only where it decides. */
static int threads_limited(int threads)
{
    if (threads <= ALWAYS)
        return threads;
    int cores = omp_get_num_procs(), most = cores > ALWAYS ? cores : ALWAYS;
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
