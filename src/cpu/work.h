/* work.h - work stealing among threads that are not equally fast. SPDX-License-Identifier: MIT
 *
 * Each thread has a queue of blocks, always the same for the same call, so that its cache holds the
 * blocks it wrote in the call before. A thread that has finished steals from the others: a core
 * that shares its execution units with another virtual machine can be a third slower for
 * milliseconds. The thread that computes a block changes no bit of it (blocks.h).
 *
 *     work_queue s;
 *     work_deal(&s, count, threads);
 *     #pragma omp parallel num_threads(threads)
 *     for (int64_t i; (i = work_take(&s)) >= 0;)
 *         ... block i */
#ifndef CPU_WORK_H
#define CPU_WORK_H

#include <stdatomic.h>
#include <stdint.h>

#include <omp.h>

enum { SHARES_MOST = 64 }; /* with more threads than this some share a queue */

typedef struct work_queue {
    int count;
    struct {
        _Alignas(64) _Atomic int64_t next; /* a cache line of its own: it changes with every block */
        int64_t end;
    } of[SHARES_MOST];
} work_queue;

static inline void work_deal(work_queue *s, int64_t all, int threads) /* threads > 0 */
{
    s->count = threads < SHARES_MOST ? threads : SHARES_MOST;
    for (int i = 0; i < s->count; i++) {
        atomic_init(&s->of[i].next, i * all / s->count);
        s->of[i].end = (i + 1) * all / s->count;
    }
}

/* The next block for the calling thread, or -1. */
static inline int64_t work_take(work_queue *s)
{
    for (int i = 0, own = omp_get_thread_num(); i < s->count; i++) {
        int at = (own + i) % s->count;
        if (atomic_load_explicit(&s->of[at].next, memory_order_relaxed) >= s->of[at].end)
            continue;
        int64_t block = atomic_fetch_add_explicit(&s->of[at].next, 1, memory_order_relaxed);
        if (block < s->of[at].end)
            return block;
    }
    return -1;
}

#endif
