/* threads.c - see threads.h. SPDX-License-Identifier: MIT
 *
 * OpenMP does the work. Under the thread sanitizer plain POSIX threads do, because the sanitizer cannot see the
 * barriers inside an OpenMP runtime that was not built with it and would report every loop as a race. */
#include "base/threads.h"

#include <omp.h>

int threads_default(void)
{
    int threads = omp_get_max_threads();
    return threads > 0 ? threads : 1;
}

#if defined(__SANITIZE_THREAD__)
#define THREADS_POSIX 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_POSIX 1
#endif
#endif

#ifdef THREADS_POSIX
#include <pthread.h>

typedef struct share {
    pthread_t thread;
    size_t from, to;
    void (*body)(void *, size_t);
    void *context;
} share;

static void *share_run(void *data)
{
    const share *s = data;
    for (size_t i = s->from; i < s->to; i++)
        s->body(s->context, i);
    return NULL;
}

static void blocks_run(int threads, size_t blocks, void (*body)(void *, size_t), void *context)
{
    enum { MOST = 64 };
    share shares[MOST];
    int started[MOST];
    size_t count = threads > MOST ? MOST : (size_t)threads;
    for (size_t t = 0; t < count; t++) {
        shares[t] =
            (share){.from = blocks * t / count, .to = blocks * (t + 1) / count, .body = body, .context = context};
        started[t] = pthread_create(&shares[t].thread, NULL, share_run, &shares[t]) == 0;
        if (!started[t])
            share_run(&shares[t]);
    }
    for (size_t t = 0; t < count; t++)
        if (started[t])
            pthread_join(shares[t].thread, NULL);
}
#else
static void blocks_run(int threads, size_t blocks, void (*body)(void *, size_t), void *context)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < blocks; i++)
        body(context, i);
}
#endif

void threads_for(int threads, size_t blocks, void (*body)(void *context, size_t block), void *context)
{
    if (threads <= 0)
        threads = threads_default();
    if ((size_t)threads > blocks)
        threads = (int)blocks;
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
